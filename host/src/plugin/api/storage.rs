//! `botyard:storage/key-value`: what a plugin keeps beside its conversations.

use bytes::Bytes;

use super::{DESCRIBING, Host, Run, failed};
use crate::domain::{ChatId, PluginName, UserId};
use crate::plugin::Limit;
use crate::plugin::bindings::botyard::storage::key_value as wit;
use crate::plugin::version::Context;
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::kv::{Scope, ValueRow, key, scope_prefix};
use crate::store::rows::prefix_end;

/// Bytes of a key.
const KEY_BYTES: usize = 512;
/// Rows that one scan answers with.
const SCAN_ROWS: u32 = 1_000;
/// Rows that are read before their size is looked at.
const PAGE_ROWS: usize = 16;

impl wit::Host for Host {
    fn get(&mut self, scope: wit::Scope, name: String) -> wasmtime::Result<Option<Vec<u8>>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        if name.len() > KEY_BYTES {
            return Ok(None);
        }
        let scope = run.scope(scope)?;
        Ok(value(run, &self.context.name, scope, &name)?.map(|row| row.bytes))
    }

    fn set(
        &mut self,
        scope: wit::Scope,
        name: String,
        value: Vec<u8>,
        ttl_seconds: Option<u64>,
    ) -> wasmtime::Result<Result<(), String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let (size, limit) = (value.len(), self.context.limits.value);
        if size as u64 > limit {
            return Ok(Err(format!(
                "the value has {size} bytes; at most {limit} are kept: {}",
                Limit::Value.hit(&self.context.name)
            )));
        }
        let row = ValueRow { expires: run.expiry(ttl_seconds), bytes: value };
        let scope = run.scope(scope)?;
        Ok(put(run, &self.context, scope, &name, &row))
    }

    fn delete(&mut self, scope: wit::Scope, name: String) -> wasmtime::Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        if name.len() <= KEY_BYTES {
            run.charge_effect(name.len()).map_err(wasmtime::Error::msg)?;
            let scope = run.scope(scope)?;
            let key = key(run.bot, &self.context.name, scope, &name);
            forget_end(run, &key);
            run.credit_stored(&key);
            run.tx.delete(key);
        }
        Ok(())
    }

    fn increment(&mut self, scope: wit::Scope, name: String, by: i64) -> wasmtime::Result<Result<i64, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        if name.len() > KEY_BYTES {
            return Ok(Err(too_long(&name)));
        }
        let scope = run.scope(scope)?;
        let row = value(run, &self.context.name, scope, &name)?;
        let row = row.unwrap_or_else(|| ValueRow { expires: 0, bytes: b"0".to_vec() });
        let Some(number) = std::str::from_utf8(&row.bytes).ok().and_then(|text| text.parse::<i64>().ok()) else {
            return Ok(Err(format!("the value of `{name}` is not a whole number")));
        };
        let Some(sum) = number.checked_add(by) else {
            return Ok(Err(format!("{number} and {by} together are out of range")));
        };
        let row = ValueRow { bytes: sum.to_string().into_bytes(), ..row };
        Ok(put(run, &self.context, scope, &name, &row).map(|()| sum))
    }

    fn compare_and_set(
        &mut self,
        scope: wit::Scope,
        name: String,
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> wasmtime::Result<Result<bool, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        if name.len() > KEY_BYTES {
            return Ok(Err(too_long(&name)));
        }
        let current = run.scope(scope)?;
        let found = value(run, &self.context.name, current, &name)?;
        if found.map(|row| row.bytes) != expected {
            return Ok(Ok(false));
        }
        let done = match new {
            Some(value) => self.set(scope, name, value, None)?,
            None => self.delete(scope, name).map(Ok)?,
        };
        Ok(done.map(|()| true))
    }

    fn scan(
        &mut self,
        scope: wit::Scope,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Vec<(String, Vec<u8>)>> {
        let Some(run) = &mut self.run else { return Ok(Vec::new()) };
        if prefix.len() > KEY_BYTES || after.as_ref().is_some_and(|after| after.len() > KEY_BYTES) {
            return Ok(Vec::new());
        }
        let scope = run.scope(scope)?;
        scan(run, &self.context.name, scope, &prefix, after.as_deref(), limit.min(SCAN_ROWS) as usize)
    }
}

impl Run {
    fn scope(&mut self, scope: wit::Scope) -> wasmtime::Result<Scope> {
        Ok(match scope {
            wit::Scope::Plugin => Scope::Plugin,
            wit::Scope::Chat(chat) => Scope::Chat(self.chat(ChatId(chat))?),
            wit::Scope::User(user) => Scope::User(UserId(user)),
        })
    }
}

/// A value that is not over.
fn value(run: &mut Run, plugin: &PluginName, scope: Scope, name: &str) -> wasmtime::Result<Option<ValueRow>> {
    let bytes = run.tx.get(&key(run.bot, plugin, scope, name)).map_err(failed)?;
    run.charge_read(name.len() + bytes.as_ref().map_or(0, Bytes::len))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let row = ValueRow::decode(&bytes).map_err(failed)?;
    Ok((!row.is_expired(run.now)).then_some(row))
}

pub(super) fn put(run: &mut Run, context: &Context, scope: Scope, name: &str, row: &ValueRow) -> Result<(), String> {
    if name.len() > KEY_BYTES {
        return Err(too_long(name));
    }
    run.charge_effect(name.len() + row.bytes.len())?;
    let (key, value) = (key(run.bot, &context.name, scope, name), row.encode());
    run.charge_stored(context, &key, value.len())?;
    forget_end(run, &key);
    if row.expires != 0 {
        run.tx.put(expiry::key(run.bot, row.expires, &key), ExpiryRow::Value.encode());
    }
    run.tx.put(key, value);
    Ok(())
}

/// A value whose life is changed or ended again and again must not leave an entry each time.
fn forget_end(run: &mut Run, key: &[u8]) {
    let before = run.tx.peek(key).ok().flatten().and_then(|before| ValueRow::decode(&before).ok());
    if let Some(before) = before.filter(|before| before.expires != 0) {
        run.tx.delete(expiry::key(run.bot, before.expires, key));
    }
}

fn scan(
    run: &mut Run,
    plugin: &PluginName,
    scope: Scope,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> wasmtime::Result<Vec<(String, Vec<u8>)>> {
    let first = key(run.bot, plugin, scope, prefix);
    let name_at = scope_prefix(run.bot, plugin, scope).len();
    let end = prefix_end(&first);
    let from = match after.map(|after| key(run.bot, plugin, scope, after)) {
        // The smallest key behind `after`.
        Some(mut after) if after >= first => {
            after.push(0);
            after
        }
        _ => first,
    };
    let mut found = Vec::new();
    let mut next = Some(from);
    while let Some(from) = next
        && found.len() < limit
    {
        let page = run.tx.page(&from, &end, PAGE_ROWS.min(limit - found.len())).map_err(failed)?;
        run.charge_read(page.bytes)?;
        for (key, bytes) in page.rows {
            let row = ValueRow::decode(&bytes).map_err(failed)?;
            if found.len() < limit && !row.is_expired(run.now) {
                let name = key.get(name_at..).unwrap_or_default();
                found.push((String::from_utf8_lossy(name).into_owned(), row.bytes));
            }
        }
        next = page.next;
    }
    Ok(found)
}

fn too_long(name: &str) -> String {
    format!("the key has {} bytes; at most {KEY_BYTES} are possible", name.len())
}
