//! Which cores the system and the driver run on, and how many threads drive.
//!
//! Pinned apart, the two do not take each other's time, which is the only fair way on one machine; without pins
//! the kernel decides, and the system yields to the driver.

use std::io;

use crate::scheduling::take_no_core_from_others;

/// Highest core number that is accepted, the size of the kernel's ordinary CPU set.
const HIGHEST_CORE: usize = 1023;

/// Cores for each side; an empty list leaves the side to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Cores of the driving threads, one thread on each in turn.
    pub driver: Vec<usize>,
    /// Cores of the system and all its children.
    pub system: Vec<usize>,
}

impl Pins {
    /// Reads `driver=2,3`, `system=0-1`, or several of them in one text, apart by spaces.
    ///
    /// ```
    /// let pins = tidemark_lab::Pins::parse(&["driver=2,3 system=0-1"]).unwrap();
    /// assert_eq!(pins.driver, [2, 3]);
    /// assert_eq!(pins.system, [0, 1]);
    /// ```
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Pins, String> {
        let mut pins = Pins::default();
        for word in texts.iter().flat_map(|text| text.as_ref().split_whitespace()) {
            let (side, cores) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not a pin; write driver=2,3 or system=0-1"))?;
            let list = match side {
                "driver" => &mut pins.driver,
                "system" => &mut pins.system,
                _ => return Err(format!("`{side}` cannot be pinned; only `driver` and `system` can")),
            };
            for part in cores.split(',') {
                for core in core_range(part).ok_or_else(|| {
                    format!("`{part}` in `{word}` is not a core; write numbers from 0 to {HIGHEST_CORE}, like 0,1 or 0-3")
                })? {
                    if !list.contains(&core) {
                        list.push(core);
                    }
                }
            }
        }
        Ok(pins)
    }

    /// Whether every core named is one of `available`.
    pub fn check(&self, available: &[usize]) -> Result<(), String> {
        for (side, cores) in [("driver", &self.driver), ("system", &self.system)] {
            if let Some(core) = cores.iter().find(|core| !available.contains(core)) {
                return Err(format!(
                    "--pin {side}: core {core} is not available to this process; it may use {}",
                    cores_text(available)
                ));
            }
        }
        Ok(())
    }
}

fn core_range(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|core| *core <= HIGHEST_CORE);
    match text.split_once('-') {
        Some((low, high)) => Some(number(low)?..=number(high)?).filter(|range| !range.is_empty()),
        None => number(text).map(|core| core..=core),
    }
}

/// Cores for a person: `0-3,6`.
pub fn cores_text(cores: &[usize]) -> String {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for core in sorted {
        match parts.last_mut() {
            Some((_, high)) if *high + 1 == core => *high = core,
            _ => parts.push((core, core)),
        }
    }
    let text =
        |&(low, high): &(usize, usize)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The number of driving threads where nobody says: one for each core that the driver is pinned to, else half of
/// the cores, or all of them where it has the machine to itself. Nothing is pinned by itself: on four shared cores neither pinned halves nor another number of threads
/// gave more throughput or shorter latencies than the kernel's own choice, beyond what runs differ by anyway.
pub fn default_threads(pins: &Pins, available: &[usize], is_alone: bool) -> usize {
    match (pins.driver.len(), is_alone) {
        (0, true) => available.len().max(1),
        (0, false) => (available.len() / 2).max(1),
        (pinned, _) => pinned,
    }
}

/// Cores that this process may run on.
pub fn available_cores() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        return (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    }
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Runs `f` with the calling thread held to `cores` (none: as it is), and gives the thread its own cores back
/// afterwards, on a panic too. What `f` spawns keeps the cores: this is how a child process is pinned.
#[cfg(target_os = "linux")]
pub fn with_cores<T>(cores: &[usize], f: impl FnOnce() -> T) -> io::Result<T> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    struct Restore(CpuSet);
    impl Drop for Restore {
        fn drop(&mut self) {
            // the old set was accepted before; if it is not now, there is no better one
            let _ = sched_setaffinity(None, &self.0);
        }
    }

    if cores.is_empty() {
        return Ok(f());
    }
    let mut wanted = CpuSet::new();
    for &core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        wanted.set(core);
    }
    let restore = Restore(sched_getaffinity(None)?);
    sched_setaffinity(None, &wanted)?;
    let value = f();
    drop(restore);
    Ok(value)
}

