//! What stores that speak Redis' protocol keep on disk: the lines of their configuration, and what an acknowledgement means.

use std::fmt::Write as _;

use tidemark_scenario::plan::{AppendOnly, Store};

/// Lines of a file of configuration.
pub fn lines(store: &Store) -> String {
    let files = &store.persistence;
    let mut lines = match store.append_only() {
        AppendOnly::Off => "appendonly no\n".to_owned(),
        append => format!("appendonly yes\nappendfsync {}\n", append.name()),
    };
    if files.snapshots.is_empty() {
        lines += "save \"\"\n";
    }
    for after in &files.snapshots {
        let _ = writeln!(lines, "save {} {}", after.seconds, after.changes);
    }
    if let Some(bytes) = files.rewrite_at_bytes {
        let _ = writeln!(lines, "auto-aof-rewrite-min-size {bytes}");
    }
    if let Some(percent) = files.rewrite_growth_percent {
        let _ = writeln!(lines, "auto-aof-rewrite-percentage {percent}");
    }
    lines
}

/// What a reader of the figures must know of it.
pub fn remarks(store: &Store) -> String {
    let files = &store.persistence;
    let append = store.append_only();
    let after = |after: &tidemark_scenario::plan::SnapshotAfter| {
        format!("{} s with {} changes", after.seconds, after.changes)
    };
    let snapshots = files.snapshots.iter().map(after).collect::<Vec<_>>().join(", ");
    let mut text = match append {
        AppendOnly::Always => "appendfsync always: acknowledged when it is on disk".to_owned(),
        AppendOnly::EverySecond => {
            "appendfsync everysec: acknowledged before it is on disk, synced every second".to_owned()
        }
        AppendOnly::Unsynced => {
            "appendfsync no: acknowledged when the operating system has it, which syncs it when it wants"
                .to_owned()
        }
        AppendOnly::Off if snapshots.is_empty() => {
            "no append-only file and no snapshots: nothing outlives its process".to_owned()
        }
        AppendOnly::Off => format!(
            "no append-only file: acknowledged when it is in memory; a snapshot after {snapshots}, and what came since \
             the last one is lost by a kill"
        ),
    };
    if append != AppendOnly::Off && !snapshots.is_empty() {
        let _ = write!(text, "; a snapshot, too, after {snapshots}");
    }
    match (files.rewrite_growth_percent, files.rewrite_at_bytes) {
        (Some(0), _) => text += "; its append-only file is never rewritten by itself",
        (None, None) => {}
        (growth, least) => {
            text += "; its append-only file is rewritten";
            if let Some(percent) = growth {
                let _ = write!(text, " when it has grown by {percent}%");
            }
            if let Some(bytes) = least {
                let _ = write!(text, ", from {bytes} bytes on");
            }
        }
    }
    text
}
