//! What every shipped system stands on: a server with health, metrics, logs, bounds and an orderly stop.
//!
//! A system brings an axum [`Router`](axum::Router), made into a [`System`] with its background work and its own
//! metrics. A [`Server`] binds an address, lets the system start while it already answers `/health` with 503,
//! then serves it on a number of workers until it is told to stop, and finishes what is in flight. Connections are spread
//! evenly over the workers.
//!
//! ```
//! use axum::{Router, routing::get};
//! use std::io::{Read, Write};
//! use tidemark_service::{Limits, Server, Stop};
//!
//! let router = Router::new().route("/greet", get(|| async { "hello" }));
//! let stop = Stop::new();
//! let server = Server::new(router).name("greeter").workers(1).limits(Limits::default()).bind()?;
//! let addr = server.addr();
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.serve(stop.triggered())
//! });
//!
//! let mut client = std::net::TcpStream::connect(addr)?;
//! client.write_all(b"GET /greet HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.ends_with("hello") || answer.contains("503")); // 503 until the system has started
//!
//! stop.trigger();
//! let served = serving.join().unwrap()?;
//! assert_eq!(served.connections_cut, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is asked for far more often than all else, or leaves HTTP, is an [`Endpoint`], which is asked before the router.
//!
//! A system that people serve by its name is a [`ReferenceSystem`]: name, settings and how it starts. Everything that is
//! the same for all, from its [`Options`] to the stop, comes with that; one line in a list of [`SystemEntry`] makes it
//! known to a program.
//!
//! A system that tells of its operations one by one enters them in an [`OperationLog`].
//!
//! # How it is made
//!
//! Each worker is a thread with an event loop of its own. The calling thread accepts and gives each connection to the
//! worker that has the fewest, which owns it from then on. Counters are kept for each worker and route and added up when
//! `/metrics` is asked for.
//!
//! hyper speaks HTTP, axum routes. What is around them: bounds on what a client may send, hold and take its time for,
//! one timer for each connection, counters, and the stop. A request is whole before anybody works on it. A system most of
//! whose requests are for one path has a [fast path](System::fast_path) past the router.
//!
//! Each connection has buffers of hyper's, 16 KiB for a usual one, also while it waits; what it holds beyond that is
//! entered in one account for all ([`Limits::held_bytes_max`]).
//!
//! # What holds
//!
//! - A system's connections settle with one account whenever they wait ([`Held`]): what is held is bounded, not what
//!   is unsent.
//! - Logging its operations never delays a system ([`OperationLog`]): it is bounded, and what does not fit is dropped
//!   and counted.

/// Where a system describes its paths, as OpenAPI.
pub const OPENAPI_PATH: &str = "/openapi.json";

mod answer;
mod connection;
mod dispatch;
pub mod encode;
mod endpoint;
mod error;
mod framing;
mod handle;
mod held;
mod limits;
mod logs;
mod metrics;
mod objects;
mod open_files;
mod operation_log;
mod options;
mod outgoing;
mod pace;
mod page;
mod process;
mod publish;
mod reference;
mod request;
mod server;
mod settings;
mod shared;
mod stop;
mod timings;
mod worker;

pub use answer::{Answer, json, not_allowed, reason, text, typed};
pub use endpoint::{Answering, Begun, Endpoint, EndpointRequest, RouteId, Starting, Upgrade, Upgraded};
pub use error::ServiceError;
pub use held::Held;
pub use limits::Limits;
pub use logs::{FILTER_VARIABLE, FORM_VARIABLE, LogForm, start_logs};
pub use objects::{Objects, read_json};
pub use operation_log::OperationLog;
pub use options::Options;
pub use pace::Pace;
pub use page::page;
pub use prometheus_client;
pub use reference::{ReferenceSystem, SystemEntry};
pub use server::{BoundServer, Refuse, Served, Server, StartError, System};
pub use settings::{Setting, SettingError, Settings, joined};
pub use stop::{Stop, signals};
pub use tidemark_store::Durability;
pub use timings::Timings;
pub use worker::worker_index;
