//! What decoders of replies have in common.

/// How large a reply may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of what it is made into, kept or only counted (Redis' and Aerospike's protocol: only where it is kept); where replies come in frames or messages, of each of these, too.
    pub body_bytes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        ReplyLimits { body_bytes: 16 << 20 }
    }
}
