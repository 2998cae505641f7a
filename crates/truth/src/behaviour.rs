//! What a server is told to do.

use std::time::Duration;

use crate::{Delay, Misbehaviour, Pauses};

/// How a server behaves. The default answers everything at once.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// How long a request is kept, by shard: the number at the end of a path, modulo how many there are, says which
    /// (a path without one is of shard 0). None: no delay, one shard.
    pub delays: Vec<Delay>,
    /// How requests are answered, in turn: request `n` by `faults[n % len]`. None: all as they should.
    /// [`Misbehaviour::of_every`] makes an exact share.
    pub faults: Vec<Misbehaviour>,
    /// Time between two accepted connections; the first waits for it too. None: at once.
    pub accept_every: Option<Duration>,
    /// Requests that it is able to serve in a second, one after the other in the order in which they came.
    pub capacity_per_s: Option<f64>,
    /// Who serve one request each at a time, in the order in which they came: a delay is then how long one takes, so that
    /// with one worker and exponential delays it is an M/M/1 queue. None: as many as there are requests.
    pub workers: Option<usize>,
    /// When those workers do not work.
    pub pauses: Option<Pauses>,
    /// By how much of itself a service of theirs gets slower in each minute.
    pub slows: f64,
    /// Every so many connections, one is reset as soon as it is accepted. None: no such.
    pub reset_every: Option<u64>,
    /// A freeze by itself.
    pub freeze: Option<Freeze>,
    /// A time in which it is not there.
    pub down: Option<Down>,
    /// Seed of the random delays.
    pub seed: u64,
    /// Whether it speaks TLS, with a certificate that nobody trusts.
    pub tls: bool,
}

/// A time in which nothing is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// Its begin, counted from the first request.
    pub after: Duration,
    /// Its length.
    pub length: Duration,
}

/// A time in which there is no server: its connections are reset when it begins, and new ones are refused until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down {
    /// Its begin, counted from the first request.
    pub after: Duration,
    /// Its length.
    pub length: Duration,
}
