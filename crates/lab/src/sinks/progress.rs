//! The lab's [`Progress`] of a load, as a sink.

use std::time::Duration;

use tidemark_record::manifest::Phase;
use tidemark_record::{Event, Facts, Live, RecordError, Sample, Sink};

use crate::progress::{Progress, Watcher};

/// Tells whoever watches what the load does.
pub struct ProgressSink<'w, 'p> {
    watcher: &'w Watcher<'p>,
    phases: Vec<Phase>,
    /// Whether the load was told to end before its time.
    stopping: bool,
}

impl<'w, 'p> ProgressSink<'w, 'p> {
    /// For this one.
    pub fn new(watcher: &'w Watcher<'p>) -> ProgressSink<'w, 'p> {
        ProgressSink { watcher, phases: Vec::new(), stopping: false }
    }

    fn phase(&self, event: &Event) -> Option<Progress> {
        let begins = |phase: &&Phase| {
            phase.start_us as i64 == event.at_us && event.text == format!("{}: {}", phase.name, phase.level)
        };
        let Phase { name, level, start_us, end_us, .. } = self.phases.iter().find(begins)?.clone();
        Some(Progress::Phase {
            name,
            level,
            duration: Duration::from_micros(end_us.saturating_sub(start_us)),
        })
    }
}

impl Sink for ProgressSink<'_, '_> {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        self.phases.clone_from(&facts.manifest.phases);
        Ok(())
    }

    fn second(&mut self, second: &Live) -> Result<(), RecordError> {
        let at_us = (second.at_s * 1e6) as u64;
        let phase = self.phases.iter().rev().find(|phase| phase.start_us <= at_us);
        let end_us = self.phases.last().map_or(0, |last| last.end_us);
        if let Some(phase) = phase.filter(|_| !self.stopping && at_us < end_us) {
            self.watcher.tell(Progress::Second {
                phase: phase.name.clone(),
                left: Duration::from_micros(end_us - at_us),
                live: Box::new(second.clone()),
            });
        }
        Ok(())
    }

    fn samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        self.watcher.tell(Progress::Look { samples: samples.to_vec() });
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let text = event.text.clone();
        let told = match event.kind.as_str() {
            "phase" => self.phase(event),
            "fault" | "healed" => Some(Progress::Fault { text }),
            "unreachable" => Some(Progress::CutShort { reason: text }),
            "interrupted" => Some(Progress::Stopping { interrupted: true }),
            "exited" => Some(Progress::Stopping { interrupted: false }),
            _ => None,
        };
        self.stopping |= matches!(told, Some(Progress::CutShort { .. } | Progress::Stopping { .. }));
        told.into_iter().for_each(|progress| self.watcher.tell(progress));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_say_what_is_left_until_the_load_is_told_to_end() {
        let mut told = Vec::new();
        let mut tell = |progress| told.push(progress);
        let watcher = Watcher::new(&mut tell);
        let mut sink = ProgressSink::new(&watcher);
        let phase = |name: &str, start_us, end_us| Phase {
            name: name.into(),
            start_us,
            end_us,
            level: "10 users".into(),
            ..Phase::default()
        };
        sink.phases = vec![phase("warm-up", 0, 1_500_000), phase("hold", 1_500_000, 5_000_000)];
        let event = |at_us, kind: &str, text: &str| Event { at_us, kind: kind.into(), text: text.into() };
        sink.event(&event(1_500_000, "phase", "hold: 10 users")).unwrap();
        for at_s in [1.0, 2.0, 5.0] {
            sink.second(&Live { at_s, ..Live::default() }).unwrap();
        }
        sink.event(&event(2_100_000, "interrupted", "stopped by the user")).unwrap();
        sink.second(&Live { at_s: 3.0, ..Live::default() }).unwrap();
        drop(sink);
        let told: Vec<String> = told
            .into_iter()
            .map(|progress| match progress {
                Progress::Phase { name, level, duration } => format!("{name} {level} {duration:?}"),
                Progress::Second { phase, left, .. } => format!("{phase} {left:?}"),
                Progress::Stopping { interrupted: true } => "stopping".into(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["hold 10 users 3.5s", "warm-up 4s", "hold 3s", "stopping"]);
    }
}
