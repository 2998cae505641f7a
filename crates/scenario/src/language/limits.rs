//! Bounds of the driver.

use crate::grammar::kinds::{Bool, Size, Time, Whole};
use crate::grammar::record::record;
use crate::plan::{AtLimit, Choose};

record! {
    /// Bounds of the load generator. What reaches one is counted and shown.
    pub(crate) struct Limits("limits", "a block of limits") {
        connections: Whole<1> =
            "Connections at once; 1000 by default, and never fewer than the users need. Arrivals find as many made \
             as are named.",
        choose: Choose =
            "Which free connection a session takes: `in turn` (default), of those that are open the `first free`, or \
             `fill`: the first whose pipeline has room.",
        waiting: Whole<0> =
            "Sessions that may wait for a connection or another session's end; more are dropped. As many as 256 MiB \
             hold by default.",
        in_flight: Whole<1> as "in flight" =
            "Arrived sessions in flight; without it, connections are the limit. Users are their own limit.",
        at_limit: AtLimit as "at limit" =
            "What an arrival does when that many sessions are in flight: `wait` (default; it counts) or `drop`.",
        connect_timeout: Time as "connect timeout" = "Longest time to make a connection; 5s by default.",
        body: Size = "Largest answer body that is kept; 16MiB by default.",
        drain: Time = "Longest wait for requests under way at the end; 10s by default.",
        sessions: Whole<1> = "Sessions that begin, warm-up included; the load is over when they have ended.",
        keep_alive: Bool as "keep alive" = "Whether a connection carries one request after another; true by default.",
        pipeline: Whole<1> =
            "Requests at once on a connection, of as many sessions (HTTP/1.1 pipelining); 1 by default, at most \
             1024.",
        batch: Whole<1> =
            "Pipelined requests that leave together over a connection whose answers are to come; 1 by default, at \
             most \"pipeline\".",
        streams: Whole<1> =
            "Requests at once on a connection of HTTP/2, or calls on a WebSocket, if the server takes as many; 1 by \
             default.",
        ping: Time =
            "After how much silence a connection of HTTP/2 is pinged; one that is silent for as long again is lost. Without \
             it none is.",
    }
}
