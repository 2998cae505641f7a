//! What waits on open streams until its server takes it, all of a driving thread together.

/// Bytes that may wait on all open streams of a driving thread. A message that nothing waits beside may be larger.
pub(super) const BACKLOG_BYTES: usize = 256 << 20;

/// Bounds it without looking at all streams for each message.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// What waited when it was counted last, and all that was said since: no more than that can wait.
    most_bytes: usize,
}

impl Backlog {
    /// Whether a message of so many bytes may join. `count` says how many wait now, and is asked only where that matters.
    pub fn admits(&mut self, bytes: usize, count: impl FnOnce() -> usize) -> bool {
        if self.most_bytes + bytes > BACKLOG_BYTES {
            self.most_bytes = count();
        }
        let is_admitted = self.most_bytes == 0 || self.most_bytes + bytes <= BACKLOG_BYTES;
        if is_admitted {
            self.most_bytes += bytes;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_makes_room_and_nothing_is_counted_before_it_matters() {
        let mut backlog = Backlog::default();
        let uncounted = || unreachable!("there is room whatever waits");
        assert!(backlog.admits(BACKLOG_BYTES - 1, uncounted) && backlog.admits(1, uncounted));
        assert!(!backlog.admits(1, || BACKLOG_BYTES), "all of it waits");
        assert!(backlog.admits(1, || BACKLOG_BYTES - 1), "a byte has left");
        assert!(backlog.admits(2 * BACKLOG_BYTES, || 0), "nothing waits beside it");
        assert!(!backlog.admits(1, || 2 * BACKLOG_BYTES));
    }
}
