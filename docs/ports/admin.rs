//! Removes, bans and silences people by a reply to what they wrote: what teloxide's example `admin` does.

use std::str::FromStr;

use botyard_sdk::prelude::*;

/// How long, in seconds, as `10 m`.
#[derive(Clone, Copy)]
pub(crate) struct Unit(u64);

impl FromStr for Unit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "h" | "hours" => Ok(Self(3600)),
            "m" | "minutes" => Ok(Self(60)),
            "s" | "seconds" => Ok(Self(1)),
            _ => Err("h, m or s"),
        }
    }
}

#[plugin]
pub(crate) mod admin {
    #[derive(Command)]
    enum Cmd {
        /// Kick user from chat
        Kick,
        /// Ban user in chat
        Ban { time: u64, unit: Unit },
        /// Mute user in chat
        Mute { time: u64, unit: Unit },
        /// This text
        Help,
    }

    #[command(Cmd)]
    fn action(ctx: &mut Ctx, cmd: Cmd, message: api::Message) {
        let replied = message.reply_to_message().and_then(|replied| replied.from());
        let until = |time: u64, Unit(unit): Unit| message.date().saturating_add_unsigned(time.saturating_mul(unit));
        match (cmd, replied.map(|user| user.id())) {
            (Cmd::Help, _) => ctx.reply(Cmd::help()),
            (_, None) => ctx.reply("Use this command in reply to another message"),
            (Cmd::Kick, Some(user)) => ctx.queue(api::UnbanChatMember::new(ctx.here(), user)),
            (Cmd::Ban { time, unit }, Some(user)) => {
                ctx.queue(api::BanChatMember::new(ctx.here(), user).until_date(until(time, unit)))
            }
            (Cmd::Mute { time, unit }, Some(user)) => {
                let silence = api::RestrictChatMember::new(ctx.here(), user, api::ChatPermissions::new());
                ctx.queue(silence.until_date(until(time, unit)))
            }
        };
    }
}
