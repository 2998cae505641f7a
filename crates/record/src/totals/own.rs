//! What a metric of the scenario's own came to.

use crate::distribution::supports;
use crate::summary::{Own, Spread, ratio};
use crate::{OwnKind, OwnMetric, OwnValues};

/// What was measured of a metric of the scenario's own within the measured window.
#[derive(Debug, Clone)]
pub struct OwnTotals {
    /// The metric.
    pub metric: OwnMetric,
    /// Its numbers.
    pub values: OwnValues,
}

impl OwnTotals {
    pub(super) fn new(metric: OwnMetric) -> OwnTotals {
        OwnTotals { metric, values: OwnValues::default() }
    }

    /// How many numbers there were each second, or how much a counter counted, in a window of so many seconds.
    pub fn per_s(&self, window_s: f64) -> f64 {
        let counted = match self.metric.kind {
            OwnKind::Histogram => self.values.count as f64,
            OwnKind::Counter => self.values.sum,
        };
        ratio(counted, window_s)
    }

    /// In few numbers.
    pub(super) fn summary(&self, window_s: f64) -> Own {
        let OwnTotals { metric: OwnMetric { name, kind, unit }, values: of } = self;
        let end = |number| (of.count > 0).then_some(number);
        let percentile = |share| of.quantile(share).filter(|_| supports(share, of.count));
        let spread = || Spread {
            min: end(of.min),
            mean: of.mean(),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            max: end(of.max),
        };
        Own {
            metric: name.clone(),
            kind: *kind,
            unit: unit.clone(),
            count: of.count,
            sum: of.sum,
            per_s: self.per_s(window_s),
            values: (*kind == OwnKind::Histogram).then(spread),
            no_number: of.no_number,
            example: of.example.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnSeries;

    #[test]
    fn so_few_numbers_have_no_such_percentile() {
        let spread = |count: u32| {
            let metric = OwnMetric { name: "n".into(), kind: OwnKind::Histogram, unit: String::new() };
            let mut totals = OwnTotals::new(metric);
            let mut series = OwnSeries::empty(0, OwnKind::Histogram);
            (0..count).for_each(|number| series.add(f64::from(number)));
            totals.values.add(&series);
            totals.summary(1.0).values.unwrap()
        };
        let [one, few, many] = [1, 999, 1_000].map(spread);
        assert_eq!((one.min, one.p50, one.p99, one.max), (Some(0.0), None, None, Some(0.0)));
        assert!(few.p99.is_some() && few.p999.is_none(), "{few:?}");
        assert!(many.p999.is_some(), "{many:?}");
    }
}
