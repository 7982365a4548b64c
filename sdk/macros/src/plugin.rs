//! `#[plugin] mod`: collects the handlers and writes the plugin's table and exports.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, Item, ItemMod, LitStr, Path, Token, Type, bracketed, parse_quote};

use crate::catalogs;
use crate::handler::Handler;
use crate::known::METHODS;
use crate::names::{NO_KEY, nearest};
use crate::signature::{Beside, Context};
use crate::state::parse_key;

pub(crate) fn expand(arguments: TokenStream, module: TokenStream) -> syn::Result<TokenStream> {
    let settings = Settings::parse(arguments)?;
    let mut module: ItemMod = syn::parse2(module)?;
    let Some((_, items)) = &mut module.content else {
        let message = "put the handlers between braces: `mod shop { … }`";
        return Err(syn::Error::new_spanned(&module, message));
    };
    let mut handlers = Vec::new();
    let (mut migration, mut on_error, mut around) = (None, None, Vec::new());
    for item in items.iter_mut() {
        match item {
            Item::Fn(function) => {
                if let Some(at) = function.attrs.iter().position(|attr| attr.path().is_ident("migrate")) {
                    let mark = function.attrs.remove(at);
                    if migration.replace(function.sig.ident.clone()).is_some() {
                        return Err(syn::Error::new_spanned(
                            mark,
                            "one function migrates: match on `old.version` in it",
                        ));
                    }
                }
                if take_mark(function, "middleware") {
                    around.push(Beside::new(function, MIDDLEWARE)?);
                }
                if take_mark(function, "on_error") && on_error.replace(Beside::new(function, ON_ERROR)?).is_some() {
                    let message = "one function hears of errors: tell them apart in it";
                    return Err(syn::Error::new_spanned(&function.sig, message));
                }
                handlers.extend(Handler::take(function)?);
            }
            Item::Struct(item) => point_to_serde(&mut item.attrs),
            Item::Enum(item) => point_to_serde(&mut item.attrs),
            _ => {}
        }
    }
    if handlers.is_empty() {
        let message = "a plugin needs a handler: `#[text] fn echo(ctx: &mut Ctx) { … }`";
        return Err(syn::Error::new_spanned(&module.ident, message));
    }
    // Stable: within one kind they stay as they are in the source.
    handlers.sort_by_key(Handler::order);
    check_commands(&handlers)?;
    let beside: Vec<_> = around.iter().chain(&on_error).map(|beside| &beside.context).collect();
    let state = state_of(&handlers, &beside)?;
    if settings.key.as_deref() == Some(NO_KEY)
        && let Some(handler) = handlers.iter().find(|handler| handler.context.state.is_some())
    {
        let message = "with the key `none` there are no conversations, and no states: take `&mut Ctx` here";
        return Err(syn::Error::new_spanned(&handler.context.ty, message));
    }
    let beside = fields(&around, on_error.as_ref());
    let implementation = implement(&settings, &handlers, &state, migration.as_ref(), &beside)?;
    items.insert(
        0,
        parse_quote!(
            #[allow(unused_imports)]
            use super::*;
        ),
    );
    items.push(Item::Verbatim(implementation));
    Ok(module.into_token_stream())
}

const MIDDLEWARE: &str = "a middleware is `fn(ctx: &mut Ctx, next: Next) -> Result<Handled, Error>`";
const ON_ERROR: &str = "what hears of errors is `fn(ctx: &mut Ctx, error: Error) -> Handled`";

/// Takes a mark off a function, if it has it.
fn take_mark(function: &mut syn::ItemFn, mark: &str) -> bool {
    let at = function.attrs.iter().position(|attr| attr.path().is_ident(mark));
    at.map(|at| function.attrs.remove(at)).is_some()
}

