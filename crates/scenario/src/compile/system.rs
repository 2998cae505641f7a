//! What is driven.

use std::path::Path;
use std::time::Duration;

use crate::grammar::kinds::{Or, Text};
use crate::grammar::record::At;
use crate::language;
use crate::plan::{HttpVersion, READY_STATUS, Ready, System, SystemOrigin, TlsSettings, check_proxy};
use crate::protobuf::Types;
use crate::reader::{Reader, WrongSetting};
use crate::secrets::without_password;
use crate::sink::Sink;
use crate::store_facts::{service_facts, store_fact, store_facts};
use crate::system_url::SystemUrl;
use crate::yaml::Node;

use super::launch;

/// Durability of what keeps nothing.
const MEMORY: &str = "memory";
/// Where a shipped system tells that it is ready.
const HEALTH: &str = "/health";
/// Longest time until a system is ready where a scenario says nothing.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// Reads what is driven.
pub(super) fn read(said: &language::System<'_>, base: &Path, reader: &Reader<'_>) -> Option<System> {
    let sink = reader.sink;
    let ready_within = said.ready_within.value.unwrap_or(READY_WITHIN);
    let mut system = System { ready_within, ..System::default() };
    if let Some(name) = said.serve.node() {
        system.origin = SystemOrigin::Shipped(shipped(name, reader)?);
        system.ready = answers(HEALTH.into());
    } else if let Some(command) = said.command.value {
        system.origin = SystemOrigin::Command(launch::words(command, reader)?);
    } else if let Some(url) = said.url.given()? {
        if let Err(reason) = SystemUrl::read(url) {
            said.url.error(sink, format!("\"{}\" cannot be driven: {reason}", without_password(url)));
        }
        system.origin = SystemOrigin::Url(url.clone());
    } else if let Some(node) = said.store.value {
        // where it is, is known once it is started
        let (name, _) = reader.settings.of_store(|| reader.text(node));
        system.origin = SystemOrigin::Url(store_fact(&name?, "url"));
    }
    let is_url = matches!(system.origin, SystemOrigin::Url(_));
    check_has_settings(said, &system.origin, sink);
    launch::read(said, base, &mut system, reader);
    for (key, node) in said.settings.value.map(Node::entries).unwrap_or_default() {
        let Some((name, value)) = key.text().zip(reader.text(node)) else { continue };
        if let SystemOrigin::Shipped(system) = &system.origin {
            match (reader.checker.setting)(system, name, &value) {
                Ok(()) => {}
                Err(WrongSetting::Name(message)) => sink.error(key, message),
                // one that is known only once a store is started is judged by the system then
                Err(WrongSetting::Value(_))
                    if store_facts(&value).chain(service_facts(&value)).next().is_some() => {}
                Err(WrongSetting::Value(message)) => sink.error(node, message),
            }
        }
        system.settings.insert(name.to_owned(), value);
    }
    system.durability = said.durability.value.map(|durability| durability.name().to_owned());
    if let SystemOrigin::Shipped(name) = &system.origin
        && let Some(known) = reader.shipped(name)
    {
        system.tells_operations = known.tells_operations;
        if !known.keeps_data {
            if said.durability.node().and_then(Node::text) != Some(MEMORY) {
                let message =
                    format!("{name} stores nothing, so that its durability is always memory; leave this out");
                said.durability.error(sink, message);
            }
            system.keeps_nothing = true;
            system.durability = Some(MEMORY.to_owned());
        }
    }
    if is_url {
        let message = "the durability of a system that runs already cannot be chosen; this belongs to one that is started";
        said.durability.error(sink, message);
    }
    if let Some(path) = said.health.given()? {
        check_path(&said.health, sink);
        system.ready = answers(path.clone());
    }
    if let Some(text) = said.connect_to.given()? {
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        let is_socket = text.strip_prefix("unix:").is_some_and(|path| !path.is_empty());
        if !is_socket && !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            let message = format!("cannot connect to \"{text}\"; write HOST:PORT or unix:/PATH");
            said.connect_to.error(sink, message);
        }
        if !is_url {
            let message = "a system that is started is reached where it listens; this belongs to a url";
            said.connect_to.error(sink, message);
        }
        system.connect_to = Some(text.clone());
    }
    if let Some(text) = said.proxy.given()? {
        if !is_url {
            said.proxy.error(sink, "only a `url` is reached through a proxy");
        }
        if let Err(reason) = check_proxy(text) {
            said.proxy.error(sink, reason);
        }
        system.proxy = Some(text.clone());
    }
    system.resolve = said.resolve.value.unwrap_or_default();
    if let Some(tls) = &said.tls.value {
        let schemes = ["https:", "wss:", "grpcs:", "rediss:", "rediss-cluster:", "memcacheds:"];
        let is_secure = |url: &str| schemes.iter().any(|scheme| url.starts_with(scheme));
        if !matches!(&system.origin, SystemOrigin::Url(url) if is_secure(url)) {
            let message = "TLS is spoken to a `url` that begins with https://, wss://, grpcs://, rediss:// or memcacheds:// only";
            said.tls.error(sink, message);
        }
        system.tls = self::tls(tls, base, sink);
    }
    system.rpc = said.rpc.given()?.cloned();
    check_path(&said.rpc, sink);
    system.types = types(said, &system.origin, base, sink);
    let is_started = matches!(system.origin, SystemOrigin::Command(_) | SystemOrigin::Shipped(_));
    system.is_grpc = is_started && (system.types.is_some() || matches!(system.ready, Ready::Serves(_)));
    system.http = said.http.value.unwrap_or_default();
    if !is_url && system.http != HttpVersion::One {
        let message = "a system that is started is driven over HTTP/1.1; another version belongs to a url";
        said.http.error(sink, message);
    }
    if let SystemOrigin::Url(url) = &system.origin
        && let Some(reason) = system.refuses_proxy(url)
    {
        said.proxy.error(sink, reason);
    }
    Some(system)
}

