use tidemark_record::Outcome;

use tidemark_drive::{Http2, Raised, Rpc};

use super::*;

fn plan(text: &str) -> Plan {
    tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap()
}

/// What is said of a run of nothing.
fn nothing() -> Summary {
    tidemark_record::summarize(&Totals::new(&[]), std::path::Path::new("x"))
}

#[test]
fn a_driver_that_was_held_up_is_a_bound_only_where_something_was_achieved() {
    let mut summary = nothing();
    summary.driver.limits = vec!["it had no core".into()];
    let told = bounds_only(&summary).unwrap();
    assert!(told.contains("nothing was answered well") && !told.contains("at least"), "{told}");
    summary.achieved_per_s = 10.0;
    let told = bounds_only(&summary).unwrap();
    assert!(told.ends_with("the system can do at least what was achieved; it had no core"), "{told}");
    summary.response_time_less_lag_us.p50 = Some(1_000);
    summary.response_time_us.p50 = Some(2_000);
    let told = bounds_only(&summary).unwrap();
    assert!(
        told.contains(
            "achieved, the median is 1ms to 2ms, without and with the load generator's own share; it had"
        ),
        "{told}"
    );
}

#[test]
fn a_server_without_tls_that_was_asked_for_it_is_told() {
    let mut target = target::target("postgres://127.0.0.1?sslmode=prefer", &Default::default()).unwrap();
    assert_eq!(in_clear(&target), None, "nobody has asked it yet");
    target.tls = None;
    assert!(in_clear(&target).unwrap().starts_with("without TLS"));
    for plain in ["postgres://127.0.0.1", "http://127.0.0.1"] {
        assert_eq!(in_clear(&target::target(plain, &Default::default()).unwrap()), None, "{plain}");
    }
}

#[test]
fn how_http_2_was_spoken_is_said() {
    let server = |most_streams| Http2 { most_streams };
    assert_eq!(
        spoken(server(usize::MAX), false, 1),
        "HTTP/2 by prior knowledge, one request at a time on each connection"
    );
    let text = spoken(server(100), true, 250);
    assert_eq!(
        text,
        "HTTP/2 agreed to by ALPN, up to 100 requests at once on each connection; 250 were wanted, but the \
         server takes no more"
    );
}

#[test]
fn how_calls_were_made_is_said() {
    let server = Rpc { path: "/rpc".into(), most_calls: 100 };
    assert_eq!(called(&server, 1), "calls over a WebSocket at /rpc, one call at a time on each connection");
    let text = called(&server, 250);
    assert_eq!(
        text,
        "calls over a WebSocket at /rpc, up to 100 calls at once on each connection; 250 were wanted, but the \
         server takes no more"
    );
}

#[test]
fn more_connections_than_asked_for_are_told_with_the_reason() {
    let users = raised((4, Raised::Users));
    assert!(users.starts_with("up to 4 connections") && users.contains("share of the users"), "{users}");
    let servers = raised((6, Raised::Servers(3)));
    assert!(servers.contains("equally many to each of the 3 servers"), "{servers}");
}

#[test]
fn messages_that_no_step_took_are_of_the_whole_run() {
    let plan = plan("sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n");
    let mut account = Account::begin(&RunOptions::default(), &plan, 1);
    let summary = nothing();
    account.drove(&DriveEnd::default(), &[(Counter::UnexpectedMessages, 3)].into(), &summary);
    let told = "3 messages came over WebSockets that no step took, over the whole run: tables count its measured window only";
    assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
}

#[test]
fn what_had_no_answer_at_the_end_counts_only_where_it_was_due_in_the_window() {
    let plan = plan("sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n");
    let notes = |measured: u64| {
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        let mut summary = nothing();
        summary.errors.extend((measured > 0).then(|| ("unfinished".to_owned(), measured)));
        account.drove(&DriveEnd::default(), &[(Counter::Unfinished, 25)].into(), &summary);
        account.notes.into_iter().filter(|note| note.contains("without an answer")).collect::<Vec<_>>()
    };
    let (all, none, some) = (notes(25), notes(0), notes(5));
    assert!(all.len() == 1 && all[0].starts_with("25 ") && all[0].ends_with("count as failed"), "{all:?}");
    assert!(none.len() == 1 && none[0].starts_with("25 ") && none[0].ends_with("in no figure"), "{none:?}");
    assert!(some.len() == 2 && some[0].starts_with("5 ") && some[1].starts_with("20 "), "{some:?}");
}

