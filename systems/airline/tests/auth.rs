//! The auth service by its contract.

use tidemark_airline::AirlineAuth;

use crate::airline::Running;

const ANY: std::net::SocketAddr =
    std::net::SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0));
const TOKENS: [&str; 2] = ["/rest/api/authtoken", "/acmeair-auth-service/rest/api/authtoken"];

#[test]
fn a_session_is_made_found_and_removed() {
    let auth = Running::serve::<AirlineAuth>(ANY, &[("session_hours", "2")]);
    let mut client = auth.client();
    for tokens in TOKENS {
        let made = client.request("POST", &format!("{tokens}/byuserid/uid0%40%22email.com"), &[], b"");
        assert_eq!((made.status, made.header("content-type")), (200, Some("application/json")));
        let session = made.json();
        let id = session["_id"].as_str().unwrap().to_owned();
        assert_eq!((&session["id"], &session["customerid"]), (&session["_id"], &"uid0@\"email.com".into()));
        let (created, ends) = (session["lastAccessedTime"].as_i64(), session["timeoutTime"].as_i64());
        assert_eq!(ends.unwrap() - created.unwrap(), 2 * 3_600_000);
        for tokens in TOKENS {
            let found = client.get(&format!("{tokens}/{id}"));
            assert_eq!((found.status, found.header("content-type")), (200, Some("application/json")));
            assert_eq!(found.json(), session);
        }
        // removed is removed, however often
        for _ in 0..2 {
            assert_eq!(client.request("DELETE", &format!("{tokens}/{id}"), &[], b"").status, 200);
            assert_eq!(client.get(&format!("{tokens}/{id}")).status, 404);
        }
        for none in ["0", "00000000-0000-4000-8000-000000000000", "x%20y"] {
            assert_eq!(client.get(&format!("{tokens}/{none}")).status, 404, "{none}");
            assert_eq!(client.request("DELETE", &format!("{tokens}/{none}"), &[], b"").status, 200, "{none}");
        }
        assert_eq!(client.get(&format!("{tokens}/status")).status, 200);
        assert_eq!(client.request("PUT", &format!("{tokens}/{id}"), &[], b"").status, 405);
    }
    let metrics = client.get("/metrics");
    let line =
        "tidemark_requests_total{route=\"/rest/api/authtoken/{tokenid}\",method=\"GET\",status=\"200\"} 4";
    assert!(metrics.text().lines().any(|known| known == line), "{}", metrics.text());
}

#[test]
fn nothing_is_done_when_the_time_for_it_is_over() {
    let auth = Running::serve::<AirlineAuth>(ANY, &[]);
    let mut client = auth.client();
    let by_user = format!("{}/byuserid/u", TOKENS[0]);
    let made = client.request("POST", &by_user, &[("x-deadline-ms", "60000")], b"");
    let token = format!("{}/{}", TOKENS[0], made.json()["id"].as_str().unwrap());
    for (method, path) in [("POST", &by_user), ("GET", &token), ("DELETE", &token)] {
        assert_eq!(client.request(method, path, &[("x-deadline-ms", "0")], b"").status, 504, "{method}");
    }
    assert_eq!(client.request("GET", &token, &[("x-deadline-ms", "1000")], b"").status, 200);
}

#[test]
fn sessions_are_bounded() {
    let auth = Running::serve::<AirlineAuth>(ANY, &[("sessions_max", "2")]);
    let mut client = auth.client();
    let by_user = format!("{}/byuserid/u", TOKENS[0]);
    let statuses = [0; 3].map(|_| client.request("POST", &by_user, &[], b"").status);
    assert_eq!(statuses, [200, 200, 503]);
    let long = format!("{}/byuserid/{}", TOKENS[0], "x".repeat(5000));
    assert!((400..600).contains(&client.request("POST", &long, &[], b"").status));
}
