//! Memory of JavaScript runtimes: pieces of slabs that the users of a thread share.
//!
//! A user's runtime takes some 70 blocks of 4 KiB. From the system's allocator each of them is a system call and a page
//! fault, and with a thousand users the processor looks their pages up again and again. A slab is one huge page, where the
//! kernel has them. Slabs are given back when the thread has ended, and its runtimes are gone.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;

use rquickjs::allocator::Allocator;

/// Bytes of a slab, and its alignment: a huge page.
const SLAB: usize = 2 << 20;
/// Bytes before what is given: the class of a piece, or the bytes of a block that is none.
const HEADER: usize = 16;
/// Sizes of pieces, bytes, with their headers. QuickJS asks for blocks of up to 4 KiB, in which it keeps small objects.
const CLASSES: [usize; 17] =
    [544, 672, 832, 1024, 1280, 1600, 2048, 2560, 3200, 4112, 5120, 6400, 8208, 8560, 12_304, 16_400, 32_784];

/// The slabs of a thread.
#[derive(Default)]
struct Slabs {
    all: Vec<*mut u8>,
    /// Bytes of the last one that are in use.
    used: usize,
    /// Pieces that nobody has, by their class; each has the next one in its first bytes.
    free: [Option<ptr::NonNull<u8>>; CLASSES.len()],
}

thread_local! {
    static SLABS: Rc<RefCell<Slabs>> = Rc::default();
}

fn layout_of_slab() -> Layout {
    Layout::from_size_align(SLAB, SLAB).unwrap_or(Layout::new::<u128>())
}

fn layout_of(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, HEADER).ok()
}

impl Slabs {
    /// A piece of a class; null where there is no memory.
    fn take(&mut self, class: usize) -> *mut u8 {
        if let Some(piece) = self.free[class] {
            // SAFETY: a free piece has the next one in its first bytes.
            #[allow(unsafe_code)]
            let next = unsafe { piece.cast::<Option<ptr::NonNull<u8>>>().read() };
            self.free[class] = next;
            return piece.as_ptr();
        }
        let bytes = CLASSES[class];
        if self.all.is_empty() || self.used + bytes > SLAB {
            // SAFETY: the layout has a size.
            #[allow(unsafe_code)]
            let slab = unsafe { alloc(layout_of_slab()) };
            if slab.is_null() {
                return slab;
            }
            advise(slab);
            self.all.push(slab);
            self.used = 0;
        }
        let slab = self.all.last().copied().unwrap_or(ptr::null_mut());
        let piece = slab.wrapping_add(self.used);
        self.used += bytes;
        piece
    }

    fn give_back(&mut self, class: usize, piece: *mut u8) {
        let Some(piece) = ptr::NonNull::new(piece) else { return };
        // SAFETY: the piece is large enough, aligned, and nobody has it any more.
        #[allow(unsafe_code)]
        unsafe {
            piece.cast::<Option<ptr::NonNull<u8>>>().write(self.free[class]);
        }
        self.free[class] = Some(piece);
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        for slab in self.all.drain(..) {
            // SAFETY: it was allocated with this layout, and no runtime is left that has a piece of it.
            #[allow(unsafe_code)]
            unsafe {
                dealloc(slab, layout_of_slab());
            }
        }
    }
}

/// Asks the kernel for a huge page; without one a slab is pages as others.
fn advise(slab: *mut u8) {
    #[cfg(target_os = "linux")]
    // SAFETY: the range is the slab's own.
    #[allow(unsafe_code)]
    let _ = unsafe { rustix::mm::madvise(slab.cast(), SLAB, rustix::mm::Advice::LinuxHugepage) };
    #[cfg(not(target_os = "linux"))]
    let _ = slab;
}

/// What a runtime takes its memory from.
pub(crate) struct Pieces(Rc<RefCell<Slabs>>);

impl Pieces {
    /// From the slabs of this thread.
    pub fn of_thread() -> Pieces {
        Pieces(SLABS.with(Rc::clone))
    }
}

/// What stands before a block: its class, or what is beyond all of them.
#[derive(Clone, Copy)]
struct Head {
    class: usize,
    /// Bytes, with the header.
    bytes: usize,
}

/// The head of a block.
///
/// # Safety
/// The block is one that [`Pieces`] gave.
#[allow(unsafe_code)]
unsafe fn head(block: *mut u8) -> Head {
    // SAFETY: a block has its head before it.
    unsafe { block.sub(HEADER).cast::<Head>().read() }
}

