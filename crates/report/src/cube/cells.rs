//! The cells of a cube while it is filled.

use std::collections::BTreeMap;

use super::dimension::{DRIVER, Dimension, Filter, Value, lets};
use super::measure::{Measured, Precision, measure};
use super::{CubeError, Query};

const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
/// Most steps of time that filters are asked about: ten years of minutes, or two months of seconds.
const STEPS_MAX: i64 = 6_000_000;
/// Longest run, microseconds: a hundred years, so that sums of times stay within their type.
const LENGTH_MAX_US: i64 = 100 * 365 * 24 * 60 * MINUTE_US;

/// Operations of one cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    /// Durations of good operations in microseconds, and how often each; in order once [tidied](Cell::tidy).
    good: Vec<(u64, u64)>,
    /// How long the others took until they failed.
    failed: Vec<(u64, u64)>,
    precision: Precision,
}

impl Cell {
    pub(super) fn new(good: Vec<(u64, u64)>, failed: Vec<(u64, u64)>, precision: Precision) -> Cell {
        Cell { good, failed, precision }
    }

    fn add(&mut self, other: Cell) {
        self.good.extend(other.good);
        self.failed.extend(other.failed);
        self.precision = self.precision.min(other.precision);
    }

    /// In order, each duration once.
    fn tidy(&mut self) {
        for durations in [&mut self.good, &mut self.failed] {
            durations.sort_unstable_by_key(|(us, _)| *us);
            durations.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
        }
    }

    /// What is measured of it. Failed operations are slower than every bound, or count with the time until they failed.
    pub(super) fn measured(mut self, seconds: f64, failed: Failed) -> Measured {
        let errors = self.failed.iter().map(|(_, times)| times).sum();
        if failed == Failed::AsTimed {
            self.good.append(&mut self.failed);
        }
        self.tidy();
        let beyond = if failed == Failed::AsTimed { 0 } else { errors };
        measure(&self.good, beyond, errors, seconds, self.precision)
    }
}

/// What failed operations count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Slower than every bound.
    Beyond,
    /// The time until they failed.
    AsTimed,
}

/// Durations in ascending order with how often there is each, of those in any order.
pub(super) fn counted(mut us: Vec<u64>) -> Vec<(u64, u64)> {
    us.sort_unstable();
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for us in us {
        match counted.last_mut() {
            Some((last, times)) if *last == us => *times += 1,
            _ => counted.push((us, 1)),
        }
    }
    counted
}

/// All cells, and the time of each input.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) cells: BTreeMap<Vec<Value>, Cell>,
    /// By the name of the input, one for each of its runs, and whether its system told of operations.
    pub(super) spans: Vec<(String, bool, Span)>,
}

impl Counts {
    pub(super) fn add(&mut self, values: Vec<Value>, cell: Cell) {
        self.cells.entry(values).or_default().add(cell);
    }

    /// How many seconds a cell covers: of what the driver did not see, only those of whoever told of operations.
    pub(super) fn seconds(&self, query: &Query, values: &[Value]) -> f64 {
        let by = &query.by;
        let source = by.iter().zip(values).find(|(of, _)| **of == Dimension::Source);
        let has_driver = match source {
            Some((_, Value::Text(source))) => source == DRIVER,
            _ => lets(&query.filters, &[(Dimension::Source, DRIVER)]),
        };
        let of_run = |name: &str| match by.iter().zip(values).find(|(of, _)| **of == Dimension::Run) {
            Some((_, Value::Text(run))) => run == name,
            _ => true,
        };
        let times: Vec<(Dimension, &Value)> =
            by.iter().copied().zip(values).filter(|(of, _)| of.is_time()).collect();
        let counts = |(name, tells, _): &&(String, bool, Span)| of_run(name) && (*tells || has_driver);
        self.spans.iter().filter(counts).map(|(_, _, span)| span.seconds(&times)).sum()
    }
}

/// Adds the sums: over the last dimension, over the last two, over all.
pub(super) fn roll_up(cells: &mut BTreeMap<Vec<Value>, Cell>, dimensions: usize) {
    let mut sums: BTreeMap<Vec<Value>, Cell> = BTreeMap::new();
    for (values, cell) in cells.iter_mut() {
        // what is in order already is merged as that
        cell.tidy();
        for kept in 0..dimensions {
            let mut of_sum = values.clone();
            of_sum[kept..].fill(Value::All);
            sums.entry(of_sum).or_default().add(cell.clone());
        }
    }
    cells.extend(sums);
}

/// A step of time: all that is asked about it is the same for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Step {
    /// Of the finest dimension since the begin.
    since_begin: i64,
    /// Minutes by the clock, where these are asked for.
    date: i64,
}

/// The time of a run or a log that is asked for.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// Its begin by the clock, microseconds since 1970.
    begin_us: i64,
    length_us: i64,
    /// How long it really is, where it was rounded up to whole steps.
    covered_us: i64,
    /// What is asked of its time.
    by: Vec<Dimension>,
    filters: Vec<Filter>,
    /// Seconds that are told as one.
    second_s: i64,
    /// How long the finest of these is that counts from the begin, seconds; the whole span where none does.
    finest_s: i64,
    has_date: bool,
}

