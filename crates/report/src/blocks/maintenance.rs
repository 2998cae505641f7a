//! What stores did beside their work, and what the load felt of it.

use tidemark_record::Maintenance;
use tidemark_record::summary::Summary;

use super::faults::{NO_DIP, was_never_below};
use super::run::under;
use super::{Block, Level};
use crate::units::{bytes, duration, more_than, percent, seconds};

/// Most rewrites and snapshots that have a line.
const MOST: usize = 20;

/// A line for each.
pub(super) fn maintenance(summary: &Summary) -> Vec<Block> {
    let lines = summary.maintenance.iter().take(MOST).map(|one| Block::point(Level::Plain, line(one)));
    let more = more_than(summary.maintenance.len(), MOST);
    let more = more.map(|more| Block::Paragraph(Level::Plain, format!("and {more} more, in run.json")));
    under("Rewrites and snapshots of stores", lines.chain(more))
}

fn line(one: &Maintenance) -> String {
    let mut text = format!("{} of {} at {}", one.kind, one.store, seconds(one.begin_us as f64 / 1e6));
    text += &match one.length_s() {
        Some(s) => format!(" for {}", seconds(s)),
        None => ", not over when the load was".into(),
    };
    let fork = one.fork_us.map(|us| format!("fork {}", duration(us as f64)));
    let size = one.size_before_bytes.zip(one.size_after_bytes);
    let size = size.map(|(before, after)| format!("{} became {}", bytes(before), bytes(after)));
    let unasked = one.fault.is_none().then(|| "not asked for by the scenario".to_owned());
    let about: Vec<String> = fork.into_iter().chain(size).chain(unasked).collect();
    if !about.is_empty() {
        text += &format!(" ({})", about.join(", "));
    }
    let error = one.error.as_ref().map(|error| format!("failed: {error}"));
    let felt: Vec<String> = error.into_iter().chain(throughput(one)).chain(latency(one)).collect();
    if !felt.is_empty() {
        text += &format!(": {}", felt.join("; "));
    }
    text
}

fn throughput(one: &Maintenance) -> Option<String> {
    let dip = one.dip?;
    if dip.depth < NO_DIP {
        return Some("no fewer requests".into());
    }
    let fewer = percent(dip.depth);
    Some(match dip.length_s {
        // a second that is not far enough below to be one of the dip
        Some(0.0) => format!("{fewer} fewer in a second"),
        Some(s) => format!("{fewer} fewer for {}", seconds(s)),
        None if was_never_below(&dip) => format!("{fewer} fewer at most in {}", seconds(dip.seen_s)),
        None => format!("{fewer} fewer, not back within {}", seconds(dip.seen_s)),
    })
}

fn latency(one: &Maintenance) -> Option<String> {
    let bump = one.latency?;
    let before = duration(bump.before_p99_us as f64);
    let highest = match bump.highest_p99_us {
        Some(us) => format!("{} at most", duration(us as f64)),
        None => "not reached".into(),
    };
    let length = match bump.length_s {
        Some(0.0) => String::new(),
        Some(s) => format!(", raised for {}", seconds(s)),
        None => format!(", not back within {}", seconds(bump.seen_s)),
    };
    Some(format!("p99 {before} before, {highest}{length}"))
}

#[cfg(test)]
mod tests {
    use tidemark_record::Bump;
    use tidemark_record::fault::Dip;

    use super::*;

    #[test]
    fn a_line_says_what_was_done_and_felt() {
        let dip =
            Dip { before_per_s: 100.0, depth: 0.14, length_s: Some(2.0), seen_s: 9.0, ..Dip::default() };
        let bump = Bump {
            before_p99_us: 2_100,
            highest_p99_us: Some(38_000),
            length_s: Some(3.0),
            seen_s: 9.0,
            ..Bump::default()
        };
        let one = Maintenance {
            kind: "rewrite".into(),
            store: "cache".into(),
            begin_us: 12_300_000,
            end_us: Some(14_100_000),
            fault: Some("rewrite cache".into()),
            fork_us: Some(9_000),
            dip: Some(dip),
            latency: Some(bump),
            ..Maintenance::default()
        };
        let wanted = "rewrite of cache at 12.3s for 1.8s (fork 9.00ms): 14.0% fewer for 2s; p99 2.10ms before, 38.0ms \
                      at most, raised for 3s";
        assert_eq!(line(&one), wanted);
        let never = Maintenance {
            end_us: None,
            fault: None,
            fork_us: None,
            error: Some("the store went away".into()),
            dip: Some(Dip { length_s: None, ..dip }),
            latency: Some(Bump { highest_p99_us: None, length_s: None, ..bump }),
            ..one.clone()
        };
        let wanted = "rewrite of cache at 12.3s, not over when the load was (not asked for by the scenario): failed: the \
                      store went away; 14.0% fewer, not back within 9s; p99 2.10ms before, not reached, not back within 9s";
        assert_eq!(line(&never), wanted);
        let unfelt = Maintenance {
            dip: Some(Dip { depth: 0.0, ..dip }),
            latency: None,
            size_before_bytes: Some(200 << 20),
            size_after_bytes: Some(50 << 20),
            ..one
        };
        assert_eq!(
            line(&unfelt),
            "rewrite of cache at 12.3s for 1.8s (fork 9.00ms, 200 MiB became 50 MiB): no fewer requests"
        );
    }
}
