//! What a conversation script says; pure. The syntax is described in docs/testing.md.
//!
//! A file is read to its end, and every line that can't be understood is told of, with its number.

use std::time::Duration;

use serde_json::Value as Json;

/// One file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// What holds for every conversation of the file.
    pub(super) setup: Vec<(usize, Setup)>,
    pub(super) conversations: Vec<Conversation>,
}

/// One conversation, with a bot that nobody has written to yet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Conversation {
    pub(super) title: String,
    pub(super) line: usize,
    pub(super) setup: Vec<(usize, Setup)>,
    pub(super) turns: Vec<Turn>,
}

/// Something that happens, and all that the bot does then.
#[derive(Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) line: usize,
    pub(super) act: Act,
    pub(super) expected: Vec<Expected>,
}

/// Who is there, and how the bot is configured.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setup {
    Person { name: String, language: Option<String> },
    Group { title: String, members: Vec<String> },
    Set { key: String, value: String },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// `to` is whose newest message it replies to.
    Says {
        who: String,
        place: Option<String>,
        to: Option<String>,
        text: String,
    },
    Presses {
        who: String,
        place: Option<String>,
        button: String,
    },
    Votes {
        who: String,
        place: Option<String>,
        option: String,
    },
    Edits {
        who: String,
        place: Option<String>,
        text: String,
    },
    Asks {
        who: String,
        query: String,
    },
    Blocks {
        who: String,
        blocked: bool,
    },
    Joins {
        who: String,
        place: String,
        how: Joining,
    },
    /// The host ends, and starts on the same store.
    Restarts,
    Update(Json),
    Waits(Duration),
}

/// How somebody comes into a group, or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    Joins,
    Leaves,
    AsksTo,
}

/// One thing that the bot should do.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    pub(super) line: usize,
    /// Where; the chat of the last turn if it is not said.
    pub(super) place: Option<String>,
    pub(super) what: What,
}

/// Texts are patterns: `*` stands for anything.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Says {
        text: String,
        buttons: Option<Vec<Vec<String>>>,
    },
    Edits {
        text: String,
        buttons: Option<Vec<Vec<String>>>,
    },
    Answers(String),
    Calls {
        method: String,
        params: Option<Json>,
    },
    Refused(String),
    /// Whatever else it does.
    Anything,
}

/// A line that can't be understood.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) message: String,
}

/// A line with the indented ones that belong to it.
struct Entry {
    line: usize,
    head: String,
    more: Vec<String>,
}

const BOT: &str = "Bot";

/// Reads a script. `name` is the title of a conversation that has none.
pub(super) fn parse(text: &str, name: &str) -> Result<Script, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut script = Script::default();
    for entry in entries(text, &mut problems) {
        if let Err(message) = script.add(&entry, name) {
            problems.push(Problem { line: entry.line, message });
        }
    }
    if problems.is_empty() && script.conversations.is_empty() {
        let message = "nothing happens here; begin with a line such as `Alice: /start`".to_owned();
        problems.push(Problem { line: 1, message });
    }
    let empty = script.conversations.iter().filter(|conversation| conversation.turns.is_empty());
    problems.extend(empty.map(|conversation| Problem {
        line: conversation.line,
        message: format!("nothing happens in `{}`", conversation.title),
    }));
    problems.sort_by_key(|problem| problem.line);
    if problems.is_empty() { Ok(script) } else { Err(problems) }
}

fn entries(text: &str, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut blank = 0;
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let text = text.trim_end();
        if text.is_empty() {
            blank += 1;
        } else if text.starts_with([' ', '\t']) {
            match entries.last_mut() {
                Some(entry) => {
                    entry
                        .more
                        .extend(std::iter::repeat_n(String::new(), if entry.more.is_empty() { 0 } else { blank }));
                    entry.more.push(text.to_owned());
                }
                None => problems.push(Problem {
                    line,
                    message: "an indented line goes on with the one above it, and there is none".to_owned(),
                }),
            }
            blank = 0;
        } else {
            blank = 0;
            if !text.starts_with('#') {
                entries.push(Entry { line, head: text.to_owned(), more: Vec::new() });
            }
        }
    }
    for entry in &mut entries {
        let margin = |line: &String| line.len() - line.trim_start().len();
        let margin = entry.more.iter().filter(|line| !line.is_empty()).map(margin).min().unwrap_or(0);
        for line in &mut entry.more {
            *line = line.get(margin..).unwrap_or_default().to_owned();
        }
    }
    entries
}

