//! Whether the measured window shows a steady state: a test for a trend over its seconds.
//!
//! Two series are looked at, a value for each whole second: the requests that ended, and their median response time.
//! Long windows are cut into at most `SEGMENTS_MAX` segments, the median of its seconds for each. A series drifts
//! where both hold:
//!
//! - the Mann-Kendall test (Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods, 1975; with the correction
//!   of the variance for ties) finds a monotonic trend at the 1 % level: it looks at the order of the values alone,
//!   so that no outlier, freeze or noise of any distribution makes a trend;
//! - the trend is large enough to matter: the Theil-Sen slope (Sen, JASA 63, 1968), the median of all pairs' slopes,
//!   comes over the whole window to more than `RATE_SHARE` of the median rate, or to more than `P50_SHARE` of the
//!   median response time and `P50_US`. A second whose median is not reached is worse than every bound: a trend to or
//!   from such seconds is large enough, however few they are.
//!
//! A window of less than `SEGMENTS_MIN` seconds is too short to tell, and a load that itself changes has no steady
//! state to look for.

use tidemark_record::fault::FaultEvent;
use tidemark_record::summary::SteadyState;
use tidemark_record::{SECOND_US, Second};
use tidemark_scenario::plan::{Curve, Load, Phase, Stream};

use crate::text::duration_text;

/// Fewest values from which a trend is told.
const SEGMENTS_MIN: usize = 8;
/// Most values; more seconds than these are gathered in segments.
const SEGMENTS_MAX: usize = 60;
/// Two-sided 1 % of the normal distribution.
const Z_MAX: f64 = 2.576;
/// A rate that changes less than this is steady.
const RATE_SHARE: f64 = 0.05;
/// A median response time that changes less than this is steady.
const P50_SHARE: f64 = 0.15;
/// And one that changes less than this, microseconds.
const P50_US: f64 = 100.0;

/// Tests the whole seconds of the measured window, without those in the dips of faults: what we broke ourselves is no
/// drift.
pub fn test(load: &Load, seconds: &[Second], faults: &[FaultEvent]) -> SteadyState {
    let dips: Vec<(u64, u64)> = faults.iter().filter_map(FaultEvent::dip_us).collect();
    let undisturbed = |second: &&Second| {
        !dips.iter().any(|(from, to)| *from < second.start_us + SECOND_US && second.start_us < *to)
    };
    let seconds: Vec<Second> = seconds.iter().filter(undisturbed).copied().collect();
    let mut state = test_calm(load, &seconds);
    if !dips.is_empty() {
        state.reason.push_str("; without the dips of the faults");
    }
    state
}

fn test_calm(load: &Load, seconds: &[Second]) -> SteadyState {
    if load.streams().iter().any(changes) {
        return told(None, "the load itself changes within the measured window".into());
    }
    let rate: Vec<f64> = seconds.iter().map(|second| second.achieved_per_s).collect();
    let p50_us: Vec<f64> = seconds.iter().filter_map(median_us).collect();
    if rate.len() < SEGMENTS_MIN {
        let text = format!("{} whole seconds are too few to tell; {SEGMENTS_MIN} are needed", rate.len());
        return told(None, text);
    }
    let rate_trend = Trend::of(&rate).filter(|trend| trend.change.abs() > RATE_SHARE * trend.median);
    let p50_trend = Trend::of(&p50_us)
        .filter(|trend| trend.change.abs() > P50_US && trend.change.abs() > P50_SHARE * trend.median);
    let mut drifts = Vec::new();
    if let Some(trend) = &rate_trend {
        drifts.push(format!("the rate {}", trend.text(|per_s| format!("{per_s:.0}/s"))));
    }
    if let Some(trend) = &p50_trend {
        drifts.push(format!("the median response time {}", trend.text(duration_text)));
    }
    if drifts.is_empty() {
        return told(Some(true), format!("no trend of rate or median response time over {} s", rate.len()));
    }
    let reason = format!(
        "{} over the {} s measured; a longer or a later run gives other figures",
        drifts.join(" and "),
        rate.len()
    );
    SteadyState {
        rate_per_s_each_minute: rate_trend.map(|trend| trend.each_minute),
        p50_us_each_minute: p50_trend.map(|trend| trend.each_minute).filter(|us| us.is_finite()),
        ..told(Some(false), reason)
    }
}

/// The median response time of a second: worse than every bound where most of what ended in it had no good answer, or
/// nothing ended while requests were under way; none where there was nothing to answer.
fn median_us(second: &Second) -> Option<f64> {
    let is_asked = second.errors + second.dropped + second.backlog > 0;
    match second.p50_us {
        Some(us) => Some(us as f64),
        None => is_asked.then_some(f64::INFINITY),
    }
}

/// Whether these values, one for each second, rise beyond chance.
pub(crate) fn rises(seconds: &[f64]) -> bool {
    Trend::of(seconds).is_some_and(|trend| trend.change > 0.0)
}

