//! Where a connection leads to: `--connect-to` and `--resolve`.

use url::Url;

/// Where each of `--connect-to`'s and `--resolve`'s parts ends.
pub(super) const CONNECT_TO: usize = 2;
pub(super) const RESOLVE: usize = 1;

/// Where the first of `HOST1:PORT1:HOST2:PORT2` and `HOST:PORT:ADDRESS` leads to that is of this URL.
pub(super) fn place(places: &[(usize, String)], url: &Url) -> Result<Option<String>, String> {
    let port = url.port_or_known_default().unwrap_or(80).to_string();
    for (parts, text) in places {
        let wrong = || {
            format!(
                "{text} is not understood; write --connect-to HOST1:PORT1:HOST2:PORT2 or --resolve HOST:PORT:ADDRESS"
            )
        };
        // an address of IPv6 has colons, too
        let bracket = if text.starts_with('[') { text.find(']').ok_or_else(wrong)? } else { 0 };
        let colon = bracket + text[bracket..].find(':').ok_or_else(wrong)?;
        let (of_host, rest) = (&text[..colon], &text[colon + 1..]);
        let (of_port, behind) = rest.split_once(':').ok_or_else(wrong)?;
        let host = url.host_str().unwrap_or_default();
        let any_host = if *parts == RESOLVE { "*" } else { "" };
        let is_of_url = (of_host == any_host || of_host.eq_ignore_ascii_case(host))
            && (of_port == port || *parts == CONNECT_TO && of_port.is_empty());
        if !is_of_url {
            continue;
        }
        if *parts == RESOLVE {
            let address = behind.split(',').next().filter(|address| !address.is_empty()).ok_or_else(wrong)?;
            let is_bare_6 = address.contains(':') && !address.starts_with('[');
            return Ok(Some(if is_bare_6 {
                format!("[{address}]:{port}")
            } else {
                format!("{address}:{port}")
            }));
        }
        let (to_host, to_port) = behind.rsplit_once(':').ok_or_else(wrong)?;
        let to_host = if to_host.is_empty() { host } else { to_host };
        return Ok(Some(format!("{to_host}:{}", if to_port.is_empty() { &port } else { to_port })));
    }
    match places.first() {
        None => Ok(None),
        Some((_, text)) => Err(format!(
            "{text} is for another host; this URL's is {}:{port}; leave it out",
            url.host_str().unwrap_or_default()
        )),
    }
}
