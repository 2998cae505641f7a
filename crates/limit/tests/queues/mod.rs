//! Queues in virtual time, whose limits are known.

pub mod series;

use std::collections::VecDeque;
use std::convert::Infallible;

use fastrand::Rng;
use tidemark_limit::{
    Cores, Figures, Goal, GoalResult, Moment, NotCounted, Options, Percentile, Starvation, StoppingRule,
    Tail, Trial, TrialPlan, Trials, Wanted,
};

/// How long a worker takes for a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Service {
    Exponential,
    Fixed,
}

/// A queue with one line, whose workers together serve `per_s` requests a second.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    pub workers: usize,
    pub service: Service,
    pub per_s: f64,
    /// By how much of itself a service gets slower in each minute.
    pub slows: f64,
    /// Nothing is served so often, seconds, for so long.
    pub pauses: Option<(f64, f64)>,
    /// Once it stands still: from then on, seconds, for so long.
    pub hiccup: Option<(f64, f64)>,
    /// Every load begins with so many seconds in which there is next to none.
    pub calm_s: f64,
    /// Whether its workers are connections of the driver, so that who waits for one waits there.
    pub is_in_driver: bool,
    /// Others who take half of its only worker's core while they are there.
    pub neighbours: Option<Neighbours>,
}

/// Others on the machine.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours {
    /// How long they are there, mean, seconds: exponential.
    pub there_s: f64,
    /// How long they are away after that; 0: they stay.
    pub away_s: f64,
    /// Whether a trial tells of them.
    pub are_told: bool,
}

impl Queue {
    pub fn new(workers: usize, service: Service, per_s: f64) -> Queue {
        Queue {
            workers,
            service,
            per_s,
            slows: 0.0,
            pauses: None,
            hiccup: None,
            calm_s: 0.0,
            is_in_driver: false,
            neighbours: None,
        }
    }
}

/// A queue, its clock, and the objective that is searched for.
pub struct Simulated {
    pub queue: Queue,
    pub percentile: Percentile,
    pub random: Rng,
    /// Virtual time since the search began, seconds.
    pub clock_s: f64,
    /// When neighbours come and go, in turn, as far as it is known.
    turns_s: Vec<f64>,
    /// What came of them, second by second of the trial: how long the worker was at work, and how long it waited.
    seconds: Vec<(f64, f64)>,
}

/// What a trial takes beside its load, seconds.
const BESIDE_S: f64 = 0.3;

impl Simulated {
    pub fn new(queue: Queue, percentile: Percentile, seed: u64) -> Simulated {
        let random = Rng::with_seed(seed);
        Simulated { queue, percentile, random, clock_s: 0.0, turns_s: Vec::new(), seconds: Vec::new() }
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.random.f64()).ln()
    }

    /// Whether neighbours are there at a moment, and until when that is so.
    fn neighbours(&mut self, at_s: f64) -> (bool, f64) {
        let Some(Neighbours { there_s, away_s, .. }) = self.queue.neighbours else {
            return (false, f64::INFINITY);
        };
        if away_s == 0.0 {
            return (true, f64::INFINITY);
        }
        while self.turns_s.last().is_none_or(|last| *last <= at_s) {
            let mean_s = if self.turns_s.len().is_multiple_of(2) { away_s } else { there_s };
            let last_s = self.turns_s.last().copied().unwrap_or(0.0);
            let next_s = last_s + self.exponential(mean_s);
            self.turns_s.push(next_s);
        }
        let turn = self.turns_s.partition_point(|turn_s| *turn_s <= at_s);
        (!turn.is_multiple_of(2), self.turns_s[turn])
    }

    /// When the only worker ends what takes so long alone, beside neighbours: it has half of the core while they are there.
    fn beside_neighbours(&mut self, begin_s: f64, mut left_s: f64, load_s: f64) -> f64 {
        let mut at_s = begin_s;
        loop {
            let (are_there, until_s) = self.neighbours(at_s);
            let second = (at_s - load_s).floor();
            let end_s = until_s.min(load_s + second + 1.0).max(at_s + 1e-9);
            let speed = if are_there { 0.5 } else { 1.0 };
            let length_s = (end_s - at_s).min(left_s / speed);
            let second = second.max(0.0) as usize;
            if self.seconds.len() <= second {
                self.seconds.resize(second + 1, (0.0, 0.0));
            }
            self.seconds[second].0 += length_s * speed;
            self.seconds[second].1 += length_s * (1.0 - speed);
            (at_s, left_s) = (at_s + length_s, left_s - length_s * speed);
            if left_s <= 1e-12 {
                return at_s;
            }
        }
    }

    /// What a trial tells of neighbours, as `lab` does: a backlog of the warm-up is there when it is measured.
    fn disturbance(&mut self, load_s: f64, to_s: f64) -> Option<NotCounted> {
        self.queue.neighbours.filter(|of| of.are_told)?;
        let mut starvation = Starvation::default();
        for second in 0..(to_s - load_s) as usize {
            let (cores, waited) = self.seconds.get(second).copied().unwrap_or_default();
            // they have the core while they are there but for what the worker has of it
            let (mut at_s, end_s) = (load_s + second as f64, load_s + second as f64 + 1.0);
            let mut there_s = 0.0;
            while at_s < end_s {
                let (are_there, until_s) = self.neighbours(at_s);
                let until_s = until_s.min(end_s).max(at_s + 1e-9);
                there_s += if are_there { until_s - at_s } else { 0.0 };
                at_s = until_s;
            }
            let others_cores = (there_s - waited).max(0.0);
            starvation.add(others_cores, [Wanted { name: "system", cores, waited }]);
        }
        starvation.starved().map(|starved| NotCounted::Machine(starved.name))
    }

    /// When a service ends that begins then: time in which nothing is served is left out.
    fn end_of(&self, begin_s: f64, service_s: f64) -> f64 {
        if let Some((from_s, length_s)) = self.queue.hiccup
            && (from_s - service_s..from_s + length_s).contains(&begin_s)
        {
            return from_s + length_s + service_s;
        }
        let Some((every_s, length_s)) = self.queue.pauses else { return begin_s + service_s };
        let since_s = begin_s % every_s;
        let begin_s = if since_s < length_s { begin_s - since_s + length_s } else { begin_s };
        let until_s = every_s - begin_s % every_s;
        begin_s + service_s + if service_s > until_s { length_s } else { 0.0 }
    }
}