/// Whether the level of a load changes within the measured window.
pub(crate) fn changes(stream: &Stream<'_>) -> bool {
    let measured = || stream.phases.iter().filter(|phase| phase.measured);
    let level = measured().next().map(|phase| phase.from);
    let moves =
        |phase: &Phase| !matches!(phase.curve, Curve::Line | Curve::Steps(_)) || phase.from != phase.to;
    measured().any(|phase| moves(phase) || Some(phase.from) != level)
}

fn told(steady: Option<bool>, reason: String) -> SteadyState {
    SteadyState { steady, reason, ..SteadyState::default() }
}

/// A monotonic trend that chance does not explain.
#[derive(Debug, PartialEq)]
struct Trend {
    /// Median of the values.
    median: f64,
    /// By how much they change from the first to the last, by the trend.
    change: f64,
    /// And in each minute.
    each_minute: f64,
    /// The first value and the last.
    ends: (f64, f64),
    /// The least and the greatest.
    range: (f64, f64),
}

impl Trend {
    /// None where there is none, or too little to tell.
    fn of(seconds: &[f64]) -> Option<Trend> {
        let values = segments(seconds);
        let n = values.len();
        if n < SEGMENTS_MIN {
            return None;
        }
        let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let s: f64 = pairs().map(|(i, j)| order(values[i], values[j])).sum();
        // continuity: one step towards 0
        let z = (s - sign(s)) / variance(&values).sqrt();
        if !z.is_finite() || z.abs() <= Z_MAX {
            return None;
        }
        let ends = (values[0], values[n - 1]);
        let range =
            (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max));
        if values.iter().any(|value| value.is_infinite()) {
            let change = f64::INFINITY * s;
            return Some(Trend {
                median: median(&mut values.clone()),
                change,
                each_minute: change,
                ends,
                range,
            });
        }
        let mut slopes: Vec<f64> = pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
        let slope = median(&mut slopes);
        Some(Trend {
            median: median(&mut values.clone()),
            change: slope * (n - 1) as f64,
            each_minute: slope * 60.0 / segment_s(seconds.len()) as f64,
            ends,
            range,
        })
    }

    fn text(&self, unit: impl Fn(f64) -> String) -> String {
        if self.change.is_infinite() {
            let verb = if self.change > 0.0 { "rose beyond" } else { "fell from beyond" };
            return format!("{verb} every bound, as in some seconds most requests had no good answer,");
        }
        let (from, to) = (self.median - self.change / 2.0, self.median + self.change / 2.0);
        let verb = if self.change > 0.0 { "rose" } else { "fell" };
        let slack = self.change.abs() / 10.0;
        let was_seen = |value: f64| (self.range.0 - slack..=self.range.1 + slack).contains(&value);
        let (first, last) = self.ends;
        if !(was_seen(from) && was_seen(to)) && order(first, last) == sign(self.change) {
            // the line goes on beyond what was measured: it was a step, or a bend
            return format!("{verb} from {} at first to {} at last, not evenly,", unit(first), unit(last));
        }
        let (from, to, by) = (unit(from.max(0.0)), unit(to.max(0.0)), unit(self.each_minute.abs()));
        format!("{verb} from about {from} to {to}, by {by} a minute,")
    }
}

/// Of Mann and Kendall's S where there is no trend.
fn variance(values: &[f64]) -> f64 {
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len())).sum();
    (term(values.len()) - ties) / 18.0
}

/// At most [`SEGMENTS_MAX`] medians of as many seconds each as equal as can be.
fn segments(seconds: &[f64]) -> Vec<f64> {
    seconds.chunks(segment_s(seconds.len())).map(|segment| median(&mut segment.to_vec())).collect()
}

/// Seconds in a segment.
fn segment_s(seconds: usize) -> usize {
    seconds.div_ceil(SEGMENTS_MAX).max(1)
}

