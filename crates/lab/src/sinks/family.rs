//! Metrics by name, before anybody has written them in a format of its own.

use tidemark_record::Merged;

/// What a metric counts or measures in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, or a share.
    None,
    Seconds,
    Bytes,
}

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows within a run.
    Counter,
    Gauge,
    /// Always 1; its labels say something.
    Info,
    /// Times.
    Histogram,
}

/// All series of one metric.
pub struct Family<'a> {
    /// Without prefix and unit: `response_time`.
    pub name: &'static str,
    pub unit: Unit,
    pub help: &'static str,
    pub kind: Kind,
    pub points: Vec<Point<'a>>,
}

/// One series: its labels, and what it is now.
pub struct Point<'a> {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value<'a>,
}

pub enum Value<'a> {
    Int(u64),
    Float(f64),
    /// Times of what ended well, microseconds, and how many did not.
    Times {
        good_us: &'a Merged,
        failed: u64,
    },
}

impl<'a> Family<'a> {
    pub fn new(name: &'static str, unit: Unit, kind: Kind, help: &'static str) -> Family<'a> {
        Family { name, unit, help, kind, points: Vec::new() }
    }

    /// Adds a series without labels.
    pub fn one(mut self, value: Value<'a>) -> Family<'a> {
        self.points.push(Point { labels: Vec::new(), value });
        self
    }

    /// Adds series with labels.
    pub fn each(
        mut self,
        points: impl IntoIterator<Item = (Vec<(&'static str, String)>, Value<'a>)>,
    ) -> Family<'a> {
        self.points.extend(points.into_iter().map(|(labels, value)| Point { labels, value }));
        self
    }
}
