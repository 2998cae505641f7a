//! The contract, row by row, by real HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::airline::{PREFIXES, Running, in_days, query};
use crate::client::{Client, Reply};
use serde_json::Value;

fn book(client: &mut Client, form: &str) -> Reply {
    client.form("/rest/api/bookings/bookflights", form)
}

fn bookings(client: &mut Client, user: &str) -> Vec<Value> {
    let reply = client.get(&format!("/rest/api/bookings/byuser/{user}"));
    assert_eq!(reply.status, 200);
    reply.json().as_array().unwrap().clone()
}

/// Ids of a flight CDG→SVO and one back.
fn flights(client: &mut Client) -> (String, String) {
    let reply = query(client, "CDG", "SVO", &in_days(1), &in_days(7), false).json();
    let id = |leg: usize| reply["tripFlights"][leg]["flightsOptions"][0]["_id"].as_str().unwrap().to_owned();
    (id(0), id(1))
}

#[test]
fn login_answers_literally_and_sets_one_cookie() {
    let running = Running::start();
    for prefix in PREFIXES {
        let mut client = running.client();
        let reply =
            client.form(&format!("{prefix}/rest/api/login"), "login=uid3%40email.com&password=password");
        assert_eq!((reply.status, reply.text()), (200, "logged in"));
        assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
        let cookies: Vec<_> = reply.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
        assert_eq!(cookies.len(), 1);
        let id = cookies[0].1.strip_prefix("sessionid=").unwrap();
        let id = id.strip_suffix("; Path=/; HttpOnly; SameSite=Lax").unwrap();
        assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
        assert_eq!(id, id.to_lowercase());
    }
    assert_eq!(running.client().get("/rest/api/config/countSessions").text(), "2");
}

#[test]
fn login_refuses() {
    let running = Running::start();
    let mut client = running.client();
    for (form, status) in [
        ("login=uid0%40email.com&password=wrong", 403),
        ("login=nobody&password=password", 403),
        ("login=&password=", 403),
        ("login=uid0%40email.com", 400),
        ("password=password", 400),
        ("", 400),
        ("%ff%fe&&&===", 400),
    ] {
        let reply = client.form("/rest/api/login", form);
        assert_eq!((reply.status, reply.header("set-cookie")), (status, None), "{form}");
        assert!(reply.json()["reason"].is_string());
    }
    let json = [("Content-Type", "application/json")];
    assert_eq!(client.request("POST", "/rest/api/login", &json, b"{}").status, 415);
    assert_eq!(client.get("/rest/api/config/countSessions").text(), "0");
}

#[test]
fn logout_always_succeeds_and_ends_that_session_only() {
    let running = Running::start();
    for prefix in PREFIXES {
        let mut first = running.login(0);
        let mut second = running.login(0);
        let path = format!("{prefix}/rest/api/login/logout?login=uid0%40email.com");
        let reply = first.get(&path);
        assert_eq!((reply.status, reply.text()), (200, "logged out"));
        assert_eq!(reply.header("set-cookie"), Some("sessionid=; Path=/; HttpOnly; SameSite=Lax"));
        assert_eq!(first.get("/rest/api/customer/byid/uid0@email.com").status, 403);
        assert_eq!(second.get("/rest/api/customer/byid/uid0@email.com").status, 200);
        assert_eq!(first.get(&path).text(), "logged out");
        let mut nobody = running.client();
        assert_eq!(nobody.get("/rest/api/login/logout").text(), "logged out");
    }
}

#[test]
fn without_a_session_everything_about_customers_is_403() {
    let running = Running::start();
    let unknown = format!("sessionid={}", uuid::Uuid::from_u128(1));
    for prefix in PREFIXES {
        for cookie in
            [None, Some("sessionid="), Some("sessionid=nonsense"), Some(unknown.as_str()), Some("x=y")]
        {
            let mut client = running.client();
            client.cookie = cookie.map(str::to_owned);
            for (method, path) in [
                ("POST", "flights/queryflights"),
                ("POST", "flights/browseflights"),
                ("POST", "bookings/bookflights"),
                ("POST", "bookings/cancelbooking"),
                ("GET", "bookings/byuser/uid0@email.com"),
                ("GET", "bookings/bybookingnumber/uid0@email.com/x"),
                ("GET", "customer/byid/uid0@email.com"),
                ("POST", "customer/byid/uid0@email.com"),
            ] {
                let reply = client.request(method, &format!("{prefix}/rest/api/{path}"), &[], b"");
                assert_eq!(reply.status, 403, "{method} {path} with {cookie:?}");
                assert!(reply.json()["reason"].is_string());
            }
        }
    }
}

