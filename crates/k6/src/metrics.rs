//! What a script measures: k6's own metrics and the script's, the parts of them that thresholds ask for, and checks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

use crate::thresholds::Aggregate;

/// Values of a trend that are kept as they are; beyond, they are counted to three digits.
const EXACT_MAX: usize = 16_384;
/// Most different checks, and most metrics of a script.
const NAMES_MAX: usize = 2_000;

tidemark_record::named! {
    /// What a metric does with its values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind {
        /// Adds them up.
        Counter = "counter",
        /// Keeps the last.
        Gauge = "gauge",
        /// The share of those that are not 0.
        Rate = "rate",
        /// Their distribution.
        Trend = "trend",
    }
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub name: String,
    pub kind: Kind,
    /// Whether its values are milliseconds.
    pub is_time: bool,
}

/// k6's own metrics, which every script has: name, kind, and whether its values are milliseconds.
const BUILT_IN: [(&str, Kind, bool); 28] = [
    ("http_reqs", Kind::Counter, false),
    ("http_req_duration", Kind::Trend, true),
    ("http_req_waiting", Kind::Trend, true),
    ("http_req_failed", Kind::Rate, false),
    ("iterations", Kind::Counter, false),
    ("iteration_duration", Kind::Trend, true),
    ("checks", Kind::Rate, false),
    ("dropped_iterations", Kind::Counter, false),
    ("data_received", Kind::Counter, false),
    ("data_sent", Kind::Counter, false),
    ("group_duration", Kind::Trend, true),
    ("http_req_blocked", Kind::Trend, true),
    ("http_req_connecting", Kind::Trend, true),
    ("http_req_tls_handshaking", Kind::Trend, true),
    ("http_req_receiving", Kind::Trend, true),
    ("http_req_sending", Kind::Trend, true),
    ("vus", Kind::Gauge, false),
    ("vus_max", Kind::Gauge, false),
    ("ws_sessions", Kind::Counter, false),
    ("ws_connecting", Kind::Trend, true),
    ("ws_session_duration", Kind::Trend, true),
    ("ws_msgs_sent", Kind::Counter, false),
    ("ws_msgs_received", Kind::Counter, false),
    ("ws_ping", Kind::Trend, true),
    ("grpc_req_duration", Kind::Trend, true),
    ("grpc_streams", Kind::Counter, false),
    ("grpc_streams_msgs_sent", Kind::Counter, false),
    ("grpc_streams_msgs_received", Kind::Counter, false),
];
pub(crate) const HTTP_REQS: usize = 0;
pub(crate) const HTTP_REQ_DURATION: usize = 1;
pub(crate) const HTTP_REQ_WAITING: usize = 2;
pub(crate) const HTTP_REQ_FAILED: usize = 3;
pub(crate) const ITERATIONS: usize = 4;
pub(crate) const ITERATION_DURATION: usize = 5;
pub(crate) const CHECKS: usize = 6;
pub(crate) const DROPPED_ITERATIONS: usize = 7;
pub(crate) const DATA_RECEIVED: usize = 8;
pub(crate) const DATA_SENT: usize = 9;
pub(crate) const GROUP_DURATION: usize = 10;
pub(crate) const HTTP_REQ_BLOCKED: usize = 11;
pub(crate) const HTTP_REQ_CONNECTING: usize = 12;
pub(crate) const HTTP_REQ_TLS_HANDSHAKING: usize = 13;
pub(crate) const HTTP_REQ_RECEIVING: usize = 14;
/// It is not measured apart: it is part of waiting, and has no values.
pub(crate) const HTTP_REQ_SENDING: usize = 15;
pub(crate) const VUS: usize = 16;
pub(crate) const VUS_MAX: usize = 17;
pub(crate) const WS_SESSIONS: usize = 18;
pub(crate) const WS_CONNECTING: usize = 19;
pub(crate) const WS_SESSION_DURATION: usize = 20;
pub(crate) const WS_MSGS_SENT: usize = 21;
pub(crate) const WS_MSGS_RECEIVED: usize = 22;
pub(crate) const WS_PING: usize = 23;
pub(crate) const GRPC_REQ_DURATION: usize = 24;
pub(crate) const GRPC_STREAMS: usize = 25;
pub(crate) const GRPC_STREAMS_MSGS_SENT: usize = 26;
pub(crate) const GRPC_STREAMS_MSGS_RECEIVED: usize = 27;
/// What follows are the script's own.
pub(crate) const FIRST_OWN: usize = BUILT_IN.len();