/// Of two values, which may both be infinite: 1 where they rise.
fn order(before: f64, after: f64) -> f64 {
    f64::from(after.total_cmp(&before) as i8)
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_plan::{phase, plan};
    use tidemark_scenario::plan::LoadModel;

    fn load(from: f64, to: f64) -> Load {
        let mut load = plan(LoadModel::Closed).load;
        load.phases = vec![phase("warm-up", 1.0, 1.0, false), phase("a", 60.0, from, true)];
        load.phases.push(phase("b", 60.0, to, true));
        load
    }

    fn seconds(count: usize, of: impl Fn(f64) -> (f64, u64)) -> Vec<Second> {
        let second = |i| {
            let (achieved_per_s, p50_us) = of(i as f64);
            Second {
                start_us: i as u64 * 1_000_000,
                achieved_per_s,
                p50_us: Some(p50_us),
                ..Second::default()
            }
        };
        (0..count).map(second).collect()
    }

    fn steady(seconds: &[Second]) -> (Option<bool>, String) {
        let state = test(&load(100.0, 100.0), seconds, &[]);
        (state.steady, state.reason)
    }

    #[test]
    fn noise_and_a_freeze_are_no_trend() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut found = 0;
        for _ in 0..200 {
            let noise: Vec<f64> = (0..30).map(|_| random.f64()).collect();
            let all = seconds(30, |i| {
                let noise = noise[i as usize];
                if i == 20.0 {
                    (0.0, 1_000_000)
                } else {
                    (900.0 + 200.0 * noise, 4_000 + (4_000.0 * noise) as u64)
                }
            });
            found += u32::from(steady(&all).0 != Some(true));
        }
        // two series at the 1 % level
        assert!(found <= 12, "{found} of 200 without a trend were said to have one");
    }

    #[test]
    fn a_growing_backlog_is_not_steady() {
        let (told, reason) = steady(&seconds(10, |i| (200.0, (i * 1e6) as u64 + 500_000)));
        assert_eq!(told, Some(false));
        let wanted = "the median response time rose from about 500ms to 9.5s, by 60s a minute, over the 10 s";
        assert!(reason.starts_with(wanted), "{reason}");
    }

    /// A line through a step would begin and end where nothing was ever measured.
    #[test]
    fn a_step_is_told_by_what_was_measured() {
        let all = seconds(20, |i| if i < 9.0 { (50_000.0, 80) } else { (8.0, 500_000) });
        let (told, reason) = steady(&all);
        assert_eq!(told, Some(false));
        let wanted = "the rate fell from 50000/s at first to 8/s at last, not evenly, and the median response time \
                      rose from 80µs at first to 500ms at last, not evenly,";
        assert!(reason.starts_with(wanted), "{reason}");
    }

    #[test]
    fn a_system_that_falls_over_is_not_steady_though_its_good_answers_stay_as_they_were() {
        let mut all = seconds(20, |i| (1_000.0 + i % 3.0, 5_000 + i as u64 % 7));
        assert_eq!(steady(&all).0, Some(true));
        for second in &mut all[12..] {
            (second.p50_us, second.errors) = (None, 1_500);
        }
        let state = test(&load(100.0, 100.0), &all, &[]);
        assert_eq!((state.steady, state.p50_us_each_minute), (Some(false), None));
        assert!(
            state.reason.starts_with("the median response time rose beyond every bound"),
            "{}",
            state.reason
        );
        all.reverse();
        assert!(steady(&all).1.starts_with("the median response time fell from beyond every bound"));
        // always so, or once only
        all.iter_mut().for_each(|second| (second.p50_us, second.errors) = (None, 1_500));
        assert_eq!(steady(&all).0, Some(true));
        let mut once = seconds(20, |i| (1_000.0, 5_000 + i as u64 % 7));
        (once[10].p50_us, once[10].errors) = (None, 1_500);
        assert_eq!(steady(&once).0, Some(true));
    }

    #[test]
    fn a_falling_rate_is_not_steady_through_noise() {
        let mut random = fastrand::Rng::with_seed(5);
        let noise: Vec<f64> = (0..600).map(|_| random.f64() * 100.0).collect();
        let all = seconds(600, |i| (1_000.0 - i / 3.0 + noise[i as usize], 5_000));
        let state = test(&load(100.0, 100.0), &all, &[]);
        assert_eq!((state.steady, state.p50_us_each_minute), (Some(false), None));
        assert!(state.reason.starts_with("the rate fell from about 1"), "{}", state.reason);
        let each_minute = state.rate_per_s_each_minute.unwrap();
        assert!((each_minute + 20.0).abs() < 2.0, "{each_minute}");
    }

    #[test]
    fn a_trend_that_does_not_matter_is_steady() {
        let (told, _) = steady(&seconds(30, |i| (1_000.0 + i / 3.0, 200 + i as u64)));
        assert_eq!(told, Some(true));
    }

    #[test]
    fn a_dip_that_we_made_is_no_drift() {
        let falls = seconds(20, |i| (if i < 12.0 { 1_000.0 } else { 12.0 - i + 500.0 }, 5_000));
        assert_eq!(test(&load(1.0, 1.0), &falls, &[]).steady, Some(false));
        let never_back = FaultEvent { begin_us: Some(12_000_000), ..FaultEvent::default() };
        let state = test(&load(1.0, 1.0), &falls, &[never_back]);
        assert_eq!(state.steady, Some(true), "{}", state.reason);
        assert!(state.reason.ends_with("over 12 s; without the dips of the faults"), "{}", state.reason);
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(steady(&seconds(7, |_| (1.0, 1))).0, None);
        assert_eq!(steady(&[]).0, None);
        let nothing = vec![Second { achieved_per_s: 5.0, ..Second::default() }; 30];
        assert_eq!(steady(&nothing).0, Some(true));
        assert_eq!(test(&load(1.0, 2.0), &seconds(30, |_| (1.0, 1)), &[]).steady, None);
        let mut swings = load(1.0, 1.0);
        swings.phases[1].curve = Curve::Sine { amplitude: 0.5, period: std::time::Duration::from_secs(9) };
        assert_eq!(test(&swings, &seconds(30, |_| (1.0, 1)), &[]).steady, None);
    }
}