#[test]
fn unknown_paths_are_404_and_unknown_methods_405_before_any_session() {
    let running = Running::start();
    let mut client = running.client();
    for path in [
        "/rest",
        "/rest/api",
        "/rest/api/nothing",
        "/other.html",
        "/rest/api/customer/byid",
        "/rest/api/customer/byid/a/b",
        "/rest/info/login",
        "/other/rest/api/login",
        "/rest/api/login/",
    ] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/json")), "{path}");
    }
    for (method, path, allow) in [
        ("GET", "/rest/api/login", "POST"),
        ("POST", "/rest/api/login/logout", "GET,HEAD"),
        ("GET", "/rest/api/flights/queryflights", "POST"),
        ("DELETE", "/acmeair-webapp/rest/api/customer/byid/uid0@email.com", "GET,HEAD,POST"),
        ("PUT", "/rest/info/loader/load", "GET,HEAD"),
    ] {
        let reply = client.request(method, path, &[], b"");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {path}");
    }
}

#[test]
fn the_description_is_of_what_is_served() {
    let running = Running::start();
    let mut client = running.client();
    let document = crate::client::described_is_served(&mut client);
    for server in document["servers"].as_array().unwrap() {
        let base = server["url"].as_str().unwrap().trim_end_matches('/');
        assert_eq!(client.get(&format!("{base}/rest/info/checkstatus")).text(), "OK");
    }
    // what is said of one way to say who one is holds: the cookie, and 403 without it
    let needs_session = &document["paths"]["/rest/api/bookings/byuser/{user}"]["get"]["security"];
    assert_eq!(needs_session, &serde_json::json!([{"session": []}]));
    assert_eq!(document["components"]["securitySchemes"]["session"]["name"], "sessionid");
}

#[test]
fn query_has_the_shape_of_both_servers() {
    let running = Running::start();
    let mut client = running.login(0);
    let reply = query(&mut client, "CDG", "SVO", &in_days(1), &in_days(7), false);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let json = reply.json();
    assert_eq!(json["tripLegs"], 2);
    let legs = json["tripFlights"].as_array().unwrap();
    for (leg, (segment, origin)) in legs.iter().zip([("AA280", "CDG"), ("AA241", "SVO")]) {
        assert_eq!((&leg["hasMoreOptions"], &leg["numPages"]), (&false.into(), &1.into()));
        assert_eq!((&leg["pageSize"], &leg["currentPage"]), (&10.into(), &0.into()));
        let flights = leg["flightsOptions"].as_array().unwrap();
        assert_eq!(flights.len(), 1);
        assert_eq!(flights[0]["flightSegmentId"], segment);
        assert_eq!(flights[0]["flightSegment"]["originPort"], origin);
        assert_eq!(flights[0]["_id"], flights[0]["id"]);
        assert!(flights[0]["flightSegment"]["miles"].is_u64());
    }
    assert_eq!(legs.len(), 2);
    let again = query(&mut client, "CDG", "SVO", &in_days(1), &in_days(7), false);
    assert_eq!(again.body, reply.body, "the same question has the same answer");
}

