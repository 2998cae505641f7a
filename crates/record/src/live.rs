//! What a run looks like right now, for a progress line or a view on the screen.

use std::collections::VecDeque;

use hdrhistogram::serialization::V2Serializer;
use serde::Serialize;

use crate::Distribution;
use crate::histogram::{Encoded, Merged, merge_merged, new_merged};
use crate::interval::{Outcome, SECOND_US};
use crate::merge::MergedInterval;

/// Response times are counted in so many classes, see [`Live::spread`].
pub const SPREAD_CLASSES: usize = 32;

/// How many seconds before something that is [marked](LiveTracker::mark) have their distributions kept.
const KEPT_S: usize = 30;
/// Most marks.
const MARKS_MAX: usize = 1_000;

/// The last whole second of a run, and what it came to so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Live {
    /// End of the second, seconds since the run began.
    pub at_s: f64,
    /// Whether it lay within the measured window.
    pub in_window: bool,
    /// Requests that became due, per second.
    pub offered_per_s: f64,
    /// Good answers, per second.
    pub achieved_per_s: f64,
    /// Requests that failed, per second; what was dropped is not among them.
    pub errors_per_s: f64,
    /// Arrivals given up, per second.
    pub dropped_per_s: f64,
    /// Median response time of all requests that ended or were dropped in it; none where it was [not
    /// reached](Distribution), as the others.
    pub p50_us: Option<u64>,
    /// 90th percentile of the same; none, as the two below, of [so few](Distribution::supports) that it would be the longest
    /// under another name.
    pub p90_us: Option<u64>,
    /// 99th percentile of the same.
    pub p99_us: Option<u64>,
    /// 99.9th percentile of the same.
    pub p999_us: Option<u64>,
    /// Longest of the same.
    pub max_us: Option<u64>,
    /// How the response times of the good answers spread: class `i` counts those from 2^i microseconds (class 0: from 0)
    /// to below 2^(i+1). What failed is slower than every class, see `errors_per_s` and `dropped_per_s`.
    #[serde(skip)]
    pub spread: [u64; SPREAD_CLASSES],
    /// Requests under way at its end.
    pub in_flight: u64,
    /// Arrivals that wait for a connection at its end.
    pub waiting: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Requests that ended since the run began.
    pub requests: u64,
    /// Requests that failed since the run began.
    pub errors: u64,
    /// Arrivals given up since the run began.
    pub dropped: u64,
    /// Requests that ended since the run began, by [`Outcome`].
    #[serde(skip)]
    pub by_outcome: [u64; Outcome::ALL.len()],
}

impl Live {
    /// The name and the time of what says how slow the slowest are: the 99th percentile, or of so few that there is none the
    /// longest; none where it was not reached.
    pub fn tail_us(&self) -> (&'static str, Option<u64>) {
        match (self.p99_us, self.max_us) {
            (None, Some(max_us)) => ("max", Some(max_us)),
            (p99_us, _) => ("p99", p99_us),
        }
    }
}

/// A whole second of the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Second {
    /// Its beginning, microseconds since the run began.
    pub start_us: u64,
    /// Good answers in it.
    pub achieved_per_s: f64,
    /// Median response time of all requests that ended or were dropped in it; none where it was not reached.
    pub p50_us: Option<u64>,
    /// 99th percentile of the same, however few they were: it is for whoever compares seconds, not to be shown.
    pub p99_us: Option<u64>,
    /// Requests that failed in it.
    pub errors: u64,
    /// Arrivals given up in it.
    pub dropped: u64,
    /// Requests under way, and arrivals that waited, at its end.
    pub backlog: u64,
}

/// How a whole second of the measured window was distributed.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Its beginning.
    pub(crate) start_us: u64,
    /// Of the good answers.
    pub(crate) response_time_us: Encoded,
    /// What failed or was dropped in it.
    pub(crate) failed: u64,
}

/// Gathers the intervals of a second until it is over.
#[derive(Debug)]
pub(crate) struct LiveTracker {
    last: Live,
    seconds: Vec<Second>,
    /// The last seconds, and those shortly before something that was marked.
    recent: VecDeque<Kept>,
    kept: Vec<Kept>,
    marks: Vec<u64>,
    second: Option<Gathered>,
    requests: u64,
    errors: u64,
    dropped: u64,
    by_outcome: [u64; Outcome::ALL.len()],
}

