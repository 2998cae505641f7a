//! Waits until others have left the machine.

use std::time::{Duration, Instant};

use crate::LabError;
use crate::monitor::{MACHINE, Monitor, Subject};

/// How long a look is.
const LOOK: Duration = Duration::from_secs(1);
/// It is quiet where less is used than so many cores, in so many looks in a row.
const QUIET_CORES: f64 = 0.2;
const QUIET_LOOKS: u32 = 2;

/// Waits until nobody uses the cores to speak of, no longer than this; whether it came to its end without a signal.
///
/// # Errors
/// Where signals cannot be watched.
pub fn wait(wait_max: Duration, before_exit: Option<fn()>) -> Result<bool, LabError> {
    let begin = Instant::now();
    let mut monitor = Monitor::of_nothing();
    monitor.look_at(MACHINE, Some(Subject::Machine));
    monitor.look(0);
    let mut quiet = 0;
    while quiet < QUIET_LOOKS && begin.elapsed() < wait_max {
        if !super::waited(LOOK.min(wait_max.saturating_sub(begin.elapsed())), before_exit)? {
            return Ok(false);
        }
        let at_us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        let used = monitor.look(at_us).first().map(|machine| machine.cpu_share);
        // where nobody knows there is nothing to wait for
        let Some(used) = used else { return Ok(true) };
        quiet = if used < QUIET_CORES { quiet + 1 } else { 0 };
    }
    Ok(true)
}
