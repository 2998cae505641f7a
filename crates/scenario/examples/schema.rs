//! Prints the JSON Schema of the scenario language:
//! `cargo run -p tidemark-scenario --example schema > docs/scenario.schema.json`.

fn main() {
    println!("{:#}", tidemark_scenario::schema::json_schema());
}
