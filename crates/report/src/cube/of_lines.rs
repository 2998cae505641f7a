//! The operations of a log.

use std::collections::BTreeMap;

use super::cells::{self, Cell, Counts, Span};
use super::dimension::{Dimension, SYSTEM, Seen, lets};
use super::lines::{Line, LogLines};
use super::measure::Precision;
use super::{CubeError, Query, clock};

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
    let at = |line: &&Line| line.at_us;
    let (Some(earliest), Some(latest)) = (log.lines.iter().min_by_key(at), log.lines.iter().max_by_key(at))
    else {
        return Ok(());
    };
    let first = earliest.at_us.div_euclid(step_us) * step_us;
    let length_us = ((latest.at_us - first) / step_us + 1) * step_us;
    let span = Span::new(first, length_us, query).map_err(|error| match error {
        CubeError::Query(reason) => {
            let told =
                |line: &Line| format!("line {} ({})", line.number, clock::minute(line.at_us / 60_000_000));
            let [earliest, latest] = [earliest, latest].map(told);
            CubeError::Query(format!("{name} reaches from {earliest} to {latest}: {reason}"))
        }
        other => other,
    })?;
    // a rate of less than a second says little
    let covered_us = if log.minutes_only { length_us } else { (latest.at_us - earliest.at_us).max(step_us) };
    let span = span.covering(covered_us);
    let precision = if log.minutes_only { Precision::Coarse } else { Precision::Fine };
    let mut found: BTreeMap<_, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
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
        let (good, failed) = found.entry(values).or_default();
        if line.status >= 400 { failed.push(line.duration_us) } else { good.push(line.duration_us) }
    }
    if lets(&query.filters, &[(Dimension::Run, name), (Dimension::Source, SYSTEM)]) {
        counts.spans.push((name.to_owned(), true, span));
    }
    for (values, (good, failed)) in found {
        counts.add(values, Cell::new(cells::counted(good), cells::counted(failed), precision));
    }
    Ok(())
}