/// Runs `f`; this system cannot pin.
#[cfg(not(target_os = "linux"))]
pub fn with_cores<T>(cores: &[usize], f: impl FnOnce() -> T) -> io::Result<T> {
    if cores.is_empty() { Ok(f()) } else { Err(io::Error::from(io::ErrorKind::Unsupported)) }
}

/// How much nicer a system is than the driver that it shares cores with. At the same priority a busy system keeps the
/// driver from its core when an answer comes, and the response time contains that; a smaller difference helps less.
/// What is left of it is in every report, as the wait for a core.
pub const YIELDING: i32 = 10;

/// Runs `f` on a thread of its own, of which what it spawns keeps how it is scheduled. One that `yields` has a lower
/// priority ([`YIELDING`]): where no cores are set apart, the driver is not to wait for the system that it measures. One
/// that takes turns interrupts nobody ([`take_no_core_from_others`]). Where that cannot be set, it is as it was.
pub fn considerate<T: Send>(
    yields: bool,
    takes_turns: bool,
    f: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    if !yields && !takes_turns {
        return f();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("spawn".into()).spawn_scoped(scope, || {
            // on Linux a thread's priority and policy are its own, and its children's
            #[cfg(target_os = "linux")]
            if yields {
                let _ = rustix::process::nice(YIELDING);
            }
            if takes_turns {
                take_no_core_from_others();
            }
            f()
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_in_every_form() {
        let wanted = Pins { driver: vec![2, 3], system: vec![0, 1] };
        assert_eq!(Pins::parse(&["driver=2,3", "system=0,1"]).unwrap(), wanted);
        assert_eq!(Pins::parse(&["driver=2-3  system=0-1"]).unwrap(), wanted);
        assert_eq!(Pins::parse(&["driver=2", "driver=3,2", "system=0-1,1"]).unwrap(), wanted);
        assert_eq!(Pins::parse::<&str>(&[]).unwrap(), Pins::default());
    }

    #[test]
    fn wrong_pins_say_what_to_write() {
        for wrong in [
            "2,3",
            "driver=",
            "driver=a",
            "driver=3-2",
            "driver=1,,2",
            "store=1",
            "driver=99999999999999999999",
        ] {
            let message = Pins::parse(&[wrong]).unwrap_err();
            assert!(message.contains('`'), "{message}");
        }
        let message = Pins { driver: vec![7], system: vec![] }.check(&[0, 1, 2, 3, 6]).unwrap_err();
        assert!(message.contains("core 7") && message.contains("0-3,6"), "{message}");
        assert!(Pins { driver: vec![3], system: vec![0] }.check(&[0, 3]).is_ok());
    }

    #[test]
    fn threads_are_half_of_the_cores_or_one_for_each_pin() {
        assert_eq!(default_threads(&Pins::default(), &[0], false), 1);
        assert_eq!(default_threads(&Pins::default(), &[0, 1, 2, 3], false), 2);
        assert_eq!(default_threads(&Pins::default(), &[0, 1, 2, 3], true), 4);
        let pins = Pins { driver: vec![1, 2, 3], system: vec![] };
        assert_eq!(default_threads(&pins, &[0, 1, 2, 3], false), 3);
        assert_eq!(default_threads(&pins, &[0, 1, 2, 3], true), 3);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_spawned_keeps_the_cores_and_the_thread_gets_its_own_back() {
        let before = available_cores();
        let last = *before.last().unwrap();
        let inside = with_cores(&[last], || std::thread::spawn(available_cores).join().unwrap()).unwrap();
        assert_eq!(inside, [last]);
        assert_eq!(available_cores(), before);
        let panicked = std::panic::catch_unwind(|| with_cores(&[last], || panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(available_cores(), before);
    }
}
