//! The contract of the news feed, from outside, over HTTP.

use std::collections::BTreeSet;

use crate::client::eventually;
use crate::feed::{JSON, Running, befriend, made, participant, post};
use serde_json::{Value, json};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn today() -> String {
    let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output().unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_whole_visit_is_answered_as_published() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let joe = made(&mut client, "/participant", &json!({"name": "joe", "id": 99, "link": "x"}));
    assert_eq!(joe, json!({"id": 1, "name": "joe", "link": "/participant/1"}));
    assert_eq!(participant(&mut client, "larry \"ä\""), 2);
    let reply = client.get("/participant/2");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json(), json!({"id": 2, "name": "larry \"ä\"", "link": "/participant/2"}));
    assert_eq!(client.get("/participant?name=joe").json(), json!([joe]));

    let body = json!({"from": "/participant/1", "to": "/participant/2"});
    let friendship = made(&mut client, "/participant/1/friends", &body);
    assert_eq!(friendship, json!({"id": 1, "from": "/participant/1", "to": "/participant/2"}));
    assert_eq!(client.get("/participant/1/friends").json(), json!([friendship]));
    let other_side = json!([{"id": 1, "from": "/participant/2", "to": "/participant/1"}]);
    assert_eq!(client.get("/participant/2/friends").json(), other_side);

    let before = today();
    let item = json!({"from": "/participant/1", "occurred": "2014-01-05", "subject": "test subject", "story": "Test story"});
    assert_eq!(made(&mut client, "/participant/1/outbound", &item), item);
    let kept = client.get("/participant/1/outbound").json();
    let occurred = kept[0]["occurred"].as_str().unwrap();
    assert!([before, today()].iter().any(|day| day == occurred), "the server's day: {occurred}");
    let outbound = json!({"from": "/participant/1", "occurred": occurred, "subject": "test subject", "story": "Test story"});
    assert_eq!(kept, json!([outbound]));
    let mut inbound = outbound;
    inbound["to"] = "/participant/2".into();
    assert_eq!(client.get("/participant/2/inbound").json(), json!([inbound]));
    assert_eq!(client.get("/participant/1/inbound").text(), "[]");
    assert_eq!(client.get("/outbound?keywords=TEST").json(), json!(["/participant/1"]));
    assert_eq!(client.get("/outbound?keywords=nothing+story").json(), json!(["/participant/1"]));
    assert_eq!(client.get("/outbound?keywords=subject").text(), "[]", "only stories are searched");
    assert_eq!(client.get("/behind").text(), "0");
}

#[test]
fn forms_are_answered_as_arrays() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let mut form = |path: &str, body: &str| {
        let reply = client.request("POST", path, &[FORM], body.as_bytes());
        assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
        reply.json()
    };
    let [moe, larry] =
        [1, 2].map(|id| json!({"id": id, "name": "Moe H", "link": format!("/participant/{id}")}));
    assert_eq!(form("/participant", "name=Moe+H"), json!([moe]));
    assert_eq!(form("/participant", "name=Moe%20H"), json!([larry]));
    let friendship = form("/participant/1/friends", "from=1&to=2");
    assert_eq!(friendship, json!([{"id": 1, "from": moe, "to": larry}]));
    let posted = form("/participant/1/outbound", "occurred=2014-01-0&subject=a+b&story=c");
    assert_eq!(
        posted,
        json!([{"from": "/participant/1", "occurred": "2014-01-0", "subject": "a b", "story": "c"}])
    );
}

