//! `kill -9` of the airline while bookings are made: after a restart no acknowledged booking is missing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Client, Served, flight_today, log_in};

/// Clients that book at once, each for its own customer.
const CLIENTS: usize = 16;
/// Bookings to have before the kill, over all clients: enough for several commits.
const BOOKINGS_BEFORE_KILL: usize = 400;

/// Books as one customer until the server is gone; returns what was acknowledged.
fn book_until_gone(authority: &str, user: usize, total: &AtomicUsize) -> Vec<String> {
    let mut client = Client::connect(authority);
    log_in(&mut client, user);
    let (flight, segment) = flight_today(&mut client, "CDG", "SVO");
    let form = format!(
        "userid=uid{user}%40email.com&toFlightId={flight}&toFlightSegId={segment}&retFlightId=&retFlightSegId=&oneWayFlight=true"
    );
    let mut acknowledged = Vec::new();
    loop {
        let answer = client.post_form("/rest/api/bookings/bookflights", &form);
        if answer.status != 200 {
            return acknowledged;
        }
        acknowledged.push(answer.json()["departBookingId"].as_str().expect("a booking id").to_owned());
        total.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn synced_loses_nothing_to_kill_9() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let data_dir = data.path().to_str().expect("UTF-8");
    let args = ["--data", data_dir, "--durability", "synced"];
    let mut served = Served::start("airline", &args);
    let loaded = Client::connect(&served.authority).get("/rest/info/loader/load?numCustomers=50");
    assert_eq!(loaded.status, 200, "{}", loaded.body);

    let total = AtomicUsize::new(0);
    let authority = served.authority.clone();
    let acknowledged: Vec<Vec<String>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|user| {
                scope.spawn({
                    let (a, t) = (&authority, &total);
                    move || book_until_gone(a, user, t)
                })
            })
            .collect();
        while total.load(Ordering::Relaxed) < BOOKINGS_BEFORE_KILL {
            assert!(clients.iter().any(|c| !c.is_finished()), "every client ended before the kill");
            std::thread::sleep(Duration::from_millis(5));
        }
        served.kill_9();
        clients.into_iter().map(|c| c.join().expect("a client")).collect()
    });

    let again = Served::start("airline", &args);
    let mut found_in_all = 0;
    for (user, ids) in acknowledged.iter().enumerate() {
        let mut client = Client::connect(&again.authority);
        log_in(&mut client, user);
        let bookings = client.get(&format!("/rest/api/bookings/byuser/uid{user}@email.com")).json();
        let found: HashSet<String> = bookings
            .as_array()
            .expect("a list")
            .iter()
            .map(|b| b["bookingId"].as_str().expect("an id").to_owned())
            .collect();
        for id in ids {
            assert!(found.contains(id), "booking {id} of uid{user} was acknowledged and is lost");
        }
        // At most the one booking under way when the server died may be there unacknowledged.
        assert!(found.len() <= ids.len() + 1, "uid{user} has bookings that nobody made");
        found_in_all += ids.len();
    }
    assert!(found_in_all >= BOOKINGS_BEFORE_KILL);
}
