//! One handler: its attribute, its signature, and the route made of them.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, LitStr, Pat, PathArguments, Token, Type,
};

use crate::buttons;
use crate::known::KINDS;
use crate::names::{CONTENTS, nearest, snake_case};
use crate::state::parse_time;

/// The attributes that make a handler, in the order in which handlers are tried.
const ATTRIBUTES: [&str; 12] =
    ["state", "command", "callback", "button", "content", "text", "album", "on", "timer", "cron", "every", "expired"];

/// One handler attribute on one function.
pub(crate) struct Handler {
    /// What orders it: its attribute's place in [`ATTRIBUTES`].
    pub(crate) rank: usize,
    arguments: Arguments,
    function: Ident,
    /// `#[cfg]`s of the function: they hold for its route too.
    conditions: Vec<Attribute>,
    returns: Span,
    /// The type of `Ctx<…>`'s state, if it names one.
    pub(crate) state_type: Option<Type>,
    pub(crate) context: Type,
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
                Some(name) if name != "test" && nearest(&name, &ATTRIBUTES).is_some() => {
                    let meant = nearest(&name, &ATTRIBUTES).unwrap_or_default();
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
        let context = context_type(function)?;
        let conditions = function.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
        Ok(Self {
            rank: ATTRIBUTES.iter().position(|&known| known == name).expect("only known attributes are taken"),
            arguments: Arguments::parse_for(name, attr)?,
            function: function.sig.ident.clone(),
            conditions,
            returns: function.sig.output.span(),
            state_type: state_type(&context),
            context,
            doc: first_doc_line(&function.attrs),
        })
    }

