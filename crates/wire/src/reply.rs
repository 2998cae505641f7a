//! What decoders of replies have in common.

/// How large a reply may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Most bytes of a reply's body. Redis and Aerospike: only where it is kept. Cassandra and PostgreSQL: also of each frame or
    /// message.
    pub body_bytes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        ReplyLimits { body_bytes: 16 << 20 }
    }
}

/// What the reply to a statement of PostgreSQL or Cassandra is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Done, of a statement without rows; the body is PostgreSQL's command tag, Cassandra's is empty.
    #[default]
    Done,
    /// Rows; the body is a JSON array.
    Rows,
    /// A statement that has rows had none; the body is an empty array.
    NoRows,
    /// An error; the body is its code and its message.
    Error,
}
