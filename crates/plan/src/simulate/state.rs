//! What is known of instances and of requests under way.

use std::collections::VecDeque;

use fastrand::Rng;

use super::TierOutcome;
use crate::model::{Balancing, Tier, Work};

/// No visit.
pub(super) const NONE: u32 = u32::MAX;
/// The tier of what clients do.
pub(super) const CLIENT: u16 = u16::MAX;

/// A request at an instance, or as the client sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    /// Goes on each time that the place is used again.
    pub(super) serial: u32,
    pub(super) tier: u16,
    /// Which of its calls it carries out.
    pub(super) call: u16,
    pub(super) instance: u32,
    /// Who waits for the answer.
    pub(super) parent: u32,
    /// Whose answer it waits for.
    pub(super) child: u32,
    /// Calls of this kind that are left.
    pub(super) left: u32,
    /// Failures of this call.
    pub(super) failures: u32,
    /// Goes on with each attempt, by which a timeout knows its own.
    pub(super) attempts: u32,
    pub(super) stage: Stage,
    /// Whether it holds a connection of its caller's.
    pub(super) pooled: bool,
    /// Whether a breaker ended the attempt.
    pub(super) is_broken: bool,
    /// Whether the answer is good.
    pub(super) ok: bool,
    /// When the request was due; at an instance, when it was reached.
    pub(super) born: u64,
    /// What the request drew.
    pub(super) request_s: f64,
}

/// How far a visit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// On its way, or a client's.
    Away,
    /// It waits for a core.
    Waiting,
    /// It has a core.
    Working,
    /// It waits for others.
    Calling,
    /// Its answer is on its way.
    Answering,
}

impl Visit {
    pub(super) fn of_client() -> Visit {
        Visit {
            serial: 0,
            tier: CLIENT,
            call: 0,
            instance: 0,
            parent: NONE,
            child: NONE,
            left: 0,
            failures: 0,
            attempts: 0,
            stage: Stage::Away,
            pooled: false,
            is_broken: false,
            ok: false,
            born: 0,
            request_s: 0.0,
        }
    }
}

/// What a caller keeps of the instances that it calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    /// Connections in use.
    pub(super) used: usize,
    /// Who waits for one: visit, serial, attempt.
    pub(super) waiting: VecDeque<(u32, u32, u32)>,
    /// Failures one after the other.
    pub(super) failures: u32,
    /// A breaker is open until then.
    pub(super) open_until: u64,
    /// One call tries whether it may close.
    pub(super) tries: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub(super) is_up: bool,
    /// Whether it gets requests.
    pub(super) is_chosen: bool,
    /// It was removed, or is about to be.
    pub(super) is_retired: bool,
    pub(super) zone: usize,
    /// Goes on with each failure.
    pub(super) generation: u32,
    pub(super) busy: usize,
    /// Begun and not answered.
    pub(super) begun: usize,
    /// As callers count: sent and not answered.
    pub(super) under_way: u32,
    pub(super) queue: VecDeque<u32>,
    pub(super) edges: Vec<Edge>,
}

impl Instance {
    fn new(tier: &Tier, zone: usize) -> Instance {
        Instance {
            is_up: true,
            is_chosen: true,
            is_retired: false,
            zone,
            generation: 0,
            busy: 0,
            begun: 0,
            under_way: 0,
            queue: VecDeque::new(),
            edges: vec![Edge::default(); tier.calls.len()],
        }
    }
}

/// A tier's instances, who gets the next request, and what is counted.
pub(super) struct TierState {
    pub(super) instances: Vec<Instance>,
    balancing: Balancing,
    chosen: Vec<u32>,
    turn: usize,
    ranking: Ranking,
    cores: usize,
    parallel: usize,
    zones: usize,
    /// Instances that are on their way.
    pub(super) coming: usize,
    /// Cores that are busy, instances that are up, requests that wait; and since when.
    pub(super) busy: u64,
    pub(super) up: u64,
    pub(super) waiting: u64,
    since: u64,
    busy_ns: f64,
    up_ns: f64,
    waiting_ns: f64,
    /// What scaling saw last.
    pub(super) seen: (f64, f64),
    pub(super) wait_ns: f64,
    pub(super) counted: TierOutcome,
}

impl TierState {
    pub(super) fn new(tier: &Tier, zones: usize, now: u64) -> TierState {
        let instances: Vec<Instance> =
            (0..tier.instances).map(|index| Instance::new(tier, index % zones)).collect();
        let parallel = match tier.work {
            Work::Each(_) => tier.cores,
            // a batch holds an instance as a whole
            Work::Batch { .. } => 1,
        };
        let mut state = TierState {
            up: instances.len() as u64,
            instances,
            balancing: tier.balancing,
            chosen: Vec::new(),
            turn: 0,
            ranking: Ranking::default(),
            cores: parallel,
            parallel,
            zones,
            coming: 0,
            busy: 0,
            waiting: 0,
            since: now,
            busy_ns: 0.0,
            up_ns: 0.0,
            waiting_ns: 0.0,
            seen: (0.0, 0.0),
            wait_ns: 0.0,
            counted: TierOutcome::default(),
        };
        state.choose_again();
        state
    }

