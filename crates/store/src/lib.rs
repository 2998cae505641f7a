//! Data tiers behind small traits named after what systems need.
pub mod airline;
mod answer;
mod durability;
mod error;

pub use answer::Answer;
pub use durability::{Durability, UnknownDurability};
pub use error::StoreError;

/// At most this many sessions are removed by one call of [`airline::Sessions::sweep`].
pub const SWEEP_SESSIONS_MAX: usize = 1024;
