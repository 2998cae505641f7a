//! Workers who serve one request each at a time, in the order in which they came: a queue whose response times are known by
//! theory.

use std::time::Duration;

/// Times in which nobody works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// From one to the next; the first begins so long after the first request.
    pub every: Duration,
    /// How long each is; shorter than that.
    pub length: Duration,
}

/// The workers. Times are nanoseconds.
#[derive(Debug)]
pub(crate) struct Line {
    /// When each has done what it has taken on.
    free_ns: Vec<u64>,
    pauses: Option<Pauses>,
    /// By how much of itself a service gets slower in each minute.
    slows: f64,
}

impl Line {
    pub fn new(workers: usize, pauses: Option<Pauses>, slows: f64) -> Line {
        Line { free_ns: vec![0; workers.max(1)], pauses, slows }
    }

    /// When a request has been served that came then and takes so long; `first_ns` is when the first one came.
    pub fn serve(&mut self, came_ns: u64, service_ns: u64, first_ns: u64) -> u64 {
        let minutes = came_ns.saturating_sub(first_ns) as f64 / 60e9;
        let service_ns = (service_ns as f64 * (1.0 + self.slows * minutes)) as u64;
        let Some(free_ns) = self.free_ns.iter_mut().min() else { return came_ns };
        let begin_ns = came_ns.max(*free_ns);
        *free_ns = match self.pauses {
            None => begin_ns + service_ns,
            Some(pauses) => first_ns + pauses.end_ns(begin_ns.saturating_sub(first_ns), service_ns),
        };
        *free_ns
    }
}

impl Pauses {
    /// When work ends that begins then, both since the first request.
    fn end_ns(self, begin_ns: u64, work_ns: u64) -> u64 {
        let [every_ns, length_ns] =
            [self.every, self.length].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
        let since_ns = begin_ns % every_ns;
        // the one at 0 is none: nobody works before the first request
        let begin_ns = match begin_ns >= every_ns && since_ns < length_ns {
            true => begin_ns - since_ns + length_ns,
            false => begin_ns,
        };
        let until_ns = every_ns - begin_ns % every_ns;
        // of work that is longer than the time between pauses only the first one counts
        begin_ns + work_ns + if work_ns > until_ns { length_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn who_comes_while_all_work_waits_for_the_first_that_is_free() {
        let mut line = Line::new(2, None, 0.0);
        let ends = [(0, 10), (1, 5), (2, 4), (3, 1), (90, 1)];
        let ends = ends.map(|(came, takes)| line.serve(came * MS, takes * MS, 0) / MS);
        assert_eq!(ends, [10, 6, 10, 11, 91]);
    }

    #[test]
    fn nobody_works_in_a_pause() {
        let pauses = Pauses { every: Duration::from_millis(100), length: Duration::from_millis(20) };
        let mut line = Line::new(1, Some(pauses), 0.0);
        let ends = [(0, 5), (98, 5), (110, 1), (205, 1)];
        let ends = ends.map(|(came, takes)| line.serve(came * MS, takes * MS, 0) / MS);
        // the second is interrupted, and the third waits for it
        assert_eq!(ends, [5, 123, 124, 221]);
    }

    #[test]
    fn a_server_that_slows_down_takes_longer_the_later_it_is() {
        let mut line = Line::new(1, None, 0.5);
        assert_eq!(line.serve(7 * MS, 10 * MS, 7 * MS), 17 * MS);
        let later = 7 * MS + 120_000 * MS;
        assert_eq!(line.serve(later, 10 * MS, 7 * MS), later + 20 * MS);
    }

    /// M/M/1: of the response times, p-quantile −ln(1−p)/(μ−λ).
    #[test]
    fn one_worker_with_exponential_service_times_is_the_queue_of_the_books() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut exponential = |mean_ns: f64| -mean_ns * (1.0 - random.f64()).ln();
        let mut line = Line::new(1, None, 0.0);
        let (mut now_ns, mut slow) = (0.0, 0);
        for _ in 0..400_000 {
            now_ns += exponential(1e9 / 700.0);
            let end_ns = line.serve(now_ns as u64, exponential(1e6) as u64, 0);
            slow += u32::from(end_ns as f64 - now_ns > -(0.1f64).ln() / 300.0 * 1e9);
        }
        assert!((36_000..44_000).contains(&slow), "{slow} of 400,000 are slower than p90");
    }
}
