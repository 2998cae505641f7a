//! How fast messages go into a Cassandra, and what the store adds to the client that it is built on.
//!
//! ```text
//! cargo run --release -p tidemark-store --features cassandra --example cassandra_speed -- --contact 127.0.0.1:9042
//! ```
//!
//! Three ways take turns for `--rounds` rounds: `bare`, a loop over the client with the store's statement and bound of
//! writes in flight and nothing else; `store`, the same through the store; and `one`, the store with one write at a
//! time. Each insert has a key of its own. What is printed is acknowledged inserts per second, and the CPU of this
//! process for each.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use scylla::client::PoolSize;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use tidemark_store::cassandra::{Cassandra, Options};
use tidemark_store::messages::{DAY_MS, Message, MessageId, Messages};
use tokio::task::JoinSet;

/// Measure inserts into Cassandra.
#[derive(Parser, Clone)]
struct Arguments {
    /// The address of a node
    #[arg(long, default_value = "127.0.0.1:9042")]
    contact: String,
    /// A keyspace of its own
    #[arg(long, default_value = "tidemark_speed")]
    keyspace: String,
    /// Writes in flight
    #[arg(long, default_value_t = 1024)]
    in_flight: usize,
    /// Connections to each node
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Threads that the writers share, and that the client has
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How long each measurement takes, in seconds
    #[arg(long = "for", default_value_t = 10)]
    seconds: u64,
    /// How often the ways take turns
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Users that the messages are spread over
    #[arg(long, default_value_t = 10_000)]
    users: u64,
    /// The ways to measure
    #[arg(long, default_values = ["bare", "store", "one"], value_delimiter = ',')]
    ways: Vec<String>,
}

/// Numbers for keys that were never used before.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let options = Options {
        contact: vec![arguments.contact.clone()],
        keyspace: arguments.keyspace.clone(),
        waiting_max: arguments.in_flight.max(1),
        in_flight: arguments.in_flight,
        connections: arguments.connections,
        threads: arguments.threads,
        ..Options::default()
    };
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    NUMBER.store(since_1970.as_millis() as u64 * arguments.users, Ordering::Relaxed);
    let store = Cassandra::open(options)?;
    println!("durability {}, {} in flight", store.durability(), arguments.in_flight);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()?;
    for round in 1..=arguments.rounds {
        for way in &arguments.ways {
            let cpu_before = cpu_s();
            let begun = Instant::now();
            let inserted = match way.as_str() {
                "bare" => runtime.block_on(bare(&arguments))?,
                "store" => runtime.block_on(through_store(&store, &arguments, arguments.in_flight)),
                "one" => runtime.block_on(through_store(&store, &arguments, 1)),
                other => return Err(format!("there is no way {other}").into()),
            };
            let took_s = begun.elapsed().as_secs_f64();
            let cpu_us = (cpu_s() - cpu_before) * 1e6 / inserted as f64;
            println!(
                "round {round} {way:>6}: {:>8.0} inserts/s, {cpu_us:.1} us of CPU each",
                inserted as f64 / took_s
            );
        }
    }
    let metrics = store.metrics();
    println!("failed {}, refused {}", metrics.failed, metrics.refused);
    Ok(())
}

fn message(users: u64) -> Message {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let (user, time_ms) = (number % users, number / users);
    let payload = format!("{user:010}{time_ms:013}ABC41.7127837,42.71278370000.0");
    Message { user, time_ms, kind: *b"ABC", id: MessageId::unique(), payload: payload.into() }
}

async fn through_store(store: &Arc<Cassandra>, arguments: &Arguments, writers: usize) -> u64 {
    store.settle();
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut writing = JoinSet::new();
    for _ in 0..writers {
        let (store, users) = (store.clone(), arguments.users);
        writing.spawn(async move {
            let mut inserted = 0u64;
            while Instant::now() < end {
                inserted += u64::from(store.add(message(users)).await.is_ok());
            }
            inserted
        });
    }
    writing.join_all().await.iter().sum()
}

/// As little as can be: a session with the driver's own settings, the same statement, as many tasks as writes in flight.
async fn bare(arguments: &Arguments) -> Result<u64, Box<dyn std::error::Error>> {
    let connections = NonZeroUsize::new(arguments.connections).ok_or("no connection")?;
    let session: Session = SessionBuilder::new()
        .known_node(&arguments.contact)
        .pool_size(PoolSize::PerHost(connections))
        .build()
        .await?;
    let mut insert = session
        .prepare(format!(
            "INSERT INTO {}.messages (user, day, time, kind, id, payload) VALUES (?, ?, ?, ?, ?, ?)",
            arguments.keyspace
        ))
        .await?;
    insert.set_consistency(Consistency::Quorum);
    let shared = Arc::new((session, insert));
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut writing = JoinSet::new();
    for _ in 0..arguments.in_flight {
        let (shared, users) = (shared.clone(), arguments.users);
        writing.spawn(async move {
            let mut inserted = 0u64;
            while Instant::now() < end {
                let Message { user, time_ms, kind, id, payload } = message(users);
                let day = (time_ms / DAY_MS) as i32;
                let values = (user as i64, day, time_ms as i64, &kind[..], &id.as_bytes()[..], &payload[..]);
                inserted += u64::from(shared.0.execute_unpaged(&shared.1, values).await.is_ok());
            }
            inserted
        });
    }
    Ok(writing.join_all().await.iter().sum())
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
