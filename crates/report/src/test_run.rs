//! Runs for the tests of this crate, written and read back.

use std::path::Path;

use crate::history::Point;
use tempfile::TempDir;
use tidemark_record::manifest::{Machine, ObjectiveResult, Phase, SyncLatency};
use tidemark_record::summary::{Status, SteadyState, Verdict};
use tidemark_record::{
    ErrorExample, Event, Manifest, Operation, OperationsWriter, Outcome, OwnKind, OwnMetric, OwnSeries,
    Ratio, RatioForm, Run, RunWriter, Sample, Series, ThreadInterval, new_histogram, summarize,
};

fn series(label: u16, outcome: Outcome, measured: bool, times_us: &[(u64, u32)]) -> Series {
    let times: Vec<_> = times_us.iter().map(|&(us, count)| ([us, us * 3 / 4], count)).collect();
    timed(label, outcome, measured, &times)
}

/// Requests of a label: response time and service time, microseconds, and how many took these.
pub(crate) fn timed(label: u16, outcome: Outcome, measured: bool, times_us: &[([u64; 2], u32)]) -> Series {
    let (mut response_time_us, mut service_time_us) = (new_histogram(), new_histogram());
    for &([response_us, service_us], count) in times_us {
        response_time_us.record_n(response_us, count);
        service_time_us.record_n(service_us, count);
    }
    let response_time_less_lag_us = response_time_us.clone();
    Series {
        label,
        outcome,
        measured,
        phase: None,
        response_time_us,
        response_time_less_lag_us,
        service_time_us,
        bodies: 0,
        body_bytes: 0,
    }
}

/// A measured second in which so many requests were due.
pub(crate) fn second(second: u64, offered: u64) -> ThreadInterval {
    let mut one = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
    (one.in_window, one.offered, one.measured_offered) = (true, offered, offered);
    one
}

fn interval(thread: u16, start_us: u64, end_us: u64) -> ThreadInterval {
    let mut interval = ThreadInterval::empty(thread, start_us, end_us);
    interval.in_window = (1_000_000..4_000_000).contains(&start_us);
    interval.connections = 50;
    interval.cpu_us = (end_us - start_us) / 4 * (u64::from(thread) + 1);
    let lag_us = if interval.in_window { &mut interval.lag_us } else { &mut interval.unmeasured_lag_us };
    lag_us.record_n(12 + u64::from(thread), 30);
    interval
}

/// What a thread did in a second of the small run.
fn airline_second(thread: u16, second: u64) -> ThreadInterval {
    let measured = second >= 1;
    let mut one = interval(thread, second * 1_000_000, (second + 1) * 1_000_000);
    (one.offered, one.measured_offered) = (50, if measured { 50 } else { 0 });
    one.in_flight = second + 1;
    one.counters =
        [(tidemark_record::Counter::SentBytes, 9_000), (tidemark_record::Counter::ReceivedBytes, 250_000)]
            .into();
    if second == 3 {
        // The system stood still: nothing but failures.
        one.series = vec![series(1, Outcome::Timeout, measured, &[(1_000_000, 4)])];
        one.waiting = 17;
        (one.dropped, one.measured_dropped) = (2, 2);
        return one;
    }
    let query = [(740 + second * 10, 30), (1_900, 6), (12_300, 1)];
    one.series = vec![
        series(0, Outcome::Ok, measured, &[(2_310, 5), (4_700, 2)]),
        series(1, Outcome::Ok, measured, &query),
    ];
    if thread == 0 && measured {
        one.series.push(series(0, Outcome::Status, true, &[(900, 1)]));
    }
    if thread == 1 && second == 2 {
        one.series.push(series(0, Outcome::Status, true, &[(950, 1)]));
        let detail =
            "503 Service Unavailable: {\"reason\":\"the store is not there yet, try again in a moment\"}\r\n";
        one.examples = vec![ErrorExample {
            at_us: 2_345_678,
            label: 0,
            outcome: Outcome::Status,
            detail: detail.into(),
        }];
    }
    one
}

fn sample(at_us: u64, process: &str, cpu_share: f64, rss_bytes: u64) -> Sample {
    Sample {
        at_us,
        process: process.into(),
        cpu_share,
        cpu_system_share: cpu_share / 4.0,
        rss_bytes,
        threads: 9,
        voluntary_switches: 1_200,
        disk_written_bytes: 4_096,
        ..Sample::default()
    }
}

