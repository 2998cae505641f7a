//! What was acknowledged survives the death of the process, and a failing disk acknowledges nothing.
//!
//! The test program starts itself again as a child that writes and says what was acknowledged, kills it in the
//! middle, opens the directory and looks for every word of it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::common::{booking, customer, session, wait};
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::messages::{Message, MessageId, Messages, Query, Tree, TreeOptions};
use tidemark_store::sessions::Sessions;
use tidemark_store::{Durability, Embedded};

const WRITERS: u64 = 16;
/// Tells the child where to write and how durably.
const DIR_VARIABLE: &str = "TIDEMARK_STORE_TEST_DIR";
const DURABILITY_VARIABLE: &str = "TIDEMARK_STORE_TEST_DURABILITY";
/// The round, which makes ids of later children different.
const ROUND_VARIABLE: &str = "TIDEMARK_STORE_TEST_ROUND";

/// What a writer has been told, in its own words.
#[derive(Debug, Default)]
struct Acknowledged {
    booked: Vec<u64>,
    cancelled: Vec<u64>,
    logged_in: Vec<u64>,
    miles: Option<u64>,
    sent: Vec<u64>,
}

fn customer_id(round: u64, writer: u64) -> String {
    format!("round{round}writer{writer}")
}

fn flight_id(writer: u64, step: u64) -> u128 {
    (u128::from(writer) << 64) | (u128::from(step) * 7919)
}

fn session_id(round: u64, writer: u64, step: u64) -> u128 {
    (u128::from(round) << 96) | (u128::from(writer) << 64) | u128::from(step)
}

/// Each third step is followed by cancelling the booking of the step before.
fn is_cancelled_after(step: u64) -> bool {
    step % 3 == 2
}

fn message(round: u64, writer: u64, step: u64) -> Message {
    let payload = format!("{round} {writer} {step} {}", "x".repeat(100)).into();
    Message { user: writer, time_ms: (round << 32) | step, kind: *b"ABC", id: MessageId::NONE, payload }
}

/// Messages beside the tables in memory; so small a table that runs are written.
fn messages(dir: &Path, durability: Durability) -> Arc<Tree> {
    let options = TreeOptions { durability, table_bytes: 4096, ..TreeOptions::default() };
    Tree::open(&dir.join("messages"), options).unwrap()
}

/// The child's life; ends by being killed.
#[test]
#[ignore = "run by the other tests, as a child"]
fn child_writes_until_killed() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let durability: Durability = std::env::var(DURABILITY_VARIABLE).unwrap().parse().unwrap();
    let round: u64 = std::env::var(ROUND_VARIABLE).unwrap().parse().unwrap();
    let store = Embedded::open(&Path::new(&dir).join("tables"), durability).unwrap();
    let messages = messages(Path::new(&dir), durability);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| runtime.spawn(write_for_ever(store.clone(), messages.clone(), round, writer)))
        .collect();
    for writer in writers {
        runtime.block_on(writer).unwrap();
    }
}

async fn write_for_ever(store: Arc<Embedded>, messages: Arc<Tree>, round: u64, writer: u64) {
    let customer_id = customer_id(round, writer);
    for step in 0.. {
        let made = booking(&customer_id, step.into(), flight_id(writer, step));
        store.add(&[made]).await.unwrap();
        println!("ack {writer} booked {step}");
        if is_cancelled_after(step) {
            assert!(store.cancel(&customer_id, u128::from(step - 1)).await.unwrap());
            println!("ack {writer} cancelled {}", step - 1);
        }
        store.create(session(session_id(round, writer, step), 1000)).await.unwrap();
        println!("ack {writer} logged_in {step}");
        store.put(customer(&customer_id, step as i64)).await.unwrap();
        println!("ack {writer} miles {step}");
        Messages::add(&*messages, message(round, writer, step)).await.unwrap();
        println!("ack {writer} sent {step}");
    }
}

