//! The contract of the intake, from outside, over HTTP.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::client::eventually;
use crate::ingest::{Running, message, options};
use tidemark_ingest::Ingest;
use tidemark_service::{Durability, Options, ReferenceSystem};
use tidemark_store::messages::{Message, Messages, Page, Query};
use tidemark_store::{Answer, StoreError, StoreMetrics};

#[test]
fn a_message_is_taken_counted_and_given_back_as_it_was_sent() {
    let running = Running::start();
    let mut client = running.client();
    assert_eq!(client.get("/count").text(), "0");
    let text = message(7, 1_425_000_000_123, "ABC");
    let reply = client.get(&format!("/m?c={text}"));
    assert_eq!((reply.status, reply.text()), (200, "OK"));
    let posted = message(7, 1_425_000_000_122, "MNO") + " \"ä\"\n";
    assert_eq!(client.request("POST", "/m", &[], posted.as_bytes()).status, 200);
    assert_eq!(client.get("/m?x=1&c=00000000071425000000124DEF%22%C3%A4%22+%2B").status, 200);
    assert_eq!(client.get("/count").text(), "3");
    assert_eq!(client.get("/behind").text(), "0", "without a buffer everything is there at once");
    let reply = client.get("/messages/0000000007");
    assert_eq!((reply.status, reply.header("next-cursor")), (200, None));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let expected = serde_json::json!([
        {"user": "0000000007", "time": 1_425_000_000_122_u64, "type": "MNO", "payload": posted},
        {"user": "0000000007", "time": 1_425_000_000_123_u64, "type": "ABC", "payload": text},
        {"user": "0000000007", "time": 1_425_000_000_124_u64, "type": "DEF", "payload": "00000000071425000000124DEF\"ä\" +"},
    ]);
    assert_eq!(reply.json(), expected);
    assert_eq!(client.get("/messages/7").body, reply.body);
    assert_eq!(client.get("/messages/8").text(), "[]");
}

#[test]
fn the_description_is_of_what_is_served() {
    let running = Running::start();
    let document = crate::client::described_is_served(&mut running.client());
    let example = &document["components"]["schemas"]["Text"]["examples"][0];
    let example = example.as_str().expect("an example");
    assert_eq!(running.client().get(&format!("/m?c={example}")).status, 200);
}

/// Sends the same request three times, then one with an idempotency key three times; how many messages that is.
fn sent_again(identity: &[(&str, &str)]) -> String {
    let running = Running::start_with(identity);
    let mut client = running.client();
    for _ in 0..3 {
        assert_eq!(client.get(&format!("/m?c={}", message(1, 5, "ABC"))).status, 200);
    }
    for (method, text) in [("POST", message(1, 5, "DEF")), ("POST", message(2, 5, "DEF"))] {
        for _ in 0..3 {
            let key = [("Idempotency-Key", "\"8e03978e\"")];
            assert_eq!(client.request(method, "/m", &key, text.as_bytes()).status, 200);
        }
    }
    client.get("/count").text().to_owned()
}

#[test]
fn every_request_is_a_message_of_its_own_unless_it_is_the_same_by_its_key() {
    assert_eq!(sent_again(&[]), "5");
    assert_eq!(sent_again(&[("identity", "message")]), "5");
    assert_eq!(sent_again(&[("identity", "key")]), "3");
    let error = Ingest::bind(Options { settings: [("identity".into(), "none".into())].into(), ..options() });
    let error = error.err().expect("no such identity").to_string();
    assert!(error.contains("message or key"), "{error}");
}

#[test]
fn a_key_that_is_used_again_with_another_content_replaces_nothing() {
    let running = Running::start();
    let mut client = running.client();
    let texts = ["first", "second", "first"].map(|tail| format!("{}{tail}", message(43, 5, "DEF")));
    for text in &texts {
        assert_eq!(client.request("POST", "/m", &[("Idempotency-Key", "k")], text.as_bytes()).status, 200);
    }
    let reply = client.request("GET", &format!("/m?c={}", texts[1]), &[("Idempotency-Key", "k")], b"");
    assert_eq!(reply.status, 200, "the same by another method");
    let reply = client.get("/messages/43").json();
    let mut kept: Vec<_> = reply.as_array().unwrap().iter().map(|m| m["payload"].as_str().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, [&texts[0], &texts[1]]);
    let reply = client.request("POST", "/m", &[("Idempotency-Key", "")], texts[0].as_bytes());
    assert_eq!(reply.status, 400);
    assert!(reply.json()["reason"].as_str().unwrap().contains("Idempotency-Key"));
    assert_eq!(client.get("/count").text(), "2");
}

