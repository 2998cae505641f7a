//! The queues from outside. One binary: each would be linked with everything again.
#![cfg(not(loom))]

#[cfg(all(feature = "kafka", not(miri)))]
mod kafka;
mod messages;
mod properties;
mod queue;
mod reactive_streams;
#[cfg(all(any(feature = "kafka", feature = "websocket"), not(miri)))]
mod remote;
mod tasks;
#[cfg(all(feature = "websocket", not(miri)))]
mod websocket;
