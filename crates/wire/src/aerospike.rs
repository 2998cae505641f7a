//! Aerospike's protocol, as a client speaks it: requests about one record, all records of a set, and what a node tells of
//! itself.
//!
//! Everything is in frames: two bytes of version and kind, six of length, then a payload. A message about records has 22 bytes of
//! flags and counts, fields (namespace, set, digest of the key), and an operation for each bin. A node carries the
//! requests of a connection out one after the other, and answers in that order.
//!
//! A record is found by a RIPEMD-160 of set and key, so that the key itself is not sent. Values are written as texts, numbers
//! only where they are added; all kinds are read.
//!
//! ```
//! use tidemark_wire::aerospike::{Action, Extra, Form, Kind, ReplyDecoder, ReplyLimits, Wanted, end};
//!
//! let form = Form::new(Action::Put, "test", "people", &["name"]);
//! let mut out = Vec::new();
//! let begin = form.begin(b"7", Extra::default(), &mut out);
//! form.value(0, &mut out, |out| {
//!     out.extend_from_slice(b"ann");
//!     Ok::<(), ()>(())
//! }).unwrap();
//! end(begin, &mut out);
//!
//! let mut decoder = ReplyDecoder::new(ReplyLimits::default());
//! decoder.start(Wanted::Nothing, true);
//! let mut reply = vec![2, 3, 0, 0, 0, 0, 0, 22, 22];
//! reply.resize(30, 0);
//! assert!(decoder.decode(&reply)?.complete);
//! assert_eq!(decoder.kind(), Kind::Done);
//! # Ok::<(), tidemark_wire::aerospike::ReplyError>(())
//! ```

mod code;
mod frame;
mod info;
mod message;
mod reply;
mod request;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

pub use crate::reply::ReplyLimits;
pub use code::{Kind, NOT_AUTHENTICATED, words};
pub use frame::{ReplyError, end};
pub use info::{InfoDecoder, ask};
pub use reply::{ReplyDecoder, Wanted};
pub use request::{Action, Extra, Form, digest};
pub use scan::{Found, PARTITIONS, Records, scan};

/// The longest name of a namespace.
pub const NAMESPACE_BYTES_MAX: usize = 31;
/// The longest name of a set.
pub const SET_BYTES_MAX: usize = 63;
/// The longest name of a bin.
pub const BIN_BYTES_MAX: usize = 15;

/// What [`Extra::expires_s`] may be.
pub const EXPIRES_S: RangeInclusive<i64> = -2..=i32::MAX as i64;
/// What [`Extra::generation`] may be: a server counts it in 16 bits.
pub const GENERATIONS: RangeInclusive<i64> = 1..=u16::MAX as i64;

/// Whether this can name a set, or nothing: records need not be in one.
pub fn is_set(name: &str) -> bool {
    name.len() <= SET_BYTES_MAX && !name.contains([':', ';', '\0']) && name != "null"
}

/// Whether this can name a bin.
pub fn is_bin(name: &str) -> bool {
    (1..=BIN_BYTES_MAX).contains(&name.len()) && !name.contains('\0')
}

/// Whether this can name a namespace.
pub fn is_namespace(name: &str) -> bool {
    (1..=NAMESPACE_BYTES_MAX).contains(&name.len()) && !name.contains([':', ';', '/', '\0']) && name != "null"
}
