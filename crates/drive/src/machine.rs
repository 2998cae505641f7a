//! What is asked of the operating system: room for connections, a core, exact timers.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files beside the connections: standard streams, event descriptors, the run directory, whatever the program
/// around this crate has open.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files as far as it may and needs to, and returns how many connections have room.
pub(crate) fn raise_open_files(connections: usize) -> usize {
    let wanted = connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(mut limit) = current else { return connections };
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
