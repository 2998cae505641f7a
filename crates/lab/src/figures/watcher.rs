//! The thread that asks one server.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::place::Place;
use super::product::{How, Of, Said, Wire};
use super::work::{Begun, Ended, Shown, Work};
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
    place: Place,
    epoch: Instant,
    over: Arc<Over>,
    sender: Sender<News>,
}

/// What is known of the server.
#[derive(Debug, Default)]
pub struct Known {
    work: Vec<Work>,
    /// Counters of the look before, and when that was.
    counters: HashMap<&'static str, (u64, f64)>,
    process: Option<String>,
}

impl Watcher {
    pub fn new(index: usize, place: Place, epoch: Instant, over: Arc<Over>, sender: Sender<News>) -> Watcher {
        Watcher { index, place, epoch, over, sender }
    }

    pub fn watch(&self) {
        let mut known = Known::default();
        known.work.extend(self.place.product.kinds().iter().map(Work::new));
        while !self.over.is_over() {
            let asked = self.place.speak(|wire| self.ask(wire, &mut known));
            if let Err(error) = asked {
                self.tell(self.now_us(), What::Failed(reason(&error)));
            }
            self.over.wait_until(Instant::now() + AGAIN_AFTER);
        }
    }

    /// Asks over one connection until all is over.
    fn ask(&self, wire: &mut Wire<'_>, known: &mut Known) -> io::Result<()> {
        let product = self.place.product;
        let mut fully_at = Instant::now();
        while !self.over.is_over() {
            let of = if Instant::now() >= fully_at { Of::All } else { Of::Kinds };
            if of == Of::All || !product.kinds().is_empty() {
                let said = product.ask(wire, of)?;
                let at_us = self.now_us();
                if of == Of::All {
                    self.is_same(at_us, &said, known);
                    let figures = self.figures(at_us, &said, known);
                    self.tell(at_us, What::Figures(figures));
                }
                for index in 0..known.work.len() {
                    let fork = product.kinds()[index].fork;
                    let mut ask_fork = || product.ask(wire, Of::All).ok()?.count(fork);
                    let shown = known.work[index].look(at_us, &said, &mut ask_fork);
                    shown.into_iter().for_each(|shown| self.show(shown));
                }
            }
            if of == Of::All {
                fully_at = self.next(FULLY_EVERY);
            }
            let next = if product.kinds().is_empty() { fully_at } else { self.next(BRIEFLY_EVERY) };
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
    fn is_same(&self, at_us: u64, said: &Said, known: &mut Known) {
        let process = PROCESS.iter().find_map(|name| said.text(name)).map(str::to_owned);
        if known.process.is_some() && known.process != process {
            known.counters.clear();
            let shown: Vec<Shown> = known.work.iter_mut().filter_map(|work| work.forget(at_us)).collect();
            shown.into_iter().for_each(|shown| self.show(shown));
        }
        known.process = process;
    }

    fn figures(&self, at_us: u64, said: &Said, known: &mut Known) -> Vec<(String, f64)> {
        let figure = |figure: &super::product::Figure| {
            let value = match figure.how {
                How::Now => said.number(figure.of)?,
                How::Is(word) => f64::from(u8::from(said.text(figure.of)? == word)),
                How::PerSecond => {
                    let now = said.number(figure.of)?;
                    let (before_us, before) = known.counters.insert(figure.name, (at_us, now))?;
                    let s = at_us.checked_sub(before_us).filter(|us| *us > 0)? as f64 / 1e6;
                    // one that fell began anew
                    (now >= before).then_some((now - before) / s)?
                }
            };
            Some((figure.name.to_owned(), value))
        };
        self.place.product.figures().iter().filter_map(figure).collect()
    }

    fn show(&self, shown: Shown) {
        match shown {
            Shown::Began(at_us, begun) => self.tell(at_us, What::Began(begun)),
            Shown::Ended(at_us, ended) => self.tell(at_us, What::Ended(ended)),
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
