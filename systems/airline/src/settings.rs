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

const OFFERED: &[Setting] = &[
    Setting {
        name: "customers",
        default: "200",
        allowed: "1 to 10000000",
        help: "customers made at the start, uid0@email.com and so on; those that are there already are kept",
    },
    Setting {
        name: "days",
        default: "30",
        allowed: "1 to 366",
        help: "days of flights on offer, from today (UTC) on; the published traffic wants at least 13",
    },
    Setting {
        name: "nested_flights",
        default: "asked",
        allowed: "asked or always",
        help: "whether a booking has its whole flight in it, as the mobile app of 2013 needs it: with ?flight=nested (asked), or always",
    },
];

/// What can be set about sessions, wherever they are kept.
pub(crate) const SESSION_SETTINGS: &[Setting] = &[
    Setting {
        name: "session_hours",
        default: "24",
        allowed: "1 to 8760",
        help: "how long a login lasts; using it does not prolong it",
    },
    Setting {
        name: "sessions_max",
        default: "10000000",
        allowed: "1 to 1000000000",
        help: "sessions kept at once; a login beyond that is answered 503",
    },
];

const KEPT: &[Setting] = &[
    Setting {
        name: "bookings_max",
        default: "20000000",
        allowed: "1 to 1000000000",
        help: "bookings kept at once; a booking beyond that is answered 503",
    },
    Setting {
        name: "customers_in",
        default: "embedded",
        allowed: "embedded, data, postgres, mariadb or cassandra",
        help: "where customers are kept: in this process, in the data tier (airline-data), in PostgreSQL, in MariaDB, or in Apache Cassandra",
    },
    Setting {
        name: "sessions_in",
        default: "embedded",
        allowed: "embedded, data, postgres, redis or auth",
        help: "where sessions are kept: in this process, in the data tier, in PostgreSQL, in Redis, or with the auth service (system airline-auth)",
    },
    Setting {
        name: "bookings_in",
        default: "embedded",
        allowed: "embedded, data, postgres, mariadb or cassandra",
        help: "where bookings are kept: in this process, in the data tier, in PostgreSQL, in MariaDB, or in Apache Cassandra",
    },
    Setting {
        name: "flights_in",
        default: "embedded",
        allowed: "embedded or postgres",
        help: "where flights and their segments are: computed in this process, or in tables of PostgreSQL, which the start and each load fill",
    },
    Setting {
        name: "flight_cache",
        default: "auto",
        allowed: "0 to 1000000, or auto",
        help: "answers to flight queries that are held; the least recently used go first; auto: 32768 where flights are in a store, else 0",
    },
    Setting {
        name: "flight_cache_age_s",
        default: "1200",
        allowed: "1 to 86400",
        help: "seconds that such an answer is held; a load and a new day forget all",
    },
];

/// What can be set about stores of others that keep no sessions.
const RECORD_STORES: &[Setting] = &[
    #[cfg(feature = "mariadb")]
    Setting {
        name: "mariadb",
        default: "mysql://airline@127.0.0.1:3306/airline",
        allowed: "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
        help: "where MariaDB is; the tables are made in that database",
    },
    #[cfg(feature = "mariadb")]
    Setting {
        name: "mariadb_connections",
        default: "16",
        allowed: "1 to 256",
        help: "connections to MariaDB, each for one request at a time; more wait for one",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "contact",
        default: "127.0.0.1:9042",
        allowed: "HOST:PORT, several with commas between",
        help: "addresses of some nodes of Cassandra, where customers or bookings are there; the others are learnt from them",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "keyspace",
        default: "airline",
        allowed: "up to 48 small letters, digits and underscores",
        help: "the keyspace of the tables in Cassandra; made if it is not there",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "on how many nodes of Cassandra each row is kept; auto: as many as are named, at most 3",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "consistency",
        default: "quorum",
        allowed: "one, quorum, local-quorum or all",
        help: "how many of these nodes acknowledge a row; reads ask as many as it takes to miss none",
    },
];

/// What can be set about stores of others.
pub(crate) const STORE_SETTINGS: &[Setting] = &[
    Setting {
        name: "data",
        default: "http://127.0.0.1:9085",
        allowed: "http://HOST:PORT",
        help: "where the data tier is (tidemark serve airline-data --listen 127.0.0.1:9085)",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres",
        default: "postgres://postgres@127.0.0.1:5432/postgres",
        allowed: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        help: "where PostgreSQL is; the tables are made in the schema tidemark of that database",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres_connections",
        default: "16",
        allowed: "1 to 256",
        help: "connections to PostgreSQL; many requests share one",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis",
        default: "redis://127.0.0.1:6379",
        allowed: "redis://USER:PASSWORD@HOST:PORT/NUMBER",
        help: "where Redis is; the database with that number must hold nothing else",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis_connections",
        default: "2",
        allowed: "1 to 256",
        help: "connections to Redis; many requests share one",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis_durability",
        default: "same",
        allowed: "same, memory, buffered or synced",
        help: "what an acknowledged session is to be worth in Redis; same: as all else",
    },
    Setting {
        name: "store_timeout_s",
        default: "5",
        allowed: "1 to 3600",
        help: "seconds that an answer of another store is waited for; then the request is answered 503",
    },
    Setting {
        name: "store_start_timeout_s",
        default: "30",
        allowed: "1 to 3600",
        help: "seconds that the start waits for the other stores to be there",
    },
    Setting {
        name: "store_waiting_max",
        default: "8192",
        allowed: "1 to 1000000",
        help: "requests to another store that wait at once, for each; one more is answered 503",
    },
];

const SPLIT: &[Setting] = &[
    Setting {
        name: "body_bytes_max",
        default: "1048576",
        allowed: "1024 to 67108864",
        help: "size of a request body; a larger one is answered 413",
    },
    Setting {
        name: "auth",
        default: "",
        allowed: "nothing, or http://HOST:PORT with commas between",
        help: "where the auth service is, for sessions_in=auth; nothing: as the registry says",
    },
];

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
