//! Several airlines on one data tier, each a process of its own: what they see of each other, and what is left when the
//! data process is killed. The processes are this test program, started again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tidemark_airline::Airline;
use tidemark_airline::data::{AirlineData, DataStore};
use tidemark_service::{Durability, Options, ReferenceSystem};
use tidemark_store::StoreError;
use tidemark_store::bookings::{Booking, Bookings};

use crate::airline::{AtEnd, in_days, query};
use crate::client::{Client, Process, eventually, serve_until_input_ends};
use crate::data::values::wait;

/// What the child serves: the system, then the address, the directory and its settings, a line each.
const SERVE: &str = "TIDEMARK_TEST_AIRLINE_SERVE";

/// Not a test: a server of the others, until its standard input is closed.
#[test]
#[ignore = "a server of the other tests"]
fn serve() {
    let Ok(what) = std::env::var(SERVE) else { return };
    let mut words = what.lines();
    let (system, listen) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
    let data_dir = words.next().filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let pairs = words.filter_map(|pair| pair.split_once('='));
    let settings: BTreeMap<_, _> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let durability = Durability::Synced;
    let options =
        Options { listen, data_dir, durability, settings, announce: true, ..crate::airline::options() };
    let bound = match system {
        "airline" => Airline::bind(options),
        _ => AirlineData::bind(options),
    };
    serve_until_input_ends(bound.unwrap());
}

fn start(system: &str, listen: SocketAddr, dir: Option<&Path>, settings: &[(&str, &str)]) -> Process {
    let dir = dir.map(|dir| dir.display().to_string()).unwrap_or_default();
    let settings = settings.iter().map(|(name, value)| format!("{name}={value}"));
    let lines = [system.to_owned(), listen.to_string(), dir].into_iter().chain(settings);
    Process::start("data_lost::serve", SERVE, &lines.collect::<Vec<_>>().join("\n"))
}

/// A data tier on some port.
fn data_tier(dir: &Path) -> Process {
    start("airline-data", ([127, 0, 0, 1], 0).into(), Some(dir), &[])
}

/// An airline that has everything in this data tier.
fn airline(data: &Process) -> Process {
    let url = url(data);
    let settings =
        [("customers_in", "data"), ("sessions_in", "data"), ("bookings_in", "data"), ("data", &url)];
    start("airline", ([127, 0, 0, 1], 0).into(), None, &settings)
}

fn url(data: &Process) -> String {
    format!("http://{}", data.addr)
}

fn signal(data: &Process, signal: Signal) {
    kill_process(Pid::from_child(&data.child), signal).unwrap();
}

fn log_in(client: &mut Client, number: u64) -> u16 {
    let reply = client.form("/rest/api/login", &format!("login=uid{number}%40email.com&password=password"));
    let cookie = reply.header("set-cookie");
    client.cookie = cookie.and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
    reply.status
}

/// A flight to be booked.
fn flight(client: &mut Client) -> String {
    let reply = query(client, "CDG", "SVO", &in_days(1), "", true).json();
    reply["tripFlights"][0]["flightsOptions"][0]["_id"].as_str().unwrap().to_owned()
}

/// Books; the id of the booking, or the status of the refusal.
fn book(client: &mut Client, number: u64, flight: &str) -> Result<String, u16> {
    let form = format!("userid=uid{number}%40email.com&toFlightId={flight}&oneWayFlight=true");
    let reply = client.form("/rest/api/bookings/bookflights", &form);
    match reply.status {
        200 => Ok(reply.json()["departBookingId"].as_str().unwrap().to_owned()),
        status => Err(status),
    }
}

fn cancel(client: &mut Client, number: u64, id: &str) -> u16 {
    let form = format!("number={id}&userid=uid{number}%40email.com");
    client.form("/rest/api/bookings/cancelbooking", &form).status
}

