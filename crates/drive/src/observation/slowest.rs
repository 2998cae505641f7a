//! The slowest requests that a thread has seen.

use tidemark_record::SlowRequest;

/// So many are kept of each label.
pub(crate) const SLOWEST_EACH: usize = 10;

/// The slowest requests of each label, the slowest first.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    /// By label: what a further one must take longer than, microseconds.
    least_us: Vec<Option<u64>>,
    kept: Vec<Vec<SlowRequest>>,
}

impl Slowest {
    /// Of so many labels.
    pub fn of(labels: usize) -> Self {
        // room for one more, so that nothing is allocated later
        let room = (0..labels).map(|_| Vec::with_capacity(SLOWEST_EACH + 1));
        Slowest { least_us: vec![None; labels], kept: room.collect() }
    }

    /// Whether one that took so long is among them.
    pub fn takes(&self, label: u16, response_time_us: u64) -> bool {
        match self.least_us.get(usize::from(label)) {
            Some(Some(least_us)) => response_time_us > *least_us,
            Some(None) => true,
            None => false,
        }
    }

    /// Keeps one that is.
    pub fn keep(&mut self, request: SlowRequest) {
        let label = usize::from(request.label);
        let Some(kept) = self.kept.get_mut(label) else { return };
        let at = kept.partition_point(|known| known.response_time_us >= request.response_time_us);
        kept.insert(at, request);
        kept.truncate(SLOWEST_EACH);
        if kept.len() == SLOWEST_EACH {
            self.least_us[label] = kept.last().map(|last| last.response_time_us);
        }
    }

    /// All of them.
    pub fn take(&mut self) -> Vec<SlowRequest> {
        std::mem::take(&mut self.kept).into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use tidemark_record::Outcome;

    use super::*;

    fn request(label: u16, response_time_us: u64) -> SlowRequest {
        SlowRequest {
            label,
            due_us: response_time_us,
            response_time_us,
            outcome: Outcome::Ok,
            status: 200,
            thread: 0,
            connection: 0,
            connect_us: None,
            handshake_us: None,
            first_byte_us: response_time_us,
            transfer_us: 0,
        }
    }

    #[test]
    fn the_slowest_of_each_label_are_kept() {
        let mut slowest = Slowest::of(2);
        for us in (0..1_000).map(|n| n * 7 % 1_000) {
            if slowest.takes(0, us) {
                slowest.keep(request(0, us));
            }
        }
        slowest.keep(request(1, 3));
        assert!(
            !slowest.takes(0, 990) && slowest.takes(0, 991) && slowest.takes(1, 0) && !slowest.takes(2, 9)
        );
        let kept: Vec<(u16, u64)> = slowest.take().iter().map(|of| (of.label, of.response_time_us)).collect();
        let expected: Vec<(u16, u64)> = (990..1_000).rev().map(|us| (0, us)).chain([(1, 3)]).collect();
        assert_eq!(kept, expected);
    }
}
