//! What JMeter and nmon wrote: results as XML or CSV, a log, CPU. The first byte chooses.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_report::{blocks, jmeter, markdown, still, text};

const NAMES: [&str; 4] = ["a.jtl", "a.csv", "a.log", "a.nmon"];

fn dir() -> &'static PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tidemark-fuzz-jmeter-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        dir
    })
}

fuzz_target!(|data: &[u8]| {
    let [choice, bytes @ ..] = data else { return };
    let file = dir().join(NAMES[usize::from(choice % 4)]);
    std::fs::write(&file, bytes).expect("a temporary file");
    if let Ok(found) = jmeter::read(dir()) {
        let figures = found.figures();
        let requests: u64 = figures.labels.iter().map(|of| of.requests).sum();
        assert_eq!(figures.overall.as_ref().map_or(0, |of| of.requests), requests);
        let shown = blocks::jmeter(&figures, true);
        text::render(&shown, text::Style::default());
        markdown::render(&shown);
        still::jmeter(&figures);
    }
    std::fs::remove_file(&file).expect("the file is there");
});
