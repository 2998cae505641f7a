//! How everything is read back after the load.

use std::time::Duration;

use super::Session;
use super::requests::Requests;
use super::scope::SharedNames;
use super::targets;
use crate::diagnostic::did_you_mean;
use crate::grammar::kinds::Or;
use crate::grammar::record::{At, Kind};
use crate::language::{self, Counted, Numbers};
use crate::plan::{
    CassandraTable, ContentsQuestion, CountQuestion, Each, NextPage, NextSource, Objective, PARALLEL_MAX,
    Product, ReadFrom, SYSTEM_TARGET, Store, System, SystemOrigin, Target, Verify,
};
use crate::reader::{Reader, ShippedSystem};
use crate::steps;
use crate::template::Template;
use crate::yaml::{Node, one_or_many};

/// Connections that ask at once where a scenario says nothing.
const PARALLEL: usize = 4;
/// Stores that are read directly.
const EMBEDDED: &str = "embedded";
const CASSANDRA: &str = "cassandra";
const REDIS: &str = "redis";
const MEMCACHED: &str = "memcached";
const POSTGRES: &str = "postgres";
const AEROSPIKE: &str = "aerospike";

/// A server that is driven and can be read back by its own protocol.
struct Driven {
    /// What `store` calls it.
    store: &'static str,
    /// The key of `verify` that says what is read.
    by: &'static str,
    /// As a person is told of it.
    server: &'static str,
    /// Its server in the steps' words.
    spoken: &'static str,
}

static DRIVEN: [Driven; 5] = [
    Driven { store: REDIS, by: "keys", server: "a Redis", spoken: "Redis" },
    Driven { store: MEMCACHED, by: "keys", server: "a memcached", spoken: "memcached" },
    Driven { store: POSTGRES, by: "sql", server: "a PostgreSQL", spoken: "PostgreSQL" },
    Driven { store: CASSANDRA, by: "cql", server: "a Cassandra", spoken: "Cassandra" },
    Driven { store: AEROSPIKE, by: "set", server: "an Aerospike", spoken: "Aerospike" },
];

/// Longest time for all questions where a scenario says nothing.
const WITHIN: Duration = Duration::from_secs(600);

/// Reads how everything is read back.
pub(super) fn read(
    node: &Node,
    reader: &Reader<'_>,
    shared: &mut SharedNames,
    requests: &mut Requests,
) -> Option<Verify> {
    let (said, sink) = (language::Verify::read(node, reader)?, reader.sink);
    if let Some(parallel) = said.parallel.value.filter(|parallel| *parallel > PARALLEL_MAX as u64) {
        said.parallel.error(sink, format!("{parallel} is too many; at most {PARALLEL_MAX}"));
    }
    let headers = said.headers.value.map(Node::entries).unwrap_or_default();
    let headers = headers.iter().filter_map(|(name, value)| {
        let (name, text) = (name.text()?.to_owned(), reader.text(value)?);
        if text.contains(['\r', '\n', '\0']) {
            sink.error(value, "a header's value is one line");
        }
        Some((name, text))
    });
    let headers = headers.collect();
    let mut number = |said| count_question(said, reader, shared, requests);
    let (behind, count) = (number(&said.behind), number(&said.count));
    let from = match &said.contents.value {
        Some(contents) => ReadFrom::Api(self::contents(contents, reader, shared, requests).map(Box::new)?),
        None => direct(&said, reader)?,
    };
    if let ReadFrom::Api(_) = from {
        for (key, _) in CassandraTable::SETTINGS.iter().filter_map(|name| node.entry(name)) {
            sink.error(key, "this belongs to \"store: cassandra\"");
        }
        belongs(node, None, reader);
    }
    Some(Verify {
        settle: said.settle.value.unwrap_or(Duration::ZERO),
        at: 0,
        behind,
        count,
        from,
        headers,
        parallel: said.parallel.value.and_then(|parallel| usize::try_from(parallel).ok()).unwrap_or(PARALLEL),
        within: said.within.value.unwrap_or(WITHIN),
    })
}

/// A path that answers with a number.
fn count_question<'n>(
    said: &At<'n, Counted<'n>>,
    reader: &Reader<'_>,
    shared: &mut SharedNames,
    requests: &mut Requests,
) -> Option<CountQuestion> {
    let (path, json) = match said.value.as_ref()? {
        Or::First(path) => (*path, None),
        Or::Second(count) => (count.path.value?, count.json.value.clone()),
    };
    let question = Session::new(reader, shared, requests).question(path);
    if question.as_literal().is_none() && !reader.sink.has_errors() {
        reader.sink.error(path, "this is asked of the whole system: it can hold only settings");
    }
    let path = String::from_utf8_lossy(question.as_literal()?).into_owned();
    Some(CountQuestion { path, json })
}

