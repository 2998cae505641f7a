//! Connections that move from worker to worker while they are used.
#![cfg(target_os = "linux")]

mod client;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use client::Client;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tidemark_service::{Served, Server, ServiceError, Stop, worker_index};

/// Tells the worker, and what was sent.
fn routes() -> Router {
    async fn echo(Path(number): Path<u64>, body: Bytes) -> Result<String, StatusCode> {
        let sent: u64 = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        if sent != number {
            return Err(StatusCode::BAD_REQUEST);
        }
        // half of them are answered later, so that work begun on one worker is seen to its end there
        if number % 2 == 1 {
            tokio::task::yield_now().await;
        }
        Ok(format!("{} {number}", worker_index()))
    }
    Router::new().route("/echo/{number}", post(echo))
}

fn serve(workers: usize) -> (SocketAddr, Stop, JoinHandle<Result<Served, ServiceError>>) {
    let bound = Server::new(routes()).workers(workers).bind().unwrap();
    let (addr, stop) = (bound.addr(), Stop::new());
    let triggered = stop.triggered();
    let serving = std::thread::spawn(move || bound.serve(triggered));
    let mut asking = Client::new(addr);
    client::eventually("ready", || (asking.get("/health").status == 200).then_some(()));
    (addr, stop, serving)
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let may = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|&processor| may.is_set(processor)).collect()
}

/// From now on this thread runs on this one only.
fn run_on(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).unwrap();
}

fn answered(addr: SocketAddr) -> u64 {
    let reply = Client::new(addr).get("/metrics");
    let name = "tidemark_requests_total{route=\"/echo/{number}\",method=\"POST\",status=\"200\"}";
    reply
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map_or(0, |value| value.trim().parse().unwrap())
}

fn metric(addr: SocketAddr, name: &str) -> u64 {
    let reply = Client::new(addr).get("/metrics");
    let line = reply.text().lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}"))
}

/// Asks on a connection, and gives head and body of the answer; nothing where it was closed before one began.
fn ask(mut stream: &TcpStream, number: u64) -> Option<(String, String)> {
    let body = number.to_string();
    let length = body.len();
    let request =
        format!("POST /echo/{number} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).ok()?;
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    while !received.ends_with(format!(" {number}").as_bytes()) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => {
                assert!(received.is_empty(), "cut off: {:?}", String::from_utf8_lossy(&received));
                return None;
            }
            Ok(got) => received.extend_from_slice(&buffer[..got]),
        }
    }
    let text = String::from_utf8(received).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    Some((head.to_owned(), body.to_owned()))
}

/// One client: asks on its connections in turn, now on this processor and now on that, until it is told to stop or the
/// server closes. How many were answered.
fn hop(addr: SocketAddr, connections: u64, over: &AtomicBool) -> u64 {
    let processors = processors();
    let connect = || {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    };
    let streams: Vec<TcpStream> = (0..connections).map(|_| connect()).collect();
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        if number % 400 == 0 {
            run_on(processors[(number / 400) as usize % processors.len()]);
        }
        let Some((head, body)) = ask(&streams[(number % connections) as usize], number) else { break };
        assert!(body.ends_with(&format!(" {number}")), "{body}");
        number += 1;
        if head.contains("connection: close") {
            break;
        }
    }
    number
}

#[test]
fn a_connection_follows_its_client_and_every_request_is_answered_once() {
    let (addr, stop, serving) = serve(2);
    let over = AtomicBool::new(false);
    let can_move = processors().len() > 1;
    let asked: Vec<u64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| hop(addr, 8, &over))).collect();
        let begun = Instant::now();
        // a machine with one processor has nowhere to move to
        while begun.elapsed() < Duration::from_millis(300)
            || can_move && metric(addr, "tidemark_connections_moved_total") < 20
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "no connection moves");
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(answered(addr), asked.iter().sum::<u64>());
    // those of the clients have gone, and what moved was counted neither twice nor never
    client::eventually("only this one is open", || {
        (metric(addr, "tidemark_connections_open") == 1).then_some(())
    });
    stop.trigger();
    assert_eq!(serving.join().unwrap().unwrap(), Served { connections_cut: 0 });
}

#[test]
fn a_stop_while_connections_move_cuts_none() {
    for _ in 0..5 {
        let (addr, stop, serving) = serve(3);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| hop(addr, 16, &over))).collect();
            client::eventually("they are at it", || (answered(addr) > 2_000).then_some(()));
            stop.trigger();
            for client in clients {
                client.join().unwrap();
            }
        });
        assert_eq!(serving.join().unwrap().unwrap(), Served { connections_cut: 0 });
    }
}