/// As the published client sends: the time is taken once, and the same five messages come for ever.
#[test]
fn messages_that_are_all_alike_are_all_found_also_after_a_restart() {
    const ROUNDS: usize = 200;
    let dir = tempfile::tempdir().unwrap();
    let kinds = ["ABC", "DEF", "GHI", "JKL", "MNO"];
    {
        let running = Running::start_in(dir.path(), Durability::Buffered);
        let mut client = running.client();
        for kind in kinds.iter().cycle().take(5 * ROUNDS) {
            assert_eq!(client.get(&format!("/m?c={}", message(1, 5, kind))).status, 200);
        }
    }
    let running = Running::start_in(dir.path(), Durability::Buffered);
    let mut client = running.client();
    assert_eq!(client.get("/count").text(), (5 * ROUNDS).to_string());
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let reply = client.get(&format!("/messages/1?limit=77&cursor={cursor}"));
        found.extend(reply.json().as_array().unwrap().iter().map(|m| m["type"].as_str().unwrap().to_owned()));
        match reply.header("next-cursor") {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, kinds.map(|kind| vec![kind; ROUNDS]).concat());
}

#[test]
fn what_is_no_message_is_400_with_the_reason() {
    let running = Running::start();
    let mut client = running.client();
    let mut refused = |path: &str, word: &str| {
        let reply = client.get(path);
        assert_eq!(reply.status, 400, "{path}");
        assert!(reply.json()["reason"].as_str().unwrap().contains(word), "{path}: {}", reply.text());
    };
    refused("/m", "missing");
    refused("/m?c=", "missing");
    refused("/m?d=00000000071425000000123ABC", "missing");
    refused("/m?c=00000000071425000000123AB", "25 bytes");
    refused("/m?c=000000000x1425000000123ABC", "user");
    refused("/m?c=0000000007142500000012-ABC", "time");
    refused("/m?c=00000000071425000000123A%00C", "type");
    refused("/m?c=00000000071425000000123ABC%ff", "UTF-8");
    refused(&format!("/m?c=00000000071425000000123ABC{}", "x".repeat(4096)), "4122 bytes");
    refused("/messages/abc", "user");
    refused("/messages/-1", "user");
    refused("/messages/99999999999999999999999", "user");
    refused("/messages/7?limit=0", "limit");
    refused("/messages/7?limit=100001", "limit");
    refused("/messages/7?from=yesterday", "from");
    refused("/messages/7?cursor=5", "cursor");
    let long = message(7, 5, "ABC") + &"x".repeat(4096);
    assert_eq!(client.request("POST", "/m", &[], long.as_bytes()).status, 400);
    assert_eq!(client.request("POST", "/m", &[], b"").status, 400);
    assert_eq!(client.request("POST", "/m", &[], "x".repeat(20_000).as_bytes()).status, 413);
    let mut client = running.client();
    assert_eq!(client.request("DELETE", "/m", &[], b"").status, 405);
    assert_eq!(client.get("/m/").status, 404);
    assert_eq!(client.get("/count").text(), "0");
}