impl Span {
    /// Of so long from then on.
    ///
    /// # Errors
    /// It is too long for what is asked.
    pub(super) fn new(begin_us: i64, length_us: i64, query: &Query) -> Result<Span, CubeError> {
        let by: Vec<Dimension> = query.by.iter().copied().filter(|dimension| dimension.is_time()).collect();
        let filters: Vec<Filter> =
            query.filters.iter().filter(|filter| filter.dimension.is_time()).cloned().collect();
        let asked = || by.iter().copied().chain(filters.iter().map(|filter| filter.dimension));
        let second_s = i64::from(query.second_s.max(1));
        // several seconds that are told as one may reach over a minute's end
        let is_wide = second_s > 1 && asked().any(|dimension| dimension != Dimension::Second);
        let width = |dimension: Dimension| match dimension {
            Dimension::Second if !is_wide => Some(second_s),
            of => of.seconds(),
        };
        let finest_s = asked().filter_map(width).min().unwrap_or(i64::MAX);
        let has_date = asked().any(|dimension| dimension == Dimension::Date);
        let step_us = finest_s.min(if has_date { 60 } else { i64::MAX }).saturating_mul(SECOND_US);
        let hours = length_us / (60 * MINUTE_US);
        if length_us > LENGTH_MAX_US {
            return Err(CubeError::Query(format!("{hours} hours are more than a hundred years")));
        }
        if !filters.is_empty() && length_us / step_us > STEPS_MAX {
            return Err(CubeError::Query(format!(
                "{hours} hours are too long to filter by second or minute; filter by hour"
            )));
        }
        Ok(Span { begin_us, length_us, covered_us: length_us, second_s, by, filters, finest_s, has_date })
    }

    /// The same of which not all is covered.
    pub(super) fn covering(self, covered_us: i64) -> Span {
        Span { covered_us, ..self }
    }

    /// The nearest moment within it.
    pub(super) fn within(&self, at_us: i64) -> i64 {
        at_us.clamp(0, (self.length_us - 1).max(0))
    }

    /// Where a moment lies, microseconds since the begin; nothing where it is not asked for.
    pub(super) fn step(&self, at_us: i64) -> Option<Step> {
        let step = Step {
            since_begin: at_us.div_euclid(SECOND_US).div_euclid(self.finest_s),
            date: if self.has_date { self.begin_us.saturating_add(at_us).div_euclid(MINUTE_US) } else { 0 },
        };
        ((0..self.length_us).contains(&at_us) && self.lets(step)).then_some(step)
    }

    fn width_s(&self, dimension: Dimension) -> Option<i64> {
        if dimension == Dimension::Second { Some(self.second_s) } else { dimension.seconds() }
    }

    /// The number of a step in a dimension.
    fn number(&self, dimension: Dimension, step: Step) -> i64 {
        match self.width_s(dimension) {
            Some(seconds) => step.since_begin.saturating_mul(self.finest_s).div_euclid(seconds),
            None => step.date,
        }
    }

    fn lets(&self, step: Step) -> bool {
        self.filters.iter().all(|filter| filter.lets_time(self.number(filter.dimension, step)))
    }

    /// The values of the dimensions of time, in their order.
    pub(super) fn times(&self, step: Step) -> Vec<Value> {
        let value = |dimension: &Dimension| match dimension {
            Dimension::Date => Value::Date(step.date),
            of => Value::Number(self.number(*of, step)),
        };
        self.by.iter().map(value).collect()
    }

    /// How long a cell with these times covers.
    fn seconds(&self, times: &[(Dimension, &Value)]) -> f64 {
        if self.filters.is_empty() && times.iter().all(|(_, value)| **value == Value::All) {
            return self.covered_us as f64 / 1e6;
        }
        let (mut from, mut to) = (0, self.length_us);
        for (dimension, value) in times {
            let (begin, length) = match (value, self.width_s(*dimension)) {
                (Value::Number(number), Some(seconds)) => {
                    (number.saturating_mul(seconds * SECOND_US), seconds * SECOND_US)
                }
                (Value::Date(minute), _) => {
                    (minute.saturating_mul(MINUTE_US).saturating_sub(self.begin_us), MINUTE_US)
                }
                _ => continue,
            };
            from = from.max(begin);
            to = to.min(begin.saturating_add(length));
        }
        if self.filters.is_empty() {
            return (to - from).max(0) as f64 / 1e6;
        }
        let mut covered = 0;
        while from < to {
            let next = self.next(from).min(to);
            if self.step(from).is_some() {
                covered += next - from;
            }
            from = next;
        }
        covered as f64 / 1e6
    }

    /// When the step that a moment lies in ends.
    fn next(&self, at_us: i64) -> i64 {
        let finest_us = self.finest_s.saturating_mul(SECOND_US);
        let of_begin = (at_us / finest_us + 1).saturating_mul(finest_us);
        let of_date = match self.has_date {
            true => ((self.begin_us + at_us).div_euclid(MINUTE_US) + 1) * MINUTE_US - self.begin_us,
            false => i64::MAX,
        };
        of_begin.min(of_date)
    }
}

/// The values of a cell in the order asked for; those of time are in theirs.
pub(super) fn values(by: &[Dimension], times: &[Value], text: impl Fn(Dimension) -> String) -> Vec<Value> {
    let mut times = times.iter().cloned();
    let value = |dimension: &Dimension| match dimension.is_time() {
        true => times.next().unwrap_or(Value::All),
        false => Value::Text(text(*dimension)),
    };
    by.iter().map(value).collect()
}
