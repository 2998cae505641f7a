//! The memory under a ring: slots of which the ring's cursors say who may touch which.

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// Memory moves between cores in lines of so many bytes.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const CACHE_LINE_BYTES: usize = 64;
/// About as much as a core can have in flight at a time.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const FETCH_BYTES_MAX: usize = 32 * CACHE_LINE_BYTES;

/// Room for one message.
pub(crate) type Cell<T> = UnsafeCell<MaybeUninit<T>>;

/// A power of two of slots, addressed by positions that only grow.
pub(crate) struct Slots<T> {
    cells: Box<[Cell<T>]>,
    mask: u64,
}

// SAFETY: a slot holds a message on its way from one thread to another, which `T: Send` allows. Nobody gets at a slot
// but through the unsafe functions below, whose callers vouch that no two threads use one at the same time.
#[allow(unsafe_code)]
unsafe impl<T: Send> Sync for Slots<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Slots<T> {}

impl<T> Slots<T> {
    pub(crate) fn new(capacity: usize) -> Slots<T> {
        assert!(capacity.is_power_of_two());
        let cells = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Slots { cells, mask: capacity as u64 - 1 }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.mask + 1
    }

    #[inline(always)]
    fn index(&self, position: u64) -> usize {
        (position & self.mask) as usize
    }

    /// How many of the positions from `from` on, up to `to`, lie in one piece.
    #[inline]
    pub(crate) fn contiguous(&self, from: u64, to: u64) -> u64 {
        debug_assert!(from <= to && to - from <= self.capacity());
        (to - from).min(self.capacity() - (from & self.mask))
    }

    /// Where the slot of a position lies; the pointer may be used for those behind it, too, as far as they lie in one piece.
    #[inline(always)]
    pub(crate) fn cell(&self, position: u64) -> *const Cell<T> {
        let index = self.index(position);
        debug_assert!(index < self.cells.len());
        // SAFETY: the mask keeps the index below the number of cells, which is a power of two.
        #[allow(unsafe_code)]
        unsafe {
            self.cells.as_ptr().add(index)
        }
    }

    /// Asks for the memory of `count` slots from here on, to be written soon. It is in the cache of whoever took out of them,
    /// and a core that asks for one line after the other, at its first write, waits for each.
    #[inline]
    pub(crate) fn fetch_for_writing(&self, from: u64, count: u64) {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        {
            let piece = self.contiguous(from, from + count.min(self.capacity())) as usize * size_of::<T>();
            let start = self.cell(from).cast::<u8>();
            for offset in (0..piece.min(FETCH_BYTES_MAX)).step_by(CACHE_LINE_BYTES) {
                // SAFETY: a hint, which touches neither memory nor flags; a processor that does not know it does nothing.
                #[allow(unsafe_code)]
                unsafe {
                    std::arch::asm!(
                        "prefetchw [{}]",
                        in(reg) start.wrapping_add(offset),
                        options(nostack, preserves_flags, readonly)
                    );
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
        let _ = (from, count);
    }

    /// Puts a message into a slot.
    ///
    /// # Safety
    /// The caller has this slot to itself, and it holds no message.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn write(&self, position: u64, message: T) {
        // SAFETY: as the caller says.
        unsafe { put_into(self.cell(position), message) }
    }

    /// Puts messages into up to `count` slots; says how many there were.
    ///
    /// # Safety
    /// The caller has these slots to itself, they lie in one piece, and they hold no messages.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn fill(&self, from: u64, count: u64, messages: &mut impl Iterator<Item = T>) -> u64 {
        debug_assert!(self.contiguous(from, from + count) == count);
        let first = self.cell(from);
        // from slot to slot instead of from position to position, which are masked each: this can be vectorised
        for filled in 0..count {
            let Some(message) = messages.next() else { return filled };
            // SAFETY: as the caller says, for one slot after the other.
            unsafe { put_into(first.add(filled as usize), message) }
        }
        count
    }

    /// Takes the message out of a slot.
    ///
    /// # Safety
    /// The caller has this slot to itself, and it holds a message, which it does not any more afterwards.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn read(&self, position: u64) -> T {
        // SAFETY: as the caller says.
        unsafe { take_out(self.cell(position)) }
    }

    /// The messages in `count` slots that lie in one piece, where they are.
    ///
    /// # Safety
    /// The caller has these slots to itself for as long as it keeps the slice, and each holds a message.
    #[cfg(not(loom))]
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn slice(&self, from: u64, count: u64) -> &[T] {
        debug_assert!(self.contiguous(from, from + count) == count);
        // SAFETY: `count` slots in one piece from here on, all holding messages; a cell has the layout of its message.
        unsafe {
            std::slice::from_raw_parts(UnsafeCell::raw_get(self.cell(from)).cast::<T>(), count as usize)
        }
    }

    /// Copies messages into slots.
    ///
    /// # Safety
    /// The caller has these slots to itself, they lie in one piece, and they hold no messages.
    #[cfg(not(loom))]
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn copy_in(&self, from: u64, messages: &[T])
    where
        T: Copy,
    {
        debug_assert!(self.contiguous(from, from + messages.len() as u64) == messages.len() as u64);
        // SAFETY: the slots are the caller's alone and in one piece, hence apart from `messages`.
        unsafe {
            let first = UnsafeCell::raw_get(self.cell(from)).cast::<T>();
            std::ptr::copy_nonoverlapping(messages.as_ptr(), first, messages.len());
        }
    }
}

/// Puts a message into a slot.
///
/// # Safety
/// It is a slot, which the caller has to itself, and it holds no message.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn put_into<T>(cell: *const Cell<T>, message: T) {
    // SAFETY: the slot is the caller's alone.
    #[cfg(not(loom))]
    unsafe {
        (*UnsafeCell::raw_get(cell)).write(message);
    }
    // SAFETY: the same, which loom checks.
    #[cfg(loom)]
    unsafe {
        (*cell).with_mut(|cell| {
            (*cell).write(message);
        });
    }
}

/// Takes the message out of a slot.
///
/// # Safety
/// It is a slot, which the caller has to itself, and it holds a message, which it does not any more afterwards.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) unsafe fn take_out<T>(cell: *const Cell<T>) -> T {
    // SAFETY: the slot is the caller's alone and holds a message.
    #[cfg(not(loom))]
    unsafe {
        (*UnsafeCell::raw_get(cell)).assume_init_read()
    }
    // SAFETY: the same, which loom checks.
    #[cfg(loom)]
    unsafe {
        (*cell).with_mut(|cell| (*cell).assume_init_read())
    }
}
