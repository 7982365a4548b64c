//! The typed Bot API in earnest: `/who` asks about the person, `/edit` sends a message at once and edits it, `/poll` sends
//! a poll and reacts to the command.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::GetChatMember, api::SendMessage, api::EditMessageText, api::SendPoll, "setMessageReaction"])]
mod typed {
    use api::*;

    #[command("who")]
    fn who(ctx: &mut Ctx) -> Result<(), Error> {
        let member = ctx.ask(GetChatMember::new(ctx.here(), ctx.user().id))?;
        let kind = match &member {
            ChatMember::Owner(_) => "the owner",
            ChatMember::Member(_) => "a member",
            _ => "somebody",
        };
        ctx.reply(format!("{} is {kind}", member.user().first_name()));
        Ok(())
    }

    #[command("edit")]
    fn edit(ctx: &mut Ctx) -> Result<(), Error> {
        let sent = ctx.ask(SendMessage::new(ctx.here(), "one moment"))?;
        ctx.queue(EditMessageText::new().chat_id(sent.chat().id()).message_id(sent.message_id()).text("done"));
        Ok(())
    }

    #[command("poll")]
    fn poll(ctx: &mut Ctx) {
        ctx.queue(SendPoll::new(ctx.here(), "Tea?", ["Yes", "No"]).is_anonymous(false));
        ctx.react("👍");
    }
}
