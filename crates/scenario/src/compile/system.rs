//! What is driven.

use std::path::Path;
use std::time::Duration;

use crate::plan::{
    HttpVersion, READY_STATUS, Ready, Resolve, System, SystemOrigin, TlsSettings, check_proxy,
};
use crate::reader::{Reader, WrongSetting};
use crate::secrets::without_password;
use crate::store_facts::{store_fact, store_facts};
use crate::system_url::SystemUrl;
use crate::yaml::Node;

use super::launch;

/// Durability of what keeps nothing.
const MEMORY: &str = "memory";
/// Where a shipped system tells that it is ready.
const HEALTH: &str = "/health";
/// Longest time until a system is ready where a scenario says nothing.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// Reads what is driven; nothing if the scenario does not say.
pub(super) fn read(node: Option<&Node>, base: &Path, reader: &Reader<'_>) -> Option<System> {
    let node = node?;
    let mut system = System { ready_within: READY_WITHIN, ..System::default() };
    if let Some(name) = node.get("serve") {
        system.origin = SystemOrigin::Shipped(shipped(name, reader)?);
        system.ready = answers(HEALTH.into());
    } else if let Some(command) = node.get("command") {
        system.origin = SystemOrigin::Command(launch::words(command, reader)?);
    } else if let Some(node) = node.get("url") {
        let text = reader.text(node)?;
        check_url(node, &text, reader);
        system.origin = SystemOrigin::Url(text);
    } else if let Some(node) = node.get("store") {
        // where it is, is known once it is started
        let (name, _) = reader.settings.of_store(|| reader.text(node));
        system.origin = SystemOrigin::Url(store_fact(&name?, "url"));
    }
    check_has_settings(node, &system.origin, reader);
    launch::read(node, base, &mut system, reader);
    for (key, node) in node.get("settings").map(Node::entries).unwrap_or_default() {
        let Some((name, value)) = key.text().zip(reader.text(node)) else { continue };
        if let SystemOrigin::Shipped(system) = &system.origin {
            match (reader.checker.setting)(system, name, &value) {
                Ok(()) => {}
                Err(WrongSetting::Name(message)) => reader.sink.error(key, message),
                // one that is known only once a store is started is judged by the system then
                Err(WrongSetting::Value(_)) if store_facts(&value).next().is_some() => {}
                Err(WrongSetting::Value(message)) => reader.sink.error(node, message),
            }
        }
        system.settings.insert(name.to_owned(), value);
    }
    system.durability = node
        .get("durability")
        .and_then(|node| reader.word(node, &["synced", "buffered", "memory"]))
        .map(str::to_owned);
    let known = match &system.origin {
        SystemOrigin::Shipped(name) => reader.shipped(name),
        _ => None,
    };
    system.tells_operations = known.is_some_and(|shipped| shipped.tells_operations);
    if let (SystemOrigin::Shipped(name), Some(false)) =
        (&system.origin, known.map(|shipped| shipped.keeps_data))
    {
        system.keeps_nothing = true;
        if let Some(node) = node.get("durability").filter(|node| node.text() != Some(MEMORY)) {
            let message =
                format!("{name} stores nothing, so that its durability is always memory; leave this out");
            reader.sink.error(node, message);
        }
        system.durability = Some(MEMORY.to_owned());
    }
    if let Some(node) = node.get("durability").filter(|_| matches!(system.origin, SystemOrigin::Url(_))) {
        reader
            .sink
            .error(node, "the durability of a system that runs already cannot be chosen; this belongs to one that is started");
    }
    if let Some(health) = node.get("health") {
        let path = reader.text(health)?;
        if !path.starts_with('/') {
            reader.sink.error(health, "a path begins with a slash");
        }
        system.ready = answers(path);
    }
    if let Some(position) = node.get("connect to") {
        let text = reader.text(position)?;
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        let is_socket = text.strip_prefix("unix:").is_some_and(|path| !path.is_empty());
        if !is_socket && !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            let message = format!("cannot connect to \"{text}\"; write HOST:PORT or unix:/PATH");
            reader.sink.error(position, message);
        }
        if !matches!(system.origin, SystemOrigin::Url(_)) {
            reader.sink.error(
                position,
                "a system that is started is reached where it listens; this belongs to a url",
            );
        }
        system.connect_to = Some(text);
    }
    if let Some(position) = node.get("proxy") {
        let text = reader.text(position)?;
        match &system.origin {
            SystemOrigin::Url(_) => {}
            _ => reader.sink.error(position, "only a `url` is reached through a proxy"),
        }
        if let Err(reason) = check_proxy(&text) {
            reader.sink.error(position, reason);
        }
        system.proxy = Some(text);
    }
    if let Some(time) = node.get("ready within").and_then(|node| reader.duration(node)) {
        system.ready_within = time;
    }
    if let Some(word) = node.get("resolve").and_then(|node| reader.word(node, &Resolve::WORDS)) {
        system.resolve = Resolve::from_word(word).unwrap_or_default();
    }
    if let Some(node) = node.get("tls") {
        match &system.origin {
            SystemOrigin::Url(url)
                if ["https:", "wss:", "rediss:", "rediss-cluster:", "memcacheds:"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme)) => {}
            _ => reader.sink.error(
                node,
                "TLS is spoken to a `url` that begins with https://, wss://, rediss:// or memcacheds:// only",
            ),
        }
        system.tls = tls(node, base, reader);
    }
    if let Some(node) = node.get("rpc") {
        let path = reader.text(node)?;
        if !path.starts_with('/') {
            reader.sink.error(node, "a path begins with a slash");
        }
        system.rpc = Some(path);
    }
    if let Some(node) = node.get("http") {
        let word = reader.word(node, &HttpVersion::WORDS);
        system.http = word.and_then(HttpVersion::from_word).unwrap_or_default();
        if !matches!(system.origin, SystemOrigin::Url(_)) && system.http != HttpVersion::One {
            reader.sink.error(
                node,
                "a system that is started is driven over HTTP/1.1; another version belongs to a url",
            );
        }
    }
    if let (Some(position), SystemOrigin::Url(url)) = (node.get("proxy"), &system.origin)
        && let Some(reason) = system.refuses_proxy(url)
    {
        reader.sink.error(position, reason);
    }
    Some(system)
}

