//! Buttons by what they stand for: data as types, pages of lists, menus of several levels, dialogs.

use botyard_sdk::Handled;
use botyard_sdk::prelude::*;
use botyard_sdk::test::Bot;
use proptest::prelude::*;

#[derive(CallbackData, Debug, Clone, PartialEq)]
enum Size {
    Small,
    Other { cups: u8 },
}

#[derive(CallbackData, Debug, Clone, PartialEq)]
#[callback(prefix = "o")]
enum Order {
    Pick {
        item: u32,
        note: String,
    },
    #[callback(name = "p")]
    Page(i16),
    SizeOf(Size, Option<Size>),
    Flags(bool, char, Option<String>),
    Close,
}

#[derive(CallbackData, Debug, PartialEq)]
struct Search {
    text: String,
}

#[derive(CallbackData, Debug, PartialEq)]
struct Refresh;

#[test]
fn data_is_short_and_can_be_read() {
    for (order, data) in [
        (Order::Pick { item: 3, note: "a:b%".to_owned() }, "o:pick:3:a%3Ab%25"),
        (Order::Page(-1), "o:p:-1"),
        (Order::SizeOf(Size::Small, None), "o:size_of:small:-"),
        (Order::SizeOf(Size::Small, Some(Size::Other { cups: 2 })), "o:size_of:small:+:other:2"),
        (Order::Flags(true, ':', Some(String::new())), "o:flags:1:%3A:+:"),
        (Order::Close, "o:close"),
    ] {
        assert_eq!(order.to_data(), data);
        assert_eq!(Order::from_data(data), Some(order));
    }
    assert_eq!(Search { text: String::new() }.to_data(), "search:");
    assert_eq!(Search::from_data("search:"), Some(Search { text: String::new() }));
    assert_eq!((Refresh.to_data().as_str(), Refresh::from_data("refresh:")), ("refresh:", Some(Refresh)));
}

#[test]
fn what_does_not_fit_any_more_is_nothing() {
    for data in [
        "",
        "o",
        "o:",
        "o:close:",
        "o:close:1",
        "o:gone",
        "o:page:1",
        "o:p",
        "o:p:",
        "o:p:x",
        "o:p:1:2",
        "o:p:99999",
        "o:pick:1",
        "o:pick:1:a%",
        "o:pick:1:a%3",
        "o:pick:1:%41",
        "o:flags:2:x:-",
        "o:flags:1:xy:-",
        "o:flags:1:x:?",
        "order:close",
        "p:1",
        "o:size_of:small",
        "o:size_of:large:-",
    ] {
        assert_eq!(Order::from_data(data), None, "{data}");
    }
    assert_eq!((Refresh::from_data("refresh:x"), Search::from_data("search:a:b")), (None, None));
}

fn sizes() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::Small), any::<u8>().prop_map(|cups| Size::Other { cups })]
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        (any::<u32>(), ".*").prop_map(|(item, note)| Order::Pick { item, note }),
        any::<i16>().prop_map(Order::Page),
        (sizes(), prop::option::of(sizes())).prop_map(|(size, other)| Order::SizeOf(size, other)),
        (any::<bool>(), any::<char>(), prop::option::of("[:%+a-]{0,6}")).prop_map(|(a, b, c)| Order::Flags(a, b, c)),
        Just(Order::Close),
    ]
}

proptest! {
    #[test]
    fn every_value_comes_back(order in orders()) {
        prop_assert_eq!(Order::from_data(&order.to_data()), Some(order));
    }

    #[test]
    fn reading_never_fails(data in "(o:)?(pick|p|flags|size_of)?[:%+0-9a-z-]{0,12}") {
        if let Some(order) = Order::from_data(&data) {
            prop_assert_eq!(Order::from_data(&order.to_data()), Some(order));
        }
    }

    #[test]
    fn a_pager_stays_inside_its_bounds(total in 0..500_usize, per_page in 0..40_usize, page: u32, by in 0..20_u32) {
        let all: Vec<usize> = (0..total).collect();
        let pager = Pager::new(total, per_page).at(page);
        prop_assert!(pager.page() < pager.pages());
        prop_assert_eq!(pager.of(&all), &all[pager.range()]);
        prop_assert_eq!(pager.of(&all).is_empty(), total == 0);
        // Every thing is on one page.
        let pages = (0..pager.pages()).flat_map(|page| pager.at(page).range());
        prop_assert_eq!(pages.collect::<Vec<_>>(), all);
        let mut shown = Vec::new();
        let note = |page| { assert!(page < pager.pages()); Order::Page(0) };
        shown.extend(pager.buttons(note));
        shown.extend(pager.jumps(by, note));
        prop_assert!(shown.len() <= 7);
    }
}

