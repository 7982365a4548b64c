//! `/get URL` and `/post URL` answer with what came of the request; `/leak` tells its secret wherever it can; `/hold`
//! begins a conversation that ends after a second; `/tick MS` sets a timer that recurs, `/ticks` lists and `/still`
//! cancels it. What the manifest declares rings in the chat that the configuration names.

use botyard_sdk::http;
use botyard_sdk::prelude::*;

#[plugin(http = ["http://*:*", "https://*:*"])]
mod reaches {
    use super::http;

    #[derive(State, Serialize, Deserialize, Default)]
    #[state(key = "chat", ttl = "1s")]
    enum Held {
        #[default]
        Idle,
        Since {
            word: String,
        },
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Config {
        ring: i64,
    }

    #[command("get")]
    fn get(ctx: &mut Ctx<Held>) {
        answer(ctx, http::get(ctx.args()).header("Authorization", "Bearer of-the-plugin"));
    }

    #[command("post")]
    fn post(ctx: &mut Ctx<Held>) {
        answer(ctx, http::post(ctx.args()).json(&json!({ "sum": 5 })));
    }

    fn answer(ctx: &Run, request: http::Request) {
        match request.send() {
            Ok(answer) => ctx.reply(format!("{} {:.200}", answer.status, answer.text())),
            Err(error) => ctx.reply(format!("error: {error}")),
        };
    }

    /// Reads a counter, posts, and counts: whoever is late by then is made again.
    #[command("race")]
    fn race(ctx: &mut Ctx<Held>) -> Result<(), Error> {
        let count: u32 = ctx.storage().plugin().get("count")?.unwrap_or(0);
        let id = ctx.event_id().to_string();
        let answer = http::post(ctx.args()).header("X-Event", &id).send()?.ok()?;
        ctx.storage().plugin().set("count", &(count + 1))?;
        ctx.reply(format!("posted {}", answer.text()));
        Ok(())
    }

    #[command("leak")]
    fn leak(ctx: &mut Ctx<Held>) -> Result<(), Error> {
        let secret = ctx.secret("pay")?;
        info!("the secret is {secret}", quoted = format!("{secret:?}"));
        if ctx.args() == "panic" {
            panic!("it is {secret}");
        }
        Err(Error::permanent(format!("it is {secret}")))
    }

    #[command("hold")]
    fn hold(ctx: &mut Ctx<Held>) -> Result<Handled, Error> {
        ctx.storage().chat().set_for("word", ctx.args(), Duration::from_secs(1))?;
        ctx.reply("held");
        Ok(ctx.goto(Held::Since { word: ctx.args().to_owned() }))
    }

    #[expired(state = Held::Since { .. })]
    fn expired(ctx: &mut Ctx<Held>) {
        let Held::Since { word } = ctx.state() else { return };
        ctx.reply(format!("{word} is over"));
    }

    #[command("tick")]
    fn tick(ctx: &mut Ctx<Held>) -> Result<(), Error> {
        ctx.every("tick", Duration::from_millis(ctx.args().parse()?)).payload("tock").set()?;
        ctx.reply("ticking");
        Ok(())
    }

    #[timer("tick")]
    fn tock(ctx: &mut Ctx<Held>) -> Result<(), Error> {
        let count = ctx.storage().chat().increment("tocks", 1)?;
        ctx.reply(format!("{} {count}", ctx.payload::<String>()?));
        Ok(())
    }

    #[command("ticks")]
    fn ticks(ctx: &mut Ctx<Held>) {
        let timers = ctx.timers();
        let names: Vec<_> = timers.iter().map(|timer| timer.name.as_str()).collect();
        ctx.reply(format!("[{}]", names.join(" ")));
    }

    #[command("still")]
    fn still(ctx: &mut Ctx<Held>) {
        let count = ctx.cancel_named("tick");
        ctx.reply(format!("cancelled {count}"));
    }

    #[every("1s")]
    fn ring(ctx: &mut Ctx<Held>) -> Result<(), Error> {
        let Config { ring } = ctx.config()?;
        if ring != 0 {
            ctx.send(ring, "ring");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::http::{HttpError, Response};
    use botyard_sdk::json;
    use botyard_sdk::test::Bot;

    use super::reaches::Plugin;

    #[test]
    fn requests_are_answered_by_the_test() {
        let mut bot =
            Bot::<Plugin>::new().respond(Ok(Response::new(201, "made"))).respond(Err(HttpError::Denied("no".into())));
        let made = bot.text("/post https://a.example/x");
        assert_eq!(made.texts(), ["201 made"]);
        assert_eq!((made.requests[0].method.as_str(), made.requests[0].json()), ("POST", json!({ "sum": 5 })));
        assert_eq!(bot.text("/get https://a.example").texts(), ["error: no"]);
        assert!(bot.text("/get https://a.example").texts()[0].contains("no answer"));
    }

    #[test]
    fn timers_recur_and_states_end() {
        let mut bot = Bot::<Plugin>::new().config(&json!({ "ring": 7 }));
        bot.text("/tick 5000");
        bot.text("/tick 5000");
        assert_eq!(bot.text("/ticks").texts(), ["[tick]"]);
        assert_eq!(bot.timer().unwrap().texts(), ["tock 1"]);
        assert_eq!(bot.timer().unwrap().texts(), ["tock 2"]);
        assert_eq!(bot.text("/still").texts(), ["cancelled 1"]);
        assert!(bot.timer().is_none());
        assert_eq!(bot.scheduled("ring").texts(), ["ring"]);
        bot.text("/hold tea");
        assert_eq!(bot.expire().unwrap().texts(), ["tea is over"]);
        assert_eq!(bot.state(), None);
    }
}
