//! What each measured phase of a run came to, held against a rate, as a Markdown table; and when it was well again.
//!
//! ```text
//! cargo run --release -p tidemark-record --example phases -- RUN 47155
//! ```
//!
//! Rows are phases. *Accepted* is what ended well, *refused* what was answered with a status of failure, each with the
//! times from its first byte sent to the last byte of its answer. *Not sent* is what the driver dropped, since no
//! connection was free: all carried a request that had no answer yet. Recovery counts from the end of a phase whose name
//! begins with `flood` to the first three seconds in a row, in the phase behind it, in each of which nothing failed,
//! nothing was not sent, and nine tenths of what was offered were accepted. How many later ones were not so is told, too:
//! a system that has recovered and falls behind again, or a machine that had other things to do.

use std::path::Path;

use tidemark_record::manifest::Phase;
use tidemark_record::{Merged, Outcome, RecordError, Run, latency, new_merged};

/// Shorter intervals, at the edges of phases, count for a phase but not as its worst second.
const SECOND_US_LEAST: u64 = 900_000;
/// Recovered is what accepts so much of what is offered.
const WELL: f64 = 0.9;
/// For so many seconds in a row.
const WELL_S: usize = 3;

/// One interval, its rows added up.
#[derive(Default)]
struct Interval {
    start_us: u64,
    end_us: u64,
    offered: u64,
    accepted: u64,
    refused: u64,
    otherwise: u64,
    dropped: u64,
}

impl Interval {
    fn is_within(&self, phase: &Phase) -> bool {
        let middle_us = self.start_us.midpoint(self.end_us);
        (phase.start_us..phase.end_us).contains(&middle_us)
    }

    fn is_well(&self) -> bool {
        let failed = self.refused + self.otherwise + self.dropped;
        failed == 0 && self.accepted as f64 >= WELL * self.offered as f64
    }
}

fn intervals(run: &Run) -> Vec<Interval> {
    let mut all: Vec<Interval> = Vec::new();
    let mut at = |start_us, end_us| -> usize {
        all.iter().position(|one| (one.start_us, one.end_us) == (start_us, end_us)).unwrap_or_else(|| {
            all.push(Interval { start_us, end_us, ..Interval::default() });
            all.len() - 1
        })
    };
    let loads: Vec<usize> = run.load.iter().map(|load| at(load.start_us, load.end_us)).collect();
    let series: Vec<usize> = run.series.iter().map(|one| at(one.start_us, one.end_us)).collect();
    for (load, index) in run.load.iter().zip(loads) {
        all[index].offered += load.offered;
        all[index].dropped += load.dropped;
    }
    for (one, index) in run.series.iter().zip(series) {
        match one.outcome {
            Outcome::Ok => all[index].accepted += one.count,
            Outcome::Status => all[index].refused += one.count,
            _ => all[index].otherwise += one.count,
        }
    }
    all.sort_by_key(|one| one.start_us);
    all
}

/// Median and 99th percentile of the service times of those that ended so, in milliseconds.
fn times(run: &Run, phase: &Phase, outcome: Outcome) -> Result<String, RecordError> {
    let mut merged: Merged = new_merged();
    for one in run.series.iter().filter(|one| one.outcome == outcome) {
        let middle_us = one.start_us.midpoint(one.end_us);
        if (phase.start_us..phase.end_us).contains(&middle_us) {
            run.merge(&mut merged, &one.service_time_us)?;
        }
    }
    if merged.is_empty() {
        return Ok("none".into());
    }
    let found = latency(&merged);
    let ms = |us: Option<u64>| us.map_or("-".into(), |us| format!("{:.1} ms", us as f64 / 1e3));
    Ok(format!("{}, {}", ms(found.p50), ms(found.p99)))
}

/// When it was well again in the phase `after`, whose intervals these are.
fn recovery(of: &[&Interval], flood: &Phase, after: &Phase, holds: f64) -> String {
    let offered: u64 = of.iter().map(|one| one.offered).sum();
    let took_s = of.iter().map(|one| one.end_us - one.start_us).sum::<u64>() as f64 / 1e6;
    let at = format!("at {:.2} of what it holds", offered as f64 / took_s / holds);
    let whole: Vec<&&Interval> =
        of.iter().filter(|one| one.end_us - one.start_us >= SECOND_US_LEAST).collect();
    let since_flood_s = |us: u64| us.saturating_sub(flood.end_us) as f64 / 1e6;
    let Some(first) = whole.windows(WELL_S).position(|three| three.iter().all(|one| one.is_well())) else {
        let within_s = since_flood_s(after.end_us);
        return format!("Not well again within {within_s:.1} s after `{}`, {at}.", flood.name);
    };
    let took_s = since_flood_s(whole[first].start_us);
    let later = &whole[first..];
    let not_well = later.iter().filter(|one| !one.is_well()).count();
    let relapse = match not_well {
        0 => String::new(),
        _ => format!(" Of the {} s after that, {not_well} s were not well.", later.len()),
    };
    format!("Well again {took_s:.1} s after `{}`, {at}.{relapse}", flood.name)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(holds)) = (arguments.next(), arguments.next()) else {
        return Err("name a run directory, and the rate that its phases are held against".into());
    };
    let holds: f64 = holds.parse()?;
    let run = Run::open(Path::new(&dir))?;
    let all = intervals(&run);
    println!(
        "| phase | offered/s | accepted/s | of what it holds | fewest in a second | accepted: p50, p99 | refused/s \
         | refused: p50, p99 | otherwise failed/s | not sent/s |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for phase in run.manifest.phases.iter().filter(|phase| phase.measured) {
        let of: Vec<&Interval> = all.iter().filter(|one| one.is_within(phase)).collect();
        let took_s = of.iter().map(|one| one.end_us - one.start_us).sum::<u64>() as f64 / 1e6;
        let rate = |count: fn(&Interval) -> u64| of.iter().map(|one| count(one)).sum::<u64>() as f64 / took_s;
        let whole = of.iter().filter(|one| one.end_us - one.start_us >= SECOND_US_LEAST);
        let per_s = whole.map(|one| one.accepted as f64 * 1e6 / (one.end_us - one.start_us) as f64);
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.0} | {} | {:.0} | {} | {:.0} | {:.0} |",
            phase.name,
            rate(|one| one.offered),
            rate(|one| one.accepted),
            rate(|one| one.accepted) / holds,
            per_s.reduce(f64::min).unwrap_or_default(),
            times(&run, phase, Outcome::Ok)?,
            rate(|one| one.refused),
            times(&run, phase, Outcome::Status)?,
            rate(|one| one.otherwise),
            rate(|one| one.dropped),
        );
    }
    println!();
    for pair in run.manifest.phases.windows(2) {
        if let [flood, after] = pair
            && flood.name.starts_with("flood")
        {
            let of: Vec<&Interval> = all.iter().filter(|one| one.is_within(after)).collect();
            println!("{}", recovery(&of, flood, after, holds));
        }
    }
    Ok(())
}
