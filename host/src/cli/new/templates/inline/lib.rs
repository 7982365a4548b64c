//! Answers when somebody writes `@your_bot some text` in any chat: with that text, in three ways of writing.
//!
//! Inline mode is off until it is turned on: @BotFather, /setinline.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = ["sendMessage", "answerInlineQuery"])]
mod plugin_name {
    #[derive(Deserialize)]
    struct Query {
        id: String,
        query: String,
    }

    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "start"; "Write my name and a text in any chat."));
    }

    #[on("inline_query")]
    fn suggest(ctx: &mut Ctx) -> Result<Handled, Error> {
        let Some(Query { id, query }) = ctx.part() else { return Ok(Pass) };
        let ways = [
            ("upper", t!(ctx, "upper"; "UPPER CASE"), query.to_uppercase()),
            ("lower", t!(ctx, "lower"; "lower case"), query.to_lowercase()),
            ("reverse", t!(ctx, "reverse"; "backwards"), query.chars().rev().collect()),
        ];
        let results: Vec<Value> = ways
            .into_iter()
            .filter(|(_, _, text)| !text.trim().is_empty())
            .map(|(id, title, text)| {
                json!({
                    "type": "article", "id": id, "title": title, "description": text,
                    "input_message_content": { "message_text": text },
                })
            })
            .collect();
        ctx.enqueue("answerInlineQuery", json!({ "inline_query_id": id, "results": results, "cache_time": 0 }))?;
        Ok(Done)
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn says_how_it_is_used() {
        assert_eq!(Bot::<Plugin>::new().text("/start").texts(), ["Write my name and a text in any chat."]);
    }
}
