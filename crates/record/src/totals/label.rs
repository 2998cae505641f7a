//! What came of the requests of a label.

use std::collections::BTreeMap;

use crate::PartTimes;
use crate::distribution::{Distribution, latency};
use crate::histogram::{Merged, merge, merge_merged, new_merged};
use crate::interval::{Outcome, Series};
use crate::summary::{Failure, Good, Latency, Part, Parts, ratio};

/// The kind of failure of a request that was never sent, because a bound was reached.
pub const DROPPED: &str = "dropped";

/// What came of the requests of one label, or of all.
#[derive(Debug, Clone)]
pub struct LabelTotals {
    /// Requests that were due in the measured window and ended, by [`Outcome`].
    pub measured: [u64; Outcome::ALL.len()],
    /// Requests that were due in the measured window and were given up, because a bound was reached. A session that never
    /// began has no label: its first request counts among all, and to a label only where there is no other.
    pub dropped: u64,
    /// Those among the measured ones, dropped ones included, that failed for want of a connection: most of their time was over before
    /// one was free.
    pub unconnected: u64,
    /// The shortest service time of a good answer, the warm-up's included, microseconds.
    pub fastest_us: Option<u64>,
    /// Requests that ended, whatever came of them, those of the warm-up included.
    pub ended: u64,
    /// Good answers that came within the measured window, whenever they were due.
    pub good_in_window: u64,
    /// Good answers to measured requests that came after the window.
    pub good_after_window: u64,
    /// Response time of the good answers to measured requests.
    pub response_time_us: Merged,
    /// The same with the driver's own lag taken out.
    pub response_time_less_lag_us: Merged,
    /// Service time of the same.
    pub service_time_us: Merged,
    /// How many of them have a body of a known size.
    pub bodies: u64,
    /// Bytes of these bodies: once decoded where a step looks at them, else as they came.
    pub body_bytes: u64,
    /// Where the time of the same went.
    pub parts: PartTimes,
    /// How long after it was due the failure of a measured request was known, by its kind.
    pub known_after_us: BTreeMap<Outcome, Merged>,
}

impl Default for LabelTotals {
    fn default() -> Self {
        LabelTotals {
            measured: Default::default(),
            dropped: 0,
            unconnected: 0,
            fastest_us: None,
            ended: 0,
            good_in_window: 0,
            good_after_window: 0,
            response_time_us: new_merged(),
            response_time_less_lag_us: new_merged(),
            service_time_us: new_merged(),
            bodies: 0,
            body_bytes: 0,
            parts: PartTimes::default(),
            known_after_us: BTreeMap::new(),
        }
    }
}

impl LabelTotals {
    /// Measured requests that ended, whatever their outcome.
    pub fn requests(&self) -> u64 {
        self.measured.iter().sum()
    }

    /// Those of them that failed.
    pub fn errors(&self) -> u64 {
        self.requests() - self.measured[Outcome::Ok as usize]
    }

    /// Requests that were due in the measured window.
    pub fn due(&self) -> u64 {
        self.requests() + self.dropped
    }

    /// Those of them without a good answer.
    pub fn failed(&self) -> u64 {
        self.errors() + self.dropped
    }