impl Script {
    fn add(&mut self, entry: &Entry, name: &str) -> Result<(), String> {
        let head = entry.head.as_str();
        if let Some(title) = head.strip_prefix("===") {
            let title = title.trim_matches(['=', ' ']);
            let title = if title.is_empty() { name } else { title }.to_owned();
            self.conversations.push(Conversation { title, line: entry.line, ..Conversation::default() });
            return entry.alone();
        }
        if let Some(setup) = setup(head)? {
            match self.conversations.last_mut() {
                Some(conversation) if !conversation.turns.is_empty() => {
                    return Err("people, groups and settings come before the first thing that happens".to_owned());
                }
                Some(conversation) => conversation.setup.push((entry.line, setup)),
                None => self.setup.push((entry.line, setup)),
            }
            return entry.alone();
        }
        if self.conversations.is_empty() {
            let (title, line) = (name.to_owned(), entry.line);
            self.conversations.push(Conversation { title, line, ..Conversation::default() });
        }
        let conversation = self.conversations.last_mut().expect("there is one by now");
        match expectation(entry)? {
            Some(expected) => {
                let turn = conversation.turns.last_mut();
                let turn = turn.ok_or("the bot speaks before anything has happened; who begins?")?;
                turn.expected.extend(expected.map(|(place, what)| Expected { line: entry.line, place, what }));
            }
            None => {
                conversation.turns.push(Turn { line: entry.line, act: act(entry)?, expected: Vec::new() });
            }
        }
        Ok(())
    }
}

impl Entry {
    fn alone(&self) -> Result<(), String> {
        if self.more.is_empty() { Ok(()) } else { Err("no indented lines can follow here".to_owned()) }
    }

    /// The text behind the colon and in the lines below.
    fn text(&self, first: &str) -> String {
        let first = Some(first.trim()).filter(|first| !first.is_empty() || self.more.is_empty());
        let lines: Vec<&str> = first.into_iter().chain(self.more.iter().map(String::as_str)).collect();
        lines.join("\n")
    }

    /// Of what the bot says: its text, and the buttons under it where the script tells of any.
    fn text_and_buttons(&self, first: &str) -> (String, Option<Vec<Vec<String>>>) {
        let is_row = |line: &&String| line.starts_with('[') && line.ends_with(']');
        let n_rows = self.more.iter().rev().take_while(is_row).count();
        let (more, rows) = self.more.split_at(self.more.len() - n_rows);
        let text = Entry { line: self.line, head: String::new(), more: more.to_vec() }.text(first);
        let rows: Vec<Vec<String>> = rows.iter().map(|row| labels(row)).filter(|row| !row.is_empty()).collect();
        (text, (n_rows > 0).then_some(rows))
    }
}

/// The labels of `[A] [B]`; none of `[]`.
fn labels(row: &str) -> Vec<String> {
    let inner = row.trim_start_matches('[').trim_end_matches(']');
    if inner.trim().is_empty() {
        return Vec::new();
    }
    inner.split("] [").map(|label| label.trim().to_owned()).collect()
}

fn setup(head: &str) -> Result<Option<Setup>, String> {
    if let Some(rest) = head.strip_prefix("person ") {
        let (name, language) = match rest.split_once(" speaks ") {
            Some((name, language)) => (name, Some(language.trim().to_owned())),
            None => (rest, None),
        };
        let name = name.trim();
        if name.is_empty() || name.contains([' ', ':']) || name == BOT {
            return Err(format!("a person's name is one word, and not `{BOT}`: `person Dilnoza speaks uz`"));
        }
        return Ok(Some(Setup::Person { name: name.to_owned(), language }));
    }
    if let Some(rest) = head.strip_prefix("group ") {
        let (title, members) = rest.split_once(':').ok_or("name its members: `group Family: Alice, Botir`")?;
        let members = members.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        return Ok(Some(Setup::Group { title: title.trim().to_owned(), members }));
    }
    if let Some(rest) = head.strip_prefix("set ") {
        let example = "`set plugins.shop.config.currency = \"UZS\"`";
        let (key, value) = rest.split_once('=').ok_or_else(|| format!("a setting looks like {example}"))?;
        return Ok(Some(Setup::Set { key: key.trim().to_owned(), value: value.trim().to_owned() }));
    }
    Ok(None)
}

type Placed = (Option<String>, What);

