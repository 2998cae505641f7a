//! What asking the auth service costs: `cargo run --release -p tidemark-airline --example hop -- [SECONDS]`.
//!
//! The auth service and its client are in this process, a thread each, over loopback. For one call at a time and for many
//! it prints calls a second, the median, and the processor time of both sides together for each call (Linux).

use std::time::{Duration, Instant};

use tidemark_airline::AirlineAuth;
use tidemark_mesh::{Balance, Client, ClientOptions, Method, Source};
use tidemark_service::{Durability, Options, ReferenceSystem, Stop};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let options = Options {
        listen: "127.0.0.1:0".parse()?,
        durability: Durability::Memory,
        workers: Some(1),
        announce: false,
        ..Options::default()
    };
    let (server, stop) = (AirlineAuth::bind(options)?, Stop::new());
    let (addr, triggered) = (server.addr(), stop.triggered());
    let serving = std::thread::spawn(move || server.serve(triggered).map(drop));
    let client = Client::new(ClientOptions {
        service: AirlineAuth::NAME.into(),
        commands: &["ValidateTokenCommand"],
        group: "AcmeAirGroup",
        pool_name: "AcmeAirPool",
        pool: 1000,
        timeout: Duration::from_secs(1),
        breaker: Default::default(),
        balance: Balance::TwoChoices,
        hedge: Duration::ZERO,
        source: Source::Fixed(vec![addr.to_string()]),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let made = runtime.block_on(async {
        loop {
            match client.call(0, Method::Post, "/rest/api/authtoken/byuserid/uid0").await {
                Ok(made) if made.status == 200 => break made,
                // it is still starting
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    let made: serde_json::Value = serde_json::from_slice(&made.body)?;
    let path = format!("/rest/api/authtoken/{}", made["id"].as_str().ok_or("no id")?);
    for at_once in [1, 8, 32] {
        let (began, cpu) = (Instant::now(), cpu_s()?);
        let end = began + Duration::from_secs(seconds);
        let mut took_us = runtime.block_on(async {
            let each = |_| {
                let (client, path) = (client.clone(), path.clone());
                tokio::spawn(async move {
                    let mut took_us = Vec::new();
                    while Instant::now() < end {
                        let begun = Instant::now();
                        let reply = client.call(0, Method::Get, &path).await;
                        assert!(reply.is_ok_and(|reply| reply.status == 200), "a call has failed");
                        took_us.push(begun.elapsed().as_micros() as u64);
                    }
                    took_us
                })
            };
            let mut all = Vec::new();
            for calls in (0..at_once).map(each).collect::<Vec<_>>() {
                all.extend(calls.await.unwrap_or_default());
            }
            all
        });
        let (calls, cpu) = (took_us.len().max(1), cpu_s()? - cpu);
        took_us.sort_unstable();
        let (rate, each_us) = (calls as f64 / began.elapsed().as_secs_f64(), cpu * 1e6 / calls as f64);
        let median_us = took_us.get(calls / 2).copied().unwrap_or_default();
        println!("{at_once} at once: {rate:.0} calls/s, median {median_us} µs, {each_us:.1} µs of CPU each");
    }
    stop.trigger();
    serving.join().map_err(|_| "the auth service panicked")??;
    Ok(())
}

/// Processor time of this process so far, in seconds.
fn cpu_s() -> Result<f64, Failed> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).ok_or("no Linux");
    // of which there are a hundred in a second
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}
