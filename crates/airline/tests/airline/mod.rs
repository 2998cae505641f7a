//! A running airline for tests, and what its clients do all the time.
#![allow(dead_code)] // each test file uses another part

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread::JoinHandle;

use jiff::civil::Date;
use tidemark_airline::{Airline, AirlineError, Clock, Durability, Options};
use tidemark_service::{Served, Stop};

use crate::client::{Client, Reply, eventually};

/// Every path exists with and without the context.
pub const PREFIXES: [&str; 2] = ["", "/acmeair-webapp"];

pub struct Running {
    pub addr: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<Served, AirlineError>>>,
}

impl Running {
    /// In memory, with nothing set.
    pub fn start() -> Self {
        Self::start_set(options())
    }

    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self::start_set(Options { settings, ..options() })
    }

    pub fn start_in(dir: &Path, durability: Durability) -> Self {
        Self::start_set(Options { data_dir: Some(dir.to_owned()), durability, ..options() })
    }

    fn start_set(options: Options) -> Self {
        Self::start_with_clock(options, Arc::new(AtomicI64::new(NOW_MS)))
    }

    /// With a clock that stands until it is set.
    pub fn start_with_clock(options: Options, time: Arc<AtomicI64>) -> Self {
        Self::run(Airline::bind_with_clock(options, Clock::Set(time)).unwrap())
    }

    fn run(airline: Airline) -> Self {
        let (addr, stop) = (airline.addr(), Stop::new());
        let triggered = stop.triggered();
        let thread = std::thread::spawn(move || airline.serve(triggered));
        let mut client = Client::new(addr);
        eventually("ready", || (client.get("/health").status == 200).then_some(()));
        Running { addr, stop, thread: Some(thread) }
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }

    /// A client who is logged in.
    pub fn login(&self, number: u64) -> Client {
        let mut client = self.client();
        let form = format!("login=uid{number}%40email.com&password=password");
        let reply = client.form("/rest/api/login", &form);
        assert_eq!(reply.status, 200);
        let cookie = reply.header("set-cookie").unwrap();
        client.cookie = cookie.split(';').next().map(str::to_owned);
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.trigger();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// 2026-11-21 11:00 UTC. The clock of the tests stands, so that no midnight passes in the middle of one.
pub const NOW_MS: i64 = 1_795_258_800_000;

pub fn options() -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data_dir: None,
        durability: Durability::Memory,
        workers: Some(2),
        settings: BTreeMap::new(),
        announce: false,
    }
}

/// The day of [`NOW_MS`].
pub fn today() -> Date {
    jiff::civil::date(2026, 11, 21)
}

/// A day from today on, as ISO text.
pub fn in_days(days: i32) -> String {
    (today() + jiff::Span::new().days(days)).to_string()
}

/// Encodes one value of a form.
pub fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub fn query(client: &mut Client, from: &str, to: &str, date: &str, back: &str, one_way: bool) -> Reply {
    let [from, to, date, back] = [from, to, date, back].map(encoded);
    let form =
        format!("fromAirport={from}&toAirport={to}&fromDate={date}&returnDate={back}&oneWay={one_way}");
    client.form("/rest/api/flights/queryflights", &form)
}
