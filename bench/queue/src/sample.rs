//! A sample, and whether it is worth something: who spins needs its cores for itself.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Others may take so much of the cores during a sample.
const OTHERS_MAX: f64 = 0.05;
/// The kernel counts time in hundredths of a second (`USER_HZ`).
const TICK_S: f64 = 0.01;

/// What has been used until now.
struct Used {
    /// Of the cores by everybody, seconds.
    cores_s: f64,
    /// By this process, seconds.
    own_s: f64,
    at: Instant,
}

impl Used {
    fn now(cores: &[usize]) -> Used {
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Used {
            cores_s: busy_s(&stat, cores),
            own_s: own.tv_sec as f64 + own.tv_nsec as f64 / 1e9,
            at: Instant::now(),
        }
    }

    /// The share of the cores that others have used since then.
    fn others_since(&self, then: &Used, cores: usize) -> f64 {
        let all = (self.at - then.at).as_secs_f64() * cores as f64;
        let others = (self.cores_s - then.cores_s) - (self.own_s - then.own_s);
        (others / all).max(0.0)
    }
}

/// Seconds that the cores were not idle, by the kernel's account, with what a hypervisor took.
fn busy_s(stat: &str, cores: &[usize]) -> f64 {
    let of_core = |core: &usize| {
        let name = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(name.as_str())).unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is contained in these
        let ticks = line.split_whitespace().take(8).map(|word| word.parse::<f64>().unwrap_or(0.0));
        ticks
            .enumerate()
            .filter(|(index, _)| !matches!(index, 3 | 4))
            .map(|(_, ticks)| ticks * TICK_S)
            .sum::<f64>()
    };
    cores.iter().map(of_core).sum()
}

/// Runs something that says how long it took; nothing if others used too much of the cores meanwhile.
pub fn undisturbed(cores: &[usize], run: impl FnOnce() -> Duration) -> Option<Duration> {
    let before = Used::now(cores);
    let took = run();
    let others = Used::now(cores).others_since(&before, cores.len());
    (others <= OTHERS_MAX).then_some(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 50 7000 3 1 2 4 0 0\ncpu1 200 10 0 7000 0 0 0 0 50 0\ncpu10 1 1 1 1 1 1 1 1 0 0\n";

    #[test]
    fn time_of_cores() {
        assert!((busy_s(STAT, &[0]) - 1.57).abs() < 1e-9);
        assert!((busy_s(STAT, &[0, 1]) - 3.67).abs() < 1e-9);
        assert_eq!(busy_s(STAT, &[7]), 0.0);
    }

    #[test]
    fn share_of_others() {
        let then = Used { cores_s: 10.0, own_s: 3.0, at: Instant::now() };
        let now = Used { cores_s: 11.9, own_s: 4.8, at: then.at + Duration::from_secs(1) };
        assert!((now.others_since(&then, 2) - 0.05).abs() < 1e-9);
        let only_us = Used { cores_s: 11.0, own_s: 4.2, at: then.at + Duration::from_secs(1) };
        assert_eq!(only_us.others_since(&then, 2), 0.0);
    }
}
