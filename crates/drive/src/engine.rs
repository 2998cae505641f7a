//! The loop of each driving thread, and what it does with requests: due, on their way, answered, written down.
//!
//! It stands on all other folders, and none of them on it.

pub(crate) mod ahead;
pub(crate) mod branches;
pub(crate) mod codes;
pub(crate) mod connecting;
pub(crate) mod connection;
pub(crate) mod drive;
pub(crate) mod exchange;
pub(crate) mod judging;
pub(crate) mod ledger;
pub(crate) mod measuring;
pub(crate) mod programs;
pub(crate) mod redirect;
pub(crate) mod request;
pub(crate) mod set_cookies;
pub(crate) mod sockets;
pub(crate) mod thread;
pub(crate) mod timers;
pub(crate) mod waiting;
