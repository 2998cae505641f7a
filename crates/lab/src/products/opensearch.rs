//! OpenSearch: its jars, its configuration, its command. What it is asked is its health, over HTTP.
//!
//! The project's jars come without a program. A small one is written beside the configuration and compiled there before
//! the first start: it starts a node with the modules that an index over texts needs, without the distribution's checks
//! of the machine.

use std::fs;
use std::io;
use std::net::SocketAddr;

use serde::Deserialize;
use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::compiled::Compiled;
use crate::stores::jars::Jars;
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, text, yaml_quoted,
};
use crate::stores::rest;

const PROGRAM: Compiled = Compiled {
    jars: Jars {
        title: "OpenSearch 3.8.0",
        folder: "opensearch-3.8.0",
        pom: include_str!("opensearch/opensearch-3.8.xml"),
    },
    java: 21,
    class: CLASS,
    source: include_str!("opensearch/SingleNode.java"),
    options: &[
        "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+PerfDisableSharedMem",
        "-Djava.awt.headless=true",
        "-Djava.locale.providers=CLDR",
        "-Djna.nosys=true",
        "-Dlog4j2.disable.jmx=true",
        "-Dopensearch.networkaddress.cache.ttl=60",
        "--add-modules=jdk.incubator.vector",
        "--enable-native-access=ALL-UNNAMED",
    ],
};
/// The class of its program.
const CLASS: &str = "SingleNode";

/// OpenSearch.
pub struct OpenSearch;

impl Launcher for OpenSearch {
    fn program(&self, store: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        PROGRAM.program(store, fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        // clients, nodes; 9300, which is usual, is the one for clients where 9200 is taken
        &[9200, 9201]
    }

    fn remarks(&self, store: &Store) -> String {
        let translog = match store.is_synced() {
            true => "translog synced with each request, before it is acknowledged",
            false => "translog acknowledged before it is on disk, synced every 5 s",
        };
        format!(
            "{translog}; started from its jars without the distribution's bootstrap checks of the machine, which do not \
             affect how requests are served; takes writes however full the disk is"
        )
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        PROGRAM.write(node)?;
        fs::write(node.configuration.join("opensearch.yml"), yaml(node))?;
        fs::write(node.configuration.join("log4j2.properties"), LOG4J)
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        PROGRAM.compile(node)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let heap_mib = node.store.heap_bytes >> 20;
        let own = [format!("-Xms{heap_mib}M"), format!("-Djna.tmpdir={}", text(&node.data.join("tmp")))];
        let mut words = PROGRAM.command(node, &own);
        words.extend([text(&node.configuration), text(&node.data), translog(node.store).into()]);
        Ok(words)
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let Health { cluster_name, status } = health(place.listens)?;
        NotReady::unless_same(cluster_name, &identity.name)?;
        match status.as_str() {
            "green" | "yellow" => Ok(()),
            status => Err(io::Error::other(format!("its health is {status}")).into()),
        }
    }
}

/// When an index acknowledges a write: once its log is synced with the request, or before.
fn translog(store: &Store) -> &'static str {
    if store.is_synced() { "request" } else { "async" }
}

fn yaml(node: &NodeSetup<'_>) -> String {
    format!(
        "cluster.name: {}\n\
         node.name: {CLASS}\n\
         discovery.type: single-node\n\
         network.host: {}\n\
         http.port: {}\n\
         transport.port: {}\n\
         path.data: {}\n\
         path.logs: {}\n\
         cluster.routing.allocation.disk.threshold_enabled: false\n",
        node.identity,
        node.listen,
        node.ports[0],
        node.ports[1],
        yaml_quoted(&node.data.join("indices")),
        yaml_quoted(&node.configuration),
    )
}

const LOG4J: &str = "\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
";

/// What a node says of itself.
#[derive(Deserialize)]
struct Health {
    cluster_name: String,
    status: String,
}

/// Asks for it.
fn health(address: SocketAddr) -> io::Result<Health> {
    let answer = rest::get(address, "/_cluster/health")?;
    serde_json::from_str(&answer.body).map_err(|_| answer.unexpected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use tidemark_scenario::plan::{Durability, Product};

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let store = Store { heap_bytes: 300 << 20, ..Store::new("search", Product::Opensearch) };
        let program = Program { folder: "/lib".into(), ..Program::default() };
        let setup = |store| node(store, &[9300, 9301], &program);
        let text = yaml(&setup(&store));
        for line in [
            "cluster.name: tidemark-1",
            "network.host: 127.0.0.11",
            "http.port: 9300",
            "transport.port: 9301",
            "path.data: '/run/data/a b/indices'",
            "path.logs: '/run/stores/it''s here'",
        ] {
            assert!(text.lines().any(|had| had == line), "{line} in\n{text}");
        }
        let command = OpenSearch.command(&setup(&store)).unwrap();
        assert!(command.contains(&"-Xmx300M".into()), "{command:?}");
        let end = ["SingleNode", "/run/stores/it's here", "/run/data/a b", "request"];
        assert!(command.ends_with(&end.map(str::to_owned)), "{command:?}");
        let buffered = Store { durability: Durability::Buffered, ..store.clone() };
        assert_eq!(OpenSearch.command(&setup(&buffered)).unwrap().last().unwrap(), "async");
        assert_ne!(OpenSearch.remarks(&store), OpenSearch.remarks(&buffered));
    }

    /// Asks a node that answers this.
    fn ask(body: &str) -> Result<(), NotReady> {
        let (address, server) = rest::tests::answers(vec![rest::tests::ok("", body)]);
        let said = OpenSearch.ask(address.into(), &"ours".into(), None);
        server.join().unwrap();
        said
    }

    #[test]
    fn a_node_serves_once_its_indexes_are_there_and_another_one_is_refused() {
        ask(r#"{"cluster_name":"ours","status":"yellow","timed_out":false}"#).unwrap();
        let early = ask(r#"{"cluster_name":"ours","status":"red"}"#).unwrap_err();
        assert!(matches!(&early, NotReady::Yet(_)) && early.to_string().contains("red"), "{early}");
        let refused = ask(r#"{"cluster_name":"theirs","status":"green"}"#).unwrap_err();
        assert!(matches!(&refused, NotReady::Another(name) if name == "theirs"), "{refused}");
        let odd = ask("<html>").unwrap_err();
        assert_eq!(odd.to_string(), "it answers \"HTTP/1.1 200 OK\"");
    }
}
