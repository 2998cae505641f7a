//! What a table was measured on.

use std::fs::read_to_string;

/// The machine in a line: processor, cores, kernel.
pub fn describe() -> String {
    let information = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {} cores, Linux {}", cores(), kernel.trim())
}

/// Cores of the machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The load average of the last minute.
pub fn load_average() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// Time that all cores spent since the machine started, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ticks {
    all: f64,
    stolen: f64,
    idle: f64,
}

impl Ticks {
    /// Until now.
    pub fn now() -> Ticks {
        Ticks::of(&read_to_string("/proc/stat").unwrap_or_default())
    }

    fn of(stat: &str) -> Ticks {
        let line = stat.lines().next().unwrap_or_default();
        let numbers: Vec<f64> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is contained in these
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0.0);
        Ticks { all: numbers.iter().take(8).sum(), stolen: at(7), idle: at(3) + at(4) }
    }

    /// Shares of all cores' time since then, in percent: stolen by the hypervisor, and idle.
    pub fn since(&self, then: &Ticks) -> (f64, f64) {
        let all = (self.all - then.all).max(1.0);
        (100.0 * (self.stolen - then.stolen) / all, 100.0 * (self.idle - then.idle) / all)
    }
}

/// What the kernel's own thread for network work has used on a core, seconds. It takes over from a process that sends more
/// than is done in passing, and no account of that process has it.
pub fn network_thread_s(core: &str) -> f64 {
    let name = format!("ksoftirqd/{core}\n");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = processes
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
        .find(|path| read_to_string(path.join("comm")).is_ok_and(|comm| comm == name));
    let schedule = found.and_then(|path| read_to_string(path.join("schedstat")).ok()).unwrap_or_default();
    schedule.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(0.0, |ns| ns / 1e9)
}

/// Today, as `2026-11-22`.
pub fn today() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The civil date of a day since 1970-01-01.
fn date(day: u64) -> String {
    let era_day = day + 719_468;
    let (era, day) = (era_day / 146_097, era_day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(20_453), "2025-12-31");
    }

    #[test]
    fn shares_of_time() {
        let then = Ticks::of("cpu 100 0 100 700 50 0 0 50 0 0\ncpu0 1 2 3\n");
        let now = Ticks::of("cpu 200 0 150 900 50 0 0 100 0 0\n");
        assert_eq!(now.since(&then), (12.5, 50.0));
    }
}
