//! What of a handler's arguments is about the catalogs and the menu: keys of buttons, and the menus of a command.

use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{LitStr, Token, bracketed};

use crate::catalogs::Found;
use crate::names::nearest;

/// The menus that there are: Telegram's scopes, without those of single chats and people.
const MENUS: [&str; 3] = ["private", "groups", "administrators"];

/// The keys of `#[button("…")]` must be in the catalogs, with texts that are told by themselves.
pub(crate) fn check(keys: &[LitStr]) -> syn::Result<()> {
    let Some(first) = keys.first() else { return Ok(()) };
    let Some(found) = Found::of_crate() else {
        let key = first.value();
        let message =
            format!("this plugin has no catalogs: make `locales/en.ftl` with the text of the button, `{key}`");
        return Err(syn::Error::new(first.span(), message));
    };
    // Catalogs that can't be read are told of once, where they are put into the plugin.
    let Ok(lint) = found.lint() else { return Ok(()) };
    keys.iter().try_for_each(|key| lint.button(&key.value()).map_err(|why| syn::Error::new(key.span(), why)))
}

/// The menus behind `menu =`: one, or some in brackets.
pub(crate) fn menus(input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    let span = input.span();
    let menus: Vec<LitStr> = if input.peek(LitStr) {
        vec![input.parse()?]
    } else {
        let list;
        bracketed!(list in input);
        Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?.into_iter().collect()
    };
    let wrong = menus.iter().find(|menu| !MENUS.contains(&menu.value().as_str()));
    match wrong {
        None if !menus.is_empty() => Ok(menus),
        None => Err(syn::Error::new(span, format!("one of `{}`", MENUS.join("`, `")))),
        Some(menu) => {
            let name = menu.value();
            let cure = match nearest(&name, &MENUS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("one of `{}`", MENUS.join("`, `")),
            };
            Err(syn::Error::new(menu.span(), format!("there is no menu `{name}`: {cure}")))
        }
    }
}
