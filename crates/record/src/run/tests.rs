use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::histogram::merge;
use crate::table::Cell;
use crate::test_run::{interval, series};
use crate::{CoreWaits, Counter, RunWriter, ThreadInterval, summarize};

fn labels() -> Vec<String> {
    vec!["Login".into(), "Query, one way".into(), "Überflug".into()]
}

/// Writes a run of these intervals, closes it, and returns what the writer made of it.
fn write(dir: &Path, threads: usize, intervals: &[ThreadInterval]) -> Manifest {
    let mut writer = RunWriter::create(dir, &labels(), "name: test\n").unwrap();
    writer.threads(threads);
    for interval in intervals {
        writer.add_interval(interval).unwrap();
    }
    let sample = Sample { at_us: 900_000, process: "system".into(), cpu_share: 1.5, ..Sample::default() };
    writer.add_sample(&sample).unwrap();
    writer.add_event(&Event { at_us: -1, kind: "ready".into(), text: "ä \"quoted\"".into() }).unwrap();
    let manifest = Manifest::new("test", labels(), summarize(writer.totals(), dir));
    writer.finish(&manifest).unwrap();
    manifest
}

#[test]
fn what_is_offered_counts_in_the_second_in_which_it_was_due() {
    let dir = tempfile::tempdir().unwrap();
    let second = |thread, at, offered, earlier: &[(u64, u64)]| {
        let mut one = interval(thread, at, at + 1);
        (one.offered, one.offered_earlier) = (offered, earlier.to_vec());
        one
    };
    let intervals = [
        second(0, 0, 100, &[]),
        second(1, 0, 50, &[]),
        second(0, 1, 0, &[]),
        second(1, 1, 50, &[(999_999, 3)]),
        second(0, 2, 200, &[(1_999_999, 99), (7_000_000, 9)]),
        second(1, 2, 50, &[(1_999_999, 1)]),
    ];
    write(dir.path(), 2, &intervals);
    let run = Run::open(dir.path()).unwrap();
    let offered: Vec<u64> = run.load.iter().map(|row| row.offered).collect();
    assert_eq!(offered, [153, 147, 150]);
    let mut rows = run.load;
    count_by_due_time(&mut rows, &[vec![], vec![999_999, u64::MAX, 5], vec![]]);
    assert_eq!(rows.iter().map(|row| row.offered).collect::<Vec<_>>(), [300, 0, 150]);
}

#[test]
fn a_run_of_before_has_its_percentiles_by_the_rule() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = interval(0, 0, 1);
    one.in_window = true;
    one.series =
        vec![series(0, Outcome::Ok, true, &[(1_000, 90)]), series(0, Outcome::Timeout, true, &[(9_000, 10)])];
    write(dir.path(), 1, &[one]);
    let path = dir.path().join(files::MANIFEST);
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let summary = manifest["summary"].as_object_mut().unwrap();
    for name in ["failed", "failures", "good"] {
        summary.remove(name);
    }
    summary["response_time_us"]["p99"] = 1_000.into();
    fs::write(&path, manifest.to_string()).unwrap();
    let summary = Run::open(dir.path()).unwrap().manifest.summary;
    assert_eq!((summary.failed, summary.good.requests), (10, 90));
    assert_eq!((summary.response_time_us.p90, summary.response_time_us.p99), (Some(1_000), None));
}

#[test]
fn a_run_is_read_with_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 1, &[interval(0, 0, 1)]);
    let whole = Run::open(dir.path()).unwrap();
    assert_eq!((whole.missing.len(), whole.scenario.as_str()), (0, "name: test\n"));
    for name in [files::SCENARIO, files::MONITOR, files::EVENTS] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let rest = Run::open(dir.path()).unwrap();
    assert_eq!(rest.missing, [files::MONITOR, files::EVENTS, files::SCENARIO]);
    assert!(rest.samples.is_empty() && rest.events.is_empty() && rest.scenario.is_empty());
    assert_eq!(rest.load.len(), whole.load.len());
    fs::remove_file(dir.path().join(files::LOAD)).unwrap();
    let error = Run::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains(files::LOAD), "{error}");
}

