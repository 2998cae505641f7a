//! How many numbers a second one core draws: `cargo run --release -p tidemark-scenario --example choosers`.
//!
//! Each line is the median of rounds, with the slowest and the fastest: the bare distribution, and expressions as sessions
//! evaluate them. Whether a draw allocates is `tests/allocations.rs`' affair.

use std::time::Instant;

use tidemark_scenario::expr::ZipfTable;
use tidemark_scenario::{Context, Expr, Shared, Slot};

const ROUNDS: usize = 11;
const DRAWS: u32 = 5_000_000;

fn measure(name: &str, mut draws: impl FnMut(u32) -> i64) {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            std::hint::black_box(draws(DRAWS));
            f64::from(DRAWS) / begun.elapsed().as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{name:44} {:7.1} M/s  ({:.1} to {:.1})", rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = fastrand::Rng::with_seed(1);
    for n in [1e3, 1e6, 1e9, 1e10] {
        let table = ZipfTable::new(n, 0.99).ok_or("n is too large")?;
        measure(&format!("Zipf, n = {n:e}"), |draws| {
            (0..draws).fold(0, |sum, _| sum ^ table.pick(|| random.u64(..)))
        });
    }
    for text in [
        "random(1, 1000000)",
        "zipf(1000000)",
        "scrambled_zipf(1000000)",
        "hotspot(1000000, 0.2, 0.8)",
        "exponential(1000000)",
        "value(random(1, 1000000), 1, 100)",
        "value(random(1, 1000000), 1, 1000)",
    ] {
        let expr = Expr::parse_constant(text)?;
        let shared = Shared::default();
        let mut slot = Slot::default();
        let mut random = fastrand::Rng::with_seed(1);
        measure(text, |draws| {
            for _ in 0..draws {
                let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
                expr.eval_into(&mut cx, &mut slot);
            }
            matches!(slot.value(), tidemark_scenario::Value::Int(_)).into()
        });
    }
    Ok(())
}
