//! Small runs for the tests of this crate.

use crate::{Outcome, Series, ThreadInterval, new_histogram};

/// An interval of whole seconds in which nothing happened.
pub(crate) fn interval(thread: u16, start_s: u64, end_s: u64) -> ThreadInterval {
    ThreadInterval::empty(thread, start_s * 1_000_000, end_s * 1_000_000)
}

/// Requests with these response times (microseconds, how many); service times are half of them, and a tenth is the
/// driver's lag. The body of a good answer has 100 bytes.
pub(crate) fn series(label: u16, outcome: Outcome, measured: bool, times_us: &[(u64, u32)]) -> Series {
    let [mut response_time_us, mut response_time_less_lag_us, mut service_time_us] =
        [(); 3].map(|()| new_histogram());
    for &(us, count) in times_us {
        response_time_us.record_n(us, count);
        response_time_less_lag_us.record_n(us - us / 10, count);
        service_time_us.record_n(us / 2, count);
    }
    let count = if outcome == Outcome::Ok { response_time_us.len() } else { 0 };
    Series {
        label,
        outcome,
        measured,
        phase: None,
        response_time_us,
        response_time_less_lag_us,
        service_time_us,
        bodies: count,
        body_bytes: 100 * count,
    }
}
