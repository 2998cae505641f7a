//! Messages: each written once with a key of its own, awaited; at the end counted and all read back.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tidemark_store::messages::{Message, MessageId, Messages, Query, Tree, TreeOptions};
use tidemark_store::{Durability, StoreError};

use crate::engine::{Committer, Engine, Table, Wrong, open};
use crate::measure::{self, Size};

/// Users that the messages are of, in turns.
const USERS: u64 = 1000;

/// The message with this number: 100 to 1000 bytes that its number gives.
fn message(number: u64) -> Message {
    let mut random = fastrand::Rng::with_seed(number);
    let mut payload = vec![0; random.usize(100..=1000)];
    random.fill(&mut payload);
    Message { user: number % USERS, time_ms: number / USERS, kind: *b"ABC", id: MessageId::unique(), payload: payload.into() }
}

fn key(message: &Message) -> Vec<u8> {
    [&message.user.to_be_bytes()[..], &message.time_ms.to_be_bytes(), &message.kind].concat()
}

#[derive(Clone)]
enum Store {
    Ours(Arc<Tree>),
    Theirs(Arc<dyn Engine>, Committer),
}

impl Store {
    fn open(name: &str, dir: &Path, synced: bool) -> Result<Self, Wrong> {
        if name == "ours" {
            let durability = if synced { Durability::Synced } else { Durability::Buffered };
            return Ok(Store::Ours(Tree::open(dir, TreeOptions { durability, ..TreeOptions::default() })?));
        }
        let engine = open(name, dir, synced)?;
        Ok(Store::Theirs(engine.clone(), Committer::start(engine)))
    }

    /// Groups so far, and microseconds that making them durable took.
    fn groups(&self) -> (u64, u64) {
        match self {
            Store::Ours(tree) => {
                let now = tree.metrics();
                (now.commits, now.sync_sum_us)
            }
            Store::Theirs(_, committer) => committer.groups(),
        }
    }

    async fn add(&self, message: Message) -> Result<(), Wrong> {
        match self {
            Store::Ours(tree) => loop {
                match tree.add(message.clone()).await {
                    Err(StoreError::Busy { .. }) => tokio::task::yield_now().await,
                    done => return Ok(done?),
                }
            },
            Store::Theirs(_, committer) => {
                let key = key(&message);
                committer.write(Table::First, key, Some(Vec::from(message.payload))).await
            }
        }
    }

    async fn count(&self) -> Result<u64, Wrong> {
        match self {
            Store::Ours(tree) => Ok(tree.count().await?),
            Store::Theirs(engine, _) => engine.count(Table::First),
        }
    }

    /// All messages of a user, in order.
    async fn of_user(&self, user: u64, each: &mut dyn FnMut(u64, &[u8])) -> Result<(), Wrong> {
        match self {
            Store::Ours(tree) => {
                let mut query = Query { user, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10_000 };
                loop {
                    let page = tree.of_user(query).await?;
                    page.messages.iter().for_each(|found| each(found.time_ms, &found.payload));
                    query.after = page.next;
                    if page.next.is_none() {
                        return Ok(());
                    }
                }
            }
            Store::Theirs(engine, _) => engine.scan(Table::First, &user.to_be_bytes(), &mut |key, value| {
                let time = key[8..16].try_into().map(u64::from_be_bytes).unwrap_or(u64::MAX);
                each(time, value);
            }),
        }
    }
}

/// Writes all, and says how that went.
pub fn write(name: &str, dir: &Path, synced: bool, size: Size) -> Result<(), Wrong> {
    let store = Store::open(name, dir, synced)?;
    let counted = store.clone();
    measure::writes(
        size,
        move || counted.groups(),
        move |number| {
            let store = store.clone();
            async move {
                store.add(message(number)).await?;
                Ok(1)
            }
        },
    )
}

/// Opens what was left, counts it and reads it back.
pub fn read(name: &str, dir: &Path, synced: bool, size: Size) -> Result<(), Wrong> {
    let store = measure::opening(|| Store::open(name, dir, synced))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let count = measure::timed("count_s", || runtime.block_on(store.count()))?;
    let right = measure::timed("read_s", || {
        runtime.block_on(async {
            let mut right = 0;
            for user in 0..USERS {
                let mut turn = 0;
                store
                    .of_user(user, &mut |time, payload| {
                        let expected: Bytes = message(turn * USERS + user).payload;
                        right += u64::from(time == turn && *payload == expected[..]);
                        turn += 1;
                    })
                    .await?;
            }
            Ok::<_, Wrong>(right)
        })
    })?;
    match (count, right) == (size.writes, size.writes) {
        true => Ok(()),
        false => Err(format!("of {} messages {count} are there and {right} right", size.writes).into()),
    }
}
