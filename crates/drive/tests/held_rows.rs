//! Rows of a feeder that belong to one session at a time: whoever is held up keeps its own, whoever ends gives it back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Next, Server, Sum, answer, finish, load, options};
use tidemark_drive::{run_once, start};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::{Plan, Shared};

/// Sessions that take a number and send it twice.
fn plan(numbers: u64, more: &str) -> Plan {
    let text = format!(
        "feeders: {{n: {{from: 1, to: {numbers}, held: true}}}}\nsessions:\n  a:\n    steps:\n      - take: n\n      \
         - GET: /one/${{n}}\n      - GET: /two/${{n}}\n{more}\n"
    );
    load(&text)
}

/// The sum of a drive, and what it shared.
fn run(plan: Plan, server: &Server, threads: usize) -> (Sum, Arc<Shared>) {
    let shared = Arc::new(Shared::new(plan.counters, plan.feeders.clone()));
    let drive = start(Arc::new(plan), shared.clone(), options(server.address, threads)).unwrap();
    (finish(drive), shared)
}

/// How many rows nobody holds; they are held from now on.
fn free(shared: &Shared) -> usize {
    std::iter::from_fn(|| shared.hold_row(0)).count()
}

/// What the server was asked for, in order.
#[derive(Default)]
struct Asked(Mutex<Vec<String>>);

impl Asked {
    fn see(&self, target: &str) -> usize {
        let mut asked = self.0.lock().unwrap();
        asked.push(target.to_owned());
        asked.iter().filter(|other| *other == target).count()
    }

    fn times(&self, target: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|other| *other == target).count()
    }
}

#[test]
fn the_row_of_a_session_that_is_held_up_is_given_to_no_other() {
    let asked = Arc::new(Asked::default());
    let seen = asked.clone();
    // number 1 is not answered before others have gone round often
    let server = Server::start(move |request, stream| {
        seen.see(request.target());
        while request.target() == "/one/1" && seen.times("/two/3") < 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        answer(stream, "200 OK", "", "")
    });
    let more = "load: {users: 2, hold: 60s}\nlimits: {sessions: 80}\ndefaults: {timeout: 50s}";
    let (sum, shared) = run(plan(3, more), &server, 1);
    assert_eq!((sum.outcome(Outcome::Ok), sum.counted(Counter::RowsNotAlone)), (160, 0));
    let asked = asked.0.lock().unwrap();
    let begun = asked.iter().position(|target| target == "/one/1").unwrap();
    let went_on = asked.iter().position(|target| target == "/two/1").unwrap();
    let meanwhile: BTreeSet<&str> = asked[begun + 1..went_on].iter().map(String::as_str).collect();
    assert!(!meanwhile.contains("/one/1"), "{meanwhile:?}");
    assert!(meanwhile.contains("/one/2") && meanwhile.contains("/one/3"), "others go round: {meanwhile:?}");
    assert_eq!(free(&shared), 3);
}

#[test]
fn however_a_session_ends_its_row_is_free_again() {
    let server = Server::start(|request, stream| match request.index % 4 {
        0 => answer(stream, "500 Oops", "", ""),
        1 => Next::Reset,
        2 => Next::Close,
        _ => answer(stream, "200 OK", "", ""),
    });
    let more = "load: {users: 8, hold: 60s}\nlimits: {sessions: 200}";
    let (sum, shared) = run(plan(8, more), &server, 2);
    assert_eq!((sum.ended(), sum.counted(Counter::RowsNotAlone)), (400, 0));
    assert_eq!(free(&shared), 8);
}

#[test]
fn what_is_cut_off_at_the_end_holds_nothing() {
    let server = Server::silent();
    let more = "load: {users: 4, hold: 300ms}\nlimits: {drain: 100ms}\ndefaults: {timeout: 50s}";
    let (sum, shared) = run(plan(5, more), &server, 2);
    assert_eq!((sum.counted(Counter::Unfinished), free(&shared)), (4, 5));
}

#[test]
fn what_fails_before_the_load_holds_nothing() {
    let server = Server::start(|_, stream| answer(stream, "500 Oops", "", ""));
    let plan = plan(2, "load: {users: 1, hold: 1s}");
    let shared = Shared::new(plan.counters, plan.feeders.clone());
    assert!(run_once(&plan, &plan.sessions[0], &shared, &options(server.address, 1)).is_err());
    assert_eq!(free(&shared), 2);
}

#[test]
fn where_there_are_more_sessions_than_rows_it_is_counted() {
    let server = Server::plain(Duration::from_millis(1));
    let more = "load: {users: 6, hold: 60s}\nlimits: {sessions: 60}";
    let (sum, shared) = run(plan(2, more), &server, 2);
    assert_eq!(sum.outcome(Outcome::Ok), 120, "nobody waits for a row");
    // of the first six at least four find none
    assert!((4..=60).contains(&sum.counted(Counter::RowsNotAlone)), "{}", sum.counted(Counter::RowsNotAlone));
    assert_eq!(free(&shared), 2);
}
