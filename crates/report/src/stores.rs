//! What the stores said of themselves, on the time axis of the load.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::{FigureSeries, Run};

use crate::bins::{Axis, Values};
use crate::units::round;

/// Most stores, or nodes of them, that are shown.
const SHOWN_MAX: usize = 24;
/// A look at the end of a second is about that second.
const ABOUT_US: u64 = 500_000;

/// One store over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoreSeries {
    /// What it is called.
    pub name: String,
    /// Its figures by name, in the order in which it tells them.
    pub figures: Vec<StoreFigure>,
}

/// One figure over time.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct StoreFigure {
    pub figure: String,
    pub values: Values,
}

/// Those of every store that was asked, up to a bound; what was never anything but 0 is left out.
pub(crate) fn over_time(run: &Run, axis: Axis) -> Vec<StoreSeries> {
    let mut stores: Vec<StoreSeries> = Vec::new();
    for series in shown(run) {
        let index = stores.iter().position(|store| store.name == series.store).unwrap_or_else(|| {
            stores.push(StoreSeries { name: series.store.clone(), figures: Vec::new() });
            stores.len() - 1
        });
        let (figure, values) = (series.figure.clone(), binned(series, axis));
        stores[index].figures.push(StoreFigure { figure, values });
    }
    stores
}

/// How many series there are to show.
pub(crate) fn count(run: &Run) -> u64 {
    shown(run).count() as u64
}

fn shown(run: &Run) -> impl Iterator<Item = &FigureSeries> {
    let mut names: Vec<&str> = Vec::new();
    for series in &run.stores {
        if names.len() < SHOWN_MAX && !names.contains(&series.store.as_str()) {
            names.push(&series.store);
        }
    }
    let speaks = |series: &FigureSeries| series.points.iter().any(|point| point.1 != 0.0);
    run.stores.iter().filter(move |series| names.contains(&series.store.as_str()) && speaks(series))
}

/// The mean of the looks of each bin.
fn binned(series: &FigureSeries, axis: Axis) -> Values {
    let mut sums = vec![(0.0, 0.0); axis.bins];
    for (at_us, value) in &series.points {
        if let Some(sum) = sums.get_mut(axis.bin(at_us.saturating_sub(ABOUT_US))) {
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0.0).then(|| round(sum / count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn looks_lie_in_the_second_that_they_are_about() {
        let (_dir, mut run) = test_run::airline();
        let series = |store: &str, figure: &str, points: &[(u64, f64)]| FigureSeries {
            store: store.into(),
            figure: figure.into(),
            points: points.to_vec(),
        };
        run.stores = vec![
            series("cache", "used_memory", &[(12_000, 5.0), (1_000_300, 7.0), (2_000_200, 9.0)]),
            series("cache", "evicted_keys_per_s", &[(2_000_200, 0.0)]),
            series("other", "used_memory", &[(3_000_100, 1.0), (9_000_000, 1.0)]),
        ];
        let stores = over_time(&run, Axis { bin_s: 1, bins: 4 });
        let of = |index: usize| (stores[index].name.as_str(), stores[index].figures[0].values.clone());
        // the first look is at the begin
        assert_eq!(of(0), ("cache", vec![Some(6.0), Some(9.0), None, None]));
        assert_eq!(of(1), ("other", vec![None, None, Some(1.0), None]));
        assert_eq!((stores[0].figures.len(), count(&run)), (1, 2), "what is always 0 is not shown");
    }
}
