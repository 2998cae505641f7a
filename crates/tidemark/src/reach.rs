//! Flags that say how the system of a URL is reached, for every verb that drives one.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tidemark_scenario::plan::{Resolve, System};

/// How a URL is reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reaching a URL")]
pub struct ReachArguments {
    /// Which address of the URL's host is driven; it is looked up once
    #[arg(long, value_name = "WHICH", value_parser = PossibleValuesParser::new(Resolve::WORDS))]
    pub resolve: Option<String>,
    /// Connect to HOST:PORT or unix:/PATH instead of the URL's host, which the requests still name
    #[arg(long, value_name = "PLACE")]
    pub connect_to: Option<String>,
    /// How TLS is spoken
    #[command(flatten)]
    pub tls: TlsArguments,
}

/// How TLS is spoken to an https URL.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reaching a URL")]
pub struct TlsArguments {
    /// Accept any certificate of an https URL
    #[arg(long)]
    pub insecure: bool,
    /// Trust the authorities in this PEM file only, not the machine's
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
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
        if let Some(policy) = self.resolve.as_deref().and_then(Resolve::from_word) {
            system.resolve = policy;
        }
        if let Some(place) = &self.connect_to {
            system.connect_to = Some(place.clone());
        }
        self.tls.apply(system);
    }
}

impl TlsArguments {
    /// Puts what was given in place of what the scenario says.
    pub fn apply(&self, system: &mut System) {
        let tls = &mut system.tls;
        tls.insecure |= self.insecure;
        tls.resumption &= !self.no_resumption;
        if self.cacert.is_some() {
            tls.ca.clone_from(&self.cacert);
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
        let before = system.tls.clone();
        ReachArguments::default().apply(&mut system);
        assert_eq!((system.resolve, system.connect_to.as_deref()), (Resolve::First, Some("a:1")));
        assert_eq!(system.tls, before);
        let tls = TlsArguments {
            insecure: true,
            cacert: Some("ca.pem".into()),
            server_name: Some("b".into()),
            no_resumption: true,
        };
        let given = ReachArguments { resolve: Some("ipv6".into()), connect_to: Some("b:2".into()), tls };
        given.apply(&mut system);
        assert_eq!((system.resolve, system.connect_to.as_deref()), (Resolve::Ipv6, Some("b:2")));
        assert!(system.tls.insecure && !system.tls.resumption);
        assert_eq!(system.tls.ca.as_deref(), Some("ca.pem".as_ref()));
        assert_eq!(system.tls.server_name.as_deref(), Some("b"));
    }
}
