//! From a text to a condition.

use regex::RegexBuilder;

use crate::{MOST_BYTES, MOST_DEPTH, MOST_TESTS, Node, REGEX_TEST, Test};

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has too many bytes.
    #[error("a condition has at most {MOST_BYTES} bytes, and this one has {0}")]
    Long(usize),
    /// Its parentheses lie too deep within each other.
    #[error("parentheses and `!` lie more than {MOST_DEPTH} deep within each other")]
    Deep,
    /// It has too many tests.
    #[error("a condition has at most {MOST_TESTS} tests")]
    Many,
    /// Something else must stand somewhere.
    #[error("at byte {at}: {wanted} must stand here")]
    Expected {
        /// Where, from 0.
        at: usize,
        /// What.
        wanted: &'static str,
    },
    /// There is no such test.
    #[error("unknown test `{name:.64}`{advice}")]
    Unknown {
        /// Its name.
        name: String,
        /// What was meant, or who may know it.
        advice: String,
    },
    /// A test with something else in its parentheses.
    #[error("`{name:.64}` takes {takes}")]
    Arguments {
        /// The test.
        name: String,
        /// What stands in its parentheses.
        takes: &'static str,
    },
    /// Its regular expression is none.
    #[error("`{pattern:.80}` is not a regular expression: {why:.400}")]
    Regex {
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
}

const NAMES: [&str; 12] = [
    "private",
    "group",
    "channel",
    "chat",
    "topic",
    "user",
    "language",
    "has",
    "text",
    "text_begins",
    REGEX_TEST,
    "args_begin",
];

pub(crate) fn parse(text: &str, regex_bytes: usize) -> Result<Node, Error> {
    if text.len() > MOST_BYTES {
        return Err(Error::Long(text.len()));
    }
    let mut parser = Parser { text, at: 0, depth: 0, tests: 0, regex_bytes };
    let node = parser.any()?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.expected("`&`, `|` or the end")) } else { Ok(node) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    tests: usize,
    regex_bytes: usize,
}

enum Argument {
    Number(i64),
    Text(String),
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Node, Error> {
        self.joined(b'|', Node::Any, Self::all)
    }

    fn all(&mut self) -> Result<Node, Error> {
        self.joined(b'&', Node::All, Self::one)
    }

    fn joined(
        &mut self,
        sign: u8,
        join: fn(Vec<Node>) -> Node,
        part: fn(&mut Self) -> Result<Node, Error>,
    ) -> Result<Node, Error> {
        let first = part(self)?;
        if self.peek() != Some(sign) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.eat(sign) {
            nodes.push(part(self)?);
        }
        Ok(join(nodes))
    }

    fn one(&mut self) -> Result<Node, Error> {
        if self.eat(b'!') {
            return self.deeper(|parser| Ok(Node::Not(Box::new(parser.one()?))));
        }
        if self.eat(b'(') {
            let node = self.deeper(Self::any)?;
            return if self.eat(b')') { Ok(node) } else { Err(self.expected("`)`")) };
        }
        self.tests += 1;
        if self.tests > MOST_TESTS {
            return Err(Error::Many);
        }
        let name = self.word()?;
        let arguments = if self.eat(b'(') { self.arguments()? } else { Vec::new() };
        self.test(name, arguments).map(Node::Is)
    }

