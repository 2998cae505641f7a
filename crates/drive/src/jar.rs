//! The cookies of one session.

use std::ops::Range;

use tidemark_wire::http1::cookie;

/// Most cookies that a session keeps; more are not taken.
const MOST_COOKIES: usize = 64;

#[derive(Debug, Default)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    /// Empty: every path.
    path: Vec<u8>,
}

/// Cookies in the order in which they were first set. Buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
    /// Of these, the first are in use.
    used: usize,
}

impl Jar {
    /// Whether there is no cookie.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets all cookies.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Takes what a `Set-Cookie` header asks for. What names no cookie is left alone, as browsers do.
    pub fn take(&mut self, header_value: &[u8]) {
        let Some(set) = cookie::parse(header_value) else { return };
        let path = set.path.filter(|path| *path != b"/").unwrap_or(b"");
        let known = self.cookies[..self.used].iter().position(|c| c.name == set.name && c.path == path);
        match known {
            Some(index) if set.removed => {
                // In order, and with its buffers kept behind those in use.
                self.cookies[index..self.used].rotate_left(1);
                self.used -= 1;
            }
            Some(index) => replace(&mut self.cookies[index].value, set.value),
            None if set.removed || self.used == MOST_COOKIES => {}
            None => {
                if self.used == self.cookies.len() {
                    self.cookies.push(Cookie::default());
                }
                let cookie = &mut self.cookies[self.used];
                replace(&mut cookie.name, set.name);
                replace(&mut cookie.value, set.value);
                replace(&mut cookie.path, path);
                self.used += 1;
            }
        }
    }

    /// Appends the cookies for the target that stands at this place of `out`, as the value of a `Cookie` header; whether
    /// there are any.
    pub fn write(&self, out: &mut Vec<u8>, target: Range<usize>) -> bool {
        let before = out.len();
        for cookie in &self.cookies[..self.used] {
            if !cookie.path.is_empty() && !cookie::path_matches(&out[target.clone()], &cookie.path) {
                continue;
            }
            if out.len() > before {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
        out.len() > before
    }
}

fn replace(buffer: &mut Vec<u8>, with: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(with);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(jar: &Jar, target: &str) -> String {
        let mut out = target.as_bytes().to_vec();
        let is_any = jar.write(&mut out, 0..target.len());
        let cookies = String::from_utf8(out[target.len()..].to_vec()).unwrap();
        assert_eq!(is_any, !cookies.is_empty());
        cookies
    }

    #[test]
    fn sets_replaces_and_removes_in_order() {
        let mut jar = Jar::default();
        for value in ["a=1; Path=/", "b=2; HttpOnly", "c=3", "a=4"] {
            jar.take(value.as_bytes());
        }
        assert_eq!(header(&jar, "/"), "a=4; b=2; c=3");
        jar.take(b"b=; Max-Age=0");
        jar.take(b"nonsense");
        assert_eq!(header(&jar, "/"), "a=4; c=3");
        jar.take(b"d=5");
        assert_eq!(header(&jar, "/"), "a=4; c=3; d=5");
        jar.clear();
        assert!(jar.is_empty());
        assert_eq!(header(&jar, "/"), "");
    }

    #[test]
    fn paths_decide() {
        let mut jar = Jar::default();
        jar.take(b"app=1; Path=/app");
        jar.take(b"app=2; Path=/other");
        assert_eq!(header(&jar, "/app/x?y=/other"), "app=1");
        assert_eq!(header(&jar, "/other"), "app=2");
        assert_eq!(header(&jar, "/"), "");
    }

    #[test]
    fn the_number_of_cookies_is_bounded() {
        let mut jar = Jar::default();
        for n in 0..1_000 {
            jar.take(format!("c{n}=1").as_bytes());
        }
        assert_eq!(jar.used, MOST_COOKIES);
    }
}
