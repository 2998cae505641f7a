//! Buffers and decoders of a worker, which its connections have only while they need them.

use std::cell::{Cell, RefCell};

use tidemark_wire::http1::{DecoderLimits, RequestDecoder};

use crate::Limits;

/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// Decoders and buffers that a worker keeps for whoever needs one next.
const SPARE_MAX: usize = 16;
/// A spare buffer is no larger than this, nor what a spare decoder holds: whoever gets it next may keep it for long.
const SPARE_BYTES_MAX: usize = 128 << 10;
thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    // boxed, as what a connection has of them while it waits is a pointer
    #[allow(clippy::vec_box)]
    static DECODERS: RefCell<Vec<Box<RequestDecoder>>> = const { RefCell::new(Vec::new()) };
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// With the buffer that the worker reads into.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut scratch = SCRATCH.take();
    scratch.resize(READ_BYTES, 0);
    let done = work(&mut scratch);
    SCRATCH.set(scratch);
    done
}

/// A decoder at the beginning of a request.
pub(crate) fn spare_decoder(limits: &Limits) -> Box<RequestDecoder> {
    DECODERS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
        Box::new(RequestDecoder::new(DecoderLimits {
            head_bytes: limits.head_bytes_max,
            headers: limits.headers_max,
            body_bytes: limits.body_bytes_max,
        }))
    })
}

/// For the next request of any connection.
pub(crate) fn give_decoder_back(mut decoder: Box<RequestDecoder>) {
    DECODERS.with_borrow_mut(|spare| {
        if spare.len() < SPARE_MAX && decoder.held_bytes() <= SPARE_BYTES_MAX {
            decoder.start();
            spare.push(decoder);
        }
    });
}

/// An empty buffer of this worker's, with room if there was one to spare.
pub fn spare_buffer() -> Vec<u8> {
    BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// What is in it is forgotten.
pub(crate) fn give_back(mut buffer: Vec<u8>) {
    BUFFERS.with_borrow_mut(|spare| {
        if spare.len() < SPARE_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            spare.push(buffer);
        }
    });
}
