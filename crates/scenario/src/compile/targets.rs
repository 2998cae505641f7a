//! Where requests go: to the system, to a target by its name, to one that an absolute URL names.

use std::path::Path;

use super::requests::Requests;
use super::{store, system};
use crate::diagnostic::did_you_mean;
use crate::grammar::record::Kind;
use crate::language;
use crate::plan::{HttpVersion, RequestKind, SYSTEM_TARGET, System, SystemOrigin, Target};
use crate::reader::Reader;
use crate::steps::{Spoken, spoken_at, spoken_by};
use crate::store_facts::store_facts;
use crate::system_url::{self, SystemUrl};
use crate::template::{Part, Template};
use crate::yaml::{Node, Position};

/// Most targets beside the system, named or not.
const TARGETS_MAX: usize = 64;

/// Where a step says that its request goes.
#[derive(Debug, Clone, Default)]
pub(crate) enum Aim {
    /// To whichever takes it.
    #[default]
    Open,
    /// To a target by its name.
    Named(String, Position),
    /// To an origin: `http://host:port`.
    Origin(String, Position),
}

/// Splits an absolute URL: its origin is returned, and `target` is left with the path.
pub(crate) fn split_origin(target: &mut Template) -> Result<Option<String>, &'static str> {
    let parts = target.parts.len();
    let Some(Part::Literal(first)) = target.parts.first_mut() else { return Ok(None) };
    let text = String::from_utf8_lossy(first).into_owned();
    let known = [("http://", "http"), ("https://", "https"), ("ws://", "http"), ("wss://", "https")];
    let Some((scheme, plain)) = known.iter().find(|(scheme, _)| text.starts_with(scheme)) else {
        return Ok(None);
    };
    let rest = &text[scheme.len()..];
    let end = match rest.find(['/', '?']) {
        Some(end) => end,
        None if parts > 1 => {
            return Err(
                "scheme and host of a URL are known before the load, so that no variable stands in them; \
                        name each host under `targets`, and let `choose` or `when` choose among steps with `at`",
            );
        }
        None => rest.len(),
    };
    // what is special in a path is not in a host
    let host = percent_encoding::percent_decode_str(&rest[..end]).decode_utf8_lossy().into_owned();
    let path =
        if rest[end..].starts_with('/') { rest[end..].to_owned() } else { format!("/{}", &rest[end..]) };
    *first = path.into_bytes().into_boxed_slice();
    Ok(Some(format!("{plain}://{host}")))
}

/// What tells origins apart, and what all paths there begin with.
fn origin(url: &str) -> Option<(bool, String, Option<u16>, String)> {
    let url = SystemUrl::read(url).ok()?;
    let system_url::Spoken::Http { base_path } = url.spoken else { return None };
    Some((url.is_secure, url.host, url.port, base_path))
}

/// What a URL, or the store that one stands for, is spoken with.
pub(super) fn scheme<'r>(root: &'r Node, system: &'r System) -> Option<&'r str> {
    let SystemOrigin::Url(url) = &system.origin else { return system.is_grpc.then_some("grpc") };
    match store_facts(url).next() {
        Some(fact) => store::scheme(root.get("stores"), fact.store),
        None => url.split_once("://").map(|(scheme, _)| scheme),
    }
}

/// Whether requests of HTTP can go to a system or a target.
pub(super) fn speaks_http(root: &Node, system: &System) -> bool {
    match &system.origin {
        SystemOrigin::Url(_) => scheme(root, system).is_some_and(|scheme| spoken_at(scheme).is_none()),
        SystemOrigin::Shipped(_) | SystemOrigin::Command(_) | SystemOrigin::Unknown => !system.is_grpc,
    }
}

