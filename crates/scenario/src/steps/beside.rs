//! Protocols that are not HTTP: their servers' URLs, and what cannot go to the same server as their steps.

use crate::compile::Whole;
use crate::language::Parts;
use crate::plan::{RequestKind, SystemOrigin};

/// A protocol, in the words that mistakes are told with.
pub(crate) struct Spoken {
    /// What the URLs of its servers begin with.
    pub(crate) schemes: &'static [&'static str],
    /// Whether a request is one of its.
    pub(crate) is_ask: fn(&RequestKind) -> bool,
    /// Its server: `memcached`.
    pub(crate) server: &'static str,
    /// Its requests: `commands of memcached`.
    pub(crate) requests: &'static str,
    /// Its step: `memcached: […]`.
    pub(super) step: &'static str,
    /// Whether connections carry streams, as those of HTTP/2 do.
    pub(super) has_streams: bool,
}

/// Reports what does not fit together: requests and another server, another step and this server. Whether it is one of the
/// protocol.
pub(super) fn check(whole: &Whole<'_>, spoken: &Spoken) -> bool {
    let Whole { requests, system, reader, is_alone, .. } = *whole;
    let first = requests.first(spoken.is_ask);
    let is_such = match &system.origin {
        SystemOrigin::Url(_) => match whole.scheme() {
            Some(scheme) => spoken.schemes.contains(&scheme),
            // of a store that there is not, which is told already
            None => first.is_some(),
        },
        // the command line may name it
        SystemOrigin::Unknown => first.is_some(),
        SystemOrigin::Shipped(_) | SystemOrigin::Command(_) => {
            whole.scheme().is_some_and(|scheme| spoken.schemes.contains(&scheme))
        }
    };
    let Spoken { server, requests: what, has_streams, .. } = *spoken;
    if let Some(position) = first.filter(|_| !is_such) {
        let schemes: Vec<String> = spoken.schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        let other = if has_streams { "`command` with `ready: {grpc: SERVICE}`" } else { "`store`" };
        let message = format!(
            "{what} go to a system with a url that begins with {}, or to a {other}; beside another system, to one of `targets`",
            schemes.join(" or ")
        );
        reader.sink.error_at(position, message);
    }
    if !is_such {
        return false;
    }
    if let Some(position) = requests.first(|ask| !(spoken.is_ask)(ask)) {
        let message = format!(
            "the server is {server}; all steps that send something to it are `{}`, others go to one of `targets`",
            spoken.step
        );
        reader.sink.error_at(position, message);
    }
    let (Parts { defaults, limits, system }, sink) = (whole.parts, reader.sink);
    let of_http = if has_streams { "is always spoken with by HTTP/2" } else { "speaks no HTTP" };
    system.http.refuse(sink, format!("{server} {of_http}"));
    system.rpc.refuse(sink, format!("{server} takes no remote calls"));
    system.health.refuse(sink, format!("{server} has no path; it is asked by its own protocol"));
    // beside other targets these may be about them
    if is_alone {
        defaults.headers.refuse(sink, format!("{what} have no headers"));
        let message = "says how many requests a connection carries at once";
        match has_streams {
            true => limits.pipeline.refuse(sink, format!("`limits: streams` {message}")),
            false => limits.streams.refuse(sink, format!("`limits: pipeline` {message}")),
        }
        if !has_streams && limits.keep_alive.value == Some(false) {
            limits.keep_alive.refuse(sink, format!("connections to {server} stay open"));
        }
    }
    true
}
