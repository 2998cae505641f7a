//! What a server did.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::Misbehaviour;

/// Longest time that is told apart, microseconds: an hour.
const LONGEST_US: u64 = 3_600_000_000;

/// What a server did, from its first connection to its stop.
#[derive(Debug, Clone)]
pub struct Truth {
    /// How long it kept each request that it answered as it should, from when it was read to when its answer was
    /// written, microseconds, by shard.
    pub kept_us: Vec<Histogram<u64>>,
    /// How much later than planned answers left, by the server's own fault or the machine's, microseconds.
    pub late_us: Histogram<u64>,
    /// Requests read.
    pub requests: u64,
    /// Requests answered as they should, late or drop by drop as it may be.
    pub answered: u64,
    /// What was done in place of an answer or with it, for each request whose turn came.
    pub faults: BTreeMap<Misbehaviour, u64>,
    /// Requests whose connection was gone before their answer was whole: the peer's doing, or a time without a server.
    pub left: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Those of them that were reset at once.
    pub connections_reset: u64,
    /// How long connections lay there until they were accepted, microseconds, counted from when the server learnt
    /// of them.
    pub accept_us: Histogram<u64>,
    /// Freezes as they came to pass: begin and end, nanoseconds since the server began.
    pub freezes_ns: Vec<(u64, u64)>,
    /// Times without a server as they came to pass: begin and end, nanoseconds since the server began.
    pub downs_ns: Vec<(u64, u64)>,
    /// When the first request was read, nanoseconds since the server began.
    pub first_request_ns: Option<u64>,
    /// How long the server's thread was ready to run but had no core, microseconds; none where the system does not
    /// say. What is measured from outside contains some of it.
    pub waited_us: Option<u64>,
}

impl Truth {
    pub(crate) fn new(shards: usize) -> Truth {
        Truth {
            kept_us: vec![times(); shards],
            late_us: times(),
            requests: 0,
            answered: 0,
            faults: BTreeMap::new(),
            left: 0,
            connections: 0,
            connections_reset: 0,
            accept_us: times(),
            freezes_ns: Vec::new(),
            downs_ns: Vec::new(),
            first_request_ns: None,
            waited_us: None,
        }
    }

    /// All shards together.
    pub fn all_kept_us(&self) -> Histogram<u64> {
        sum_of(&self.kept_us)
    }

    /// How often something was done.
    pub fn count(&self, fault: Misbehaviour) -> u64 {
        self.faults.get(&fault).copied().unwrap_or(0)
    }
}

/// A histogram of times.
pub(crate) fn times() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are constants that hdrhistogram accepts")
}

/// All of these together.
pub(crate) fn sum_of(shards: &[Histogram<u64>]) -> Histogram<u64> {
    let mut all = times();
    for shard in shards {
        all.add(shard).expect("the bounds of all are the same");
    }
    all
}

/// How long the calling thread was ready to run but had no core.
pub(crate) fn thread_waited_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse::<u64>().ok().map(|ns| ns / 1_000)
}
