//! The guide's table of contents and its links: what mdBook and its readers would stumble over, without mdBook.
//!
//! Every page under `docs/` stands in `docs/SUMMARY.md` once, what stands there exists, pages link only to pages of the book
//! (nothing else is on the site), to headings that are there, and those with examples are compiled by the SDK's tests.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{File, Problems};

const FOLDER: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";
const TESTED: &str = "sdk/src/guide.rs";

pub(super) fn check(files: &[File], problems: &mut Problems) {
    let pages: BTreeMap<&str, &File> =
        files.iter().filter(|file| is_page(file)).map(|file| (file.path.as_str(), file)).collect();
    let Some(summary) = files.iter().find(|file| file.path == SUMMARY) else {
        problems.0.push(format!("{SUMMARY}:1: there is no table of contents"));
        return;
    };
    listed(&pages, summary, problems);
    for page in pages.values() {
        for (line, target) in links(&page.text) {
            link(&pages, page, line, target, problems);
        }
    }
    let tested = files.iter().find(|file| file.path == TESTED).map_or("", |file| &file.text);
    for page in pages.values().filter(|page| page.text.lines().any(|line| line.starts_with("```rust"))) {
        let name = page.path.trim_start_matches(FOLDER);
        if !tested.contains(&format!("\"{name}\"")) {
            problems.add(page, 0, format_args!("its examples are not compiled: name the page in {TESTED}"));
        }
    }
}

fn is_page(file: &File) -> bool {
    file.is("md") && file.path.starts_with(FOLDER) && file.path != SUMMARY
}

fn listed(pages: &BTreeMap<&str, &File>, summary: &File, problems: &mut Problems) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (line, target) in links(&summary.text) {
        let path = format!("{FOLDER}{target}");
        if !pages.contains_key(path.as_str()) {
            problems.add(summary, line, format_args!("there is no page {target}"));
        }
        if let Some(first) = seen.insert(path, line) {
            problems.add(summary, line, format_args!("{target} stands in line {} already", first + 1));
        }
    }
    for page in pages.values().filter(|page| !seen.contains_key(&page.path)) {
        problems.add(page, 0, format_args!("the page does not stand in {SUMMARY}"));
    }
}

fn link(pages: &BTreeMap<&str, &File>, page: &File, line: usize, target: &str, problems: &mut Problems) {
    if target.contains("://") || target.starts_with("mailto:") {
        return;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let to = if path.is_empty() { page.path.clone() } else { beside(&page.path, path) };
    match pages.get(to.as_str()) {
        None => problems.add(page, line, format_args!("{target} is not a page of the book: name it in `code` instead")),
        Some(to) if !heading.is_empty() && !headings(&to.text).any(|there| there == heading) => {
            problems.add(page, line, format_args!("{} has no heading #{heading}", to.path));
        }
        Some(_) => {}
    }
}

/// `path` as seen from the file `from`.
fn beside(from: &str, path: &str) -> String {
    let mut whole = PathBuf::from(from);
    whole.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    whole.to_string_lossy().into_owned()
}

/// The links outside of code blocks, each with its line.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        line.split("](").skip(1).filter_map(move |rest| Some((number, rest.split(')').next()?)))
    })
}

/// The headings, as links name them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
        Some(slug(title))
    })
}

fn slug(title: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c.is_whitespace();
    let dashed = |c: char| if c.is_whitespace() { '-' } else { c };
    title.trim().to_lowercase().chars().filter(|c| kept(*c)).map(dashed).collect()
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn problems(files: &[File]) -> Vec<String> {
        let mut problems = Problems::default();
        check(files, &mut problems);
        problems.0
    }

    #[test]
    fn a_book_that_is_whole_has_no_problems() {
        let files = [
            file(SUMMARY, "[Begin](README.md)\n- [A](guide/a.md)\n"),
            file("docs/README.md", "# Begin\n[a](guide/a.md#b-c) [out](https://example.org)\n"),
            file("docs/guide/a.md", "# A\n## B `c`\n[up](../README.md#begin) [here](#a)\n```rust\n[x](y)\n```\n"),
            file(TESTED, "a \"guide/a.md\","),
            file("README.md", "[anything](docs)"),
        ];
        assert_eq!(problems(&files), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let files = [
            file(SUMMARY, "[Begin](README.md)\n- [A](a.md)\n- [Again](README.md)\n"),
            file("docs/README.md", "# Begin\n\n[a](../plugins) [b](b.md#none)\n"),
            file("docs/b.md", "# B\n```rust\n```\n"),
        ];
        let expected = [
            "docs/SUMMARY.md:2: there is no page a.md",
            "docs/SUMMARY.md:3: README.md stands in line 1 already",
            "docs/b.md:1: the page does not stand in docs/SUMMARY.md",
            "docs/README.md:3: ../plugins is not a page of the book: name it in `code` instead",
            "docs/README.md:3: docs/b.md has no heading #none",
            "docs/b.md:1: its examples are not compiled: name the page in sdk/src/guide.rs",
        ];
        assert_eq!(problems(&files), expected);
    }

    #[test]
    fn headings_are_named_as_github_and_mdbook_do() {
        for (title, slug_of) in
            [("A deploy without a gap", "a-deploy-without-a-gap"), ("The menu behind `/`", "the-menu-behind-")]
        {
            assert_eq!(slug(title), slug_of);
        }
    }
}
