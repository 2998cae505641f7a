//! What goes wrong in a fleet, in words for a person.

/// Why a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// What is asked for cannot be: a wrong address, a name that is taken, too few agents.
    #[error("{0}")]
    Usage(String),
    /// NATS cannot be reached, or does not do what it is asked.
    #[error("{0}")]
    Nats(String),
    /// An agent does not take part.
    #[error("agent {name}: {reason}")]
    Agent {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

impl FleetError {
    /// What NATS did not do, and why.
    pub(crate) fn nats(what: &str, why: impl std::fmt::Display) -> FleetError {
        FleetError::Nats(format!("NATS: {what}: {why}"))
    }
}
