//! The shipped airline scenario against a stand-in for the airline: the published mix, request for request.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::support::{Answer, Sent, User, World};
use serde_json::{Value, json};
use tidemark_scenario::Plan;

const CUSTOMERS: usize = 30;
const DAYS: i64 = 30;

/// Requests for each session, as the model of the published driver has them.
const MODEL: [(&str, f64); 8] = [
    ("Login", 1.0),
    ("View Profile Information", 0.25),
    ("Update Customer", 0.25),
    ("QueryFlight", 5.0),
    ("BookFlight", 0.8095),
    ("List Bookings", 1.0),
    ("Cancel Booking", 1.438),
    ("logout", 1.0),
];

/// Origins that the scenario can ask for; none leaves from BOM or DEL, and none goes to AMS.
const ORIGINS: [&str; 13] =
    ["AMS", "FRA", "HKG", "LHR", "YUL", "SVO", "JFK", "CDG", "FCO", "SIN", "SYD", "IKA", "NRT"];
const DESTINATIONS: [&str; 14] =
    ["BOM", "DEL", "FRA", "HKG", "LHR", "YUL", "SVO", "JFK", "CDG", "FCO", "SIN", "SYD", "IKA", "NRT"];

/// The airline, as far as the scenario can see it.
#[derive(Default)]
struct Airline {
    /// With several users two may be the same customer at once, and what one has read the other has changed.
    alone: bool,
    bookings: HashMap<String, Vec<String>>,
    profiles: HashMap<String, (u32, u32)>,
    booked: u64,
    one_way: u64,
    pairs: HashMap<(String, String), u64>,
    /// Labels in the order of their requests.
    log: Vec<String>,
}

