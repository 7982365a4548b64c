//! What stands on a button's wire, and whose it is; pure.
//!
//! Telegram takes 64 bytes of callback data, shows them to every client in the chat, and brings back whatever a client
//! sends. So a plugin's data goes out sealed: with a short keyed hash of the bot, the plugin, the chat and the data itself. What
//! comes back is given to the plugin under whose name the seal holds, without it, and to nobody if it holds under none.
//! Data that leaves no room for a seal stays with the host; on the wire is then an id, which is a seal itself.
//!
//! | first byte | what follows |
//! |---|---|
//! | `~` | a seal of 8 letters, then the data; for one chat |
//! | `^` | the same, for any chat: inline messages, chats called by their name, broadcasts |
//! | `#` | an id of 16 letters; for one chat |
//! | `=` | the same, for any chat |
//!
//! Sealed is not secret: whoever can see the button can read it.

use std::fmt;

use ring::hmac;
use subtle::ConstantTimeEq;

use super::{BotId, ChatId, PluginName};

pub mod markup;

/// What Telegram takes as callback data.
const MOST_ON_WIRE: usize = 64;
const SEAL_BYTES: usize = 6;
const SEAL_LETTERS: usize = 8;
const ID_BYTES: usize = 12;
const ID_LETTERS: usize = 16;
/// Data up to this length travels with the button.
pub const MOST_CARRIED: usize = MOST_ON_WIRE - 1 - SEAL_LETTERS;
/// Data beyond this is refused.
pub const MOST_DATA: usize = 1024;

/// What a bot's buttons are sealed with. Whoever knows it can make any button, so it has no `Display`.
#[derive(Clone)]
pub struct Seal(hmac::Key);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// Whose button it is, and where it holds.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The bot.
    pub bot: BotId,
    /// By its name in the configuration.
    pub plugin: &'a PluginName,
    /// The only chat that it holds in; none for everywhere.
    pub chat: Option<ChatId>,
}

/// Data as it goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The callback data for Telegram.
    pub wire: String,
    /// Under which id the host has to keep the data, where it does not go along.
    pub kept: Option<String>,
}

/// Callback data that came, by its form alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire<'a> {
    /// A seal and the data.
    Carried {
        /// For one chat.
        bound: bool,
        /// What it is sealed with, supposedly.
        seal: &'a str,
        /// The data.
        data: &'a str,
    },
    /// The id of data that the host keeps.
    Kept {
        /// For one chat.
        bound: bool,
        /// The id.
        id: &'a str,
    },
    /// Nothing that was made here.
    Foreign,
}

impl Seal {
    /// From a bot's secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Seals data of at most [`MOST_DATA`] bytes. The same data of the same owner is always sealed in the same way.
    #[must_use]
    pub fn seal(&self, owner: &Owner<'_>, data: &str) -> Sealed {
        let bound = owner.chat.is_some();
        if data.len() <= MOST_CARRIED {
            let seal = letters(&self.hash(owner, CARRIED, data)[..SEAL_BYTES]);
            let wire = format!("{}{seal}{data}", if bound { '~' } else { '^' });
            return Sealed { wire, kept: None };
        }
        let id = letters(&self.hash(owner, KEPT, data)[..ID_BYTES]);
        Sealed { wire: format!("{}{id}", if bound { '#' } else { '=' }), kept: Some(id) }
    }

    /// True if this owner's data was sealed so.
    #[must_use]
    pub fn holds(&self, owner: &Owner<'_>, seal: &str, data: &str) -> bool {
        let right = letters(&self.hash(owner, CARRIED, data)[..SEAL_BYTES]);
        right.as_bytes().ct_eq(seal.as_bytes()).into()
    }

    fn hash(&self, owner: &Owner<'_>, form: u8, data: &str) -> [u8; 32] {
        let mut hash = hmac::Context::with_key(&self.0);
        // A name holds no zero byte, and all before it has a fixed length: no two owners are written alike.
        hash.update(&[form, u8::from(owner.chat.is_some())]);
        hash.update(&owner.bot.0.to_be_bytes());
        hash.update(&owner.chat.map_or(0, |chat| chat.0).to_be_bytes());
        hash.update(owner.plugin.as_str().as_bytes());
        hash.update(&[0]);
        hash.update(data.as_bytes());
        hash.sign().as_ref().try_into().expect("it is a SHA-256")
    }
}

const CARRIED: u8 = 1;
const KEPT: u8 = 2;

/// Tells what callback data is by its form. That a seal is there says nothing of whether it holds.
#[must_use]
pub fn read(wire: &str) -> Wire<'_> {
    let Some(form) = wire.bytes().next().filter(u8::is_ascii) else { return Wire::Foreign };
    let (bound, carried) = match form {
        b'~' => (true, true),
        b'^' => (false, true),
        b'#' => (true, false),
        b'=' => (false, false),
        _ => return Wire::Foreign,
    };
    let length = if carried { SEAL_LETTERS } else { ID_LETTERS };
    let Some((seal, data)) = wire.get(1..).and_then(|rest| rest.split_at_checked(length)) else {
        return Wire::Foreign;
    };
    if !seal.bytes().all(|byte| LETTERS.contains(&byte)) || (!carried && !data.is_empty()) {
        return Wire::Foreign;
    }
    if carried { Wire::Carried { bound, seal, data } } else { Wire::Kept { bound, id: seal } }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Four letters for every three bytes.
