//! Prints the JSON Schema of what `--json` prints of `limit`, `compare`, `history`, `cost`, `plan`, `reproduce` or (`jmeter`) `report --jmeter`, or
//! (`run-comparison`) of `tidemark run` with a file that compares several scenarios:
//! `cargo run -q -p tidemark-report --example verb_schema limit > docs/limit.schema.json`.

use std::process::ExitCode;

use tidemark_report::comparison::{Claims, Compared};
use tidemark_report::cost::Costs;
use tidemark_report::history::History;
use tidemark_report::jmeter::Figures;
use tidemark_report::limit;
use tidemark_report::plan::Planned;
use tidemark_report::reproduction::Reproduction;

fn main() -> ExitCode {
    let schema = match std::env::args().nth(1).as_deref() {
        Some("limit") => limit::schema(),
        Some("compare") => Claims::schema(),
        Some("run-comparison") => Compared::schema(),
        Some("history") => History::schema(),
        Some("cost") => Costs::schema(),
        Some("plan") => Planned::schema(),
        Some("reproduce") => Reproduction::schema(),
        Some("jmeter") => Figures::schema(),
        _ => {
            eprintln!("name one: limit, compare, run-comparison, history, cost, plan, reproduce or jmeter");
            return ExitCode::from(2);
        }
    };
    println!("{schema:#}");
    ExitCode::SUCCESS
}
