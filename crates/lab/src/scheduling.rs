//! How the stores that a run starts share the cores with the driver.

/// From now on the calling thread, and whatever it starts, takes a core from nobody: where all are busy, it waits until one
/// is left or its turn has come (some milliseconds; `SCHED_BATCH` of sched(7)). Where the system knows no such policy, or
/// refuses it, nothing changes.
pub fn take_no_core_from_others() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // SAFETY: an all-zero `sched_param` is a value of it; the call reads it and concerns this thread only.
        #[allow(unsafe_code)]
        let _refused = unsafe {
            let parameters: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters)
        };
    }
}
