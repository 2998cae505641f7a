//! Where a `Location` leads (RFC 9110, 10.2.2): a URL, or a reference to be resolved against the request's own.

use super::is_host;

/// A server that a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Whether TLS is spoken.
    pub is_secured: bool,
    /// Host and port, as they stand there.
    pub authority: &'a [u8],
}

impl Origin<'_> {
    /// Whether it is the same server: hosts differ by more than capitals, or ports by more than being left out.
    ///
    /// ```
    /// use tidemark_wire::http1::Origin;
    ///
    /// let origin = |is_secured, authority| Origin { is_secured, authority };
    /// assert!(origin(false, b"Shop.example").is(&origin(false, b"shop.example:80")));
    /// assert!(!origin(true, b"shop.example").is(&origin(false, b"shop.example:443")));
    /// ```
    pub fn is(&self, other: &Origin<'_>) -> bool {
        let (host, port) = self.parts();
        let (other_host, other_port) = other.parts();
        self.is_secured == other.is_secured && host.eq_ignore_ascii_case(other_host) && port == other_port
    }

    fn parts(&self) -> (&[u8], u16) {
        let usual = if self.is_secured { 443 } else { 80 };
        // the colons of an address of IPv6 stand in brackets
        let from = self.authority.iter().rposition(|byte| *byte == b']').unwrap_or(0);
        match self.authority[from..].iter().position(|byte| *byte == b':') {
            None => (self.authority, usual),
            Some(at) => {
                let (host, port) = self.authority.split_at(from + at);
                let port = std::str::from_utf8(&port[1..]).ok().and_then(|port| port.parse().ok());
                (host, port.unwrap_or(usual))
            }
        }
    }
}

/// Why a reference leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Its scheme is neither `http` nor `https`.
    #[error("it is no URL of HTTP")]
    Scheme,
    /// It names no host, or what is none.
    #[error("it names no host")]
    Host,
}

/// Whether a reference is resolved against the path of a request, and not only against its server.
pub fn is_relative(reference: &[u8]) -> bool {
    let reference = reference.trim_ascii();
    !reference.starts_with(b"/") && scheme(reference).is_none()
}

/// Resolves a reference against a request whose scheme and target (path and query) are these. Appends the target that it
/// leads to, which begins with a slash and can stand in a request line: what cannot is percent-encoded. Returns the server
/// if the reference names one.
///
/// ```
/// use tidemark_wire::http1::resolve_location;
///
/// let mut target = Vec::new();
/// assert_eq!(resolve_location(false, b"/orders/list?all", b"../cart/7#top", &mut target), Ok(None));
/// assert_eq!(target, b"/cart/7");
/// target.clear();
/// let origin = resolve_location(false, b"/", b"https://shop.example/a b", &mut target).unwrap().unwrap();
/// assert_eq!((origin.authority, &target[..]), (&b"shop.example"[..], &b"/a%20b"[..]));
/// ```
///
/// # Errors
/// It leads to no server of HTTP; then nothing is appended.
pub fn resolve_location<'l>(
    is_secured: bool,
    target: &[u8],
    reference: &'l [u8],
    out: &mut Vec<u8>,
) -> Result<Option<Origin<'l>>, LocationError> {
    let reference = reference.trim_ascii();
    let reference = &reference[..end_at(reference, b"#")];
    let (is_secured, behind) = match scheme(reference) {
        Some((name, behind)) if name.eq_ignore_ascii_case(b"http") => (false, Some(behind)),
        Some((name, behind)) if name.eq_ignore_ascii_case(b"https") => (true, Some(behind)),
        Some(_) => return Err(LocationError::Scheme),
        None => (is_secured, reference.starts_with(b"//").then_some(reference)),
    };
    if let Some(behind) = behind {
        let behind = behind.strip_prefix(b"//").ok_or(LocationError::Host)?;
        let (authority, target) = behind.split_at(end_at(behind, b"/?\\"));
        // user and password in a URL are not used
        let authority = authority.rsplit(|byte| *byte == b'@').next().unwrap_or_default();
        if !is_host(authority) {
            return Err(LocationError::Host);
        }
        push_target(&[target], out);
        return Ok(Some(Origin { is_secured, authority }));
    }
    let path_end = end_at(target, b"?");
    match reference.first() {
        None => push_target(&[target], out),
        Some(b'/') => push_target(&[reference], out),
        Some(b'?') => push_target(&[&target[..path_end], reference], out),
        Some(_) => {
            let directory = target[..path_end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            push_target(&[&target[..directory], reference], out);
        }
    }
    Ok(None)
}

/// The scheme of a reference, and what stands behind its colon.
fn scheme(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = reference.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))?;
    let is_scheme = reference[0].is_ascii_alphabetic() && reference[end] == b':';
    is_scheme.then(|| (&reference[..end], &reference[end + 1..]))
}

/// Where the first of these bytes is; the length if there is none.
fn end_at(text: &[u8], bytes: &[u8]) -> usize {
    text.iter().position(|byte| bytes.contains(byte)).unwrap_or(text.len())
}

