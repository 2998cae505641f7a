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
