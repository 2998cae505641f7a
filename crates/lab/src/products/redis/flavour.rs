//! How the products differ that speak Redis' protocol: their programs, and how these are told what to do.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::json;
use tidemark_scenario::plan::{Durability, Store};

use super::persistence;
use crate::error::LabError;
use crate::stores::installed::Package;
use crate::stores::launcher::{NodeSetup, quoted, text};

/// The file of its data folder that has the password.
const PASSWORD: &str = "password.conf";
/// How often Garnet commits its append-only file, milliseconds.
const COMMIT_EVERY_MS: u32 = 1_000;

/// A product that speaks Redis' protocol.
#[derive(Debug)]
pub struct Flavour {
    /// Its program by each of the names that it goes by.
    packages: &'static [Package],
    told: Told,
}

/// How it is told what to do.
#[derive(Debug)]
enum Told {
    /// By a file like Redis' own; its directive for threads.
    File { threads: &'static str },
    /// By flags, the password by a file of them.
    Flags,
    /// By a file of JSON.
    Json,
}

/// Redis.
pub static REDIS: Flavour = Flavour {
    packages: &[Package {
        title: "Redis",
        programs: &["redis-server"],
        how: "install it (Debian: apt-get install redis-server)",
    }],
    told: Told::File { threads: "io-threads" },
};

/// Valkey.
pub static VALKEY: Flavour = Flavour {
    packages: &[Package {
        title: "Valkey",
        programs: &["valkey-server"],
        how: "install it (Debian 13, or 12 with its backports: apt-get install valkey-server)",
    }],
    told: Told::File { threads: "io-threads" },
};

/// KeyDB.
pub static KEYDB: Flavour = Flavour {
    packages: &[Package {
        title: "KeyDB",
        programs: &["keydb-server"],
        how: "put it there (Debian has none: build it, or take its own package)",
    }],
    told: Told::File { threads: "server-threads" },
};

/// Dragonfly.
pub static DRAGONFLY: Flavour = Flavour {
    packages: &[Package {
        title: "Dragonfly",
        programs: &["dragonfly"],
        how: "put it there (Debian has none: take the program of one of its releases)",
    }],
    told: Told::Flags,
};

/// Garnet.
pub static GARNET: Flavour = Flavour {
    packages: &[
        Package {
            title: "Garnet",
            programs: &["GarnetServer"],
            how: "put it there, or as garnet-server (Debian has none: take one of its releases, and the .NET that it needs)",
        },
        Package { title: "Garnet", programs: &["garnet-server"], how: "" },
    ],
    told: Told::Json,
};

impl Flavour {
    /// The product, for people.
    pub fn title(&self) -> &'static str {
        self.packages[0].title
    }

    /// Its program, by whichever name it is there, and the folder of it.
    ///
    /// # Errors
    /// Where there is none, with how to get it.
    pub fn found(&self, places: &[PathBuf]) -> Result<(&'static Package, PathBuf), LabError> {
        let found = |package: &'static Package| Ok((package, package.folder(places.iter().cloned())?));
        self.packages
            .iter()
            .find_map(|package| found(package).ok())
            .map_or_else(|| found(&self.packages[0]), Ok)
    }

    /// Whether it says which file it was configured by.
    pub fn names_its_file(&self) -> bool {
        matches!(self.told, Told::File { .. })
    }

