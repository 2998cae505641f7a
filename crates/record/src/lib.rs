//! What a run is, and how it is kept.
//!
//! A [run](manifest::Manifest) is one execution of a scenario and the directory that it leaves. The driver's
//! threads hand over an [`ThreadInterval`] a second, the lab adds [`Sample`]s of every process and [`Event`]s.

pub mod event;
pub mod interval;
pub mod manifest;
pub mod sample;
pub mod summary;

pub use event::Event;
pub use interval::{ErrorExample, Outcome, Series, ThreadInterval};
pub use manifest::Manifest;
pub use sample::Sample;
pub use summary::Summary;

/// Lowest latency that a histogram tells apart, microseconds.
pub const HISTOGRAM_LOW_US: u64 = 1;
/// Highest latency that a histogram holds, microseconds: one hour. Longer ones count as this.
pub const HISTOGRAM_HIGH_US: u64 = 3_600_000_000;
/// Significant decimal digits that a histogram keeps.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// A latency histogram, microseconds; per second and series, so 32 bits a counter are enough.
pub type Histogram = hdrhistogram::Histogram<u32>;

/// An empty latency histogram with the bounds that every histogram of a run has.
pub fn new_histogram() -> Histogram {
    Histogram::new_with_bounds(HISTOGRAM_LOW_US, HISTOGRAM_HIGH_US, HISTOGRAM_DIGITS)
        .expect("the bounds are constants that hdrhistogram accepts")
}