impl Trials for Simulated {
    type Error = Infallible;

    fn run(&mut self, ask: &TrialPlan, rule: &StoppingRule) -> Result<Trial, Infallible> {
        let began_s = self.clock_s;
        self.seconds.clear();
        let load_s = began_s + self.queue.calm_s;
        let (measured_from_s, mut second_s) = (load_s + ask.warm_up_s, load_s + ask.warm_up_s + 1.0);
        let mean_s = self.queue.workers as f64 / self.queue.per_s;
        let mut free_s = vec![began_s; self.queue.workers];
        let (mut tail, mut moment, mut moments) = (Tail::default(), Moment::default(), Vec::new());
        let (mut served_s, mut took_s, mut busy_s, mut good) = (0.0, 0.0, 0.0, 0u64);
        let mut times = Vec::new();
        let mut under_way: VecDeque<f64> = VecDeque::new();
        let mut now_s = load_s;
        loop {
            now_s += self.exponential(1.0 / ask.level);
            let mut is_over = false;
            while now_s >= second_s && !is_over {
                moment.at_s = second_s - 0.5 - began_s;
                moments.push(std::mem::take(&mut moment));
                let measured_s = second_s - measured_from_s;
                is_over = measured_s >= ask.measured_max_s || rule.is_sure(&[Some(tail.clone())], measured_s);
                second_s += 1.0;
            }
            if is_over {
                break;
            }
            let slower = 1.0 + self.queue.slows * now_s / 60.0;
            let service_s = slower
                * match self.queue.service {
                    Service::Exponential => self.exponential(mean_s),
                    Service::Fixed => mean_s,
                };
            let worker = (0..free_s.len()).min_by(|a, b| free_s[*a].total_cmp(&free_s[*b])).unwrap_or(0);
            let begin_s = free_s[worker].max(now_s);
            let end_s = match self.queue.neighbours {
                Some(_) => self.beside_neighbours(begin_s, service_s, load_s),
                None => self.end_of(begin_s, service_s),
            };
            free_s[worker] = end_s;
            under_way.push_back(end_s);
            while under_way.front().is_some_and(|end_s| *end_s <= now_s) {
                under_way.pop_front();
            }
            if now_s < measured_from_s {
                continue;
            }
            let response_s = end_s - now_s;
            tail.add(response_s / self.percentile.bound_s, 1);
            moment.ended += 1;
            moment.slow += u64::from(response_s > self.percentile.bound_s);
            (served_s, took_s, busy_s) = (served_s + service_s, took_s + response_s, busy_s + service_s);
            good += 1;
            times.push((response_s * 1e6) as u64);
        }
        let measured_s = second_s - 1.0 - measured_from_s;
        let met = (tail.slow() as f64) < self.percentile.allowed * tail.due() as f64;
        times.sort_unstable();
        let quantile = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
        let per_s = good as f64 / measured_s;
        let (mean_us, service_us) = (1e6 * took_s / good.max(1) as f64, 1e6 * served_s / good.max(1) as f64);
        let capacity = self.queue.per_s / (1.0 + self.queue.slows * now_s / 60.0);
        let figures = Figures {
            offered_per_s: per_s,
            achieved_per_s: per_s.min(capacity),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            mean_us: Some(mean_us),
            service_mean_us: Some(if self.queue.is_in_driver { service_us } else { mean_us }),
            processes: vec![Cores {
                name: "system".into(),
                cores: (busy_s / measured_s).min(self.queue.workers as f64),
                waited: None,
            }],
            in_flight: under_way.len().min(self.queue.workers) as f64,
            waiting: if self.queue.is_in_driver {
                under_way.len().saturating_sub(self.queue.workers) as f64
            } else {
                0.0
            },
            ..Figures::default()
        };
        self.clock_s = second_s - 1.0 + BESIDE_S;
        let not_counted = self.disturbance(load_s, second_s - 1.0);
        Ok(Trial {
            ask: *ask,
            began_s,
            took_s: self.clock_s - began_s,
            measured_s,
            seen: vec![GoalResult { met, measured: String::new(), tail: Some(tail), undecided: false }],
            failure: None,
            not_counted,
            figures,
            moments,
            dir: String::new(),
        })
    }
}

