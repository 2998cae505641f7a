//! Apache Kafka without ZooKeeper: every node is broker and controller.
//!
//! Replication follows the number of nodes, and with three of them a message needs two that have it (`acks=all`).

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use tidemark_scenario::plan::Store;

use super::jars::Jars;
use super::java::Java;
use super::kit::{Kit, NodeSetup};

/// How long a node may take to connect, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes at the beginning of an answer that are looked at: its length, the number of the request, a count.
const ANSWER_BYTES: usize = 12;
/// Largest answer that is one, bytes.
const ANSWER_BYTES_MAX: u32 = 1 << 20;
/// Kafka's number for the request for metadata.
const METADATA: u16 = 3;
/// The number of our one request.
const CORRELATION: u32 = 0x7469_6465;
/// Names the cluster, in the form that Kafka wants: 16 bytes in base64.
const CLUSTER_ID: &str = "dGlkZW1hcmstc3RvcmVzMQ";

const MIB: u64 = 1 << 20;

/// Apache Kafka.
pub struct Kafka;

impl Kit for Kafka {
    fn jars(&self, _: &str) -> Jars {
        Jars { title: "Kafka 4.3.1", folder: "kafka-4.3.1", pom: include_str!("poms/kafka-4.3.xml") }
    }

    fn ports(&self) -> [u16; 2] {
        [9092, 9093]
    }

    fn setting(&self) -> &'static str {
        "kafka"
    }

    fn remarks(&self, store: &Store) -> String {
        let flush = match store.synced {
            true => "flushed to disk with each batch, before it is acknowledged",
            false => "acknowledged before it is on disk, flushed by the operating system",
        };
        match store.nodes {
            1 => format!("{flush}; not replicated"),
            nodes => format!("{flush}; {nodes} replicas, {} of them in sync for acks=all", in_sync(nodes)),
        }
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::create_dir_all(node.data.join("tmp"))?;
        fs::write(node.configuration.join("server.properties"), properties(node))?;
        fs::write(node.configuration.join("log4j2.xml"), LOG4J)
    }

    fn before_first_start(&self, node: &NodeSetup<'_>, java: &Java) -> Option<Vec<String>> {
        let file = text(&node.configuration.join("server.properties"));
        let arguments = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", &file];
        Some(java_command(node, java, 128, &arguments))
    }

    fn command(&self, node: &NodeSetup<'_>, java: &Java) -> io::Result<Vec<String>> {
        let file = text(&node.configuration.join("server.properties"));
        Ok(java_command(node, java, node.store.heap_bytes / MIB, &["kafka.Kafka", &file]))
    }

    fn ask(&self, address: SocketAddr, all: Option<usize>) -> io::Result<()> {
        let brokers = brokers(address)?;
        match all.filter(|nodes| brokers < *nodes as u32) {
            Some(nodes) => Err(io::Error::other(format!("it knows {brokers} of {nodes} nodes"))),
            None => Ok(()),
        }
    }
}

/// Replicas that must have a message: one may be down.
fn in_sync(nodes: usize) -> usize {
    (nodes - 1).max(1)
}

