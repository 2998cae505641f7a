//! Flags that say how the system of a URL is reached, for every verb that drives one. Their names are curl's, where
//! curl has them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tidemark_import::{Reach, TlsReach};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{HttpVersion, Resolve, System};

use crate::failure::Failure;

/// How a URL is reached.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(next_help_heading = "Reaching a URL")]
pub struct ReachArguments {
    /// Which address of the URL's host is driven; it is looked up once
    #[arg(long, value_name = "WHICH", value_parser = PossibleValuesParser::new(Resolve::NAMES))]
    pub resolve: Option<String>,
    /// An IPv4 address, where the host has one: --resolve ipv4
    #[arg(short = '4', long, conflicts_with_all = ["resolve", "ipv6"])]
    pub ipv4: bool,
    /// An IPv6 address, where the host has one: --resolve ipv6
    #[arg(short = '6', long, conflicts_with = "resolve")]
    pub ipv6: bool,
    /// Connect to HOST:PORT or unix:/PATH instead of the URL's host, which the requests still name
    #[arg(long, value_name = "PLACE")]
    pub connect_to: Option<String>,
    /// Connect to this unix socket: --connect-to unix:/PATH
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,
    /// Go through this HTTP proxy: http://HOST:PORT, http://USER:PASSWORD@HOST, `env` (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
    /// NO_PROXY say which), or `none` [default: none]
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect_to", "unix_socket"])]
    pub proxy: Option<String>,
    /// Version of HTTP: 1.1, 2 (over TLS by ALPN, else by prior knowledge), or auto (over TLS as the server prefers)
    /// [default: 1.1]
    #[arg(long, visible_alias = "http-version", value_name = "VERSION", value_parser = http_version)]
    pub http: Option<HttpVersion>,
    /// Requests at once on each connection of HTTP/2, as far as the server takes them [default: 1]
    #[arg(short = 'p', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub streams: Option<u16>,
    /// How TLS is spoken
    #[command(flatten)]
    pub tls: TlsArguments,
}

fn http_version(text: &str) -> Result<HttpVersion, String> {
    let word = if text == "1" { "1.1" } else { text };
    HttpVersion::from_name(word).ok_or_else(|| format!("write one of {}", HttpVersion::NAMES.join(", ")))
}

/// How TLS is spoken to an https URL.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(next_help_heading = "Reaching a URL")]
pub struct TlsArguments {
    /// Accept any certificate of an https URL
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Trust the authorities in this PEM file only, not the machine's; or a server's certificate that stands in it
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// A PEM file with a client certificate, for a server that asks for one
    #[arg(short = 'E', long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// A PEM file with the key of --cert; else it is in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The name that the certificate must have, and that is asked for, instead of the URL's host
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// A full TLS handshake for each new connection
    #[arg(long)]
    pub no_resumption: bool,
}

impl ReachArguments {
    /// Puts what was given in place of what the scenario says.
    pub fn apply(&self, system: &mut System) {
        let policy = match (self.ipv4, self.ipv6) {
            (true, _) => Some(Resolve::Ipv4),
            (_, true) => Some(Resolve::Ipv6),
            _ => self.resolve.as_deref().and_then(Resolve::from_name),
        };
        if let Some(policy) = policy {
            system.resolve = policy;
        }
        if let Some(place) = self.place() {
            system.connect_to = Some(place);
        }
        system.http = self.http.unwrap_or(system.http);
        self.tls.apply(system);
    }

    /// The same of a whole plan, with the proxy and the streams; `url`: of the system, where the command line names it.
    pub fn ask(&self, plan: &mut Plan, url: Option<&str>) -> Result<(), Failure> {
        self.apply(&mut plan.system);
        if let Some(proxy) = &self.proxy {
            let through = plan.go_through(proxy, url);
            through.map_err(|error| Failure::usage(format!("--proxy: {error}")))?;
        }
        if let Some(streams) = self.streams {
            plan.limits.streams = streams.into();
        }
        Ok(())
    }

    /// What is given here, and for the rest what is given there.
    pub fn or(self, other: ReachArguments) -> ReachArguments {
        let says_which = self.ipv4 || self.ipv6 || self.resolve.is_some();
        let says_where = self.connect_to.is_some() || self.unix_socket.is_some();
        ReachArguments {
            resolve: if says_which { self.resolve } else { other.resolve },
            ipv4: self.ipv4 || (!says_which && other.ipv4),
            ipv6: self.ipv6 || (!says_which && other.ipv6),
            connect_to: if says_where { self.connect_to } else { other.connect_to },
            unix_socket: if says_where { self.unix_socket } else { other.unix_socket },
            proxy: self.proxy.or(other.proxy),
            http: self.http.or(other.http),
            streams: self.streams.or(other.streams),
            tls: self.tls.or(other.tls),
        }
    }