fn fields(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The day that a date in the browser's form names, or in that of the app's date field, counted from the run's.
fn day(text: &str) -> i64 {
    let is_iso = text.starts_with(|first: char| first.is_ascii_digit());
    let form = if is_iso { "%Y-%m-%d" } else { "%a %b %d 00:00:00 UTC %Y" };
    let parsed = jiff::fmt::strtime::parse(form, text).expect(text);
    let start = jiff::civil::date(2026, 11, 21);
    i64::from((parsed.to_date().expect("a date") - start).get_days())
}

fn leg(from: &str, to: &str, day: i64) -> Value {
    let flies =
        ORIGINS.contains(&from) && DESTINATIONS.contains(&to) && from != to && (0..DAYS).contains(&day);
    let (id, segment) = (format!("{from}-{to}-{day}"), format!("{from}-{to}"));
    let pkey = json!({ "id": id, "flightSegmentId": segment });
    let flight = json!({ "_id": id, "flightSegmentId": segment, "pkey": pkey });
    json!({ "hasMoreOptions": false, "flightsOptions": if flies { vec![flight] } else { vec![] } })
}

impl Airline {
    fn answer(&mut self, sent: &Sent) -> Answer {
        self.log.push(sent.label.clone());
        let (path, query) = sent.target.split_once('?').unwrap_or((&sent.target, ""));
        let path = path.strip_prefix("/rest/api").unwrap_or_else(|| panic!("{}", sent.target));
        let user = path.rsplit('/').next().unwrap_or_default().to_owned();
        let form = fields(&sent.body);
        let body = match (sent.method.as_str(), path) {
            ("POST", "/login") => {
                assert_eq!(form["password"], "password");
                assert!(sent.body.contains("%40email.com"), "{}", sent.body);
                "logged in".into()
            }
            ("GET", "/login/logout") => {
                assert!(fields(query).contains_key("login"));
                "logged out".into()
            }
            ("GET", "/customer/byid/") => unreachable!("a user is named"),
            ("GET", _) if path.starts_with("/customer/byid/") => self.profile(&user).to_string(),
            ("POST", _) if path.starts_with("/customer/byid/") => self.update(&user, sent),
            ("POST", "/flights/queryflights") => self.query(&form),
            ("POST", "/bookings/bookflights") => return self.book(&form),
            ("GET", _) if path.starts_with("/bookings/byuser/") => {
                let mine = self.bookings.get(&user).cloned().unwrap_or_default();
                let list: Vec<Value> = mine
                    .iter()
                    .map(|id| json!({ "_id": id, "pkey": { "id": id }, "customerId": user }))
                    .collect();
                Value::Array(list).to_string()
            }
            ("POST", "/bookings/cancelbooking") => {
                let mine = self.bookings.get_mut(&form["userid"]).expect("a known user");
                assert!(!self.alone || mine.contains(&form["number"]), "{} is not booked", form["number"]);
                mine.retain(|id| *id != form["number"]);
                "{\"status\":\"success\"}".into()
            }
            (method, path) => return Answer { status: 404, body: format!("{method} {path}") },
        };
        Answer { status: 200, body }
    }

    fn profile(&mut self, user: &str) -> Value {
        let number: usize =
            user.trim_start_matches("uid").trim_end_matches("@email.com").parse().expect(user);
        assert!(number < CUSTOMERS);
        let (street, postal_code) = self.profiles.get(user).copied().unwrap_or((123, 99_998));
        json!({
            "_id": user, "username": user, "status": "GOLD", "total_miles": 1_000_000, "miles_ytd": 1_000,
            "address": {
                "streetAddress1": format!("{street} Main St."), "city": "Anytown", "stateProvince": "NC",
                "country": "USA", "postalCode": postal_code.to_string(),
            },
            "phoneNumber": "919-123-4567", "phoneNumberType": "BUSINESS",
        })
    }

    /// The whole profile must come back, one house further, with the password.
    fn update(&mut self, user: &str, sent: &Sent) -> String {
        assert!(sent.head.contains("Content-Type: application/json"), "{}", sent.head);
        let (street, postal_code) = self.profiles.get(user).copied().unwrap_or((123, 99_998));
        let next = (street + 1, if postal_code >= 99_999 { 10_000 } else { postal_code + 1 });
        self.profiles.insert(user.to_owned(), next);
        let mut expected = self.profile(user);
        expected["password"] = json!("password");
        let got: Value = serde_json::from_str(&sent.body).expect(&sent.body);
        // the browser names it by its id
        expected.as_object_mut().expect("an object").remove("username");
        assert!(!self.alone || got == expected, "{got:#} instead of {expected:#}");
        sent.body.clone()
    }

    fn query(&mut self, form: &BTreeMap<String, String>) -> String {
        let (from, to) = (form["fromAirport"].as_str(), form["toAirport"].as_str());
        let (leave, back) = (day(&form["fromDate"]), day(&form["returnDate"]));
        assert!((0..=5).contains(&leave) && (6..=12).contains(&back), "{leave} {back}");
        assert_eq!(form.get("oneWay").or(form.get("oneWayChecked")).map(String::as_str), Some("false"));
        *self.pairs.entry((from.into(), to.into())).or_default() += 1;
        json!({ "tripLegs": 2, "tripFlights": [leg(from, to, leave), leg(to, from, back)] }).to_string()
    }

    fn book(&mut self, form: &BTreeMap<String, String>) -> Answer {
        let one_way = form["oneWayFlight"] == "true";
        let exists = |id: &str, segment: &str| id.starts_with(segment) && id.len() > segment.len();
        if !exists(&form["toFlightId"], &form["toFlightSegId"]) {
            return Answer { status: 404, body: format!("{form:?}") };
        }
        self.booked += 1;
        self.one_way += u64::from(one_way);
        let mine = self.bookings.entry(form["userid"].clone()).or_default();
        mine.push(format!("b{}", self.booked));
        if !one_way {
            assert!(exists(&form["retFlightId"], &form["retFlightSegId"]), "{form:?}");
            mine.push(format!("r{}", self.booked));
        }
        Answer { status: 200, body: "{}".into() }
    }
}

fn airline() -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/airline.yaml");
    let (plan, diagnostics) =
        tidemark_scenario::check_file(&path, &[("customers".into(), CUSTOMERS.to_string())]);
    assert!(diagnostics.items().is_empty(), "{diagnostics}");
    plan.expect("a plan")
}

/// Lets `users` go on in an order drawn by chance until so many sessions have ended.
fn drive<'p>(world: &mut World<'p>, users: usize, sessions: usize, kind: usize) -> Airline {
    let plan = world.plan;
    let mut airline = Airline { alone: users == 1, ..Airline::default() };
    let mut users: Vec<User<'p>> = (0..users).map(|_| User::new(&plan.sessions[kind])).collect();
    let mut order = fastrand::Rng::with_seed(11);
    let mut ended = 0;
    while ended < sessions {
        let user = order.usize(..users.len());
        ended += usize::from(!users[user].step(world, &mut |sent| airline.answer(sent)));
    }
    airline
}

