//! Where the instances of a service are known from: a list, Eureka, or etcd.

mod etcd;
mod eureka;

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use url::Url;

pub use crate::http::RegistryError;

/// A registry of instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registry {
    /// Eureka, or whoever speaks its REST: HOST:PORT, and the path before `/apps`.
    Eureka(String, String),
    /// etcd, by its JSON: HOST:PORT.
    Etcd(String),
}

/// What an instance tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The name of its service.
    pub service: String,
    /// Where it is.
    pub addr: SocketAddr,
    /// After so long without a word it is gone.
    pub lease: Duration,
    /// How often it says that it is there.
    pub renew_every: Duration,
}

impl Registration {
    /// The name of the instance: no two have the same.
    pub fn id(&self) -> String {
        let host = match self.addr.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            // colons part the id of Eureka's own clients
            IpAddr::V6(ip) => ip.to_string().replace(':', "-"),
        };
        format!("{host}:{}:{}", self.service, self.addr.port())
    }
}

/// What a registry knows an instance by: etcd's lease; nothing where the instance's own id is enough.
pub(crate) type Ticket = String;

impl FromStr for Registry {
    type Err = ();

    /// `http://HOST:PORT/eureka`, with any path, or `etcd://HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let url = Url::parse(text).map_err(|_| ())?;
        let (host, port) = (url.host_str().ok_or(())?, url.port_or_known_default().ok_or(())?);
        let is_bare = url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        let (place, path) = (format!("{host}:{port}"), url.path().trim_end_matches('/').to_owned());
        match url.scheme() {
            "http" if is_bare => Ok(Registry::Eureka(place, path)),
            "etcd" if is_bare && path.is_empty() => Ok(Registry::Etcd(place)),
            _ => Err(()),
        }
    }
}

impl Registry {
    /// HOST:PORT.
    pub fn place(&self) -> &str {
        match self {
            Registry::Eureka(place, _) | Registry::Etcd(place) => place,
        }
    }

    /// The instances of a service.
    ///
    /// # Errors
    /// The registry cannot be asked.
    pub async fn find(&self, service: &str) -> Result<Vec<SocketAddr>, RegistryError> {
        match self {
            Registry::Eureka(place, path) => eureka::find(place, path, service).await,
            Registry::Etcd(place) => etcd::find(place, service).await,
        }
    }

    pub(crate) async fn register(&self, registration: &Registration) -> Result<Ticket, RegistryError> {
        match self {
            Registry::Eureka(place, path) => eureka::register(place, path, registration).await,
            Registry::Etcd(place) => etcd::register(place, registration).await,
        }
    }

    /// Says that an instance is there. False where the registry does not know it any more.
    pub(crate) async fn renew(
        &self,
        registration: &Registration,
        ticket: &Ticket,
    ) -> Result<bool, RegistryError> {
        match self {
            Registry::Eureka(place, path) => eureka::renew(place, path, registration).await,
            Registry::Etcd(place) => etcd::renew(place, ticket).await,
        }
    }

    pub(crate) async fn leave(
        &self,
        registration: &Registration,
        ticket: &Ticket,
    ) -> Result<(), RegistryError> {
        match self {
            Registry::Eureka(place, path) => eureka::leave(place, path, registration).await,
            Registry::Etcd(place) => etcd::leave(place, ticket).await,
        }
    }
}

/// Where a client knows the instances of a service from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A list of HOST:PORT. Names are looked up again and again.
    Fixed(Vec<String>),
    /// A registry.
    Registry(Registry),
}

impl Source {
    /// A list of `http://HOST:PORT` with commas between; empty where that is.
    pub fn fixed(text: &str) -> Option<Vec<String>> {
        if text.is_empty() {
            return Some(Vec::new());
        }
        let place = |text: &str| match text.trim().parse() {
            Ok(Registry::Eureka(place, path)) if path.is_empty() => Some(place),
            _ => None,
        };
        text.split(',').map(place).collect()
    }

    /// What is known without asking anybody.
    pub(crate) fn known(&self) -> Vec<SocketAddr> {
        match self {
            Source::Fixed(places) => places.iter().filter_map(|place| place.parse().ok()).collect(),
            Source::Registry(_) => Vec::new(),
        }
    }

    pub(crate) async fn find(&self, service: &str) -> Result<Vec<SocketAddr>, RegistryError> {
        let places = match self {
            Source::Fixed(places) => places,
            Source::Registry(registry) => return registry.find(service).await,
        };
        let mut addrs = Vec::new();
        for place in places {
            let found = tokio::net::lookup_host(place).await;
            let unreachable = |error: std::io::Error| RegistryError::Unreachable {
                place: place.clone(),
                reason: error.to_string(),
            };
            addrs.extend(found.map_err(unreachable)?);
        }
        Ok(addrs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let eureka = |path: &str| Ok(Registry::Eureka("h:8761".into(), path.into()));
        assert_eq!("http://h:8761/eureka/".parse(), eureka("/eureka"));
        assert_eq!("http://h:8761/eureka/v2".parse(), eureka("/eureka/v2"));
        assert_eq!("etcd://127.0.0.1:2379".parse(), Ok(Registry::Etcd("127.0.0.1:2379".into())));
        for wrong in ["", "h:8761", "https://h/eureka", "etcd://h", "etcd://h:1/x", "http://me@h/eureka"] {
            assert_eq!(wrong.parse::<Registry>(), Err(()), "{wrong}");
        }
        let fixed = |text: &str| Source::fixed(text).map(|places| places.join(" "));
        assert_eq!(fixed("http://127.0.0.1:1, http://[::1]:2").as_deref(), Some("127.0.0.1:1 [::1]:2"));
        assert_eq!(fixed("").as_deref(), Some(""));
        for wrong in ["127.0.0.1:1", "http://h:1/x", "http://h:1,", "etcd://h:1"] {
            assert_eq!(fixed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_instance_has_an_id_of_its_own() {
        let id = |addr: &str| {
            let (lease, renew_every) = (Duration::from_secs(15), Duration::from_secs(5));
            Registration { service: "auth".into(), addr: addr.parse().unwrap(), lease, renew_every }.id()
        };
        assert_eq!((id("127.0.0.1:9").as_str(), id("[::1]:9").as_str()), ("127.0.0.1:auth:9", "--1:auth:9"));
    }
}
