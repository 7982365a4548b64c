//! Keeps a group tidy: shows its rules, and removes links that are not from an administrator.
//!
//! In the group the bot must be an administrator that may delete messages; and it sees all messages only when its
//! privacy mode is off: @BotFather, /setprivacy.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::DeleteMessage, api::GetChatMember])]
mod plugin_name {
    use api::{ChatMember, DeleteMessage, GetChatMember};

    #[command("start", "rules", help = "help-rules")]
    fn rules(ctx: &mut Ctx) -> Result<(), Error> {
        let rules: Option<String> = ctx.storage().chat().get("rules")?;
        ctx.reply(rules.unwrap_or_else(|| t!(ctx, "no-rules")));
        Ok(())
    }

    #[command("setrules", help = "help-setrules")]
    fn set_rules(ctx: &mut Ctx) -> Result<(), Error> {
        if !is_admin(ctx)? {
            ctx.reply(t!(ctx, "admins-only"));
        } else if ctx.args().is_empty() {
            ctx.reply(t!(ctx, "usage"));
        } else {
            ctx.storage().chat().set("rules", ctx.args())?;
            ctx.reply(t!(ctx, "saved"));
        }
        Ok(())
    }

    #[text(r"(?i)https?://|t\.me/")]
    fn link(ctx: &mut Ctx) -> Result<Handled, Error> {
        let Some(message) = ctx.message_id() else { return Ok(Pass) };
        if ctx.chat_type() == "private" || is_admin(ctx)? {
            return Ok(Pass);
        }
        ctx.queue(DeleteMessage::new(ctx.here(), message));
        ctx.reply(t!(ctx, "no-links", name = ctx.user().first_name));
        Ok(Done)
    }

    /// Asked of Telegram each time, since it can change at any time.
    fn is_admin(ctx: &Ctx) -> Result<bool, Error> {
        if ctx.chat_type() == "private" {
            return Ok(true);
        }
        let member = ctx.ask(GetChatMember::new(ctx.here(), ctx.user().id))?;
        Ok(matches!(member, ChatMember::Owner(_) | ChatMember::Administrator(_)))
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn rules_are_kept() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/setrules Be kind.");
        assert_eq!(bot.text("/rules").texts(), ["Be kind."]);
    }
}