#[test]
fn that_cores_are_shared_is_a_note_only_where_the_driver_lacked_them() {
    let text = "system: {serve: airline}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    let plan = plan(text);
    let totals = Totals::new(&plan.labels);
    let manifest = |waited_share: f64| {
        let mut account = Account::begin(&RunOptions::default(), &plan, 1);
        account.system.command = vec!["airline".into()];
        let mut summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
        summary.driver.waited_share = Some(waited_share);
        account.manifest(&plan, &RunOptions::default(), summary, &totals)
    };
    let is_told = |all: &[String]| all.iter().any(|told| told.contains("shared the machine's cores"));
    let (calm, starved) = (manifest(0.01), manifest(0.2));
    assert!(is_told(&calm.system.spoken) && !is_told(&calm.notes), "{:?}", calm.notes);
    assert!(is_told(&starved.notes) && !is_told(&starved.system.spoken), "{:?}", starved.notes);
}

#[test]
fn bodies_that_were_not_sent_whole_and_requests_that_were_sent_again_are_told() {
    let plan = plan("sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n");
    let mut account = Account::begin(&RunOptions::default(), &plan, 1);
    let totals = Totals::new(&plan.labels);
    let summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
    let counters = [(Counter::UploadsCut, 3), (Counter::SentAgain, 2)].into();
    account.drove(&DriveEnd::default(), &counters, &summary);
    for told in [
        "3 answers came before the body",
        "2 resends of requests that were left untaken by a GOAWAY or REFUSED_STREAM",
    ] {
        assert!(account.notes.iter().any(|note| note.starts_with(told)), "{:?}", account.notes);
    }
    let manifest = account.manifest(&plan, &RunOptions::default(), summary, &totals);
    assert_eq!(manifest.uploads_cut, Some(3));
}

#[test]
fn a_stream_that_is_left_is_no_request() {
    let text = "sessions: {a: {steps: [{sse connect: /s, label: S}, {think: 1s}, {sse close: now, label: L}]}}\nload: {users: 1, hold: 1s}\n";
    let plan = plan(text);
    assert_eq!(tidemark_verdict::labels_of_failures(&plan), ["L"].into());
    let mut totals = Totals::new(&plan.labels);
    totals.add_interval(&tidemark_record::ThreadInterval {
        series: vec![tidemark_verdict::test_plan::series(0, Outcome::Ok, 50, 1)],
        ..tidemark_record::ThreadInterval::empty(0, 0, 1_000_000)
    });
    assert!(totals.all.ended > 0);
    assert_eq!(never_requested(&plan, &totals), None);
}

#[test]
fn service_times_of_what_was_answered_behind_the_window_are_told_to_be_such() {
    let interval = |in_window, second: u64| tidemark_record::ThreadInterval {
        in_window,
        series: vec![tidemark_verdict::test_plan::series(0, Outcome::Ok, 50, 7)],
        ..tidemark_record::ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000)
    };
    let mut totals = Totals::new(&["A".into()]);
    assert_eq!(answered_behind(&totals), None);
    totals.add_interval(&interval(false, 1));
    assert!(answered_behind(&totals).unwrap().contains("are of the 7 requests"));
    totals.add_interval(&interval(true, 0));
    assert_eq!(answered_behind(&totals), None);
}

#[test]
fn events_are_counted() {
    let plan = plan("sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n");
    let mut account = Account::begin(&RunOptions::default(), &plan, 1);
    let summary = nothing();
    let counters = Counters::from([
        (Counter::EventStreams, 3),
        (Counter::EventsReceived, 9),
        (Counter::EventsTaken, 2),
        (Counter::EventsTooLarge, 1),
        (Counter::EventStreamsEnded, 5),
        (Counter::EventsDropped, 4),
    ]);
    let silent = Counters::from([(Counter::EventStreams, 3)]);
    let end = DriveEnd::default();
    for counters in [&counters, &silent, &Counters::default()] {
        account.drove(&end, counters, &summary);
    }
    assert_eq!(account.notes.iter().filter(|note| note.contains("over 3 event streams")).count(), 1);
    let told = "0 events came over 3 event streams, over the whole run: nothing shows that they work";
    assert_eq!(warnings(&end, &silent), [told]);
    for told in [
        "9 events came over 3 event streams, over the whole run; steps waited for 2 of them",
        "1 events were larger than 1 MiB, or than `limits: body` where that is less, and were passed over",
        "4 events were dropped by the load generator before the step that waited: at most 64 are held for a stream",
        "5 event streams were ended by the server, in order, before the session was over, and no step waited for that or \
         followed; no figure has them",
    ] {
        assert!(account.notes.iter().any(|note| note == told), "{:?}", account.notes);
    }
}

