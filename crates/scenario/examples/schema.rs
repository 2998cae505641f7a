//! Prints the JSON Schema of the scenario language:
//! `cargo run -p tidemark-scenario --example schema > docs/scenario.schema.json`; with `prices`, that of price files.

fn main() {
    println!(
        "{:#}",
        match std::env::args().nth(1).as_deref() {
            Some("prices") => tidemark_scenario::prices::json_schema(),
            _ => tidemark_scenario::schema::json_schema(),
        }
    );
}
