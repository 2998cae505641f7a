//! Commands of Redis, and what cannot stand beside them.

use super::Session;
use super::request::Requests;
use crate::plan::{Ask, Op, RequestPlan, System, SystemOrigin};
use crate::reader::Reader;
use crate::store_facts::store_facts;
use crate::template::{Encoding, Template};
use crate::yaml::Node;

/// What the URL of such a server begins with; with TLS the second.
const SCHEMES: [&str; 2] = ["redis", "rediss"];

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

/// Whether a URL is that of a server that speaks Redis' protocol.
pub(super) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

impl Session<'_, '_> {
    /// A step that sends a command.
    pub(super) fn redis(&mut self, step: &Node, words: &Node) {
        let name = words.items().first().and_then(Node::text).unwrap_or_default().to_owned();
        self.check_command(words);
        let Some(label) = self.label_or(step, || name) else { return };
        let (words, ledger) = self.entered(step, |session| {
            words.items().iter().map(|word| session.template(word, Encoding::Raw)).collect::<Vec<Template>>()
        });
        let plan = RequestPlan {
            label,
            ask: Ask::Redis(words),
            ledger,
            timeout: self.timeout(step),
            extractions: self.extractions(step.get("extract")),
            checks: self.checks(step.get("check")),
        };
        self.check_headless(step, &plan, "the reply to a command has neither headers nor cookies");
        if let Some(index) = self.add_request(step, plan) {
            self.connection_uses.push((self.ops.len(), step.place));
            self.ops.push(Op::Request(index));
        }
    }

    /// Reports a command whose replies could not be told from those to others.
    fn check_command(&self, words: &Node) {
        let given: Vec<String> =
            words.items().iter().filter_map(Node::text).map(str::to_ascii_uppercase).collect();
        let begins = |with: &[&str]| {
            given.len() >= with.len() && given.iter().zip(with).all(|(one, other)| one == other)
        };
        let several = NOT_ONE_REPLY.iter().any(|name| begins(&[name]));
        if several || CHANGING.iter().any(|with| begins(with)) {
            let message = "this command does not have exactly one reply, or changes the connection for others; it \
                           cannot be driven";
            self.reader.sink.error(words, message);
        }
    }
}

/// Reports what does not fit together: commands and another server, another step and this server.
pub(super) fn check(root: &Node, requests: &Requests, system: Option<&System>, reader: &Reader<'_>) {
    let get = |first: &str, second: &str| root.get(first)?.entry(second);
    let is_redis = match system.map(|system| &system.origin) {
        // of the stores only Redis is driven
        Some(SystemOrigin::Url(url)) => is_url(url) || store_facts(url).next().is_some(),
        // the command line may name it
        None | Some(SystemOrigin::Unknown) => requests.first_redis.is_some(),
        Some(SystemOrigin::Shipped(_) | SystemOrigin::Command(_)) => false,
    };
    if let Some(place) = requests.first_redis.filter(|_| !is_redis) {
        let message = "commands of Redis go to a system with a url that begins with redis:// or rediss://, or to a `store`";
        reader.sink.error_at(place, message.to_owned());
    }
    if !is_redis {
        return;
    }
    if let Some(place) = requests.first_other.or(requests.first_call) {
        let message =
            "this server speaks Redis' protocol; all steps that send something to it are `redis: […]`";
        reader.sink.error_at(place, message.to_owned());
    }
    for (first, second, message) in [
        ("defaults", "headers", "commands have no headers"),
        ("limits", "streams", "`limits: pipeline` says how many commands a connection carries at once"),
        ("system", "http", "a server of Redis speaks no HTTP"),
        ("system", "rpc", "a server of Redis takes no remote calls"),
        ("system", "health", "a server of Redis has no path; it is asked with PING"),
    ] {
        if let Some((key, _)) = get(first, second) {
            reader.sink.error(key, message);
        }
    }
    if let Some((key, value)) = get("limits", "keep alive")
        && reader.bool(value) == Some(false)
    {
        reader.sink.error(key, "connections to Redis stay open");
    }
    if let Some((key, verify)) = root.entry("verify")
        && verify.get("store").is_none()
    {
        reader.sink.error(key, "what Redis holds is not read back over HTTP; leave this out");
    }
}
