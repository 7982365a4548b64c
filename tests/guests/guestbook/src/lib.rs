//! `/sign` writes the chat's name into a book and answers with the number of names in it: every run reads the whole
//! range that every other run writes to.

use botyard_sdk::prelude::*;

#[plugin]
mod guestbook {
    #[command("sign")]
    fn sign(ctx: &mut Ctx) -> Result<(), Error> {
        let book = ctx.storage().plugin();
        let chat = ctx.chat_id().unwrap_or_default();
        book.set(&format!("name/{chat}"), &true)?;
        let names = book.scan::<bool>("name/", None, 1_000)?;
        ctx.reply(names.len().to_string());
        Ok(())
    }
}
