//! The instances of a service that are known, and which of them the next request goes to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

/// Most instances of one service; of more, the rest is not used.
pub const INSTANCES_MAX: usize = 256;
/// An instance that cannot be reached is passed over for so long, twice as long each further time.
const PASSED_OVER_MS: u64 = 500;
const PASSED_OVER_MS_MAX: u64 = 10_000;
/// So many bad answers in a row count as not being reachable.
const BAD_IN_A_ROW: u64 = 5;

/// How the next instance is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// Of two taken by chance the one with fewer requests under way.
    TwoChoices,
    /// The one with the fewest requests under way.
    LeastLoaded,
}

impl Balance {
    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "round-robin" => Some(Balance::RoundRobin),
            "two-choices" => Some(Balance::TwoChoices),
            "least-loaded" => Some(Balance::LeastLoaded),
            _ => None,
        }
    }
}

/// An instance of a service.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) addr: SocketAddr,
    /// What stands behind `host:` in its requests.
    pub(crate) host: String,
    pub(crate) under_way: AtomicUsize,
    pub(crate) requests: AtomicU64,
    pub(crate) failures: AtomicU64,
    bad_in_a_row: AtomicU64,
    times_passed_over: AtomicU64,
    passed_over_until_ms: AtomicU64,
}

impl Instance {
    fn new(addr: SocketAddr) -> Arc<Self> {
        Arc::new(Instance {
            addr,
            host: addr.to_string(),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            bad_in_a_row: AtomicU64::new(0),
            times_passed_over: AtomicU64::new(0),
            passed_over_until_ms: AtomicU64::new(0),
        })
    }

    pub(crate) fn is_passed_over(&self, now_ms: u64) -> bool {
        self.passed_over_until_ms.load(Ordering::Relaxed) > now_ms
    }

    /// It has answered.
    pub(crate) fn is_well(&self) {
        if self.bad_in_a_row.load(Ordering::Relaxed) > 0 || self.times_passed_over.load(Ordering::Relaxed) > 0
        {
            self.bad_in_a_row.store(0, Ordering::Relaxed);
            self.times_passed_over.store(0, Ordering::Relaxed);
        }
    }

    /// It gave a bad answer, or none in time.
    pub(crate) fn is_bad(&self, now_ms: u64) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if self.bad_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= BAD_IN_A_ROW {
            self.pass_over(now_ms);
        }
    }

    /// It cannot be reached.
    pub(crate) fn is_away(&self, now_ms: u64) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.pass_over(now_ms);
    }

    fn pass_over(&self, now_ms: u64) {
        // all the requests that were lost together are one time
        if self.is_passed_over(now_ms) {
            return;
        }
        let times = self.times_passed_over.fetch_add(1, Ordering::Relaxed);
        let ms = PASSED_OVER_MS.saturating_mul(1 << times.min(10)).min(PASSED_OVER_MS_MAX);
        self.bad_in_a_row.store(0, Ordering::Relaxed);
        self.passed_over_until_ms.store(now_ms + ms, Ordering::Relaxed);
    }
}

/// All instances of one service that are known.
#[derive(Debug)]
pub(crate) struct Instances {
    balance: Balance,
    known: RwLock<Arc<[Arc<Instance>]>>,
    turn: AtomicUsize,
}

impl Instances {
    pub(crate) fn new(balance: Balance) -> Self {
        Instances { balance, known: RwLock::new(Arc::from([])), turn: AtomicUsize::new(0) }
    }

    pub(crate) fn known(&self) -> Arc<[Arc<Instance>]> {
        self.known.read().clone()
    }

    /// These there are now. What is known about those that were there before stays.
    pub(crate) fn set(&self, mut addrs: Vec<SocketAddr>) {
        addrs.sort_unstable();
        addrs.dedup();
        addrs.truncate(INSTANCES_MAX);
        let before = self.known();
        if before.iter().map(|instance| instance.addr).eq(addrs.iter().copied()) {
            return;
        }
        let kept = |addr: SocketAddr| before.iter().find(|instance| instance.addr == addr).cloned();
        let now = addrs.iter().map(|addr| kept(*addr).unwrap_or_else(|| Instance::new(*addr))).collect();
        *self.known.write() = now;
    }

