//! Real clients against the airline: `curl` and `wrk`.

use std::process::Command;

use crate::common::{Client, Served};

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}; `make test-needs` installs it"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn airline() -> Served {
    let served = Served::start("airline", &["--durability", "memory"]);
    assert_eq!(Client::connect(&served.authority).get("/rest/info/loader/load?numCustomers=20").status, 200);
    served
}

#[test]
fn curl_logs_in_books_and_logs_out() {
    let served = airline();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let jar = dir.path().join("cookies");
    let jar = jar.to_str().expect("UTF-8");
    let url = |path: &str| format!("http://{}/acmeair-webapp/rest/api{path}", served.authority);
    let curl =
        |args: &[&str]| run("curl", &[&["-sS", "--max-time", "20", "-b", jar, "-c", jar][..], args].concat());

    let login = curl(&["-d", "login=uid3@email.com&password=password", &url("/login")]);
    assert_eq!(login, "logged in");
    let today = jiff::Timestamp::now().strftime("%a %b %d 00:00:00 UTC %Y").to_string();
    let found = curl(&[
        "--data-urlencode",
        &format!("fromDate={today}"),
        "--data-urlencode",
        &format!("returnDate={today}"),
        "-d",
        "fromAirport=CDG&toAirport=SVO&oneWay=false",
        &url("/flights/queryflights"),
    ]);
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["tripLegs"], 2);
    let leg = |i: usize| &found["tripFlights"][i]["flightsOptions"][0];
    assert_eq!((&leg(0)["flightSegmentId"], &leg(1)["flightSegmentId"]), (&"AA280".into(), &"AA241".into()));
    let text = |v: &serde_json::Value| v.as_str().expect("text").to_owned();
    let form = format!(
        "userid=uid3@email.com&toFlightId={}&toFlightSegId=AA280&retFlightId={}&retFlightSegId=AA241&oneWayFlight=false",
        text(&leg(0)["_id"]),
        text(&leg(1)["_id"])
    );
    let booked: serde_json::Value =
        serde_json::from_str(&curl(&["-d", &form, &url("/bookings/bookflights")])).expect("JSON");
    assert_eq!(booked["oneWay"], false);
    let listed: serde_json::Value =
        serde_json::from_str(&curl(&[&url("/bookings/byuser/uid3@email.com")])).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert_eq!(curl(&[&url("/login/logout?login=uid3@email.com")]), "logged out");
    let status = curl(&["-o", "/dev/null", "-w", "%{http_code}", &url("/bookings/byuser/uid3@email.com")]);
    assert_eq!(status, "403");
}

#[test]
fn wrk_drives_it_without_an_error() {
    let mut served = airline();
    let script = crate::common::project().join("bench/airline/queryflights.lua");
    let output = run(
        "wrk",
        &[
            "-t2",
            "-c32",
            "-d2s",
            // beyond it an answer is a socket error to it
            "--timeout",
            "30s",
            "-s",
            script.to_str().expect("UTF-8"),
            &format!("http://{}", served.authority),
        ],
    );
    assert!(output.contains("Requests/sec"), "{output}");
    assert!(!output.contains("Socket errors"), "{output}");
    assert!(!output.contains("Non-2xx"), "{output}");
    let metrics = Client::connect(&served.authority).get("/metrics");
    assert!(metrics.body.contains("queryflights"), "the route is in /metrics:\n{}", metrics.body);
    assert!(metrics.body.trim_end().ends_with("# EOF"));
    assert!(served.stop().success(), "a graceful stop exits 0");
}
