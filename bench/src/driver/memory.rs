//! Peak memory by the number of connections.

use super::Bench;
use crate::machine;
use crate::shape;
use crate::table::Table;
use crate::text::{thousands, three};

const CONNECTIONS: [usize; 4] = [10, 1_000, 10_000, 50_000];
/// Most connections of a quick run.
const QUICK: usize = 1_000;
/// What ours is held to: so many bytes, and so many more for each connection.
const BOUND_BYTES: f64 = 20e6;
const BOUND_EACH_BYTES: f64 = 4_096.0;
const MIB: f64 = 1_048_576.0;

/// One round: memory varies little.
pub fn table(bench: &Bench) -> std::io::Result<()> {
    let shape = &shape::all()[0];
    let counts: Vec<usize> =
        CONNECTIONS.into_iter().filter(|count| !bench.quick || *count <= QUICK).collect();
    let of_counts = |cell: &dyn Fn(f64) -> String| counts.iter().map(|count| cell(*count as f64)).collect();
    let titles: Vec<String> =
        [vec!["tool".to_owned()], of_counts(&|count| format!("{} connections", thousands(count)))].concat();
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for tool in bench.tools.iter().filter(|tool| tool.name() == tool.program()) {
        let mut row = vec![tool.name().to_owned()];
        for &connections in &counts {
            let measured = match connections <= tool.most_connections() {
                true => bench.place.measure(shape, tool.as_ref(), connections, bench.seconds.max(5), None)?,
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
        "The last row is the bound that ours is held to. Who is not asked for so many (–) would take gigabytes or minutes.\n"
    );
    table.print();
    println!("Load average {}.\n", machine::load_average());
    Ok(())
}
