//! How an end waits for the other.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

use crate::fence::Fence;
use crate::gate::Gate;
use crate::sync::{AtomicBool, Ordering, relax, thread};

/// How a blocking end waits while there is nothing for it to do. Async ends do not wait: their task is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Spins for some microseconds (fewer the less often that helped, and not at all on a machine with one core), lets
    /// others run a few times, then sleeps until it is woken.
    #[default]
    Auto,
    /// Spins and never gives its core up: the shortest wait, for ends that have a core each.
    Spin,
    /// Lets other threads run between two looks, and never sleeps.
    Yield,
    /// Sleeps at once, until it is woken: the least CPU.
    Park,
}

/// What a look at the queue may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Only what the sender handed over as a batch.
    Published,
    /// Whatever has been sent.
    Written,
}

/// Looks at finished batches only before an idle receiver takes what there is of an unfinished one: as long as a batch
/// takes a busy sender, so that looking does not slow it down.
const PATIENCE_LOOKS: u32 = if cfg!(loom) { 0 } else { 80 };
/// Bounds of the adaptive spinning of `Auto`, in looks; between two there is one pause of the processor (some 15 to 40 ns).
const SPIN_LOOKS_MIN: u32 = if cfg!(loom) { 0 } else { PATIENCE_LOOKS };
const SPIN_LOOKS_MAX: u32 = if cfg!(loom) { 0 } else { 512 };
/// Times that `Auto` lets others run before it sleeps.
const YIELDS: u32 = if cfg!(any(loom, miri)) { 0 } else { 4 };
/// A spinning end looks at the clock once in so many looks.
const LOOKS_BETWEEN_CLOCKS: u32 = 256;

/// The waiting of one end, which learns from how it went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    strategy: Wait,
    /// Looks before `Auto` gives up spinning.
    spin_looks: u32,
    alone: bool,
}

impl Waiter {
    pub(crate) fn new(strategy: Wait) -> Waiter {
        let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        Waiter { strategy, spin_looks: SPIN_LOOKS_MAX, alone }
    }

    /// Looks until there is something, waiting in between at the gate under this key; nothing if the deadline passes.
    pub(crate) fn wait<R>(
        &mut self,
        gate: &Gate,
        key: usize,
        fence: Fence,
        deadline: Option<Instant>,
        mut look: impl FnMut(Look) -> Option<R>,
    ) -> Option<R> {
        // woken, and not yet done anything for it: who leaves empty-handed wakes another instead
        let mut owes = false;
        loop {
            if let Some(found) = self.awake(deadline, &mut look) {
                if owes {
                    gate.wake_one();
                }
                return found;
            }
            let sleeper = Sleeper::this_thread();
            gate.register(key, &Waker::from(sleeper.clone()));
            fence.heavy();
            let mut found = look(Look::Written);
            let in_time = found.is_some() || sleeper.sleep(deadline);
            owes |= !gate.remove(key);
            if !in_time {
                found = look(Look::Written);
            }
            if found.is_some() || !in_time {
                if owes {
                    gate.wake_one();
                }
                return found;
            }
        }
    }

    /// The part before sleep. `Some(None)` if the deadline passed, `None` if it is time to sleep.
    fn awake<R>(
        &mut self,
        deadline: Option<Instant>,
        look: &mut impl FnMut(Look) -> Option<R>,
    ) -> Option<Option<R>> {
        let spins = match self.strategy {
            _ if self.alone => 0,
            Wait::Auto => self.spin_looks,
            Wait::Spin => u32::MAX,
            Wait::Yield | Wait::Park => PATIENCE_LOOKS,
        };
        for spun in 0..spins {
            let kind = if spun < PATIENCE_LOOKS { Look::Published } else { Look::Written };
            if let Some(found) = look(kind) {
                if self.strategy == Wait::Auto {
                    self.spin_looks = (self.spin_looks * 2).clamp(SPIN_LOOKS_MIN, SPIN_LOOKS_MAX);
                }
                return Some(Some(found));
            }
            relax();
            if spun % LOOKS_BETWEEN_CLOCKS == LOOKS_BETWEEN_CLOCKS - 1 && passed(deadline) {
                return Some(look(Look::Written));
            }
        }
        let yields = match self.strategy {
            Wait::Auto => YIELDS,
            Wait::Park => 0,
            Wait::Yield | Wait::Spin => u32::MAX,
        };
        for _ in 0..yields {
            if let Some(found) = look(Look::Written) {
                return Some(Some(found));
            }
            thread::yield_now();
            if passed(deadline) {
                return Some(look(Look::Written));
            }
        }
        self.spin_looks = (self.spin_looks / 2).max(SPIN_LOOKS_MIN);
        None
    }
}

fn passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// A thread that sleeps, as its waker knows it.
struct Sleeper {
    thread: thread::Thread,
    woken: AtomicBool,
}

impl Sleeper {
    fn new() -> Arc<Sleeper> {
        Arc::new(Sleeper { thread: thread::current(), woken: AtomicBool::new(false) })
    }

    /// The thread that runs.
    #[cfg(not(loom))]
    fn this_thread() -> Arc<Sleeper> {
        thread_local! {
            static SLEEPER: Arc<Sleeper> = Sleeper::new();
        }
        SLEEPER.try_with(Arc::clone).unwrap_or_else(|_| Sleeper::new())
    }

    #[cfg(loom)]
    fn this_thread() -> Arc<Sleeper> {
        Sleeper::new()
    }

    /// Sleeps until woken (or for no reason at all); false if the deadline has passed.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        if self.woken.swap(false, Ordering::Acquire) {
            return true;
        }
        let Some(deadline) = deadline else {
            thread::park();
            return true;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        #[cfg(not(loom))]
        thread::park_timeout(left);
        #[cfg(loom)]
        thread::yield_now();
        true
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
