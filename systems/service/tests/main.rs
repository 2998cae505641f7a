//! The server and what systems have of it, from outside. One binary: each would be linked with everything again.

mod bounds;
mod client;
mod http;
mod reference;
mod serving;
