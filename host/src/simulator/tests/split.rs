//! What the host makes of a long text, read back by another reader of the same markup.

use proptest::prelude::*;

use crate::simulator::entities::{format, units};
use crate::telegram::split::{Limits, Markup, parts};

/// A text, or marked content.
#[derive(Debug, Clone)]
enum Node {
    Text(String),
    Marked(usize, Vec<Node>),
}

/// HTML and MarkdownV2 of the same marks. The last is a link.
const MARKS: [[&str; 4]; 6] = [
    ["<b>", "</b>", "*", "*"],
    ["<i>", "</i>", "_", "_"],
    ["<u>", "</u>", "__", "__"],
    ["<s>", "</s>", "~", "~"],
    ["<tg-spoiler>", "</tg-spoiler>", "||", "||"],
    ["<a href=\"https://a.example/\">", "</a>", "[", "](https://a.example/)"],
];

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let piece =
        prop::sample::select(vec!["a", "word", "é", "😀", "你好。", " ", "\n", "\n\n", ". ", "_", "*", "<", "&"]);
    let text = prop::collection::vec(piece, 1..20).prop_map(|pieces| Node::Text(pieces.concat()));
    let node = text.prop_recursive(4, 40, 6, |inner| {
        (0..MARKS.len(), prop::collection::vec(inner, 1..6)).prop_map(|(mark, nodes)| Node::Marked(mark, nodes))
    });
    prop::collection::vec(node, 1..8)
}

/// Writes the nodes with the marks at `column` and the one after it; none within itself.
fn write(nodes: &[Node], column: usize, open: &mut Vec<usize>, out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) if column == 0 => {
                out.push_str(&text.replace('&', "&amp;").replace('<', "&lt;"));
            }
            Node::Text(text) => {
                for c in text.chars() {
                    out.extend(Some('\\').filter(|_| "_*[]()~`>#+-=|{}.!".contains(c)));
                    out.push(c);
                }
            }
            Node::Marked(mark, nodes) if open.contains(mark) => write(nodes, column, open, out),
            Node::Marked(mark, nodes) => {
                open.push(*mark);
                // Something between any two marks, so that `_` and `__` can't be mistaken.
                out.push_str(&format!("x{}x", MARKS[*mark][column]));
                write(nodes, column, open, out);
                out.push_str(&format!("x{}x", MARKS[*mark][column + 1]));
                open.pop();
            }
        }
    }
}

/// Everything that is seen, with what marks it.
fn seen(text: &str, parse_mode: &str) -> Vec<(u16, Vec<String>)> {
    let formatted = format(text, parse_mode, Vec::new()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let marks = |at: usize| {
        let here = formatted.entities.iter().filter(|e| (e.offset..e.offset + e.length).contains(&at));
        let mut kinds: Vec<String> = here.map(|entity| entity.kind.clone()).collect();
        kinds.sort();
        kinds
    };
    let units = formatted.text.encode_utf16().enumerate().filter(|(_, unit)| !matches!(unit, 10 | 13 | 32));
    units.map(|(at, unit)| (unit, marks(at))).collect()
}

proptest! {
    #[test]
    fn every_part_is_valid_and_all_together_show_the_same(nodes in nodes(), limit in 5_usize..60) {
        for (column, parse_mode, markup) in [(0, "HTML", Markup::Html), (2, "MarkdownV2", Markup::MarkdownV2)] {
            let mut text = String::new();
            write(&nodes, column, &mut Vec::new(), &mut text);
            let limits = Limits { first: limit, rest: limit + 7, source: 500 };
            if let Some(parts) = parts(&text, markup, &[], limits) {
                let mut shown = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    let n_units = units(&format(&part.text, parse_mode, Vec::new()).unwrap().text);
                    prop_assert!((1..=limit + if at == 0 { 0 } else { 7 }).contains(&n_units), "{}", part.text);
                    prop_assert!(part.text.len() <= 500);
                    shown.extend(seen(&part.text, parse_mode));
                }
                prop_assert_eq!(shown, seen(&text, parse_mode));
            }
        }
    }
}
