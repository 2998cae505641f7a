//! Comparisons that are made up, with the noise of a machine that others use: how often a difference is found that is not
//! there, and one that is.

use fastrand::Rng;

use super::{Estimate, Interval, LEVEL, Looks, is_settled, together};

/// Length of one run with all that goes with it, seconds.
const RUN_S: f64 = 6.0;
/// Comparisons of each kind.
const TRIALS: u64 = 400;
/// Length of a comparison, seconds.
const BUDGET_S: f64 = 600.0;
/// Rate, median, p90, p99, CPU of a request and memory; of all requests and of three labels, which have the first four.
const FIGURES: usize = 6 + 3 * 4;
/// What is watched: that of all requests, but for memory.
const WATCHED: usize = 5;
/// How much each figure of a run of its own accord differs, as a share of it.
const OWN_NOISE: [f64; 6] = [0.015, 0.015, 0.02, 0.04, 0.012, 0.01];
/// How much each takes part in what all figures of a run share: placement, the clock of the CPU.
const SHARED: [f64; 6] = [-1.0, 1.0, 1.2, 2.0, 0.8, 0.0];
/// How much each changes where a neighbour has a third of the machine all the time.
const NEIGHBOUR: [f64; 6] = [-0.40, 0.35, 0.50, 1.60, 0.12, 0.0];
/// How much each changes where the server takes twice as long.
const SLOWDOWN: [f64; 6] = [-1.0, 1.0, 1.0, 1.0, 1.0, 0.0];

/// What a machine does to what is measured on it.
#[derive(Debug, Clone, Copy, Default)]
struct Noise {
    /// Standard deviation of what the figures of a run share, and of how far the machine wanders within some minutes.
    shared: f64,
    /// Mean length of a neighbour's bursts, seconds; twice as much lies between them. None without a neighbour.
    burst_s: Option<f64>,
}

const QUIET: Noise = Noise { shared: 0.01, burst_s: None };
/// Runs of 5 s on a shared machine with nothing else to do.
const USUAL: Noise = Noise { shared: 0.03, burst_s: None };
const BUSY: Noise = Noise { shared: 0.01, burst_s: Some(4.0) };

