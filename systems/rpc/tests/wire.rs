//! Both sides against a peer that does not keep to the rules, byte by byte.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::fixture::raw::{KEY, Raw};
use crate::fixture::{self, Desk, DeskClient, Running, until};
use tidemark_rpc::{CallError, Client, ClientOptions, Refusal};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::rpc::{Answer, AnswerReader, AnswerWriter, CallWriter, Greeting, Limits, code};
use tidemark_wire::websocket::{self, Decoder, Event, Kind, Role, handshake};

#[test]
fn a_malformed_frame_ends_that_connection_with_a_reason_and_no_other() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut neighbour = Raw::connect(running.addr);
    let cases: [(&[u8], u16, &str); 3] = [
        (&[0x01, 0x00], websocket::PROTOCOL_ERROR, "names no method"),
        (&[0x7f], websocket::PROTOCOL_ERROR, "begins with 0x7f"),
        (
            &[0x61, 0x00, 0x01, 0xff, 0xff, 0xff, 0x7f],
            websocket::TOO_LARGE,
            "payload is larger than the limit",
        ),
    ];
    for (frame, code, reason) in cases {
        let mut raw = Raw::connect(running.addr);
        raw.send(frame);
        let closed = raw.closed();
        assert!(closed.0 == code && closed.1.contains(reason), "{closed:?}");
    }
    let mut raw = Raw::connect(running.addr);
    raw.stream.write_all(&[0x81, 0x01, b'x']).unwrap(); // not masked
    assert_eq!(raw.closed().0, websocket::PROTOCOL_ERROR);
    let mut raw = Raw::connect(running.addr);
    let mut text = Vec::new();
    websocket::write_message(&mut text, Kind::Text, b"x", Some(KEY));
    raw.stream.write_all(&text).unwrap();
    assert_eq!(raw.closed().0, 1003);
    let mut raw = Raw::connect(running.addr);
    let mut huge = vec![0x82, 0xff];
    huge.extend_from_slice(&(1u64 << 40).to_be_bytes());
    huge.extend_from_slice(&KEY);
    raw.stream.write_all(&huge).unwrap();
    assert_eq!(raw.closed().0, websocket::TOO_LARGE);

    let mut frame = Vec::new();
    CallWriter::new().call(&mut frame, 9, neighbour.number("desk.count"), 1000, b"[]");
    neighbour.send(&frame);
    assert_eq!(neighbour.event(), Event::Message(Kind::Binary));
    let answer = AnswerReader::new(Limits::default()).next(neighbour.decoder.message()).unwrap();
    assert_eq!(answer, Some(Answer::Done { id: 9, payload: b"0" }));
    assert!(running.metrics().contains("tidemark_call_connections_cut_total{reason=\"malformed\"} 6"));
    drop(neighbour);
    running.end();
}

#[test]
fn a_call_that_cannot_be_done_is_answered_and_the_ones_beside_it_are_done() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut raw = Raw::connect(running.addr);
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let sum = raw.number("desk.sum");
    calls.call(&mut frame, 1, sum, 1000, b"[1,2]");
    calls.call(&mut frame, 2, 999, 1000, b"[]");
    calls.call(&mut frame, 3, sum, 1000, b"[1,\"x\"]");
    calls.cancel(&mut frame, 77);
    calls.call(&mut frame, 4, sum, 1000, b"{}");
    calls.call(&mut frame, 5, sum, 1000, b"[3,null]");
    raw.send(&frame);
    assert_eq!(raw.event(), Event::Message(Kind::Binary));
    let frame = raw.decoder.message().to_vec();
    let answers: Vec<_> = AnswerReader::new(Limits::default()).all(&frame).map(Result::unwrap).collect();
    let [first, unknown, wrong, no_array, last] = answers[..] else { panic!("{answers:?}") };
    assert_eq!(first, Answer::Done { id: 1, payload: b"3" });
    assert!(matches!(unknown, Answer::Failed { id: 2, code: code::NO_METHOD, .. }));
    assert!(matches!(wrong, Answer::Failed { id: 3, code: code::BAD_PAYLOAD, .. }));
    assert!(matches!(no_array, Answer::Failed { id: 4, code: code::BAD_PAYLOAD, .. }));
    assert_eq!(last, Answer::Done { id: 5, payload: b"3" });
    drop(raw);
    running.end();
}

