//! Counts a trial while it goes on, and ends it once enough is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::collections::BTreeMap;

use tidemark_limit::{Moment, Starvation, StoppingRule, Tail, Wanted};
use tidemark_record::{
    DRIVER, Facts, Live, MACHINE, MergedInterval, Outcome, RecordError, SECOND_US, Sample, SeriesKey,
    SeriesTimes, Sink,
};
use tidemark_scenario::plan::About;

use super::goals::Bounded;

/// Of shorter intervals the ends are most of what there is.
const FLOW_MIN_S: f64 = 0.5;

/// What was seen while the system had next to nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calm {
    /// Median response time, microseconds; none where most had no good answer, or nothing was answered.
    pub p50_us: Option<u64>,
}

/// What went in and out within an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// How long it is.
    pub seconds: f64,
    /// Requests that fell due.
    pub due: u64,
    /// Requests that ended well.
    pub good: u64,
}

/// What is seen of the system's use of this machine's cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sight {
    /// It was started, or is watched here: who else uses the cores is another.
    #[default]
    Seen,
    /// It is on another machine: all but the driver is another.
    Elsewhere,
    /// It is on this machine, and nobody watches it: who uses the cores while it has next to nothing to do is another.
    Unseen,
}

/// A sink that counts.
#[derive(Debug)]
pub struct Tally {
    rule: StoppingRule,
    bounded: Vec<Option<Bounded>>,
    /// By goal.
    pub tails: Vec<Option<Tail>>,
    /// Second by second, of the first goal that is a percentile.
    pub moments: Vec<Moment>,
    /// Sums over the window's intervals, and how many there were.
    in_flight: u64,
    waiting: u64,
    intervals: u64,
    /// What fell due and what had a good answer within the window, interval by interval, where that is not too short.
    pub flows: Vec<Flow>,
    sight: Sight,
    /// What each process of this machine used of the cores and waited for when it was looked at last.
    latest: BTreeMap<String, (f64, f64)>,
    /// Names that are of other machines.
    elsewhere: Vec<String>,
    /// What others used in the first second, in which there is next to no load.
    first_others: Option<f64>,
    /// Cores that were used by others than us within the window: sum and looks.
    others_cores: f64,
    looks: u64,
    /// Whether they had those that were wanted.
    pub starvation: Starvation,
    /// The measured window as planned, microseconds.
    window_us: Option<(u64, u64)>,
    /// How long the system is looked at before the load, seconds; none where it is not.
    calm_s: Option<f64>,
    /// What the median may be at most then, microseconds.
    calm_most_us: f64,
    pub calm: Option<Calm>,
    /// Whether it was not calm, so that the trial ended before it began.
    pub is_restless: bool,
    enough: Arc<AtomicBool>,
}

impl Tally {
    /// For a trial; `enough` ends it. `calm`: how long the system is looked at before, seconds, and what its median response
    /// time may be at most then, microseconds.
    pub fn new(
        rule: StoppingRule,
        bounded: &[Option<Bounded>],
        calm: Option<(f64, f64)>,
        enough: Arc<AtomicBool>,
    ) -> Tally {
        Tally {
            rule,
            bounded: bounded.to_owned(),
            tails: bounded.iter().map(|bounded| bounded.map(|_| Tail::default())).collect(),
            moments: Vec::new(),
            in_flight: 0,
            waiting: 0,
            intervals: 0,
            flows: Vec::new(),
            sight: Sight::default(),
            latest: BTreeMap::new(),
            elsewhere: Vec::new(),
            first_others: None,
            others_cores: 0.0,
            looks: 0,
            starvation: Starvation::default(),
            window_us: None,
            calm_s: calm.map(|(seconds, _)| seconds),
            calm_most_us: calm.map_or(f64::INFINITY, |(_, most_us)| most_us),
            calm: None,
            is_restless: false,
            enough,
        }
    }

    /// Of a system that is seen so; samples of these names are of other machines.
    pub fn with(self, sight: Sight, elsewhere: Vec<String>) -> Tally {
        Tally { sight, elsewhere, ..self }
    }

