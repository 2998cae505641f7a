//! CSV files that a scenario names: rows of a feeder, or a series of rates. The first byte chooses.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::check_text;

const FEEDER: &str = "
system: {url: 'http://localhost'}
feeders: {rows: {file: fuzz.csv}}
sessions: {s: {steps: [{GET: '/${next(rows)}'}]}}
load: {users: 1, hold: 1s}
";
const RATES: &str = "
system: {url: 'http://localhost'}
sessions: {s: {steps: [{GET: /}]}}
load: {phases: [{rate: {file: fuzz.csv, between rows: line}, measured: true}]}
";

fn dir() -> &'static PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tidemark-fuzz-csv-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        dir
    })
}

fuzz_target!(|data: &[u8]| {
    let [choice, csv @ ..] = data else { return };
    std::fs::write(dir().join("fuzz.csv"), csv).expect("a temporary file");
    let text = if choice & 1 == 0 { FEEDER } else { RATES };
    let (plan, diagnostics) = check_text("fuzz.yaml", text, dir(), &[]);
    assert_eq!(plan.is_none(), diagnostics.has_errors());
    for feeder in plan.iter().flat_map(|plan| &plan.feeders) {
        assert!(!feeder.rows.is_empty());
        assert!(feeder.rows.iter().all(|row| row.len() == feeder.columns.len()));
    }
});
