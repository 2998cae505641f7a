//! How instances of a system find and call each other.
//!
//! A [`Client`] calls one other service. It knows the service's instances from a [`Source`] and chooses one for each call.
//! It retries where that is safe, within a budget. When too many calls have failed, it refuses calls for a while
//! ([`breaker`]). A [`Member`] is an instance in a registry: it registers once it is served, says that it is there, and
//! leaves before it stops. [`RegistrySystem`] is a small registry that speaks Eureka's REST.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tidemark_mesh::{Balance, Client, ClientOptions, Method, Source};
//!
//! let client = Client::new(ClientOptions {
//!     service: "auth".into(),
//!     commands: &["ValidateToken"],
//!     group: "Airline",
//!     pool_name: "AirlinePool",
//!     pool: 100,
//!     timeout: Duration::from_secs(1),
//!     breaker: Default::default(),
//!     balance: Balance::TwoChoices,
//!     hedge: Duration::ZERO,
//!     source: Source::Fixed(vec!["127.0.0.1:9001".into(), "127.0.0.1:9002".into()]),
//! });
//! let reply = client.call(0, Method::Get, "/rest/api/authtoken/status").await?;
//! assert_eq!(reply.status, 200);
//! # Ok(())
//! # }
//! ```
//!
//! # How it is made
//!
//! Each worker thread has connections of its own to each instance, on its own event loop, so a call crosses no threads.
//! Reads are pipelined: all that are made in one turn leave in one write, and so their answers come. A write has its own
//! connection, up to 32 for each thread and instance; beyond that, writes share. A read never waits behind a write.
//!
//! The budget of retries is tower's (`TpsBudget`). The choice of an instance, the breaker, hedging and the bound on calls
//! are our own: tower's balancer owns its connections and hands out one at a time, behind a lock that all threads would
//! share.
//!
//! # What holds
//!
//! - A call takes no longer than its timeout, all attempts together. What is left of it goes along as `x-deadline-ms`.
//! - A POST is sent again only where nobody has worked on it, for certain: it was not sent, or the other side had said
//!   that it closes.
//! - Retries and hedges are at most a fifth of the calls, beside ten a second.
//! - An answer that comes late is thrown away; it is never taken for that of another request.
//! - Without a registry the last list of instances holds. An empty list replaces none.

// the event of a command has some fifty fields
#![recursion_limit = "256"]

pub mod breaker;
mod client;
mod command;
mod connection;
mod discovery;
mod events;
mod http;
mod instances;
mod member;
mod peak;
mod registry;
mod settings;
mod view;

pub use client::{CallError, Client, ClientOptions, Method};
pub use connection::Reply;
pub use discovery::{Registration, Registry, RegistryError, Source};
pub use instances::{Balance, INSTANCES_MAX};
pub use member::Member;
pub use registry::RegistrySystem;
pub use settings::{CLIENT_SETTINGS, CallSettings, MEMBER_SETTINGS, MemberSettings};
pub use view::{encode, routes};
