//! The thread that asks one server.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::endpoint::{Connection, Endpoint};
use super::product::{Figure, FigureKind, Scope, Stats};
use super::tracker::{Begun, Change, Ended, Tracker};
use crate::faults::Over;
use crate::timetable::microseconds;

/// How often a server is asked whether something is under way.
const BRIEFLY_EVERY: Duration = Duration::from_millis(100);
/// How often it is asked for everything.
const FULLY_EVERY: Duration = Duration::from_secs(1);
/// How long after a failure it is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// What tells a process of a server from the one before.
const PROCESS: [&str; 2] = ["run_id", "pid"];

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
    over: Arc<Over>,
    sender: Sender<News>,
}

/// What is known of the server.
#[derive(Debug, Default)]
pub struct Known {
    trackers: Vec<Tracker>,
    /// Counters of the look before, and when that was.
    counters: HashMap<&'static str, (u64, f64)>,
    process: Option<String>,
}

impl Watcher {
    pub fn new(index: usize, endpoint: Endpoint, epoch: Instant, over: Arc<Over>, sender: Sender<News>) -> Watcher {
        Watcher { index, endpoint, epoch, over, sender }
    }

    pub fn watch(&self) {
        let mut known = Known::default();
        known.trackers.extend(self.endpoint.product.maintenance().iter().map(Tracker::new));
        while !self.over.is_over() {
            let asked = self.endpoint.speak(|connection| self.ask(connection, &mut known));
            if let Err(error) = asked {
                self.tell(self.now_us(), What::Failed(reason(&error)));
            }
            self.over.wait_until(Instant::now() + AGAIN_AFTER);
        }
    }

    /// Asks over one connection until all is over.
    fn ask(&self, connection: &mut Connection<'_>, known: &mut Known) -> io::Result<()> {
        let product = self.endpoint.product;
        let mut fully_at = Instant::now();
        while !self.over.is_over() {
            let scope = if Instant::now() >= fully_at { Scope::All } else { Scope::Maintenance };
            if scope == Scope::All || !product.maintenance().is_empty() {
                let stats = connection.ask(scope)?;
                let at_us = self.now_us();
                if scope == Scope::All {
                    self.is_same(at_us, &stats, known);
                    let figures = self.figures(at_us, &stats, known);
                    self.tell(at_us, What::Figures(figures));
                }
                for index in 0..known.trackers.len() {
                    let fork = product.maintenance()[index].fork;
                    let mut ask_fork = || connection.ask(Scope::All).ok()?.count(fork);
                    let changes = known.trackers[index].look(at_us, &stats, &mut ask_fork);
                    changes.into_iter().for_each(|change| self.tell_change(change));
                }
            }
            if scope == Scope::All {
                fully_at = self.next(FULLY_EVERY);
            }
            let next = if product.maintenance().is_empty() { fully_at } else { self.next(BRIEFLY_EVERY) };
            self.over.wait_until(next.min(fully_at));
        }
        Ok(())
    }

    /// The next moment that is a multiple of a time since the run began.
    fn next(&self, every: Duration) -> Instant {
        let now_us = self.now_us();
        let every_us = microseconds(every);
        self.epoch + Duration::from_micros((now_us / every_us + 1) * every_us)
    }

    fn now_us(&self) -> u64 {
        microseconds(self.epoch.elapsed())
    }

    /// Forgets all counters where another process answers.
    fn is_same(&self, at_us: u64, stats: &Stats, known: &mut Known) {
        let process = PROCESS.iter().find_map(|name| stats.text(name)).map(str::to_owned);
        if known.process.is_some() && known.process != process {
            known.counters.clear();
            let changes: Vec<Change> = known.trackers.iter_mut().filter_map(|tracker| tracker.forget(at_us)).collect();
            changes.into_iter().for_each(|change| self.tell_change(change));
        }
        known.process = process;
    }

    fn figures(&self, at_us: u64, stats: &Stats, known: &mut Known) -> Vec<(String, f64)> {
        let figure = |figure: &Figure| {
            let value = match figure.kind {
                FigureKind::Gauge => stats.number(figure.field)?,
                FigureKind::Is(word) => f64::from(u8::from(stats.text(figure.field)? == word)),
                FigureKind::Rate => {
                    let now = stats.number(figure.field)?;
                    let (before_us, before) = known.counters.insert(figure.name, (at_us, now))?;
                    let s = at_us.checked_sub(before_us).filter(|us| *us > 0)? as f64 / 1e6;
                    // one that fell began anew
                    (now >= before).then_some((now - before) / s)?
                }
            };
            Some((figure.name.to_owned(), value))
        };
        self.endpoint.product.figures().iter().filter_map(figure).collect()
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

/// What the operating system calls a time-out means nothing to a person.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s", super::WITHIN.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed the connection".into(),
        _ => error.to_string(),
    }
}
