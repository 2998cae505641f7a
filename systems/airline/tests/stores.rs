//! The airline on real servers: what it promises, what it shows, and when they go. Needs Debian's packages `postgresql`,
//! `redis-server` and, in a program that has its client, `mariadb-server`. That all of the contract holds on them is in `contract.rs`.
#![cfg(all(feature = "postgres", feature = "redis"))]

use crate::airline::servers::{PostgresServer, RedisServer};
use crate::airline::{Running, in_days, query};
use crate::client::{Client, eventually};
use tidemark_airline::Airline;
use tidemark_service::{Durability, Options, ReferenceSystem};

fn with(settings: &[(&str, &str)], durability: Durability) -> Options {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Options { settings, durability, ..crate::airline::options() }
}

fn start(settings: &[(&str, &str)], durability: Durability) -> Running {
    let time = std::sync::Arc::new(crate::airline::now_ms().into());
    Running::start_with_clock(with(settings, durability), time)
}

fn book(client: &mut Client, number: u64) -> u16 {
    let reply = query(client, "CDG", "SVO", &in_days(1), "", true);
    if reply.status != 200 {
        return reply.status;
    }
    let json = reply.json();
    let flight = json["tripFlights"][0]["flightsOptions"][0]["_id"].as_str().unwrap();
    let form = format!("userid=uid{number}%40email.com&toFlightId={flight}&oneWayFlight=true");
    client.form("/rest/api/bookings/bookflights", &form).status
}

/// Sessions in Redis, all else in PostgreSQL, as durable as can be: killed while it serves, each of them.
#[test]
fn what_was_acknowledged_is_there_after_the_servers_were_killed() {
    let mut postgres = PostgresServer::start(&[]);
    let mut redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (url, sessions) = (postgres.database(), redis.database());
    let secret = url.replace("tester@", "tester:hunter2@");
    let settings = [
        ("customers_in", "postgres"),
        ("sessions_in", "redis"),
        ("bookings_in", "postgres"),
        ("postgres", &secret),
        ("redis", &sessions),
        ("store_timeout_s", "60"),
    ];
    let running = start(&settings, Durability::Synced);
    let mut client = running.login(7);
    let mut booked = 0;
    for _ in 0..20 {
        booked += usize::from(book(&mut client, 7) == 200);
    }
    assert_eq!(booked, 20);
    let list = "/rest/api/bookings/byuser/uid7@email.com";

    postgres.kill();
    // its processes end one after the other
    eventually("no bookings without PostgreSQL", || (client.get(list).status == 503).then_some(()));
    assert_eq!(book(&mut client, 7), 503, "nobody is told that it was booked");
    assert_eq!(client.get("/rest/api/config/countBookings").text(), "-1");
    assert_eq!(client.get("/health").status, 200, "the service itself is well");
    postgres.start_again();
    eventually("bookings again", || (client.get(list).status == 200).then_some(()));
    assert_eq!(client.get(list).json().as_array().unwrap().len(), booked);

    redis.kill();
    eventually("no session without Redis", || (client.get(list).status == 503).then_some(()));
    redis.start_again();
    eventually("the session again", || (client.get(list).status == 200).then_some(()));
    assert_eq!(book(&mut client, 7), 200);

    let metrics = client.get("/metrics");
    for line in [
        "airline_store_info{durability=\"synced\"} 1",
        "airline_data_info{customers=\"postgres\",sessions=\"redis\",bookings=\"postgres\"} 1",
        "airline_postgres_connected 16",
        "airline_redis_connected 2",
        "airline_redis_refused_total 0",
    ] {
        eventually(line, || client.get("/metrics").text().lines().any(|known| known == line).then_some(()));
    }
    for path in ["/metrics", "/rest/api/config/dataServices", "/rest/api/config/runtime", "/health"] {
        assert!(!client.get(path).text().contains("hunter2"), "{path}");
    }
    assert!(!metrics.text().contains("airline_store_commits"), "nothing is embedded");
    drop(running);

    // a service that begins finds all of it, the session too
    let again = start(&settings, Durability::Synced);
    let cookie = client.cookie.clone();
    let mut client = again.client();
    client.cookie = cookie;
    assert_eq!(client.get(list).json().as_array().unwrap().len(), booked + 1);
    assert_eq!(client.get("/rest/api/config/countCustomers").text(), "200");
}

