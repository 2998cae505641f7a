//! How a system's threads share the cores with those that they work for.

/// From now on the calling thread, and whatever threads it starts, take a core from nobody: where all are busy, they
/// wait until one is left to them or their turn has come (some milliseconds; `SCHED_BATCH` of sched(7)). On a core that
/// is free they run at once, as before.
///
/// A committer that is woken by the first message of a group would otherwise interrupt, on a machine without a free core,
/// the very thread that fills the group: groups stay small, and each message costs its part of a sync and of four changes
/// between threads just when there is least to spare. Where it waits, the groups grow with the load.
///
/// Where the system knows no such policy, or refuses it, nothing changes.
pub fn take_no_core_from_others() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // SAFETY: an all-zero `sched_param` is a value of it; the call reads it and concerns this thread only.
        #[allow(unsafe_code)]
        let refused = unsafe {
            let parameters: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters)
        };
        if refused != 0 {
            let error = std::io::Error::last_os_error();
            tracing::debug!(%error, "a thread is scheduled as all others are");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The policy of a thread, as proc_pid_stat(5) has it.
    fn policy() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_name = stat.rsplit(')').next().unwrap();
        behind_name.split_whitespace().nth(38).unwrap().to_owned()
    }

    #[test]
    fn it_is_the_thread_that_asked_and_no_other() {
        let before = policy();
        let asked = std::thread::spawn(|| {
            take_no_core_from_others();
            policy()
        });
        assert_eq!(asked.join().unwrap(), libc::SCHED_BATCH.to_string());
        assert_eq!(policy(), before);
    }
}