#[test]
fn query_knows_every_form_of_date() {
    let running = Running::start();
    let mut client = running.login(0);
    let day = crate::airline::today() + jiff::Span::new().days(3);
    let expected = query(&mut client, "JFK", "LHR", &day.to_string(), "", true).body;
    for form in [
        "%a %b %d 00:00:00 UTC %Y",
        "%a %b %d %Y 00:00:00 GMT+0000 (UTC)",
        "%a, %d %b %Y 00:00:00 GMT",
        "%Y-%m-%dT00:00:00.000Z",
    ] {
        let reply = query(&mut client, "JFK", "LHR", &day.strftime(form).to_string(), "", true);
        assert_eq!((reply.status, &reply.body), (200, &expected), "{form}");
    }
    for (from, back) in [("tomorrow", ""), ("", ""), ("2026-13-01", ""), ("21.11.2026", "")] {
        let reply = query(&mut client, "JFK", "LHR", from, back, true);
        assert_eq!(reply.status, 400, "{from}");
        assert!(reply.json()["reason"].as_str().unwrap().starts_with("fromDate"));
    }
    assert_eq!(query(&mut client, "JFK", "LHR", &in_days(0), "never", false).status, 400);
    // The return date of a single flight does not matter.
    assert_eq!(query(&mut client, "JFK", "LHR", &in_days(0), "never", true).status, 200);
    for form in [
        "toAirport=LHR&fromDate=2026-11-21",
        "fromAirport=JFK&toAirport=LHR",
        "fromAirport=JFK&toAirport=LHR&fromDate=2026-11-21",
        "fromAirport=JFK&toAirport=LHR&oneWay=perhaps",
        "",
    ] {
        let reply = client.form("/rest/api/flights/queryflights", form);
        assert_eq!(reply.status, 400, "{form}");
    }
}

#[test]
fn query_without_flights_is_empty() {
    let running = Running::start();
    let mut client = running.login(0);
    for (from, to, day, expected) in [
        ("JFK", "LHR", in_days(0), [1, 1]),
        ("JFK", "LHR", in_days(29), [1, 1]),
        ("JFK", "LHR", in_days(30), [0, 1]),
        ("JFK", "LHR", in_days(-1), [0, 1]),
        ("AMS", "JFK", in_days(0), [1, 0]),
        ("BOM", "JFK", in_days(0), [0, 1]),
        ("JFK", "JFK", in_days(0), [0, 0]),
        ("XXX", "\"}<script>", in_days(0), [0, 0]),
        ("", "", in_days(0), [0, 0]),
    ] {
        let json = query(&mut client, from, to, &day, &in_days(6), false).json();
        let options = |leg: usize| json["tripFlights"][leg]["flightsOptions"].as_array().unwrap().len();
        assert_eq!([options(0), options(1)], expected, "{from}-{to} on {day}");
    }
    let one_way = query(&mut client, "JFK", "LHR", &in_days(0), "", true).json();
    assert_eq!((&one_way["tripLegs"], one_way["tripFlights"].as_array().unwrap().len()), (&1.into(), 1));
}

#[test]
fn browse_shows_every_day() {
    let running = Running::start();
    let mut client = running.login(0);
    let json = client.form("/rest/api/flights/browseflights", "fromAirport=CDG&toAirport=SVO").json();
    let days = |leg: usize| json["tripFlights"][leg]["flightsOptions"].as_array().unwrap().len();
    assert_eq!((&json["tripLegs"], days(0), days(1)), (&2.into(), 30, 30));
    let form = "fromAirport=AMS&toAirport=BOM&oneWay=true";
    let json = client.form("/acmeair-webapp/rest/api/flights/browseflights", form).json();
    assert_eq!((&json["tripLegs"], json["tripFlights"].as_array().unwrap().len()), (&1.into(), 1));
    assert_eq!(client.form("/rest/api/flights/browseflights", "fromAirport=AMS").status, 400);
}

