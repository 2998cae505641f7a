//! Values of `Location`, and the targets of the requests that they answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::http1::{is_host, resolve_location};

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let target = [b"/", &data[..end]].concat();
    let mut out = b"GET ".to_vec();
    match resolve_location(false, &target, &data[end + 1..], &mut out) {
        Err(_) => assert_eq!(out, b"GET "),
        Ok(origin) => {
            let resolved = &out[4..];
            assert!(resolved.starts_with(b"/") && resolved.iter().all(u8::is_ascii_graphic));
            assert!(origin.is_none_or(|origin| is_host(origin.authority)));
            // it is resolved to itself
            let mut again = Vec::new();
            if !resolved.starts_with(b"//") && !resolved.contains(&b'#') {
                assert_eq!(resolve_location(false, b"/x", resolved, &mut again), Ok(None));
                assert_eq!(again, resolved);
            }
        }
    }
});
