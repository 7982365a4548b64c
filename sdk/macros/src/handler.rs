//! One handler: its attribute, its signature, and the route made of them.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, ItemFn, Lit, LitStr, Pat, Path, Token, Type};

use crate::buttons;
use crate::callback;
use crate::known::KINDS;
use crate::names::{CONTENTS, nearest, snake_case};
use crate::signature::{Context, From, Taken};
use crate::state::parse_time;
use crate::template::{self, Argument, Template};

/// The attributes that make a handler, in the order in which handlers are tried.
const ATTRIBUTES: [&str; 15] = [
    "state", "start", "command", "callback", "button", "content", "message", "text", "album", "on", "timer", "job",
    "cron", "every", "expired",
];

/// One handler attribute on one function.
pub(crate) struct Handler {
    /// What orders it: its attribute's place in [`ATTRIBUTES`].
    pub(crate) rank: usize,
    arguments: Arguments,
    function: Ident,
    /// `#[cfg]`s of the function: they hold for its route too.
    conditions: Vec<Attribute>,
    returns: Span,
    pub(crate) context: Context,
    taken: Vec<Taken>,
    doc: Option<String>,
}

impl Handler {
    /// Takes the handler attributes off a function. None there: an ordinary function.
    pub(crate) fn take(function: &mut ItemFn) -> syn::Result<Vec<Self>> {
        let mut marks = Vec::new();
        let mut kept = Vec::new();
        for attr in std::mem::take(&mut function.attrs) {
            match attr.path().get_ident().map(Ident::to_string) {
                Some(name) if ATTRIBUTES.contains(&name.as_str()) => marks.push((name, attr)),
                Some(name) if name != "test" && meant(&name).is_some() => {
                    let meant = meant(&name).unwrap_or_default();
                    let message = format!("unknown attribute `{name}`: did you mean `{meant}`?");
                    return Err(syn::Error::new_spanned(attr.path(), message));
                }
                _ => kept.push(attr),
            }
        }
        function.attrs = kept;
        marks.into_iter().map(|(name, attr)| Self::new(&name, &attr, function)).collect()
    }