/// Reads the named targets.
pub(super) fn read(root: &Node, base: &Path, reader: &Reader<'_>) -> Vec<Target> {
    let entries = root.get("targets").map(Node::entries).unwrap_or_default();
    if let Some((key, _)) = entries.get(TARGETS_MAX) {
        reader.sink.error(key, format!("{} targets; at most {TARGETS_MAX}", entries.len()));
    }
    let mut targets = Vec::new();
    for (key, node) in entries.iter().take(TARGETS_MAX) {
        let Some(name) = key.text() else { continue };
        if name == SYSTEM_TARGET {
            reader.sink.error(key, "\"system\" is what stands under `system`; give this target another name");
        }
        // one that cannot be read is known nevertheless, lest steps are told of it as well
        let said = language::System::read(node, reader);
        let at = said.and_then(|said| system::read(&said, base, reader)).unwrap_or_default();
        targets.push(Target { name: name.to_owned(), at });
    }
    targets
}

/// Says of each request where it goes. Targets that only absolute URLs name come behind the named ones.
pub(super) fn assign(
    root: &Node,
    system: &System,
    targets: &mut Vec<Target>,
    requests: &mut Requests,
    reader: &Reader<'_>,
) {
    let named = targets.len();
    for index in 0..requests.plans.len() {
        let aim = std::mem::take(&mut requests.aims[index]);
        let at = match aim {
            Aim::Open => open(root, system, targets, requests, index, reader),
            Aim::Named(name, position) => by_name(root, targets, requests, index, &name, position, reader),
            Aim::Origin(url, position) => by_origin(system, targets, requests, index, &url, position, reader),
        };
        // what is wrong has been told, and is no matter of the system's
        requests.plans[index].target = at.and_then(|at| u16::try_from(at).ok()).unwrap_or(u16::MAX);
    }
    check_each(root, targets, requests, reader);
    let is_used = |target: usize| requests.plans.iter().any(|plan| usize::from(plan.target) == target + 1);
    let entries = root.get("targets").map(Node::entries).unwrap_or_default();
    // a redirect may lead there
    let is_followed = requests.plans.iter().any(|plan| plan.follow.is_some());
    let is_used = |target: usize| is_used(target) || is_followed && speaks_http(root, &targets[target].at);
    for (_, (key, _)) in entries.iter().take(named).enumerate().filter(|(target, _)| !is_used(*target)) {
        if let Some(name) = key.text().filter(|_| !reader.sink.has_errors()) {
            reader.sink.warn(key.position, format!("no step goes to \"{name}\""));
        }
    }
}

/// A request goes to the system where that takes it, else to the only target that does. None where a mistake is told.
fn open(
    root: &Node,
    system: &System,
    targets: &[Target],
    requests: &Requests,
    index: usize,
    reader: &Reader<'_>,
) -> Option<usize> {
    let ask = &requests.plans[index].ask;
    let wanted = spoken_by(ask);
    let takes = |(_, target): &(usize, &Target)| {
        scheme(root, &target.at).is_some_and(|scheme| is_same(spoken_at(scheme), wanted))
    };
    let taking: Vec<(usize, &Target)> = targets.iter().enumerate().filter(takes).collect();
    let system_takes = match (&system.origin, wanted) {
        (SystemOrigin::Command(_) | SystemOrigin::Shipped(_), _) if system.is_grpc => {
            is_same(spoken_at("grpc"), wanted)
        }
        (SystemOrigin::Url(_), _) => {
            scheme(root, system).is_none_or(|scheme| is_same(spoken_at(scheme), wanted))
        }
        // the command line may name it
        (SystemOrigin::Unknown, Some(_)) => taking.is_empty(),
        (_, wanted) => wanted.is_none(),
    };
    match taking[..] {
        _ if system_takes => Some(0),
        // that nobody takes it is told where its kind is looked at
        [] => Some(0),
        [(target, _)] => Some(target + 1),
        _ => {
            let names: Vec<&str> = taking.iter().map(|(_, target)| target.name.as_str()).collect();
            let what = wanted.map_or("requests of HTTP", |spoken| spoken.requests);
            let message = format!("several targets take {what}: {}; say which with `at`", names.join(", "));
            reader.sink.error_at(requests.places[index], message);
            None
        }
    }
}