/// A store that is read past its system, or the server that is driven.
fn direct(said: &language::Verify<'_>, reader: &Reader<'_>) -> Option<ReadFrom> {
    let (node, sink) = (said.node, reader.sink);
    let word =
        reader.word(said.store.value?, &[EMBEDDED, CASSANDRA, REDIS, MEMCACHED, POSTGRES, AEROSPIKE])?;
    let has_cql = word == CASSANDRA && said.cql.is_there();
    let by_protocol = DRIVEN.iter().find(|of| of.store == word && (word != CASSANDRA || has_cql));
    if by_protocol.is_none()
        && let Err(message) = (reader.checker.store)(word)
    {
        said.store.error(sink, message);
    }
    let is_waited_for = said.behind.is_there();
    let of_contents = [
        said.settle.key().filter(|_| word == EMBEDDED && !is_waited_for),
        said.count.key(),
        said.headers.key().filter(|_| !is_waited_for),
    ];
    for key in of_contents.into_iter().flatten() {
        sink.error(key, "this belongs to \"contents\": a store that is read directly is not asked");
    }
    belongs(node, by_protocol.map(|of| of.by), reader);
    if let Some(Driven { by, server, .. }) = by_protocol {
        for (key, _) in
            CassandraTable::SETTINGS.iter().chain(&["behind", "parallel"]).filter_map(|name| node.entry(name))
        {
            sink.error(key, format!("{server} is read over one connection, by `{by}` alone; leave this out"));
        }
        let keys = || said.keys.value.clone().unwrap_or_else(|| "*".to_owned());
        return match word {
            REDIS => Some(ReadFrom::Redis { keys: keys() }),
            MEMCACHED => Some(ReadFrom::Memcached { keys: keys() }),
            AEROSPIKE => Some(ReadFrom::Aerospike { set: said.set.value.clone().unwrap_or_default() }),
            _ => {
                let statement = if has_cql { &said.cql.value } else { &said.sql.value };
                match statement.clone().filter(|statement| !statement.trim().is_empty()) {
                    Some(statement) => Some(ReadFrom::Rows { statement }),
                    None => {
                        let message =
                            format!("say with `{by}` which rows are read: `{by}: SELECT note FROM notes`");
                        said.store.error(sink, message);
                        None
                    }
                }
            }
        };
    }
    said.at.refuse(sink, "the store behind the system is read; leave this out");
    if word == EMBEDDED {
        return Some(ReadFrom::Embedded);
    }
    let consistency =
        said.consistency.value.and_then(|node| reader.word(node, &CassandraTable::CONSISTENCIES));
    Some(ReadFrom::Cassandra(CassandraTable {
        contact: said.contact.value.clone(),
        keyspace: said.keyspace.value.clone(),
        consistency: consistency.map(str::to_owned),
        ..CassandraTable::default()
    }))
}

/// Tells of what says which contents of another store are read than this one.
fn belongs(node: &Node, own: Option<&str>, reader: &Reader<'_>) {
    for (name, whose) in [
        ("keys", "store: redis\" or \"store: memcached"),
        ("sql", "store: postgres"),
        ("cql", "store: cassandra"),
        ("set", "store: aerospike"),
    ] {
        if let Some((key, _)) = node.entry(name).filter(|_| own != Some(name)) {
            reader.sink.error(key, format!("this belongs to \"{whose}\""));
        }
    }
}

/// The target that is asked or read, by its number, and what stands there; none where a mistake is told.
pub(super) fn at(root: &Node, targets: &[Target], reader: &Reader<'_>) -> Option<u16> {
    let Some((_, node)) = root.get("verify").and_then(|verify| verify.entry("at")) else { return Some(0) };
    let name = reader.text(node)?;
    if name == SYSTEM_TARGET {
        return Some(0);
    }
    let at = targets.iter().position(|target| target.name == name);
    if at.is_none() {
        let hint = did_you_mean(&name, targets.iter().map(|target| target.name.as_str()));
        reader.sink.error(node, format!("there is no target \"{name}\"{hint}"));
    }
    at.and_then(|at| u16::try_from(at + 1).ok())
}

