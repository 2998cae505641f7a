//! Statements of databases.

use crate::template::Template;

/// A statement that is prepared once and executed with parameters.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// What is bound to its placeholders, in order.
    pub parameters: Vec<Template>,
}