    /// What it calls its threads, where their number can be said.
    pub fn threads(&self) -> Option<&'static str> {
        match self.told {
            Told::File { threads } => Some(threads),
            Told::Flags => Some("proactor_threads"),
            Told::Json => None,
        }
    }

    /// What an acknowledgement means.
    pub fn durability(&self, store: &Store) -> String {
        match self.told {
            Told::File { .. } => persistence::remarks(store),
            Told::Json if store.durability != Durability::Memory => format!(
                "append-only file committed every {COMMIT_EVERY_MS} ms: acknowledged before that; whether a commit waits \
                 for the disk is not known"
            ),
            Told::Flags | Told::Json => "kept in memory only: nothing outlives its process".to_owned(),
        }
    }

    /// Writes a node's files.
    pub fn configure(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        let (secret, password) = (node.data.join(PASSWORD), node.password);
        match self.told {
            Told::File { threads } => {
                fs::write(secret, format!("requirepass {password}\nmasterauth {password}\n"))?;
                fs::write(file(node), directives(node, threads))
            }
            Told::Flags => fs::write(secret, format!("--requirepass={password}\n")),
            Told::Json => fs::write(secret, format!("{:#}\n", settings(node))),
        }
    }

    /// The command that starts a node.
    pub fn command_line(&self, node: &NodeSetup<'_>) -> Vec<String> {
        let program = |package: &Package| node.program.folder.join(package.programs[0]);
        let there = self.packages.iter().map(program).find(|program| program.is_file());
        let program = text(&there.unwrap_or_else(|| program(&self.packages[0])));
        let secret = text(&node.data.join(PASSWORD));
        match self.told {
            Told::File { .. } => vec![program, text(&file(node))],
            Told::Flags => [program, format!("--flagfile={secret}")].into_iter().chain(flags(node)).collect(),
            Told::Json => vec![program, "--config-import-path".into(), secret],
        }
    }
}

/// The file of configuration, by whose name a node is known.
fn file(node: &NodeSetup<'_>) -> PathBuf {
    node.configuration.join(format!("{}.conf", node.identity))
}

/// A file like Redis' own.
fn directives(node: &NodeSetup<'_>, threads: &str) -> String {
    let store = node.store;
    let mut lines = format!(
        "bind {}\nport {}\nprotected-mode yes\ndaemonize no\ndir {}\ninclude {}\n{}",
        node.listen,
        node.ports[0],
        quoted(&node.data),
        quoted(&node.data.join(PASSWORD)),
        persistence::lines(store),
    );
    if let Some(bytes) = store.memory_bytes {
        let _ = writeln!(lines, "maxmemory {bytes}");
    }
    if let Some(count) = store.threads {
        let _ = writeln!(lines, "{threads} {count}");
    }
    if let Some(cluster) = store.cluster {
        let (own, address) = (node.listen, node.addresses[node.index]);
        let _ = write!(
            lines,
            "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout {}\ncluster-announce-ip {own}\n\
             repl-diskless-sync-delay 0\n",
            cluster.failover_after.as_millis()
        );
        if own != address {
            // nodes reach each other at their own addresses, clients by the links
            let _ = write!(
                lines,
                "cluster-announce-hostname {address}\ncluster-preferred-endpoint-type hostname\n"
            );
        }
    }
    lines
}

/// Dragonfly's flags.
fn flags(node: &NodeSetup<'_>) -> Vec<String> {
    let store = node.store;
    let mut words = vec![
        format!("--bind={}", node.listen),
        format!("--port={}", node.ports[0]),
        format!("--dir={}", text(&node.data)),
        // no snapshot, not even at its end
        "--dbfilename=".into(),
        "--logtostderr".into(),
        "--version_check=false".into(),
    ];
    words.extend(store.threads.map(|count| format!("--proactor_threads={count}")));
    words.extend(store.memory_bytes.map(|bytes| format!("--maxmemory={bytes}")));
    words
}

/// Garnet's settings.
fn settings(node: &NodeSetup<'_>) -> serde_json::Value {
    let store = node.store;
    let keeps = store.durability != Durability::Memory;
    let mut all = json!({
        "Address": node.listen.to_string(),
        "Port": node.ports[0],
        "AuthenticationMode": "Password",
        "Password": node.password,
        "EnableAOF": keeps,
        "CommitFrequencyMs": COMMIT_EVERY_MS,
        "Recover": keeps,
        "LogDir": text(&node.data),
        "CheckpointDir": text(&node.data),
    });
    if let Some(bytes) = store.memory_bytes {
        all["MemorySize"] = format!("{}m", bytes >> 20).into();
    }
    all
}
