//! A server that behaves badly in ways that are known, and writes down what it did.
//!
//! It exists so that a load generator can be held against the truth: [`Server::start`] begins one on a thread of its
//! own, with a [`Behaviour`]; [`Server::stop`] ends it and returns the [`Truth`], which holds for every request how
//! long the server kept it, from when it was read to when its answer was written. Whoever drives the server can only
//! have seen longer times than these, and on a machine with free cores hardly longer ones.
//!
//! # How it fails
//!
//! Each by an exact count, never by chance, and [`Truth::faults`] says how often it came to pass:
//!
//! - **By request**: [`Behaviour::faults`] is a list that is gone through in turn, and [`Misbehaviour::of_every`] makes one in
//!   which so many of so many fail: no answer, a late one, one byte by byte, another status, another content, a reset
//!   before or within it, an end of the connection, bytes that are no HTTP, a peer that vanishes.
//! - **By URL**: `/any/path?fault=status:500@1/20` is answered 500 once in twenty requests with this text, whatever the
//!   list says; [`Misbehaviours`] has the form. A text that is none is 400.
//! - **By connection**: [`Behaviour::reset_every`].
//! - **By time**: [`Behaviour::freeze`] answers nothing for a while; with [`Behaviour::down`] there is no server for a
//!   while, connections are reset and new ones refused. [`Refusing`] is an address at which nobody ever is.
//! - **By load**: [`Behaviour::capacity_per_s`] serves one after the other, so that more than that is a backlog;
//!   [`Behaviour::workers`] are a queue whose limit is known by theory, with [`Pauses`], or slower from minute to minute.
//!
//! # How it is made
//!
//! One thread and one event loop serve thousands of delayed requests at once; delays end by a timer of the kernel
//! that is exact to some tens of microseconds, without spinning.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::time::Duration;
//!
//! use tidemark_truth::{Behaviour, Delay, Server};
//!
//! # fn main() -> std::io::Result<()> {
//! let delay = Delay::Fixed(Duration::from_millis(5));
//! let server = Server::start(Behaviour { delays: vec![delay], ..Behaviour::default() })?;
//! let mut stream = std::net::TcpStream::connect(server.address())?;
//! stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
//! assert!(stream.read(&mut [0; 100])? > 0);
//!
//! let truth = server.stop()?;
//! assert_eq!(truth.answered, 1);
//! assert!(truth.kept_us[0].min() >= 4_990);
//! # Ok(())
//! # }
//! ```

mod behaviour;
mod delay;
mod http2;
mod line;
mod misbehaviour;
mod peer;
mod refusing;
mod server;
mod serving;
mod timer;
mod tls;
mod truth;

pub use behaviour::{Behaviour, Down, Freeze};
pub use delay::Delay;
pub use http2::{Http2Behaviour, Http2Misbehaviour, Http2Server, Http2Truth};
pub use line::Pauses;
pub use misbehaviour::{Misbehaviour, Misbehaviours};
pub use refusing::Refusing;
pub use server::Server;
pub use truth::Truth;
