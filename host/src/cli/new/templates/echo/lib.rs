//! Says back what it is told.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage])]
mod plugin_name {
    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "start"));
    }

    #[text]
    fn echo(ctx: &mut Ctx) {
        ctx.reply(ctx.text());
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn what_is_said_comes_back() {
        assert_eq!(Bot::<Plugin>::new().text("hello").texts(), ["hello"]);
    }
}