#[test]
fn booking_and_listing() {
    let running = Running::start();
    let mut client = running.login(5);
    let (to, back) = flights(&mut client);
    assert_eq!(bookings(&mut client, "uid5@email.com"), Vec::<Value>::new());

    // One way: what is said about the return is stale and does not count.
    let form = format!(
        "userid=uid5%40email.com&toFlightId={to}&toFlightSegId=AA280&retFlightId=null&oneWayFlight=true"
    );
    let one = book(&mut client, &form).json();
    assert_eq!((&one["oneWay"], one.get("returnBookingId")), (&true.into(), None));
    let form = format!("userid=uid5%40email.com&toFlightId={to}&retFlightId={back}&oneWayFlight=false");
    let both = book(&mut client, &form).json();
    assert_eq!(both["oneWay"], false);

    let list = bookings(&mut client, "uid5%40email.com");
    let ids: Vec<&Value> = list.iter().map(|booking| &booking["_id"]).collect();
    assert_eq!(ids, [&one["departBookingId"], &both["departBookingId"], &both["returnBookingId"]]);
    for (booking, flight) in list.iter().zip([&to, &to, &back]) {
        assert_eq!((&booking["bookingId"], &booking["pkey"]["id"]), (&booking["_id"], &booking["_id"]));
        assert_eq!(booking["customerId"], "uid5@email.com");
        assert_eq!(booking["pkey"]["customerId"], "uid5@email.com");
        assert_eq!(booking["flightId"], **flight);
        assert_eq!(booking["dateOfBooking"], crate::airline::now_ms());
    }
    assert_eq!(client.get("/rest/api/config/countBookings").text(), "3");
}

#[test]
fn booking_refuses() {
    let running = Running::start();
    let mut client = running.login(5);
    let (to, back) = flights(&mut client);
    let nobodys = uuid::Uuid::from_u128(77);
    for (form, status) in [
        (format!("userid=uid6%40email.com&toFlightId={to}&oneWayFlight=true"), 403),
        (format!("toFlightId={to}&oneWayFlight=true"), 400),
        ("userid=uid5%40email.com&oneWayFlight=true".to_owned(), 400),
        ("userid=uid5%40email.com&toFlightId=null&oneWayFlight=true".to_owned(), 400),
        (format!("userid=uid5%40email.com&toFlightId={nobodys}&oneWayFlight=true"), 404),
        (format!("userid=uid5%40email.com&toFlightId={to}"), 400),
        (format!("userid=uid5%40email.com&toFlightId={to}&retFlightId={nobodys}"), 404),
        (format!("userid=uid5%40email.com&toFlightId={to}&retFlightId={back}&oneWayFlight=maybe"), 400),
    ] {
        let reply = book(&mut client, &form);
        assert_eq!(reply.status, status, "{form}");
        assert!(reply.json()["reason"].is_string());
    }
    assert_eq!(client.get("/rest/api/config/countBookings").text(), "0", "nothing of it was booked");
}

#[test]
fn a_booking_by_its_number() {
    let running = Running::start();
    let mut client = running.login(1);
    let (to, _) = flights(&mut client);
    let form = format!("userid=uid1%40email.com&toFlightId={to}&oneWayFlight=true");
    let id = book(&mut client, &form).json()["departBookingId"].as_str().unwrap().to_owned();
    let path = |user: &str, number: &str| format!("/rest/api/bookings/bybookingnumber/{user}/{number}");
    let found = client.get(&path("uid1@email.com", &id));
    assert_eq!(found.json(), bookings(&mut client, "uid1@email.com")[0]);
    for number in [&uuid::Uuid::nil().to_string(), "null", "%22"] {
        let reply = client.get(&path("uid1@email.com", number));
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{number}");
    }
    assert_eq!(client.get(&path("uid2@email.com", &id)).status, 403);
    assert_eq!(running.login(2).get(&path("uid2@email.com", &id)).status, 204, "it is not theirs");
}

#[test]
fn cancelling_is_the_same_however_often() {
    let running = Running::start();
    let mut client = running.login(1);
    let (to, back) = flights(&mut client);
    let form = format!("userid=uid1%40email.com&toFlightId={to}&retFlightId={back}");
    let id = book(&mut client, &form).json()["departBookingId"].as_str().unwrap().to_owned();
    let cancel = |client: &mut Client, number: &str, user: &str| {
        client.form("/rest/api/bookings/cancelbooking", &format!("number={number}&userid={user}"))
    };
    let mut other = running.login(2);
    assert_eq!(cancel(&mut other, &id, "uid1%40email.com").status, 403);
    assert_eq!(cancel(&mut other, &id, "uid2%40email.com").status, 200);
    assert_eq!(bookings(&mut client, "uid1@email.com").len(), 2, "nobody cancels another's booking");
    for number in [id.as_str(), id.as_str(), &uuid::Uuid::nil().to_string(), "null", ""] {
        let reply = cancel(&mut client, number, "uid1%40email.com");
        assert_eq!((reply.status, reply.json()["status"].as_str()), (200, Some("success")), "{number}");
    }
    assert_eq!(bookings(&mut client, "uid1@email.com").len(), 1);
    assert_eq!(client.form("/rest/api/bookings/cancelbooking", "userid=uid1%40email.com").status, 400);
    assert_eq!(client.form("/rest/api/bookings/cancelbooking", &format!("number={id}")).status, 400);
}

