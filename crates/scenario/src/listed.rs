//! The settings of a scenario as a person asks for them: default, words, and what the file says of each.

use std::path::Path;

use crate::comparison::Text;
use crate::language::comparison::COMPARE;
use crate::load::{folder_of, text_of};
use crate::pieces::{Piece, split};
use crate::secrets::{Secrets, is_secret};
use crate::sink::Sink;
use crate::yaml::{self, Content, Node};

/// A scenario's settings, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The scenario: a shipped name, or a file.
    pub scenario: String,
    /// Its settings that can be set.
    pub settings: Vec<ListedSetting>,
}

/// A setting as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSetting {
    /// Its name.
    pub name: String,
    /// What it is where nobody sets it; not shown where it is a secret.
    pub default: String,
    /// The words that it takes; empty where it takes any. Those that are secret are not shown, either.
    pub words: Vec<String>,
    /// What it is for: the comment beside it, and those indented below; or above it.
    pub about: String,
}

/// Like [`listed_text`], of a file; nothing where it cannot be read.
pub fn listed_file(path: &Path) -> Vec<Listed> {
    let name = path.display().to_string();
    text_of(path, &name).map_or_else(|_| Vec::new(), |text| listed_text(&name, &text, folder_of(path)))
}

/// The settings of a scenario, or of a comparison and of each scenario in it, which `--set` reaches. Those that a
/// comparison says of all its sides are left out. Nothing of what cannot be read.
///
/// ```
/// let text = "settings:\n  users: 100   # at once\n  store: [redis, valkey]\n";
/// let listed = tidemark_scenario::listed_text("mine", text, ".".as_ref());
/// let [users, store] = &listed[0].settings[..] else { panic!() };
/// assert_eq!((users.default.as_str(), users.about.as_str()), ("100", "at once"));
/// assert_eq!((store.default.as_str(), store.words.len()), ("redis", 2));
/// ```
pub fn listed_text(name: &str, text: &str, base_dir: &Path) -> Vec<Listed> {
    let Some(root) = yaml::read(&Sink::new(name, text)) else { return Vec::new() };
    let mut all = vec![Listed { scenario: name.to_owned(), settings: of(&root, text) }];
    let sides = root.get(COMPARE).map(Node::entries).unwrap_or_default();
    let named = |node: &Node| node.get("scenario").unwrap_or(node).text().map(str::to_owned);
    for (_, node) in sides {
        let Some(scenario) = named(node).filter(|name| all.iter().all(|of| of.scenario != *name)) else {
            continue;
        };
        let Some(found) = Text::find(&scenario, base_dir) else { continue };
        let Some(inner) = yaml::read(&Sink::new(&found.name, &found.text)) else { continue };
        let mut settings = of(&inner, &found.text);
        let same = || sides.iter().filter(|(_, node)| named(node).as_ref() == Some(&scenario));
        let says = |node: &Node, name: &str| node.get("set").is_some_and(|set| set.get(name).is_some());
        settings.retain(|setting| same().any(|(_, node)| !says(node, &setting.name)));
        all.push(Listed { scenario, settings });
    }
    all.retain(|listed| !listed.settings.is_empty());
    all
}

fn of(root: &Node, text: &str) -> Vec<ListedSetting> {
    let entries = root.get("settings").map(Node::entries).unwrap_or_default();
    let abouts = abouts(entries, text);
    let one = |((key, value), about): (&(Node, Node), String)| {
        let name = key.text()?.to_owned();
        let shown = |text: &str| match is_secret(&name, text) {
            true => "(secret)".to_owned(),
            // a URL may have a password
            false => Secrets::default().masked(text),
        };
        let words: Vec<&str> = value.items().iter().filter_map(Node::text).collect();
        let default = value.text().or(words.first().copied())?;
        let is_plain = matches!(split(default).as_deref(), Ok([] | [Piece::Literal(_)]));
        let default = match default {
            _ if is_secret(&name, default) => shown(default),
            _ if !is_plain && default.contains("env(") => "(from the environment)".to_owned(),
            "" if !matches!(&value.content, Content::Scalar { plain: true, .. }) => "\"\"".to_owned(),
            _ => shown(default),
        };
        let words = words.into_iter().map(shown).collect();
        Some(ListedSetting { name, default, words, about })
    };
    entries.iter().zip(abouts).filter_map(one).collect()
}

