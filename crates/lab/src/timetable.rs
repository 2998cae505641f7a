//! When something is due within a drive: phases, looks of the monitor, the measured window.

use std::time::Duration;

use tidemark_drive::PhaseTimes;
use tidemark_scenario::Plan;

use crate::load_text;
use crate::monitor::{Monitor, ThreadTimes};

/// Time between two looks of the monitor.
const SECOND_US: u64 = 1_000_000;
/// What the names of the driving threads begin with.
const DRIVING_THREADS: &str = "drive-";

/// A phase that will come to pass.
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it offers, for a person.
    pub level: String,
    /// Begin, microseconds since the run began.
    pub start_us: u64,
    /// End.
    pub end_us: u64,
    /// Whether it belongs to the measured window.
    pub measured: bool,
}

/// When phases begin, and when the monitor looks: at every whole second.
pub struct Timetable {
    phases: Vec<Planned>,
    next_phase: usize,
    next_look_us: u64,
}

impl Timetable {
    /// For the phases of a plan at the times of a drive.
    pub fn new(plan: &Plan, times: &[PhaseTimes]) -> Self {
        let planned = |(times, level): (&PhaseTimes, String)| Planned {
            name: times.name.clone(),
            level,
            start_us: times.start_us,
            end_us: times.end_us,
            measured: times.measured,
        };
        let phases = times.iter().zip(load_text::levels(plan)).map(planned).collect();
        Timetable { phases, next_phase: 0, next_look_us: SECOND_US }
    }

    /// Length of the measured window as planned, seconds.
    pub fn window_s(&self) -> f64 {
        let measured = || self.phases.iter().filter(|phase| phase.measured);
        let start_us = measured().map(|phase| phase.start_us).min();
        let end_us = measured().map(|phase| phase.end_us).max();
        start_us.zip(end_us).map_or(0.0, |(start_us, end_us)| (end_us - start_us) as f64 / 1e6)
    }

    /// The phase that has begun since the last call.
    pub fn entered(&mut self, now_us: u64) -> Option<&Planned> {
        let index = self.next_phase;
        let begun = self.phases.get(index).is_some_and(|phase| phase.start_us <= now_us);
        self.next_phase += usize::from(begun);
        self.phases.get(index).filter(|_| begun)
    }

    /// Whether a look of the monitor is due; asking takes it.
    pub fn look_is_due(&mut self, now_us: u64) -> bool {
        let due = now_us >= self.next_look_us;
        if due {
            self.next_look_us = (now_us / SECOND_US + 1) * SECOND_US;
        }
        due
    }

    /// The phase that runs and the time until the last one ends; none after it.
    pub fn position(&self, now_us: u64) -> Option<(String, Duration)> {
        let phase = self.phases.iter().rev().find(|phase| phase.start_us <= now_us)?;
        let end_us = self.phases.last()?.end_us;
        (now_us < end_us).then(|| (phase.name.clone(), Duration::from_micros(end_us - now_us)))
    }
}

/// How the driving threads fare within the measured window.
pub struct RunQueue {
    window_us: Option<(u64, u64)>,
    first: Option<(u64, Vec<ThreadTimes>)>,
    last: Option<(u64, Vec<ThreadTimes>)>,
}

/// How the driving threads fared within the measured window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fared {
    /// Share of the time in which they were ready to run but had no core, mean of all threads.
    pub waited: f64,
    /// The same each time that one of them woke, until it slept again, mean of all times, microseconds.
    pub core_wait_us: f64,
    /// Share of the time in which the thread that was least idle was on a CPU or waited for one.
    pub wanted: f64,
}

impl RunQueue {
    /// For the phases of a drive.
    pub fn new(phases: &[PhaseTimes]) -> Self {
        let measured = || phases.iter().filter(|phase| phase.measured);
        let start_us = measured().map(|phase| phase.start_us).min();
        let end_us = measured().map(|phase| phase.end_us).max();
        RunQueue { window_us: start_us.zip(end_us), first: None, last: None }
    }

    /// Looks at the driving threads; the more often, the nearer to the window's edges.
    pub fn look(&mut self, monitor: &Monitor, now_us: u64) {
        if self.window_us.is_some_and(|(start_us, end_us)| start_us <= now_us && now_us <= end_us) {
            let times = monitor.thread_times(DRIVING_THREADS);
            let first = self.first.get_or_insert_with(|| (now_us, times.clone()));
            // fewer: the drive has ended before its time
            if first.1.len() == times.len() {
                self.last = Some((now_us, times));
            }
        }
    }