/// The metrics that a script has, by their numbers.
#[derive(Debug)]
pub(crate) struct Definitions {
    all: Mutex<Vec<Definition>>,
}

impl Definitions {
    pub fn new() -> Definitions {
        let define = |(name, kind, is_time): &(&str, Kind, bool)| Definition {
            name: (*name).to_owned(),
            kind: *kind,
            is_time: *is_time,
        };
        Definitions { all: Mutex::new(BUILT_IN.iter().map(define).collect()) }
    }

    /// The number of a metric, which becomes known.
    ///
    /// # Errors
    /// If it is known as something else, has no valid name, or there are too many.
    pub fn number(&self, of: &Definition) -> Result<usize, String> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|known| known.name == of.name) {
            let is_same = all[at].kind == of.kind && (all[at].is_time == of.is_time || at < BUILT_IN.len());
            return if is_same {
                Ok(at)
            } else {
                Err(format!("metric '{}' already exists but with type {}", of.name, all[at].kind.name()))
            };
        }
        let first = of.name.chars().next();
        let is_named = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && of.name.len() <= 128
            && of.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_named {
            return Err(format!(
                "Invalid metric name: '{}': up to 128 letters, digits and underscores",
                of.name
            ));
        }
        if all.len() >= NAMES_MAX {
            return Err(format!("more than {NAMES_MAX} metrics"));
        }
        all.push(of.clone());
        Ok(all.len() - 1)
    }

    /// What a metric of this number does.
    pub fn kind(&self, number: usize) -> Option<Kind> {
        if let Some((_, kind, _)) = BUILT_IN.get(number) {
            return Some(*kind);
        }
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(number).map(|of| of.kind)
    }

    /// All of them.
    pub fn list(&self) -> Vec<Definition> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The values of a metric.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Counter(f64),
    Gauge { last: f64, least: f64, most: f64, is_set: bool },
    Rate { good: u64, all: u64 },
    Trend(Box<Trend>),
}

impl Values {
    pub fn new(kind: Kind) -> Values {
        match kind {
            Kind::Counter => Values::Counter(0.0),
            Kind::Gauge => Values::Gauge { last: 0.0, least: 0.0, most: 0.0, is_set: false },
            Kind::Rate => Values::Rate { good: 0, all: 0 },
            Kind::Trend => Values::Trend(Box::default()),
        }
    }

    pub fn add(&mut self, value: f64) {
        match self {
            Values::Counter(sum) => *sum += value,
            Values::Gauge { last, least, most, is_set } => {
                *least = if *is_set { least.min(value) } else { value };
                *most = if *is_set { most.max(value) } else { value };
                (*last, *is_set) = (value, true);
            }
            Values::Rate { good, all } => {
                *all += 1;
                *good += u64::from(value != 0.0);
            }
            Values::Trend(trend) => trend.add(value),
        }
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Values) {
        match (self, other) {
            (Values::Counter(sum), Values::Counter(more)) => *sum += more,
            (
                Values::Gauge { last, least, most, is_set },
                Values::Gauge { last: l, least: a, most: b, is_set: true },
            ) => {
                *least = if *is_set { least.min(*a) } else { *a };
                *most = if *is_set { most.max(*b) } else { *b };
                (*last, *is_set) = (*l, true);
            }
            (Values::Rate { good, all }, Values::Rate { good: g, all: a }) => {
                *good += g;
                *all += a;
            }
            (Values::Trend(trend), Values::Trend(more)) => trend.merge(more),
            _ => {}
        }
    }

    /// A figure of them, in a run of so many seconds. None where the metric has no such figure.
    pub fn figure(&self, of: Aggregate, seconds: f64) -> Option<f64> {
        match (self, of) {
            (Values::Counter(sum), Aggregate::Count) => Some(*sum),
            (Values::Counter(sum), Aggregate::Rate) => Some(if seconds > 0.0 { sum / seconds } else { 0.0 }),
            (Values::Gauge { last, .. }, Aggregate::Value) => Some(*last),
            (Values::Gauge { least, .. }, Aggregate::Min) => Some(*least),
            (Values::Gauge { most, .. }, Aggregate::Max) => Some(*most),
            (Values::Rate { good, all }, Aggregate::Rate) => {
                Some(if *all > 0 { *good as f64 / *all as f64 } else { 0.0 })
            }
            (Values::Trend(trend), of) => trend.figure(of),
            _ => None,
        }
    }
}

