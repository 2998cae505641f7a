//! What was broken on purpose, and the dip that it made.
//!
//! The dip is looked for in the requests that succeeded, second by second. Before it counts the median of up to
//! [`BEFORE_S`] seconds, so that one in which a backlog was made up for is no measure, without those in the dip of an earlier fault. It begins with the second in which the fault
//! began, and is over with the first of [`RECOVERED_S`] seconds in a row that reach [`RECOVERED_SHARE`] of the rate
//! before and in which hardly more fails than before ([`RECOVERED_FAILED`]), or with the next fault: where only some
//! kinds of requests fail, the others may be as many as ever. A dip is as fine as the series: whole seconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::SECOND_US;
use crate::live::Second;
use crate::summary::ratio;

/// Seconds before a fault whose median is what the dip is held against.
pub const BEFORE_S: usize = 10;
/// A rate that is back at this share of what it was is recovered,
pub const RECOVERED_SHARE: f64 = 0.9;
/// if it stays so for as many seconds.
pub const RECOVERED_S: usize = 3;

/// and so much more of what ends in a second may fail than before the fault, but for one request.
pub const RECOVERED_FAILED: f64 = 0.001;

/// Something that was broken on purpose. Times are microseconds since the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fault")]
pub struct FaultEvent {
    /// As the scenario says it: `kill system, restart after 2s`.
    pub fault: String,
    /// How: `kill`, `stop`, `freeze`; `rewrite` and `snapshot` break nothing.
    pub kind: String,
    /// What was broken: `system`, `cassandra.2`.
    pub target: String,
    /// When it began; null where it never did.
    pub begin_us: Option<u64>,
    /// When it was undone: thawed, started again (which is not [ready](FaultEvent::right_us) yet). Null where it was not.
    pub healed_us: Option<u64>,
    /// When what was started again was ready. Null where nothing was started again, or it was not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_us: Option<u64>,
    /// Why it could not be carried out, or undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it did to the load; null where there is nothing to hold it against.
    pub dip: Option<Dip>,
}

/// What a fault did to the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dip {
    /// Requests that succeeded each second before it.
    pub before_per_s: f64,
    /// The fewest in a second of it.
    pub lowest_per_s: f64,
    /// Share of the rate before that was missing then, 0 to 1.
    pub depth: f64,
    /// From the fault's beginning until the rate was back, seconds; null where it was not within `seen_s`.
    pub length_s: Option<f64>,
    /// From when it was [put right](FaultEvent::right_us) until the rate was back, seconds; null where it was not, or either
    /// is unknown.
    pub recovery_s: Option<f64>,
    /// Requests that failed in the seconds of it.
    pub errors: u64,
    /// Arrivals given up in the same seconds.
    pub dropped: u64,
    /// Most requests that were under way or waited at the end of a second of it.
    pub backlog_max: u64,
    /// From the fault's beginning to the next one's, or to the end of the window, seconds: nothing later is its.
    pub seen_s: f64,
}

impl FaultEvent {
    /// Whether it took something down that was not ready again by the end of the load.
    pub fn is_not_put_right(&self) -> bool {
        let takes_down = matches!(self.kind.as_str(), "kill" | "stop");
        takes_down && self.begin_us.is_some() && self.error.is_none() && self.right_us().is_none()
    }

    /// Whether instances were still being replaced, added or taken away when the load ended.
    pub fn is_unfinished_change(&self) -> bool {
        let is_change = matches!(self.kind.as_str(), "roll" | "scale");
        is_change && self.begin_us.is_some() && self.healed_us.is_none() && self.error.is_none()
    }

    /// Whether what it took down was ready again with another one.
    pub fn is_raised_by(&self, other: &FaultEvent) -> bool {
        other.target == self.target && other.ready_us > self.begin_us
    }

    /// When it was put right: undone, and what had to be started again was ready. None where it was not.
    pub fn right_us(&self) -> Option<u64> {
        match self.kind.as_str() {
            "kill" | "stop" => self.ready_us,
            _ => self.healed_us,
        }
    }

