//! `botyard:i18n/catalogs`: translations.

use super::Host;
use crate::i18n::Value;
use crate::plugin::bindings::botyard::i18n::catalogs as wit;

impl wit::Host for Host {
    fn translate(
        &mut self,
        locale: String,
        key: String,
        args: Vec<(String, wit::Value)>,
    ) -> wasmtime::Result<Option<String>> {
        let args = args.into_iter().map(|(name, value)| (name, value.into())).collect();
        Ok(self.context.catalogs.translate(&locale, &key, args))
    }
}

impl From<wit::Value> for Value {
    fn from(value: wit::Value) -> Self {
        match value {
            wit::Value::Text(text) => Self::Text(text),
            wit::Value::Integer(number) => Self::Integer(number),
            wit::Value::Number(number) => Self::Number(number),
        }
    }
}
