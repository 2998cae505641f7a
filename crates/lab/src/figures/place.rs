//! Where the servers of a run's stores are that tell figures of themselves, known by the scheme of a URL.

use std::fmt;
use std::io;

use tidemark_drive::{Address, Target};
use tidemark_scenario::plan::System;

use super::WITHIN;
use super::product::{ALL, Product, Wire};
use crate::target;

/// One server.
#[derive(Clone)]
pub struct Place {
    /// What it is called: a store, a node of it, or `system`.
    pub name: String,
    /// What it is.
    pub product: &'static dyn Product,
    at: At,
}

/// How it is reached.
#[derive(Clone)]
enum At {
    /// As the driver reaches it.
    Greeted(Box<Target>),
    /// Without a word.
    Plain(Address),
}

impl fmt::Debug for Place {
    /// Without what its target knows of passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Place {
    /// Connects, and speaks with it.
    ///
    /// # Errors
    /// Where it cannot be reached or refuses who asks; whatever `with` returns.
    pub fn speak<R>(&self, with: impl FnOnce(&mut Wire<'_>) -> io::Result<R>) -> io::Result<R> {
        match &self.at {
            At::Greeted(target) => {
                let mut target = target.as_ref().clone();
                target::speak(&mut target, WITHIN, |stream| with(&mut Wire::new(stream)))?
            }
            At::Plain(address) => {
                let mut stream = target::dial(address, WITHIN)?;
                with(&mut Wire::new(&mut stream))
            }
        }
    }
}

/// The product whose URLs begin like this one.
fn product(url: &str) -> Option<(&'static dyn Product, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let product = ALL.iter().find(|product| product.schemes().contains(&scheme))?;
    Some((*product, rest))
}

/// One server at an address, by the URL of its store; none where that is of no product that tells figures.
pub fn server(name: &str, url: &str, address: &str) -> Option<Place> {
    let (_, rest) = product(url)?;
    let scheme = url.split_once("://")?.0;
    let authority = rest.split(['/', '?']).next()?;
    let login = authority.rsplit_once('@').map(|(login, _)| format!("{login}@")).unwrap_or_default();
    at(name, &format!("{scheme}://{login}{address}"), &System::default())
}

/// Every server that a URL names: one, or several with commas between.
pub fn servers(name: &str, url: &str, system: &System) -> Vec<Place> {
    let Some((_, rest)) = product(url) else { return Vec::new() };
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), authority),
    };
    let hosts: Vec<&str> = hosts.split(',').filter(|host| !host.is_empty()).collect();
    let one = |(index, host): (usize, &&str)| {
        let name = if hosts.len() == 1 { name.to_owned() } else { format!("{name}.{}", index + 1) };
        at(&name, &format!("{scheme}://{login}{host}"), system)
    };
    hosts.iter().enumerate().filter_map(one).collect()
}

/// What is driven, where that is a store which is there already.
pub fn driven(url: &str, system: &System) -> Vec<Place> {
    servers("system", url, system)
}

/// None where the URL cannot be driven, which others tell.
fn at(name: &str, url: &str, system: &System) -> Option<Place> {
    let (product, rest) = product(url)?;
    let at = match product.is_greeted() {
        true => {
            // each server of a cluster or of several answers for itself
            let url = url.replacen("-cluster://", "://", 1);
            At::Greeted(Box::new(target::target(&url, system).ok()?))
        }
        false => {
            let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            let address = if has_port { rest.to_owned() } else { format!("{rest}:{}", product.port()) };
            let target = target::target(&format!("http://{address}"), &System::default()).ok()?;
            At::Plain(target.address)
        }
    };
    Some(Place { name: name.to_owned(), product, at })
}

/// Whether a server is what a name means: itself, or a node of it.
pub fn is_of(server: &str, name: &str) -> bool {
    server.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