    /// From the fault's beginning until the rate was back, or until the end of what could be seen. None where it never began.
    pub fn dip_us(&self) -> Option<(u64, u64)> {
        let begin_us = self.begin_us?;
        let length_s = self.dip.map_or(f64::INFINITY, |dip| dip.length_s.unwrap_or(dip.seen_s));
        let end_us = begin_us.saturating_add((length_s * 1e6) as u64);
        Some((begin_us, end_us.max(self.ready_us.or(self.healed_us).unwrap_or(begin_us))))
    }
}

/// Finds the dip of each fault in the whole seconds of the measured window.
pub fn find_dips(faults: &mut [FaultEvent], seconds: &[Second]) {
    let mut order: Vec<usize> = (0..faults.len()).filter(|i| faults[*i].begin_us.is_some()).collect();
    order.sort_by_key(|i| faults[*i].begin_us);
    let mut earlier: Vec<(u64, u64)> = Vec::new();
    let mut before = None;
    for (place, index) in order.iter().copied().enumerate() {
        let later = order[place + 1..].iter().filter_map(|next| faults[*next].begin_us);
        let next_us = later.filter(|us| Some(*us) > faults[index].begin_us).min().unwrap_or(u64::MAX);
        let fault = &mut faults[index];
        let begin_us = fault.begin_us.unwrap_or_default();
        before = Before::of(begin_us, seconds, &earlier).or(before);
        if let Some(before) = before {
            let own = seconds.partition_point(|second| second.start_us + SECOND_US <= next_us);
            fault.dip = dip(begin_us, fault.right_us(), 0, before, &seconds[..own]);
        }
        earlier.extend(fault.dip_us());
    }
}

/// What there was before a fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    achieved_per_s: f64,
    /// Share of what ended that failed or was dropped.
    failed: f64,
}

/// Whether a second lies before a moment, and in none of these stretches of time.
pub(crate) fn undisturbed(start_us: u64, before_us: u64, earlier: &[(u64, u64)]) -> bool {
    let end_us = start_us + SECOND_US;
    end_us <= before_us && !earlier.iter().any(|(from, to)| start_us < *to && *from < end_us)
}

impl Before {
    /// The median of the last seconds before a fault in which no other one is felt.
    pub(crate) fn of(begin_us: u64, seconds: &[Second], earlier: &[(u64, u64)]) -> Option<Self> {
        let own = seconds.iter().rev().filter(|second| undisturbed(second.start_us, begin_us, earlier));
        let own: Vec<&Second> = own.take(BEFORE_S).collect();
        let failed_share = |second: &&Second| ratio(bad(second), second.achieved_per_s + bad(second));
        let achieved_per_s = median(own.iter().map(|second| second.achieved_per_s).collect());
        let failed = median(own.iter().map(failed_share).collect());
        (achieved_per_s > 0.0).then_some(Before { achieved_per_s, failed })
    }

    /// Whether a second is as it was before.
    fn is_back(&self, second: &Second) -> bool {
        let ended = second.achieved_per_s + bad(second);
        second.achieved_per_s >= RECOVERED_SHARE * self.achieved_per_s
            && bad(second) <= 1.0 + (self.failed + RECOVERED_FAILED) * ended
    }
}

/// 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => 0.0,
        all if all.len() % 2 == 1 => all[all.len() / 2],
        all => f64::midpoint(all[all.len() / 2 - 1], all[all.len() / 2]),
    }
}

fn bad(second: &Second) -> f64 {
    (second.errors + second.dropped) as f64
}

