//! The queues from outside. One binary: each would be linked with everything again.
#![cfg(not(loom))]

mod messages;
mod properties;
mod queue;
mod reactive_streams;
mod tasks;
