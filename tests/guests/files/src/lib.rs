//! `/send TEXT` sends the text as a document, `/call TEXT` does so at once, `/fail TEXT` fails after it has asked for it;
//! `/large N` sends N MiB, `/fetch ID` answers with what is in a file, `/again ID` sends it on under another name.

use std::io::Write as _;

use botyard_sdk::prelude::*;

#[plugin]
mod files {
    fn note(ctx: &Ctx) -> File {
        File::bytes("note.txt", ctx.args())
    }

    #[command("send")]
    fn send(ctx: &mut Ctx) {
        ctx.reply_media(document(note(ctx)).caption("a note"));
    }

    #[command("photos")]
    fn photos(ctx: &mut Ctx) {
        let items = [photo(File::bytes("a.png", "first")), photo(File::bytes("b.png", ctx.args()))];
        ctx.reply_media(album(items).caption("two"));
    }

    #[command("call")]
    fn call(ctx: &mut Ctx) {
        if let Err(error) = ctx.reply_media(document(note(ctx))).call() {
            ctx.reply(format!("error: {error}"));
        }
    }

    #[command("fail")]
    fn fail(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.reply_media(document(note(ctx)));
        Err(Error::permanent("on purpose"))
    }

    #[command("large")]
    fn large(ctx: &mut Ctx) -> Result<(), Error> {
        let mebibytes: u32 = ctx.args().parse()?;
        let mut file = ctx.write_file("large.bin", "")?;
        let mut piece = vec![7; 1 << 20];
        for number in 0..mebibytes {
            piece[..4].copy_from_slice(&number.to_be_bytes());
            file.write_all(&piece)?;
        }
        ctx.reply_media(document(file.finish()?));
        Ok(())
    }

    #[command("fetch")]
    fn fetch(ctx: &mut Ctx) {
        let read = ctx.download(ctx.args()).map_err(Error::from).and_then(|file| file.bytes());
        match read {
            Ok(bytes) => ctx.reply(String::from_utf8_lossy(&bytes)),
            Err(error) => ctx.reply(format!("error: {error}")),
        };
    }

    #[command("again")]
    fn again(ctx: &mut Ctx) -> Result<(), Error> {
        let file = ctx.download(ctx.args())?.to_file("again.txt", "text/plain")?;
        ctx.reply_media(document(file));
        Ok(())
    }

    #[command("stale")]
    fn stale(ctx: &mut Ctx) {
        let other = format!("attach://{}", "0".repeat(32));
        if let Err(error) = ctx.enqueue("sendDocument", json!({ "chat_id": ctx.chat_id(), "document": other })) {
            ctx.reply(format!("error: {error}"));
        }
    }
}
