//! Run directories that were damaged or made by somebody else: a right one in which one file is replaced by the input,
//! or has bytes of it overwritten. It is read, summed up and shown, or refused with a reason.
//!
//! The first byte chooses the file and how; for overwriting, the next two say where.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_record::{
    Event, Manifest, Outcome, Run, RunWriter, Sample, Series, ThreadInterval, new_histogram, summarize,
};
use tidemark_report::{csv, github, html, json, junit, markdown, text};

const FILES: [&str; 6] =
    ["run.json", "events.jsonl", "intervals.parquet", "load.parquet", "monitor.parquet", "scenario.yaml"];

struct Right {
    dir: PathBuf,
    files: Vec<Vec<u8>>,
}

fn right() -> &'static Right {
    static RIGHT: OnceLock<Right> = OnceLock::new();
    RIGHT.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tidemark-fuzz-run-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        write(&dir);
        let files = FILES.map(|name| std::fs::read(dir.join(name)).expect("a run has this file")).to_vec();
        Right { dir, files }
    })
}

fn write(dir: &Path) {
    let labels = vec!["Login".to_owned(), "Query".to_owned()];
    let mut writer = RunWriter::create(dir, &labels, "name: fuzz\n").expect("a run");
    for second in 0..3 {
        let mut one = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        one.in_window = second > 0;
        (one.offered, one.connections, one.cpu_us) = (20, 10, 300_000);
        for (label, outcome) in [(0, Outcome::Ok), (1, Outcome::Ok), (1, Outcome::Timeout)] {
            let [mut response_time_us, mut response_time_less_lag_us, mut service_time_us] =
                [(); 3].map(|()| new_histogram());
            for us in [700, 1_900, 12_000] {
                response_time_us.record(us);
                response_time_less_lag_us.record(us - us / 10);
                service_time_us.record(us / 2);
            }
            one.series.push(Series {
                label,
                outcome,
                measured: second > 0,
                phase: None,
                response_time_us,
                response_time_less_lag_us,
                service_time_us,
                bodies: 0,
                body_bytes: 0,
            });
        }
        writer.add_interval(&one).expect("an interval");
        let sample = Sample { at_us: second * 1_000_000, process: "system".into(), ..Sample::default() };
        writer.add_sample(&sample).expect("a sample");
    }
    writer.add_event(&Event { at_us: -1, kind: "ready".into(), text: "there".into() }).expect("an event");
    let manifest = Manifest::new("fuzz", labels, summarize(writer.totals(), dir));
    writer.finish(&manifest).expect("a whole run");
}

/// The library that reads Parquet panics at some damage, which the reader catches; that is no finding. What is not
/// caught still is.
fn be_silent() {
    std::panic::set_hook(Box::new(|_| {}));
}

fuzz_target!(init: be_silent(), |data: &[u8]| {
    let right = right();
    let [choice, input @ ..] = data else { return };
    let index = usize::from(choice >> 1) % FILES.len();
    let bytes = match (choice & 1, input) {
        (1, [high, low, patch @ ..]) => {
            let mut bytes = right.files[index].clone();
            let at = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
            let end = bytes.len().min(at + patch.len());
            bytes[at..end].copy_from_slice(&patch[..end - at]);
            bytes
        }
        _ => input.to_vec(),
    };
    let file = right.dir.join(FILES[index]);
    std::fs::write(&file, bytes).expect("a temporary file");
    if let Ok(run) = Run::open(&right.dir) {
        let _ = json::summary(&run);
        let _ = text::summary(&run, text::Style::default());
        let _ = (markdown::summary(&run), junit::xml(&run), github::annotations(&run));
        let _ = (html::page(&run), csv::over_time(&run));
    }
    std::fs::write(&file, &right.files[index]).expect("a temporary file");
});
