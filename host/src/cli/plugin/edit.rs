//! Changes one entry of `bot.toml` and leaves everything else as its owner wrote it, comments and all. Pure.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};

use crate::plugin::Rights;

/// What changes from one text to the other, line by line; empty where nothing does.
pub(super) fn difference(before: &str, after: &str) -> String {
    let without = |text: &str, other: &str, sign: char| {
        let mut others: Vec<&str> = other.lines().collect();
        let mut left = String::new();
        for line in text.lines() {
            match others.iter().position(|other| *other == line) {
                Some(same) => drop(others.swap_remove(same)),
                None if line.trim().is_empty() => {}
                None => left.push_str(&format!("  {sign} {line}\n")),
            }
        }
        left
    };
    without(before, after, '-') + &without(after, before, '+')
}

/// The text with an entry for the plugin that grants what it wants: a new one that begins with `path`, or the one that is
/// there with what is `new` added. Lists that are not there yet are written out whole, so that nothing is granted silently.
/// With a `bot`, a new entry serves that one only, and one that is there serves it too.
pub(super) fn put(
    text: &str,
    name: &str,
    path: &str,
    bot: Option<&str>,
    wanted: &Rights,
    new: &Rights,
) -> Result<String, String> {
    let mut document = parse(text)?;
    let plugins = plugins(&mut document)?;
    let is_new = !plugins.contains_key(name);
    if is_new {
        let mut entry = Table::new();
        entry.insert("path", value(path));
        if let Some(bot) = bot {
            entry.insert("bots", value(Array::from_iter([bot])));
        }
        entry.decor_mut().set_prefix("\n");
        plugins.insert(name, Item::Table(entry));
    }
    let entry = plugins.get_mut(name).and_then(Item::as_table_like_mut);
    let entry = entry.ok_or_else(|| format!("[plugins.{name}] is no table"))?;
    // Without a list it serves them all.
    if let (Some(bot), Some(bots)) = (bot, entry.get_mut("bots")) {
        push(bots, "bots", &[bot.to_owned()])?;
    }
    let grants = entry.entry("grants").or_insert_with(|| value(InlineTable::new()));
    let grants = grants.as_table_like_mut().ok_or_else(|| format!("`grants` of [plugins.{name}] is no table"))?;
    add(grants, "methods", &wanted.methods, &new.methods)?;
    // All kinds are what is granted without a list.
    if !wanted.kinds.iter().any(|kind| kind == "*") {
        add(grants, "kinds", &wanted.kinds, &new.kinds)?;
    } else if new.kinds.iter().any(|kind| kind == "*") {
        grants.remove("kinds");
    }
    // No servers are granted without a list.
    if !new.http.is_empty() {
        add(grants, "http", &new.http, &new.http)?;
    }
    if new.broadcasts() {
        match grants.get_mut("broadcast") {
            None => drop(grants.insert("broadcast", value(true))),
            // In its place, so that the key keeps its comments.
            Some(granted) if granted.as_bool() == Some(false) => *granted = value(true),
            Some(_) => {}
        }
    }
    Ok(document.to_string())
}

/// The text without the plugin's entry; `None` where it has none.
pub(super) fn remove(text: &str, name: &str) -> Result<Option<String>, String> {
    let mut document = parse(text)?;
    let removed = plugins(&mut document)?.remove(name).is_some();
    Ok(removed.then(|| document.to_string()))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())
}

fn plugins(document: &mut DocumentMut) -> Result<&mut Table, String> {
    let mut all = Table::new();
    all.set_implicit(true);
    let plugins = document.entry("plugins").or_insert(Item::Table(all));
    plugins.as_table_mut().ok_or_else(|| "`plugins` is not written as [plugins.NAME]".to_owned())
}

fn add(grants: &mut dyn TableLike, key: &str, wanted: &[String], new: &[String]) -> Result<(), String> {
    let Some(list) = grants.get_mut(key) else {
        grants.insert(key, value(wanted.iter().map(String::as_str).collect::<Array>()));
        return Ok(());
    };
    push(list, &format!("grants.{key}"), new)
}

