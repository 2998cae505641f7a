//! Apache Cassandra: its jars, its configuration, its command.
//!
//! The jars hold no configuration, so what a node needs is written into the run directory. Start-up is shortened only
//! where nothing is at stake: tokens are given, evenly, to nodes on an empty ring, all of them seeds, so that they can
//! start together, and the wait for the ring is 10 s; a node alone has no gossip to wait for. Everything else is
//! Cassandra's own default, except sizes, which follow the heap.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use tidemark_scenario::plan::Store;

use super::cql::{Connection, Consistency};
use crate::error::LabError;
use crate::stores::jars::Jars;
use crate::stores::java::Needs;
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, with_jars, yaml_quoted,
};

/// Tokens of each node, Cassandra's default.
const TOKENS: i128 = 16;
/// How long a node waits to learn of the ring, ms; 30 s by default, which is meant for networks.
const RING_DELAY_MS: u32 = 10_000;
/// Threads for writes: Cassandra's default, and more where each of them waits for the disk.
const WRITERS: (u32, u32) = (32, 128);

const MIB: u64 = 1 << 20;

/// What opens the JDK to Cassandra, as its own start script does.
const EXPORTS: [&str; 9] = [
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.attach/sun.tools.attach",
];
const OPENS: [&str; 16] = [
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang.reflect",
    "jdk.compiler/com.sun.tools.javac",
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/java.nio",
    "java.rmi/sun.rmi.transport.tcp",
];
/// 4.1 was made for Java 8 and 11; it measures objects by walking their private fields.
const OPENS_OF_4: [&str; 20] = [
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
    "java.lang.invoke",
    "java.lang.ref",
    "java.net",
    "java.nio.channels",
    "java.nio.channels.spi",
    "java.nio.charset",
    "java.nio.file",
    "java.time",
    "java.math",
    "java.security",
    "java.util.function",
    "java.util.regex",
    "java.util.stream",
    "sun.nio.fs",
    "sun.nio.cs",
    "sun.net.www",
    "java.text",
];

/// The mode of its commit log.
fn commit_log(store: &Store) -> &'static str {
    if store.is_synced() { "batch" } else { "periodic" }
}

/// Apache Cassandra.
pub struct Cassandra;

impl Cassandra {
    fn jars(version: &str) -> Jars {
        match version {
            "4.1" => Jars {
                title: "Cassandra 4.1.10",
                folder: "cassandra-4.1.10",
                pom: include_str!("cassandra-4.1.xml"),
            },
            _ => Jars {
                title: "Cassandra 5.0.9",
                folder: "cassandra-5.0.9",
                pom: include_str!("cassandra-5.0.xml"),
            },
        }
    }
}

