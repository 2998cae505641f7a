//! The airline on real servers: what it promises, what it shows, and when they go. Needs Debian's packages `postgresql`,
//! `redis-server` and, in a program that has its client, `mariadb-server`. That all of the contract holds on them is in `contract.rs`.
#![cfg(all(feature = "postgres", feature = "redis"))]

use crate::airline::servers::{PostgresServer, RedisServer, Server};
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
        "airline_data_info{customers=\"postgres\",sessions=\"redis\",bookings=\"postgres\",flights=\"embedded\"} 1",
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

/// Flights in PostgreSQL: they are the rows of its tables, and what was asked for is held.
#[test]
fn flights_in_postgres_are_its_rows_and_queries_are_held() {
    let mut postgres = PostgresServer::start(&[]);
    let url = postgres.database();
    let settings = [
        ("flights_in", "postgres"),
        ("postgres", url.as_str()),
        ("flight_cache", "2"),
        ("store_timeout_s", "60"),
        ("nested_flights", "always"),
    ];
    let running = start(&settings, Durability::Memory);
    let mut client = running.login(7);
    assert_eq!(client.get("/rest/api/config/activeDataService").text(), "embedded+postgres");
    let metric = |client: &mut Client, name: &str| {
        let metrics = client.get("/metrics");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is not in\n{}", metrics.text())).parse::<u64>().unwrap()
    };
    let miles = |client: &mut Client, from: &str, to: &str| {
        let reply = query(client, from, to, &in_days(1), "", true);
        let json = (reply.status == 200).then(|| reply.json()).ok_or(reply.status)?;
        Ok::<_, u16>(json["tripFlights"][0]["flightsOptions"][0]["flightSegment"]["miles"].as_u64())
    };
    let counts = |client: &mut Client| {
        ["entries", "hits_total", "misses_total", "evicted_total"]
            .map(|name| metric(client, &format!("airline_flight_cache_{name}")))
    };
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(Some(1525)));
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(Some(1525)));
    assert_eq!(miles(&mut client, "BOM", "SVO"), Ok(None), "that there is none is held, too");
    assert_eq!(miles(&mut client, "BOM", "SVO"), Ok(None));
    assert_eq!(counts(&mut client), [2, 2, 2, 0]);

    // what is held is shown until a load; what is there stays as it is
    postgres.sql(&url, "UPDATE tidemark.flight_segments SET miles = 1534 WHERE id = 'AA280'");
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(Some(1525)));
    assert_eq!(client.get("/rest/api/loader/load?numCustomers=200").status, 200);
    assert_eq!(counts(&mut client)[0], 0);
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(Some(1534)));
    assert_eq!(book(&mut client, 7), 200);
    let list = client.get("/rest/api/bookings/byuser/uid7@email.com").json();
    assert_eq!(list[0]["flight"]["flightSegment"]["miles"], 1534);
    // another one had to go for each of these
    for to in ["JFK", "LHR", "SIN"] {
        assert!(miles(&mut client, "CDG", to).unwrap().is_some());
    }
    assert_eq!((counts(&mut client)[0], counts(&mut client)[3]), (2, 2));
    assert_eq!(metric(&mut client, "airline_flight_cache_entries_max"), 2);
    assert!(metric(&mut client, "airline_flight_cache_age_seconds") < 60);
    assert_eq!(metric(&mut client, "airline_store_seconds_count{op=\"flight_query\"}"), 6);
    assert_eq!(metric(&mut client, "airline_store_seconds_count{op=\"flight_find\"}"), 2);

    // flights are those of the tables, and are counted there
    postgres.sql(&url, "DELETE FROM tidemark.flights WHERE flight_segment_id = 'AA280'");
    assert_eq!(client.get("/rest/api/config/countFlights").text(), (11_820 - 30).to_string());
    assert_eq!(client.get("/rest/api/config/countFlightSegments").text(), "394");
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(None));

    postgres.kill();
    eventually("no flights without PostgreSQL", || {
        (miles(&mut client, "NRT", "JFK") == Err(503)).then_some(())
    });
    assert_eq!(miles(&mut client, "CDG", "SVO"), Ok(None), "it is held");
    assert_eq!(client.get("/rest/api/config/countFlights").text(), "-1");
    assert_eq!(client.get("/health").status, 200);
    postgres.start_again();
    eventually("flights again", || miles(&mut client, "NRT", "JFK").ok().flatten());
}

/// The days move on: a store gets the new ones, and passed ones are not shown any more.
#[test]
fn flights_in_postgres_follow_the_calendar() {
    let postgres = PostgresServer::start(&[]);
    let url = postgres.database();
    let settings = [("flights_in", "postgres"), ("postgres", url.as_str()), ("days", "3")];
    let settled = |days: i64| {
        let time = crate::airline::now_ms() + days * 86_400_000;
        let options = with(&settings, Durability::Memory);
        Running::start_with_clock(options, std::sync::Arc::new(time.into()))
    };
    let flies = |running: &Running, day| {
        let reply = query(&mut running.login(1), "CDG", "SVO", &in_days(day), "", true).json();
        reply["tripFlights"][0]["flightsOptions"].as_array().unwrap().len()
    };
    let first = settled(0);
    assert_eq!([-1, 0, 2, 3].map(|day| flies(&first, day)), [0, 1, 1, 0]);
    let later = settled(2);
    assert_eq!([1, 2, 4, 5].map(|day| flies(&later, day)), [0, 1, 1, 0]);
    for running in [&first, &later] {
        let count = running.client().get("/rest/api/config/countFlights");
        assert_eq!(count.text(), (3 * 394).to_string());
    }
}

/// That nothing is lost when it is killed is checked where its store is.
#[cfg(feature = "mariadb")]
#[test]
fn mariadb_is_shown_and_a_wrong_password_is_told_without_it() {
    let mariadb = crate::airline::mariadb::MariadbServer::start(&[]);
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
    assert_eq!(client.get("/rest/api/config/activeDataService").text(), "embedded+mariadb");
    for line in [
        "airline_data_info{customers=\"mariadb\",sessions=\"embedded\",bookings=\"mariadb\",flights=\"embedded\"} 1",
        "airline_mariadb_connected 4",
        "airline_mariadb_refused_total 0",
    ] {
        eventually(line, || client.get("/metrics").text().lines().any(|known| known == line).then_some(()));
    }
    drop(running);

    mariadb.sql(&url, "SET PASSWORD FOR tester@'127.0.0.1' = PASSWORD('other')");
    let wrong = [("bookings_in", "mariadb"), ("mariadb", secret.as_str())];
    let served = Airline::bind(with(&wrong, Durability::Memory)).unwrap().serve(std::future::pending());
    let error = served.expect_err("it is refused").to_string();
    assert!(error.contains("cannot be used") && !error.contains("hunter2"), "{error}");
}