#[test]
fn waits_for_a_core_are_noted_and_so_is_that_nobody_counts_them() {
    let note = |measured_s, waited_share| {
        let mut summary = nothing();
        (summary.measured_s, summary.driver.waited_share) = (measured_s, waited_share);
        waited(&summary)
    };
    assert_eq!(note(1.0, Some(0.05)), None);
    assert!(note(1.0, Some(0.06)).unwrap().contains("no core for 6%"));
    assert!(note(1.0, None).unwrap().contains("no schedstat"));
    assert_eq!(note(0.0, None), None, "nothing was measured, which is said");
}

#[test]
fn the_drivers_own_share_is_noted_where_it_is_more_than_a_tenth_of_the_median() {
    let plan = tidemark_verdict::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
    let note = |lag_us, read_us: Option<u64>, timestamps, spin| {
        let mut summary = nothing();
        (summary.response_time_us.p50, summary.driver.lag_us.p50) = (Some(1_000), Some(lag_us));
        summary.driver.read_lag_us =
            read_us.map(|p50| tidemark_record::summary::Latency { p50: Some(p50), ..Default::default() });
        let options = RunOptions { timestamps, spin, ..RunOptions::default() };
        Account::begin(&options, &plan, 1).own_share(&summary)
    };
    assert_eq!(note(40, Some(60), Timestamps::Read, false), None);
    assert_eq!(
        note(41, Some(60), Timestamps::Read, false).unwrap(),
        "about 101µs of the median response time of 1ms is the load generator's own: requests left 41µs after they were due, \
         and answers were read 60µs after they came; --timestamps kernel leaves the latter out; --spin lessens it where each driving \
         thread has a core of its own"
    );
    assert_eq!(note(41, Some(60), Timestamps::Kernel, false), None);
    let text = note(150, None, Timestamps::Read, true).unwrap();
    assert!(text.contains("150µs") && !text.contains("--"), "{text}");
}

#[test]
fn fewer_connections_than_were_asked_for_are_noted() {
    let note = |used, ahead| connections_used(&[(Counter::ConnectionsUsed, used)].into(), ahead);
    assert_eq!((note(0, None), note(9, None)), (None, None));
    let counters = [(Counter::ConnectionsUsed, 1), (Counter::Connects, 300)].into();
    let told = connections_used(&counters, None).unwrap();
    assert!(told.starts_with("300 connections were made while the load was on, 1 at most at once"), "{told}");
    assert_eq!(note(400, Some(400)), None, "as it was asked for");
    assert!(note(0, Some(400)).unwrap().starts_with("none of the 400 connections"));
    assert!(note(100, Some(400)).unwrap().starts_with("100 of the 400 connections"));
}

#[test]
fn what_was_dropped_in_the_warm_up_is_noted() {
    let plan = tidemark_verdict::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
    let notes = |dropped, measured_dropped| {
        let mut totals = Totals::new(&[]);
        let mut interval = tidemark_record::ThreadInterval::empty(0, 0, 1_000_000);
        (interval.dropped, interval.measured_dropped) = (dropped, measured_dropped);
        totals.add_interval(&interval);
        let summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
        let options = RunOptions::default();
        Account::begin(&options, &plan, 1).manifest(&plan, &options, summary, &totals).notes
    };
    let about = |notes: Vec<String>| notes.into_iter().find(|note| note.contains("were dropped"));
    assert!(about(notes(7, 3)).unwrap().starts_with("4 requests that were due outside"));
    assert_eq!(about(notes(3, 3)), None);
}

#[test]
fn redirects_are_noted_whether_they_are_followed_or_not() {
    let end = DriveEnd {
        hops: vec![("Login".into(), 1), ("Shop".into(), 20)],
        unfollowed: vec![("Home".into(), 6)],
        ..DriveEnd::default()
    };
    let notes = redirected(&end);
    assert!(notes[0].starts_with("Login: 1 redirect was followed, as part"), "{notes:?}");
    assert!(notes[1].starts_with("Shop: 20 redirects were followed, as part"), "{notes:?}");
    let told = warnings(&end, &Counters::default());
    assert!(told[0].starts_with("Home: 6 answers said only where else to ask (3xx)"), "{told:?}");
    assert_eq!((notes.len(), told.len()), (2, 1));
    assert_eq!(redirected(&DriveEnd::default()), [""; 0]);
}

