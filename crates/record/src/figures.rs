//! What stores say of themselves while a run goes on: `stores.parquet`, a figure a row.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{RecordError, damaged};
use crate::files::{ABOUT_STORES, STORES, STORES_FIELDS};
use crate::summary::{FigureSummary, StoreFigures};
use crate::table::{Cell, Table, TableWriter};

/// Most different stores and figures of a run that are summed up, together; further ones are in the file only.
const SUMMED_MAX: usize = 10_000;

/// What one look at a store, or at one node of it, found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreLook {
    /// Microseconds since the run began.
    pub at_us: u64,
    /// Which store: its name, that of a node (`cache.2`), or `system` for one that is driven and was there before.
    pub store: String,
    /// Whether it was within the measured window.
    pub measured: bool,
    /// Each figure by its name; those that end in `_per_s` are differences since the look before.
    pub figures: Vec<(String, f64)>,
}

/// One figure of one store over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigureSeries {
    /// Which store.
    pub store: String,
    /// Which figure.
    pub figure: String,
    /// When (microseconds since the run began) and how much, in order of time.
    pub points: Vec<(u64, f64)>,
}

/// The file, which there is only once a store has told something.
pub(crate) struct FiguresWriter(TableWriter);

impl FiguresWriter {
    pub(crate) fn create(dir: &Path) -> Result<FiguresWriter, RecordError> {
        Ok(FiguresWriter(TableWriter::create(&dir.join(STORES), &STORES_FIELDS, ABOUT_STORES)?))
    }

    pub(crate) fn add(&mut self, look: &StoreLook) -> Result<(), RecordError> {
        look.figures.iter().try_for_each(|(figure, value)| {
            self.0.push([
                Cell::Int(look.at_us),
                Cell::Text(&look.store),
                Cell::Text(figure),
                Cell::Float(*value),
            ])
        })
    }

    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        self.0.finish()
    }
}

/// Reads the file: a series for each store and figure, in order of their first row.
pub(crate) fn read(path: &Path) -> Result<Vec<FigureSeries>, RecordError> {
    let table = Table::read(path, &STORES_FIELDS)?;
    let (mut stores, mut figures) = (Vec::new(), Vec::new());
    let (of_store, of_figure) = (table.codes("store", &mut stores)?, table.codes("figure", &mut figures)?);
    let (at_us, values) = (table.ints("at_us")?, table.floats("value")?);
    if values.iter().any(|value| !value.is_finite()) {
        return Err(damaged(path, "a figure is no number"));
    }
    let (mut series, mut places) = (Vec::<FigureSeries>::new(), BTreeMap::new());
    for row in 0..table.rows() {
        let (store, figure) = (of_store[row], of_figure[row]);
        let place = *places.entry((store, figure)).or_insert_with(|| {
            let (store, figure) = (stores[store].clone(), figures[figure].clone());
            series.push(FigureSeries { store, figure, points: Vec::new() });
            series.len() - 1
        });
        series[place].points.push((at_us[row], values[row]));
    }
    series.iter_mut().for_each(|one| one.points.sort_by_key(|point| point.0));
    Ok(series)
}

/// Adds up what was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct FigureTotals(Vec<(String, Vec<(String, Sum)>)>);

#[derive(Debug, Clone, Copy)]
struct Sum {
    first: f64,
    last: f64,
    max: f64,
    sum: f64,
    count: f64,
}

impl FigureTotals {
    pub(crate) fn add(&mut self, look: &StoreLook) {
        if !look.measured {
            return;
        }
        let summed: usize = self.0.iter().map(|(_, figures)| figures.len()).sum();
        let index = self.0.iter().position(|(store, _)| *store == look.store).unwrap_or_else(|| {
            self.0.push((look.store.clone(), Vec::new()));
            self.0.len() - 1
        });
        let figures = &mut self.0[index].1;
        for (name, value) in look.figures.iter().map(|(name, value)| (name, *value)) {
            match figures.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => {
                    sum.last = value;
                    sum.max = sum.max.max(value);
                    sum.sum += value;
                    sum.count += 1.0;
                }
                None if summed < SUMMED_MAX => {
                    let sum = Sum { first: value, last: value, max: value, sum: value, count: 1.0 };
                    figures.push((name.clone(), sum));
                }
                None => {}
            }
        }
    }

    pub(crate) fn summary(&self) -> Vec<StoreFigures> {
        let figure = |(name, sum): &(String, Sum)| {
            let Sum { first, last, max, sum, count } = *sum;
            (name.clone(), FigureSummary { first, last, max, mean: sum / count })
        };
        let store = |(store, figures): &(String, Vec<(String, Sum)>)| StoreFigures {
            store: store.clone(),
            figures: figures.iter().map(figure).collect(),
        };
        self.0.iter().map(store).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_us: u64, store: &str, ops: f64) -> StoreLook {
        let figures = vec![("ops_per_s".into(), ops), ("used_memory".into(), 5.0)];
        StoreLook { at_us, store: store.into(), measured: at_us > 1, figures }
    }

    #[test]
    fn what_is_written_is_read_as_series() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = FiguresWriter::create(dir.path()).unwrap();
        for at_us in 1..4 {
            writer.add(&look(at_us, "a", at_us as f64)).unwrap();
            writer.add(&look(at_us, "b", 0.0)).unwrap();
        }
        writer.finish().unwrap();
        let series = read(&dir.path().join(STORES)).unwrap();
        let names: Vec<_> = series.iter().map(|one| (one.store.as_str(), one.figure.as_str())).collect();
        assert_eq!(
            names,
            [("a", "ops_per_s"), ("a", "used_memory"), ("b", "ops_per_s"), ("b", "used_memory")]
        );
        assert_eq!(series[0].points, [(1, 1.0), (2, 2.0), (3, 3.0)]);
    }

    #[test]
    fn only_what_was_measured_is_summed_up() {
        let mut totals = FigureTotals::default();
        [9.0, 4.0, 8.0, 3.0].iter().zip(1..).for_each(|(ops, at_us)| totals.add(&look(at_us, "a", *ops)));
        let summary = totals.summary();
        assert_eq!((summary.len(), summary[0].store.as_str()), (1, "a"));
        let of = FigureSummary { first: 4.0, last: 3.0, max: 8.0, mean: 5.0 };
        assert_eq!(summary[0].figures["ops_per_s"], of);
    }
}
