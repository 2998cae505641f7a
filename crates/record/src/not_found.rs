//! What answers did not have.

/// An extraction that found nothing, where the scenario does not say that this may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// The label of its request.
    pub label: String,
    /// The variable that was left without a value.
    pub variable: String,
    /// In how many answers that were good otherwise.
    pub answers: u64,
    /// In how many it found something.
    pub found: u64,
}
