//! What is simulated: load, tiers, the calls between them, and what happens to them.

use crate::distribution::{Distribution, TIME_MAX_S};

/// No bound.
pub const UNBOUNDED: usize = usize::MAX;
/// Most instances of a tier.
pub const INSTANCES_MAX: usize = 100_000;
/// Most tiers of a model.
pub const TIERS_MAX: usize = 64;
/// Most calls to one tier for a request.
const CALLS_MAX: f64 = 10_000.0;
/// Most retries of a call.
const RETRIES_MAX: u32 = 100;
/// Highest rate, requests a second.
const RATE_MAX: f64 = 1e9;
/// Most users.
const USERS_MAX: usize = 10_000_000;

/// A system under load.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Who sends requests, and when.
    pub load: Load,
    /// How clients reach the first tier.
    pub entry: Call,
    /// What each request draws once; tiers work shares of it ([`Distribution::Share`]). In seconds.
    pub request: Distribution,
    /// The tiers. Clients call the first; calls lead to later tiers only.
    pub tiers: Vec<Tier>,
    /// Instances are spread over so many zones, one after the other.
    pub zones: usize,
    /// What happens to instances.
    pub changes: Vec<Change>,
}

/// Who sends requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// Requests come whether or not earlier ones were answered.
    Open(Arrivals),
    /// Users wait for an answer, think, and ask again.
    Closed {
        /// How many there are.
        users: usize,
        /// From an answer to the next request, seconds.
        think: Distribution,
    },
}

/// When requests of an open load come.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// Spaced evenly; else at random (Poisson).
    pub even: bool,
    /// The rate from each of these times on, in order, the first from 0 on.
    pub rates: Vec<RateFrom>,
}

/// A rate from a time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateFrom {
    /// Seconds since the begin.
    pub from_s: f64,
    /// Requests a second.
    pub per_s: f64,
}

impl Arrivals {
    /// At random, at one rate.
    pub fn poisson(per_s: f64) -> Arrivals {
        Arrivals { even: false, rates: vec![RateFrom { from_s: 0.0, per_s }] }
    }

    /// Spaced evenly, at one rate.
    pub fn even(per_s: f64) -> Arrivals {
        Arrivals { even: true, ..Arrivals::poisson(per_s) }
    }

    /// At random, at rates that were recorded, each for so many seconds.
    pub fn recorded(each_s: f64, rates_per_s: &[f64]) -> Arrivals {
        let rate = |(at, per_s): (usize, &f64)| RateFrom { from_s: at as f64 * each_s, per_s: *per_s };
        Arrivals { even: false, rates: rates_per_s.iter().enumerate().map(rate).collect() }
    }

    /// The highest rate.
    pub fn peak_per_s(&self) -> f64 {
        self.rates.iter().map(|rate| rate.per_s).fold(0.0, f64::max)
    }
}

/// Instances that do the same work.
#[derive(Debug, Clone, PartialEq)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// How many there are at the begin.
    pub instances: usize,
    /// Requests that an instance works on at once.
    pub cores: usize,
    /// What a request takes here.
    pub work: Work,
    /// What follows without a core, before it calls others: a disk, a lock, another machine.
    pub pause: Distribution,
    /// How the cores of an instance hinder each other.
    pub contention: Contention,
    /// Requests that wait at an instance at most; more are refused.
    pub queue: usize,
    /// Requests that an instance has begun and not answered at most, with those that wait for other tiers: its threads.
    pub workers: usize,
    /// How callers choose an instance.
    pub balancing: Balancing,
    /// What a request calls once it was worked on, one after the other.
    pub calls: Vec<Call>,
    /// Whether instances are added and removed by themselves.
    pub scaling: Option<Scaling>,
    /// An instance that failed still gets requests for so long, seconds.
    pub noticed_after_s: f64,
}

impl Tier {
    /// A tier without bounds, called in turn.
    pub fn new(name: &str, instances: usize, cores: usize, work: Distribution) -> Tier {
        Tier {
            name: name.to_owned(),
            instances,
            cores,
            work: Work::Each(work),
            pause: Distribution::Constant(0.0),
            contention: Contention::default(),
            queue: UNBOUNDED,
            workers: UNBOUNDED,
            balancing: Balancing::RoundRobin,
            calls: Vec::new(),
            scaling: None,
            noticed_after_s: 0.0,
        }
    }
}

/// What a request takes of a tier.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A core for a time in seconds.
    Each(Distribution),
    /// All that wait are worked on together, as a group commit does.
    Batch {
        /// What a batch takes, seconds.
        fixed_s: f64,
        /// What each request adds, seconds.
        each_s: f64,
        /// Requests in a batch at most.
        most: usize,
    },
}

/// How cores hinder each other: work with `n` cores busy takes `1 + alpha (n - 1) + beta n (n - 1)` times as long, as the
/// Universal Scalability Law has it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Contention {
    /// Waiting for what is shared.
    pub alpha: f64,
    /// Keeping what is shared the same.
    pub beta: f64,
}