fn java_command(node: &NodeSetup<'_>, java: &Java, heap_mib: u64, arguments: &[&str]) -> Vec<String> {
    let configuration = text(&node.configuration);
    let mut words = vec![
        text(&java.program),
        format!("-Xms{heap_mib}M"),
        format!("-Xmx{heap_mib}M"),
        "-XX:+UseG1GC".into(),
        "-XX:MaxGCPauseMillis=20".into(),
        "-XX:+ExitOnOutOfMemoryError".into(),
        format!("-XX:ErrorFile={configuration}/java-error.log"),
        "-Djava.awt.headless=true".into(),
        format!("-Djava.io.tmpdir={}", text(&node.data.join("tmp"))),
        format!("-Dlog4j2.configurationFile={configuration}/log4j2.xml"),
        "-cp".into(),
        format!("{configuration}:{}/*", text(&node.lib)),
    ];
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    words
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn properties(node: &NodeSetup<'_>) -> String {
    let [client, controller] = node.ports;
    let address = node.addresses[node.index];
    let id = |index: usize| index + 1;
    let voters: Vec<String> = (0..node.addresses.len())
        .map(|index| format!("{}@{}:{controller}", id(index), node.addresses[index]))
        .collect();
    let nodes = node.addresses.len();
    // one message at a time is flushed as one batch: all that a request brought
    let flush = if node.store.synced { "log.flush.interval.messages=1\n" } else { "" };
    // in this form of file a backslash begins an escape
    let data = text(&node.data.join("log")).replace('\\', "\\\\");
    format!(
        "process.roles=broker,controller\n\
         node.id={}\n\
         controller.quorum.voters={}\n\
         controller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://{address}:{client},CONTROLLER://{address}:{controller}\n\
         advertised.listeners=PLAINTEXT://{address}:{client}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         log.dirs={data}\n\
         {flush}\
         num.partitions={nodes}\n\
         default.replication.factor={nodes}\n\
         min.insync.replicas={in_sync}\n\
         offsets.topic.replication.factor={nodes}\n\
         offsets.topic.num.partitions=4\n\
         transaction.state.log.replication.factor={nodes}\n\
         transaction.state.log.min.isr={in_sync}\n\
         share.coordinator.state.topic.replication.factor={nodes}\n\
         share.coordinator.state.topic.min.isr={in_sync}\n\
         group.initial.rebalance.delay.ms=0\n\
         log.segment.bytes=67108864\n\
         log.cleaner.dedupe.buffer.size=8388608\n",
        id(node.index),
        voters.join(","),
        in_sync = in_sync(nodes),
    )
}

const LOG4J: &str = "\
<Configuration status=\"WARN\">
  <Appenders><Console name=\"out\"><PatternLayout pattern=\"%d %p %m (%c)%n\"/></Console></Appenders>
  <Loggers><Root level=\"info\"><AppenderRef ref=\"out\"/></Root></Loggers>
</Configuration>
";

/// How many brokers a node says that there are.
fn brokers(address: SocketAddr) -> io::Result<u32> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&metadata_request())?;
    let mut answer = [0; ANSWER_BYTES];
    stream.read_exact(&mut answer)?;
    count(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it sent no answer of Kafka"))
}

/// Version 0 of the request for metadata, of all topics: length, kind, version, number, who asks, no topics named.
fn metadata_request() -> Vec<u8> {
    let name = b"tidemark";
    let mut body = [METADATA.to_be_bytes(), 0u16.to_be_bytes()].concat();
    body.extend_from_slice(&CORRELATION.to_be_bytes());
    body.extend_from_slice(&(name.len() as u16).to_be_bytes());
    body.extend_from_slice(name);
    body.extend_from_slice(&0u32.to_be_bytes());
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

/// The number of brokers at the beginning of the answer.
fn count(answer: &[u8; ANSWER_BYTES]) -> Option<u32> {
    let word = |at: usize| u32::from_be_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
    let is_one = (8..=ANSWER_BYTES_MAX).contains(&word(0)) && word(4) == CORRELATION;
    is_one.then(|| word(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let addresses: Vec<IpAddr> =
            ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap()).into();
        let ready_within = Duration::from_secs(1);
        let store = Store {
            product: Product::Kafka,
            version: "4.3",
            nodes: 3,
            heap_bytes: 300 * MIB,
            synced: true,
            ready_within,
        };
        let setup = |store| NodeSetup {
            store,
            index: 1,
            addresses: &addresses,
            ports: [9192, 9193],
            configuration: "/run/stores/kafka.2".into(),
            data: "/run/data/kafka.2".into(),
            lib: "/lib".into(),
        };
        let text = properties(&setup(&store));
        for line in [
            "node.id=2",
            "controller.quorum.voters=1@127.0.0.1:9193,2@127.0.0.2:9193,3@127.0.0.3:9193",
            "listeners=PLAINTEXT://127.0.0.2:9192,CONTROLLER://127.0.0.2:9193",
            "log.dirs=/run/data/kafka.2/log",
            "log.flush.interval.messages=1",
            "min.insync.replicas=2",
            "default.replication.factor=3",
        ] {
            assert!(text.lines().any(|had| had == line), "{line} in\n{text}");
        }
        let java = Java { program: "java".into(), version: "17".into() };
        let command = Kafka.command(&setup(&store), &java).unwrap();
        assert!(
            command.contains(&"-Xmx300M".into()) && command.contains(&"kafka.Kafka".into()),
            "{command:?}"
        );
        let store = Store { synced: false, ..store.clone() };
        assert!(!properties(&setup(&store)).contains("log.flush"));
        assert_eq!([1, 2, 3].map(in_sync), [1, 1, 2]);
    }

    #[test]
    fn brokers_are_counted() {
        let mut answer = [0; ANSWER_BYTES];
        answer[3] = 20;
        answer[4..8].copy_from_slice(&CORRELATION.to_be_bytes());
        answer[11] = 3;
        assert_eq!(count(&answer), Some(3));
        assert_eq!(count(b"HTTP/1.1 400"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_number_or_none(answer: [u8; ANSWER_BYTES]) {
            let _ = count(&answer);
        }
    }
}
