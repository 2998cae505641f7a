//! Counting calls over WebSockets: each worker has its own counters, which are added up when somebody looks.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use tidemark_service::encode::{counter, gauge};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Deadline,
    Cancelled,
    Panicked,
    /// Its connection ended first.
    Abandoned,
}

const OUTCOMES: [&str; 6] = ["done", "failed", "deadline", "cancelled", "panicked", "abandoned"];

/// Why the server ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Malformed,
    SlowReader,
    Silent,
    /// All connections together hold as much as they may.
    NoRoom,
}

const CUTS: [&str; 4] = ["malformed", "slow_reader", "silent", "no_room"];

/// Adds where only one thread writes.
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// What one worker counts, written by that worker only.
#[derive(Debug, Default)]
pub(crate) struct WorkerCalls {
    methods: Box<[[AtomicU64; OUTCOMES.len()]]>,
    /// Calls of methods that do not exist.
    pub(crate) unknown: AtomicU64,
    pub(crate) frames_received: AtomicU64,
    pub(crate) frames_sent: AtomicU64,
    pub(crate) connections_open: AtomicI64,
    pub(crate) connections: AtomicU64,
    pub(crate) cuts: [AtomicU64; CUTS.len()],
}

/// The counters of all workers, and the names of the methods.
#[derive(Debug)]
pub(crate) struct CallCounts {
    workers: Vec<WorkerCalls>,
    names: Vec<String>,
}

impl CallCounts {
    pub(crate) fn new(workers: usize, names: Vec<String>) -> Self {
        let worker = || WorkerCalls {
            methods: names.iter().map(|_| Default::default()).collect(),
            ..WorkerCalls::default()
        };
        CallCounts { workers: (0..workers).map(|_| worker()).collect(), names }
    }

    pub(crate) fn of(&self, worker: usize) -> &WorkerCalls {
        &self.workers[worker]
    }

    pub(crate) fn method(&self, worker: usize, method: u32) -> &[AtomicU64; OUTCOMES.len()] {
        &self.workers[worker].methods[method as usize]
    }

    pub(crate) fn cut(&self, worker: usize, cut: Cut) {
        bump(&self.workers[worker].cuts[cut as usize], 1);
    }

    fn sum(&self, part: impl Fn(&WorkerCalls) -> &AtomicU64) -> u64 {
        self.workers.iter().map(|worker| part(worker).load(Ordering::Relaxed)).sum()
    }

    fn encode_calls(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "Calls over WebSockets, by method and how they ended";
        let mut family = encoder.encode_descriptor("tidemark_calls", help, None, MetricType::Counter)?;
        let mut count = |method: &str, outcome: &str, count: u64| {
            if count == 0 {
                return Ok(());
            }
            let labels = [("method", method), ("outcome", outcome)];
            family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], u64, f64>(&count, None)
        };
        for (number, name) in self.names.iter().enumerate() {
            for (at, outcome) in OUTCOMES.iter().enumerate() {
                count(name, outcome, self.sum(|worker| &worker.methods[number][at]))?;
            }
        }
        count("(none)", "failed", self.sum(|worker| &worker.unknown))
    }

    fn encode_family(
        &self,
        encoder: &mut DescriptorEncoder,
        (name, help, label): (&str, &str, &str),
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in values {
            let labels = [(label, *value)];
            family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], u64, f64>(count, None)?;
        }
        Ok(())
    }
}

impl Collector for CallCounts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let e = &mut encoder;
        self.encode_calls(e)?;
        let frames = [
            ("received", self.sum(|worker| &worker.frames_received)),
            ("sent", self.sum(|worker| &worker.frames_sent)),
        ];
        let help = "Frames of calls and of answers; calls by frames are how many share one";
        self.encode_family(e, ("tidemark_call_frames", help, "direction"), &frames)?;
        let cuts: Vec<_> =
            CUTS.iter().enumerate().map(|(at, cut)| (*cut, self.sum(|worker| &worker.cuts[at]))).collect();
        let help = "WebSockets that the server ended because of what the client did, by reason";
        self.encode_family(e, ("tidemark_call_connections_cut", help, "reason"), &cuts)?;
        let accepted = self.sum(|worker| &worker.connections);
        let help = "WebSockets opened for calls";
        counter(e, "tidemark_call_connections", help, accepted)?;
        let open: i64 =
            self.workers.iter().map(|worker| worker.connections_open.load(Ordering::Relaxed)).sum();
        let help = "WebSockets for calls that are open now";
        gauge(e, "tidemark_call_connections_open", help, u64::try_from(open).unwrap_or_default())
    }
}
