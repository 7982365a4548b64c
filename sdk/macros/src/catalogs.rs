//! The catalogs of a plugin: one `.ftl` file for each locale, in the folder that `#[plugin]` names, else in `locales`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use botyard_catalogs::{Lint, Source, base_first};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::LitStr;

/// The folder that is looked for where none is named.
const USUAL: &str = "locales";

/// The folder that this crate's `#[plugin]` has named. A compiler compiles one crate.
static NAMED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The catalogs of the crate that is being compiled.
pub(crate) struct Found {
    /// Locales and paths, the catalog that has every message first.
    files: Vec<(String, PathBuf)>,
    root: PathBuf,
}

/// The table of `(locale, source)`. The sources are included by path, so that a change in one compiles the plugin again.
/// `helps` are commands, and what describes them: a key or a text.
pub(crate) fn table<'a>(
    folder: Option<&LitStr>,
    helps: impl Iterator<Item = (&'a String, &'a String)>,
) -> syn::Result<TokenStream> {
    let root = root();
    let found = match folder {
        Some(folder) => {
            let path = root.join(folder.value());
            let found = find(&root, &path).map_err(|why| syn::Error::new(folder.span(), why))?;
            *NAMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
            found
        }
        None => match Found::of_crate() {
            Some(found) => found,
            None => return Ok(quote!(&[])),
        },
    };
    let span = folder.map_or_else(Span::call_site, LitStr::span);
    let problems = match found.lint() {
        Ok(lint) => {
            let mistyped = helps.filter_map(|(name, help)| mistyped(&lint, name, help));
            lint.errors().into_iter().chain(mistyped).collect()
        }
        Err(why) => vec![why],
    };
    if !problems.is_empty() {
        return Err(syn::Error::new(span, problems.join("\n")));
    }
    let rows = found.files.iter().map(|(locale, path)| {
        let path = path.to_string_lossy();
        quote!((#locale, ::core::include_str!(#path)))
    });
    Ok(quote!(&[#(#rows),*]))
}

/// Why the help of a command is no key, where it was to be one.
fn mistyped(lint: &Lint, name: &str, help: &str) -> Option<String> {
    let meant = lint.nearest_key(help).filter(|_| !help.contains(' ') && !lint.has(help))?;
    Some(format!("the help of `/{name}`, `{help}`, is in no catalog: did you mean `{meant}`?"))
}

/// The same for one that `#[plugin]` does not see.
pub(crate) fn check_help(name: &LitStr, help: &str) -> syn::Result<()> {
    // Catalogs that can't be read are told of once, where they are put into the plugin.
    let lint = Found::of_crate().and_then(|found| found.lint().ok());
    let problem = lint.and_then(|lint| mistyped(&lint, &name.value(), help));
    problem.map_or(Ok(()), |problem| Err(syn::Error::new(name.span(), problem)))
}

impl Found {
    /// None where the crate has none, or they can't be read: then `#[plugin]` says so.
    pub(crate) fn of_crate() -> Option<Self> {
        let root = root();
        let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        find(&root, &named.unwrap_or_else(|| root.join(USUAL))).ok()
    }

    /// The catalogs, to be held against calls.
    pub(crate) fn lint(&self) -> Result<Lint, String> {
        let mut sources = Vec::new();
        for (locale, path) in &self.files {
            let file = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| format!("can't read {file}: {error}"))?;
            sources.push(Source { file, locale: locale.clone(), text });
        }
        Lint::read(sources).map_err(|error| error.to_string())
    }

    /// What has the compiler look at the catalogs again when one has changed.
    pub(crate) fn watched(&self) -> TokenStream {
        let paths = self.files.iter().map(|(_, path)| path.to_string_lossy());
        quote!(#(const _: &[u8] = ::core::include_bytes!(#paths);)*)
    }
}

fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default().into()
}

fn find(root: &Path, folder: &Path) -> Result<Found, String> {
    let shown = folder.display();
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("can't read the catalogs folder {shown}: {error}"))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("can't read the catalogs folder {shown}: {error}"))?.path();
        if path.extension().is_some_and(|extension| extension == "ftl") {
            let locale = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            files.push((locale, path));
        }
    }
    if files.is_empty() {
        return Err(format!("no catalogs in {shown}: add one file for each locale, `en.ftl` for example"));
    }
    base_first(&mut files, |(locale, _)| locale);
    Ok(Found { files, root: root.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let find = |folder: &Path| find(Path::new(""), folder).err().unwrap_or_default();
        assert!(find(Path::new("/nowhere/locales")).contains("/nowhere/locales"));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(find(&sources).contains("`en.ftl` for example"));
    }
}
