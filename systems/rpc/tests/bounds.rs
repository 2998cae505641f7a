//! What a WebSocket may hold, and for how long: clients that do not read, do not speak, or do and stay.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::eventually;
use crate::fixture::raw::{KEY, Raw};
use crate::fixture::{Desk, DeskClient, Running};
use tidemark_rpc::{Client, ClientOptions};
use tidemark_service::Limits;
use tidemark_wire::rpc::{Answer, AnswerReader, CallWriter, code};
use tidemark_wire::websocket::{self, Event, Kind};

/// A server that takes silence for so long.
fn patient_for(silence_max: Duration, desk: &Arc<Desk>) -> Running {
    Running::start_with(desk.clone(), Limits { head_timeout: silence_max, ..Limits::default() })
}

/// Until so many WebSockets were cut for this reason, and none is open.
fn cut(running: &Running, reason: &str, count: usize) {
    let line = format!("tidemark_call_connections_cut_total{{reason=\"{reason}\"}} {count}\n");
    eventually("the cut", || running.metrics().contains(&line).then_some(()));
    eventually("the end", || running.metrics().contains("tidemark_call_connections_open 0\n").then_some(()));
    let cuts = running.metrics();
    let cuts = cuts.lines().filter_map(|line| line.strip_prefix("tidemark_call_connections_cut_total"));
    let cuts: usize = cuts.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(cuts, count, "for no other reason");
}

#[test]
fn a_client_that_never_reads_is_cut_off_with_all_that_it_held() {
    let running = patient_for(Duration::from_secs(3), &Arc::default());
    let mut raw = Raw::connect(running.addr);
    let wire = raw.echo(60_000);
    raw.stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    // the kernel's buffers of both directions and what the server keeps are full one day; then it is the server's turn
    let mut sent = 0;
    let error = loop {
        match raw.stream.write_all(&wire) {
            Ok(()) => sent += wire.len(),
            Err(error) => break error,
        }
        assert!(sent < 256 << 20, "the server takes in without end");
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    cut(&running, "slow_reader", 1);
    running.end();
}

#[test]
fn a_client_that_says_nothing_is_pinged_and_then_cut_off() {
    let running = patient_for(Duration::from_secs(1), &Arc::default());
    let mut raw = Raw::connect(running.addr);
    assert_eq!(raw.event(), Event::Ping);
    assert!(raw.is_ended(), "without a word");
    cut(&running, "silent", 1);
    running.end();
}

#[test]
fn a_client_that_answers_pings_stays() {
    // Two answers that came late by a second would be one silence: a busy machine has that much time.
    let running = patient_for(Duration::from_secs(3), &Arc::default());
    let typed = running.block_on(async { Client::connect(running.addr, ClientOptions::default()) });
    let client = DeskClient::new(typed.clone());
    let count = |client: &DeskClient| running.block_on(client.count());
    assert_eq!(count(&client), Ok(0));
    let mut raw = Raw::connect(running.addr);
    // the third comes later than silence is borne
    let pinged = std::thread::spawn(move || {
        for _ in 0..3 {
            assert_eq!(raw.event(), Event::Ping);
            let mut wire = Vec::new();
            websocket::write_pong(&mut wire, raw.decoder.control(), Some(KEY));
            raw.stream.write_all(&wire).unwrap();
        }
        raw
    });
    // our own client answers while it has nothing else to do
    running.block_on(async {
        while !pinged.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut raw = pinged.join().unwrap();
    let mut frame = Vec::new();
    CallWriter::new().call(&mut frame, 1, raw.number("desk.count"), 30_000, b"[]");
    raw.send(&frame);
    while raw.event() != Event::Message(Kind::Binary) {}
    let answers = AnswerReader::new(tidemark_wire::rpc::Limits::default()).all(raw.decoder.message()).count();
    assert_eq!((answers, count(&client), typed.stats().connections), (1, Ok(0), 1));
    drop((raw, client, typed));
    running.end();
}

#[test]
fn a_client_that_vanishes_frees_all_the_room_that_its_calls_took() {
    let desk = Arc::new(Desk::default());
    // a busy machine may be as late as that before it sends them
    let running = patient_for(Duration::from_secs(3), &desk);
    let mut raw = Raw::connect(running.addr);
    let most = raw.greeting.in_flight_max;
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let hang = raw.number("desk.hang");
    // they have an hour; whoever waits for them says nothing more, and does not close
    (0..most as u64).for_each(|id| calls.call(&mut frame, id, hang, 3_600_000, b"[]"));
    raw.send(&frame);
    eventually("all their work", || (desk.hanging.load(Ordering::SeqCst) == most).then_some(()));
    cut(&running, "silent", 1);
    eventually("the end of their work", || (desk.hanging.load(Ordering::SeqCst) == 0).then_some(()));
    let abandoned = format!("tidemark_calls_total{{method=\"desk.hang\",outcome=\"abandoned\"}} {most}\n");
    assert!(running.metrics().contains(&abandoned));
    drop(raw);
    running.end();
}

#[test]
fn a_client_whose_calls_take_all_the_room_there_is_is_not_taken_for_silent() {
    let silence_max = Duration::from_secs(1);
    let running = patient_for(silence_max, &Arc::default());
    let mut raw = Raw::connect(running.addr);
    let most = raw.greeting.in_flight_max;
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let hang = raw.number("desk.hang");
    let deadline_ms = 3 * silence_max.as_millis() as u32;
    for id in 0..most as u64 {
        calls.call(&mut frame, id, hang, deadline_ms, b"[]");
    }
    // one more than it works on: it does not listen before one of them has ended
    calls.call(&mut frame, most as u64, raw.number("desk.count"), 60_000, b"[]");
    raw.send(&frame);
    let (mut overdue, mut done) = (0, 0);
    while overdue + done <= most {
        if raw.event() != Event::Message(Kind::Binary) {
            continue;
        }
        for answer in AnswerReader::new(tidemark_wire::rpc::Limits::default()).all(raw.decoder.message()) {
            match answer.unwrap() {
                Answer::Done { .. } => done += 1,
                Answer::Failed { code, .. } => {
                    assert_eq!(code, code::DEADLINE);
                    overdue += 1;
                }
            }
        }
    }
    assert_eq!((overdue, done), (most, 1));
    // from here on it is silent like any other
    cut(&running, "silent", 1);
    drop(raw);
    running.end();
}
