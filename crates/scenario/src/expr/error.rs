//! What is wrong with an expression: as it is written, or when it is evaluated.

use std::sync::Arc;

use crate::slot::SlotIndex;

/// A mistake in an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at character {offset} of the expression")]
pub struct ExprError {
    /// Byte at which it stands, counted from the expression's begin.
    pub offset: usize,
    /// How many bytes it is long, at least 1.
    pub length: usize,
    /// What is wrong, and what to do.
    pub reason: String,
}

/// What a text with holes lacks, so that it cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// This variable is not set.
    Variable(SlotIndex),
    /// An expression has no value.
    Expression {
        /// As its author wrote it.
        text: Arc<str>,
        /// Why.
        reason: &'static str,
    },
}

impl Unmet {
    /// For a person; `names` are those of the session's variables.
    pub fn describe(&self, names: &[String]) -> String {
        match self {
            Unmet::Variable(slot) => match names.get(usize::from(*slot)) {
                Some(name) => format!("variable \"{name}\" is not set"),
                None => "a variable is not set".to_owned(),
            },
            Unmet::Expression { text, reason } => format!("{text}: {reason}"),
        }
    }
}
