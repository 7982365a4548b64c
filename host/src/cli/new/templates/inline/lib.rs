//! Answers when somebody writes `@your_bot some text` in any chat: with that text, in three ways of writing.
//!
//! Inline mode is off until it is turned on: @BotFather, /setinline.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::AnswerInlineQuery])]
mod plugin_name {
    use api::InlineQueryResultArticle;

    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "start"));
    }

    #[on("inline_query")]
    fn suggest(ctx: &mut Ctx) {
        let query = ctx.telegram().inline_query().map(|query| query.query()).unwrap_or_default();
        let ways = [
            ("upper", t!(ctx, "upper"), query.to_uppercase()),
            ("lower", t!(ctx, "lower"), query.to_lowercase()),
            ("reverse", t!(ctx, "reverse"), query.chars().rev().collect()),
        ];
        let results = ways.into_iter().filter(|(_, _, text)| !text.trim().is_empty()).map(|(id, title, text)| {
            InlineQueryResultArticle::new(id, title, text.as_str()).description(text)
        });
        ctx.answer_inline(results);
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::json;
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn says_how_it_is_used() {
        assert_eq!(Bot::<Plugin>::new().text("/start").texts(), ["Write my name and a text in any chat."]);
    }

    #[test]
    fn a_query_has_three_answers() {
        let query = json!({ "id": "1", "from": { "id": 7, "first_name": "Alice" }, "query": "Tea", "offset": "" });
        let asked = Bot::<Plugin>::new().receive("inline_query", query);
        assert_eq!(asked.calls[0].1["results"].as_array().map(Vec::len), Some(3));
    }
}
