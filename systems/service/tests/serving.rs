//! The server by real connections: life and stop, errors, what HTTP allows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::client::{Client, Serving};
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use bytes::Bytes;
use tidemark_service::{Answer, Limits, Served, Server, ServiceError, System, worker_index};
use tokio::sync::Semaphore;

fn start(server: Server) -> Serving {
    Serving::begin(server.bind().unwrap())
}

fn routes() -> Router {
    async fn boom() -> &'static str {
        panic!("secret detail")
    }
    Router::new()
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello {name}") }))
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/worker", get(|| async { worker_index().to_string() }))
        .route("/boom", get(boom))
}

#[test]
fn it_is_starting_then_ready() {
    let (go, gate) = mpsc::channel::<()>();
    let running = start(Server::starting(move || {
        gate.recv().map_err(|_| std::io::Error::other("the test went away"))?;
        Ok::<_, std::io::Error>(System::new(routes()))
    }));
    let mut client = running.client();
    let health = client.get("/health");
    assert_eq!((health.status, &health.json()["status"]), (503, &"starting".into()));
    assert_eq!(client.get("/hello/you").status, 503);
    go.send(()).unwrap();
    let mut client = running.ready_client();
    assert_eq!(client.get("/health").json()["status"], "ready");
    assert_eq!(client.get("/hello/you").text(), "hello you");
    assert_eq!(running.end(), Served { connections_cut: 0 });
}

#[test]
fn a_system_that_cannot_start_ends_the_server_with_its_reason() {
    let server = Server::starting(|| Err::<System, _>(std::io::Error::other("the cellar is flooded")));
    let error = server.serve(std::future::pending()).unwrap_err();
    assert!(matches!(error, ServiceError::Start(_)));
    assert!(error.to_string().contains("the cellar is flooded"), "{error}");
    let panics = Server::starting(|| -> Result<System, std::io::Error> { panic!("on purpose") });
    assert!(panics.serve(std::future::pending()).unwrap_err().to_string().contains("panicked"));
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let running = start(Server::new(routes()));
    let error = Server::new(routes()).listen(running.addr).serve(std::future::pending()).unwrap_err();
    assert!(error.to_string().contains(&running.addr.to_string()), "{error}");
    running.end();
    let none = Server::new(routes()).workers(0).serve(std::future::pending()).unwrap_err();
    assert!(none.to_string().contains("1 to 256"), "{none}");
}

/// A route that waits until the test lets it go on, and tells when it has begun.
fn gated() -> (Router, mpsc::Receiver<()>, Arc<Semaphore>) {
    let (begun, has_begun) = mpsc::channel();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let handler = move || {
        let (begun, opened) = (begun.clone(), opened.clone());
        async move {
            begun.send(()).unwrap();
            opened.acquire().await.unwrap().forget();
            "finished"
        }
    };
    (Router::new().route("/gated", get(handler)), has_begun, gate)
}

