//! Statements of databases.

use crate::template::Template;

/// A statement that is prepared once and executed with parameters.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// What is bound to its placeholders, in order.
    pub parameters: Vec<Template>,
    /// What it is to a transaction of several.
    pub part: TransactionPart,
}

/// What a statement is to a transaction of several statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransactionPart {
    /// Nothing: it is a transaction of its own.
    #[default]
    Alone,
    /// It begins one.
    Begin,
    /// It is in one, which is open behind it.
    Within,
    /// It ends one well.
    Commit,
    /// It undoes one.
    Rollback,
}
