//! What was broken on purpose, and the dips that it made, as rows of a table.

use tidemark_record::fault::{Dip, FaultEvent, RECOVERED_S, RECOVERED_SHARE};
use tidemark_record::summary::Summary;

use crate::units::{count, percent, seconds, three_digits};

/// What stands above the rows.
pub const HEAD: [&str; 8] = ["", "at", "before", "lowest", "back after", "after heal", "errors", "backlog"];

/// A smaller share missing is none.
pub(crate) const NO_DIP: f64 = 0.0005;

/// A row for each fault.
pub fn rows(summary: &Summary) -> Vec<[String; 8]> {
    summary.faults.iter().map(row).collect()
}

fn row(fault: &FaultEvent) -> [String; 8] {
    let none = || "-".to_owned();
    let at = fault.begin_us.map_or_else(|| "never".into(), |us| seconds(us as f64 / 1e6));
    let Some(dip) = fault.dip else {
        return [fault.fault.clone(), at, none(), none(), none(), none(), none(), none()];
    };
    [
        fault.fault.clone(),
        at,
        format!("{}/s", three_digits(dip.before_per_s)),
        lowest(&dip),
        match dip.length_s {
            Some(length_s) => seconds(length_s),
            None if was_never_below(&dip) => "always".into(),
            None if seen_too_short_s(fault, &dip).is_some() => "not known".into(),
            None => format!("not in {}", seconds(dip.seen_s)),
        },
        dip.recovery_s.map_or_else(none, seconds),
        count(dip.errors + dip.dropped),
        count(dip.backlog_max),
    ]
}

/// The same in words.
pub fn parts(fault: &FaultEvent) -> Vec<String> {
    let Some(begin_us) = fault.begin_us else { return vec!["did not happen".into()] };
    let mut parts = vec![format!("at {}", seconds(begin_us as f64 / 1e6))];
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
pub(crate) fn was_never_below(dip: &Dip) -> bool {
    dip.depth < 1.0 - RECOVERED_SHARE
}

/// How long it was seen after it was put right, where that is too short to tell whether it was back: the load ended, or the
/// next fault began.
fn seen_too_short_s(fault: &FaultEvent, dip: &Dip) -> Option<f64> {
    let seen_us = fault.begin_us? as f64 + dip.seen_s * 1e6;
    let left_s = ((seen_us - fault.right_us()? as f64) / 1e6).max(0.0);
    (left_s < RECOVERED_S as f64).then_some(left_s)
}

fn lowest(dip: &Dip) -> String {
    match dip.depth {
        depth if depth < NO_DIP => "no dip".into(),
        depth => format!("{}/s (-{})", three_digits(dip.lowest_per_s), percent(depth)),
    }
}

/// What could not be carried out, or put right.
pub fn mistakes(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.faults.iter().filter_map(|fault| Some(format!("{}: {}", fault.fault, fault.error.as_ref()?)))
}

/// How the columns are to be read.
pub const LEGEND: &str = "requests that succeeded each second: before the fault, and fewest in its dip; how long after its \
                          begin they were back at 90 % for 3 s, and how much of that after it was put right";

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
        let wanted =
            ["kill system, restart after 2s", "12s", "1,000/s", "0/s (-100%)", "3.5s", "1.5s", "15", "50"];
        assert_eq!(row(&fault), wanted);
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
        assert_eq!(row(&undone_s(30))[4], "not known");
        assert_eq!(parts(&undone_s(29))[2], "not back within 20s");
        let never_back = Dip { depth: 0.0, ..never_back };
        let row_of = row(&FaultEvent { dip: Some(never_back), ..fault.clone() });
        assert_eq!((row_of[3].as_str(), row_of[4].as_str(), row_of[5].as_str()), ("no dip", "always", "-"));
        assert_eq!(
            parts(&FaultEvent { dip: Some(never_back), ..fault.clone() })[1..3],
            ["no dip", "never below 90% in 20s"]
        );
        let down = FaultEvent { kind: "kill".into(), dip: None, ..fault.clone() };
        assert_eq!(parts(&down), ["at 12s", "not ready again by the end of the load"]);
        assert_eq!(parts(&FaultEvent { ready_us: Some(14_000_000), ..down }), ["at 12s"]);
        let never = FaultEvent { fault: "x".into(), ..FaultEvent::default() };
        assert_eq!(parts(&never), ["did not happen"]);
        assert_eq!(row(&never)[1..3], ["never", "-"]);
    }
}
