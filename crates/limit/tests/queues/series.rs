//! Many searches against one queue.

use tidemark_limit::{Percentile, counted, estimate, search};

use super::{Queue, Service, Simulated, goal, limit, options};

/// What they came to, in parts of the truth.
#[derive(Debug, Clone)]
pub struct Series {
    /// The level at which what is allowed is over the bound, by theory.
    pub truth: f64,
    /// Median of the results.
    pub median: f64,
    /// Nine of ten results are between these.
    pub most: (f64, f64),
    /// How many intervals held the truth.
    pub covered: u64,
    /// Half of the interval, median.
    pub half_width: f64,
    /// Median of the time that a search took, seconds.
    pub took_s: f64,
    /// The longest.
    pub longest_s: f64,
}

/// The queues of the table.
pub fn queues() -> [(&'static str, Queue); 3] {
    [
        ("M/M/1", Queue::new(1, Service::Exponential, 1_000.0)),
        ("M/D/1", Queue::new(1, Service::Fixed, 1_000.0)),
        ("M/M/2", Queue::new(2, Service::Exponential, 1_000.0)),
    ]
}

/// The objectives of the table: `p99 < 50ms` and `p95 < 20ms`.
pub fn percentiles() -> [Percentile; 2] {
    [Percentile { allowed: 0.01, bound_s: 0.05 }, Percentile { allowed: 0.05, bound_s: 0.02 }]
}

impl Series {
    /// So many searches, each with its own random numbers.
    pub fn of(queue: Queue, percentile: Percentile, budget_s: f64, count: u64) -> Series {
        let truth = limit(queue, percentile);
        let goals = [goal(percentile)];
        let (mut levels, mut widths, mut times, mut covered) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for seed in 0..count {
            let mut system = Simulated::new(queue, percentile, 1_000 + seed);
            let mut trials = Vec::new();
            let Ok(_) = search(&goals, &options(budget_s, seed), &mut trials, &mut system);
            let found = estimate(&goals, &counted(&trials)).expect("every queue has a limit");
            let (low, high) = (found.low.unwrap_or(0.0), found.high.unwrap_or(f64::INFINITY));
            covered += u64::from((low..=high).contains(&truth));
            levels.push(found.level / truth);
            widths.push((high - low) / truth / 2.0);
            times.push(system.clock_s);
        }
        for all in [&mut levels, &mut widths, &mut times] {
            all.sort_by(f64::total_cmp);
        }
        let at = |all: &[f64], share: f64| all[(share * (all.len() - 1) as f64).round() as usize];
        Series {
            truth,
            median: at(&levels, 0.5),
            most: (at(&levels, 0.05), at(&levels, 0.95)),
            covered,
            half_width: at(&widths, 0.5),
            took_s: at(&times, 0.5),
            longest_s: at(&times, 1.0),
        }
    }
}