/// What the bot should do, if the line tells of that. The inner `None` is `Bot says nothing`: nothing is what it does
/// beyond what is written, always.
fn expectation(entry: &Entry) -> Result<Option<Option<Placed>>, String> {
    let head = entry.head.as_str();
    if head == "..." {
        entry.alone()?;
        return Ok(Some(Some((None, What::Anything))));
    }
    let Some(rest) = head.strip_prefix(BOT).filter(|rest| rest.starts_with([' ', ':'])) else { return Ok(None) };
    if rest == " says nothing" {
        entry.alone()?;
        return Ok(Some(None));
    }
    if let Some(call) = rest.strip_prefix(" calls ") {
        let call = entry.text(call);
        let (method, params) = call.split_once(char::is_whitespace).unwrap_or((&call, ""));
        let params = Some(params.trim()).filter(|params| !params.is_empty()).map(serde_json::from_str).transpose();
        let params = params.map_err(|error| format!("what stands behind the method is no JSON: {error}"))?;
        return Ok(Some(Some((None, What::Calls { method: method.to_owned(), params }))));
    }
    let (head, first) = rest.split_once(':').ok_or(
        "expected `Bot: TEXT`, `Bot edits: TEXT`, `Bot answers: TEXT`, `Bot calls METHOD {…}`, `Bot is refused: TEXT` \
         or `Bot says nothing`",
    )?;
    for verb in ["edits", "answers", "is refused", ""] {
        let Some(rest) = head.trim_start().strip_prefix(verb) else { continue };
        let Some(place) = place(rest, &["in ", "to "]) else { continue };
        let what = match verb {
            "answers" => What::Answers(entry.text(first)),
            "is refused" => What::Refused(entry.text(first)),
            verb => {
                let (text, buttons) = entry.text_and_buttons(first);
                if verb.is_empty() { What::Says { text, buttons } } else { What::Edits { text, buttons } }
            }
        };
        return Ok(Some(Some((place, what))));
    }
    Err(format!("`Bot{head}:` is not understood; expected `Bot:`, `Bot in CHAT:`, `Bot edits:` or `Bot answers:`"))
}

/// Nothing, or `in CHAT`; the outer `None` for anything else.
#[expect(clippy::option_option, reason = "no place is not the same as what is no place")]
fn place(text: &str, words: &[&str]) -> Option<Option<String>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    words.iter().find_map(|word| text.strip_prefix(word)).map(|place| Some(place.trim().to_owned()))
}

fn act(entry: &Entry) -> Result<Act, String> {
    let head = entry.head.as_str();
    if head == "restart" {
        entry.alone()?;
        return Ok(Act::Restarts);
    }
    if let Some(time) = head.strip_prefix("wait ") {
        entry.alone()?;
        return Ok(Act::Waits(duration(time)?));
    }
    if let Some(json) = head.strip_prefix("update ") {
        let json = serde_json::from_str(&entry.text(json)).map_err(|error| format!("this is no JSON: {error}"))?;
        return Ok(Act::Update(json));
    }
    let end = head.find([' ', ':']).ok_or_else(|| not_understood(head))?;
    let (who, rest) = head.split_at(end);
    let who = who.to_owned();
    let bracketed = |verb: &str, example: &str| {
        let Some(rest) = rest.strip_prefix(verb).and_then(|rest| rest.strip_prefix(" [")) else { return Ok(None) };
        entry.alone()?;
        let (label, rest) = rest.rsplit_once(']').ok_or_else(|| format!("name it like this: `{example}`"))?;
        let place = place(rest, &["in "]).ok_or_else(|| not_understood(head))?;
        Ok::<_, String>(Some((place, label.to_owned())))
    };
    if let Some((place, button)) = bracketed(" presses", "Alice presses [Yes]")? {
        return Ok(Act::Presses { who, place, button });
    }
    if let Some((place, option)) = bracketed(" votes", "Alice votes [Tea]")? {
        return Ok(Act::Votes { who, place, option });
    }
    for (words, blocked) in [(" blocks the bot", true), (" unblocks the bot", false)] {
        if rest == words {
            entry.alone()?;
            return Ok(Act::Blocks { who, blocked });
        }
    }
    let ways = [(" joins ", Joining::Joins), (" leaves ", Joining::Leaves), (" asks to join ", Joining::AsksTo)];
    for (words, how) in ways {
        if let Some(place) = rest.strip_prefix(words).filter(|place| !place.contains(':')) {
            entry.alone()?;
            return Ok(Act::Joins { who, place: place.trim().to_owned(), how });
        }
    }
    let (between, first) = rest.split_once(':').ok_or_else(|| not_understood(head))?;
    let text = entry.text(first);
    let between = between.trim();
    if between == "asks" {
        return Ok(Act::Asks { who, query: text });
    }
    if text.trim().is_empty() {
        return Err(format!("{who} says nothing; nobody can send an empty message"));
    }
    if let Some(place) = between.strip_prefix("edits").and_then(|rest| place(rest, &["in "])) {
        return Ok(Act::Edits { who, place, text });
    }
    let (between, to) = match between.rsplit_once("replies to ") {
        Some((before, to)) => (before.trim(), Some(to.trim().to_owned())),
        None => (between, None),
    };
    let place = place(between, &["in "]).ok_or_else(|| not_understood(head))?;
    Ok(Act::Says { who, place, to, text })
}

