//! `#[derive(Command)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Fields, LitStr, Type, Variant};

use crate::handler::first_doc_line;
use crate::names::snake_case;
use crate::template::{Argument, Template, check_name};
use crate::{buttons, catalogs};

pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(
            input.ident.span(),
            "commands are the variants of an enum: derive `Command` for one",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&input.generics, "an enum of commands can't be generic"));
    }
    let commands = data.variants.iter().map(Described::new).collect::<syn::Result<Vec<_>>>()?;
    let mut seen = std::collections::HashSet::new();
    for name in commands.iter().flat_map(|command| &command.names) {
        if !seen.insert(name.value()) {
            return Err(syn::Error::new(name.span(), format!("there is a variant for `/{}` already", name.value())));
        }
    }
    let ident = &input.ident;
    let infos = commands.iter().map(Described::info);
    let readers = commands.iter().enumerate().map(|(index, command)| command.reader(index));
    Ok(quote! {
        impl ::botyard_sdk::Command for #ident {
            const COMMANDS: &'static [::botyard_sdk::__private::CommandInfo] = &[#(#infos),*];

            fn read(index: usize, args: &str) -> ::core::option::Option<Self> {
                let mut words = ::botyard_sdk::__private::Words::new(args);
                let read = match index {
                    #(#readers)*
                    _ => return ::core::option::Option::None,
                };
                words.end()?;
                ::core::option::Option::Some(read)
            }
        }

        impl ::botyard_sdk::extract::Extract for #ident {
            fn extract(ctx: &::botyard_sdk::Run) -> ::core::result::Result<Self, ::botyard_sdk::extract::Rejected> {
                ::botyard_sdk::__private::extract_command(ctx)
            }
        }
    })
}

/// A variant with all that is said of it.
struct Described<'a> {
    variant: &'a Variant,
    names: Vec<LitStr>,
    template: Template,
    help: String,
    menus: Vec<LitStr>,
}

