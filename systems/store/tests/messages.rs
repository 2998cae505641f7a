//! The stores for messages, from outside: against a model, over restarts, killed in the middle, and at their bounds.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use tidemark_store::messages::{
    Memory, Message, MessageId, MessageStore, Messages, PAYLOAD_BYTES_MAX, Page, Place, Query, Tree,
    TreeOptions,
};
use tidemark_store::{Durability, StoreError};

fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

fn message(user: u64, time_ms: u64, kind: &[u8; 3], payload: impl Into<Bytes>) -> Message {
    Message { user, time_ms, kind: *kind, id: MessageId::NONE, payload: payload.into() }
}

fn small(durability: Durability) -> TreeOptions {
    TreeOptions { durability, table_bytes: 4096, ..TreeOptions::default() }
}

/// All pages of a query.
fn read_all(store: &dyn Messages, mut query: Query) -> Vec<Message> {
    let mut found = Vec::new();
    loop {
        let Page { messages, next } = wait(store.of_user(query)).unwrap();
        assert!(messages.len() <= query.limit && (next.is_none() || !messages.is_empty()));
        found.extend(messages);
        query.after = next;
        if next.is_none() {
            return found;
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add { user: u64, time_ms: u64, kind: u8, id: u8, bytes: usize },
    Read { user: u64, from_ms: u64, to_ms: u64, limit: usize },
    Count,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let add = (0..4u64, 0..30u64, 0..3u8, 0..3u8, 0..300usize)
        .prop_map(|(user, time_ms, kind, id, bytes)| Step::Add { user, time_ms, kind, id, bytes });
    let read = (0..5u64, 0..70u64, 0..70u64, 1..9usize)
        .prop_map(|(user, from_ms, to_ms, limit)| Step::Read { user, from_ms, to_ms, limit });
    let step = prop_oneof![30 => add, 3 => read, 2 => Just(Step::Count), 1 => Just(Step::Reopen)];
    proptest::collection::vec(step, 0..300)
}

/// Does the steps with a store and with a map, and compares.
fn compare(steps: &[Step], mut open: impl FnMut(Option<MessageStore>) -> MessageStore) {
    let mut store = open(None);
    let mut model: BTreeMap<(u64, Place), Message> = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Add { user, time_ms, kind, id, bytes } => {
                let payload = format!("{number}{}", "x".repeat(bytes));
                // the version of an id decides what time counts as
                let id = MessageId::from_bytes([id * 0x70; 16]);
                let message = Message { id, ..message(user, time_ms, &[b'A' + kind; 3], payload) };
                wait(store.add(message.clone())).unwrap();
                model.insert((user, message.place()), message);
            }
            Step::Read { user, from_ms, to_ms, limit } => {
                let found = read_all(&*store, Query { user, from_ms, to_ms, after: None, limit });
                let is_wanted =
                    |message: &&Message| message.user == user && (from_ms..to_ms).contains(&message.time_ms);
                let expected: Vec<Message> = model.values().filter(is_wanted).cloned().collect();
                assert_eq!(found, expected);
            }
            Step::Count => assert_eq!(wait(store.count()).unwrap(), model.len() as u64),
            Step::Reopen => store = open(Some(store)),
        }
    }
    assert_eq!(wait(store.count()).unwrap(), model.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Old times keep coming here, and keys come again: runs overlap in every way.
    #[test]
    fn a_tree_is_a_map(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        compare(&steps, |before| {
            drop(before);
            Tree::open(dir.path(), small(Durability::Buffered)).unwrap()
        });
    }

    #[test]
    fn memory_is_a_map(steps in steps()) {
        compare(&steps, |before| before.unwrap_or_else(|| Memory::new(1 << 30)));
    }
}

/// Enough for many runs and several merges, with each key written twice, by several threads; read while writing.
#[test]
fn many_runs_are_merged_and_the_youngest_counts() {
    const USERS: u64 = 4;
    const STEPS: u64 = 1500;
    let dir = tempfile::tempdir().unwrap();
    let store = Tree::open(dir.path(), small(Durability::Buffered)).unwrap();
    std::thread::scope(|scope| {
        for user in 0..USERS {
            let store = &store;
            scope.spawn(move || {
                for step in 0..STEPS {
                    let time_ms = step % (STEPS / 2);
                    let payload = format!("{user}/{step}");
                    wait(store.add(message(user, time_ms, b"ABC", payload.clone()))).unwrap();
                    let own = Query { user, from_ms: time_ms, to_ms: time_ms + 1, after: None, limit: 2 };
                    let found = read_all(&**store, own);
                    assert_eq!(found, [message(user, time_ms, b"ABC", payload)]);
                }
            });
        }
    });
    let metrics = store.metrics();
    let merges = metrics.own.iter().find(|own| own.name == "merges").map(|own| own.value);
    assert!(merges > Some(1), "{metrics:?}");
    let check = |store: &Tree| {
        assert_eq!(wait(store.count()).unwrap(), USERS * STEPS / 2);
        for user in 0..USERS {
            let all = Query { user, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100 };
            let found = read_all(store, all);
            let expected = (STEPS / 2..STEPS)
                .map(|step| message(user, step - STEPS / 2, b"ABC", format!("{user}/{step}")));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    };
    check(&store);
    drop(store);
    check(&Tree::open(dir.path(), small(Durability::Synced)).unwrap());
}

#[test]
fn large_messages_end_a_page_early_and_too_large_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Tree::open(dir.path(), TreeOptions::default()).unwrap();
    let count = 3000;
    let payload = Bytes::from(vec![b'x'; PAYLOAD_BYTES_MAX]);
    wait(async {
        for time_ms in 0..count {
            store.add(message(1, time_ms, b"ABC", payload.clone())).await.unwrap();
        }
    });
    let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100_000 };
    let first = wait(store.of_user(all)).unwrap();
    assert!(first.messages.len() < count as usize && first.next.is_some());
    assert_eq!(read_all(&*store, all).len(), count as usize);
    let error = wait(store.add(message(1, 1, b"ABC", vec![b'x'; PAYLOAD_BYTES_MAX + 1]))).unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
}

