//! How a command line of curl reaches its server.

use std::path::PathBuf;

use tidemark_scenario::plan::HttpVersion;

/// How a server is reached. What is not said stays as it is without.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Over IPv4 only.
    pub ipv4: bool,
    /// Over IPv6 only.
    pub ipv6: bool,
    /// `HOST:PORT` in place of the URL's.
    pub connect_to: Option<String>,
    /// A unix socket in place of the URL's host.
    pub unix_socket: Option<PathBuf>,
    /// URL of the proxy.
    pub proxy: Option<String>,
    /// Version of HTTP.
    pub http: Option<HttpVersion>,
    /// How TLS is spoken.
    pub tls: TlsReach,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsReach {
    /// Any certificate is accepted.
    pub insecure: bool,
    /// A PEM file with the authorities that are trusted.
    pub cacert: Option<PathBuf>,
    /// A PEM file with the client's certificate.
    pub cert: Option<PathBuf>,
    /// A PEM file with the key of `cert`.
    pub key: Option<PathBuf>,
    /// A full handshake for each connection.
    pub no_resumption: bool,
}
