//! Peak memory by the number of connections.

use super::Bench;
use crate::machine;
use crate::shape;
use crate::table::Table;
use crate::text::{thousands, three};

const CONNECTIONS: [usize; 4] = [10, 1_000, 10_000, 50_000];
/// Most connections of a quick run.
const QUICK: usize = 1_000;
/// Open files that a tool needs for itself.
const OWN_FILES: usize = 500;
/// Seconds of a run with this many connections or more, at least: making them takes a while.
const MANY: usize = 10_000;
const MANY_SECONDS: u64 = 10;
/// What ours is held to: so many bytes, and so many more for each connection.
const BOUND_BYTES: f64 = 20e6;
const BOUND_EACH_BYTES: f64 = 4_096.0;
const MIB: f64 = 1_048_576.0;

/// One round: memory varies little.
pub fn table(bench: &Bench) -> std::io::Result<()> {
    let shape = &shape::all()[0];
    let most = most_connections();
    let mut counts: Vec<usize> = CONNECTIONS.into_iter().map(|count| count.min(most)).collect();
    counts.dedup();
    counts.retain(|count| !bench.quick || *count <= QUICK);
    let of_counts = |cell: &dyn Fn(f64) -> String| counts.iter().map(|count| cell(*count as f64)).collect();
    let titles: Vec<String> =
        [vec!["tool".to_owned()], of_counts(&|count| format!("{} connections", thousands(count)))].concat();
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for tool in bench.tools.iter().filter(|tool| tool.name() == tool.program()) {
        let mut row = vec![tool.name().to_owned()];
        for &connections in &counts {
            let seconds = if connections >= MANY { bench.seconds.max(MANY_SECONDS) } else { bench.seconds };
            let measured = match connections <= tool.most_connections() {
                true => bench.place.measure(shape, tool.as_ref(), connections, seconds, None)?,
                false => None,
            };
            row.push(measured.map_or("–".to_owned(), |measured| {
                let mib = three(measured.peak_bytes as f64 / MIB);
                match measured.connections >= connections as f64 {
                    true => format!("{mib} MiB"),
                    false => format!("{mib} MiB, {} reached", thousands(measured.connections)),
                }
            }));
        }
        table.row(row);
    }
    let bound = |count: f64| format!("*{} MiB*", three((BOUND_BYTES + BOUND_EACH_BYTES * count) / MIB));
    table.row([vec!["*20 MB and 4 KiB a connection*".to_owned()], of_counts(&bound)].concat());
    println!("## Peak memory, closed loop\n");
    println!(
        "The last row is 20 MB and 4 KiB for each connection. Who is not asked for so many (–) would take gigabytes or minutes.\n"
    );
    table.print();
    if most < CONNECTIONS[CONNECTIONS.len() - 1] {
        println!(
            "More than {} connections are not allowed here: open files are limited.\n",
            thousands(most as f64)
        );
    }
    println!("Load average {}.\n", machine::load_average());
    Ok(())
}

/// Connections that one process may have here, in round thousands where it is thousands.
fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let most = limit
        .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        .saturating_sub(OWN_FILES);
    if most > 1_000 { most / 1_000 * 1_000 } else { most.max(10) }
}
