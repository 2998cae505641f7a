//! Small runs for the tests of this crate.

use crate::{Outcome, Series, ThreadInterval, new_histogram};

/// An interval of whole seconds in which nothing happened.
pub(crate) fn interval(thread: u16, start_s: u64, end_s: u64) -> ThreadInterval {
    ThreadInterval::empty(thread, start_s * 1_000_000, end_s * 1_000_000)
}

/// Requests with these response times (microseconds, how many); service times are half of them.
pub(crate) fn series(label: u16, outcome: Outcome, measured: bool, times_us: &[(u64, u32)]) -> Series {
    let (mut response_time_us, mut service_time_us) = (new_histogram(), new_histogram());
    for &(us, count) in times_us {
        response_time_us.record_n(us, count).unwrap();
        service_time_us.record_n(us / 2, count).unwrap();
    }
    Series { label, outcome, measured, response_time_us, service_time_us }
}