/// A distribution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trend {
    pub count: u64,
    sum: f64,
    least: f64,
    most: f64,
    exact: Vec<f64>,
    /// Thousandths, where there are too many to keep: those of values from 0 on, and those below it by their amount.
    counted: Option<Box<[Histogram<u64>; 2]>>,
}

impl Trend {
    fn add(&mut self, value: f64) {
        self.note(value);
        if self.counted.is_none() {
            if self.exact.len() < EXACT_MAX {
                self.exact.push(value);
                return;
            }
            self.spill();
        }
        self.count_in(value);
    }

    fn note(&mut self, value: f64) {
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = if self.count == 0 { value } else { self.most.max(value) };
        self.sum += value;
        self.count += 1;
    }

    fn spill(&mut self) {
        let new = || Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are allowed"));
        self.counted = Some(Box::new([new(), new()]));
        for value in std::mem::take(&mut self.exact) {
            self.count_in(value);
        }
    }

    fn count_in(&mut self, value: f64) {
        let Some(counted) = &mut self.counted else { return };
        let thousandths = (value.abs() * 1_000.0).round().min(1e15) as u64;
        // it grows by itself
        let _ = counted[usize::from(value < 0.0)].record(thousandths);
    }

    fn merge(&mut self, other: &Trend) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = if self.count == 0 { other.most } else { self.most.max(other.most) };
        self.sum += other.sum;
        self.count += other.count;
        let fits = self.exact.len() + other.exact.len() <= 64 * EXACT_MAX;
        if self.counted.is_none() && other.counted.is_none() && fits {
            self.exact.extend(&other.exact);
            return;
        }
        if self.counted.is_none() {
            self.spill();
        }
        other.exact.iter().for_each(|value| self.count_in(*value));
        if let (Some(ours), Some(theirs)) = (&mut self.counted, &other.counted) {
            for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                // both grow by themselves
                let _ = ours.add(theirs);
            }
        }
    }

    fn figure(&self, of: Aggregate) -> Option<f64> {
        if self.count == 0 && !matches!(of, Aggregate::Value | Aggregate::Rate) {
            return Some(0.0);
        }
        match of {
            Aggregate::Count => Some(self.count as f64),
            Aggregate::Avg => Some(self.sum / self.count as f64),
            Aggregate::Min => Some(self.least),
            Aggregate::Max => Some(self.most),
            Aggregate::Percentile(hundredths) => Some(self.percentile(f64::from(hundredths) / 10_000.0)),
            Aggregate::Value | Aggregate::Rate => None,
        }
    }

    /// As k6 has it: between two values by distance.
    fn percentile(&self, share: f64) -> f64 {
        let Some(counted) = &self.counted else {
            let mut sorted = self.exact.clone();
            sorted.sort_by(f64::total_cmp);
            let place = share * (sorted.len() as f64 - 1.0);
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            return below + (above - below) * place.fract();
        };
        let [positive, negative] = &**counted;
        let place = (share * (self.count as f64 - 1.0)).round() as u64;
        if place < negative.len() {
            let share = 1.0 - (place as f64 + 0.5) / negative.len() as f64;
            return -(negative.value_at_quantile(share) as f64) / 1_000.0;
        }
        let share = (place - negative.len()) as f64 + 0.5;
        positive.value_at_quantile(share / positive.len().max(1) as f64) as f64 / 1_000.0
    }
}

/// Tags of a value.
pub(crate) type Tags<'a> = &'a [(&'a str, &'a str)];
/// Tags that a value must have.
pub(crate) type WantedTags = Vec<(String, String)>;

/// A part of a metric: the values that have these tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub metric: usize,
    /// The metric with its tags, as the script writes it: `http_reqs{name:a}`.
    pub written: String,
    pub tags: WantedTags,
}

/// How often a check held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// That it held.
    pub passes: u64,
    /// That it did not.
    pub fails: u64,
}

/// Everything that was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    /// By a metric's number; not there where no value came.
    pub metrics: Vec<Option<Values>>,
    /// As the list of parts.
    pub parts: Vec<Option<Values>>,
    /// By group, then by name.
    checks: BTreeMap<String, BTreeMap<String, CheckCounts>>,
    /// Groups and names, in the order in which they came.
    check_order: Vec<(String, String)>,
    /// Checks that found no place.
    pub checks_lost: u64,
}