impl Contention {
    /// By what work takes longer with so many cores busy.
    pub fn factor(self, busy: usize) -> f64 {
        let n = busy as f64;
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0)
    }
}

/// How an instance is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
    /// The one with the fewest requests under way.
    LeastBusy,
    /// Of two at random the one with fewer requests under way.
    TwoChoices,
}

/// A call to a tier.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Index of the tier.
    pub to: usize,
    /// How many for a request; a fraction is the chance of one more.
    pub count: f64,
    /// A cache in front answers this share of them at once.
    pub hit_rate: f64,
    /// From here to there, and the same back, seconds.
    pub hop_s: f64,
    /// Calls under way from one calling instance at most: its connections. Clients have no bound.
    pub pool: usize,
    /// The caller gives an attempt up after so long, seconds. The work there goes on.
    pub timeout_s: Option<f64>,
    /// How often a call that failed is tried again.
    pub retries: u32,
    /// From a failure to the next attempt, seconds.
    pub backoff_s: f64,
    /// Whether calls are given up at once after failures.
    pub breaker: Option<Breaker>,
}

impl Call {
    /// One call without a hop and without bounds.
    pub fn new(to: usize) -> Call {
        Call {
            to,
            count: 1.0,
            hit_rate: 0.0,
            hop_s: 0.0,
            pool: UNBOUNDED,
            timeout_s: None,
            retries: 0,
            backoff_s: 0.0,
            breaker: None,
        }
    }
}

/// Ends calls at once after failures, for each calling instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breaker {
    /// Failures one after the other that open it.
    pub failures: u32,
    /// It stays open for so long, seconds; then one call tries.
    pub open_s: f64,
}

/// Instances follow the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// The share of the cores that is to be busy, 0 to 1.
    pub target: f64,
    /// At least so many instances.
    pub least: usize,
    /// At most so many.
    pub most: usize,
    /// How often it looks, seconds.
    pub every_s: f64,
    /// From the decision until a new instance answers, seconds.
    pub delay_s: f64,
}

/// Something that happens to instances.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When, seconds since the begin.
    pub at_s: f64,
    /// What.
    pub what: Happening,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// An instance fails with all that it has begun, and is replaced after so long; without, it never is.
    Fails {
        /// Index of the tier.
        tier: usize,
        /// Which of its instances.
        instance: usize,
        /// Until its replacement answers, seconds.
        for_s: Option<f64>,
    },
    /// All instances in a zone fail.
    ZoneFails {
        /// Which zone.
        zone: usize,
        /// Until they are there again, seconds.
        for_s: Option<f64>,
    },
    /// Instances are replaced one after the other; each gets no more requests, answers what it has, and is gone for a time.
    Rolls {
        /// Index of the tier.
        tier: usize,
        /// How long each is gone, seconds.
        each_s: f64,
    },
}

/// What is wrong with a model, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

fn check(ok: bool, says: impl Fn() -> String) -> Result<(), Wrong> {
    if ok { Ok(()) } else { Err(Wrong(says())) }
}

fn is_time(value: f64) -> bool {
    value.is_finite() && (0.0..=TIME_MAX_S).contains(&value)
}

impl Model {
    /// Whether everything is within its bounds.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), Wrong> {
        check((1..=TIERS_MAX).contains(&self.tiers.len()), || format!("a plan has 1 to {TIERS_MAX} tiers"))?;
        check(self.zones >= 1, || "there is at least one zone".into())?;
        check(self.entry.to == 0, || "clients call the first tier".into())?;
        if let Some(wrong) = self.request.wrong() {
            return Err(Wrong(format!("the request: {wrong}")));
        }
        self.load.check()?;
        check_call("clients", &self.entry)?;
        for (index, tier) in self.tiers.iter().enumerate() {
            tier.check()?;
            for call in &tier.calls {
                check(call.to > index && call.to < self.tiers.len(), || {
                    format!("{} calls a tier that does not stand after it", tier.name)
                })?;
                check_call(&tier.name, call)?;
            }
        }
        for change in &self.changes {
            let is_there = match change.what {
                Happening::Fails { tier, instance, .. } => {
                    self.tiers.get(tier).is_some_and(|tier| instance < tier.instances)
                }
                Happening::ZoneFails { zone, .. } => zone < self.zones,
                Happening::Rolls { tier, each_s } => tier < self.tiers.len() && is_time(each_s),
            };
            check(is_there && is_time(change.at_s), || "a change is of something that is not there".into())?;
        }
        Ok(())
    }

    /// How often a request comes to each tier, without retries.
    pub fn visits(&self) -> Vec<f64> {
        let mut visits = vec![0.0; self.tiers.len()];
        visits[0] = self.entry.count * (1.0 - self.entry.hit_rate);
        for (index, tier) in self.tiers.iter().enumerate() {
            for call in &tier.calls {
                visits[call.to] += visits[index] * call.count * (1.0 - call.hit_rate);
            }
        }
        visits
    }

    /// The share of a tier's cores that a rate keeps busy; above 1 its queue grows without end. For [`Work::Batch`] with the
    /// largest batches.
    pub fn utilisation(&self, tier: usize, per_s: f64) -> f64 {
        let of = &self.tiers[tier];
        let work_s = match &of.work {
            Work::Each(work) => work.mean(self.request.mean(0.0)) * of.contention.factor(of.cores),
            Work::Batch { fixed_s, each_s, most } => each_s + fixed_s / (*most as f64),
        };
        per_s * self.visits()[tier] * work_s / (of.instances * of.cores) as f64
    }

    /// The same model under an open load of this rate: spaced evenly if its own load is, else at random.
    pub fn at(&self, per_s: f64) -> Model {
        let even = matches!(&self.load, Load::Open(arrivals) if arrivals.even);
        let load = Load::Open(Arrivals { even, ..Arrivals::poisson(per_s) });
        Model { load, ..self.clone() }
    }
}