fn any_interval() -> impl Strategy<Value = ThreadInterval> {
    let outcome = prop::sample::select(&Outcome::ALL[..]);
    let times = prop::collection::vec((0u64..4_000_000_000, 1u32..50), 1..6);
    let any_series = (0u16..3, outcome, any::<bool>(), times);
    let parts = (0u16..3, 0u64..6, any::<bool>(), prop::collection::vec(any_series, 0..5), 0u64..1_000);
    parts.prop_map(|(thread, second, in_window, all, offered)| {
        let mut one = interval(thread, second, second + 1);
        one.in_window = in_window;
        (one.offered, one.waiting, one.cpu_us) = (offered, offered / 2, offered * 3);
        (one.measured_offered, one.measured_dropped) = (offered * 2, offered * 9);
        one.core_waits = Some(CoreWaits { waited_us: offered * 5, sleeps: offered });
        one.absent_us = offered * 7;
        one.counters[Counter::EncodedBytes] = offered * 4;
        one.counters[Counter::DecodedBytes] = offered * 13;
        one.read_lag_us.record_n(offered, 1 + second as u32);
        for (label, outcome, measured, times) in all {
            let capped: Vec<_> = times.iter().map(|&(us, n)| (us.min(crate::HISTOGRAM_HIGH_US), n)).collect();
            one.series.push(series(label, outcome, measured, &capped));
        }
        one
    })
}

type Key = (u64, u16, Outcome, bool);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever the order in which threads report, the directory holds every request once.
    #[test]
    fn what_is_written_is_read_back(intervals in prop::collection::vec(any_interval(), 0..20)) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 3, &intervals);
        let run = Run::open(dir.path()).unwrap();

        let mut expected: BTreeMap<Key, [Merged; 3]> = BTreeMap::new();
        for one in &intervals {
            for s in &one.series {
                let key = (one.start_us, s.label, s.outcome, s.measured);
                let entry = expected.entry(key).or_insert_with(|| [(); 3].map(|()| new_merged()));
                merge(&mut entry[0], &s.response_time_us);
                merge(&mut entry[1], &s.service_time_us);
                merge(&mut entry[2], &s.response_time_less_lag_us);
            }
        }
        let mut found: BTreeMap<Key, [Merged; 3]> = BTreeMap::new();
        for s in &run.series {
            let key = (s.start_us, s.label, s.outcome, s.measured);
            let entry = found.entry(key).or_insert_with(|| [(); 3].map(|()| new_merged()));
            let before = entry[0].len();
            run.merge(&mut entry[0], &s.response_time_us).unwrap();
            run.merge(&mut entry[1], &s.service_time_us).unwrap();
            run.merge(&mut entry[2], s.response_time_less_lag_us.as_ref().unwrap()).unwrap();
            prop_assert_eq!(entry[0].len() - before, s.count);
            let bodies = if s.outcome == Outcome::Ok { s.count } else { 0 };
            prop_assert_eq!((s.bodies, s.body_bytes), (bodies, 100 * bodies));
        }
        prop_assert_eq!(found, expected);
        let offered = |start_us| intervals.iter().filter(move |i| i.start_us == start_us).map(|i| i.offered);
        for second in 0..6 {
            let start_us = second * 1_000_000;
            let rows = run.load.iter().filter(|row| row.start_us == start_us);
            let (mut sum, mut cpu_us, mut waited_us, mut absent_us) = (0, 0, 0, 0);
            let mut read_lag_us = new_merged();
            let (mut measured_offered, mut measured_dropped) = (0, 0);
            let (mut encoded_bytes, mut decoded_bytes) = (0, 0);
            for row in rows {
                sum += row.offered;
                measured_offered += row.measured_offered;
                measured_dropped += row.measured_dropped;
                encoded_bytes += row.encoded_bytes;
                decoded_bytes += row.decoded_bytes;
                cpu_us += row.cpu_us_by_thread.iter().sum::<u64>();
                waited_us += row.waited_us_by_thread.iter().sum::<u64>();
                absent_us += row.absent_us_by_thread.iter().sum::<u64>();
                run.merge(&mut read_lag_us, row.read_lag_us.as_ref().unwrap()).unwrap();
            }
            prop_assert_eq!(sum, offered(start_us).sum::<u64>());
            prop_assert_eq!(read_lag_us.len(), offered(start_us).count() as u64 * (1 + second));
            prop_assert_eq!((measured_offered, measured_dropped), (sum * 2, sum * 9));
            prop_assert_eq!((cpu_us, waited_us, absent_us), (sum * 3, sum * 5, sum * 7));
            prop_assert_eq!((encoded_bytes, decoded_bytes), (sum * 4, sum * 13));
        }
    }
}