    /// Response times of all requests that were due.
    pub fn response_times(&self) -> Distribution<'_> {
        Distribution::new(&self.response_time_us, self.failed())
    }

    /// Service times of the same.
    pub fn service_times(&self) -> Distribution<'_> {
        Distribution::new(&self.service_time_us, self.failed())
    }

    /// Adds requests; `measured` where they were due, and `in_window` where they ended, in what these are the totals of.
    pub(super) fn add(&mut self, series: &Series, measured: bool, in_window: bool) {
        let count = series.response_time_us.len();
        self.ended += count;
        if count > 0 && !series.outcome.is_error() {
            self.is_as_fast_as(series.service_time_us.min());
        }
        if in_window && !series.outcome.is_error() {
            self.good_in_window += count;
        }
        if measured {
            self.measured[series.outcome as usize] += count;
            if series.outcome.is_error() {
                let known_after_us = self.known_after_us.entry(series.outcome).or_insert_with(new_merged);
                merge(known_after_us, &series.response_time_us);
            } else {
                self.good_after_window += if in_window { 0 } else { count };
                merge(&mut self.response_time_us, &series.response_time_us);
                merge(&mut self.response_time_less_lag_us, &series.response_time_less_lag_us);
                merge(&mut self.service_time_us, &series.service_time_us);
                self.bodies += series.bodies;
                self.body_bytes += series.body_bytes;
            }
        }
    }

    fn is_as_fast_as(&mut self, us: u64) {
        self.fastest_us = Some(self.fastest_us.map_or(us, |known| known.min(us)));
    }

    /// Adds another label's.
    pub(super) fn add_label(&mut self, other: &LabelTotals) {
        self.unconnected += other.unconnected;
        if let Some(us) = other.fastest_us {
            self.is_as_fast_as(us);
        }
        for (count, more) in self.measured.iter_mut().zip(other.measured) {
            *count += more;
        }
        self.dropped += other.dropped;
        self.ended += other.ended;
        self.good_in_window += other.good_in_window;
        self.good_after_window += other.good_after_window;
        merge_merged(&mut self.response_time_us, &other.response_time_us);
        merge_merged(&mut self.response_time_less_lag_us, &other.response_time_less_lag_us);
        merge_merged(&mut self.service_time_us, &other.service_time_us);
        self.bodies += other.bodies;
        self.body_bytes += other.body_bytes;
        self.parts.add_times(&other.parts);
        for (outcome, times) in &other.known_after_us {
            merge_merged(self.known_after_us.entry(*outcome).or_insert_with(new_merged), times);
        }
    }

    pub(super) fn errors_by_kind(&self) -> BTreeMap<String, u64> {
        let kinds = Outcome::ALL.iter().filter(|kind| kind.is_error());
        let counts = kinds.map(|&kind| (kind.name().to_owned(), self.measured[kind as usize]));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Where the time of the good answers went; none of none.
    pub(super) fn parts(&self) -> Option<Parts> {
        let all = self.response_time_us.len();
        if all == 0 {
            return None;
        }
        let sum = |times: &Merged| if times.is_empty() { 0.0 } else { times.mean() * times.len() as f64 };
        let PartTimes { connect_us, handshake_us, transfer_us, .. } = &self.parts;
        let part = |sum_us: f64, times: &Merged| Part {
            mean_us: sum_us / all as f64,
            count: times.len(),
            times_us: Some(latency(times)),
        };
        let (service, transfer) = (sum(&self.service_time_us), sum(transfer_us));
        let made = sum(connect_us) + sum(handshake_us);
        let wait = (sum(&self.response_time_us) - service - made).max(0.0);
        Some(Parts {
            wait: Part { mean_us: wait / all as f64, count: all, times_us: None },
            connect: part(sum(connect_us), connect_us),
            handshake: part(sum(handshake_us), handshake_us),
            first_byte: part((service - transfer).max(0.0), &self.parts.first_bytes(&self.service_time_us)),
            transfer: part(transfer, transfer_us),
        })
    }

    pub(super) fn good(&self) -> Good {
        Good {
            requests: self.measured[Outcome::Ok as usize],
            response_time_us: latency(&self.response_time_us),
            service_time_us: latency(&self.service_time_us),
            body_bytes_mean: (self.bodies > 0).then(|| ratio(self.body_bytes as f64, self.bodies as f64)),
        }
    }

    /// Everything without a good answer by kind, the most frequent first.
    pub(super) fn failures(&self) -> Vec<Failure> {
        let due = self.due() as f64;
        let failure = |kind: &str, count: u64, known_after_us: Latency| Failure {
            kind: kind.to_owned(),
            count,
            share: ratio(count as f64, due),
            known_after_us,
        };
        let errors = self.known_after_us.iter().map(|(outcome, times)| {
            failure(outcome.name(), self.measured[*outcome as usize], latency(times))
        });
        let dropped = (self.dropped > 0).then(|| failure(DROPPED, self.dropped, Latency::default()));
        let mut all: Vec<Failure> = errors.chain(dropped).collect();
        all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        all
    }
}