#[plugin(key = "chat")]
mod shop {
    #[derive(CallbackData)]
    enum List {
        Page(u32),
        Pick(usize),
    }

    #[derive(Deserialize)]
    struct Shelf {
        teas: usize,
    }

    #[command("teas")]
    fn teas(ctx: &mut Ctx) -> Result<(), Error> {
        page(ctx, 0)
    }

    #[callback(List)]
    fn pressed(ctx: &mut Ctx, list: List) -> Result<(), Error> {
        match list {
            List::Page(number) => page(ctx, number)?,
            List::Pick(tea) => drop(ctx.edit(format!("Tea {tea}"))),
        }
        Ok(())
    }

    fn page(ctx: &Run, number: u32) -> Result<(), Error> {
        let Shelf { teas } = ctx.config()?;
        let pager = Pager::new(teas, 4).at(number);
        let rows = pager.range().map(|tea| [Button::data(format!("Tea {tea}"), List::Pick(tea))]);
        let keyboard = InlineKeyboard::new().rows(rows).row(pager.buttons(List::Page)).row(pager.jumps(3, List::Page));
        ctx.show(format!("{} of {}", pager.page() + 1, pager.pages())).keyboard(keyboard);
        Ok(())
    }

    fn menu() -> Menu {
        let hot = Menu::new("hot", "Hot:").columns(1).button(Button::url("More", "https://tea.example"));
        let drinks = Menu::new("drinks", "Drinks:").button(Button::data("Any", List::Pick(1))).sub("Hot", hot);
        Menu::new("menu", "What?").sub("Drinks", drinks).close("Close", "Closed.")
    }

    #[command("menu")]
    fn open(ctx: &mut Ctx) {
        menu().open(ctx);
    }

    #[callback("menu:")]
    fn turn(ctx: &mut Ctx) -> Handled {
        menu().pressed(ctx)
    }
}

#[test]
fn a_pager_turns_its_own_message() {
    let mut bot = Bot::<shop::Plugin>::new().config(&json!({ "teas": 30 }));
    assert_eq!(bot.text("/teas").texts(), ["1 of 8"]);
    assert_eq!(bot.labels(), ["Tea 0", "Tea 1", "Tea 2", "Tea 3", "1 / 8", "2 ›", "8 »", "4 ››"]);
    let turned = bot.press_button("4 ››");
    assert_eq!((&*turned.calls[0].0, turned.texts()), ("editMessageText", vec!["4 of 8"]));
    assert_eq!(bot.labels()[4..], ["« 1", "‹ 3", "4 / 8", "5 ›", "8 »", "‹‹ 1", "7 ››"]);
    bot.press_button("8 »");
    assert_eq!(bot.labels(), ["Tea 28", "Tea 29", "« 1", "‹ 7", "8 / 8", "‹‹ 5"]);
    assert_eq!(bot.press_button("Tea 29").texts(), ["Tea 29"]);
    assert!(bot.labels().is_empty());
    // The list has become shorter since.
    let mut bot = bot.config(&json!({ "teas": 3 }));
    assert_eq!(bot.press("list:page:7").texts(), ["1 of 1"]);
    assert_eq!(bot.labels(), ["Tea 0", "Tea 1", "Tea 2"]);
}

#[test]
fn a_button_of_another_version_finds_no_handler() {
    let mut bot = Bot::<shop::Plugin>::new().config(&json!({ "teas": 3 }));
    for data in ["list:gone", "list:page:x", "list:page:1:2", "menu:food", "menu:drinks.cold", "menux", "other"] {
        let pressed = bot.press(data);
        assert_eq!((pressed.result, pressed.calls.len()), (Ok(Handled::Pass), 0), "{data}");
    }
}

