//! Commands of Redis, and what cannot stand beside them.

mod known;

use super::Step;
use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::beside::{self, Spoken};
use super::keys::{INSERT, READ, WRITE};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use crate::compile::{Session, Whole};
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{List, Record as Of, Scalar};
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::plan::{RedisCommand, RequestKind, System, SystemOrigin, Wait};
use crate::reader::Reader;
use crate::store_facts::store_facts;
use crate::system_url::{self, Sharding, SystemUrl};
use crate::template::Encoding;
use crate::yaml::{Node, Position};

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["redis", "rediss", "redis-cluster", "rediss-cluster"],
    is_ask: |ask| matches!(ask, RequestKind::Redis(_)),
    server: "Redis",
    requests: "commands of Redis",
    step: "redis: […]",
    has_streams: false,
};

/// How long replicas are waited for where nothing is said.
const WAIT_WITHIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Commands with no reply, several, or such as come without being asked for.
const NOT_ONE_REPLY: [&str; 9] = [
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "MONITOR",
    "SYNC",
    "PSYNC",
];
/// Commands after which a connection is another one than it was when it was made.
const CHANGING: [&[&str]; 4] = [&["CLIENT", "REPLY"], &["HELLO"], &["RESET"], &["QUIT"]];
step! {
    /// Sends a command to a server that speaks Redis' protocol, and waits for its reply (docs/redis.md).
    KIND("redis", "a command of Redis") [
        "redis": List(&Scalar(Template), 1) => "The command and its arguments: `[SET, \"k:${n}\", \"${value}\"]`."
    ] {
        LABEL, TAGS, AT, LEDGER, INSERT, WRITE, READ, TIMEOUT, EXTRACT, MEASURE,
        "wait": WaitFor::SHAPE =>
            "Redis' WAIT behind the command, on the same connection: answered only once so many replicas have it.",
        "check": Of(|| &CHECK) =>
            "What must hold of the reply: its status is 200, 204 where it is nil, 500 where it is an error. The body \
             is its text, JSON where it is an array or a map.",
    }
    beside: check_beside,
    example: "
- redis: [GET, greeting]
  check: {status: 200, body: hello}
"
}

record! {
    /// Replicas that must have a write before it counts as answered; one that fewer have has failed.
    struct WaitFor("wait", "a wait for replicas") {
        replicas (required): kinds::Whole<0> = "How many; 0 is none.",
        within: kinds::Time = "For how long the server waits for them; 1s by default.",
    }
}

fn wait(node: Option<&Node>, reader: &Reader<'_>) -> Option<Wait> {
    let said = WaitFor::read(node?, reader)?;
    let replicas = said.replicas.value?;
    let within = said.within.value.unwrap_or(WAIT_WITHIN);
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1);
    (replicas > 0).then(|| Wait { replicas: u32::try_from(replicas).unwrap_or(u32::MAX), within_ms })
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = step.value.items();
    check_command(step.value, session.reader);
    let name = || words.first().and_then(Node::text).unwrap_or_default().to_owned();
    let Some(label) = session.label_or(step, step.node.position, name) else { return };
    let sent = session.entered(step, |session| {
        let words = words.iter().map(|word| session.template(word, Encoding::Raw)).collect();
        RequestKind::Redis(RedisCommand { words, wait: wait(step.get("wait"), session.reader) })
    });
    let plan = session.request(step, label, sent, step.get("check"));
    session.check_headless(step, &plan, "the reply to a command has neither headers nor cookies");
    session.push_request(step, plan);
}

/// Reports a command whose replies could not be told from those to others, and warns of one that is misspelt.
fn check_command(words: &Node, reader: &Reader<'_>) {
    let name = words.items().first().and_then(|first| Some((first.position, first.text()?)));
    if let Some((position, name)) = name.filter(|(_, name)| !name.contains("${"))
        && let Some(meant) = known::meant(name)
    {
        let message = format!(
            "\"{name}\" is an unknown Redis command; did you mean {meant}? It is sent as it stands, as a module \
             or a newer server may have it"
        );
        reader.sink.warn(position, message);
    }
    let given: Vec<String> =
        words.items().iter().filter_map(Node::text).map(str::to_ascii_uppercase).collect();
    let begins =
        |with: &[&str]| given.len() >= with.len() && given.iter().zip(with).all(|(one, other)| one == other);
    let several = NOT_ONE_REPLY.iter().any(|name| begins(&[name]));
    if several || CHANGING.iter().any(|with| begins(with)) {
        let name = &given[0];
        let message = format!(
            "{name} does not have exactly one reply, or changes the connection for others; it cannot be driven"
        );
        reader.sink.error(words, message);
    }
}

/// Whether nobody else may be on the connection of this command.
fn is_for_one(ask: &RequestKind) -> bool {
    matches!(ask, RequestKind::Redis(command) if command.needs_own_connection())
}

/// Whether keys are shared among several servers.
fn are_several(url: &str) -> bool {
    SystemUrl::read(url).is_ok_and(|url| {
        let is_cluster =
            matches!(url.spoken, system_url::Spoken::Redis { sharding: Some(Sharding::Cluster), .. });
        is_cluster || !url.others.is_empty()
    })
}

/// The same of the system or a target, which may be a store of the scenario.
fn has_several(whole: &Whole<'_>, system: &System) -> bool {
    let SystemOrigin::Url(url) = &system.origin else { return false };
    let Some(fact) = store_facts(url).next() else { return are_several(url) };
    let get = |key| whole.root.get("stores")?.get(fact.store)?.get(key);
    get("nodes").and_then(|node| whole.reader.whole(node, 1)).is_some_and(|nodes| nodes > 1)
        || get("cluster").and_then(|node| whole.reader.bool(node)) == Some(true)
        || get("url").and_then(|node| whole.reader.text(node)).is_some_and(|url| are_several(&url))
}

fn check_beside(whole: &Whole<'_>) {
    let is_such = beside::check(whole, &SPOKEN);
    let tell = |position: Option<Position>, how: &str| {
        let why = "this command changes its connection, or holds it up, and users share connections";
        position
            .into_iter()
            .for_each(|position| whole.reader.sink.error_at(position, format!("{why} {how}")));
    };
    if whole.is_pipelined() {
        return tell(whole.requests.first_anywhere(is_for_one), "with `limits: pipeline`; leave that out");
    }
    let driven = std::iter::once((0, whole.system)).filter(|_| is_such);
    let others = whole.targets.iter().enumerate().map(|(target, of)| (target + 1, &of.at));
    for (target, _) in driven.chain(others).filter(|(_, system)| has_several(whole, system)) {
        tell(
            whole.requests.first_to(target, is_for_one),
            "where there are several servers; drive one, or leave the command out",
        );
    }
}
