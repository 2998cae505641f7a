//! Calls the trade service over WebSockets, through the typed client that everybody uses: as many as there is room
//! for, or at a rate. Prints one JSON object.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidemark_rpc::{CallError, Client, ClientOptions, Form};
use tidemark_trade::{Trade, TradesClient};

/// How to call.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Where the service listens
    address: SocketAddr,
    /// Connections
    #[arg(short, default_value_t = 3)]
    connections: usize,
    /// Calls in flight on each
    #[arg(short, default_value_t = 5000)]
    in_flight: usize,
    /// Seconds that are measured, after one that is not
    #[arg(short = 'd', default_value_t = 5.0)]
    seconds: f64,
    /// Calls/s over all connections, each measured from when it is made; else as many as go
    #[arg(short, long)]
    rate: Option<u32>,
    /// Payloads in binary
    #[arg(long)]
    binary: bool,
}

const WARM_UP: Duration = Duration::from_secs(1);
/// A call that takes longer is an error.
const DEADLINE: Duration = Duration::from_secs(10);

/// What all callers share; they run on one thread.
#[derive(Default)]
struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    stops: AtomicBool,
}

pub fn run(options: &Options) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(options)).map_err(std::io::Error::other)?;
    println!("{measured}");
    Ok(())
}

fn trade() -> Trade {
    Trade { name: "ibm".into(), amount: 1 }
}

async fn measure(options: &Options) -> Result<serde_json::Value, CallError> {
    let form = if options.binary { Form::Binary } else { Form::Json };
    let with = ClientOptions { form, in_flight_max: options.in_flight, ..ClientOptions::default() };
    let connections: Vec<_> =
        (0..options.connections).map(|_| Client::connect(options.address, with.clone())).collect();
    let clients: Vec<_> = connections
        .iter()
        .map(|connection| TradesClient::new(connection.clone()).deadline(DEADLINE))
        .collect();
    let before = clients[0].count().await?;
    let tally = Arc::new(Tally::default());
    let figures = match options.rate {
        None => flood(options, &clients, &tally).await,
        Some(rate) => paced(options, rate, &clients, &tally).await,
    };
    let (done, failed) = (tally.done.load(Ordering::Relaxed), tally.failed.load(Ordering::Relaxed));
    let counted = clients[0].count().await? - before;
    let frames: u64 = connections.iter().map(|connection| connection.stats().frames_sent).sum();
    let mut all = json!({
        "done": done, "failed": failed, "counted_by_the_service": counted,
        "calls_for_each_frame": done as f64 / frames as f64,
    });
    if let (Some(all), Some(figures)) = (all.as_object_mut(), figures.as_object()) {
        all.extend(figures.clone());
    }
    Ok(all)
}

/// As many calls as there is room for.
async fn flood(options: &Options, clients: &[TradesClient], tally: &Arc<Tally>) -> serde_json::Value {
    let mut callers = Vec::new();
    for client in clients {
        for _ in 0..options.in_flight {
            let (client, tally) = (client.clone(), tally.clone());
            callers.push(tokio::spawn(async move {
                while !tally.stops.load(Ordering::Relaxed) {
                    match client.trade(trade()).await {
                        Ok(true) => tally.done.fetch_add(1, Ordering::Relaxed),
                        _ => tally.failed.fetch_add(1, Ordering::Relaxed),
                    };
                }
            }));
        }
    }
    tokio::time::sleep(WARM_UP).await;
    let (began, cpu_s, done) = (Instant::now(), cpu_s(), tally.done.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
    let calls = tally.done.load(Ordering::Relaxed) - done;
    let (took_s, cpu_s) = (began.elapsed().as_secs_f64(), self::cpu_s() - cpu_s);
    tally.stops.store(true, Ordering::Relaxed);
    for caller in callers {
        let _ = caller.await; // one that panicked has said so
    }
    json!({"calls_per_s": calls as f64 / took_s, "client_cpu_ns_for_each_call": cpu_s * 1e9 / calls as f64})
}

/// Calls at a rate; their time counts from when they are made.
async fn paced(
    options: &Options,
    rate: u32,
    clients: &[TradesClient],
    tally: &Arc<Tally>,
) -> serde_json::Value {
    let gap = Duration::from_secs(1) / rate.max(1);
    let calls = (options.seconds * f64::from(rate)) as u32;
    let began = Instant::now() + WARM_UP;
    let mut callers = Vec::new();
    for number in 0..calls {
        let due = began + gap * number;
        tokio::time::sleep_until(due.into()).await;
        let (client, tally) = (clients[number as usize % clients.len()].clone(), tally.clone());
        callers.push(tokio::spawn(async move {
            // the clock of the runtime counts in milliseconds: what it is late is not the service's
            let sent = Instant::now();
            match client.trade(trade()).await {
                Ok(true) => tally.done.fetch_add(1, Ordering::Relaxed),
                _ => tally.failed.fetch_add(1, Ordering::Relaxed),
            };
            sent.elapsed()
        }));
    }
    let mut times_us = Vec::new();
    for caller in callers {
        times_us.extend(caller.await.map(|time| time.as_secs_f64() * 1e6));
    }
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us.get((times_us.len() as f64 * share) as usize).or(times_us.last()).copied();
    json!({"calls_per_s": rate, "p50_us": at(0.5), "p99_us": at(0.99), "max_us": times_us.last()})
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