/// Offered far more at once than may wait, it takes what it can, refuses the rest at once, and keeps what it took.
#[test]
fn too_much_at_once_is_refused_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let options = TreeOptions { waiting_max: 10, ..TreeOptions::default() };
    let store = Tree::open(dir.path(), options).unwrap();
    let answers: Vec<_> = (0..5000).map(|time_ms| store.add(message(1, time_ms, b"ABC", "x"))).collect();
    let (mut taken, mut refused) = (0, 0);
    for answer in answers {
        match wait(answer) {
            Ok(()) => taken += 1,
            Err(StoreError::Busy { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let metrics = store.metrics();
    assert_eq!((metrics.writes, metrics.refused, metrics.queue_depth_max), (taken, refused, 10));
    assert!(taken >= 10 && refused > 0, "{taken} taken, {refused} refused");
    assert_eq!(wait(store.count()).unwrap(), taken);
}

#[test]
fn a_directory_is_used_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let _store = Tree::open(dir.path(), TreeOptions::default()).unwrap();
    let error = Tree::open(dir.path(), TreeOptions::default()).err().unwrap();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
}

#[test]
fn damage_is_told_and_never_read_as_messages() {
    let dir = tempfile::tempdir().unwrap();
    let store = Tree::open(dir.path(), small(Durability::Synced)).unwrap();
    wait(async {
        for time_ms in 0..200 {
            store.add(message(1, time_ms, b"ABC", "x".repeat(100))).await.unwrap();
        }
    });
    while store.metrics().own.iter().any(|own| own.name == "runs" && own.value == 0) {
        std::thread::yield_now();
    }
    drop(store);
    let files = || std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
    let is_run =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("run-"));
    let run = files().find(|path| is_run(path)).unwrap();
    let whole = std::fs::read(&run).unwrap();
    let mut wrong = whole.clone();
    wrong[500] ^= 1;
    std::fs::write(&run, &wrong).unwrap();
    let store = Tree::open(dir.path(), small(Durability::Synced)).unwrap();
    let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 1000 };
    let error = wait(store.of_user(all)).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    drop(store);
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&run, &whole[..length]).unwrap();
        let error = Tree::open(dir.path(), small(Durability::Synced)).err().unwrap();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
    }
}

const DIR_VARIABLE: &str = "TIDEMARK_MESSAGES_TEST_DIR";
const DURABILITY_VARIABLE: &str = "TIDEMARK_MESSAGES_TEST_DURABILITY";
const ROUND_VARIABLE: &str = "TIDEMARK_MESSAGES_TEST_ROUND";
const WRITERS: u64 = 16;

/// The child's life; ends by being killed.
#[test]
#[ignore = "run by the other tests, as a child"]
fn child_writes_until_killed() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let durability: Durability = std::env::var(DURABILITY_VARIABLE).unwrap().parse().unwrap();
    let round: u64 = std::env::var(ROUND_VARIABLE).unwrap().parse().unwrap();
    let store: MessageStore = match durability {
        Durability::Memory => Memory::new(1 << 30),
        _ => {
            Tree::open(Path::new(&dir), TreeOptions { table_bytes: 64 * 1024, ..small(durability) }).unwrap()
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| runtime.spawn(write_for_ever(store.clone(), round, writer))).collect();
    for writer in writers {
        runtime.block_on(writer).unwrap();
    }
}

