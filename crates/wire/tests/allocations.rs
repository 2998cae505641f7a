//! Once its buffers have grown, the hot path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder, cookie, request};
use tidemark_wire::json::{Path, write_text};

thread_local! {
    /// Of this thread alone: the test harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came; only a counter is added.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer is from `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        count_one();
        // SAFETY: the pointer is from `alloc` above, which is the system's.
        unsafe { System.realloc(pointer, layout, size_bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ANSWERS: [&[u8]; 2] = [
    b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1; Path=/\r\nContent-Length: 27\r\n\r\n[{\"id\": \"a\\u00e9\"}, [1, 2]] ",
    b"HTTP/1.1 200 OK\r\nSet-Cookie: id=2\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n[{\"id\": \"b\"}, {}, [3, 4]]\r\n0\r\n\r\n",
];

#[test]
fn a_warm_codec_allocates_nothing() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    let mut server = RequestDecoder::new(DecoderLimits::default());
    let id = Path::parse("$[0].id").unwrap();
    let last = Path::parse("$[-1][-1]").unwrap();
    let (mut out, mut text) = (Vec::new(), Vec::new());
    let mut round = |piece_bytes: usize| {
        for answer in ANSWERS {
            decoder.start(false, true);
            let complete = answer.chunks(piece_bytes).any(|piece| decoder.decode(piece).unwrap().complete);
            assert!(complete);
            let cookie = cookie::parse(decoder.header("set-cookie").unwrap()).unwrap();
            text.clear();
            write_text(id.find(decoder.body()).unwrap().unwrap(), &mut text);
            assert!(last.find(decoder.body()).unwrap().is_some());

            out.clear();
            request::write_line(&mut out, "POST", &[b"/a/", &b"b"[..]]).unwrap();
            request::write_host(&mut out, b"localhost").unwrap();
            request::write_cookies(&mut out, [(cookie.name, cookie.value)]).unwrap();
            request::write_content_length(&mut out, text.len() as u64);
            request::end_head(&mut out);
            out.extend_from_slice(&text);
            server.start();
            assert!(out.chunks(piece_bytes).any(|piece| server.decode(piece).unwrap().complete));
            assert_eq!(server.body(), text);
        }
    };
    let sizes = [4096, 1, 7, 50];
    sizes.into_iter().for_each(&mut round);
    let before = ALLOCATIONS.get();
    assert!(before > 0, "growing is counted");
    sizes.into_iter().for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
