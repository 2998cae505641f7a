//! One trait as a service, by real connections: REST, calls over a WebSocket, and what goes wrong between.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fixture::{self, Desk, DeskClient, Running, Slip, until};
use tidemark_rpc::{CallError, Client, ClientOptions, Form, RestClient, WhenClosed};

#[test]
fn both_ways_give_the_same_answers() {
    let running = Running::start(Arc::new(Desk::default()));
    running.block_on(async {
        let json = Client::connect(running.addr, ClientOptions::default());
        let binary =
            Client::connect(running.addr, ClientOptions { form: Form::Binary, ..Default::default() });
        let rest = RestClient::new(running.addr);
        let ways = [DeskClient::new(json), DeskClient::new(binary), DeskClient::new(rest)];
        for way in &ways {
            let slip = Slip { name: "ä \"b\"/c".into(), amount: 3 };
            assert_eq!(way.file(slip.clone()).await, Ok(true));
            assert_eq!(way.sum(2, Some(3)).await, Ok(5));
            assert_eq!(way.sum(2, None).await, Ok(2));
            assert_eq!(way.echo("a b/ä?&=+%".into(), "x y+%&".into()).await, Ok("a b/ä?&=+%|x y+%&".into()));
            let Err(CallError::Refused(refusal)) = way.refuse(409).await else { panic!("was not refused") };
            assert_eq!((refusal.code(), refusal.reason()), (409, "as you wish"));
            let Err(CallError::Refused(refusal)) = way.boom().await else { panic!("did not fail") };
            assert_eq!(refusal.code(), 500);
            assert!(!refusal.reason().contains("secret"));
        }
        assert_eq!(ways[0].count().await, Ok(3));
        assert_eq!(ways[1].hidden().await, Ok(()));
        assert_eq!(ways[2].hidden().await, Err(CallError::NoRoute));
    });
    running.end();
}

#[test]
fn a_server_is_found_by_its_name() {
    let running = Running::start(Arc::new(Desk::default()));
    running.block_on(async {
        let connection =
            Client::connect(format!("localhost:{}", running.addr.port()), ClientOptions::default());
        assert!(!connection.is_open(), "it is opened by a task");
        assert_eq!(DeskClient::new(connection.clone()).sum(2, None).await, Ok(2));
        assert!(connection.is_open());
    });
    running.end();
}

#[test]
fn calls_before_there_is_a_connection_wait_or_fail_as_the_caller_chose() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let runtime = fixture::runtime();
    let (calls, fails) = runtime.block_on(async {
        let waits = DeskClient::new(Client::connect(addr, ClientOptions::default()));
        let options = ClientOptions { when_closed: WhenClosed::Fail, ..ClientOptions::default() };
        let fails = DeskClient::new(Client::connect(addr, options));
        assert!(matches!(fails.count().await, Err(CallError::NotConnected(_))));
        let call = |amount| {
            let waits = waits.clone();
            tokio::spawn(async move { waits.sum(amount, Some(1)).await })
        };
        let calls: Vec<_> = (0..2000).map(call).collect();
        tokio::task::yield_now().await;
        (calls, fails)
    });
    let running = Running::start_at(Arc::new(Desk::default()), addr);
    runtime.block_on(async {
        for (amount, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), Ok(amount as u64 + 1));
        }
        until(async || fails.count().await == Ok(0)).await;
    });
    drop((fails, runtime));
    running.end();
}

#[test]
fn calls_that_wait_are_bounded_and_have_a_deadline() {
    let runtime = fixture::runtime();
    runtime.block_on(async {
        // nobody listens there
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        let options = ClientOptions { waiting_max: 1, ..ClientOptions::default() };
        let client = DeskClient::new(Client::connect(addr, options)).deadline(Duration::from_millis(50));
        let (first, second) = tokio::join!(biased; client.count(), client.count());
        assert!(matches!(first, Err(CallError::NotConnected(_))), "{first:?}");
        assert_eq!(second, Err(CallError::TooManyWait(1)));
    });
}