#[test]
fn the_stop_finishes_what_is_in_flight_and_closes_what_is_idle() {
    let (router, has_begun, gate) = gated();
    let (done, is_done) = mpsc::channel();
    let system = System::new(router).at_stop(move || done.send("last").unwrap());
    let running = start(Server::new(system).workers(2));
    let mut idle = running.ready_client();
    let mut fresh = running.client();
    let mut busy = running.client();
    busy.send(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n");
    has_begun.recv().unwrap();

    running.stop.trigger();
    assert!(idle.is_closed());
    assert!(fresh.is_closed());
    assert!(is_done.try_recv().is_err(), "the last act waits for the last request");
    gate.add_permits(1);
    let reply = busy.reply(false);
    assert_eq!((reply.status, reply.text()), (200, "finished"));
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(busy.is_closed());
    let addr = running.addr;
    assert_eq!(running.end(), Served { connections_cut: 0 });
    assert_eq!(is_done.recv(), Ok("last"));
    assert!(std::net::TcpStream::connect(addr).is_err());
}

#[test]
fn a_system_tells_where_it_is_and_is_served_until_it_has_said_that_it_goes() {
    let (told, tells) = mpsc::channel();
    let go = Arc::new(Semaphore::new(0));
    let wait = go.clone();
    let system = System::new(routes())
        .once_serving(async move |local| told.send(local).unwrap())
        .before_stop(async move { wait.acquire().await.unwrap().forget() });
    let running = start(Server::new(system).workers(1));
    let mut client = running.ready_client();
    assert_eq!(tells.recv().unwrap(), running.addr);
    running.stop.trigger();
    std::thread::sleep(Duration::from_millis(100));
    for client in [&mut client, &mut running.client()] {
        let reply = client.get("/hello/you");
        assert_eq!((reply.status, reply.header("connection")), (200, None), "as if nothing were");
    }
    assert_eq!(client.get("/health").json()["status"], "ready");
    go.add_permits(1);
    assert_eq!(running.end().connections_cut, 0);
    assert!(client.is_closed());
}

#[test]
fn what_is_not_finished_at_the_deadline_is_cut_and_reported() {
    let (router, has_begun, _gate) = gated();
    let limits = Limits { stop_deadline: Duration::from_millis(50), ..Limits::default() };
    let running = start(Server::new(router).limits(limits).workers(1));
    let mut busy = running.ready_client();
    busy.send(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n");
    has_begun.recv().unwrap();
    assert_eq!(running.end(), Served { connections_cut: 1 });
    assert!(busy.is_closed());
}

#[test]
fn who_begins_a_head_behind_the_stop_does_not_keep_it() {
    let limits = Limits { stop_deadline: Duration::from_secs(1), ..Limits::default() };
    let mut running = start(Server::new(routes()).limits(limits).workers(1));
    let _ready = running.ready_client();
    // it has never sent a request, and is given a moment for one
    let mut silent = running.client();
    std::thread::sleep(Duration::from_millis(100));
    running.stop.trigger();
    std::thread::sleep(Duration::from_millis(50));
    silent.send(b"G");
    let (ended, has_ended) = mpsc::channel();
    let thread = running.thread.take().unwrap();
    std::thread::spawn(move || ended.send(thread.join().unwrap().unwrap()));
    has_ended.recv_timeout(Duration::from_secs(30)).expect("the server stops");
}

#[test]
fn unknown_paths_and_methods_are_json_reasons() {
    let running = start(Server::new(routes()));
    let mut client = running.ready_client();
    let reply = client.get("/%22%3Cscript%3E");
    assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/json")));
    assert!(reply.json()["reason"].is_string());
    for (method, path, allowed) in
        [("DELETE", "/hello/x", "GET,HEAD"), ("GET", "/echo", "POST"), ("POST", "/health", "GET,HEAD")]
    {
        let reply = client.request(method, path, &[], b"");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allowed)), "{method} {path}");
        assert!(reply.json()["reason"].is_string());
    }
    running.end();
}

#[test]
fn a_panic_is_a_500_without_detail_and_the_connection_goes_on() {
    let running = start(Server::new(routes()).workers(1));
    let mut client = running.ready_client();
    for _ in 0..3 {
        let reply = client.get("/boom");
        assert_eq!(reply.status, 500);
        assert!(!reply.text().contains("secret detail"));
    }
    assert_eq!(client.get("/hello/again").text(), "hello again");
    let metrics = client.get("/metrics");
    assert!(metrics.text().contains("\ntidemark_handler_panics_total 3\n"));
    assert!(metrics.text().contains("{route=\"/boom\",method=\"GET\",status=\"500\"} 3"));
    running.end();
}