/// The ids of a customer's bookings.
fn booked(client: &mut Client, number: u64) -> Vec<String> {
    let reply = client.get(&format!("/rest/api/bookings/byuser/uid{number}@email.com"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let ids = reply.json();
    ids.as_array().unwrap().iter().map(|booking| booking["_id"].as_str().unwrap().to_owned()).collect()
}

/// What one airline has acknowledged the other shows, at once: sessions, bookings, profiles.
#[test]
fn two_airlines_see_the_same() {
    const CUSTOMERS: u64 = 4;
    const ROUNDS: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    let data = data_tier(dir.path());
    let airlines = [airline(&data), airline(&data)];
    std::thread::scope(|scope| {
        for number in 0..CUSTOMERS {
            let airlines = &airlines;
            scope.spawn(move || {
                let [mut one, mut other] = [0, 1].map(|web| airlines[web].client());
                assert_eq!(log_in(&mut one, number), 200);
                other.cookie = one.cookie.clone();
                let flight = flight(&mut other);
                let mut expected = Vec::new();
                for round in 0..ROUNDS {
                    expected.push(book(&mut one, number, &flight).unwrap());
                    assert_eq!(booked(&mut other, number), expected);
                    if round % 3 == 2 {
                        assert_eq!(cancel(&mut other, number, &expected.remove(0)), 200);
                        assert_eq!(booked(&mut one, number), expected);
                    }
                    std::mem::swap(&mut one, &mut other);
                }
                let profile = format!("/rest/api/customer/byid/uid{number}@email.com");
                let body = format!(
                    r#"{{"_id":"uid{number}@email.com","password":"password","phoneNumber":"+{number}",
                    "address":{{"streetAddress1":"1 Main St.","city":"Anytown","stateProvince":"NC",
                    "country":"USA","postalCode":"27617"}}}}"#
                );
                assert_eq!(one.request("POST", &profile, &[], body.as_bytes()).status, 200);
                assert_eq!(other.get(&profile).json()["phoneNumber"], format!("+{number}"));
                assert_eq!(one.get("/rest/api/login/logout").status, 200);
                assert_eq!(other.get(&profile).status, 403, "the session ended everywhere");
            });
        }
    });
    let counts = data.client().get("/about").json();
    assert_eq!((&counts["customers"], &counts["sessions"]), (&200.into(), &0.into()));
    let mut client = airlines[0].client();
    assert_eq!(client.get("/rest/api/config/activeDataService").text(), "data");
    let line = "airline_data_connected 4";
    eventually(line, || client.get("/metrics").text().lines().any(|known| known == line).then_some(()));
}

/// Two devices of one customer at two airlines: what one was told stays, whatever the other changes at the same time.
#[test]
fn changes_of_a_profile_at_two_airlines_all_count() {
    const ROUNDS: u64 = 50;
    let dir = tempfile::tempdir().unwrap();
    let data = data_tier(dir.path());
    let airlines = [airline(&data), airline(&data)];
    let profile = "/rest/api/customer/byid/uid3@email.com";
    let body = |city: u64, more: &str| {
        format!(
            r#"{{"_id":"uid3@email.com","password":"password",{more}"address":{{"streetAddress1":"1 Main St.",
            "city":"city {city}","stateProvince":"NC","country":"USA","postalCode":"27617"}}}}"#
        )
    };
    let change = |client: &mut Client, body: String| {
        let reply = client.request("POST", profile, &[], body.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = airlines[0].client();
            assert_eq!(log_in(&mut client, 3), 200);
            for round in 0..ROUNDS {
                change(&mut client, body(0, &format!(r#""phoneNumber":"{round}","#)));
                let found = client.get(profile).json();
                assert_eq!(found["phoneNumber"], round.to_string(), "an acknowledged number went back");
            }
        });
        scope.spawn(|| {
            let mut client = airlines[1].client();
            assert_eq!(log_in(&mut client, 3), 200);
            (0..ROUNDS).for_each(|round| change(&mut client, body(round, "")));
        });
    });
}

/// What a customer was told.
#[derive(Default)]
struct Told {
    booked: Vec<String>,
    cancelled: Vec<String>,
    /// Asked to be cancelled, without an answer.
    unknown: Vec<String>,
}

