//! A run's operations: what its system says, and what the driver saw.

use std::collections::HashMap;
use std::thread;

use jiff::Timestamp;
use tidemark_record::{Kinds, OperationsReader, RecordError, Run};

use super::cells::{self, Cell, Counts, Span, Step};
use super::dimension::{DRIVER, Dimension, SYSTEM, Seen, lets};
use super::measure::Precision;
use super::{CubeError, Query};

/// The driver's operation where a label names none.
const REQUEST: &str = "request";
/// Most threads that read one file.
const THREADS_MAX: usize = 8;

/// A run under the name that it is shown by.
struct Reading<'a> {
    name: &'a str,
    run: &'a Run,
    query: &'a Query,
    /// What is asked for of it, microseconds since the run began.
    start_us: u64,
    span: Span,
}

/// Adds a run's operations to the cells; whether its system told of any.
pub(super) fn read(
    name: &str,
    run: &Run,
    query: &Query,
    counts: &mut Counts,
    seen: &mut Seen,
) -> Result<bool, CubeError> {
    seen.see(Dimension::Run, name);
    seen.see(Dimension::Source, DRIVER);
    let pieces = OperationsReader::open(&run.dir)?.map_or(0, |operations| operations.pieces());
    let tells = pieces > 0;
    if tells {
        seen.see(Dimension::Source, SYSTEM);
    }
    if !lets(&query.filters, &[(Dimension::Run, name)]) {
        return Ok(tells);
    }
    let (start_us, end_us) = window(run, query.whole)?;
    let reason = "run.json has a time that none can be";
    let to_signed = |us: u64| i64::try_from(us).map_err(|_| CubeError::Query(format!("{name}: {reason}")));
    let began = match run.manifest.started_at.parse::<Timestamp>() {
        Ok(began) => began.as_microsecond(),
        Err(_) if query.names(Dimension::Date) => {
            return Err(CubeError::Query(format!("{name}: its run.json does not say when it began")));
        }
        Err(_) => 0,
    };
    let begin_us = began.saturating_add(to_signed(start_us)?);
    let length_us = to_signed(end_us.saturating_sub(start_us))?;
    let span = Span::new(begin_us, length_us, query)?;
    let reading = Reading { name, run, query, start_us, span };
    reading.system(pieces, counts, seen)?;
    reading.driver(counts, seen)?;
    counts.spans.push((name.to_owned(), tells, reading.span));
    Ok(tells)
}

/// From when to when a run counts, microseconds since it began.
pub(crate) fn window(run: &Run, whole: bool) -> Result<(u64, u64), RecordError> {
    let phases = &run.manifest.phases;
    let measured = || phases.iter().filter(|phase| phase.measured);
    let start = measured().map(|phase| phase.start_us).min();
    let end = measured().map(|phase| phase.end_us).max();
    if let (Some(start), Some(end), false) = (start, end, whole) {
        return Ok((start, end));
    }
    let ends = phases.iter().map(|phase| phase.end_us);
    let ends = ends.chain(run.load.iter().map(|row| row.end_us));
    let ends = ends.chain(run.series.iter().map(|row| row.end_us));
    let operations = OperationsReader::open(&run.dir)?;
    let last = operations.as_ref().map(OperationsReader::last_us).transpose()?.flatten();
    let ends = ends.chain(last.map(|last| last.saturating_add(1)));
    Ok((0, ends.max().unwrap_or(0)))
}

/// What cells of one thread are told apart by: a step of time, entity, operation, status.
type Key = (Step, usize, usize, u16);

/// What a thread found.
#[derive(Default)]
struct Found {
    kinds: Kinds,
    /// Durations in microseconds: of good operations, and of those that failed.
    cells: HashMap<Key, (Vec<u64>, Vec<u64>)>,
    statuses: Vec<u16>,
}

