//! Once warm, the driver's threads allocate nothing for a request. Over HTTP/2 the library that they go through does, a
//! bounded number of times.

#[path = "../../wire/tests/support/counting.rs"]
mod counting;
mod support;

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use counting::Counting;
use support::calls::{self, calling, offered};
use support::databases;
use support::websocket::{converse, listen, receive};
use support::{Server, answer, extract, frames, get, http, load, options, phase, plan, post, records};
use tidemark_drive::{
    Aerospike, Cassandra, DriveOptions, Http2, IoChoice, Memcached, Postgres, Protocol, Redis, Sharding,
    Shards, start,
};
use tidemark_record::Outcome;
use tidemark_scenario::plan::{
    Check, Load, LoadModel, MetricKind, MetricPlan, Op, Phase, Source, Spacing, TextTest, WhenMissing,
};
use tidemark_scenario::template::{Encoding, Part};
use tidemark_scenario::{Expr, Plan, Shared, Template};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::json;
use tidemark_wire::resp::{Keep, ReplyDecoder, ReplyLimits};
use tidemark_wire::websocket::{Event, Kind, handshake, write_message, write_pong};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Counts what is allocated by threads that have not asked to be left out.
fn count() {
    if !LEFT_OUT.try_with(Cell::get).unwrap_or(true) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// Requests that the measured window has at least; the load lasts until then.
const REQUESTS: u64 = 10_000;

/// Drives until enough has been measured; requests and allocations in the whole intervals of the measured window.
fn measured(name: &str, plan: Plan, options: DriveOptions) -> Option<(u64, u64)> {
    LEFT_OUT.with(|out| out.set(true));
    let io = options.io;
    let shared = Shared::of(&plan);
    let drive = match start(plan.into(), shared.into(), options) {
        Ok(drive) => drive,
        Err(error) => {
            assert!(io != IoChoice::Portable, "{error}");
            eprintln!("{error}");
            return None;
        }
    };
    let (mut requests, mut before, mut after) = (0, None, 0);
    for interval in drive.intervals() {
        // what is cut off when enough was measured has an end of its own
        if interval.in_window && requests < REQUESTS {
            after = ALLOCATIONS.load(Ordering::Relaxed);
            match before {
                None => before = Some(after),
                Some(_) => {
                    let failed = interval.series.iter().find(|one| one.outcome != Outcome::Ok);
                    assert!(failed.is_none(), "{name}: {failed:?}, {:?}", interval.examples);
                    assert!(name != "entered" || interval.ledger.acknowledged() > 0);
                    requests += interval.series.iter().map(|one| one.response_time_us.len()).sum::<u64>();
                }
            }
        }
        drive.recycle(interval);
        if requests >= REQUESTS {
            drive.abort();
        }
    }
    let end = drive.join().unwrap();
    assert!(end.interrupted, "enough was measured long before its end");
    Some((requests, after - before?))
}

fn hello() -> Server {
    Server::start(|request, stream| {
        LEFT_OUT.with(|out| out.set(true));
        match request.target() {
            "/login" => {
                answer(stream, "200 OK", "Set-Cookie: sid=abc; Path=/\r\n", "{\"items\": [{\"id\": 77}]}")
            }
            _ => answer(stream, "200 OK", "", "77 is there"),
        }
    })
}

/// A warm-up, then as long as it takes: an interval ends with its phase, so that what was done is soon known.
fn phases(warm_up: f64, level: f64) -> Vec<Phase> {
    let mut phases = vec![phase(200, level); 600];
    phases.insert(0, Phase { measured: false, ..phase(400, warm_up) });
    phases
}

/// The plan of a scenario, with so many users in its warm-up and later.
fn warmed(text: &str, warm_up: f64, level: f64) -> Plan {
    let mut plan = load(text);
    plan.load = Load::new(LoadModel::Closed, phases(warm_up, level));
    plan
}

/// Arrivals, in the warm-up more than can be served: so all sessions that there may be have been before.
fn arrivals() -> Plan {
    let open = LoadModel::Open(Spacing::Poisson);
    let mut plan = plan(vec![get(0, "/")], open, phases(100_000.0, 5_000.0));
    (plan.limits.connections, plan.limits.waiting) = (8, Some(16));
    plan
}

/// A session that is given a cookie and an id, sends both back, and checks what comes; its steps are in groups.
fn a_session() -> Plan {
    let mut plan = plan(vec![get(0, "/login"), get(1, "")], LoadModel::Closed, phases(8.0, 8.0));
    let id = Source::Json(json::Path::parse("$.items[0].id").unwrap());
    plan.requests[0].extractions = vec![extract(0, id, WhenMissing::Fail)];
    let literal = |text: &str| Part::Literal(text.as_bytes().into());
    let item = Part::Hole(Expr::variable(0), Encoding::Path);
    http(&mut plan.requests[1]).target = Template { parts: vec![literal("/item/"), item] };
    plan.sessions[0].slots = 1;
    let there = Template::literal("is there");
    plan.requests[1].checks = vec![Check::Status(vec![(200, 299)]), Check::Body(TextTest::Contains(there))];
    plan.groups = vec!["all".into(), "second".into()];
    let metric = |name: &str, kind| MetricPlan { name: name.into(), kind, unit: String::new() };
    plan.metrics = vec![metric("id", MetricKind::Histogram), metric("done", MetricKind::Counter)];
    let measure = |metric, value| Op::Measure { metric, value, text: "n".into(), if_good: true };
    plan.sessions[0].ops = vec![
        Op::BeginGroup(0),
        Op::Request(0),
        Op::BeginGroup(1),
        Op::Request(1),
        measure(0, Expr::variable(0)),
        measure(1, Expr::int(1)),
        Op::EndGroup,
        Op::EndGroup,
        Op::End,
    ];
    plan
}

/// Writes that are entered in the ledger, several at once.
fn entered() -> Plan {
    let text = "sessions:\n  a:\n    steps:\n      - POST: /m\n        ledger: {content: \"note ${random(0, 99)} \
                |${entry}|${check}|\", as: note}\n        body: ${note}\nload: {users: 8, hold: 1s}\n";
    warmed(text, 8.0, 8.0)
}

/// Requests of HTTP with a cookie, and commands to a cache beside it.
fn mixed() -> Plan {
    let text = "system: {url: 'http://127.0.0.1'}\ntargets: {cache: {url: 'redis://127.0.0.1'}}\nsessions:\n  a:\n    steps:\n      \
                - GET: /login\n      - redis: [SET, \"k:${random(0, 99)}\", v]\n        check: {body: OK}\n      \
                - GET: /item\n        check: {body: {contains: is there}}\n      - redis: [GET, k]\n        extract: {got: body}\n        \
                check: {that: got == 77}\nload: {users: 8, hold: 1s}\n";
    warmed(text, 8.0, 8.0)
}

/// Calls of several steps, many at once on each of two connections. In the warm-up there are more of them at once than
/// afterwards: so no frame or buffer has to grow then.
fn called() -> Plan {
    let text = "sessions:\n  a:\n    steps:\n      - CALL: trade.trade\n        args: [{amount: \"${random(0, 99)}\"}]\n        \
                check: {json: {$.done: \"true\"}}\n      - CALL: trade.price\nload: {users: 8, hold: 1s}\nlimits: \
                {connections: 2, streams: 100}\n";
    warmed(text, 200.0, 50.0)
}

fn over_http2(address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: usize::MAX });
    options
}

