//! Which of a session's cookies go where (RFC 6265): of the host that set them, or of its domain; by path, time and security.
//!
//! A cookie lies in the [`Jar`] of each target that it is for: who that is, is found out when it is set, which is seldom,
//! and not when it is sent. Targets on one host share cookies, whatever their ports. Lists of public suffixes are not
//! looked at, but that a domain has a dot in it.
//!
//! The usual crate, `cookie_store`, parses a URL and allocates for each request, whose cookies come in no order, and has no
//! bound; this is held against it in `cookies/tests_peer.rs`.

use std::net::IpAddr;

use tidemark_wire::http1::cookie::SetCookie;
use tidemark_wire::http1::without_port;

use crate::session::jar::{Jar, Place};

/// Most bytes of a cookie's name and value, as in browsers.
const MOST_BYTES: usize = 4_096;

/// What cookies look at in a target.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// In small letters; an IPv6 address in brackets.
    host: Vec<u8>,
    /// Whether that is an address: no domain is above it.
    is_address: bool,
    /// Whether cookies for secured connections are sent there: over TLS, and to this machine, as browsers do.
    is_trusted: bool,
}

impl Site {
    /// Of a target that requests name so (`host`, or `host:port`).
    pub fn new(authority: &str, is_secured: bool) -> Site {
        let host = without_port(authority).to_ascii_lowercase();
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let is_local = match address {
            Some(address) => address.is_loopback(),
            None => host == "localhost" || host.ends_with(".localhost"),
        };
        Site { host: host.into_bytes(), is_address: address.is_some(), is_trusted: is_secured || is_local }
    }

    /// Whether its host is this domain, or below it (RFC 6265, 5.1.3).
    fn is_within(&self, domain: &[u8]) -> bool {
        let Some(before) = self.host.len().checked_sub(domain.len()) else { return false };
        let (front, end) = self.host.split_at(before);
        end.eq_ignore_ascii_case(domain) && (front.is_empty() || (front.ends_with(b".") && !self.is_address))
    }
}

/// Cookies that servers set and that are not sent back to them, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CookieCounts {
    /// Those for a domain that their host is not in, or that has no dot.
    pub foreign: u64,
    /// Those for secured connections only, set over one that is not.
    pub insecure: u64,
    /// Those for which there was no room, or that were too large.
    pub no_room: u64,
}

impl std::ops::AddAssign for CookieCounts {
    fn add_assign(&mut self, more: CookieCounts) {
        self.foreign += more.foreign;
        self.insecure += more.insecure;
        self.no_room += more.no_room;
    }
}

/// Why a cookie is not sent back to who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotKept {
    Foreign,
    Insecure,
    NoRoom,
}

impl NotKept {
    /// For a person.
    pub fn words(self) -> &'static str {
        match self {
            NotKept::Foreign => "its Domain does not cover this host, or has no dot, so that it is not kept",
            NotKept::Insecure => "it is `Secure`, so that it is sent over TLS only, and this is plain HTTP",
            NotKept::NoRoom => "it is larger than 4 KiB, or there are 64 already, so that it is not kept",
        }
    }

    pub fn count(self, counts: &mut CookieCounts) {
        *match self {
            NotKept::Foreign => &mut counts.foreign,
            NotKept::Insecure => &mut counts.insecure,
            NotKept::NoRoom => &mut counts.no_room,
        } += 1;
    }
}

