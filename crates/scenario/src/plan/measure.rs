//! What a scenario measures itself.

/// Most metrics of its own that a scenario has.
pub const METRICS_MAX: usize = 100;

/// A metric of the scenario's own; [`Op::Measure`](super::Op::Measure) names it by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricPlan {
    /// Its name.
    pub name: String,
    /// What becomes of its numbers.
    pub kind: MetricKind,
    /// What they are in, for a person; may be empty.
    pub unit: String,
}

tidemark_record::named! {
    /// What becomes of the numbers of a metric.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MetricKind {
        /// Their distribution is told: mean, percentiles, largest.
        Histogram = "histogram",
        /// They are added up.
        Counter = "counter",
    }
}