fn letters(bytes: &[u8]) -> String {
    let mut letters = String::with_capacity(bytes.len() / 3 * 4);
    for three in bytes.chunks_exact(3) {
        let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
        letters.extend([18, 12, 6, 0].map(|at| char::from(LETTERS[bits >> at & 63])));
    }
    letters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOT: BotId = BotId(42);

    fn opens(seal: &Seal, owner: &Owner<'_>, wire: &str) -> Option<String> {
        match read(wire) {
            Wire::Carried { bound, seal: told, data } if bound == owner.chat.is_some() => {
                seal.holds(owner, told, data).then(|| data.to_owned())
            }
            _ => None,
        }
    }

    #[test]
    fn what_has_room_goes_along_and_the_rest_is_kept() {
        let (seal, shop) = (Seal::new(b"secret"), PluginName::new("shop"));
        for chat in [Some(ChatId(-7)), None] {
            let owner = Owner { bot: BOT, plugin: &shop, chat };
            for (length, is_kept) in [(0, false), (1, false), (55, false), (56, true), (64, true), (1024, true)] {
                let data = "x".repeat(length);
                let Sealed { wire, kept } = seal.seal(&owner, &data);
                assert!(wire.len() <= 64, "{wire}");
                assert_eq!(kept.is_some(), is_kept, "{length}");
                match kept {
                    Some(id) => assert_eq!(read(&wire), Wire::Kept { bound: chat.is_some(), id: &id }),
                    None => assert_eq!(opens(&seal, &owner, &wire), Some(data)),
                }
            }
        }
        let at_most = seal.seal(&Owner { bot: BOT, plugin: &shop, chat: None }, &"x".repeat(55));
        assert_eq!(at_most.wire.len(), 64);
    }

    #[test]
    fn a_seal_holds_for_its_owner_alone() {
        let (shop, other) = (PluginName::new("shop"), PluginName::new("shop2"));
        let owner = Owner { bot: BOT, plugin: &shop, chat: Some(ChatId(7)) };
        let seal = Seal::new(b"secret");
        for (kind, data) in [("carried", "pick:3".to_owned()), ("kept", "pick:3".repeat(20))] {
            let wire = seal.seal(&owner, &data).wire;
            for (what, seal, owner) in [
                ("another secret", Seal::new(b"secre7"), owner),
                ("another bot", seal.clone(), Owner { bot: BotId(43), ..owner }),
                ("another plugin", seal.clone(), Owner { plugin: &other, ..owner }),
                ("another chat", seal.clone(), Owner { chat: Some(ChatId(8)), ..owner }),
                ("any chat", seal.clone(), Owner { chat: None, ..owner }),
            ] {
                assert_eq!(opens(&seal, &owner, &wire), None, "{kind}: {what}");
                assert_ne!(seal.seal(&owner, &data).wire.get(1..), wire.get(1..), "{kind}: {what}");
            }
        }
    }

    #[test]
    fn other_data_is_foreign() {
        let foreign =
            ["", "x", "menu:main", "~", "~1234567", "~12345 78", "#", "#123456789012345", "#1234567890123456x"];
        for wire in foreign.into_iter().chain(["=12345678901234é", "é~", "~1234567é"]) {
            assert_eq!(read(wire), Wire::Foreign, "{wire}");
        }
    }

    #[test]
    fn letters_are_those_of_base64url() {
        for (bytes, expected) in [(&[0, 0, 0][..], "AAAA"), (&[255, 239, 190], "_---"), (b"Man", "TWFu")] {
            assert_eq!(letters(bytes), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_comes_back(data in ".{0,55}", chat in any::<Option<i64>>(), secret in any::<[u8; 32]>()) {
            let (seal, shop) = (Seal::new(&secret), PluginName::new("shop"));
            let owner = Owner { bot: BOT, plugin: &shop, chat: chat.map(ChatId) };
            let Sealed { wire, kept } = seal.seal(&owner, &data);
            prop_assert!(wire.len() <= 64);
            prop_assert_eq!(kept.is_some(), data.len() > 55);
            if kept.is_none() {
                prop_assert_eq!(opens(&seal, &owner, &wire), Some(data));
            }
        }

        #[test]
        fn any_changed_byte_breaks_it(data in "[a-z:0-9]{0,55}", at in any::<prop::sample::Index>(), bit in 0..7u8) {
            let (seal, shop) = (Seal::new(b"secret"), PluginName::new("shop"));
            let owner = Owner { bot: BOT, plugin: &shop, chat: Some(ChatId(7)) };
            let mut bytes = seal.seal(&owner, &data).wire.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let wire = String::from_utf8(bytes).expect("ASCII stays ASCII");
            for chat in [Some(ChatId(7)), None] {
                prop_assert_eq!(opens(&seal, &Owner { chat, ..owner }, &wire), None);
            }
        }

        #[test]
        fn reading_never_fails(wire in ".*") {
            prop_assert!(read(&wire) == Wire::Foreign || wire.starts_with(['~', '^', '#', '=']));
        }
    }
}
