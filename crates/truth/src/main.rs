//! `truth-server`: the same server for tools that are started from a shell.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use tidemark_truth::{Behaviour, Delay, Down, Freeze, Misbehaviours, Pauses, Server};

/// Answers HTTP/1.1 in a known way until its standard input ends, then prints what it did as JSON.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// fixed:5ms, exponential:5ms, lognormal:4ms,0.8 or bimodal:2ms,50ms,0.05; one for each shard
    #[arg(long = "delay")]
    delays: Vec<Delay>,
    /// Requests that it is able to serve in a second
    #[arg(long)]
    capacity: Option<f64>,
    /// Workers who serve one request each at a time: a delay is how long one takes
    #[arg(long)]
    workers: Option<usize>,
    /// Milliseconds from one pause of the workers to the next
    #[arg(long, requires_all = ["workers", "pause_ms"])]
    pause_every_ms: Option<u64>,
    /// Length of a pause, milliseconds
    #[arg(long, requires = "pause_every_ms")]
    pause_ms: Option<u64>,
    /// By what part of itself a service gets slower in each minute
    #[arg(long, requires = "workers", default_value_t = 0.0)]
    slows: f64,
    /// What is wrong with which answers: silence, half-open, half-close, reset, reset-midway, close, half-answer, too-long,
    /// too-short, not-http, wrong-body, status:500, late:300ms or drip:2s; status:500@1/20 for one of twenty
    #[arg(long)]
    fault: Option<Misbehaviours>,
    /// No server for so many milliseconds
    #[arg(long, requires = "down_after_ms")]
    down_ms: Option<u64>,
    /// Milliseconds from the first request to the time without a server
    #[arg(long, requires = "down_ms")]
    down_after_ms: Option<u64>,
    /// A freeze of so many milliseconds
    #[arg(long, requires = "freeze_after_ms")]
    freeze_ms: Option<u64>,
    /// Milliseconds from the first request to the freeze
    #[arg(long, requires = "freeze_ms")]
    freeze_after_ms: Option<u64>,
    /// Milliseconds between two accepted connections
    #[arg(long)]
    accept_every_ms: Option<u64>,
    /// TLS, with a certificate that nobody trusts
    #[arg(long)]
    tls: bool,
    /// Seed of the random delays
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let freeze = arguments.freeze_ms.zip(arguments.freeze_after_ms).map(|(length, after)| Freeze {
        after: Duration::from_millis(after),
        length: Duration::from_millis(length),
    });
    let down = arguments.down_ms.zip(arguments.down_after_ms).map(|(length, after)| Down {
        after: Duration::from_millis(after),
        length: Duration::from_millis(length),
    });
    let pauses = arguments.pause_every_ms.zip(arguments.pause_ms).map(|(every, length)| Pauses {
        every: Duration::from_millis(every),
        length: Duration::from_millis(length),
    });
    let behaviour = Behaviour {
        delays: arguments.delays,
        faults: arguments.fault.map(|faults| faults.0).unwrap_or_default(),
        accept_every: arguments.accept_every_ms.map(Duration::from_millis),
        capacity_per_s: arguments.capacity.filter(|per_s| *per_s > 0.0),
        workers: arguments.workers.filter(|workers| *workers > 0),
        pauses,
        slows: arguments.slows.max(0.0),
        reset_every: None,
        freeze,
        down,
        seed: arguments.seed,
        tls: arguments.tls,
    };
    let server = Server::start_at(arguments.listen, behaviour)?;
    println!("listening http://{}", server.address());
    std::io::stdout().flush()?;
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let truth = server.stop()?;
    let kept = truth.all_kept_us();
    let of = |quantile| kept.value_at_quantile(quantile);
    let freezes: Vec<f64> = truth.freezes_ns.iter().map(|(begin, end)| (end - begin) as f64 / 1e9).collect();
    let faults: BTreeMap<String, u64> =
        truth.faults.iter().map(|(fault, count)| (fault.to_string(), *count)).collect();
    let object = serde_json::json!({
        "requests": truth.requests,
        "answered": truth.answered,
        "faults": faults,
        "left": truth.left,
        "connections": truth.connections,
        "kept_us": {"p50": of(0.5), "p90": of(0.9), "p99": of(0.99), "p999": of(0.999), "max": kept.max()},
        "late_us": {"p99": truth.late_us.value_at_quantile(0.99), "max": truth.late_us.max()},
        "freezes_s": freezes,
        "waited_us": truth.waited_us,
    });
    println!("{object}");
    Ok(())
}