/// What the servers do not keep is not promised; and what is asked for alone may be less.
#[test]
fn no_more_is_promised_than_the_servers_keep() {
    let postgres = PostgresServer::start(&["fsync=off"]);
    let redis = RedisServer::start(&[]);
    let (url, sessions) = (postgres.database(), redis.database());
    let refused = |settings: &[(&str, &str)], durability| {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { data_dir: Some(dir.path().to_owned()), ..with(settings, durability) };
        let served = Airline::bind(options).unwrap().serve(std::future::pending());
        served.expect_err("it is refused").to_string()
    };
    let error = refused(&[("bookings_in", "postgres"), ("postgres", &url)], Durability::Synced);
    assert!(error.contains("buffered, not synced"), "{error}");
    let error = refused(&[("sessions_in", "redis"), ("redis", &sessions)], Durability::Buffered);
    assert!(error.contains("memory, not buffered"), "{error}");
    let apart = [("sessions_in", "redis"), ("redis", &sessions), ("redis_durability", "memory")];
    let dir = tempfile::tempdir().unwrap();
    let options = Options { data_dir: Some(dir.path().to_owned()), ..with(&apart, Durability::Synced) };
    let running = Running::start_with_clock(options, std::sync::Arc::new(crate::airline::now_ms().into()));
    assert_eq!(book(&mut running.login(1), 1), 200);
}

/// Customers and bookings in MariaDB: killed while it serves.
#[cfg(feature = "mariadb")]
#[test]
fn what_mariadb_acknowledged_is_there_after_it_was_killed() {
    let mut mariadb = crate::airline::mariadb::MariadbServer::start(&[]);
    let url = mariadb.database();
    let secret = url.replace("tester@", "tester:hunter2@");
    let settings = [
        ("customers_in", "mariadb"),
        ("bookings_in", "mariadb"),
        ("mariadb", url.as_str()),
        ("mariadb_connections", "4"),
        ("store_timeout_s", "60"),
    ];
    let running = start(&settings, Durability::Memory);
    let mut client = running.login(7);
    for _ in 0..20 {
        assert_eq!(book(&mut client, 7), 200);
    }
    let list = "/rest/api/bookings/byuser/uid7@email.com";
    assert_eq!(client.get("/rest/api/config/activeDataService").text(), "embedded+mariadb");
    assert_eq!(client.get("/rest/api/config/countBookings").text(), "20");

    mariadb.kill();
    eventually("no bookings without MariaDB", || (client.get(list).status == 503).then_some(()));
    assert_eq!(book(&mut client, 7), 503, "nobody is told that it was booked");
    assert_eq!(client.get("/rest/api/config/countBookings").text(), "-1");
    mariadb.start_again();
    eventually("bookings again", || (client.get(list).status == 200).then_some(()));
    assert_eq!(client.get(list).json().as_array().unwrap().len(), 20);
    for line in [
        "airline_data_info{customers=\"mariadb\",sessions=\"embedded\",bookings=\"mariadb\"} 1",
        "airline_mariadb_connected 4",
        "airline_mariadb_refused_total 0",
    ] {
        eventually(line, || client.get("/metrics").text().lines().any(|known| known == line).then_some(()));
    }
    drop(running);

    // a wrong password is told without it
    mariadb.sql(&url, "SET PASSWORD FOR tester@'127.0.0.1' = PASSWORD('other')");
    let wrong = [("bookings_in", "mariadb"), ("mariadb", secret.as_str())];
    let served = Airline::bind(with(&wrong, Durability::Memory)).unwrap().serve(std::future::pending());
    let error = served.expect_err("it is refused").to_string();
    assert!(error.contains("cannot be used") && !error.contains("hunter2"), "{error}");
}
