//! The simulation: events in virtual time, one after the other.

mod arrivals;
mod changes;
mod flow;
mod state;
mod timeouts;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fastrand::Rng;

use self::arrivals::Source;
use self::state::{Edge, NONE, TierState, Visit};
use self::timeouts::Timeouts;
use crate::model::{Load, Model, Wrong};
use crate::times::Times;

/// Requests under way with all their calls, at most: a quarter of a gigabyte.
const VISITS_MAX: usize = 2_500_000;
/// Stretches of [`Span::each_s`] at most.
const STRETCHES_MAX: usize = 100_000;
/// Nanoseconds in a second.
const GIGA: f64 = 1e9;

/// Which part of the time is simulated, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Where it begins, seconds; nothing is under way then.
    pub from_s: f64,
    /// Until measuring begins, seconds.
    pub warm_s: f64,
    /// Requests that come within these seconds are measured.
    pub measured_s: f64,
    /// The same seed gives the same outcome.
    pub seed: u64,
    /// Whether [`Outcome::stretches`] are kept, and how long each is, seconds.
    pub each_s: Option<f64>,
    /// Response times of which each stretch counts how many requests were faster, seconds.
    pub bounds_s: Vec<f64>,
    /// It ends after so many events, finished or not.
    pub events_max: u64,
}

impl Span {
    /// A span from the begin on.
    pub fn new(warm_s: f64, measured_s: f64, seed: u64) -> Span {
        Span {
            from_s: 0.0,
            warm_s,
            measured_s,
            seed,
            each_s: None,
            bounds_s: Vec::new(),
            events_max: 4_000_000_000,
        }
    }

    /// For about so many requests at a rate, after a tenth of them.
    pub fn of_requests(requests: f64, per_s: f64, seed: u64) -> Span {
        let measured_s = requests / per_s.max(1e-9);
        Span::new(measured_s / 10.0, measured_s, seed)
    }
}

/// What came of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Response times of the good answers: from when a request was due until the client had the answer.
    pub good: Times,
    /// Requests without a good answer.
    pub failed: u64,
    /// Requests under way when measuring began, and when it ended.
    pub under_way: (u64, u64),
    /// By tier.
    pub tiers: Vec<TierOutcome>,
    /// By stretch of time.
    pub stretches: Vec<Stretch>,
    /// Measured seconds.
    pub measured_s: f64,
    /// Events that were simulated.
    pub events: u64,
    /// It reached a bound: too many requests under way, or too many events.
    pub cut: bool,
}

impl Outcome {
    /// The response time that this share of all requests has at most, seconds; one without a good answer is slower than
    /// every bound. None where the percentile is among those.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        self.good.quantile_s(share, self.failed)
    }

    /// Requests that were measured.
    pub fn requests(&self) -> u64 {
        self.good.count() + self.failed
    }

    /// Good answers a second.
    pub fn good_per_s(&self) -> f64 {
        self.good.count() as f64 / self.measured_s
    }

    /// The share of requests without a good answer.
    pub fn failed_share(&self) -> f64 {
        self.failed as f64 / self.requests().max(1) as f64
    }

    /// Whether more came than went: a queue that grows without end, or a bound that was reached.
    pub fn grows(&self) -> bool {
        let (begin, end) = self.under_way;
        let grown = end.saturating_sub(begin) as f64;
        self.cut || grown > 0.02 * self.requests() as f64 && grown > 4.0 * (begin as f64).sqrt().max(8.0)
    }

    /// Adds what was measured at another time, or with another seed.
    pub fn add(&mut self, other: &Outcome) {
        let share = other.measured_s / (self.measured_s + other.measured_s).max(f64::MIN_POSITIVE);
        if self.tiers.is_empty() {
            self.tiers = vec![TierOutcome::default(); other.tiers.len()];
        }
        self.tiers.iter_mut().zip(&other.tiers).for_each(|(tier, more)| tier.add(more, share));
        self.good.add(&other.good);
        self.failed += other.failed;
        self.under_way.0 += other.under_way.0;
        self.under_way.1 += other.under_way.1;
        self.stretches.extend_from_slice(&other.stretches);
        self.measured_s += other.measured_s;
        self.events += other.events;
        self.cut |= other.cut;
    }
}

