//! How many requests a second of the driver's CPU makes, and how many allocations a request costs once warm.
//!
//! `cargo run --release --example loop_speed -- 127.0.0.1:18080 100 5 SHAPE [IO]`: address, connections, seconds,
//! what is sent, and the back end (`epoll`, `io_uring+spin`: threads never sleep):
//!
//! - `closed` (a plain GET), a number (the same at so many arrivals a second), `open` (at 80 % of what `closed` made
//!   just before), `post` (a body of 1 KiB), `pipeline` (16 requests at once on each connection), to `tiny_server`;
//!   `closed` also to `tiny_server … large`;
//! - `message` (a GET with a message of 80 bytes, made for each) and `ledger` (the same, entered in the ledger, which is
//!   written to a temporary directory), to `tiny_server`;
//! - `session`, to `tiny_server … session`: three requests with a cookie, values extracted from JSON, a header and a
//!   regular expression, paths that vary, and checks;
//! - `tls` (connections kept) and `handshakes` (one for each request, resumed), to `tiny_tls_server`;
//! - `streams` and `streams-tls` (HTTP/2, 10 requests at once on each connection), `http2` (one), to any server of it;
//! - `grpc` (calls of gRPC, 10 at once on each connection) and `calls` (remote calls, 1,000 at once on each connection; give 3 of them), to `tidemark serve trade`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidemark_drive::{Address, DriveOptions, Grpc, Protocol, Target, Timestamps, Tls, start};
use tidemark_record::ledger::LedgerWriter;
use tidemark_record::{Counter, new_histogram};
use tidemark_scenario::plan::{
    Check, Curve, Extraction, HttpRequest, HttpVersion, Limits, Load, LoadModel, Op, Phase, RequestKind,
    RequestPlan, SessionKind, Source, Spacing, TextTest, TlsSettings, WhenMissing,
};
use tidemark_scenario::template::{Encoding, Part};
use tidemark_scenario::{Expr, Plan, Shared, Template};
use tidemark_wire::json;

/// Counts what is allocated.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed on to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of what is posted.
const POSTED_BYTES: usize = 1_024;
/// Requests at once on a connection, where they are pipelined.
const DEPTH: usize = 16;
/// Calls at once on a connection.
const CALLS: usize = 1_000;
/// Streams at once on a connection of HTTP/2.
const STREAMS: usize = 10;
/// The share of the closed loop's rate at which the open loop is measured.
const OPEN_SHARE: f64 = 0.8;

/// A session of three requests: what the first's answer holds goes into the others, whose answers are checked.
fn enrich(plan: &mut Plan) {
    let word = regex::bytes::Regex::new("Hello, (\\w+)").expect("a right expression");
    let id = json::Path::parse("$.id").expect("a right path");
    let literal = |text: &str| Part::Literal(text.as_bytes().into());
    let hole = |slot| Part::Hole(Expr::variable(slot), Encoding::Url);
    let sources = [Source::Json(id), Source::Regex(word, 1), Source::Header("content-type".into())];
    let mut first = plan.requests[0].clone();
    first.extractions = (0u16..)
        .zip(sources)
        .map(|(slot, source)| Extraction { slot, source, when_missing: WhenMissing::Fail })
        .collect();
    let mut second = plan.requests[0].clone();
    http(&mut second).target = Template { parts: vec![literal("/items/"), hole(0), literal("?t="), hole(2)] };
    second.checks = vec![
        Check::Status(vec![(200, 299)]),
        Check::Body(TextTest::Contains(Template { parts: vec![hole(1)] })),
    ];
    let mut third = plan.requests[0].clone();
    third.checks =
        vec![Check::Json(json::Path::parse("$.items[1]").expect("a right path"), TextTest::Exists)];
    plan.requests = vec![first, second, third];
    plan.sessions[0].slots = 3;
    plan.sessions[0].ops = vec![Op::Request(0), Op::Request(1), Op::Request(2), Op::End];
}

/// A request as one of HTTP.
fn http(request: &mut RequestPlan) -> &mut HttpRequest {
    match &mut request.ask {
        RequestKind::Http(request) => request,
        other => unreachable!("the plan has requests of HTTP: {other:?}"),
    }
}

/// Makes a message for each request, as a variable or as what is entered in the ledger, and sends it.
fn with_message(plan: &mut Plan, entered: bool) -> Result<(), Box<dyn std::error::Error>> {
    const AROUND: [&str; 2] = ["0000000001${now()}ABC41.7127837,42.7127837|", "|"];
    let [before, between] = AROUND;
    let steps = match entered {
        true => format!(
            "      - GET: /m\n        query: {{c: \"${{m}}\"}}\n        ledger: {{as: m, content: \
             \"{before}${{entry}}{between}${{check}}\"}}"
        ),
        false => format!(
            "      - set: {{m: \"{before}1234567890123456{between}123456789012\"}}\n      - GET: /m\n        query: \
             {{c: \"${{m}}\"}}"
        ),
    };
    let text = format!("sessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n");
    let made = tidemark_scenario::load_text("message", &text, std::path::Path::new("."), &[])?;
    (plan.labels, plan.requests, plan.sessions) = (made.labels, made.requests, made.sessions);
    Ok(())
}

