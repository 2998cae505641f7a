//! Apache Kafka without ZooKeeper: every node is broker and controller.
//!
//! Replication follows the number of nodes, and with three of them a message needs two that have it (`acks=all`).

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::jars::Jars;
use crate::stores::java::Needs;
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, dial, text, with_jars,
};

/// Largest answer that is one, bytes.
const ANSWER_BYTES_MAX: u32 = 1 << 20;
/// Kafka's number for the request for metadata, and the first version of it whose answer names the cluster.
const METADATA: u16 = 3;
const METADATA_VERSION: u16 = 2;
/// The number of our one request.
const CORRELATION: u32 = 0x7469_6465;

const MIB: u64 = 1 << 20;

/// Apache Kafka.
pub struct Kafka;

const JARS: Jars =
    Jars { title: "Kafka 4.3.1", folder: "kafka-4.3.1", pom: include_str!("kafka/kafka-4.3.xml") };

impl Launcher for Kafka {
    fn program(&self, _: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        with_jars(JARS, Needs::Exactly(17), fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        // clients, controllers, brokers
        &[9092, 9093, 9094]
    }

    /// It is known by addresses.
    fn url(&self, _: &Store, _: &[SocketAddr], _: &str) -> Option<String> {
        None
    }

    fn remarks(&self, store: &Store) -> String {
        let flush = match store.is_synced() {
            true => "flushed to disk with each batch, before it is acknowledged",
            false => "acknowledged before it is on disk, flushed by the operating system",
        };
        match store.nodes {
            1 => format!("{flush}; not replicated"),
            nodes => format!("{flush}; {nodes} replicas, {} of them in sync for acks=all", in_sync(nodes)),
        }
    }

    /// Kafka wants 16 bytes in base64, which is 22 letters; the last stands for two bits only.
    fn identity(&self, unique: &str) -> String {
        format!("store{unique}A")
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::create_dir_all(node.data.join("tmp"))?;
        fs::write(node.configuration.join("server.properties"), properties(node))?;
        fs::write(node.configuration.join("log4j2.xml"), LOG4J)
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        let file = text(&node.configuration.join("server.properties"));
        let arguments = ["kafka.tools.StorageTool", "format", "-t", node.identity, "-c", &file];
        Some(java_command(node, 128, &arguments))
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let file = text(&node.configuration.join("server.properties"));
        Ok(java_command(node, node.store.heap_bytes / MIB, &["kafka.Kafka", &file]))
    }

    fn ask(&self, place: NodeAddress, cluster: &Identity, all: Option<usize>) -> Result<(), NotReady> {
        let (brokers, found) = metadata(place.listens)?;
        NotReady::unless_same(found, &cluster.name)?;
        // It answers before the controller lets it serve; only from then on it counts itself in.
        if !brokers.contains(&place.address) {
            return Err(io::Error::other("it does not serve yet").into());
        }
        match all.filter(|nodes| brokers.len() < *nodes) {
            Some(nodes) => {
                Err(io::Error::other(format!("it knows {} of {nodes} nodes", brokers.len())).into())
            }
            None => Ok(()),
        }
    }
}

/// Replicas that must have a message: one may be down.
fn in_sync(nodes: usize) -> usize {
    (nodes - 1).max(1)
}

fn java_command(node: &NodeSetup<'_>, heap_mib: u64, arguments: &[&str]) -> Vec<String> {
    let configuration = text(&node.configuration);
    let mut words = vec![
        node.program.java(),
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
        format!("{configuration}:{}/*", text(&node.program.folder)),
    ];
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    words
}

fn properties(node: &NodeSetup<'_>) -> String {
    let [client, controller, broker] = [0, 1, 2].map(|which| node.ports[which]);
    let (address, listen) = (node.addresses[node.index], node.listen);
    let id = |index: usize| index + 1;
    let voters: Vec<String> = (0..node.addresses.len())
        .map(|index| format!("{}@{}:{controller}", id(index), node.addresses[index]))
        .collect();
    let nodes = node.addresses.len();
    // brokers are no clients: what a link does is not done to them
    let (brokers, between) = match listen == address {
        true => (String::new(), "PLAINTEXT"),
        false => (format!(",BROKERS://{listen}:{broker}"), "BROKERS"),
    };
    // one message at a time is flushed as one batch: all that a request brought
    let flush = if node.store.is_synced() { "log.flush.interval.messages=1\n" } else { "" };
    // in this form of file a backslash begins an escape
    let data = text(&node.data.join("log")).replace('\\', "\\\\");
    format!(
        "process.roles=broker,controller\n\
         node.id={}\n\
         controller.quorum.voters={}\n\
         controller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://{listen}:{client},CONTROLLER://{address}:{controller}{brokers}\n\
         advertised.listeners=PLAINTEXT://{address}:{client}{brokers}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         inter.broker.listener.name={between}\n\
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

/// Which brokers a node says that there are, and the name of their cluster.
fn metadata(address: SocketAddr) -> io::Result<(Vec<SocketAddr>, String)> {
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "its answer is not Kafka's");
    let mut stream = dial(address)?;
    stream.write_all(&metadata_request())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > ANSWER_BYTES_MAX {
        return Err(odd());
    }
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer)?;
    brokers_and_cluster(&answer).ok_or_else(odd)
}

/// The request for metadata, of no topics: length, kind, version, number, who asks, how many topics.
fn metadata_request() -> Vec<u8> {
    let name = b"tidemark";
    let mut body = [METADATA.to_be_bytes(), METADATA_VERSION.to_be_bytes()].concat();
    body.extend_from_slice(&CORRELATION.to_be_bytes());
    body.extend_from_slice(&(name.len() as u16).to_be_bytes());
    body.extend_from_slice(name);
    body.extend_from_slice(&0u32.to_be_bytes());
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

/// What the beginning of the answer says: the request's number, brokers (id, host, port, rack), the cluster.
fn brokers_and_cluster(mut answer: &[u8]) -> Option<(Vec<SocketAddr>, String)> {
    let rest = &mut answer;
    let is_one = word(rest)? == CORRELATION;
    let mut brokers = Vec::new();
    for _broker in 0..word(rest).filter(|_| is_one)? {
        let _id = word(rest)?;
        let host = std::str::from_utf8(name(rest)?).ok()?;
        let port = word(rest)?;
        let _rack = name(rest)?;
        // one that is not where the lab put it is none of ours
        let place = host.parse().ok().zip(u16::try_from(port).ok());
        brokers.extend(place.map(|(ip, port)| SocketAddr::new(ip, port)));
    }
    let cluster = String::from_utf8(name(rest)?.to_vec()).ok()?;
    Some((brokers, cluster))
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(u32::from_be_bytes(*bytes))
}

/// A text behind its length, which is less than nothing where there is none.
fn name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (bytes, others) = rest.split_first_chunk()?;
    let length = usize::try_from(i16::from_be_bytes(*bytes)).unwrap_or(0);
    let (name, others) = others.split_at_checked(length)?;
    *rest = others;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, TcpListener};
    use tidemark_scenario::plan::{Durability, Product};

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let addresses: Vec<IpAddr> =
            ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap()).into();
        let store = Store { nodes: 3, heap_bytes: 300 * MIB, ..Store::new("kafka", Product::Kafka) };
        let program = Program { folder: "/lib".into(), ..Program::default() };
        let setup = |store| NodeSetup {
            store,
            index: 1,
            identity: "store0123456789abcdefA",
            password: "p",
            addresses: &addresses,
            listen: addresses[1],
            ports: &[9192, 9193, 9194],
            configuration: "/run/stores/kafka.2".into(),
            data: "/run/data/kafka.2".into(),
            program: &program,
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
        let command = Kafka.command(&setup(&store)).unwrap();
        assert!(
            command.contains(&"-Xmx300M".into()) && command.contains(&"kafka.Kafka".into()),
            "{command:?}"
        );
        let store = Store { durability: Durability::Buffered, ..store.clone() };
        assert!(!properties(&setup(&store)).contains("log.flush"));
        assert_eq!([1, 2, 3].map(in_sync), [1, 1, 2]);
    }

    /// An answer of so many brokers, on ports from one on.
    fn answer(brokers: u16, first_port: u16, cluster: &str) -> Vec<u8> {
        let mut answer = [CORRELATION.to_be_bytes(), u32::from(brokers).to_be_bytes()].concat();
        for id in 0..brokers {
            answer.extend_from_slice(&u32::from(id).to_be_bytes());
            answer.extend_from_slice(b"\0\x09127.0.0.1");
            answer.extend_from_slice(&u32::from(first_port + id).to_be_bytes());
            answer.extend_from_slice(b"\xff\xff");
        }
        answer.extend_from_slice(&(cluster.len() as u16).to_be_bytes());
        answer.extend_from_slice(cluster.as_bytes());
        answer.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0]);
        answer
    }

    #[test]
    fn brokers_are_counted_and_the_cluster_is_named() {
        let brokers = [9092, 9093, 9094].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(brokers_and_cluster(&answer(3, 9092, "ours")), Some((brokers.into(), "ours".into())));
        assert_eq!(brokers_and_cluster(&answer(3, 9092, "ours")[..60]), None);
        assert_eq!(brokers_and_cluster(b"HTTP/1.1 400"), None);
    }

    /// Asks a node that says so.
    fn ask(say: impl FnOnce(u16) -> Vec<u8>) -> Result<(), NotReady> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = say(address.port());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut vec![0; metadata_request().len()]).unwrap();
            stream.write_all(&(answer.len() as u32).to_be_bytes()).unwrap();
            stream.write_all(&answer).unwrap();
        });
        let said = Kafka.ask(address.into(), &"ours".into(), None);
        server.join().unwrap();
        said
    }

    #[test]
    fn another_cluster_at_the_address_is_refused() {
        let refused = ask(|port| answer(1, port, "theirs")).unwrap_err();
        assert!(matches!(&refused, NotReady::Another(name) if name == "theirs"), "{refused}");
    }

    #[test]
    fn a_node_serves_once_it_counts_itself_in() {
        for others in [0, 1] {
            let early = ask(|port| answer(others, port - 1, "ours")).unwrap_err();
            assert!(matches!(&early, NotReady::Yet(_)), "{early}");
        }
        ask(|port| answer(2, port - 1, "ours")).unwrap();
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(mut bytes: Vec<u8>) {
            let _ = brokers_and_cluster(&bytes);
            bytes.splice(..0, CORRELATION.to_be_bytes());
            let _ = brokers_and_cluster(&bytes);
        }
    }
}
