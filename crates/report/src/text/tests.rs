//! What the report looks like.

use std::path::PathBuf;

use tidemark_record::summary::{EntryExample, Latency, Ledger, LostWhen, Phase, Process, Verified};
use tidemark_record::{Outcome, ReasonKind, SYSTEM};

use super::*;
use crate::blocks::Quick;
use crate::test_run;

const PLAIN: Style = Style { width: 80, colour: false, ascii: false };

/// The sample run at a place that is the same everywhere.
fn sample() -> Run {
    let (_dir, mut run) = test_run::airline();
    run.dir = PathBuf::from("runs/20260102-030405-airline");
    run
}

/// What is shown of a URL that was hit.
fn quick(run: &Run, style: Style, asked: Quick) -> String {
    render(&blocks::quick(run, asked).unwrap(), style)
}

/// The lines of a text that another does not have.
fn beyond(text: &str, known: &str) -> String {
    let lines = text.lines().filter(|line| known.lines().all(|known| known != *line));
    lines
        .map(|line| {
            format!(
                "|{line}
"
            )
        })
        .collect()
}

#[test]
fn targets_stand_apart_where_there_are_several() {
    let mut run = sample();
    let before = summary(&run, PLAIN);
    let latency = Latency { p50: Some(760), p99: Some(1_900), ..Latency::default() };
    let of = |name: &str, requests, kind: &str, failed| tidemark_record::summary::Target {
        target: name.into(),
        requests,
        share: requests as f64 / 200.0,
        achieved_per_s: requests as f64 / 3.0,
        errors: [(kind.to_owned(), failed)].into(),
        response_time_us: latency.clone(),
        ..Default::default()
    };
    run.manifest.summary.targets =
        vec![of("system", 150, "status", 0), of("http://a.test", 50, "connect", 7)];
    run.manifest.targets = vec![tidemark_record::manifest::Target {
        name: "http://a.test".into(),
        url: "http://a.test".into(),
        protocol: "HTTP/1.1".into(),
        ..Default::default()
    }];
    insta::assert_snapshot!(beyond(&summary(&run, PLAIN), &before), @r"
    |  beside it      http://a.test · HTTP/1.1
    |By target
    |                  count   share   per s     p50      p99   failed
    |  system            150   75.0%    50.0   760µs   1.90ms        0
    |  http://a.test      50   25.0%    16.7   760µs   1.90ms        7
    ");
}

#[test]
fn good_answers_to_requests_of_the_warm_up_are_told() {
    let mut run = sample();
    let before = summary(&run, PLAIN);
    let row = run.series.iter_mut().find(|of| of.in_window && of.outcome == Outcome::Ok).unwrap();
    (row.measured, row.count) = (false, 1_234);
    let wanted = "|                 1,234 of them were due in the warm-up, and came later\n";
    assert_eq!(beyond(&summary(&run, PLAIN), &before), wanted);
}

#[test]
fn a_rate_of_nothing_is_no_bound() {
    let mut run = sample();
    run.manifest.summary.driver.limits = vec!["its threads had no core".into()];
    let all = |run: &Run| summary(run, PLAIN) + &crate::markdown::summary(run);
    assert_eq!(all(&run).matches("at least 58.7/s").count(), 2);
    run.manifest.summary.achieved_per_s = 0.0;
    assert!(!all(&run).contains("at least 0/s"), "{}", all(&run));
}

#[test]
fn groups_stand_behind_the_labels() {
    let mut run = sample();
    let before = summary(&run, PLAIN);
    let response_time_us = Latency { p50: Some(2_000), p90: Some(3_500), ..Latency::default() };
    run.manifest.summary.groups = vec![tidemark_record::summary::Group {
        group: "Buy a flight".into(),
        count: 60,
        achieved_per_s: 18.0,
        errors: [("status".to_owned(), 6)].into(),
        response_time_us,
        ..Default::default()
    }];
    insta::assert_snapshot!(beyond(&summary(&run, PLAIN), &before), @r"
    |By group
    |                 count   per s      p50      p90   failed
    |  Buy a flight      60    18.0   2.00ms   3.50ms        6
    ");
}

/// A warm-up and two measured phases.
fn three() -> Vec<Phase> {
    let process = |name: &str, cpu_share| Process { name: name.into(), cpu_share, ..Process::default() };
    let phase = |name: &str, measured, from_s, to_s, per_s| Phase {
        name: name.into(),
        level: format!("{per_s}/s"),
        measured,
        from_s,
        to_s,
        offered_per_s: per_s,
        achieved_per_s: per_s - 1.0,
        failed: 3,
        response_time_us: Latency { p50: Some(1_500), p99: Some(90_000), ..Latency::default() },
        processes: vec![process(SYSTEM, per_s / 100.0), process("store", 1.0)],
        ..Phase::default()
    };
    vec![
        phase("warm-up", false, 0.0, 1.5, 50.0),
        phase("low", true, 1.5, 11.5, 100.0),
        phase("high|er", true, 11.5, 21.5, 250.0),
    ]
}

#[test]
fn phases_have_rows_where_several_are_measured() {
    let mut run = sample();
    let before = summary(&run, PLAIN);
    run.manifest.summary.phases = three();
    insta::assert_snapshot!(beyond(&summary(&run, PLAIN), &before), @r"
    |By phase
    |            for  offered/s  achieved/s     p50     p99  failed  CPU system
    |  warm-up  1.5s       50.0        49.0  1.50ms  90.0ms       3         0.5
    |  low       10s        100        99.0  1.50ms  90.0ms       3        1.00
    |  high|er   10s        250         249  1.50ms  90.0ms       3        2.50
    |  - not measured: warm-up
    ");
    let row = "| warm-up | 1.5s | 50.0 | 49.0 | 1.50ms | 90.0ms | 3 | 0.5 |\n";
    assert!(crate::markdown::summary(&run).contains(row), "every column that tells something is there");
    run.manifest.summary.phases.pop();
    assert_eq!(summary(&run, PLAIN), before);
}

#[test]
fn eighty_columns() {
    insta::assert_snapshot!(summary(&sample(), PLAIN), @r#"
    FAIL  errors < 0.01% missed: 5.88%
          not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over
          the 3 s measured

      scenario       airline · closed, 100 users · measured for 3s
      closed loop    each user sends when the last answer has come, in lock-step
                     with the server; times leave out the wait of users who would
                     have come meanwhile (a `rate` counts it)
      system         airline at http://127.0.0.1:40123 · on cores 0,1
      durability     synced · disk syncs in 1.23ms, 99th 4.56ms, longest 20.1ms
      machine        AMD EPYC 7B13 · 4 cores · 16 GiB · Linux 6.1.0
                     0.02 cores taken by the hypervisor

    Throughput
      achieved       58.7/s · 176 good answers in 3s · 58.7% of offered
                     2 more were due in the window, and came after it
      offered        100/s · 193 due · 4 dropped
      failed         15 (7.77% of what was due)

    Latency
                         mean   median      p90     p99     max
      response time         -    760µs   12.3ms       -       -
      service time          -    570µs   9.23ms       -       -
      good: response   13.3ms    760µs   2.31ms   1.05s   1.05s
      good: service    9.98ms    570µs   1.73ms   788ms   788ms
      - not reached: 7.77% had no good answer, which is slower than every bound; or
      too few: 193 requests have no p99.9

    By label
                                 count   share   per s      p50      p90   failed
      Login                         31   16.4%    9.33   2.31ms   4.70ms        3
      Query Flight                 158   83.6%    49.3    760µs   1.90ms        8
      View Profile Information       0      0%       0        -        -        0

    Failures
      status            3  known after 900µs (median), 950µs at most
           2.35s  Login: 503 Service Unavailable: {"reason":"the store is not there
                  yet, try again in a moment"}
      timeout           8  known after 1.00s (median), 1.00s at most
      dropped           4

    CPU and memory
               CPU time   cores used     memory
      system      3.75s         1.25    212 MiB
      driver      1.50s         0.50   29.6 MiB
      46.9 good answers for each CPU-second of the system

    Load generator
      threads        2 threads · on cores 2,3
                     on a CPU for 25.0%, 50.0% of the time
      cores          waited for one for 4.00% of the time
                     31.5µs each time that one woke
      sent late      median 12µs, p99 13µs, longest 13µs · none by 1ms or more
                     10µs to 100µs: 100%

    Objectives
      ✓ p99 < 2s         1.05s
      ✗ errors < 0.01%   5.88%

    Notes
      ! system and load generator shared the machine's cores

    Run              runs/20260102-030405-airline
    "#);
}

#[test]
fn a_hundred_and_twenty_columns() {
    let (narrow, wide) = (summary(&sample(), PLAIN), summary(&sample(), Style { width: 120, ..PLAIN }));
    assert_eq!(wide.lines().count(), 56);
    insta::assert_snapshot!(beyond(&wide, &narrow), @r#"
    |      not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over the 3 s measured
    |  closed loop    each user sends when the last answer has come, in lock-step with the server; times leave out the wait
    |                 of users who would have come meanwhile (a `rate` counts it)
    |  machine        AMD EPYC 7B13 · 4 cores · 16 GiB · Linux 6.1.0 · 0.02 cores taken by the hypervisor
    |  - not reached: 7.77% had no good answer, which is slower than every bound; or too few: 193 requests have no p99.9
    |       2.35s  Login: 503 Service Unavailable: {"reason":"the store is not there yet, try again in a moment"}
    |  threads        2 threads · on cores 2,3 · on a CPU for 25.0%, 50.0% of the time
    |  cores          waited for one for 4.00% of the time · 31.5µs each time that one woke
    "#);
}

#[test]
fn a_quiet_pass() {
    let mut run = sample();
    let manifest = &mut run.manifest;
    manifest.summary.verdict = tidemark_record::summary::Verdict { status: Status::Pass, reasons: vec![] };
    manifest.summary.errors.clear();
    manifest.summary.steps.truncate(1);
    manifest.summary.steps[0].errors.clear();
    manifest.summary.dropped = 0;
    manifest.summary.failed = 0;
    manifest.summary.failures.clear();
    let good = manifest.summary.good.clone();
    (manifest.summary.response_time_us, manifest.summary.service_time_us) =
        (good.response_time_us, good.service_time_us);
    manifest.error_examples.clear();
    manifest.objectives.truncate(1);
    manifest.notes.clear();
    manifest.summary.ledger = Some(Ledger {
        sent: 31_145_920,
        acknowledged: 31_145_914,
        verified: Some(Verified {
            found: 31_145_914,
            unacknowledged_found: 3,
            counted: Some(31_145_917),
            took_s: 48.3,
            verified_at: "2026-01-31T14:12:09Z".into(),
            ..Verified::default()
        }),
        ..Ledger::default()
    });
    let quiet = summary(&run, PLAIN);
    assert_eq!(quiet.lines().count(), 55);
    insta::assert_snapshot!(beyond(&quiet, &summary(&sample(), PLAIN)), @r"
    |PASS  the objective was met
    |  offered        100/s · 189 due · none dropped
    |  failed         none
    |                    mean   median      p90     p99     max
    |  response time   13.3ms    760µs   2.31ms   1.05s   1.05s
    |  service time    9.98ms    570µs   1.73ms   788ms   788ms
    |  too few: 189 requests have no p99.9
    |          count   share   per s      p50      p90   failed
    |  Login      31   16.4%    9.33   2.31ms   4.70ms        0
    |  ✓ p99 < 2s   1.05s
    |Nothing lost?
    |  ✓ 0 lost of 31,145,914 acknowledged · synced
    |  found          31,145,914 · 0 duplicated · 0 different
    |                 3 more that were never acknowledged
    |  sent           31,145,920
    |  system counts  31,145,917 and showed 31,145,917
    |  read back      48.3s · 2026-01-31T14:12:09Z
    ");
}

#[test]
fn ascii_is_ascii_and_colour_only_adds_escapes() {
    let run = sample();
    let ascii = summary(&run, Style { ascii: true, ..PLAIN });
    assert!(ascii.is_ascii(), "{ascii}");
    let coloured = summary(&run, Style { colour: true, ..PLAIN });
    assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m"), "{coloured:?}");
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find('\u{1b}') {
        bare += &rest[..at];
        rest = &rest[at + rest[at..].find('m').unwrap() + 1..];
    }
    assert_eq!(bare + rest, summary(&run, PLAIN));
}

#[test]
fn nothing_from_outside_steers_the_terminal() {
    let mut run = sample();
    run.manifest.error_examples[0].detail = "\u{1b}]0;owned\u{7}\r\n\u{9b}31m".into();
    run.manifest.summary.steps[0].label = "a\u{1b}[2Jb".into();
    run.manifest.notes = vec!["c\u{8}d\u{202e}e\u{2066}".into()];
    run.manifest.summary.verdict.reasons = vec!["e\u{1b}f\u{202e}g\u{200f}h".into()];
    let text = summary(&run, PLAIN);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{200f}']), "{text:?}");
}

#[test]
fn a_reason_that_quotes_a_log_keeps_its_lines() {
    let mut run = sample();
    run.manifest.summary.verdict.status = Status::Fail;
    run.manifest.summary.verdict.reasons = vec!["it ended; its log:\n  | one\n  | two".into()];
    let text = summary(&run, PLAIN);
    assert!(text.contains("FAIL  it ended; its log:\n      | one\n      | two\n"), "{text}");
    let log: String = (0..20).map(|n| format!("\n  | {n} {}", "word ".repeat(30))).collect();
    let end = "\n  |   File \"svc.py\"\n  | FATAL: the real reason";
    run.manifest.summary.verdict.reasons =
        vec![format!("it ended; its log:{log}{end}").into(), "another".into()];
    let text = summary(&run, PLAIN);
    let top: Vec<&str> = text.lines().take(11).collect();
    assert_eq!(top[1], "      | … 14 lines before", "{text}");
    assert!(top[2].starts_with("      | 14 word word") && top[2].ends_with('…'), "{text}");
    assert_eq!(
        top[8..],
        ["      |   File \"svc.py\"", "      | FATAL: the real reason", "      another"],
        "{text}"
    );
    assert!(top.iter().all(|line| length(line) <= 80), "{text}");
}

#[test]
fn that_figures_are_of_a_part_is_said_once() {
    let mut run = sample();
    run.manifest.interrupted = true;
    let told = |run: &Run| {
        let both = [summary(run, PLAIN), crate::markdown::summary(run)];
        both.map(|text| text.contains("the figures are of the part that ran"))
    };
    assert_eq!(told(&run), [true; 2], "a run of before has no reason");
    let reason = "incomplete: stopped by the user; these are the figures of the 2s measured until then";
    run.manifest.summary.verdict.reasons.push(ReasonKind::Stopped.told(reason));
    assert_eq!(told(&run), [false; 2]);
}

#[test]
fn one_request_was_and_more_were() {
    let mut run = sample();
    let mut left = 1;
    for of in &mut run.series {
        if of.outcome == Outcome::Ok && of.measured && !of.in_window {
            of.count = std::mem::take(&mut left);
        }
    }
    assert_eq!(blocks::good_elsewhere(&run), ["1 more was due in the window, and came after it"]);
}

#[test]
fn what_was_lost_is_named_with_its_second() {
    let mut run = sample();
    let example =
        |kind: &str, entry: &str, sent_us| EntryExample { kind: kind.into(), entry: entry.into(), sent_us };
    run.manifest.summary.ledger = Some(Ledger {
        sent: 1_010,
        acknowledged: 1_000,
        verified: Some(Verified {
            found: 993,
            lost: 7,
            changed: 0,
            incomplete: 0,
            duplicated: 2,
            unacknowledged_found: 1,
            different: 1,
            foreign: 4,
            counted: Some(1_001),
            absent: 0,
            hint: None,
            took_s: 0.12,
            verified_at: "2026-01-31T14:12:09Z".into(),
            lost_when: vec![
                LostWhen { from_us: 1_000_000, to_us: 2_000_000, lost: 4 },
                LostWhen { from_us: 2_000_000, to_us: 3_000_000, lost: 3 },
            ],
            examples: vec![
                example("lost", "0000000000000012", Some((1_000_000, 2_000_000))),
                example("duplicated", "0010000000000003", None),
            ],
        }),
        not_verified: None,
        torn: 1,
        broke_off: false,
    });
    let text = summary(&run, PLAIN);
    let section = text.split("Nothing lost?").nth(1).unwrap().split("\nNotes").next().unwrap();
    insta::assert_snapshot!(section, @r"

    ✗ 7 lost of 1,000 acknowledged · synced
    found          993 · 2 duplicated · 1 different
                   1 more that may have been acknowledged
    sent           1,010
    foreign        4 that this run did not write
    system counts  1,001 but showed 1,000
    read back      0.12s · 2026-01-31T14:12:09Z
    lost ones sent 4 in 1.00s to 2.00s · 3 in 2.00s to 3.00s
      lost 0000000000000012, sent in 1.00s to 2.00s
      duplicated 0010000000000003
    the load generator died while it wrote the ledger: its last second is missing
    ");
    let ledger = run.manifest.summary.ledger.as_mut().unwrap();
    (ledger.verified, ledger.not_verified) = (None, Some("GET /count: status 404".into()));
    let text = summary(&run, PLAIN);
    let section = text.split("Nothing lost?").nth(1).unwrap().split("\nNotes").next().unwrap();
    insta::assert_snapshot!(section, @r"

    ! not verified: GET /count: status 404
    acknowledged   1,000 · 1,010 sent
    the load generator died while it wrote the ledger: its last second is missing
    ");
}

#[test]
fn nothing_lost_is_undecided_where_the_run_broke_off() {
    let mut run = sample();
    let verified = Some(Verified { found: 9, unacknowledged_found: 4, ..Verified::default() });
    let ledger = Ledger { sent: 9, acknowledged: 9, verified, broke_off: true, ..Ledger::default() };
    run.manifest.summary.ledger = Some(ledger);
    let text = summary(&run, PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("? undecided: 0 lost of 9 acknowledged that the ledger knows of"), "{text}");
    assert!(text.contains("4 more that may have been acknowledged"), "{text}");
    assert!(text.contains("the run broke off: what was sent in its last second"), "{text}");
    assert!(!text.contains("never acknowledged"), "{text}");
}

#[test]
fn what_the_scenario_measured_itself_has_a_table() {
    let (_dir, run) = test_run::measuring();
    let text = summary(&run, Style { width: 100, colour: false, ascii: true });
    let table: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| *line != "Own metrics")
        .take(9)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let told = [
        "Own metrics",
        "count sum per s mean p50 max no number",
        "cart_items 3 13 3 4.33 4 7 2",
        "spent (EUR) 1 12.5 12.5 - - - 0",
        "",
        "Ratios",
        "ratio of per",
        "spent for each 2.5 spent Buy",
        "spent of none unknown spent gone",
    ];
    assert_eq!(table.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), told, "{text}");
    let json: serde_json::Value = serde_json::from_str(&crate::json::summary(&run).unwrap()).unwrap();
    let [items, spent] = &json["metrics"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!(
        (&items["metric"], &items["kind"], &items["values"]["p50"], &items["values"]["p99"]),
        (&"cart_items".into(), &"histogram".into(), &4.0.into(), &().into())
    );
    assert_eq!(items["example"], "${n}: it has no value");
    assert_eq!((&spent["unit"], &spent["sum"], &spent["per_s"]), (&"EUR".into(), &12.5.into(), &12.5.into()));
    let values = [&json["ratios"][0]["value"], &json["ratios"][1]["value"]];
    assert_eq!(values, [&2.5.into(), &serde_json::Value::Null], "{json}");
}

#[test]
fn decoded_bodies_have_a_line_where_there_were_any_in_the_window() {
    let (_dir, mut run) = test_run::airline();
    let texts = |run: &Run, width| {
        let style = Style { width, colour: false, ascii: false };
        [summary(run, style), quick(run, style, Quick::default())]
    };
    let row = run.load.iter_mut().find(|row| !row.in_window).unwrap();
    (row.encoded_bytes, row.decoded_bytes) = (1 << 20, 1 << 21);
    for text in texts(&run, 80) {
        assert!(!text.contains("decoded"), "{text}");
    }
    let row = run.load.iter_mut().find(|row| row.in_window).unwrap();
    (row.encoded_bytes, row.decoded_bytes) = (2 << 10, 5 << 10);
    for text in texts(&run, 80) {
        let line = text.lines().find(|line| line.contains("decoded")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.join(" "), "bodies 5 KiB decoded of 2 KiB · 2.50 times as much", "{text}");
    }
    for text in texts(&run, 45) {
        let mut lines = text.lines().skip_while(|line| !line.contains("decoded")).map(str::trim);
        let two = [lines.next().unwrap(), lines.next().unwrap()];
        assert!(two[0].ends_with("5 KiB decoded of 2 KiB"), "{text}");
        assert_eq!(two[1], "2.50 times as much", "{text}");
    }
}

#[test]
fn bars_have_the_length_of_their_share() {
    assert_eq!(drawn(0, 10, BAR_COLUMNS, false), "");
    assert_eq!(length(&drawn(10, 10, BAR_COLUMNS, false)), BAR_COLUMNS);
    assert_eq!(drawn(1, 1_000_000, BAR_COLUMNS, false), "▏");
    assert_eq!(drawn(5, 10, BAR_COLUMNS, true), "#".repeat(BAR_COLUMNS / 2));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (_dir, measuring) = test_run::measuring();
    let mut large = sample();
    large.manifest.summary.steps[0].requests = 31_145_914;
    large.manifest.summary.steps[0].achieved_per_s = 103_809.4;
    let asked = Quick { percentiles: true, kept: false };
    for run in [large, measuring] {
        let all = [
            blocks::run_in_detail(&run).unwrap(),
            blocks::quick(&run, asked).unwrap(),
            blocks::quick(&run, Quick::default()).unwrap(),
        ];
        for (blocks, width) in all.iter().flat_map(|of| [0, 45, 60, 80, 100, 120, 500].map(|at| (of, at))) {
            let text = render(blocks, Style { width, ..PLAIN });
            let is_too_long = |line: &&str| length(line) > width.clamp(NARROWEST, WIDEST);
            // a path is there to be copied
            let found = text.lines().filter(|line| !line.starts_with("Run ")).find(is_too_long);
            assert_eq!(found, None, "{width}: {text}");
        }
    }
}

#[test]
fn of_a_url_it_is_said_which_loop_it_was() {
    let mut run = sample();
    run.manifest.load = "closed, 60 users".into();
    // whoever shows the run again says so, too
    run.manifest.summary.statuses = [("200".to_owned(), 98), ("503".to_owned(), 2)].into();
    for text in [summary(&run, PLAIN), crate::markdown::summary(&run), quick(&run, PLAIN, Quick::default())] {
        let words = text.replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("closed loop each user sends when the last answer has come"), "{text}");
        assert!(words.contains("status codes 200: 98 · 503: 2"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&crate::json::summary(&run).unwrap()).unwrap();
    let says = json["page"]["closed_loop"].as_str().unwrap();
    assert!(says.contains("times leave out the wait of users"), "{says}");
    assert_eq!(json["statuses"]["503"], 2);
    let closed = quick(&run, PLAIN, Quick { percentiles: true, kept: false });
    assert!(closed.contains("closed loop") && closed.contains("lock-step"), "{closed}");
    assert!(closed.contains("Percentiles") && closed.contains("--save"), "{closed}");
    run.manifest.load = "open, Poisson arrivals".into();
    let open = quick(&run, Style { ascii: true, ..PLAIN }, Quick::default());
    assert!(open.contains("open loop") && open.contains("Poisson arrivals") && open.is_ascii(), "{open}");
}
