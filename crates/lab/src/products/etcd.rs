//! etcd, in which instances of services find each other: its command, which is all of its configuration. It is known by
//! the name of its only member.

use std::io;

use serde::Deserialize;
use tidemark_scenario::plan::Store;

use crate::error::LabError;
use crate::stores::installed::{Package, usual_folders};
use crate::stores::launcher::{Fetch, Identity, Launcher, NodeAddress, NodeSetup, NotReady, Program, text};
use crate::stores::rest;

const PACKAGE: Package =
    Package { title: "etcd", programs: &["etcd"], how: "install it (Debian: apt-get install etcd-server)" };

/// etcd.
pub struct Etcd;

impl Launcher for Etcd {
    fn program(&self, _: &Store, _: &mut Fetch<'_>) -> Result<Program, LabError> {
        let folder = PACKAGE.folder(usual_folders())?;
        Ok(Program { title: PACKAGE.title(&folder), folder, java: None })
    }

    fn ports(&self, _: &Store) -> &'static [u16] {
        // clients, members
        &[2379, 2380]
    }

    fn remarks(&self, _: &Store) -> String {
        "each write synced to disk before it is acknowledged; one member, not replicated".into()
    }

    fn write(&self, _: &NodeSetup<'_>) -> io::Result<()> {
        Ok(())
    }

    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>> {
        let clients = format!("http://{}:{}", node.addresses[node.index], node.ports[0]);
        let members = format!("http://{}:{}", node.listen, node.ports[1]);
        let mut words = vec![text(&node.program.folder.join(PACKAGE.programs[0]))];
        let mut say = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        say("--name", node.identity.into());
        say("--data-dir", text(&node.data));
        say("--listen-client-urls", format!("http://{}:{}", node.listen, node.ports[0]));
        say("--advertise-client-urls", clients);
        say("--listen-peer-urls", members.clone());
        say("--initial-advertise-peer-urls", members.clone());
        say("--initial-cluster", format!("{}={members}", node.identity));
        say("--initial-cluster-token", node.identity.into());
        Ok(words)
    }

    fn ask(&self, place: NodeAddress, identity: &Identity, _: Option<usize>) -> Result<(), NotReady> {
        let list = rest::post(place.listens, "/v3/cluster/member/list", "{}")?;
        let list: Members = serde_json::from_str(&list.body).map_err(|_| list.unexpected())?;
        let names: Vec<&str> = list.members.iter().map(|member| member.name.as_str()).collect();
        // it has no name until it has joined itself
        if names == [""] {
            return Err(io::Error::other("it does not serve yet").into());
        }
        NotReady::unless_same(names.join(", "), &identity.name)?;
        let health = rest::get(place.listens, "/health")?;
        if health.is_ok() { Ok(()) } else { Err(health.unexpected().into()) }
    }
}

/// Who is in the cluster.
#[derive(Deserialize)]
struct Members {
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(default)]
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::launcher::tests::node;
    use crate::stores::rest::tests::{answers, ok};
    use tidemark_scenario::plan::Product;

    #[test]
    fn a_node_listens_behind_its_link_and_says_the_address_of_that() {
        let store = Store::new("registry", Product::Etcd);
        let program = Program { folder: "/usr/bin".into(), ..Program::default() };
        let words = Etcd.command(&node(&store, &[2479, 2480], &program)).unwrap();
        let line = words.join(" ");
        for part in [
            "/usr/bin/etcd --name tidemark-1 --data-dir /run/data/a b ",
            "--listen-client-urls http://127.0.0.11:2479 --advertise-client-urls http://127.0.0.1:2479 ",
            "--listen-peer-urls http://127.0.0.11:2480 ",
            "--initial-cluster tidemark-1=http://127.0.0.11:2480 ",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn a_node_serves_once_it_is_healthy_and_another_one_is_refused() {
        let ask = |all: Vec<String>| {
            let (address, server) = answers(all);
            let said = Etcd.ask(address.into(), &"ours".into(), None);
            server.join().unwrap();
            said
        };
        let list = |name: &str| ok("", &format!("{{\"members\":[{{\"ID\":\"1\",{name}\"peerURLs\":[]}}]}}"));
        ask(vec![list("\"name\":\"ours\","), ok("", "{\"health\":\"true\"}")]).unwrap();
        let sick = "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"health\":\"false\"}".to_owned();
        for (early, said) in
            [(vec![list("\"name\":\"ours\","), sick], "503"), (vec![list("")], "not serve yet")]
        {
            let early = ask(early).unwrap_err();
            assert!(matches!(&early, NotReady::Yet(_)) && early.to_string().contains(said), "{early}");
        }
        let refused = ask(vec![list("\"name\":\"theirs\",")]).unwrap_err();
        assert!(matches!(&refused, NotReady::Another(name) if name == "theirs"), "{refused}");
        let odd = ask(vec!["HTTP/1.1 404 Not Found\r\n\r\n".into()]).unwrap_err();
        assert_eq!(odd.to_string(), "it answers \"HTTP/1.1 404 Not Found\"");
    }
}
