//! Translations: a plugin's own catalogs and the operator's overrides, chosen by what is known of a user.
//!
//! What a catalog is, which of them answers and how a text comes of it is in the package `botyard-catalogs`, which the
//! SDK's macros and its test driver use as well: what they say of a text is what the host will make of it.

pub use botyard_catalogs::{Catalogs, Error, Markup, Value, normal_locale};
