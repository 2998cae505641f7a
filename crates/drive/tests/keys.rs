//! Numbers of records: inserted one after the other, read only where they are, and a store that lies is found out.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::records::{self, Written, newest};
use crate::support::websocket::listen;
use crate::support::{self, Sum, load, options};
use tidemark_drive::{Protocol, Redis, start};
use tidemark_record::Outcome;
use tidemark_scenario::{Plan, Shared};

fn plan(steps: &str) -> Plan {
    let text = format!(
        "system: {{url: redis://127.0.0.1}}\nkeys: {{records: 100000}}\nsessions:\n  a:\n    steps:\n{steps}\
         load: {{users: 8, hold: 60s}}\nlimits: {{connections: 2, pipeline: 4, sessions: 400}}\n"
    );
    load(&text)
}

fn drive(
    plan: &Plan,
    told: impl Fn(&str, &Written) -> Option<String> + Send + Sync + 'static,
) -> (Sum, Shared) {
    let mut options = options(records::server(|| {}, told), 2);
    options.targets[0].protocol = Protocol::Redis(Redis::default());
    let shared = std::sync::Arc::new(Shared::of(plan));
    let sum = support::finish(start(plan.clone().into(), shared.clone(), options).unwrap());
    (sum, std::sync::Arc::into_inner(shared).expect("the threads have ended"))
}

const INSERT: &str =
    "      - redis: [SET, \"user${number}\", \"${value(number, version, 60)}\"]\n        insert: records\n";
const WRITE: &str =
    "      - redis: [SET, \"user${number}\", \"${value(number, version, 60)}\"]\n        write: records\n";
const READ: &str = "      - redis: [GET, \"user${number}\"]\n        read: records\n";

#[test]
fn numbers_are_inserted_one_after_the_other_and_the_latest_are_there() {
    let steps = format!(
        "{INSERT}      - set: {{number: \"${{latest(records)}}\"}}\n{READ}{WRITE}      - set: {{number: \
         \"${{random(1, inserted(records))}}\"}}\n{READ}{WRITE}{READ}"
    );
    let (sum, shared) = drive(&plan(&steps), newest);
    // as long as the first number's insert is under way there is no latest one for whoever is done before
    let too_early = sum.outcome(Outcome::Variable);
    assert_eq!(sum.outcome(Outcome::Ok) + too_early, sum.offered(), "{:?}", sum.examples());
    assert!(too_early < sum.outcome(Outcome::Ok), "{too_early}");
    assert!(sum.offered() > 100, "{}", sum.offered());
    let inserted = shared.keys(0).unwrap().inserted();
    assert!(inserted > 10, "{inserted}");
    assert!((1..=inserted).any(|number| shared.keys(0).unwrap().least(number) > 1));
}

/// Reads what a user has just written; a lie comes instead of the truth, once a version was written that it is about.
fn lies(lie: impl Fn(&str, &[String]) -> Option<String> + Send + Sync + 'static) -> Vec<String> {
    let steps = format!("{INSERT}{WRITE}{WRITE}{READ}");
    let (sum, _) = drive(&plan(&steps), move |key, written| lie(key, &written[key]));
    assert!(sum.outcome(Outcome::Check) > 10, "{:?}", sum.examples());
    let reads = sum.outcome(Outcome::Check) * 4;
    assert!(reads + 32 >= sum.offered(), "each read is one: {} of {}", reads / 4, sum.offered());
    sum.examples().iter().map(|example| example.detail.clone()).collect()
}

#[test]
fn a_store_that_lies_is_found_out() {
    let said = |lie: fn(&str, &[String]) -> Option<String>, words: &[&str]| {
        let found = lies(lie);
        let all = |text: &String| words.iter().all(|word| text.contains(word));
        assert!(!found.is_empty() && found.iter().all(all), "{words:?}: {found:?}");
    };
    said(
        |_, written| written.get(1).cloned(),
        &["stale: version 2, but version 3 or a later one was acknowledged"],
    );
    said(|_, _| None, &["gone: no value, but version 3 or a later one was acknowledged"]);
    said(
        |_, written| Some(written[2][..59].to_owned()),
        &["wrong: version 3 of", "is incomplete or corrupted"],
    );
    said(|_, written| Some(format!("{}{}", &written[1][..30], &written[2][30..])), &["wrong: version 2 of"]);
    said(|_, _| Some("something else".to_owned()), &["wrong: not written by this run"]);
    let mut other = Vec::new();
    assert!(tidemark_scenario::value::write(b"0", 7, 60, &mut other));
    let other = String::from_utf8(other).unwrap();
    let found = lies(move |_, _| Some(other.clone()));
    assert!(found.iter().all(|text| text.contains("wrong: the value of key 0")), "{found:?}");
}

