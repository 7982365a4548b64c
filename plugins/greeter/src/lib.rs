//! Greets people by their first name, in English or Uzbek.
//!
//! The texts are in `locales/en.ftl` and `locales/uz.ftl`, which travel inside of the plugin. Which one is used follows
//! the user's language in Telegram; every other language gets the host's default. The text behind the semicolon is what
//! is left if no catalog has the key.

use botyard_sdk::User;
use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = ["sendMessage"])]
mod greeter {
    #[command("start", "hello", help = "cmd-start")]
    fn hello(ctx: &mut Ctx, user: User) {
        ctx.reply(t!(ctx, "hello", name = user.first_name; "Hello, {$name}!"));
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::greeter::Plugin;

    #[test]
    fn greets_by_first_name() {
        let mut bot = Bot::<Plugin>::new();
        bot.first_name = "Élodie 🙂".to_owned();
        assert_eq!(bot.text("/start").texts(), ["Hello, Élodie 🙂!"]);
        assert_eq!(bot.text("/hello@botyard_bot").texts(), ["Hello, Élodie 🙂!"]);
    }
}
