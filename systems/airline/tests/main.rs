//! The airline from outside. One binary: each would be linked with everything again.

mod airline;
mod auth;
#[path = "../../service/tests/client/mod.rs"]
mod client;
mod contract;
mod data;
mod data_lost;
mod life;
mod pages;
mod split;
mod stores;
