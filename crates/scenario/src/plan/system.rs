//! What requests go to: the system that is driven, and what stands beside it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::launch::{Launch, Ready};
#[cfg(doc)]
use super::{PROXY_OF_ENVIRONMENT, RPC_PATH};
use crate::grammar::kinds::words;
use crate::protobuf::Types;

/// Something that runs already, to which requests go beside the system.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// What the scenario calls it; the origin (`http://host:port`) of one that is named by absolute URLs only.
    pub name: String,
    /// Where it is, and how it is spoken with: a [`SystemOrigin::Url`].
    pub at: System,
}

/// What the system is called where it stands beside other targets.
pub const SYSTEM_TARGET: &str = "system";

/// Host of a system that is nobody's, as nobody can have such a name (RFC 6761): a script that sends nothing is driven there.
pub const NOBODY: &str = "nobody.invalid";

/// What is driven.
#[derive(Debug, Clone, Default)]
pub struct System {
    /// Where it comes from.
    pub origin: SystemOrigin,
    /// Its instances.
    pub tier: Tier,
    /// Settings handed to the system (`--set`), the scenario's own settings written out.
    pub settings: BTreeMap<String, String>,
    /// Whether it is known to keep no data.
    pub keeps_nothing: bool,
    /// Whether it is known to tell of its operations one by one.
    pub tells_operations: bool,
    /// `synced`, `buffered` or `memory`, where the scenario says.
    pub durability: Option<String>,
    /// What a command has around it; nothing of any other system.
    pub launch: Launch,
    /// When it is ready, of one that is started.
    pub ready: Ready,
    /// Longest time until it is.
    pub ready_within: Duration,
    /// Which of the addresses of a URL's host is driven.
    pub resolve: Resolve,
    /// Where connections are made to instead of the URL's host: `HOST:PORT` or `unix:PATH`.
    pub connect_to: Option<String>,
    /// The HTTP proxy that is between, if one is: its URL, or [`PROXY_OF_ENVIRONMENT`].
    pub proxy: Option<String>,
    /// Options of TLS for an `https` URL.
    pub tls: TlsSettings,
    /// Which version of HTTP is spoken.
    pub http: HttpVersion,
    /// Where remote calls are taken; [`RPC_PATH`] where a scenario does not say.
    pub rpc: Option<String>,
    /// Whether a command serves gRPC.
    pub is_grpc: bool,
    /// The message types of its gRPC, where the scenario says; else its reflection tells them.
    pub types: Option<Types>,
}

/// The instances of a part of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// What the part is called.
    pub name: String,
    /// How many instances there are at the beginning, at least one.
    pub instances: usize,
    /// How many there may be in the end.
    pub instances_max: usize,
    /// What stands in front of them.
    pub balancer: Balancer,
}

impl Default for Tier {
    fn default() -> Self {
        let name = SYSTEM_TARGET.to_owned();
        Tier { name, instances: 1, instances_max: 1, balancer: Balancer::None }
    }
}

impl Tier {
    /// Whether it is one process that is reached as it is, and stays one.
    pub fn is_single(&self) -> bool {
        self.instances == 1 && self.instances_max == 1 && self.balancer == Balancer::None
    }

    /// What an instance is called, of those that count from 1.
    pub fn instance(&self, number: usize) -> String {
        if self.is_single() { self.name.clone() } else { format!("{}.{number}", self.name) }
    }

    /// What its balancer is called.
    pub fn balancer_name(&self) -> String {
        format!("{}-balancer", self.name)
    }

    /// All names that faults may use.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone()];
        if !self.is_single() {
            names.extend((1..=self.instances_max).map(|number| self.instance(number)));
        }
        if self.balancer != Balancer::None {
            names.push(self.balancer_name());
        }
        names
    }
}

words! {
    /// What stands in front of several instances.
    #[derive(Default)]
    pub enum Balancer {
        /// Nothing.
        #[default]
        None = "none",
        /// nginx.
        Nginx = "nginx",
        /// HAProxy.
        Haproxy = "haproxy",
    }
}

words! {
    /// A version of HTTP.
    #[derive(Default)]
    pub enum HttpVersion {
        /// HTTP/1.1.
        #[default]
        One = "1.1",
        /// HTTP/2: over TLS by ALPN, without it by prior knowledge.
        Two = "2",
        /// Over TLS what the server prefers, without it HTTP/1.1.
        Auto = "auto",
    }
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TlsSettings {
    /// Accept any certificate.
    pub insecure: bool,
    /// Accept any name in a certificate that somebody trusted signed (`sslmode=verify-ca` of PostgreSQL).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_name: bool,
    /// A PEM file of the only authorities that are trusted; else those of the machine.
    pub ca: Option<PathBuf>,
    /// The name that the server's certificate must have, and that it is asked for; else the URL's host.
    pub server_name: Option<String>,
    /// A PEM file with the client's own certificate, for a server that asks for one.
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key; else it is in the same file.
    pub key: Option<PathBuf>,
    /// Whether a new connection resumes the session of an earlier one.
    pub resumption: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            insecure: false,
            any_name: false,
            ca: None,
            server_name: None,
            certificate: None,
            key: None,
            resumption: true,
        }
    }
}

words! {
    /// Which of a name's addresses is driven. It is chosen once, before the load.
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Resolve {
        /// The first IPv4 address, or the first of any kind: servers of `localhost` often listen on it only.
        #[default]
        Ipv4 = "ipv4",
        /// The first IPv6 address, or the first of any kind.
        Ipv6 = "ipv6",
        /// The first that the system's resolver names.
        First = "first",
    }
}

/// Where a system comes from.
#[derive(Debug, Clone, Default)]
pub enum SystemOrigin {
    /// One of ours: `tidemark serve NAME` is started.
    Shipped(String),
    /// A command that is started; `{port}` in it stands for a free port.
    Command(Vec<String>),
    /// It is there already.
    Url(String),
    /// Not said (only a URL on the command line can help).
    #[default]
    Unknown,
}
