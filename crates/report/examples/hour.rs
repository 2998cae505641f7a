//! Writes a run directory of an hour in which the system tells of so many operations: something to cut up.
//!
//! `cargo run --release -p tidemark-report --example hour -- DIR 10000000`

use std::path::PathBuf;

use tidemark_record::manifest::Phase;
use tidemark_record::{Manifest, Operation, OperationsWriter, RunWriter, ThreadInterval, summarize};

/// Entity, operation, how many of 100 are these, and their median in microseconds.
const KINDS: [(&str, &str, u64, f64); 6] = [
    ("Outbound", "post", 15, 9_000.0),
    ("Outbound", "store", 15, 4_000.0),
    ("Inbound", "store", 50, 4_500.0),
    ("Outbound", "search", 10, 800.0),
    ("Friend", "load", 6, 300.0),
    ("Participant", "store", 4, 1_200.0),
];
const HOUR_US: u64 = 3_600_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir: PathBuf = arguments.next().ok_or("usage: hour DIR OPERATIONS")?.into();
    let operations: u64 = arguments.next().ok_or("usage: hour DIR OPERATIONS")?.parse()?;
    let dir = tidemark_record::new_run_dir(Some(&dir), "hour")?;
    let mut run = RunWriter::create(&dir, &[], "name: hour\n")?;
    let mut interval = ThreadInterval::empty(0, 0, HOUR_US);
    interval.in_window = true;
    run.add_interval(&interval)?;
    let mut manifest = Manifest::new("hour", Vec::new(), summarize(run.totals(), &dir));
    manifest.id = "hour".into();
    manifest.started_at = "2026-01-31T12:00:00Z".into();
    manifest.phases =
        vec![Phase { name: "hold".into(), end_us: HOUR_US, measured: true, ..Phase::default() }];
    let mut writer = OperationsWriter::create(&dir)?;
    fastrand::seed(1);
    for n in 0..operations {
        let mut draw = fastrand::u64(0..100);
        let kind = KINDS.iter().find(|(_, _, share, _)| {
            let is_it = draw < *share;
            draw = draw.wrapping_sub(*share);
            is_it
        });
        let (entity, operation, _, median_us) = *kind.unwrap_or(&KINDS[0]);
        // log-normal: the sum of some uniform numbers is nearly normal
        let normal = (0..6).map(|_| fastrand::f64() - 0.5).sum::<f64>() * 1.4;
        writer.push(&Operation {
            at_us: n * HOUR_US / operations,
            entity,
            operation,
            duration_us: (median_us * (0.6 * normal).exp()) as u64,
            status: if fastrand::u64(0..10_000) == 0 { 503 } else { 200 },
        })?;
    }
    writer.finish()?;
    run.finish(&manifest)?;
    Ok(())
}