fn is_same(one: Option<&Spoken>, other: Option<&Spoken>) -> bool {
    one.map(|one| one.server) == other.map(|other| other.server)
}

fn by_name(
    root: &Node,
    targets: &[Target],
    requests: &Requests,
    index: usize,
    name: &str,
    position: Position,
    reader: &Reader<'_>,
) -> Option<usize> {
    if name == SYSTEM_TARGET {
        return Some(0);
    }
    let Some(at) = targets.iter().position(|target| target.name == name) else {
        let hint = did_you_mean(name, targets.iter().map(|target| target.name.as_str()));
        let message = match targets.is_empty() {
            true => format!(
                "there is no target \"{name}\"; say under `targets` where it is: `targets: {{{name}: {{url: …}}}}`"
            ),
            false if hint.is_empty() => {
                let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
                format!("there is no target \"{name}\"; there is {}", names.join(", "))
            }
            false => format!("there is no target \"{name}\"{hint}"),
        };
        reader.sink.error_at(position, message);
        return None;
    };
    let wanted = spoken_by(&requests.plans[index].ask);
    if let Some(there) = scheme(root, &targets[at].at).map(spoken_at)
        && !is_same(there, wanted)
    {
        let server = there.map_or("HTTP", |spoken| spoken.server);
        let what = wanted.map_or("requests of HTTP", |spoken| spoken.requests);
        reader.sink.error_at(position, format!("\"{name}\" is a server of {server}, which takes no {what}"));
    }
    Some(at + 1)
}

fn by_origin(
    system: &System,
    targets: &mut Vec<Target>,
    requests: &mut Requests,
    index: usize,
    url: &str,
    position: Position,
    reader: &Reader<'_>,
) -> Option<usize> {
    let (is_secure, host, port) = match SystemUrl::read(url) {
        Ok(SystemUrl { is_secure, host, port, .. }) => (is_secure, host, port),
        Err(reason) => {
            reader.sink.error_at(position, format!("\"{url}\" cannot be driven: {reason}"));
            return None;
        }
    };
    let all = std::iter::once((SYSTEM_TARGET, system));
    let all = all.chain(targets.iter().map(|target| (target.name.as_str(), &target.at)));
    let there: Vec<(usize, &str, String)> = all
        .enumerate()
        .filter_map(|(at, (name, system))| {
            let SystemOrigin::Url(url) = &system.origin else { return None };
            let (its_secure, its_host, its_port, base) = origin(url)?;
            let is_there = (its_secure, its_host, its_port) == (is_secure, host.clone(), port);
            is_there.then_some((at, name, base))
        })
        .collect();
    for (at, _, base) in &there {
        if take_base(&mut requests.plans[index].ask, base) {
            return Some(*at);
        }
    }
    if let Some((_, name, base)) = there.first() {
        let message = format!(
            "this is where \"{name}\" is, all of whose paths begin with {base}; leave that out of its url, or give this one a \
             target of its own and a path"
        );
        reader.sink.error_at(position, message);
        return None;
    }
    if targets.len() >= TARGETS_MAX {
        let message = format!("the URLs of this scenario name more hosts than {TARGETS_MAX}");
        reader.sink.error_at(position, message);
        return None;
    }
    let at = System {
        origin: SystemOrigin::Url(url.to_owned()),
        ready_within: system::READY_WITHIN,
        // what stands before the system stands before hosts that only URLs name, too
        proxy: system.proxy.clone(),
        ..System::default()
    };
    targets.push(Target { name: url.to_owned(), at });
    Some(targets.len())
}