/// Four seconds and a bit of three labels on two threads; in the last second the system stands still.
pub(crate) fn airline() -> (TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    let labels = ["Login", "Query Flight", "View Profile Information"].map(String::from).to_vec();
    let mut writer = RunWriter::create(dir.path(), &labels, "name: airline\n# </script>\n").unwrap();
    writer.threads(2);
    for second in 0..4 {
        for thread in 0..2 {
            writer.add_interval(&airline_second(thread, second)).unwrap();
        }
        let at_us = (second + 1) * 1_000_000;
        writer.add_sample(&sample(at_us, "system", 1.25, 222_000_000)).unwrap();
        writer.add_sample(&sample(at_us, "driver", 0.5, 31_000_000)).unwrap();
        writer.add_sample(&sample(at_us, "machine", 1.9, 0)).unwrap();
    }
    for thread in 0..2 {
        let mut drain = interval(thread, 4_000_000, 4_100_000);
        drain.series = vec![series(1, Outcome::Ok, true, &[(1_050_000, 1)])];
        writer.add_interval(&drain).unwrap();
    }
    let events = [(-1_250_000, "ready", "the system is ready after 0.4 s"), (3_000_000, "fault", "frozen")];
    for (at_us, kind, text) in events {
        writer.add_event(&Event { at_us, kind: kind.into(), text: text.into() }).unwrap();
    }
    let manifest = airline_manifest(&writer, labels);
    writer.finish(&manifest).unwrap();
    let run = Run::open(dir.path()).unwrap();
    (dir, run)
}

/// What the system of the small run says: in each of its seconds some of what the driver saw, and accesses of a store.
pub(crate) fn with_operations(dir: &Path) {
    let mut writer = OperationsWriter::create(dir).unwrap();
    for n in 0..40u64 {
        let at_us = n * 100_000;
        let took_us = 800 + n * 10;
        let status = if n == 15 { 503 } else { 200 };
        let login =
            Operation { at_us, entity: "Login", operation: "request", duration_us: took_us * 2, status };
        writer.push(&login).unwrap();
        if n % 2 == 0 && n < 30 {
            let store = Operation { entity: "Session", operation: "store", duration_us: took_us, ..login };
            writer.push(&store).unwrap();
        }
    }
    writer.finish().unwrap();
}

fn airline_manifest(writer: &RunWriter, labels: Vec<String>) -> Manifest {
    let mut summary = summarize(writer.totals(), "runs/20260102-030405-airline".as_ref());
    summary.verdict = Verdict { status: Status::Fail, reasons: vec!["errors < 0.01% missed: 5.88%".into()] };
    let mut manifest = Manifest::new("airline", labels, summary);
    manifest.description = "An airline's web and mobile service".into();
    manifest.command = ["tidemark", "run", "airline"].map(String::from).to_vec();
    manifest.started_at = "2026-01-02T03:04:05.678Z".into();
    (manifest.seed, manifest.version) = (42, "0.1.0".into());
    manifest.load = "closed, 100 users".into();
    manifest.machine = Machine {
        cpu_model: "AMD EPYC 7B13".into(),
        cores: 4,
        memory_bytes: 16 << 30,
        kernel: "Linux 6.1.0".into(),
        os: "Debian GNU/Linux 12".into(),
        open_files_limit: 65_536,
        load_average_1m: 0.31,
        steal_share: 0.02,
    };
    manifest.system.name = "airline".into();
    manifest.system.url = "http://127.0.0.1:40123".into();
    manifest.system.durability = Some("synced".into());
    manifest.system.sync_latency =
        Some(SyncLatency { path: "data".into(), count: 212, p50_us: 1_230, p99_us: 4_560, max_us: 20_100 });
    manifest.system.pinned_to = vec![0, 1];
    manifest.driver_pinned_to = vec![2, 3];
    let phase = |name: &str, start_us, end_us, measured| Phase {
        name: name.into(),
        start_us,
        end_us,
        measured,
        level: "100 users".into(),
    };
    manifest.phases = vec![phase("warm-up", 0, 1_000_000, false), phase("hold", 1_000_000, 4_000_000, true)];
    let objective = |objective: &str, met, measured: &str| ObjectiveResult {
        objective: objective.into(),
        met,
        measured: measured.into(),
        ..ObjectiveResult::default()
    };
    manifest.objectives =
        vec![objective("p99 < 2s", true, "1.05s"), objective("errors < 0.01%", false, "5.88%")];
    manifest.error_examples = writer.totals().error_examples.clone();
    manifest.notes = vec!["system and load generator shared the machine's cores".into()];
    let driver = &mut manifest.summary.driver;
    (driver.wanted_share, driver.waited_share, driver.core_wait_us) = (Some(0.55), Some(0.04), Some(31.5));
    manifest.summary.steady_state = Some(SteadyState {
        steady: Some(false),
        reason: "the rate fell from about 90/s to 8/s, by 1640/s a minute, over the 3 s measured".into(),
        rate_per_s_each_minute: Some(-1_640.0),
        p50_us_each_minute: None,
    });
    manifest
}