#[test]
fn a_load_whose_threads_did_not_tell_of_their_waits_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = interval(0, 0, 1);
    told.core_waits = Some(CoreWaits { waited_us: 7, sleeps: 1 });
    write(dir.path(), 2, &[told.clone(), interval(1, 0, 1), ThreadInterval { thread: 1, ..told }]);
    let waited: Vec<_> =
        Run::open(dir.path()).unwrap().load.into_iter().map(|row| row.waited_us_by_thread).collect();
    assert_eq!(waited, [vec![], vec![0, 7]], "of two threads one is not enough");

    // as earlier versions wrote it
    let path = dir.path().join(files::LOAD);
    fs::remove_file(&path).unwrap();
    let is_later = |name: &str| files::LATER.contains(&name);
    let fields = LOAD_FIELDS.into_iter().filter(|(name, _)| !is_later(name)).collect::<Vec<_>>();
    let mut table = crate::table::TableWriter::create(&path, &fields, "").unwrap();
    let lag_us = Encoded::of(&new_merged(), &mut hdrhistogram::serialization::V2Serializer::new()).0;
    for (second, in_window) in [(0, false), (1, true)] {
        let [start, end, offered, dropped, zero] =
            [second * 1_000_000, second * 1_000_000 + 1_000_000, 9, 4, 0].map(Cell::Int);
        let [waiting, in_flight, connections, connects, sent] = [(); 5].map(|()| zero.clone());
        let (lag_us, cpu) = (Cell::Bytes(lag_us.clone()), Cell::Ints(&[1]));
        let in_window = Cell::Bool(in_window);
        let of_load = [start, end, in_window, offered, dropped, waiting, in_flight, connections];
        let [a, b, c, d, e, f, g, h] = of_load;
        table.push([a, b, c, d, e, f, g, h, connects, sent, zero, lag_us, cpu]).unwrap();
    }
    table.finish().unwrap();
    let load = Run::open(dir.path()).unwrap().load;
    let measured: Vec<_> = load.iter().map(|row| (row.measured_offered, row.measured_dropped)).collect();
    assert_eq!(measured, [(0, 0), (9, 4)], "by when it was known");
    assert!(load.iter().all(|row| (row.encoded_bytes, row.decoded_bytes) == (0, 0)), "{load:?}");
    let table = Table::read_with(&path, &LOAD_FIELDS, &files::LATER).unwrap();
    assert!(!table.has(files::WAITED) && table.has("lag_us"));
    assert!(Table::read(&path, &LOAD_FIELDS).is_err());
}

#[test]
fn the_bytes_of_good_answers_are_told_by_label_and_by_interval() {
    let dir = tempfile::tempdir().unwrap();
    let answers = |second, label, measured, bytes: u64| {
        let mut one = interval(0, second, second + 1);
        one.in_window = measured;
        one.series = vec![
            series(label, Outcome::Ok, measured, &[(300, 10)]),
            series(label, Outcome::Check, measured, &[(300, 10)]),
        ];
        one.series[0].body_bytes = 10 * bytes;
        one
    };
    let intervals = [answers(0, 0, false, 9), answers(1, 0, true, 2_000), answers(2, 0, true, 2)];
    let unknown = {
        let mut one = answers(2, 1, true, 0);
        one.series[0].bodies = 0;
        one
    };
    write(dir.path(), 1, &[&intervals[..], &[unknown]].concat());
    let run = Run::open(dir.path()).unwrap();
    let summary = &run.manifest.summary;
    let means: Vec<_> = summary.steps.iter().map(|step| step.good.body_bytes_mean).collect();
    assert_eq!(means, [Some(1_001.0), None, None], "of the measured window, where they are known");
    let over_time: Vec<_> =
        run.series.iter().filter(|row| row.bodies > 0).map(|row| row.body_bytes / row.bodies).collect();
    assert_eq!(over_time, [9, 2_000, 2]);
}