/// `p99 < 50ms` and the like.
pub fn goal(percentile: Percentile) -> Goal {
    Goal { text: "p99 < 50ms".into(), percentile: Some(percentile), ..Goal::default() }
}

/// A search that begins at a twentieth of 1,000/s.
pub fn options(budget_s: f64, seed: u64) -> Options {
    Options {
        level_first: 50.0,
        level_max: 1e6,
        users: false,
        budget_s,
        precision: 0.02,
        warm_up_s: 1.0,
        measured_least_s: 0.0,
        seed,
        at_least_per_s: None,
    }
}

/// The rate at which `allowed` of the requests take longer than the bound, by the theory of queues.
pub fn limit(queue: Queue, percentile: Percentile) -> f64 {
    let per_s = queue.per_s;
    let slower = |rate: f64| match (queue.workers, queue.service) {
        (1, Service::Exponential) => (-(per_s - rate) * percentile.bound_s).exp(),
        (1, Service::Fixed) => fixed(per_s, rate, percentile.bound_s),
        (2, Service::Exponential) => two(per_s / 2.0, rate, percentile.bound_s),
        _ => panic!("no formula for this queue"),
    };
    let (mut low, mut high) = (0.0, per_s * (1.0 - 1e-9));
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if slower(middle) > percentile.allowed { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

/// M/D/1: the tail of the wait is exponential but for what is near to nothing (Tijms, A First Course in Stochastic Models,
/// 2003, section 9.2: Cramér's constant), and the service is added.
fn fixed(per_s: f64, rate: f64, bound_s: f64) -> f64 {
    let service_s = 1.0 / per_s;
    let load = rate * service_s;
    if load <= 0.0 {
        return 0.0;
    }
    // exp(x D) = 1 + x / rate, by Newton's method from above
    let mut x = 4.0 * (1.0 - load) / service_s + 1.0 / service_s;
    for _ in 0..200 {
        let e = (x * service_s).exp();
        x -= (e - 1.0 - x / rate) / (service_s * e - 1.0 / rate);
    }
    let constant = (1.0 - load) / (load * (x * service_s).exp() - 1.0);
    (constant * (-x * (bound_s - service_s)).exp()).min(1.0)
}

/// M/M/2: Erlang's formula for who waits, an exponential wait, and the service.
fn two(each_per_s: f64, rate: f64, bound_s: f64) -> f64 {
    let offered = rate / each_per_s;
    let load = offered / 2.0;
    let both_busy = offered * offered / 2.0 / (1.0 - load);
    let waits = both_busy / (1.0 + offered + both_busy);
    let wait = 2.0 * each_per_s - rate;
    let alone = (-each_per_s * bound_s).exp();
    let after_wait = (wait * alone - each_per_s * (-wait * bound_s).exp()) / (wait - each_per_s);
    (1.0 - waits) * alone + waits * after_wait
}