/// Takes what all paths of a target begin with from the front of a request's; whether it stands there.
fn take_base(ask: &mut RequestKind, base: &str) -> bool {
    let Some(request) = ask.http_mut() else { return base.is_empty() };
    let Some(Part::Literal(first)) = request.target.parts.first_mut() else { return base.is_empty() };
    let first: &mut Box<[u8]> = first;
    let Some(path) = first.strip_prefix(base.as_bytes()) else { return false };
    let path: Vec<u8> = match path.first() {
        Some(b'/') => path.to_vec(),
        None | Some(b'?') => [b"/", path].concat(),
        Some(_) => return false,
    };
    *first = path.into_boxed_slice();
    true
}

/// Tells of what does not fit together at targets other than the system, and of labels that go to several.
fn check_each(root: &Node, targets: &[Target], requests: &Requests, reader: &Reader<'_>) {
    let verify = root.get("verify");
    let at = verify.and_then(|verify| verify.get("at")).and_then(Node::text);
    let read_back = at.and_then(|at| targets.iter().position(|target| target.name == at));
    let read_back = read_back.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0);
    let has_verify = verify.is_some();
    let name = |target: usize| match target {
        0 => SYSTEM_TARGET,
        other => targets.get(other - 1).map_or("", |target| target.name.as_str()),
    };
    let mut of_label: Vec<Option<u16>> = vec![None; requests.labels.len()];
    for (plan, place) in requests.plans.iter().zip(&requests.places) {
        if let Some(label) = of_label.get_mut(usize::from(plan.label)) {
            let first = *label.get_or_insert(plan.target);
            if first != plan.target {
                let message = format!(
                    "requests with the label \"{}\" go to \"{}\" and to \"{}\"; give each target labels of its own",
                    requests.labels[usize::from(plan.label)].name,
                    name(first.into()),
                    name(plan.target.into()),
                );
                reader.sink.error_at(*place, message);
            }
        }
        // that nobody reads the ledger back at all is told elsewhere
        if plan.ledger.is_some() && plan.target != u16::MAX && plan.target != read_back && has_verify {
            let message = format!(
                "what is entered in the ledger is looked for in \"{}\", and this goes to \"{}\"; say with `at` of `verify` \
                 where it is looked for, or leave out `ledger`",
                name(read_back.into()),
                name(plan.target.into()),
            );
            reader.sink.error_at(*place, message);
        }
        let Some(target) = usize::from(plan.target).checked_sub(1).and_then(|at| targets.get(at)) else {
            continue;
        };
        let is_bound = matches!(
            plan.ask,
            RequestKind::WebSocket(_) | RequestKind::EventStream(_) | RequestKind::Call(_)
        );
        if (is_bound || plan.ask.is_upload()) && target.at.http == HttpVersion::Two {
            let message = format!("this needs HTTP/1.1; leave out `http: 2` of \"{}\"", target.name);
            reader.sink.error_at(*place, message);
        }
        let mut beside = requests.plans.iter().filter(|other| other.target == plan.target);
        if plan.is_call() && beside.any(|other| !other.is_call()) {
            let message = format!(
                "calls and requests are not made over the same connections, and both go to \"{}\"; name it twice",
                target.name
            );
            reader.sink.error_at(*place, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_url_is_an_origin_and_a_path() {
        let split = |text: &str| {
            let mut target = Template::literal(text);
            let origin = split_origin(&mut target).unwrap();
            (origin, String::from_utf8(target.as_literal().unwrap().to_vec()).unwrap())
        };
        let of = |origin: &str, path: &str| (Some(origin.to_owned()), path.to_owned());
        assert_eq!(split("/a"), (None, "/a".into()));
        assert_eq!(split("http://h:9/a?b=/c"), of("http://h:9", "/a?b=/c"));
        assert_eq!(split("https://h"), of("https://h", "/"));
        assert_eq!(split("wss://h?a=b"), of("https://h", "/?a=b"));
        assert_eq!(split("http://%5B::1%5D:9/"), of("http://[::1]:9", "/"));
    }
}
