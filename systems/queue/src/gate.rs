//! Where those wait that found nothing to do, and where they are woken.

use std::task::Waker;

use crossbeam_utils::CachePadded;

use crate::fence::Fence;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Somebody waits at the gate.
const WAITING: usize = 1;
/// The queue takes no more messages. Beside the other bit, so that a sender learns both by one look.
const CLOSED: usize = 2;

/// A gate. Whoever waits puts its waker in, fences ([`Fence::heavy`]) and looks once more at what it waits for; whoever
/// has changed that fences ([`Fence::light`]) and looks at the gate. So one of the two sees the other.
#[derive(Debug)]
pub(crate) struct Gate {
    signal: CachePadded<AtomicUsize>,
    /// In the order of their coming; at most one for each key.
    waiters: Mutex<Vec<(usize, Waker)>>,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate { signal: CachePadded::new(AtomicUsize::new(0)), waiters: Mutex::new(Vec::new()) }
    }

    /// Whether there is anything to look after: waiters, or the queue's end.
    #[inline(always)]
    pub(crate) fn is_raised(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.signal.load(Ordering::Acquire) & CLOSED != 0
    }

    pub(crate) fn close(&self) {
        self.signal.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Waits from now on, under this key; a second time under it replaces the first.
    pub(crate) fn register(&self, key: usize, waker: &Waker) {
        let mut replaced = None;
        {
            let mut waiters = lock(&self.waiters);
            match waiters.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) if known.will_wake(waker) => {}
                Some((_, known)) => replaced = Some(std::mem::replace(known, waker.clone())),
                None => waiters.push((key, waker.clone())),
            }
            self.signal.fetch_or(WAITING, Ordering::SeqCst);
        }
        // a waker is foreign code, also where it is dropped
        drop(replaced);
    }

    /// Waits no more. False if it had been woken (or never waited).
    pub(crate) fn remove(&self, key: usize) -> bool {
        let mut waiters = lock(&self.waiters);
        let found = waiters.iter().position(|(known, _)| *known == key);
        let removed = found.map(|index| waiters.remove(index));
        self.settle(&waiters);
        drop(waiters);
        removed.is_some()
    }

    fn settle(&self, waiters: &[(usize, Waker)]) {
        if waiters.is_empty() {
            self.signal.fetch_and(!WAITING, Ordering::SeqCst);
        }
    }

    /// Wakes the one who has waited longest, if anybody waits.
    pub(crate) fn wake_one(&self) {
        self.wake_first(|_| true);
    }

    /// Wakes another than the one with this key.
    pub(crate) fn wake_another(&self, key: usize) {
        self.wake_first(|other| other != key);
    }

    fn wake_first(&self, may_be: impl Fn(usize) -> bool) {
        let woken = {
            let mut waiters = lock(&self.waiters);
            let first = waiters.iter().position(|(key, _)| may_be(*key));
            let woken = first.map(|index| waiters.remove(index).1);
            self.settle(&waiters);
            woken
        };
        if let Some(waker) = woken {
            waker.wake();
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        let woken = {
            let mut waiters = lock(&self.waiters);
            let all = std::mem::take(&mut *waiters);
            self.settle(&waiters);
            all
        };
        for (_, waker) in woken {
            waker.wake();
        }
    }

    /// What the fast side does after each change that somebody may wait for.
    #[inline(always)]
    pub(crate) fn after_change(&self, fence: Fence) {
        fence.light();
        if self.is_raised() {
            self.wake_one();
        }
    }
}
