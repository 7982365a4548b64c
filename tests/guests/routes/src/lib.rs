//! Says in many ways what it answers to, and answers in place of what fails.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage", "getChatMember"])]
mod routes {
    use botyard_sdk::extract::Start;

    #[derive(Command)]
    enum Cmd {
        /// What I can do
        Help,
        /// Says something some times
        #[command("say {times} {what...}", "s")]
        Say { times: usize, what: String },
    }

    #[command(Cmd)]
    fn commands(ctx: &mut Ctx, cmd: Cmd) {
        match cmd {
            Cmd::Help => ctx.reply(Cmd::help()),
            Cmd::Say { times, what } => ctx.reply(vec![what; times].join(" ")),
        };
    }

    #[start("ref-")]
    fn invited(ctx: &mut Ctx, Start(by): Start<i64>) {
        ctx.reply(format!("sent by {by}"));
    }

    #[command("close", filter = group() | private(), check = check::administrator)]
    fn close(ctx: &mut Ctx) {
        ctx.reply("closed");
    }

    #[message(filter = text_matches("(?i)^tea$") & private() & !forwarded())]
    fn tea(ctx: &mut Ctx, message: api::Message) {
        ctx.reply(format!("tea for {}", message.chat().first_name().unwrap_or_default()));
    }

    #[message(filter = text_begins("later") | text_begins("never") | text_begins("panic"))]
    fn fail(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.storage().plugin().set("left", &true)?;
        ctx.reply("this must not be sent");
        match ctx.text() {
            "panic" => panic!("deliberate"),
            "never" => Err(Error::permanent("it can't be done")),
            text => Err(Error::new(text)),
        }
    }

    #[text("^left$")]
    fn left(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.reply(format!("{:?}", ctx.storage().plugin().get::<bool>("left")?));
        Ok(())
    }

    #[command("work")]
    fn work(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.job("work", ctx.args()).enqueue()?;
        Ok(())
    }

    #[job("work")]
    fn at_work(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.reply("this must not be sent");
        let why: String = ctx.payload()?;
        if why == "never" { Err(Error::permanent("it can't be done")) } else { Err(Error::new(why)) }
    }

    #[on_error]
    fn failed(ctx: &mut Ctx, error: Error) -> Handled {
        if error.retries() && ctx.text() != "panic" {
            return Pass;
        }
        let why = error.to_string();
        ctx.reply(format!("Sorry ({}): {}", ctx.attempt(), why.lines().next().unwrap_or_default()));
        Done
    }
}
