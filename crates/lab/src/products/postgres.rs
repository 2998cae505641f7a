//! PostgreSQL: its configuration, its command. It is asked by its own client, with a query over TCP.
//!
//! It refuses to run as root; as root we start it as its package's user.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use rustix::process::Signal;
use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::installed::{Package, answer, usual_folders};
use crate::stores::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, text};

/// Its user, and the name of the database that is there from the beginning.
const NAME: &str = "postgres";
/// Where Debian has it, by its major version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Most of its connections; its own default leaves no room for a system under load.
const CONNECTIONS_MAX: u32 = 500;

const PACKAGE: Package = Package {
    title: "PostgreSQL",
    programs: &["postgres", "initdb", "psql"],
    how: "install it (Debian: apt-get install postgresql)",
};

/// The file of its data folder that has the password.
const PASSWORD: &str = "password";

/// PostgreSQL.
pub struct Postgres;

/// Where it may be, the newest first.
fn places() -> Vec<PathBuf> {
    let folders = fs::read_dir(VERSIONS).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let major = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<(Option<u32>, PathBuf)> =
        folders.map(|path| (major(&path), path.join("bin"))).collect();
    folders.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    folders.into_iter().map(|(_, path)| path).chain(usual_folders()).collect()
}

impl Launcher for Postgres {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let folder = PACKAGE.folder(places())?;
        Ok(Program { title: PACKAGE.title(&folder), folder, java: None })
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[5432]
    }

    fn url(&self, _: &Store, addresses: &[SocketAddr], password: &str) -> Option<String> {
        let address = addresses.first()?;
        Some(format!("postgres://{NAME}:{password}@{address}/{NAME}"))
    }

    fn remarks(&self, store: &Store) -> String {
        let commit = match store.is_synced() {
            true => "synchronous_commit on: acknowledged when it is on disk",
            false => "synchronous_commit off: acknowledged before it is on disk, within about 0.6 s of that",
        };
        format!("{commit}; on the loopback interface only")
    }

    fn user(&self) -> Option<&'static str> {
        Some(NAME)
    }

    /// A fast shutdown: by SIGTERM it waits until its clients are gone.
    fn stop_signal(&self) -> Signal {
        Signal::INT
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        let configuration = configuration(node);
        fs::create_dir_all(&node.configuration)?;
        fs::write(node.configuration.join("postgresql.conf"), &configuration)?;
        // its user need not be able to read what else is in the run directory
        fs::write(node.data.join("postgresql.conf"), &configuration)?;
        fs::write(node.data.join(PASSWORD), node.password)
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        let program = text(&node.program.folder.join("initdb"));
        let data = text(&node.data.join("pg"));
        let password = format!("--pwfile={}", text(&node.data.join(PASSWORD)));
        let rest =
            ["-U", NAME, "-A", "scram-sha-256", &password, "-E", "UTF8", "--locale=C.UTF-8", "-D", &data];
        Some(std::iter::once(program).chain(rest.map(str::to_owned)).collect())
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let program = text(&node.program.folder.join("postgres"));
        let file = format!("config_file={}", text(&node.data.join("postgresql.conf")));
        Ok(vec![program, "-D".into(), text(&node.data.join("pg")), "-c".into(), file])
    }

    /// Its children outlive it by a moment where it is killed, and hold its memory.
    fn is_held_up_by_predecessor(&self, log: &str) -> bool {
        log.contains("pre-existing shared memory block") || log.contains("Is another postmaster")
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let folder = PACKAGE.folder(places()).map_err(io::Error::other)?;
        let (host, port) = (place.listens.ip().to_string(), place.listens.port().to_string());
        let query = "select current_setting('cluster_name')";
        let words = ["-X", "-A", "-t", "-w", "-h", &host, "-p", &port, "-U", NAME, "-d", NAME, "-c", query];
        let found = answer(
            &folder.join("psql"),
            words,
            &[("PGCONNECT_TIMEOUT", "5"), ("PGPASSWORD", &identity.password)],
        )?;
        NotReady::unless_same(found, &identity.name)
    }
}

fn configuration(node: &NodeSetup<'_>) -> String {
    let commit = if node.store.is_synced() { "on" } else { "off" };
    let mebibytes = |bytes: u64| format!("shared_buffers = {}MB\n", bytes >> 20);
    format!(
        "listen_addresses = '{}'\n\
         port = {}\n\
         unix_socket_directories = ''\n\
         cluster_name = '{}'\n\
         max_connections = {CONNECTIONS_MAX}\n\
         fsync = on\n\
         synchronous_commit = {commit}\n\
         dynamic_shared_memory_type = mmap\n\
         {}",
        node.listen,
        node.ports[0],
        node.identity,
        node.store.memory_bytes.map(mebibytes).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use tidemark_scenario::plan::{Durability, Product};

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let store = Store {
            durability: Durability::Buffered,
            memory_bytes: Some(64 << 20),
            ..Store::new("people", Product::Postgres)
        };
        let text = configuration(&node(&store, &[5532], &Program::default()));
        for line in [
            "listen_addresses = '127.0.0.11'",
            "port = 5532",
            "cluster_name = 'tidemark-1'",
            "synchronous_commit = off",
            "shared_buffers = 64MB",
        ] {
            assert!(text.lines().any(|had| had == line), "{line} in\n{text}");
        }
    }
}