impl Reading<'_> {
    fn texts<'a>(
        &'a self,
        source: &'a str,
        entity: &'a str,
        operation: &'a str,
    ) -> [(Dimension, &'a str); 4] {
        [
            (Dimension::Run, self.name),
            (Dimension::Source, source),
            (Dimension::Entity, entity),
            (Dimension::Operation, operation),
        ]
    }

    /// Adds one cell of those that a thread or the driver found.
    fn add(&self, counts: &mut Counts, step: Step, texts: &[(Dimension, &str)], status: &str, cell: Cell) {
        let text = |dimension| match dimension {
            Dimension::Status => status.to_owned(),
            of => texts.iter().find(|(other, _)| *other == of).map_or("", |(_, text)| text).to_owned(),
        };
        counts.add(cells::values(&self.query.by, &self.span.times(step), text), cell);
    }

    /// What the system says, in so many pieces.
    fn system(&self, pieces: usize, counts: &mut Counts, seen: &mut Seen) -> Result<(), CubeError> {
        if pieces == 0 || !lets(&self.query.filters, &[(Dimension::Source, SYSTEM)]) {
            return Ok(());
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(THREADS_MAX).min(pieces);
        let all: Vec<Result<Found, RecordError>> = thread::scope(|scope| {
            let start = |first| scope.spawn(move || self.pieces((first..pieces).step_by(threads)));
            let started: Vec<_> = (0..threads).map(start).collect();
            let joined = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(joined).collect()
        });
        for found in all {
            let Found { kinds, cells, statuses } = found?;
            kinds.entities.iter().for_each(|entity| seen.see(Dimension::Entity, entity));
            kinds.operations.iter().for_each(|operation| seen.see(Dimension::Operation, operation));
            statuses.iter().for_each(|status| seen.see(Dimension::Status, &status.to_string()));
            for ((step, entity, operation, status), (good, failed)) in cells {
                let (entity, operation) = (&kinds.entities[entity], &kinds.operations[operation]);
                let cell = Cell::new(cells::counted(good), cells::counted(failed), Precision::Fine);
                let texts = self.texts(SYSTEM, entity, operation);
                self.add(counts, step, &texts, &status.to_string(), cell);
            }
        }
        Ok(())
    }

    /// The operations in some pieces of the file, which each thread opens for itself: a place in it is not shared.
    fn pieces(&self, pieces: impl Iterator<Item = usize>) -> Result<Found, RecordError> {
        let mut found = Found::default();
        let Some(operations) = OperationsReader::open(&self.run.dir)? else { return Ok(found) };
        let by_status = self.query.names(Dimension::Status);
        // whether filters let an entity with an operation and a status through
        let mut known: HashMap<(usize, usize, u16), bool> = HashMap::new();
        let mut rows = Vec::new();
        for piece in pieces {
            rows.clear();
            operations.each(piece, &mut found.kinds, |at_us, took_us, entity, operation, status| {
                let at_us = at_us.checked_sub(self.start_us).and_then(|at_us| i64::try_from(at_us).ok());
                if let Some(step) = at_us.and_then(|at_us| self.span.step(at_us)) {
                    rows.push((step, took_us, entity, operation, status));
                }
            })?;
            for &(step, took_us, entity, operation, status) in &rows {
                let is_let = *known.entry((entity, operation, status)).or_insert_with(|| {
                    let kinds = &found.kinds;
                    let texts = self.texts(SYSTEM, &kinds.entities[entity], &kinds.operations[operation]);
                    found.statuses.push(status);
                    let filters = &self.query.filters;
                    lets(filters, &texts) && lets(filters, &[(Dimension::Status, &*status.to_string())])
                });
                if is_let {
                    let shown = if by_status { status } else { 0 };
                    let (good, failed) = found.cells.entry((step, entity, operation, shown)).or_default();
                    if status >= 400 { failed.push(took_us) } else { good.push(took_us) }
                }
            }
        }
        Ok(found)
    }

    /// What the driver saw, by label: `Outbound post` is an entity and an operation. In the measured window that is what
    /// was due in it, whenever it ended.
    fn driver(&self, counts: &mut Counts, seen: &mut Seen) -> Result<(), CubeError> {
        let filters = &self.query.filters;
        if !lets(filters, &[(Dimension::Source, DRIVER)]) {
            return Ok(());
        }
        let has_window = self.run.manifest.phases.iter().any(|phase| phase.measured);
        for row in &self.run.series {
            if row.count == 0 || (has_window && !self.query.whole && !row.measured) {
                continue;
            }
            let label = self.run.manifest.labels.get(usize::from(row.label)).map_or("", String::as_str);
            let (entity, operation) = entity_and_operation(label);
            let status = row.outcome.name();
            seen.see(Dimension::Entity, entity);
            seen.see(Dimension::Operation, operation);
            seen.see(Dimension::Status, status);
            // intervals end on whole seconds of the run, which the window's need not be: the middle tells which it is
            let middle_us = row.start_us / 2 + row.end_us / 2;
            let at_us = i64::try_from(middle_us.saturating_sub(self.start_us)).unwrap_or(i64::MAX);
            let texts = self.texts(DRIVER, entity, operation);
            let is_let = lets(filters, &texts) && lets(filters, &[(Dimension::Status, status)]);
            let Some(step) = self.span.step(self.span.within(at_us)).filter(|_| is_let) else { continue };
            let times = self.run.decode(&row.response_time_us)?;
            let count = |value: hdrhistogram::iterators::IterationValue<u64>| {
                (value.value_iterated_to(), value.count_at_value())
            };
            let durations = times.iter_recorded().map(count).collect();
            let (good, failed) =
                if row.outcome.is_error() { (Vec::new(), durations) } else { (durations, Vec::new()) };
            self.add(counts, step, &texts, status, Cell::new(good, failed, Precision::Fine));
        }
        Ok(())
    }
}

/// What a label says: `Outbound post` an entity and what was done with it, `Login` only a request.
fn entity_and_operation(label: &str) -> (&str, &str) {
    match label.rsplit_once(' ') {
        Some((entity, operation))
            if !entity.is_empty()
                && !operation.is_empty()
                && operation.bytes().all(|byte| byte.is_ascii_lowercase()) =>
        {
            (entity, operation)
        }
        _ => (label, REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_an_entity_with_an_operation_or_a_request() {
        assert_eq!(entity_and_operation("Outbound post"), ("Outbound", "post"));
        assert_eq!(entity_and_operation("Log in"), ("Log", "in"));
        for label in ["Login", "Book Flight", "", "x ", "GET /a/{b}"] {
            assert_eq!(entity_and_operation(label), (label, REQUEST));
        }
    }
}