/// Tells of a path that is none.
pub(super) fn check_path(said: &At<'_, Text>, sink: &Sink<'_>) {
    if said.value.as_ref().is_some_and(|path| !path.starts_with('/')) {
        said.error(sink, "a path begins with a slash");
    }
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
fn check_has_settings(said: &language::System<'_>, origin: &SystemOrigin, sink: &Sink<'_>) {
    let message = match origin {
        SystemOrigin::Command(_) => {
            "only a system of `serve` has settings; write those of a command into the command itself, where `${NAME}` stands for a setting of the scenario"
        }
        SystemOrigin::Url(_) => {
            "only a system of `serve` has settings; a running system has those that it was started with"
        }
        SystemOrigin::Shipped(_) | SystemOrigin::Unknown => return,
    };
    said.settings.refuse(sink, message);
}

/// The message types of gRPC, where somebody says where they are.
fn types(said: &language::System<'_>, origin: &SystemOrigin, base: &Path, sink: &Sink<'_>) -> Option<Types> {
    let is_grpc =
        matches!(origin, SystemOrigin::Url(url) if url.starts_with("grpc:") || url.starts_with("grpcs:"));
    if !is_grpc && !matches!(origin, SystemOrigin::Unknown | SystemOrigin::Command(_)) {
        let message =
            "message types belong to a `url` that begins with grpc:// or grpcs://, or to a `command`";
        said.protos.refuse(sink, message);
        said.includes.refuse(sink, message);
        said.descriptors.refuse(sink, message);
        return None;
    }
    let files = |said: &Option<Or<String, Vec<String>>>| match said {
        None => Vec::new(),
        Some(Or::First(file)) => vec![base.join(file)],
        Some(Or::Second(files)) => files.iter().map(|file| base.join(file)).collect(),
    };
    let (mut protos, includes) = (files(&said.protos.value), files(&said.includes.value));
    // a file may also be named as others import it
    for proto in protos.iter_mut().filter(|proto| !proto.exists()) {
        let name = proto.strip_prefix(base).unwrap_or(proto).to_owned();
        let found = includes.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
        *proto = found.unwrap_or_else(|| std::mem::take(proto));
    }
    if protos.is_empty() {
        said.includes.refuse(sink, "these are folders of `protos`, of which there are none");
        let read = Types::of_descriptors(&base.join(said.descriptors.value.as_ref()?));
        return read.map_err(|reason| said.descriptors.error(sink, reason)).ok();
    }
    said.descriptors.refuse(sink, "`protos` say the same; leave one of the two out");
    Types::of_protos(&protos, &includes).map_err(|reason| said.protos.error(sink, reason)).ok()
}

fn tls(said: &language::Tls<'_>, base: &Path, sink: &Sink<'_>) -> TlsSettings {
    let usual = TlsSettings::default();
    let file = |said: &At<'_, Text>| said.value.as_ref().map(|file| base.join(file));
    if !said.certificate.is_there() {
        said.key.error(sink, "a key belongs to a certificate; name that with `certificate`");
    }
    TlsSettings {
        any_name: false,
        insecure: said.insecure.value.unwrap_or(usual.insecure),
        ca: file(&said.ca),
        server_name: said.server_name.value.clone(),
        certificate: file(&said.certificate),
        key: file(&said.key),
        resumption: said.resumption.value.unwrap_or(usual.resumption),
    }
}
