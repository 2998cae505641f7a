//! How many requests a second of the driver's CPU makes, and how many allocations a request costs once warm.
//!
//! `cargo run --release --example loop_speed -- 127.0.0.1:18080 100 5 [open-rate | rich | tls]`: address, connections,
//! seconds, and for an open load the arrivals per second, or `rich` for sessions that extract, check and vary their
//! paths, or `tls` for a server that speaks it (`tiny_tls_server`).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidemark_drive::{Address, DriveOptions, Target, Tls, start};
use tidemark_record::new_histogram;
use tidemark_scenario::plan::{
    Check, Curve, Extraction, Limits, Load, LoadModel, Op, Phase, RequestPlan, SessionKind, Source, Spacing,
    System as PlanSystem, TextTest, TlsSettings, WhenMissing,
};
use tidemark_scenario::template::{Encoding, Part};
use tidemark_scenario::{Expr, Plan, Shared, Template};

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

/// A session of two requests: the second sends what a regular expression found in the first's answer, and checks.
fn enrich(plan: &mut Plan) {
    let word = regex::bytes::Regex::new("Hello, (\\w+)").expect("a right expression");
    let literal = |text: &str| Part::Literal(text.as_bytes().into());
    plan.requests[0].extractions = vec![
        Extraction { slot: 0, source: Source::Regex(word, 1), when_missing: WhenMissing::Fail },
        Extraction {
            slot: 1,
            source: Source::Header("content-type".into()),
            when_missing: WhenMissing::Fail,
        },
    ];
    let hole = |slot| Part::Hole(Expr::variable(slot), Encoding::Url);
    let head = vec![literal("GET /?q="), hole(0), literal("&t="), hole(1), literal(" HTTP/1.1\r\n")];
    let mut second = plan.requests[0].clone();
    second.head = Template { parts: head };
    second.extractions.clear();
    second.checks = vec![
        Check::Status(vec![(200, 299)]),
        Check::Body(TextTest::Contains(Template { parts: vec![hole(0)] })),
    ];
    plan.requests.push(second);
    plan.sessions[0].slots = 2;
    plan.sessions[0].ops = vec![Op::Request(0), Op::Request(1), Op::End];
}

const WARM_UP: Duration = Duration::from_secs(2);

fn plan(connections: usize, time: Duration, rate: Option<f64>) -> Plan {
    let (model, level) = match rate {
        Some(rate) => (LoadModel::Open(Spacing::Constant), rate),
        None => (LoadModel::Closed, connections as f64),
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
        name: "loop_speed".into(),
        description: String::new(),
        labels: vec!["GET /".into()],
        requests: vec![RequestPlan {
            label: 0,
            method: "GET".into(),
            head: Template::literal("GET / HTTP/1.1\r\nUser-Agent: tidemark\r\n"),
            body: None,
            timeout: Duration::from_secs(10),
            extractions: Vec::new(),
            checks: Vec::new(),
        }],
        sessions: vec![SessionKind {
            name: "get".into(),
            weight: 1,
            slots: 0,
            slot_names: Vec::new(),
            keep_cookies: false,
            ops: vec![Op::Request(0), Op::End],
        }],
        prepare: None,
        load: Load::new(model, vec![phase("warm-up", WARM_UP, false), phase("hold", time, true)]),
        counters: 0,
        feeders: Vec::new(),
        limits: Limits {
            connections,
            waiting: 100_000,
            in_flight: None,
            connect_timeout: Duration::from_secs(5),
            body_bytes: 1 << 20,
            drain: Duration::from_secs(5),
            sessions: None,
            keep_alive: true,
            pipeline: 1,
        },
        objectives: Vec::new(),
        system: PlanSystem::default(),
        seed: None,
        source_name: String::new(),
        source: String::new(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.to_owned());
    let address = argument(0, "127.0.0.1:18080");
    let connections = argument(1, "100").parse()?;
    let time = Duration::from_secs(argument(2, "5").parse()?);
    let rich = arguments.get(3).is_some_and(|word| word == "rich");
    let secure = arguments.get(3).is_some_and(|word| word == "tls");
    let settings = TlsSettings { insecure: true, ..TlsSettings::default() };
    let tls = secure.then(|| Tls::new(&settings, "localhost")).transpose()?;
    let is_rate = |word: &&String| !rich && !secure && *word != "closed";
    let rate = arguments.get(3).filter(is_rate).map(|rate| rate.parse()).transpose()?;
    let mut plan = plan(connections, time, rate);
    if rich {
        enrich(&mut plan);
    }
    let options = DriveOptions {
        threads: 1,
        cores: Vec::new(),
        seed: 1,
        io: argument(4, "auto").parse()?,
        target: Target {
            address: Address::Tcp(address.parse()?),
            authority: address,
            base_path: String::new(),
            tls,
        },
        epoch: Instant::now(),
        wall_epoch: SystemTime::now(),
    };
    let drive = start(Arc::new(plan), Arc::new(Shared::new(0, Vec::new())), options)?;
    let (mut requests, mut cpu_us, mut wall_us, mut dropped, mut errors) = (0, 0, 0, 0, 0);
    let (mut response, mut service, mut lag) = (new_histogram(), new_histogram(), new_histogram());
    let (mut before, mut after) = (0, 0);
    for interval in drive.intervals() {
        if interval.in_window {
            if requests == 0 {
                before = ALLOCATIONS.load(Ordering::Relaxed);
            }
            for series in &interval.series {
                requests += series.response_time_us.len();
                errors += if series.outcome.is_error() { series.response_time_us.len() } else { 0 };
                response.add(&series.response_time_us)?;
                service.add(&series.service_time_us)?;
            }
            lag.add(&interval.lag_us)?;
            cpu_us += interval.cpu_us;
            wall_us += interval.end_us - interval.start_us;
            dropped += interval.dropped;
            after = ALLOCATIONS.load(Ordering::Relaxed);
        }
        drive.recycle(interval);
    }
    drive.join()?;
    let per = |us: u64| requests as f64 / (us as f64 / 1e6);
    println!("{requests} requests, {errors} errors, {dropped} dropped");
    println!("{:.0}/s, {:.0} per client CPU-second", per(wall_us), per(cpu_us));
    for (name, histogram) in [("response", &response), ("service", &service), ("lag", &lag)] {
        let at = |quantile| histogram.value_at_quantile(quantile);
        let (p50, p99, p999, most) = (at(0.5), at(0.99), at(0.999), histogram.max());
        println!("{name:>8}: p50 {p50} µs, p99 {p99} µs, p99.9 {p999} µs, max {most} µs");
    }
    println!("{} allocations in the measured window, all threads", after - before);
    Ok(())
}
