//! Whatever a client sends, in whatever pieces: each request has its answer, and the server is as before.

use std::time::{Duration, Instant};

use crate::conversation::{check, converse, start, text_of};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidemark_service::Stop;
use tidemark_wire::rpc::CallWriter;
use tidemark_wire::websocket::{self, Kind};

const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

/// A request that is one.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..600);
    (body, prop::sample::select(vec!["/echo", "/late"]), 0..10u8).prop_map(|(body, path, kind)| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\n");
        let length = format!("Content-Length: {}\r\n", body.len());
        let lone = |text: &str| text.as_bytes().to_vec();
        match kind {
            0 | 1 => [format!("{head}{length}\r\n").as_bytes(), &body].concat(),
            2 => [format!("{head}Expect: 100-continue\r\n{length}\r\n").as_bytes(), &body].concat(),
            3 | 4 => {
                let chunk =
                    |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                let chunks: Vec<u8> = body.chunks(70).flat_map(chunk).collect();
                let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
                [head.as_bytes(), &chunks, b"0\r\n\r\n"].concat()
            }
            5 => lone("HEAD /uri HTTP/1.1\r\nHost: x\r\n\r\n"),
            6 => lone("GET /uri HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            7 => lone("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"),
            _ => lone("GET /uri?a HTTP/1.1\r\nHost: x\r\n\r\n"),
        }
    })
}

/// One that is none, or the last, or begins something else.
fn last() -> impl Strategy<Value = Vec<u8>> {
    let upgrade = format!(
        "GET /rpc HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{KEY}Sec-WebSocket-Protocol: {}\r\n\r\n",
        tidemark_wire::rpc::JSON
    );
    let fixed = [
        "GET /uri HTTP/1.1\r\nHost: u@h\r\n\r\n",
        "HEAD /uri HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /uri HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /uri HTTP/1.0\r\n\r\n",
        "POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
        "POST /late HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    ];
    let long = |what: &str| format!("HEAD /{what} HTTP/1.1\r\nHost: x\r\nX: {what}\r\n\r\n").into_bytes();
    let calls = (prop::collection::vec(any::<u32>(), 0..20), prop::collection::vec(any::<u8>(), 0..60));
    let upgraded = calls.prop_map(move |(numbers, garbage)| {
        let (mut frame, mut wire) = (Vec::new(), upgrade.clone().into_bytes());
        let mut calls = CallWriter::new();
        for (id, number) in numbers.iter().enumerate() {
            calls.call(&mut frame, id as u64, 0, 1000, format!("[{number}]").as_bytes());
        }
        websocket::write_message(&mut wire, Kind::Binary, &frame, Some([1, 2, 3, 4]));
        wire.extend_from_slice(&garbage);
        wire
    });
    prop_oneof![
        4 => prop::sample::select(fixed.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(long(&"x".repeat(5000))),
        3 => upgraded,
        2 => prop::collection::vec(any::<u8>(), 0..300),
        3 => Just(Vec::new()),
    ]
}

/// Requests behind each other, now and then with a byte that is another.
fn sent() -> impl Strategy<Value = Vec<u8>> {
    let flaw = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    (prop::collection::vec(request(), 0..8), last(), flaw).prop_map(|(requests, last, flaw)| {
        let mut bytes = [requests.concat(), last].concat();
        if let Some((index, byte)) = flaw
            && !bytes.is_empty()
        {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

/// A gauge or counter of the server.
fn metric(text: &str, start: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no {start}")).trim().parse().unwrap()
}

#[test]
fn whatever_is_sent_in_whatever_pieces() {
    let stop = Stop::new();
    let (addr, thread) = start(&stop);
    let pieces = prop::collection::vec(prop_oneof![1usize..40, 1usize..2000], 0..12);
    let outcome = TestRunner::new(Config::with_cases(512)).run(
        &(sent(), pieces, any::<bool>()),
        |(sent, pieces, has_small_buffers)| {
            let (received, is_whole) = converse(addr, &sent, pieces, has_small_buffers);
            check(&sent, (&received, is_whole));
            Ok(())
        },
    );
    outcome.unwrap();
    let begun = Instant::now();
    loop {
        let text = text_of(addr, "/metrics");
        assert_eq!(metric(&text, "tidemark_handler_panics_total "), 0);
        let left = ["tidemark_requests_in_flight ", "tidemark_connections_open ", "tidemark_held_bytes "];
        // the request for this is one of each but the last
        if left.map(|name| metric(&text, name)) == [1, 1, 0] {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "something is left:\n{text}");
        std::thread::sleep(Duration::from_millis(10));
    }
    stop.trigger();
    thread.join().unwrap();
}