    /// The instance for the next request, which was tried at `tried`. One that is passed over is taken where there is no
    /// other, one that was tried never.
    pub(crate) fn next(&self, now_ms: u64, tried: &[SocketAddr]) -> Option<Arc<Instance>> {
        let known = self.known();
        let usual = |instance: &Instance| !instance.is_passed_over(now_ms);
        if tried.is_empty() && known.iter().all(|instance| usual(instance)) {
            return self.choose(&known).cloned();
        }
        let untried = known.iter().filter(|instance| !tried.contains(&instance.addr)).cloned();
        let mut candidates: Vec<_> = untried.collect();
        if candidates.iter().any(|instance| usual(instance)) {
            candidates.retain(|instance| usual(instance));
        }
        self.choose(&candidates).cloned()
    }

    fn choose<'a>(&self, among: &'a [Arc<Instance>]) -> Option<&'a Arc<Instance>> {
        let load = |at: usize| among[at].under_way.load(Ordering::Relaxed);
        let count = among.len();
        let at = match (count, self.balance) {
            (0, _) => return None,
            (1, _) => 0,
            (_, Balance::RoundRobin) => self.turn.fetch_add(1, Ordering::Relaxed) % count,
            (_, Balance::TwoChoices) => {
                let one = fastrand::usize(..count);
                let other = (one + fastrand::usize(1..count)) % count;
                if load(other) < load(one) { other } else { one }
            }
            // from another one on each time, so that idle ones share
            (_, Balance::LeastLoaded) => {
                let begin = self.turn.fetch_add(1, Ordering::Relaxed);
                (0..count).map(|step| (begin + step) % count).min_by_key(|at| load(*at)).unwrap_or(0)
            }
        };
        among.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn three(balance: Balance) -> Instances {
        let instances = Instances::new(balance);
        instances.set(vec![addr(3), addr(1), addr(2), addr(1)]);
        instances
    }

    fn share(instances: &Instances, now_ms: u64, times: usize) -> [usize; 3] {
        let mut share = [0; 3];
        for _ in 0..times {
            share[usize::from(instances.next(now_ms, &[]).unwrap().addr.port()) - 1] += 1;
        }
        share
    }

    #[test]
    fn each_way_to_choose_uses_all_and_spares_the_loaded() {
        assert_eq!(share(&three(Balance::RoundRobin), 0, 30), [10; 3]);
        for balance in [Balance::TwoChoices, Balance::LeastLoaded] {
            let instances = three(balance);
            assert!(share(&instances, 0, 300).iter().all(|times| *times > 50), "{balance:?}");
            instances.known()[0].under_way.store(9, Ordering::Relaxed);
            assert_eq!(share(&instances, 0, 300)[0], 0, "{balance:?}");
        }
    }

    #[test]
    fn what_cannot_be_reached_is_passed_over_for_a_while_and_longer_each_time() {
        let instances = three(Balance::RoundRobin);
        let first = instances.known()[0].clone();
        first.is_away(0);
        first.is_away(0);
        assert_eq!(share(&instances, 499, 30)[0], 0);
        assert_eq!(share(&instances, 500, 30)[0], 10);
        first.is_away(500);
        assert_eq!((share(&instances, 1_499, 30)[0], share(&instances, 1_500, 30)[0]), (0, 10));
        first.is_well();
        first.is_away(2_000);
        assert_eq!(share(&instances, 2_500, 30)[0], 10, "it was well in between");
        // all away: better one of them than none; and none twice for one request
        instances.known().iter().for_each(|instance| instance.is_away(3_000));
        assert!(instances.next(3_000, &[]).is_some());
        assert_eq!(instances.next(3_000, &[addr(1), addr(2)]).unwrap().addr, addr(3));
        assert!(instances.next(3_000, &[addr(1), addr(2), addr(3)]).is_none());
    }

    #[test]
    fn some_bad_answers_in_a_row_are_as_bad_as_none() {
        let instances = three(Balance::RoundRobin);
        let first = instances.known()[0].clone();
        for _ in 0..3 {
            (1..BAD_IN_A_ROW).for_each(|_| first.is_bad(0));
            first.is_well();
        }
        assert!(!first.is_passed_over(0));
        (0..BAD_IN_A_ROW).for_each(|_| first.is_bad(0));
        assert!(first.is_passed_over(0));
    }

    #[test]
    fn what_is_known_of_an_instance_stays_with_it() {
        let instances = three(Balance::RoundRobin);
        instances.known()[1].is_away(0);
        instances.set(vec![addr(2), addr(4)]);
        let known = instances.known();
        assert_eq!(known.iter().map(|instance| instance.addr.port()).collect::<Vec<_>>(), [2, 4]);
        assert!(known[0].is_passed_over(0) && !known[1].is_passed_over(0));
    }
}
