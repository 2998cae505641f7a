//! How fast the embedded store writes on this disk, and what that costs.
//!
//! ```text
//! cargo run --release -p tidemark-store --example write_speed -- --durability synced --writers 64
//! ```
//!
//! Every writer does what the airline's sessions do: log in, book, cancel, log out, each awaited. With `--rate`
//! the writers keep to a total rate, which shows the CPU that a write costs below the limit.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::customers::{Address, Customer, Customers};
use tidemark_store::sessions::{Session, Sessions};
use tidemark_store::{Durability, Embedded, SYNC_BOUNDS_US, StoreError, StoreMetrics};

/// Measure the embedded store's writes.
#[derive(Parser)]
struct Options {
    /// memory, buffered or synced
    #[arg(long, default_value = "synced")]
    durability: Durability,
    /// Writers, each with one write on its way at a time
    #[arg(long, default_value_t = 64)]
    writers: u64,
    /// Threads of the runtime that the writers share
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How long to measure, in seconds
    #[arg(long = "for", default_value_t = 5)]
    seconds: u64,
    /// Keep to this many writes per second in total; without it, as fast as possible
    #[arg(long)]
    rate: Option<u64>,
    /// Load this many customers first and show what each takes in memory
    #[arg(long, default_value_t = 0)]
    customers: u64,
    /// Where to write; a fresh directory below it is used and removed [default: the system's temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let base = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = tempfile::tempdir_in(base)?;
    let store = Embedded::open(dir.path(), options.durability)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).enable_time().build()?;
    if options.customers > 0 {
        runtime.block_on(load_customers(&store, options.customers))?;
    }
    runtime.block_on(measure(&store, &options))?;
    drop(runtime);
    drop(store);
    if options.durability != Durability::Memory {
        let recovered = Embedded::open(dir.path(), options.durability)?.recovered();
        println!(
            "reopened          {} customers, {} sessions, {} bookings in {:?}",
            recovered.customers, recovered.sessions, recovered.bookings, recovered.took
        );
    }
    Ok(())
}

async fn measure(store: &Arc<Embedded>, options: &Options) -> Result<(), StoreError> {
    let before = store.metrics();
    let (begun, cpu_before) = (Instant::now(), cpu_time());
    let end = begun + Duration::from_secs(options.seconds);
    let slowest_us = Arc::new(AtomicU64::new(0));
    let pause = options.rate.map(|rate| Duration::from_secs_f64(options.writers as f64 / rate as f64));
    let writers: Vec<_> = (0..options.writers)
        .map(|writer| tokio::spawn(write(store.clone(), writer, pause, end, slowest_us.clone())))
        .collect();
    let mut writes = 0;
    for writer in writers {
        writes += writer.await.expect("a writer does not panic")?;
    }
    let (took, cpu) = (begun.elapsed(), cpu_time() - cpu_before);
    println!("durability        {}", store.durability());
    println!("writes            {writes} by {} writers in {took:.2?}", options.writers);
    println!("rate              {:.0} writes/s", writes as f64 / took.as_secs_f64());
    println!(
        "CPU               {:.2} us per write, {:.2} cores (everything in this process)",
        cpu.as_secs_f64() * 1e6 / writes as f64,
        cpu.as_secs_f64() / took.as_secs_f64()
    );
    println!("slowest write     {} us", slowest_us.load(Ordering::Relaxed));
    show(&before, &store.metrics());
    Ok(())
}

fn show(before: &StoreMetrics, after: &StoreMetrics) {
    let commits = after.commits - before.commits;
    if commits == 0 {
        return;
    }
    println!(
        "groups            {commits}, mean {:.1} writes, largest {}",
        (after.writes - before.writes) as f64 / commits as f64,
        after.group_writes_max
    );
    println!(
        "sync              mean {:.0} us, slowest {} us",
        (after.sync_sum_us - before.sync_sum_us) as f64 / commits as f64,
        after.sync_us_max,
    );
    println!(
        "rest of committer {:.2} us per write, slowest group {} us",
        (after.committer_sum_us - before.committer_sum_us) as f64 / (after.writes - before.writes) as f64,
        after.committer_us_max
    );
    for (place, count) in after.sync_buckets.iter().enumerate() {
        let count = count - before.sync_buckets[place];
        if count > 0 {
            let bound = SYNC_BOUNDS_US.get(place).map_or("more".to_owned(), |us| format!("<= {us} us"));
            println!("  {bound:>15} {count}");
        }
    }
    println!("queue             {} writes found it full", after.queue_waits - before.queue_waits);
}

/// One writer's loop: four writes a round. Tells how many it made.
async fn write(
    store: Arc<Embedded>,
    writer: u64,
    pause: Option<Duration>,
    end: Instant,
    slowest_us: Arc<AtomicU64>,
) -> Result<u64, StoreError> {
    let mut random = fastrand::Rng::with_seed(writer);
    let customer_id: Arc<str> = format!("uid{writer}@email.com").into();
    let segment_id: Arc<str> = "AA280".into();
    let mut due = Instant::now() + pause.unwrap_or_default().mul_f64(random.f64());
    let mut writes = 0;
    let (mut session_id, mut booking_id) = (0, 0);
    while Instant::now() < end {
        if let Some(pause) = pause {
            tokio::time::sleep_until(due.into()).await;
            due += pause;
        }
        let begun = Instant::now();
        match writes % 4 {
            0 => {
                session_id = random.u128(..);
                let customer_id = customer_id.clone();
                let session = Session { id: session_id, customer_id, created_ms: 0, expires_ms: 86_400_000 };
                store.create(session).await?;
            }
            1 => {
                booking_id = random.u128(..);
                let booking = Booking {
                    id: booking_id,
                    customer_id: customer_id.clone(),
                    flight_id: random.u128(..),
                    flight_segment_id: segment_id.clone(),
                    booked_ms: 0,
                };
                store.add(&[booking]).await?;
            }
            2 => assert!(store.cancel(&customer_id, booking_id).await?),
            _ => assert!(store.remove(session_id).await?),
        }
        slowest_us.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        writes += 1;
    }
    Ok(writes)
}

async fn load_customers(store: &Arc<Embedded>, count: u64) -> Result<(), StoreError> {
    let (begun, before) = (Instant::now(), resident_bytes());
    store.put_missing(Box::new((0..count).map(customer))).await?;
    println!(
        "customers         {count} loaded in {:.2?}; resident memory grew by {:.0} bytes each",
        begun.elapsed(),
        (resident_bytes() as f64 - before as f64) / count as f64
    );
    Ok(())
}

fn customer(number: u64) -> Customer {
    Customer {
        id: format!("uid{number}@email.com"),
        password: "password".into(),
        address: Address {
            street_address1: "123 Main St.".into(),
            city: "Anytown".into(),
            state_province: "NC".into(),
            country: "USA".into(),
            postal_code: "27617".into(),
            ..Address::default()
        },
        phone_number: "919-123-4567".into(),
        ..Customer::default()
    }
}

/// CPU time of all threads of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Memory of this process that is in RAM; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}
