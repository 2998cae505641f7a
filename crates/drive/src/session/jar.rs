//! The cookies that one target is sent in a session.

use std::ops::Range;

use tidemark_wire::http1::cookie::{self, SetCookie};

/// Most cookies that a session keeps for a target; more are not taken.
const MOST_COOKIES: usize = 64;

#[derive(Debug, Default)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The host that it is for, or the domain, in small letters.
    domain: Vec<u8>,
    path: Vec<u8>,
    /// From this second since 1970 on it is none any more.
    end_s: i64,
}

/// What tells a cookie from others (RFC 6265, 5.3: of the same name, domain and path there is one).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The host that it is for, or the domain.
    pub domain: &'a [u8],
    /// The path that it is for, with what lies below.
    pub path: &'a [u8],
}

/// Cookies in the order in which they are sent: those for longer paths first, among these the one that was set first
/// (RFC 6265, 5.4). Buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
    /// Of these, the first are in use.
    used: usize,
}

impl Jar {
    /// Without a cookie.
    pub const fn new() -> Jar {
        Jar { cookies: Vec::new(), used: 0 }
    }

    /// Whether there is no cookie.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets all cookies.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Puts a cookie in, or in the place of the one that was there; false if there is no room.
    pub fn put(&mut self, place: Place<'_>, set: &SetCookie<'_>, now_s: i64) -> bool {
        if self.find(place).is_none() && self.used == MOST_COOKIES {
            self.forget_ended(now_s);
        }
        let index = match self.find(place) {
            Some(known) => known,
            None if self.used == MOST_COOKIES => return false,
            None => self.make_room(place),
        };
        let cookie = &mut self.cookies[index];
        replace(&mut cookie.value, set.value);
        cookie.end_s = set.ends_s(now_s).unwrap_or(i64::MAX);
        true
    }

    /// Takes a cookie out.
    pub fn remove(&mut self, place: Place<'_>) {
        if let Some(index) = self.find(place) {
            self.remove_at(index);
        }
    }

    /// Appends the cookies for the target (path and query) that stands at this place of `out`, as the value of a `Cookie`
    /// header; whether there are any.
    pub fn write(&self, out: &mut Vec<u8>, target: Range<usize>, now_s: i64) -> bool {
        let before = out.len();
        for cookie in &self.cookies[..self.used] {
            if cookie.end_s <= now_s || !cookie::path_matches(&out[target.clone()], &cookie.path) {
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

    fn find(&self, place: Place<'_>) -> Option<usize> {
        self.cookies[..self.used].iter().position(|cookie| {
            cookie.name == place.name
                && cookie.path == place.path
                && cookie.domain.eq_ignore_ascii_case(place.domain)
        })
    }

    /// A new cookie behind those for paths that are as long.
    fn make_room(&mut self, place: Place<'_>) -> usize {
        if self.used == self.cookies.len() {
            self.cookies.push(Cookie::default());
        }
        let cookie = &mut self.cookies[self.used];
        replace(&mut cookie.name, place.name);
        replace(&mut cookie.domain, place.domain);
        cookie.domain.make_ascii_lowercase();
        replace(&mut cookie.path, place.path);
        let index = self.cookies[..self.used].partition_point(|known| known.path.len() >= place.path.len());
        self.cookies[index..=self.used].rotate_right(1);
        self.used += 1;
        index
    }

    fn remove_at(&mut self, index: usize) {
        // in order, and with its buffers kept behind those in use
        self.cookies[index..self.used].rotate_left(1);
        self.used -= 1;
    }

    fn forget_ended(&mut self, now_s: i64) {
        for index in (0..self.used).rev() {
            if self.cookies[index].end_s <= now_s {
                self.remove_at(index);
            }
        }
    }
}

fn replace(buffer: &mut Vec<u8>, with: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(with);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(jar: &mut Jar, text: &str, now_s: i64) -> bool {
        let set = cookie::parse(text.as_bytes()).unwrap();
        let place = Place { name: set.name, domain: b"h", path: set.path.unwrap_or(b"/") };
        if set.is_removed(now_s) {
            jar.remove(place)
        } else {
            return jar.put(place, &set, now_s);
        }
        true
    }

    fn header(jar: &Jar, target: &str, now_s: i64) -> String {
        let mut out = target.as_bytes().to_vec();
        let is_any = jar.write(&mut out, 0..target.len(), now_s);
        let cookies = String::from_utf8(out[target.len()..].to_vec()).unwrap();
        assert_eq!(is_any, !cookies.is_empty());
        cookies
    }

    #[test]
    fn sets_replaces_and_removes_in_order() {
        let mut jar = Jar::default();
        for text in ["a=1; Path=/", "b=2; HttpOnly", "c=3", "a=4"] {
            assert!(put(&mut jar, text, 0));
        }
        assert_eq!(header(&jar, "/", 0), "a=4; b=2; c=3");
        put(&mut jar, "b=; Max-Age=0", 0);
        assert_eq!(header(&jar, "/", 0), "a=4; c=3");
        put(&mut jar, "d=", 0);
        assert_eq!(header(&jar, "/", 0), "a=4; c=3; d=");
        jar.clear();
        assert!(jar.is_empty());
        assert_eq!(header(&jar, "/", 0), "");
    }

    #[test]
    fn paths_decide_and_longer_ones_come_first() {
        let mut jar = Jar::default();
        for text in
            ["root=0", "app=1; Path=/app", "app=2; Path=/other", "deep=3; Path=/app/x", "last=4; Path=/app"]
        {
            put(&mut jar, text, 0);
        }
        assert_eq!(header(&jar, "/app/x?y=/other", 0), "deep=3; app=1; last=4; root=0");
        assert_eq!(header(&jar, "/other", 0), "app=2; root=0");
        put(&mut jar, "app=9; Path=/app", 0);
        assert_eq!(header(&jar, "/app", 0), "app=9; last=4; root=0", "it keeps its place");
    }

    #[test]
    fn a_cookie_ends_in_its_time() {
        let mut jar = Jar::default();
        put(&mut jar, "a=1; Max-Age=60", 1_000);
        put(&mut jar, "b=2", 1_000);
        assert_eq!(header(&jar, "/", 1_059), "a=1; b=2");
        assert_eq!(header(&jar, "/", 1_060), "b=2");
        put(&mut jar, "a=3", 1_060);
        assert_eq!(header(&jar, "/", i64::MAX - 1), "a=3; b=2");
    }

    #[test]
    fn the_number_of_cookies_is_bounded_and_ended_ones_make_room() {
        let mut jar = Jar::default();
        let taken = (0..1_000).filter(|n| put(&mut jar, &format!("c{n}=1; Max-Age=10"), 0)).count();
        assert_eq!((taken, jar.used), (MOST_COOKIES, MOST_COOKIES));
        assert!(put(&mut jar, "c5=2", 5), "what is there can be changed");
        assert!(put(&mut jar, "new=1", 10));
        assert_eq!(header(&jar, "/", 10), "c5=2; new=1");
    }
}
