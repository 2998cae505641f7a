//! What stores did beside their work while a run went on: append-only files rewritten, snapshots taken; and what the
//! load felt of it.
//!
//! The dip in throughput is found as that of a [fault](crate::fault), and lasts at least until the last low second in
//! which the store was at it. The bump in latency is that of the 99th percentile
//! of all requests that were due. Before counts that of up to [`BEFORE_S`](crate::fault::BEFORE_S) seconds together,
//! without those in which something earlier is felt; it lasts until the first of
//! [`RECOVERED_S`] seconds in a row in which it is at most [`RAISED`] times that. Nothing after
//! the begin of a later fault, or of later maintenance that did not overlap, counts as its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Distribution;
use crate::fault::{Before, Dip, FaultEvent, RECOVERED_S, dip, undisturbed};
use crate::histogram::{Merged, merge_merged, new_merged};
use crate::interval::SECOND_US;
use crate::live::{Kept, Second};

/// A percentile of so many times what it was is raised.
pub const RAISED: f64 = 1.5;

/// The percentile that is looked at.
const SHARE: f64 = 0.99;

/// Something that a store did beside its work. Times are microseconds since the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Maintenance {
    /// `rewrite` of an append-only file, or `snapshot`.
    pub kind: String,
    /// Which store, or which node of it.
    pub store: String,
    /// When it began, to about a tenth of a second.
    pub begin_us: u64,
    /// When it was over; null where it was not before the load was, or where the store went away.
    pub end_us: Option<u64>,
    /// The fault of the scenario that asked for it; absent where nobody of this run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// How long the store stood still to fork, microseconds; null where it does not tell.
    pub fork_us: Option<u64>,
    /// Size of the append-only file before, bytes; null for a snapshot.
    pub size_before_bytes: Option<u64>,
    /// The same afterwards.
    pub size_after_bytes: Option<u64>,
    /// Memory that had to be copied meanwhile because it was written to, bytes; null where the store does not tell.
    pub copied_bytes: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it did to the throughput; null where there is nothing to hold it against.
    pub dip: Option<Dip>,
    /// What it did to the latency; null where there is nothing to hold it against.
    pub latency: Option<Bump>,
}

/// A rise of the 99th percentile of the response time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bump {
    /// That of the seconds before, together, microseconds.
    pub before_p99_us: u64,
    /// The highest of a second, until it was back and at least while the store was at it; null where it was not reached
    /// in one: more than a hundredth had no good answer.
    pub highest_p99_us: Option<u64>,
    /// How many times the one before that is.
    pub ratio: Option<f64>,
    /// How much more than the one before that is, microseconds; 0 where it is less.
    pub rise_us: Option<u64>,
    /// From the begin until it was back, seconds; 0 where it was never raised, null where it was not back within `seen_s`.
    pub length_s: Option<f64>,
    /// From the begin to what came next, or to the end of the window, seconds: nothing later is its.
    pub seen_s: f64,
}

impl Maintenance {
    /// How long it took, seconds.
    pub fn length_s(&self) -> Option<f64> {
        self.end_us.map(|end_us| end_us.saturating_sub(self.begin_us) as f64 / 1e6)
    }

    /// Until when it is felt.
    fn felt_us(&self) -> u64 {
        let until = |length_s: Option<f64>, seen_s: f64| {
            self.begin_us.saturating_add((length_s.unwrap_or(seen_s) * 1e6) as u64)
        };
        let dip = self.dip.map_or(0, |dip| until(dip.length_s, dip.seen_s));
        let bump = self.latency.map_or(0, |bump| until(bump.length_s, bump.seen_s));
        // whose store went away is over all the same
        let unended = if self.error.is_some() { 0 } else { u64::MAX };
        dip.max(bump).max(self.end_us.unwrap_or(unended))
    }
}

/// Finds what the load felt of each, in the whole seconds of the measured window. `kept`: the distributions of seconds
/// before them. The faults have their own dips by now.
pub(crate) fn find(all: &mut [Maintenance], faults: &[FaultEvent], seconds: &[Second], kept: &[&Kept]) {
    all.sort_by_key(|one| one.begin_us);
    // what broke something; what only asked for maintenance is that itself
    let broken = || faults.iter().filter(|fault| !is_kind(&fault.kind));
    let mut earlier: Vec<(u64, u64)> = broken().filter_map(FaultEvent::dip_us).collect();
    let (mut before, mut p99_before) = (None, None);
    for index in 0..all.len() {
        let (begin_us, end_us) = (all[index].begin_us, all[index].end_us.unwrap_or(u64::MAX));
        let later = all[index + 1..].iter().map(|next| next.begin_us).filter(|us| *us > end_us);
        let faults = broken().filter_map(|fault| fault.begin_us).filter(|us| *us > begin_us);
        let next_us = later.chain(faults).min().unwrap_or(u64::MAX);
        let own = &seconds[..seconds.partition_point(|second| second.start_us + SECOND_US <= next_us)];
        let had: Vec<(u64, u64)> =
            earlier.iter().copied().filter(|(from_us, _)| *from_us < begin_us).collect();
        before = Before::of(begin_us, seconds, &had).or(before);
        p99_before = p99_of_before(begin_us, kept, &had).or(p99_before);
        let one = &mut all[index];
        one.dip = before.and_then(|before| dip(begin_us, one.end_us, end_us, before, own));
        one.latency = p99_before.and_then(|p99_us| bump(begin_us, end_us, p99_us, own));
        earlier.push((begin_us, one.felt_us()));
    }
}

