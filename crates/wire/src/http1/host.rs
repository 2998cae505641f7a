//! Host and port, as the header `Host` and absolute targets have them.

use std::net::Ipv6Addr;

/// Whether this is `host` or `host:port` as RFC 9110 (7.2) and RFC 3986 (3.2.2) have it: a name, an address of IPv4, or
/// one of IPv6 in brackets.
///
/// ```
/// use tidemark_wire::http1::is_host;
/// assert!(is_host(b"localhost:8080") && is_host(b"[::1]") && is_host(b"caf%C3%A9.example"));
/// assert!(!is_host(b"user@host") && !is_host(b"host:80:80") && !is_host(b":80") && !is_host(b""));
/// ```
pub fn is_host(text: &[u8]) -> bool {
    if let [b'[', rest @ ..] = text {
        let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
        let address = std::str::from_utf8(&rest[..end]).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
        return address.is_some() && is_port_behind(&rest[end + 1..]);
    }
    let end = text.iter().position(|&byte| byte == b':').unwrap_or(text.len());
    is_name(&text[..end]) && is_port_behind(&text[end..])
}

/// The host of `host` or `host:port`; an address of IPv6 stays in its brackets.
///
/// ```
/// use tidemark_wire::http1::without_port;
/// assert_eq!([without_port("shop.test:80"), without_port("shop.test")], ["shop.test"; 2]);
/// assert_eq!([without_port("[::1]:80"), without_port("[::1]")], ["[::1]"; 2]);
/// ```
pub fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => authority,
    }
}

/// Nothing, or a colon and a port, which may be left out.
fn is_port_behind(text: &[u8]) -> bool {
    match text {
        [] | [b':'] => true,
        [b':', port @ ..] => {
            port.iter().all(u8::is_ascii_digit)
                && std::str::from_utf8(port).is_ok_and(|port| port.parse::<u16>().is_ok())
        }
        _ => false,
    }
}

fn is_name(mut text: &[u8]) -> bool {
    if text.is_empty() {
        return false;
    }
    loop {
        text = match text {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [byte, rest @ ..] if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) => rest,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_what_is_none() {
        for host in [
            "x",
            "a.b-c_d~",
            "127.0.0.1:80",
            "h:",
            "[::1]:80",
            "[2001:db8::1.2.3.4]",
            "%41",
            "a,b",
            "h:65535",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        let none = [
            "", ":", ":80", "a b", "u@h", "h:80:80", "h:65536", "h:+1", "h:x", "[::1", "[]", "[x]", "[::1]x",
            "::1",
        ];
        for none in
            none.into_iter().chain(["%zz", "%4", "%", "a/b", "a?b", "a#b", "a\\b", "\u{e4}", "a\"b", "<a>"])
        {
            assert!(!is_host(none.as_bytes()), "{none}");
        }
    }
}
