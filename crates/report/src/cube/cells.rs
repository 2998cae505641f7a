//! The cells of a cube while it is filled.

use std::collections::BTreeMap;

use super::Query;
use super::dimension::{self, Dimension, Filter, Value};
use super::measure::{Measured, Precision, measure};

/// Operations of one cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// Durations in microseconds, and how often each; in order once [sorted](Cell::measured).
    durations: Vec<(u32, u64)>,
    errors: u64,
    precision: Precision,
}

impl Cell {
    pub(super) fn new(durations: Vec<(u32, u64)>, errors: u64, precision: Precision) -> Cell {
        Cell { durations, errors, precision }
    }

    fn add(&mut self, other: Cell) {
        self.durations.extend(other.durations);
        self.errors += other.errors;
        if other.precision == Precision::Fine {
            self.precision = Precision::Fine;
        }
        self.tidy();
    }

    /// In order, each duration once.
    fn tidy(&mut self) {
        self.durations.sort_unstable_by_key(|(us, _)| *us);
        self.durations.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }

    pub(super) fn measured(mut self, seconds: f64) -> Measured {
        self.tidy();
        measure(&self.durations, self.errors, seconds, self.precision)
    }
}

/// Durations in ascending order with how often there is each, of those in any order.
pub(super) fn counted(mut us: Vec<u32>) -> Vec<(u32, u64)> {
    us.sort_unstable();
    let mut counted: Vec<(u32, u64)> = Vec::new();
    for us in us {
        match counted.last_mut() {
            Some((last, times)) if *last == us => *times += 1,
            _ => counted.push((us, 1)),
        }
    }
    counted
}

/// All cells, and how long each covers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) cells: BTreeMap<Vec<Value>, Cell>,
    /// Seconds by run and by the values of the dimensions of time.
    covered: BTreeMap<(String, Vec<Value>), f64>,
}

impl Counts {
    pub(super) fn add(&mut self, values: Vec<Value>, cell: Cell) {
        match self.cells.entry(values) {
            std::collections::btree_map::Entry::Occupied(mut there) => there.get_mut().add(cell),
            std::collections::btree_map::Entry::Vacant(free) => _ = free.insert(cell),
        }
    }

    pub(super) fn cover(&mut self, run: &str, times: Vec<Value>, seconds: f64) {
        *self.covered.entry((run.to_owned(), times)).or_default() += seconds;
    }

    /// How many seconds a cell covers.
    pub(super) fn seconds(&self, by: &[Dimension], values: &[Value]) -> f64 {
        let run = by.iter().zip(values).find(|(of, _)| **of == Dimension::Run).map(|(_, value)| value);
        let times: Vec<&Value> =
            by.iter().zip(values).filter(|(of, _)| of.is_time()).map(|(_, value)| value).collect();
        let of_cell = |((name, covered), _): &(&(String, Vec<Value>), &f64)| {
            let same_run = match run {
                Some(Value::Text(run)) => run == name,
                _ => true,
            };
            same_run && times.iter().zip(covered).all(|(time, of)| **time == Value::All || *time == of)
        };
        // one whose times are all known is found at once
        if let Some(Value::Text(run)) = run
            && times.iter().all(|time| **time != Value::All)
        {
            let key = (run.clone(), times.into_iter().cloned().collect());
            return self.covered.get(&key).copied().unwrap_or(0.0);
        }
        self.covered.iter().filter(of_cell).map(|(_, seconds)| seconds).sum()
    }
}

/// Adds the sums: over the last dimension, over the last two, over all.
pub(super) fn roll_up(cells: &mut BTreeMap<Vec<Value>, Cell>, dimensions: usize) {
    let mut sums: BTreeMap<Vec<Value>, Vec<Cell>> = BTreeMap::new();
    for (values, cell) in &*cells {
        for kept in 0..dimensions {
            let mut of_sum = values.clone();
            of_sum[kept..].fill(Value::All);
            sums.entry(of_sum).or_default().push(cell.clone());
        }
    }
    for (values, parts) in sums {
        let mut parts = parts.into_iter();
        let Some(mut sum) = parts.next() else { continue };
        for part in parts {
            sum.durations.extend(part.durations);
            sum.errors += part.errors;
            if part.precision == Precision::Fine {
                sum.precision = Precision::Fine;
            }
        }
        sum.tidy();
        cells.insert(values, sum);
    }
}

