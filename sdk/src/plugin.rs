//! From an event to a handler: the table that `#[plugin]` makes, and the walk through it.
//!
//! Each handler is a filter of the manifest. The host says which of them an event matches, so there is one place that
//! decides it. The handlers of those are tried in the order of the table (states, links, commands, callbacks, buttons, contents,
//! texts, albums, everything else; within each as they stand in the source) until one takes the event; observers never take it.

use crate::bindings::botyard::types::types::{Invocation, State as Stored};
use crate::bindings::exports::botyard::plugin::handler::{
    Catalog, CommandHelp, Failure, Filter, Guest, Manifest, Schedule, ScheduleRule, Verdict,
};
use crate::command::CommandInfo;
use crate::{Ctx, Error, Event, NoState, OldState, State, state};

/// What a handler made of its event.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// fn shout(ctx: &mut Ctx) -> Handled {
///     if ctx.text().is_empty() {
///         return Pass;
///     }
///     ctx.reply(ctx.text().to_uppercase());
///     Done
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// The event is taken: nobody else is asked.
    Done,
    /// Not mine: the next handler of this plugin is asked, then the next plugin. If no handler here takes the event,
    /// what this plugin asked for is dropped.
    Pass,
}

/// What a handler may return: `()`, [`Handled`], or a `Result` of either.
#[diagnostic::on_unimplemented(
    message = "a handler can't return `{Self}`",
    label = "return `()`, `Handled` or `Result<…, Error>`"
)]
pub trait Returned {
    /// The verdict, or why the run failed.
    ///
    /// # Errors
    /// What the handler returned.
    #[doc(hidden)]
    fn returned(self) -> Result<Handled, Error>;
}

impl Returned for () {
    fn returned(self) -> Result<Handled, Error> {
        Ok(Handled::Done)
    }
}

impl Returned for Handled {
    fn returned(self) -> Result<Handled, Error> {
        Ok(self)
    }
}

impl<T: Returned, E: Into<Error>> Returned for Result<T, E> {
    fn returned(self) -> Result<Handled, Error> {
        self.map_err(Into::into)?.returned()
    }
}

/// A plugin: what `#[plugin]` implements for the `Plugin` type that it adds to the module.
pub trait Plugin: 'static {
    #[doc(hidden)]
    fn describe() -> Manifest;
    #[doc(hidden)]
    fn handle(invocation: Invocation) -> Result<Handled, Error>;
    #[doc(hidden)]
    fn migrate(old: Stored) -> Result<Stored, Error>;
}

/// A plugin whose states are `S`.
#[doc(hidden)]
pub struct Table<S: State> {
    pub text: Text,
    pub routes: &'static [Route<S>],
    /// Around the handlers, the outermost first.
    pub around: &'static [Around<S>],
    pub on_error: Option<OnError<S>>,
    pub migrate: Option<fn(OldState) -> Result<S, Error>>,
}

type OnError<S> = fn(&mut Ctx<S>, Error) -> Result<Handled, Error>;
type Around<S> = fn(&mut Ctx<S>, Next<S>) -> Result<Handled, Error>;

/// What a `#[middleware]` stands around: the next one, or the handlers themselves.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod shop {
///     #[middleware]
///     fn only_while_open(ctx: &mut Ctx, next: Next) -> Result<Handled, Error> {
///         if ctx.storage().plugin().get::<bool>("closed")?.unwrap_or_default() {
///             ctx.reply("We are closed.");
///             return Ok(Done);
///         }
///         let handled = next.run(ctx)?;
///         debug!("handled", kind = ctx.kind());
///         Ok(handled)
///     }
///
///     #[command("order")]
///     fn order(ctx: &mut Ctx) {
///         ctx.reply("Which tea?");
///     }
/// }
/// # fn main() {}
/// ```
pub struct Next<S: State = NoState> {
    around: &'static [Around<S>],
    routes: &'static [Route<S>],
}

impl<S: State> Next<S> {
    /// Goes on: what the handlers made of the event, or why one of them failed.
    ///
    /// # Errors
    /// Those of a handler. What it asked for is dropped only if the run fails: hand the error on.
    pub fn run(self, ctx: &mut Ctx<S>) -> Result<Handled, Error> {
        match self.around {
            [first, around @ ..] => first(ctx, Self { around, ..self }),
            [] => walk(self.routes, ctx),
        }
    }
}

