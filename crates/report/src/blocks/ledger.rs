//! Whether anything was lost.

use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{EntryExample, Ledger, Verified};

use super::{Block, Level};
use crate::units::{count, more_than, three_digits};

/// First writes that are named of each kind.
const EXAMPLES: usize = 3;
/// Seconds that are named.
const SECONDS: usize = 6;

/// The numbers that a search through the store came to, and the first of each kind.
pub(super) fn ledger(manifest: &Manifest) -> Vec<Block> {
    let Some(ledger) = &manifest.summary.ledger else { return Vec::new() };
    let mut blocks = vec![Block::heading("Nothing lost?")];
    match &ledger.verified {
        Some(verified) => blocks.extend(found(manifest, ledger, verified)),
        None => {
            let reason = ledger.not_verified.as_deref().unwrap_or("nobody looked");
            blocks.push(Block::point(Level::Warning, format!("not verified: {reason}")));
            let (acknowledged, sent) = (count(ledger.acknowledged), count(ledger.sent));
            blocks.push(Block::line("acknowledged", &[&acknowledged, &format!("{sent} sent")]));
        }
    }
    let cut_off = match (ledger.torn, ledger.broke_off) {
        (0, false) => return blocks,
        (0, true) => {
            "the run broke off: what was sent in its last second is not in the ledger, nor whether it was acknowledged"
        }
        _ => "the load generator died while it wrote the ledger: its last second is missing",
    };
    blocks.push(Block::Paragraph(Level::Plain, cut_off.into()));
    blocks
}

fn found(manifest: &Manifest, ledger: &Ledger, verified: &Verified) -> Vec<Block> {
    let level = match (verified.lost, ledger.is_cut_off()) {
        (0, true) => Level::Unsure,
        (0, false) => Level::Good,
        _ => Level::Bad,
    };
    let mut lost = format!("{} lost of {} acknowledged", count(verified.lost), count(ledger.acknowledged));
    if level == Level::Unsure {
        lost = format!("undecided: {lost} that the ledger knows of");
    }
    if let Some(durability) = manifest.system.durability.as_ref().filter(|of| !of.is_empty()) {
        lost += &format!(" · {durability}");
    }
    let found = [
        count(verified.found),
        format!("{} duplicated", count(verified.duplicated)),
        format!("{} different", count(verified.different)),
        match ledger.is_cut_off() {
            true => format!("{} more that may have been acknowledged", count(verified.unacknowledged_found)),
            false => format!("{} more that were never acknowledged", count(verified.unacknowledged_found)),
        },
    ];
    let mut blocks =
        vec![Block::point(level, lost), Block::line("found", &found.each_ref().map(String::as_str))];
    let mut line = |name, parts: &[&str]| blocks.push(Block::line(name, parts));
    if verified.incomplete > 0 {
        let incomplete = count(verified.incomplete);
        line("incomplete", &[&format!("{incomplete} of the lost are in some of their places, not in all")]);
    }
    line("sent", &[&count(ledger.sent)]);
    if verified.foreign > 0 {
        line("foreign", &[&format!("{} that this run did not write", count(verified.foreign))]);
    }
    if let Some(counted) = verified.counted {
        let but = if verified.is_miscounted() { "but" } else { "and" };
        line("system counts", &[&format!("{} {but} showed {}", count(counted), count(verified.shown()))]);
    }
    if verified.absent > 0 {
        let absent = count(verified.absent);
        line("nobody has", &[&format!("{absent} numbers up to the last one, answered 404")]);
    }
    line("read back", &[&format!("{}s", three_digits(verified.took_s)), &verified.verified_at]);
    blocks.extend(when(verified));
    for kind in ["lost", "duplicated", "different"] {
        let examples = verified.examples.iter().filter(|example| example.kind == kind);
        blocks.extend(examples.take(EXAMPLES).map(|example| {
            Block::Example(String::new(), format!("{kind} {}{}", example.entry, sent_at(example)))
        }));
    }
    blocks
}

/// In which seconds the lost ones were sent.
fn when(verified: &Verified) -> Option<Block> {
    let mut parts: Vec<(Level, String)> = verified
        .lost_when
        .iter()
        .take(SECONDS)
        .map(|when| (Level::Plain, format!("{} in {}", count(when.lost), between(when.from_us, when.to_us))))
        .collect();
    if let Some(more) = more_than(verified.lost_when.len(), SECONDS) {
        parts.push((Level::Plain, format!("and in {more} more seconds")));
    }
    (!parts.is_empty()).then(|| Block::Line("lost ones sent".into(), parts))
}

/// When a write was sent, as far as it is known.
fn sent_at(example: &EntryExample) -> String {
    match example.sent_us {
        Some((from_us, to_us)) => format!(", sent in {}", between(from_us, to_us)),
        None => String::new(),
    }
}

/// `12s to 13s` of the run.
pub(crate) fn between(from_us: u64, to_us: u64) -> String {
    format!("{}s to {}s", three_digits(from_us as f64 / 1e6), three_digits(to_us as f64 / 1e6))
}
