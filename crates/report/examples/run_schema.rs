//! Prints the JSON Schema of what `--json` prints of a run:
//! `cargo run -q -p tidemark-report --example run_schema > docs/run.schema.json`.

fn main() {
    println!("{:#}", tidemark_report::json::schema());
}
