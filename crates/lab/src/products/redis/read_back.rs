//! A Redis as what it holds: every value of every key that matches a pattern, read by Redis' own protocol.
//!
//! Keys are found by SCAN, a page at a time. What the keys of a page are, and then what they hold, is asked without
//! waiting for each reply: of all of them for types, of a few for contents, which the server has to hold until they are read.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tidemark_drive::Stream;
use tidemark_wire::json::{Path, write_text};
use tidemark_wire::resp::Kind;

use super::resp;
use crate::target::{each_server, speak};
use crate::verify::answers::{self, Matching, each_readable, patiently};
use crate::verify::search::{Bounds, Unfinished};

/// About how many keys a page has.
const PAGE: &str = "1000";
/// Values that are asked for at once: a server holds replies until they are read.
const VALUES_AT_ONCE: usize = 16;
/// Most keys: each is remembered, as SCAN may show one again.
const KEYS_MAX: usize = 10_000_000;
/// Most bytes of a reply.
const REPLY_BYTES: usize = 256 << 20;
/// Longest time without a byte of a reply.
const SILENCE: Duration = Duration::from_secs(30);
const SERVER: &str = "Redis";

/// Reads the keys of a server that match.
pub fn read(of: &Matching<'_>, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
    let servers = patiently(SERVER, bounds, || each_server(of.target, SILENCE))?;
    let mut none = Vec::new();
    each_readable(
        &servers,
        |server| server.address.to_string(),
        &of.unread,
        |server| {
            let scanned = patiently(SERVER, bounds, || {
                speak(&mut server.clone(), SILENCE, |stream| scan(stream, of.pattern, bounds, visit))
            })?;
            // what could be scanned in part is not scanned again, as it would be seen twice
            none.extend(scanned?);
            Ok(())
        },
    )?;
    if none.len() == servers.len() {
        let _ = of.unmatched.set(none.join("; "));
    }
    Ok(())
}

fn failed(what: &str, why: impl std::fmt::Display) -> Unfinished {
    answers::failed(SERVER, what, why)
}

