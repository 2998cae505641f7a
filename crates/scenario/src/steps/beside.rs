//! What cannot stand beside the steps of a protocol that is not HTTP.

use crate::compile::Whole;
use crate::plan::{Ask, SystemOrigin};

/// A protocol, in the words that mistakes are told with.
pub(super) struct Alone {
    /// What the URLs of its servers begin with.
    pub(super) schemes: &'static [&'static str],
    /// Whether a request is one of its.
    pub(super) is_ask: fn(&Ask) -> bool,
    /// Its server: `memcached`.
    pub(super) server: &'static str,
    /// Its requests: `commands of memcached`.
    pub(super) requests: &'static str,
    /// Its step: `memcached: […]`.
    pub(super) step: &'static str,
    /// Whether `verify` can read its server back.
    pub(super) is_read_back: bool,
}

/// Reports what does not fit together: requests and another server, another step and this server. Whether it is one of the
/// protocol.
pub(super) fn check(whole: &Whole<'_>, alone: &Alone) -> bool {
    let Whole { root, requests, system, reader } = *whole;
    let first = requests.first(alone.is_ask);
    let is_such = match &system.origin {
        SystemOrigin::Url(_) => match whole.scheme() {
            Some(scheme) => alone.schemes.contains(&scheme),
            // of a store that there is not, which is told already
            None => first.is_some(),
        },
        // the command line may name it
        SystemOrigin::Unknown => first.is_some(),
        SystemOrigin::Shipped(_) | SystemOrigin::Command(_) => false,
    };
    let Alone { server, requests: what, .. } = alone;
    if let Some(position) = first.filter(|_| !is_such) {
        let schemes: Vec<String> = alone.schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        let message = format!(
            "{what} go to a system with a url that begins with {}, or to a `store`",
            schemes.join(" or ")
        );
        reader.sink.error_at(position, message);
    }
    if !is_such {
        return false;
    }
    if let Some(position) = requests.first(|ask| !(alone.is_ask)(ask)) {
        let message =
            format!("the server is {server}; all steps that send something to it are `{}`", alone.step);
        reader.sink.error_at(position, message);
    }
    for (first, second, message) in [
        ("defaults", "headers", format!("{what} have no headers")),
        (
            "limits",
            "streams",
            "`limits: pipeline` says how many requests a connection carries at once".into(),
        ),
        ("system", "http", format!("{server} speaks no HTTP")),
        ("system", "rpc", format!("{server} takes no remote calls")),
        ("system", "health", format!("{server} has no path; it is asked by its own protocol")),
    ] {
        if let Some((key, _)) = root.get(first).and_then(|node| node.entry(second)) {
            reader.sink.error(key, message);
        }
    }
    if let Some((key, value)) = root.get("limits").and_then(|node| node.entry("keep alive"))
        && reader.bool(value) == Some(false)
    {
        reader.sink.error(key, format!("connections to {server} stay open"));
    }
    if let Some((key, _)) = root.entry("verify").filter(|_| !alone.is_read_back) {
        reader.sink.error(key, format!("what {server} holds is not read back; leave this out"));
    }
    true
}
