#![expect(clippy::string_slice, reason = "cut where a part was just found")]

use proptest::prelude::*;
use serde_json::json;
use unicode_segmentation::UnicodeSegmentation as _;

use super::parts::units;
use super::*;

fn limits(limit: usize) -> Limits {
    Limits { first: limit, rest: limit, ..Limits::default() }
}

fn texts(text: &str, markup: Markup, limit: usize) -> Option<Vec<String>> {
    Some(parts(text, markup, &[], limits(limit))?.into_iter().map(|part| part.text).collect())
}

#[test]
fn a_text_is_cut_where_a_reader_pauses() {
    for (text, limit, expected) in [
        ("one two", 7, None),
        ("one two three", 8, Some(vec!["one two ", "three"])),
        ("one two three", 7, Some(vec!["one two", " three"])),
        ("aaaa. bbbb cc dd", 13, Some(vec!["aaaa. bbbb cc", " dd"])),
        ("aaaa bbbb. cc dd", 13, Some(vec!["aaaa bbbb. ", "cc dd"])),
        ("aaaa (bbb.) cc dd", 14, Some(vec!["aaaa (bbb.) ", "cc dd"])),
        ("aaaa bbb.\ncc. dd ee", 16, Some(vec!["aaaa bbb.\n", "cc. dd ee"])),
        ("aaaa bb\n\ncc.\ndd ee", 16, Some(vec!["aaaa bb\n\n", "cc.\ndd ee"])),
        ("aaaaaaa\n\nbb", 8, Some(vec!["aaaaaaa\n", "\nbb"])),
        ("a\n\nbbbb bbbb bbbb", 11, Some(vec!["a\n\nbbbb ", "bbbb bbbb"])),
        ("a\nbbbbbbbb", 9, Some(vec!["a\n", "bbbbbbbb"])),
        ("aaaaaaaaaa", 4, Some(vec!["aaaa", "aaaa", "aa"])),
        ("你好。你好吗？我很好", 8, Some(vec!["你好。你好吗？", "我很好"])),
        // Two units each, and one grapheme: a family, a flag, a letter with marks.
        ("😀😀😀", 3, Some(vec!["😀", "😀", "😀"])),
        ("a👨‍👩‍👧b", 8, Some(vec!["a", "👨‍👩‍👧", "b"])),
        ("🇺🇿🇺🇿", 5, Some(vec!["🇺🇿", "🇺🇿"])),
        ("e\u{301}e\u{301}", 3, Some(vec!["e\u{301}", "e\u{301}"])),
        ("aa \u{301}bb", 4, Some(vec!["aa \u{301}", "bb"])),
        // Longer than any message: cut all the same.
        ("a\u{301}\u{301}\u{301}\u{301}", 2, Some(vec!["a\u{301}", "\u{301}\u{301}", "\u{301}"])),
        // What shows nothing is not sent.
        ("aaaa      bbbb", 5, Some(vec!["aaaa ", "bbbb"])),
        ("            ", 5, None),
    ] {
        let expected = expected.map(|parts| parts.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(texts(text, Markup::None, limit), expected, "{text:?}");
    }
}

#[test]
fn markup_is_closed_at_a_cut_and_opened_again() {
    use Markup::{Html, Markdown, MarkdownV2};
    for (markup, text, limit, expected) in [
        (Html, "<b>one two</b> three", 8, vec!["<b>one two</b> ", "three"]),
        (Html, "<b>one <i>two three</i></b>", 8, vec!["<b>one <i>two </i></b>", "<b><i>three</i></b>"]),
        (Html, "one two &lt;&amp;&#x1F600; three", 10, vec!["one two ", "&lt;&amp;&#x1F600; three"]),
        (
            Html,
            r#"aaa bbb <a href="https://a.example/?a=1>2">cc dd</a>"#,
            11,
            vec!["aaa bbb ", r#"<a href="https://a.example/?a=1>2">cc dd</a>"#],
        ),
        (
            Html,
            r#"<pre><code class="language-rust">aaaa;\nbbbb;</code></pre>"#,
            8,
            vec![
                r#"<pre><code class="language-rust">aaaa;\nb</code></pre>"#,
                r#"<pre><code class="language-rust">bbb;</code></pre>"#,
            ],
        ),
        (Html, "<b>aaaa</b><i>bbbb</i>", 4, vec!["<b>aaaa</b>", "<i>bbbb</i>"]),
        (MarkdownV2, "*one two* three", 8, vec!["*one two* ", "three"]),
        (MarkdownV2, "*one _two three_*", 8, vec!["*one _two _*", "*_three_*"]),
        (MarkdownV2, "_x__one two__x_", 5, vec!["_x__one __**_", "_**__two__x_"]),
        (MarkdownV2, "1\\.1\\.1\\.1", 4, vec!["1\\.1\\.", "1\\.1"]),
        (MarkdownV2, "_aa\\_ bb_", 3, vec!["_aa\\__", "_ bb_"]),
        (MarkdownV2, "aa bb [cc dd](https://a.example/\\))", 9, vec!["aa bb ", "[cc dd](https://a.example/\\))"]),
        (MarkdownV2, ">aa bb\n>cc dd\nend", 6, vec![">aa bb\n>", ">cc dd\n", "end"]),
        (MarkdownV2, ">aa bb\n>cc dd||", 6, vec![">aa bb\n>||", ">cc dd||"]),
        (MarkdownV2, ">aa\n**>bb bb", 5, vec![">aa\n", "**>bb bb"]),
        (MarkdownV2, "```rust\naaaa\nbbbb```", 6, vec!["```rust\naaaa\n```", "```rust\nbbbb```"]),
        (MarkdownV2, "*a\\é*", 1, vec!["*a*", "*\\\\*", "*é*"]),
        (Markdown, "*one two* th_re_e", 8, vec!["*one two* ", "th_re_e"]),
        (Markdown, "```\naaaa\nbbbb```", 6, vec!["```\naaaa\n```", "```\nbbbb```"]),
        (Markdown, "1.5 \\*! `a\\b c`", 7, vec!["1.5 \\*! ", "`a\\b c`"]),
    ] {
        let found = texts(text, markup, limit).unwrap_or_default();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn what_can_not_be_read_is_left_whole() {
    use Markup::{Html, Markdown, MarkdownV2};
    for (markup, text) in [
        (Html, "<b>aaaa bbbb"),
        (Html, "aaaa bbbb</b>"),
        (Html, "<b>aaaa</i> bbbb"),
        (Html, "aaaa < bbbb"),
        (MarkdownV2, "aaaa bbbb."),
        (MarkdownV2, "*aaaa bbbb"),
        (MarkdownV2, "[aaaa](bbbb"),
        (MarkdownV2, ">aaaa *bb\nbb*"),
        (Markdown, "aaaa _bbbb"),
    ] {
        assert_eq!(texts(text, markup, 5), None, "{text:?}");
    }
}

#[test]
fn the_limit_before_parsing_holds_too() {
    let link = |n: usize| format!(r#"<a href="https://a.example/{}">{n:04}</a> "#, "x".repeat(n));
    let text: String = (0..20).map(|n| link(n * 20)).collect();
    let found = parts(&text, Markup::Html, &[], Limits { source: 1000, ..Limits::default() }).unwrap();
    assert!(found.iter().all(|part| part.text.len() <= 1000));
    assert_eq!(found.into_iter().map(|part| part.text).collect::<String>(), text);
    let marks_alone = format!("<a href=\"{}\">aaaa bbbb</a>", "x".repeat(1000));
    assert_eq!(parts(&marks_alone, Markup::Html, &[], Limits { source: 1000, ..Limits::default() }), None);
}

#[test]
fn entities_are_cut_and_shifted() {
    let text = "😀 aa bb cc dd";
    let entities = [
        json!({ "type": "bold", "offset": 0, "length": 5 }),
        json!({ "type": "text_link", "offset": 6, "length": 5, "url": "https://a.example/" }),
    ];
    let found = parts(text, Markup::None, &entities, limits(9)).unwrap();
    let texts: Vec<_> = found.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(texts, ["😀 aa ", "bb cc dd"], "not through the link");
    assert_eq!(found[0].entities, [entities[0].clone()]);
    assert_eq!(
        found[1].entities,
        [json!({ "type": "text_link", "offset": 0, "length": 5, "url": "https://a.example/" })]
    );
    assert_eq!(parts(text, Markup::None, &[json!({ "type": "bold", "offset": -1 })], limits(9)), None);
}

fn calls(method: &str, params: Value) -> Vec<(String, Value)> {
    let calls = split(method, &params.to_string(), false).unwrap_or_default();
    calls.into_iter().map(|(method, params)| (method, serde_json::from_str(&params).unwrap())).collect()
}

#[test]
fn what_it_answers_to_goes_with_the_first_and_the_keyboard_with_the_last() {
    let text = "word ".repeat(1700);
    let found = calls(
        "sendMessage",
        json!({ "chat_id": 7, "message_thread_id": 3, "text": text, "reply_parameters": { "message_id": 1 },
            "reply_markup": { "k": 1 }, "message_effect_id": "5", "protect_content": true }),
    );
    assert_eq!(found.len(), 3);
    for (at, (method, params)) in found.iter().enumerate() {
        assert_eq!(method, "sendMessage");
        assert_eq!((&params["chat_id"], &params["message_thread_id"]), (&json!(7), &json!(3)));
        assert_eq!(params["protect_content"], true);
        assert_eq!(params.get("reply_parameters").is_some(), at == 0);
        assert_eq!(params.get("message_effect_id").is_some(), at == 0);
        assert_eq!(params.get("reply_markup").is_some(), at == 2);
        assert!(units(params["text"].as_str().unwrap()) <= 4096);
    }
    let joined: String = found.iter().filter_map(|(_, params)| params["text"].as_str()).collect();
    assert_eq!(joined, text);
}

#[test]
fn captions_go_on_as_messages_and_edits_too() {
    let text = "<b>".to_owned() + &"word ".repeat(300) + "</b>";
    let photo = json!({ "chat_id": "@a", "photo": "id", "caption": text, "parse_mode": "html", "has_spoiler": true });
    let [first, second] = &calls("sendphoto", photo)[..] else { panic!() };
    assert_eq!(
        (first.0.as_str(), &first.1["photo"], &first.1["has_spoiler"]),
        ("sendphoto", &json!("id"), &json!(true))
    );
    assert!(units(first.1["caption"].as_str().unwrap()) <= 1024 + 7);
    assert_eq!(second.0, "sendMessage");
    assert!(second.1["text"].as_str().unwrap().starts_with("<b> word"));
    assert_eq!((&second.1["parse_mode"], second.1.get("photo"), second.1.get("caption")), (&json!("html"), None, None));

    let edit = json!({ "chat_id": 7, "message_id": 3, "text": "word ".repeat(900), "reply_markup": {} });
    let [first, second] = &calls("editMessageText", edit)[..] else { panic!() };
    assert_eq!((&first.1["message_id"], first.1.get("reply_markup")), (&json!(3), None));
    assert_eq!((second.1.get("message_id"), second.1.get("reply_markup")), (None, Some(&json!({}))));
}

#[test]
fn markup_that_can_not_be_read_goes_where_that_is_wanted() {
    let params = json!({ "chat_id": 7, "text": "<b>word ".repeat(900), "parse_mode": "HTML" }).to_string();
    assert_eq!(split("sendMessage", &params, false), None);
    let found = split("sendMessage", &params, true).unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|(_, params)| !params.contains("<b>") && !params.contains("parse_mode")));
}

#[test]
fn other_calls_are_as_they_were() {
    let long = "word ".repeat(1700);
    for (method, params) in [
        ("sendMessage", json!({ "chat_id": 7, "text": "short", "link_preview_options": { "url": long } })),
        ("sendMessage", json!({ "text": long })),
        ("sendMessage", json!({ "chat_id": 7, "text": [long] })),
        ("sendMessage", json!({ "chat_id": 7, "text": long, "parse_mode": "BBCode" })),
        ("sendMessage", json!({ "chat_id": 7, "text": long, "entities": "x" })),
        ("sendPoll", json!({ "chat_id": 7, "text": long })),
        ("editMessageText", json!({ "inline_message_id": "x", "text": long })),
    ] {
        assert_eq!(calls(method, params), [], "{method}");
    }
}

#[test]
fn no_message_has_more_entities_than_telegram_takes() {
    // Each text, what marks it, how many entities it has, and how many messages it takes.
    let bold = |n: usize| "<b>a</b> ".repeat(n);
    let stars = |n: usize| "*a* ".repeat(n);
    for (text, parse_mode, messages) in [
        (bold(100), "HTML", 0),
        (bold(101), "HTML", 2),
        (bold(250), "HTML", 3),
        (stars(100), "MarkdownV2", 0),
        (stars(201), "MarkdownV2", 3),
        (stars(150), "Markdown", 2),
        // One around all of them, which each part has.
        (format!("<i>{}</i>", bold(99)), "HTML", 0),
        (format!("<i>{}</i>", bold(150)), "HTML", 2),
        // Marks that stand for themselves.
        ("a < b ".repeat(150), "HTML", 0),
    ] {
        let found = calls("sendMessage", json!({ "chat_id": 7, "text": text, "parse_mode": parse_mode }));
        assert_eq!(found.len(), messages, "{parse_mode} {text:.20}");
        let marks =
            |text: &str| text.matches("<b>").count() + text.matches("<i>").count() + text.matches('*').count() / 2;
        let counts = found.iter().map(|(_, params)| marks(params["text"].as_str().unwrap()));
        assert!(counts.clone().all(|count| (1..=100).contains(&count)), "{:?}", counts.collect::<Vec<_>>());
    }
    let entities =
        |n: usize| (0..n).map(|at| json!({ "type": "bold", "offset": 2 * at, "length": 1 })).collect::<Vec<_>>();
    let text = "a ".repeat(130);
    assert_eq!(calls("sendMessage", json!({ "chat_id": 7, "text": text, "entities": entities(100) })), []);
    let found = calls("sendMessage", json!({ "chat_id": 7, "text": text, "entities": entities(130) }));
    let counts: Vec<_> = found.iter().map(|(_, params)| params["entities"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(counts, [100, 30]);
    let photo = json!({ "chat_id": 7, "photo": "id", "caption": text, "caption_entities": entities(130) });
    let found = calls("sendPhoto", photo);
    assert_eq!((found.len(), found[1].1["entities"].as_array().unwrap().len()), (2, 30));
    // All in one place: no cut mends that.
    let nested = vec![json!({ "type": "bold", "offset": 0, "length": 4 }); 130];
    assert_eq!(calls("sendMessage", json!({ "chat_id": 7, "text": text, "entities": nested })), []);
}

#[test]
fn captions_of_albums_go_on_as_messages_in_their_order() {
    let long = |word: &str| format!("{word} ").repeat(300);
    let short = "as it is";
    let item = |caption: &str| json!({ "type": "photo", "media": "id", "caption": caption });
    let album = |media: Value| json!({ "chat_id": 7, "message_thread_id": 3, "media": media, "reply_parameters": { "message_id": 1 } });
    for media in [
        json!([item(&long("one")), item(short), item(&long("three"))]),
        json!(json!([item(&long("one")), item(short), item(&long("three"))]).to_string()),
    ] {
        let found = calls("sendMediaGroup", album(media));
        let methods: Vec<_> = found.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods, ["sendMediaGroup", "sendMessage", "sendMessage"]);
        let captions: Vec<_> =
            found[0].1["media"].as_array().unwrap().iter().map(|item| item["caption"].as_str().unwrap()).collect();
        assert!(captions.iter().all(|caption| units(caption) <= 1024) && captions[1] == short);
        for (rest, (caption, whole)) in
            found[1..].iter().zip([(captions[0], long("one")), (captions[2], long("three"))])
        {
            assert_eq!(format!("{caption}{}", rest.1["text"].as_str().unwrap()), whole);
            assert_eq!((&rest.1["chat_id"], &rest.1["message_thread_id"]), (&json!(7), &json!(3)));
            assert_eq!((rest.1.get("media"), rest.1.get("reply_parameters")), (None, None));
        }
    }
    assert_eq!(calls("sendMediaGroup", album(json!([item(short), item(short)]))), []);
    assert_eq!(calls("sendMediaGroup", json!({ "media": [item(&long("x"))] })), [], "nowhere to go");

    let html =
        json!({ "type": "photo", "media": "id", "caption": format!("<b>{}</b>", long("bbbb")), "parse_mode": "HTML" });
    let edit = json!({ "chat_id": 7, "message_id": 5, "media": html, "reply_markup": {} });
    let [first, second] = &calls("editMessageMedia", edit)[..] else { panic!() };
    assert_eq!((first.1["media"]["type"].as_str(), first.1.get("reply_markup")), (Some("photo"), None));
    assert_eq!((&second.1["parse_mode"], &second.1["reply_markup"]), (&json!("HTML"), &json!({})));
    assert!(second.1["text"].as_str().unwrap().starts_with("<b>"));

    let broken = json!({ "chat_id": 7, "media": [{ "type": "photo", "caption": "<b>word ".repeat(300), "parse_mode": "HTML" }] });
    assert_eq!(split("sendMediaGroup", &broken.to_string(), false), None);
    let found = split("sendMediaGroup", &broken.to_string(), true).unwrap();
    assert!(found.len() == 2 && found.iter().all(|(_, params)| !params.contains("<b>")), "{found:?}");
}

/// Texts with everything that is hard about texts.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "word",
        "é",
        "e\u{301}",
        "😀",
        "👨‍👩‍👧",
        "🇺🇿",
        "你好。",
        " ",
        "  ",
        "\n",
        "\n\n",
        ". ",
        "_",
        "*",
        "<",
        "&",
        "\\",
        "`",
        ">",
        "|",
    ]);
    prop::collection::vec(piece, 1..120).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn parts_are_within_the_limit_and_joined_they_are_the_text(text in text(), limit in 9_usize..60) {
        let Some(found) = parts(&text, Markup::None, &[], limits(limit)) else {
            prop_assert!(units(&text) <= limit || text.trim().is_empty());
            return Ok(());
        };
        let mut rest = text.as_str();
        let mut starts = Vec::new();
        for part in &found {
            prop_assert!(units(&part.text) <= limit && !part.text.trim().is_empty());
            // Only white space may have been left out before it.
            let at = rest.find(&part.text).unwrap();
            prop_assert!(rest[..at].trim().is_empty());
            starts.push(text.len() - rest.len() + at);
            rest = &rest[at + part.text.len()..];
        }
        prop_assert!(rest.trim().is_empty());
        let graphemes: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
        for start in starts {
            prop_assert!(graphemes.contains(&start), "{} is within a grapheme", start);
        }
    }

    #[test]
    fn entities_cover_what_they_covered(
        text in text(),
        limit in 9_usize..60,
        places in prop::collection::vec((0_usize..80, 1_usize..40), 0..6),
    ) {
        let n_units = units(&text);
        let entities: Vec<Value> = (0..).zip(&places).filter(|(_, (offset, length))| offset + length <= n_units)
            .map(|(n, (offset, length))| json!({ "type": n, "offset": offset, "length": length })).collect();
        let covered = |text: &str, entities: &[Value]| -> Vec<(u16, Vec<u64>)> {
            let number = |entity: &Value, name: &str| entity[name].as_u64().unwrap();
            text.encode_utf16().zip(0..).map(|(unit, at)| {
                let here = entities.iter()
                    .filter(|e| (number(e, "offset")..number(e, "offset") + number(e, "length")).contains(&at));
                (unit, here.map(|e| number(e, "type")).collect())
            }).filter(|(unit, _)| !matches!(unit, 10 | 32)).collect()
        };
        if let Some(found) = parts(&text, Markup::None, &entities, limits(limit)) {
            let parts: Vec<_> = found.iter().flat_map(|part| covered(&part.text, &part.entities)).collect();
            prop_assert_eq!(parts, covered(&text, &entities));
            for part in &found {
                prop_assert!(part.entities.iter().all(|e| e["length"].as_u64() > Some(0)));
            }
        }
    }

    #[test]
    fn nothing_makes_it_fail(text in text(), limit in 1_usize..20) {
        for markup in [Markup::Html, Markup::MarkdownV2, Markup::Markdown] {
            parts(&text, markup, &[], limits(limit));
        }
    }
}