/// Tells where what is asked or read does not speak what it is asked by.
pub(super) fn check_target(
    root: &Node,
    verify: &Verify,
    system: &System,
    targets: &[Target],
    reader: &Reader<'_>,
) {
    let Some((key, node)) = root.entry("verify") else { return };
    let at = usize::from(verify.at).checked_sub(1);
    let asked = at.and_then(|at| targets.get(at)).map_or(system, |target| &target.at);
    // one that the command line names, or that is wrong, is known later or told already
    let Some(scheme) = targets::scheme(root, asked) else {
        let is_driven =
            !matches!(verify.from, ReadFrom::Api(_) | ReadFrom::Embedded | ReadFrom::Cassandra(_));
        if is_driven && matches!(asked.origin, SystemOrigin::Shipped(_) | SystemOrigin::Command(_)) {
            let word = node.get("store").and_then(Node::text).unwrap_or_default();
            let message = format!(
                "only a {word} that is itself driven is read back so; name it with `at`, or use \"contents\""
            );
            reader.sink.error(node.get("store").unwrap_or(node), message);
        }
        return;
    };
    let spoken = steps::spoken_at(scheme);
    let there = spoken.map_or("a server of HTTP", |spoken| spoken.server);
    let driven = DRIVEN.iter().find(|of| spoken.is_some_and(|spoken| spoken.server == of.spoken));
    let word = node.get("store").and_then(Node::text);
    let message = match (&verify.from, driven) {
        (ReadFrom::Embedded | ReadFrom::Cassandra(_), _) if at.is_none() && spoken.is_none() => return,
        (ReadFrom::Api(_), None) => return,
        (_, Some(Driven { store, by, server, .. }))
            if word != Some(*store) || (node.entry(by).is_none() && ["sql", "cql"].contains(by)) =>
        {
            format!("{server} is read back with `store: {store}` and `{by}`")
        }
        (_, Some(_)) => return,
        (_, None) => format!(
            "what is read here is {there}, and not {}; say with `at` which of the targets is",
            word.unwrap_or_default()
        ),
    };
    reader.sink.error_at(key.position, message);
}

/// Where the system that is driven, or else any shipped one whose store is readable, has its table by default.
pub(super) fn set_defaults(from: &mut ReadFrom, system: &System, reader: &Reader<'_>) {
    let ReadFrom::Cassandra(table) = from else { return };
    let mut readable = reader.checker.systems.iter().filter(|shipped| shipped.store_is_readable);
    let is_driven = |shipped: &&ShippedSystem| matches!(&system.origin, SystemOrigin::Shipped(name) if name == shipped.name);
    if let Some(shipped) = readable.clone().find(is_driven).or_else(|| readable.next()) {
        table.defaults =
            CassandraTable::SETTINGS.map(|setting| (reader.checker.default_of)(shipped.name, setting));
    }
}

/// Tells where there is no such store to read directly.
pub(super) fn check_store(
    root: &Node,
    from: Option<&ReadFrom>,
    system: &System,
    stores: &[Store],
    reader: &Reader<'_>,
) {
    let Some(verify) = root.get("verify") else { return };
    let Some(node) = verify.get("store") else { return };
    let is_waited_for = verify.entry("behind").is_some();
    let other = system.settings.get("store").map_or(EMBEDDED, |store| store.trim());
    let shipped = match &system.origin {
        SystemOrigin::Shipped(name) => reader.shipped(name),
        _ => None,
    };
    let is_readable = shipped.is_some_and(|shipped| shipped.store_is_readable);
    let cassandras = stores.iter().filter(|store| store.product == Product::Cassandra).count();
    let is_named = |table: &CassandraTable| table.contact.is_some() || cassandras > 0;
    let has_buffer = system.settings.get("buffer").is_some_and(|buffer| buffer.trim() != "none");
    let message = match from {
        Some(_) if is_readable && has_buffer && !is_waited_for => {
            "with a buffer the store lacks some when the load ends; say `behind: /behind`, and that is waited for"
                .to_owned()
        }
        Some(ReadFrom::Cassandra(table)) if table.contact.is_none() && cassandras > 1 => {
            format!("which of the {cassandras} Cassandras is read? Only one of them can be a store of this run")
        }
        Some(ReadFrom::Cassandra(table)) if !is_readable && !is_named(table) => {
            "the address of this system's Cassandra is not known; name some of its nodes with \"contact\""
                .to_owned()
        }
        Some(ReadFrom::Cassandra(_)) if is_readable && other != CASSANDRA => {
            format!("this system's store is {other} and not cassandra; say `settings: {{store: cassandra}}`")
        }
        Some(ReadFrom::Embedded) if !is_readable => {
            let readable = reader.checker.systems.iter().filter(|system| system.store_is_readable);
            let names: Vec<String> = readable.map(|system| format!("`serve: {}`", system.name)).collect();
            match names.is_empty() {
                true => "the store of this system is not read directly; use \"contents\"".to_owned(),
                false => format!(
                    "the store of this system is not read directly; that of {} is; use \"contents\"",
                    names.join(" and ")
                ),
            }
        }
        Some(ReadFrom::Embedded) if other != EMBEDDED => {
            format!(
                "this system's store is {other} and not embedded; say `store: {other}`, or use \"contents\""
            )
        }
        Some(ReadFrom::Embedded) if system.durability.as_deref() == Some("memory") => {
            "with durability memory nothing is kept in a directory; use \"contents\"".to_owned()
        }
        _ => return,
    };
    reader.sink.error(node, message);
}

