//! Which hosts an agent drives: its own list decides, whatever a scenario asks for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: an address, and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    /// `10.0.0.0/8`, `fd00::/8`, or an address alone.
    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("\"{text}\" is not an address or a network like 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            // a sign is none of it
            Some(bits) if bits.starts_with('+') => return Err(wrong()),
            Some(bits) => bits.parse().map_err(|_| wrong())?,
            None => most,
        };
        (bits <= most).then_some(Network { address, bits }).ok_or_else(wrong)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        let differs = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => u128::from(own.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differs.leading_zeros() >= u32::from(self.bits)
    }
}

/// What an agent may drive: its networks, and in any case its own machine over loopback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow(pub Vec<Network>);

impl Allow {
    /// Whether an address may be driven. One of IPv4 that is written as one of IPv6 is what it is.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.0.iter().any(|network| network.has(address))
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loopback")?;
        self.0.iter().try_for_each(|network| write!(f, ", {network}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(networks: &[&str], address: &str) -> bool {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Allow(networks).permits(address.parse().unwrap())
    }

    #[test]
    fn only_what_is_listed_is_driven() {
        assert!(permits(&[], "127.0.0.1") && permits(&[], "127.8.9.1") && permits(&[], "::1"));
        assert!(!permits(&[], "10.0.0.1") && !permits(&[], "fe80::1") && !permits(&[], "0.0.0.0"));
        assert!(permits(&["10.0.0.0/8"], "10.255.0.1") && !permits(&["10.0.0.0/8"], "11.0.0.1"));
        assert!(permits(&["10.1.2.3"], "10.1.2.3") && !permits(&["10.1.2.3"], "10.1.2.2"));
        assert!(permits(&["0.0.0.0/0"], "8.8.8.8") && !permits(&["0.0.0.0/0"], "2001:db8::1"));
        assert!(permits(&["fd00::/8"], "fdab::1") && !permits(&["fd00::/8"], "fe80::1"));
        assert!(permits(&["10.0.0.0/8"], "::ffff:10.0.0.1") && !permits(&["10.0.0.0/8"], "::ffff:11.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "host", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "10.0.0/8"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
    }
}
