//! The intervals of all driver threads, as one.

use std::collections::BTreeMap;

use crate::histogram::{Merged, merge, new_merged};
use crate::interval::{Outcome, ThreadInterval};
use crate::{Counters, OwnValues, PartTimes};

/// Intervals that may wait for slower threads. A thread that reports later still gets rows of its own.
pub(crate) const PENDING_MAX: usize = 8;

/// The label, how the requests ended, and when they were due.
pub type SeriesKey = (u16, Outcome, Due);

/// When requests were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Whether in the measured window.
    pub measured: bool,
    /// Index of the load's phase; none after all of them.
    pub phase: Option<u16>,
}

impl From<bool> for Due {
    fn from(measured: bool) -> Due {
        Due { measured, phase: None }
    }
}

/// The times of one series, all threads together; see [`Series`](crate::Series).
#[derive(Debug)]
#[allow(missing_docs)]
pub struct SeriesTimes {
    pub response_time_us: Merged,
    pub response_time_less_lag_us: Merged,
    pub service_time_us: Merged,
    pub bodies: u64,
    pub body_bytes: u64,
}

impl Default for SeriesTimes {
    fn default() -> Self {
        let [response_time_us, response_time_less_lag_us, service_time_us] = [(); 3].map(|()| new_merged());
        SeriesTimes { response_time_us, response_time_less_lag_us, service_time_us, bodies: 0, body_bytes: 0 }
    }
}

/// What all threads did in one interval: each field is what [`ThreadInterval`] calls so, added up.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct MergedInterval {
    pub start_us: u64,
    pub end_us: u64,
    pub in_window: bool,
    pub series: BTreeMap<SeriesKey, SeriesTimes>,
    pub groups: BTreeMap<SeriesKey, SeriesTimes>,
    /// By the metric's index.
    pub own: BTreeMap<u16, OwnValues>,
    /// By label, and whether they were due in the measured window.
    pub parts: BTreeMap<(u16, bool), PartTimes>,
    pub offered: u64,
    /// How many of them were due in intervals before, by a moment within each.
    pub offered_earlier: BTreeMap<u64, u64>,
    pub measured_offered: u64,
    pub dropped: u64,
    pub measured_dropped: u64,
    pub waiting: u64,
    pub in_flight: u64,
    pub connections: u64,
    pub counters: Counters,
    /// Of all requests, whenever they were due.
    pub lag_us: Option<Merged>,
    pub read_lag_us: Option<Merged>,
    pub cpu_us_by_thread: Vec<u64>,
    /// Empty once a thread could not say.
    pub waited_us_by_thread: Vec<u64>,
    pub absent_us_by_thread: Vec<u64>,
    pub(crate) reported: usize,
    waits_untold: bool,
}

impl MergedInterval {
    /// Adds what one thread did in the same interval, or several together.
    pub(crate) fn add(&mut self, interval: &ThreadInterval) {
        (self.start_us, self.end_us) = (interval.start_us, interval.end_us);
        self.in_window = interval.in_window;
        for (merged, all) in [(&mut self.series, &interval.series), (&mut self.groups, &interval.groups)] {
            for series in all {
                let due = Due { measured: series.measured, phase: series.phase };
                let key = (series.label, series.outcome, due);
                let times = merged.entry(key).or_default();
                merge(&mut times.response_time_us, &series.response_time_us);
                merge(&mut times.response_time_less_lag_us, &series.response_time_less_lag_us);
                merge(&mut times.service_time_us, &series.service_time_us);
                times.bodies += series.bodies;
                times.body_bytes += series.body_bytes;
            }
        }
        for series in &interval.own {
            self.own.entry(series.metric).or_default().add(series);
        }
        for series in &interval.parts {
            self.parts.entry((series.label, series.measured)).or_default().add(series);
        }
        self.offered += interval.offered;
        for (within_us, count) in &interval.offered_earlier {
            *self.offered_earlier.entry(*within_us).or_default() += count;
        }
        self.measured_offered += interval.measured_offered;
        self.dropped += interval.dropped;
        self.measured_dropped += interval.measured_dropped;
        self.waiting += interval.waiting;
        self.in_flight += interval.in_flight;
        self.connections += interval.connections;
        self.counters += &interval.counters;
        let lag_us = self.lag_us.get_or_insert_with(new_merged);
        merge(lag_us, &interval.lag_us);
        merge(lag_us, &interval.unmeasured_lag_us);
        merge(self.read_lag_us.get_or_insert_with(new_merged), &interval.read_lag_us);
        for share in &*interval.shares() {
            self.reported += 1;
            let thread = usize::from(share.thread);
            if self.cpu_us_by_thread.len() <= thread {
                self.cpu_us_by_thread.resize(thread + 1, 0);
                self.absent_us_by_thread.resize(thread + 1, 0);
            }
            self.cpu_us_by_thread[thread] += share.totals.cpu_us;
            self.absent_us_by_thread[thread] += share.totals.absent_us;
            self.add_waits(thread, share.totals.waited_us());
        }
    }

