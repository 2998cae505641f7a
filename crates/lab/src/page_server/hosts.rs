//! Whom an answer is for: a page of another's that gave its name our address (DNS rebinding) asks by that name.

use std::net::{IpAddr, Ipv6Addr};

use super::Headers;
use tidemark_wire::http1::without_port;

/// Names by which we may be asked: an address, `localhost`, or one that the user gave.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    way_out: &'static str,
}

impl Hosts {
    /// These beside addresses and `localhost`; and what whoever asks by another name may do.
    pub fn new(names: &[String], way_out: &'static str) -> Hosts {
        Hosts { names: names.iter().map(|name| name.to_ascii_lowercase()).collect(), way_out }
    }

    /// Why whoever sends these headers gets no answer, if so.
    pub fn refuses(&self, headers: &Headers) -> Option<String> {
        let mut hosts = headers.get_all("host").iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Some("a request names one host".into());
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let name = without_port(&host);
        let is_ours = name == "localhost" || is_address(name) || self.names.iter().any(|known| known == name);
        (!is_ours).then(|| format!("this is served under another name; {}", self.way_out))
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => matches!(name.parse::<IpAddr>(), Ok(IpAddr::V4(_))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses(hosts: &[&str], names: &[&str]) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut headers = Headers::new();
        for host in hosts {
            headers.append("host", host.parse().unwrap());
        }
        Hosts::new(&names, "ask by its address").refuses(&headers).is_some()
    }

    #[test]
    fn only_names_that_cannot_be_another_s_are_answered() {
        for host in ["127.0.0.1:9470", "localhost", "LOCALHOST:1", "[::1]:9470", "[::1]", "192.168.0.9:80"] {
            assert!(!refuses(&[host], &[]), "{host}");
        }
        for host in
            ["evil.test", "evil.test:9470", "localhost.evil.test", "127.0.0.1.evil.test", "", "a:b", "[x]"]
        {
            assert!(refuses(&[host], &[]), "{host}");
        }
        assert!(!refuses(&["Lab.test:80"], &["lab.test"]) && refuses(&["other.test"], &["lab.test"]));
        assert!(refuses(&[], &[]) && refuses(&["localhost", "localhost"], &[]));
    }
}
