//! Parsers of the kernel's own files under `/proc`. Each takes text and gives what it found; odd content gives less,
//! never a panic.

/// Times and size of one process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Clock ticks in user mode, with those of children that were waited for.
    pub user_ticks: u64,
    /// Clock ticks in the kernel, with those of children that were waited for.
    pub system_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// Resident pages.
    pub rss_pages: u64,
}

/// `/proc/PID/stat`. The name in it may hold spaces and brackets; the fields begin after its last closing one.
pub fn process_stat(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
    // `fields[0]` is the third field of the manual page, the state
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<i64>().ok());
    let count = |field: usize| number(field).map(|n| n.max(0) as u64);
    Some(ProcessStat {
        user_ticks: count(14)?.saturating_add(count(16)?),
        system_ticks: count(15)?.saturating_add(count(17)?),
        threads: count(20)?,
        rss_pages: count(24)?,
    })
}

/// Clock ticks of one process in user mode and in the kernel, without those of its children, and when it began (ticks since
/// the machine did), from `/proc/PID/stat`.
pub fn own_ticks(text: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
    // `fields[0]` is the third field of the manual page
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some((ticks(14)?.saturating_add(ticks(15)?), ticks(22)?))
}

/// How long a thread was ready to run but had no core since it began, microseconds, from `/proc/PID/task/TID/schedstat`:
/// nanoseconds on a CPU, nanoseconds without one, how often it was put on one.
pub fn core_wait_us(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|ns| ns / 1_000)
}

/// The number after `key` in a file of `key: number` lines, such as `/proc/PID/status` and `/proc/PID/io`.
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let value = line
            .strip_prefix(key)?
            .strip_prefix(':')
            .or_else(|| line.strip_prefix(key)?.strip_prefix(' '))?;
        value.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// Clock ticks of the whole machine since it was started, from `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineStat {
    /// In user mode, nice ones too.
    pub user_ticks: u64,
    /// In the kernel, interrupts too.
    pub system_ticks: u64,
    /// Taken away by the hypervisor.
    pub steal_ticks: u64,
    /// Context switches.
    pub switches: u64,
}

/// `/proc/stat`.
pub fn machine_stat(text: &str) -> Option<MachineStat> {
    let cpu: Vec<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))?
        .split_ascii_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let at = |index: usize| cpu.get(index).copied().unwrap_or(0);
    if cpu.len() < 4 {
        return None;
    }
    Some(MachineStat {
        user_ticks: at(0).saturating_add(at(1)),
        system_ticks: at(2).saturating_add(at(5)).saturating_add(at(6)),
        steal_ticks: at(7),
        switches: keyed(text, "ctxt").unwrap_or(0),
    })
}

/// Memory in use, bytes, from `/proc/meminfo`: all of it without what the kernel can give away at once.
pub fn memory_used(text: &str) -> Option<u64> {
    Some(keyed(text, "MemTotal")?.saturating_sub(keyed(text, "MemAvailable")?).saturating_mul(1024))
}

/// Bytes received and sent over all interfaces, loopback too, from `/proc/net/dev`.
pub fn network_bytes(text: &str) -> (u64, u64) {
    let mut sum = (0u64, 0u64);
    for (_, counters) in text.lines().filter_map(|line| line.split_once(':')) {
        let mut counters = counters.split_ascii_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
        sum.0 = sum.0.saturating_add(counters.next().unwrap_or(0));
        sum.1 = sum.1.saturating_add(counters.nth(7).unwrap_or(0));
    }
    sum
}

/// Process ids in a list such as `/proc/PID/task/TID/children`.
pub fn process_ids(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok())
}

/// Load average over one minute, from `/proc/loadavg`.
pub fn load_average(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// CPU model, from `/proc/cpuinfo`; other architectures than x86 name it differently or not at all.
pub fn cpu_model(text: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "Hardware"].iter().find_map(|key| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == *key && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    })
}