fn speaking_redis(address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Redis(Redis::default());
    options
}

/// Two servers, among which keys are shared.
fn sharing_keys(servers: [SocketAddr; 2]) -> DriveOptions {
    let mut options = options(servers[0], 1);
    let servers = servers.map(|address| tidemark_drive::Server { name: address.to_string(), address });
    let shards = Shards::new(servers.into(), Sharding::Slots);
    let mut redis = Redis::default();
    redis.shards = Some(shards);
    options.targets[0].protocol = Protocol::Redis(redis);
    options
}

fn speaking(protocol: Protocol, address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = protocol;
    options
}

fn server_of_calls() -> calls::Server {
    calls::server(offered(), |call, writer, frame| {
        LEFT_OUT.with(|out| out.set(true));
        calls::well(call, writer, frame)
    })
}

/// Commands of which one varies, several at once on each of two connections.
fn commands() -> Plan {
    let text = "system: {url: redis://127.0.0.1}\nsessions:\n  a:\n    steps:\n      - redis: [SET, \"k:${random(0, 99)}\", v]\n        \
                check: {body: OK}\n      - redis: [GET, k]\n        extract: {got: body}\n        check: {that: got == 77}\n\
                load: {users: 8, hold: 1s}\nlimits: {connections: 2, pipeline: 4}\n";
    warmed(text, 8.0, 8.0)
}