/// The seconds of a run that are asked for, and where each lies.
pub(super) struct Span {
    /// When the first second begins by the clock, seconds since 1970.
    since_1970_s: i64,
    /// For each second, the part of it that belongs to the run; 0 where a filter leaves it out.
    parts: Vec<f64>,
    /// Seconds that are told as one.
    second_s: i64,
    /// What cells are told apart by that is about time.
    by: Vec<Dimension>,
    /// Seconds for which all of these are the same.
    pub(super) step_s: i64,
}

impl Span {
    /// Of `length_s` seconds from then on.
    pub(super) fn new(since_1970_s: i64, length_s: f64, query: &Query) -> Span {
        let by: Vec<Dimension> = query.by.iter().copied().filter(|dimension| dimension.is_time()).collect();
        let filters: Vec<&Filter> =
            query.filters.iter().filter(|filter| filter.dimension.is_time()).collect();
        let second_s = i64::from(query.second_s.max(1));
        let mut span = Span { since_1970_s, parts: Vec::new(), second_s, by: by.clone(), step_s: 1 };
        // minutes by the clock begin elsewhere than those of the run, and several seconds may reach over a minute's end
        if filters.is_empty() && !by.contains(&Dimension::Date) && (second_s == 1 || by.len() == 1) {
            span.step_s = by.iter().filter_map(|of| span.width_s(*of)).min().unwrap_or(i64::MAX);
        }
        let seconds = length_s.ceil().max(0.0) as i64;
        span.parts = (0..seconds)
            .map(|second| {
                let lets = |filter: &&Filter| filter.lets(&span.value(filter.dimension, second));
                if filters.iter().all(lets) { (length_s - second as f64).min(1.0) } else { 0.0 }
            })
            .collect();
        span
    }

    fn width_s(&self, dimension: Dimension) -> Option<i64> {
        if dimension == Dimension::Second { Some(self.second_s) } else { dimension.seconds() }
    }

    fn value(&self, dimension: Dimension, second: i64) -> Value {
        match self.width_s(dimension) {
            Some(seconds) => Value::Number(second.div_euclid(seconds)),
            None => Value::Text(minute_by_the_clock(self.since_1970_s + second)),
        }
    }

    /// Whether a second is asked for.
    pub(super) fn has(&self, second: i64) -> bool {
        usize::try_from(second).ok().and_then(|second| self.parts.get(second)).is_some_and(|part| *part > 0.0)
    }

    /// The values of the dimensions of time, in their order.
    pub(super) fn times(&self, second: i64) -> Vec<Value> {
        self.by.iter().map(|dimension| self.value(*dimension, second)).collect()
    }

    /// Tells how long each cell covers.
    pub(super) fn cover(&self, run: &str, counts: &mut Counts) {
        for (second, part) in (0..).zip(&self.parts).filter(|(_, part)| **part > 0.0) {
            counts.cover(run, self.times(second), *part);
        }
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

/// `2026-01-31 14:05`, UTC.
pub(super) fn minute_by_the_clock(since_1970_s: i64) -> String {
    let [year, month, day, hour, minute] = clock(since_1970_s);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Year, month from 1, day, hour and minute, UTC.
pub(super) fn clock(since_1970_s: i64) -> [i64; 5] {
    let time =
        jiff::Timestamp::from_second(since_1970_s).unwrap_or_default().to_zoned(jiff::tz::TimeZone::UTC);
    [time.year().into(), time.month().into(), time.day().into(), time.hour().into(), time.minute().into()]
}

/// Whether filters let these through.
pub(super) fn lets(filters: &[Filter], texts: &[(Dimension, &str)]) -> bool {
    texts.iter().all(|(dimension, text)| dimension::lets(filters, *dimension, &Value::Text((*text).into())))
}
