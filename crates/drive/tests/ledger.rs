//! The ledger as the driver keeps it: what was sent and what was acknowledged, against stores that do wrong in known
//! ways.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Next, Nobody, Request, Server, Sum, answer, begin, finish, options, with_steps};
use tidemark_drive::{DriveOptions, Http2, Protocol, forms, run_once};
use tidemark_record::ledger::{Entry, Findings, Forms, Ledger, LedgerWriter, Part, Reading, Search};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::{Plan, Shared};
use tidemark_truth::{Http2Behaviour, Http2Server};

/// The seed of the support's options.
const SEED: u64 = 7;
const LEDGER: &str =
    "ledger: {content: \"note ${random(0, 999)} |${entry}|${check}| at ${now()}\", as: note}";

fn plan(steps: &str, sessions: u64, load: &str, limits: &str) -> Plan {
    with_steps(steps, &format!("load: {{{load}, hold: 60s}}\nlimits: {{sessions: {sessions}, {limits}}}"))
}

fn post(more: &str) -> String {
    format!("- POST: /notes\n  label: Note\n  {LEDGER}\n  body: ${{note}}\n  {more}")
}

/// The parts as a run directory keeps them, read back.
fn ledger<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Ledger {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(dir.path()).unwrap();
    parts.into_iter().for_each(|part| writer.add(part, 1).unwrap());
    Ledger::read(dir.path()).unwrap()
}

fn ledger_of(sum: &Sum) -> Ledger {
    ledger(sum.intervals.iter().map(|interval| &interval.ledger))
}

/// What a store holds, and which writes it was sent at all.
#[derive(Default)]
struct Store {
    held: Mutex<Vec<Vec<u8>>>,
    seen: Mutex<Vec<Entry>>,
}

impl Store {
    /// The entry of a content of this test, read without the library.
    fn see(&self, content: &[u8]) -> Entry {
        let text = std::str::from_utf8(content).unwrap();
        let entry: Entry = text.split('|').nth(1).unwrap().parse().unwrap();
        self.seen.lock().unwrap().push(entry);
        entry
    }

    fn hold(&self, content: &[u8]) {
        self.held.lock().unwrap().push(content.to_vec());
    }

    fn findings(&self, plan: &Plan, ledger: &Ledger) -> Findings {
        let forms = Forms::new(SEED, &forms(plan)).unwrap();
        let (mut search, mut spare) = (Search::new(ledger), Vec::new());
        for content in self.held.lock().unwrap().iter() {
            match forms.reading(content, &mut spare) {
                Reading::Whole(entry) => search.found(entry),
                Reading::Different(entry) => search.found_different(entry),
                Reading::Foreign => search.found_foreign(),
            }
        }
        search.findings()
    }

    /// Of the writes that it was sent, those whose number leaves this rest.
    fn with_rest(&self, rest: u64) -> Vec<Entry> {
        let seen: BTreeSet<Entry> = self.seen.lock().unwrap().iter().copied().collect();
        seen.into_iter().filter(|entry| entry.number % DEEDS == rest).collect()
    }
}

const LOSE: u64 = 0;
const DOUBLE: u64 = 1;
const CHANGE: u64 = 2;
const REFUSE_AND_KEEP: u64 = 3;
const REFUSE: u64 = 4;
const SAY_NO_AND_KEEP: u64 = 5;
const KEEP_AND_RESET: u64 = 6;
const HANG_UP: u64 = 7;
const DEEDS: u64 = 11;

fn do_wrong(store: &Store, request: &Request, stream: &mut std::net::TcpStream) -> Next {
    let content = &request.body;
    match store.see(content).number % DEEDS {
        LOSE => answer(stream, "201 Created", "", "OK"),
        DOUBLE => {
            store.hold(content);
            store.hold(content);
            answer(stream, "201 Created", "", "OK")
        }
        CHANGE => {
            let mut changed = content.clone();
            changed[2] ^= 1;
            store.hold(&changed);
            answer(stream, "201 Created", "", "OK")
        }
        REFUSE_AND_KEEP => {
            store.hold(content);
            answer(stream, "503 Service Unavailable", "", "")
        }
        REFUSE => answer(stream, "503 Service Unavailable", "", ""),
        SAY_NO_AND_KEEP => {
            store.hold(content);
            answer(stream, "201 Created", "", "no")
        }
        KEEP_AND_RESET => {
            store.hold(content);
            Next::Reset
        }
        HANG_UP => Next::Close,
        _ => {
            store.hold(content);
            answer(stream, "201 Created", "", "OK")
        }
    }
}

