//! A fence that costs one side nothing.
//!
//! Sender and receiver meet in the classic way: each writes a flag of its own and then reads the other's (the sender a
//! message, then "is somebody asleep?"; the receiver "I go to sleep", then "is there a message?"). That is safe only if a
//! full fence stands between write and read on both sides. A fence for each message would cost the sender more than the
//! rest of its work. So the side that is about to sleep, which can afford it, has the kernel fence *all* threads of the
//! process (`membarrier`, Linux 4.14 or later), and the fast side only keeps the compiler from moving things about.
//! Where the kernel does not offer that, both sides have an ordinary fence.

use crate::sync::{Ordering, fence};

/// Both halves; a copy is in each end of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    by_kernel: bool,
}

impl Fence {
    pub(crate) fn new() -> Fence {
        Fence { by_kernel: kernel::offers() }
    }

    /// The fast side, between its write and its read.
    #[inline(always)]
    pub(crate) fn light(self) {
        if self.by_kernel {
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The side that goes to sleep, between its write and its read.
    pub(crate) fn heavy(self) {
        fence(Ordering::SeqCst);
        if self.by_kernel {
            kernel::fence_all_threads();
        }
    }
}

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
mod kernel {
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

    /// By when a write is visible to other cores without any fence, with orders of magnitude to spare.
    const VISIBLE_BY: Duration = Duration::from_millis(1);

    pub(super) fn offers() -> bool {
        static OFFERS: OnceLock<bool> = OnceLock::new();
        *OFFERS.get_or_init(|| {
            membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
                && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        })
    }

    pub(super) fn fence_all_threads() {
        // Once registered it fails only if somebody forbade the call since then. The fast side cannot be told, so that
        // time has to do what the kernel does not.
        if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
            std::thread::sleep(VISIBLE_BY);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
mod kernel {
    pub(super) fn offers() -> bool {
        false
    }

    pub(super) fn fence_all_threads() {}
}