/// Records that are written and read by every chooser and with every size, several at once.
fn keys() -> Plan {
    let text = "system: {url: redis://127.0.0.1}\nkeys: {records: {most: 2000000, loaded: 64}}\nsessions:\n  a:\n    steps:\n      - set: \
                {size: \"${weighted(40, 9, random(50, 90), 1)}\"}\n      - sometimes: 1%\n        steps:\n          \
                - redis: [SET, \"user${number}\", \"${value(number, version, size)}\"]\n            insert: records\n      \
                - set: {number: \"${pick(latest(records), scrambled_zipf(64), zipf(64), hotspot(64, 0.2, 0.8), exponential(64), \
                zipf(inserted(records)))}\"}\n      - redis: [SET, \"user${number}\", \"${value(number, version, size)}\"]\n        \
                write: records\n      - redis: [GET, \"user${number}\"]\n        read: records\n        extract: {got: body}\n        \
                check: {that: \"is_value(got, number) and key_of(got) == number and version_of(got) > 0\"}\n\
                load: {users: 8, hold: 1s}\nlimits: {connections: 2, pipeline: 4}\n";
    warmed(text, 8.0, 8.0)
}

/// A server that answers commands as Redis does; these are arrays, as replies may be.
fn server_of_commands() -> SocketAddr {
    listen(None, |stream| {
        LEFT_OUT.with(|out| out.set(true));
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let (mut buffer, mut out) = ([0; 4096], Vec::new());
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            let mut received = &buffer[..bytes];
            while !received.is_empty() {
                let decoded = decoder.decode(received).unwrap();
                received = &received[decoded.consumed..];
                if decoded.complete {
                    let is_get = decoder.body().starts_with(b"[\"GET\"");
                    out.extend_from_slice(if is_get { b"$2\r\n77\r\n" } else { b"+OK\r\n" });
                    decoder.start(Keep::All);
                }
            }
            let _ = stream.write_all(&out);
            out.clear();
        }
    })
}

/// Commands of memcached of which key and value vary, several at once on each of two connections.
fn of_memcached() -> Plan {
    let text = "system: {url: memcached://127.0.0.1}\nsessions:\n  a:\n    steps:\n      - memcached: [set, \"k:${random(0, 99)}\", \"v${random(0, 99)}\"]\n        \
                check: {body: STORED}\n      - memcached: [get, k, none]\n        extract: {got: \"$[0]\", kept: {header: flags}}\n        check: {that: got == 77}\n\
                load: {users: 8, hold: 1s}\nlimits: {connections: 2, pipeline: 4}\n";
    warmed(text, 8.0, 8.0)
}

/// Requests to Aerospike of which key and values vary, several at once on each of two connections.
fn of_aerospike() -> Plan {
    let text = "system: {url: aerospike://127.0.0.1/test}\nsessions:\n  a:\n    steps:\n      - aerospike: [put, s, \"k:${random(0, 99)}\", n, \"v${random(0, 99)}\"]\n        \
                expires: \"${random(0, 99)}\"\n      - aerospike: [add, s, k, n, \"${random(0, 99)}\"]\n      - aerospike: [get, s, k, n]\n        \
                extract: {got: body, kept: {header: generation}}\n        check: {that: got == 77}\n      - aerospike: [get, s, k]\n        check: {json: {$.n: \"77\"}}\n\
                load: {users: 8, hold: 1s}\nlimits: {connections: 2, pipeline: 4}\n";
    warmed(text, 8.0, 8.0)
}

/// A server that answers these as Aerospike does.
fn server_of_aerospike() -> SocketAddr {
    listen(None, |stream| {
        LEFT_OUT.with(|out| out.set(true));
        let (mut buffer, mut had, mut out) = ([0; 4096], Vec::new(), Vec::new());
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            had.extend_from_slice(&buffer[..bytes]);
            while let Some(length) = had.get(4..8) {
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + 8;
                if had.len() < length {
                    break;
                }
                let bin: &[u8] = if had[9] & 1 == 1 { b"\0\0\0\x07\x01\x03\0\x01n77" } else { b"" };
                out.extend_from_slice(&[2, 3, 0, 0, 0, 0, 0, 22 + bin.len() as u8, 22]);
                out.extend_from_slice(&[0; 20]);
                out.push(u8::from(!bin.is_empty()));
                out.extend_from_slice(bin);
                had.drain(..length);
            }
            let _ = stream.write_all(&out);
            out.clear();
        }
    })
}