/// Shows each value of each key, each key once. Returns what there is where none matches.
fn scan(
    stream: &mut dyn Stream,
    pattern: &str,
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<Option<String>, Unfinished> {
    let mut connection = Connection::with_limit(stream, REPLY_BYTES);
    let (cursor_path, keys_path) = (path("$[0]")?, path("$[1][*]")?);
    // 128 bits stand for a key
    let (mut known, hashers) = (HashSet::new(), [RandomState::new(), RandomState::new()]);
    let mut cursor = b"0".to_vec();
    loop {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let page: &[&[u8]] = &[b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", PAGE.as_bytes()];
        let mut next = Vec::new();
        ask(&mut connection, &[page], bounds, &mut |_, _, reply| {
            texts(&cursor_path, reply, &mut |text| next = text.to_vec())?;
            texts(&keys_path, reply, &mut |key| keys.push(key.to_vec()))
        })?;
        keys.retain(|key| known.insert((hashers[0].hash_one(key), hashers[1].hash_one(key))));
        if known.len() > KEYS_MAX {
            return Err(failed("too much to read", format!("there are more than {KEYS_MAX} keys")));
        }
        if let Some(key) = keys.iter().find(|key| String::from_utf8_lossy(key).contains('\u{fffd}')) {
            let shown = String::from_utf8_lossy(key);
            return Err(failed("a key is not UTF-8 text", format!("{shown}; narrow `keys`")));
        }
        values(&mut connection, &keys, bounds, visit)?;
        cursor = next;
        if cursor == b"0" {
            return if known.is_empty() { there_is(&mut connection, bounds).map(Some) } else { Ok(None) };
        }
    }
}

/// How many keys a database has, and one of them.
fn there_is(connection: &mut Connection<'_>, bounds: &Bounds) -> Result<String, Unfinished> {
    let mut replies = Vec::new();
    ask(connection, &[&[b"DBSIZE"], &[b"RANDOMKEY"]], bounds, &mut |_, kind, reply| {
        replies.push((kind != Kind::Null).then(|| String::from_utf8_lossy(reply).into_owned()));
        Ok(())
    })?;
    Ok(match replies.as_slice() {
        [Some(count), Some(key)] => format!("the database has {count} others, \"{key}\" for example"),
        _ => "the database holds nothing".into(),
    })
}

/// Shows what these keys hold.
fn values(
    connection: &mut Connection<'_>,
    keys: &[Vec<u8>],
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let types: Vec<[&[u8]; 2]> = keys.iter().map(|key| [b"TYPE", key.as_slice()]).collect();
    let types: Vec<&[&[u8]]> = types.iter().map(|words| &words[..]).collect();
    let (each, of_streams) = (path("$[*]")?, path("$[*][1][*]")?);
    let mut commands: Vec<Vec<&[u8]>> = Vec::new();
    let mut paths = Vec::new();
    ask(connection, &types, bounds, &mut |index, _, reply| {
        let key = keys[index].as_slice();
        let (words, path): (Vec<&[u8]>, _) = match reply {
            b"string" => (vec![b"GET", key], None),
            b"list" => (vec![b"LRANGE", key, b"0", b"-1"], Some(&each)),
            b"set" => (vec![b"SMEMBERS", key], Some(&each)),
            b"zset" => (vec![b"ZRANGE", key, b"0", b"-1"], Some(&each)),
            b"hash" => (vec![b"HVALS", key], Some(&each)),
            b"stream" => (vec![b"XRANGE", key, b"-", b"+"], Some(&of_streams)),
            // it has expired meanwhile
            b"none" => return Ok(()),
            other => {
                let (key, other) = (String::from_utf8_lossy(key), String::from_utf8_lossy(other));
                return Err(failed(&key, format!("a {other} is not read; narrow `keys`")));
            }
        };
        commands.push(words);
        paths.push(path);
        Ok(())
    })?;
    let commands: Vec<&[&[u8]]> = commands.iter().map(Vec::as_slice).collect();
    for (commands, paths) in commands.chunks(VALUES_AT_ONCE).zip(paths.chunks(VALUES_AT_ONCE)) {
        ask(connection, commands, bounds, &mut |index, kind, reply| {
            match (kind, paths[index]) {
                (Kind::Null, _) => {}
                (_, Some(path)) => texts(path, reply, visit)?,
                (_, None) => visit(reply),
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn path(text: &str) -> Result<Path, Unfinished> {
    Path::parse(text).map_err(|error| failed(text, error))
}

/// The texts at a path of a reply.
fn texts(path: &Path, reply: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
    let mut text = Vec::new();
    let found = path.find_all(reply, &mut |token| {
        text.clear();
        write_text(token, &mut text);
        visit(&text);
    });
    found.map_err(|error| failed("a reply of another form", error))
}

/// Takes the reply to the command of this index.
type OnReply<'a> = dyn FnMut(usize, Kind, &[u8]) -> Result<(), Unfinished> + 'a;

type Connection<'a> = resp::Connection<&'a mut dyn Stream>;

/// Sends commands in one go, and hands on the reply to each.
fn ask(
    connection: &mut Connection<'_>,
    commands: &[&[&[u8]]],
    bounds: &Bounds,
    each: &mut OnReply<'_>,
) -> Result<(), Unfinished> {
    connection.send(commands).map_err(|error| failed("the connection broke", error))?;
    for index in 0..commands.len() {
        while !connection.receive().map_err(|error| failed("no reply", error))? {
            bounds.check()?;
        }
        match connection.reply() {
            (Kind::Error, words) => {
                return Err(failed("the server answered", String::from_utf8_lossy(words)));
            }
            (kind, reply) => each(index, kind, reply)?,
        }
    }
    Ok(())
}