#[test]
fn clients_that_share_a_connection_get_their_own_answers() {
    let running = Running::start(Arc::new(Desk::default()));
    running.block_on(async {
        let connection = Client::connect(running.addr, ClientOptions::default());
        let (one, other) = (DeskClient::new(connection.clone()), DeskClient::new(connection.clone()));
        let mut calls = Vec::new();
        for amount in 0..2000u32 {
            let (one, other) = (one.clone(), other.clone());
            calls.push(tokio::spawn(async move { (u64::from(amount), one.sum(amount, None).await) }));
            // every third answer comes later than those behind it
            calls.push(tokio::spawn(async move {
                let later = amount % 3 == 0;
                (
                    u64::from(amount) + 7,
                    if later { other.late_sum(amount, 7).await } else { other.sum(amount, Some(7)).await },
                )
            }));
        }
        for call in calls {
            let (expected, got) = call.await.unwrap();
            assert_eq!(got, Ok(expected));
        }
        let stats = connection.stats();
        assert_eq!((stats.connections, stats.in_flight, stats.waiting), (1, 0, 0));
        assert!(stats.frames_sent < 1000, "4,000 calls at once in {} frames", stats.frames_sent);
    });
    running.end();
}

#[test]
fn calls_begin_in_the_order_in_which_they_are_made() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    running.block_on(async {
        let client = DeskClient::new(Client::connect(running.addr, ClientOptions::default()));
        let mut calls = Vec::new();
        for number in 0..20_000u64 {
            let client = client.clone();
            calls.push(tokio::spawn(async move { client.note(number, number % 5 == 0).await }));
        }
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(()));
        }
    });
    let begun = desk.begun.lock().unwrap();
    assert_eq!(begun.len(), 20_000);
    assert!(begun.is_sorted());
    drop(begun);
    running.end();
}

#[test]
fn a_call_has_a_deadline_and_its_work_ends_with_it() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    running.block_on(async {
        let connection = Client::connect(running.addr, ClientOptions::default());
        let client = DeskClient::new(connection.clone());
        assert_eq!(client.count().await, Ok(0));
        let hurried = client.clone().deadline(Duration::from_millis(30));
        assert_eq!(hurried.hang().await, Err(CallError::Deadline));
        until(async || desk.hanging.load(Ordering::SeqCst) == 0).await;
        // the room that it took is free again, on both sides
        until(async || connection.stats().in_flight == 0).await;
        assert_eq!(client.count().await, Ok(0));
    });
    let metrics = running.metrics();
    assert!(
        metrics.contains("tidemark_calls_total{method=\"desk.hang\",outcome=\"deadline\"} 1"),
        "{metrics}"
    );
    running.end();
}

#[test]
fn a_call_that_is_dropped_is_cancelled() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    running.block_on(async {
        let connection = Client::connect(running.addr, ClientOptions::default());
        let client = DeskClient::new(connection.clone());
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.hang().await }
        });
        until(async || desk.hanging.load(Ordering::SeqCst) == 1).await;
        call.abort();
        until(async || desk.hanging.load(Ordering::SeqCst) == 0).await;
        until(async || connection.stats().in_flight == 0).await;
        assert_eq!(client.count().await, Ok(0));
    });
    let metrics = running.metrics();
    assert!(
        metrics.contains("tidemark_calls_total{method=\"desk.hang\",outcome=\"cancelled\"} 1"),
        "{metrics}"
    );
    running.end();
}

#[test]
fn a_client_that_goes_away_frees_what_it_held() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    let elsewhere = fixture::runtime();
    elsewhere.block_on(async {
        let client = DeskClient::new(Client::connect(running.addr, ClientOptions::default()));
        for _ in 0..100 {
            let client = client.clone();
            tokio::spawn(async move { client.hang().await });
        }
        until(async || desk.hanging.load(Ordering::SeqCst) == 100).await;
    });
    drop(elsewhere);
    running.block_on(async {
        until(async || desk.hanging.load(Ordering::SeqCst) == 0).await;
    });
    let metrics = running.metrics();
    assert!(metrics.contains("tidemark_call_connections_open 0"), "{metrics}");
    assert!(
        metrics.contains("tidemark_calls_total{method=\"desk.hang\",outcome=\"abandoned\"} 100"),
        "{metrics}"
    );
    running.end();
}

#[test]
fn no_more_calls_are_in_flight_than_the_client_allows() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    running.block_on(async {
        let options = ClientOptions { in_flight_max: 10, ..ClientOptions::default() };
        let client = DeskClient::new(Client::connect(running.addr, options));
        let calls: Vec<_> = (0..500u32)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move { client.late_sum(number, 0).await })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), Ok(number as u64));
        }
    });
    let most = desk.late_max.load(Ordering::SeqCst);
    assert!((2..=10).contains(&most), "{most} at once");
    running.end();
}