/// Statements with a value that varies.
fn statements(url: &str, statement: &str) -> Plan {
    let text = format!(
        "system: {{url: '{url}'}}\nsessions:\n  a:\n    steps:\n      - {statement}\n        with: [\"k${{random(0, 99)}}\"]\n        \
         extract: {{got: \"$[0].n\"}}\n        check: {{that: got == 77}}\nload: {{users: 8, hold: 1s}}\n"
    );
    let mut plan = load(&text);
    plan.load = Load::new(LoadModel::Closed, phases(8.0, 8.0));
    plan
}

/// A server that answers these two commands as memcached does; what is stored has no line feed.
fn server_of_memcached() -> SocketAddr {
    listen(None, |stream| {
        LEFT_OUT.with(|out| out.set(true));
        let (mut buffer, mut line, mut out) = ([0; 4096], Vec::new(), Vec::new());
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            for byte in &buffer[..bytes] {
                line.push(*byte);
                if *byte == b'\n' {
                    match &line[..2] {
                        b"se" => {}
                        b"ge" => out.extend_from_slice(b"VALUE k 5 2\r\n77\r\nEND\r\n"),
                        _ => out.extend_from_slice(b"STORED\r\n"),
                    }
                    line.clear();
                }
            }
            let _ = stream.write_all(&out);
            out.clear();
        }
    })
}

/// Messages of long sessions: one with its answer, one that none answers, a ping, and one that came before.
fn messages() -> Plan {
    let text = "sessions:\n  a:\n    steps:\n      - ws connect: /\n      - repeat: 100000000\n        as: n\n        steps:\n          \
                - ws send: {json: {n: \"${n}\"}}\n            expect: {json: {$.n: \"${n}\"}}\n            extract: {got: $.n}\n          \
                - ws send: note ${got}\n          - ws ping: here\n          - ws expect: {body: \"note ${n}\"}\n\
                load: {users: 8, hold: 1s}\n";
    warmed(text, 8.0, 8.0)
}

/// A user that waits for one event after the other.
fn events() -> Plan {
    let text = "sessions:\n  a:\n    steps:\n      - sse connect: /\n      - repeat: 100000000\n        steps:\n          \
                - sse expect: {event: post, json: {$.n: 1}}\n            extract: {got: $.n}\n          \
                - sse expect: any\nload: {users: 8, hold: 1s}\n";
    warmed(text, 8.0, 8.0)
}

