//! A run's operations: what its system says, and what the driver saw.

use std::collections::HashMap;
use std::thread;

use jiff::Timestamp;
use tidemark_record::{Kinds, OperationsReader, RecordError, Run};

use super::cells::{self, Cell, Counts, Span};
use super::dimension::{DRIVER, Dimension, SERVICE, Seen};
use super::measure::Precision;
use super::{CubeError, Query};

/// The driver's operation where a label names none.
const REQUEST: &str = "request";
/// Most threads that read one file.
const THREADS_MAX: usize = 8;

/// A run under the name that it is shown by.
struct Reading<'a> {
    name: &'a str,
    query: &'a Query,
    /// What is asked for of it, microseconds since the run began.
    start_us: u64,
    end_us: u64,
    span: Span,
}

/// Adds a run's operations to the cells.
pub(super) fn read(
    name: &str,
    run: &Run,
    query: &Query,
    counts: &mut Counts,
    seen: &mut Seen,
) -> Result<(), CubeError> {
    seen.see(Dimension::Run, name);
    seen.see(Dimension::Source, DRIVER);
    if !cells::lets(&query.filters, &[(Dimension::Run, name)]) {
        return Ok(());
    }
    let operations = OperationsReader::open(&run.dir)?;
    let (start_us, end_us) = window(run, query.whole);
    let began: Option<Timestamp> = run.manifest.started_at.parse().ok();
    let since_1970_s = began.map_or(0, |began| began.as_second()) + (start_us / 1_000_000) as i64;
    let length_s = end_us.saturating_sub(start_us) as f64 / 1e6;
    let span = Span::new(since_1970_s, length_s, query);
    let reading = Reading { name, query, start_us, end_us, span };
    reading.span.cover(name, counts);
    if let Some(operations) = &operations {
        seen.see(Dimension::Source, SERVICE);
        reading.service(run, operations.pieces(), counts, seen)?;
    }
    reading.driver(run, counts, seen)?;
    Ok(())
}

/// From when to when a run counts, microseconds since it began.
pub(crate) fn window(run: &Run, whole: bool) -> (u64, u64) {
    let phases = &run.manifest.phases;
    let of = |phase: &&tidemark_record::manifest::Phase| whole || phase.measured;
    let start = phases.iter().filter(of).map(|phase| phase.start_us).min();
    let end = phases.iter().filter(of).map(|phase| phase.end_us).max();
    match (start, end) {
        (Some(start), Some(end)) if !whole => (start, end),
        // the last answers come after the last phase
        _ => (0, run.load.iter().map(|row| row.end_us).chain(end).max().unwrap_or(0)),
    }
}