fn normal(random: &mut Rng) -> f64 {
    // the sum of twelve has variance 1; nobody needs tails beyond six
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// The machine as time goes on.
struct Machine {
    noise: Noise,
    random: Rng,
    wander: f64,
    /// Whether the neighbour is at work, and for how long still.
    burst: (bool, f64),
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Machine {
        Machine { noise, random: Rng::with_seed(seed), wander: 0.0, burst: (false, 0.0) }
    }

    /// The share of the next run in which the neighbour is at work.
    fn neighbour(&mut self) -> f64 {
        let Some(mean_s) = self.noise.burst_s else { return 0.0 };
        let (mut left, mut busy) = (RUN_S, 0.0);
        while left > 0.0 {
            if self.burst.1 <= 0.0 {
                let is_busy = !self.burst.0;
                let mean_s = if is_busy { mean_s } else { 2.0 * mean_s };
                self.burst = (is_busy, -mean_s * (1.0 - self.random.f64()).ln());
            }
            let part = self.burst.1.min(left);
            busy += if self.burst.0 { part } else { 0.0 };
            left -= part;
            self.burst.1 -= part;
        }
        busy / RUN_S
    }

    /// The logarithms of the figures of one run of a server that is slower by this share.
    fn run(&mut self, slower: f64) -> [f64; FIGURES] {
        let busy = self.neighbour();
        // correlated over some ten runs
        self.wander =
            0.9 * self.wander + (1.0f64 - 0.81).sqrt() * self.noise.shared * normal(&mut self.random);
        let shared = self.wander + self.noise.shared * normal(&mut self.random);
        let mut of = |kind: usize, more: f64| {
            let own = OWN_NOISE[kind] * more * normal(&mut self.random);
            own + SHARED[kind] * shared
                + NEIGHBOUR[kind].signum() * (1.0 + NEIGHBOUR[kind].abs() * busy).ln()
                + SLOWDOWN[kind] * (1.0 + slower).ln()
        };
        std::array::from_fn(|figure| if figure < 6 { of(figure, 1.0) } else { of((figure - 6) % 4, 1.5) })
    }
}

/// What a comparison said at its end, and after how many seconds.
struct Said {
    intervals: Vec<Option<Interval>>,
    seconds: f64,
}

impl Said {
    fn any(&self) -> bool {
        self.intervals.iter().flatten().any(|one| one.differs)
    }

    /// Whether it says of any figure that it is worse, and of none that it is better.
    fn slower(&self) -> bool {
        let told = || (0..).zip(self.intervals.iter().flatten()).filter(|(_, one)| one.differs);
        let is_worse = |(figure, one): (usize, &Interval)| {
            let kind = if figure < 6 { figure } else { (figure - 6) % 4 };
            (one.ratio > 1.0) == (SLOWDOWN[kind] > 0.0)
        };
        told().any(is_worse) && told().all(is_worse)
    }
}

/// A comparison: rounds of A B B A or B A A B, by a coin, as long as the budget lasts or nothing is left to be found out.
fn comparison(noise: Noise, slower: f64, seed: u64) -> Said {
    let mut machine = Machine::new(noise, seed);
    let mut coin = Rng::with_seed(!seed);
    let rounds = (BUDGET_S / (4.0 * RUN_S)) as u64;
    let (mut logs, mut looks) = (vec![Vec::new(); FIGURES], Looks::default());
    let at = |logs: &[Vec<f64>], level: f64| {
        let estimates: Vec<_> = logs.iter().map(|logs| Estimate::of_rounds(logs)).collect();
        together(&estimates, level)
    };
    for round in 1..=rounds {
        let order = if coin.bool() { [1, -1, -1, 1] } else { [-1, 1, 1, -1] };
        let mut sums = [0.0; FIGURES];
        for sign in order {
            let run = machine.run(if sign > 0 { slower } else { 0.0 });
            sums.iter_mut().zip(run).for_each(|(sum, log)| *sum += f64::from(sign) * log / 2.0);
        }
        logs.iter_mut().zip(sums).for_each(|(logs, sum)| logs.push(sum));
        if round < rounds && looks.is_due(round) {
            let intervals = at(&logs, looks.on_the_way());
            if is_settled(intervals[..WATCHED].iter().flatten(), 0.03) {
                return Said { intervals, seconds: round as f64 * 4.0 * RUN_S };
            }
        }
    }
    Said { intervals: at(&logs, looks.last()), seconds: BUDGET_S }
}

/// In how many of so many comparisons this is so.
fn count(noise: Noise, slower: f64, trials: u64, is_so: impl Fn(&Said) -> bool) -> u64 {
    (0..trials).filter(|seed| is_so(&comparison(noise, slower, *seed))).count() as u64
}

#[test]
fn one_against_itself_is_hardly_ever_said_to_differ() {
    for (name, noise) in [
        ("quiet", QUIET),
        ("usual", USUAL),
        ("busy", BUSY),
        ("long bursts", Noise { burst_s: Some(30.0), ..BUSY }),
        ("wandering", Noise { shared: 0.09, burst_s: Some(10.0) }),
    ] {
        let wrong = count(noise, 0.0, TRIALS, Said::any);
        println!("A against A, {name}: {wrong} of {TRIALS}");
        assert!(wrong as f64 <= TRIALS as f64 * LEVEL, "{name}: {wrong} of {TRIALS}");
    }
}

#[test]
fn planted_differences_are_found() {
    for (name, noise, slower, least) in [
        ("quiet", QUIET, 0.05, 98),
        ("quiet", QUIET, 0.02, 90),
        ("usual", USUAL, 0.05, 90),
        ("usual", USUAL, 0.02, 50),
        ("busy", BUSY, 0.05, 80),
    ] {
        let found = count(noise, slower, 100, Said::slower);
        println!("{slower} planted, {name}: {found} of 100");
        assert!(found >= least, "{name}, {slower}: {found} of 100");
    }
}

#[test]
fn what_is_large_ends_early() {
    let mean =
        |noise, slower| (0..50).map(|seed| comparison(noise, slower, seed).seconds).sum::<f64>() / 50.0;
    let (large, small) = (mean(USUAL, 0.3), mean(USUAL, 0.05));
    println!("mean seconds: 30 % {large}, 5 % {small}");
    assert!(large < small && large < BUDGET_S / 2.0, "{large} {small}");
}
