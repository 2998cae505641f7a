//! A sample, and whether it is worth something: who spins needs its cores for itself, and on a virtual machine the cores
//! themselves may move.

use std::fs::read_to_string;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::job::pin;

/// Others may take so much of the cores during a sample.
const OTHERS_MAX: f64 = 0.05;
/// The kernel counts time in hundredths of a second (`USER_HZ`).
const TICK_S: f64 = 0.01;

/// Rounds by which the distance of the cores is measured: some 0.3 ms.
const ROUNDS: u64 = 2_000;
/// How often, and how long, one waits for the cores to come near each other.
const NEAR_LOOKS: u32 = 200;
const NEAR_PAUSE: Duration = Duration::from_millis(100);

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

/// Nanoseconds that a number takes from one core to the other.
pub fn apart_ns(cores: [usize; 2]) -> f64 {
    /// Alone on its cache lines.
    #[repr(align(128))]
    struct Number(AtomicU64);
    let (ping, pong) = (Number(AtomicU64::new(0)), Number(AtomicU64::new(0)));
    let wait_for = |number: &Number, round| while number.0.load(Ordering::Acquire) != round {};
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(cores[1]);
            for round in 1..=ROUNDS {
                wait_for(&ping, round);
                pong.0.store(round, Ordering::Release);
            }
        });
        let there_and_back = scope.spawn(|| {
            pin(cores[0]);
            // the other thread is there by the time that the first number is back
            ping.0.store(1, Ordering::Release);
            wait_for(&pong, 1);
            let began = Instant::now();
            for round in 2..=ROUNDS {
                ping.0.store(round, Ordering::Release);
                wait_for(&pong, round);
            }
            began.elapsed()
        });
        let took = there_and_back.join().expect("it only counts");
        took.as_nanos() as f64 / (ROUNDS - 1) as f64 / 2.0
    })
}

/// Waits until the cores are as far apart as wanted; false if that does not happen.
pub fn wait_for_distance(cores: [usize; 2], wanted_ns: &RangeInclusive<f64>) -> bool {
    (0..NEAR_LOOKS).any(|look| {
        if look > 0 {
            thread::sleep(NEAR_PAUSE);
        }
        wanted_ns.contains(&apart_ns(cores))
    })
}

/// Runs something that says how long it took; nothing if others used too much of the cores meanwhile, or if the cores were
/// not as far apart as wanted before and after.
pub fn undisturbed(
    cores: [usize; 2],
    wanted_ns: &RangeInclusive<f64>,
    run: impl FnOnce() -> Duration,
) -> Option<Duration> {
    if !wait_for_distance(cores, wanted_ns) {
        return None;
    }
    let before = Used::now(&cores);
    let took = run();
    let others = Used::now(&cores).others_since(&before, cores.len());
    (others <= OTHERS_MAX && wanted_ns.contains(&apart_ns(cores))).then_some(took)
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
