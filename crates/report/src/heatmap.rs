//! How many requests took how long, when: logarithmic rows over the bins of the time axis.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::Merged;

/// Rows to a decade as counted; neighbours are put together until they fit.
const ROWS_PER_DECADE: f64 = 60.0;
/// Most rows shown.
const ROWS_MAX: usize = 64;

/// The heat map of the good answers' response times, and above every row the requests without one.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct HeatMap {
    /// Ascending bounds, microseconds; row `i` is from `bounds_us[i]` to `bounds_us[i + 1]`.
    pub bounds_us: Vec<f64>,
    /// Bin, row, requests; only where there are any.
    pub cells: Vec<(usize, usize, u64)>,
    /// Bin, requests without a good answer; only where there are any.
    pub failed: Vec<(usize, u64)>,
}

/// Counts by bin and fine row.
#[derive(Debug, Default)]
pub(crate) struct HeatMapBuilder {
    cells: BTreeMap<(usize, usize), u64>,
    failed: Vec<(usize, u64)>,
}

impl HeatMapBuilder {
    /// Adds what ended in a bin.
    pub(crate) fn add(&mut self, bin: usize, response_time_us: &Merged, failed: u64) {
        if failed > 0 {
            self.failed.push((bin, failed));
        }
        for value in response_time_us.iter_recorded() {
            let us = response_time_us.median_equivalent(value.value_iterated_to()).max(1);
            let row = ((us as f64).log10() * ROWS_PER_DECADE).floor() as usize;
            *self.cells.entry((bin, row)).or_default() += value.count_at_value();
        }
    }

    /// Puts as many fine rows together as are needed to have at most [`ROWS_MAX`].
    pub(crate) fn build(self) -> HeatMap {
        let rows = || self.cells.keys().map(|&(_, row)| row);
        let (Some(first), Some(last)) = (rows().min(), rows().max()) else {
            return HeatMap { failed: self.failed, ..HeatMap::default() };
        };
        let together = (last + 1 - first).div_ceil(ROWS_MAX);
        let count = (last + 1 - first).div_ceil(together);
        let bound = |i: usize| {
            let us = 10f64.powf((first + i * together) as f64 / ROWS_PER_DECADE);
            crate::units::round(us)
        };
        let mut cells = BTreeMap::<(usize, usize), u64>::new();
        for ((bin, row), requests) in self.cells {
            *cells.entry((bin, (row - first) / together)).or_default() += requests;
        }
        let cells = cells.into_iter().map(|((bin, row), requests)| (bin, row, requests)).collect();
        HeatMap { bounds_us: (0..=count).map(bound).collect(), cells, failed: self.failed }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_record::new_merged;

    use super::*;

    fn of(values: &[(usize, u64, u64)]) -> HeatMap {
        let mut builder = HeatMapBuilder::default();
        for &(bin, us, requests) in values {
            let mut histogram = new_merged();
            histogram.record_n(us, requests).unwrap();
            builder.add(bin, &histogram, 0);
        }
        builder.build()
    }

    #[test]
    fn every_request_is_in_the_row_of_its_time() {
        let values = [(0, 130, 5), (0, 131, 1), (1, 45_000, 7), (9, 3_600_000_000, 1), (9, 0, 2)];
        let map = of(&values);
        assert!(map.bounds_us.len() <= ROWS_MAX + 1);
        assert!(map.bounds_us.is_sorted_by(|a, b| a < b));
        for (bin, us, _) in values {
            let inside = |row: usize| {
                let (low, high) = (map.bounds_us[row], map.bounds_us[row + 1]);
                (low * 0.999..high * 1.001).contains(&(us.max(1) as f64))
            };
            assert!(map.cells.iter().any(|&(b, row, _)| b == bin && inside(row)), "{us} in {map:?}");
        }
        assert_eq!(map.cells.iter().map(|cell| cell.2).sum::<u64>(), 16);
    }

    #[test]
    fn three_decades_fill_the_map_and_nothing_is_nothing() {
        let map = of(&[(0, 100, 1), (0, 99_000, 1)]);
        assert!((50..=ROWS_MAX).contains(&(map.bounds_us.len() - 1)), "{}", map.bounds_us.len());
        assert!(of(&[]).bounds_us.is_empty());
    }
}