/// What a store does wrong on purpose is just what is found.
#[test]
fn findings_are_what_the_store_did() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| do_wrong(&held, request, stream));
    let plan = plan(&post("check: {status: 201, body: OK}"), 400, "users: 8", "drain: 10s");
    let sum = finish(begin(plan.clone(), options(server.address, 2)));
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged()), (400, sum.outcome(Outcome::Ok)));
    let findings = store.findings(&plan, &ledger);
    let first = |rest| store.with_rest(rest).into_iter().take(10).collect::<Vec<_>>();
    let count = |rest| store.with_rest(rest).len() as u64;
    let mut unacknowledged: Vec<Entry> =
        [REFUSE_AND_KEEP, SAY_NO_AND_KEEP, KEEP_AND_RESET].map(|rest| store.with_rest(rest)).concat();
    unacknowledged.sort_unstable();
    assert!(count(LOSE) > 20);
    // what was changed is not what was acknowledged
    let mut gone = [LOSE, CHANGE].map(|rest| store.with_rest(rest)).concat();
    gone.sort_unstable();
    assert_eq!((findings.lost, findings.changed), (gone.len() as u64, count(CHANGE)));
    assert_eq!(findings.lost_examples, gone[..10]);
    assert_eq!(findings.found, ledger.acknowledged() - findings.lost);
    assert_eq!(findings.duplicated, count(DOUBLE));
    assert_eq!((findings.different, &findings.different_examples), (count(CHANGE), &first(CHANGE)));
    assert_eq!(findings.unacknowledged_found, unacknowledged.len() as u64);
    assert_eq!(findings.unacknowledged_examples, unacknowledged[..10]);
    assert_eq!(findings.foreign, 0);
    let failed: u64 =
        [REFUSE_AND_KEEP, REFUSE, SAY_NO_AND_KEEP, KEEP_AND_RESET, HANG_UP].map(count).iter().sum();
    assert_eq!(ledger.acknowledged(), 400 - failed);
}

#[test]
fn pipelined_writes_keep_their_own_entries() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| {
        let entry = held.see(&request.body);
        if entry.number % 3 != 0 {
            held.hold(&request.body);
        }
        answer(stream, if entry.number % 5 == 0 { "503 No" } else { "200 OK" }, "", "")
    });
    let plan = plan(&post("timeout: 20s"), 600, "users: 32", "connections: 2, pipeline: 16");
    let sum = finish(begin(plan.clone(), options(server.address, 1)));
    let ledger = ledger_of(&sum);
    assert_eq!(ledger.sent(), 600);
    let (refused, lost) = ((0..600).filter(|n| n % 5 == 0), (0..600).filter(|n| n % 3 == 0 && n % 5 != 0));
    assert_eq!(ledger.acknowledged(), 600 - refused.count() as u64);
    let findings = store.findings(&plan, &ledger);
    assert_eq!((findings.lost, findings.duplicated, findings.different), (lost.count() as u64, 0, 0));
}

fn http2(address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: usize::MAX });
    options
}

#[test]
fn over_http2_the_answer_of_each_stream_acknowledges() {
    let server = Http2Server::start(Http2Behaviour::default()).unwrap();
    let steps = format!(
        "- POST: /echo\n  label: Echo\n  {LEDGER}\n  body: ${{note}}\n  check: {{body: {{equals: \"${{note}}\"}}}}\n\
         - POST: /status/503\n  label: Refused\n  {LEDGER}\n  body: ${{note}}"
    );
    let plan = plan(&steps, 200, "users: 10", "connections: 2, streams: 5");
    let sum = finish(begin(plan.clone(), http2(server.address())));
    server.stop().unwrap();
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged()), (400, 200), "{:?}", sum.examples());
    assert_eq!(forms(&plan).len(), 2);
}