/// A server of events, as many as are taken, a few in each chunk.
fn server_of_events() -> SocketAddr {
    listen(None, |stream| {
        LEFT_OUT.with(|out| out.set(true));
        let mut request = RequestDecoder::new(DecoderLimits::default());
        if receive(stream, &mut request).is_none() {
            return;
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let events =
            "event: post\ndata: {\"n\":\ndata: 1}\n\n:\n\nevent: note\ndata: {\"n\": 2}\n\n".repeat(3);
        let chunk = format!("{:x}\r\n{events}\r\n", events.len());
        let mut goes_on = stream.write_all(head.as_bytes()).is_ok();
        while goes_on {
            goes_on = stream.write_all(chunk.as_bytes()).is_ok();
        }
    })
}

/// A server of WebSockets that says everything back.
fn server_of_messages() -> SocketAddr {
    listen(None, |stream| {
        LEFT_OUT.with(|out| out.set(true));
        let mut request = RequestDecoder::new(DecoderLimits::default());
        if receive(stream, &mut request).is_none() {
            return;
        }
        let offer = handshake::check_request(&request).unwrap();
        let mut answer = Vec::new();
        handshake::write_answer(&mut answer, offer.key, None).unwrap();
        let _ = stream.write_all(&answer);
        converse(stream, |event, decoder, out| {
            match event {
                Event::Message(_) => write_message(out, Kind::Text, decoder.message(), None),
                Event::Ping => write_pong(out, decoder.control(), None),
                Event::Pong | Event::Close => return false,
            }
            true
        });
    })
}

/// Streams of two connections.
fn streamed() -> Plan {
    let mut plan = plan(vec![get(0, "/a")], LoadModel::Closed, phases(40.0, 20.0));
    (plan.limits.connections, plan.limits.streams) = (2, 20);
    plan
}

/// The same with a path, a header and a body that differ for each.
fn streamed_varying() -> Plan {
    let mut plan = streamed();
    post(&mut plan.requests[0], "");
    let varying = |before: &str| Template {
        parts: vec![Part::Literal(before.as_bytes().into()), Part::Hole(Expr::int(42), Encoding::Url)],
    };
    let http = http(&mut plan.requests[0]);
    http.target = varying("/a/");
    http.headers = vec![("X-V".into(), varying("v"))];
    http.body = Some(varying("n="));
    plan
}

/// What the back ends differ in: connections that are made, written and read, and streams of bytes.
const OVER_EACH: [&str; 3] = ["open", "messages", "streams"];

#[test]
fn nothing_is_allocated_for_a_request_once_warm() {
    nothing_is_allocated(&OVER_EACH);
}

/// Everything over each back end.
#[test]
#[ignore = "takes long: make test-long"]
fn nothing_is_allocated_over_any_back_end() {
    nothing_is_allocated(&[]);
}

/// Everything over the first back end that there is, and `others` over the others: all, if there are none. One after the
/// other in one test: the allocations are the process's.
fn nothing_is_allocated(others: &[&str]) {
    if std::env::var_os("TIDEMARK_TEST_IO").is_some() {
        return eprintln!("each back end has its turn where none is named");
    }
    let mut is_first = true;
    let (server, server_of_calls) = (hello(), server_of_calls());
    let (of_commands, of_messages) = (server_of_commands(), server_of_messages());
    let (of_events, of_more_commands) = (server_of_events(), server_of_commands());
    let (memcached, aerospike) = (server_of_memcached(), server_of_aerospike());
    let of_records = records::server(|| LEFT_OUT.with(|out| out.set(true)), records::newest);
    let leave = || LEFT_OUT.with(|out| out.set(true));
    let (postgres, cassandra) = (databases::postgres(leave), databases::cassandra(leave));
    let streams = frames::server("hello", || LEFT_OUT.with(|out| out.set(true)));
    for io in [IoChoice::IoUring, IoChoice::Epoll, IoChoice::Portable] {
        let plans = [
            ("closed", plan(vec![get(0, "/")], LoadModel::Closed, phases(8.0, 8.0))),
            ("open", arrivals()),
            ("session", a_session()),
            ("entered", entered()),
            ("calls", called()),
            ("commands", commands()),
            ("shared keys", commands()),
            ("memcached", of_memcached()),
            ("Aerospike", of_aerospike()),
            ("keys", keys()),
            ("SQL", statements("postgres://a", "sql: SELECT n FROM t WHERE k = $1")),
            ("CQL", statements("cql://a", "cql: SELECT n FROM t WHERE k = ?")),
            ("messages", messages()),
            ("events", events()),
            ("targets", mixed()),
            ("streams", streamed()),
            ("varying streams", streamed_varying()),
        ];
        let mut is_there = false;
        for (name, plan) in plans {
            if !is_first && !others.is_empty() && !others.contains(&name) {
                continue;
            }
            let options = match name {
                "calls" => calling(server_of_calls.address, None, &plan),
                "commands" => speaking_redis(of_commands),
                "shared keys" => sharing_keys([of_commands, of_more_commands]),
                "memcached" => speaking(Protocol::Memcached(Memcached::default()), memcached),
                "Aerospike" => {
                    speaking(Protocol::Aerospike(Aerospike { namespace: "test".into() }), aerospike)
                }
                "keys" => speaking_redis(of_records),
                "SQL" => speaking(Protocol::Postgres(Postgres::default()), postgres),
                "CQL" => speaking(Protocol::Cassandra(Cassandra::default()), cassandra),
                "messages" => options(of_messages, 1),
                "events" => options(of_events, 1),
                "targets" => {
                    let mut options = options(server.address, 1);
                    options.targets.extend(speaking_redis(of_commands).targets);
                    options
                }
                "streams" | "varying streams" => over_http2(streams),
                _ => options(server.address, 1),
            };
            let Some((requests, allocations)) = measured(name, plan, DriveOptions { io, ..options }) else {
                continue;
            };
            is_there = true;
            eprintln!("{name} over {io}: {allocations} allocations for {requests} requests");
            let each = allocations as f64 / requests as f64;
            let most = match name {
                // a burst may be the first to fill the inbox of a connection: 8 of them, 66 buffers that each grow twice
                "events" => 0.11,
                // far from one for each request, though a machine that stands still makes a burst that is the first to fill
                // some queue or buffer, which grows then
                _ => 0.01,
            };
            assert!(each < most, "{name} over {io}: {each} for each of {requests}");
        }
        is_first &= !is_there;
    }
}
