//! Eureka, a registry in which instances of services find each other: its jars, its settings, its command.
//!
//! The project's jars come without a program. A small one is compiled before the first start. The server is known by the
//! name that it gives itself in each answer.

use std::fs;
use std::io;
use std::net::SocketAddr;

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
    Jars { title: "Eureka 4.3.0", folder: "eureka-4.3.0", pom: include_str!("eureka/eureka-4.3.xml") };
/// The program, and its class.
const MAIN: &str = include_str!("eureka/Registry.java");
const CLASS: &str = "Registry";

/// Eureka.
pub struct Eureka;

impl Launcher for Eureka {
    fn program(&self, _: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        with_jars(JARS, Needs::CompilerFrom(17), fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[8761]
    }

    fn url(&self, _: &Store, addresses: &[SocketAddr], _: &str) -> Option<String> {
        let address = addresses.first()?;
        Some(format!("http://{address}"))
    }

    fn remarks(&self, _: &Store) -> String {
        "kept in memory only: nothing outlives its process; shows each change at once and drops every instance whose lease \
         is over, where a server in production has lists up to 30 s old and keeps instances when many are silent at once"
            .into()
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::create_dir_all(node.data.join("tmp"))?;
        fs::write(node.configuration.join(format!("{CLASS}.java")), MAIN)
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
            format!("-Djava.io.tmpdir={}", text(&node.data.join("tmp"))),
        ];
        words.extend(JAVA_OPTIONS.map(str::to_owned));
        words.extend(["-cp".into(), class_path(node), CLASS.into()]);
        let (listen, port) = (node.listen, node.ports[0]);
        words.extend([
            format!("--server.address={listen}"),
            format!("--server.port={port}"),
            format!("--server.server-header={}", node.identity),
            // its only peer is itself, which it knows by the name of its host; else it sends all to port 8761
            format!("--eureka.instance.hostname={listen}"),
            format!("--eureka.client.service-url.defaultZone=http://{listen}:{port}/eureka/"),
        ]);
        words.extend(SETTINGS.map(str::to_owned));
        Ok(words)
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let answer = rest::get(place.listens, "/eureka/apps")?;
        match answer.header("server") {
            Some(name) => NotReady::unless_same(name.into(), &identity.name)?,
            None => return Err(NotReady::Another("a server without a name".into())),
        }
        if answer.is_ok() { Ok(()) } else { Err(answer.unexpected().into()) }
    }
}

const JAVA_OPTIONS: [&str; 5] = [
    "-XX:+UseSerialGC",
    // it is up sooner
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+PerfDisableSharedMem",
    "-Djava.awt.headless=true",
];

const SETTINGS: [&str; 7] = [
    // not what lies in the folder from which the run is started
    "--spring.config.location=optional:classpath:/",
    "--spring.main.banner-mode=off",
    "--eureka.client.register-with-eureka=false",
    "--eureka.client.fetch-registry=false",
    "--eureka.server.enable-self-preservation=false",
    "--eureka.server.eviction-interval-timer-in-ms=1000",
    "--eureka.server.use-read-only-response-cache=false",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::rest::tests::{answers, ok};
    use std::net::IpAddr;
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_started_as_the_scenario_says() {
        let addresses: [IpAddr; 2] = ["127.0.0.1", "127.0.0.11"].map(|ip| ip.parse().unwrap());
        let store = Store { heap_bytes: 300 * MIB, ..Store::new("registry", Product::Eureka) };
        let program = Program { folder: "/lib".into(), ..Program::default() };
        let words = Eureka
            .command(&NodeSetup {
                store: &store,
                index: 0,
                identity: "tidemark-1",
                password: "p",
                addresses: &addresses[..1],
                listen: addresses[1],
                ports: &[8861],
                configuration: "/run/stores/registry".into(),
                data: "/run/data/registry".into(),
                program: &program,
            })
            .unwrap();
        for word in [
            "-Xmx300M",
            "-Djava.io.tmpdir=/run/data/registry/tmp",
            "/run/stores/registry:/lib/*",
            "--server.address=127.0.0.11",
            "--server.port=8861",
            "--server.server-header=tidemark-1",
            "--eureka.client.service-url.defaultZone=http://127.0.0.11:8861/eureka/",
        ] {
            assert!(words.iter().any(|had| had == word), "{word} in {words:?}");
        }
        let address: SocketAddr = "127.0.0.1:8861".parse().unwrap();
        assert_eq!(Eureka.url(&store, &[address], "p").unwrap(), "http://127.0.0.1:8861");
    }

    #[test]
    fn a_node_serves_once_its_list_is_there_and_another_one_is_refused() {
        let ask = |answer: String| {
            let (address, server) = answers(vec![answer]);
            let said = Eureka.ask(address.into(), &"ours".into(), None);
            assert!(server.join().unwrap()[0].starts_with("GET /eureka/apps "));
            said
        };
        ask(ok("Server: ours\r\n", "<applications/>")).unwrap();
        let early = ask("HTTP/1.1 404 \r\nServer: ours\r\n\r\n".into()).unwrap_err();
        assert!(matches!(&early, NotReady::Yet(_)) && early.to_string().contains("404"), "{early}");
        for another in ["Server: theirs\r\n", ""] {
            let refused = ask(ok(another, "")).unwrap_err();
            assert!(matches!(refused, NotReady::Another(_)), "{refused}");
        }
    }
}