/// What is answered too late, or never, or not before the drain is over, may be there, but nobody promised it.
#[test]
fn without_an_answer_in_time_nothing_is_acknowledged() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| {
        held.see(&request.body);
        held.hold(&request.body);
        std::thread::sleep(Duration::from_secs(1));
        answer(stream, "200 OK", "", "OK")
    });
    let late = plan(&post("timeout: 300ms"), 6, "users: 3", "drain: 1s");
    let sum = finish(begin(late.clone(), options(server.address, 1)));
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged(), sum.outcome(Outcome::Timeout)), (6, 0, 6));
    // the server may read the last of them later
    let ended = Instant::now();
    while store.held.lock().unwrap().len() < 6 && ended.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(store.findings(&late, &ledger).unacknowledged_found, 6);

    let cut_off = plan(&post("timeout: 60s"), 1_000, "users: 4", "drain: 10ms");
    let drive = begin(cut_off, options(server.address, 1));
    while store.seen.lock().unwrap().len() < 10 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drive.stop();
    let sum = finish(drive);
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged()), (sum.ended(), sum.outcome(Outcome::Ok)));
}

/// An abort leaves what was under way without an end, and so unacknowledged.
#[test]
fn what_an_abort_leaves_is_sent_and_not_acknowledged() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| match held.see(&request.body).number {
        0..10 => answer(stream, "200 OK", "", "OK"),
        _ => Next::Keep,
    });
    let drive =
        begin(plan(&post("timeout: 60s"), 1_000, "users: 4", "drain: 10s"), options(server.address, 1));
    while store.seen.lock().unwrap().len() < 14 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drive.abort();
    let sum = finish(drive);
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged(), sum.counted(Counter::Unfinished)), (14, 10, 4));
}

/// A connection that the server closed meanwhile: the write is sent again, as the same.
#[test]
fn what_is_sent_again_is_the_same_write() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| {
        held.see(&request.body);
        held.hold(&request.body);
        // It does not say so, and some requests will be on their way to a closed connection.
        answer(stream, "200 OK", "", "OK");
        Next::Close
    });
    let steps = format!("{}\n- think: 2ms\n{}", post("timeout: 20s"), post("timeout: 20s"));
    let plan = plan(&steps, 100, "users: 4", "drain: 10s");
    let sum = finish(begin(plan.clone(), options(server.address, 1)));
    let ledger = ledger_of(&sum);
    assert_eq!((ledger.sent(), ledger.acknowledged()), (200, sum.outcome(Outcome::Ok)));
    let findings = store.findings(&plan, &ledger);
    assert_eq!((findings.lost, findings.duplicated, findings.different, findings.foreign), (0, 0, 0, 0));
}

/// Where nothing can be connected to, nothing was sent.
#[test]
fn what_never_left_is_not_entered() {
    let nobody = Nobody::taken();
    let sum =
        finish(begin(plan(&post("timeout: 1s"), 5, "users: 1", "drain: 1s"), options(nobody.address(), 1)));
    assert_eq!((sum.outcome(Outcome::Connect), ledger_of(&sum).sent()), (5, 0));
}

#[test]
fn what_prepare_enters_is_handed_back() {
    let store = Arc::new(Store::default());
    let held = store.clone();
    let server = Server::start(move |request, stream| {
        held.see(&request.body);
        held.hold(&request.body);
        answer(stream, "200 OK", "", "OK")
    });
    let steps = format!("- repeat: 20\n  steps:\n    {}", post("timeout: 20s").replace('\n', "\n    "));
    let plan = plan(&steps, 1, "users: 1", "drain: 1s");
    let shared = Shared::new(plan.counters, plan.feeders.clone());
    let part = run_once(&plan, &plan.sessions[0], &shared, &options(server.address, 1)).unwrap();
    let ledger = ledger([&part]);
    let findings = store.findings(&plan, &ledger);
    assert_eq!((findings.sent, findings.acknowledged, findings.found, findings.lost), (20, 20, 20, 0));
    assert!(ledger.acknowledged_entries().all(|entry| entry.thread == tidemark_drive::ONCE_THREAD));
}