    /// Requests under way, and arrivals that waited for a connection, at the ends of the window's seconds: means.
    pub fn under_way(&self) -> (f64, f64) {
        let intervals = self.intervals.max(1) as f64;
        (self.in_flight as f64 / intervals, self.waiting as f64 / intervals)
    }

    /// Cores that others used, mean; none where nobody looked, or nobody knows who others are.
    pub fn others_cores(&self) -> Option<f64> {
        (self.looks > 0 && self.sight != Sight::Unseen)
            .then(|| (self.others_cores / self.looks as f64).max(0.0))
    }

    fn count(&mut self, interval: &MergedInterval) {
        let first_bound_us = self.bounded.iter().flatten().next().map(|bounded| bounded.bound_us);
        let mut moment = Moment { at_s: middle_s(interval), ..Moment::default() };
        for (goal, bounded) in self.bounded.iter().enumerate() {
            let (Some(bounded), Some(tail)) = (bounded, &mut self.tails[goal]) else { continue };
            let of =
                if matches!(bounded.about, About::Group(_)) { &interval.groups } else { &interval.series };
            for (key, times) in of.iter().filter(|(key, _)| key.2.measured && is_about(bounded.about, key)) {
                add(tail, key, times, bounded.bound_us);
            }
            if bounded.about == About::All {
                tail.fail(interval.measured_dropped);
            }
        }
        for ((_, outcome, _), times) in &interval.series {
            let ended = times.response_time_us.len();
            moment.ended += ended;
            moment.slow += match (outcome, first_bound_us) {
                (Outcome::Ok, Some(bound_us)) => ended - within(times, bound_us),
                (Outcome::Ok, None) => 0,
                _ => ended,
            };
        }
        if interval.in_window {
            self.in_flight += interval.in_flight;
            self.waiting += interval.waiting;
            self.intervals += 1;
            self.moments.push(moment);
            let seconds = (interval.end_us - interval.start_us) as f64 / SECOND_US as f64;
            if seconds >= FLOW_MIN_S {
                let good = interval.series.iter().filter(|((_, outcome, _), _)| *outcome == Outcome::Ok);
                let good = good.map(|(_, times)| times.response_time_us.len()).sum();
                self.flows.push(Flow { seconds, due: interval.measured_offered, good });
            }
        }
    }
}

fn middle_s(interval: &MergedInterval) -> f64 {
    (interval.start_us + interval.end_us) as f64 / 2e6
}

fn is_about(about: About, key: &SeriesKey) -> bool {
    match about {
        About::All => true,
        About::Label(index) | About::Group(index) => key.0 == index,
        About::Metric(_) | About::Phase(..) => false,
    }
}

fn add(tail: &mut Tail, key: &SeriesKey, times: &SeriesTimes, bound_us: f64) {
    if key.1 != Outcome::Ok {
        tail.fail(times.response_time_us.len());
        return;
    }
    for value in times.response_time_us.iter_recorded() {
        tail.add(value.value_iterated_to() as f64 / bound_us, value.count_at_value());
    }
}

/// How many were answered within the bound.
fn within(times: &SeriesTimes, bound_us: f64) -> u64 {
    times.response_time_us.count_between(0, bound_us as u64)
}

