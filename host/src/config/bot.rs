//! `[bot]`: who the bot is, and where the Bot API answers.

use std::path::PathBuf;

use secrecy::SecretString;

use super::reader::Reader;
use super::units;

pub(super) const TELEGRAM: &str = "https://api.telegram.org";

/// `[bot]`
#[derive(Debug, Clone)]
pub struct Bot {
    /// `token = { env = "BOT_TOKEN" }`, `{ file = "…" }`, or the token itself (warned about). Must be there, unless
    /// the bot talks to the simulator. Its form is not checked here.
    pub token: Option<SecretString>,
    /// `api_base`: a local Bot API server or a test server; `https://api.telegram.org` unless told otherwise.
    /// Without a slash at its end.
    pub api_base: String,
    /// `local_server`: `api_base` is a Bot API server of your own that runs with `--local`, which takes files of up to
    /// 2,000 MB; `false`.
    pub local_server: bool,
    /// `local_files`: the folder (`--dir`) in which that server keeps files, as this host sees it. Only files below it
    /// are read; none without it.
    pub local_files: Option<PathBuf>,
    /// `commands`: the menu behind `/` is made of what the plugins offer; `true`. Off, it is whatever @BotFather was told.
    pub commands: bool,
}

impl Bot {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let optional = section.context.options.token_optional;
        if !optional && !section.has("token") {
            section.missing(
                "token",
                "add `token = { env = \"BOT_TOKEN\" }` with a token from @BotFather, \
                 or try the bot without one: botyard run --simulator",
            );
        }
        let token = section.secret("token", !optional);
        let api_base = section.value("api_base", |node| api_base(&units::text(node)?));
        let api_base = api_base.unwrap_or_else(|| TELEGRAM.to_owned());
        let local_server = section.value("local_server", |node| match units::boolean(node)? {
            true if api_base == TELEGRAM => Err("`api_base` names Telegram's own server; name yours there".to_owned()),
            local => Ok(local),
        });
        let local_server = local_server.unwrap_or(false);
        let local_files = section.path_if("local_files", || match local_server {
            true => Ok(()),
            false => Err("only a server with `local_server = true` keeps files for this host".to_owned()),
        });
        let commands = section.value("commands", units::boolean).unwrap_or(true);
        section.finish();
        Self { token, api_base, local_server, local_files, commands }
    }
}

/// The text itself is never repeated: people paste the whole URL of a call, token included.
fn api_base(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return Err("expected an address such as \"https://api.telegram.org\" or \"http://127.0.0.1:8081\"".to_owned());
    };
    if rest.contains("/bot") {
        return Err("leave out `/bot` and the token: the host adds them".to_owned());
    }
    let is_host = !rest.is_empty() && !rest.starts_with([':', '/']);
    if !is_host || rest.contains(|character: char| character.is_whitespace() || "@?#\"".contains(character)) {
        return Err("expected an address without user, query or spaces, such as \"http://127.0.0.1:8081\"".to_owned());
    }
    Ok(text.to_owned())
}
