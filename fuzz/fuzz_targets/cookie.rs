//! Values of `Set-Cookie`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::http1::cookie;

fuzz_target!(|data: &[u8]| {
    let Some(cookie) = cookie::parse(data) else { return };
    assert!(!cookie.name.is_empty() && !cookie.name.contains(&b'='));
    for part in [cookie.name, cookie.value, cookie.path.unwrap_or(b"/"), cookie.domain.unwrap_or(b"x")] {
        assert!(!part.contains(&b';'));
        assert_eq!(part.trim_ascii(), part);
    }
    assert!(!cookie.domain.is_some_and(<[u8]>::is_empty));
    let _ = cookie.is_removed(0);
    assert!(cookie::path_matches(data, cookie::default_path(data)) || !data.starts_with(b"/"));
    if let Some(path) = cookie.path {
        assert!(path.starts_with(b"/"));
        assert!(path.contains(&b'?') || cookie::path_matches(path, path));
    }
});
