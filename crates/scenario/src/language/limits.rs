//! Bounds of the driver.

use crate::grammar::Scalar::{Bool, Duration, Size, Whole, Word};
use crate::grammar::Shape::Scalar;
use crate::grammar::{Record, Rule, key};

pub(super) static LIMITS: Record = Record {
    what: "a block of limits",
    schema: "limits",
    about: "Bounds of the load generator. What reaches one is counted and shown.",
    verbs: &[],
    keys: &[
        key(
            "connections",
            Scalar(Whole(1)),
            "Connections at once; 1000 by default, and never fewer than the users need. Arrivals find as many made as are named.",
        ),
        key(
            "choose",
            Scalar(Word(&["in turn", "first free", "fill"])),
            "Which free connection a session takes: `in turn` (default), of those that are open the `first free`, or \
             `fill`: the first whose pipeline has room.",
        ),
        key(
            "waiting",
            Scalar(Whole(0)),
            "Sessions that may wait for a connection or another session's end; more are dropped. As many as 256 MiB hold \
             by default.",
        ),
        key(
            "in flight",
            Scalar(Whole(1)),
            "Arrived sessions in flight; without it, connections are the limit. Users are their own limit.",
        ),
        key(
            "at limit",
            Scalar(Word(&["wait", "drop"])),
            "What an arrival does when that many sessions are in flight: `wait` (default; it counts) or `drop`.",
        ),
        key("connect timeout", Scalar(Duration), "Longest time to make a connection; 5s by default."),
        key("body", Scalar(Size), "Largest answer body that is kept; 16MiB by default."),
        key("drain", Scalar(Duration), "Longest wait for requests under way at the end; 10s by default."),
        key(
            "sessions",
            Scalar(Whole(1)),
            "Sessions that begin, warm-up included; the load is over when they have ended.",
        ),
        key(
            "keep alive",
            Scalar(Bool),
            "Whether a connection carries one request after another; true by default.",
        ),
        key(
            "pipeline",
            Scalar(Whole(1)),
            "Requests at once on a connection, of as many sessions (HTTP/1.1 pipelining); 1 by default, at most 1024.",
        ),
        key(
            "batch",
            Scalar(Whole(1)),
            "Pipelined requests that leave together over a connection whose answers are to come; 1 by default, at most \"pipeline\".",
        ),
        key(
            "streams",
            Scalar(Whole(1)),
            "Requests at once on a connection of HTTP/2, or calls on a WebSocket, if the server takes as many; 1 by default.",
        ),
    ],
    rule: Rule::Free,
};
