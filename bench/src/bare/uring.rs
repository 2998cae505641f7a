//! Completion: for each answer a send and a receive, all of a round handed in with one system call.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::squeue::Flags;
use io_uring::{IoUring, opcode, types};

use super::{ANSWER_BYTES, REQUEST};

/// Entries of the submission queue.
const ENTRIES: u32 = 4_096;
/// Marks the completions of sends, which only come where a send failed.
const SEND: u64 = 1 << 32;
/// The first attempt to receive would find nothing: the answer is still to come.
const RECEIVE_POLL_FIRST: u16 = 1;

pub fn drive(sockets: &[TcpStream], time: Duration) -> std::io::Result<u64> {
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .setup_cqsize(2 * ENTRIES.max(u32::try_from(sockets.len()).unwrap_or(u32::MAX / 4)))
        .build(ENTRIES)?;
    let files: Vec<_> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files)?;
    let mut buffers = vec![[0u8; ANSWER_BYTES]; sockets.len()];
    for index in 0..sockets.len() {
        exchange(&mut ring, index, &mut buffers)?;
    }
    let mut come = Vec::with_capacity(ENTRIES as usize);
    let (mut answers, start) = (0, Instant::now());
    while start.elapsed() < time {
        ring.submit_and_wait(1)?;
        come.extend(ring.completion().map(|completion| (completion.user_data(), completion.result())));
        for (of, result) in come.drain(..) {
            if result <= 0 {
                return Err(std::io::Error::from_raw_os_error(-result));
            }
            if of & SEND == 0 {
                answers += 1;
                exchange(&mut ring, of as usize, &mut buffers)?;
            }
        }
    }
    // `ring` is dropped before `buffers`: declared after it, but what is under way must end first
    drop(ring);
    drop(buffers);
    Ok(answers)
}

/// The next request of a connection, and the room for its answer.
fn exchange(ring: &mut IoUring, index: usize, buffers: &mut [[u8; ANSWER_BYTES]]) -> std::io::Result<()> {
    let queue = ring.submission();
    let free = queue.capacity() - queue.len();
    drop(queue);
    if free < 2 {
        ring.submit()?;
    }
    let file = types::Fixed(u32::try_from(index).map_err(std::io::Error::other)?);
    let send = opcode::Send::new(file, REQUEST.as_ptr(), REQUEST.len() as u32)
        .build()
        .flags(Flags::SKIP_SUCCESS)
        .user_data(SEND | index as u64);
    let buffer = &mut buffers[index];
    let receive = opcode::Recv::new(file, buffer.as_mut_ptr(), ANSWER_BYTES as u32)
        .ioprio(RECEIVE_POLL_FIRST)
        .build()
        .user_data(index as u64);
    // SAFETY: the request is static. The buffers are neither moved nor freed while the ring is there, and only the
    // kernel writes to this one until its completion has come, of which there is one under way at most.
    #[allow(unsafe_code)]
    let pushed = unsafe { ring.submission().push_multiple(&[send, receive]) };
    pushed.map_err(std::io::Error::other)
}
