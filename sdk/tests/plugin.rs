//! What `#[plugin]` makes of a module: the manifest, the order of attempts, and what a failed effect does.

use botyard_sdk::prelude::*;
use botyard_sdk::test::Bot;
use botyard_sdk::{OldState, Plugin as _};

#[plugin(name = "shop", version = "2.1.0", description = "Sells", catalogs = "tests/locales", methods = ["send*"])]
mod shop {
    #[derive(State, Serialize, Deserialize, Default, Debug)]
    #[state(version = 3, key = "topic", ttl = "2h")]
    enum Order {
        #[default]
        Idle,
        AskSize,
        Confirm {
            size: u8,
        },
    }

    /// Begin an order.
    #[command("order", "buy")]
    #[command("hidden", state = Order::Idle)]
    fn order(ctx: &mut Ctx<Order>) -> Handled {
        ctx.reply("Which size?");
        ctx.goto(Order::AskSize)
    }

    #[text("(?i)^hi$")]
    fn hi(ctx: &mut Ctx<Order>) {
        ctx.reply("hi!");
    }

    #[text("^h")]
    fn h(ctx: &mut Ctx<Order>) -> Handled {
        ctx.reply("h");
        if ctx.text() == "hmm" { Pass } else { Done }
    }

    #[text]
    fn other(ctx: &mut Ctx<Order>) {
        ctx.reply("other");
    }

    #[state(Order::AskSize | Order::Confirm { .. })]
    fn size(ctx: &mut Ctx<Order>) -> Result<Handled, Error> {
        if ctx.text() == "pass" {
            return Ok(Pass);
        }
        let size = ctx.text().parse::<u8>()?;
        Ok(ctx.goto(Order::Confirm { size }))
    }

    #[callback("pick:", state = Order::Confirm { size: 30 })]
    fn pick(ctx: &mut Ctx<Order>) {
        ctx.reply("thirty");
    }

    #[callback]
    fn stale(ctx: &mut Ctx<Order>) {
        ctx.answer_callback("That button is old.");
    }

    #[on("message", "edited_message", observe)]
    fn watch(ctx: &mut Ctx<Order>) {
        debug!("seen", kind = ctx.kind());
    }

    #[command("oversized")]
    fn oversized(ctx: &mut Ctx<Order>) {
        ctx.reply("?").keyboard(InlineKeyboard::new().row([Button::callback("x", "y".repeat(1025))]));
    }

    #[command("late")]
    fn late(ctx: &mut Ctx<Order>) -> Result<(), Error> {
        ctx.after("late", Duration::from_secs(60), ctx.args())?;
        Ok(())
    }

    #[timer("late")]
    fn rang(ctx: &mut Ctx<Order>) -> Result<(), Error> {
        ctx.reply(ctx.payload::<String>()?);
        Ok(())
    }

    #[migrate]
    fn migrate(old: OldState) -> Result<Order, Error> {
        match old.version {
            1 => Ok(Order::Confirm { size: old.read()? }),
            other => Err(Error::permanent(format!("version {other} is too old"))),
        }
    }
}

#[test]
fn the_manifest_says_all_that_the_host_needs() {
    let manifest = shop::Plugin::describe();
    assert_eq!(
        (manifest.name.as_str(), manifest.version.as_str(), manifest.description.as_str()),
        ("shop", "2.1.0", "Sells")
    );
    assert_eq!((manifest.key.as_str(), manifest.state_version), ("topic", 3));
    assert_eq!(manifest.methods, ["send*"]);
    let menu: Vec<_> = manifest.commands.iter().map(|help| (&*help.name, &*help.description_key)).collect();
    let order = "Begin an order";
    assert_eq!(menu, [("order", order), ("buy", order), ("hidden", order)]);
    let locales: Vec<_> = manifest.catalogs.iter().map(|catalog| (&*catalog.locale, catalog.source.trim())).collect();
    assert_eq!(locales, [("en", "hello = Hello"), ("pt-BR", "hello = Olá")]);
}

#[test]
fn each_handler_but_a_timers_has_its_filter() {
    let filters = shop::Plugin::describe().filters;
    assert_eq!(filters.len(), 11);
    let [size, order, hidden, oversized, late, pick, stale, hi, _, other, watch] = filters.as_slice() else {
        unreachable!()
    };
    assert!(size.plain_text && size.states == ["ask_size", "confirm"]);
    assert_eq!(order.commands, ["order", "buy"]);
    // The default state is none that the host keeps: the plugin itself looks for it.
    assert!(hidden.states.is_empty());
    assert_eq!((&*oversized.commands, &*late.commands), (&["oversized".to_owned()][..], &["late".to_owned()][..]));
    assert_eq!((pick.callback_prefix.as_deref(), &*pick.states), (Some("pick:"), &["confirm".to_owned()][..]));
    assert!(stale.callback_prefix.is_none() && stale.kinds == ["callback_query"]);
    assert!(hi.text_regex.as_deref() == Some("(?i)^hi$") && !hi.plain_text);
    assert!(other.plain_text && other.kinds == ["message"]);
    assert!(watch.observe && watch.kinds == ["message", "edited_message"]);
    assert!(filters.iter().filter(|filter| filter.observe).count() == 1);
}

