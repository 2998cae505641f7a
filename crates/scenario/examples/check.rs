//! Checks scenario files: `cargo run -p tidemark-scenario --example check -- FILE…`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut exit = ExitCode::SUCCESS;
    for file in std::env::args().skip(1) {
        let (plan, diagnostics) = tidemark_scenario::check_file(Path::new(&file), &[]);
        if !diagnostics.items().is_empty() {
            eprintln!("{diagnostics}");
        }
        match plan {
            Some(plan) => println!("{file}: {} labels, {} requests", plan.labels.len(), plan.requests.len()),
            None => exit = ExitCode::from(2),
        }
    }
    exit
}
