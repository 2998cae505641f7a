//! What was broken on purpose, and the dips that it made.

use tidemark_record::fault::{Dip, FaultEvent, RECOVERED_S, RECOVERED_SHARE};
use tidemark_record::summary::Summary;

use super::run::under;
use super::{Block, Level};
use crate::units::{count, percent, seconds, three_digits};

/// A smaller share missing is none.
pub(super) const NO_DIP: f64 = 0.0005;

/// Each fault, and what could not be carried out or put right.
pub(super) fn faults(summary: &Summary) -> Vec<Block> {
    let point = |fault: &FaultEvent| Block::Point(Level::Plain, fault.fault.clone(), parts(fault));
    let mistake = |fault: &FaultEvent| {
        Some(Block::point(Level::Bad, format!("{}: {}", fault.fault, fault.error.as_ref()?)))
    };
    let mistakes = summary.faults.iter().filter_map(mistake);
    let has_dip = summary.faults.iter().any(|fault| fault.dip.is_some());
    let legend = has_dip.then(|| Block::Paragraph(Level::Quiet, legend()));
    under("Faults", summary.faults.iter().map(point).chain(mistakes).chain(legend))
}

/// What the words of a dip mean.
fn legend() -> String {
    format!(
        "fewest: good answers in a second, instead of their mean before the fault; back: at {} of that mean for {RECOVERED_S} \
         seconds",
        percent(RECOVERED_SHARE)
    )
}

/// When it was, and what dip it made.
fn parts(fault: &FaultEvent) -> Vec<String> {
    let Some(begin_us) = fault.begin_us else { return vec!["did not happen".into()] };
    // of what has its length in its name nobody need be told when it was over
    let takes_its_time = matches!(fault.kind.as_str(), "kill" | "stop" | "roll" | "scale");
    let until = fault.right_us().filter(|_| takes_its_time);
    let until = until.map_or_else(String::new, |us| format!(", until {}", seconds(us as f64 / 1e6)));
    let mut parts = vec![format!("at {}{until}", seconds(begin_us as f64 / 1e6))];
    if fault.is_not_put_right() {
        parts.push("not ready again by the end of the load".into());
    }
    let Some(dip) = fault.dip else { return parts };
    parts.push(match dip.depth {
        depth if depth < NO_DIP => "no dip".into(),
        depth => format!(
            "fewest {}/s instead of {}/s (-{})",
            three_digits(dip.lowest_per_s),
            three_digits(dip.before_per_s),
            percent(depth)
        ),
    });
    parts.push(match (dip.length_s, dip.recovery_s) {
        (None, _) if was_never_below(&dip) => format!("never below 90% in {}", seconds(dip.seen_s)),
        (None, _) => match seen_too_short_s(fault, &dip) {
            Some(left_s) => format!(
                "not known whether it came back: seen for only {} after it was put right",
                seconds(left_s)
            ),
            None => format!("not back within {}", seconds(dip.seen_s)),
        },
        (Some(_), _) if dip.depth < NO_DIP => String::new(),
        (Some(length_s), Some(recovery_s)) => {
            format!("back after {}, {} after it was put right", seconds(length_s), seconds(recovery_s))
        }
        (Some(length_s), None) => format!("back after {}", seconds(length_s)),
    });
    for (number, what) in
        [(dip.errors, "errors"), (dip.dropped, "dropped"), (dip.backlog_max, "at most under way")]
    {
        if number > 0 {
            parts.push(format!("{} {what}", count(number)));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether it was back all the time, though too few seconds of it were seen to say so.
pub(super) fn was_never_below(dip: &Dip) -> bool {
    dip.depth < 1.0 - RECOVERED_SHARE
}

/// How long it was seen after it was put right, where that is too short to tell whether it was back: the load ended, or the
/// next fault began.
fn seen_too_short_s(fault: &FaultEvent, dip: &Dip) -> Option<f64> {
    let seen_us = fault.begin_us? as f64 + dip.seen_s * 1e6;
    let left_s = ((seen_us - fault.right_us()? as f64) / 1e6).max(0.0);
    (left_s < RECOVERED_S as f64).then_some(left_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_and_one_that_never_ended_and_one_that_never_began() {
        let dip = Dip {
            before_per_s: 1_000.0,
            lowest_per_s: 0.0,
            depth: 1.0,
            length_s: Some(3.5),
            recovery_s: Some(1.5),
            errors: 12,
            dropped: 3,
            backlog_max: 50,
            seen_s: 20.0,
        };
        let fault = FaultEvent {
            fault: "kill system, restart after 2s".into(),
            begin_us: Some(12_000_000),
            dip: Some(dip),
            ..FaultEvent::default()
        };
        let summary = |faults: Vec<FaultEvent>| {
            let totals = tidemark_record::Totals::new(&[]);
            Summary { faults, ..tidemark_record::summarize(&totals, std::path::Path::new("x")) }
        };
        let text = crate::markdown::render(&faults(&summary(vec![fault.clone()])));
        let legend = "fewest: good answers in a second, instead of their mean before the fault; back: at 90.0% of that mean";
        assert!(text.contains(legend), "{text}");
        let without_dip = FaultEvent { dip: None, ..fault.clone() };
        assert!(!crate::markdown::render(&faults(&summary(vec![without_dip]))).contains("fewest:"));
        let words = [
            "at 12s",
            "fewest 0/s instead of 1,000/s (-100%)",
            "back after 3.5s, 1.5s after it was put right",
            "12 errors",
            "3 dropped",
            "50 at most under way",
        ];
        assert_eq!(parts(&fault), words);
        let never_back = Dip { length_s: None, recovery_s: None, ..dip };
        assert!(
            parts(&FaultEvent { dip: Some(never_back), ..fault.clone() })
                .contains(&"not back within 20s".into())
        );
        let undone_s = |s: u64| FaultEvent {
            kind: "freeze".into(),
            healed_us: Some(s * 1_000_000),
            dip: Some(never_back),
            ..fault.clone()
        };
        let too_short = "not known whether it came back: seen for only 2s after it was put right";
        assert_eq!(parts(&undone_s(30))[2], too_short);
        assert_eq!(parts(&undone_s(29))[2], "not back within 20s");
        let never_back = Dip { depth: 0.0, ..never_back };
        assert_eq!(
            parts(&FaultEvent { dip: Some(never_back), ..fault.clone() })[1..3],
            ["no dip", "never below 90% in 20s"]
        );
        let down = FaultEvent { kind: "kill".into(), dip: None, ..fault.clone() };
        assert_eq!(parts(&down), ["at 12s", "not ready again by the end of the load"]);
        assert_eq!(parts(&FaultEvent { ready_us: Some(14_000_000), ..down.clone() }), ["at 12s, until 14s"]);
        let rolled = FaultEvent { kind: "roll".into(), healed_us: Some(20_100_000), ..down };
        assert_eq!(parts(&rolled), ["at 12s, until 20.1s"]);
        let never = FaultEvent { fault: "x".into(), ..FaultEvent::default() };
        assert_eq!(parts(&never), ["did not happen"]);
    }
}