#[test]
fn an_insert_that_failed_is_done_again() {
    // the store takes no first write of every other number
    let seen = std::sync::Arc::new(std::sync::Mutex::new(HashSet::new()));
    let refused = std::sync::Arc::new(AtomicUsize::new(0));
    let (known, count) = (seen, refused.clone());
    let server = support::Server::start(move |request, stream| {
        let number: u64 = request.target().trim_start_matches("/k/").parse().unwrap();
        let is_first = known.lock().unwrap().insert(number);
        match is_first && number.is_multiple_of(2) {
            true => {
                count.fetch_add(1, Ordering::SeqCst);
                support::answer(stream, "503 Service Unavailable", "", "")
            }
            false => support::answer(stream, "200 OK", "", ""),
        }
    });
    let text = "keys: {records: 100000}\nsessions:\n  a:\n    steps:\n      - POST: /k/${number}\n        insert: \
                records\n        body: \"${value(number, version, 60)}\"\nload: {users: 8, hold: 60s}\nlimits: {sessions: 1000}\n";
    let plan = load(text);
    let shared = std::sync::Arc::new(Shared::of(&plan));
    let sum = support::finish(start(plan.into(), shared.clone(), options(server.address, 2)).unwrap());
    assert_eq!(sum.outcome(Outcome::Status), refused.load(Ordering::SeqCst) as u64);
    let inserted = shared.keys(0).unwrap().inserted();
    let good = sum.outcome(Outcome::Ok);
    // a number that failed last is there only with the next insert, and others behind it may be there before
    assert!(inserted <= good && inserted + 100 >= good && inserted > 20, "{inserted} of {good}");
}

/// What is no whole number is no record that is missing.
#[test]
fn a_number_that_is_none_is_told_and_never_read() {
    let steps = format!("      - set: {{number: \"${{5 / 2}}\"}}\n{READ}");
    let mut plan = plan(&steps);
    plan.limits.sessions = Some(20);
    let (sum, _) = drive(&plan, newest);
    assert_eq!(sum.outcome(Outcome::Variable), 20, "{:?}", sum.examples());
    assert!(sum.examples()[0].detail.contains("it is no whole number"), "{:?}", sum.examples());
}

/// What certainly was not written leaves the numbers' versions as they are: a stale one is found out all the same.
#[test]
fn a_write_that_was_not_made_does_not_end_the_search_for_stale_versions() {
    let (many, first) = (AtomicUsize::new(0), Mutex::new(String::new()));
    // the second of three writes is not made; whatever is read is the first
    let server = listen(None, move |stream| {
        let mut room = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut room) {
            let said = String::from_utf8_lossy(&room[..bytes]).into_owned();
            let mut first = first.lock().unwrap();
            let reply = match many.fetch_add(1, Ordering::SeqCst) % 4 {
                0 => {
                    // the value is the last of its words
                    *first = said.lines().nth(6).unwrap_or_default().to_owned();
                    "+OK\r\n".to_owned()
                }
                1 => "$-1\r\n".to_owned(),
                2 => "+OK\r\n".to_owned(),
                _ => format!("${}\r\n{first}\r\n", first.len()),
            };
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    let mut plan = plan(&format!("{INSERT}{}{WRITE}{READ}", WRITE.replace("60)}\"]", "60)}\", XX]")));
    plan.limits.sessions = Some(1);
    let mut driven = options(server, 1);
    driven.targets[0].protocol = Protocol::Redis(Redis::default());
    let sum = support::finish(support::begin(plan, driven));
    assert_eq!((sum.offered(), sum.outcome(Outcome::Check)), (4, 1), "{:?}", sum.examples());
    let detail = &sum.examples()[0].detail;
    assert!(detail.contains("stale: version 1, but version 3"), "{detail}");
}

/// A nil says that a condition did not hold, so that an insert has failed, and its number is used up; with `GET` it says what was
/// there.
#[test]
fn an_insert_that_was_not_made_has_failed() {
    for (condition, acknowledged) in [("NX", false), ("GET", true), ("NX, GET", true), ("XX, GET", false)] {
        let nil = listen(None, |stream| {
            while let Ok(1..) = stream.read(&mut [0; 4096]) {
                let _ = stream.write_all(b"$-1\r\n");
            }
        });
        let text = format!(
            "system: {{url: redis://127.0.0.1}}\nkeys: {{records: 100}}\nsessions:\n  a:\n    steps:\n      - redis: [SET, \
             \"user${{number}}\", \"${{value(number, version, 60)}}\", {condition}]\n        insert: records\n\
             load: {{users: 1, hold: 60s}}\nlimits: {{sessions: 20}}\n"
        );
        let plan = load(&text);
        let mut driven = support::options(nil, 1);
        driven.targets[0].protocol = Protocol::Redis(Redis::default());
        let shared = std::sync::Arc::new(Shared::of(&plan));
        let sum = support::finish(start(plan.into(), shared.clone(), driven).unwrap());
        let outcome = if acknowledged { Outcome::Ok } else { Outcome::Check };
        assert_eq!(sum.outcome(outcome), 20, "{condition}: {:?}", sum.examples());
        assert_eq!(sum.examples().is_empty(), acknowledged, "{condition}");
        let is_told = sum.examples().iter().all(|example| example.detail.contains("nothing was inserted"));
        assert!(is_told, "{condition}: {:?}", sum.examples());
        assert_eq!(shared.keys(0).unwrap().inserted(), 20, "{condition}");
    }
}
