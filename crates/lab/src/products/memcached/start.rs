//! memcached: its command, which is all of its configuration. It has no name and no password, so that it is known by its
//! process.

use std::io;
use std::net::SocketAddr;

use rustix::process::{Resource, geteuid, getrlimit};
use tidemark_scenario::plan::Store;

use super::stats;
use crate::error::LabError;
use crate::stores::installed::{Package, usual_folders};
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, dial, text,
};

const PACKAGE: Package = Package {
    title: "memcached",
    programs: &["memcached"],
    how: "install it (Debian: apt-get install memcached)",
};

/// Connections that it takes at once, as many as Redis does; 1024 by default.
const CONNECTIONS: u64 = 10_000;
/// Files that it needs beside those.
const OTHER_FILES: u64 = 64;
/// What it keeps in memory where nothing is said.
const MEMORY_MIB: u64 = 64;

/// memcached.
pub struct Memcached;

impl Launcher for Memcached {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let folder = PACKAGE.folder(usual_folders())?;
        Ok(Program { title: PACKAGE.title(&folder), folder, java: None })
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[11211]
    }

    fn is_in_a_row(&self) -> bool {
        true
    }

    fn url(&self, _: &Store, addresses: &[SocketAddr], _: &str) -> Option<String> {
        let places: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        Some(format!("memcached://{}", places.join(",")))
    }

    fn remarks(&self, store: &Store) -> String {
        let mib = memory_mib(store);
        let mut text = format!(
            "kept in memory only: nothing outlives its process, and beyond {mib}MiB of each server what was not used the \
             longest gives way"
        );
        if let Some(count) = store.threads {
            text += &format!("; {count} threads");
        }
        text
    }

    fn write(&self, _: &NodeSetup<'_>) -> io::Result<()> {
        Ok(())
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let store = node.store;
        let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let connections = CONNECTIONS.min(files.saturating_sub(OTHER_FILES)).max(1);
        let mut words = vec![text(&node.program.folder.join(PACKAGE.programs[0]))];
        let mut say = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        say("-l", node.listen.to_string());
        say("-p", node.ports[0].to_string());
        say("-U", "0".into());
        say("-m", memory_mib(store).to_string());
        say("-c", connections.to_string());
        if let Some(count) = store.threads {
            say("-t", count.to_string());
        }
        if geteuid().is_root() {
            // as who starts the run; root has to say so
            say("-u", "root".into());
        }
        Ok(words)
    }

    fn ask(&self, place: NodeAddress, _: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let found = process(place.listens)?;
        match place.process {
            Some(ours) => NotReady::unless_same(format!("process {found}"), &format!("process {ours}")),
            None => Ok(()),
        }
    }
}

fn memory_mib(store: &Store) -> u64 {
    store.memory_bytes.map_or(MEMORY_MIB, |bytes| bytes >> 20)
}

/// The number of the process that answers there.
fn process(address: SocketAddr) -> io::Result<u32> {
    let stats = stats(&mut dial(address)?)?;
    stats
        .get("pid")
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| io::Error::other("it does not tell its process"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_started_as_the_scenario_says() {
        let usual = Store::new("cache", Product::Memcached);
        let store = Store { memory_bytes: Some(256 << 20), threads: Some(3), ..usual };
        let program = Program { folder: "/usr/bin".into(), ..Program::default() };
        let words = Memcached.command(&node(&store, &[11311], &program)).unwrap();
        assert!(
            words.join(" ").starts_with("/usr/bin/memcached -l 127.0.0.11 -p 11311 -U 0 -m 256 -c "),
            "{words:?}"
        );
        assert!(words.join(" ").contains(" -t 3"), "{words:?}");
        assert!(Memcached.remarks(&store).contains("beyond 256MiB"));
    }

    #[test]
    fn it_is_known_by_its_process() {
        let ask = |said: &'static [u8], process: u32| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let listens = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 7]).unwrap();
                stream.write_all(said).unwrap();
            });
            let place = NodeAddress { process: Some(process), ..listens.into() };
            let answer = Memcached.ask(place, &"ours".into(), None);
            server.join().unwrap();
            answer
        };
        assert!(ask(b"STAT pid 17\r\nEND\r\n", 17).is_ok());
        assert!(
            matches!(ask(b"STAT pid 18\r\nSTAT x y z\r\nEND\r\n", 17), Err(NotReady::Another(name)) if name == "process 18")
        );
        assert!(matches!(ask(b"ERROR\r\n", 17), Err(NotReady::Yet(_))));
        assert!(matches!(ask(b"", 17), Err(NotReady::Yet(_))));
    }
}
