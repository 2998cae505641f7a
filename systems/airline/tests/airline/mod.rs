//! A running airline for tests, and what its clients do all the time.
#![allow(dead_code)] // each test file uses another part

#[cfg(all(feature = "mariadb", feature = "postgres", feature = "redis"))]
#[path = "../../../store/tests/common/mariadb.rs"]
pub mod mariadb;
#[cfg(all(feature = "postgres", feature = "redis"))]
#[path = "../../../store/tests/common/servers.rs"]
pub mod servers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use jiff::civil::Date;
use tidemark_airline::data::AirlineData;
use tidemark_airline::{Airline, Clock};
use tidemark_service::{BoundServer, Durability, Options, ReferenceSystem};

use crate::client::{Client, Reply, Serving};

/// Every path exists with and without the context.
pub const PREFIXES: [&str; 2] = ["", "/acmeair-webapp"];

pub struct Running {
    serving: Serving,
    /// The data tier that was started for it.
    data: Option<Box<Running>>,
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
        Self::start_with_clock(options, Arc::new(AtomicI64::new(now_ms())))
    }

    /// With a clock that stands until it is set.
    pub fn start_with_clock(mut options: Options, time: Arc<AtomicI64>) -> Self {
        let (settings, data) = elsewhere();
        options.settings.extend(settings);
        let mut running = Self::run(Airline::bind_with_clock(options, Clock::Set(time)).unwrap());
        running.data = data;
        running
    }

    /// Another system than the airline itself, at `listen`.
    pub fn serve<S: ReferenceSystem>(listen: SocketAddr, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self::run(S::bind(Options { listen, settings, ..options() }).unwrap())
    }

    /// A data tier.
    pub fn data(options: Options) -> Self {
        Self::run(AirlineData::bind(options).unwrap())
    }

    fn run(server: BoundServer) -> Self {
        Running { serving: Serving::start(server), data: None }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
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

impl Deref for Running {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.serving
    }
}

/// Sets it when it is dropped, so that threads end also where a test fails.
pub struct AtEnd<'a>(pub &'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Today at 11:00 UTC, milliseconds since 1970. The clock of the tests stands, so that no midnight passes in the middle of
/// one; and it is of today, since a store may remove by its own clock what has expired.
pub fn now_ms() -> i64 {
    static NOW_MS: LazyLock<i64> = LazyLock::new(|| {
        let day = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let at_eleven = day.at(11, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        at_eleven.timestamp().as_millisecond()
    });
    *NOW_MS
}

pub fn options() -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        durability: Durability::Memory,
        workers: Some(2),
        announce: false,
        ..Options::default()
    }
}

/// The day of [`now_ms`].
pub fn today() -> Date {
    jiff::Timestamp::from_millisecond(now_ms()).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Where tests that are run once more have their data: `NAME=VALUE` with commas between, then what the airline calls it.
pub const STORES_VARIABLE: &str = "TIDEMARK_TEST_STORES";
/// The ports of the servers that the test has started, and the first number of a database that is free.
pub const POSTGRES_VARIABLE: &str = "TIDEMARK_TEST_POSTGRES_PORT";
pub const REDIS_VARIABLE: &str = "TIDEMARK_TEST_REDIS_PORT";
pub const DATABASE_VARIABLE: &str = "TIDEMARK_TEST_DATABASE";
/// The address of a MariaDB with databases `test0` and so on.
pub const MARIADB_VARIABLE: &str = "TIDEMARK_TEST_MARIADB";
/// The address of a Cassandra.
pub const CASSANDRA_VARIABLE: &str = "TIDEMARK_TEST_CASSANDRA";

/// What the airline calls the stores that it has.
pub fn active_data_service() -> String {
    let stores = std::env::var(STORES_VARIABLE).ok();
    stores
        .as_deref()
        .and_then(|stores| stores.split_once(' '))
        .map_or("embedded", |(_, name)| name)
        .to_owned()
}

/// Settings for other stores, with databases or a data tier of their own, where the test is run for these.
fn elsewhere() -> (BTreeMap<String, String>, Option<Box<Running>>) {
    let Ok(stores) = std::env::var(STORES_VARIABLE) else { return (BTreeMap::new(), None) };
    let (stores, _) = stores.split_once(' ').unwrap();
    let pairs = stores.split(',').filter_map(|pair| pair.split_once('='));
    let mut settings: BTreeMap<_, _> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    settings.insert("store_timeout_s".into(), "60".into());
    let data = settings.values().any(|store| store == "data").then(|| Running::data(options()));
    settings.extend(data.iter().map(|data| ("data".into(), data.url())));
    #[cfg(all(feature = "postgres", feature = "redis"))]
    if std::env::var_os(POSTGRES_VARIABLE).is_some() {
        in_databases(&mut settings);
    }
    if let Ok(place) = std::env::var(MARIADB_VARIABLE) {
        static USED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = USED.fetch_add(1, Ordering::Relaxed);
        settings.insert("mariadb".into(), format!("{place}/test{number}"));
        settings.insert("mariadb_connections".into(), "4".into());
    }
    if let (Ok(place), true) = (std::env::var(CASSANDRA_VARIABLE), stores.contains("cassandra")) {
        let keyspace = format!("test_{}", uuid::Uuid::new_v4().simple());
        settings.extend([("contact".into(), place), ("keyspace".into(), keyspace)]);
    }
    (settings, data.map(Box::new))
}

#[cfg(all(feature = "postgres", feature = "redis"))]
fn in_databases(settings: &mut BTreeMap<String, String>) {
    use std::sync::atomic::AtomicU32;
    static USED: AtomicU32 = AtomicU32::new(0);
    let number_in = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let database = number_in(DATABASE_VARIABLE) + USED.fetch_add(1, Ordering::Relaxed);
    let postgres = servers::create_database(number_in(POSTGRES_VARIABLE) as u16, &format!("test{database}"));
    settings.insert("postgres".into(), postgres);
    settings.insert("redis".into(), format!("redis://127.0.0.1:{}/{database}", number_in(REDIS_VARIABLE)));
    settings.insert("postgres_connections".into(), "4".into());
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
