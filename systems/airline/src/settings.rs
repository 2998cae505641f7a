//! What can be set about an airline.

use tidemark_mesh::{CLIENT_SETTINGS, CallSettings, MEMBER_SETTINGS, MemberSettings};
use tidemark_service::{Setting, joined};

use crate::clock::Clock;
use crate::flights::CacheSettings;
use crate::stores::Choice;

/// An airline as its settings have it.
#[derive(Debug)]
pub struct Airline {
    pub(crate) customers: u64,
    pub(crate) days: u32,
    pub(crate) nests_flights: bool,
    pub(crate) session_ms: i64,
    pub(crate) sessions_max: u64,
    pub(crate) bookings_max: u64,
    pub(crate) choice: Choice,
    pub(crate) flight_cache: CacheSettings,
    pub(crate) clock: Clock,
    pub(crate) body_bytes_max: usize,
    /// Where the auth service is: HOST:PORT of each instance; empty where the registry knows.
    pub(crate) auth: Vec<String>,
    pub(crate) calls: CallSettings,
    pub(crate) member: MemberSettings,
}

/// Most sessions or bookings that can be allowed.
pub(crate) const RECORDS_MAX: u64 = 1_000_000_000;

/// Most flight queries that can be held.
pub(crate) const FLIGHT_CACHE_MAX: usize = 1_000_000;

const OFFERED: &[Setting] = tidemark_service::settings! {
    "customers" = "200", "1 to 10000000":
        "customers made at the start, uid0@email.com and so on; those that are there already are kept";
    "days" = "30", "1 to 366":
        "days of flights on offer, from today (UTC) on; the published traffic wants at least 13";
    "nested_flights" = "asked", "asked or always":
        "whether a booking has its whole flight in it, as the mobile app of 2013 needs it: with ?flight=nested (asked), or always";
};

/// What can be set about sessions, wherever they are kept.
pub(crate) const SESSION_SETTINGS: &[Setting] = tidemark_service::settings! {
    "session_hours" = "24", "1 to 8760":
        "how long a login lasts; using it does not prolong it";
    "sessions_max" = "10000000", "1 to 1000000000":
        "sessions kept at once; a login beyond that is answered 503";
};

const KEPT: &[Setting] = tidemark_service::settings! {
    "bookings_max" = "20000000", "1 to 1000000000":
        "bookings kept at once; a booking beyond that is answered 503";
    "customers_in" = "embedded", "embedded, data, postgres, mariadb or cassandra":
        "where customers are kept: in this process, in the data tier (airline-data), in PostgreSQL, in MariaDB, or in Apache Cassandra";
    "sessions_in" = "embedded", "embedded, data, postgres, redis or auth":
        "where sessions are kept: in this process, in the data tier, in PostgreSQL, in Redis, or with the auth service (system airline-auth)";
    "bookings_in" = "embedded", "embedded, data, postgres, mariadb or cassandra":
        "where bookings are kept: in this process, in the data tier, in PostgreSQL, in MariaDB, or in Apache Cassandra";
    "flights_in" = "embedded", "embedded or postgres":
        "where flights and their segments are: computed in this process, or in tables of PostgreSQL, which the start and each load fill";
    "flight_cache" = "auto", "0 to 1000000, or auto":
        "answers to flight queries that are held; the least recently used go first; auto: 32768 where flights are in a store, else 0";
    "flight_cache_age_s" = "1200", "1 to 86400":
        "seconds that such an answer is held; a load and a new day forget all";
};

/// What can be set about stores of others that keep no sessions.
const RECORD_STORES: &[Setting] = tidemark_service::settings! {
    #[cfg(feature = "mariadb")]
    "mariadb" = "mysql://airline@127.0.0.1:3306/airline", "mysql://USER:PASSWORD@HOST:PORT/DATABASE":
        "where MariaDB is; the tables are made in that database";
    #[cfg(feature = "mariadb")]
    "mariadb_connections" = "16", "1 to 256":
        "connections to MariaDB, each for one request at a time; more wait for one";
    #[cfg(feature = "cassandra")]
    "contact" = "127.0.0.1:9042", "HOST:PORT, several with commas between":
        "addresses of some nodes of Cassandra, where customers or bookings are there; the others are learnt from them";
    #[cfg(feature = "cassandra")]
    "keyspace" = "airline", "up to 48 small letters, digits and underscores":
        "the keyspace of the tables in Cassandra; made if it is not there";
    #[cfg(feature = "cassandra")]
    "replication" = "auto", "1 to 9, or auto":
        "on how many nodes of Cassandra each row is kept; auto: as many as are named, at most 3";
    #[cfg(feature = "cassandra")]
    "consistency" = "quorum", "one, quorum, local-quorum or all":
        "how many of these nodes acknowledge a row; reads ask as many as it takes to miss none";
};

/// What can be set about stores of others.
pub(crate) const STORE_SETTINGS: &[Setting] = tidemark_service::settings! {
    "data" = "http://127.0.0.1:9085", "http://HOST:PORT":
        "where the data tier is (tidemark serve airline-data --listen 127.0.0.1:9085)";
    #[cfg(feature = "postgres")]
    "postgres" = "postgres://postgres@127.0.0.1:5432/postgres", "postgres://USER:PASSWORD@HOST:PORT/DATABASE":
        "where PostgreSQL is; the tables are made in the schema tidemark of that database";
    #[cfg(feature = "postgres")]
    "postgres_connections" = "16", "1 to 256":
        "connections to PostgreSQL; many requests share one";
    #[cfg(feature = "redis")]
    "redis" = "redis://127.0.0.1:6379", "redis://USER:PASSWORD@HOST:PORT/NUMBER":
        "where Redis is; the database with that number must hold nothing else";
    #[cfg(feature = "redis")]
    "redis_connections" = "2", "1 to 256":
        "connections to Redis; many requests share one";
    #[cfg(feature = "redis")]
    "redis_durability" = "same", "same, memory, buffered or synced":
        "what an acknowledged session is to be worth in Redis; same: as all else";
    "store_timeout_s" = "5", "1 to 3600":
        "seconds that an answer of another store is waited for; then the request is answered 503";
    "store_start_timeout_s" = "30", "1 to 3600":
        "seconds that the start waits for the other stores to be there";
    "store_waiting_max" = "8192", "1 to 1000000":
        "requests to another store that wait at once, for each; one more is answered 503";
};

const SPLIT: &[Setting] = tidemark_service::settings! {
    "body_bytes_max" = "1048576", "1024 to 67108864":
        "size of a request body; a larger one is answered 413";
    "auth" = "", "nothing, or http://HOST:PORT with commas between":
        "where the auth service is, for sessions_in=auth; nothing: as the registry says";
};

const TABLES: [&[Setting]; 8] =
    [OFFERED, SESSION_SETTINGS, KEPT, RECORD_STORES, STORE_SETTINGS, SPLIT, MEMBER_SETTINGS, CLIENT_SETTINGS];

pub(crate) const SETTINGS: &[Setting] = &joined::<
    {
        let (mut table, mut count) = (0, 0);
        while table < TABLES.len() {
            count += TABLES[table].len();
            table += 1;
        }
        count
    },
>(&TABLES);
