//! The airline: the public Acme Air benchmark's service, as one process.
//!
//! Customers log in, ask for flights, book, list and cancel, read and change their profile. Every path of the two
//! public servers is there, with and without `/acmeair-webapp` in front, and every answer has the fields of both,
//! so that their driver, their pages and their mobile adapter all work with it. `/openapi.json` describes it.
//!
//! ```
//! use std::io::{Read, Write};
//! use tidemark_airline::Airline;
//! use tidemark_service::{Durability, Options, ReferenceSystem, Stop};
//!
//! let listen = "127.0.0.1:0".parse()?;
//! let options = Options { listen, durability: Durability::Memory, workers: Some(1), announce: false,
//!     ..Options::default() };
//! let airline = Airline::bind(options)?;
//! let addr = airline.addr();
//! let stop = Stop::new();
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || airline.serve(stop.triggered())
//! });
//!
//! let health = loop {
//!     let mut client = std::net::TcpStream::connect(addr)?;
//!     client.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer)?;
//!     if answer.starts_with("HTTP/1.1 200") {
//!         break answer;
//!     }
//! };
//! assert!(health.contains("\"system\":\"airline\""));
//! stop.trigger();
//! serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Decisions where the public servers differ
//!
//! - A path that does not exist is 404 and a method that a path does not have is 405, logged in or not. Then comes
//!   the session: everything about flights, bookings and customers is 403 without a valid one. Then the input:
//!   400 with a JSON reason (415 for a form that is none).
//! - A customer sees and changes only what is theirs: profile, list, booking by number, booking and cancelling for
//!   another user are 403.
//! - Unknown flights cannot be booked: 404, or 400 for what is not even an id. The return flight is ignored when
//!   `oneWayFlight=true`, the segment ids always.
//! - Cancelling what is not there is the same 200 as cancelling what is.
//! - Loading adds the customers that are missing and touches nothing else; doing it twice changes nothing.
//! - Days are days in UTC. The window of flights begins today and follows the calendar; see [`timetable`].
//! - Customers, sessions and bookings are each where the settings say: here, in the data tier ([`data`]), in PostgreSQL,
//!   in Redis (`stores`).
//! - Sessions can be with the auth service ([`AirlineAuth`], `sessions_in=auth`); passwords are checked here all the
//!   same. An unknown session is 403. Without an answer of the auth service nobody is let in: every call that needs a
//!   session is 503 with `Retry-After`, a login too, and a logout as well, for the session is still there.
//! - Sessions last 24 hours from the login, however much they are used; expired ones are swept every half minute.
//! - The session's cookie is `HttpOnly; SameSite=Lax`, for every client. What a page of another site makes a browser send
//!   is refused: 403 for each POST, a logout and a load (`other_sites`).
//! - Passwords are stored and compared as they are, because the benchmark does; they are never shown or logged.
//!
//! # Several airlines
//!
//! Airlines that share their data are one airline to those who use it. With `customers_in=data`, `sessions_in=data` and
//! `bookings_in=data` all of it is in one [data tier](data), a process of its own with the embedded store behind it; the
//! airlines keep nothing. What one has acknowledged is what the next read of any other finds. While that process is gone,
//! everything that needs it is answered 503; its connections are opened again by themselves.
//!
//! # What stands where
//!
//! [`airports`] and `segments` are the map, [`timetable`] the flights, `flight_id` their ids, `flights` where they are read,
//! `flight_cache` what is held of that; [`dates`] and `form`
//! read what clients send; `handlers` and `house` answer, `routes` says on which path, `openapi` describes it all,
//! `pages` is the web page.
//! `logins` knows who is logged in; `auth` is the auth service, [`data`] the data tier.

pub mod airports;
mod app;
mod auth;
mod clock;
mod customers;
pub mod data;
pub mod dates;
mod flight_cache;
mod flight_id;
mod flights;
mod form;
mod gate;
mod handlers;
mod house;
mod logins;
mod openapi;
mod other_sites;
mod pages;
mod refusal;
mod routes;
mod segments;
mod serve;
mod settings;
mod store_metrics;
mod stores;
pub mod timetable;

pub use auth::AirlineAuth;
pub use clock::Clock;
pub use flight_id::FlightKey;
pub use segments::{SEGMENTS_LEN, Segment, Segments};
pub use settings::Airline;
