//! The operations of a log.

use std::collections::BTreeMap;

use super::cells::{self, Cell, Counts, Span};
use super::dimension::{Dimension, SYSTEM, Seen, lets};
use super::lines::LogLines;
use super::measure::Precision;
use super::{CubeError, Query};

/// Adds the operations of a log to the cells. Its time begins with its first line.
pub(super) fn read(
    name: &str,
    log: &LogLines,
    query: &Query,
    counts: &mut Counts,
    seen: &mut Seen,
) -> Result<(), CubeError> {
    seen.see(Dimension::Run, name);
    seen.see(Dimension::Source, SYSTEM);
    if log.minutes_only && query.names(Dimension::Second) {
        return Err(CubeError::Query(format!("{name} has lines without seconds; ask by minute or date")));
    }
    // whole minutes, as that is what published lines know
    let step_us = if log.minutes_only { 60_000_000 } else { 1_000_000 };
    let first = log.lines.iter().map(|line| line.at_us).min().unwrap_or(0).div_euclid(step_us) * step_us;
    let last = log.lines.iter().map(|line| line.at_us).max().unwrap_or(first);
    let length_us = ((last - first) / step_us + 1) * step_us;
    let span = Span::new(first, length_us, query)?;
    let precision = if log.minutes_only { Precision::Coarse } else { Precision::Fine };
    let mut found: BTreeMap<_, (Vec<u64>, u64)> = BTreeMap::new();
    for line in &log.lines {
        let status = line.status.to_string();
        let texts = [
            (Dimension::Run, name),
            (Dimension::Source, SYSTEM),
            (Dimension::Entity, line.entity.as_str()),
            (Dimension::Operation, line.operation.as_str()),
            (Dimension::Status, status.as_str()),
        ];
        texts.iter().for_each(|(dimension, text)| seen.see(*dimension, text));
        let Some(step) = span.step(line.at_us - first).filter(|_| lets(&query.filters, &texts)) else {
            continue;
        };
        let text = |dimension| {
            texts.iter().find(|(of, _)| *of == dimension).map_or("", |(_, text)| *text).to_owned()
        };
        let values = cells::values(&query.by, &span.times(step), text);
        let (durations, errors) = found.entry(values).or_default();
        durations.push(line.duration_us);
        *errors += u64::from(line.status >= 400);
    }
    if lets(&query.filters, &[(Dimension::Run, name), (Dimension::Source, SYSTEM)]) {
        counts.spans.push((name.to_owned(), span));
    }
    for (values, (durations, errors)) in found {
        counts.add(values, Cell::new(cells::counted(durations), errors, precision));
    }
    Ok(())
}
