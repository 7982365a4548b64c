//! A panel to write to everybody: compose, look at it, choose who gets it, watch it go out, pause or end it.
//!
//! What to look at here:
//!
//! - **A `Dialog`** asks for the text and then for the audience; the text lies in the state, so an administrator can look at it
//!   for a day, over restarts.
//! - **A broadcast** begins when the run commits, and goes on without the plugin. Its number is all that has to be kept, and it is on
//!   the buttons.
//! - **A timer** brings the message with the progress up to date until the broadcast has ended.
//! - **A check of one's own**, `is_admin`, reads from `config` who may. To everybody else the panel is not there.
//!
//! In `bot.toml`: `config = { admins = [1001] }` and `grants = { broadcast = true }`.

use botyard_sdk::extract::Payload;
use botyard_sdk::prelude::*;
use botyard_sdk::{BroadcastState, BroadcastStatus, Recipients};

/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_secs(10);
/// Subscribers that are read from the storage at a time.
const PAGE: u32 = 500;

#[plugin(methods = [api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery])]
mod panel {
    /// Where an administrator is.
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(ttl = "1d", key = "user_in_chat")]
    enum Panel {
        #[default]
        Closed,
        Composing,
        Choosing {
            text: String,
        },
    }

    impl Dialog for Panel {
        fn question(&self, run: &Run) -> Question {
            match self {
                Self::Closed | Self::Composing => "What shall I send? /cancel ends this.".into(),
                Self::Choosing { .. } => subscribers(run).map(|subscribers| who_gets_it(subscribers.len())).into(),
            }
        }

        fn before(&self) -> Option<Self> {
            matches!(self, Self::Choosing { .. }).then_some(Self::Composing)
        }
    }

    /// The buttons below a message that is ready.
    #[derive(CallbackData)]
    enum Choice {
        Everybody,
        Subscribers,
        Anew,
        Drop,
    }

    /// The buttons of a broadcast that is on its way.
    #[derive(CallbackData)]
    enum Order {
        Look(u64),
        Pause(u64),
        Resume(u64),
        Cancel(u64),
    }

    /// What the timer is told: which broadcast, and which message tells of it.
    #[derive(Serialize, Deserialize)]
    struct Watch {
        broadcast: u64,
        message: i64,
        shown: String,
    }

    /// Write to many
    #[command("panel", filter = private(), check = is_admin)]
    fn open(ctx: &mut Ctx<Panel>) -> Handled {
        ctx.step(Panel::Composing)
    }

    #[state(Panel::Composing)]
    fn composed(ctx: &mut Ctx<Panel>) -> Handled {
        let text = ctx.text().to_owned();
        // As everybody will see it.
        ctx.reply(&text);
        ctx.step(Panel::Choosing { text })
    }

    #[callback(Choice, state = Panel::Choosing { text })]
    fn chosen(ctx: &mut Ctx<Panel>, choice: Choice, text: String) -> Result<Handled, Error> {
        let to = match choice {
            Choice::Anew => return Ok(ctx.back()),
            Choice::Drop => return Ok(ctx.cancel("Dropped.")),
            Choice::Everybody => Recipients::KnownChats,
            Choice::Subscribers => subscribers(ctx)?.into(),
        };
        let broadcast = ctx.broadcast(to, text).name("panel").start()?;
        let shown = "On its way.".to_owned();
        ctx.edit(&shown).keyboard(buttons(broadcast, BroadcastState::Running));
        if let Some(message) = ctx.message_id() {
            ctx.after("watch", LOOK, Watch { broadcast, message, shown })?;
        }
        Ok(ctx.exit())
    }

    #[timer("watch")]
    fn watch(ctx: &mut Ctx<Panel>, Payload(mut watch): Payload<Watch>) -> Result<(), Error> {
        let Some(status) = ctx.broadcast_status(watch.broadcast)? else { return Ok(()) };
        let text = progress(&status);
        if let Some(chat) = ctx.chat_id().filter(|_| text != watch.shown) {
            let edit = api::EditMessageText::new().text(&text).chat_id(chat).message_id(watch.message);
            ctx.queue(edit).keyboard(buttons(watch.broadcast, status.state));
            watch.shown = text;
        }
        if !has_ended(status.state) {
            ctx.after("watch", LOOK, watch)?;
        }
        Ok(())
    }

    #[callback(Order, check = is_admin)]
    fn ordered(ctx: &mut Ctx<Panel>, order: Order) -> Result<(), Error> {
        let (id, done) = match order {
            Order::Look(id) => (id, None),
            Order::Pause(id) => (id, ctx.pause_broadcast(id)?.then_some(BroadcastState::Paused)),
            Order::Resume(id) => (id, ctx.resume_broadcast(id)?.then_some(BroadcastState::Running)),
            Order::Cancel(id) => (id, ctx.cancel_broadcast(id)?.then_some(BroadcastState::Cancelled)),
        };
        let Some(mut status) = ctx.broadcast_status(id)? else {
            ctx.answer_callback("Nothing is known of it any more.");
            return Ok(());
        };
        // The order becomes true when this run commits.
        status.state = done.unwrap_or(status.state);
        ctx.answer_callback(progress(&status));
        if done.is_some() {
            ctx.edit(progress(&status)).keyboard(buttons(id, status.state));
        }
        Ok(())
    }

    fn buttons(id: u64, state: BroadcastState) -> InlineKeyboard {
        let (look, cancel) = (Button::data("How far?", Order::Look(id)), Button::data("Cancel", Order::Cancel(id)));
        match state {
            BroadcastState::Done | BroadcastState::Cancelled => InlineKeyboard::new(),
            BroadcastState::Running => {
                InlineKeyboard::new().row([look, Button::data("Pause", Order::Pause(id)), cancel])
            }
            BroadcastState::Paused | BroadcastState::Stopped => {
                InlineKeyboard::new().row([look, Button::data("Go on", Order::Resume(id)), cancel])
            }
        }
    }

    // Who gets it.

    /// Get news
    #[command("subscribe", filter = private())]
    fn subscribe(ctx: &mut Ctx<Panel>, user: botyard_sdk::User) -> Result<(), Error> {
        ctx.storage().plugin().set(&subscriber(user.id), &user.id)?;
        ctx.reply("You will hear from us. /unsubscribe ends that.");
        Ok(())
    }

    /// No more news
    #[command("unsubscribe", filter = private())]
    fn unsubscribe(ctx: &mut Ctx<Panel>, user: botyard_sdk::User) -> Result<(), Error> {
        ctx.storage().plugin().delete(&subscriber(user.id))?;
        ctx.reply("You are off the list.");
        Ok(())
    }

    fn subscriber(user: i64) -> String {
        format!("subscriber/{user}")
    }

    /// All of them. What can't be read is told of in the log, and gets nothing.
    fn subscribers(ctx: &Run) -> Result<Vec<i64>, Error> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = ctx.storage().plugin().scan::<i64>("subscriber/", after.as_deref(), PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            after = Some(last.clone());
            all.extend(page.into_iter().map(|(_, user)| user));
        }
    }

    fn who_gets_it(n_subscribers: usize) -> Question {
        let subscribers = Button::data(format!("Subscribers ({n_subscribers})"), Choice::Subscribers);
        Question::new("That is what it looks like. Who shall get it?").keyboard(
            InlineKeyboard::new()
                .row([Button::data("Everybody", Choice::Everybody), subscribers])
                .row([Button::data("Write it anew", Choice::Anew), Button::data("Drop it", Choice::Drop)]),
        )
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Config {
        admins: Vec<i64>,
    }

    fn is_admin(ctx: &Run) -> Result<bool, Error> {
        let config: Config = ctx.config()?;
        Ok(ctx.user_id().is_some_and(|user| config.admins.contains(&user)))
    }
}

