//! A later version of `versioned` that does not know how to take over older states: `/lost` says what was set aside, and
//! lets go of it.

use botyard_sdk::prelude::*;

#[plugin(name = "versioned", version = "9.0.0")]
mod forgetful {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 9)]
    enum Steps {
        #[default]
        Idle,
        Walking,
    }

    #[command("lost")]
    fn lost(ctx: &mut Ctx<Steps>) -> Handled {
        match ctx.lost_state() {
            Some(old) => ctx.reply(format!("{} {} {}", old.name, old.version, String::from_utf8_lossy(&old.bytes))),
            None => ctx.reply("nothing"),
        };
        ctx.drop_lost_state();
        ctx.goto(Steps::Walking)
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    #[test]
    fn what_was_set_aside_is_told_once() {
        let mut bot = Bot::<super::forgetful::Plugin>::new().lost_state("walking", 1, &botyard_sdk::json!(7));
        assert_eq!(bot.text("/lost").texts(), ["walking 1 7"]);
        assert_eq!(bot.text("/lost").texts(), ["nothing"]);
    }
}
