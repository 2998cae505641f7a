//! Every bound of the server: hit it, see the answer, see it counted.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::{Client, Serving, eventually};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use tidemark_service::{Limits, Server};

fn serve(limits: Limits) -> Serving {
    let length = |body: Bytes| async move { body.len().to_string() };
    let late = |body: Bytes| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        body.len().to_string()
    };
    let router = Router::new().route("/length", post(length)).route("/late", post(late));
    Serving::start(Server::new(router).name("bounded").limits(limits).workers(1).bind().unwrap())
}

fn end(serving: Serving) {
    assert_eq!(serving.end().connections_cut, 0);
}

/// How often a bound was hit, once it was hit at all: it is counted just after it is answered.
fn hits(addr: SocketAddr, bound: &str) -> u64 {
    let start = format!("tidemark_bound_hits_total{{bound=\"{bound}\"}} ");
    eventually("the hit", || {
        let reply = Client::new(addr).get("/metrics");
        let line = reply.text().lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|count| count.parse().ok()).filter(|count| *count > 0)
    })
}

#[test]
fn a_body_that_is_too_large_is_413() {
    let serving = serve(Limits { body_bytes_max: 2000, ..Limits::default() });
    let addr = serving.addr;
    assert_eq!(Client::new(addr).request("POST", "/length", &[], &[b'x'; 2000]).text(), "2000");
    let mut client = Client::new(addr);
    client.send(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 2001\r\n\r\n");
    let reply = client.reply(false);
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    assert!(reply.json()["reason"].as_str().unwrap().contains("2000"));
    assert!(client.is_closed());
    // Without a length it shows only while it comes.
    let mut client = Client::new(addr);
    client.send(b"POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..3 {
        client.send(&[&b"320\r\n"[..], &[b'x'; 800], b"\r\n"].concat());
    }
    assert_eq!(client.reply(false).status, 413);
    assert_eq!(hits(addr, "body_bytes"), 2);
    end(serving);
}

#[test]
fn a_head_that_is_too_large_is_431() {
    let serving = serve(Limits { head_bytes_max: 8192, headers_max: 20, ..Limits::default() });
    let mut client = Client::new(serving.addr);
    client.send(format!("GET /health HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(8192)).as_bytes());
    assert_eq!(client.reply(false).status, 431);
    let mut client = Client::new(serving.addr);
    client.send(format!("GET /health HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(21)).as_bytes());
    assert_eq!(client.reply(false).status, 431);
    assert!(hits(serving.addr, "head_bytes") >= 1);
    let mut client = Client::new(serving.addr);
    client.send(format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(9000)).as_bytes());
    assert_eq!(client.reply(false).status, 414);
    // one that would fit is not what the head is too large by
    let mut client = Client::new(serving.addr);
    let (target, header) = ("x".repeat(3000), "x".repeat(6000));
    client.send(format!("GET /{target} HTTP/1.1\r\nHost: x\r\nX: {header}\r\n\r\n").as_bytes());
    assert_eq!(client.reply(false).status, 431);
    end(serving);
}

#[test]
fn one_connection_too_many_is_503() {
    let serving = serve(Limits { connections_max: 3, ..Limits::default() });
    let mut held: Vec<Client> = Vec::new();
    // The connection that waited for the start may still be counted; take what there is.
    let mut refused = loop {
        let mut client = Client::new(serving.addr);
        client.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
        match client.reply(false).status {
            200 => held.push(client),
            status => break (status, client),
        }
    };
    assert_eq!(refused.0, 503);
    assert!(refused.1.is_closed());
    assert!((2..=3).contains(&held.len()), "{}", held.len());
    held.clear();
    assert!(hits(serving.addr, "connections") >= 1);
    end(serving);
}

#[test]
fn what_all_may_hold_together_is_bounded() {
    // a body of 60,000 bytes, and hyper's buffer, which it may make 64 KiB
    let serving = serve(Limits { held_bytes_max: 130_000, ..Limits::default() });
    let mut first = Client::new(serving.addr);
    first.send(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n");
    first.send(&[b'x'; 59_000]);
    let held = |least: u64| {
        eventually("what is held", || {
            let metrics = Client::new(serving.addr).get("/metrics");
            let line = metrics.text().lines().find_map(|line| line.strip_prefix("tidemark_held_bytes "));
            line?.parse::<u64>().ok().filter(|held| (least..=130_000).contains(held))
        })
    };
    assert!(held(59_000) < 130_000);
    // more than what is left, however small hyper's buffers are
    for (method, body) in [("POST", 75_000), ("HEAD", 75_000)] {
        let mut second = Client::new(serving.addr);
        second.send(
            format!("{method} /length HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n").as_bytes(),
        );
        second.send(&vec![b'x'; body - 1]);
        let reply = second.reply(method == "HEAD");
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
        assert!(second.is_closed());
    }
    assert_eq!(hits(serving.addr, "held_bytes"), 2);
    // small ones are taken in any case, and so is the rest of the first
    assert_eq!(Client::new(serving.addr).request("POST", "/length", &[], &[b'x'; 2000]).text(), "2000");
    first.send(&[b'x'; 1000]);
    assert_eq!(first.reply(false).text(), "60000");
    eventually("all is given back", || (held(0) == 0).then_some(()));
    end(serving);
}

#[test]
fn no_room_for_one_request_is_not_told_the_next() {
    // nothing beside the 4 KiB that each connection has in any case
    let serving = serve(Limits { held_bytes_max: 0, ..Limits::default() });
    let (body_bytes, left) = (4040, 20);
    let post = format!("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: {body_bytes}\r\n\r\n");
    // what comes before it is as much as hyper reads at once, but for the last bytes of its body
    let before = 8192 - post.len() - (body_bytes - left);
    let get = |bytes: usize| {
        let head = "GET /health HTTP/1.1\r\nHost: x\r\nX: ";
        format!("{head}{}\r\n\r\n", "p".repeat(bytes - head.len() - 4))
    };
    let sent = [get(before / 2), get(before - before / 2), post, "z".repeat(body_bytes)].concat();
    let mut client = Client::new(serving.addr);
    client.send(sent.as_bytes());
    let statuses = [(); 3].map(|()| client.reply(false).status);
    assert_eq!(statuses, [200, 200, 200]);
    // a small one, whose body does not come at once
    client.send(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nfirst");
    std::thread::sleep(Duration::from_millis(100));
    client.send(b"-last");
    assert_eq!(client.reply(false).status, 200);
    end(serving);
}

#[test]
fn no_room_does_not_end_work_that_has_begun() {
    let serving = serve(Limits { held_bytes_max: 0, ..Limits::default() });
    let mut client = Client::new(serving.addr);
    assert_eq!(client.get("/health").status, 200);
    // just within the 4 KiB that each connection has in any case
    let reply = client.request("POST", "/late", &[], &[b'x'; 4030]);
    assert_eq!((reply.status, reply.text()), (200, "4030"));
    end(serving);
}

#[test]
fn what_is_refused_took_no_longer_than_since_it_came() {
    let serving = serve(Limits { body_bytes_max: 2000, ..Limits::default() });
    let mut client = Client::new(serving.addr);
    assert_eq!(client.get("/health").status, 200);
    std::thread::sleep(Duration::from_secs(1));
    let sent = Instant::now();
    client.send(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 2001\r\n\r\n");
    assert_eq!(client.reply(false).status, 413);
    let took_s = sent.elapsed().as_secs_f64();
    let metrics = Client::new(serving.addr).get("/metrics");
    let start = "tidemark_request_duration_seconds_sum{route=\"(none)\"} ";
    let sum_s: f64 = metrics.text().lines().find_map(|line| line.strip_prefix(start)?.parse().ok()).unwrap();
    // however long a busy machine took for it: without the second before
    assert!(sum_s <= took_s, "{sum_s} s of {took_s} s");
    end(serving);
}

#[test]
fn a_body_that_does_not_come_is_408() {
    let serving = serve(Limits { body_timeout: Duration::from_millis(30), ..Limits::default() });
    let mut client = Client::new(serving.addr);
    client.send(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
    assert_eq!(client.reply(false).status, 408);
    assert!(client.is_closed());
    assert_eq!(hits(serving.addr, "body_time"), 1);
    end(serving);
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    // long enough that what is sent right after connecting comes in time, also from a thread that loses its core between
    let serving = serve(Limits { head_timeout: Duration::from_secs(2), ..Limits::default() });
    let mut slow = Client::new(serving.addr);
    slow.send(b"GET /health HTTP/1.1\r\nHos");
    let mut silent = Client::new(serving.addr);
    let mut idle = Client::new(serving.addr);
    assert_eq!(idle.get("/health").status, 200);
    for client in [&mut slow, &mut silent, &mut idle] {
        assert!(client.is_closed());
    }
    assert!(hits(serving.addr, "head_time") >= 3);
    end(serving);
}

#[test]
fn the_metrics_are_openmetrics() {
    let serving = serve(Limits::default());
    let mut client = Client::new(serving.addr);
    client.request("POST", "/length", &[], b"abc");
    client.get("/nowhere");
    let reply = client.get("/metrics");
    assert_eq!(reply.status, 200);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(reply.header("content-type"), Some(content_type));
    let text = reply.text();
    assert!(text.ends_with("\n# EOF\n"));
    assert_eq!(text.matches("# EOF").count(), 1);
    let mut family: (&str, &str) = ("", "");
    let mut seen = Vec::new();
    let mut last_bucket = (String::new(), 0.0);
    for line in text.lines().take_while(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split_once(' ').unwrap();
            assert!(!seen.contains(&family.0), "{} comes twice", family.0);
            seen.push(family.0);
        } else if !line.starts_with("# ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            let name = series.split('{').next().unwrap();
            let suffix =
                name.strip_prefix(family.0).unwrap_or_else(|| panic!("{name} stands under {}", family.0));
            let allowed: &[&str] = match family.1 {
                "counter" => &["_total"],
                "gauge" => &[""],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_sum", "_count"],
                other => panic!("unknown type {other}"),
            };
            assert!(allowed.contains(&suffix), "{name} is not a {}", family.1);
            if suffix == "_bucket" {
                let labels = series.split_once("le=").unwrap().1.split_once(',').map_or("", |(_, rest)| rest);
                if last_bucket.0 == labels {
                    assert!(value >= last_bucket.1, "buckets add up: {line}");
                }
                last_bucket = (labels.to_owned(), value);
            } else {
                last_bucket = (String::new(), 0.0);
            }
        }
    }
    for line in [
        "tidemark_requests_total{route=\"/length\",method=\"POST\",status=\"200\"} 1",
        "tidemark_requests_total{route=\"(none)\",method=\"GET\",status=\"404\"} 1",
        "tidemark_request_duration_seconds_bucket{le=\"+Inf\",route=\"/length\"} 1",
        "tidemark_requests_in_flight 1",
    ] {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
    for name in ["process_cpu_seconds_total", "process_uptime_seconds", "tidemark_connections_open"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "no {name} in\n{text}");
    }
    assert!(text.contains("tidemark_build_info{system=\"bounded\",version="));
    end(serving);
}