#[test]
fn the_fast_path_answers_its_path_and_leaves_the_rest_to_the_router() {
    let system = System::new(routes()).fast_path("/echo", |request| {
        let (query, body) = (request.query, request.body);
        if request.method != "POST" {
            return None;
        }
        assert_ne!(body, b"boom at once", "on purpose");
        let text = [query.unwrap_or("no query").as_bytes(), body].join(&b' ');
        let is_bad = body == b"boom later";
        Some(async move {
            assert!(!is_bad, "on purpose");
            Answer::new(StatusCode::OK, "text/plain", text)
        })
    });
    let running = start(Server::new(system).workers(1));
    let mut client = running.ready_client();
    assert_eq!(client.request("POST", "/echo", &[], b"x").text(), "no query x");
    assert_eq!(client.request("POST", "/echo?a=1", &[], b"y").text(), "a=1 y");
    assert_eq!(client.get("/hello/you").text(), "hello you");
    let reply = client.get("/echo");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    for body in ["boom at once", "boom later"] {
        assert_eq!(client.request("POST", "/echo", &[], body.as_bytes()).status, 500, "{body}");
    }
    let metrics = client.get("/metrics");
    for line in [
        "tidemark_requests_total{route=\"/echo\",method=\"POST\",status=\"200\"} 2",
        "tidemark_requests_total{route=\"/echo\",method=\"POST\",status=\"500\"} 2",
        "tidemark_handler_panics_total 2",
    ] {
        assert!(metrics.text().lines().any(|l| l == line), "no {line} in\n{}", metrics.text());
    }
    running.end();
}

#[test]
fn a_system_that_cannot_work_says_so_until_it_can() {
    let is_failing = Arc::new(AtomicBool::new(false));
    let failing = is_failing.clone();
    let system = System::new(routes()).health(move || failing.load(Ordering::Relaxed).then_some("no store"));
    let running = start(Server::new(system).workers(1));
    let mut client = running.ready_client();
    let mut health = || {
        let reply = client.get("/health");
        (reply.status, reply.json()["status"].clone(), reply.json()["reason"].clone())
    };
    for _ in 0..2 {
        assert_eq!(health(), (200, "ready".into(), serde_json::Value::Null));
        is_failing.store(true, Ordering::Relaxed);
        assert_eq!(health(), (503, "failing".into(), "no store".into()));
        is_failing.store(false, Ordering::Relaxed);
    }
    assert_eq!(running.client().get("/hello/you").status, 200);
    running.end();
}

#[test]
fn connections_are_spread_evenly() {
    let running = start(Server::new(routes()).workers(2));
    let first = running.ready_client();
    let mut clients: Vec<Client> = (0..5).map(|_| running.client()).collect();
    clients.push(first);
    let mut served = [0, 0];
    for client in &mut clients {
        served[client.get("/worker").text().parse::<usize>().unwrap()] += 1;
    }
    assert_eq!(served, [3, 3]);
    running.end();
}

#[test]
fn a_body_may_come_after_a_continue() {
    let running = start(Server::new(routes()).workers(1));
    let mut client = running.ready_client();
    client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.reply(false).status, 100);
    client.send(b"after");
    assert_eq!(client.reply(false).text(), "after");
    running.end();
}

#[test]
fn head_has_the_length_but_no_body() {
    let running = start(Server::new(routes()).workers(1));
    let mut client = running.ready_client();
    let reply = client.request("HEAD", "/hello/you", &[], b"");
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("9")));
    assert_eq!(client.get("/hello/you").text(), "hello you");
    running.end();
}

#[test]
fn what_is_not_http_is_closed() {
    let running = start(Server::new(routes()).workers(1));
    drop(running.ready_client());
    for garbage in
        [&b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"[..], b"HELLO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let mut client = running.client();
        client.send(garbage);
        client.send(b"\r\n\r\n");
        assert_eq!(client.reply(false).status, 400);
        assert!(client.is_closed());
    }
    let mut client = running.client();
    client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n");
    assert_eq!(client.reply(false).status, 400);
    running.end();
}