    fn add_waits(&mut self, thread: usize, waited_us: Option<u64>) {
        self.waits_untold |= waited_us.is_none();
        match waited_us {
            Some(waited_us) if !self.waits_untold => {
                self.waited_us_by_thread.resize(self.cpu_us_by_thread.len(), 0);
                self.waited_us_by_thread[thread] += waited_us;
            }
            _ => self.waited_us_by_thread.clear(),
        }
    }
}

/// Intervals that wait until all threads have reported them, by their bounds.
#[derive(Debug)]
pub(crate) struct Pending<K, T> {
    waiting: BTreeMap<K, T>,
    /// The last of those that all threads have reported.
    whole: Option<K>,
}

impl<K, T> Default for Pending<K, T> {
    fn default() -> Self {
        Pending { waiting: BTreeMap::new(), whole: None }
    }
}

impl<K: Copy + Ord, T> Pending<K, T> {
    /// Adds what threads did to an interval, or to a new one. `add` says whether all have reported it then.
    pub(crate) fn add(&mut self, bounds: K, new: impl FnOnce() -> T, add: impl FnOnce(&mut T) -> bool) {
        if add(self.waiting.entry(bounds).or_insert_with(new)) {
            self.whole = self.whole.max(Some(bounds));
        }
    }

    /// Takes the first interval that waits no longer: all threads have reported it or a later one, or more than so many wait. To
    /// be called after each addition until there is none.
    pub(crate) fn take_whole(&mut self, most: usize) -> Option<T> {
        match self.waiting.first_key_value() {
            Some((first, _)) if Some(*first) <= self.whole || self.waiting.len() > most => self.take_first(),
            _ => {
                self.whole = None;
                None
            }
        }
    }

    /// Takes the first interval, whole or not.
    pub(crate) fn take_first(&mut self) -> Option<T> {
        self.waiting.pop_first().map(|(_, interval)| interval)
    }

    /// Those that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }
}

/// The threads' intervals as one.
pub(crate) type Merging = Pending<(u64, u64), MergedInterval>;

impl Merging {
    /// Adds what some of so many threads did.
    pub(crate) fn add_interval(&mut self, interval: &ThreadInterval, threads: usize) {
        self.add((interval.start_us, interval.end_us), MergedInterval::default, |merged| {
            merged.add(interval);
            merged.reported >= threads
        });
    }

    /// As [`take_whole`](Pending::take_whole).
    pub(crate) fn next_whole(&mut self) -> Option<MergedInterval> {
        self.take_whole(PENDING_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pending: &mut Merging) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| pending.next_whole()).map(|of| (of.start_us, of.reported)).collect()
    }

    #[test]
    fn an_interval_is_whole_with_its_threads_or_with_a_later_one() {
        let mut pending = Merging::default();
        let add = |pending: &mut Merging, thread: u16, start_us: u64| {
            pending.add_interval(&ThreadInterval::empty(thread, start_us, start_us + 1), 2);
            taken(pending)
        };
        assert_eq!(add(&mut pending, 0, 0), []);
        assert_eq!(add(&mut pending, 1, 0), [(0, 2)]);
        assert_eq!(add(&mut pending, 0, 1), []);
        assert_eq!(add(&mut pending, 0, 2), []);
        assert_eq!(add(&mut pending, 1, 2), [(1, 1), (2, 2)]);
        // who is late waits again
        assert_eq!(add(&mut pending, 1, 1), []);
        for start_us in 3..10 {
            assert_eq!(add(&mut pending, 0, start_us), []);
        }
        assert_eq!(add(&mut pending, 0, 10), [(1, 1)], "no more than so many wait");
        assert_eq!(pending.take_first().map(|of| of.start_us), Some(3));
    }
}