/// The fixed parts of a manifest.
#[doc(hidden)]
pub struct Text {
    pub name: &'static str,
    pub version: &'static str,
    pub description: &'static str,
    pub key: Option<&'static str>,
    /// Name, key of the description, and the menus that it is in.
    pub commands: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// Locale and source.
    pub catalogs: &'static [(&'static str, &'static str)],
    pub methods: &'static [&'static str],
    pub http: &'static [&'static str],
}

/// One handler and what it answers to.
#[doc(hidden)]
pub struct Route<S: State> {
    pub on: Matcher,
    /// Names of the states it is for, and the test itself; without a test it is for all.
    pub states: &'static [&'static str],
    pub guard: Option<fn(&S) -> bool>,
    /// What the host is to evaluate, as it reads it.
    pub condition: Option<fn() -> String>,
    pub observe: bool,
    pub run: fn(&mut Ctx<S>) -> Result<Handled, Error>,
}

#[doc(hidden)]
pub enum Matcher {
    Command(&'static [&'static str]),
    Commands(&'static [CommandInfo]),
    /// What comes with `/start`: how it begins.
    Start(&'static str),
    Callback(&'static str),
    /// The text of a keyboard's button, by its keys in the catalogs.
    Button(&'static [&'static str]),
    Text(Option<&'static str>),
    Album(Option<&'static str>),
    Kinds(&'static [&'static str]),
    Timer(&'static str),
    Job(&'static str),
    /// A timer that the host keeps for the plugin: its name, when, and whether missed times are made up for.
    Recurring(&'static str, Every, bool),
    Expired,
}

#[doc(hidden)]
pub enum Every {
    /// Expression and time zone.
    Cron(&'static str, &'static str),
    Seconds(u64),
}

impl Matcher {
    /// The filter that the host is to match; none for events that are the plugin's own.
    fn filter(&self) -> Option<Filter> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut filter = Filter {
            kinds: owned(&["message"]),
            chat_types: Vec::new(),
            commands: Vec::new(),
            callback_prefix: None,
            text_regex: None,
            plain_text: false,
            text_keys: Vec::new(),
            states: Vec::new(),
            condition: None,
            observe: false,
        };
        match *self {
            Self::Command(names) => filter.commands = owned(names),
            Self::Commands(commands) => {
                for command in commands {
                    filter.commands.extend(owned(command.names));
                }
            }
            Self::Start(_) => filter.commands = owned(&["start"]),
            Self::Callback(prefix) => {
                filter.kinds = owned(&["callback_query"]);
                filter.callback_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
            }
            Self::Text(regex) => {
                filter.plain_text = regex.is_none();
                filter.text_regex = regex.map(str::to_owned);
            }
            Self::Button(keys) => filter.text_keys = owned(keys),
            Self::Album(regex) => {
                filter.kinds = owned(&["album"]);
                filter.text_regex = regex.map(str::to_owned);
            }
            Self::Kinds(kinds) => filter.kinds = owned(kinds),
            Self::Timer(_) | Self::Job(_) | Self::Recurring(..) | Self::Expired => return None,
        }
        Some(filter)
    }

    fn schedule(&self) -> Option<Schedule> {
        let Self::Recurring(name, every, make_up) = self else { return None };
        let rule = match every {
            Every::Cron(expression, zone) => ScheduleRule::Cron(((*expression).to_owned(), (*zone).to_owned())),
            Every::Seconds(seconds) => ScheduleRule::EveryMs(seconds * 1_000),
        };
        Some(Schedule { name: (*name).to_owned(), rule, make_up: *make_up })
    }
}

impl<S: State> Route<S> {
    fn filter(&self) -> Option<Filter> {
        let mut filter = self.on.filter()?;
        filter.observe = self.observe;
        filter.condition = self.condition.map(|condition| condition());
        // "No conversation" is no state that the host could look for: the guard alone decides then.
        if !self.states.contains(&S::default().name()) {
            filter.states = self.states.iter().map(|&name| name.to_owned()).collect();
        }
        Some(filter)
    }
}

impl<S: State> Table<S> {
    pub fn describe(&self) -> Manifest {
        let text = &self.text;
        let pairs =
            |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>();
        let commands = text.commands.iter().map(|&(name, key, menus)| help(name, key, menus));
        let mut menu = commands.collect();
        self.add_to_menu(&mut menu);
        let catalogs = pairs(text.catalogs).into_iter();
        Manifest {
            name: text.name.to_owned(),
            version: text.version.to_owned(),
            description: text.description.to_owned(),
            filters: self.routes.iter().filter_map(Route::filter).collect(),
            commands: menu,
            key: text.key.unwrap_or(S::KEY).to_owned(),
            state_version: S::VERSION,
            catalogs: catalogs.map(|(locale, source)| Catalog { locale, source }).collect(),
            methods: text.methods.iter().map(|&method| method.to_owned()).collect(),
            http: text.http.iter().map(|&origin| origin.to_owned()).collect(),
            schedules: self.routes.iter().filter_map(|route| route.on.schedule()).collect(),
            expired: self.routes.iter().any(|route| matches!(route.on, Matcher::Expired)),
            recovers: self.on_error.is_some(),
        }
    }

    /// What the commands of enums add to the menu.
    fn add_to_menu(&self, menu: &mut Vec<CommandHelp>) {
        for route in self.routes {
            let Matcher::Commands(commands) = route.on else { continue };
            let shown = commands.iter().filter(|one| !one.help.is_empty() && !route.observe);
            menu.extend(shown.map(|CommandInfo { names, help: key, menus, .. }| help(names[0], key, menus)));
        }
    }

    /// An event; or the failure of another run of it, which this one is told of.
    pub fn handle(&self, mut invocation: Invocation) -> Result<Handled, Error> {
        let failed = invocation.failed.take();
        let mut ctx = Ctx::<S>::new(invocation)?;
        let handled = match (failed, self.on_error) {
            (None, _) => Next { around: self.around, routes: self.routes }.run(&mut ctx)?,
            (Some(failure), Some(on_error)) => on_error(&mut ctx, Error::told(failure))?,
            (Some(_), None) => Handled::Pass,
        };
        ctx.into_run().finish()?;
        Ok(handled)
    }

    pub fn migrate(&self, old: Stored) -> Result<Stored, Error> {
        if old.version == S::VERSION {
            return state::encode(&OldState::from(old).read::<S>()?);
        }
        let Some(migrate) = self.migrate else {
            let (from, to) = (old.version, S::VERSION);
            let message = format!("no migration from state version {from} to {to}: add a #[migrate] function");
            return Err(Error::permanent(message));
        };
        state::encode(&migrate(old.into())?)
    }
}

fn help(name: &str, key: &str, menus: &[&str]) -> CommandHelp {
    CommandHelp {
        name: name.to_owned(),
        description_key: key.to_owned(),
        menus: menus.iter().map(|&menu| menu.to_owned()).collect(),
    }
}

/// The host has matched the event against the filters. What is left to see here is a timer's or a job's name, and
/// states of which the host knows the name only.
fn walk<S: State>(routes: &[Route<S>], ctx: &mut Ctx<S>) -> Result<Handled, Error> {
    let mut handled = Handled::Pass;
    let mut filter = 0..;
    for route in routes {
        let takes = match route.on {
            Matcher::Timer(name) | Matcher::Recurring(name, ..) => ctx.timer().is_some_and(|timer| timer.name == name),
            Matcher::Job(name) => ctx.as_job().is_some_and(|job| job.name == name),
            Matcher::Expired => matches!(ctx.event(), Event::Expired(_)),
            _ => filter.next().is_some_and(|filter| ctx.matched().contains(&filter)),
        };
        if !takes || route.guard.is_some_and(|is_for| !is_for(ctx.state())) {
            continue;
        }
        ctx.set_start_prefix(if let Matcher::Start(prefix) = route.on { prefix } else { "" });
        if (route.run)(ctx)? == Handled::Done {
            handled = Handled::Done;
            if !route.observe {
                break;
            }
        }
    }
    Ok(handled)
}

impl<P: Plugin> Guest for P {
    fn describe() -> Manifest {
        report_panics();
        <P as Plugin>::describe()
    }

    fn handle(invocation: Invocation) -> Result<Verdict, Failure> {
        report_panics();
        match <P as Plugin>::handle(invocation)? {
            Handled::Done => Ok(Verdict::Done),
            Handled::Pass => Ok(Verdict::Pass),
        }
    }

    fn migrate(old: Stored) -> Result<Stored, String> {
        report_panics();
        <P as Plugin>::migrate(old).map_err(|error| error.to_string())
    }
}

/// Tells the host what a panic says and where it was, since all it would see otherwise is a trap.
fn report_panics() {
    #[cfg(target_arch = "wasm32")]
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic without a text");
        let (file, line, column) = panic.location().map_or(("", 0, 0), |at| (at.file(), at.line(), at.column()));
        crate::host::panicked(message, file, line, column);
    }));
}