#[test]
fn a_server_that_stops_answers_what_is_in_flight_and_its_client_comes_back() {
    let running = Running::start(Arc::new(Desk::default()));
    let addr = running.addr;
    let runtime = fixture::runtime();
    let client = runtime.block_on(async {
        let client = DeskClient::new(Client::connect(addr, ClientOptions::default()));
        assert_eq!(client.count().await, Ok(0));
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.late_sum(1, 2).await }
        });
        until(async || client.count().await == Ok(0)).await;
        let stopping = std::thread::spawn(move || running.end());
        assert_eq!(call.await.unwrap(), Ok(3));
        stopping.join().unwrap();
        client
    });
    let running = Running::start_at(Arc::new(Desk::default()), addr);
    // the first call may meet the connection that is gone; it is told so, and not sent again
    runtime.block_on(async { until(async || client.sum(1, None).await == Ok(1)).await });
    drop((client, runtime));
    running.end();
}

#[test]
fn what_rest_does_not_have_is_refused_at_once_with_a_reason() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut client = running.client();
    let refused = client.request("PATCH", "/slips", &[], b"{}");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("PUT")));
    assert_eq!(client.request("PUT", "/count", &[], b"").header("allow"), Some("GET,HEAD"));
    let cases: [(&[u8], &str); 4] = [
        (b"{\"name\":\"ibm\"}", "missing field `amount`"),
        (b"{\"name\":\"ibm\",\"amount\":1", "EOF"),
        (b"{\"name\":\"ibm\",\"amount\":-1}", "invalid value"),
        (b"", "EOF"),
    ];
    for (body, reason) in cases {
        let reply = client.request("PUT", "/slips", &[], body);
        assert_eq!(reply.status, 400);
        let text = reply.json()["reason"].as_str().unwrap().to_owned();
        assert!(text.contains(reason), "{text}");
    }
    let missing = client.get("/sum");
    assert_eq!((missing.status, missing.text().contains("field a of the query")), (400, true));
    assert_eq!(client.get("/sum?a=x").status, 400);
    // what the description calls an integer is taken as one
    assert_eq!((client.get("/sum?a=0.0&b=2.0").text(), client.get("/sum?a=0.5").status), ("2", 400));
    assert_eq!(client.request("PUT", "/slips", &[], b"{\"name\":\"x\",\"amount\":2.0}").text(), "true");
    assert_eq!(client.request("PUT", "/slips", &[], b"{\"name\":\"x\",\"amount\":2.5}").status, 400);
    assert_eq!(client.request("HEAD", "/count", &[], b"").status, 200);
    assert_eq!(client.get("/health").status, 200);
    running.end();
}

#[test]
fn the_description_is_openapi() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut client = running.client();
    let document = client.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let paths = document["paths"].as_object().unwrap();
    let mut ids = Vec::new();
    for (path, operations) in paths {
        for (verb, operation) in operations.as_object().unwrap() {
            assert!(["get", "put", "post", "patch", "delete"].contains(&verb.as_str()));
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
            if path != "/rpc" {
                assert!(operation["responses"]["200"]["content"]["application/json"]["schema"].is_object());
            }
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path: Vec<_> = parameters.iter().filter(|one| one["in"] == "path").collect();
            assert_eq!(in_path.len(), path.matches('{').count(), "{path}");
            for parameter in in_path {
                let name = parameter["name"].as_str().unwrap();
                assert!(path.contains(&format!("{{{name}}}")) && parameter["required"] == true);
            }
        }
    }
    ids.sort();
    let unique = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), ids.contains(&"desk.hidden".to_owned())), (unique, false));
    assert!(paths["/rpc"]["get"]["responses"]["101"].is_object());
    let slip = &paths["/slips"]["put"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(slip["$ref"], "#/components/schemas/Slip");
    let schema = &document["components"]["schemas"]["Slip"];
    assert_eq!(schema["required"], serde_json::json!(["name", "amount"]));
    assert_eq!(paths["/slips"]["put"]["summary"], "Files a slip.");
    let query = paths["/sum"]["get"]["parameters"].as_array().unwrap();
    let required: Vec<_> = query.iter().map(|one| (one["name"].clone(), one["required"].clone())).collect();
    assert_eq!(required, [("a".into(), true.into()), ("b".into(), false.into())]);
    // every reference leads somewhere
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    running.end();
}