/// The comments of each setting: on its lines, and below where they are indented; those at its own indentation belong to
/// what comes after.
fn abouts(entries: &[(Node, Node)], text: &str) -> Vec<String> {
    let mut abouts = vec![String::new(); entries.len()];
    let Some((first, _)) = entries.first() else { return abouts };
    let column = first.position.column;
    let add = |about: &mut String, comment: &str| {
        if !about.is_empty() && !comment.is_empty() {
            about.push(' ');
        }
        about.push_str(comment);
    };
    let starts = |line: usize| entries.iter().rposition(|(key, _)| key.position.line == line);
    let (mut above, mut now) = (String::new(), None);
    // what stands above the first belongs to it, too
    let lines: Vec<&str> = text.lines().collect();
    let is_above = |line: &&str| line.trim_start().starts_with('#') && indentation(line) + 1 == column;
    let before = &lines[..(first.position.line.saturating_sub(1)).min(lines.len())];
    let many = before.iter().rev().take_while(|line| is_above(line)).count();
    for (at, line) in lines.iter().enumerate().skip(before.len() - many) {
        let (comment, is_alone) = (comment(line), line.trim_start().starts_with('#'));
        if let Some(index) = starts(at + 1) {
            now = Some(index);
            let about = &mut abouts[index];
            add(about, &std::mem::take(&mut above));
            add(about, comment);
        } else if is_alone && indentation(line) < column {
            add(&mut above, comment);
        } else if line.trim().is_empty() || indentation(line) < column {
            if now.is_some() {
                break;
            }
        } else if let Some(index) = now {
            add(&mut abouts[index], comment);
        }
    }
    abouts
}

fn indentation(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

/// The comment of a line, without its mark; a `#` in quotes or within a word begins none.
fn comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '#' && before.is_whitespace() => return line[at + 1..].trim(),
            None if matches!(c, '"' | '\'') && matches!(before, ' ' | '[' | '{' | ',' | ':') => {
                quote = Some(c)
            }
            None => {}
        }
        before = c;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<(String, String, String)> {
        let all = listed_text("a", text, Path::new("."));
        let one = |of: ListedSetting| (of.name, of.default, of.about);
        all.into_iter().flat_map(|of| of.settings).map(one).collect()
    }

    #[test]
    fn comments_beside_below_and_above_belong_to_their_setting() {
        let text = "# none\nsettings:  # replace with --set\n  # how many\n  a: 1\n  b: '#1'  # two\n           # lines\n  # of the last\n  \
                    c:  # long\n    [\"x # y\", z]\n  d: ${a * 2}\n  e: \"\"\n\n  # not of a setting\nload: {users: 1}\n";
        let wanted = [
            ("a", "1", "how many"),
            ("b", "#1", "two lines"),
            ("c", "x # y", "of the last long"),
            ("d", "${a * 2}", ""),
            ("e", "\"\"", ""),
        ];
        assert_eq!(
            listed(text),
            wanted.map(|(name, default, about)| (name.into(), default.into(), about.into()))
        );
        assert!(listed("settings: {").is_empty() && listed("name: x").is_empty());
        assert_eq!(listed("settings: {a: 1, b: 2} # both").len(), 2);
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = "settings:\n  password: hunter2\n  key: ${env('K', 'hunter3')}\n  plain: ${env('K', 'hunter4')}\n  \
                    url: \"redis://:hunter22@127.0.0.1:6379/1\"\n  token: [hunter5, hunter6]\n";
        let all = listed_text("a", text, Path::new(".")).remove(0).settings;
        assert_eq!((all.len(), all[3].default.as_str()), (5, "redis://***@127.0.0.1:6379/1"));
        assert!(!format!("{all:?}").contains("hunter"), "{all:?}");
    }

    #[test]
    fn of_a_comparison_only_what_can_be_set_is_listed() {
        let text = "settings: {n: 1}\nrounds: ${n}\ncompare:\n  x: {scenario: kv-memcached, set: {reads: 1, threads: 1}}\n  \
                    y: {scenario: kv-memcached, set: {reads: 2}}\n";
        let all = listed_text("mine", text, Path::new("."));
        assert_eq!(all.iter().map(|of| of.scenario.as_str()).collect::<Vec<_>>(), ["mine", "kv-memcached"]);
        let names: Vec<&str> = all[1].settings.iter().map(|of| of.name.as_str()).collect();
        assert!(names.contains(&"threads") && !names.contains(&"reads"), "{names:?}");
    }

    #[test]
    fn every_setting_of_a_shipped_scenario_says_what_it_is_for() {
        for name in crate::shipped_names() {
            for listed in listed_text(name, crate::shipped(name).unwrap(), Path::new(".")) {
                for setting in &listed.settings {
                    assert!(!setting.about.is_empty(), "{}: {}", listed.scenario, setting.name);
                }
            }
        }
    }
}