    /// Names, help keys and menus of the commands. Without a help text a command is in none.
    pub(crate) fn menu(&self) -> Vec<(String, String, Vec<String>)> {
        let help = self.arguments.help.as_ref().map(LitStr::value).or_else(|| self.doc.clone());
        match help {
            Some(help) if self.is_command() && !self.arguments.observe => {
                let menus: Vec<String> = self.arguments.menus.iter().map(LitStr::value).collect();
                self.arguments.names.iter().map(|name| (name.value(), help.clone(), menus.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Commands and where they stand, with the text of their state: to find those taken twice.
    pub(crate) fn commands(&self) -> impl Iterator<Item = ((String, String), Span)> + '_ {
        let state = self.arguments.state.as_ref().map(|state| quote!(#state).to_string()).unwrap_or_default();
        let taken = self.is_command() && !self.arguments.observe && self.conditions.is_empty();
        let names = self.arguments.names.iter().filter(move |_| taken);
        names.map(move |name| ((name.value(), state.clone()), name.span()))
    }

    pub(crate) fn needs_state(&self) -> Option<Span> {
        self.arguments.state.as_ref().filter(|_| self.state_type.is_none()).map(Spanned::span)
    }

    pub(crate) fn route(&self, state: &Type) -> syn::Result<TokenStream> {
        let Arguments { names, state: pattern, observe, .. } = &self.arguments;
        let on = match ATTRIBUTES[self.rank] {
            "command" => quote!(Command(&[#(#names),*])),
            "callback" => {
                let prefix = names.first().map_or_else(String::new, LitStr::value);
                quote!(Callback(#prefix))
            }
            "button" => {
                buttons::check(names)?;
                quote!(Button(&[#(#names),*]))
            }
            "text" | "state" => match names.first() {
                Some(regex) => quote!(Text(::core::option::Option::Some(#regex))),
                None => quote!(Text(::core::option::Option::None)),
            },
            "content" => quote!(Content(|run| run.holds(&[#(#names),*]))),
            "album" => match names.first() {
                Some(regex) => quote!(Album(::core::option::Option::Some(#regex))),
                None => quote!(Album(::core::option::Option::None)),
            },
            "on" => quote!(Kinds(&[#(#names),*])),
            "timer" => quote!(Timer(#(#names)*)),
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
        let (function, conditions) = (&self.function, &self.conditions);
        let run = quote_spanned!(self.returns=> ::botyard_sdk::Returned::returned(#function(ctx)));
        Ok(quote! {
            #(#conditions)*
            ::botyard_sdk::__private::Route {
                on: ::botyard_sdk::__private::Matcher::#on,
                states: &[#(#states),*],
                guard: #guard,
                observe: #observe,
                run: |ctx| #run,
            }
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

/// What stands between the parentheses of a handler attribute.
#[derive(Default)]
struct Arguments {
    names: Vec<LitStr>,
    help: Option<LitStr>,
    menus: Vec<LitStr>,
    state: Option<Pat>,
    observe: bool,
    zone: Option<LitStr>,
    missed: Option<LitStr>,
}

impl Arguments {
    fn parse_for(attribute: &str, attr: &Attribute) -> syn::Result<Self> {
        let arguments = match &attr.meta {
            syn::Meta::Path(_) => Self::default(),
            syn::Meta::NameValue(_) => {
                let message = format!("write `#[{attribute}(…)]`");
                return Err(syn::Error::new_spanned(&attr.meta, message));
            }
            syn::Meta::List(list) if attribute == "state" => list.parse_args_with(Self::parse_state)?,
            syn::Meta::List(list) => list.parse_args()?,
        };
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

    fn check(&self, attribute: &str, attr: &Attribute) -> syn::Result<()> {
        let count = self.names.len();
        let cure = match attribute {
            "command" if count == 0 => "name the command: `#[command(\"start\")]`",
            "callback" if count > 1 => "one prefix: `#[callback(\"size:\")]`",
            "album" if count > 1 => "one regular expression: `#[album(\"^sell\")]`",
            "text" if count > 1 => "one regular expression: `#[text(\"^hi\")]`",
            "button" if count == 0 => {
                "name the text of the button by its key in the catalogs: `#[button(\"menu.order\")]`"
            }
            "content" if count == 0 => "name what the message is made of: `#[content(\"photo\")]`",
            "on" if count == 0 => "name the kind of update: `#[on(\"edited_message\")]`",
            "timer" if count != 1 => "name the timer: `#[timer(\"reminder\")]`",
            "timer" if self.observe || self.state.is_some() => "a timer's handler takes nothing but the name",
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
                        let known = "`help`, `menu`, `state`, `observe`, `tz`, `missed`";
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
        "command" if name.starts_with('/') => {
            fail(format!("write the command without its slash: `{}`", name.trim_start_matches('/')))
        }
        "command" => {
            let letters = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            if letters && (1..=32).contains(&name.len()) {
                return Ok(());
            }
            fail(format!("`{name}` can't be a command: 1 to 32 of a-z, 0-9 and _"))
        }
        "cron" if !name.starts_with('@') && name.split_ascii_whitespace().count() != 5 => {
            fail("five fields: minute, hour, day of the month, month, day of the week".to_owned())
        }
        "callback" if name.len() > 64 => fail("callback data has 64 bytes at most".to_owned()),
        "on" => match nearest(&name, &KINDS).filter(|_| !KINDS.contains(&name.as_str())) {
            Some(meant) => fail(format!("unknown kind of update `{name}`: did you mean `{meant}`?")),
            None => Ok(()),
        },
        "content" => match nearest(&name, &CONTENTS).filter(|_| !CONTENTS.contains(&name.as_str())) {
            Some(meant) => fail(format!("unknown content `{name}`: did you mean `{meant}`?")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The `Ctx` that the function takes by `&mut`.
fn context_type(function: &ItemFn) -> syn::Result<Type> {
    const CURE: &str = "a handler takes `ctx: &mut Ctx`, or `ctx: &mut Ctx<YourState>`, and nothing else";
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        let message = "a handler is no `async fn`: the host lets others run while it waits";
        return Err(syn::Error::new_spanned(keyword, message));
    }
    if !signature.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&signature.generics, "a handler can't be generic"));
    }
    let mut inputs = signature.inputs.iter();
    let (Some(FnArg::Typed(first)), None) = (inputs.next(), inputs.next()) else {
        return Err(syn::Error::new(signature.paren_token.span.join(), CURE));
    };
    match &*first.ty {
        Type::Reference(reference) if reference.mutability.is_some() && names_ctx(&reference.elem) => {
            Ok((*reference.elem).clone())
        }
        other => Err(syn::Error::new_spanned(other, CURE)),
    }
}

fn names_ctx(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ctx"))
}

fn state_type(context: &Type) -> Option<Type> {
    let Type::Path(path) = context else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
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
fn first_doc_line(attrs: &[Attribute]) -> Option<String> {
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