fn push(list: &mut Item, key: &str, new: &[String]) -> Result<(), String> {
    let list = list.as_array_mut().ok_or_else(|| format!("`{key}` is no list"))?;
    for item in new {
        if !list.iter().any(|known| known.as_str() == Some(item)) {
            list.push(Value::from(item.as_str()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(methods: &[&str], kinds: &[&str], broadcasts: bool) -> Rights {
        let list = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        let interfaces = if broadcasts { vec!["botyard:broadcast/broadcasts".to_owned()] } else { vec![] };
        Rights { methods: list(methods), kinds: list(kinds), interfaces, ..Rights::default() }
    }

    const BEFORE: &str = "# Mine.\n[bot] # the bot\ntoken = \"x\"\n\n[plugins.echo] # answers\npath   = \"echo.wasm\" # here\n\
                          grants = { methods = [\"sendMessage\"], chats = [7] } # not more\n\n[admin]\nlisten = \"a\"\n";

    #[test]
    fn a_new_entry_comes_with_all_that_it_is_granted() {
        let wanted = rights(&["send*"], &["message"], true);
        let after = put(BEFORE, "shop", "plugins/shop.wasm", None, &wanted, &wanted).unwrap();
        let added = "\n[plugins.shop]\npath = \"plugins/shop.wasm\"\ngrants = { methods = [\"send*\"], kinds = \
                     [\"message\"], broadcast = true }\n";
        assert!(after.contains(added), "{after}");
        assert_eq!(after.replace(added, ""), BEFORE);
        assert_eq!(remove(&after, "shop").unwrap().unwrap(), BEFORE);
        let alone = put("", "shop", "a.wasm", None, &rights(&[], &["*"], false), &Rights::default()).unwrap();
        assert_eq!(alone.trim(), "[plugins.shop]\npath = \"a.wasm\"\ngrants = { methods = [] }");
    }

    #[test]
    fn an_entry_that_is_there_is_given_what_is_new_and_keeps_its_comments() {
        let wanted = rights(&["answer*", "sendMessage", "sendPhoto"], &["message"], true);
        let new = rights(&["answer*"], &["message"], false);
        let after = put(BEFORE, "echo", "unused", None, &wanted, &new).unwrap();
        let expected = BEFORE.replace(
            "[\"sendMessage\"], chats = [7] }",
            "[\"sendMessage\", \"answer*\"], chats = [7] , kinds = [\"message\"] }",
        );
        assert_eq!(after.replace("[7],", "[7] ,"), expected, "sendPhoto and broadcasts were kept back before");
        let narrow = "[plugins.a]\npath = \"a\"\n[plugins.a.grants]\n# few\nbroadcast = false\nkinds = [\"poll\"]\n";
        let after = put(narrow, "a", "", None, &rights(&[], &["*"], true), &rights(&[], &["*"], true)).unwrap();
        assert!(after.contains("# few\nbroadcast = true\n") && !after.contains("kinds"), "{after}");
    }

    #[test]
    fn servers_are_granted_one_by_one_and_bots_named_where_that_matters() {
        let to = |http: &[&str]| Rights { http: http.iter().map(ToString::to_string).collect(), ..Rights::default() };
        let first = to(&["https://a.example"]);
        let text = put("", "shop", "a.wasm", Some("north"), &first, &first).unwrap();
        let grants = |http: &str| format!("grants = {{ methods = [], kinds = []{http} }}");
        let entry =
            |bots: &str, http: &str| format!("[plugins.shop]\npath = \"a.wasm\"\nbots = [{bots}]\n{}", grants(http));
        assert_eq!(text.trim(), entry("\"north\"", ", http = [\"https://a.example\"]"));
        let both = to(&["https://a.example", "https://b.example"]);
        let text = put(&text, "shop", "", Some("south"), &both, &to(&["https://b.example"])).unwrap();
        let http = ", http = [\"https://a.example\", \"https://b.example\"]";
        assert_eq!(text.trim(), entry("\"north\", \"south\"", http));
        assert_eq!(put(&text, "shop", "", Some("south"), &both, &Rights::default()).unwrap(), text);
        // Taken back by the operator: an update does not bring it in again.
        let bare = "[plugins.shop]\npath = \"a\"\ngrants = { methods = [], kinds = [] }\n";
        let text = put(bare, "shop", "", Some("south"), &both, &to(&["https://b.example"])).unwrap();
        assert!(text.contains("http = [\"https://b.example\"]") && !text.contains("bots"), "{text}");
    }

    #[test]
    fn what_an_operator_keeps_back_stays_where_nothing_is_new() {
        let kept =
            "[plugins.a]\npath = \"a\"\ngrants = { methods = [\"sendMessage\"], broadcast = false, http = [] }\n";
        let mut wanted = rights(&["*"], &["*"], true);
        wanted.http.push("https://a.example".to_owned());
        let after = put(kept, "a", "a", None, &wanted, &Rights::default()).unwrap();
        assert_eq!(after, kept);
        assert_eq!(difference(kept, &after), "");
        let after = put(kept, "a", "a", None, &wanted, &wanted).unwrap();
        let line = kept.lines().last().unwrap();
        assert_eq!(difference(kept, &after), format!("  - {line}\n  + {}\n", after.lines().last().unwrap()));
    }

    #[test]
    fn what_can_not_be_changed_is_said() {
        let wanted = Rights::default();
        for (text, part) in [
            ("plugins = 1", "[plugins.NAME]"),
            ("plugins = { a = { path = \"a\" } }", "[plugins.NAME]"),
            ("[plugins]\na = 1", "[plugins.a]"),
            ("[plugins.a]\nbots = 1", "`bots` is no list"),
            ("[plugins.a]\ngrants = 1", "`grants` of [plugins.a]"),
            ("[plugins.a]\ngrants.methods = 1", "`grants.methods`"),
            ("[", ""),
        ] {
            let error = put(text, "a", "a", Some("b"), &wanted, &wanted).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(remove(BEFORE, "none"), Ok(None));
    }
}