/// Makes calls of the trade service.
fn with_calls(plan: &mut Plan) -> Result<(), Box<dyn std::error::Error>> {
    let text = "sessions:\n  a:\n    steps:\n      - CALL: trade.trade\n        args: [{name: ibm, amount: 1}]\nload: \
                {users: 1, hold: 1s}\n";
    let made = tidemark_scenario::load_text("calls", text, std::path::Path::new("."), &[])?;
    (plan.labels, plan.requests, plan.sessions) = (made.labels, made.requests, made.sessions);
    plan.limits.streams = CALLS;
    Ok(())
}

/// Makes calls of the same service over gRPC.
fn with_grpc(plan: &mut Plan) -> Result<(), Box<dyn std::error::Error>> {
    let text = "system: {url: 'grpc://h'}\nsessions:\n  a:\n    steps:\n      - grpc: trade.Trades/Take\n        message: \
                {name: ibm, amount: 1}\nload: {users: 1, hold: 1s}\n";
    let made = tidemark_scenario::load_text("grpc", text, std::path::Path::new("."), &[])?;
    (plan.labels, plan.requests, plan.sessions) = (made.labels, made.requests, made.sessions);
    Ok(())
}

/// The plan of a shape; a number is a rate.
fn shaped(shape: &str, connections: usize, time: Duration) -> Result<Plan, Box<dyn std::error::Error>> {
    let rate = shape.parse().ok();
    let users = match shape {
        "pipeline" => connections * DEPTH,
        "calls" => connections * CALLS,
        "streams" | "streams-tls" | "grpc" => connections * STREAMS,
        _ => connections,
    };
    let mut plan = plan(connections, users, time, rate);
    plan.limits.streams = users / connections;
    match shape {
        "session" => enrich(&mut plan),
        "post" => {
            let request = http(&mut plan.requests[0]);
            request.method = "POST".into();
            request.headers = vec![("Content-Type".into(), Template::literal("text/plain"))];
            request.body = Some(Template::literal("x".repeat(POSTED_BYTES)));
        }
        "message" | "ledger" => with_message(&mut plan, shape == "ledger")?,
        "calls" => with_calls(&mut plan)?,
        "grpc" => with_grpc(&mut plan)?,
        "pipeline" => plan.limits.pipeline = DEPTH,
        "handshakes" => plan.limits.keep_alive = false,
        "closed" | "tls" | "http2" | "streams" | "streams-tls" => {}
        _ if rate.is_some() => {}
        other => return Err(format!("{other}: no such shape").into()),
    }
    Ok(plan)
}

const WARM_UP: Duration = Duration::from_secs(2);

fn plan(connections: usize, users: usize, time: Duration, rate: Option<f64>) -> Plan {
    let (model, level) = match rate {
        Some(rate) => (LoadModel::Open(Spacing::Constant), rate),
        None => (LoadModel::Closed, users as f64),
    };
    let phase = |name: &str, duration, measured| Phase {
        name: name.into(),
        duration,
        from: level,
        to: level,
        curve: Curve::Line,
        measured,
    };
    Plan {
        labels: vec!["GET /".into()],
        requests: vec![RequestPlan {
            label: 0,
            target: 0,
            ask: RequestKind::Http(HttpRequest {
                method: "GET".into(),
                target: Template::literal("/"),
                headers: vec![("User-Agent".into(), Template::literal("tidemark"))],
                ..HttpRequest::default()
            }),
            ledger: None,
            key: None,
            timeout: Duration::from_secs(10),
            extractions: Vec::new(),
            checks: Vec::new(),
            shown_body_bytes: 0,
            follow: None,
        }],
        sessions: vec![SessionKind {
            name: "get".into(),
            weight: 1,
            slots: 0,
            slot_names: Vec::new(),
            keep_cookies: false,
            ops: vec![Op::Request(0), Op::End],
            script: None,
        }],
        limits: Limits { connections, waiting: Some(100_000), body_bytes: 1 << 20, ..Limits::default() },
        ..Plan::new(
            "loop_speed",
            Load::new(model, vec![phase("warm-up", WARM_UP, false), phase("hold", time, true)]),
        )
    }
}

