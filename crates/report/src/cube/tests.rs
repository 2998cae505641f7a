use tidemark_record::{Operation, OperationsWriter};

use super::*;
use crate::test_run;

fn log(text: &str) -> (String, Input) {
    ("log".into(), Input::Lines(LogLines::read(text.as_bytes(), Months::FromZero).unwrap()))
}

fn twenty() -> String {
    (1..=20).map(|ms| format!("2014|1|3|0|33|Outbound|post|{ms}\n")).collect()
}

fn query(by: &[Dimension], filters: &[&str]) -> Query {
    let filters = filters.iter().map(|filter| Filter::parse(filter).unwrap()).collect();
    Query { by: by.to_vec(), filters, ..Query::default() }
}

#[test]
fn the_published_lines_give_the_published_numbers() {
    let inputs = [log(&twenty())];
    assert_eq!(published(&inputs, &Query::default()).unwrap(), "2014-1-3 0:33\tOutbound|post=20,11,20\n");
    let cube = Cube::of(&inputs, &query(&[Dimension::Date, Dimension::Entity], &[])).unwrap();
    assert_eq!(
        csv(&cube, &[Measure::Count, Measure::Median, Measure::P95], None),
        "date,entity,count,median_ms,p95_ms\n2014-02-03 00:33,Outbound,20,11,20\n"
    );
    assert_eq!(cube.rows[0].measured.throughput_per_s, 20.0 / 60.0);
}