/// Warns where the ledger, what reads it back and what it decides do not come together.
pub(super) fn warn_of_unentered(
    root: &Node,
    requests: &Requests,
    objectives: &[Objective],
    reader: &Reader<'_>,
) {
    let entered = requests.plans.iter().any(|request| request.ledger.is_some());
    match root.entry("verify") {
        Some((key, _)) if !entered => {
            reader
                .sink
                .warn(key.position, "nothing to verify: no step enters its writes with \"ledger\"".into());
        }
        None => {
            let items = root.get("objectives").map(Node::items).unwrap_or_default();
            for (node, _) in items.iter().zip(objectives).filter(|(_, of)| of.metric.is_of_the_ledger()) {
                reader.sink.warn(
                    node.position,
                    "nothing decides this: it needs \"verify\" and a step with \"ledger\"".into(),
                );
            }
        }
        Some(_) => {}
    }
}

impl Session<'_, '_> {
    /// A path that is asked after the load.
    fn question(&mut self, node: &Node) -> Template {
        let path = self.path(node);
        self.check_path(node, &path);
        path
    }
}

fn contents(
    said: &language::Contents<'_>,
    reader: &Reader<'_>,
    shared: &mut SharedNames,
    requests: &mut Requests,
) -> Option<ContentsQuestion> {
    let sink = reader.sink;
    let to = match &said.each.value {
        Some(Or::Second(Numbers { number, to, .. })) if number.is_there() => {
            count_question(to, reader, shared, requests)
        }
        _ => None,
    };
    let mut session = Session::new(reader, shared, requests);
    let each = match &said.each.value {
        None => None,
        Some(Or::Second(Numbers { number, from, .. })) => {
            number.value.into_iter().for_each(|variable| session.define(variable.text(), variable));
            let from = from.given().map(|from| from.copied().unwrap_or(1));
            from.zip(to).map(|(from, to)| Each::Number { from, to })
        }
        Some(Or::First(name)) => match session.shared.feeder(name) {
            Ok(index) => {
                said.each.node().into_iter().for_each(|node| session.define_row(index, node));
                Some(Each::Row(index))
            }
            Err(message) => {
                said.each.error(sink, message);
                None
            }
        },
    };
    let paths = one_or_many(said.paths.value?).iter().map(|path| session.question(path)).collect();
    if said.copies.value.as_ref().is_some_and(|copies| copies.captures_len() < 2) {
        let message = "the number is a group of the expression: write it like 'to ([0-9]+) feeds'";
        said.copies.error(sink, message);
    }
    let copies = said.copies.node().filter(|_| said.copies.value.is_some()).and_then(Node::text);
    if !said.next.is_there() {
        let message = "\"as\" hands the next page's name back; say with \"next\" where that stands";
        said.parameter.refuse(sink, message);
    }
    let next = said.next.value.as_ref().and_then(|next| {
        let source = match &next.header.value {
            Some(name) => NextSource::Header(name.to_ascii_lowercase()),
            None => NextSource::Json(next.json.value.clone()?),
        };
        Some(NextPage { source, parameter: said.parameter.value.clone() })
    });
    let items = said.items.value.clone()?;
    Some(ContentsQuestion { each, paths, items, next, copies: copies.map(str::to_owned) })
}
