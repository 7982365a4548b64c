//! teloxide's example `buttons`: a column of buttons, in a message and in inline mode, and what was chosen.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::EditMessageText, api::AnswerInlineQuery])]
pub(crate) mod buttons {
    const DEBIAN: [&str; 16] = [
        "Buzz", "Rex", "Bo", "Hamm", "Slink", "Potato", "Woody", "Sarge", "Etch", "Lenny", "Squeeze", "Wheezy",
        "Jessie", "Stretch", "Buster", "Bullseye",
    ];

    #[derive(CallbackData)]
    struct Version {
        name: String,
    }

    #[derive(Command)]
    enum Cmd {
        /// Display this text
        Help,
        /// Start
        Start,
    }

    #[command(Cmd)]
    fn command(ctx: &mut Ctx, cmd: Cmd) {
        match cmd {
            Cmd::Help => ctx.reply(Cmd::help()),
            Cmd::Start => ctx.reply("Debian versions:").keyboard(keyboard()),
        };
    }

    #[message(filter = filter::has("text"))]
    fn other(ctx: &mut Ctx) {
        ctx.reply("Command not found!");
    }

    #[on("inline_query")]
    fn inline(ctx: &mut Ctx) {
        let choose = api::InlineQueryResultArticle::new("0", "Choose a Debian version", "Debian versions:");
        ctx.answer_inline([choose.reply_markup(keyboard())]);
    }

    /// The press itself is answered by the host.
    #[callback(Version)]
    fn chosen(ctx: &mut Ctx, Version { name }: Version) {
        ctx.edit(format!("You chose: {name}"));
        info!("chosen", version = name);
    }

    fn keyboard() -> InlineKeyboard {
        let button = |name: &&str| Button::data(name, Version { name: (*name).to_owned() });
        InlineKeyboard::new().rows(DEBIAN.chunks(3).map(|row| row.iter().map(button)))
    }
}