#[test]
fn a_menu_leads_down_and_back() {
    let mut bot = Bot::<shop::Plugin>::new();
    bot.text("/menu");
    for (button, text, labels) in [
        ("Drinks", "Drinks:", &["Any", "Hot", "‹ Back", "Close"][..]),
        ("Hot", "Hot:", &["More", "‹ Back", "Close"]),
        ("‹ Back", "Drinks:", &["Any", "Hot", "‹ Back", "Close"]),
        ("‹ Back", "What?", &["Drinks", "Close"]),
        ("Close", "Closed.", &[]),
    ] {
        let pressed = bot.press_button(button);
        assert_eq!((&*pressed.calls[0].0, pressed.texts()), ("editMessageText", vec![text]));
        assert_eq!(bot.labels(), labels, "{button}");
    }
    // Two at once do not get in each other's way.
    bot.text("/menu");
    bot.text("/menu");
    bot.press_button("Drinks");
    assert_eq!(bot.labels(), ["Drinks", "Close", "Any", "Hot", "‹ Back", "Close"]);
}

#[test]
#[should_panic(expected = "there is no button `Tea`: there are [\"Drinks\", \"Close\"]")]
fn a_button_that_is_not_there_can_not_be_pressed() {
    let mut bot = Bot::<shop::Plugin>::new();
    bot.text("/menu");
    bot.press_button("Tea");
}

#[plugin]
mod form {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Form {
        #[default]
        Idle,
        Name {
            before: Option<String>,
        },
        Size {
            name: String,
        },
    }

    #[derive(CallbackData)]
    struct Sized {
        large: bool,
    }

    impl Dialog for Form {
        fn question(&self, run: &Run) -> Question {
            let Form::Size { name } = self else {
                let Form::Name { before: Some(name) } = self else { return Question::new("Your name?") };
                return format!("Your name? You said {name}.").into();
            };
            let keyboard = InlineKeyboard::new()
                .row([Button::data("Small", Sized { large: false }), Button::data("Large", Sized { large: true })]);
            Question::new(t!(run, "size", name = name; "Which size, {$name}?")).keyboard(keyboard)
        }

        fn before(&self) -> Option<Self> {
            match self {
                Form::Size { name } => Some(Form::Name { before: Some(name.clone()) }),
                _ => None,
            }
        }
    }

    #[command("form")]
    fn begin(ctx: &mut Ctx<Form>) -> Handled {
        ctx.step(Form::Name { before: None })
    }

    #[command("back")]
    fn back(ctx: &mut Ctx<Form>) -> Handled {
        ctx.back()
    }

    #[command("cancel")]
    fn cancel(ctx: &mut Ctx<Form>) -> Handled {
        ctx.cancel("Cancelled.")
    }

    #[state(Form::Name)]
    fn name(ctx: &mut Ctx<Form>) -> Handled {
        let name = ctx.text().to_owned();
        if name.len() > 20 {
            return ctx.again("Shorter, please.");
        }
        ctx.step(Form::Size { name })
    }

    #[callback(Sized, state = Form::Size)]
    fn sized(ctx: &mut Ctx<Form>, Sized { large }: Sized) -> Handled {
        ctx.edit(if large { "Large it is." } else { "Small it is." });
        ctx.exit()
    }
}

#[test]
fn a_dialog_asks_again_and_goes_back_with_what_was_said() {
    let mut bot = Bot::<form::Plugin>::new();
    for closed in ["/back", "/cancel", "hello"] {
        assert_eq!(bot.text(closed).result, Ok(Handled::Pass), "{closed}");
    }
    for (said, answer, state) in [
        ("/form", "Your name?", Some("name")),
        ("A name that is much too long", "Shorter, please.", Some("name")),
        ("/back", "Your name?", Some("name")),
        ("Ana", "Which size, Ana?", Some("size")),
        ("/back", "Your name? You said Ana.", Some("name")),
        ("Anna", "Which size, Anna?", Some("size")),
    ] {
        assert_eq!(bot.text(said).texts(), [answer], "{said}");
        assert_eq!(bot.state(), state, "{said}");
    }
    assert_eq!(bot.press_button("Large").texts(), ["Large it is."]);
    assert_eq!(bot.state(), None);
    assert_eq!(bot.press("sized:1").result, Ok(Handled::Pass), "the button is out of date");
    bot.text("/form");
    assert_eq!((bot.text("/cancel").texts(), bot.state()), (vec!["Cancelled."], None));
}