#[test]
fn an_id_in_use_and_a_ping_and_a_close() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut raw = Raw::connect(running.addr);
    let mut wire = Vec::new();
    websocket::write_ping(&mut wire, b"are you there", Some(KEY));
    raw.stream.write_all(&wire).unwrap();
    assert_eq!((raw.event(), raw.decoder.control()), (Event::Pong, &b"are you there"[..]));
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let hang = raw.number("desk.hang");
    calls.call(&mut frame, 1, hang, 60_000, b"[]");
    calls.call(&mut frame, 1, hang, 60_000, b"[]");
    raw.send(&frame);
    assert!(raw.closed().1.contains("not answered yet"));

    let mut raw = Raw::connect(running.addr);
    let mut wire = Vec::new();
    websocket::write_close(&mut wire, Some(websocket::NORMAL), "", Some(KEY));
    raw.stream.write_all(&wire).unwrap();
    assert_eq!(raw.closed().0, websocket::NORMAL);
    running.end();
}

#[test]
fn more_calls_than_the_server_works_on_wait_unread() {
    let desk = Arc::new(Desk::default());
    let running = Running::start(desk.clone());
    let mut raw = Raw::connect(running.addr);
    let most = raw.greeting.in_flight_max;
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let hang = raw.number("desk.hang");
    for id in 0..most as u64 + 10 {
        calls.call(&mut frame, id, hang, 600, b"[]");
    }
    raw.send(&frame);
    crate::client::eventually("all busy", || (desk.hanging.load(Ordering::SeqCst) == most).then_some(()));
    let mut answered = 0;
    while answered < most + 10 {
        assert_eq!(raw.event(), Event::Message(Kind::Binary));
        for answer in AnswerReader::new(Limits::default()).all(raw.decoder.message()) {
            assert!(matches!(answer, Ok(Answer::Failed { code: code::DEADLINE, .. })), "{answer:?}");
            answered += 1;
        }
        assert!(desk.hanging.load(Ordering::SeqCst) <= most);
    }
    drop(raw);
    running.end();
}

#[test]
fn what_is_no_handshake_is_told_what_would_be() {
    let running = Running::start(Arc::new(Desk::default()));
    let mut client = running.client();
    assert_eq!(client.get("/rpc").status, 426);
    assert_eq!(client.request("PUT", "/rpc", &[], b"").header("allow"), Some("GET"));
    let upgrade = [("Upgrade", "websocket"), ("Connection", "Upgrade")];
    let with = |more: &[(&'static str, &'static str)]| [&upgrade[..], more].concat();
    let old = client.request("GET", "/rpc", &with(&[("Sec-WebSocket-Version", "8")]), b"");
    assert_eq!((old.status, old.header("sec-websocket-version")), (426, Some("13")));
    let version = ("Sec-WebSocket-Version", "13");
    assert_eq!(
        client.request("GET", "/rpc", &with(&[version, ("Sec-WebSocket-Key", "short")]), b"").status,
        400
    );
    let key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let json = ("Sec-WebSocket-Protocol", "tidemark-rpc.1+json");
    let other_key = ("Sec-WebSocket-Key", "b3RoZXIgb3RoZXIgb3RoZQ==");
    for twice in [key, other_key] {
        assert_eq!(client.request("GET", "/rpc", &with(&[version, key, twice, json]), b"").status, 400);
    }
    assert_eq!(client.request("GET", "/rpc", &with(&[version, version, key, json]), b"").status, 426);
    let other =
        client.request("GET", "/rpc", &with(&[version, key, ("Sec-WebSocket-Protocol", "chat")]), b"");
    assert!(other.status == 400 && other.text().contains("tidemark-rpc.1+json"), "{}", other.text());
    running.end();
}