impl Measured {
    /// All checks, in the order in which they came.
    pub fn checks(&self) -> impl Iterator<Item = (&str, &str, CheckCounts)> {
        self.check_order.iter().filter_map(|(group, name)| {
            Some((group.as_str(), name.as_str(), *self.checks.get(group)?.get(name)?))
        })
    }

    /// Adds to how often a check held. False: there are too many checks for one more.
    fn add_check(&mut self, group: &str, name: &str, more: CheckCounts) -> bool {
        let known = self.checks.get_mut(group).and_then(|of| of.get_mut(name));
        let counts = match known {
            Some(counts) => counts,
            None if self.check_order.len() >= NAMES_MAX => return false,
            None => {
                self.check_order.push((group.to_owned(), name.to_owned()));
                self.checks.entry(group.to_owned()).or_default().entry(name.to_owned()).or_default()
            }
        };
        counts.passes += more.passes;
        counts.fails += more.fails;
        true
    }

    /// A metric has this one value.
    pub fn set(&mut self, metric: usize, kind: Kind, value: f64) {
        if self.metrics.len() <= metric {
            self.metrics.resize(metric + 1, None);
        }
        let mut values = Values::new(kind);
        values.add(value);
        self.metrics[metric] = Some(values);
    }
}

/// What one thread's users measure.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    measured: Mutex<Measured>,
}

impl Metrics {
    /// Adds values of metrics; `has` says whether they have a tag.
    pub fn add(&self, values: &[(usize, Kind, f64)], parts: &[Part], has: impl Fn(&str, &str) -> bool) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        for (metric, kind, value) in values {
            put(&mut measured.metrics, *metric, *kind, *value);
            for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.metric == *metric) {
                if part.tags.iter().all(|(name, value)| has(name, value)) {
                    put(&mut measured.parts, at, *kind, *value);
                }
            }
        }
    }

    /// A check held, or did not.
    pub fn check(&self, group: &str, name: &str, is_good: bool) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let more = CheckCounts { passes: is_good.into(), fails: (!is_good).into() };
        if !measured.add_check(group, name, more) {
            measured.checks_lost += 1;
        }
    }

    /// Adds everything to what other threads measured.
    pub fn add_to(&self, sum: &mut Measured) {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = [(&mut sum.metrics, &measured.metrics), (&mut sum.parts, &measured.parts)];
        for (into, from) in lists {
            into.resize(into.len().max(from.len()), None);
            for (into, from) in into.iter_mut().zip(from) {
                match (into, from) {
                    (Some(into), Some(from)) => into.merge(from),
                    (into @ None, from) => into.clone_from(from),
                    _ => {}
                }
            }
        }
        for (group, name, counts) in measured.checks() {
            if !sum.add_check(group, name, counts) {
                sum.checks_lost += 1;
            }
        }
        sum.checks_lost += measured.checks_lost;
    }
}

fn put(list: &mut Vec<Option<Values>>, at: usize, kind: Kind, value: f64) {
    if list.len() <= at {
        list.resize(at + 1, None);
    }
    list[at].get_or_insert_with(|| Values::new(kind)).add(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_values_as_in_k6() {
        let mut values = Values::new(Kind::Trend);
        [40.0, 10.0, 30.0, 20.0].into_iter().for_each(|value| values.add(value));
        let figure = |of| values.figure(of, 1.0).unwrap();
        assert_eq!(figure(Aggregate::Percentile(5_000)), 25.0);
        assert_eq!(figure(Aggregate::Percentile(9_500)), 38.5);
        assert_eq!(
            (figure(Aggregate::Avg), figure(Aggregate::Min), figure(Aggregate::Max)),
            (25.0, 10.0, 40.0)
        );
    }

    #[test]
    fn many_values_are_counted_to_three_digits() {
        let mut trend = Trend::default();
        (0..40_000_u32).for_each(|value| trend.add(f64::from(value) - 10_000.0));
        assert!(trend.counted.is_some() && trend.exact.is_empty());
        for (share, right) in [(0.01, -9_600.0), (0.5, 10_000.0), (0.9, 26_000.0)] {
            let found = trend.percentile(share);
            assert!((found - right).abs() < 0.002 * f64::abs(right) + 2.0, "{share}: {found}");
        }
        let mut other = Trend::default();
        other.add(1e6);
        other.merge(&trend);
        assert_eq!((other.count, other.most), (40_001, 1e6));
    }
}