#[test]
fn pages_lead_to_the_next_by_their_cursor() {
    let running = Running::start();
    let mut client = running.client();
    let kinds = ["ABC", "DEF", "GHI", "JKL", "MNO"];
    for time in (0..20).rev() {
        for kind in kinds {
            assert_eq!(client.get(&format!("/m?c={}", message(3, 1000 + time, kind))).status, 200);
        }
    }
    let expected: Vec<String> =
        (0..20).flat_map(|time| kinds.map(|kind| message(3, 1000 + time, kind))).collect();
    for limit in [1, 7, 50, 99, 100, 1000] {
        let mut found = Vec::new();
        let mut cursor = String::new();
        let mut pages = 0;
        loop {
            let reply = client.get(&format!("/messages/3?limit={limit}&cursor={cursor}"));
            let page = reply.json();
            found.extend(page.as_array().unwrap().iter().map(|m| m["payload"].as_str().unwrap().to_owned()));
            pages += 1;
            match reply.header("next-cursor") {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(found, expected, "limit {limit}");
        assert_eq!(pages, 100usize.div_ceil(limit));
    }
    let some = client.get("/messages/3?from=1005&to=1007").json();
    assert_eq!(some.as_array().unwrap().len(), 10);
    assert_eq!(some[0]["time"], 1005);
}

#[test]
fn those_who_take_their_page_slowly_keep_nobody_waiting() {
    let running = Running::start();
    let mut client = running.client();
    for time in 0..2_200 {
        let text = message(1, time, "ABC") + &"x".repeat(4_000);
        assert_eq!(client.request("POST", "/m", &[], text.as_bytes()).status, 200);
    }
    assert_eq!(client.get(&format!("/m?c={}", message(2, 1, "ABC"))).status, 200);
    // more than pages are read at a time; none of them takes more than its first bytes
    let mut slow: Vec<_> = (0..20).map(|_| running.client()).collect();
    for slow in &mut slow {
        slow.send(b"GET /messages/1 HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut status = [0; 12];
        slow.stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    assert_eq!(client.get("/messages/2").json().as_array().unwrap().len(), 1);
    let page = client.get("/messages/1");
    assert_eq!(page.status, 200);
    let next = page.header("next-cursor").expect("the page is no larger than there is room for").to_owned();
    let length = page.json().as_array().unwrap().len();
    let rest = client.get(&format!("/messages/1?cursor={next}")).json();
    assert_eq!(rest[0]["time"], length, "it goes on where it was cut");
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    for durability in [Durability::Synced, Durability::Buffered] {
        let dir = tempfile::tempdir().unwrap();
        let before = {
            let running = Running::start_in(dir.path(), durability);
            let mut client = running.client();
            for time in 0..50 {
                assert_eq!(client.get(&format!("/m?c={}", message(9, time, "ABC"))).status, 200);
            }
            client.get("/messages/9").body
        };
        let running = Running::start_in(dir.path(), durability);
        assert_eq!(running.client().get("/count").text(), "50");
        assert_eq!(running.client().get("/messages/9").body, before);
    }
}

/// Many at once, each with its own messages: none is lost, none changed.
#[test]
fn many_clients_at_once() {
    const CLIENTS: u64 = 16;
    const MESSAGES: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start_in(dir.path(), Durability::Synced);
    std::thread::scope(|scope| {
        for user in 0..CLIENTS {
            let running = &running;
            scope.spawn(move || {
                let mut client = running.client();
                // Pipelined, as much as the sockets take.
                let requests: String = (0..MESSAGES)
                    .map(|time| {
                        format!("GET /m?c={} HTTP/1.1\r\nHost: x\r\n\r\n", message(user, time, "JKL"))
                    })
                    .collect();
                client.send(requests.as_bytes());
                (0..MESSAGES).for_each(|_| assert_eq!(client.reply(false).status, 200));
            });
        }
    });
    let mut client = running.client();
    assert_eq!(client.get("/count").text(), (CLIENTS * MESSAGES).to_string());
    for user in 0..CLIENTS {
        let page = client.get(&format!("/messages/{user}")).json();
        let texts: Vec<&str> =
            page.as_array().unwrap().iter().map(|m| m["payload"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..MESSAGES).map(|time| message(user, time, "JKL")).collect();
        assert_eq!(texts, expected);
    }
    let metrics = client.get("/metrics");
    for line in [
        format!("ingest_messages_total {}", CLIENTS * MESSAGES),
        "ingest_refused_total 0".into(),
        "ingest_waiting 0".into(),
        "ingest_store_stopped 0".into(),
        "ingest_store_info{durability=\"synced\",identity=\"message\"} 1".into(),
        format!(
            "tidemark_requests_total{{route=\"/m\",method=\"GET\",status=\"200\"}} {}",
            CLIENTS * MESSAGES
        ),
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "no {line} in\n{}", metrics.text());
    }
    assert!(metrics.text().contains("ingest_store_sync_seconds_bucket"), "{}", metrics.text());
}

/// A store that never answers a write, and may say that it has stopped.
#[derive(Default)]
struct Standing(AtomicUsize, AtomicBool);

impl Messages for Standing {
    fn add(&self, _message: Message) -> Answer<'_, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Answer::boxed(std::future::pending())
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Err(StoreError::Closed))
    }

    fn of_user(&self, _query: Query) -> Answer<'_, Page> {
        Answer::ready(Err(StoreError::Stopped { reason: "disk full".into() }))
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics { stopped: self.1.load(Ordering::Relaxed), ..StoreMetrics::default() }
    }
}

#[test]
fn health_tells_of_a_store_that_has_stopped() {
    let store = Arc::new(Standing::default());
    let running = Running::run(Ingest::bind_with_store(options(), store.clone()).unwrap());
    let mut client = running.client();
    store.1.store(true, Ordering::Relaxed);
    let reply = client.get("/health");
    assert_eq!(reply.status, 503);
    assert!(reply.json()["reason"].as_str().unwrap().contains("started again"), "{}", reply.text());
    store.1.store(false, Ordering::Relaxed);
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn at_the_bound_of_a_store_that_stands_still_the_answer_is_503_at_once() {
    let store = Arc::new(Standing::default());
    let settings = BTreeMap::from([
        ("waiting_max".to_owned(), "3".to_owned()),
        ("stop_deadline_s".to_owned(), "0".to_owned()),
    ]);
    let standing = store.clone();
    let ingest = Ingest::bind_with_store(Options { settings, ..options() }, standing).unwrap();
    let running = Running::run(ingest);
    let waiting: Vec<_> = (0..3)
        .map(|time| {
            let mut client = running.client();
            client
                .send(format!("GET /m?c={} HTTP/1.1\r\nHost: x\r\n\r\n", message(1, time, "ABC")).as_bytes());
            client
        })
        .collect();
    eventually("three wait", || (store.0.load(Ordering::Relaxed) == 3).then_some(()));
    let mut client = running.client();
    for time in 0..10 {
        let reply = client.get(&format!("/m?c={}", message(2, time, "ABC")));
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
        assert!(reply.json()["reason"].as_str().unwrap().contains("too many"));
    }
    assert_eq!(store.0.load(Ordering::Relaxed), 3, "what was refused did not reach the store");
    let metrics = client.get("/metrics");
    assert!(metrics.text().lines().any(|line| line == "ingest_refused_total 10"), "{}", metrics.text());
    assert!(metrics.text().lines().any(|line| line == "ingest_waiting 3"), "{}", metrics.text());
    // Clients that go away make room.
    drop(waiting);
    eventually("room again", || {
        client.get("/metrics").text().lines().any(|line| line == "ingest_waiting 0").then_some(())
    });
    assert_eq!(client.get("/count").status, 503);
    let reply = client.get("/messages/1");
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
}

/// Far more at once than may wait: each message is either acknowledged and there, or refused and not there.
#[test]
fn a_flood_over_a_small_bound_is_acknowledged_and_stored_or_refused_and_not_stored() {
    const CLIENTS: u64 = 24;
    const MESSAGES: u64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let settings = BTreeMap::from([("waiting_max".to_owned(), "2".to_owned())]);
    let (data_dir, durability) = (Some(dir.path().to_owned()), Durability::Synced);
    let running =
        Running::run(Ingest::bind(Options { settings, data_dir, durability, ..options() }).unwrap());
    let acknowledged: Vec<Vec<String>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|user| {
                let mut client = running.client();
                scope.spawn(move || {
                    let texts = (0..MESSAGES).map(|time| message(user, time, "GHI"));
                    let mut taken = |text: &String| {
                        let reply = client.get(&format!("/m?c={text}"));
                        assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
                        let tells_when = reply.header("retry-after") == Some("1");
                        assert_eq!(tells_when, reply.status == 503, "{}", reply.text());
                        reply.status == 200
                    };
                    texts.filter(|text| taken(text)).collect()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let count: u64 = acknowledged.iter().map(|texts| texts.len() as u64).sum();
    let refused = CLIENTS * MESSAGES - count;
    assert!(count > 0 && refused > 0, "{count} acknowledged, {refused} refused");
    let mut client = running.client();
    assert_eq!(client.get("/count").text(), count.to_string());
    for (user, texts) in acknowledged.iter().enumerate() {
        let page = client.get(&format!("/messages/{user}")).json();
        let found: Vec<&str> =
            page.as_array().unwrap().iter().map(|m| m["payload"].as_str().unwrap()).collect();
        assert_eq!(found, *texts);
    }
    let metrics = client.get("/metrics");
    for line in [
        format!("ingest_messages_total {count}"),
        format!("ingest_refused_total {refused}"),
        "ingest_failed_total 0".into(),
        "ingest_waiting 0".into(),
        "ingest_held 0".into(),
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "no {line} in\n{}", metrics.text());
    }
}

#[test]
fn memory_is_bounded_and_says_so() {
    let running = Running::start_with(&[("memory_mb", "1")]);
    let mut client = running.client();
    let mut statuses = BTreeMap::new();
    for time in 0..400 {
        let text = message(1, time, "ABC") + &"x".repeat(4000);
        *statuses.entry(client.request("POST", "/m", &[], text.as_bytes()).status).or_insert(0u64) += 1;
    }
    assert_eq!(statuses.keys().copied().collect::<Vec<_>>(), [200, 503]);
    assert_eq!(client.get("/count").text(), statuses[&200].to_string());
}
