//! `botyard:i18n/catalogs`: translations.

use super::Host;
use crate::i18n::Value;
use crate::plugin::bindings::botyard::i18n::catalogs as wit;

/// Bytes of all arguments together: a message can name each of them a hundred times.
const ARGUMENT_BYTES: usize = 64 << 10;

impl wit::Host for Host {
    fn translate(
        &mut self,
        locale: String,
        key: String,
        args: Vec<(String, wit::Value)>,
    ) -> wasmtime::Result<Option<String>> {
        let text = |value: &wit::Value| if let wit::Value::Text(text) = value { text.len() } else { 0 };
        let size: usize = args.iter().map(|(name, value)| name.len() + text(value)).sum();
        if size > ARGUMENT_BYTES {
            return Err(wasmtime::Error::msg(format!(
                "the arguments of `{key:.64}` have {size} bytes; {ARGUMENT_BYTES} are possible"
            )));
        }
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
