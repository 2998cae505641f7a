//! A system of one's own: its command, and what is around it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::plan::{Hook, Launch, PORT, READY_STATUS, Ready, System, SystemOrigin};
use crate::reader::Reader;
use crate::yaml::{Node, one_or_many};

/// Longest time until a command before or after the system is over, where a scenario says nothing.
const HOOK_WITHIN: Duration = Duration::from_secs(60);
/// Words that only a shell understands.
const OF_SHELL: [&str; 10] = ["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];
/// What only a command has.
const OF_COMMAND: [&str; 6] = ["env", "cwd", "port", "before", "after", "ready"];

/// Reads what a command has around it, into `system`, and tells of it where there is no command.
pub(super) fn read(node: &Node, base: &Path, system: &mut System, reader: &Reader<'_>) {
    let SystemOrigin::Command(_) = system.origin else {
        for (key, _) in OF_COMMAND.iter().filter_map(|key| node.entry(key)) {
            let name = key.text().unwrap_or_default();
            reader.sink.error(key, format!("\"{name}\" belongs to a system that is a `command`"));
        }
        return;
    };
    system.launch = Launch {
        env: node.get("env").map_or_else(BTreeMap::new, |env| variables(env, reader)),
        cwd: node.get("cwd").and_then(|cwd| {
            let folder = base.join(reader.text(cwd)?);
            if !folder.is_dir() {
                reader.sink.error(cwd, format!("{} is not a folder", folder.display()));
            }
            Some(folder)
        }),
        port: node.get("port").and_then(|port| {
            let number = reader.whole(port, 1)?;
            let told = || {
                reader.sink.error(port, format!("port out of range: {number}; ports are 1 to {}", u16::MAX))
            };
            u16::try_from(number).map_err(|_| told()).ok()
        }),
        before: hooks(node.get("before"), reader),
        after: hooks(node.get("after"), reader),
    };
    if let Some((key, ready)) = node.entry("ready") {
        if node.get("health").is_some() {
            reader.sink.error(key, "a system has either \"health\" or \"ready\", not both");
        }
        system.ready = self::ready(ready, reader).unwrap_or_default();
    }
    check_port(node, system, reader);
}

/// Whoever does not tell a command its port, and does not know it either, cannot find it.
fn check_port(node: &Node, system: &System, reader: &Reader<'_>) {
    let SystemOrigin::Command(words) = &system.origin else { return };
    let is_told = words.iter().chain(system.launch.env.values()).any(|text| text.contains(PORT));
    if let Some(command) = node.get("command").filter(|_| !is_told && node.get("port").is_none()) {
        let message = "nobody tells this command where to listen; write {port} into it or into `env`, or `port: 8080` if \
                       it always listens on that";
        reader.sink.error(command, message);
    }
}

fn variables(env: &Node, reader: &Reader<'_>) -> BTreeMap<String, String> {
    let variable = |(key, value): &(Node, Node)| {
        let name = key.text()?;
        if name.contains(['=', '\0']) {
            reader.sink.error(key, "the name of a variable has no = in it");
        }
        Some((name.to_owned(), reader.text(value)?))
    };
    env.entries().iter().filter_map(variable).collect()
}

fn ready(node: &Node, reader: &Reader<'_>) -> Option<Ready> {
    if let Some(log) = node.get("log") {
        if let Some((status, _)) = node.entry("status") {
            reader.sink.error(status, "a status belongs to the answer of a `path`");
        }
        let text = reader.text(log)?;
        if text.is_empty() || text.contains('\n') {
            reader.sink.error(log, "a part of one line is looked for; this is none");
        }
        return Some(Ready::Prints(text));
    }
    let node_of_path = node.get("path")?;
    let path = reader.text(node_of_path)?;
    if !path.starts_with('/') {
        reader.sink.error(node_of_path, "a path begins with a slash");
    }
    let status = node.get("status").and_then(|status| reader.status(status)).unwrap_or(READY_STATUS);
    Some(Ready::Answers { path, status })
}

fn hooks(node: Option<&Node>, reader: &Reader<'_>) -> Vec<Hook> {
    let hook = |item: &Node| {
        let command = item.get("command").unwrap_or(item);
        let within = item.get("within").and_then(|within| reader.duration(within));
        Some(Hook { command: words(command, reader)?, within: within.unwrap_or(HOOK_WITHIN) })
    };
    node.map(Node::items).unwrap_or_default().iter().filter_map(hook).collect()
}

/// A command as its words: one text is split as a shell does it.
pub(super) fn words(node: &Node, reader: &Reader<'_>) -> Option<Vec<String>> {
    let words: Vec<String> = one_or_many(node).iter().map(|node| reader.text(node)).collect::<Option<_>>()?;
    let words = match words.as_slice() {
        [text] if node.text().is_some() => match split(text) {
            Ok(words) => words,
            Err(message) => {
                reader.sink.error(node, message);
                // what else is wrong with them is told, too
                shlex::split(text)?
            }
        },
        _ => words,
    };
    if words.first().is_none_or(String::is_empty) {
        reader.sink.error(node, "this command is empty");
    }
    Some(words)
}

/// Splits a command as a shell does it.
///
/// # Errors
/// In words: a quote is not closed, or only a shell could run it.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let words =
        shlex::split(text).ok_or("a quote in this command is not closed, or a \\ stands at its end")?;
    match of_shell(text, &words) {
        Some(word) => Err(format!(
            "`{word}` is for a shell, and no shell runs this: write sh -c \"…\", or use cwd and env"
        )),
        None => Ok(words),
    }
}

/// The first word of a command that only a shell understands; none that is quoted, which the text has with its quotes.
fn of_shell<'t>(text: &'t str, words: &[String]) -> Option<&'t str> {
    let mut written = text.split_whitespace();
    // without its value, which may be a secret
    let variable = |word: &'t str| {
        let name = &word[..word.find('=')?];
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| !c.is_ascii_digit());
        is_name.then(|| &word[..=name.len()])
    };
    let first = written.clone().next().and_then(variable);
    first.or_else(|| written.find(|word| OF_SHELL.contains(word) && words.iter().any(|other| other == word)))
}