/// What stands around the handlers, in the plugin's table.
fn fields(around: &[Beside], on_error: Option<&Beside>) -> TokenStream {
    let around = around.iter().map(|Beside { function, .. }| {
        quote_spanned!(function.span()=> |ctx, next| ::botyard_sdk::Returned::returned(#function(ctx, next)))
    });
    let on_error = match on_error {
        Some(Beside { function, .. }) => quote_spanned! {function.span()=>
            ::core::option::Option::Some(|ctx, error| ::botyard_sdk::Returned::returned(#function(ctx, error)))
        },
        None => quote!(::core::option::Option::None),
    };
    quote!(around: &[#(#around),*], on_error: #on_error,)
}

fn implement(
    settings: &Settings,
    handlers: &[Handler],
    state: &Type,
    migration: Option<&Ident>,
    beside: &TokenStream,
) -> syn::Result<TokenStream> {
    // First, since it says where the catalogs are.
    let text = settings.text(handlers)?;
    let routes = handlers.iter().map(|handler| handler.route(state)).collect::<syn::Result<Vec<_>>>()?;
    let migrate = match migration {
        Some(function) => quote!(::core::option::Option::Some(#function)),
        None => quote!(::core::option::Option::None),
    };
    // The trait's functions name no state type, so that it may stay private to the module.
    Ok(quote! {
        /// The plugin, for the host and for tests.
        #[derive(Debug)]
        pub struct Plugin;

        impl Plugin {
            const TABLE: ::botyard_sdk::__private::Table<#state> = ::botyard_sdk::__private::Table {
                text: #text,
                routes: &[#(#routes),*],
                #beside
                migrate: #migrate,
            };
        }

        impl ::botyard_sdk::Plugin for Plugin {
            fn describe() -> ::botyard_sdk::__private::Manifest {
                Self::TABLE.describe()
            }
            fn handle(
                invocation: ::botyard_sdk::__private::Invocation,
            ) -> ::core::result::Result<::botyard_sdk::Handled, ::botyard_sdk::Error> {
                Self::TABLE.handle(invocation)
            }
            fn migrate(
                old: ::botyard_sdk::__private::Stored,
            ) -> ::core::result::Result<::botyard_sdk::__private::Stored, ::botyard_sdk::Error> {
                Self::TABLE.migrate(old)
            }
        }

        // Without exports nothing would use the handlers, and the compiler would say so.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> ::botyard_sdk::__private::Manifest = <Plugin as ::botyard_sdk::Plugin>::describe;

        #[cfg(target_arch = "wasm32")]
        ::botyard_sdk::__private::export_plugin!(Plugin with_types_in ::botyard_sdk::__private::bindings);
    })
}

/// The arguments of `#[plugin(…)]`.
#[derive(Default)]
struct Settings {
    name: Option<LitStr>,
    version: Option<LitStr>,
    description: Option<LitStr>,
    key: Option<String>,
    catalogs: Option<LitStr>,
    methods: Option<Vec<MethodName>>,
    http: Vec<LitStr>,
}

impl Settings {
    fn parse(arguments: TokenStream) -> syn::Result<Self> {
        let mut settings = Self::default();
        let parser = syn::meta::parser(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            match name.as_str() {
                "name" => settings.name = Some(meta.value()?.parse()?),
                "version" => settings.version = Some(meta.value()?.parse()?),
                "description" => settings.description = Some(meta.value()?.parse()?),
                "key" => {
                    let key: LitStr = meta.value()?.parse()?;
                    let is_none = key.value() == NO_KEY;
                    settings.key = Some(if is_none { key.value() } else { parse_key(&key)? });
                }
                "catalogs" => settings.catalogs = Some(meta.value()?.parse()?),
                "methods" => settings.methods = Some(list(&meta)?),
                "http" => settings.http = list(&meta)?,
                _ => {
                    let known = "`name`, `version`, `description`, `key`, `catalogs`, `methods`, `http`";
                    return Err(meta.error(format!("unknown argument: one of {known}")));
                }
            }
            Ok(())
        });
        syn::parse::Parser::parse2(parser, arguments)?;
        Ok(settings)
    }

    fn text(&self, handlers: &[Handler]) -> syn::Result<TokenStream> {
        let or_cargo = |given: &Option<LitStr>, variable: &str| {
            given.as_ref().map_or_else(|| quote!(::core::env!(#variable)), ToTokens::to_token_stream)
        };
        let name = or_cargo(&self.name, "CARGO_PKG_NAME");
        let version = or_cargo(&self.version, "CARGO_PKG_VERSION");
        let description = or_cargo(&self.description, "CARGO_PKG_DESCRIPTION");
        let key = match &self.key {
            Some(key) => quote!(::core::option::Option::Some(#key)),
            None => quote!(::core::option::Option::None),
        };
        let menu: Vec<_> = handlers.iter().flat_map(Handler::menu).collect();
        let catalogs = catalogs::table(self.catalogs.as_ref(), menu.iter().map(|(name, help, _)| (name, help)))?;
        let menu = menu.iter().map(|(name, help, menus)| quote!((#name, #help, &[#(#menus),*])));
        let methods = match &self.methods {
            Some(methods) => quote!(&[#(#methods),*]),
            None => quote!(&["*"]),
        };
        let http = &self.http;
        Ok(quote! {
            ::botyard_sdk::__private::Text {
                name: #name,
                version: #version,
                description: #description,
                key: #key,
                commands: &[#(#menu),*],
                catalogs: #catalogs,
                methods: #methods,
                http: &[#(#http),*],
            }
        })
    }
}

/// A method of the Bot API: by its name, which may end in `*`, or by its type.
struct MethodName(TokenStream);

impl Parse for MethodName {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(LitStr) {
            let path: Path = input.parse()?;
            return Ok(Self(quote!(<#path as ::botyard_sdk::api::Method>::NAME)));
        }
        let literal: LitStr = input.parse()?;
        let name = literal.value();
        match nearest(&name, &METHODS).filter(|_| !name.ends_with('*') && !METHODS.contains(&name.as_str())) {
            Some(meant) => {
                let message = format!("unknown method `{name}`: did you mean `{meant}`?");
                Err(syn::Error::new(literal.span(), message))
            }
            None => Ok(Self(literal.into_token_stream())),
        }
    }
}

impl ToTokens for MethodName {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

/// `name = […, …]`
fn list<T: Parse>(meta: &syn::meta::ParseNestedMeta<'_>) -> syn::Result<Vec<T>> {
    let list;
    let value = meta.value()?;
    bracketed!(list in value);
    Ok(Punctuated::<T, Token![,]>::parse_terminated(&list)?.into_iter().collect())
}

/// The one state type of all functions that take a context.
fn state_of(handlers: &[Handler], beside: &[&Context]) -> syn::Result<Type> {
    let contexts: Vec<_> = handlers.iter().map(|handler| &handler.context).chain(beside.iter().copied()).collect();
    let named = contexts.iter().find_map(|context| context.state.as_ref());
    let state = named.cloned().unwrap_or_else(|| parse_quote!(::botyard_sdk::NoState));
    if let (Some(at), None) = (handlers.iter().find_map(Handler::needs_state), named) {
        return Err(syn::Error::new(at, "to tell states apart, handlers take `ctx: &mut Ctx<YourState>`"));
    }
    let wanted = state.to_token_stream().to_string();
    for context in contexts {
        let own = context.state.as_ref().map(|own| own.to_token_stream().to_string());
        if named.is_some() && own.as_ref() != Some(&wanted) {
            let message = format!("the other handlers of this plugin take `&mut Ctx<{wanted}>`: take the same here");
            return Err(syn::Error::new_spanned(&context.ty, message));
        }
    }
    Ok(state)
}

fn check_commands(handlers: &[Handler]) -> syn::Result<()> {
    let mut seen = HashSet::new();
    for (command, span) in handlers.iter().flat_map(Handler::commands) {
        let name = command.0.clone();
        if !seen.insert(command) {
            let message = format!("there is a handler for `/{name}` already: the second would never be asked");
            return Err(syn::Error::new(span, message));
        }
    }
    Ok(())
}

/// Lets the derives of serde find it in the SDK, so that plugins need not depend on it themselves.
fn point_to_serde(attrs: &mut Vec<Attribute>) {
    let derives = |attr: &Attribute| {
        let Ok(list) = attr.meta.require_list() else { return false };
        attr.path().is_ident("derive") && list.tokens.to_string().contains("erialize")
    };
    let says_where =
        |attr: &Attribute| attr.path().is_ident("serde") && attr.to_token_stream().to_string().contains("crate");
    if attrs.iter().any(derives) && !attrs.iter().any(says_where) {
        attrs.push(parse_quote!(#[serde(crate = "::botyard_sdk::__private::serde")]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(arguments: &str, module: &str) -> String {
        expand(arguments.parse().unwrap(), module.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_cure() {
        let cases = [
            ("mod m;", "between braces"),
            ("mod m { fn helper() {} }", "needs a handler"),
            (
                "mod m { #[comand(\"x\")] fn f(ctx: &mut Ctx) {} }",
                "unknown attribute `comand`: did you mean `command`?",
            ),
            ("mod m { #[command] fn f(ctx: &mut Ctx) {} }", "name the command"),
            ("mod m { #[command(\"/start\")] fn f(ctx: &mut Ctx) {} }", "without its slash: `start`"),
            ("mod m { #[command(\"Start\")] fn f(ctx: &mut Ctx) {} }", "1 to 32 of a-z"),
            ("mod m { #[command(\"a\", hepl = \"x\")] fn f(ctx: &mut Ctx) {} }", "unknown argument `hepl`"),
            ("mod m { #[text] fn f() {} }", "a handler takes `ctx: &mut Ctx`"),
            ("mod m { #[text] fn f(ctx: &Ctx) {} }", "a handler takes `ctx: &mut Ctx`"),
            ("mod m { #[text] fn f(ctx: &mut Ctx, name: &str) {} }", "`String` for `&str`"),
            ("mod m { #[command(\"a {x}\")] fn f(ctx: &mut Ctx) {} }", "add a parameter `x: …`"),
            ("mod m { #[command(\"a {x} y\")] fn f(ctx: &mut Ctx, x: u8) {} }", "`y` is no argument"),
            ("mod m { #[command(\"A {x}\")] fn f(ctx: &mut Ctx, x: u8) {} }", "1 to 32 of a-z"),
            ("mod m { #[command(Cmd, hidden)] fn f(ctx: &mut Ctx, cmd: Cmd) {} }", "stand at its variants"),
            ("mod m { #[command(observe)] fn f(ctx: &mut Ctx) {} }", "name the command"),
            ("mod m { #[start(\"a b\")] fn f(ctx: &mut Ctx) {} }", "no link can bring `a b`"),
            ("mod m { #[start(\"a\", \"b\")] fn f(ctx: &mut Ctx) {} }", "one beginning"),
            ("mod m { #[message(\"x\")] fn f(ctx: &mut Ctx) {} }", "chosen by a filter"),
            ("mod m { #[text(hidden)] fn f(ctx: &mut Ctx) {} }", "only commands are in a menu"),
            ("mod m { #[timer(\"x\", filter = private())] fn f(ctx: &mut Ctx) {} }", "only updates can be filtered"),
            ("mod m { #[every(\"1m\", check = x)] fn f(ctx: &mut Ctx) {} }", "only updates can be checked"),
            ("mod m { #[middleware] fn f(ctx: &mut Ctx) {} #[text] fn g(ctx: &mut Ctx) {} }", "next: Next"),
            ("mod m { #[on_error] fn f(ctx: &mut Ctx) {} #[text] fn g(ctx: &mut Ctx) {} }", "error: Error"),
            (
                "mod m { #[on_error] fn f(ctx: &mut Ctx, e: Error) {} #[text] fn g(ctx: &mut Ctx<S>) {} }",
                "take `&mut Ctx<S>`: take the same here",
            ),
            (
                "mod m { #[on_error] fn f(ctx: &mut Ctx, e: Error) {} #[on_error] fn g(ctx: &mut Ctx, e: Error) {} }",
                "one function hears of errors",
            ),
            (
                "mod m { #[on_eror] fn f(ctx: &mut Ctx, e: Error) {} #[text] fn g(ctx: &mut Ctx) {} }",
                "did you mean `on_error`?",
            ),
            ("mod m { #[text] async fn f(ctx: &mut Ctx) {} }", "no `async fn`"),
            ("mod m { #[text] fn f<T>(ctx: &mut Ctx) {} }", "can't be generic"),
            ("mod m { #[text(help = \"x\")] fn f(ctx: &mut Ctx) {} }", "only commands take `help`"),
            ("mod m { #[text(menu = \"groups\")] fn f(ctx: &mut Ctx) {} }", "only commands take `help` and `menu`"),
            ("mod m { #[command(\"a\", menu = \"group\")] fn f(ctx: &mut Ctx) {} }", "did you mean `groups`?"),
            ("mod m { #[command(\"a\", menu = [])] fn f(ctx: &mut Ctx) {} }", "one of"),
            ("mod m { #[button] fn f(ctx: &mut Ctx) {} }", "by its key in the catalogs"),
            ("mod m { #[button(\"menu.order\")] fn f(ctx: &mut Ctx) {} }", "has no catalogs"),
            ("mod m { #[on(\"mesage\")] fn f(ctx: &mut Ctx) {} }", "did you mean `message`?"),
            ("mod m { #[on] fn f(ctx: &mut Ctx) {} }", "name the kind of update"),
            ("mod m { #[content] fn f(ctx: &mut Ctx) {} }", "name what the message is made of"),
            ("mod m { #[content(\"phot\")] fn f(ctx: &mut Ctx) {} }", "did you mean `photo`?"),
            (
                "mod m { #[callback(Order)] fn f(ctx: &mut Ctx) {} }",
                "take the button's data, too: `fn f(ctx: &mut Ctx, data: Order)`",
            ),
            ("mod m { #[callback(Order)] fn f(ctx: &mut Ctx, other: Other) {} }", "take the button's data, too"),
            ("mod m { #[callback(Order, \"a:\")] fn f(ctx: &mut Ctx, order: Order) {} }", "a type or a prefix"),
            ("mod m { #[timer] fn f(ctx: &mut Ctx) {} }", "name the timer"),
            ("mod m { #[job] fn f(ctx: &mut Ctx) {} }", "name the job"),
            ("mod m { #[job(\"a\", observe)] fn f(ctx: &mut Ctx) {} }", "nothing but the name"),
            ("mod m { #[cron] fn f(ctx: &mut Ctx) {} }", "give the times"),
            ("mod m { #[cron(\"0 9 * *\")] fn f(ctx: &mut Ctx) {} }", "five fields"),
            ("mod m { #[cron(\"@daily\", missed = \"no\")] fn f(ctx: &mut Ctx) {} }", "one of \"once\""),
            ("mod m { #[every(\"15\")] fn f(ctx: &mut Ctx) {} }", "`2h` for example"),
            ("mod m { #[every(\"15m\", tz = \"UTC\")] fn f(ctx: &mut Ctx) {} }", "no time zone"),
            ("mod m { #[every(\"15m\", state = S::A)] fn f(ctx: &mut Ctx<S>) {} }", "belongs to no conversation"),
            ("mod m { #[expired(\"x\")] fn f(ctx: &mut Ctx<S>) {} }", "`#[expired]`"),
            ("mod m { #[text(tz = \"UTC\")] fn f(ctx: &mut Ctx) {} }", "only `cron` and `every`"),
            ("mod m { #[state] fn f(ctx: &mut Ctx<S>) {} }", "name the state"),
            ("mod m { #[state(Name)] fn f(ctx: &mut Ctx<S>) {} }", "write the state with its enum"),
            ("mod m { #[state(S::Name)] fn f(ctx: &mut Ctx) {} }", "handlers take `ctx: &mut Ctx<YourState>`"),
            (
                "mod m { #[state(S::Name)] fn f(ctx: &mut Ctx<S>) {} #[text] fn g(ctx: &mut Ctx) {} }",
                "take `&mut Ctx<S>`: take the same here",
            ),
            (
                "mod m { #[command(\"a\", \"b\")] fn f(ctx: &mut Ctx) {} #[command(\"b\")] fn g(ctx: &mut Ctx) {} }",
                "a handler for `/b` already",
            ),
            (
                "mod m { #[migrate] fn f() {} #[migrate] fn g() {} #[text] fn h(ctx: &mut Ctx) {} }",
                "match on `old.version`",
            ),
        ];
        for (module, part) in cases {
            assert!(error("", module).contains(part), "{module}: {}", error("", module));
        }
    }

    #[test]
    fn arguments_are_checked() {
        let module = "mod m { #[text] fn f(ctx: &mut Ctx) {} }";
        assert!(error("key = \"planet\"", module).contains("unknown key strategy `planet`"));
        let stateful = "mod m { #[text] fn f(ctx: &mut Ctx<S>) {} }";
        assert!(error("key = \"none\"", stateful).contains("no states"));
        assert!(expand("key = \"none\"".parse().unwrap(), module.parse().unwrap()).is_ok());
        assert!(error("nmae = \"x\"", module).contains("one of `name`, `version`"));
        assert!(error("methods = [\"sendMesage\"]", module).contains("did you mean `sendMessage`?"));
        for methods in ["methods = [\"send*\", \"brandNewMethod\"]", "methods = [SendPoll, api::GetChat]"] {
            assert!(expand(methods.parse().unwrap(), module.parse().unwrap()).is_ok(), "{methods}");
        }
        assert!(error("catalogs = \"no-such-folder\"", module).contains("can't read the catalogs folder"));
    }

    #[test]
    fn one_command_may_have_a_handler_for_each_state() {
        let module = "mod m {
            #[command(\"a\", state = S::X)] fn f(ctx: &mut Ctx<S>) {}
            #[command(\"a\", state = S::Y)] fn g(ctx: &mut Ctx<S>) {}
            #[command(\"a\")] fn h(ctx: &mut Ctx<S>) {}
        }";
        assert!(expand(TokenStream::new(), module.parse().unwrap()).is_ok());
    }

    #[test]
    fn routes_stand_in_the_order_of_attempts() {
        let module = "mod m {
            #[on(\"poll\")] fn a(ctx: &mut Ctx<S>) {}
            #[album] fn e(ctx: &mut Ctx<S>) {}
            #[text] fn b(ctx: &mut Ctx<S>) {}
            #[command(\"c\")] fn c(ctx: &mut Ctx<S>) {}
            #[state(S::X)] fn d(ctx: &mut Ctx<S>) {}
        }";
        let code = expand(TokenStream::new(), module.parse().unwrap()).unwrap().to_string();
        let at = |call: &str| code.find(&format!("returned ({call} (ctx))")).unwrap();
        assert!(at("d") < at("c") && at("c") < at("b") && at("b") < at("e") && at("e") < at("a"));
    }
}