/// What a tier did while it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TierOutcome {
    /// The share of its cores that was busy.
    pub utilisation: f64,
    /// Instances that were there, mean.
    pub instances: f64,
    /// Requests that waited for a core, mean.
    pub waiting: f64,
    /// From reaching an instance until it began, seconds, mean.
    pub wait_s: f64,
    /// Requests that it began.
    pub begun: u64,
    /// Requests that it refused, as its queue was full or nothing was there.
    pub refused: u64,
    /// Attempts that callers gave up.
    pub timed_out: u64,
    /// Calls that breakers ended.
    pub broken: u64,
}

impl TierOutcome {
    fn add(&mut self, other: &TierOutcome, share: f64) {
        let mean = |one: f64, two: f64, share: f64| one + (two - one) * share;
        self.utilisation = mean(self.utilisation, other.utilisation, share);
        self.instances = mean(self.instances, other.instances, share);
        self.waiting = mean(self.waiting, other.waiting, share);
        let begun = self.begun + other.begun;
        self.wait_s = mean(self.wait_s, other.wait_s, other.begun as f64 / begun.max(1) as f64);
        self.begun = begun;
        self.refused += other.refused;
        self.timed_out += other.timed_out;
        self.broken += other.broken;
    }
}

/// What became of the requests that were due in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretch {
    /// Requests with a good answer.
    pub good: u64,
    /// Those without.
    pub failed: u64,
    /// Response time of the good answers, seconds, mean.
    pub mean_s: f64,
    /// The longest, seconds.
    pub max_s: f64,
    /// Good answers that were faster than each of [`Span::bounds_s`].
    pub within: Vec<u64>,
}

/// Simulates a model for a span of time.
///
/// # Errors
/// What is wrong with the model.
pub fn simulate(model: &Model, span: &Span) -> Result<Outcome, Wrong> {
    model.check()?;
    let is_ok = [span.from_s, span.warm_s].iter().all(|of| of.is_finite() && *of >= 0.0 && *of <= 1e8)
        && span.measured_s > 0.0
        && span.measured_s <= 1e8;
    if !is_ok {
        return Err(Wrong("a span is above 0 s and at most 100 million seconds".into()));
    }
    Ok(Simulation::new(model, span).run())
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A request of an open load.
    Arrive,
    /// A user asks.
    Ask,
    /// A visit reaches its instance.
    Reach,
    /// Work is done.
    Done,
    /// What follows without a core is over.
    Rested,
    /// A batch is done.
    BatchDone,
    /// An answer reaches the caller.
    Answered,
    /// A call failed.
    Failed,
    /// The next attempt of a call.
    Again,
    /// The first timeout of a queue of them.
    Timeout,
    /// A change of the model.
    Change,
    /// A failure is noticed.
    Noticed,
    /// An instance is there again.
    Restored,
    /// The next instance is replaced.
    Roll,
    /// Scaling looks.
    Look,
    /// An instance that was added answers.
    Added,
}

/// Ordered by time, then by the order in which events were made: both in one number, which is compared at once.
#[derive(Debug, Clone, Copy)]
struct Event {
    key: u128,
    of: u32,
    serial: u32,
    kind: Kind,
}

impl Event {
    fn at(&self) -> u64 {
        (self.key >> 64) as u64
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.key == other.key
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest, as the heap gives the greatest.
    fn cmp(&self, other: &Event) -> Ordering {
        other.key.cmp(&self.key)
    }
}

struct Simulation<'a> {
    model: &'a Model,
    now: u64,
    order: u64,
    events: BinaryHeap<Event>,
    source: Source<'a>,
    /// Apart from what draws arrivals, so that a change of a tier leaves these as they were.
    rng: Rng,
    users_rng: Rng,
    visits: Vec<Visit>,
    free: Vec<u32>,
    tiers: Vec<TierState>,
    clients: Edge,
    timeouts: Timeouts,
    batches: Vec<Batch>,
    free_batches: Vec<u32>,
    /// When measuring begins and ends.
    window: (u64, u64),
    /// Requests that came and were not answered, all and those that are measured.
    under_way: u64,
    measured_under_way: u64,
    request_mean_s: f64,
    each: Option<u64>,
    bounds_s: &'a [f64],
    outcome: Outcome,
}

/// Requests that are worked on together.
#[derive(Debug, Default)]
struct Batch {
    tier: usize,
    instance: u32,
    generation: u32,
    visits: Vec<(u32, u32)>,
}

