//! The mesh from outside. One binary: each would be linked with everything again.

mod calls;
#[path = "../../service/tests/client/mod.rs"]
mod client;
mod registries;
mod toy;