#[test]
fn everything_else_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut measured = interval(0, 0, 1);
    measured.in_window = true;
    measured.series = vec![series(2, Outcome::Ok, true, &[(300, 10)])];
    let manifest = write(dir.path(), 1, &[measured]);
    let run = Run::open(dir.path()).unwrap();
    assert_eq!(serde_json::to_value(&run.manifest).unwrap(), serde_json::to_value(&manifest).unwrap());
    assert_eq!(run.samples.len(), 1);
    assert_eq!((run.samples[0].process.as_str(), run.samples[0].cpu_share), ("system", 1.5));
    assert_eq!(run.events[0].text, "ä \"quoted\"");
    assert_eq!(run.scenario, "name: test\n");
    assert!(dir.path().join("logs").is_dir());
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".tmp")));
}

#[test]
fn the_interval_log_is_what_its_own_library_reads() {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let dir = tempfile::tempdir().unwrap();
    let mut one = interval(0, 0, 1);
    one.series = vec![
        series(1, Outcome::Ok, false, &[(300, 10)]),
        series(1, Outcome::Ok, true, &[(700, 5)]),
        series(1, Outcome::Timeout, true, &[(9_000_000, 1)]),
    ];
    write(dir.path(), 1, &[one, interval(0, 1, 2)]);
    let text = fs::read(dir.path().join("latency.hlog")).unwrap();
    let entries: Vec<_> = IntervalLogIterator::new(&text).map(Result::unwrap).collect();
    assert!(matches!(entries[0], LogEntry::StartTime(_)) && matches!(entries[1], LogEntry::BaseTime(_)));
    let [LogEntry::Interval(line)] = &entries[2..] else { panic!("one line expected: {entries:?}") };
    assert_eq!(line.tag().unwrap().as_str(), "Query__one_way");
    assert_eq!((line.start_timestamp().as_secs(), line.duration().as_secs()), (0, 1));
    assert_eq!(line.max(), 700.0);
}

#[test]
fn torn_and_foreign_directories_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let message = || Run::open(dir.path()).unwrap_err().to_string();
    assert!(message().contains("no run.json"));
    let absent = dir.path().join("absent");
    assert!(Run::open(&absent).unwrap_err().to_string().contains("cannot read"));

    let mut one = interval(0, 0, 1);
    one.series = vec![series(0, Outcome::Ok, false, &[(300, 10)])];
    write(dir.path(), 1, &[one]);
    for name in ["intervals.parquet", "load.parquet", "monitor.parquet"] {
        let path = dir.path().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        assert!(message().contains(name), "{}", message());
        fs::remove_file(&path).unwrap();
        if name != "monitor.parquet" {
            assert!(message().contains(name), "{}", message());
        }
        fs::write(&path, &whole).unwrap();
    }
    let events = dir.path().join("events.jsonl");
    let whole = fs::read(&events).unwrap();
    fs::write(&events, [&whole[..], b"{\"at_us\":"].concat()).unwrap();
    assert!(message().contains("line 2"), "{}", message());
    fs::write(&events, &whole).unwrap();

    let manifest = dir.path().join("run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"Login\"", "\"Logon\"")).unwrap();
    assert!(message().contains("Login"), "{}", message());
    fs::write(&manifest, text.replace("\"format\": 1", "\"format\": 99")).unwrap();
    assert!(message().contains("newer tidemark"), "{}", message());
    fs::write(&manifest, "{\"name\": \"some other tool's\"}").unwrap();
    assert!(message().contains("not the manifest"), "{}", message());
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert!(message().contains("not the manifest"), "{}", message());
    fs::write(&manifest, &text).unwrap();
    assert!(Run::open(dir.path()).is_ok());
}
