//! What is asked of the operating system: room for connections, a core, exact timers.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files beside the connections: standard streams, event descriptors, the run directory, whatever the program
/// around this crate has open.
const OTHER_FILES: u64 = 64;

/// Local ports where the system does not say which it has.
#[cfg(target_os = "linux")]
const PORTS_UNTOLD: usize = 28_232;

/// Ports that connections to one address can be made from.
#[cfg(target_os = "linux")]
pub(crate) fn local_ports() -> usize {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<usize>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if first <= last => last - first + 1,
        _ => PORTS_UNTOLD,
    }
}

/// Other systems are not asked; a connection that finds no port says so.
#[cfg(not(target_os = "linux"))]
pub(crate) fn local_ports() -> usize {
    usize::MAX
}

/// Raises the limit of open files as far as it may and needs to, and returns how many connections have room.
pub(crate) fn raise_open_files(connections: usize) -> usize {
    let wanted = (connections as u64).saturating_add(OTHER_FILES);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(mut limit) = current else { return connections };
    if maximum.is_some_and(|most| most < wanted) {
        // Only who has the right to, mostly root, may go beyond the hard limit.
        let beyond = Rlimit { current: Some(wanted), maximum: Some(wanted) };
        if setrlimit(Resource::Nofile, beyond).is_ok() {
            return connections;
        }
    }
    if limit < wanted {
        let raised = maximum.map_or(wanted, |most| most.min(wanted));
        if raised > limit && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
            limit = raised;
        }
    }
    usize::try_from(limit.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX).min(connections)
}

/// Pins the calling thread to a core, and asks for timers that are not rounded. Where the system refuses, the drive
/// goes on without: what it costs shows in the schedule lag.
pub(crate) fn settle_in(core: Option<usize>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
        if let Some(core) = core.filter(|core| *core < CpuSet::MAX_CPU) {
            let mut cores = CpuSet::new();
            cores.set(core);
            let _ = sched_setaffinity(None, &cores);
        }
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_at_most_what_is_asked_for() {
        assert_eq!(raise_open_files(10), 10);
        assert!(raise_open_files(usize::MAX / 2) > 10);
    }
}
