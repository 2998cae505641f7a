//! When something is due within a drive: phases, looks of the monitor, the measured window.

use std::time::Duration;

use tidemark_drive::PhaseTimes;
use tidemark_record::SECOND_US;
use tidemark_scenario::Plan;

use crate::load_text;

/// How long before its end a process is looked at once more: who looks comes by several times meanwhile.
const BEFORE_END: Duration = Duration::from_millis(150);

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

/// When phases begin, and when the monitor looks: at every whole second, and before a fault ends a process, as nobody
/// knows afterwards what that used.
pub struct Timetable {
    phases: Vec<Planned>,
    next_phase: usize,
    next_look_us: u64,
    /// Looks in between, the next one last.
    last_looks_us: Vec<u64>,
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
        let zero_us = times.iter().filter(|phase| phase.measured).map(|phase| phase.start_us).min();
        let ending = plan.faults.iter().filter(|fault| fault.kind.ends_processes());
        let before =
            |at: Duration| (zero_us.unwrap_or(0) + microseconds(at)).saturating_sub(microseconds(BEFORE_END));
        let mut last_looks_us: Vec<u64> = ending.map(|fault| before(fault.at)).collect();
        last_looks_us.sort_unstable_by(|a, b| b.cmp(a));
        Timetable { phases, next_phase: 0, next_look_us: SECOND_US, last_looks_us }
    }

    /// Length of the measured window as planned, seconds.
    pub fn window_s(&self) -> f64 {
        let measured = || self.phases.iter().filter(|phase| phase.measured);
        let start_us = measured().map(|phase| phase.start_us).min();
        let end_us = measured().map(|phase| phase.end_us).max();
        start_us.zip(end_us).map_or(0.0, |(start_us, end_us)| (end_us - start_us) as f64 / 1e6)
    }

    /// Whether a moment lies within the measured window as planned.
    pub fn is_measured(&self, now_us: u64) -> bool {
        self.phases.iter().any(|phase| phase.measured && phase.start_us <= now_us && now_us < phase.end_us)
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
        let mut due = now_us >= self.next_look_us;
        if due {
            self.next_look_us = next_second_us(now_us);
        }
        while self.last_looks_us.pop_if(|at_us| *at_us <= now_us).is_some() {
            due = true;
        }
        due
    }
}

/// When the next whole second of the run begins, microseconds since it did.
pub fn next_second_us(now_us: u64) -> u64 {
    (now_us / SECOND_US + 1) * SECOND_US
}

/// A duration as the run's clock counts.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_scenario::plan::LoadModel;
    use tidemark_verdict::test_plan::{phase, plan};

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
    fn it_looks_once_more_before_a_process_is_ended() {
        use tidemark_scenario::plan::{Fault, FaultKind};
        let fault = |at_ms, kind| Fault {
            at: Duration::from_millis(at_ms),
            share: None,
            target: "system".into(),
            kind,
            lasts: None,
        };
        let mut plan = plan(LoadModel::Closed);
        plan.faults =
            vec![fault(900, FaultKind::Kill), fault(200, FaultKind::Stop), fault(500, FaultKind::Freeze)];
        let times =
            [(0, 1_500_000, false), (1_500_000, 4_000_000, true)].map(|(start_us, end_us, measured)| {
                PhaseTimes { name: String::new(), start_us, end_us, measured }
            });
        let mut timetable = Timetable::new(&plan, &times);
        let looks: Vec<u64> = (0..3_500).step_by(50).filter(|ms| timetable.look_is_due(ms * 1000)).collect();
        assert_eq!(looks, [1000, 1550, 2000, 2250, 3000]);
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
    fn the_window_is_as_long_as_the_measured_phases() {
        assert_eq!(timetable().window_s(), 3.25);
    }
}
