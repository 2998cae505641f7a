//! What the machine allows: numbers in a ring of memory and one index on either side, by hand. It cannot wait but by
//! spinning, nor close, nor hold anything but numbers: no queue, only the bound of one.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::job::Job;

/// Numbers that are handed over at a time, and how many of them ahead the memory is fetched.
const PIECE: u64 = 128;
const PIECES_AHEAD: u64 = 2;
const NUMBERS_A_LINE: usize = 8;

/// Alone on its cache lines.
#[repr(align(128))]
struct Index(AtomicU64);

struct Ring {
    cells: Box<[UnsafeCell<u64>]>,
    written: Index,
    taken: Index,
}

// SAFETY: the sender writes to cells between `written` and `taken` plus the capacity, the receiver reads those between
// `taken` and `written`; each moves its index on only when it is done with them.
#[allow(unsafe_code)]
unsafe impl Sync for Ring {}

impl Ring {
    /// The cells of a piece; pieces do not wrap, since the capacity is a multiple of theirs.
    fn piece(&self, position: u64) -> *mut u64 {
        self.cells[(position % self.cells.len() as u64) as usize].get()
    }

    fn send(&self, share: Range<u64>) {
        let capacity = self.cells.len() as u64;
        let mut taken = 0;
        for first in share.clone().step_by(PIECE as usize) {
            let count = PIECE.min(share.end - first);
            while first + count - taken > capacity {
                taken = self.taken.0.load(Ordering::Acquire);
                spin_loop();
            }
            fetch_for_writing(self.piece(first + PIECES_AHEAD * PIECE));
            // SAFETY: these cells are free, and the sender's until it moves its index on.
            #[allow(unsafe_code)]
            let cells = unsafe { std::slice::from_raw_parts_mut(self.piece(first), count as usize) };
            for (cell, number) in cells.iter_mut().zip(first..) {
                *cell = number;
            }
            self.written.0.store(first + count, Ordering::Release);
        }
    }

    fn receive(&self, messages: u64) -> u64 {
        let (mut sum, mut written) = (0_u64, 0);
        for first in (0..messages).step_by(PIECE as usize) {
            let count = PIECE.min(messages - first);
            while written < first + count {
                written = self.written.0.load(Ordering::Acquire);
                spin_loop();
            }
            // SAFETY: these cells have been written, and are the receiver's until it moves its index on.
            #[allow(unsafe_code)]
            let cells = unsafe { std::slice::from_raw_parts(self.piece(first), count as usize) };
            sum = cells.iter().fold(sum, |sum, number| sum.wrapping_add(*number));
            self.taken.0.store(first + count, Ordering::Release);
        }
        sum
    }
}

/// Asks for the memory of a piece, to be written soon.
fn fetch_for_writing(piece: *mut u64) {
    for offset in (0..PIECE as usize).step_by(NUMBERS_A_LINE) {
        // SAFETY: a hint, which touches neither memory nor flags.
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!(
                "prefetchw [{}]",
                in(reg) piece.wrapping_add(offset),
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = piece.wrapping_add(offset);
    }
}

/// One sender's numbers; the job's batches are of no account.
pub fn run(job: &Job) -> Duration {
    assert!(job.senders == 1 && (job.capacity as u64).is_multiple_of(PIECE));
    let cells = (0..job.capacity).map(|_| UnsafeCell::new(0)).collect();
    let ring = Arc::new(Ring { cells, written: Index(AtomicU64::new(0)), taken: Index(AtomicU64::new(0)) });
    let sending = ring.clone();
    let messages = job.messages;
    job.time(vec![move |share| sending.send(share)], move || ring.receive(messages))
}
