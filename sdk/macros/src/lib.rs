//! The macros of `botyard-sdk`, which re-exports and documents them. They only read attributes and write tables: what
//! a plugin does with an event is in the SDK's own code.

mod buttons;
mod callback;
mod catalogs;
mod command;
mod handler;
mod known;
mod names;
mod plugin;
mod signature;
mod state;
mod template;
mod translate;

use proc_macro::TokenStream;

/// Makes a plugin of a module of handlers.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin(description = "Says hello")]
/// mod greeter {
///     #[command("start", "hello", help = "Says hello")]
///     fn hello(ctx: &mut Ctx) {
///         ctx.reply("Hello!");
///     }
///
///     #[text("(?i)^thanks")]
///     fn thanks(ctx: &mut Ctx) -> Handled {
///         ctx.reply("You are welcome");
///         Done
///     }
/// }
/// # fn main() {}
/// ```
///
/// # Handlers
/// A handler is a function that takes `ctx: &mut Ctx` (or `&mut Ctx<S>`, the same [`State`](derive@State) in the whole
/// plugin), and behind it whatever `botyard_sdk::extract` tells of, and returns `()`, `Handled`, or a `Result` of either with an error that turns into `Error`. What it answers
/// to is said by one of these attributes:
///
/// | attribute | answers to |
/// |---|---|
/// | `#[command("start", "begin", help = "…")]` | these commands; `help` (else the first line of the doc comment) is the catalog key or text for the menu, `menu = "private"`, `"groups"`, `"administrators"` or a list of them whose menu it is in, `hidden` takes it out of all |
/// | `#[command("remind {minutes} {what...}")]` | a command with arguments, which the handler takes under these names: see `botyard_sdk::command` |
/// | `#[command(Cmd)]` | the commands of an enum that derives [`Command`](derive@Command) |
/// | `#[start("ref-")]` | `/start` by a link whose payload begins like this; `#[start]` with any payload: see `botyard_sdk::link` |
/// | `#[message(filter = …)]` | a message that the filter lets through |
/// | `#[text]` | a message with a text that is no command of any plugin |
/// | `#[text("regex")]` | a message whose text or caption the expression matches somewhere |
/// | `#[callback(Order)]` | a pressed button with this type's data, which the function takes too: `fn pressed(ctx: &mut Ctx, order: Order)`; see `botyard_sdk::CallbackData` |
/// | `#[button("menu-order")]` | the button of a reply keyboard whose text is this message of the catalogs, in any language |
/// | `#[callback("prefix")]` | a pressed button whose data begins like this; `#[callback]` for any |
/// | `#[content("photo", "video")]` | a message that has one of these: see `botyard_sdk::api::Content` |
/// | `#[state(Form::Name)]` | the same as `#[text]`, while the conversation is in this state; takes any pattern |
/// | `#[album]` | photos and other media that were sent together, as one event; `#[album("regex")]`: with such a caption |
/// | `#[on("edited_message", …)]` | updates of these kinds, as the Bot API names them |
/// | `#[timer("name")]` | a timer that was set with this name |
/// | `#[job("name")]` | work that was queued under this name |
/// | `#[cron("0 9 * * *", tz = "Asia/Tashkent")]` | these times, for the plugin as a whole, as long as it is loaded; UTC where no zone is given |
/// | `#[every("15m")]` | this interval, likewise |
/// | `#[expired]` | the end of a state's time to live; `ctx.state()` is the state that ended |
///
/// `#[cron]` and `#[every]` take `missed = "skip"`: times that passed while the host did not run are dropped, where
/// otherwise one event makes up for all of them. `#[expired]` takes `state = Form::Name`. The others, but for timers and jobs,
/// take `state = Form::Name` (only in this state), and `observe`: the handler sees the event whoever takes it, and never
/// takes it itself.
///
/// What answers to updates also takes `filter = private() & photo()`, which the host evaluates (see `botyard_sdk::filter`),
/// and `check = check::administrator`, which is asked in the run (see `botyard_sdk::check`). `hidden` keeps a command out
/// of the menu.
///
/// An album is offered whole to the plugins that have a handler for albums. If none of them takes it, each of its messages
/// is an event of its own, as it is for plugins that have none.
///
/// They are tried in this order: states, links (the longest beginning first), commands, callbacks, buttons, contents, messages, texts, albums, everything else; within each as they stand in the
/// source. The first that does not return `Pass` ends the search.
///
/// `#[middleware]` marks functions that stand around all handlers, the first one outermost: see `botyard_sdk::Next`.
/// `#[on_error] fn failed(ctx: &mut Ctx, error: Error) -> Handled` hears of a run that has failed. What that run asked for is
/// dropped; `Done` settles the event with what this one asks for, `Pass` lets the failure stand. If it does and
/// `error.retries()`, another attempt follows.
///
/// `#[migrate]` marks the function that reads states of older versions: see `botyard_sdk::OldState`.
///
/// # Arguments
/// All are optional:
/// - `name`, `version`, `description`: from `Cargo.toml` where not given;
/// - `key`: what a conversation is, where the state's own key should not hold: `chat`, `user`, `user_in_chat`, `topic` or
///   `user_in_topic`. It also says which events keep their order: those of one conversation. `none`, for plugins without a
///   state, asks for no order at all;
/// - `catalogs = "locales"`: the folder of the translations, seen from `Cargo.toml`: one `.ftl` file for each locale.
///   `locales` needs not be named. A file that is added later is found when this crate is compiled again for another reason;
/// - `methods = ["sendMessage", "answer*", api::SendPoll]`: the methods of the Bot API that it calls, by name or by type. Any,
///   where not given;
/// - `http = ["https://api.pay.example"]`: the servers that it sends requests to: see `botyard_sdk::http`. None, where not
///   given.
///
/// # What it adds to the module
/// `use super::*;`, a type `Plugin` that stands for the plugin, and the exports that the host calls. Types in the module
/// that derive `Serialize` or `Deserialize` need no `serde` in `Cargo.toml`.
#[proc_macro_attribute]
pub fn plugin(arguments: TokenStream, module: TokenStream) -> TokenStream {
    plugin::expand(arguments.into(), module.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the data of buttons of an enum: see the trait of the same name.
#[proc_macro_derive(CallbackData, attributes(callback))]
pub fn callback_data(item: TokenStream) -> TokenStream {
    callback::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// A translated text, in the language of the run.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// fn greet(ctx: &mut Ctx) {
///     let name = ctx.user().first_name;
///     ctx.reply(t!(ctx, "hello", name = &name; "Hello, {$name}!"));
///     ctx.reply(t!(ctx, "items", count = 3; "You have {$count} items."));
///     ctx.reply(t!(ctx.html(), "welcome", name = name; "Welcome, <b>{$name}</b>!"));
/// }
/// ```
///
/// After the key come the arguments, then, behind a semicolon, the fallback, in which `{$name}` stands for an argument.
/// Without a fallback it is the key.
///
/// # What is checked
/// Where the crate has catalogs, in `locales` or the folder that [`#[plugin(catalogs = "…")]`](macro@plugin) names, a key
/// that is written out must be in the first of them (English, else the first by name), and the arguments must be those that
/// any of the languages uses, in whichever branch of a plural, no fewer and no others. A key that another language lacks is
/// a warning of `botyard check` and `botyard build`: the first catalog's text is used. A key that is an expression is not
/// checked. Without catalogs, a fallback is needed.
#[proc_macro]
pub fn t(call: TokenStream) -> TokenStream {
    translate::expand(call.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the states of a conversation of an enum: see the trait of the same name.
#[proc_macro_derive(State, attributes(state))]
pub fn state(item: TokenStream) -> TokenStream {
    state::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes the commands of a plugin of an enum: see the trait of the same name.
#[proc_macro_derive(Command, attributes(command))]
pub fn command(item: TokenStream) -> TokenStream {
    command::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
