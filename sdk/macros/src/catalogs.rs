//! The catalogs of a plugin: one `.ftl` file for each locale.

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

/// The table of `(locale, source)`. The sources are included by path, so that a change in one compiles the plugin again.
pub(crate) fn table(folder: Option<&LitStr>) -> syn::Result<TokenStream> {
    let Some(folder) = folder else { return Ok(quote!(&[])) };
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let found = find(&Path::new(&root).join(folder.value())).map_err(|why| syn::Error::new(folder.span(), why))?;
    let rows = found.iter().map(|(locale, path)| {
        let path = path.to_string_lossy();
        quote!((#locale, ::core::include_str!(#path)))
    });
    Ok(quote!(&[#(#rows),*]))
}

fn find(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let shown = folder.display();
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("can't read the catalogs folder {shown}: {error}"))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("can't read the catalogs folder {shown}: {error}"))?.path();
        if path.extension().is_some_and(|extension| extension == "ftl") {
            let locale = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((locale, path));
        }
    }
    if found.is_empty() {
        return Err(format!("no catalogs in {shown}: add one file for each locale, `en.ftl` for example"));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        assert!(find(Path::new("/nowhere/locales")).unwrap_err().contains("/nowhere/locales"));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(find(&sources).unwrap_err().contains("`en.ftl` for example"));
    }
}
