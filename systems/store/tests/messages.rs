//! The stores for messages, from outside: against a model, over restarts, and at their bounds.

use std::collections::BTreeMap;

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
