//! Solr: its jars, its configuration, its command. One core, `outbound`, with the published schema of stories.
//!
//! The project's jars come without a program. A small one is compiled before the first start. It starts the embedded
//! server of the project's tests, which is the only one in Maven's repositories.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde::Deserialize;
use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::compiled::Compiled;
use crate::stores::jars::Jars;
use crate::stores::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, text};
use crate::stores::rest;

const PROGRAM: Compiled = Compiled {
    jars: Jars { title: "Solr 9.10.1", folder: "solr-9.10.1", pom: include_str!("solr/solr-9.10.xml") },
    java: 17,
    class: CLASS,
    source: include_str!("solr/SingleCore.java"),
    options: &[
        "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+PerfDisableSharedMem",
        "-Djava.awt.headless=true",
        "-Dlog4j2.disable.jmx=true",
    ],
};
/// The class of its program.
const CLASS: &str = "SingleCore";
/// The core.
const CORE: &str = "outbound";
const CONFIGURATION: &str = include_str!("solr/solrconfig.xml");
const SCHEMA: &str = include_str!("solr/schema.xml");

/// Solr.
pub struct Solr;

impl Launcher for Solr {
    fn program(&self, store: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        PROGRAM.program(store, fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[8983]
    }

    fn remarks(&self, store: &Store) -> String {
        let log = match store.is_synced() {
            true => "update log synced with each request, before it is acknowledged",
            false => "update log acknowledged when the operating system has it",
        };
        format!("{log}; one core, `{CORE}`, by the embedded server of its jars")
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        PROGRAM.write(node)?;
        let home = node.data.join("home");
        let core = home.join(CORE);
        fs::create_dir_all(core.join("conf"))?;
        fs::write(home.join("solr.xml"), "<solr/>\n")?;
        fs::write(core.join("core.properties"), format!("name={CORE}\n"))?;
        fs::write(core.join("conf/solrconfig.xml"), CONFIGURATION.replace("SYNC_LEVEL", level(node.store)))?;
        fs::write(core.join("conf/schema.xml"), SCHEMA.replace("NAME", node.identity))
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        PROGRAM.compile(node)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let mut words = PROGRAM.command(node, &[format!("-Dsolr.log.dir={}", text(&node.configuration))]);
        words.extend([text(&node.data.join("home")), node.listen.to_string(), node.ports[0].to_string()]);
        Ok(words)
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let answer = rest::get(place.listens, &format!("/solr/{CORE}/schema/name"))?;
        // while the core is loaded, the answer is an error without a name
        let Schema { name } = serde_json::from_str(&answer.body).map_err(|_| answer.unexpected())?;
        NotReady::unless_same(name, &identity.name)?;
        // a core that was killed serves before its update log is replayed
        let answer = rest::get(place.listens, LOG_STATE)?;
        let state: Metrics = serde_json::from_str(&answer.body).map_err(|_| answer.unexpected())?;
        match state.metrics.values().next() {
            Some(&ACTIVE) => Ok(()),
            _ => Err(io::Error::other("it still replays its update log").into()),
        }
    }
}

/// The name of the core's schema, which is the instance's.
#[derive(Deserialize)]
struct Schema {
    name: String,
}

/// Where it tells the state of its update log, and the state in which nothing is left to replay.
const LOG_STATE: &str = "/solr/admin/metrics?key=solr.core.outbound:TLOG.state";
const ACTIVE: u8 = 3;

#[derive(Deserialize)]
struct Metrics {
    metrics: BTreeMap<String, u8>,
}

/// How far the update log is when a request is acknowledged.
fn level(store: &Store) -> &'static str {
    if store.is_synced() { "FSYNC" } else { "FLUSH" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use tidemark_scenario::plan::{Durability, Product};

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let store = Store { heap_bytes: 300 << 20, ..Store::new("stories", Product::Solr) };
        let buffered = Store { durability: Durability::Buffered, ..store.clone() };
        let (folder, program) = (tempfile::tempdir().unwrap(), Program::default());
        for (store, level) in [(&store, "FSYNC"), (&buffered, "FLUSH")] {
            let (configuration, data) = (folder.path().join("configuration"), folder.path().into());
            let node = NodeSetup { configuration, data, ..node(store, &[9083], &program) };
            Solr.write(&node).unwrap();
            let words = Solr.command(&node).unwrap();
            let read = |file: &str| fs::read_to_string(folder.path().join("home").join(file)).unwrap();
            assert!(read("outbound/conf/solrconfig.xml").contains(level));
            assert!(read("outbound/conf/schema.xml").contains("<schema name=\"tidemark-1\""));
            assert_eq!(read("outbound/core.properties"), "name=outbound\n");
            assert!(words.contains(&"-Xmx300M".into()), "{words:?}");
            let home = folder.path().join("home").display().to_string();
            assert!(words.ends_with(&[CLASS.into(), home, "127.0.0.11".into(), "9083".into()]), "{words:?}");
        }
        assert_ne!(Solr.remarks(&store), Solr.remarks(&buffered));
    }

    #[test]
    fn a_node_serves_once_its_core_is_loaded_and_another_one_is_refused() {
        let ask = |answers: &[(&str, &str)]| {
            let answer = |(status, body): &(&str, &str)| {
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            };
            let (address, server) = rest::tests::answers(answers.iter().map(answer).collect());
            let said = Solr.ask(address.into(), &"ours".into(), None);
            assert!(server.join().unwrap()[0].starts_with("GET /solr/outbound/schema/name "));
            said
        };
        let ours = ("200 OK", r#"{"responseHeader":{"status":0},"name":"ours"}"#);
        let log = |state: &str| {
            format!(
                r#"{{"responseHeader":{{"status":0}},"metrics":{{"solr.core.outbound:TLOG.state":{state}}}}}"#
            )
        };
        ask(&[ours, ("200 OK", &log("3"))]).unwrap();
        let early = ask(&[ours, ("200 OK", &log("0"))]).unwrap_err();
        assert!(matches!(&early, NotReady::Yet(_)) && early.to_string().contains("replays"), "{early}");
        let early = ask(&[("503 ", r#"{"error":{"msg":"SolrCore is loading","code":503}}"#)]).unwrap_err();
        assert!(matches!(&early, NotReady::Yet(_)) && early.to_string().contains("503"), "{early}");
        let refused = ask(&[("200 OK", r#"{"name":"theirs"}"#)]).unwrap_err();
        assert!(matches!(&refused, NotReady::Another(name) if name == "theirs"), "{refused}");
    }
}