/// What the load felt of something that began at one moment and was put right at another, until it was back and at least
/// until a third.
pub(crate) fn dip(
    begin_us: u64,
    right_us: Option<u64>,
    least_us: u64,
    before: Before,
    seconds: &[Second],
) -> Option<Dip> {
    let before_per_s = before.achieved_per_s;
    let first = seconds.iter().position(|second| second.start_us + SECOND_US > begin_us)?;
    let after = &seconds[first..];
    let back = |second: &Second| before.is_back(second);
    let at_least = after.iter().take_while(|second| second.start_us < least_us).count();
    let low = after[..at_least].iter().rposition(|second| !back(second)).map_or(0, |last| last + 1);
    let is_back = |at: &usize| after[*at..*at + RECOVERED_S].iter().all(back);
    let recovered = (low..(after.len() + 1).saturating_sub(RECOVERED_S)).find(is_back);
    let within = &after[..recovered.unwrap_or(after.len())];
    let lowest_per_s = within.iter().map(|second| second.achieved_per_s).fold(before_per_s, f64::min);
    let back_us = recovered.map(|index| after[index].start_us.max(begin_us));
    let since = |from_us: u64| back_us.map(|back_us| back_us.saturating_sub(from_us) as f64 / 1e6);
    Some(Dip {
        before_per_s,
        lowest_per_s,
        depth: 1.0 - lowest_per_s / before_per_s,
        length_s: since(begin_us),
        recovery_s: right_us.and_then(since),
        errors: within.iter().map(|second| second.errors).sum(),
        dropped: within.iter().map(|second| second.dropped).sum(),
        backlog_max: within.iter().map(|second| second.backlog).max().unwrap_or(0),
        seen_s: (after.last()?.start_us + SECOND_US).saturating_sub(begin_us) as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds from the tenth on, with so many successes each.
    fn seconds(ok: &[u32]) -> Vec<Second> {
        let second = |(i, ok): (usize, &u32)| Second {
            start_us: (10 + i as u64) * SECOND_US,
            achieved_per_s: f64::from(*ok),
            errors: u64::from(*ok == 0) * 7,
            backlog: u64::from(100 - ok.min(&100)),
            ..Second::default()
        };
        ok.iter().enumerate().map(second).collect()
    }

    fn fault(begin_s: f64, healed_s: f64) -> FaultEvent {
        let us = |s: f64| Some((s * 1e6) as u64);
        FaultEvent { begin_us: us(begin_s), healed_us: us(healed_s), ..FaultEvent::default() }
    }

    fn found(ok: &[u32], mut faults: Vec<FaultEvent>) -> Vec<Option<Dip>> {
        find_dips(&mut faults, &seconds(ok));
        faults.into_iter().map(|fault| fault.dip).collect()
    }

    #[test]
    fn a_dip_has_a_depth_a_length_and_what_failed_in_it() {
        let dip = found(&[100, 100, 100, 50, 0, 0, 40, 95, 90, 91, 10], vec![fault(13.5, 15.25)])[0].unwrap();
        assert_eq!((dip.before_per_s, dip.lowest_per_s, dip.depth), (100.0, 0.0, 1.0));
        assert_eq!((dip.length_s, dip.recovery_s), (Some(3.5), Some(1.75)));
        assert_eq!((dip.errors, dip.backlog_max, dip.seen_s), (14, 100, 7.5));
    }

    /// What fails in the second of the return: refused while it started, in a burst, before the rate was back. And where
    /// only some kinds of requests fail, the rate of the others says nothing.
    #[test]
    fn it_is_over_when_no_more_fails_than_before() {
        let errors = |errors: [u64; 10], faults: Vec<FaultEvent>| {
            let mut series = seconds(&[100, 100, 100, 0, 95, 100, 100, 100, 100, 100]);
            series.iter_mut().zip(errors).for_each(|(second, errors)| second.errors = errors);
            let mut faults = faults;
            find_dips(&mut faults, &series);
            faults[0].dip.unwrap()
        };
        let one = || vec![fault(12.9, 13.9)];
        let dip = errors([0, 0, 0, 63, 4171, 52, 0, 0, 8, 0], one());
        assert_eq!((dip.errors, dip.length_s), (63 + 4171 + 52 + 8, None), "not for three seconds");
        let dip = errors([0, 0, 0, 63, 4171, 52, 0, 0, 1, 8], one());
        assert_eq!((dip.errors, dip.length_s), (63 + 4171 + 52, Some(3.1)));
        assert_eq!(errors([0, 0, 0, 63, 3, 3, 3, 3, 3, 3], one()).length_s, None, "some fail for ever");
        // a share of failures that was there all the time is not the fault's
        let dip = errors([3; 10], one());
        assert_eq!((dip.errors, dip.length_s), (3 + 3, Some(1.1)));
        let two = vec![fault(12.9, 13.9), fault(15.0, 15.1)];
        let dip = errors([0, 0, 0, 63, 41, 52, 0, 0, 0, 0], two);
        assert_eq!(dip.errors, 63 + 41, "the next fault has its own");
    }

    #[test]
    fn what_is_started_again_is_put_right_once_it_is_ready() {
        let kind =
            |kind: &str| FaultEvent { kind: kind.into(), ready_us: Some(14_500_000), ..fault(12.0, 13.0) };
        let recovery_s = |fault: FaultEvent| {
            found(&[100, 100, 0, 0, 0, 100, 100, 100], vec![fault])[0].unwrap().recovery_s
        };
        assert_eq!(recovery_s(kind("kill")), Some(0.5));
        assert_eq!(recovery_s(FaultEvent { ready_us: None, ..kind("stop") }), None, "it never was");
        assert_eq!(recovery_s(FaultEvent { ready_us: None, ..kind("freeze") }), Some(2.0));
    }

    /// A stall and what was made up for behind it, both before the fault.
    #[test]
    fn a_second_of_catching_up_is_no_measure_of_what_was_before() {
        let ok = [100, 0, 350, 100, 100, 50, 95, 100, 100, 100];
        let dip = found(&ok, vec![fault(15.0, 16.0)])[0].unwrap();
        assert_eq!((dip.before_per_s, dip.depth, dip.length_s), (100.0, 0.5, Some(1.0)));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn a_short_return_is_no_recovery() {
        let dip = found(&[100, 100, 20, 100, 100, 20, 100, 100, 100], vec![fault(12.0, 12.1)])[0].unwrap();
        assert_eq!((dip.length_s, dip.lowest_per_s), (Some(4.0), 20.0));
    }

    #[test]
    fn what_never_recovers_says_so() {
        let dip = found(&[100, 100, 0, 30, 30], vec![fault(12.0, 13.0)])[0].unwrap();
        assert_eq!((dip.length_s, dip.recovery_s, dip.seen_s), (None, None, 3.0));
        // two good seconds at the end are too few
        assert_eq!(found(&[100, 100, 0, 100, 100], vec![fault(12.0, 12.5)])[0].unwrap().length_s, None);
    }

    #[test]
    fn a_fault_that_nobody_felt_has_no_depth() {
        let dip = found(&[100, 100, 100, 100, 100, 100], vec![fault(12.5, 12.6)])[0].unwrap();
        assert_eq!((dip.depth, dip.length_s, dip.errors, dip.recovery_s), (0.0, Some(0.0), 0, Some(0.0)));
    }

    #[test]
    fn the_dip_before_is_not_what_a_fault_is_held_against() {
        let ok = [100, 100, 0, 0, 100, 100, 100, 50, 50, 100, 100, 100];
        let dips = found(&ok, vec![fault(17.0, 18.0), fault(12.0, 13.0)]);
        assert_eq!(dips[0].unwrap().before_per_s, 100.0);
        assert_eq!(dips[0].unwrap().lowest_per_s, 50.0);
        assert_eq!(dips[1].unwrap().length_s, Some(2.0));
        // in the dip of the first, the second has only what was before both
        let dips = found(&[100, 100, 0, 0, 0, 100, 100, 100], vec![fault(12.0, 12.5), fault(14.0, 14.5)]);
        assert_eq!((dips[0].unwrap().length_s, dips[0].unwrap().seen_s), (None, 2.0));
        assert_eq!((dips[1].unwrap().before_per_s, dips[1].unwrap().length_s), (100.0, Some(1.0)));
    }

    #[test]
    fn without_anything_before_or_after_there_is_no_dip() {
        assert_eq!(found(&[], vec![fault(12.0, 13.0)]), [None]);
        assert_eq!(found(&[100, 100], vec![fault(10.5, 11.0)]), [None], "nothing before");
        assert_eq!(found(&[100, 100], vec![fault(12.5, 13.0)]), [None], "nothing after");
        assert_eq!(found(&[0, 0, 0, 0, 0], vec![fault(12.0, 13.0)]), [None], "nothing ever succeeded");
        assert_eq!(found(&[100, 100], vec![FaultEvent::default()]), [None], "it never began");
    }
}
