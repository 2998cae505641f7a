//! Metrics by name, before anybody has written them in a format of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;

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
    pub labels: Vec<(Cow<'static, str>, String)>,
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

/// Labels of a series by names of our own.
pub type Labels = Vec<(&'static str, String)>;

fn owned(labels: Labels) -> Vec<(Cow<'static, str>, String)> {
    labels.into_iter().map(|(name, text)| (Cow::Borrowed(name), text)).collect()
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
    pub fn each(mut self, points: impl IntoIterator<Item = (Labels, Value<'a>)>) -> Family<'a> {
        self.points.extend(points.into_iter().map(|(labels, value)| Point { labels: owned(labels), value }));
        self
    }

    /// The same where the scenario has tags for some of them, which become labels.
    pub fn each_tagged<'t>(
        mut self,
        points: impl IntoIterator<Item = (Labels, &'t BTreeMap<String, String>, Value<'a>)>,
    ) -> Family<'a> {
        self.points.extend(points.into_iter().map(|(labels, tags, value)| {
            let tags = tags.iter().map(|(name, text)| (Cow::Owned(name.clone()), text.clone()));
            Point { labels: owned(labels).into_iter().chain(tags).collect(), value }
        }));
        self
    }
}
