//! The page, as it is served and in a real browser; and what pages of other sites may do: nothing.

use std::path::Path;
use std::process::Command;

use crate::airline::{PREFIXES, Running};

const NAMES: [&str; 7] =
    ["", "index.html", "flights.html", "checkin.html", "customerprofile.html", "config.html", "loader.html"];

#[test]
fn the_page_is_served_with_strict_headers_and_takes_only_get() {
    let running = Running::start();
    let mut client = running.client();
    for path in PREFIXES.iter().flat_map(|prefix| NAMES.map(|name| format!("{prefix}/{name}"))) {
        let reply = client.get(&path);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(reply.text().starts_with("<!doctype html>"), "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        let (hashed, plain): (Vec<_>, Vec<_>) = policy.split("; ").partition(|part| part.contains("sha256-"));
        let rest = [
            "default-src 'none'",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ];
        assert_eq!(plain, rest, "{path}");
        assert!(hashed[0].starts_with("script-src 'sha256-") && hashed[1].starts_with("style-src 'sha256-"));
        assert!(hashed.iter().all(|part| part.split(' ').count() == 2), "one hash each: {hashed:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        let head = client.request("HEAD", &path, &[], b"");
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(client.request("POST", &path, &[], b"").status, 405, "{path}");
    }
    let folder = client.get("/acmeair-webapp");
    assert_eq!((folder.status, folder.header("location")), (307, Some("/acmeair-webapp/")));
}

/// What changes something, or begins or ends a session.
const CHANGES: [(&str, &str); 8] = [
    ("POST", "/rest/api/login"),
    ("GET", "/rest/api/login/logout"),
    ("POST", "/rest/api/flights/queryflights"),
    ("POST", "/rest/api/flights/browseflights"),
    ("POST", "/rest/api/bookings/bookflights"),
    ("POST", "/rest/api/bookings/cancelbooking"),
    ("POST", "/rest/api/customer/byid/uid0@email.com"),
    ("GET", "/rest/info/loader/load?numCustomers=300"),
];

#[test]
fn pages_of_other_sites_change_nothing() {
    let running = Running::start();
    let mut client = running.login(0);
    let foreign: [&[(&str, &str)]; 5] = [
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site"), ("Origin", "http://test:81")],
        &[("Origin", "http://evil.example")],
        &[("Origin", "http://test:81")],
        &[("Origin", "null")],
    ];
    for (method, path) in CHANGES {
        for prefix in PREFIXES {
            for headers in foreign {
                let body: &[u8] =
                    if method == "POST" { b"login=uid0%40email.com&password=password" } else { b"" };
                let reply = client.request(method, &format!("{prefix}{path}"), headers, body);
                assert_eq!(
                    (reply.status, reply.header("set-cookie")),
                    (403, None),
                    "{method} {path} {headers:?}"
                );
                assert!(
                    reply.json()["reason"].as_str().unwrap().contains("another site"),
                    "{path} {headers:?}"
                );
            }
        }
    }
    assert_eq!(client.get("/rest/api/config/countCustomers").text(), "200");
    assert_eq!(client.get("/rest/api/config/countSessions").text(), "1", "none has begun, none has ended");
    assert_eq!(client.get("/rest/api/bookings/byuser/uid0@email.com").status, 200);
    // what only reads is nobody's to refuse: the browser keeps the answer from the other page
    let other = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(client.request("GET", "/rest/api/config/countCustomers", &other, b"").status, 200);
    assert_eq!(client.request("GET", "/flights.html", &other, b"").status, 200, "a link");
}

#[test]
fn a_whole_trip_in_a_browser() {
    // the browser's days are of the clock on the wall, and a trip takes less than what is between
    let running = Running::start();
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/check-airline.mjs");
    let output = Command::new("node")
        .arg(check)
        .arg(running.url())
        .output()
        .expect("node runs; `make test-needs` installs it");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
