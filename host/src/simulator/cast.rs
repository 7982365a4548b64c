//! Who is there at the beginning: five people, each with another language, two groups and a channel.

use super::model::{Chat, ChatKind, Topic, User};
use super::world::World;

/// Alice, who speaks English.
pub const ALICE: i64 = 1001;
/// Botir, who speaks Uzbek.
pub const BOTIR: i64 = 1002;
/// Chiara, who speaks Italian.
pub const CHIARA: i64 = 1003;
/// Diego, who speaks Brazilian Portuguese; his id needs more than 32 bits.
pub const DIEGO: i64 = 5_012_338_965;
/// Noor, whose client does not say which language she speaks.
pub const NOOR: i64 = 1005;
/// A basic group of Alice, Botir and Chiara.
pub const GROUP: i64 = -2001;
/// A supergroup of everybody, with topics.
pub const FORUM: i64 = -1_001_557_912_345;
/// A channel.
pub const CHANNEL: i64 = -1_001_900_000_001;

pub(super) fn enter(world: &mut World) {
    for (id, first, last, username, language) in [
        (ALICE, "Alice", Some("Archer"), Some("alice"), Some("en")),
        (BOTIR, "Botir", None, Some("botir"), Some("uz")),
        (CHIARA, "Chiara", Some("Conti"), None, Some("it")),
        (DIEGO, "Diego", None, Some("diego"), Some("pt-br")),
        (NOOR, "Noor", None, None, None),
    ] {
        let mut user = User::new(id, first, language);
        user.last_name = last.map(str::to_owned);
        user.username = username.map(str::to_owned);
        world.add_user(user);
    }
    let everybody = [ALICE, BOTIR, CHIARA, DIEGO, NOOR];
    let mut group = Chat::new(GROUP, ChatKind::Group, "Friday football", &everybody[..3]);
    group.admins = vec![ALICE];
    let mut forum = Chat::new(FORUM, ChatKind::Supergroup, "Neighbours", &everybody);
    forum.admins = vec![BOTIR];
    forum.username = Some("neighbours".to_owned());
    forum.topics = vec![Topic::new(2, "Lost and found"), Topic::new(3, "Garden")];
    // A topic has the id of the message that opened it.
    forum.last_message_id = 3;
    let mut channel = Chat::new(CHANNEL, ChatKind::Channel, "News", &everybody);
    channel.admins = vec![CHIARA];
    channel.username = Some("news".to_owned());
    for chat in [group, forum, channel] {
        world.chats.insert(chat.id, chat);
    }
}
