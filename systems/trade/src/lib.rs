//! The trade service: takes trades and counts them. It does next to nothing, so that what is measured is how it is
//! called: over REST, by gRPC, or with many calls in a frame of a WebSocket.
//!
//! ```
//! use tidemark_service::{Options, ReferenceSystem, Stop};
//! use tidemark_rpc::{CallError, Client, ClientOptions, RestClient};
//! use tidemark_trade::{Trade, TradeSystem, TradesClient};
//!
//! let listen = "127.0.0.1:0".parse()?;
//! let server = TradeSystem::bind(Options { listen, workers: Some(1), announce: false, ..Options::default() })?;
//! let (addr, stop) = (server.addr(), Stop::new());
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.serve(stop.triggered())
//! });
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let calls = TradesClient::new(Client::connect(addr, ClientOptions::default()));
//!     let rest = TradesClient::new(RestClient::new(addr));
//!     assert!(calls.trade(Trade { name: "ibm".into(), amount: 1 }).await?);
//!     assert!(rest.trade(Trade { name: "ibm".into(), amount: 1 }).await?);
//!     assert_eq!(rest.count().await?, 2);
//!     Ok::<(), CallError>(())
//! })?;
//! stop.trigger();
//! serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it answers
//!
//! - `PUT /trade` with `{"name":"ibm","amount":1}`: `true`; 400 with the reason for what is no trade.
//! - `GET /count`: how many trades there were since it started. They are counted and not kept.
//! - the same by gRPC, over HTTP/2 on the same port (by prior knowledge): `trade.Trades/Take`, `TakeEach` (a stream both
//!   ways) and `Count`, with `grpc.health.v1` and reflection. A call from which no whole message comes for 30 s ends
//!   with `DEADLINE_EXCEEDED`; one whose client takes nothing of an answer for as long is reset.
//! - the same as calls `trade.trade` and `trade.count` over a WebSocket at `/rpc`; `/openapi.json` describes both.

mod description;
mod grpc;
mod serve;
mod trades;

pub use serve::TradeSystem;
pub use trades::{Trade, Trades, TradesClient, TradesService};
