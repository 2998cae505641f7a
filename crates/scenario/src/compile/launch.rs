//! A system of one's own: its command, and what is around it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::system::check_path;
use crate::grammar::record::Kind;
use crate::language;
use crate::plan::{Hook, Launch, PORT, READY_STATUS, Ready, System, SystemOrigin};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::yaml::{Node, one_or_many};

/// Longest time until a command before or after the system is over, where a scenario says nothing.
const HOOK_WITHIN: Duration = Duration::from_secs(60);
/// Words that only a shell understands.
const OF_SHELL: [&str; 10] = ["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];

/// Reads what a command has around it, into `system`, and tells of it where there is no command.
pub(super) fn read(said: &language::System<'_>, base: &Path, system: &mut System, reader: &Reader<'_>) {
    let sink = reader.sink;
    if let SystemOrigin::Shipped(_) = &system.origin
        && let Some(ready) = said.ready.value.as_ref().filter(|ready| ready.grpc.is_there())
    {
        system.ready = self::ready(ready, sink).unwrap_or_default();
    }
    let SystemOrigin::Command(words) = &system.origin else {
        let of_command = [
            said.env.key(),
            said.cwd.key(),
            said.port.key(),
            said.before.key(),
            said.after.key(),
            said.ready.key().filter(|_| !matches!(system.ready, Ready::Serves(_))),
        ];
        for key in of_command.into_iter().flatten() {
            let name = key.text().unwrap_or_default();
            let message = match name {
                "ready" => "with `serve`, ready is {grpc: SERVICE}".to_owned(),
                _ => format!("\"{name}\" belongs to a system that is a `command`"),
            };
            sink.error(key, message);
        }
        return;
    };
    let cwd = said.cwd.value.as_ref().map(|cwd| base.join(cwd));
    if let Some(folder) = cwd.as_ref().filter(|folder| !folder.is_dir()) {
        said.cwd.error(sink, format!("{} is not a folder", folder.display()));
    }
    let port = said.port.value.and_then(|number| {
        let port = u16::try_from(number).ok();
        if port.is_none() {
            said.port.error(sink, format!("port out of range: {number}; ports are 1 to {}", u16::MAX));
        }
        port
    });
    let env = said.env.value.map_or_else(BTreeMap::new, |env| variables(env, reader));
    // whoever does not tell a command its port, and does not know it either, cannot find it
    let is_told = words.iter().chain(env.values()).any(|text| text.contains(PORT));
    if !is_told && !said.port.is_there() {
        let message = "nobody tells this command where to listen; write {port} into it or into `env`, or `port: 8080` if \
                       it always listens on that";
        said.command.error(sink, message);
    }
    let (before, after) = (hooks(said.before.value, reader), hooks(said.after.value, reader));
    system.launch = Launch { env, cwd, port, before, after };
    if let Some(ready) = &said.ready.value {
        if said.health.is_there() {
            said.ready.refuse(sink, "a system has either \"health\" or \"ready\", not both");
        }
        system.ready = self::ready(ready, sink).unwrap_or_default();
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

fn ready(said: &language::Ready<'_>, sink: &Sink<'_>) -> Option<Ready> {
    if said.log.is_there() {
        said.status.refuse(sink, "a status belongs to the answer of a `path`");
        let text = said.log.value.as_ref()?;
        if text.is_empty() || text.contains('\n') {
            said.log.error(sink, "a part of one line is looked for; this is none");
        }
        return Some(Ready::Prints(text.clone()));
    }
    if let Some(service) = &said.grpc.value {
        said.status.refuse(sink, "a status belongs to the answer of a `path`");
        return Some(Ready::Serves(service.clone()));
    }
    let path = said.path.value.clone()?;
    check_path(&said.path, sink);
    Some(Ready::Answers { path, status: said.status.value.unwrap_or(READY_STATUS) })
}

fn hooks(node: Option<&Node>, reader: &Reader<'_>) -> Vec<Hook> {
    let hook = |item: &Node| {
        let said = language::Hook::read(item, reader)?;
        let command = words(said.command.value.unwrap_or(item), reader)?;
        Some(Hook { command, within: said.within.value.unwrap_or(HOOK_WITHIN) })
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