impl<'a> Described<'a> {
    fn new(variant: &'a Variant) -> syn::Result<Self> {
        let fields = match &variant.fields {
            Fields::Unit => Vec::new(),
            Fields::Named(fields) => fields.named.iter().collect(),
            Fields::Unnamed(fields) => {
                let message = "give the arguments names, which people are shown: `Remind { minutes: u32 }`";
                return Err(syn::Error::new_spanned(fields, message));
            }
        };
        let (mut names, mut menus) = (Vec::new(), Vec::new());
        let (mut help, mut hidden) = (first_doc_line(&variant.attrs), false);
        for attr in variant.attrs.iter().filter(|attr| attr.path().is_ident("command")) {
            attr.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                while !input.is_empty() {
                    if input.peek(LitStr) {
                        names.push(input.parse::<LitStr>()?);
                    } else {
                        let word: syn::Ident = input.parse()?;
                        if word == "hidden" {
                            hidden = true;
                        } else if word == "help" {
                            input.parse::<syn::Token![=]>()?;
                            help = Some(input.parse::<LitStr>()?.value());
                        } else if word == "menu" {
                            input.parse::<syn::Token![=]>()?;
                            menus = buttons::menus(input)?;
                        } else {
                            let known = "names in quotes, `help = \"…\"`, `menu = \"…\"`, `hidden`";
                            let message = format!("unknown argument `{word}`: {known}");
                            return Err(syn::Error::new(word.span(), message));
                        }
                    }
                    if !input.is_empty() {
                        input.parse::<syn::Token![,]>()?;
                    }
                }
                Ok(())
            })?;
        }
        if names.is_empty() {
            names.push(LitStr::new(&snake_case(&variant.ident.to_string()), variant.ident.span()));
        }
        let template = match Template::take(&mut names)? {
            Some(template) => template,
            None => usual(names[0].value(), &fields),
        };
        names.iter().try_for_each(check_name)?;
        check_fields(variant, &template, &fields)?;
        let help = help.filter(|_| !hidden).unwrap_or_default();
        catalogs::check_help(&names[0], &help)?;
        Ok(Self { variant, names, template, help, menus })
    }

    fn info(&self) -> TokenStream {
        let (names, usage, help, menus) = (&self.names, self.template.usage(), &self.help, &self.menus);
        quote! {
            ::botyard_sdk::__private::CommandInfo {
                names: &[#(#names),*],
                usage: #usage,
                help: #help,
                menus: &[#(#menus),*],
            }
        }
    }

    fn reader(&self, index: usize) -> TokenStream {
        let variant = &self.variant.ident;
        let fields = self.template.arguments.iter().map(|argument| {
            let name = syn::Ident::new(&argument.name, variant.span());
            let reader = argument.reader();
            quote!(#name: words.#reader()?)
        });
        quote!(#index => Self::#variant { #(#fields),* },)
    }
}

/// The arguments of a variant that does not say them.
fn usual(name: String, fields: &[&Field]) -> Template {
    let arguments = fields.iter().enumerate().map(|(at, field)| {
        let inner = optional(&field.ty);
        let is_text = is_named(inner.unwrap_or(&field.ty), "String");
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        Argument { name, is_optional: inner.is_some(), is_rest: is_text && at + 1 == fields.len() }
    });
    Template { name, arguments: arguments.collect() }
}

fn check_fields(variant: &Variant, template: &Template, fields: &[&Field]) -> syn::Result<()> {
    let names: Vec<String> = fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string).collect();
    let fail = |message: String| Err(syn::Error::new(variant.ident.span(), message));
    if let Some(Argument { name, .. }) = template.arguments.iter().find(|argument| !names.contains(&argument.name)) {
        return fail(format!("`{}` has no field for `{{{name}}}`: add `{name}: …`", variant.ident));
    }
    if let Some(name) = names.iter().find(|name| !template.arguments.iter().any(|argument| argument.name == **name)) {
        return fail(format!("nothing is said to become `{name}`: add `{{{name}}}` to the command"));
    }
    let mut was_optional = None;
    for Argument { name, is_optional, .. } in &template.arguments {
        match was_optional {
            Some(before) if !is_optional => {
                return fail(format!(
                    "`{name}` would take the place of `{before}`, which may be left out: write it before"
                ));
            }
            _ => was_optional = is_optional.then_some(name).or(was_optional),
        }
    }
    Ok(())
}

/// The `T` of an `Option<T>`.
fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_cure() {
        for (source, part) in [
            ("struct Cmd;", "variants of an enum"),
            ("enum Cmd<T> { A { x: T } }", "can't be generic"),
            ("enum Cmd { Age(u8) }", "give the arguments names"),
            ("enum Cmd { #[command(\"/age\")] Age }", "without its slash: `age`"),
            ("enum Cmd { Größe }", "can't be a command"),
            ("enum Cmd { #[command(hiden)] Age }", "unknown argument `hiden`"),
            ("enum Cmd { #[command(\"age {years}\")] Age }", "no field for `{years}`: add `years: …`"),
            ("enum Cmd { #[command(\"age\", \"a {x}\")] Age }", "stand with the first name"),
            ("enum Cmd { #[command(\"age {x}\")] Age { x: u8, y: u8 } }", "add `{y}` to the command"),
            ("enum Cmd { Age { x: Option<u8>, y: u8 } }", "write it before"),
            ("enum Cmd { A, #[command(\"b\", \"a\")] B }", "a variant for `/a` already"),
        ] {
            let error = expand(source.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{source}: {error}");
        }
    }

    #[test]
    fn a_text_at_the_end_takes_the_rest() {
        let usage = |source: &str| {
            let variant: Variant = syn::parse_str(source).unwrap();
            Described::new(&variant).unwrap().template.usage()
        };
        assert_eq!(usage("Menu"), "/menu");
        assert_eq!(usage("SetName { name: String }"), "/set_name NAME…");
        assert_eq!(usage("Say { to: String, what: Option<String> }"), "/say TO [WHAT…]");
        assert_eq!(
            usage("#[command(\"ban {who} {days?}\", \"b\")] Ban { who: String, days: Option<u8> }"),
            "/ban WHO [DAYS]"
        );
    }
}
