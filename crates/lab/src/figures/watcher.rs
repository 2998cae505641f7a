//! The thread that asks one server.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::WITHIN;
use super::endpoint::{Connection, Endpoint};
use super::product::{Figure, FigureKind, Scope, Stats};
use super::tracker::{Begun, Change, Ended, Tracker};
use crate::exchange::{no_answer, shown};
use crate::stop_signal::StopSignal;
use crate::timetable::microseconds;

/// How often a server is asked whether something is under way.
const BRIEFLY_EVERY: Duration = Duration::from_millis(100);
/// How often it is asked for everything.
const FULLY_EVERY: Duration = Duration::from_secs(1);
/// What tells a process of a server from the one before.
const PROCESS: &str = "run_id";

/// What a thread has to tell.
#[derive(Debug)]
pub struct News {
    /// Of which server.
    pub index: usize,
    /// When, microseconds since the run began.
    pub at_us: u64,
    /// What.
    pub what: What,
}

#[derive(Debug)]
#[allow(missing_docs)]
pub enum What {
    Figures(Vec<(String, f64)>),
    Began(Begun),
    Ended(Ended),
    Failed(String),
}

/// Asks one server until all is over.
pub struct Watcher {
    index: usize,
    endpoint: Endpoint,
    epoch: Instant,
    stop: Arc<StopSignal>,
    sender: Sender<News>,
}

/// What is known of the server.
#[derive(Debug, Default)]
pub struct Known {
    trackers: Vec<Tracker>,
    /// Counters of the look before over the same connection, and when that was.
    counters: HashMap<&'static str, (u64, u64)>,
    process: Option<String>,
}

impl Watcher {
    pub fn new(
        index: usize,
        endpoint: Endpoint,
        epoch: Instant,
        stop: Arc<StopSignal>,
        sender: Sender<News>,
    ) -> Watcher {
        Watcher { index, endpoint, epoch, stop, sender }
    }

    pub fn watch(&self) {
        let mut known = Known::default();
        known.trackers.extend(self.endpoint.product.maintenance().iter().map(Tracker::new));
        while !self.stop.is_set() {
            let asked =
                self.endpoint.speak(WITHIN, &self.stop, |connection| self.ask(connection, &mut known));
            if let Err(error) = asked
                && !self.stop.is_set()
            {
                self.tell(self.now_us(), What::Failed(shown(&error.to_string())));
            }
            self.stop.wait_until(self.next(FULLY_EVERY));
        }
    }

    /// Asks over one connection until all is over.
    fn ask(&self, connection: &mut Connection<'_>, known: &mut Known) -> io::Result<()> {
        let kinds = self.endpoint.product.maintenance();
        // who answers a new connection may count anew
        known.counters.clear();
        let mut fully_at = Instant::now();
        while !self.stop.is_set() {
            let scope = if Instant::now() >= fully_at { Scope::All } else { Scope::Maintenance };
            let stats = connection.ask(scope)?;
            let at_us = self.now_us();
            if scope == Scope::All {
                self.take_figures(at_us, &stats, known)?;
                fully_at = self.next(FULLY_EVERY);
            }
            let mut failed = None;
            for (kind, tracker) in kinds.iter().zip(&mut known.trackers) {
                let mut fork = || match connection.ask(Scope::All) {
                    Ok(stats) => stats.number(kind.fork),
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                };
                let changes = tracker.look(at_us, &stats, &mut fork);
                changes.into_iter().for_each(|change| self.tell_change(change));
                // its answer may still come, and would be taken for the next
                if let Some(error) = failed.take() {
                    return Err(error);
                }
            }
            let next = if kinds.is_empty() { fully_at } else { self.next(BRIEFLY_EVERY) };
            self.stop.wait_until(next.min(fully_at));
        }
        Ok(())
    }

    /// The next moment that is a multiple of a time since the run began, and at least half that time away: over less,
    /// delays would count for much.
    fn next(&self, every: Duration) -> Instant {
        let every_us = microseconds(every);
        self.epoch + Duration::from_micros(((self.now_us() + every_us / 2) / every_us + 1) * every_us)
    }

    fn now_us(&self) -> u64 {
        microseconds(self.epoch.elapsed())
    }

    fn take_figures(&self, at_us: u64, stats: &Stats, known: &mut Known) -> io::Result<()> {
        let figures = self.endpoint.product.figures();
        if !figures.iter().any(|figure| stats.text(figure.field).is_some()) {
            return Err(no_answer("it has none of the figures that are asked for"));
        }
        if let Some(process) = stats.text(PROCESS).map(str::to_owned) {
            if known.process.as_ref().is_some_and(|known| *known != process) {
                let ended = known.trackers.iter_mut().filter_map(|tracker| tracker.forget(at_us));
                ended.for_each(|change| self.tell_change(change));
            }
            known.process = Some(process);
        }
        let figure = |figure: &Figure| {
            let value = match figure.kind {
                FigureKind::Gauge => stats.number(figure.field)? as f64,
                FigureKind::Is(word) => f64::from(u8::from(stats.text(figure.field)? == word)),
                FigureKind::Rate => {
                    let now = stats.number(figure.field)?;
                    let (before_us, before) = known.counters.insert(figure.name, (at_us, now))?;
                    let s = at_us.checked_sub(before_us).filter(|us| *us > 0)? as f64 / 1e6;
                    // one that fell was set back
                    now.checked_sub(before)? as f64 / s
                }
            };
            Some((figure.name.to_owned(), value))
        };
        let figures = figures.iter().filter_map(figure).collect();
        self.tell(at_us, What::Figures(figures));
        Ok(())
    }

    fn tell_change(&self, change: Change) {
        match change {
            Change::Began(at_us, begun) => self.tell(at_us, What::Began(begun)),
            Change::Ended(at_us, ended) => self.tell(at_us, What::Ended(ended)),
        }
    }

    fn tell(&self, at_us: u64, what: What) {
        // nobody listens only where the run is over
        let _ = self.sender.send(News { index: self.index, at_us, what });
    }
}
