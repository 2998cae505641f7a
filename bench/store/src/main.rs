//! The embedded stores beside engines of others: the same writes, in turn, each in a process of its own. See `run`.

mod airline;
mod engine;
mod measure;
mod messages;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use engine::Wrong;
use measure::Size;

const ENGINES: [&str; 3] = ["ours", "fjall", "redb"];
const DURABILITIES: [&str; 2] = ["synced", "buffered"];
const WORKLOADS: [&str; 2] = ["messages", "airline"];

/// What is printed, by its name, with digits after the point.
const COLUMNS: [(&str, &str, usize); 9] = [
    ("writes_per_s", "writes/s", 0),
    ("cpu_us", "CPU, us a write", 2),
    ("group", "writes in a group", 0),
    ("commit_ms", "made durable in, ms", 2),
    ("memory_mib", "most memory, MiB", 0),
    ("disk_mib", "on disk, MiB", 0),
    ("open_s", "opened again, s", 2),
    ("count_s", "counted, s", 3),
    ("read_s", "read back, s", 2),
];

fn number(name: &str, default: u64) -> Result<u64, Wrong> {
    let given = std::env::var(name).ok();
    given.map_or(Ok(default), |text| text.parse().map_err(|_| format!("{name}={text} is no number").into()))
}

fn main() -> Result<(), Wrong> {
    let size = Size { writes: number("WRITES", 300_000)?, writers: number("WRITERS", 256)? };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(size),
        [step, workload, engine, durability, dir] => {
            let (dir, synced) = (Path::new(dir), *durability == "synced");
            match (*step, *workload) {
                ("write", "messages") => messages::write(engine, dir, synced, size),
                ("read", "messages") => messages::read(engine, dir, synced, size),
                ("write", "airline") => airline::write(engine, dir, synced, size),
                ("read", "airline") => airline::read(engine, dir, synced, size),
                _ => Err("no such step".into()),
            }
        }
        _ => Err("it takes no arguments; see bench/store/run".into()),
    }
}

type Figures = BTreeMap<String, Vec<f64>>;

/// All of it, in turn, round for round.
fn compare(size: Size) -> Result<(), Wrong> {
    let rounds = number("ROUNDS", 5)?;
    let only = std::env::var("ONLY").unwrap_or_default();
    let base = std::env::var("DIR").unwrap_or_else(|_| "/var/tmp".to_owned());
    for workload in WORKLOADS {
        for durability in DURABILITIES {
            if !format!("{workload} {durability}").contains(&only) {
                continue;
            }
            let mut figures: [Figures; ENGINES.len()] = Default::default();
            for _ in 0..rounds {
                for (figures, engine) in figures.iter_mut().zip(ENGINES) {
                    let dir = tempfile::tempdir_in(&base)?;
                    let of = [workload, engine, durability];
                    run("write", of, dir.path(), figures)?;
                    figures.entry("disk_mib".into()).or_default().push(mib_of(dir.path())?);
                    run("read", of, dir.path(), figures)?;
                }
            }
            show(&format!("{workload}, {durability}"), size, rounds, &figures);
        }
    }
    Ok(())
}

/// One step in a process of its own.
fn run(step: &str, of: [&str; 3], dir: &Path, figures: &mut Figures) -> Result<(), Wrong> {
    let output = Command::new(std::env::current_exe()?).arg(step).args(of).arg(dir).output()?;
    if !output.status.success() {
        return Err(format!("{step} {of:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    for line in String::from_utf8(output.stdout)?.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        figures.entry(name.to_owned()).or_default().push(value.parse()?);
    }
    Ok(())
}

fn mib_of(dir: &Path) -> Result<f64, Wrong> {
    let mut sum = 0.0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        use std::os::unix::fs::MetadataExt;
        // what it occupies, since files are made longer than what is in them
        sum += if about.is_dir() { mib_of(&entry.path())? } else { about.blocks() as f64 / 2048.0 };
    }
    Ok(sum)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len => (values[(len - 1) / 2] + values[len / 2]) / 2.0,
    }
}

fn show(title: &str, size: Size, rounds: u64, figures: &[Figures; ENGINES.len()]) {
    println!("\n### {title}: {} writes, {} writers, medians of {rounds} rounds\n", size.writes, size.writers);
    let heads: Vec<&str> = COLUMNS.iter().map(|(_, head, _)| *head).collect();
    println!("| engine | {} | ours: writes/s | ours: CPU |", heads.join(" | "));
    println!("| --- |{}", " ---: |".repeat(COLUMNS.len() + 2));
    let values = |figures: &Figures, name: &str| figures.get(name).cloned().unwrap_or_default();
    for (of, engine) in figures.iter().zip(ENGINES) {
        let cells =
            COLUMNS.iter().map(|(name, _, digits)| format!("{:.*}", digits, median(values(of, name))));
        // each ratio between two runs that were close in time
        let ratio = |name: &str, more_is_better: bool| {
            let pairs = values(&figures[0], name).into_iter().zip(values(of, name));
            median(
                pairs
                    .map(|(ours, theirs)| if more_is_better { ours / theirs } else { theirs / ours })
                    .collect(),
            )
        };
        println!(
            "| {engine} | {} | x {:.2} | x {:.2} |",
            cells.collect::<Vec<_>>().join(" | "),
            ratio("writes_per_s", true),
            ratio("cpu_us", false)
        );
    }
}