    /// What it came to between the first and the last look; none where there were no two.
    pub fn fared(&self) -> Option<Fared> {
        let ((from_us, before), (to_us, after)) = self.first.as_ref().zip(self.last.as_ref())?;
        if to_us <= from_us {
            return None;
        }
        let share = |after: u64, before: u64| after.saturating_sub(before) as f64 / (to_us - from_us) as f64;
        let pairs = || before.iter().zip(after);
        let wanted = |(before, after): (&ThreadTimes, &ThreadTimes)| {
            share(after.cpu_us + after.waited_us, before.cpu_us + before.waited_us)
        };
        let waited_us: u64 = pairs().map(|(b, a)| a.waited_us.saturating_sub(b.waited_us)).sum();
        let sleeps: u64 = pairs().map(|(b, a)| a.sleeps.saturating_sub(b.sleeps)).sum();
        Some(Fared {
            waited: share(waited_us, 0) / before.len().max(1) as f64,
            core_wait_us: waited_us as f64 / sleeps.max(1) as f64,
            // the kernel's account may run ahead of the clock by a little
            wanted: pairs().map(wanted).fold(0.0, f64::max).min(1.0),
        })
    }
}

/// A duration as the run's clock counts.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_plan::{phase, plan};
    use tidemark_scenario::plan::LoadModel;

    fn timetable() -> Timetable {
        let mut plan = plan(LoadModel::Closed);
        plan.load.phases = vec![
            phase("warm-up", 1.5, 10.0, false),
            phase("hold", 2.0, 10.0, true),
            phase("more", 1.25, 20.0, true),
            phase("cool", 0.5, 1.0, false),
        ];
        let mut at_us = 0;
        let mut times = |phase: &tidemark_scenario::plan::Phase| {
            let start_us = at_us;
            at_us += microseconds(phase.duration);
            PhaseTimes { name: phase.name.clone(), start_us, end_us: at_us, measured: phase.measured }
        };
        let times: Vec<PhaseTimes> = plan.load.phases.iter().map(&mut times).collect();
        Timetable::new(&plan, &times)
    }

    #[test]
    fn the_monitor_looks_every_second() {
        let mut timetable = timetable();
        let looks: Vec<u64> = (0..4_000).step_by(50).filter(|ms| timetable.look_is_due(ms * 1000)).collect();
        assert_eq!(looks, [1000, 2000, 3000]);
        // one that comes late does not make up for what it missed
        assert!(timetable.look_is_due(9_100_000) && !timetable.look_is_due(9_900_000));
        assert!(timetable.look_is_due(10_000_000));
    }

    #[test]
    fn phases_are_entered_once_each_in_order() {
        let mut timetable = timetable();
        let mut entered = Vec::new();
        for now_us in [0, 100, 1_500_000, 1_500_001, 4_900_000, 4_900_000, 4_900_000] {
            if let Some(phase) = timetable.entered(now_us) {
                entered.push((phase.name.clone(), phase.level.clone()));
            }
        }
        let wanted =
            [("warm-up", "10 users"), ("hold", "10 users"), ("more", "20 users"), ("cool", "1 user")];
        assert_eq!(entered, wanted.map(|(name, level)| (name.to_owned(), level.to_owned())));
    }

    #[test]
    fn the_position_says_what_is_left() {
        let timetable = timetable();
        assert_eq!(timetable.position(0), Some(("warm-up".into(), Duration::from_millis(5250))));
        assert_eq!(timetable.position(3_500_000), Some(("more".into(), Duration::from_millis(1750))));
        assert_eq!(timetable.position(5_250_000), None);
    }

    #[test]
    fn the_window_is_as_long_as_the_measured_phases() {
        assert_eq!(timetable().window_s(), 3.25);
    }

    #[test]
    fn waiting_is_of_all_threads_and_idleness_of_the_one_that_had_least() {
        let times = |all: [(u64, u64, u64); 2]| {
            let times =
                |(cpu_us, waited_us, sleeps)| ThreadTimes { name: "drive".into(), cpu_us, waited_us, sleeps };
            all.map(times).to_vec()
        };
        let queue = RunQueue {
            window_us: None,
            first: Some((1_000_000, times([(0, 50, 7), (10, 0, 0)]))),
            last: Some((3_000_000, times([(1_000_000, 400_050, 1_007), (500_010, 1_400_000, 8_000)]))),
        };
        let fared = queue.fared().unwrap();
        assert!((fared.waited - 0.45).abs() < 1e-9 && (fared.wanted - 0.95).abs() < 1e-9, "{fared:?}");
        assert!((fared.core_wait_us - 200.0).abs() < 1e-9, "{fared:?}");
        assert_eq!(RunQueue::new(&[]).fared(), None);
    }

    #[test]
    fn a_thread_that_never_sleeps_waited_all_of_it_at_once() {
        let times = |cpu_us, waited_us| vec![ThreadTimes { name: "d".into(), cpu_us, waited_us, sleeps: 3 }];
        let queue = RunQueue {
            window_us: None,
            first: Some((0, times(0, 0))),
            last: Some((1_000_000, times(250_000, 750_100))),
        };
        let wanted = Fared { waited: 0.7501, core_wait_us: 750_100.0, wanted: 1.0 };
        assert_eq!(queue.fared(), Some(wanted));
    }
}
