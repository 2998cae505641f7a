//! Completion: a standing receive for each connection, and a send for each answer; all of a round handed in with the wait,
//! in one system call. The kernel picks a buffer and gets it back at once.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::BufRingEntry;
use io_uring::{IoUring, cqueue, opcode, types};

use super::{ANSWER_BYTES, REQUEST};

/// Entries of the submission queue, and of the completion queue.
const ORDERS: u32 = 4_096;
const COMPLETIONS: u32 = 65_536;
/// Buffers; a power of two.
const BUFFERS: u16 = 4_096;
/// The group that they are.
const GROUP: u16 = 0;
/// Marks the completions of sends, which only come where a send failed.
const SEND: u64 = 1 << 32;

/// The kernel wants the ring of buffers to begin on a page.
#[repr(align(4096))]
struct Entries([u8; BUFFERS as usize * size_of::<BufRingEntry>()]);

/// Buffers that the kernel picks from. They live as long as the program: the kernel may write to them until it ends.
struct Buffers {
    entries: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl Buffers {
    fn new() -> Buffers {
        let entries = Box::leak(Box::new(Entries([0; BUFFERS as usize * size_of::<BufRingEntry>()])))
            .0
            .as_mut_ptr()
            .cast();
        let memory =
            Box::leak(vec![0u8; usize::from(BUFFERS) * ANSWER_BYTES].into_boxed_slice()).as_mut_ptr();
        let mut buffers = Buffers { entries, memory, tail: 0 };
        (0..BUFFERS).for_each(|buffer| buffers.give_back(buffer));
        buffers
    }

    fn give_back(&mut self, buffer: u16) {
        assert!(buffer < BUFFERS, "the kernel names a buffer that it was given");
        // SAFETY: both places lie within their allocations, which are never freed. The kernel reads an entry only after the
        // tail has passed it; the tail lies in the first entry, is aligned for 16 bits and written only here.
        #[allow(unsafe_code)]
        unsafe {
            let entry = &mut *self.entries.add(usize::from(self.tail & (BUFFERS - 1)));
            entry.set_addr(self.memory.add(usize::from(buffer) * ANSWER_BYTES) as u64);
            entry.set_len(ANSWER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

pub fn drive(sockets: &[TcpStream], time: Duration) -> std::io::Result<u64> {
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS)
        .build(ORDERS)?;
    let files: Vec<_> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files)?;
    let mut buffers = Buffers::new();
    // SAFETY: the entries begin on a page, are as many as is said, and are never freed.
    #[allow(unsafe_code)]
    unsafe {
        ring.submitter().register_buf_ring_with_flags(buffers.entries as u64, BUFFERS, GROUP, 0)?;
    }
    for index in 0..sockets.len() as u32 {
        order(&mut ring, receive(index))?;
        order(&mut ring, send(index))?;
    }
    let mut come = Vec::with_capacity(COMPLETIONS as usize);
    let (mut answers, start) = (0, Instant::now());
    while start.elapsed() < time {
        ring.submit_and_wait(1)?;
        let news = |news: cqueue::Entry| (news.user_data(), news.result(), news.flags());
        come.extend(ring.completion().map(news));
        for (of, result, flags) in come.drain(..) {
            if result == 0 && of & SEND == 0 {
                return Err(std::io::Error::other("the server closed a connection"));
            }
            let starved = result == -libc::ENOBUFS;
            if of & SEND != 0 || (result < 0 && !starved) {
                return Err(std::io::Error::from_raw_os_error(-result));
            }
            if let Some(buffer) = cqueue::buffer_select(flags) {
                buffers.give_back(buffer);
            }
            if !cqueue::more(flags) {
                order(&mut ring, receive(of as u32))?;
            }
            if !starved {
                answers += 1;
                order(&mut ring, send(of as u32))?;
            }
        }
    }
    Ok(answers)
}

fn receive(index: u32) -> Entry {
    opcode::RecvMulti::new(types::Fixed(index), GROUP).build().user_data(u64::from(index))
}

fn send(index: u32) -> Entry {
    opcode::Send::new(types::Fixed(index), REQUEST.as_ptr(), REQUEST.len() as u32)
        .build()
        .flags(Flags::SKIP_SUCCESS)
        .user_data(SEND | u64::from(index))
}

fn order(ring: &mut IoUring, entry: Entry) -> std::io::Result<()> {
    if ring.submission().is_full() {
        ring.submit()?;
    }
    // SAFETY: what it points to, the request, is static.
    #[allow(unsafe_code)]
    let pushed = unsafe { ring.submission().push(&entry) };
    pushed.map_err(std::io::Error::other)
}
