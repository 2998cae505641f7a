//! Carries an experiment out: starts, watches, stops.
pub mod child;
pub mod error;
pub mod health;
pub mod interrupt;
pub mod machine;
pub mod monitor;
pub mod pin;
pub mod proc;
pub mod sync;
pub mod system;
pub mod verdict;
pub use error::LabError;
pub use pin::Pins;

/// Exit status: every objective was met.
pub const EXIT_PASS: u8 = 0;
/// Exit status: an objective was missed.
pub const EXIT_FAIL: u8 = 1;
/// Exit status: wrong use, or input that cannot be read.
pub const EXIT_USAGE: u8 = 2;
/// Exit status: no measurement that can be trusted.
pub const EXIT_INVALID: u8 = 3;
/// Exit status: stopped by the user.
pub const EXIT_INTERRUPTED: u8 = 130;
