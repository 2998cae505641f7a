//! How many connections the operating system has room for: open files, and local ports to one address.

use std::net::IpAddr;

use tidemark_record::Bound;

use crate::io::address::Address;
use crate::io::machine;

/// Share of a source address's ports that connections take at most: the system finds the last ones slowly, and others
/// want some too.
const PORTS_TAKEN: f64 = 0.7;
/// Most source addresses: 127.0.0.1 to 127.0.0.200.
const MOST_SOURCES: usize = 200;

/// What a drive's connections have room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionLimit {
    /// Connections.
    pub connections: usize,
    /// What does not let there be more.
    pub bound: Bound,
    /// Source addresses that they are made from.
    pub sources: usize,
}

impl ConnectionLimit {
    /// For `wanted` connections to an address, of `all` together; the limit of open files is raised as far as it may be.
    pub fn make(wanted: usize, all: usize, address: &Address) -> ConnectionLimit {
        let files = machine::raise_open_files(all);
        let files =
            if files < all { (files as u128 * wanted as u128 / all as u128) as usize } else { wanted };
        let (ports, sources) = match address {
            Address::Tcp(address) => ports(wanted, address.ip(), machine::local_ports()),
            Address::Unix(_) => (wanted, 1),
        };
        let bound = if ports < files { Bound::Ports } else { Bound::OpenFiles };
        ConnectionLimit { connections: wanted.min(files).min(ports), bound, sources }
    }
}

/// How many of the wanted connections have a port, and from how many addresses they are made. Only this machine's
/// loopback has as many addresses as one likes.
fn ports(wanted: usize, to: IpAddr, ports: usize) -> (usize, usize) {
    let of_each = ((ports as f64 * PORTS_TAKEN) as usize).max(1);
    match to {
        _ if wanted <= of_each => (wanted, 1),
        IpAddr::V4(to) if to.is_loopback() && cfg!(target_os = "linux") => {
            let sources = wanted.div_ceil(of_each).min(MOST_SOURCES);
            (wanted.min(sources.saturating_mul(of_each)), sources)
        }
        _ => (wanted.min(ports), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn loopback_has_many_addresses_and_others_have_one() {
        assert_eq!(ports(100, to("127.0.0.1"), 28_232), (100, 1));
        assert_eq!(ports(50_000, to("127.0.0.1"), 28_232), (50_000, 3));
        assert_eq!(ports(usize::MAX, to("127.0.0.1"), 1_000), (140_000, 200));
        assert_eq!(ports(50_000, to("192.0.2.1"), 28_232), (28_232, 1));
        assert_eq!(ports(50_000, to("::1"), 28_232), (28_232, 1));
        assert_eq!(ports(20_000, to("::1"), 28_232), (20_000, 1));
    }

    #[test]
    fn room_is_no_more_than_what_is_wanted() {
        let room = ConnectionLimit::make(10, 10, &Address::Unix("/x".into()));
        assert_eq!((room.connections, room.sources), (10, 1));
        let most = usize::MAX / 2;
        let room = ConnectionLimit::make(most, most, &Address::Tcp("[::1]:9".parse().unwrap()));
        assert!(room.connections < usize::MAX / 2, "{room:?}");
    }
}