impl Sink for Tally {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        let measured = facts.manifest.phases.iter().filter(|phase| phase.measured);
        let window = measured.clone().map(|phase| phase.start_us).min();
        self.window_us = window.zip(measured.map(|phase| phase.end_us).max());
        Ok(())
    }

    fn interval(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        self.count(interval);
        Ok(())
    }

    fn second(&mut self, second: &Live) -> Result<(), RecordError> {
        if let Some(calm_s) = self.calm_s
            && self.calm.is_none()
            && second.at_s >= calm_s
        {
            let calm = Calm { p50_us: second.p50_us };
            self.calm = Some(calm);
            // where nobody knows how it is when it is calm, it is taken as it is
            let is_judged = self.calm_most_us.is_finite();
            if is_judged && calm.p50_us.is_none_or(|us| us as f64 > self.calm_most_us) {
                self.is_restless = true;
                self.enough.store(true, Ordering::Relaxed);
            }
        }
        if let Some((start_us, _)) = self.window_us.filter(|_| second.in_window) {
            let measured_s = second.at_s - start_us as f64 / 1e6;
            if self.rule.is_sure(&self.tails, measured_s) {
                self.enough.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        // what is watched is looked at at another moment, and may be told of with the next look
        let ours = samples.iter().filter(|of| of.process != MACHINE && !self.elsewhere.contains(&of.process));
        for of in ours.filter(|of| self.sight == Sight::Seen || of.process == DRIVER) {
            self.latest.insert(of.process.clone(), (of.cpu_share, of.core_wait_share));
        }
        let machine = samples.iter().find(|sample| sample.process == MACHINE);
        let (Some(machine), Some((start_us, end_us))) = (machine, self.window_us) else { return Ok(()) };
        let others = machine.cpu_share - self.latest.values().map(|(cores, _)| cores).sum::<f64>();
        let is_first = self.first_others.is_none();
        let first_others = *self.first_others.get_or_insert(others);
        // a look is of the second before it
        if (start_us + SECOND_US..=end_us).contains(&machine.at_us) {
            self.others_cores += others;
            self.looks += 1;
        }
        // what is left of the warm-up waits when it is measured
        if !is_first && machine.at_us <= end_us {
            let others = if self.sight == Sight::Unseen { first_others } else { others };
            let wanted = self.latest.iter().map(|(name, (cores, waited))| Wanted {
                name,
                cores: *cores,
                waited: *waited,
            });
            self.starvation.add(others, wanted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_limit::{Goal, Percentile, Purpose, TrialPlan};
    use tidemark_record::Totals;
    use tidemark_record::manifest::Phase;
    use tidemark_record::{Manifest, Merged, new_merged, summarize};

    fn tally(calm: Option<(f64, f64)>) -> Tally {
        let percentile = Some(Percentile { allowed: 0.01, bound_s: 0.05 });
        let goals = [
            Goal { text: "p99 < 50ms".into(), percentile, ..Goal::default() },
            Goal { text: "x".into(), ..Goal::default() },
        ];
        let ask = TrialPlan { level: 100.0, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 9.0 };
        let bounded = [Some(Bounded { about: About::All, bound_us: 50_000.0 }), None];
        let mut tally = Tally::new(StoppingRule::new(&goals, &ask), &bounded, calm, Arc::default());
        let summary = summarize(&Totals::new(&[]), std::path::Path::new("x"));
        let mut manifest = Manifest::new("x", Vec::new(), summary);
        let phase = |start_us, end_us, measured| Phase { start_us, end_us, measured, ..Phase::default() };
        manifest.phases = vec![phase(0, 2_000_000, false), phase(2_000_000, 9_000_000, true)];
        tally.begin(&Facts { manifest: &manifest, threads: 1, anchor: None }).unwrap();
        tally
    }

    fn times(us: u64, count: u64) -> SeriesTimes {
        let mut response_time_us: Merged = new_merged();
        response_time_us.record_n(us, count).unwrap();
        SeriesTimes { response_time_us, ..SeriesTimes::default() }
    }

    fn interval(second: u64, series: Vec<(SeriesKey, SeriesTimes)>) -> MergedInterval {
        let mut interval = MergedInterval::default();
        (interval.start_us, interval.end_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = second >= 2;
        interval.series = series.into_iter().collect();
        (interval.in_flight, interval.measured_dropped) = (4, 1);
        interval
    }

    #[test]
    fn what_was_due_in_the_window_is_counted_failures_and_drops_too() {
        let mut tally = tally(None);
        let before = vec![((0, Outcome::Ok, false.into()), times(90_000, 50))];
        tally.interval(&interval(1, before)).unwrap();
        let within = vec![
            ((0, Outcome::Ok, true.into()), times(10_000, 70)),
            ((1, Outcome::Ok, true.into()), times(90_000, 20)),
            ((1, Outcome::Timeout, true.into()), times(5_000, 3)),
        ];
        tally.interval(&interval(2, within)).unwrap();
        let tail = tally.tails[0].as_ref().unwrap();
        // a drop in each of the two intervals
        assert_eq!((tail.due(), tail.slow()), (95, 25));
        assert_eq!(tally.moments, [Moment { at_s: 2.5, ended: 93, slow: 23 }]);
        assert_eq!((tally.under_way(), tally.tails.len()), ((4.0, 0.0), 2));
    }

    #[test]
    fn it_ends_once_enough_is_known() {
        let mut tally = tally(None);
        let second = |at_s: f64| Live { at_s, in_window: at_s > 2.0, ..Live::default() };
        for at in 2..6 {
            let slow = vec![((0, Outcome::Ok, true.into()), times(900_000, 5_000))];
            tally.interval(&interval(at, slow)).unwrap();
            tally.second(&second(at as f64 + 1.0)).unwrap();
            assert_eq!(tally.enough.load(Ordering::Relaxed), at >= 3, "{at}");
        }
    }

    #[test]
    fn a_system_that_is_not_calm_ends_it_before_it_begins() {
        for (p50_us, restless) in [(Some(900), false), (Some(3_000), true), (None, true)] {
            let mut tally = tally(Some((1.0, 2_000.0)));
            tally.second(&Live { at_s: 1.0, p50_us, ..Live::default() }).unwrap();
            // what comes later is the load's doing
            tally.second(&Live { at_s: 2.0, p50_us: Some(90_000), ..Live::default() }).unwrap();
            assert_eq!((tally.is_restless, tally.enough.load(Ordering::Relaxed)), (restless, restless));
            assert_eq!(tally.calm, Some(Calm { p50_us }));
        }
    }

    #[test]
    fn what_others_use_is_the_machine_less_what_is_ours() {
        let mut tally = tally(None);
        let sample = |process: &str, at_us, cpu_share| Sample {
            process: process.into(),
            at_us,
            cpu_share,
            ..Sample::default()
        };
        for (at_us, machine) in [(1_000_000, 9.0), (3_000_000, 2.0), (4_000_000, 3.0)] {
            let looks =
                [sample(MACHINE, at_us, machine), sample("system", at_us, 1.0), sample("driver", at_us, 0.5)];
            tally.samples(&looks).unwrap();
        }
        assert_eq!(tally.others_cores(), Some(1.0));
    }

    /// Who waits for a core while others are at work, by what is seen of the system.
    #[test]
    fn a_trial_is_starved_by_others_and_not_by_what_is_its_own() {
        let starved = |sight: Sight, first: f64, machine: f64, looks: &[(&str, f64, f64)]| {
            let mut tally = tally(None).with(sight, vec!["db1".into()]);
            let sample = |process: &str, at_us, cpu_share, core_wait_share| Sample {
                process: process.into(),
                at_us,
                cpu_share,
                core_wait_share,
                ..Sample::default()
            };
            tally.samples(&[sample(MACHINE, 1_000_000, first, 0.0)]).unwrap();
            for second in 3..6 {
                let at_us = second * 1_000_000;
                let of = looks.iter().map(|(name, cores, waited)| sample(name, at_us, *cores, *waited));
                // what is watched is told of apart
                tally.samples(&of.collect::<Vec<_>>()).unwrap();
                tally.samples(&[sample(MACHINE, at_us + 9, machine, 0.0)]).unwrap();
            }
            tally.starvation.starved().map(|starved| starved.name)
        };
        let both = [("driver", 0.3, 0.02), ("system", 0.5, 0.4)];
        assert_eq!(starved(Sight::Seen, 0.1, 2.0, &both).as_deref(), Some("system"));
        assert_eq!(starved(Sight::Seen, 0.1, 0.85, &both), None, "its own threads wait for each other");
        let late = [("driver", 0.3, 0.2)];
        assert_eq!(starved(Sight::Elsewhere, 0.1, 2.0, &late).as_deref(), Some("driver"));
        // the system itself may have them, unless others had before
        assert_eq!(starved(Sight::Unseen, 0.05, 2.0, &late), None);
        assert_eq!(starved(Sight::Unseen, 1.2, 2.0, &late).as_deref(), Some("driver"));
        let remote = [("driver", 0.3, 0.0), ("db1", 9.0, 3.0)];
        assert_eq!(starved(Sight::Seen, 0.1, 2.0, &remote), None, "another machine's");
    }
}
