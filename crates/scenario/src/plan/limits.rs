//! Bounds of the driver.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::grammar::kinds::words;

/// Bounds of the driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Limits {
    /// Connections at once, over all threads. A session holds one from its first request to its end.
    /// In a closed model at least as many as the highest number of users needs.
    pub connections: usize,
    /// Whether the scenario names the number of connections.
    pub connections_named: bool,
    /// Which of the free connections a session takes.
    pub choose: Choose,
    /// Arrived sessions that may wait for a connection or for another one's end, over all threads; more are dropped and
    /// counted. None for as many as a bound on memory holds.
    pub waiting: Option<usize>,
    /// Arrived sessions in flight, over all threads; users are their own limit. None where there is no limit but
    /// that of connections.
    pub in_flight: Option<SessionLimit>,
    /// Longest time to make a connection.
    pub connect_timeout: Duration,
    /// Largest answer body, bytes, kept or not; a larger one is an error of outcome `protocol`, at once where its
    /// Content-Length says so.
    pub body_bytes: usize,
    /// Longest wait for requests under way after the last phase.
    pub drain: Duration,
    /// Sessions that begin at most, over all threads, warm-up included; the load is over when they have ended.
    pub sessions: Option<u64>,
    /// Whether a connection carries one request after another; otherwise each gets one of its own.
    pub keep_alive: bool,
    /// Requests at once on a connection, each of another session: HTTP/1.1 pipelining where it is more than 1. At most
    /// [`PIPELINE_MAX`].
    pub pipeline: usize,
    /// Requests that leave together over a connection whose answers are to come; 1 where none waits for another.
    /// At most [`pipeline`](Self::pipeline).
    pub batch: usize,
    /// Requests under way at once on a connection of HTTP/2, or remote calls on a WebSocket.
    pub streams: usize,
    /// After how much silence a connection of HTTP/2 is pinged; one that is silent for as long again is lost.
    pub ping: Option<Duration>,
}

impl Default for Limits {
    /// What holds where a scenario says nothing.
    fn default() -> Self {
        Limits {
            connections: 1_000,
            connections_named: false,
            choose: Choose::InTurn,
            waiting: None,
            in_flight: None,
            connect_timeout: Duration::from_secs(5),
            body_bytes: 16 << 20,
            drain: Duration::from_secs(10),
            sessions: None,
            keep_alive: true,
            pipeline: 1,
            batch: 1,
            streams: 1,
            ping: None,
        }
    }
}

/// Most labels of a scenario.
pub const LABELS_MAX: usize = 2_000;
/// What a label takes on each driving thread where it is measured: histograms of three times, bytes.
pub const LABEL_BYTES: u64 = 256 << 10;
/// Most memory of what is in the variables of all sessions at once, bytes.
pub const VALUES_BYTES_MAX: u64 = 2 << 30;
/// Most users, and most connections: each has memory of its own.
pub const USERS_MAX: usize = 1_000_000;
/// Most requests at once on a connection.
pub const PIPELINE_MAX: usize = 1_024;
/// The same where the protocol tells them apart: streams of HTTP/2, calls.
pub const STREAMS_MAX: usize = 65_535;
/// Most requests at once over all connections where they are pipelined: each has a place, as far as the protocol gives it one.
pub const PLACES_MAX: usize = 10_000_000;
/// Most sessions that wait, or are in flight.
pub const SESSIONS_MAX: usize = 10_000_000;

words! {
    /// Which of the free connections a session takes.
    #[derive(Default, Serialize, Deserialize)]
    pub enum Choose {
        /// The one that was taken least recently: all are used alike. Where their number is named, arrivals find all of them
        /// made.
        #[default]
        InTurn = "in turn",
        /// The one that was made first; a further one is made only where none is free.
        FirstFree = "first free",
        /// Of the first connection that has room for another request: its pipeline fills before another's, so that requests
        /// which are due together leave together, as from client libraries that pipeline by themselves.
        Fill = "fill",
    }
}

/// The most sessions in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimit {
    /// How many, at least one for each driving thread.
    pub most: usize,
    /// What an arrival does that finds them all there.
    pub at_limit: AtLimit,
}

words! {
    /// What an arrival does at the limit of sessions in flight.
    #[derive(Serialize, Deserialize)]
    pub enum AtLimit {
        /// It waits until one ends, and its wait counts in its response time; beyond [`Limits::waiting`] it is dropped.
        Wait = "wait",
        /// It is dropped and counted.
        Drop = "drop",
    }
}
