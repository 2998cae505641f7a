//! Bodies in gzip, deflate, br and zstd, one after the other: whatever comes, no more than the limit is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::encoding::{Scratch, decode};

/// Most bytes of what is read.
const MOST: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((which, body)) = data.split_first() else { return };
    let names = [&b"gzip"[..], b"deflate", b"br", b"zstd"];
    let (first, second) = (usize::from(which & 3), usize::from(which >> 2 & 3));
    let headers = if which & 16 == 0 { &[names[first]][..] } else { &[names[first], names[second]] };
    let (mut decoded, mut room) = (Vec::new(), Scratch::default());
    let read = decode(headers.iter().copied(), body, MOST, &mut decoded, &mut room);
    assert!(decoded.len() <= MOST);
    assert!(read == Ok(true) || decoded.is_empty());
    // buffers that are used again change nothing
    let before = decoded.clone();
    let again = decode(headers.iter().copied(), body, MOST, &mut decoded, &mut room);
    assert_eq!((again, decoded), (read, before));
});
