//! What HTTP allows and what a client may get wrong, byte by byte.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::{Client, Serving, eventually};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, Uri};
use axum::routing::{get, post};
use bytes::Bytes;
use proptest::prelude::*;
use tidemark_service::{Limits, Server};

/// A body of so many pieces, whose length is not told beforehand.
struct Pieces(usize);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let piece = (self.0 > 0).then(|| {
            self.0 -= 1;
            Ok(http_body::Frame::data(Bytes::from(vec![b'x'; 1000])))
        });
        std::task::Poll::Ready(piece)
    }
}

/// A body that neither has anything nor ends.
struct Silence;

impl http_body::Body for Silence {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

fn routes() -> Router {
    Router::new()
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/pieces", get(|| async { Body::new(Pieces(3)) }))
        .route("/endless", get(|| async { Body::new(Pieces(usize::MAX)) }))
        .route("/events", get(|| async { ([("content-type", "text/event-stream")], Body::new(Silence)) }))
        .route("/megabyte", get(|| async { vec![b'x'; 1 << 20] }))
        .route("/uri", get(|uri: Uri| async move { uri.to_string() }))
        .route(
            "/late",
            post(|body: Bytes| async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                body
            }),
        )
        .route("/never", get(std::future::pending::<&'static str>))
        .route(
            "/headers",
            get(|headers: HeaderMap| async move {
                let values = headers.get_all("x-value").iter().map(|value| value.as_bytes().to_vec());
                values.collect::<Vec<_>>().join(&b'|')
            }),
        )
}

struct Running {
    addr: SocketAddr,
    serving: Serving,
}

fn serve(limits: Limits) -> Running {
    let serving = Serving::start(Server::new(routes()).limits(limits).workers(1).bind().unwrap());
    Running { addr: serving.addr, serving }
}

impl Running {
    fn end(self) {
        assert_eq!(self.serving.end().connections_cut, 0);
    }

    /// A counter of the server, once it is above 0.
    fn count(&self, name: &str) -> u64 {
        eventually(name, || {
            let metrics = Client::new(self.addr).get("/metrics");
            let of = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
            metrics.text().lines().find_map(of).filter(|count| *count > 0)
        })
    }

    /// Everything that is answered until the server closes.
    fn all(&self, sent: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(sent).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        String::from_utf8(received).unwrap()
    }
}

#[test]
fn a_body_of_unknown_length_comes_in_chunks_or_until_the_end_of_the_connection() {
    let running = serve(Limits::default());
    let chunked = running.all(b"GET /pieces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let (head, body) = chunked.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("\r\ntransfer-encoding: chunked"),
        "{head}"
    );
    assert!(head.contains("\r\nconnection: close") && !head.contains("content-length"), "{head}");
    assert_eq!(body, format!("3E8\r\n{}\r\n", "x".repeat(1000)).repeat(3) + "0\r\n\r\n");
    let plain = running.all(b"GET /pieces HTTP/1.0\r\n\r\n");
    let (head, body) = plain.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.0 200 OK\r\n") && !head.contains("chunked"), "{head}");
    assert_eq!(body, "x".repeat(3000));
    running.end();
}

#[test]
fn a_client_of_http_1_0_may_keep_its_connection() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    for _ in 0..2 {
        client.send(b"GET /uri HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let reply = client.reply(false);
        assert_eq!((reply.text(), reply.header("connection")), ("/uri", Some("keep-alive")));
    }
    client.send(b"GET /uri HTTP/1.0\r\n\r\n");
    assert_eq!(client.reply(false).header("connection"), None);
    assert!(client.is_closed());
    running.end();
}

#[test]
fn a_close_is_asked_for_and_given() {
    let running = serve(Limits::default());
    let answers = running.all(b"GET /uri HTTP/1.1\r\nHost: x\r\n\r\nGET /uri?2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /uri?3 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answers.contains("/uri?2") && !answers.contains("/uri?3"), "{answers}");
    running.end();
}

#[test]
fn every_answer_has_a_date() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    for path in ["/uri", "/health", "/nowhere"] {
        let reply = client.get(path);
        assert!(httpdate::parse_http_date(reply.header("date").unwrap()).is_ok());
    }
    running.end();
}

#[test]
fn targets_and_headers_come_as_they_were_sent() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    assert_eq!(client.get("/uri?a=%20&b=/?").text(), "/uri?a=%20&b=/?");
    assert_eq!(client.get("http://elsewhere:1/uri?a").text(), "http://elsewhere:1/uri?a");
    let headers = [("X-Value", "one"), ("x-other", "?"), ("X-VALUE", ""), ("x-value", "a \u{e4} b")];
    assert_eq!(client.request("GET", "/headers", &headers, b"").body, "one||a \u{e4} b".as_bytes());
    let goes_on = client.request("POST", "/echo", &[("Expect", "100-continue")], b"at once");
    assert_eq!((goes_on.status, client.reply(false).text()), (100, "at once"));
    for target in ["/\u{e4}", "/a\u{80}b"] {
        assert!([400, 404].contains(&client.get(target).status), "{target}");
    }
    running.end();
}

#[test]
fn what_two_could_read_differently_is_refused() {
    let running = serve(Limits::default());
    // those that hyper refuses by itself have no reason with them
    for (head, has_reason) in [
        ("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n", false),
        ("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", true),
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            true,
        ),
        ("GET /uri HTTP/1.1\r\nHost: x\r\nHost: y\r\n", true),
        ("GET /uri HTTP/1.1\r\n", true),
        ("GET /uri HTTP/1.1\r\nHost : x\r\n", false),
        ("GET /uri HTTP/1.1\r\nHost: x\r\n folded\r\n", false),
    ] {
        let answer = running.all(format!("{head}\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{head}: {answer}");
        assert_eq!(answer.contains("\"reason\""), has_reason, "{head}: {answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    // chunks count, not the length, and nothing is read behind them
    let both = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer =
        running.all(format!("{both}2\r\nhi\r\n0\r\n\r\nGET /uri HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhi"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    running.end();
}

/// What follows is neither read as a request nor taken for a part of this one.
#[test]
fn a_line_that_ends_in_a_cr_or_an_lf_alone_is_refused_with_what_follows_it() {
    let running = serve(Limits::default());
    let next = "GET /uri?next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let heads =
        ["GET /uri HTTP/1.1\nHost: x\n\n", "GET /uri HTTP/1.1\r\nHost: x\r\nX: a\nContent-Length: 5\r\n\r\n"];
    let bodies = ["0\r\nX: y\n\r\n", "2\r\nhi\n0\r\n\r\n"].map(|body| [chunked, body].concat());
    for wrong in heads.into_iter().chain(bodies.iter().map(String::as_str)) {
        // an answer to what came before is not lost
        for before in ["", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok"] {
            let answers = running.all([before, wrong, next].concat().as_bytes());
            let answers: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).collect();
            let expected = usize::from(!before.is_empty()) + 1;
            assert_eq!(answers.len(), expected, "{wrong:?}: {answers:?}");
            assert!(
                answers.last().is_some_and(|answer| answer.starts_with("400 ")),
                "{wrong:?}: {answers:?}"
            );
            assert!(answers.last().is_some_and(|answer| answer.contains("connection: close")), "{answers:?}");
            assert!(before.is_empty() || answers[0].starts_with("200 "), "{wrong:?}: {answers:?}");
        }
    }
    running.end();
}

/// A buffer that large heads have made large is given up while the next one is waited for, and a part of that may
/// be in it.
#[test]
fn what_stands_behind_large_heads_is_not_lost() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    let large = |target: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: x\r\nX-Padding: {}\r\n\r\n", "p".repeat(15_000))
    };
    for _ in 0..3 {
        let all = [large("/uri?1"), large("/uri?2"), large("/uri?3"), large("/uri?4")].concat();
        for cut in [all.len() - 1, all.len() - 9_000, all.len() - 15_010] {
            client.send(&all.as_bytes()[..cut]);
            for answer in ["/uri?1", "/uri?2", "/uri?3"] {
                assert_eq!(client.reply(false).text(), answer);
            }
            std::thread::sleep(Duration::from_millis(20));
            client.send(&all.as_bytes()[cut..]);
            assert_eq!(client.reply(false).text(), "/uri?4");
        }
        assert_eq!(client.get("/uri?small").text(), "/uri?small");
    }
    running.end();
}

#[test]
fn who_goes_away_before_the_answer_is_counted() {
    // long enough that who sends half and goes has gone by then, on a busy machine, too
    let running = serve(Limits { body_timeout: Duration::from_secs(1), ..Limits::default() });
    let mut client = Client::new(running.addr);
    client.send(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
    // it may wait for its answer still, but not for ever
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert!(client.is_closed());
    assert_eq!(running.count("tidemark_requests_abandoned_total"), 1);
    let mut client = Client::new(running.addr);
    client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert!(client.is_closed());
    assert_eq!(running.count("tidemark_connections_broken_total"), 2);
    running.end();
}

/// With nothing to send it would not be noticed otherwise.
#[test]
fn who_goes_away_from_events_is_gone_at_once() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    client.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.send(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut head = [0; 15];
    client.stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.stream.read_to_end(&mut Vec::new()).expect("the end of the connection");
    // also one that had closed its side before the answer
    let mut client = Client::new(running.addr);
    client.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.send(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.stream.read_to_end(&mut Vec::new()).expect("the end of the connection");
    running.end();
}

#[test]
fn a_reset_ends_the_work_at_once() {
    let running = serve(Limits::default());
    let mut client = Client::new(running.addr);
    client.send(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually("its begin", || (running.count("tidemark_requests_in_flight") == 2).then_some(()));
    socket2::SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_eq!(running.count("tidemark_requests_abandoned_total"), 1);
    running.end();
}

#[test]
fn who_has_sent_all_and_closed_that_side_has_its_answers() {
    let running = serve(Limits::default());
    let late = "POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    for count in [1, 3] {
        let mut client = Client::new(running.addr);
        client.send(late.repeat(count).as_bytes());
        client.stream.shutdown(Shutdown::Write).unwrap();
        for _ in 0..count {
            assert_eq!(client.reply(false).text(), "hi");
        }
        assert!(client.is_closed());
    }
    running.end();
}

#[test]
fn a_host_that_is_none_and_a_target_without_one_are_400() {
    let running = serve(Limits::default());
    let status = |head: &str| {
        let answer = running.all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
        answer[9..12].parse::<u16>().unwrap()
    };
    for host in ["a b", "u@h", "h:80:80", "[::1", "%zz"] {
        assert_eq!(status(&format!("GET /uri HTTP/1.1\r\nHost: {host}")), 400, "{host}");
    }
    for host in ["", "x", "h:80", "[::1]:80", "%41"] {
        assert_eq!(status(&format!("GET /uri HTTP/1.1\r\nHost: {host}")), 200, "{host}");
    }
    for target in ["http:///uri", "http:///x", "http://u@h/uri", "http://h:x/uri", "uri", "x://"] {
        assert_eq!(status(&format!("GET {target} HTTP/1.1\r\nHost: x")), 400, "{target}");
    }
    for target in ["http://h/uri", "HTTP://[::1]:80/uri?x"] {
        assert_eq!(status(&format!("GET {target} HTTP/1.1\r\nHost: x")), 200, "{target}");
    }
    running.end();
}

#[test]
fn a_head_that_is_refused_has_no_body() {
    let running = serve(Limits { head_bytes_max: 8192, ..Limits::default() });
    let long = format!("HEAD /uri HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(9000));
    let target = format!("HEAD /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(9000));
    for (request, status) in [
        ("HEAD /uri HTTP/1.1\r\nHost: u@h\r\n\r\n", 400),
        ("\r\nHEAD /uri HTTP/1.1\r\n\r\n", 400),
        ("HEAD http://u@h/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
        ("HEAD /uri HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 413),
        (&long, 431),
        (&target, 414),
    ] {
        for piece_bytes in [usize::MAX, 3] {
            let mut client = Client::new(running.addr);
            for piece in request.as_bytes().chunks(piece_bytes.min(request.len())) {
                // it may be refused before it is all sent
                let _ = client.stream.write_all(piece);
            }
            let reply = client.reply(true);
            assert_eq!(reply.status, status, "{request:?}");
            assert!(reply.header("content-length").unwrap().parse::<u32>().unwrap() > 0);
            assert!(client.is_closed(), "{request:?}");
        }
    }
    running.end();
}

#[test]
fn a_chunk_size_that_is_no_number_of_64_bits_is_refused_at_once() {
    let running = serve(Limits::default());
    for size in ["10000000000000000", "-1", "x"] {
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut client = Client::new(running.addr);
        client.send(format!("{head}{size}\r\n").as_bytes());
        assert_eq!(client.reply(false).status, 400, "{size}");
        assert!(client.is_closed());
    }
    running.end();
}

#[test]
fn who_does_not_read_is_cut_off_and_holds_nobody_up() {
    let limits = Limits { body_timeout: Duration::from_millis(100), ..Limits::default() };
    let running = serve(limits);
    let mut endless = Client::new(running.addr);
    endless.send(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    // a hundred megabytes, if it were all set aside
    let mut many = Client::new(running.addr);
    many.send(&b"GET /megabyte HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
    assert_eq!(Client::new(running.addr).get("/uri").text(), "/uri");
    eventually("both are cut off", || {
        (running.count("tidemark_bound_hits_total{bound=\"write_time\"}") == 2).then_some(())
    });
    running.end();
}

/// Requests, each with the answer to it.
fn exchange() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = proptest::collection::vec(any::<u8>(), 0..300);
    (body, 0..3u8).prop_map(|(body, kind)| {
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\n";
        let request = match kind {
            0 => [format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat(),
            1 => {
                let pieces = body
                    .chunks(7)
                    .map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
                let chunks = pieces.collect::<Vec<_>>().concat();
                [format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes(), &chunks, b"0\r\n\r\n"]
                    .concat()
            }
            _ => return (b"GET /uri?x HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), b"/uri?x".to_vec()),
        };
        (request, body)
    })
}

#[test]
fn however_requests_are_cut_each_has_its_answer() {
    let running = serve(Limits::default());
    let strategy =
        (proptest::collection::vec(exchange(), 1..12), proptest::collection::vec(1usize..400, 1..40));
    let mut runner = proptest::test_runner::TestRunner::default();
    let outcome = runner.run(&strategy, |(exchanges, cuts)| {
        let mut client = Client::new(running.addr);
        let sent: Vec<u8> = exchanges.iter().flat_map(|(request, _)| request.clone()).collect();
        let mut rest = &sent[..];
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            client.send(piece);
            rest = behind;
        }
        for (_, answer) in &exchanges {
            prop_assert_eq!(&client.reply(false).body, answer);
        }
        Ok(())
    });
    outcome.unwrap();
    running.end();
}
