//! Stores that are there already: nothing is started, they are only reached, through a link where faults are of that.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_record::manifest;
use tidemark_scenario::plan::Store;
use tidemark_scenario::store_servers;

use super::instance::{Instance, Setup};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::link::Link;
use crate::products::launcher;

/// How long one attempt to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a store is tried that nobody answers at.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// A store at a URL.
///
/// # Errors
/// Where nobody takes connections there.
pub fn at_url(
    store: &Store,
    url: &str,
    setup: &Setup<'_>,
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<Instance, LabError> {
    // the URL itself is not told: it may hold a password
    let name = &store.name;
    let wrong = |reason: &str| LabError::Usage(format!("the URL of the store `{name}` {reason}"));
    let usual = launcher(store.product).ports(store)[0];
    // of several servers, each
    let mut servers = Vec::new();
    for server in store_servers(url) {
        let parsed = url::Url::parse(&server).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        let host = parsed.host_str().ok_or_else(|| wrong("names no host"))?;
        let address = format!("{host}:{}", parsed.port().unwrap_or(usual));
        let there = reach(name, &address, stop_request)?;
        servers.push((parsed, address, there));
    }
    let addresses: Vec<String> = servers.iter().map(|(_, address, _)| address.clone()).collect();
    let (mut parsed, there) = match servers.pop() {
        // before several no one link can stand, which the check of the scenario says
        Some((parsed, _, there)) if servers.is_empty() && (setup.is_linked)(name) => (parsed, there),
        _ => return Ok(instance(store, addresses, Some(url.to_owned()), Vec::new())),
    };
    let link = Link::to(there)
        .map_err(|error| LabError::Start(format!("cannot open a link to {there}: {error}")))?;
    let is_set = parsed.set_host(Some(&link.address.ip().to_string())).is_ok()
        && parsed.set_port(Some(link.address.port())).is_ok();
    if !is_set {
        return Err(wrong("cannot be that of a link"));
    }
    let links = vec![(name.clone(), Arc::new(link))];
    Ok(instance(store, addresses, Some(parsed.into()), links))
}

/// A cluster of which some nodes are known.
///
/// # Errors
/// Where nobody takes connections at one of them.
pub fn at_addresses(
    store: &Store,
    addresses: &[String],
    stop_request: &dyn Fn() -> StopRequest,
) -> Result<Instance, LabError> {
    addresses.iter().try_for_each(|address| reach(&store.name, address, stop_request).map(drop))?;
    Ok(instance(store, addresses.to_vec(), None, Vec::new()))
}

/// Waits until somebody takes connections there.
fn reach(name: &str, address: &str, stop_request: &dyn Fn() -> StopRequest) -> Result<SocketAddr, LabError> {
    let begin = Instant::now();
    loop {
        if stop_request() != StopRequest::None {
            return Err(LabError::Interrupted(None));
        }
        let found = address.to_socket_addrs().and_then(|mut all| {
            all.find_map(|one| TcpStream::connect_timeout(&one, CONNECT_MAX).ok().map(|_| one))
                .ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into())
        });
        match found {
            Ok(found) => return Ok(found),
            Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(TRY_EVERY),
            Err(error) => {
                return Err(LabError::Unreachable(format!(
                    "the store `{name}` is unreachable at {address} ({error}); start it \
                     first, or check host and port"
                )));
            }
        }
    }
}

fn instance(
    store: &Store,
    addresses: Vec<String>,
    url: Option<String>,
    links: Vec<(String, Arc<Link>)>,
) -> Instance {
    Instance {
        nodes: Vec::new(),
        _data: Vec::new(),
        links,
        _ports: None,
        store: store.clone(),
        url,
        manifest: manifest::Store {
            name: store.name.clone(),
            version: store.product.title().into(),
            addresses,
            durability: "not known".into(),
            ..manifest::Store::default()
        },
        remarks: "not started by this run: its version, settings and durability are not known".into(),
    }
}
