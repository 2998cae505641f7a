//! The figures of each phase of the load.

use tidemark_record::summary::{Phase, Summary};
use tidemark_record::{DRIVER, SYSTEM};

use super::tables::{shown, times};
use super::{Block, Cell, Level, Table};
use crate::units::{count, seconds, three_digits};

/// What the columns say. CPU is in cores, a mean.
const HEAD: [&str; 12] = [
    "",
    "for",
    "offered/s",
    "achieved/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "failed",
    "CPU system",
    "CPU driver",
];

/// The phases, those that are not measured included. None where only one is measured: its figures are those of the whole.
pub(super) fn phases(summary: &Summary) -> Vec<Block> {
    if summary.phases.iter().filter(|phase| phase.measured).count() < 2 {
        return Vec::new();
    }
    let may_go = ["p99.9", "p90", "for", "max", "CPU driver", "CPU system"];
    let mut table = Table::new(HEAD).dispensable(&may_go);
    for phase in &summary.phases {
        let length = seconds(phase.length_s());
        let rates = [phase.offered_per_s, phase.achieved_per_s].map(three_digits);
        let cores = [SYSTEM, DRIVER].map(|name| cores(phase, name));
        let before = std::iter::once(length).chain(rates).map(Cell::from);
        let behind = std::iter::once(count(phase.failed)).chain(cores).map(Cell::from);
        table.row(&phase.name, before.chain(times(&phase.response_time_us)).chain(behind));
    }
    let mut blocks = shown("By phase", table);
    let unmeasured = summary.phases.iter().filter(|phase| !phase.measured);
    let unmeasured: Vec<&str> = unmeasured.map(|phase| phase.name.as_str()).collect();
    if !unmeasured.is_empty() {
        blocks.push(Block::point(Level::Plain, format!("not measured: {}", unmeasured.join(", "))));
    }
    blocks
}

/// How many cores a process used; a dash where that is not known.
fn cores(phase: &Phase, name: &str) -> String {
    let process = phase.processes.iter().find(|process| process.name == name);
    process.map_or_else(|| "-".to_owned(), |process| three_digits(process.cpu_share))
}