/// Whole nanoseconds.
fn ns(seconds: f64) -> u64 {
    (seconds * GIGA + 0.5) as u64
}

impl<'a> Simulation<'a> {
    fn new(model: &'a Model, span: &'a Span) -> Simulation<'a> {
        let mut rng = Rng::with_seed(span.seed);
        let users_rng = Rng::with_seed(rng.u64(..));
        let from = ns(span.from_s);
        let begin = from + ns(span.warm_s);
        Simulation {
            model,
            now: from,
            order: 0,
            events: BinaryHeap::new(),
            source: Source::new(&model.load, span.from_s, rng.u64(..)),
            users_rng,
            rng,
            visits: Vec::new(),
            free: Vec::new(),
            tiers: model.tiers.iter().map(|tier| TierState::new(tier, model.zones, from)).collect(),
            clients: Edge::default(),
            timeouts: Timeouts::new(model),
            batches: Vec::new(),
            free_batches: Vec::new(),
            window: (begin, begin + ns(span.measured_s)),
            under_way: 0,
            measured_under_way: 0,
            request_mean_s: model.request.mean(0.0),
            bounds_s: &span.bounds_s,
            each: span.each_s.map(|each| ns(each.max(span.measured_s / STRETCHES_MAX as f64)).max(1)),
            outcome: Outcome { measured_s: span.measured_s, events: span.events_max, ..Outcome::default() },
        }
    }

    fn schedule(&mut self, at: u64, kind: Kind, of: u32, serial: u32) {
        self.order += 1;
        let key = u128::from(at) << 64 | u128::from(self.order);
        self.events.push(Event { key, of, serial, kind });
    }

    /// Schedules the begin of everything, and carries events out until all that is measured has ended.
    fn run(mut self) -> Outcome {
        let (begin, end) = self.window;
        let events_max = self.outcome.events;
        // what is not answered by then is counted as failed
        let last = end + (end - begin).max(ns(60.0));
        self.begin();
        let mut events = 0;
        let mut is_begun = false;
        while let Some(event) = self.events.pop() {
            let at = event.at();
            if at >= begin && !is_begun {
                is_begun = true;
                self.outcome.under_way.0 = self.under_way;
                self.account_all(begin);
                self.tiers.iter_mut().for_each(TierState::begin_measuring);
            }
            if at >= end && self.now < end {
                self.outcome.under_way.1 = self.under_way;
                self.account_all(end);
                self.outcome.tiers = self.tiers.iter().map(|tier| tier.outcome(end - begin)).collect();
            }
            self.now = at;
            if self.now >= end && self.measured_under_way == 0 {
                break;
            }
            events += 1;
            if self.now > last || events >= events_max || self.visits.len() - self.free.len() > VISITS_MAX {
                self.outcome.cut |= self.now <= last;
                break;
            }
            self.carry_out(event);
        }
        if self.outcome.tiers.is_empty() {
            // it was cut, or nothing came any more
            let at = if self.outcome.cut { self.now.max(begin + 1).min(end) } else { end };
            self.outcome.under_way.1 = self.under_way;
            self.account_all(at);
            self.outcome.tiers = self.tiers.iter().map(|tier| tier.outcome(at - begin)).collect();
        }
        self.outcome.failed += self.measured_under_way;
        self.outcome.events = events;
        self.outcome
    }

    fn begin(&mut self) {
        match &self.model.load {
            Load::Open(_) => self.next_arrival(),
            Load::Closed { users, think } => {
                for user in 0..*users {
                    // spread over a think time, not all at once
                    let think_s = think.draw(&mut self.users_rng, 0.0) * self.users_rng.f64();
                    self.schedule(self.now + ns(think_s), Kind::Ask, user as u32, 0);
                }
            }
        }
        for index in 0..self.model.changes.len() {
            let at = ns(self.model.changes[index].at_s);
            if at >= self.now {
                self.schedule(at, Kind::Change, index as u32, 0);
            }
        }
        for tier in 0..self.tiers.len() {
            if let Some(scaling) = self.model.tiers[tier].scaling {
                self.schedule(self.now + ns(scaling.every_s), Kind::Look, tier as u32, 0);
            }
        }
    }

    fn next_arrival(&mut self) {
        if let Some(at) = self.source.next() {
            // not before now: times are rounded
            self.schedule(at.max(self.now), Kind::Arrive, 0, 0);
        }
    }

    fn account_all(&mut self, at: u64) {
        self.tiers.iter_mut().for_each(|tier| tier.account(at));
    }

    fn carry_out(&mut self, event: Event) {
        let Event { kind, of, serial, .. } = event;
        let is_there = |simulation: &Self| simulation.visits[of as usize].serial == serial;
        match kind {
            Kind::Arrive => {
                self.next_arrival();
                self.request();
            }
            Kind::Ask => self.request(),
            Kind::Reach if is_there(self) => self.reach(of),
            Kind::Done if is_there(self) => self.done(of),
            Kind::Rested if is_there(self) => self.begin_calls(of),
            Kind::Answered if is_there(self) => self.answered(of),
            Kind::Failed if is_there(self) => self.call_failed(of),
            Kind::Again if is_there(self) => self.attempt(of),
            // the visit was given up or ended with its instance
            Kind::Reach | Kind::Done | Kind::Rested | Kind::Answered | Kind::Failed | Kind::Again => {}
            Kind::BatchDone => self.batch_done(of),
            Kind::Timeout => self.time_out(of as usize),
            Kind::Change => self.change(of as usize),
            Kind::Noticed => self.noticed(serial as usize, of),
            Kind::Restored => self.restored(serial as usize, of),
            Kind::Roll => self.roll(serial as usize, of),
            Kind::Look => self.look(of as usize),
            Kind::Added => self.added(of as usize),
        }
    }

    /// A request comes.
    fn request(&mut self) {
        let request_s = match &self.model.request {
            // nobody takes a share of it
            crate::Distribution::Constant(value) => *value,
            other => other.draw(&mut self.rng, self.request_mean_s),
        };
        let visit = self.new_visit(Visit { born: self.now, request_s, ..Visit::of_client() });
        self.under_way += 1;
        if self.is_measured(self.now) {
            self.measured_under_way += 1;
        }
        self.begin_calls(visit);
    }

    fn is_measured(&self, born: u64) -> bool {
        (self.window.0..self.window.1).contains(&born)
    }

    /// A request ended.
    fn ended(&mut self, visit: u32, ok: bool) {
        let born = self.visits[visit as usize].born;
        self.release(visit);
        self.under_way -= 1;
        if self.is_measured(born) {
            self.measured_under_way -= 1;
            let took = self.now - born;
            if ok {
                self.outcome.good.record(took);
            } else {
                self.outcome.failed += 1;
            }
            if let Some(each) = self.each {
                let index = ((born - self.window.0) / each) as usize;
                if self.outcome.stretches.len() <= index {
                    self.outcome.stretches.resize(index + 1, Stretch::default());
                }
                self.outcome.stretches[index].record(took as f64 / GIGA, ok, self.bounds_s);
            }
        }
        if let Load::Closed { think, .. } = &self.model.load {
            let think_s = think.draw(&mut self.users_rng, 0.0);
            // a user who is refused at once does not ask again in the same moment
            let least = if ok { 0 } else { ns(0.001) };
            self.schedule(self.now + ns(think_s).max(least), Kind::Ask, NONE, 0);
        }
    }

    fn new_visit(&mut self, visit: Visit) -> u32 {
        if let Some(at) = self.free.pop() {
            let place = &mut self.visits[at as usize];
            *place = Visit { serial: place.serial, ..visit };
            return at;
        }
        self.visits.push(visit);
        (self.visits.len() - 1) as u32
    }

    /// Ends a visit: events that are still to come for it mean nothing.
    fn release(&mut self, visit: u32) {
        let place = &mut self.visits[visit as usize];
        place.serial = place.serial.wrapping_add(1);
        self.free.push(visit);
    }
}

impl Stretch {
    fn record(&mut self, took_s: f64, ok: bool, bounds_s: &[f64]) {
        self.within.resize(bounds_s.len(), 0);
        if !ok {
            self.failed += 1;
            return;
        }
        self.good += 1;
        self.mean_s += (took_s - self.mean_s) / self.good as f64;
        self.max_s = self.max_s.max(took_s);
        self.within
            .iter_mut()
            .zip(bounds_s)
            .for_each(|(within, bound_s)| *within += u64::from(took_s < *bound_s));
    }
}