#[test]
fn answers_of_stores_that_are_mostly_empty_are_noted() {
    let plan = |step: &str, url: &str| {
        let text = format!(
            "system: {{url: '{url}'}}\nsessions: {{s: {{steps: [{step}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        self::plan(&text)
    };
    let redis = plan("{redis: [GET, k]}", "redis://h");
    let mut totals = Totals::new(&redis.labels);
    totals.statuses = [(200, 5), (204, 5)].into();
    totals.all.measured[tidemark_record::Outcome::Ok as usize] = 10;
    assert_eq!(missed(&redis, &totals), None);
    totals.statuses = [(200, 5), (204, 6)].into();
    totals.all.measured[tidemark_record::Outcome::Ok as usize] = 11;
    assert!(missed(&redis, &totals).unwrap().starts_with("6 of 11 answers were empty"));
    assert_eq!(missed(&plan("{GET: /}", "http://h"), &totals), None, "as others answer to a PUT");
    totals.all.measured[tidemark_record::Outcome::Ok as usize] = 5;
    assert_eq!(missed(&redis, &totals), None, "a check says that they are wrong");
}

#[test]
fn a_label_that_was_never_requested_is_noted() {
    let text = "system: {url: 'http://h'}\nsessions: {s: {steps: [{GET: /a, label: A}, {GET: /b, label: B}]}}\n\
                load: {users: 1, hold: 1s}\n";
    let plan = plan(text);
    let mut totals = Totals::new(&plan.labels);
    assert_eq!(never_requested(&plan, &totals), None, "nothing was, which is said");
    let mut warm = tidemark_record::ThreadInterval::empty(0, 0, 1_000_000);
    let series = |label| tidemark_record::Series {
        measured: false,
        ..tidemark_verdict::test_plan::series(label, Outcome::Status, 5, 1)
    };
    warm.series = vec![series(0)];
    totals.add_interval(&warm);
    assert!(never_requested(&plan, &totals).unwrap().starts_with("`B` was never requested"));
    warm.series = vec![series(1)];
    totals.add_interval(&warm);
    assert_eq!(never_requested(&plan, &totals), None);
}

#[test]
fn a_driver_that_stood_still_says_so() {
    let mut summary = nothing();
    assert_eq!(stood_still(&summary), None);
    summary.driver.absent_s = 0.3;
    assert!(stood_still(&summary).unwrap().starts_with("the load generator itself was suspended for 300ms"));
}

#[test]
fn a_disk_that_changed_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let probe = SyncProbe::measure(folder.path()).unwrap();
    let plan = tidemark_verdict::test_plan::plan(tidemark_scenario::plan::LoadModel::Closed);
    let mut account = Account::begin(&RunOptions::default(), &plan, 1);
    account.synced(Some(probe.clone()), Some(probe.clone()));
    assert!(account.notes.is_empty());
    assert_eq!(account.system.sync_latency.as_ref().unwrap().count, 2 * probe.latency().count);
    account.synced(Some(probe.clone()), None);
    assert_eq!(account.system.sync_latency.as_ref().unwrap().count, probe.latency().count);
    account.secured(None, &Counters::default());
    assert!(account.notes.is_empty());
    account.stopped("exit status 0");
    assert!(account.notes.is_empty());
    account.stopped("killed by signal 9");
    assert_eq!(account.notes.len(), 1);
    let handshakes = [(Counter::FullHandshakes, 2), (Counter::ResumedHandshakes, 3)].into();
    account.secured(Some("TLS 1.3, A"), &handshakes);
    assert_eq!(account.system.spoken, ["TLS 1.3, A: 2 full handshakes, 3 resumed"]);
    assert_eq!(account.notes.len(), 1);
}

#[test]
fn settings_are_written_down_as_they_are_in_the_run_and_without_secrets() {
    let text = r#"
settings: {ms: 2, api_key: not-for-everyone, id: x, long: x}
sessions:
  s: {steps: [{GET: '/${ms}/${id}/${long}?key=${api_key}'}]}
load: {users: 1, hold: 1s}
"#;
    let long = "long".repeat(SETTING_MAX);
    let set = [("ms", "20"), ("id", "of-not-for-everyone"), ("long", long.as_str())];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let plan = tidemark_scenario::load_text("x.yaml", text, std::path::Path::new("."), &set).unwrap();
    let written = settings(&plan);
    assert_eq!((written["ms"].as_str(), written["api_key"].as_str()), ("20", "***"));
    assert_eq!(written["id"], "of-***");
    assert_eq!(written["long"], format!("{}… ({})", &long[..SETTING_BEGIN], digest(&long)));
}
