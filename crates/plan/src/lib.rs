//! Simulates the tiers of a system in virtual time, and says how many instances a load takes.
//!
//! Nothing here reads a clock, a file or a socket; the same seed gives the same outcome.
//!
//! - [`Model`]: load, tiers, and the calls between them.
//! - [`simulate()`]: what becomes of requests.
//! - [`slice()`], [`sample()`]: the same of thousands of instances, and of whole days.
//! - [`Question::answer`]: the fewest instances that keep objectives; [`curve()`] and [`sensitivity()`] go with it.
//! - [`scalability()`]: how throughput grows with cores, by the Universal Scalability Law.
//!
//! ```
//! use tidemark_plan::{Arrivals, Call, Distribution, Load, Model, Span, Tier, simulate};
//!
//! let model = Model {
//!     load: Load::Open(Arrivals::poisson(800.0)),
//!     entry: Call::new(0),
//!     request: Distribution::Constant(0.0),
//!     tiers: vec![Tier::new("web", 1, 1, Distribution::Exponential(0.001))],
//!     zones: 1,
//!     changes: Vec::new(),
//! };
//! let outcome = simulate(&model, &Span::of_requests(200_000.0, 800.0, 1)).unwrap();
//! // M/M/1: the mean response time is 1 / (1000/s - 800/s)
//! assert!((outcome.good.mean_s() / 0.005 - 1.0).abs() < 0.1);
//! ```

mod capacity;
mod distribution;
mod model;
mod reduce;
mod scalability;
mod simulate;
mod times;

pub use capacity::{Answer, Objective, Point, Question, Sensitivity, Survives, curve, sensitivity};
pub use distribution::{Distribution, Measured};
pub use model::{
    Arrivals, Balancing, Breaker, Call, Change, Contention, Happening, INSTANCES_MAX, Load, Model, RateFrom,
    Scaling, TIERS_MAX, Tier, UNBOUNDED, Work, Wrong,
};
pub use reduce::{SLICE_LEAST, Sampling, day, sample, slice};
pub use scalability::{Interval, Scalability, SizePoint, scalability};
pub use simulate::{Outcome, Span, Stretch, TierOutcome, simulate};
pub use times::Times;
