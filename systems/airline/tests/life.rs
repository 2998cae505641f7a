//! The airline over its life: settings, restart, metrics, many clients at once.

use crate::airline::{Running, in_days, query};
use tidemark_service::Durability;

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (list, cookie, body) = {
        let running = Running::start_in(dir.path(), Durability::Synced);
        let mut client = running.login(7);
        let reply = query(&mut client, "CDG", "SVO", &in_days(1), &in_days(7), false).json();
        let id =
            |leg: usize| reply["tripFlights"][leg]["flightsOptions"][0]["_id"].as_str().unwrap().to_owned();
        let form = format!("userid=uid7%40email.com&toFlightId={}&retFlightId={}", id(0), id(1));
        assert_eq!(client.form("/rest/api/bookings/bookflights", &form).status, 200);
        let list = client.get("/rest/api/bookings/byuser/uid7@email.com");
        assert_eq!(list.json().as_array().unwrap().len(), 2);
        (list.body, client.cookie.clone(), form)
    };
    let running = Running::start_in(dir.path(), Durability::Synced);
    let mut client = running.client();
    client.cookie = cookie; // the session has survived too
    assert_eq!(client.get("/rest/api/bookings/byuser/uid7@email.com").body, list);
    assert_eq!(client.get("/rest/api/config/countCustomers").text(), "200");
    // A flight is the same flight after a restart.
    assert_eq!(client.form("/rest/api/bookings/bookflights", &body).status, 200);
    assert!(client.get("/metrics").text().contains("airline_store_info{durability=\"synced\"} 1"));
}

#[test]
fn settings_take_effect() {
    let running = Running::start_with(&[("customers", "5"), ("days", "13"), ("body_bytes_max", "2000")]);
    let mut client = running.client();
    assert_eq!(client.get("/rest/api/config/countCustomers").text(), "5");
    assert_eq!(client.get("/rest/api/config/countFlights").text(), (13 * 394).to_string());
    assert_eq!(client.form("/rest/api/login", "login=uid5%40email.com&password=password").status, 403);
    let long = format!("login={}&password=", "x".repeat(2000));
    assert_eq!(client.form("/rest/api/login", &long).status, 413);
}

#[test]
fn sessions_and_bookings_are_bounded() {
    let running = Running::start_with(&[("sessions_max", "2"), ("bookings_max", "3")]);
    let mut first = running.login(0);
    running.login(1);
    let reply = running.client().form("/rest/api/login", "login=uid0%40email.com&password=password");
    assert_eq!((reply.status, reply.header("set-cookie")), (503, None));
    assert_eq!(first.get("/rest/api/login/logout").status, 200);
    let mut client = running.login(2);
    let reply = query(&mut client, "CDG", "SVO", &in_days(0), "", true).json();
    let flight = reply["tripFlights"][0]["flightsOptions"][0]["_id"].as_str().unwrap();
    let form = format!("userid=uid2%40email.com&toFlightId={flight}&oneWayFlight=true");
    let statuses: Vec<u16> =
        (0..5).map(|_| client.form("/rest/api/bookings/bookflights", &form).status).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503]);
}

#[test]
fn the_metrics_show_routes_and_stores() {
    let running = Running::start();
    let mut client = running.login(0);
    query(&mut client, "JFK", "LHR", &in_days(0), &in_days(6), false);
    client.get("/rest/api/bookings/byuser/uid0@email.com");
    let metrics = client.get("/metrics");
    assert_eq!(metrics.status, 200);
    for line in [
        "tidemark_requests_total{route=\"/rest/api/flights/queryflights\",method=\"POST\",status=\"200\"} 1",
        "tidemark_requests_total{route=\"/rest/api/bookings/byuser/{user}\",method=\"GET\",status=\"200\"} 1",
        "airline_store_seconds_count{op=\"session_create\"} 1",
        "airline_store_seconds_count{op=\"session_find\"} 2",
        "airline_store_seconds_count{op=\"booking_list\"} 1",
        "airline_store_stopped 0",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "no {line} in\n{}", metrics.text());
    }
    assert!(metrics.text().ends_with("# EOF\n"));
    assert!(!metrics.text().contains("uid0"), "no customer appears in the metrics");
}

/// The published traffic in small, from several customers at once: nothing fails and nothing gets mixed up.
#[test]
fn many_customers_at_once() {
    const CUSTOMERS: u64 = 8;
    const ROUNDS: usize = 5;
    let running = Running::start();
    std::thread::scope(|scope| {
        for number in 0..CUSTOMERS {
            let running = &running;
            scope.spawn(move || {
                let user = format!("uid{number}@email.com");
                for round in 0..ROUNDS {
                    let mut client = running.login(number);
                    let reply =
                        query(&mut client, "FRA", "SYD", &in_days(round as i32), &in_days(9), false).json();
                    let flight = reply["tripFlights"][0]["flightsOptions"][0]["pkey"]["id"].as_str().unwrap();
                    let form = format!(
                        "userid={}&toFlightId={flight}&oneWayFlight=true",
                        crate::airline::encoded(&user)
                    );
                    assert_eq!(client.form("/rest/api/bookings/bookflights", &form).status, 200);
                    let list = client.get(&format!("/rest/api/bookings/byuser/{user}")).json();
                    let list = list.as_array().unwrap().clone();
                    assert_eq!(list.len(), 1 + round.min(2));
                    assert!(list.iter().all(|booking| booking["customerId"] == user.as_str()));
                    for booking in &list[..list.len().saturating_sub(2)] {
                        let number = booking["_id"].as_str().unwrap();
                        let form = format!("number={number}&userid={}", crate::airline::encoded(&user));
                        assert_eq!(client.form("/rest/api/bookings/cancelbooking", &form).status, 200);
                    }
                    assert_eq!(client.get("/rest/api/login/logout").text(), "logged out");
                }
            });
        }
    });
    let mut client = running.client();
    assert_eq!(client.get("/rest/api/config/countSessions").text(), "0");
    assert_eq!(client.get("/rest/api/config/countBookings").text(), (2 * CUSTOMERS).to_string());
}
