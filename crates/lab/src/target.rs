//! A URL becomes the address that is driven.

use std::net::{SocketAddr, ToSocketAddrs};

use tidemark_drive::Target;

use crate::error::LabError;

/// Reads and resolves `http://HOST[:PORT][/PATH]`.
pub fn target(text: &str) -> Result<Target, LabError> {
    let wrong = |reason: String| LabError::Usage(format!("`{text}` cannot be driven: {reason}"));
    let url = url::Url::parse(text).map_err(|error| wrong(format!("{error}; write http://HOST:PORT")))?;
    match url.scheme() {
        "http" => {}
        "https" => return Err(wrong("https is not spoken yet; put http in front of the system".into())),
        other => return Err(wrong(format!("`{other}` is not spoken; write http://HOST:PORT"))),
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(wrong("only a host, a port and the beginning of the path may stand in it".into()));
    }
    let host = url.host_str().ok_or_else(|| wrong("it names no host".into()))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let address = resolve(host.trim_matches(['[', ']']), port)
        .map_err(|error| wrong(format!("{host} is not found: {error}; check its spelling")))?;
    Ok(Target {
        address,
        authority: url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
        base_path: url.path().trim_end_matches('/').to_owned(),
    })
}

/// Reads and resolves `HOST:PORT`.
pub fn address(text: &str) -> Result<SocketAddr, LabError> {
    let wrong = |reason: String| LabError::Usage(format!("cannot connect to `{text}`: {reason}"));
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts.ok_or_else(|| wrong("write it as HOST:PORT".into()))?;
    resolve(host.trim_matches(['[', ']']), port)
        .map_err(|error| wrong(format!("{host} is not found: {error}; check its spelling")))
}

/// An IPv4 address is preferred where a name has both: `localhost` servers often listen on it only.
fn resolve(host: &str, port: u16) -> std::io::Result<SocketAddr> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let best = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    best.copied().ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, "no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_a_target() {
        let t = target("http://127.0.0.1:9080/base/").unwrap();
        assert_eq!(
            (t.address.to_string().as_str(), t.authority.as_str()),
            ("127.0.0.1:9080", "127.0.0.1:9080")
        );
        assert_eq!(t.base_path, "/base");
        let t = target("http://[::1]").unwrap();
        assert_eq!((t.address.port(), t.authority.as_str(), t.base_path.as_str()), (80, "[::1]", ""));
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        for (text, reason) in [
            ("127.0.0.1:80", "write http://"),
            ("https://127.0.0.1", "https is not spoken"),
            ("ftp://127.0.0.1", "`ftp`"),
            ("http://127.0.0.1/?a=b", "only a host"),
            ("http://no-such-host.invalid/", "not found"),
        ] {
            let error = target(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(error.exit_status(), 2);
        }
    }
}
