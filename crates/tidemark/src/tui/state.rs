//! What the view knows of a run.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tidemark_lab::Progress;
use tidemark_record::{Live, Sample};
use tidemark_report::units;

pub use crate::progress::length;
use crate::progress::starting;

/// Seconds that are kept; a screen shows no more of them than it has columns.
pub const SECONDS_MAX: usize = 1_024;
/// Events that are kept.
const EVENTS_MAX: usize = 64;
/// So long after it was last seen a process is shown, microseconds.
const KEPT_US: u64 = 1_900_000;
/// Seconds that are room for where nobody knows how many there will be.
const SPAN_MIN: usize = 30;

/// Everything that is drawn.
#[derive(Debug)]
pub struct State {
    /// The scenario.
    pub title: String,
    /// The number of requests after which the load ends, where that is what ends it.
    pub goal: Option<u64>,
    /// Its system.
    pub system: String,
    /// The phase, or what happens outside of the load.
    pub phase: String,
    /// What the phase offers.
    pub level: String,
    /// When the last phase ends, as far as it is known.
    ends_at: Option<Instant>,
    /// Length of all phases.
    pub planned: Option<Duration>,
    /// Whole seconds of the load, the last one last.
    pub seconds: VecDeque<Live>,
    /// The last look at every process.
    pub samples: Vec<Sample>,
    /// What happened and when, seconds since the load began.
    pub events: VecDeque<(Option<f64>, String)>,
    /// Whether it is being stopped.
    pub stopping: bool,
    /// When the load began.
    begun: Option<Instant>,
}

impl State {
    /// Before anything happened.
    pub fn new(title: String, goal: Option<u64>) -> State {
        State {
            title,
            goal,
            system: String::new(),
            phase: "starting".into(),
            level: String::new(),
            ends_at: None,
            planned: None,
            seconds: VecDeque::new(),
            samples: Vec::new(),
            events: VecDeque::new(),
            stopping: false,
            begun: None,
        }
    }

    /// Takes in what happened at a moment.
    pub fn take(&mut self, progress: Progress, now: Instant) {
        match progress {
            Progress::Starting { system } => {
                self.event(now, starting(&system));
                self.system = system;
            }
            Progress::Store { text } => {
                self.phase = "store".into();
                self.event(now, text);
            }
            Progress::Probing => {
                self.phase = "disk probe".into();
                self.event(now, "measuring the disk's sync latency".into());
            }
            Progress::Preparing => {
                self.phase = "loading data".into();
                self.event(now, "loading data".into());
            }
            Progress::Loading { done, of } => {
                self.level = format!("{} of {}", units::count(done), units::count(of));
            }
            Progress::Phase { name, level, duration } => {
                self.begun.get_or_insert(now);
                self.event(now, format!("{name}: {level} for {}", length(duration)));
                (self.phase, self.level) = (name, level);
            }
            Progress::Look { samples } => self.look(samples),
            Progress::Fault { text } => self.event(now, text),
            Progress::Second { phase, left, live } => {
                let begun = *self.begun.get_or_insert(now);
                self.phase = phase;
                self.ends_at = now.checked_add(left);
                self.planned = Some(now.saturating_duration_since(begun) + left);
                if self.seconds.back().is_none_or(|last| last.at_s < live.at_s) {
                    if self.seconds.len() == SECONDS_MAX {
                        self.seconds.pop_front();
                    }
                    self.seconds.push_back(*live);
                }
            }
            Progress::Verifying { read, of } => {
                if read == 0 {
                    self.event(now, "reading everything back".into());
                }
                self.ends_at = None;
                self.phase = "verifying".into();
                self.level = format!("{} of {} writes read", units::count(read), units::count(of));
            }
            Progress::CutShort { reason } => {
                self.event(now, reason);
                self.stop();
            }
            Progress::Stopping { interrupted } => {
                let text =
                    if interrupted { "stopped by the user" } else { "what was started ended by itself" };
                self.event(now, text.into());
                self.stop();
            }
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.ends_at = None;
        self.phase = "stopping, then the report".into();
    }

    fn event(&mut self, now: Instant, text: String) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        let at_s = self.begun.map(|begun| now.saturating_duration_since(begun).as_secs_f64());
        self.events.push_back((at_s, text));
    }

    /// What is left of the load: time, or requests where their number ends it.
    pub fn left(&self, now: Instant) -> Option<String> {
        let end = self.ends_at?;
        match (self.goal, self.last()) {
            (None, _) => Some(format!("{} left", length(end.saturating_duration_since(now)))),
            (Some(goal), Some(last)) => {
                let (done, goal) = (units::compact(last.requests as f64), units::compact(goal as f64));
                Some(format!("{done} of {goal} requests"))
            }
            (Some(_), None) => None,
        }
    }

    /// How much of the load is over, 0 to 1.
    pub fn share(&self, now: Instant) -> f64 {
        if self.stopping {
            return 1.0;
        }
        if let Some(goal) = self.goal {
            let done = self.last().map_or(0, |last| last.requests);
            return (done as f64 / goal.max(1) as f64).clamp(0.0, 1.0);
        }
        match (self.planned, self.ends_at) {
            (Some(planned), Some(end)) if !planned.is_zero() => {
                let left = end.saturating_duration_since(now);
                (1.0 - left.as_secs_f64() / planned.as_secs_f64()).clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// The seconds that there is room for, each with its place from the left, and how many there will be: all of
    /// the load where they fit, else the last ones.
    pub fn shown(&self, room: usize) -> (impl Iterator<Item = (f64, &Live)> + Clone, usize) {
        let planned = match (self.planned, self.goal) {
            (Some(planned), None) => planned.as_secs_f64().ceil() as usize,
            _ => SPAN_MIN,
        };
        let span = planned.max(self.seconds.len()).clamp(1, room.max(1));
        let skip = self.seconds.len().saturating_sub(span);
        (self.seconds.iter().skip(skip).enumerate().map(|(i, live)| (i as f64, live)), span)
    }

    /// Takes what was seen; not all are looked at in the same moment.
    fn look(&mut self, samples: Vec<Sample>) {
        let newest_us = samples.iter().map(|sample| sample.at_us).max().unwrap_or(0);
        self.samples.retain(|known| {
            known.at_us.saturating_add(KEPT_US) >= newest_us
                && samples.iter().all(|sample| sample.process != known.process)
        });
        self.samples.extend(samples);
    }

    /// The last whole second.
    pub fn last(&self) -> Option<&Live> {
        self.seconds.back()
    }

    /// CPU of a process, in cores.
    pub fn cpu(&self, process: &str) -> Option<f64> {
        self.samples.iter().find(|sample| sample.process == process).map(|sample| sample.cpu_share)
    }
}
