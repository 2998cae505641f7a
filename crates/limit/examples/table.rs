//! The table of docs/method.md: a hundred searches against each queue whose limit is known, in virtual time.
//!
//! `cargo run --release -p tidemark-limit --example table [SEARCHES [SECONDS]]`

#[path = "../tests/queues/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod queues;

use queues::series::{Series, percentiles, queues};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let budget_s = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(180.0);
    println!(
        "| queue, 1,000/s | objective | truth | median | nine of ten | 95 % interval holds the truth | half of it | time |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, queue) in queues() {
        for percentile in percentiles() {
            let Series { truth, median, most, covered, half_width, took_s, longest_s } =
                Series::of(queue, percentile, budget_s, count);
            let percent = |parts: f64| format!("{:+.1} %", (parts - 1.0) * 100.0);
            println!(
                "| {name} | p{:.0} < {:.0} ms | {truth:.1}/s | {} | {} to {} | {covered} of {count} | {:.1} % | {took_s:.0} s, at most {longest_s:.0} s |",
                (1.0 - percentile.allowed) * 100.0,
                percentile.bound_s * 1e3,
                percent(median),
                percent(most.0),
                percent(most.1),
                half_width * 100.0,
            );
        }
    }
}