#[test]
fn a_customer_sees_only_himself() {
    let running = Running::start();
    let mut client = running.login(0);
    for prefix in PREFIXES {
        for path in [
            "customer/byid/uid1@email.com",
            "customer/byid/nobody",
            "bookings/byuser/uid1@email.com",
            "bookings/byuser/%22%3Cscript%3E",
            "customer/byid/%ff",
        ] {
            let reply = client.get(&format!("{prefix}/rest/api/{path}"));
            let expected = if path.ends_with("ff") { 400 } else { 403 };
            assert_eq!(reply.status, expected, "{path}");
            assert!(reply.json()["reason"].is_string());
        }
        let own = client.get(&format!("{prefix}/rest/api/customer/byid/uid0%40email.com"));
        assert_eq!(own.json()["username"], "uid0@email.com");
    }
}

#[test]
fn profile_is_shown_and_changed() {
    let running = Running::start();
    let mut client = running.login(0);
    let path = "/rest/api/customer/byid/uid0@email.com";
    let mut profile = client.get(path).json();
    assert_eq!((&profile["_id"], &profile["status"]), (&"uid0@email.com".into(), &"GOLD".into()));
    assert_eq!(profile.get("password"), None);

    // As the published driver does it: everything back, some of it changed, the password added.
    profile["address"]["streetAddress1"] = "124 Main St.".into();
    profile["address"]["postalCode"] = "27618".into();
    profile["status"] = "PLATINUM".into();
    profile["password"] = "password".into();
    let headers =
        [("Content-Type", "application/json; charset=UTF-8"), ("X-Requested-With", "XMLHttpRequest")];
    let reply = client.request("POST", path, &headers, profile.to_string().as_bytes());
    assert_eq!(reply.status, 200);
    let changed = reply.json();
    assert_eq!(changed, client.get(path).json());
    assert_eq!(changed["address"]["streetAddress1"], "124 Main St.");
    assert_eq!((&changed["address"]["postalCode"], &changed["status"]), (&"27618".into(), &"GOLD".into()));
    assert_eq!(changed.get("password"), None);
    assert_eq!(running.login(0).get(path).json(), changed, "the password is still the old one");
    // A load afterwards leaves it alone.
    assert_eq!(client.get("/rest/api/loader/load").status, 200);
    assert_eq!(client.get(path).json(), changed);
}