fn has_ended(state: BroadcastState) -> bool {
    matches!(state, BroadcastState::Done | BroadcastState::Cancelled)
}

/// Where it stands, in a line.
fn progress(status: &BroadcastStatus) -> String {
    let word = match status.state {
        BroadcastState::Running => "On its way",
        BroadcastState::Paused => "Paused",
        BroadcastState::Stopped => "Stopped by the host",
        BroadcastState::Done => "Done",
        BroadcastState::Cancelled => "Cancelled",
    };
    let mut text = format!("{word}: {} of {} sent", status.sent, status.total);
    for (n, what) in [(status.gone, "unreachable"), (status.refused, "refused"), (status.unknown, "unknown")] {
        if n > 0 {
            text.push_str(&format!(", {n} {what}"));
        }
    }
    match &status.reason {
        Some(reason) => format!("{text}. {reason}"),
        None => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;
    use botyard_sdk::{BroadcastState, Recipients, json};

    use super::panel::Plugin;

    fn bot() -> Bot<Plugin> {
        Bot::new().config(&json!({ "admins": [7] }))
    }

    #[test]
    fn a_broadcast_is_composed_seen_and_started_once() {
        let mut bot = bot();
        assert_eq!(bot.text("/panel").texts(), ["What shall I send? /cancel ends this."]);
        let seen = bot.text("We are open again.");
        assert_eq!(seen.texts(), ["We are open again.", "That is what it looks like. Who shall get it?"]);
        let started = bot.press_button("Everybody");
        assert_eq!(started.broadcasts[0].to, Recipients::KnownChats);
        assert_eq!(started.broadcasts[0].params["text"], "We are open again.");
        assert!(bot.press("choice:everybody").broadcasts.is_empty(), "the panel is closed");
    }

    #[test]
    fn the_message_tells_how_far_it_is_until_it_has_ended() {
        let mut bot = bot();
        bot.text("/subscribe");
        bot.text("/panel");
        bot.text("News");
        let id = bot.press_button("Subscribers (1)").broadcasts[0].id;
        let status = bot.broadcast(id).unwrap();
        (status.total, status.sent) = (3, 1);
        assert_eq!(bot.timer().unwrap().texts(), ["On its way: 1 of 3 sent."]);
        assert!(bot.timer().unwrap().calls.is_empty(), "nothing is new");
        let status = bot.broadcast(id).unwrap();
        (status.state, status.sent, status.gone) = (BroadcastState::Done, 2, 1);
        assert_eq!(bot.timer().unwrap().texts(), ["Done: 2 of 3 sent, 1 unreachable."]);
        assert!(bot.timer().is_none());
    }

    #[test]
    fn to_others_the_panel_is_not_there() {
        let mut bot = Bot::<Plugin>::new().config(&json!({ "admins": [8] }));
        assert!(bot.text("/panel").calls.is_empty());
    }
}
