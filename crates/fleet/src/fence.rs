//! The moment from which on an agent sends nothing, as others may have its share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// It is put off while an agent may send. Once it has passed, it stays so.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// The run's zero; none before the load begins.
    zero: OnceLock<Instant>,
    /// Nanoseconds since then. Driving threads read it before they send.
    ns: Arc<AtomicU64>,
}

impl Fence {
    /// Sets it for the first time.
    pub fn begin(&self, zero: Instant, at: Instant) {
        if self.zero.set(zero).is_ok() {
            self.ns.store(ns_of(at.saturating_duration_since(zero)), Ordering::Relaxed);
        }
    }

    /// Puts it off. `to` follows from what happened before this call: a process that stands still in here puts nothing off.
    pub fn put_off(&self, to: Instant) {
        if let Some(zero) = self.zero.get().filter(|_| !self.has_passed()) {
            self.ns.fetch_max(ns_of(to.saturating_duration_since(*zero)), Ordering::Relaxed);
        }
    }

    /// It passes now.
    pub fn close(&self) {
        if let Some(zero) = self.zero.get() {
            self.ns.fetch_min(ns_of(zero.elapsed()), Ordering::Relaxed);
        }
    }

    /// Whether it has passed; not before the load begins.
    pub fn has_passed(&self) -> bool {
        self.zero.get().is_some_and(|zero| ns_of(zero.elapsed()) >= self.ns.load(Ordering::Relaxed))
    }

    /// What driving threads read.
    pub fn ns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.ns)
    }
}

fn ns_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_passed_is_not_put_off() {
        let fence = Fence::default();
        let now = Instant::now();
        fence.put_off(now);
        assert!(!fence.has_passed(), "nothing has begun");
        let zero = now.checked_sub(Duration::from_secs(100)).unwrap_or(now);
        fence.begin(zero, now + Duration::from_secs(600));
        fence.begin(now, now);
        fence.put_off(now + Duration::from_secs(1));
        assert!(!fence.has_passed(), "it is never brought forward");
        fence.close();
        assert!(fence.has_passed());
        fence.put_off(now + Duration::from_secs(900));
        assert!(fence.has_passed(), "it stays closed");
        let short = Fence::default();
        short.begin(zero, now);
        assert!(short.has_passed());
        short.put_off(now + Duration::from_secs(600));
        assert!(short.has_passed());
        assert_eq!(short.ns().load(Ordering::Relaxed), ns_of(now - zero));
    }
}
