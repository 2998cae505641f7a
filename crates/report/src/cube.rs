//! Operations as a cube: what a system says that it did beside what the driver saw, by time, entity and operation.
//!
//! A cube has [dimensions](Dimension), by which it is cut up, and [measures](Measure) of what is in each cell. It is made of
//! runs and of the published log lines, [at once](Cube::of), from every single operation: a percentile of two cells
//! together is that of their operations, never a mean of two percentiles.

mod cells;
mod clock;
mod dimension;
mod lines;
mod measure;
mod of_lines;
mod of_run;
mod show;
mod star;

use std::borrow::Borrow;
use std::collections::BTreeMap;

use tidemark_record::{RecordError, Run};

pub use dimension::{Dimension, Filter, Value};
pub use lines::{LogLines, Months};
pub use measure::{Measure, Measured};
pub use show::{csv, json, table};
pub use star::{Dialect, published, star};

pub(crate) use dimension::DRIVER;
pub(crate) use of_run::window;

use cells::Counts;

/// What is asked of a cube.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// What the cells are told apart by, the first the coarsest.
    pub by: Vec<Dimension>,
    /// What a cell must be.
    pub filters: Vec<Filter>,
    /// Whether what lies outside the measured window belongs to it; times count from the begin of the run then.
    pub whole: bool,
    /// Whether there are sums, too: over the last dimension, over the last two, over all.
    pub rollup: bool,
    /// Whether failed operations count with the time until they failed, as in the published forms, and not as slower than
    /// every bound. Those of one status always do.
    pub failed_as_timed: bool,
    /// How many seconds one value of [`Dimension::Second`] stands for; 0 is as 1.
    pub second_s: u32,
}

impl Query {
    /// What failed operations of a cell count as: whoever asks for a status wants to know how long those took.
    fn failed(&self, values: &[Value]) -> cells::Failed {
        let is_status = |(by, value): (&Dimension, &Value)| *by == Dimension::Status && *value != Value::All;
        let has_status = self.filters.iter().any(|filter| filter.dimension == Dimension::Status)
            || self.by.iter().zip(values).any(is_status);
        if self.failed_as_timed || has_status { cells::Failed::AsTimed } else { cells::Failed::Beyond }
    }

    /// Whether a dimension is one of those that cells are told apart by, or that a filter asks for.
    fn names(&self, dimension: Dimension) -> bool {
        self.by.contains(&dimension) || self.filters.iter().any(|filter| filter.dimension == dimension)
    }
}

/// Something that operations are read from.
#[derive(Debug)]
pub enum Input<R = Run> {
    /// Runs which are one to the reader, such as the rounds of a comparison.
    Runs(Vec<R>),
    /// A log.
    Lines(LogLines),
}

/// Why there is no cube.
#[derive(Debug, thiserror::Error)]
pub enum CubeError {
    /// A run cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What was asked for is not there, or does not fit.
    #[error("{0}")]
    Query(String),
}

/// One cell: a value for each dimension asked for, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// In the order of [`Query::by`].
    pub values: Vec<Value>,
    /// Of all operations in it.
    pub measured: Measured,
}

/// The cells that were asked for, in order of their values.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    /// The dimensions of each row.
    pub by: Vec<Dimension>,
    /// What there is.
    pub rows: Vec<Row>,
    /// Inputs whose system told of no operation, or in how many of their runs.
    pub silent: Vec<String>,
}

impl Cube {
    /// Reads what is asked for from inputs, each under its name.
    ///
    /// # Errors
    /// An input cannot be read, or nothing in it is what a filter asks for.
    pub fn of<R: Borrow<Run>>(inputs: &[(String, Input<R>)], query: &Query) -> Result<Cube, CubeError> {
        let mut all = Counts::default();
        let mut filters = query.filters.clone();
        // what the system did and what the driver saw are the same operations: only a reader who asks adds them up
        if !query.names(Dimension::Source) {
            filters.push(Filter::is(Dimension::Source, dimension::SYSTEM));
        }
        let query = Query { filters, ..query.clone() };
        let mut seen = dimension::Seen::default();
        let mut silent = Vec::new();
        for (name, input) in inputs {
            match input {
                Input::Runs(runs) => {
                    let mut told = 0;
                    for run in runs {
                        let tells = of_run::read(name, run.borrow(), &query, &mut all, &mut seen)?;
                        told += usize::from(tells);
                    }
                    match (told, runs.len()) {
                        (0, 1..) => silent.push(name.clone()),
                        (told, of) if told < of => {
                            silent.push(format!("{name}, {} of {of} rounds", of - told));
                        }
                        _ => {}
                    }
                }
                Input::Lines(lines) => of_lines::read(name, lines, &query, &mut all, &mut seen)?,
            }
        }
        if !silent.is_empty() && !seen.has_system() && all.cells.is_empty() {
            return Err(CubeError::Query(format!(
                "{}: the system logged no operations; --where source=driver shows what the load generator saw",
                silent.join(", ")
            )));
        }
        seen.check(&query.filters)?;
        let mut cells: BTreeMap<Vec<Value>, cells::Cell> = std::mem::take(&mut all.cells);
        if query.rollup {
            cells::roll_up(&mut cells, query.by.len());
        }
        let row = |(values, cell): (Vec<Value>, cells::Cell)| {
            let seconds = all.seconds(&query, &values);
            Row { measured: cell.measured(seconds, query.failed(&values)), values }
        };
        Ok(Cube { by: query.by.clone(), rows: cells.into_iter().map(row).collect(), silent })
    }
}

#[cfg(test)]
mod tests;
