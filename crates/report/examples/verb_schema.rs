//! Prints the JSON Schema of what `--json` prints of `limit`, `compare`, `history`, `cost`, `plan`, `reproduce` or (`jmeter`) `report --jmeter`, or
//! (`run-comparison`) of `tidemark run` with a file that compares several scenarios:
//! `cargo run -q -p tidemark-report --example verb_schema limit > docs/limit.schema.json`.

use std::process::ExitCode;

use tidemark_report::json::of_verbs;

fn main() -> ExitCode {
    let named = std::env::args().nth(1).unwrap_or_default();
    let Some((_, schema)) = of_verbs().into_iter().find(|(name, _)| *name == named) else {
        eprintln!("name one: {}", of_verbs().map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    };
    println!("{schema:#}");
    ExitCode::SUCCESS
}
