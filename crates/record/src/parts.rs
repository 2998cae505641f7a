//! Where the time of good answers went: making a connection, what is spoken on it first, the wait for the first byte, the
//! transfer.
//!
//! Most requests need no connection of their own, and most answers come in one piece: of these nothing is written down here.
//! An answer in one piece has its first byte with its last.

use serde::{Deserialize, Serialize};

use crate::histogram::{Merged, merge, merge_merged, new_merged};
use crate::{Histogram, Outcome, new_histogram};

/// What is known of good answers to requests of one label that ended within an interval, as far as a connection was made
/// for them, or they came in pieces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartSeries<H = Histogram> {
    /// Index into the plan's labels.
    pub label: u16,
    /// Whether they were due within the measured window.
    pub measured: bool,
    /// Until the socket was there, where one was made for the request, microseconds.
    pub connect_us: H,
    /// What was spoken on it before the request: TLS, a greeting; where something was, microseconds.
    pub handshake_us: H,
    /// Service times of answers that came in pieces, microseconds.
    pub pieces_service_us: H,
    /// From first byte sent to first byte received, of the same, microseconds.
    pub first_byte_us: H,
    /// From first byte received to last, of the same, microseconds.
    pub transfer_us: H,
}

impl<H> PartSeries<H> {
    /// What tells it from others of an interval.
    pub(crate) fn key(&self) -> (u16, bool) {
        (self.label, self.measured)
    }

    /// The histograms, in the order in which they are stored.
    pub fn histograms(&self) -> [&H; 5] {
        let PartSeries { connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us, .. } = self;
        [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us]
    }

    pub(crate) fn histograms_mut(&mut self) -> [&mut H; 5] {
        let PartSeries { connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us, .. } = self;
        [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us]
    }
}

impl PartSeries {
    /// Of nothing yet.
    pub fn empty(label: u16, measured: bool) -> PartSeries {
        let [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us] =
            [(); 5].map(|()| new_histogram());
        PartSeries {
            label,
            measured,
            connect_us,
            handshake_us,
            pieces_service_us,
            first_byte_us,
            transfer_us,
        }
    }

    /// Nothing any more; all room is kept.
    pub fn clear(&mut self) {
        self.histograms_mut().into_iter().for_each(Histogram::reset);
    }
}

/// The same of several threads, or intervals, together.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "as in `PartSeries`")]
pub struct PartTimes {
    pub connect_us: Merged,
    pub handshake_us: Merged,
    pub pieces_service_us: Merged,
    pub first_byte_us: Merged,
    pub transfer_us: Merged,
}

impl Default for PartTimes {
    fn default() -> Self {
        PartTimes::of([(); 5].map(|()| new_merged()))
    }
}

impl PartTimes {
    /// Of histograms in the order in which they are stored.
    pub(crate) fn of(all: [Merged; 5]) -> PartTimes {
        let [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us] = all;
        PartTimes { connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us }
    }

    /// Its histograms, in the order in which they are stored.
    pub fn histograms(&self) -> [&Merged; 5] {
        let PartTimes { connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us } = self;
        [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us]
    }

    fn histograms_mut(&mut self) -> [&mut Merged; 5] {
        let PartTimes { connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us } = self;
        [connect_us, handshake_us, pieces_service_us, first_byte_us, transfer_us]
    }

    /// Adds what one thread wrote down in one interval.
    pub fn add(&mut self, series: &PartSeries) {
        for (all, more) in self.histograms_mut().into_iter().zip(series.histograms()) {
            merge(all, more);
        }
    }

    /// Adds what was added up already.
    pub fn add_times(&mut self, other: &PartTimes) {
        for (all, more) in self.histograms_mut().into_iter().zip(other.histograms()) {
            merge_merged(all, more);
        }
    }

    /// Whether there is anything of it.
    pub fn any(&self) -> bool {
        self.histograms().iter().any(|times| !times.is_empty())
    }

    /// From first byte sent to first byte received of all good answers with these service times: those in one piece have
    /// their first byte with their last.
    pub fn first_bytes(&self, service_time_us: &Merged) -> Merged {
        let mut all = service_time_us.clone();
        // more pieces than answers is damage; then the answers stand for themselves
        if all.subtract(&self.pieces_service_us).is_ok() {
            merge_merged(&mut all, &self.first_byte_us);
        }
        all
    }
}

/// A slow request, as a thread kept it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// Index into the plan's labels.
    pub label: u16,
    /// When it was due, microseconds since the run began.
    pub due_us: u64,
    /// From due to last byte, microseconds.
    pub response_time_us: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Status of its answer; 0 where it has none.
    pub status: u16,
    /// Which driving thread.
    pub thread: u16,
    /// Which of the thread's sockets carried it.
    pub connection: u32,
    /// Until its socket was there, microseconds; none where none was made for it.
    pub connect_us: Option<u64>,
    /// What was spoken on it first, microseconds; none where nothing was.
    pub handshake_us: Option<u64>,
    /// From first byte sent to first byte received, microseconds.
    pub first_byte_us: u64,
    /// From there to the last byte, microseconds.
    pub transfer_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::series;

    #[test]
    fn the_first_byte_of_an_answer_in_one_piece_is_its_last() {
        // service times are half of these: 100 of 500 us in one piece, 10 of 5 ms of which the first byte came after 2 ms
        let of = series(0, Outcome::Ok, true, &[(1_000, 100), (10_000, 10)]);
        let mut service_time_us = new_merged();
        merge(&mut service_time_us, &of.service_time_us);
        let mut parts = PartSeries::empty(0, true);
        parts.pieces_service_us.record_n(5_000, 10);
        parts.first_byte_us.record_n(2_000, 10);
        parts.transfer_us.record_n(3_000, 10);
        let mut all = PartTimes::default();
        assert!(!all.any());
        all.add(&parts);
        let mut twice = PartTimes::default();
        twice.add_times(&all);
        assert!(twice.any());
        let first = twice.first_bytes(&service_time_us);
        assert_eq!((first.len(), first.count_at(500), first.count_at(2_000)), (110, 100, 10));
        assert_eq!(first.max(), 2_000);
        parts.clear();
        assert!(parts.histograms().iter().all(|times| times.is_empty()));
        // what cannot be taken away is left there
        twice.add_times(&all);
        assert_eq!(twice.first_bytes(&service_time_us).len(), 110);
    }
}