impl Launcher for Cassandra {
    fn program(&self, store: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        with_jars(Cassandra::jars(store.version), Needs::Exactly(17), fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[9042, 7000]
    }

    /// Of its first node, for a driver that speaks to one.
    fn url(&self, _: &Store, addresses: &[SocketAddr], _: &str) -> Option<String> {
        Some(format!("cql://{}", addresses.first()?))
    }

    fn remarks(&self, store: &Store) -> String {
        let mode = match store.is_synced() {
            true => "commit log in batch mode: acknowledged when it is on disk",
            false => "commit log in periodic mode: acknowledged before it is on disk, synced every 10 s",
        };
        let waits = match store.nodes {
            1 => "no wait for gossip at start-up".to_owned(),
            _ => format!(
                "wait for the ring at start-up {} s in place of 30 s, tokens given evenly",
                RING_DELAY_MS / 1000
            ),
        };
        format!("{mode}; {waits}")
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        write(node)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        command(node)
    }

    fn ask(&self, place: NodeAddress, cluster: &Identity, all: Option<usize>) -> Result<(), NotReady> {
        let mut connection = Connection::open(place.listens)?;
        let found = connection.text("SELECT cluster_name FROM system.local", Consistency::One)?;
        NotReady::unless_same(found, &cluster.name)?;
        let Some(nodes) = all.filter(|nodes| *nodes > 1) else { return Ok(()) };
        let peers = connection.count("SELECT count(*) FROM system.peers_v2", Consistency::One)?;
        if peers + 1 < nodes as u64 {
            return Err(io::Error::other(format!("it knows {} of {nodes} nodes", peers + 1)).into());
        }
        // a scan of what is replicated over the whole ring: refused at once if it misses a replica
        connection.count("SELECT count(*) FROM system_traces.sessions", Consistency::All)?;
        Ok(())
    }
}

/// Writes a node's configuration.
fn write(node: &NodeSetup<'_>) -> io::Result<()> {
    fs::create_dir_all(&node.configuration)?;
    fs::create_dir_all(node.data.join("tmp"))?;
    fs::write(node.configuration.join("cassandra.yaml"), yaml(node))?;
    fs::write(node.configuration.join("logback.xml"), LOGBACK)
}

fn yaml(node: &NodeSetup<'_>) -> String {
    let store = node.store;
    let place = |name: &str| yaml_quoted(&node.data.join(name));
    let (address, listen) = (node.addresses[node.index], node.listen);
    let seeds: Vec<String> = node.addresses.iter().map(IpAddr::to_string).collect();
    let (writers, mode) = (if store.is_synced() { WRITERS.1 } else { WRITERS.0 }, commit_log(store));
    let period = if store.is_synced() { "" } else { "commitlog_sync_period: 10000ms\n" };
    let memtable_mib = store.heap_bytes / 4 / MIB;
    let tokens: Vec<String> =
        tokens(node.index, node.addresses.len()).map(|token| token.to_string()).collect();
    format!(
        "cluster_name: {}\n\
         num_tokens: {TOKENS}\n\
         initial_token: '{}'\n\
         partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
         seed_provider:\n\
         - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n  \
           parameters: [{{seeds: '{}'}}]\n\
         listen_address: {address}\n\
         rpc_address: {listen}\n\
         broadcast_rpc_address: {address}\n\
         native_transport_port: {}\n\
         storage_port: {}\n\
         start_native_transport: true\n\
         endpoint_snitch: SimpleSnitch\n\
         authenticator: AllowAllAuthenticator\n\
         authorizer: AllowAllAuthorizer\n\
         data_file_directories: [{}]\n\
         commitlog_directory: {}\n\
         saved_caches_directory: {}\n\
         hints_directory: {}\n\
         cdc_raw_directory: {}\n\
         commitlog_sync: {mode}\n\
         {period}\
         commitlog_segment_size: 32MiB\n\
         disk_access_mode: mmap_index_only\n\
         memtable_heap_space: {memtable_mib}MiB\n\
         memtable_offheap_space: {memtable_mib}MiB\n\
         memtable_allocation_type: offheap_objects\n\
         file_cache_size: 64MiB\n\
         key_cache_size: 16MiB\n\
         concurrent_reads: 32\n\
         concurrent_writes: {writers}\n\
         concurrent_compactors: 2\n\
         compaction_throughput: 64MiB/s\n\
         incremental_backups: false\n\
         auto_snapshot: false\n",
        node.identity,
        tokens.join(","),
        seeds.join(","),
        node.ports[0],
        node.ports[1],
        place("sstables"),
        place("commitlog"),
        place("saved_caches"),
        place("hints"),
        place("cdc"),
    )
}

/// The command that starts it.
fn command(node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
    let heap_mib = node.store.heap_bytes / MIB;
    let path = |path: &Path| path.display().to_string();
    let (configuration, tmp) = (path(&node.configuration), path(&node.data.join("tmp")));
    let mut words = vec![
        node.program.java(),
        format!("-javaagent:{}", path(&jamm(node)?)),
        format!("-Xms{heap_mib}M"),
        format!("-Xmx{heap_mib}M"),
        format!("-XX:MaxDirectMemorySize={}M", heap_mib / 2),
        format!("-XX:ErrorFile={configuration}/java-error.log"),
        format!("-Djava.io.tmpdir={tmp}"),
        format!("-Djna.tmpdir={tmp}"),
        format!("-Dcassandra.config=file://{configuration}/cassandra.yaml"),
        format!("-Dlogback.configurationFile={configuration}/logback.xml"),
        format!("-Dcassandra.storagedir={}", path(&node.data)),
        format!("-Dcassandra.logdir={configuration}"),
        format!("-Dcassandra.ring_delay_ms={RING_DELAY_MS}"),
    ];
    if node.addresses.len() == 1 {
        words.push("-Dcassandra.skip_wait_for_gossip_to_settle=0".into());
    }
    words.extend(FIXED_OPTIONS.map(str::to_owned));
    words.extend(EXPORTS.map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
    words.extend(OPENS.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
    if node.store.version.starts_with('4') {
        words.extend(OPENS_OF_4.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
    }
    words.extend(["-cp".into(), format!("{configuration}:{}/*", path(&node.program.folder))]);
    words.push("org.apache.cassandra.service.CassandraDaemon".into());
    Ok(words)
}

/// The jar that measures objects, without which Cassandra does not start.
fn jamm(node: &NodeSetup<'_>) -> io::Result<PathBuf> {
    let jars = fs::read_dir(&node.program.folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    jars.into_iter()
        .find(|path| name(path).is_some_and(|name| name.starts_with("jamm-")))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no jamm-*.jar there"))
}

const FIXED_OPTIONS: [&str; 12] = [
    "-Xss512k",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=300",
    "-XX:+ParallelRefProcEnabled",
    "-XX:+PerfDisableSharedMem",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UseNUMA",
    "-ea",
    "-da:net.openhft...",
    "-Djava.net.preferIPv4Stack=true",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
];

const LOGBACK: &str = "\
<configuration>
  <appender name=\"OUT\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <encoder><pattern>%-5level [%thread] %date{ISO8601,UTC} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level=\"INFO\"><appender-ref ref=\"OUT\"/></root>
</configuration>
";

/// The tokens of a node: the ring in even parts, dealt to the nodes in turn.
fn tokens(index: usize, nodes: usize) -> impl Iterator<Item = i64> {
    let parts = TOKENS * nodes as i128;
    let token = move |part: i128| i128::from(i64::MIN) + ((part * 2 + 1) << 63) / parts;
    (0..TOKENS).map(move |turn| token(turn * nodes as i128 + index as i128) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_scenario::plan::{Durability, Product};

    fn store(version: &'static str, nodes: usize, synced: bool) -> Store {
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let usual = Store::new("cassandra", Product::Cassandra);
        Store { version, nodes, heap_bytes: 400 * MIB, durability, ..usual }
    }

    fn program(folder: &Path) -> Program {
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("lib/jamm-0.4.0.jar"), "").unwrap();
        Program { folder: folder.join("lib"), ..Program::default() }
    }

    fn setup<'a>(
        store: &'a Store,
        addresses: &'a [IpAddr],
        folder: &Path,
        program: &'a Program,
    ) -> NodeSetup<'a> {
        NodeSetup {
            store,
            index: addresses.len() - 1,
            identity: "tidemark-0123",
            password: "p",
            addresses,
            listen: addresses[addresses.len() - 1],
            ports: &[9142, 7100],
            configuration: folder.join("it's here"),
            data: folder.join("data"),
            program,
        }
    }

    #[test]
    fn tokens_divide_the_ring_evenly_and_none_is_given_twice() {
        for nodes in 1..=3 {
            let mut all: Vec<i64> = (0..nodes).flat_map(|index| tokens(index, nodes)).collect();
            all.sort_unstable();
            let parts = all.len() as u64;
            assert_eq!(parts, 16 * nodes as u64);
            let around = all.iter().zip(all.iter().cycle().skip(1));
            for (token, next) in around {
                let part = next.wrapping_sub(*token) as u64;
                assert!(part.abs_diff(u64::MAX / parts) <= parts, "{token} to {next}");
            }
        }
    }

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let folder = tempfile::tempdir().unwrap();
        let addresses: Vec<IpAddr> = ["127.0.0.1", "127.0.0.2"].map(|ip| ip.parse().unwrap()).into();
        let store = store("4.1", 2, false);
        let program = program(folder.path());
        let setup = setup(&store, &addresses, folder.path(), &program);
        let yaml = yaml(&setup);
        for line in [
            "cluster_name: tidemark-0123",
            "rpc_address: 127.0.0.2",
            "native_transport_port: 9142",
            "storage_port: 7100",
            "commitlog_sync: periodic",
            "commitlog_sync_period: 10000ms",
            "concurrent_writes: 32",
            "memtable_heap_space: 100MiB",
            "- class_name: org.apache.cassandra.locator.SimpleSeedProvider",
            "  parameters: [{seeds: '127.0.0.1,127.0.0.2'}]",
        ] {
            assert!(yaml.lines().any(|had| had == line), "{line} in\n{yaml}");
        }
        Cassandra.write(&setup).unwrap();
        assert!(setup.configuration.join("logback.xml").is_file() && setup.data.join("tmp").is_dir());
        let command = Cassandra.command(&setup).unwrap();
        assert!(command.contains(&"-Xmx400M".into()), "{command:?}");
        assert!(command.contains(&"--add-opens=java.base/java.time=ALL-UNNAMED".into()), "{command:?}");
        assert!(!command.iter().any(|word| word.contains("skip_wait_for_gossip")), "{command:?}");
    }

    #[test]
    fn a_node_alone_that_syncs_waits_for_the_disk_and_not_for_gossip() {
        let folder = tempfile::tempdir().unwrap();
        let addresses: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap()];
        let store = store("5.0", 1, true);
        let program = program(folder.path());
        let setup = setup(&store, &addresses, folder.path(), &program);
        let yaml = yaml(&setup);
        assert!(
            yaml.contains("commitlog_sync: batch\n") && !yaml.contains("commitlog_sync_period"),
            "{yaml}"
        );
        let command = Cassandra.command(&setup).unwrap();
        assert!(command.contains(&"-Dcassandra.skip_wait_for_gossip_to_settle=0".into()), "{command:?}");
        fs::remove_file(setup.program.folder.join("jamm-0.4.0.jar")).unwrap();
        assert!(Cassandra.command(&setup).unwrap_err().to_string().contains("jamm"));
    }
}
