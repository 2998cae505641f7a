//! Ratios of a run's own counts.

use crate::grammar::kinds::words;

/// Most ratios that a scenario has.
pub const RATIOS_MAX: usize = 100;

/// A ratio of counts: the sum of some, divided by the sum of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatioPlan {
    /// Its name.
    pub name: String,
    /// What is divided.
    pub of: Vec<Counted>,
    /// What it is divided by.
    pub per: Vec<Counted>,
    /// How it is shown.
    pub form: RatioForm,
}

/// What a ratio counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// What a counter added up: an index into the plan's metrics.
    Counter(u16),
    /// Good answers of a label: an index into the plan's labels.
    Label(u16),
}

words! {
    /// How a ratio is shown.
    #[derive(Default)]
    pub enum RatioForm {
        /// As a figure.
        #[default]
        Plain = "plain",
        /// In per cent.
        Percent = "percent",
    }
}