/// The system's name for itself, from `/etc/os-release`.
pub fn os_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_process_with_an_odd_name_is_read() {
        let text = "42 (a ) S (b) R 1 42 42 0 -1 4194560 100 0 0 0 15 7 3 2 20 0 9 0 100 1000000 321 18446744073709551615 1 1";
        let stat = process_stat(text).unwrap();
        assert_eq!(stat, ProcessStat { user_ticks: 18, system_ticks: 9, threads: 9, rss_pages: 321 });
        assert_eq!(process_stat("42 (x) R 1 2"), None);
        assert_eq!(process_stat(""), None);
    }

    #[test]
    fn waits_for_a_core_are_read() {
        assert_eq!(core_wait_us("123456 7890123 42\n"), Some(7_890));
        assert_eq!(core_wait_us("123456"), None);
        assert_eq!(core_wait_us("1 -2 3"), None);
    }

    #[test]
    fn the_machine_is_read() {
        let text = "cpu  100 2 30 4000 5 6 7 8 0 0\ncpu0 1 1 1 1\nintr 5 5\nctxt 12345\nbtime 1\n";
        let stat = machine_stat(text).unwrap();
        assert_eq!(stat, MachineStat { user_ticks: 102, system_ticks: 43, steal_ticks: 8, switches: 12345 });
        assert_eq!(machine_stat("cpu  1 2"), None);
    }

    #[test]
    fn keyed_files_are_read_by_the_whole_key() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(keyed(status, "voluntary_ctxt_switches"), Some(12));
        assert_eq!(keyed(status, "nonvoluntary_ctxt_switches"), Some(3));
        assert_eq!(keyed("read_bytes: 4096\nwrite_bytes: 8192\n", "write_bytes"), Some(8192));
        assert_eq!(keyed("pgpgin 77\n", "pgpgin"), Some(77));
        assert_eq!(keyed(status, "Name"), None);
        assert_eq!(memory_used("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n"), Some(61_440));
    }

    #[test]
    fn the_network_is_summed_over_interfaces() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n    lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n  eth0:10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
        assert_eq!(network_bytes(text), (110, 220));
    }

    #[test]
    fn names_are_found() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Fast CPU @ 3GHz\n").as_deref(),
            Some("Fast CPU @ 3GHz")
        );
        assert_eq!(os_name("NAME=\"X\"\nPRETTY_NAME=\"Some OS 12\"\n").as_deref(), Some("Some OS 12"));
        assert_eq!(load_average("0.52 0.4 0.3 1/200 4242\n"), Some(0.52));
        assert_eq!(process_ids("12 x 14 ").collect::<Vec<_>>(), [12, 14]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_very_process_is_read() {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let stat = process_stat(&read("/proc/self/stat")).unwrap();
        assert!(stat.threads >= 1 && stat.rss_pages > 0);
        assert!(machine_stat(&read("/proc/stat")).unwrap().user_ticks > 0);
        assert!(memory_used(&read("/proc/meminfo")).unwrap() > 0);
        assert!(keyed(&read("/proc/self/status"), "voluntary_ctxt_switches").is_some());
    }

    /// Text that looks like these files, cut and shuffled.
    fn odd_text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("cpu ".to_owned()),
            Just("ctxt".to_owned()),
            Just("MemTotal:".to_owned()),
            Just("MemAvailable:".to_owned()),
            Just("model name\t:".to_owned()),
            Just("PRETTY_NAME=".to_owned()),
            Just(")".to_owned()),
            Just("\n".to_owned()),
            any::<i128>().prop_map(|n| n.to_string()),
            any::<u64>().prop_map(|n| n.to_string()),
            "\\PC{0,6}",
        ];
        proptest::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn odd_content_never_panics(text in odd_text()) {
            process_stat(&text);
            core_wait_us(&text);
            machine_stat(&text);
            memory_used(&text);
            network_bytes(&text);
            process_ids(&text).count();
            load_average(&text);
            cpu_model(&text);
            os_name(&text);
            keyed(&text, "ctxt");
        }
    }
}