    /// Where to connect to, if not to the URL's host.
    pub fn place(&self) -> Option<String> {
        let socket = self.unix_socket.as_ref().map(|path| format!("unix:{}", path.display()));
        socket.or_else(|| self.connect_to.clone())
    }
}

impl From<Reach> for ReachArguments {
    fn from(reach: Reach) -> Self {
        let TlsReach { insecure, cacert, cert, key, no_resumption } = reach.tls;
        ReachArguments {
            ipv4: reach.ipv4,
            ipv6: reach.ipv6,
            connect_to: reach.connect_to,
            unix_socket: reach.unix_socket,
            proxy: reach.proxy,
            http: reach.http,
            tls: TlsArguments { insecure, cacert, cert, key, no_resumption, ..TlsArguments::default() },
            ..ReachArguments::default()
        }
    }
}

impl TlsArguments {
    fn or(self, other: TlsArguments) -> TlsArguments {
        // a key belongs to its certificate
        let (cert, key) = if self.cert.is_some() { (self.cert, self.key) } else { (other.cert, other.key) };
        TlsArguments {
            insecure: self.insecure || other.insecure,
            cacert: self.cacert.or(other.cacert),
            cert,
            key,
            server_name: self.server_name.or(other.server_name),
            no_resumption: self.no_resumption || other.no_resumption,
        }
    }

    /// Puts what was given in place of what the scenario says.
    pub fn apply(&self, system: &mut System) {
        let tls = &mut system.tls;
        tls.insecure |= self.insecure;
        tls.resumption &= !self.no_resumption;
        if self.cacert.is_some() {
            tls.ca.clone_from(&self.cacert);
        }
        if self.cert.is_some() {
            tls.certificate.clone_from(&self.cert);
            tls.key.clone_from(&self.key);
        }
        if self.server_name.is_some() {
            tls.server_name.clone_from(&self.server_name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_stays_as_the_scenario_says() {
        let mut system =
            System { resolve: Resolve::First, connect_to: Some("a:1".into()), ..System::default() };
        system.tls.server_name = Some("a".into());
        system.tls.certificate = Some("a.pem".into());
        system.tls.key = Some("a.key".into());
        let before = system.tls.clone();
        ReachArguments::default().apply(&mut system);
        assert_eq!((system.resolve, system.connect_to.as_deref()), (Resolve::First, Some("a:1")));
        assert_eq!(system.tls, before);
        let tls = TlsArguments {
            insecure: true,
            cacert: Some("ca.pem".into()),
            cert: Some("b.pem".into()),
            key: None,
            server_name: Some("b".into()),
            no_resumption: true,
        };
        let given = ReachArguments {
            resolve: Some("ipv6".into()),
            connect_to: Some("b:2".into()),
            tls,
            ..ReachArguments::default()
        };
        given.apply(&mut system);
        assert_eq!((system.resolve, system.connect_to.as_deref()), (Resolve::Ipv6, Some("b:2")));
        assert!(system.tls.insecure && !system.tls.resumption);
        assert_eq!(system.tls.ca.as_deref(), Some("ca.pem".as_ref()));
        assert_eq!(system.tls.server_name.as_deref(), Some("b"));
        let own = (system.tls.certificate.as_deref(), system.tls.key.as_deref());
        assert_eq!(own, (Some("b.pem".as_ref()), None), "the scenario's key belongs to its certificate");
    }

    #[test]
    fn the_short_forms_mean_the_long_ones() {
        let mut system = System::default();
        let socket = ReachArguments { unix_socket: Some("/run/x".into()), ..ReachArguments::default() };
        socket.apply(&mut system);
        assert_eq!(system.connect_to.as_deref(), Some("unix:/run/x"));
        ReachArguments { ipv6: true, ..ReachArguments::default() }.apply(&mut system);
        assert_eq!(system.resolve, Resolve::Ipv6);
        ReachArguments { http: http_version("2").ok(), ..ReachArguments::default() }.apply(&mut system);
        ReachArguments::default().apply(&mut system);
        assert_eq!(system.http, HttpVersion::Two);
        assert!(http_version("3").unwrap_err().contains("1.1, 2, auto"));
        ReachArguments { ipv4: true, ..ReachArguments::default() }.apply(&mut system);
        assert_eq!(system.resolve, Resolve::Ipv4);
    }
}