fn not_understood(line: &str) -> String {
    format!(
        "`{line}` is not understood; expected `Alice: TEXT`, `Alice in CHAT: TEXT`, `Alice presses [LABEL]`, \
         `Bot: TEXT`, `wait 1h`, `restart`, `=== TITLE` or a comment (#); see docs/testing.md"
    )
}

/// `90s`, `1h 30m`, `2d`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{:?} is no length of time; expected something like `90s`, `15m`, `1h 30m` or `2d`", text.trim());
    let mut total = Duration::ZERO;
    for part in text.split_whitespace() {
        let end = part.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = part.split_at(end);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let seconds = number.checked_mul(unit).filter(|seconds| *seconds <= 100 * 366 * 86_400);
        total += Duration::from_secs(seconds.ok_or("nobody waits for more than a hundred years")?);
    }
    if total.is_zero() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(text: &str) -> Vec<Turn> {
        let mut script = parse(text, "test").unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(script.conversations.len(), 1);
        script.conversations.remove(0).turns
    }

    fn says(text: &str, buttons: Option<&[&[&str]]>) -> What {
        let row = |row: &&[&str]| row.iter().map(|&label| label.to_owned()).collect();
        What::Says { text: text.to_owned(), buttons: buttons.map(|rows| rows.iter().map(row).collect()) }
    }

    #[test]
    fn a_conversation_is_read_turn_by_turn() {
        let turns = turns(
            "# about tea\n\nAlice: /menu\nBot: What would you like?\n  [Black tea] [Green]\n  [Close]\n\nAlice presses [Green]\n\
             Bot edits: Green.\n  Two lines: of it.\n\n  And one more.\n  []\nBot answers: *\nwait 1h 30m\nBot says nothing\nrestart\n",
        );
        let acts: Vec<(usize, &Act)> = turns.iter().map(|turn| (turn.line, &turn.act)).collect();
        let alice = || "Alice".to_owned();
        assert_eq!(
            acts,
            [
                (3, &Act::Says { who: alice(), place: None, to: None, text: "/menu".to_owned() }),
                (8, &Act::Presses { who: alice(), place: None, button: "Green".to_owned() }),
                (15, &Act::Waits(Duration::from_secs(5400))),
                (17, &Act::Restarts),
            ]
        );
        let what = |turn: usize| turns[turn].expected.iter().map(|expected| expected.what.clone()).collect::<Vec<_>>();
        assert_eq!(what(0), [says("What would you like?", Some(&[&["Black tea", "Green"], &["Close"]]))]);
        let text = "Green.\nTwo lines: of it.\n\nAnd one more.".to_owned();
        assert_eq!(what(1), [What::Edits { text, buttons: Some(Vec::new()) }, What::Answers("*".to_owned())]);
        assert_eq!(what(2), []);
    }

    #[test]
    fn chats_have_names_and_texts_may_hold_anything() {
        let turns = turns(
            "Alice in Friday football: he presses [x]: wait 1h\nBot in Friday football: hi\nBot to Botir: psst\n\
             Botir: Bot: no\nBotir edits: yes\nBotir asks: pizza: two\nBot calls answerInlineQuery {\"results\": []}\n...\n\
             Alice votes [Tea [hot]] in Friday football\n",
        );
        let place = Some("Friday football".to_owned());
        let text = "he presses [x]: wait 1h".to_owned();
        assert_eq!(turns[0].act, Act::Says { who: "Alice".to_owned(), place: place.clone(), to: None, text });
        let places: Vec<_> = turns[0].expected.iter().map(|expected| expected.place.clone()).collect();
        assert_eq!(places, [place, Some("Botir".to_owned())]);
        assert_eq!(
            turns[1].act,
            Act::Says { who: "Botir".to_owned(), place: None, to: None, text: "Bot: no".to_owned() }
        );
        assert_eq!(turns[3].act, Act::Asks { who: "Botir".to_owned(), query: "pizza: two".to_owned() });
        let params = Some(serde_json::json!({ "results": [] }));
        let what: Vec<_> = turns[3].expected.iter().map(|expected| expected.what.clone()).collect();
        assert_eq!(what, [What::Calls { method: "answerInlineQuery".to_owned(), params }, What::Anything]);
        let (who, place) = ("Alice".to_owned(), Some("Friday football".to_owned()));
        assert_eq!(turns[4].act, Act::Votes { who, place, option: "Tea [hot]".to_owned() });
    }

    #[test]
    fn people_reply_and_come_and_go() {
        let script = parse(
            "Botir in Neighbours replies to Chiara: /warn\nAlice replies to Bot: yes\nNoor asks to join Club\n\
             Noor joins Club\nNoor leaves Club\nAlice: joins Club: now\n",
            "x",
        );
        let turns = script.unwrap().conversations.remove(0).turns;
        let says = |who: &str, place: Option<&str>, to: Option<&str>, text: &str| {
            let owned = |text: &str| text.to_owned();
            Act::Says { who: owned(who), place: place.map(owned), to: to.map(owned), text: owned(text) }
        };
        let joins = |how| Act::Joins { who: "Noor".to_owned(), place: "Club".to_owned(), how };
        let expected = [
            says("Botir", Some("Neighbours"), Some("Chiara"), "/warn"),
            says("Alice", None, Some("Bot"), "yes"),
            joins(Joining::AsksTo),
            joins(Joining::Joins),
            joins(Joining::Leaves),
            says("Alice", None, None, "joins Club: now"),
        ];
        assert_eq!(turns.into_iter().map(|turn| turn.act).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn settings_hold_for_the_file_or_for_one_conversation() {
        let text = "set send.chat_per_second = 1\n=== one ===\nperson Dilnoza speaks uz\ngroup Family: Alice, Dilnoza\n\
                    Dilnoza in Family: hi\n=== two\nAlice: hi\n";
        let script = parse(text, "x").unwrap();
        let set = Setup::Set { key: "send.chat_per_second".to_owned(), value: "1".to_owned() };
        assert_eq!(script.setup, [(1, set)]);
        assert_eq!(script.conversations[0].setup.len(), 2);
        let titles: Vec<&str> = script.conversations.iter().map(|conversation| conversation.title.as_str()).collect();
        assert_eq!(titles, ["one", "two"]);
    }

    #[test]
    fn every_wrong_line_is_named() {
        for (text, line, word) in [
            ("", 1, "begin with"),
            ("  indented\nAlice: hi", 1, "indented"),
            ("Alice says hi", 1, "not understood"),
            ("hello", 1, "not understood"),
            ("Bot: hi", 1, "who begins"),
            ("Alice: hi\nBot shrugs: hi", 2, "not understood"),
            ("Alice: hi\nBot shrugs", 2, "expected"),
            ("Alice: hi\nBot calls sendDice {", 2, "JSON"),
            ("Alice:", 1, "empty message"),
            ("Alice presses Yes", 1, "not understood"),
            ("Alice votes [Yes", 1, "`Alice votes [Tea]`"),
            ("wait soon", 1, "length of time"),
            ("wait 1y", 1, "length of time"),
            ("wait 99999999999d", 1, "hundred years"),
            ("Alice: hi\nperson Bob", 2, "before the first"),
            ("person Bot\nAlice: hi", 1, "one word"),
            ("=== a\n=== b\nAlice: hi", 1, "nothing happens"),
            ("wait 1s\n  2s", 1, "indented"),
        ] {
            let problems = parse(text, "x").unwrap_err();
            let found = problems.iter().any(|problem| problem.line == line && problem.message.contains(word));
            assert!(found, "{text:?}: {problems:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}") {
            drop(parse(&text, "x"));
        }

        #[test]
        fn no_lines_make_it_panic(lines in proptest::collection::vec(
            "(Alice|Bot|Bot edits|Bot calls|wait|person|group|set|===|  |update)[ :\\[\\]a-zé=]{0,12}", 0..8)) {
            drop(parse(&lines.join("\n"), "x"));
        }
    }
}
