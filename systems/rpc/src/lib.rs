//! One trait is a service: REST routes, calls over a WebSocket, clients for both, and its OpenAPI description.
//!
//! [`service`] on a trait `Trade` adds two types beside it: `TradeService(T)`, which makes whatever
//! implements the trait a part of a [`System`](tidemark_service::System), and `TradeClient`, which calls it from elsewhere. A
//! method is `async`, takes `&self` and arguments that own what they hold, and returns a value or `Result<value, E>`
//! with `E: Into<`[`Refusal`]`>`. What goes over the wire is serialised by serde and described by schemars.
//!
//! A method with `#[get("/path/{id}")]` (or `put`, `post`, `patch`, `delete`) is a REST route: the arguments that the
//! path names come from there, the one marked `#[body]` is the body in JSON, all others are fields of the query. Every
//! method can be called over the WebSocket at `/rpc`, whose format is described in `docs/rpc.md`. The description is
//! at `/openapi.json`.
//!
//! ```
//! use tidemark_rpc::{Calls, Client, ClientOptions, RestClient, service};
//! use tidemark_service::{Server, Stop, System};
//!
//! /// Adds.
//! #[service]
//! pub trait Adder {
//!     /// The sum of two numbers.
//!     #[get("/sum/{a}")]
//!     async fn sum(&self, a: u32, b: u32) -> u64;
//! }
//!
//! struct Plain;
//! impl Adder for Plain {
//!     async fn sum(&self, a: u32, b: u32) -> u64 {
//!         u64::from(a) + u64::from(b)
//!     }
//! }
//!
//! let server = Server::new(System::default().endpoint(Calls::new().service(AdderService(Plain)))).workers(1).bind()?;
//! let (addr, stop) = (server.addr(), Stop::new());
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.serve(stop.triggered())
//! });
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let fast = AdderClient::new(Client::connect(addr, ClientOptions::default()));
//!     assert_eq!(fast.sum(1, 2).await?, 3);
//!     let plain = AdderClient::new(RestClient::new(addr));
//!     assert_eq!(plain.sum(1, 2).await?, 3);
//!     Ok::<(), tidemark_rpc::CallError>(())
//! })?;
//! stop.trigger();
//! serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//!
//! - The calls of a connection begin in the order in which they were sent, and are answered in any. Answers belong to
//!   their call, whatever shares the frame or the connection.
//! - Each call has a deadline, which travels with it. When it is over, or the caller drops the call, or the connection
//!   ends, the work on it is dropped at its next `await`.
//! - Nothing waits for a batch to fill: what is there when the socket can take it is sent together.
//! - The server works on a bounded number of calls of a connection and reads no further meanwhile, nor while its
//!   answers are not read. The client sends no more than the server works on; more wait, a bounded number.
//! - A call in flight when the connection is cut is an error, and never sent again. Calls made while there is no
//!   connection wait for it, or fail at once, as [`ClientOptions`] say.

mod call_buffer;
mod calls;
mod client;
mod connection;
mod describe;
mod form;
mod lanes;
mod metrics;
mod openapi;
mod refusal;
mod request;
mod routes;
mod serve;
mod upgrade;

pub use calls::Calls;
pub use client::{
    CallError, Calling, Client, ClientOptions, ClientStats, Proxy, RestCall, RestClient, Through, WhenClosed,
};
pub use describe::{Argument, Description, Method, Place, Route, Verb, schema_of};
pub use form::Form;
pub use refusal::Refusal;
pub use request::Request;
pub use serve::Service;
/// Makes a trait a service.
pub use tidemark_rpc_macros::service;

/// Where calls over a WebSocket are taken.
pub const RPC_PATH: &str = "/rpc";
/// Calls of one connection that are worked on at once.
pub const IN_FLIGHT_MAX: usize = 8192;
