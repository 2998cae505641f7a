//! How many messages a second the store takes on this machine's disk, over minutes, and how fast it gives them back.
//!
//! ```text
//! cargo run --release -p tidemark-store --example message_speed -- --messages 30000000 --senders 1000
//! ```
//!
//! Every sender awaits each of its messages. At the end the messages are counted, and all users read from begin to
//! end; a message that is missing or different ends the program with status 1.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use tidemark_store::messages::{Message, MessageId, Messages, Query, Tree, TreeOptions};
use tidemark_store::{Durability, StoreError};

/// How fast the store for messages is.
#[derive(Parser)]
struct Args {
    /// How many messages are written.
    #[arg(long, default_value_t = 3_000_000)]
    messages: u64,
    /// How many wait for an acknowledgement at the same time.
    #[arg(long, default_value_t = 1000)]
    senders: u64,
    /// How many users they write for, in turns.
    #[arg(long, default_value_t = 10_000)]
    users: u64,
    /// Threads of senders.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// buffered or synced.
    #[arg(long, default_value = "synced")]
    durability: Durability,
    /// The store's directory, which must not exist; a temporary one if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

const KINDS: [[u8; 3]; 5] = [*b"ABC", *b"DEF", *b"GHI", *b"JKL", *b"MNO"];

/// The message with this number. Its time tells messages of a user apart.
fn message(number: u64, users: u64, begun_ms: u64) -> Message {
    let user = number % users;
    let turn = number / users;
    let (time_ms, kind) = (begun_ms + turn / 5, KINDS[(turn % 5) as usize]);
    let text = std::str::from_utf8(&kind).unwrap_or_default();
    let payload = format!("{user:010}{time_ms:013}{text}41.71{number:010},42.71278370000.0").into();
    Message { user, time_ms, kind, id: MessageId::unique(), payload }
}

fn cpu_s() -> f64 {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    usage.tv_sec as f64 + usage.tv_nsec as f64 / 1e9
}

fn rss_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

async fn send(store: Arc<Tree>, next: Arc<AtomicU64>, args: (u64, u64, u64)) -> Result<u64, StoreError> {
    let (messages, users, begun_ms) = args;
    let mut longest_us = 0;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= messages {
            return Ok(longest_us);
        }
        let message = message(number, users, begun_ms);
        let begun = Instant::now();
        while let Err(error) = store.add(message.clone()).await {
            let StoreError::Busy { .. } = error else { return Err(error) };
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        longest_us = longest_us.max(begun.elapsed().as_micros() as u64);
    }
}

/// Reads everything back; the number of messages that are as they were written.
async fn read(store: &Tree, args: &Args, begun_ms: u64) -> Result<u64, StoreError> {
    let mut right = 0;
    for user in 0..args.users {
        let mut query = Query { user, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100_000 };
        let mut turn = 0;
        loop {
            let page = store.of_user(query).await?;
            for found in &page.messages {
                right += u64::from(*found == message(turn * args.users + user, args.users, begun_ms));
                turn += 1;
            }
            query.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
    }
    Ok(right)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let temporary = tempfile::tempdir()?;
    let dir = args.dir.clone().unwrap_or_else(|| temporary.path().join("messages"));
    if dir.exists() {
        return Err(format!("{} exists; name a directory that does not", dir.display()).into());
    }
    let begun_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let options = TreeOptions { durability: args.durability, ..TreeOptions::default() };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(args.threads).enable_time().build()?;
    let store = Tree::open(&dir, options)?;
    let next = Arc::new(AtomicU64::new(0));
    let (begun, cpu) = (Instant::now(), cpu_s());
    let senders: Vec<_> = (0..args.senders)
        .map(|_| runtime.spawn(send(store.clone(), next.clone(), (args.messages, args.users, begun_ms))))
        .collect();
    let mut longest_us = 0;
    runtime.block_on(async {
        let progress = async {
            let mut before = 0;
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let metrics = store.metrics();
                println!("  {:>9.0}/s", (metrics.writes - before) as f64 / 5.0);
                before = metrics.writes;
            }
        };
        let done = async {
            for sender in senders {
                longest_us = longest_us.max(sender.await??);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        tokio::select! { () = progress => Ok(()), result = done => result }
    })?;
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    let metrics = store.metrics();
    let per_message_us = cpu * 1e6 / args.messages as f64;
    println!(
        "{} {} messages, {} senders: {:.0}/s, {per_message_us:.2} us CPU each, longest {:.1} ms, mean sync {} us, \
         mean group {}, peak memory {} MB",
        args.durability,
        args.messages,
        args.senders,
        args.messages as f64 / took,
        longest_us as f64 / 1e3,
        metrics.sync_sum_us / metrics.commits.max(1),
        metrics.writes / metrics.commits.max(1),
        rss_mb(),
    );
    metrics.own.iter().for_each(|own| println!("  {} {}", own.name, own.value));
    drop(metrics);

    let begun = Instant::now();
    let count = runtime.block_on(store.count())?;
    println!("counted {count} in {:.2} s", begun.elapsed().as_secs_f64());
    drop(store);
    let begun = Instant::now();
    let store = Tree::open(&dir, options)?;
    println!("opened again in {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let again = runtime.block_on(store.count())?;
    println!("counted {again} in {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let right = runtime.block_on(read(&store, &args, begun_ms))?;
    println!("read {right} right in {:.1} s, peak memory {} MB", begun.elapsed().as_secs_f64(), rss_mb());
    if (count, again, right) != (args.messages, args.messages, args.messages) {
        return Err("not every message is there".into());
    }
    Ok(())
}