/// Ready once this path is answered with 200.
fn answers(path: String) -> Ready {
    Ready::Answers { path, status: READY_STATUS }
}

/// The name of a system that there is.
fn shipped(node: &Node, reader: &Reader<'_>) -> Option<String> {
    let names: Vec<&'static str> = reader.checker.systems.iter().map(|system| system.name).collect();
    if names.is_empty() { reader.text(node) } else { reader.word(node, &names).map(str::to_owned) }
}

/// Tells of settings that nobody would be handed.
fn check_has_settings(node: &Node, origin: &SystemOrigin, reader: &Reader<'_>) {
    let Some((key, _)) = node.entry("settings") else { return };
    let message = match origin {
        SystemOrigin::Command(_) => {
            "only a system of `serve` has settings; write those of a command into the command itself, where `${NAME}` stands for a setting of the scenario"
        }
        SystemOrigin::Url(_) => {
            "only a system of `serve` has settings; a running system has those that it was started with"
        }
        SystemOrigin::Shipped(_) | SystemOrigin::Unknown => return,
    };
    reader.sink.error(key, message);
}

fn tls(node: &Node, base: &Path, reader: &Reader<'_>) -> TlsSettings {
    let default = TlsSettings::default();
    let truth = |key: &str| node.get(key).and_then(|node| reader.bool(node));
    let text = |key: &str| node.get(key).and_then(|node| reader.text(node));
    if let (Some(key), None) = (node.get("key"), node.get("certificate")) {
        reader.sink.error(key, "a key belongs to a certificate; name that with `certificate`");
    }
    TlsSettings {
        any_name: false,
        insecure: truth("insecure").unwrap_or(default.insecure),
        ca: text("ca").map(|file| base.join(file)),
        server_name: text("server name"),
        certificate: text("certificate").map(|file| base.join(file)),
        key: text("key").map(|file| base.join(file)),
        resumption: truth("resumption").unwrap_or(default.resumption),
    }
}

fn check_url(node: &Node, text: &str, reader: &Reader<'_>) {
    if let Err(reason) = SystemUrl::read(text) {
        let text = without_password(text);
        reader.sink.error(node, format!("\"{text}\" cannot be driven: {reason}"));
    }
}
