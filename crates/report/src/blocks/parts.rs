//! Where the time of the good answers went, and the slowest requests.

use tidemark_record::manifest::{Manifest, System, Target};
use tidemark_record::status_name;
use tidemark_record::summary::{Parts, Slow, Summary};

use super::run::under;
use super::{Block, Level, Table};
use crate::units::{count, duration, percent, three_digits, time};

/// Slow requests that have a line.
const SLOWEST: usize = 3;

/// Where the time went, where there is more to tell than service time and response time do.
pub(super) fn time_parts(manifest: &Manifest) -> Vec<Block> {
    let Some(of) = manifest.summary.parts.as_ref().filter(|parts| parts.tell()) else { return Vec::new() };
    let lookups = lookups(&manifest.system, &manifest.targets);
    let lookups = lookups.map(|told| Block::Paragraph(Level::Quiet, told));
    under("Where the time went", std::iter::once(Block::Table(table(of))).chain(lookups))
}

/// A row for each part that there is.
fn table(parts: &Parts) -> Table {
    let head = ["", "mean", "share", "p50", "p99", "max", "count"];
    let mut table = Table::new(head).dispensable(&["count", "p50"]).whole_names();
    let whole: f64 = parts.named().iter().map(|(_, part)| part.mean_us).sum();
    for (name, part) in parts.named().into_iter().filter(|(_, part)| part.count > 0) {
        let of = part.times_us.clone().unwrap_or_default();
        let [p50, p99, max] = [of.p50, of.p99, of.max].map(time);
        let share = if whole > 0.0 { part.mean_us / whole } else { 0.0 };
        table.row(name, [duration(part.mean_us), percent(share), p50, p99, max, count(part.count)]);
    }
    table
}

/// The slowest requests that were answered.
pub(super) fn slowest(summary: &Summary) -> Vec<Block> {
    let slow = summary.slowest.iter().take(SLOWEST).map(|slow| {
        let text = format!("{} {}", duration(slow.response_time_us as f64), slow.label);
        Block::Point(Level::Plain, text, of_slow(slow))
    });
    under("Slowest", slow)
}

/// How long names were looked up, which no request waited for; nothing where there were none.
fn lookups(system: &System, targets: &[Target]) -> Option<String> {
    let system = (system.url.as_str(), system.lookup_us);
    let targets = targets.iter().map(|target| (target.name.as_str(), target.lookup_us));
    let all = std::iter::once(system).chain(targets);
    let took = all.filter_map(|(name, us)| Some(format!("{} for {name}", duration(us? as f64))));
    let took: Vec<String> = took.collect();
    (!took.is_empty()).then(|| format!("names were looked up once, before the load: {}", took.join(", ")))
}

/// What is said of a slow request behind its time and label: when, over which connection, with which status, and where its
/// time went.
fn of_slow(slow: &Slow) -> Vec<String> {
    let mut words = vec![format!("due at {}s", three_digits(slow.due_us as f64 / 1e6))];
    words.extend(slow.status.map(|status| format!("status {}", status_name(status))));
    words.extend((slow.outcome != "ok").then(|| format!("failed ({})", slow.outcome)));
    words.push(format!("connection {} of thread {}", slow.connection, slow.thread));
    let parts = [
        ("wait", Some(slow.wait_us)),
        ("connect", slow.connect_us),
        ("handshake", slow.handshake_us),
        ("first byte", Some(slow.first_byte_us)),
        ("transfer", Some(slow.transfer_us)),
    ];
    let parts = parts.into_iter().filter_map(|(name, us)| Some((name, us.filter(|us| *us > 0)?)));
    words.push(
        parts.map(|(name, us)| format!("{name} {}", duration(us as f64))).collect::<Vec<_>>().join(", "),
    );
    words
}

#[cfg(test)]
mod tests {
    use tidemark_record::summary::{Latency, Part};

    use super::*;

    #[test]
    fn lookups_are_told_by_name_where_there_were_any() {
        assert_eq!(lookups(&System::default(), &[Target::default()]), None);
        let system = System { url: "http://shop.test".into(), lookup_us: Some(1_300), ..System::default() };
        let auth = Target { name: "auth".into(), lookup_us: Some(250), ..Target::default() };
        let told = lookups(&system, &[Target::default(), auth]).unwrap();
        assert_eq!(
            told,
            "names were looked up once, before the load: 1.30ms for http://shop.test, 250µs for auth"
        );
    }

    #[test]
    fn parts_are_told_where_there_are_any_and_add_up() {
        let part = |mean_us, count| Part {
            mean_us,
            count,
            times_us: Some(Latency { p50: Some(mean_us as u64), ..Latency::default() }),
        };
        let mut parts = Parts {
            wait: Part { mean_us: 100.0, count: 10, times_us: None },
            first_byte: part(300.0, 10),
            ..Parts::default()
        };
        assert!(!parts.tell(), "that is response and service time");
        parts.transfer = part(600.0, 2);
        assert!(parts.tell());
        let rows = table(&parts).rows;
        let of = |row: usize| rows[row].iter().map(|cell| cell.text(true)).collect::<Vec<_>>();
        assert_eq!(rows.len(), 3, "what never was has no row");
        assert_eq!(of(0), ["wait", "100µs", "10.0%", "-", "-", "-", "10"]);
        assert_eq!(of(2), ["transfer", "600µs", "60.0%", "600µs", "-", "-", "2"]);
    }

    #[test]
    fn a_slow_request_says_where_its_time_went() {
        let slow = Slow {
            due_us: 1_500_000,
            status: Some(503),
            outcome: "status".into(),
            connection: 7,
            connect_us: Some(90),
            first_byte_us: 2_000,
            ..Slow::default()
        };
        assert_eq!(
            of_slow(&slow).join(" · "),
            "due at 1.50s · status 503 · failed (status) · connection 7 of thread 0 · connect 90µs, first byte 2.00ms"
        );
    }
}