    fn new(name: &str, attr: &Attribute, function: &ItemFn) -> syn::Result<Self> {
        let mut inputs = function.sig.inputs.iter();
        let context = Context::of(function, inputs.next())?;
        let arguments = Arguments::parse_for(name, attr)?;
        let taken = inputs.map(|input| Taken::new(input, &arguments)).collect::<syn::Result<Vec<_>>>()?;
        for argument in arguments.template.iter().flat_map(|template| &template.arguments) {
            if !taken.iter().any(|taken| taken.is_argument(&argument.name)) {
                let name = &argument.name;
                let message = format!("the handler does not take `{{{name}}}`: add a parameter `{name}: …`");
                return Err(syn::Error::new(attr.path().span(), message));
            }
        }
        if let Some(data) = &arguments.data
            && !taken.iter().any(|taken| matches!(taken.from, From::Data))
        {
            let message = format!(
                "take the button's data, too: `fn {}(ctx: &mut Ctx, data: {})`",
                function.sig.ident,
                quote!(#data)
            );
            return Err(syn::Error::new(function.sig.paren_token.span.join(), message));
        }
        let conditions = function.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
        Ok(Self {
            rank: ATTRIBUTES.iter().position(|&known| known == name).expect("only known attributes are taken"),
            arguments,
            function: function.sig.ident.clone(),
            conditions,
            returns: function.sig.output.span(),
            context,
            taken,
            doc: first_doc_line(&function.attrs),
        })
    }

    /// Among those of one kind: the longest beginning of a link's payload first.
    pub(crate) fn order(&self) -> (usize, std::cmp::Reverse<usize>) {
        let is_start = ATTRIBUTES[self.rank] == "start";
        let length = self.arguments.names.first().filter(|_| is_start).map_or(0, |prefix| prefix.value().len());
        (self.rank, std::cmp::Reverse(length))
    }

    /// Names, help keys and menus of the commands. Without a help text a command is in none.
    pub(crate) fn menu(&self) -> Vec<(String, String, Vec<String>)> {
        let help = self.arguments.help.as_ref().map(LitStr::value).or_else(|| self.doc.clone());
        match help {
            Some(help) if self.is_command() && !self.arguments.observe && !self.arguments.hidden => {
                let menus: Vec<String> = self.arguments.menus.iter().map(LitStr::value).collect();
                self.arguments.names.iter().map(|name| (name.value(), help.clone(), menus.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Commands and where they stand, with the text of their state: to find those taken twice.
    pub(crate) fn commands(&self) -> impl Iterator<Item = ((String, String), Span)> + '_ {
        let state = self.arguments.state.as_ref().map(|state| quote!(#state).to_string()).unwrap_or_default();
        let Arguments { observe, filter, check, .. } = &self.arguments;
        let always = !observe && filter.is_none() && check.is_none();
        let taken = self.is_command() && always && self.conditions.is_empty();
        let names = self.arguments.names.iter().filter(move |_| taken);
        names.map(move |name| ((name.value(), state.clone()), name.span()))
    }

    pub(crate) fn needs_state(&self) -> Option<Span> {
        self.arguments.state.as_ref().filter(|_| self.context.state.is_none()).map(Spanned::span)
    }

    pub(crate) fn route(&self, state: &Type) -> syn::Result<TokenStream> {
        let Arguments { names, state: pattern, observe, commands, .. } = &self.arguments;
        let on = match ATTRIBUTES[self.rank] {
            "command" => match commands {
                Some(commands) => quote!(Commands(<#commands as ::botyard_sdk::Command>::COMMANDS)),
                None => quote!(Command(&[#(#names),*])),
            },
            "start" => {
                let prefix = names.first().map_or_else(String::new, LitStr::value);
                quote!(Start(#prefix))
            }
            "message" => quote!(Kinds(&["message"])),
            "callback" => {
                let prefix = names.first().map_or_else(String::new, LitStr::value);
                match &self.arguments.data {
                    Some(data) => quote!(Callback(<#data as ::botyard_sdk::CallbackData>::PREFIX)),
                    None => quote!(Callback(#prefix)),
                }
            }
            "button" => {
                buttons::check(names)?;
                quote!(Button(&[#(#names),*]))
            }
            "text" | "state" => match names.first() {
                Some(regex) => quote!(Text(::core::option::Option::Some(#regex))),
                None => quote!(Text(::core::option::Option::None)),
            },
            "content" => quote!(Kinds(&["message"])),
            "album" => match names.first() {
                Some(regex) => quote!(Album(::core::option::Option::Some(#regex))),
                None => quote!(Album(::core::option::Option::None)),
            },
            "on" => quote!(Kinds(&[#(#names),*])),
            "timer" => quote!(Timer(#(#names)*)),
            "job" => quote!(Job(#(#names)*)),
            "expired" => quote!(Expired),
            recurring => self.recurring(recurring == "cron")?,
        };
        let (states, guard) = match pattern {
            None => (Vec::new(), quote!(::core::option::Option::None)),
            Some(pattern) => {
                let matched = whole_variants(pattern);
                let guard = quote!(::core::option::Option::Some(|state: &#state| {
                    #[allow(unused_variables)]
                    { ::core::matches!(state, #matched) }
                }));
                (state_names(pattern)?, guard)
            }
        };
        let condition = self.condition();
        let (conditions, run) = (&self.conditions, self.run());
        Ok(quote! {
            #(#conditions)*
            ::botyard_sdk::__private::Route {
                on: ::botyard_sdk::__private::Matcher::#on,
                states: &[#(#states),*],
                guard: #guard,
                condition: #condition,
                observe: #observe,
                run: |ctx| #run,
            }
        })
    }

    /// What the host is to evaluate. What the attribute itself says is written here, so that only plugins with a filter
    /// have the code that puts one together.
    fn condition(&self) -> TokenStream {
        let Arguments { names, filter, .. } = &self.arguments;
        let own = match ATTRIBUTES[self.rank] {
            "content" => Some(("has", quote!(has_one_of(&[#(#names),*])))),
            "start" => {
                let prefix = names.first().map_or_else(String::new, LitStr::value);
                Some(("args_begin", quote!(args_begin(#prefix))))
            }
            _ => None,
        };
        match (own, filter) {
            (None, None) => quote!(::core::option::Option::None),
            // Neither fields nor payloads have anything in them that would have to be escaped.
            (Some((test, _)), None) => {
                let values: Vec<_> = names.iter().map(|name| format!("\"{}\"", name.value())).collect();
                let values = if values.is_empty() { "\"\"".to_owned() } else { values.join(", ") };
                let text = format!("{test}({values})");
                quote!(::core::option::Option::Some(|| ::std::string::String::from(#text)))
            }
            (own, Some(filter)) => {
                let own = own.map(|(_, own)| quote!(::botyard_sdk::filter::#own &));
                // The names of filters are found without being imported; those of the module are, too.
                quote_spanned!(filter.span()=> ::core::option::Option::Some(|| {
                    #[allow(unused_imports)]
                    use ::botyard_sdk::filter::*;
                    let filter: ::botyard_sdk::filter::Filter = #filter;
                    (#own filter).into_text()
                }))
            }
        }
    }

    /// The call, with all that the handler takes.
    fn run(&self) -> TokenStream {
        let (function, taken) = (&self.function, &self.taken);
        let values = (0..taken.len()).map(|at| format_ident!("taken_{at}")).collect::<Vec<_>>();
        let call = quote_spanned!(self.returns=> ::botyard_sdk::Returned::returned(#function(ctx #(, #values)*)));
        if taken.is_empty() && self.arguments.check.is_none() {
            return call;
        }
        let check = self.arguments.check.as_ref().map(|check| {
            quote_spanned! {check.span()=>
                let check = #check;
                #[allow(clippy::redundant_closure_call)]
                if !::botyard_sdk::__private::Checked::checked(check(&*ctx))? {
                    return ::core::result::Result::Ok(::botyard_sdk::Handled::Pass);
                }
            }
        });
        let (state, arguments) = (self.of_state(&values), self.of_command(&values));
        let pressed = taken.iter().zip(&values).filter(|(taken, _)| matches!(taken.from, From::Data));
        // Data that is none of the type's values is that of another version: for nobody here.
        let pressed = pressed.map(|(Taken { ty, .. }, value)| {
            quote_spanned! {ty.span()=>
                let ::core::option::Option::Some(#value) = ctx.pressed::<#ty>() else {
                    return ::core::result::Result::Ok(::botyard_sdk::Handled::Pass);
                };
            }
        });
        let others = taken.iter().zip(&values).filter(|(taken, _)| matches!(taken.from, From::Event));
        let others = others.map(|(Taken { ty, .. }, value)| {
            quote_spanned! {ty.span()=>
                let #value = match <#ty as ::botyard_sdk::extract::Extract>::extract(&*ctx) {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(rejected) => return rejected.verdict(),
                };
            }
        });
        quote!({ #(#pressed)* #state #check #(#others)* #arguments #call })
    }

    /// The parts of the state that the attribute's pattern names.
    fn of_state(&self, values: &[Ident]) -> Option<TokenStream> {
        let pattern = self.arguments.state.as_ref()?;
        let bound = self.taken.iter().zip(values).filter_map(|(taken, value)| match &taken.from {
            From::State(name) => Some((name, value)),
            _ => None,
        });
        let (names, values): (Vec<_>, Vec<_>) = bound.unzip();
        if names.is_empty() {
            return None;
        }
        let pattern = whole_variants(pattern);
        Some(quote! {
            #[allow(unused_variables)]
            let (#(#values,)*) = match ctx.state() {
                #pattern => (#(::core::clone::Clone::clone(#names),)*),
                #[allow(unreachable_patterns)]
                _ => return ::core::result::Result::Ok(::botyard_sdk::Handled::Pass),
            };
        })
    }

    /// The arguments of the command. They come last: what does not fit is answered only if all else does.
    fn of_command(&self, values: &[Ident]) -> Option<TokenStream> {
        let template = self.arguments.template.as_ref()?;
        let readers = template.arguments.iter().map(Argument::reader);
        let of = |argument: &Argument| {
            let taken = self.taken.iter().zip(values).find(|(taken, _)| taken.is_argument(&argument.name));
            taken.map(|(taken, value)| (&taken.ty, value))
        };
        let (types, values): (Vec<_>, Vec<_>) = template.arguments.iter().filter_map(of).unzip();
        let usage = template.usage();
        let misfit = if self.arguments.observe {
            quote!(::core::result::Result::Ok(::botyard_sdk::Handled::Pass))
        } else {
            quote!(::botyard_sdk::__private::misfit(&*ctx, #usage))
        };
        Some(quote! {
            let read = |args: &str| -> ::core::option::Option<(#(#types,)*)> {
                let mut words = ::botyard_sdk::__private::Words::new(args);
                let read = (#(words.#readers()?,)*);
                words.end()?;
                ::core::option::Option::Some(read)
            };
            let ::core::option::Option::Some((#(#values,)*)) = read(ctx.args()) else { return #misfit };
        })
    }

    /// The timer that the host keeps for this handler; named after it.
    fn recurring(&self, is_cron: bool) -> syn::Result<TokenStream> {
        let Arguments { names, zone, missed, .. } = &self.arguments;
        let when = names.first().expect("checked with the arguments");
        let every = if is_cron {
            let zone = zone.as_ref().map_or_else(|| "UTC".to_owned(), LitStr::value);
            quote!(Cron(#when, #zone))
        } else {
            let seconds = parse_time(when)?;
            quote!(Seconds(#seconds))
        };
        let name = self.function.to_string();
        let make_up = missed.as_ref().is_none_or(|missed| missed.value() == "once");
        Ok(quote!(Recurring(#name, ::botyard_sdk::__private::Every::#every, #make_up)))
    }

    fn is_command(&self) -> bool {
        ATTRIBUTES[self.rank] == "command"
    }
}

/// The attribute that a misspelt one was to be.
fn meant(name: &str) -> Option<&'static str> {
    nearest(name, &ATTRIBUTES).or_else(|| nearest(name, &["middleware", "on_error", "migrate"]))
}

/// Where a word stands for a flag, and not for an enum.
fn is_flag(path: &Path) -> bool {
    ["observe", "hidden"].iter().any(|flag| path.is_ident(flag))
}

/// Whether nothing follows the word that comes next.
fn is_alone(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.parse::<Ident>().is_ok() && ahead.is_empty()
}

/// What stands between the parentheses of a handler attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    names: Vec<LitStr>,
    /// Of a command: what follows its name.
    template: Option<Template>,
    /// An enum of commands.
    commands: Option<Path>,
    help: Option<LitStr>,
    menus: Vec<LitStr>,
    hidden: bool,
    filter: Option<Expr>,
    check: Option<Expr>,
    pub(crate) state: Option<Pat>,
    observe: bool,
    zone: Option<LitStr>,
    missed: Option<LitStr>,
    /// The type of a pressed button's data.
    pub(crate) data: Option<Type>,
}

impl Arguments {
    /// Whether the command has an argument of this name.
    pub(crate) fn has_argument(&self, name: &str) -> bool {
        self.template.as_ref().is_some_and(|template| template.arguments.iter().any(|argument| argument.name == name))
    }

    fn parse_for(attribute: &str, attr: &Attribute) -> syn::Result<Self> {
        let mut arguments = match &attr.meta {
            syn::Meta::Path(_) => Self::default(),
            syn::Meta::NameValue(_) => {
                let message = format!("write `#[{attribute}(…)]`");
                return Err(syn::Error::new_spanned(&attr.meta, message));
            }
            syn::Meta::List(list) if attribute == "state" => list.parse_args_with(Self::parse_state)?,
            syn::Meta::List(list) if attribute == "callback" => list.parse_args_with(Self::parse_callback)?,
            syn::Meta::List(list) if attribute == "command" => list.parse_args_with(Self::parse_command)?,
            syn::Meta::List(list) => list.parse_args()?,
        };
        if attribute == "command" {
            arguments.template = Template::take(&mut arguments.names)?;
        }
        arguments.check(attribute, attr)?;
        Ok(arguments)
    }

    /// `#[state(…)]` takes a pattern first.
    fn parse_state(input: ParseStream<'_>) -> syn::Result<Self> {
        let state = Pat::parse_multi_with_leading_vert(input)?;
        if input.parse::<Option<Token![,]>>()?.is_none() {
            return Ok(Self { state: Some(state), ..Self::default() });
        }
        Ok(Self { state: Some(state), ..Self::parse(input)? })
    }

    /// `#[callback(…)]` may take a type first.
    fn parse_callback(input: ParseStream<'_>) -> syn::Result<Self> {
        let data = callback::parse_type(input)?;
        Ok(Self { data, ..Self::parse(input)? })
    }

    /// `#[command(…)]` may take an enum first.
    fn parse_command(input: ParseStream<'_>) -> syn::Result<Self> {
        let is_path = input.peek(Ident) && (input.peek2(Token![::]) || input.peek2(Token![,]) || is_alone(input));
        if !is_path || input.fork().parse::<Path>().is_ok_and(|path| is_flag(&path)) {
            return Self::parse(input);
        }
        let commands = Some(input.parse()?);
        if input.parse::<Option<Token![,]>>()?.is_none() {
            return Ok(Self { commands, ..Self::default() });
        }
        Ok(Self { commands, ..Self::parse(input)? })
    }

    fn check(&self, attribute: &str, attr: &Attribute) -> syn::Result<()> {
        let count = self.names.len();
        let belongs_to_plugin = ["timer", "job", "cron", "every", "expired"].contains(&attribute);
        let cure = match attribute {
            "command"
                if self.commands.is_some()
                    && (count > 0 || self.hidden || self.help.is_some() || !self.menus.is_empty()) =>
            {
                "the enum says it all: names, help, menus and what is hidden stand at its variants"
            }
            "command" if count == 0 && self.commands.is_none() => "name the command: `#[command(\"start\")]`",
            "callback" if count > 0 && self.data.is_some() => "a type or a prefix: the type has its own",
            "start" if count > 1 => "one beginning: `#[start(\"ref-\")]`",
            "message" if count > 0 => "a message is chosen by a filter: `#[message(filter = private() & photo())]`",
            "callback" if count > 1 => "one prefix: `#[callback(\"size:\")]`",
            "album" if count > 1 => "one regular expression: `#[album(\"^sell\")]`",
            "text" if count > 1 => "one regular expression: `#[text(\"^hi\")]`",
            "button" if count == 0 => {
                "name the text of the button by its key in the catalogs: `#[button(\"menu-order\")]`"
            }
            "content" if count == 0 => "name what the message is made of: `#[content(\"photo\")]`",
            "on" if count == 0 => "name the kind of update: `#[on(\"edited_message\")]`",
            _ if belongs_to_plugin && self.filter.is_some() => {
                "only updates can be filtered; what else there is, ask in the handler"
            }
            _ if belongs_to_plugin && self.check.is_some() => {
                "only updates can be checked; what else there is, ask in the handler"
            }
            "timer" if count != 1 => "name the timer: `#[timer(\"reminder\")]`",
            "timer" if self.observe || self.state.is_some() => "a timer's handler takes nothing but the name",
            "job" if count != 1 => "name the job: `#[job(\"convert\")]`",
            "job" if self.observe || self.state.is_some() => "a job's handler takes nothing but the name",
            "cron" if count != 1 => "give the times and their zone: `#[cron(\"0 9 * * *\", tz = \"Asia/Tashkent\")]`",
            "every" if count != 1 => "give the time between: `#[every(\"15m\")]`",
            "every" if self.zone.is_some() => "an interval has no time zone",
            "cron" | "every" if self.observe || self.state.is_some() => {
                "a recurring event belongs to no conversation: it has no state, and nobody else to take it"
            }
            "expired" if count > 0 || self.observe => "`#[expired]`, or `#[expired(state = Form::Name)]`",
            other if !["cron", "every"].contains(&other) && (self.zone.is_some() || self.missed.is_some()) => {
                "only `cron` and `every` take `tz` and `missed`"
            }
            "state" if self.state.is_none() => "name the state: `#[state(Form::Name)]`",
            "state" if count > 0 => "a state and a regular expression: `#[text(\"^hi\", state = Form::Name)]`",
            other if other != "command" && (self.help.is_some() || !self.menus.is_empty()) => {
                "only commands take `help` and `menu`"
            }
            other if other != "command" && self.hidden => "only commands are in a menu, from which `hidden` takes them",
            _ => "",
        };
        if !cure.is_empty() {
            return Err(syn::Error::new_spanned(&attr.meta, cure));
        }
        if let Some(missed) = self.missed.as_ref().filter(|missed| !["once", "skip"].contains(&missed.value().as_str()))
        {
            let message = "one of \"once\" (one event for all times that were missed) and \"skip\"";
            return Err(syn::Error::new(missed.span(), message));
        }
        self.names.iter().try_for_each(|name| check_name(attribute, name))
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            if input.peek(LitStr) {
                arguments.names.push(input.parse()?);
            } else {
                let name: Ident = input.parse()?;
                match name.to_string().as_str() {
                    "observe" => arguments.observe = true,
                    "hidden" => arguments.hidden = true,
                    "filter" => {
                        input.parse::<Token![=]>()?;
                        arguments.filter = Some(input.parse()?);
                    }
                    "check" => {
                        input.parse::<Token![=]>()?;
                        arguments.check = Some(input.parse()?);
                    }
                    "help" => {
                        input.parse::<Token![=]>()?;
                        arguments.help = Some(input.parse()?);
                    }
                    "menu" => {
                        input.parse::<Token![=]>()?;
                        arguments.menus = buttons::menus(input)?;
                    }
                    "state" => {
                        input.parse::<Token![=]>()?;
                        arguments.state = Some(Pat::parse_multi(input)?);
                    }
                    "tz" => {
                        input.parse::<Token![=]>()?;
                        arguments.zone = Some(input.parse()?);
                    }
                    "missed" => {
                        input.parse::<Token![=]>()?;
                        arguments.missed = Some(input.parse()?);
                    }
                    other => {
                        let known = "`filter`, `check`, `state`, `observe`, `help`, `menu`, `hidden`, `tz`, `missed`";
                        let message = format!("unknown argument `{other}`: one of {known}");
                        return Err(syn::Error::new(name.span(), message));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn check_name(attribute: &str, literal: &LitStr) -> syn::Result<()> {
    let name = literal.value();
    let fail = |message: String| Err(syn::Error::new(literal.span(), message));
    match attribute {
        "command" => template::check_name(literal),
        "start" if name.len() > 64 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') => {
            fail(format!("no link can bring `{name}`: at most 64 of a-z, A-Z, 0-9, _ and -"))
        }
        "cron" if !name.starts_with('@') && name.split_ascii_whitespace().count() != 5 => {
            fail("five fields: minute, hour, day of the month, month, day of the week".to_owned())
        }
        "callback" if name.len() > 64 => fail("callback data has 64 bytes at most".to_owned()),
        "on" => match nearest(&name, &KINDS).filter(|_| !KINDS.contains(&name.as_str())) {
            Some(meant) => fail(format!("unknown kind of update `{name}`: did you mean `{meant}`?")),
            None => Ok(()),
        },
        "content" if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') => {
            fail(format!("`{name}` can't be a field of a message: a-z, 0-9 and _"))
        }
        "content" => match nearest(&name, &CONTENTS).filter(|_| !CONTENTS.contains(&name.as_str())) {
            Some(meant) => fail(format!("unknown content `{name}`: did you mean `{meant}`?")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// `Form::Age` stands for all of that variant, whatever data it has.
fn whole_variants(pattern: &Pat) -> TokenStream {
    match pattern {
        Pat::Path(path) => quote!(#path { .. }),
        Pat::Or(or) => {
            let cases = or.cases.iter().map(whole_variants);
            quote!(#(#cases)|*)
        }
        other => quote!(#other),
    }
}

/// The names of the states that a pattern can match.
fn state_names(pattern: &Pat) -> syn::Result<Vec<String>> {
    let path = match pattern {
        Pat::Path(path) => &path.path,
        Pat::Struct(of) => &of.path,
        Pat::TupleStruct(of) => &of.path,
        Pat::Or(or) => return Ok(or.cases.iter().map(state_names).collect::<Result<Vec<_>, _>>()?.concat()),
        other => return Err(syn::Error::new_spanned(other, "write the state with its enum: `Form::Name`")),
    };
    let variant = path.segments.last().expect("a path has a segment");
    Ok(vec![snake_case(&variant.ident.to_string())])
}

/// The first line of a doc comment, without the full stop that a menu does not want.
pub(crate) fn first_doc_line(attrs: &[Attribute]) -> Option<String> {
    let doc = attrs.iter().filter(|attr| attr.path().is_ident("doc")).find_map(|attr| match &attr.meta {
        syn::Meta::NameValue(doc) => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    })?;
    let line = doc.trim().trim_end_matches('.');
    (!line.is_empty()).then(|| line.to_owned())
}
