//! The queues of others and a bare ring, each used the fastest way that its documentation shows: message by message, and in batches (in
//! place where it can do that, of `Vec`s where it cannot).

pub mod bare;
pub mod channels;
pub mod rings;
