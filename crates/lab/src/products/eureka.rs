//! Eureka, a registry in which instances of services find each other: its jars, its settings, its command.
//!
//! The project's jars come without a program. A small one is compiled before the first start. The server is known by the
//! name that it gives itself in each answer.

use std::io;

use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::compiled::Compiled;
use crate::stores::jars::Jars;
use crate::stores::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program};
use crate::stores::rest;

const PROGRAM: Compiled = Compiled {
    jars: Jars { title: "Eureka 4.3.0", folder: "eureka-4.3.0", pom: include_str!("eureka/eureka-4.3.xml") },
    java: 17,
    class: CLASS,
    source: include_str!("eureka/Registry.java"),
    options: &[
        "-XX:+UseSerialGC",
        // it is up sooner
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+PerfDisableSharedMem",
        "-Djava.awt.headless=true",
    ],
};
/// The class of its program.
const CLASS: &str = "Registry";

/// Eureka.
pub struct Eureka;

impl Launcher for Eureka {
    fn program(&self, store: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        PROGRAM.program(store, fetch)
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        &[8761]
    }

    fn remarks(&self, _: &Store) -> String {
        "kept in memory only: nothing outlives its process; shows each change at once and drops every instance whose lease \
         is over, where a server in production has lists up to 30 s old and keeps instances when many are silent at once"
            .into()
    }

    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        PROGRAM.write(node)
    }

    fn before_first_start(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        PROGRAM.compile(node)
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let mut words = PROGRAM.command(node, &[]);
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
    use crate::stores::launcher::tests::node;
    use crate::stores::rest::tests::{answers, ok};
    use std::net::SocketAddr;
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_is_started_as_the_scenario_says() {
        let store = Store { heap_bytes: 300 << 20, ..Store::new("registry", Product::Eureka) };
        let program = Program { folder: "/lib".into(), ..Program::default() };
        let words = Eureka.command(&node(&store, &[8861], &program)).unwrap();
        for word in [
            "-Xmx300M",
            "-Djava.io.tmpdir=/run/data/a b/tmp",
            "/run/stores/it's here:/lib/*",
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
