//! Redis, and what speaks its protocol: Valkey, KeyDB, Dragonfly, Garnet. One launcher; how they differ stands in a
//! table of [flavours](super::flavour).

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use tidemark_scenario::plan::Store;

use super::flavour::Flavour;
use super::{cluster, resp};
use crate::error::LabError;
use crate::process::Patience;
use crate::stores::installed::usual_folders;
use crate::stores::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, dial};

/// Port for clients, and that of a cluster's nodes between each other, which is as far above it as they want it.
const PORTS: [u16; 2] = [6379, 6379 + 10_000];

/// A connection to a node.
pub type Connection = resp::Connection<TcpStream>;

/// Connects to a node, with the password.
///
/// # Errors
/// Where nobody listens there, or the password is not taken.
pub fn connect(address: SocketAddr, password: &str) -> io::Result<Connection> {
    let mut connection = Connection::new(dial(address)?);
    connection.demand(&["AUTH", password])?;
    Ok(connection)
}

impl Launcher for Flavour {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let (package, folder) = self.found(&usual_folders())?;
        Ok(Program { title: package.title(&folder), folder, java: None })
    }

    fn ports(&self, store: &Store) -> &'static [u16] {
        if store.cluster.is_some() { &PORTS } else { &PORTS[..1] }
    }

    fn is_in_a_row(&self) -> bool {
        true
    }

    fn url(&self, store: &Store, addresses: &[SocketAddr], password: &str) -> Option<String> {
        let scheme = if store.cluster.is_some() { "redis-cluster" } else { "redis" };
        let places: Vec<String> = addresses.iter().take(store.nodes).map(SocketAddr::to_string).collect();
        Some(format!("{scheme}://:{password}@{}", places.join(",")))
    }

    fn remarks(&self, store: &Store) -> String {
        let mut text = self.durability(store);
        if let (Some(count), Some(called)) = (store.threads, self.threads()) {
            text += &format!("; {called} {count}");
        }
        if let Some(cluster) = store.cluster {
            text += &cluster::remarks(cluster);
        }
        text
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        self.configure(node)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        Ok(self.command_line(node))
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, all: Option<usize>) -> Result<(), NotReady> {
        let mut connection = Connection::new(dial(place.listens)?);
        if connection.ask(&["INFO"])?.is_ok() {
            return Err(NotReady::Another(format!("a {} without a password", self.title())));
        }
        // nobody else knows a password that was made for this instance
        if connection.ask(&["AUTH", &identity.password])?.is_err() {
            return Err(NotReady::Another(format!("a {} that does not take its password", self.title())));
        }
        let said = connection.demand(&["INFO"])?;
        if self.names_its_file() {
            // the name of its file of configuration, which no other has
            let file = field(&said, "config_file").unwrap_or_default();
            let name = Path::new(file).file_stem().map(|name| name.to_string_lossy().into_owned());
            NotReady::unless_same(name.unwrap_or_default(), &identity.name)?;
        }
        match field(&said, "loading") {
            Some("0") => {}
            None if !self.names_its_file() => {}
            _ => return Err(io::Error::other("it still loads its data").into()),
        }
        if field(&said, "cluster_enabled") == Some("1") {
            cluster::serves(&mut connection, all)?;
        }
        Ok(())
    }

    fn is_joined(&self, store: &Store) -> bool {
        store.cluster.is_some()
    }

    fn join(
        &self,
        store: &Store,
        nodes: &[NodeAddress],
        identity: &Identity,
        patience: Patience<'_>,
    ) -> io::Result<()> {
        cluster::join(store, nodes, identity, patience)
    }
}