#[test]
fn a_sum_is_of_all_operations_and_covers_all_their_time() {
    // one slow minute and one fast one: the median of both is no mean of two medians
    let mut text = String::new();
    for ms in [1, 1, 1, 1, 1, 1, 1, 1] {
        text += &format!("2014|1|3|0|33|Outbound|post|{ms}\n");
    }
    text += "2014|1|3|0|34|Outbound|post|100\n2014|1|3|0|34|Outbound|store|7\n";
    let by = [Dimension::Minute, Dimension::Operation];
    let asked = Query { rollup: true, ..query(&by, &[]) };
    let cube = Cube::of(&[log(&text)], &asked).unwrap();
    let shown: Vec<String> = cube
        .rows
        .iter()
        .map(|row| {
            let of = row.measured;
            format!(
                "{} {}: {} {} {:.3}",
                row.values[0],
                row.values[1],
                of.count,
                of.median_us.unwrap(),
                of.throughput_per_s
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "0 post: 8 1000 0.133",
            "0 all: 8 1000 0.133",
            "1 post: 1 100000 0.017",
            "1 store: 1 7000 0.017",
            "1 all: 2 100000 0.033",
            "all all: 10 1000 0.083",
        ]
    );
}

#[test]
fn filters_choose_and_tell_what_there_is() {
    let text = "1000000,Outbound,post,5,200\n2500000,Outbound,post,7,503\n3000000,Inbound,store,9,200\n";
    let count = |filters: &[&str]| {
        Cube::of(&[log(text)], &query(&[], filters))
            .map(|cube| cube.rows.iter().map(|row| row.measured.count).sum::<u64>())
    };
    assert_eq!(count(&[]).unwrap(), 3);
    assert_eq!(count(&["entity=outbound"]).unwrap(), 2);
    assert_eq!(count(&["status!=200"]).unwrap(), 1);
    assert_eq!(count(&["status!=404"]).unwrap(), 3, "what is not wanted need not be there");
    assert_eq!(count(&["status=404"]).unwrap(), 0, "that nothing failed is an answer");
    assert_eq!(count(&["date=1970-01-01"]).unwrap(), 3);
    assert_eq!(count(&["date>=1970-01-02"]).unwrap(), 0);
    assert_eq!(count(&["second>=1", "second<2"]).unwrap(), 1);
    assert_eq!(count(&["operation=store|post"]).unwrap(), 3);
    let error = count(&["entity=Outbund"]).unwrap_err().to_string();
    assert!(error.contains("Outbund") && error.contains("Inbound, Outbound"), "{error}");
    for (text, reason) in [
        ("entity", "is not a filter"),
        ("entiti=x", "no dimension"),
        ("entity>x", "no order"),
        ("minute=x", "whole number"),
        ("second=", "no value"),
        ("minute>=1|2", "several"),
        ("date=zzz", "2026-01-31"),
    ] {
        let error = Filter::parse(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let lines = Cube::of(&[log(&twenty())], &query(&[Dimension::Second], &[])).unwrap_err().to_string();
    assert!(lines.contains("without seconds"), "{lines}");
}

#[test]
fn a_dimension_across_stands_beside_itself() {
    let text =
        "1000000,Outbound,post,5000,200\n2000000,Outbound,store,7000,200\n61000000,Outbound,post,6000,200\n";
    let cube = Cube::of(&[log(text)], &query(&[Dimension::Minute, Dimension::Operation], &[])).unwrap();
    assert_eq!(csv(&cube, &[Measure::P95], Some(Dimension::Operation)), "minute,post,store\n0,5,7\n1,6,\n");
    let lines = table(&cube, &[Measure::P95], Some(Dimension::Operation), 80, "…");
    assert_eq!(lines, ["minute     post    store", "0        5.00ms   7.00ms", "1        6.00ms        -"]);
    assert!(json(&cube, &[Measure::P95, Measure::Count]).contains("\"p95_ms\": 5"));
}

#[test]
fn a_run_has_what_its_system_says_beside_what_the_driver_saw() {
    let (temp, run) = test_run::airline();
    let dir = temp.path();
    let (start_us, _) = window(&run, false).unwrap();
    assert!(start_us > 0, "there is a warm-up");
    let mut writer = OperationsWriter::create(dir).unwrap();
    let mut of = Operation { at_us: 0, entity: "Outbound", operation: "warm", duration_us: 1, status: 200 };
    writer.push(&of).unwrap();
    for n in 0..10_000u64 {
        of.operation = if n % 2 == 0 { "store" } else { "post" };
        (of.at_us, of.duration_us) = (start_us + n % 1_000, 1_000 + n);
        writer.push(&of).unwrap();
    }
    writer.finish().unwrap();
    let inputs = [("a run".to_owned(), Input::Runs(vec![run]))];
    let by = [Dimension::Source, Dimension::Entity, Dimension::Operation];
    let cube = Cube::of(&inputs, &query(&by, &["source=system"])).unwrap();
    let of = |row: &Row| (row.values[2].to_string(), row.measured.count, row.measured.median_us);
    assert_eq!(cube.rows.len(), 2);
    assert_eq!(of(&cube.rows[0]), ("post".into(), 5_000, Some(6_001)));
    assert_eq!(of(&cube.rows[1]), ("store".into(), 5_000, Some(6_000)));
    let both = Cube::of(&inputs, &query(&by, &[])).unwrap();
    let driver = both.rows.iter().filter(|row| row.values[0] == Value::Text("driver".into())).count();
    assert!(driver > 0, "what the driver saw stands beside it");
    let all = Cube::of(&inputs, &query(&[], &[])).unwrap();
    assert_eq!(all.rows[0].measured.count, 10_000, "what is counted twice is not added up");
}

#[test]
fn a_run_is_the_same_however_often_it_is_read() {
    let (temp, run) = test_run::airline();
    let (start_us, _) = window(&run, false).unwrap();
    let mut writer = OperationsWriter::create(temp.path()).unwrap();
    for n in 0..60_000u64 {
        let (entity, status) = (["A", "B"][n as usize % 2], if n % 100 == 0 { 503 } else { 200 });
        let at_us = start_us + n % 1_000;
        writer.push(&Operation { at_us, entity, operation: "store", duration_us: n, status }).unwrap();
    }
    writer.finish().unwrap();
    let inputs = [("a run".to_owned(), Input::Runs(vec![run]))];
    let asked = query(&[Dimension::Entity], &["source=system"]);
    let first = Cube::of(&inputs, &asked).unwrap();
    assert_eq!((first.rows[0].measured.count, first.rows[0].measured.errors), (30_000, 600));
    for _ in 0..40 {
        assert_eq!(Cube::of(&inputs, &asked).unwrap(), first);
    }
    let failed = Cube::of(&inputs, &query(&[], &["source=system", "status!=200"])).unwrap();
    assert_eq!(failed.rows[0].measured.count, 600);
}

#[test]
fn the_driver_counts_what_was_due_in_the_window() {
    let (_temp, run) = test_run::airline();
    let due: u64 = run.series.iter().filter(|row| row.measured).map(|row| row.count).sum();
    let failed: u64 =
        run.series.iter().filter(|row| row.measured && row.outcome.is_error()).map(|row| row.count).sum();
    assert!(failed > 0);
    let inputs = [("a run".to_owned(), Input::Runs(vec![run]))];
    let all = Cube::of(&inputs, &query(&[], &["source=driver"])).unwrap();
    assert_eq!((all.rows[0].measured.count, all.rows[0].measured.errors), (due, failed));
    let error = Cube::of(&inputs, &query(&[Dimension::Minute], &[])).unwrap_err().to_string();
    assert!(error.contains("logged no operations") && error.contains("source=driver"), "{error}");
}

#[test]
fn far_apart_lines_are_neither_slow_nor_large() {
    let text = "1000000,a,b,1,200\n283824000000000,a,b,1,200\n";
    let cube = Cube::of(&[log(text)], &query(&[Dimension::Entity], &[])).unwrap();
    assert_eq!(cube.rows[0].measured.throughput_per_s, 2.0 / 283_823_999.0);
    let error = Cube::of(&[log(text)], &query(&[Dimension::Entity], &["second>5"])).unwrap_err().to_string();
    assert!(error.contains("line 1 (1970-01-01 00:00)") && error.contains("line 2 (1978-12-30"), "{error}");
    let text = "1000000,a,b,1,200\n99999999999999999,a,b,1,200\n2000000,a,b,1,200\n";
    let error = Cube::of(&[log(text)], &query(&[Dimension::Entity], &[])).unwrap_err().to_string();
    assert!(error.contains("to line 2 (5138-11-16") && error.contains("a hundred years"), "{error}");
}

#[test]
fn runs_are_not_added_up_in_the_published_forms() {
    let (_temp, run) = test_run::airline();
    let inputs = [("a".to_owned(), Input::Runs(vec![run])), log(&twenty())];
    assert!(published(&inputs, &Query::default()).unwrap_err().to_string().contains("one run"));
    let twice = [log(&twenty()), log(&twenty())];
    assert_eq!(published(&twice, &Query::default()).unwrap(), "2014-1-3 0:33\tOutbound|post=40,11,20\n");
}

#[test]
fn names_of_strangers_do_not_steer_the_terminal() {
    let text = "1000000,\u{1b}[31mEvil\u{1b}]0;x\u{7},po\tst,5,200\n";
    let cube = Cube::of(&[log(text)], &query(&[Dimension::Entity], &[])).unwrap();
    let lines = table(&cube, &[Measure::Count], None, 80, "…").concat();
    assert!(!lines.contains(char::is_control), "{lines:?}");
}

#[test]
fn a_failed_operation_is_slower_than_every_bound_but_where_its_status_is_asked_for() {
    // a dead store: nine of ten fail at once
    let mut text = String::new();
    for n in 0..100 {
        let (took, status) = if n % 10 == 0 { (9_000, 200) } else { (5, 503) };
        text += &format!("{},Outbound,store,{took},{status}\n", 60_000_000 + n * 10_000);
    }
    text += "120000000,Outbound,store,7000,200\n";
    let inputs = [log(&text)];
    let measured = |by: &[Dimension], filters: &[&str], rollup| {
        let asked = Query { rollup, ..query(by, filters) };
        let rows = Cube::of(&inputs, &asked).unwrap().rows;
        rows.iter()
            .map(|row| (row.measured.count, row.measured.errors, row.measured.p95_us))
            .collect::<Vec<_>>()
    };
    let by_minute = [Dimension::Minute];
    assert_eq!(measured(&by_minute, &[], false), [(100, 90, None), (1, 0, Some(7_000))]);
    assert_eq!(measured(&by_minute, &["status=503"], false), [(90, 90, Some(5))]);
    let by_status = [Dimension::Status];
    assert_eq!(
        measured(&by_status, &[], true),
        [(11, 0, Some(9_000)), (90, 90, Some(5)), (101, 90, None)],
        "the sum is of several"
    );
    let cube = Cube::of(&inputs, &query(&by_minute, &[])).unwrap();
    assert_eq!(csv(&cube, &[Measure::Count, Measure::P95], None), "minute,count,p95_ms\n0,100,\n1,1,7\n");
    assert!(json(&cube, &[Measure::P95]).contains("\"p95_ms\": null"));
    assert!(table(&cube, &[Measure::P95], None, 80, "…")[1].ends_with('-'));
    // the publication counts every operation
    assert_eq!(
        published(&inputs, &Query::default()).unwrap(),
        "1970-0-1 0:1\tOutbound|store=100,0,9\n1970-0-1 0:2\tOutbound|store=1,7,7\n"
    );
}

#[test]
fn the_driver_counts_a_failure_as_never_answered() {
    let (_temp, run) = test_run::airline();
    let inputs = [("a run".to_owned(), Input::Runs(vec![run]))];
    let of = Cube::of(&inputs, &query(&[], &["source=driver"])).unwrap().rows[0].measured;
    assert!(of.errors * 100 > of.count && of.median_us.is_some() && of.p99_us.is_none(), "{of:?}");
}

#[test]
fn rounds_without_operations_lend_no_time_to_those_with() {
    let (temp, told) = test_run::airline();
    test_run::with_operations(temp.path());
    let ((_a, silent), (empty_dir, empty)) = (test_run::airline(), test_run::airline());
    OperationsWriter::create(empty_dir.path()).unwrap().finish().unwrap();
    let cube = |runs: Vec<Run>, filters: &[&str]| {
        let inputs = [("a".to_owned(), Input::Runs(runs))];
        Cube::of(&inputs, &query(&[Dimension::Source], filters))
    };
    let error = cube(vec![empty.clone()], &["source=system"]).unwrap_err().to_string();
    assert!(error.contains("logged no operations"), "an empty file tells of none: {error}");
    let alone = cube(vec![told.clone()], &[]).unwrap();
    let three = cube(vec![silent, told, empty], &[]).unwrap();
    assert_eq!(three.silent, ["a, 2 of 3 rounds"]);
    let rates =
        |cube: &Cube| -> Vec<f64> { cube.rows.iter().map(|row| row.measured.throughput_per_s).collect() };
    assert_eq!(rates(&three), rates(&alone), "the driver saw three times as much in three times the time");
}

#[test]
fn the_rate_of_a_log_is_of_the_time_from_its_first_line_to_its_last() {
    let text: String = (0..101).map(|n| format!("{},a,b,1,200\n", 5_900_000 + n * 20_000)).collect();
    let cube = Cube::of(&[log(&text)], &query(&[], &[])).unwrap();
    assert_eq!(cube.rows[0].measured.throughput_per_s, 101.0 / 2.0);
    // each second is a whole one
    let cube = Cube::of(&[log(&text)], &query(&[Dimension::Second], &[])).unwrap();
    assert_eq!(
        cube.rows.iter().map(|row| row.measured.throughput_per_s).collect::<Vec<_>>(),
        [5.0, 50.0, 46.0]
    );
}

#[test]
fn a_narrow_table_has_its_dimensions() {
    let by = [Dimension::Date, Dimension::Entity, Dimension::Operation];
    let cube = Cube::of(&[log(&twenty())], &query(&by, &[])).unwrap();
    let lines = table(&cube, &Measure::ALL, None, 45, "…");
    assert!(lines[1].starts_with("2014-02-03 00:33  Outbound  post"), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 45), "{lines:?}");
    assert!(lines[0].contains("count"), "{lines:?}");
}
