//! Waking many at once.

use std::collections::VecDeque;
use std::task::Waker;

/// So many are on their way into the cache while one is woken.
const AHEAD: usize = 8;

/// Wakes them in order. What is woken lies anywhere, out of the cache where there are thousands, and waking writes there:
/// one after the other, each would be waited for.
pub(super) fn wake_all(wakers: &mut VecDeque<Waker>) {
    wakers.iter().take(AHEAD).for_each(fetch);
    while let Some(waker) = wakers.pop_front() {
        wakers.get(AHEAD - 1).into_iter().for_each(fetch);
        waker.wake();
    }
}

/// Asks for the memory that waking writes.
fn fetch(waker: &Waker) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: a hint, which touches neither memory nor flags, whatever the address is.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) waker.data(), options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = waker;
}
