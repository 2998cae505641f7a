//! A server that behaves badly in ways that are known, and writes down what it did.
//!
//! It exists so that a load generator can be held against the truth: [`Server::start`] begins one on a thread of its
//! own, with a [`Behaviour`]; [`Server::stop`] ends it and returns the [`Truth`], which holds for every request how
//! long the server kept it, from when it was read to when its answer was written. Whoever drives the server can only
//! have seen longer times than these, and on a machine with free cores hardly longer ones.
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
mod peer;
mod server;
mod timer;
mod tls;
mod truth;

pub use behaviour::{Behaviour, Fault, Freeze};
pub use delay::Delay;
pub use http2::{Http2Behaviour, Http2Fault, Http2Server, Http2Truth};
pub use server::Server;
pub use truth::Truth;
