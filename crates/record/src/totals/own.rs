//! What a metric of the scenario's own came to.

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
        let spread = || Spread {
            min: end(of.min),
            mean: of.mean(),
            p50: of.quantile(0.5),
            p90: of.quantile(0.9),
            p95: of.quantile(0.95),
            p99: of.quantile(0.99),
            p999: of.quantile(0.999),
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