/// Drives a plan and prints what it cost; the rate that it came to.
fn measure(plan: Plan, address: &str, io: &str, shape: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let secure = ["tls", "handshakes", "streams-tls"].contains(&shape);
    let settings = TlsSettings { insecure: true, ..TlsSettings::default() };
    let mut options = DriveOptions {
        threads: 1,
        share: None,
        cores: Vec::new(),
        seed: 1,
        ledger_seed: 7,
        io: io.trim_end_matches("+spin").parse()?,
        spin: io.ends_with("+spin"),
        timestamps: Timestamps::Read,
        targets: vec![Target {
            address: Address::Tcp(address.parse()?),
            others: Vec::new(),
            authority: address.to_owned(),
            base_path: String::new(),
            tls: secure.then(|| Tls::new(&settings, "localhost")).transpose()?,
            protocol: Protocol::Http1,
            proxy: None,
        }],
        trace: None,
        programs: None,
        codes: None,
        epoch: Instant::now(),
        wall_epoch: SystemTime::now(),
        fence_ns: None,
    };
    match shape {
        "grpc" => {
            options.targets[0].protocol = Protocol::Grpc(Grpc::default());
            options.targets[0].greet(HttpVersion::Two, &mut TcpStream::connect(address)?)?;
        }
        _ if ["http2", "streams", "streams-tls"].contains(&shape) => {
            options.targets[0].greet(HttpVersion::Two, &mut TcpStream::connect(address)?)?;
        }
        _ => {}
    }
    if plan.called().next().is_some() {
        options.targets[0].greet_calls("/rpc", plan.called(), &mut TcpStream::connect(address)?)?;
    }
    let kept = std::env::temp_dir().join(format!("tidemark-loop-speed-{}", std::process::id()));
    let mut ledger = plan.entered().next().is_some().then(|| LedgerWriter::create(&kept)).transpose()?;
    let (mut acknowledged, mut writing) = (0, Duration::ZERO);
    let drive = start(Arc::new(plan), Arc::new(Shared::new(0, Vec::new())), options)?;
    let (mut requests, mut cpu_us, mut wall_us, mut dropped, mut errors) = (0, 0, 0, 0, 0);
    let [mut response, mut less_lag, mut service, mut lag, mut read_lag] = [(); 5].map(|()| new_histogram());
    let (mut before, mut after) = (0, 0);
    for interval in drive.intervals() {
        if interval.in_window {
            if requests == 0 {
                before = ALLOCATIONS.load(Ordering::Relaxed);
            }
            for series in &interval.series {
                requests += series.response_time_us.len();
                errors += if series.outcome.is_error() { series.response_time_us.len() } else { 0 };
                response.add(&series.response_time_us);
                service.add(&series.service_time_us);
                less_lag.add(&series.response_time_less_lag_us);
            }
            lag.add(&interval.lag_us);
            read_lag.add(&interval.read_lag_us);
            cpu_us += interval.cpu_us;
            wall_us += interval.end_us - interval.start_us;
            dropped += interval.dropped;
            after = ALLOCATIONS.load(Ordering::Relaxed);
        }
        if let Some(ledger) = &mut ledger {
            let begin = Instant::now();
            ledger.add(&interval.ledger, interval.end_us)?;
            writing += begin.elapsed();
            acknowledged += interval.ledger.acknowledged();
        }
        drive.recycle(interval);
    }
    let end = drive.join()?;
    let per = |us: u64| requests as f64 / (us as f64 / 1e6);
    println!("{requests} requests, {errors} errors, {dropped} dropped");
    println!("{:.0}/s, {:.0} per client CPU-second", per(wall_us), per(cpu_us));
    for (name, histogram) in [
        ("response", &response),
        ("less lag", &less_lag),
        ("service", &service),
        ("lag", &lag),
        ("read lag", &read_lag),
    ] {
        let at = |quantile| histogram.value_at_quantile(quantile);
        let (p50, p99, p999, most) = (at(0.5), at(0.99), at(0.999), histogram.max());
        println!("{name:>8}: p50 {p50} µs, p99 {p99} µs, p99.9 {p999} µs, max {most} µs");
    }
    if secure {
        let [full, resumed] =
            [Counter::FullHandshakes, Counter::ResumedHandshakes].map(|of| end.counters[of]);
        println!("{full} full handshakes, {resumed} resumed");
    }
    if ledger.is_some() {
        let files = std::fs::read_dir(kept.join("ledger"))?.map(|file| Ok(file?.metadata()?.len()));
        let bytes = files.sum::<std::io::Result<u64>>()?;
        println!("{acknowledged} acknowledged in {bytes} bytes, written in {writing:.0?}");
        std::fs::remove_dir_all(&kept)?;
    }
    println!("{} allocations in the measured window, all threads", after - before);
    Ok(per(wall_us))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.to_owned());
    let (address, io) = (argument(0, "127.0.0.1:18080"), argument(4, "auto"));
    let connections = argument(1, "100").parse()?;
    let time = Duration::from_secs(argument(2, "5").parse()?);
    let mut shape = argument(3, "closed");
    if shape == "open" {
        let rate = measure(shaped("closed", connections, time)?, &address, &io, "closed")?;
        shape = (rate * OPEN_SHARE).to_string();
    }
    measure(shaped(&shape, connections, time)?, &address, &io, &shape)?;
    Ok(())
}