    /// What an instance works on at once.
    pub(super) fn parallel(&self) -> usize {
        self.parallel
    }

    /// Counts until now, before anything changes.
    pub(super) fn account(&mut self, now: u64) {
        let took = now.saturating_sub(self.since) as f64;
        self.since = self.since.max(now);
        self.busy_ns += self.busy as f64 * took;
        self.up_ns += self.up as f64 * took;
        self.waiting_ns += self.waiting as f64 * took;
    }

    pub(super) fn begin_measuring(&mut self) {
        self.seen = (0.0, 0.0);
        (self.busy_ns, self.up_ns, self.waiting_ns, self.wait_ns) = (0.0, 0.0, 0.0, 0.0);
        self.counted = TierOutcome::default();
    }

    pub(super) fn outcome(&self, measured: u64) -> TierOutcome {
        let measured = measured.max(1) as f64;
        TierOutcome {
            utilisation: self.busy_ns / (self.up_ns * self.cores as f64).max(1.0),
            instances: self.up_ns / measured,
            waiting: self.waiting_ns / measured,
            wait_s: self.wait_ns * 1e-9 / self.counted.begun.max(1) as f64,
            ..self.counted.clone()
        }
    }

    /// Busy and available time since it was last asked.
    pub(super) fn since_looked(&mut self) -> f64 {
        let (busy, up) = (self.busy_ns - self.seen.0, self.up_ns - self.seen.1);
        self.seen = (self.busy_ns, self.up_ns);
        busy / (up * self.cores as f64).max(1.0)
    }

    /// Makes anew the list of those that get requests.
    pub(super) fn choose_again(&mut self) {
        let chosen = (0u32..).zip(&self.instances).filter(|(_, of)| of.is_chosen).map(|(index, _)| index);
        self.chosen = chosen.collect();
        if self.balancing == Balancing::LeastBusy {
            self.ranking = Ranking::new(&self.instances, &self.chosen);
        }
    }

    /// How many get requests.
    pub(super) fn chosen(&self) -> &[u32] {
        &self.chosen
    }

    /// The instance of the next request, counted as under way. None where there is none.
    pub(super) fn choose(&mut self, rng: &mut Rng) -> Option<u32> {
        let count = self.chosen.len();
        if count == 0 {
            return None;
        }
        let index = match self.balancing {
            Balancing::RoundRobin => {
                self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
                self.chosen[self.turn]
            }
            Balancing::Random => self.chosen[rng.usize(..count)],
            Balancing::TwoChoices => {
                let [one, other] = [(); 2].map(|()| self.chosen[rng.usize(..count)]);
                let under_way = |index: u32| self.instances[index as usize].under_way;
                if under_way(other) < under_way(one) { other } else { one }
            }
            Balancing::LeastBusy => self.ranking.least(rng),
        };
        self.count_under_way(index, 1);
        Some(index)
    }

    /// One more, or one less, is under way at an instance.
    pub(super) fn count_under_way(&mut self, index: u32, by: i32) {
        let of = &mut self.instances[index as usize];
        of.under_way = of.under_way.saturating_add_signed(by);
        if self.balancing == Balancing::LeastBusy && of.is_chosen {
            self.ranking.set(index, of.under_way);
        }
    }

    /// One more instance.
    pub(super) fn add_instance(&mut self, tier: &Tier) {
        let zone = self.instances.len() % self.zones;
        self.instances.push(Instance::new(tier, zone));
        self.up += 1;
        self.choose_again();
    }
}

/// Instances by how many requests each has, so that the least busy is found at once.
#[derive(Debug, Default)]
struct Ranking {
    by_count: Vec<Vec<u32>>,
    /// For each instance its count, and where in the list of that it is.
    places: Vec<(u32, u32)>,
    least: usize,
}

impl Ranking {
    fn new(instances: &[Instance], chosen: &[u32]) -> Ranking {
        let mut ranking = Ranking { places: vec![(0, 0); instances.len()], ..Ranking::default() };
        for index in chosen {
            ranking.insert(*index, instances[*index as usize].under_way);
        }
        ranking.least = ranking.by_count.iter().position(|of| !of.is_empty()).unwrap_or(0);
        ranking
    }

    fn insert(&mut self, index: u32, count: u32) {
        let at = count as usize;
        if self.by_count.len() <= at {
            self.by_count.resize_with(at + 1, Vec::new);
        }
        self.places[index as usize] = (count, self.by_count[at].len() as u32);
        self.by_count[at].push(index);
        self.least = self.least.min(at);
    }

    fn set(&mut self, index: u32, count: u32) {
        let (old, place) = self.places[index as usize];
        let list = &mut self.by_count[old as usize];
        list.swap_remove(place as usize);
        if let Some(moved) = list.get(place as usize).copied() {
            self.places[moved as usize].1 = place;
        }
        self.insert(index, count);
    }

    fn least(&mut self, rng: &mut Rng) -> u32 {
        while self.by_count[self.least].is_empty() {
            self.least += 1;
        }
        let list = &self.by_count[self.least];
        list[rng.usize(..list.len())]
    }
}