// SAFETY: blocks are as large as is asked for, aligned to 16 bytes, and nobody else's until they are given back; a runtime
// stays on its thread.
#[allow(unsafe_code)]
unsafe impl Allocator for Pieces {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        let Some(bytes) = size.checked_add(HEADER) else { return ptr::null_mut() };
        let class = CLASSES.partition_point(|most| *most < bytes);
        let (block, bytes) = match CLASSES.get(class) {
            Some(most) => (self.0.borrow_mut().take(class), *most),
            None => match layout_of(bytes) {
                // SAFETY: the layout has a size.
                Some(layout) => (unsafe { alloc(layout) }, bytes),
                None => return ptr::null_mut(),
            },
        };
        if block.is_null() {
            return block;
        }
        // SAFETY: the block has room for its head, and is aligned for it.
        unsafe {
            block.cast::<Head>().write(Head { class, bytes });
            block.add(HEADER)
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size) else { return ptr::null_mut() };
        let block = self.alloc(bytes);
        if !block.is_null() {
            // SAFETY: the block has so many bytes.
            unsafe { block.write_bytes(0, bytes) };
        }
        block
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: the caller gives back a block of ours.
        unsafe {
            let Head { class, bytes } = head(block);
            let whole = block.sub(HEADER);
            match (class < CLASSES.len(), layout_of(bytes)) {
                (true, _) => self.0.borrow_mut().give_back(class, whole),
                (false, Some(layout)) => dealloc(whole, layout),
                (false, None) => {}
            }
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.alloc(size);
        }
        // SAFETY: the caller has a block of ours, and no longer uses it where another one is given.
        unsafe {
            let has = Self::usable_size(block);
            if size <= has && size > has / 2 {
                return block;
            }
            let other = self.alloc(size);
            if !other.is_null() {
                ptr::copy_nonoverlapping(block, other, has.min(size));
                self.dealloc(block);
            }
            other
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the caller has a block of ours.
        unsafe { head(block).bytes - HEADER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn blocks_keep_what_is_in_them() {
        let mut pieces = Pieces(Rc::default());
        let mut random = fastrand::Rng::with_seed(7);
        let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
        let is_whole = |(block, bytes, value): &(*mut u8, usize, u8)| {
            // SAFETY: the block has so many bytes.
            unsafe { std::slice::from_raw_parts(*block, *bytes) }.iter().all(|byte| byte == value)
        };
        for turn in 0..20_000_usize {
            let value = turn as u8;
            let bytes = if turn % 50 == 0 { random.usize(0..200_000) } else { random.usize(0..6_000) };
            // SAFETY: blocks are used within their bytes, and given back once.
            unsafe {
                match random.u8(0..5) {
                    0 | 1 => {
                        let block = pieces.alloc(bytes);
                        assert!(block.addr().is_multiple_of(HEADER) && Pieces::usable_size(block) >= bytes);
                        block.write_bytes(value, bytes);
                        blocks.push((block, bytes, value));
                    }
                    2 => {
                        let block = pieces.calloc(bytes, 1);
                        assert!(is_whole(&(block, bytes, 0)));
                        block.write_bytes(value, bytes);
                        blocks.push((block, bytes, value));
                    }
                    3 if !blocks.is_empty() => {
                        let (block, had, was) = blocks.swap_remove(random.usize(0..blocks.len()));
                        let block = pieces.realloc(block, bytes);
                        assert!(is_whole(&(block, had.min(bytes), was)));
                        block.write_bytes(value, bytes);
                        blocks.push((block, bytes, value));
                    }
                    _ if !blocks.is_empty() => {
                        let block = blocks.swap_remove(random.usize(0..blocks.len()));
                        assert!(is_whole(&block));
                        pieces.dealloc(block.0);
                    }
                    _ => {}
                }
            }
            if blocks.len() > 300 {
                let block = blocks.swap_remove(random.usize(0..300));
                // SAFETY: as above.
                unsafe { pieces.dealloc(block.0) };
            }
        }
        assert!(blocks.iter().all(is_whole));
        // SAFETY: as above.
        blocks.into_iter().for_each(|(block, ..)| unsafe { pieces.dealloc(block) });
        assert!(pieces.0.borrow().all.len() < 8, "pieces are used again");
    }
}