/// Whether a fault of this kind only asks for maintenance.
pub fn is_kind(kind: &str) -> bool {
    matches!(kind, "rewrite" | "snapshot")
}

/// The percentile of the last seconds before, together.
fn p99_of_before(begin_us: u64, kept: &[&Kept], earlier: &[(u64, u64)]) -> Option<u64> {
    let (mut good, mut failed) = (new_merged(), 0);
    let own = kept.iter().rev().filter(|second| undisturbed(second.start_us, begin_us, earlier));
    for second in own.take(crate::fault::BEFORE_S) {
        let decoded: Option<Merged> = second.response_time_us.decode().ok();
        decoded.iter().for_each(|one| merge_merged(&mut good, one));
        failed += second.failed;
    }
    Distribution::new(&good, failed).quantile(SHARE)
}

fn bump(begin_us: u64, end_us: u64, before_p99_us: u64, seconds: &[Second]) -> Option<Bump> {
    let first = seconds.iter().position(|second| second.start_us + SECOND_US > begin_us)?;
    let after = &seconds[first..];
    let is_raised = |second: &Second| {
        // a second in which nothing was due tells nothing
        let due = second.achieved_per_s > 0.0 || second.errors + second.dropped > 0;
        due && second.p99_us.is_none_or(|us| us as f64 > RAISED * before_p99_us as f64)
    };
    let at_it = after.iter().take_while(|second| second.start_us <= end_us).count();
    let back = after.windows(RECOVERED_S).position(|seconds| !seconds.iter().any(is_raised));
    let within = &after[..back.unwrap_or(after.len()).max(at_it)];
    let is_reached = within.iter().all(|second| second.p99_us.is_some() || !is_raised(second));
    let highest = within.iter().filter_map(|second| second.p99_us).max().filter(|_| is_reached);
    // raised again later, while it was still at it
    let last_raised = within.iter().rposition(is_raised);
    let length_s = match (last_raised, back) {
        (None, _) => Some(0.0),
        (Some(last), Some(_)) => {
            Some((after[last].start_us + SECOND_US).saturating_sub(begin_us) as f64 / 1e6)
        }
        (Some(_), None) => None,
    };
    Some(Bump {
        before_p99_us,
        highest_p99_us: highest,
        ratio: highest.map(|us| us as f64 / before_p99_us.max(1) as f64),
        rise_us: highest.map(|us| us.saturating_sub(before_p99_us)),
        length_s,
        seen_s: (after.last()?.start_us + SECOND_US).saturating_sub(begin_us) as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::V2Serializer;

    use super::*;
    use crate::histogram::Encoded;

    /// Seconds from the tenth on: good answers and their percentile, all of them as fast; 0 is none reached.
    fn seconds(of: &[(u32, u64)]) -> (Vec<Second>, Vec<Kept>) {
        let second = |(i, (ok, p99_us)): (usize, &(u32, u64))| Second {
            start_us: (10 + i as u64) * SECOND_US,
            achieved_per_s: f64::from(*ok),
            p99_us: Some(*p99_us).filter(|us| *us > 0),
            errors: u64::from(*p99_us == 0) * 50,
            ..Second::default()
        };
        let seconds: Vec<Second> = of.iter().enumerate().map(second).collect();
        let kept = |second: &Second| {
            let mut times = new_merged();
            times.record_n(second.p99_us.unwrap_or(1), second.achieved_per_s as u64).unwrap();
            let response_time_us = Encoded::of(&times, &mut V2Serializer::new());
            Kept { start_us: second.start_us, response_time_us, failed: second.errors }
        };
        let kept = seconds.iter().map(kept).collect();
        (seconds, kept)
    }

    fn work(begin_s: f64, end_s: Option<f64>) -> Maintenance {
        let us = |s: f64| (s * 1e6) as u64;
        Maintenance { begin_us: us(begin_s), end_us: end_s.map(us), ..Maintenance::default() }
    }

    fn found(of: &[(u32, u64)], mut all: Vec<Maintenance>, faults: &[FaultEvent]) -> Vec<Maintenance> {
        let (seconds, kept) = seconds(of);
        find(&mut all, faults, &seconds, &kept.iter().collect::<Vec<_>>());
        all
    }

    const QUIET: (u32, u64) = (100, 200);

    #[test]
    fn a_bump_has_a_height_and_a_length() {
        let load = [QUIET, QUIET, QUIET, (80, 900), (60, 3_800), (95, 310), QUIET, QUIET, QUIET];
        let all = found(&load, vec![work(13.5, Some(14.7))], &[]);
        let bump = all[0].latency.unwrap();
        assert_eq!((bump.before_p99_us, bump.highest_p99_us, bump.rise_us), (200, Some(3_800), Some(3_600)));
        assert_eq!((bump.ratio, bump.length_s, bump.seen_s), (Some(19.0), Some(2.5), 5.5));
        let dip = all[0].dip.unwrap();
        assert_eq!((dip.before_per_s, dip.lowest_per_s, dip.length_s), (100.0, 60.0, Some(1.5)));
        assert_eq!(dip.recovery_s, Some(0.3));
    }

    #[test]
    fn what_nobody_felt_has_no_length_and_the_highest_second_all_the_same() {
        let all = found(
            &[QUIET, QUIET, (100, 250), (100, 280), QUIET, QUIET, QUIET],
            vec![work(12.0, Some(13.5))],
            &[],
        );
        let bump = all[0].latency.unwrap();
        assert_eq!((bump.highest_p99_us, bump.length_s), (Some(280), Some(0.0)));
    }

    #[test]
    fn one_that_rises_late_or_never_ends_or_is_not_reached_says_so() {
        // raised only towards the end of a long one
        let load = [QUIET, QUIET, QUIET, QUIET, QUIET, QUIET, (90, 900), QUIET, QUIET, QUIET];
        let bump = found(&load, vec![work(12.0, Some(16.5))], &[])[0].latency.unwrap();
        assert_eq!((bump.highest_p99_us, bump.length_s), (Some(900), Some(5.0)));
        let late = [QUIET, QUIET, QUIET, QUIET, QUIET, QUIET, (60, 200), QUIET, QUIET, QUIET];
        let dip = |end_s| found(&late, vec![work(12.0, end_s)], &[])[0].dip.unwrap();
        assert_eq!((dip(Some(16.5)).depth, dip(Some(16.5)).length_s), (0.4, Some(5.0)));
        assert_eq!((dip(None).depth, dip(None).length_s), (0.4, Some(5.0)), "it is not over");
        assert_eq!(dip(Some(15.5)).depth, 0.0, "what comes after it is not its");
        let bump = found(&[QUIET, QUIET, (90, 900), (90, 900), QUIET], vec![work(12.0, None)], &[])[0]
            .latency
            .unwrap();
        assert_eq!((bump.highest_p99_us, bump.length_s, bump.seen_s), (Some(900), None, 3.0));
        let all = found(&[QUIET, QUIET, (50, 0), QUIET, QUIET, QUIET], vec![work(12.0, Some(12.5))], &[]);
        let bump = all[0].latency.unwrap();
        assert_eq!((bump.highest_p99_us, bump.ratio, bump.length_s), (None, None, Some(1.0)));
    }

    #[test]
    fn shards_that_rewrite_together_share_what_is_felt_and_the_next_has_its_own() {
        let load =
            [QUIET, QUIET, QUIET, (50, 900), (50, 900), QUIET, QUIET, QUIET, (70, 500), QUIET, QUIET, QUIET];
        let all = vec![work(18.2, Some(18.4)), work(13.2, Some(15.0)), work(13.1, Some(14.0))];
        let all = found(&load, all, &[]);
        assert_eq!(all[0].dip.unwrap().lowest_per_s, 50.0);
        assert_eq!(all[0].latency.unwrap().highest_p99_us, all[1].latency.unwrap().highest_p99_us);
        assert_eq!(all[2].dip.unwrap().before_per_s, 100.0, "without what the others did");
        assert_eq!(all[2].latency.unwrap().before_p99_us, 200);
        assert_eq!(all[2].latency.unwrap().highest_p99_us, Some(500));
    }

    #[test]
    fn a_fault_cuts_it_off_and_one_that_asked_for_it_does_not() {
        let load = [QUIET, QUIET, QUIET, (90, 400), (0, 0), (0, 0), QUIET, QUIET];
        let fault = |kind: &str| {
            let begin_us = Some(14 * SECOND_US);
            FaultEvent { kind: kind.into(), begin_us, ..FaultEvent::default() }
        };
        let all = |kind| found(&load, vec![work(13.0, Some(13.9))], &[fault(kind)])[0].clone();
        assert_eq!(all("kill").dip.unwrap().seen_s, 1.0);
        assert_eq!(all("rewrite").dip.unwrap().seen_s, 5.0);
    }

    #[test]
    fn without_anything_before_or_after_there_is_nothing() {
        for (load, at) in [(vec![], 12.0), (vec![QUIET, QUIET], 10.5), (vec![QUIET, QUIET], 12.5)] {
            let all = found(&load, vec![work(at, Some(at))], &[]);
            assert_eq!((all[0].dip, all[0].latency), (None, None));
        }
    }
}
