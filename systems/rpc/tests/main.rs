//! Services of one trait, from outside. One binary: each would be linked with everything again.

mod bounds;
mod calls;
#[path = "../../service/tests/client/mod.rs"]
mod client;
mod conversation;
mod conversations;
mod fixture;
mod wire;
