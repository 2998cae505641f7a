//! A server's connection: whatever is sent to it over a socket, whole and in pieces.
#![no_main]

#[path = "../../systems/rpc/tests/conversation/mod.rs"]
mod conversation;

use std::net::SocketAddr;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_service::Stop;

static SERVER: OnceLock<SocketAddr> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let [piece_bytes, manner, sent @ ..] = data else { return };
    // it serves until the fuzzer ends
    let addr = *SERVER.get_or_init(|| conversation::start(&Stop::new()).0);
    let pieces = std::iter::repeat_n(usize::from(*piece_bytes).max(1), usize::from(manner >> 1));
    let (received, is_whole) = conversation::converse(addr, sent, pieces, manner & 1 == 1);
    conversation::check(sent, (&received, is_whole));
});