/// Browsers first, then mobile apps.
#[test]
fn the_mix_is_the_published_one_of_each_kind() {
    for kind in 0..2 {
        the_mix_of(kind);
    }
}

fn the_mix_of(kind: usize) {
    let plan = airline();
    let mut world = World::new(&plan, 1);
    let airline = drive(&mut world, 9, 6_000, kind);
    assert!(world.failures.is_empty(), "{:#?}", &world.failures[..world.failures.len().min(5)]);

    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for label in &airline.log {
        *counts.entry(label).or_default() += 1.0;
    }
    let per_session: f64 = MODEL.iter().map(|(_, count)| count).sum();
    for (label, expected) in MODEL {
        let share = 100.0 * counts[label] / airline.log.len() as f64;
        let model = 100.0 * expected / per_session;
        assert!((share - model).abs() < 0.4, "{label}: {share:.2} % where the model has {model:.2} %");
    }
    assert_eq!(counts.len(), MODEL.len());
    let one_way = airline.one_way as f64 / airline.booked as f64;
    assert!((one_way - 0.2235).abs() < 0.02, "{one_way:.4} of the bookings are one way");
}

#[test]
fn queries_walk_through_all_pairs_in_turn() {
    let plan = airline();
    let mut world = World::new(&plan, 2);
    let airline = drive(&mut world, 7, 2_100, 0);
    assert_eq!(airline.pairs.len(), 14 * 15);
    let (least, most) = (airline.pairs.values().min().unwrap(), airline.pairs.values().max().unwrap());
    assert!(most - least <= 1, "{least} to {most} queries for each pair");
}

#[test]
fn with_one_user_both_branches_are_in_the_same_session_the_3rd_7th_11th() {
    let plan = airline();
    let mut world = World::new(&plan, 3);
    let airline = drive(&mut world, 1, 60, 0);
    assert!(world.failures.is_empty(), "{:#?}", world.failures);
    let sessions: Vec<&[String]> = airline.log.split(|label| label == "Login").skip(1).collect();
    let with = |label: &str| -> Vec<usize> {
        (1..=sessions.len()).filter(|n| sessions[n - 1].iter().any(|other| other == label)).collect()
    };
    let expected: Vec<usize> = (3..=60).step_by(4).collect();
    assert_eq!(with("View Profile Information"), expected);
    assert_eq!(with("Update Customer"), expected);
    assert!(with("Cancel Booking").iter().all(|n| expected.contains(n)));
    let first = ["QueryFlight"; 5];
    assert_eq!(sessions[0][..5], first);
    assert_eq!(sessions[0].last().map(String::as_str), Some("logout"));
}

#[test]
fn the_plan_says_what_to_start_and_how_long() {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let settings = [
        set("users", "7"),
        set("customers", "5k"),
        set("root", "/acmeair-webapp"),
        set("durability", "memory"),
    ];
    let plan = tidemark_scenario::load_shipped("airline", &settings).unwrap();
    assert_eq!(plan.name, "airline");
    assert_eq!(plan.labels[..8], MODEL.map(|(label, _)| label));
    assert_eq!(plan.labels[8..], ["Page", "Page not modified", "Load"]);
    let weights: Vec<_> = plan.sessions.iter().map(|kind| (kind.name.as_str(), kind.weight)).collect();
    assert_eq!(weights[..2], [("browser", 5), ("mobile", 1)]);
    assert_eq!(plan.system.settings["customers"], "5000");
    assert_eq!(plan.system.settings["days"], "30");
    assert_eq!(plan.system.durability.as_deref(), Some("memory"));
    let answers = tidemark_scenario::plan::Ready::Answers { path: "/health".into(), status: (200, 200) };
    assert_eq!(plan.system.ready, answers);
    let phases: Vec<_> =
        plan.load.phases.iter().map(|p| (p.name.as_str(), p.duration.as_secs(), p.to, p.measured)).collect();
    assert_eq!(phases, [("warm-up", 5, 7.0, false), ("hold", 20, 7.0, true)]);
    let prepare = plan.requests.last().unwrap().http().unwrap().head("", "");
    let prepare = prepare.as_literal().expect("no holes");
    let line = "GET /acmeair-webapp/rest/info/loader/load?numCustomers=5000 HTTP/1.1\r\n";
    assert!(prepare.starts_with(line.as_bytes()), "{}", String::from_utf8_lossy(prepare));
    assert_eq!(plan.objectives.len(), 2);
}