/// As forms, which the service took in 2014, and as JSON, which those of 2016 took on the same paths.
#[test]
fn the_paths_of_2014_answer_with_numbers_participants_and_arrays() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let before = today();
    let mut ask = |path: &str, form: &str, json: Value| {
        let (of_form, of_json) = (form.as_bytes().to_vec(), json.to_string().into_bytes());
        [(FORM, of_form), (JSON, of_json)].map(|(kind, body)| {
            let reply = client.request("POST", path, &[kind], &body);
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            reply.json()
        })
    };
    let person = |id: u64| json!({"id": id, "name": "Moe"});
    let made = ask("/participant/new", "name=Moe", json!({"name": "Moe"}));
    assert_eq!(made, [json!([person(1)]), json!([person(2)])]);
    let friendship = json!({"id": 1, "from": person(1), "to": person(2)});
    for made in ask("/friends/new", "from=1&to=2", json!({"from": 1, "to": 2})) {
        assert_eq!(made, json!([friendship]));
    }
    let item = json!({"from": 1, "occurred": "2014-01-05", "subject": "s", "story": "some words"});
    for made in ask("/outbound/new", "from=1&occurred=2014-01-05&subject=s&story=some+words", item.clone()) {
        assert_eq!(made, json!([item]));
    }
    for found in ask("/outbound/search", "terms=words", json!({"terms": "WORDS other"})) {
        assert_eq!(found, json!([1]));
    }
    assert_eq!(client.request("POST", "/outbound/search?keywords=words", &[], b"").json(), json!([1]));
    assert_eq!(client.get("/friends/1").json(), json!([friendship]));
    assert_eq!(client.get("/friends/2").json(), json!([{"id": 1, "from": person(2), "to": person(1)}]));
    let mut kept = client.get("/outbound/1").json();
    let occurred = kept[0]["occurred"].take();
    assert!([before, today()].iter().any(|day| occurred == day.as_str()), "the server's day: {occurred}");
    let item = json!({"from": 1, "occurred": occurred, "subject": "s", "story": "some words"});
    assert_eq!(client.get("/outbound/1").json(), json!([item, item]));
    let inbound =
        json!({"from": person(1), "to": 2, "occurred": occurred, "subject": "s", "story": "some words"});
    assert_eq!(client.get("/inbound/2").json(), json!([inbound, inbound]));
    assert_eq!(client.get("/inbound/1").text(), "[]");

    let mut status = |method: &str, path: &str, body: &str| {
        let reply = client.request(method, path, &[FORM], body.as_bytes());
        assert!(reply.json()["error"].as_str().is_some_and(|error| !error.is_empty()), "{path} {body}");
        reply.status
    };
    for (path, body) in [
        ("/participant/new", "name="),
        ("/friends/new", "to=2"),
        ("/friends/new", "from=x&to=2"),
        ("/friends/new", "from=1"),
        ("/outbound/new", "subject=s&story=t"),
        ("/outbound/new", "from=1&story=t"),
        ("/outbound/search", "terms="),
        ("/outbound/search", "x=y"),
    ] {
        assert_eq!(status("POST", path, body), 400, "{path} {body}");
    }
    assert_eq!(status("POST", "/friends/new", "from=1&to=9"), 404);
    assert_eq!(status("POST", "/outbound/new", "from=9&subject=s&story=t"), 404);
    for path in ["/friends", "/inbound", "/outbound"] {
        assert_eq!(
            (status("GET", &format!("{path}/9"), ""), status("GET", &format!("{path}/x"), "")),
            (404, 400)
        );
    }
    assert_eq!(status("GET", "/friends/new", ""), 405);
}