/// A server that reads `calls` calls, answers none, and closes. Says how many it saw on each connection.
fn treacherous(listener: TcpListener, rounds: usize) -> std::thread::JoinHandle<Vec<usize>> {
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        for round in 0..rounds {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut request = RequestDecoder::new(DecoderLimits::default());
            let mut byte = [0];
            loop {
                stream.read_exact(&mut byte).unwrap();
                if request.decode(&byte).unwrap().complete {
                    break;
                }
            }
            let offer = handshake::check_request(&request).unwrap();
            let mut out = Vec::new();
            handshake::write_answer(&mut out, offer.key, Some(tidemark_wire::rpc::JSON)).unwrap();
            let methods = vec!["desk.count".to_owned()];
            let mut greeting = Vec::new();
            Greeting { limits: Limits::default(), in_flight_max: 10, methods }.write(&mut greeting).unwrap();
            websocket::write_message(&mut out, Kind::Binary, &greeting, None);
            stream.write_all(&out).unwrap();
            let mut decoder = Decoder::new(Role::Server, websocket::Limits::default());
            let mut piece = [0; 1024];
            let got = stream.read(&mut piece).unwrap();
            assert_eq!(decoder.decode(&piece[..got]).unwrap().event, Some(Event::Message(Kind::Binary)));
            let calls = tidemark_wire::rpc::CallReader::new(Limits::default()).all(decoder.message()).count();
            seen.push(calls);
            if round == rounds - 1 {
                let (mut frame, mut out) = (Vec::new(), Vec::new());
                let mut answers = AnswerWriter::new();
                for request in tidemark_wire::rpc::CallReader::new(Limits::default()).all(decoder.message()) {
                    if let Ok(tidemark_wire::rpc::Request::Call(call)) = request {
                        answers.answer(&mut frame, call.id, b"42");
                        answers.answer(&mut frame, call.id + 1000, b"43"); // of nobody
                    }
                }
                websocket::write_message(&mut out, Kind::Binary, &frame, None);
                stream.write_all(&out).unwrap();
                let _ = stream.read(&mut piece);
            }
        }
        seen
    })
}

#[test]
fn a_call_in_flight_at_a_cut_is_an_error_and_never_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let server = treacherous(listener, 2);
    let runtime = fixture::runtime();
    runtime.block_on(async {
        let connection = Client::connect(addr, ClientOptions::default());
        let client = DeskClient::new(connection.clone());
        let (one, other) = tokio::join!(client.count(), client.count());
        assert!(matches!(one, Err(CallError::Cut(_))), "{one:?}");
        assert!(matches!(other, Err(CallError::Cut(_))), "{other:?}");
        // the next one goes over a new connection, alone
        assert_eq!(client.count().await, Ok(42));
        assert_eq!(client.hidden().await, Err(CallError::NoMethod("desk.hidden")));
        until(async || connection.stats().in_flight == 0).await;
        assert_eq!(connection.stats().connections, 2);
    });
    drop(runtime);
    assert_eq!(server.join().unwrap(), [2, 1]);
}

#[test]
fn a_client_that_may_not_come_back_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let runtime = fixture::runtime();
    runtime.block_on(async {
        let options = ClientOptions { pause: None, ..ClientOptions::default() };
        let client = DeskClient::new(Client::connect(addr, options));
        for _ in 0..2 {
            let Err(CallError::NotConnected(why)) = client.count().await else { panic!("was answered") };
            assert!(why.contains(&addr.to_string()), "{why}");
        }
    });
}

#[test]
fn codes_that_are_none_of_failure_become_500() {
    assert_eq!(Refusal::new(200, "x").code(), 500);
    assert_eq!(Refusal::new(404, "x").code(), 404);
}
