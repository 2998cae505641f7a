//! Receive buffers that the kernel picks from: a ring of them, registered once, given back one by one.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The one group of buffers that a ring has.
pub(super) const GROUP: u16 = 0;

/// Fewest and most buffers; both powers of two. Few and large where connections are few; where they are many, about
/// as many as connections, since all may be answered at once.
const FEWEST: usize = 64;
const MOST: usize = 4_096;
/// What all buffers of a thread take together, unless they would be smaller than the smallest. Pages that are never
/// written to are never given by the system.
const TOTAL_BYTES: usize = 4 << 20;
const SMALLEST_BYTES: usize = 4 << 10;
const LARGEST_BYTES: usize = 32 << 10;
/// Buffers begin this much further into their page than the one before: answers are mostly small, and without it
/// the beginnings of all buffers would share the same few places of the processor's caches.
const STAGGER_BYTES: usize = 3 * 64;
/// The kernel wants the ring of entries to begin on a page.
const PAGE_BYTES: usize = 4 << 10;

/// Memory for the ring of entries and, behind it, the buffers.
pub(super) struct Buffers {
    memory: NonNull<u8>,
    layout: Layout,
    count: u16,
    buffer_bytes: usize,
    tail: u16,
}

// SAFETY: the memory belongs to this value alone (and to the kernel, which does not care for threads); nothing in it
// depends on the thread.
#[allow(unsafe_code)]
unsafe impl Send for Buffers {}

impl Buffers {
    /// For so many connections; all buffers are the kernel's once [registered](Buffers::register).
    pub fn new(connections: usize) -> Self {
        let count = match connections.next_power_of_two() {
            most if most > connections && most > TOTAL_BYTES / SMALLEST_BYTES => most / 2,
            enough => enough,
        };
        let count = count.clamp(FEWEST, MOST);
        let buffer_bytes = (TOTAL_BYTES / count).clamp(SMALLEST_BYTES, LARGEST_BYTES);
        let ring_bytes = (count * size_of::<BufRingEntry>()).next_multiple_of(PAGE_BYTES);
        let layout = Layout::from_size_align(ring_bytes + count * (buffer_bytes + STAGGER_BYTES), PAGE_BYTES)
            .expect("a few megabytes are a right layout");
        // SAFETY: the layout's size is not zero.
        #[allow(unsafe_code)]
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        let mut buffers = Buffers { memory, layout, count: count as u16, buffer_bytes, tail: 0 };
        for buffer in 0..count as u16 {
            buffers.give_back(buffer);
        }
        buffers
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count.into()
    }

    /// Makes them known to a ring. They must outlive it.
    pub fn register(&self, submitter: &Submitter<'_>) -> io::Result<()> {
        // SAFETY: `memory` begins with `count` entries on a page of its own; it is freed only with this value, which
        // the caller keeps until the ring is gone.
        #[allow(unsafe_code)]
        unsafe {
            submitter.register_buf_ring_with_flags(self.memory.as_ptr() as u64, self.count, GROUP, 0)
        }
    }

    fn buffer(&self, buffer: u16) -> *mut u8 {
        debug_assert!(buffer < self.count, "the kernel names a buffer that it was given");
        let stride_bytes = self.buffer_bytes + STAGGER_BYTES;
        let ring_bytes = self.layout.size() - self.count as usize * stride_bytes;
        // SAFETY: within the allocation, as the number is below `count`.
        #[allow(unsafe_code)]
        unsafe {
            self.memory.as_ptr().add(ring_bytes + buffer as usize * stride_bytes)
        }
    }

    /// The bytes that the kernel has put into a buffer, which is ours until it is given back.
    pub fn bytes(&self, buffer: u16, bytes: usize) -> &[u8] {
        assert!(buffer < self.count && bytes <= self.buffer_bytes, "the kernel stays within a buffer");
        // SAFETY: within the allocation, initialised (zeroed, then written by the kernel), and not written to while
        // the buffer is ours; giving it back needs `&mut self`.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.buffer(buffer), bytes)
        }
    }

    /// The kernel may fill it again.
    pub fn give_back(&mut self, buffer: u16) {
        assert!(buffer < self.count, "only buffers of this ring are given back");
        let address = self.buffer(buffer) as u64;
        let ring = self.memory.cast::<BufRingEntry>().as_ptr();
        // SAFETY: the slot lies within the ring of entries; the kernel reads it only after the tail has passed it,
        // and writes only to buffers. The tail lies in the first entry, which the allocation holds; it is aligned
        // for 16 bits and only written here.
        #[allow(unsafe_code)]
        unsafe {
            let entry = &mut *ring.add((self.tail & (self.count - 1)) as usize);
            entry.set_addr(address);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`, and not freed before.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(self.memory.as_ptr(), self.layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_overlap_and_stay_within_the_bound() {
        for connections in [0, 1, 100, 128, 129, 1_000, 1_500, 3_000, 50_000] {
            let buffers = Buffers::new(connections);
            // 4 KiB a connection is what the driver may need in all, beside some megabytes.
            let most = TOTAL_BYTES.max(SMALLEST_BYTES * connections.min(MOST));
            let most = most + buffers.count as usize * (STAGGER_BYTES + 16) + 3 * PAGE_BYTES;
            assert!(buffers.count.is_power_of_two() && buffers.layout.size() <= most, "{connections}");
            let first = buffers.buffer(0) as usize;
            let last = buffers.buffer(buffers.count - 1) as usize;
            assert_eq!(last - first, (buffers.count as usize - 1) * (buffers.buffer_bytes + STAGGER_BYTES));
            let end = buffers.memory.as_ptr() as usize + buffers.layout.size();
            assert_eq!(last + buffers.buffer_bytes + STAGGER_BYTES, end);
            assert!(buffers.bytes(buffers.count - 1, buffers.buffer_bytes).iter().all(|byte| *byte == 0));
        }
    }
}
