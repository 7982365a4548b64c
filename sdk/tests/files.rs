//! Files in a plugin, without a host.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use botyard_sdk::prelude::*;
use botyard_sdk::test::Bot;

#[plugin]
mod post {
    #[command("photo")]
    fn one(ctx: &mut Ctx) {
        let keyboard = InlineKeyboard::new().row([Button::callback("More", "more")]);
        let media = photo(File::bytes("a.png", *b"png").content_type("image/png")).caption("x").caption("<b>hi</b>");
        ctx.reply_media(media.html().spoiler()).keyboard(keyboard).silent();
    }

    #[command("album")]
    fn many(ctx: &mut Ctx) {
        let clip = video(File::bytes("b.mp4", *b"mp4")).thumbnail(File::bytes("t.jpg", *b"jpg")).set("width", 640);
        ctx.send_media("@news", album([photo(File::id("AgAC")), clip]).caption("Both"));
    }

    #[command("alone")]
    fn alone(ctx: &mut Ctx) {
        ctx.reply_media(album([photo(File::url("https://example.org/a.jpg"))]));
    }

    #[command("empty")]
    fn empty(ctx: &mut Ctx) {
        ctx.reply_media(document(File::bytes("a.txt", "")));
    }

    #[command("long")]
    fn long(ctx: &mut Ctx) -> Result<(), Error> {
        let mut file = ctx.write_file("numbers.txt", "")?;
        for number in 0..100_000 {
            writeln!(file, "{number}")?;
        }
        file.write_all(&vec![b'x'; 700_000])?;
        ctx.reply_media(document(file.finish()?));
        Ok(())
    }

    #[callback("more")]
    fn more(ctx: &mut Ctx) {
        ctx.edit_media(photo(File::bytes("c.png", *b"other")));
    }

    #[on("message")]
    fn shout(ctx: &mut Ctx) -> Result<Handled, Error> {
        let Some(file) = ctx.file() else { return Ok(Pass) };
        let mut download = ctx.download(&file.file_id)?;
        let mut last = String::new();
        download.seek(SeekFrom::End(-3))?;
        download.read_to_string(&mut last)?;
        ctx.reply_media(document(download.to_file("copy.bin", "")?));
        ctx.reply(format!("{} {} {} {last}", file.kind, download.size(), download.unique_id()));
        ctx.reply_media(document(File::bytes("loud.txt", download.bytes()?.to_ascii_uppercase())));
        Ok(Done)
    }
}

fn bot() -> Bot<post::Plugin> {
    Bot::new()
}

#[test]
fn a_photo_with_all_that_belongs_to_it() {
    let outcome = bot().text("/photo");
    let (method, params) = &outcome.calls[0];
    assert_eq!(method, "sendPhoto");
    let file = &outcome.files[0];
    assert_eq!((file.name.as_str(), file.content_type.as_str(), &*file.bytes), ("a.png", "image/png", &b"png"[..]));
    let expected = json!({
        "chat_id": 7, "photo": file.reference, "caption": "<b>hi</b>", "parse_mode": "HTML", "has_spoiler": true,
        "reply_markup": { "inline_keyboard": [[{ "text": "More", "callback_data": "more" }]] },
        "disable_notification": true,
    });
    assert_eq!(*params, expected);
    let (method, params) = &bot().press("more").calls[0];
    assert_eq!((method.as_str(), &params["media"]["type"]), ("editMessageMedia", &json!("photo")));
}

#[test]
fn an_album_of_what_is_known_and_what_is_new() {
    let outcome = bot().text("/album");
    let references: Vec<_> = outcome.files.iter().map(|file| file.reference.as_str()).collect();
    let media = json!([
        { "type": "photo", "media": "AgAC", "caption": "Both" },
        { "type": "video", "media": references[0], "thumbnail": references[1], "width": 640 },
    ]);
    assert_eq!(outcome.calls, [("sendMediaGroup".to_owned(), json!({ "chat_id": "@news", "media": media }))]);
}

#[test]
fn what_cannot_be_sent_fails_the_run() {
    for (command, reason) in [("/alone", "an album has 2 to 10 files, not 1"), ("/empty", "is empty")] {
        let outcome = bot().text(command);
        assert!(outcome.result.unwrap_err().to_string().contains(reason), "{command}");
        assert!(outcome.calls.is_empty());
    }
}

#[test]
fn a_file_may_be_written_piece_by_piece() {
    let outcome = bot().text("/long");
    outcome.result.unwrap();
    let mut expected: Vec<u8> = (0..100_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    expected.resize(expected.len() + 700_000, b'x');
    assert!(outcome.files[0].bytes == expected);
}

#[test]
fn a_file_that_came_is_fetched_and_sent_on() {
    let mut bot = bot().at_telegram("BQAC", "file_1.txt", *b"some text");
    let outcome = bot.message(&json!({ "document": { "file_id": "BQAC", "file_unique_id": "u", "file_size": 9 } }));
    outcome.result.unwrap();
    assert_eq!(outcome.calls[1].1["text"], "document 9 unique-BQAC ext");
    let contents: Vec<_> = outcome.files.iter().map(|file| &*file.bytes).collect();
    assert_eq!(contents, [&b"some text"[..], b"SOME TEXT"]);
    let photo = json!({ "photo": [{ "file_id": "small" }, { "file_id": "gone" }] });
    let error = bot.message(&photo).result.unwrap_err();
    assert!(error.to_string().contains("wrong file_id") && !error.retries(), "{error}");
    assert_eq!(bot.message(&json!({ "dice": {} })).result, Ok(Pass));
}
