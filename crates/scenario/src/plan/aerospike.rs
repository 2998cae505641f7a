//! Requests to Aerospike.

use tidemark_wire::aerospike::Action;

use crate::template::Template;

/// A request about one record.
#[derive(Debug, Clone)]
pub struct AerospikeRequest {
    /// What is done with it.
    pub action: Action,
    /// The set that it is in; empty for none.
    pub set: String,
    /// Its key, a text.
    pub key: Template,
    /// Bins, each with what is written to it.
    pub bins: Vec<(String, Option<Template>)>,
    /// In how many seconds it expires; as the namespace has it if none.
    pub expires: Option<Template>,
    /// The generation that it must have.
    pub generation: Option<Template>,
}