/// Does what a `Set-Cookie` of the target `from` asks for, in the jars of all targets that it is about. `path` is that of a
/// cookie for which none is said.
pub(crate) fn take(
    jars: &mut Vec<Jar>,
    (sites, from): (&[Site], usize),
    set: &SetCookie<'_>,
    path: &[u8],
    now_s: i64,
) -> Result<(), NotKept> {
    let origin = &sites[from];
    let is_top = |domain: &[u8]| !domain.contains(&b'.') && !domain.eq_ignore_ascii_case(&origin.host);
    if set.domain.is_some_and(|domain| is_top(domain) || !origin.is_within(domain)) {
        return Err(NotKept::Foreign);
    }
    if set.name.len() + set.value.len() > MOST_BYTES {
        return Err(NotKept::NoRoom);
    }
    if jars.len() < sites.len() {
        jars.resize_with(sites.len(), Jar::default);
    }
    let domain = set.domain.unwrap_or(&origin.host);
    let place = Place { name: set.name, domain, path: set.path.unwrap_or(path) };
    let (mut has_room, is_removed) = (true, set.is_removed(now_s));
    for (site, jar) in sites.iter().zip(jars.iter_mut()) {
        let is_for = set.domain.is_some() || site.host == origin.host;
        if !site.is_within(domain) {
            // nothing of it is there
        } else if is_for && !is_removed && (site.is_trusted || !set.is_secure) {
            has_room &= jar.put(place, set, now_s);
        } else {
            jar.remove(place);
        }
    }
    match set.is_secure && !origin.is_trusted && !is_removed {
        true => Err(NotKept::Insecure),
        false if !has_room => Err(NotKept::NoRoom),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests_peer;

#[cfg(test)]
mod tests {
    use tidemark_wire::http1::cookie;

    use super::*;

    const NOW_S: i64 = 1_000;

    fn sites(urls: &[&str]) -> Vec<Site> {
        let site = |url: &&str| {
            let (scheme, authority) = url.split_once("://").unwrap();
            Site::new(authority, scheme == "https")
        };
        urls.iter().map(site).collect()
    }

    fn set(jars: &mut Vec<Jar>, sites: &[Site], from: usize, text: &str) -> Result<(), NotKept> {
        take(jars, (sites, from), &cookie::parse(text.as_bytes()).unwrap(), b"/", NOW_S)
    }

    /// What each target is sent.
    fn sent(jars: &[Jar]) -> Vec<String> {
        let one = |jar: &Jar| {
            let mut out = b"/".to_vec();
            jar.write(&mut out, 0..1, NOW_S);
            String::from_utf8(out[1..].to_vec()).unwrap()
        };
        jars.iter().map(one).collect()
    }

    #[test]
    fn a_cookie_goes_to_its_host_whatever_the_port_and_to_its_domain_where_it_says_so() {
        let sites = sites(&[
            "http://www.Shop.example",
            "http://www.shop.example:8080",
            "https://api.shop.example",
            "http://myshop.example",
            "http://other.example",
        ]);
        let mut jars = Vec::new();
        assert_eq!(set(&mut jars, &sites, 0, "host=1"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 0, "all=2; Domain=SHOP.example"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 2, "own=3; Domain=.api.shop.example"), Ok(()));
        assert_eq!(sent(&jars), ["host=1; all=2", "host=1; all=2", "all=2; own=3", "", ""]);
        for domain in ["other.example", "api.shop.example", "op.example", "example", "www.shop.example.evil"]
        {
            assert_eq!(
                set(&mut jars, &sites, 0, &format!("x=1; Domain={domain}")),
                Err(NotKept::Foreign),
                "{domain}"
            );
        }
        // of a name, a domain and a path there is one
        assert_eq!(set(&mut jars, &sites, 0, "one=4; Domain=www.shop.example"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 0, "one=5"), Ok(()));
        assert_eq!(sent(&jars)[..2], ["host=1; all=2; one=5", "host=1; all=2; one=5"]);
        assert_eq!(set(&mut jars, &sites, 0, "one=; Max-Age=0"), Ok(()));
        // anybody in the domain may change it
        assert_eq!(set(&mut jars, &sites, 2, "all=; Max-Age=0; Domain=shop.example"), Ok(()));
        assert_eq!(sent(&jars), ["host=1", "host=1", "own=3", "", ""]);
    }

    #[test]
    fn addresses_have_no_domain_above_them() {
        let sites = sites(&["http://10.0.0.1:80", "http://9.10.0.0.1", "http://[fd00::1]:80", "http://box"]);
        let mut jars = Vec::new();
        assert_eq!(set(&mut jars, &sites, 0, "a=1; Domain=10.0.0.1"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 0, "b=1; Domain=0.0.1"), Err(NotKept::Foreign));
        assert_eq!(set(&mut jars, &sites, 2, "c=1"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 3, "d=1; Domain=box"), Ok(()), "its own name");
        let sent = sent(&jars);
        assert_eq!((sent[0].as_str(), sent[2].as_str(), sent[3].as_str()), ("a=1", "c=1", "d=1"));
    }

    #[test]
    fn secure_cookies_go_over_tls_and_to_this_machine_only() {
        let sites = sites(&[
            "http://shop.example",
            "https://shop.example",
            "http://127.0.0.1:8080",
            "http://app.localhost",
            "http://[::1]:80",
        ]);
        let mut jars = Vec::new();
        assert_eq!(set(&mut jars, &sites, 1, "a=1; Secure"), Ok(()));
        assert_eq!(set(&mut jars, &sites, 0, "b=1; Secure"), Err(NotKept::Insecure));
        for from in [2, 3, 4] {
            assert_eq!(set(&mut jars, &sites, from, "c=1; Secure"), Ok(()));
        }
        assert_eq!(sent(&jars), ["", "a=1; b=1", "c=1", "c=1", "c=1"]);
        // what becomes secure is sent in plain no longer
        set(&mut jars, &sites, 0, "d=1").unwrap();
        set(&mut jars, &sites, 1, "d=2; Secure").unwrap();
        assert_eq!(sent(&jars)[..2], ["", "a=1; b=1; d=2"]);
    }

    #[test]
    fn large_cookies_and_too_many_are_told() {
        let sites = sites(&["http://h"]);
        let mut jars = Vec::new();
        let large = format!("a={}", "x".repeat(MOST_BYTES));
        assert_eq!(set(&mut jars, &sites, 0, &large), Err(NotKept::NoRoom));
        let kept = (0..100).filter(|n| set(&mut jars, &sites, 0, &format!("c{n}=1")).is_ok()).count();
        assert_eq!(kept, 64);
    }
}