async fn write_for_ever(store: Arc<dyn Messages>, round: u64, writer: u64) {
    for step in 0.. {
        store
            .add(message(writer, round << 32 | step, b"ABC", format!("{round} {writer} {step}")))
            .await
            .unwrap();
        println!("ack {writer} {step}");
    }
}

/// Kills the child after so many acknowledgements; how many each writer had been told of.
fn kill_after(mut child: Child, lines: usize) -> HashMap<u64, u64> {
    let mut heard = HashMap::new();
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((writer, step)) = line.strip_prefix("ack ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        // The last line may be cut by the kill; then its number is a smaller one.
        let (Ok(writer), Ok(step)) = (writer.parse(), step.parse::<u64>()) else { continue };
        let told: &mut u64 = heard.entry(writer).or_default();
        *told = (*told).max(step + 1);
        count += 1;
        if count == lines {
            child.kill().unwrap();
        }
    }
    assert!(count >= lines, "the child ended by itself after {count} acknowledgements");
    child.wait().unwrap();
    heard
}

/// Several lives in one directory, each killed in the middle of its writing; how many of the acknowledged were found.
fn lives(durability: Durability) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut past = Vec::new();
    let (mut acknowledged, mut found) = (0, 0);
    for (round, lines) in [500, 20_000, 5_001].into_iter().enumerate() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "messages::child_writes_until_killed"])
            .env(DIR_VARIABLE, dir.path())
            .env(DURABILITY_VARIABLE, durability.to_string())
            .env(ROUND_VARIABLE, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        past.push(kill_after(child, lines));
        let store = Tree::open(dir.path(), small(durability)).unwrap();
        let mut sum = 0;
        for writer in 0..WRITERS {
            let all = Query { user: writer, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100_000 };
            let messages: HashMap<u64, Message> =
                read_all(&*store, all).into_iter().map(|message| (message.time_ms, message)).collect();
            sum += messages.len() as u64;
            for (round, heard) in past.iter().enumerate() {
                for step in 0..heard.get(&writer).copied().unwrap_or(0) {
                    let time_ms = (round as u64) << 32 | step;
                    let sent = message(writer, time_ms, b"ABC", format!("{round} {writer} {step}"));
                    acknowledged += 1;
                    found += u64::from(messages.get(&time_ms) == Some(&sent));
                }
            }
        }
        assert_eq!(wait(store.count()).unwrap(), sum);
    }
    (acknowledged, found)
}

#[test]
fn kill_loses_nothing_buffered() {
    let (acknowledged, found) = lives(Durability::Buffered);
    assert_eq!(acknowledged, found);
}

#[test]
fn kill_loses_nothing_synced() {
    let (acknowledged, found) = lives(Durability::Synced);
    assert_eq!(acknowledged, found);
}

/// What is only in memory is lost, all of it: the tests above would see it.
#[test]
fn kill_loses_what_is_in_memory() {
    let (acknowledged, found) = lives(Durability::Memory);
    assert!(acknowledged > 0 && found == 0, "{found} of {acknowledged}");
}

/// Writes until the limit on file sizes refuses, which stands for a disk that is full.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by another test, as a child"]
fn child_meets_a_full_disk() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let durability: Durability = std::env::var(DURABILITY_VARIABLE).unwrap().parse().unwrap();
    let store = Tree::open(Path::new(&dir), small(durability)).unwrap();
    wait(store.add(message(1, 1, b"ABC", "before"))).unwrap();
    setrlimit(Resource::Fsize, Rlimit { current: Some(16), maximum: None }).unwrap();
    let error = wait(store.add(message(1, 2, b"ABC", "at"))).unwrap_err();
    assert!(matches!(error, StoreError::Write { .. }), "{error}");
    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    let error = wait(store.add(message(1, 3, b"ABC", "after"))).unwrap_err();
    assert!(matches!(error, StoreError::Stopped { .. }), "{error}");
    assert!(store.metrics().stopped);
    let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10 };
    assert_eq!(read_all(&*store, all), [message(1, 1, b"ABC", "before")]);
    println!("refused");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_stops_the_store() {
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = tempfile::tempdir().unwrap();
        // The limit's signal would end the child; a shell starts it with that signal ignored.
        let output = Command::new("sh")
            .args([
                "-c",
                r#"trap "" XFSZ; exec "$0" --ignored --exact --nocapture messages::child_meets_a_full_disk"#,
            ])
            .arg(std::env::current_exe().unwrap())
            .env(DIR_VARIABLE, dir.path())
            .env(DURABILITY_VARIABLE, durability.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("refused"), "{said}");
        let store = Tree::open(dir.path(), small(durability)).unwrap();
        let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10 };
        assert_eq!(read_all(&*store, all), [message(1, 1, b"ABC", "before")]);
    }
}
