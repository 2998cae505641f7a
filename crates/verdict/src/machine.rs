//! Whether the machine was the limit: what the run started wanted a core all the time, and others had them.
//!
//! Of a load whose requests are due at their own time nothing but that may have made a system fall behind which keeps up
//! where it has its cores: on a machine of two cores the driver has one of them, and whoever compiles beside it the other. So
//! what is missed in time or in rate then is not decided. Errors are: no want of a core makes an answer wrong.
//! A silence in which requests timed out is not decided either, if a process had no core in those seconds, under any load.

use tidemark_record::summary::{Process, Summary};
use tidemark_scenario::plan::Metric;

use crate::driver::who_had_the_cores;
use tidemark_record::DRIVER;

/// One that was on more than this share of the cores that it may use is the one who has them.
const OWN_SHARE_MAX: f64 = 0.5;

/// A process of the run that was never idle, waited for a core for longer than it was on one, and was on fewer than half of those
/// that there are. `is_started`: by its name. None too where the system does not tell of waits.
pub(super) fn short_of_cores(
    processes: &[Process],
    cores: usize,
    is_started: impl Fn(&str) -> bool,
) -> Option<&Process> {
    let is_short = |process: &&Process| {
        process.name != DRIVER
            && is_started(&process.name)
            && process.is_starved()
            && process.cpu_share < OWN_SHARE_MAX * cores as f64
    };
    processes.iter().find(is_short)
}

/// Whether want of a core can have spoiled a figure.
pub(super) fn is_of_time(metric: Metric) -> bool {
    matches!(metric, Metric::Percentile(_) | Metric::Mean | Metric::Rate | Metric::AchievedShare)
}

/// What held it up, with what to change.
pub(super) fn in_words(process: &Process, summary: &Summary) -> String {
    let driver = &summary.driver;
    let of_driver = driver.cpu_s / summary.measured_s.max(f64::MIN_POSITIVE);
    format!(
        "{} was never idle: it ran on {:.2} cores and waited for {:.2} more; the load generator used \
         {of_driver:.2} cores{}; give it cores of its own (--pin), or a machine",
        process.name,
        process.cpu_share,
        process.core_wait_share.unwrap_or(0.0),
        who_had_the_cores(&driver.busiest, driver.steal_share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_a_core_that_others_have_is_short_of_it() {
        let short = |cpu_share, core_wait_share, cores| {
            let of =
                |name: &str| Process { name: name.into(), cpu_share, core_wait_share, ..Process::default() };
            let processes = [of(DRIVER), of("shop"), of("kv")];
            short_of_cores(&processes, cores, |name| name != "shop").map(|process| process.name.clone())
        };
        // one thread of a store that is full, on two cores that the driver and a compiler have
        assert_eq!(short(0.33, Some(0.66), 2), Some("kv".into()));
        assert_eq!(short(0.33, Some(0.60), 2), None, "it had time left");
        assert_eq!(short(0.50, Some(0.49), 2), None, "it had a core for longer");
        assert_eq!(short(1.30, Some(2.50), 2), None, "it had most of the cores itself");
        assert_eq!(short(1.30, Some(2.50), 4), Some("kv".into()));
        assert_eq!(short(0.99, None, 8), None, "nobody counts it");
    }
}