#[derive(Debug)]
struct Gathered {
    second: u64,
    length_us: u64,
    response_time_us: Merged,
    spread: [u64; SPREAD_CLASSES],
    requests: u64,
    errors: u64,
    offered: u64,
    dropped: u64,
    /// Whether all of it lay within the measured window.
    measured: bool,
    end: Live,
}

impl LiveTracker {
    pub(crate) fn new() -> LiveTracker {
        LiveTracker {
            last: Live::default(),
            seconds: Vec::new(),
            recent: VecDeque::new(),
            kept: Vec::new(),
            marks: Vec::new(),
            second: None,
            requests: 0,
            errors: 0,
            dropped: 0,
            by_outcome: Default::default(),
        }
    }

    /// The last whole second.
    pub(crate) fn last(&self) -> Live {
        self.last.clone()
    }

    /// Every whole second of the measured window so far.
    pub(crate) fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// Keeps the distributions of the seconds before a moment, which is the last or soon over.
    pub(crate) fn mark(&mut self, at_us: u64) {
        if self.marks.len() < MARKS_MAX {
            self.marks.push(at_us);
        }
    }

    /// The distributions that are kept, in order of time.
    pub(crate) fn kept(&self) -> Vec<&Kept> {
        self.kept.iter().chain(&self.recent).collect()
    }

    fn keep(&mut self, second: Kept) {
        self.recent.push_back(second);
        if self.recent.len() <= KEPT_S {
            return;
        }
        let oldest = self.recent.pop_front();
        let is_wanted = |second: &Kept| {
            let until_us = second.start_us + KEPT_S as u64 * SECOND_US;
            self.marks.iter().any(|at_us| (second.start_us..=until_us).contains(at_us))
        };
        let wanted = oldest.filter(is_wanted);
        self.kept.extend(wanted);
    }

    /// Adds a merged interval; they come in order of time, but for stragglers. Returns whether a second is over with it.
    pub(crate) fn add(&mut self, interval: &MergedInterval) -> bool {
        let MergedInterval { start_us, end_us, .. } = *interval;
        let second = start_us / SECOND_US;
        for ((_, outcome, _), times) in &interval.series {
            self.by_outcome[*outcome as usize] += times.response_time_us.len();
        }
        if end_us as f64 / 1e6 <= self.last.at_s {
            // A straggler of a second that was shown already counts in the sums alone.
            let ended = |failed: bool| {
                let of =
                    interval.series.iter().filter(move |((_, outcome, _), _)| !failed || outcome.is_error());
                of.map(|(_, times)| times.response_time_us.len()).sum::<u64>()
            };
            self.requests += ended(false);
            self.errors += ended(true);
            self.dropped += interval.dropped;
            return false;
        }
        let before_s = self.last.at_s;
        if self.second.as_ref().is_some_and(|gathered| gathered.second != second) {
            self.close();
        }
        let gathered = self.second.get_or_insert_with(|| Gathered {
            second,
            length_us: 0,
            response_time_us: new_merged(),
            spread: [0; SPREAD_CLASSES],
            requests: 0,
            errors: 0,
            offered: 0,
            dropped: 0,
            measured: true,
            end: Live::default(),
        });
        gathered.measured &= interval.in_window;
        for ((_, outcome, _), times) in &interval.series {
            let response_time_us = &times.response_time_us;
            gathered.requests += response_time_us.len();
            if outcome.is_error() {
                gathered.errors += response_time_us.len();
            } else {
                spread(&mut gathered.spread, response_time_us);
                merge_merged(&mut gathered.response_time_us, response_time_us);
            }
        }
        gathered.length_us += end_us - start_us;
        gathered.offered += interval.offered;
        gathered.dropped += interval.dropped;
        gathered.end = Live {
            at_s: end_us as f64 / 1e6,
            in_window: interval.in_window,
            in_flight: interval.in_flight,
            waiting: interval.waiting,
            connections: interval.connections,
            ..Live::default()
        };
        if end_us.is_multiple_of(SECOND_US) {
            self.close();
        }
        self.last.at_s > before_s
    }