/// What cells of one thread are told apart by: a step of time, entity, operation, status.
type Key = (i64, u16, u16, u16);
/// Durations in microseconds, and how many failed.
type Found = HashMap<Key, (Vec<u32>, u64)>;

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
    fn add(&self, counts: &mut Counts, second: i64, texts: &[(Dimension, &str)], status: &str, cell: Cell) {
        let text = |dimension| match dimension {
            Dimension::Status => status.to_owned(),
            of => texts.iter().find(|(other, _)| *other == of).map_or("", |(_, text)| text).to_owned(),
        };
        counts.add(cells::values(&self.query.by, &self.span.times(second), text), cell);
    }

    /// What the system says.
    fn service(
        &self,
        run: &Run,
        pieces: usize,
        counts: &mut Counts,
        seen: &mut Seen,
    ) -> Result<(), CubeError> {
        if !cells::lets(&self.query.filters, &[(Dimension::Source, SERVICE)]) {
            return Ok(());
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(THREADS_MAX).min(pieces).max(1);
        let all: Vec<Result<(Kinds, Found), RecordError>> = thread::scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let own = OperationsReader::open(&run.dir)?;
                        own.map_or(Ok(Default::default()), |own| {
                            self.pieces(&own, (thread..pieces).step_by(threads))
                        })
                    })
                })
                .collect();
            let joined = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(joined).collect()
        });
        for found in all {
            let (kinds, found) = found?;
            kinds.entities.iter().for_each(|entity| seen.see(Dimension::Entity, entity));
            kinds.operations.iter().for_each(|operation| seen.see(Dimension::Operation, operation));
            for ((step, entity, operation, status), (durations, errors)) in found {
                let status = status.to_string();
                seen.see(Dimension::Status, &status);
                let (entity, operation) =
                    (&kinds.entities[usize::from(entity)], &kinds.operations[usize::from(operation)]);
                let cell = Cell::new(cells::counted(durations), errors, Precision::Fine);
                let second = step.saturating_mul(self.span.step_s);
                self.add(counts, second, &self.texts(SERVICE, entity, operation), &status, cell);
            }
        }
        Ok(())
    }

    /// The operations in some pieces of the file.
    fn pieces(
        &self,
        operations: &OperationsReader,
        pieces: impl Iterator<Item = usize>,
    ) -> Result<(Kinds, Found), RecordError> {
        let mut kinds = Kinds::default();
        let mut found = Found::new();
        let by_status = self.query.names(Dimension::Status);
        let filters = &self.query.filters;
        // whether filters let an entity with an operation and a status through
        let mut known: HashMap<(u16, u16, u16), bool> = HashMap::new();
        for piece in pieces {
            let mut rows = Vec::new();
            operations.each(piece, &mut kinds, |at_us, took_us, entity, operation, status| {
                if at_us >= self.start_us && at_us < self.end_us {
                    let second = ((at_us - self.start_us) / 1_000_000) as i64;
                    rows.push((second, took_us, entity as u16, operation as u16, status));
                }
            })?;
            for (second, took_us, entity, operation, status) in rows {
                let is_let = *known.entry((entity, operation, status)).or_insert_with(|| {
                    let (entity, operation) =
                        (&kinds.entities[usize::from(entity)], &kinds.operations[usize::from(operation)]);
                    let texts = [(Dimension::Status, &*status.to_string())];
                    cells::lets(filters, &texts)
                        && cells::lets(filters, &self.texts(SERVICE, entity, operation))
                });
                if !is_let || !self.span.has(second) {
                    continue;
                }
                let status_shown = if by_status { status } else { 0 };
                let key = (second.div_euclid(self.span.step_s), entity, operation, status_shown);
                let (durations, errors) = found.entry(key).or_default();
                durations.push(u32::try_from(took_us).unwrap_or(u32::MAX));
                *errors += u64::from(status >= 400);
            }
        }
        Ok((kinds, found))
    }

    /// What the driver saw, by label: `Outbound post` is an entity and an operation.
    fn driver(&self, run: &Run, counts: &mut Counts, seen: &mut Seen) -> Result<(), CubeError> {
        if !cells::lets(&self.query.filters, &[(Dimension::Source, DRIVER)]) {
            return Ok(());
        }
        for row in &run.series {
            if row.start_us < self.start_us || row.start_us >= self.end_us || row.count == 0 {
                continue;
            }
            let second = ((row.start_us - self.start_us) / 1_000_000) as i64;
            let label = run.manifest.labels.get(usize::from(row.label)).map_or("", String::as_str);
            let (entity, operation) = entity_and_operation(label);
            let status = row.outcome.name();
            seen.see(Dimension::Entity, entity);
            seen.see(Dimension::Operation, operation);
            seen.see(Dimension::Status, status);
            let texts = self.texts(DRIVER, entity, operation);
            let is_let = cells::lets(&self.query.filters, &texts)
                && cells::lets(&self.query.filters, &[(Dimension::Status, status)]);
            if !is_let || !self.span.has(second) {
                continue;
            }
            let times = run.decode(&row.response_time_us)?;
            let durations = times
                .iter_recorded()
                .map(|value| {
                    let us = u32::try_from(value.value_iterated_to()).unwrap_or(u32::MAX);
                    (us, value.count_at_value())
                })
                .collect();
            let errors = if row.outcome.is_error() { row.count } else { 0 };
            self.add(counts, second, &texts, status, Cell::new(durations, errors, Precision::Fine));
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
