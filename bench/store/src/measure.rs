//! What a measurement prints, a `NAME VALUE` each line.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::engine::Wrong;

/// How much is written.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Writes.
    pub writes: u64,
    /// How many wait for an answer at the same time.
    pub writers: u64,
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Most memory of this process so far, MiB.
fn memory_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// Lets writers take numbers in turn until none is left, and ends the process as it is: nothing is closed. `write` tells
/// how many writes it made, `groups` how many
/// groups these became, and how many microseconds it took to make them durable.
pub fn writes<F>(
    size: Size,
    groups: impl Fn() -> (u64, u64),
    write: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<(), Wrong>
where
    F: Future<Output = Result<u64, Wrong>> + Send,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let next = Arc::new(AtomicU64::new(0));
    let (begun, cpu) = (Instant::now(), cpu_s());
    let writers: Vec<_> = (0..size.writers)
        .map(|_| {
            let (next, write) = (next.clone(), write.clone());
            runtime.spawn(async move {
                let mut writes = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= size.writes {
                        return Ok::<u64, Wrong>(writes);
                    }
                    writes += write(number).await?;
                }
            })
        })
        .collect();
    let mut writes = 0;
    for writer in writers {
        writes += runtime.block_on(writer)??;
    }
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    println!("writes_per_s {}", writes as f64 / took);
    println!("cpu_us {}", cpu * 1e6 / writes as f64);
    let (groups, commit_us) = groups();
    println!("group {}", writes as f64 / groups as f64);
    println!("commit_ms {}", commit_us as f64 / groups as f64 / 1e3);
    println!("memory_mib {}", memory_mib());
    std::process::exit(0);
}

/// Does something, and prints how long it took.
pub fn timed<T>(name: &str, work: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    let begun = Instant::now();
    let done = work()?;
    println!("{name} {}", begun.elapsed().as_secs_f64());
    Ok(done)
}

/// Opens what a process left that was not closed, and prints how long that took.
pub fn opening<T>(open: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    timed("open_s", open)
}