/// A line `name:value`.
pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::redis::{KEYDB, REDIS};
    use proptest::prelude::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{IpAddr, TcpListener};
    use std::time::Duration;
    use tidemark_scenario::plan::{AppendOnly, Cluster, Durability, Persistence, Product, SnapshotAfter};

    fn configuration(store: &Store, listen: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let addresses: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(); store.processes()];
        let node = NodeSetup {
            store,
            index: 0,
            identity: "tidemark-1",
            password: "p",
            addresses: &addresses,
            listen: listen.parse().unwrap(),
            ports: &[6479, 16479],
            configuration: folder.path().join("stores"),
            data: folder.path().join("it's \"here\""),
            program: &Program::default(),
        };
        fs::create_dir_all(&node.data).unwrap();
        let flavour = if store.product == Product::Keydb { &KEYDB } else { &REDIS };
        flavour.write(&node).unwrap();
        assert!(fs::read_to_string(node.data.join("password.conf")).unwrap().contains("requirepass p\n"));
        fs::read_to_string(node.configuration.join("tidemark-1.conf")).unwrap()
    }

    fn has(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|had| had == *line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let of = |durability, memory_bytes| {
            let usual = Store::new("cache", Product::Redis);
            configuration(&Store { durability, memory_bytes, ..usual }, "127.0.0.1")
        };
        let synced = of(Durability::Synced, Some(16 << 20));
        has(
            &synced,
            &["bind 127.0.0.1", "port 6479", "appendfsync always", "maxmemory 16777216", "save \"\""],
        );
        assert!(synced.contains("/it's \\\"here\\\"\"\n") && !synced.contains("cluster"), "{synced}");
        has(&of(Durability::Buffered, None), &["appendfsync everysec"]);
        let memory = of(Durability::Memory, None);
        assert!(memory.contains("appendonly no\n") && !memory.contains("maxmemory"), "{memory}");
    }

    #[test]
    fn files_threads_and_clusters_are_configured_too() {
        let after = |seconds, changes| SnapshotAfter { seconds, changes };
        let persistence = Persistence {
            append_only: Some(AppendOnly::Unsynced),
            snapshots: vec![after(60, 1000), after(300, 10)],
            rewrite_at_bytes: Some(1 << 20),
            rewrite_growth_percent: Some(0),
        };
        let usual = Store::new("cache", Product::Redis);
        let store =
            Store { persistence, threads: Some(4), durability: Durability::Buffered, ..usual.clone() };
        let text = configuration(&store, "127.0.0.1");
        has(&text, &["appendonly yes", "appendfsync no", "save 60 1000", "save 300 10", "io-threads 4"]);
        has(&text, &["auto-aof-rewrite-min-size 1048576", "auto-aof-rewrite-percentage 0"]);
        assert!(!text.contains("save \"\""), "{text}");
        let remarks = REDIS.remarks(&store);
        for part in ["appendfsync no", "60 s with 1000 changes", "never rewritten", "io-threads 4"] {
            assert!(remarks.contains(part), "{part} in {remarks}");
        }
        let keydb = Store { threads: Some(4), ..Store::new("cache", Product::Keydb) };
        has(&configuration(&keydb, "127.0.0.1"), &["server-threads 4"]);
        let cluster = Some(Cluster { replicas: 1, failover_after: Duration::from_millis(1500) });
        let store = Store { cluster, nodes: 3, ..usual };
        let text = configuration(&store, "127.0.0.1");
        has(&text, &["cluster-enabled yes", "cluster-node-timeout 1500", "cluster-announce-ip 127.0.0.1"]);
        assert!(!text.contains("hostname"), "{text}");
        // behind a link, clients are sent to that
        let linked = configuration(&store, "127.0.0.11");
        has(&linked, &["cluster-announce-ip 127.0.0.11", "cluster-announce-hostname 127.0.0.1"]);
    }

    #[test]
    fn clients_are_told_of_all_servers_and_of_a_cluster_its_masters() {
        let places: Vec<SocketAddr> =
            (1..=4).map(|port| SocketAddr::new("127.0.0.1".parse().unwrap(), port)).collect();
        let one = Store::new("cache", Product::Redis);
        let url = |store: &Store, count| REDIS.url(store, &places[..count], "p").unwrap();
        assert_eq!(url(&one, 1), "redis://:p@127.0.0.1:1");
        let two = Store { nodes: 2, ..one.clone() };
        assert_eq!(url(&two, 2), "redis://:p@127.0.0.1:1,127.0.0.1:2");
        let cluster = Some(Cluster { replicas: 1, failover_after: Duration::from_secs(2) });
        let cluster = Store { cluster, ..two };
        assert_eq!(url(&cluster, 4), "redis-cluster://:p@127.0.0.1:1,127.0.0.1:2");
        assert_eq!(cluster.names(), ["cache", "cache.1", "cache.2", "cache.3", "cache.4"]);
        assert_eq!((REDIS.ports(&one), REDIS.ports(&cluster)), (&PORTS[..1], &PORTS[..]));
    }

    /// Answers one connection: each command with the next of these.
    fn answers(answers: &'static [&'static str]) -> NodeAddress {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            for answer in answers {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let words: usize = line.trim().trim_start_matches('*').parse().unwrap();
                for _ in 0..words * 2 {
                    reader.read_line(&mut line).unwrap();
                }
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        address.into()
    }

    const NO: &str = "-NOAUTH Authentication required.\r\n";

    #[test]
    fn only_the_one_that_was_started_is_ready() {
        let ask = |said: &'static [&'static str]| match REDIS.ask(answers(said), &"ours".into(), None) {
            Ok(()) => "ready".to_owned(),
            Err(NotReady::Yet(error)) => format!("not yet: {error}"),
            Err(NotReady::Another(name)) => format!("another: {name}"),
        };
        assert_eq!(ask(&[NO, "+OK\r\n", "$35\r\nconfig_file:/a/ours.conf\r\nloading:0\r\n\r\n"]), "ready");
        assert!(
            ask(&[NO, "+OK\r\n", "$35\r\nconfig_file:/a/ours.conf\r\nloading:1\r\n\r\n"]).contains("loads")
        );
        let other = ask(&[NO, "+OK\r\n", "$37\r\nconfig_file:/a/theirs.conf\r\nloading:0\r\n\r\n"]);
        assert_eq!(other, "another: theirs");
        assert!(ask(&[NO, "-WRONGPASS invalid\r\n"]).contains("does not take its password"));
        assert!(ask(&["$3\r\na:1\r\n"]).contains("without a password"));
        assert!(ask(&["HTTP/1.1 200 OK\r\n"]).starts_with("not yet"));
        assert!(ask(&[]).starts_with("not yet"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_answer_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..80), sized in any::<bool>()) {
            let head = if sized { b"$40\r\n".to_vec() } else { Vec::new() };
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(&[head, bytes].concat());
            });
            prop_assert!(REDIS.ask(address.into(), &"ours".into(), None).is_err());
            server.join().unwrap();
        }

        #[test]
        fn a_field_is_found_in_any_text(text in "[a-z:\r\n]{0,40}") {
            let _ = field(&text, "a");
            let line = format!("{text}\nconfig_file:x\r\n");
            prop_assert_eq!(field(&line, "config_file"), Some("x"));
        }
    }
}