    /// Refuses before anything of that depth is built.
    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Result<Node, Error>) -> Result<Node, Error> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(Error::Deep);
        }
        let node = parse(self);
        self.depth -= 1;
        node
    }

    fn test(&self, name: &str, arguments: Vec<Argument>) -> Result<Test, Error> {
        let wrong = |takes| Error::Arguments { name: name.to_owned(), takes };
        let numbers = |arguments: Vec<Argument>| {
            let numbers = arguments.into_iter().map(|argument| match argument {
                Argument::Number(number) => Some(number),
                Argument::Text(_) => None,
            });
            numbers.collect::<Option<Vec<_>>>().filter(|ids| !ids.is_empty()).ok_or_else(|| wrong("one or more ids"))
        };
        let texts = |arguments: Vec<Argument>| {
            let texts = arguments.into_iter().map(|argument| match argument {
                Argument::Text(text) => Some(text),
                Argument::Number(_) => None,
            });
            texts
                .collect::<Option<Vec<_>>>()
                .filter(|texts| !texts.is_empty())
                .ok_or_else(|| wrong("one or more texts"))
        };
        let bare = |arguments: Vec<Argument>, test| if arguments.is_empty() { Ok(test) } else { Err(wrong("nothing")) };
        match name {
            "private" => bare(arguments, Test::Private),
            "group" => bare(arguments, Test::Group),
            "channel" => bare(arguments, Test::Channel),
            "chat" => numbers(arguments).map(Test::Chat),
            "topic" => numbers(arguments).map(Test::Topic),
            "user" => numbers(arguments).map(Test::User),
            "language" => texts(arguments).map(Test::Language),
            "has" => texts(arguments).map(Test::Has),
            "text" => texts(arguments).map(Test::Text),
            "text_begins" => texts(arguments).map(Test::TextBegins),
            "args_begin" => texts(arguments).map(Test::ArgsBegin),
            REGEX_TEST => match texts(arguments)?.as_slice() {
                [pattern] => self.regex(pattern),
                _ => Err(wrong("one regular expression")),
            },
            unknown => Err(Error::Unknown { name: unknown.to_owned(), advice: advice(unknown) }),
        }
    }

    fn regex(&self, pattern: &str) -> Result<Test, Error> {
        let regex = RegexBuilder::new(pattern).size_limit(self.regex_bytes).build();
        // The error's text holds the pattern once more.
        let wrong = |error: regex::Error| Error::Regex { pattern: pattern.to_owned(), why: error.to_string() };
        regex.map(Test::TextMatches).map_err(wrong)
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, Error> {
        let mut arguments = Vec::new();
        while !self.eat(b')') {
            if !arguments.is_empty() && !self.eat(b',') {
                return Err(self.expected("`,` or `)`"));
            }
            arguments.push(self.argument()?);
        }
        Ok(arguments)
    }

    fn argument(&mut self) -> Result<Argument, Error> {
        let is_text = self.peek() == Some(b'"');
        let length = if is_text { self.text_length() } else { self.length(|b| b.is_ascii_digit() || b == b'-') };
        let token = self.take(length);
        let argument = if is_text {
            serde_json::from_str(token).ok().map(Argument::Text)
        } else {
            token.parse().ok().map(Argument::Number)
        };
        argument.ok_or_else(|| self.expected("a text in quotes, or a whole number"))
    }

    /// Of the text in quotes that begins here; 0 where it has no end.
    fn text_length(&self) -> usize {
        let mut escaped = false;
        let end = self.rest().bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        end.map_or(0, |end| end + 2)
    }

    fn word(&mut self) -> Result<&'a str, Error> {
        self.skip_space();
        let length = self.length(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if length == 0 { Err(self.expected("a test, `!` or `(`")) } else { Ok(self.take(length)) }
    }

    fn length(&self, belongs: impl Fn(u8) -> bool) -> usize {
        self.rest().bytes().take_while(|&byte| belongs(byte)).count()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.rest().bytes().next()
    }

    fn eat(&mut self, sign: u8) -> bool {
        let is_there = self.peek() == Some(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_space(&mut self) {
        self.at += self.length(|byte| byte.is_ascii_whitespace());
    }

    fn expected(&self, wanted: &'static str) -> Error {
        Error::Expected { at: self.at, wanted }
    }
}

fn advice(unknown: &str) -> String {
    let near = NAMES.iter().map(|name| (strsim::levenshtein(unknown, name), name)).min();
    match near.filter(|(away, name)| *away <= 2.min(name.len() / 3)) {
        Some((_, name)) => format!(": did you mean `{name}`?"),
        None => "; a newer host may know it".to_owned(),
    }
}
