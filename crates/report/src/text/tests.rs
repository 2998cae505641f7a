//! What the report looks like.

use std::path::PathBuf;

use tidemark_record::summary::Ledger;

use super::*;
use crate::test_run;

const PLAIN: Style = Style { width: 80, colour: false, ascii: false };

/// The sample run at a place that is the same everywhere.
fn sample() -> Run {
    let (_dir, mut run) = test_run::airline();
    run.dir = PathBuf::from("runs/20260102-030405-airline");
    run
}

#[test]
fn eighty_columns() {
    insta::assert_snapshot!(summary(&sample(), PLAIN), @r#"
    FAIL  errors < 0.01% missed: 5.88%
          not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over
          the 3 s measured

      scenario       airline · closed, 100 users · measured for 3s
      system         airline at http://127.0.0.1:40123 · on cores 0,1
      durability     synced · disk syncs in 1.23ms, 99th 4.56ms, longest 20.1ms
      machine        AMD EPYC 7B13 · 4 cores · 16 GiB · Linux 6.1.0
                     0.02 cores taken by the hypervisor

    Throughput
      achieved       62.3/s · 189 requests in 3s
      offered        100/s · 4 arrivals dropped
      errors         11 (5.82%)

    Latency
                        mean   median      p90     p99   p99.9     max
      response time   13.3ms    760µs   2.31ms   1.05s   1.05s   1.05s
      service time    9.98ms    570µs   1.73ms   788ms   788ms   788ms

    By label
                         count share per s    p50    p90    p99  p99.9    max errors
      Login                 31 16.4%  10.3 2.31ms 4.70ms 4.70ms 4.70ms 4.70ms      3
      Query Flight         158 83.6%  52.0  760µs 1.90ms  1.05s  1.05s  1.05s      8
      View Profile Info…     0    0%     0      -      -      -      -      -      0

    Errors
      status            3
           2.35s  Login: 503 Service Unavailable: {"reason":"the store is not there…
      timeout           8

    CPU and memory
               CPU time   cores used     memory
      system      3.75s         1.25    212 MiB
      driver      1.50s         0.50   29.6 MiB
      49.9 requests for each CPU-second of the system

    Driver
      threads        2 threads · on cores 2,3
                     on a CPU for 25.0%, 50.0% of the time
      cores          waited for one for 4.00% of the time
                     31.5µs each time that one woke
      left late      median 12µs, p99 13µs, longest 13µs · none by 1ms or more
                     10µs to 100µs: 100%

    Objectives
      ✓ p99 < 2s         1.05s
      ✗ errors < 0.01%   5.88%

    Notes
      ! system and driver shared the machine's cores

    Run              runs/20260102-030405-airline
    "#);
}

#[test]
fn a_hundred_and_twenty_columns() {
    insta::assert_snapshot!(summary(&sample(), Style { width: 120, ..PLAIN }), @r#"
    FAIL  errors < 0.01% missed: 5.88%
          not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over the 3 s measured

      scenario       airline · closed, 100 users · measured for 3s
      system         airline at http://127.0.0.1:40123 · on cores 0,1
      durability     synced · disk syncs in 1.23ms, 99th 4.56ms, longest 20.1ms
      machine        AMD EPYC 7B13 · 4 cores · 16 GiB · Linux 6.1.0 · 0.02 cores taken by the hypervisor

    Throughput
      achieved       62.3/s · 189 requests in 3s
      offered        100/s · 4 arrivals dropped
      errors         11 (5.82%)

    Latency
                        mean   median      p90     p99   p99.9     max
      response time   13.3ms    760µs   2.31ms   1.05s   1.05s   1.05s
      service time    9.98ms    570µs   1.73ms   788ms   788ms   788ms

    By label
                                 count   share   per s      p50      p90      p99    p99.9      max   errors
      Login                         31   16.4%    10.3   2.31ms   4.70ms   4.70ms   4.70ms   4.70ms        3
      Query Flight                 158   83.6%    52.0    760µs   1.90ms    1.05s    1.05s    1.05s        8
      View Profile Information       0      0%       0        -        -        -        -        -        0

    Errors
      status            3
           2.35s  Login: 503 Service Unavailable: {"reason":"the store is not there yet, try again in a moment"}
      timeout           8

    CPU and memory
               CPU time   cores used     memory
      system      3.75s         1.25    212 MiB
      driver      1.50s         0.50   29.6 MiB
      49.9 requests for each CPU-second of the system

    Driver
      threads        2 threads · on cores 2,3 · on a CPU for 25.0%, 50.0% of the time
      cores          waited for one for 4.00% of the time · 31.5µs each time that one woke
      left late      median 12µs, p99 13µs, longest 13µs · none by 1ms or more
                     10µs to 100µs: 100%

    Objectives
      ✓ p99 < 2s         1.05s
      ✗ errors < 0.01%   5.88%

    Notes
      ! system and driver shared the machine's cores

    Run              runs/20260102-030405-airline
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
    manifest.error_examples.clear();
    manifest.objectives.truncate(1);
    manifest.notes.clear();
    manifest.summary.ledger = Some(Ledger {
        acknowledged: 31_145_914,
        found: 31_145_914,
        unacknowledged_found: 3,
        ..Ledger::default()
    });
    insta::assert_snapshot!(summary(&run, PLAIN), @r"
    PASS  the objective was met
          not steady: the rate fell from about 90/s to 8/s, by 1640/s a minute, over
          the 3 s measured

      scenario       airline · closed, 100 users · measured for 3s
      system         airline at http://127.0.0.1:40123 · on cores 0,1
      durability     synced · disk syncs in 1.23ms, 99th 4.56ms, longest 20.1ms
      machine        AMD EPYC 7B13 · 4 cores · 16 GiB · Linux 6.1.0
                     0.02 cores taken by the hypervisor

    Throughput
      achieved       62.3/s · 189 requests in 3s
      offered        100/s · none dropped
      errors         none

    Latency
                        mean   median      p90     p99   p99.9     max
      response time   13.3ms    760µs   2.31ms   1.05s   1.05s   1.05s
      service time    9.98ms    570µs   1.73ms   788ms   788ms   788ms

    By label
             count  share  per s     p50     p90     p99   p99.9     max  errors
      Login     31  16.4%   10.3  2.31ms  4.70ms  4.70ms  4.70ms  4.70ms       0

    CPU and memory
               CPU time   cores used     memory
      system      3.75s         1.25    212 MiB
      driver      1.50s         0.50   29.6 MiB
      49.9 requests for each CPU-second of the system

    Driver
      threads        2 threads · on cores 2,3
                     on a CPU for 25.0%, 50.0% of the time
      cores          waited for one for 4.00% of the time
                     31.5µs each time that one woke
      left late      median 12µs, p99 13µs, longest 13µs · none by 1ms or more
                     10µs to 100µs: 100%

    Objectives
      ✓ p99 < 2s   1.05s

    Nothing lost?
      ✓ 0 lost of 31,145,914 acknowledged · 31,145,914 found
        3 found but never acknowledged

    Run              runs/20260102-030405-airline
    ");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut run = sample();
    run.manifest.summary.steps[0].requests = 31_145_914;
    run.manifest.summary.steps[0].achieved_per_s = 103_809.4;
    for width in [0, 60, 80, 100, 120, 500] {
        for line in summary(&run, Style { width, ..PLAIN }).lines() {
            assert!(length(line) <= width.clamp(NARROWEST, WIDEST), "{width}: {line}");
        }
    }
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
    run.manifest.notes = vec!["c\u{8}d".into()];
    run.manifest.summary.verdict.reasons = vec!["e\u{1b}f".into()];
    let text = summary(&run, PLAIN);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}
