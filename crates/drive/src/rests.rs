//! Short rests of a busy thread, so that several arrivals and answers share one wake-up.
//!
//! Sleeping until each arrival, and being woken by each answer, can cost more than the requests themselves: each time
//! a timer is programmed, and the core goes idle and comes back. A thread that has much to begin rests for
//! [`REST_NS`] instead whenever nothing is due, and then deals with all that has come. A thread that has little to
//! begin never rests: its arrivals leave to the microsecond and its answers wake it. Neither does a closed loop, which
//! begins nothing by the clock.
//!
//! A rest keeps a request back for at most its own length when it is to leave, and for as long again when its answer
//! is to be read: half of that each on average where it falls into a rest, nothing where the thread is at work. It is
//! never left out of a figure: the first is in the schedule lag, and both are in the response time.

use std::time::Duration;

use crate::clock::MILLISECOND_NS;

/// How long a rest is. Two of them, and what the system takes to wake a thread, are within the 100 µs that a reported
/// time may be off.
pub(crate) const REST_NS: u64 = 30_000;
/// Over how long it is counted how much begins.
const COUNTED_NS: u64 = MILLISECOND_NS;
/// A thread is busy from so many beginnings in [`COUNTED_NS`]: one for each rest.
const BUSY: u64 = COUNTED_NS / REST_NS;

/// Decides when a thread rests.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    since_ns: u64,
    /// What has begun since.
    begun: u64,
    is_busy: bool,
}

impl Rests {
    /// Something began because its time had come.
    pub fn begun(&mut self) {
        self.begun += 1;
    }

    /// How long to rest now, if at all, where the next thing is due at `next_ns`.
    pub fn rest(&mut self, now_ns: u64, next_ns: u64) -> Option<Duration> {
        let counted_ns = now_ns.saturating_sub(self.since_ns);
        if counted_ns >= COUNTED_NS {
            self.is_busy = self.begun * COUNTED_NS / counted_ns >= BUSY;
            self.since_ns = now_ns;
            self.begun = 0;
        }
        // With nothing due before the rest would be over, sockets wake the thread at no such cost.
        let falls_into_it = now_ns < next_ns && next_ns < now_ns + REST_NS;
        (self.is_busy && falls_into_it).then_some(Duration::from_nanos(REST_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Option<Duration> = Some(Duration::from_nanos(REST_NS));

    /// One beginning each `every_ns` for 10 ms, nothing else; the rests that were taken.
    fn rests_with(rests: &mut Rests, every_ns: u64) -> usize {
        let begin_ns = rests.since_ns + COUNTED_NS;
        let (mut due_ns, mut now_ns, mut count) = (begin_ns, begin_ns, 0);
        while now_ns < begin_ns + 10 * COUNTED_NS {
            while due_ns <= now_ns {
                rests.begun();
                due_ns += every_ns;
            }
            match rests.rest(now_ns, due_ns) {
                Some(time) => {
                    count += 1;
                    now_ns += time.as_nanos() as u64;
                }
                None => now_ns = due_ns,
            }
        }
        count
    }

    #[test]
    fn only_who_has_much_to_begin_rests() {
        let mut rests = Rests::default();
        assert_eq!(rests_with(&mut rests, 100_000), 0, "10,000/s");
        assert_eq!(rests_with(&mut rests, 40_000), 0, "25,000/s");
        let busy = rests_with(&mut rests, 8_000);
        assert!((250..=334).contains(&busy), "125,000/s: {busy} rests in 10 ms, one each 30 µs");
        let calm = rests_with(&mut rests, 100_000);
        assert_eq!(calm, 0, "and no longer than it is busy");
    }

    #[test]
    fn what_is_due_now_or_later_than_a_rest_allows_none() {
        let mut rests = Rests::default();
        rests_with(&mut rests, 5_000);
        let now_ns = rests.since_ns + 1;
        assert_eq!(rests.rest(now_ns, now_ns + 1), REST);
        assert_eq!(rests.rest(now_ns, now_ns), None, "due");
        assert_eq!(rests.rest(now_ns, 0), None, "overdue");
        assert_eq!(rests.rest(now_ns, now_ns + REST_NS), None, "there is time to sleep");
    }
}