    fn close(&mut self) {
        let Some(second) = self.second.take() else { return };
        self.requests += second.requests;
        self.errors += second.errors;
        self.dropped += second.dropped;
        let per_s = |count: u64| count as f64 * 1e6 / second.length_us.max(1) as f64;
        let times = Distribution::new(&second.response_time_us, second.errors + second.dropped);
        let shown = |share| times.quantile(share).filter(|_| times.supports(share));
        self.last = Live {
            offered_per_s: per_s(second.offered),
            achieved_per_s: per_s(second.requests - second.errors),
            errors_per_s: per_s(second.errors),
            dropped_per_s: per_s(second.dropped),
            p50_us: times.quantile(0.5),
            p90_us: shown(0.9),
            p99_us: shown(0.99),
            p999_us: shown(0.999),
            max_us: times.max(),
            spread: second.spread,
            requests: self.requests,
            errors: self.errors,
            dropped: self.dropped,
            by_outcome: self.by_outcome,
            ..second.end
        };
        if second.measured && second.length_us == SECOND_US {
            let Live { achieved_per_s, p50_us, in_flight, waiting, .. } = self.last;
            let p99_us = times.quantile(0.99);
            let start_us = second.second * SECOND_US;
            let response_time_us = Encoded::of(&second.response_time_us, &mut V2Serializer::new());
            self.keep(Kept { start_us, response_time_us, failed: second.errors + second.dropped });
            self.seconds.push(Second {
                start_us,
                achieved_per_s,
                p50_us,
                p99_us,
                errors: second.errors,
                dropped: second.dropped,
                backlog: in_flight + waiting,
            });
        }
    }
}

/// Adds a histogram to the classes of [`Live::spread`].
fn spread(classes: &mut [u64; SPREAD_CLASSES], times_us: &Merged) {
    for value in times_us.iter_recorded() {
        let class = value.value_iterated_to().max(1).ilog2() as usize;
        classes[class.min(SPREAD_CLASSES - 1)] += value.count_at_value();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a tracker makes of a second with so many requests.
    fn second_of(count: u64) -> (Live, Second) {
        let mut response_time_us = new_merged();
        (1..=count).for_each(|us| response_time_us.record(us).unwrap());
        let mut tracker = LiveTracker::new();
        tracker.second = Some(Gathered {
            second: 0,
            length_us: SECOND_US,
            response_time_us,
            spread: [0; SPREAD_CLASSES],
            requests: count,
            errors: 0,
            offered: count,
            dropped: 0,
            measured: true,
            end: Live::default(),
        });
        tracker.close();
        (tracker.last(), tracker.seconds()[0])
    }

    #[test]
    fn few_requests_have_no_high_percentile() {
        for (count, has) in [(9, [false; 3]), (99, [true, false, false]), (999, [true, true, false])] {
            let (live, second) = second_of(count);
            assert_eq!([live.p90_us, live.p99_us, live.p999_us].map(|us| us.is_some()), has, "{count}");
            assert_eq!((live.max_us, second.p99_us.is_some()), (Some(count), true));
        }
        let (live, _) = second_of(1_000);
        assert_eq!((live.p999_us, live.tail_us()), (Some(999), ("p99", Some(990))));
        assert_eq!(second_of(50).0.tail_us(), ("max", Some(50)));
        assert_eq!(Live::default().tail_us(), ("p99", None));
    }

    #[test]
    fn classes_double() {
        let mut times_us = new_merged();
        for (us, count) in [(0, 1), (1, 1), (2, 2), (3, 2), (1_000, 5), (1_030, 7), (1 << 33, 9)] {
            times_us.record_n(us, count).unwrap();
        }
        let mut classes = [0; SPREAD_CLASSES];
        spread(&mut classes, &times_us);
        assert_eq!((classes[0], classes[1], classes[9], classes[10], classes[31]), (2, 4, 5, 7, 9));
        assert_eq!(classes.iter().sum::<u64>(), times_us.len());
    }
}