/// Books and cancels until told to stop; refusals are 503 and nothing else.
fn book_until(
    over: &AtomicBool,
    done: &AtomicU64,
    refused: &AtomicU64,
    client: &mut Client,
    number: u64,
) -> Told {
    let (mut told, flight) = (Told::default(), flight(client));
    while !over.load(Ordering::Relaxed) {
        match book(client, number, &flight) {
            Ok(id) => told.booked.push(id),
            Err(status) => {
                assert_eq!(status, 503);
                refused.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
        }
        if told.booked.len().is_multiple_of(4) {
            let id = told.booked.swap_remove(0);
            match cancel(client, number, &id) {
                200 => told.cancelled.push(id),
                status => {
                    assert_eq!(status, 503);
                    told.unknown.push(id);
                }
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    told
}

/// The data process is killed under load, twice, and begun again: nothing acknowledged is lost, and the airlines go on by
/// themselves.
#[test]
fn a_killed_data_process_loses_nothing() {
    const CUSTOMERS: u64 = 8;
    let dir = tempfile::tempdir().unwrap();
    let mut data = data_tier(dir.path());
    let airlines = [airline(&data), airline(&data)];
    let (over, done, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let told: Vec<Told> = std::thread::scope(|scope| {
        let customers: Vec<_> = (0..CUSTOMERS)
            .map(|number| {
                let (over, done, refused) = (&over, &done, &refused);
                let mut client = airlines[number as usize % 2].client();
                assert_eq!(log_in(&mut client, number), 200);
                scope.spawn(move || book_until(over, done, refused, &mut client, number))
            })
            .collect();
        let ends = AtEnd(&over);
        let more = |count: &AtomicU64, by: u64| {
            let until = count.load(Ordering::Relaxed) + by;
            eventually("work", || (count.load(Ordering::Relaxed) >= until).then_some(()));
        };
        for _ in 0..2 {
            more(&done, 100);
            data.kill();
            more(&refused, 3 * CUSTOMERS);
            let mut client = airlines[0].client();
            assert_eq!(log_in(&mut client, 9), 503);
            assert_eq!(client.get("/health").status, 200, "the airline itself is well");
            assert_eq!(client.get("/rest/api/config/countBookings").text(), "-1");
            data = start("airline-data", data.addr, Some(dir.path()), &[]);
            more(&done, 100);
        }
        drop(ends);
        customers.into_iter().map(|customer| customer.join().unwrap()).collect()
    });
    for (number, told) in (0..CUSTOMERS).zip(&told) {
        let mut client = airlines[1].client();
        assert_eq!(log_in(&mut client, number), 200);
        let found = booked(&mut client, number);
        let lost = told.booked.iter().filter(|id| !found.contains(id)).count();
        assert_eq!(lost, 0, "of {} bookings of uid{number}", told.booked.len());
        assert!(told.cancelled.iter().all(|id| !found.contains(id)), "a cancelled booking is back");
        assert!(told.booked.len() + told.cancelled.len() + told.unknown.len() > 10);
    }
}

fn open(data: &Process, timeout: Duration, waiting_max: usize) -> std::sync::Arc<DataStore> {
    let options =
        tidemark_airline::data::Options { url: url(data), timeout, waiting_max, ..Default::default() };
    DataStore::open(options).unwrap()
}

fn booking(id: u128) -> Booking {
    Booking { id, customer_id: "ann".into(), flight_id: 1, flight_segment_id: "AA0".into(), booked_ms: 1 }
}

/// Stops it without its end. Its threads stop one after the other; afterwards it answers nothing.
fn stand_still(data: &Process) {
    let store = open(data, Duration::from_secs(1), 1);
    signal(data, Signal::STOP);
    eventually("it stands still", || wait(store.of_customer("ann")).is_err().then_some(()));
}

/// A write whose connection is cut is an error, and not sent again.
#[test]
fn what_was_cut_is_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut data = data_tier(dir.path());
    let store = open(&data, Duration::from_secs(60), 8192);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // it takes nothing any more, so that the write is under way until the kill
    stand_still(&data);
    let write = runtime.spawn({
        let store = store.clone();
        async move { store.add(&[booking(1)]).await }
    });
    let waiting = || store.metrics().iter().find(|own| own.name == "waiting").unwrap().value;
    eventually("under way", || (waiting() == 1).then_some(()));
    std::thread::sleep(Duration::from_millis(100));
    data.kill();
    let error = runtime.block_on(write).unwrap().unwrap_err();
    assert!(matches!(error, StoreError::NoAnswer { .. }), "{error}");
    let error = runtime.block_on(store.add(&[booking(2)])).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let _again = start("airline-data", data.addr, Some(dir.path()), &[]);
    eventually("again", || runtime.block_on(store.add(&[booking(3)])).ok());
    assert_eq!(runtime.block_on(store.of_customer("ann")).unwrap(), [booking(3)]);
}

/// One that stands still is not waited for longer than was said, nor by more than may wait.
#[test]
fn a_data_process_that_stands_still_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let data = data_tier(dir.path());
    let store = open(&data, Duration::from_secs(1), 3);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(store.add(&[booking(1)])).unwrap();
    stand_still(&data);
    let asked: Vec<_> = (0..5)
        .map(|_| {
            let store = store.clone();
            runtime.spawn(async move { store.of_customer("ann").await })
        })
        .collect();
    let answers: Vec<_> = asked.into_iter().map(|asked| runtime.block_on(asked).unwrap()).collect();
    let count =
        |is: fn(&StoreError) -> bool| answers.iter().filter(|answer| answer.as_ref().is_err_and(is)).count();
    assert_eq!(count(|error| matches!(error, StoreError::Busy { .. })), 2, "{answers:?}");
    assert_eq!(count(|error| matches!(error, StoreError::NoAnswer { .. })), 3, "{answers:?}");
    signal(&data, Signal::CONT);
    let list = eventually("an answer", || runtime.block_on(store.of_customer("ann")).ok());
    assert_eq!(list, [booking(1)]);
}
