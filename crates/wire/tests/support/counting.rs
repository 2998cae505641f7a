//! The system's allocator that tells of each allocation, for tests of what allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};

/// Calls this whenever something is allocated.
pub struct Counting(pub fn());

// SAFETY: everything is handed on to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        (self.0)();
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
