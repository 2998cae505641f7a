//! Solr: its jars, its configuration, its command. One core, `outbound`, with the published schema of stories.
//!
//! The project's jars come without a program. A small one is compiled before the first start. It starts the embedded
//! server of the project's tests, which is the only one in Maven's repositories.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;

use serde::Deserialize;
use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::jars::Jars;
use crate::stores::java::Needs;
use crate::stores::launcher::{
    Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, class_path, compile, text,
    with_jars,
};
use crate::stores::rest;

const MIB: u64 = 1 << 20;

const JARS: Jars =
    Jars { title: "Solr 9.10.1", folder: "solr-9.10.1", pom: include_str!("solr/solr-9.10.xml") };
/// The program, and its class.
const MAIN: &str = include_str!("solr/SingleCore.java");
const CLASS: &str = "SingleCore";
/// The core.
const CORE: &str = "outbound";
const CONFIGURATION: &str = include_str!("solr/solrconfig.xml");
const SCHEMA: &str = include_str!("solr/schema.xml");

/// Solr.
pub struct Solr;

impl Launcher for Solr {
    fn program(&self, _: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        with_jars(JARS, Needs::CompilerFrom(17), fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[8983]
    }

    fn url(&self, _: &Store, addresses: &[SocketAddr], _: &str) -> Option<String> {
        let address = addresses.first()?;
        Some(format!("http://{address}"))
    }

    fn remarks(&self, store: &Store) -> String {
        let log = match store.is_synced() {
            true => "update log synced with each request, before it is acknowledged",
            false => "update log acknowledged when the operating system has it",
        };
        format!("{log}; one core, `{CORE}`, by the embedded server of its jars")
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::create_dir_all(node.data.join("tmp"))?;
        fs::write(node.configuration.join(format!("{CLASS}.java")), MAIN)?;
        let home = node.data.join("home");
        let core = home.join(CORE);
        fs::create_dir_all(core.join("conf"))?;
        fs::write(home.join("solr.xml"), "<solr/>\n")?;
        fs::write(core.join("core.properties"), format!("name={CORE}\n"))?;
        fs::write(core.join("conf/solrconfig.xml"), CONFIGURATION.replace("SYNC_LEVEL", level(node.store)))?;
        fs::write(core.join("conf/schema.xml"), SCHEMA.replace("NAME", node.identity))
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        compile(node, CLASS)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let configuration = text(&node.configuration);
        let mut words = vec![
            node.program.java(),
            format!("-Xmx{}M", node.store.heap_bytes / MIB),
            format!("-XX:ErrorFile={configuration}/java-error.log"),
            format!("-Dsolr.log.dir={configuration}"),
            format!("-Djava.io.tmpdir={}", text(&node.data.join("tmp"))),
        ];
        words.extend(JAVA_OPTIONS.map(str::to_owned));
        words.extend(["-cp".into(), class_path(node), CLASS.into()]);
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

const JAVA_OPTIONS: [&str; 5] = [
    "-XX:+UseG1GC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+PerfDisableSharedMem",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disable.jmx=true",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::path::Path;
    use tidemark_scenario::plan::{Durability, Product};

    fn with_node<T>(store: &Store, data: &Path, look: impl FnOnce(&NodeSetup<'_>) -> T) -> T {
        let addresses: [IpAddr; 2] = ["127.0.0.1", "127.0.0.11"].map(|ip| ip.parse().unwrap());
        let program = Program { folder: "/lib".into(), ..Program::default() };
        look(&NodeSetup {
            store,
            index: 0,
            identity: "tidemark-1",
            password: "p",
            addresses: &addresses[..1],
            listen: addresses[1],
            ports: &[9083],
            configuration: data.join("configuration"),
            data: data.into(),
            program: &program,
        })
    }

    #[test]
    fn a_node_is_configured_by_what_the_scenario_says() {
        let store = Store { heap_bytes: 300 * MIB, ..Store::new("stories", Product::Solr) };
        let buffered = Store { durability: Durability::Buffered, ..store.clone() };
        let folder = tempfile::tempdir().unwrap();
        for (store, level) in [(&store, "FSYNC"), (&buffered, "FLUSH")] {
            let words = with_node(store, folder.path(), |node| {
                Solr.write(node).unwrap();
                Solr.command(node).unwrap()
            });
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