#[test]
fn handlers_are_tried_in_order_until_one_takes_the_event() {
    let mut bot = Bot::<shop::Plugin>::new();
    assert_eq!(bot.text("hi").texts(), ["hi!"]);
    assert_eq!(bot.text("HI").texts(), ["hi!"]);
    assert_eq!(bot.text("hello").texts(), ["h"]);
    assert_eq!(bot.text("hmm").texts(), ["h", "other"]);
    assert_eq!(bot.text("/unknown").texts(), ["other"]);
    bot.text("/order");
    assert_eq!(bot.text("pass").texts(), ["other"]);
    let failed = bot.text("large");
    assert!(failed.result.unwrap_err().retries());
    bot.text("30");
    assert_eq!(bot.state(), Some("confirm"));
    assert_eq!(bot.press("pick:1").texts(), ["thirty"]);
    bot.text("29");
    assert_eq!(bot.press("pick:1").texts(), ["That button is old."]);
}

#[test]
fn observers_see_what_others_take() {
    let mut bot = Bot::<shop::Plugin>::new();
    assert_eq!(bot.text("hi").log, ["Level::Debug seen kind=message"]);
    let unknown = bot.press("x");
    assert!(unknown.log.is_empty());
}

#[test]
fn an_effect_that_cannot_be_asked_for_fails_the_run() {
    let error = Bot::<shop::Plugin>::new().text("/oversized").result.unwrap_err();
    assert!(!error.retries());
    assert!(error.to_string().contains("1025 bytes"), "{error}");
}

#[test]
fn timers_come_back_with_their_payload() {
    let mut bot = Bot::<shop::Plugin>::new();
    bot.text("/late tea 🍵");
    assert_eq!(bot.timer().unwrap().texts(), ["tea 🍵"]);
}

#[test]
fn old_states_are_carried_over_or_refused() {
    use botyard_sdk::__private::Stored;
    let old = |version| Stored { name: "size".to_owned(), version, bytes: b"25".to_vec() };
    let new = shop::Plugin::migrate(old(1)).unwrap();
    assert_eq!((&*new.name, new.version, &*new.bytes), ("confirm", 3, &br#"{"Confirm":{"size":25}}"#[..]));
    assert_eq!(shop::Plugin::migrate(old(2)).unwrap_err().to_string(), "version 2 is too old");
    let own = Stored { bytes: br#""AskSize""#.to_vec(), ..old(3) };
    assert_eq!(shop::Plugin::migrate(own).unwrap().name, "ask_size", "one of its own is read, not migrated");
    let error = shop::Plugin::migrate(old(3)).unwrap_err().to_string();
    assert!(error.contains("the state `size` of version 3 can't be read"), "{error}");
}

#[plugin]
mod forgets {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Form {
        #[default]
        Idle,
        Age {
            // As if it had been added since.
            #[serde(skip_serializing)]
            years: u8,
        },
    }

    #[command("begin")]
    fn begin(ctx: &mut Ctx<Form>) -> Handled {
        ctx.goto(Form::Age { years: 3 })
    }

    #[text(state = Form::Age { .. })]
    fn age(ctx: &mut Ctx<Form>) -> Handled {
        let Form::Age { years } = ctx.state() else { return Pass };
        ctx.reply(years.to_string());
        ctx.exit()
    }

    #[text]
    fn other(ctx: &mut Ctx<Form>) {
        let lost = ctx.lost_state().map(|state| state.name);
        ctx.reply(format!("{lost:?} is lost, {} goes on", ctx.state().name()));
    }
}

#[test]
fn a_state_of_its_own_that_can_not_be_read_is_set_aside_and_the_event_comes_again() {
    let mut bot = Bot::<forgets::Plugin>::new();
    bot.text("/begin");
    assert_eq!(bot.state(), Some("age"));
    let said = bot.text("7");
    assert_eq!(said.texts(), [r#"Some("age") is lost, idle goes on"#]);
    assert_eq!(bot.state(), None);
}

#[plugin(key = "none")]
mod gallery {
    #[album("(?i)^sell")]
    fn sell(ctx: &mut Ctx) {
        ctx.reply("sold");
    }

    #[album]
    fn keep(ctx: &mut Ctx) -> Handled {
        let Some(album) = ctx.album() else { return Pass };
        let photos = album.updates.iter().filter(|update| update.raw.contains("photo")).count();
        ctx.reply(format!("{photos} photos of {}, {}", ctx.text(), ctx.user().first_name));
        Done
    }

    #[on("message")]
    fn single(ctx: &mut Ctx) {
        ctx.reply("single");
    }
}

#[test]
fn an_album_is_one_event() {
    let mut bot = Bot::<gallery::Plugin>::new();
    let photo = json!({ "photo": [{ "file_id": "x" }] });
    assert_eq!(bot.album("my cat", &[photo.clone(), photo.clone()]).texts(), ["2 photos of my cat, Alice"]);
    assert_eq!(bot.album("Sell it", &[photo]).texts(), ["sold"]);
    assert_eq!(bot.text("hello").texts(), ["single"]);
    assert_eq!(gallery::Plugin::describe().key, "none");
}

#[plugin]
mod plain {
    #[text]
    fn text(ctx: &mut Ctx) {
        ctx.reply(ctx.text());
    }
}

#[test]
fn what_is_not_given_comes_from_cargo() {
    let manifest = plain::Plugin::describe();
    assert_eq!((&*manifest.name, &*manifest.version), (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")));
    assert_eq!((&*manifest.key, manifest.state_version), ("chat", 0));
    assert_eq!(manifest.methods, ["*"]);
}

#[test]
fn without_a_migration_old_states_are_refused() {
    use botyard_sdk::__private::Stored;
    let error = plain::Plugin::migrate(Stored { name: String::new(), version: 4, bytes: Vec::new() }).unwrap_err();
    assert!(error.to_string().contains("no migration from state version 4"), "{error}");
    assert!(OldState { name: "a".into(), version: 1, bytes: b"{".to_vec() }.read::<u8>().is_err());
}
