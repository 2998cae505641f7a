//! The operations of a log.

use std::collections::BTreeMap;

use super::cells::{self, Cell, Counts, Span};
use super::dimension::{Dimension, SERVICE, Seen};
use super::lines::LogLines;
use super::measure::Precision;
use super::{CubeError, Query};

/// Longest time from the first line to the last, in seconds: some ten years.
const SPAN_MAX_S: i64 = 315_576_000;

/// Adds the operations of a log to the cells. Its time begins with its first line.
pub(super) fn read(
    name: &str,
    log: &LogLines,
    query: &Query,
    counts: &mut Counts,
    seen: &mut Seen,
) -> Result<(), CubeError> {
    seen.see(Dimension::Run, name);
    seen.see(Dimension::Source, SERVICE);
    if log.minutes_only && query.names(Dimension::Second) {
        return Err(CubeError::Query(format!("{name} has lines that say no second; ask by minute or date")));
    }
    // whole minutes, as that is what published lines know
    let step_us = if log.minutes_only { 60_000_000 } else { 1_000_000 };
    let first = log.lines.iter().map(|line| line.at_us).min().unwrap_or(0).div_euclid(step_us) * step_us;
    let last = log.lines.iter().map(|line| line.at_us).max().map_or(first, |last| last.saturating_add(1));
    let seconds = (last.saturating_sub(first) + step_us - 1).div_euclid(step_us) * (step_us / 1_000_000);
    if seconds > SPAN_MAX_S {
        return Err(CubeError::Query(format!("{name} has lines that are more than ten years apart")));
    }
    let span = Span::new(first.div_euclid(1_000_000), seconds as f64, query);
    if cells::lets(&query.filters, &[(Dimension::Run, name), (Dimension::Source, SERVICE)]) {
        span.cover(name, counts);
    }
    let precision = if log.minutes_only { Precision::Coarse } else { Precision::Fine };
    let mut found: BTreeMap<_, (Vec<u32>, u64)> = BTreeMap::new();
    for line in &log.lines {
        let status = line.status.to_string();
        let texts = [
            (Dimension::Run, name),
            (Dimension::Source, SERVICE),
            (Dimension::Entity, line.entity.as_str()),
            (Dimension::Operation, line.operation.as_str()),
            (Dimension::Status, status.as_str()),
        ];
        texts.iter().for_each(|(dimension, text)| seen.see(*dimension, text));
        let second = (line.at_us - first).div_euclid(1_000_000);
        if !cells::lets(&query.filters, &texts) || !span.has(second) {
            continue;
        }
        let text = |dimension| {
            texts.iter().find(|(of, _)| *of == dimension).map_or("", |(_, text)| *text).to_owned()
        };
        let values = cells::values(&query.by, &span.times(second), text);
        let (durations, errors) = found.entry(values).or_default();
        durations.push(line.duration_us);
        *errors += u64::from(line.status >= 400);
    }
    for (values, (durations, errors)) in found {
        counts.add(values, Cell::new(cells::counted(durations), errors, precision));
    }
    Ok(())
}
