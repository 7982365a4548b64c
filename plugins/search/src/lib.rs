//! Inline mode: whoever writes `@your_bot gold` in any chat is shown what fits, and sends one of it with a tap.
//!
//! A client asks again with every letter, so an answer is short work: it reads nothing but the query. It asks for more
//! when the person has scrolled to the end of a page: with the `offset` that came with the page before, whatever it was;
//! here it is the number of results shown so far. An answer without an offset is the last one.
//!
//! What was sent in the end comes as a `chosen_inline_result`, and is counted for `/popular`.
//!
//! @BotFather turns both on: /setinline, and /setinlinefeedback for the choices.

use botyard_sdk::format::Text;
use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::AnswerInlineQuery])]
mod search {
    /// How many results an answer has. Telegram takes up to 50.
    pub(crate) const PAGE: usize = 5;
    /// How long Telegram may answer the same query without us, in seconds.
    const CACHE: i64 = 3600;
    const POPULAR: usize = 3;

    /// Symbols and names of the first elements; an element's number is its place.
    const ELEMENTS: [(&str, &str); 30] = [
        ("H", "Hydrogen"),
        ("He", "Helium"),
        ("Li", "Lithium"),
        ("Be", "Beryllium"),
        ("B", "Boron"),
        ("C", "Carbon"),
        ("N", "Nitrogen"),
        ("O", "Oxygen"),
        ("F", "Fluorine"),
        ("Ne", "Neon"),
        ("Na", "Sodium"),
        ("Mg", "Magnesium"),
        ("Al", "Aluminium"),
        ("Si", "Silicon"),
        ("P", "Phosphorus"),
        ("S", "Sulfur"),
        ("Cl", "Chlorine"),
        ("Ar", "Argon"),
        ("K", "Potassium"),
        ("Ca", "Calcium"),
        ("Sc", "Scandium"),
        ("Ti", "Titanium"),
        ("V", "Vanadium"),
        ("Cr", "Chromium"),
        ("Mn", "Manganese"),
        ("Fe", "Iron"),
        ("Co", "Cobalt"),
        ("Ni", "Nickel"),
        ("Cu", "Copper"),
        ("Zn", "Zinc"),
    ];

    #[on("inline_query")]
    fn ask(ctx: &mut Ctx, query: api::InlineQuery) {
        let found = find(&query.query());
        // The first query of a person has an empty offset; what is no number of ours begins anew.
        let from = query.offset().parse().unwrap_or(0).min(found.len());
        let to = (from + PAGE).min(found.len());
        let results = found[from..to].iter().map(|&at| {
            let (symbol, name) = ELEMENTS[at];
            let text = format!("{name} ({symbol}) is element {}.", at + 1);
            api::InlineQueryResultArticle::new(symbol, name, text.as_str()).description(symbol)
        });
        let next = if to < found.len() { to.to_string() } else { String::new() };
        ctx.queue(api::AnswerInlineQuery::new(query.id(), results).cache_time(CACHE).next_offset(next));
    }

    /// The choice names the result by the id that we gave it. It is the client's word, so we look whether we know it.
    #[on("chosen_inline_result")]
    fn chosen(ctx: &mut Ctx, chosen: api::ChosenInlineResult) -> Result<(), Error> {
        let id = chosen.result_id();
        if ELEMENTS.iter().any(|(symbol, _)| *symbol == id) {
            ctx.storage().plugin().increment(&format!("chosen/{id}"), 1)?;
        }
        Ok(())
    }

    /// What is sent most often.
    #[command("popular")]
    fn popular(ctx: &mut Ctx) -> Result<(), Error> {
        let mut rows = ctx.storage().plugin().scan::<i64>("chosen/", None, ELEMENTS.len() as u32)?;
        if rows.is_empty() {
            // A button that writes the bot's name into the message that is being written.
            let try_it = Button::switch_inline_here("Try it", "iron");
            ctx.reply("Nothing was sent yet.").keyboard(InlineKeyboard::new().row([try_it]));
            return Ok(());
        }
        rows.sort_by_key(|(_, times)| -times);
        let text = rows.iter().take(POPULAR).fold(Text::new().bold("Sent most often"), |text, (key, times)| {
            text.plain(format!("\n{} × {}", times, key.trim_start_matches("chosen/")))
        });
        ctx.reply(text);
        Ok(())
    }

    /// The elements whose symbol is the text, then those whose name has it. An empty text finds all.
    pub(crate) fn find(text: &str) -> Vec<usize> {
        let text = text.trim().to_ascii_lowercase();
        let is_symbol = |at: &usize| ELEMENTS[*at].0.eq_ignore_ascii_case(&text);
        let has_it = |at: &usize| !is_symbol(at) && ELEMENTS[*at].1.to_ascii_lowercase().contains(&text);
        let all = || 0..ELEMENTS.len();
        all().filter(is_symbol).chain(all().filter(has_it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::prelude::*;
    use botyard_sdk::test::Bot;

    use super::search::{PAGE, Plugin, find};

    #[test]
    fn symbols_come_before_names() {
        for (text, found) in
            [("fe", &[25][..]), ("mg", &[11]), ("ne", &[9, 8, 11, 16, 24]), (" IRON", &[25]), ("gold", &[])]
        {
            assert_eq!(find(text), found, "{text}");
        }
        assert_eq!(find("").len(), 30);
    }

    #[test]
    fn the_pages_together_are_all_that_was_found_once() {
        for text in ["", "i", "ium", "gold"] {
            let (mut offset, mut seen) = (json!(""), Vec::new());
            loop {
                let query = json!({ "id": "q", "from": { "id": 7 }, "query": text, "offset": offset });
                let answer = Bot::<Plugin>::new().receive("inline_query", query).calls[0].1.clone();
                let page = answer["results"].as_array().unwrap();
                assert!(page.len() <= PAGE);
                seen.extend(page.iter().map(|result| result["id"].as_str().unwrap().to_owned()));
                offset = answer["next_offset"].clone();
                if offset == "" {
                    break;
                }
            }
            assert_eq!(seen.len(), find(text).len(), "{text}");
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), find(text).len(), "{text}");
        }
    }

    #[test]
    fn an_offset_that_is_none_of_ours_does_no_harm() {
        for (offset, n) in [("soon", PAGE), ("-1", PAGE), ("28", 2), ("999999", 0)] {
            let query = json!({ "id": "q", "from": { "id": 7 }, "query": "", "offset": offset });
            let answer = Bot::<Plugin>::new().receive("inline_query", query).calls[0].1.clone();
            assert_eq!(answer["results"].as_array().map(Vec::len), Some(n), "{offset}");
        }
    }
}