#[test]
fn profile_changes_are_refused() {
    let running = Running::start();
    let mut client = running.login(0);
    let path = "/rest/api/customer/byid/uid0@email.com";
    let before = client.get(path).body;
    let address =
        r#""address":{"streetAddress1":"1 x","city":"c","stateProvince":"s","country":"d","postalCode":"1"}"#;
    for (body, status) in [
        (format!(r#"{{"_id":"uid0@email.com","password":"wrong",{address}}}"#), 403),
        (format!(r#"{{"_id":"uid0@email.com",{address}}}"#), 403),
        (format!(r#"{{"_id":"uid1@email.com","password":"password",{address}}}"#), 403),
        (format!(r#"{{"password":"password",{address}}}"#), 400),
        (r#"{"_id":"uid0@email.com","password":"password"}"#.to_owned(), 400),
        (format!(r#"{{"_id":"uid0@email.com","password":"password","phoneNumberType":"X",{address}}}"#), 400),
        ("{".to_owned(), 400),
        (String::new(), 400),
    ] {
        let reply = client.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes());
        assert_eq!(reply.status, status, "{body}");
        assert!(!reply.text().contains("password\":"));
    }
    assert_eq!(client.get(path).body, before);
    let hostile =
        r#"{"username":"uid0@email.com","password":"password","phoneNumber":"\"</script>\n\u0000",ADDRESS}"#;
    let reply = client.request("POST", path, &[], hostile.replace("ADDRESS", address).as_bytes());
    assert_eq!(reply.json()["phoneNumber"], "\"</script>\n\u{0}", "kept, and escaped");
    assert!(!reply.body.contains(&b'\n'));
}

#[test]
fn loading_twice_doubles_nothing() {
    let running = Running::start();
    let mut client = running.client();
    for prefix in PREFIXES {
        for base in ["api", "info"] {
            let query = format!("{prefix}/rest/{base}/loader/query");
            let load = format!("{prefix}/rest/{base}/loader/load");
            assert!(client.get(&query).text().parse::<u64>().unwrap() >= 200);
            let reply = client.get(&format!("{load}?numCustomers=250"));
            assert!(reply.text().starts_with("Loaded flights and 250 customers in "), "{}", reply.text());
            assert!(reply.text().ends_with(" seconds"));
            assert_eq!(client.get(&query).text(), "250");
            assert!(client.get(&load).text().starts_with("Loaded flights and 250 customers"));
            assert_eq!(client.get("/rest/api/config/countCustomers").text(), "250");
            assert_eq!(client.get("/rest/api/config/countFlights").text(), "11820");
            for wrong in ["0", "-1", "many", "99999999999", "1e3"] {
                assert_eq!(client.get(&format!("{load}?numCustomers={wrong}")).status, 400, "{wrong}");
            }
        }
    }
    assert_eq!(running.login(249).get("/rest/api/customer/byid/uid249@email.com").status, 200);
}

#[test]
fn configuration_needs_no_session() {
    let running = Running::start();
    let mut client = running.client();
    for prefix in PREFIXES {
        for base in ["api", "info"] {
            let mut get = |path: &str| client.get(&format!("{prefix}/rest/{base}/{path}"));
            for (count, expected) in [
                ("Customers", "200"),
                ("Sessions", "0"),
                ("Flights", "11820"),
                ("FlightSegments", "394"),
                ("Bookings", "0"),
                ("Airports", "31"),
            ] {
                let reply = get(&format!("config/count{count}"));
                assert_eq!((reply.status, reply.text()), (200, expected), "{count}");
                assert_eq!(reply.header("content-type"), Some("application/json"));
            }
            let runtime = get("config/runtime").json();
            assert_eq!(
                (&runtime[0]["name"], &runtime[0]["description"]),
                (&"Runtime".into(), &"Rust".into())
            );
            assert_eq!((&runtime[1]["name"], &runtime[2]["name"]), (&"Version".into(), &"Vendor".into()));
            let services = get("config/dataServices").json();
            assert_eq!(services[0]["name"], "embedded");
            assert!(services[0]["description"].is_string());
            assert_eq!(get("config/activeDataService").text(), crate::airline::active_data_service());
            let status = get("checkstatus");
            assert_eq!((status.status, status.text()), (200, "OK"));
        }
    }
}

#[test]
fn a_session_lasts_a_day_however_much_it_is_used() {
    let time = Arc::new(AtomicI64::new(crate::airline::now_ms()));
    let running = Running::start_with_clock(crate::airline::options(), time.clone());
    let mut client = running.login(0);
    let path = "/rest/api/customer/byid/uid0@email.com";
    let pass = |hours: i64| time.fetch_add(hours * 3_600_000, Ordering::SeqCst);
    pass(23);
    assert_eq!(client.get(path).status, 200);
    pass(1);
    assert_eq!(client.get(path).status, 403);
    assert_eq!(
        client.get("/rest/api/config/countSessions").text(),
        "0",
        "it is removed when it is presented"
    );
    assert_eq!(running.login(0).get(path).status, 200);
}

/// The tests above that are about what is kept in a store, by how their names begin.
const SESSIONS: &[&str] = &["login_", "logout_", "without_a_session", "a_session_lasts"];
const CUSTOMERS: &[&str] = &["login_", "a_customer_", "profile_", "loading_"];
const BOOKINGS: &[&str] = &["booking_", "a_booking_", "cancelling_"];
const FLIGHTS: &[&str] = &["query_", "browse_", "booking_", "loading_"];

/// The tests about these once more with the data where `stores` says; `variables` say where that is.
fn holds_in(stores: &str, about: &[&[&str]], variables: &[(&str, String)]) {
    let names = about.concat().into_iter().chain(["configuration_"]);
    let names: Vec<String> = names.map(|name| format!("contract::{name}")).collect();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(&names)
        .arg("--test-threads=4")
        .env(crate::airline::STORES_VARIABLE, stores)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "with {stores}:\n{said}");
    for name in names {
        assert!(said.contains(&format!("test {name}")), "with {stores} no {name} was run:\n{said}");
    }
}

/// Answers to flight queries held, though flights are computed.
#[test]
fn the_contract_holds_with_a_cache_of_flights() {
    holds_in("flight_cache=3 embedded", &[FLIGHTS], &[]);
}

/// Each test with a data tier of its own.
#[test]
fn the_contract_holds_with_a_data_tier() {
    let all = "customers_in=data,sessions_in=data,bookings_in=data data";
    holds_in(all, &[SESSIONS, CUSTOMERS, BOOKINGS], &[]);
    holds_in("sessions_in=data embedded+data", &[SESSIONS], &[]);
}

/// Each test in databases of its own. Needs Debian's packages `postgresql` and `redis-server`.
#[cfg(all(feature = "postgres", feature = "redis"))]
#[test]
fn the_contract_holds_wherever_the_data_is() {
    let postgres = crate::airline::servers::PostgresServer::start(&[]);
    let redis = crate::airline::servers::RedisServer::start(&[]);
    let in_postgres = "customers_in=postgres,sessions_in=postgres,bookings_in=postgres postgres";
    let in_several = "customers_in=postgres,sessions_in=redis,flights_in=postgres embedded+postgres+redis";
    for (first_database, stores, about) in [
        (0, in_postgres, &[SESSIONS, CUSTOMERS, BOOKINGS][..]),
        (300, in_several, &[SESSIONS, FLIGHTS][..]),
        (600, "flights_in=postgres,flight_cache=0 embedded+postgres", &[FLIGHTS][..]),
    ] {
        let variables = [
            (crate::airline::POSTGRES_VARIABLE, postgres.port().to_string()),
            (crate::airline::REDIS_VARIABLE, redis.port().to_string()),
            (crate::airline::DATABASE_VARIABLE, first_database.to_string()),
        ];
        holds_in(stores, about, &variables);
    }
}

/// Each test in a database of its own. Needs Debian's package `mariadb-server`.
#[cfg(all(feature = "mariadb", feature = "postgres", feature = "redis"))]
#[test]
fn the_contract_holds_in_mariadb() {
    let mariadb = crate::airline::mariadb::MariadbServer::start(&["--table-open-cache=400"]);
    let url = mariadb.database();
    let databases: String = (0..40).map(|number| format!("CREATE DATABASE test{number};")).collect();
    mariadb.sql(&url, &databases);
    let place = url.rsplit_once('/').unwrap().0.to_owned();
    let stores = "customers_in=mariadb,bookings_in=mariadb embedded+mariadb";
    holds_in(stores, &[CUSTOMERS, BOOKINGS], &[(crate::airline::MARIADB_VARIABLE, place)]);
}

/// Each test in a keyspace of its own.
#[cfg(feature = "cassandra")]
#[test]
#[ignore = "TIDEMARK_TEST_CASSANDRA names the address of a Cassandra to test with, HOST:PORT"]
fn the_contract_holds_in_cassandra() {
    let place = std::env::var(crate::airline::CASSANDRA_VARIABLE).expect("a Cassandra, HOST:PORT");
    let stores = "customers_in=cassandra,bookings_in=cassandra embedded+cassandra";
    holds_in(stores, &[CUSTOMERS, BOOKINGS], &[(crate::airline::CASSANDRA_VARIABLE, place)]);
}