/// Appends a target that is made of these parts, without its dot segments.
fn push_target(parts: &[&[u8]], out: &mut Vec<u8>) {
    let begin = out.len();
    out.push(b'/');
    let bytes = parts.iter().flat_map(|part| part.iter());
    let mut is_query = false;
    for (index, byte) in bytes.enumerate() {
        match byte {
            b'/' if index == 0 => {}
            b'/' if !is_query => {
                if !end_segment(begin, out) {
                    out.push(b'/');
                }
            }
            b'?' if !is_query => {
                end_segment(begin, out);
                is_query = true;
                out.push(b'?');
            }
            byte if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte) => out.push(*byte),
            byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    if !is_query {
        end_segment(begin, out);
    }
}

/// A segment is whole, the last in `out[begin..]`: of one that is `.` or `..` nothing stays but what it means. What is
/// left ends with a slash then, which is true.
fn end_segment(begin: usize, out: &mut Vec<u8>) -> bool {
    let slash =
        |out: &[u8]| out[begin..].iter().rposition(|byte| *byte == b'/').map_or(begin, |at| begin + at);
    let start = slash(out) + 1;
    let up = match &out[start..] {
        b"." => 0,
        b".." => 1,
        _ => return false,
    };
    out.truncate(start);
    for _ in 0..up {
        // the root has nothing above it
        if out.len() > begin + 1 {
            out.pop();
            let start = slash(out) + 1;
            out.truncate(start);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolved(reference: &str) -> (Option<(bool, String)>, String) {
        let mut out = b"GET ".to_vec();
        let base = b"/b/c/d;p?q=/x";
        let origin = resolve_location(true, base, reference.as_bytes(), &mut out).unwrap();
        let origin = origin.map(|o| (o.is_secured, String::from_utf8_lossy(o.authority).into_owned()));
        (origin, String::from_utf8(out.split_off(4)).unwrap())
    }

    #[test]
    fn references_are_resolved_as_the_standard_shows_it() {
        // RFC 3986, 5.4
        for (reference, target) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q=/x"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("", "/b/c/d;p?q=/x"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("/a//b", "/a//b"),
            ("/a\u{e9} \"", "/a%C3%A9%20%22"),
            ("/a%2Fb", "/a%2Fb"),
        ] {
            assert_eq!(resolved(reference), (None, target.to_owned()), "{reference:?}");
        }
    }

    #[test]
    fn urls_name_their_server() {
        let of = |is_secured, host: &str| Some((is_secured, host.to_owned()));
        for (reference, origin, target) in [
            ("http://h", of(false, "h"), "/"),
            ("HTTPS://h:9/a/../b?c#d", of(true, "h:9"), "/b?c"),
            ("//h/a", of(true, "h"), "/a"),
            ("http://me:mine@h?a=b", of(false, "h"), "/?a=b"),
            ("http://[::1]:8/", of(false, "[::1]:8"), "/"),
            (" http://h/ ", of(false, "h"), "/"),
        ] {
            assert_eq!(resolved(reference), (origin, target.to_owned()), "{reference:?}");
        }
        for (reference, error) in [
            ("mailto:me@h", LocationError::Scheme),
            ("javascript:alert(1)", LocationError::Scheme),
            ("http:/h", LocationError::Host),
            ("http://", LocationError::Host),
            ("//", LocationError::Host),
            ("http://a b/", LocationError::Host),
            ("http://h\\@evil/", LocationError::Host),
        ] {
            let mut out = Vec::new();
            let resolved = resolve_location(false, b"/", reference.as_bytes(), &mut out);
            match reference {
                // what browsers take for a slash ends the host here, too
                "http://h\\@evil/" => assert_eq!(resolved.map(|o| o.unwrap().authority), Ok(&b"h"[..])),
                _ => assert_eq!((resolved, out.len()), (Err(error), 0), "{reference:?}"),
            }
        }
        assert!(is_relative(b"a/b:c") && is_relative(b"?a") && is_relative(b"") && is_relative(b"1:b"));
        assert!(!is_relative(b"/a") && !is_relative(b"a:b") && !is_relative(b" //h"));
    }

    proptest! {
        #[test]
        fn whatever_comes_can_stand_in_a_request_line(
            target in "/[ -~]{0,20}",
            reference in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "[a-z:/.?#@%\\\\ ]{0,30}".prop_map(String::into_bytes),
            ],
        ) {
            let mut out = Vec::new();
            match resolve_location(false, target.as_bytes(), &reference, &mut out) {
                Err(_) => prop_assert!(out.is_empty()),
                Ok(origin) => {
                    prop_assert!(out.starts_with(b"/"));
                    prop_assert!(out.iter().all(u8::is_ascii_graphic));
                    prop_assert!(!out.contains(&b'#') || target.contains('#'));
                    let path = &out[..end_at(&out, b"?")];
                    prop_assert!(path.split(|byte| *byte == b'/').all(|part| part != b"." && part != b".."));
                    prop_assert!(origin.is_none_or(|origin| is_host(origin.authority)));
                }
            }
        }
    }
}