/// This program again, as a child that runs one ignored test.
fn child(test: &str, dir: &Path, durability: Durability, round: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", test])
        .env(DIR_VARIABLE, dir)
        .env(DURABILITY_VARIABLE, durability.to_string())
        .env(ROUND_VARIABLE, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Kills the child after `lines` acknowledgements, and hears out what it had said until then.
fn kill_after(mut child: Child, lines: usize) -> HashMap<u64, Acknowledged> {
    let mut heard: HashMap<u64, Acknowledged> = HashMap::new();
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(words) = line.strip_prefix("ack ") else { continue };
        let words: Vec<&str> = words.split(' ').collect();
        // The last line may be cut by the kill.
        let [writer, what, step] = words[..] else { continue };
        let (Ok(writer), Ok(step)) = (writer.parse(), step.parse::<u64>()) else { continue };
        let writer: &mut Acknowledged = heard.entry(writer).or_default();
        match what {
            "booked" => writer.booked.push(step),
            "cancelled" => writer.cancelled.push(step),
            "logged_in" => writer.logged_in.push(step),
            "miles" => writer.miles = Some(step),
            "sent" => writer.sent.push(step),
            _ => panic!("the child said {line:?}"),
        }
        count += 1;
        if count == lines {
            child.kill().unwrap();
        }
    }
    assert!(count >= lines, "the child ended by itself after {count} acknowledgements");
    child.wait().unwrap();
    heard
}

fn verify(store: &Embedded, messages: &Tree, round: u64, heard: &HashMap<u64, Acknowledged>) {
    for (&writer, acknowledged) in heard {
        let all = Query { user: writer, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100_000 };
        let found = wait(messages.of_user(all)).unwrap().messages;
        for &step in &acknowledged.sent {
            let sent = message(round, writer, step);
            assert!(found.contains(&sent), "writer {writer}: message {step} of round {round} is lost");
        }
        let customer_id = customer_id(round, writer);
        let found: HashMap<u128, _> = wait(store.of_customer(&customer_id))
            .unwrap()
            .into_iter()
            .map(|booking| (booking.id, booking))
            .collect();
        for &step in &acknowledged.booked {
            let id = u128::from(step);
            if acknowledged.cancelled.contains(&step) {
                assert!(!found.contains_key(&id), "{customer_id}: cancelled {step} is back");
                continue;
            }
            // The cancelling of this one may have been on its way.
            if is_cancelled_after(step + 1) && acknowledged.booked.last() == Some(&(step + 1)) {
                continue;
            }
            let expected = booking(&customer_id, id, flight_id(writer, step));
            assert_eq!(found.get(&id), Some(&expected), "{customer_id}: booked {step} is lost or different");
        }
        for &step in &acknowledged.logged_in {
            let id = session_id(round, writer, step);
            assert_eq!(wait(Sessions::find(store, id, 0)).unwrap(), Some(session(id, 1000)));
        }
        if let Some(miles) = acknowledged.miles {
            let found = wait(Customers::find(store, &customer_id)).unwrap().expect("a customer is lost");
            assert!(
                found.miles_ytd == miles as i64 || found.miles_ytd == miles as i64 + 1,
                "{customer_id}: {} miles found, {miles} acknowledged",
                found.miles_ytd
            );
        }
    }
}

/// Several lives in one directory, each killed in the middle of its writing.
fn nothing_acknowledged_is_lost(durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let mut past = Vec::new();
    for (round, lines) in [300, 1_000, 2_001].into_iter().enumerate() {
        let round = round as u64;
        let child = child("kill::child_writes_until_killed", dir.path(), durability, round).spawn().unwrap();
        past.push(kill_after(child, lines));
        let store = Embedded::open(&dir.path().join("tables"), durability).unwrap();
        let messages = messages(dir.path(), durability);
        for (round, heard) in past.iter().enumerate() {
            verify(&store, &messages, round as u64, heard);
        }
    }
}

#[test]
fn kill_loses_nothing_buffered() {
    nothing_acknowledged_is_lost(Durability::Buffered);
}

#[test]
fn kill_loses_nothing_synced() {
    nothing_acknowledged_is_lost(Durability::Synced);
}

/// Writes until the limit on file sizes refuses, which stands for a disk that fails.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by another test, as a child"]
fn child_meets_a_failing_disk() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    use tidemark_store::StoreError;

    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let durability: Durability = std::env::var(DURABILITY_VARIABLE).unwrap().parse().unwrap();
    let store = Embedded::open(Path::new(&dir), durability).unwrap();
    wait(store.put(customer("before", 1))).unwrap();
    setrlimit(Resource::Fsize, Rlimit { current: Some(16), maximum: None }).unwrap();
    let error = wait(store.put(customer("at", 2))).unwrap_err();
    assert!(matches!(error, StoreError::Write { .. }), "{error}");
    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    let error = wait(store.put(customer("after", 3))).unwrap_err();
    assert!(matches!(error, StoreError::Stopped { .. }), "{error}");
    assert!(store.metrics().stopped);
    assert_eq!(wait(Customers::find(&*store, "before")).unwrap(), Some(customer("before", 1)));
    assert_eq!(wait(Customers::find(&*store, "at")).unwrap(), None);
    println!("refused");
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_disk_is_an_error_and_stops_the_store() {
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = tempfile::tempdir().unwrap();
        let direct = child("kill::child_meets_a_failing_disk", dir.path(), durability, 0);
        // The limit's signal would end the child; a shell starts it with that signal ignored.
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(direct.get_program());
        shell.args(direct.get_args());
        shell.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("refused"), "{said}");

        let store = Embedded::open(dir.path(), durability).unwrap();
        assert_eq!(wait(Customers::find(&*store, "before")).unwrap(), Some(customer("before", 1)));
        assert_eq!(wait(Customers::find(&*store, "after")).unwrap(), None);
    }
}