#[test]
fn what_is_wrong_is_refused_with_a_reason() {
    let running = Running::start(&[]);
    let mut client = running.client();
    participant(&mut client, "joe");
    let mut refused = |method: &str, path: &str, body: &str, status: u16| {
        let reply = client.request(method, path, &[JSON], body.as_bytes());
        assert_eq!(reply.status, status, "{method} {path} {body}: {}", reply.text());
        let body = reply.json();
        assert!(body["error"].as_str().is_some_and(|error| !error.is_empty()), "{path}: {body}");
        assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    };
    let long = format!(r#"{{"name":"{}"}}"#, "ä".repeat(51));
    for body in
        ["", "{", "[]", r#"["C"]"#, "{}", r#"{"name":null}"#, r#"{"name":7}"#, r#"{"name":"  "}"#, &long]
    {
        refused("POST", "/participant", body, 400);
    }
    let large = format!(r#"{{"subject":"s","story":"{}"}}"#, "x".repeat(15_001));
    for body in ["", "{}", r#"{"subject":"s"}"#, r#"{"story":"s"}"#, r#"{"subject":"s","story":""}"#, &large]
    {
        refused("POST", "/participant/1/outbound", body, 400);
    }
    refused("POST", "/participant/1/friends", r#"{"to":"/participant/1"}"#, 409);
    for body in ["{}", r#"{"to":"x"}"#, r#"{"to":-2}"#, r#"{"to":""}"#] {
        refused("POST", "/participant/1/friends", body, 400);
    }
    refused("POST", "/participant/1/friends", r#"{"to":"/participant/2"}"#, 404);
    refused("POST", "/participant/2/friends", r#"{"to":"/participant/1"}"#, 404);
    refused("POST", "/participant/2/outbound", r#"{"subject":"s","story":"s"}"#, 404);
    for id in ["%FF", "0", "-1", "x", "1x", "1.0", "99999999999999999999", "%20"] {
        for below in ["", "/friends", "/inbound", "/outbound", "/inbound/stream"] {
            refused("GET", &format!("/participant/{id}{below}"), "", 400);
        }
    }
    for below in ["", "/friends", "/inbound", "/outbound", "/inbound/stream"] {
        refused("GET", &format!("/participant/2{below}"), "", 404);
    }
    for path in ["/outbound", "/outbound?keywords=", "/outbound?keywords=+", "/outbound?x=y", "/participant"]
    {
        refused("GET", path, "", 400);
    }
    for query in ["limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=1-", "cursor=-1"] {
        refused("GET", &format!("/participant/1/inbound?{query}"), "", 400);
        refused("GET", &format!("/participant/1/friends?{query}"), "", 400);
    }
    refused("GET", "/nowhere", "", 404);
    refused("DELETE", "/participant/1", "", 405);
    refused("PUT", "/outbound", "", 405);
    assert_eq!(client.request("DELETE", "/participant/1", &[], b"").header("allow"), Some("GET,HEAD"));
}

#[test]
fn a_post_is_once_in_the_feed_of_each_friend_of_then() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let ids: Vec<_> = (0..4).map(|_| participant(&mut client, "x")).collect();
    for (from, to) in [(0, 1), (1, 0), (2, 0), (0, 3)] {
        befriend(&mut client, ids[from], ids[to]);
    }
    post(&mut client, ids[0], "once");
    for reader in &ids[1..] {
        let inbound = client.get(&format!("/participant/{reader}/inbound")).json();
        assert_eq!(inbound.as_array().unwrap().len(), 1, "each friend has it once");
    }
    befriend(&mut client, ids[1], ids[2]);
    assert_eq!(
        client.get("/participant/3/inbound").json().as_array().unwrap().len(),
        1,
        "not what was before"
    );
}

#[test]
fn lists_are_read_page_by_page() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let reader = participant(&mut client, "reader");
    for number in 0..25 {
        let poster = participant(&mut client, &format!("poster {number}"));
        befriend(&mut client, reader, poster);
        post(&mut client, poster, &format!("story {number}"));
    }
    let mut pages = |list: &str, limit: usize| {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let reply = client.get(&format!("/participant/{reader}/{list}?limit={limit}&cursor={cursor}"));
            let page = reply.json();
            assert!(page.as_array().unwrap().len() <= limit);
            all.extend(page.as_array().unwrap().iter().cloned());
            match reply.header("next-cursor") {
                Some(next) => cursor = next.to_owned(),
                None => return all,
            }
        }
    };
    for list in ["friends", "inbound"] {
        let whole = pages(list, 1000);
        assert_eq!(whole.len(), 25);
        for limit in [1, 7, 24, 25, 26] {
            assert_eq!(pages(list, limit), whole, "{list} by {limit}");
        }
    }
    let stories: Vec<_> =
        pages("inbound", 10).iter().map(|item| item["story"].as_str().unwrap().to_owned()).collect();
    assert_eq!(stories, (0..25).rev().map(|number| format!("story {number}")).collect::<Vec<_>>());
    let found = client.get("/outbound?keywords=story&limit=3").json();
    assert_eq!(found, json!(["/participant/26", "/participant/25", "/participant/24"]));
}

#[test]
fn everything_is_there_after_a_restart_and_is_found() {
    for fan_out in ["sync", "async"] {
        let dir = tempfile::tempdir().unwrap();
        let settings = [("fan_out", fan_out)];
        let mut expected = Vec::new();
        for life in 0..3 {
            let running = Running::start_in(Some(dir.path()), &settings);
            let mut client = running.client();
            if life == 0 {
                assert_eq!([participant(&mut client, "a"), participant(&mut client, "b")], [1, 2]);
                befriend(&mut client, 1, 2);
            }
            post(&mut client, 1, &format!("life{life}"));
            expected.insert(0, format!("life{life}"));
            eventually("delivered", || (client.get("/behind").text() == "0").then_some(()));
            let inbound = client.get("/participant/2/inbound").json();
            let stories: Vec<_> =
                inbound.as_array().unwrap().iter().map(|item| item["story"].clone()).collect();
            assert_eq!(stories, expected);
            for before in 0..=life {
                assert_eq!(
                    client.get(&format!("/outbound?keywords=LIFE{before}")).json(),
                    json!(["/participant/1"])
                );
            }
            assert_eq!(participant(&mut client, "more"), 3 + life);
        }
    }
}

#[test]
fn many_at_once_lose_and_double_nothing() {
    for fan_out in ["sync", "async"] {
        let running = Running::start(&[("fan_out", fan_out), ("fan_out_waiting_max", "3")]);
        let mut client = running.client();
        let readers: Vec<_> = (0..3).map(|_| participant(&mut client, "reader")).collect();
        let posters: Vec<_> = (0..4).map(|_| participant(&mut client, "poster")).collect();
        for (poster, reader) in
            posters.iter().flat_map(|poster| readers.iter().map(move |reader| (poster, reader)))
        {
            befriend(&mut client, *poster, *reader);
        }
        let threads: Vec<_> = posters
            .iter()
            .map(|&poster| {
                let mut client = running.client();
                std::thread::spawn(move || {
                    (0..40).for_each(|number| drop(post(&mut client, poster, &format!("{poster} {number}"))));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        eventually("delivered", || (client.get("/behind").text() == "0").then_some(()));
        for reader in readers {
            let inbound = client.get(&format!("/participant/{reader}/inbound")).json();
            let stories: Vec<_> =
                inbound.as_array().unwrap().iter().map(|item| item["story"].to_string()).collect();
            let different: BTreeSet<_> = stories.iter().collect();
            assert_eq!((stories.len(), different.len()), (160, 160), "{fan_out}");
        }
    }
}

/// The answer to the first request is there and unread when the client goes: its connection is reset.
#[test]
fn a_post_whose_client_goes_away_is_in_all_feeds_or_none() {
    use std::io::Write;
    for fan_out in ["sync", "async"] {
        let dir = tempfile::tempdir().unwrap();
        let running = Running::start_in(Some(dir.path()), &[("fan_out", fan_out)]);
        let mut client = running.client();
        let (joe, ann) = (participant(&mut client, "joe"), participant(&mut client, "ann"));
        befriend(&mut client, joe, ann);
        for number in 0..100 {
            let mut socket = std::net::TcpStream::connect(running.addr).unwrap();
            let body = format!(r#"{{"subject":"s","story":"{number}"}}"#);
            let both = format!(
                "GET /count HTTP/1.1\r\nhost: x\r\n\r\nPOST /participant/{joe}/outbound HTTP/1.1\r\nhost: x\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(both.as_bytes()).unwrap();
            socket.peek(&mut [0]).unwrap();
        }
        let mut stories = |list: &str, id: u64| {
            let posts = client.get(&format!("/participant/{id}/{list}")).json();
            posts.as_array().unwrap().iter().map(|post| post["story"].to_string()).collect::<Vec<_>>()
        };
        eventually("the same in both", || {
            let outbound = stories("outbound", joe);
            (outbound.len() > 5 && outbound == stories("inbound", ann)).then_some(())
        });
    }
}

#[test]
fn the_stream_tells_of_what_comes_in() {
    use std::io::{BufRead, BufReader, Write};
    let running = Running::start(&[("streams_max", "1")]);
    let mut client = running.client();
    let (joe, ann) = (participant(&mut client, "joe"), participant(&mut client, "ann"));
    befriend(&mut client, joe, ann);
    let mut socket = std::net::TcpStream::connect(running.addr).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    write!(socket, "GET /participant/{ann}/inbound/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut lines = BufReader::new(socket).lines().map(|line| line.unwrap());
    assert!(lines.any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")));
    assert!(lines.any(|line| line == ": alive"));
    assert_eq!(client.get("/participant/1/inbound/stream").status, 503, "there may be one");
    post(&mut client, joe, "live");
    let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    let item: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((&item["story"], &item["to"]), (&json!("live"), &json!("/participant/2")));
    // the server ends it when it stops
}

#[test]
fn dates_ahead_of_the_clock_are_told() {
    use tidemark_store::feeds::{Delivery, Feeds, Post, PostId};
    let dir = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let id = PostId { at_us: now.as_micros() as u64 + 3_600_000_000, server: 1 };
    let post_of_then = Post { id, poster: 1, subject: "s".into(), story: "s".into() };
    let store = tidemark_store::EmbeddedFeed::open(dir.path(), tidemark_store::Durability::Buffered).unwrap();
    let posting = Feeds::post(&*store, Delivery { post: post_of_then.into(), readers: [2].into() });
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(posting).unwrap();
    drop(store);
    let running = Running::start_in(Some(dir.path()), &[]);
    let mut client = running.client();
    participant(&mut client, "joe");
    post(&mut client, 1, "ahead, too");
    let metrics = client.get("/metrics");
    let ahead = metrics.text().lines().find_map(|line| line.strip_prefix("newsfeed_ids_ahead_seconds "));
    let ahead: u64 = ahead.expect("the metric").parse().unwrap();
    assert!((3_000..=3_600).contains(&ahead), "{ahead}");
}

#[test]
fn operations_are_counted() {
    let running = Running::start(&[]);
    let mut client = running.client();
    let ids: Vec<_> = (0..3).map(|_| participant(&mut client, "x")).collect();
    befriend(&mut client, ids[0], ids[1]);
    befriend(&mut client, ids[0], ids[2]);
    post(&mut client, ids[0], "story");
    client.get("/outbound?keywords=story");
    let metrics = client.get("/metrics");
    let counted = |operation: &str| {
        let start = format!("newsfeed_operation_seconds_count{{operation=\"{operation}\"}} ");
        metrics.text().lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned)).expect(operation)
    };
    let expected =
        [("participant_post", "3"), ("friend_store", "2"), ("outbound_store", "1"), ("inbound_store", "2")];
    for (operation, count) in expected.into_iter().chain([("outbound_search", "1"), ("outbound_post", "1")]) {
        assert_eq!(counted(operation), count, "{operation}");
    }
    assert!(
        metrics.text().contains("fan_out=\"sync\"") && metrics.text().contains("newsfeed_minute_p95_seconds")
    );
}

#[test]
fn the_description_is_of_what_is_served() {
    let running = Running::start(&[]);
    crate::client::described_is_served(&mut running.client());
}

#[cfg(not(feature = "graphql"))]
#[test]
fn a_program_without_graphql_says_how_to_have_it() {
    let running = Running::start(&[]);
    let reply =
        crate::feed::send(&mut running.client(), "/", &json!({"query": "{ participant(id: 1) { id } }"}));
    assert_eq!(reply.status, 404);
    assert!(reply.json()["error"].as_str().unwrap().contains("--features graphql"));
}
