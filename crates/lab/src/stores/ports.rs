//! Ports for a store: the usual ones, or the next that are free on all its addresses.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::path::Path;

use crate::error::LabError;

/// How far apart the ports are that are tried.
const STEP: u16 = 100;
/// How many are tried. All stay below those that the kernel gives to connections, one of which could otherwise get a
/// port while a node is down.
const TRIED: u16 = 100;

/// Ports that are ours, against other runs of this user, as long as this lives.
#[derive(Debug)]
pub struct Ports {
    /// As many as were asked for, in that order.
    pub numbers: Vec<u16>,
    _claim: File,
}

impl Ports {
    /// Takes the `usual` ports, or those 100, 200, … above them, whichever are all free on all of `addresses`.
    ///
    /// # Errors
    /// Where none are, or an address is none of this machine.
    pub fn choose(what: &str, addresses: &[IpAddr], usual: &[u16], cache: &Path) -> Result<Ports, LabError> {
        let claims = cache.join("ports");
        fs::create_dir_all(&claims).map_err(|error| unwritable(&claims, &error))?;
        let mut last = None;
        for shift in (0..TRIED).map(|count| count * STEP) {
            let numbers: Vec<u16> = usual.iter().map(|port| port.saturating_add(shift)).collect();
            let path = claims.join(numbers[0].to_string());
            let claim = File::create(&path).map_err(|error| unwritable(&path, &error))?;
            if claim.try_lock().is_err() {
                continue; // another run has them, or is about to
            }
            match all_free(addresses, &numbers) {
                Ok(()) => return Ok(Ports { numbers, _claim: claim }),
                Err((ip, error)) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    return Err(LabError::Start(format!(
                        "{what} needs the address {ip}, which this machine does not have: {error}; ask for fewer nodes"
                    )));
                }
                Err((_, error)) => last = Some(error),
            }
        }
        let reason = last.map_or_else(|| "other runs have them".into(), |error| error.to_string());
        let (first, step) = (usual[0], STEP);
        Err(LabError::Start(format!(
            "no free port for {what}: {first} and {TRIED} others, {step} apart, are taken ({reason}); end what uses them"
        )))
    }
}

fn all_free(addresses: &[IpAddr], ports: &[u16]) -> Result<(), (IpAddr, io::Error)> {
    let places = addresses.iter().flat_map(|ip| ports.iter().map(|port| (*ip, *port)));
    places
        .into_iter()
        .try_for_each(|place| TcpListener::bind(place).map(drop).map_err(|error| (place.0, error)))
}

fn unwritable(path: &Path, error: &io::Error) -> LabError {
    let variable = super::jars::CACHE_VARIABLE;
    LabError::Usage(format!(
        "cannot write {}: {error}; set {variable} to a folder that can be written",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_taken_or_claimed_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        let choose = |usual: &[u16]| Ports::choose("a store", &[ip], usual, folder.path()).unwrap();
        let first = choose(&[11_042, 12_000]);
        // what is claimed is passed over although nobody listens there
        let second = choose(&[11_042, 12_000]);
        assert_eq!(second.numbers[0] % STEP, 42);
        assert!(second.numbers[0] > first.numbers[0], "{first:?} {second:?}");
        assert_eq!(second.numbers[1] - second.numbers[0], 958);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap().port();
        if taken < u16::MAX - TRIED * STEP {
            assert_ne!(choose(&[taken]).numbers, [taken]);
        }
    }

    #[test]
    fn an_address_of_another_machine_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = "192.0.2.1".parse().unwrap();
        let error = Ports::choose("a store", &[elsewhere], &[11_142], folder.path()).unwrap_err();
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }
}