/// A run of a history that passed.
pub(crate) fn point(run: &str) -> Point {
    Point {
        run: run.into(),
        run_dir: String::new(),
        started_at: String::new(),
        revision: None,
        version: String::new(),
        status: Status::Pass,
    }
}

/// Ten requests a second for each label; seconds of 1, 2 and 3 ms in turn.
pub(crate) fn long(seconds: u64, labels: u16) -> (TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..labels).map(|label| format!("Step {label}")).collect();
    let mut writer = RunWriter::create(dir.path(), &names, "").unwrap();
    // three kinds of seconds in turn, each made once: histograms are large
    let mut kinds = [1_000, 2_000, 3_000].map(|us| {
        let of = |label: u16| series(label, Outcome::Ok, true, &[(us, 5), (us + u64::from(label) * 131, 5)]);
        let mut one = ThreadInterval::empty(0, 0, 0);
        one.in_window = true;
        one.series = (0..labels).map(of).collect();
        one
    });
    for second in 0..seconds {
        let one = &mut kinds[(second % 3) as usize];
        (one.start_us, one.end_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        writer.add_interval(one).unwrap();
        writer.add_sample(&sample((second + 1) * 1_000_000, "system", 0.123_456, 1_234_567)).unwrap();
    }
    let manifest = Manifest::new("long", names, summarize(writer.totals(), dir.path()));
    writer.finish(&manifest).unwrap();
    let run = Run::open(dir.path()).unwrap();
    (dir, run)
}

/// A second of one label whose scenario measures something itself.
pub(crate) fn measuring() -> (TempDir, Run) {
    let dir = tempfile::tempdir().unwrap();
    let labels = vec!["Buy".to_owned()];
    let metric = |name: &str, kind, unit: &str| OwnMetric { name: name.into(), kind, unit: unit.into() };
    let metrics = [metric("cart_items", OwnKind::Histogram, ""), metric("spent", OwnKind::Counter, "EUR")];
    let mut writer = RunWriter::create(dir.path(), &labels, "").unwrap();
    writer.own_metrics(&metrics).unwrap();
    let ratio = |name: &str, per: &str, form| {
        let (of, per) = (vec!["spent".to_owned()], vec![per.to_owned()]);
        Ratio { name: name.into(), of, per, value: None, form }
    };
    let plain = ratio("spent for each", "Buy", RatioForm::Plain);
    writer.ratios(&[plain, ratio("spent of none", "gone", RatioForm::Percent)]);
    let mut one = ThreadInterval::empty(0, 0, 1_000_000);
    one.in_window = true;
    one.series = vec![series(0, Outcome::Ok, true, &[(1_000, 5)])];
    let mut items = OwnSeries::empty(0, OwnKind::Histogram);
    [2.0, 7.0, 4.0].into_iter().for_each(|number| items.add(number));
    (items.no_number, items.example) = (2, Some("${n}: it has no value".into()));
    let mut spent = OwnSeries::empty(1, OwnKind::Counter);
    spent.add(12.5);
    one.own = vec![items, spent];
    writer.add_interval(&one).unwrap();
    let mut manifest = Manifest::new("shop", labels, summarize(writer.totals(), dir.path()));
    manifest.metrics = metrics.to_vec();
    writer.finish(&manifest).unwrap();
    let run = Run::open(dir.path()).unwrap();
    (dir, run)
}
