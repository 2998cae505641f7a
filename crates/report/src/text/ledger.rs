//! Whether anything was lost.

use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{EntryExample, Ledger, Verified};

use super::{BAD, EXAMPLES, GOOD, INDENT, QUIET, Text, WARNING};
use crate::table::length;
use crate::units::{count, three_digits};

/// What stands between the parts of a line.
const SEPARATOR: &str = " · ";
/// Seconds that are named.
const SECONDS: usize = 6;

/// The numbers that a search through the store came to, and the first of each kind.
pub(super) fn ledger(text: &mut Text, manifest: &Manifest) {
    let Some(ledger) = &manifest.summary.ledger else { return };
    text.heading("Nothing lost?");
    match &ledger.verified {
        Some(verified) => found(text, manifest, ledger, verified),
        None => {
            let reason = ledger.not_verified.as_deref().unwrap_or("nobody looked");
            let mark = text.paint(WARNING, "!");
            text.marked(&mark, &format!("not verified: {reason}"));
            let (acknowledged, sent) = (count(ledger.acknowledged), count(ledger.sent));
            text.named("acknowledged", &[&acknowledged, &format!("{sent} sent")]);
        }
    }
    if ledger.torn > 0 {
        text.paragraph("the load generator died while it wrote the ledger: its last second is missing");
    }
}

fn found(text: &mut Text, manifest: &Manifest, ledger: &Ledger, verified: &Verified) {
    let (paint, mark) = if verified.lost > 0 { (BAD, "✗") } else { (GOOD, "✓") };
    let lost = text.paint(paint, &format!("{mark} {} lost", count(verified.lost)));
    let of = format!("of {} acknowledged", count(ledger.acknowledged));
    // the mark, a space and the word are in it, too
    let length = INDENT + length(&format!("{mark} {} lost {of}", count(verified.lost)));
    match manifest.system.durability.as_deref().unwrap_or_default() {
        "" => text.line(&format!("{:INDENT$}{lost} {of}", "")),
        durability if length + SEPARATOR.len() + durability.len() <= text.width => {
            text.line(&format!("{:INDENT$}{lost} {of}{SEPARATOR}{durability}", ""));
        }
        durability => {
            text.line(&format!("{:INDENT$}{lost} {of}", ""));
            text.named("durability", &[durability]);
        }
    }
    let found = [
        count(verified.found),
        format!("{} duplicated", count(verified.duplicated)),
        format!("{} different", count(verified.different)),
        format!("{} more that were never acknowledged", count(verified.unacknowledged_found)),
    ];
    text.named("found", &found.each_ref().map(String::as_str));
    if verified.incomplete > 0 {
        let line =
            format!("{} of the lost are in some of their places, not in all", count(verified.incomplete));
        text.named("incomplete", &[&line]);
    }
    text.named("sent", &[&count(ledger.sent)]);
    if verified.foreign > 0 {
        text.named("foreign", &[&format!("{} that this run did not write", count(verified.foreign))]);
    }
    if let Some(counted) = verified.counted {
        let but = if verified.is_miscounted() { "but" } else { "and" };
        let line = format!("{} {but} showed {}", count(counted), count(verified.shown()));
        text.named("system counts", &[&line]);
    }
    if verified.absent > 0 {
        let line = format!("{} numbers up to the last one, answered 404", count(verified.absent));
        text.named("nobody has", &[&line]);
    }
    text.named("read back", &[&format!("{}s", three_digits(verified.took_s)), &verified.verified_at]);
    when(text, verified);
    for (kind, what) in [("lost", "lost"), ("duplicated", "duplicated"), ("different", "different")] {
        let examples = verified.examples.iter().filter(|example| example.kind == kind);
        for example in examples.take(EXAMPLES) {
            let line = format!("{what} {}{}", example.entry, sent_at(example));
            let line = text.paint(QUIET, &super::clean(&line));
            text.line(&format!("{:1$}{line}", "", 2 * INDENT));
        }
    }
}

/// In which seconds the lost ones were sent.
fn when(text: &mut Text, verified: &Verified) {
    let seconds: Vec<String> = verified
        .lost_when
        .iter()
        .take(SECONDS)
        .map(|when| format!("{} in {}", count(when.lost), between(when.from_us, when.to_us)))
        .collect();
    if seconds.is_empty() {
        return;
    }
    let mut parts: Vec<&str> = seconds.iter().map(String::as_str).collect();
    let more = format!("and in {} more seconds", verified.lost_when.len().saturating_sub(SECONDS));
    if verified.lost_when.len() > SECONDS {
        parts.push(&more);
    }
    text.named("lost ones sent", &parts);
}

/// When a write was sent, as far as it is known.
pub(crate) fn sent_at(example: &EntryExample) -> String {
    match example.sent_us {
        Some((from_us, to_us)) => format!(", sent in {}", between(from_us, to_us)),
        None => String::new(),
    }
}

/// `12s to 13s` of the run.
pub(crate) fn between(from_us: u64, to_us: u64) -> String {
    format!("{}s to {}s", three_digits(from_us as f64 / 1e6), three_digits(to_us as f64 / 1e6))
}
