//! teloxide's example `inline`: two search engines for whatever is typed.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::AnswerInlineQuery])]
pub(crate) mod inline {
    #[on("inline_query")]
    fn search(ctx: &mut Ctx, query: api::InlineQuery) {
        let article = |id: &str, name: &str, address: &str| {
            api::InlineQueryResultArticle::new(id, name, format!("{address}{}", query.query()).as_str())
        };
        let google = article("01", "Google Search", "https://www.google.com/search?q=");
        let duck = article("02", "DuckDuckGo Search", "https://duckduckgo.com/?q=")
            .description("DuckDuckGo Search")
            .thumbnail_url("https://duckduckgo.com/assets/logo_header.v108.png")
            .url("https://duckduckgo.com/about");
        ctx.answer_inline([google, duck]);
    }
}