impl Load {
    fn check(&self) -> Result<(), Wrong> {
        match self {
            Load::Open(arrivals) => {
                let rates = &arrivals.rates;
                let in_order = rates.first().is_some_and(|rate| rate.from_s == 0.0)
                    && rates.windows(2).all(|two| two[0].from_s < two[1].from_s);
                check(in_order && rates.len() <= 1_000_000, || {
                    "rates follow each other, the first from 0 s on".into()
                })?;
                let is_rate = |rate: &RateFrom| (0.0..=RATE_MAX).contains(&rate.per_s);
                check(rates.iter().all(is_rate), || "a rate is 0/s to 1G/s".into())
            }
            Load::Closed { users, think } => {
                check((1..=USERS_MAX).contains(users), || format!("users are 1 to {USERS_MAX}"))?;
                think.wrong().map_or(Ok(()), |wrong| Err(Wrong(format!("think time: {wrong}"))))
            }
        }
    }
}

impl Tier {
    fn check(&self) -> Result<(), Wrong> {
        let name = &self.name;
        check((1..=INSTANCES_MAX).contains(&self.instances), || {
            format!("{name} has 1 to {INSTANCES_MAX} instances")
        })?;
        check((1..=10_000).contains(&self.cores), || format!("{name} has 1 to 10000 cores"))?;
        check(self.workers >= 1, || format!("{name} has at least one worker"))?;
        self.pause.wrong().map_or(Ok(()), |wrong| Err(Wrong(format!("{name}: {wrong}"))))?;
        let Contention { alpha, beta } = self.contention;
        check((0.0..=1e3).contains(&alpha) && (0.0..=1e3).contains(&beta), || {
            format!("the contention of {name} is negative or above 1000")
        })?;
        check(is_time(self.noticed_after_s), || {
            format!("{name}: a failure is noticed within a million seconds")
        })?;
        match &self.work {
            Work::Each(work) => {
                work.wrong().map_or(Ok(()), |wrong| Err(Wrong(format!("{name}: {wrong}"))))?;
            }
            Work::Batch { fixed_s, each_s, most } => {
                check(is_time(*fixed_s) && is_time(*each_s) && *most >= 1, || {
                    format!("{name}: a batch takes 0 to a million seconds and holds at least one request")
                })?;
            }
        }
        let Some(of) = self.scaling else { return Ok(()) };
        let is_ok = of.target > 0.0
            && of.target <= 1.0
            && (1..=of.most).contains(&of.least)
            && of.most <= INSTANCES_MAX
            && is_time(of.every_s)
            && of.every_s >= 0.01
            && is_time(of.delay_s);
        check(is_ok, || format!("{name}: scaling is out of its bounds"))
    }
}

fn check_call(of: &str, call: &Call) -> Result<(), Wrong> {
    let is_timeout = |timeout: f64| is_time(timeout) && timeout > 0.0;
    let bounds = [
        (
            (0.0..=CALLS_MAX).contains(&call.count),
            format!("a request calls a tier {CALLS_MAX} times at most"),
        ),
        ((0.0..=1.0).contains(&call.hit_rate), "a cache answers 0 to 100 % of the calls".into()),
        (is_time(call.hop_s) && is_time(call.backoff_s), "a time is at most a million seconds".into()),
        (call.pool >= 1, "a pool has at least one connection".into()),
        (call.retries <= RETRIES_MAX, format!("a call has {RETRIES_MAX} retries at most")),
        (call.timeout_s.is_none_or(is_timeout), "a timeout is above 0 and at most a million seconds".into()),
        (
            call.breaker.is_none_or(|breaker| breaker.failures >= 1 && is_time(breaker.open_s)),
            "a breaker opens after at least one failure, for a million seconds at most".into(),
        ),
    ];
    bounds.into_iter().try_for_each(|(is_ok, says)| check(is_ok, || format!("calls from {of}: {says}")))
}
