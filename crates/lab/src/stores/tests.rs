//! Real stores: they need Java 17 and, the first time, Maven.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use super::launcher::{NotReady, unique};
use super::tests_installed::{go_on, setup};
use tidemark_scenario::plan::{Fault, FaultKind};

use super::*;
use crate::child::Spec;
use crate::disk::Disks;
use crate::link::Condition;
use crate::products::cassandra::{Connection, Consistency};
use crate::started::Started as _;

const MIB: u64 = 1 << 20;

fn one_node(product: Product) -> Store {
    Store {
        heap_bytes: 256 * MIB,
        ready_within: Duration::from_secs(300),
        ..Store::new(product.name(), product)
    }
}

fn gone(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn a_node_that_cannot_start_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["sh", "-c", "echo no room >&2; exit 3"].map(str::to_owned).to_vec();
    let log = folder.path().join("log");
    let spec = Spec::new("x.2", command, log);
    let within = Duration::from_secs(60);
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let mut node =
        Node::new(spec, nowhere, folder.path().into(), launcher(Product::Cassandra), "ours".into(), within);
    node.spawn().unwrap();
    let error = node.wait(Instant::now(), None, &|| true).unwrap_err().to_string();
    assert!(error.contains("x.2 ended before it was ready (exit status 3)"), "{error}");
    assert!(error.contains("  | no room"), "{error}");
    let impatient = node.wait(Instant::now(), None, &|| false).unwrap_err();
    assert!(matches!(impatient, LabError::Interrupted(_)));
}

/// A server that says, to whoever asks, that its cluster is called so.
fn answers_as(cluster: &'static str, visits: usize) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let length = cluster.len() as u8;
    let mut row = b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x06system\0\x05local\0\x0ccluster_name".to_vec();
    row.extend_from_slice(&[0, 0x0d, 0, 0, 0, 1, 0, 0, 0, length]);
    row.extend_from_slice(cluster.as_bytes());
    let frame = move |op: u8, body: &[u8]| {
        let head = [0x84, 0, 0, 0, op, 0, 0, 0, body.len() as u8];
        [&head[..], body].concat()
    };
    let server = std::thread::spawn(move || {
        for _ in 0..visits {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in [frame(2, &[]), frame(8, &row)] {
                let mut head = [0; 9];
                stream.read_exact(&mut head).unwrap();
                stream.read_exact(&mut vec![0; usize::from(head[8])]).unwrap();
                stream.write_all(&answer).unwrap();
            }
        }
    });
    (address, server)
}

#[test]
fn another_cluster_that_answers_in_a_nodes_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (address, server) = answers_as("theirs", 3);
    let node = |cluster: &str| {
        let command = ["sleep", "600"].map(str::to_owned).to_vec();
        let log = folder.path().join("log");
        let spec = Spec::new("x", command, log);
        let (data, launcher) = (folder.path().into(), launcher(Product::Cassandra));
        Node::new(spec, address, data, launcher, cluster.into(), Duration::from_secs(60))
    };
    let mut ours = node("ours");
    ours.spawn().unwrap();
    let first = ours.wait(Instant::now(), Some(1), &|| true).unwrap_err().to_string();
    ours.kill();
    let again = ours.restart(&|| true).unwrap_err().to_string();
    for text in [first, again] {
        assert!(text.contains(&address.to_string()) && text.contains("`theirs`"), "{text}");
        assert!(text.contains("run again"), "{text}");
    }
    let mut theirs = node("theirs");
    theirs.spawn().unwrap();
    theirs.wait(Instant::now(), Some(1), &|| true).unwrap();
    server.join().unwrap();
}

#[test]
fn every_cluster_has_a_name_of_its_own() {
    for product in [Product::Cassandra, Product::Kafka] {
        let names = [(); 2].map(|()| launcher(product).identity(&unique()));
        assert_ne!(names[0], names[1]);
    }
    assert_eq!(launcher(Product::Kafka).identity(&unique()).len(), 22, "16 bytes in base64");
}

fn fill_faults(target: &str) -> Vec<Fault> {
    let (at, lasts) = (Duration::ZERO, Some(Duration::from_secs(1)));
    vec![Fault {
        at,
        share: None,
        target: target.into(),
        kind: FaultKind::Fill { disk_bytes: 256 * MIB },
        lasts,
    }]
}

/// Disks that `faults` fill; none, and a word about that, where this process may not mount.
fn disks(folder: &Path, faults: &[Fault], store: &Store) -> Disks {
    Disks::mount(folder, faults, &names(store)).unwrap_or_else(|error| {
        eprintln!("skipped: {error}");
        Disks::default()
    })
}

/// What goes through a link is felt by whoever asks, and only as long as it lasts.
fn link_is_felt(link: &Link, ask: &mut dyn FnMut() -> io::Result<()>) {
    ask().unwrap();
    link.set(|condition| condition.latency = Duration::from_millis(150));
    let begin = Instant::now();
    ask().unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
    link.set(|condition| *condition = Condition { refused: 1.0, cuts: 1, ..Condition::default() });
    assert!(ask().is_err());
    link.set(|condition| condition.refused = 0.0);
}

/// In one, since it takes its time to start.
#[test]
fn cassandra_is_reached_through_its_link_and_loses_nothing_by_a_full_disk_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_node(Product::Cassandra);
    let disks = disks(folder.path(), &fill_faults("cassandra"), &store);
    let (data_of, is_linked) = (&|name: &str| disks.data_of(name), &|name: &str| name == "cassandra");
    let setup = Setup { data_of, ..setup(folder.path(), is_linked) };
    let mut told = Vec::new();
    let mut stores = Stores::start(&[store], &setup, &go_on, &mut |text| told.push(text)).unwrap();
    assert_eq!(told.last().unwrap(), "starting Cassandra 5.0.9");
    let contact = stores.settings().remove(0);
    let address: SocketAddr = contact.1.parse().unwrap();
    assert_eq!(contact.0, "contact");
    let (name, first) = stores.processes().remove(0);
    assert_eq!(name, "cassandra");
    let (name, link) = stores.links().remove(0);
    assert_eq!((name.as_str(), link.address), ("cassandra", address));
    assert!(stores.notes()[0].contains("clients reached cassandra through a link"), "{:?}", stores.notes());
    let mut connection = Connection::open(address).unwrap();
    let cluster = connection.text("SELECT cluster_name FROM system.local", Consistency::One).unwrap();
    assert_eq!(cluster, held(&stores.0[0].nodes[0]).identity.name);
    let foreign = launcher(Product::Cassandra).ask(address.into(), &"ours".into(), Some(1)).unwrap_err();
    assert!(matches!(&foreign, NotReady::Another(name) if *name == cluster), "{foreign}");
    // clients find nodes by what these say of themselves
    let own = "SELECT CAST(rpc_address AS text) FROM system.local";
    assert_eq!(connection.text(own, Consistency::One).unwrap(), address.ip().to_string());
    link_is_felt(&link, &mut || connection.text(own, Consistency::One).map(drop));

    let mut connection = Connection::open(address).unwrap();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    connection.execute(&format!("CREATE KEYSPACE k WITH replication = {replication}")).unwrap();
    connection.execute("CREATE TABLE k.t (id int PRIMARY KEY, text text)").unwrap();
    let text = "x".repeat(20_000);
    let mut insert =
        |id: u64| connection.execute(&format!("INSERT INTO k.t (id, text) VALUES ({id}, '{text}')"));
    (0..10).for_each(|id| insert(id).unwrap());
    let refused = disks.of("cassandra").map(|disk| {
        let mut filling = disk.fill().unwrap();
        let refused = (10..20_000).find(|id| {
            filling.take_the_rest(&|| true).unwrap();
            insert(*id).is_err()
        });
        refused.expect("without room nothing is acknowledged for ever")
    });
    let acknowledged = refused.unwrap_or(10);
    let node = stores.started().remove(0);
    assert_eq!(held(&node).kill(), "killed by signal 9");
    assert!(stores.ended(&|_| false).is_none() && stores.processes().is_empty(), "that is not its own end");
    assert!(gone(first) && Connection::open(address).is_err());
    if let Err(error) = held(&node).restart(&|| true) {
        // its commit log may be torn where the room ended: it says so, and leaves it to a person to have it read up to
        // there. What was acknowledged before lies before that.
        assert!(error.to_string().contains("CommitLogReadException"), "{error}");
        eprintln!("its commit log is torn: {error}");
        held(&node).kill();
        held(&stores.0[0].nodes[0])
            .spec
            .command
            .insert(1, "-Dcassandra.commitlog.ignorereplayerrors=true".into());
        held(&node).restart(&|| true).unwrap();
    }
    let mut connection = Connection::open(address).unwrap();
    let found = connection.count("SELECT count(*) FROM k.t", Consistency::One).unwrap();
    // the refused one may be there, too
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{found} of {acknowledged}");

    held(&node).freeze().unwrap();
    held(&node).thaw();
    assert_eq!(connection.count("SELECT count(*) FROM k.t", Consistency::All).unwrap(), found);
    let (_, second) = stores.processes().remove(0);
    let data = held(&node).data_dir().unwrap().to_owned();
    assert!(data.join("commitlog").is_dir());
    let endings = stores.stop(&|| true);
    assert_eq!(endings, [("cassandra".to_owned(), "exit status 143".to_owned())], "as Java does on SIGTERM");
    drop((node, stores));
    drop(disks);
    assert!(gone(second) && !data.exists());
    assert!(folder.path().join("run/logs/cassandra.log").metadata().unwrap().len() > 0);
}

/// In one, since it takes its time to start.
#[test]
fn kafka_is_reached_through_its_link_and_comes_back_after_a_full_disk_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_node(Product::Kafka);
    let disks = disks(folder.path(), &fill_faults("kafka"), &store);
    let (data_of, is_linked) = (&|name: &str| disks.data_of(name), &|name: &str| name == "kafka");
    let setup = Setup { data_of, ..setup(folder.path(), is_linked) };
    let mut stores = Stores::start(&[store], &setup, &go_on, &mut |_| ()).unwrap();
    let (name, address) = stores.settings().remove(0);
    let address: SocketAddr = address.parse().unwrap();
    assert_eq!(name, "brokers");
    let link = stores.links().remove(0).1;
    let cluster = held(&stores.0[0].nodes[0]).identity.clone();
    // it names the link as its address, which is what its clients go by
    let ask = |all| match launcher(Product::Kafka).ask(address.into(), &cluster, all) {
        Ok(()) => Ok(()),
        Err(NotReady::Yet(error)) => Err(error),
        Err(NotReady::Another(name)) => panic!("another: {name}"),
    };
    assert!(ask(Some(1)).is_ok());
    assert_eq!(ask(Some(2)).unwrap_err().to_string(), "it knows 1 of 2 nodes");
    let foreign = launcher(Product::Kafka).ask(address.into(), &"ours".into(), None).unwrap_err();
    assert!(matches!(&foreign, NotReady::Another(name) if *name == cluster.name), "{foreign}");
    link_is_felt(&link, &mut || ask(Some(1)));

    let node = stores.started().remove(0);
    let properties = held(&node).data_dir().unwrap().join("log/meta.properties");
    let before = fs::read_to_string(&properties).unwrap();
    if let Some(disk) = disks.of("kafka") {
        let mut filling = disk.fill().unwrap();
        filling.take_the_rest(&|| true).unwrap();
        assert!(fs::write(disks.data_of("kafka").unwrap().join("more"), [1; 8192]).is_err());
    }
    assert_eq!(held(&node).kill(), "killed by signal 9");
    assert!(ask(None).is_err());
    held(&node).restart(&|| true).unwrap();
    assert!(ask(Some(1)).is_ok());
    let after = fs::read_to_string(&properties).unwrap();
    let directory =
        |text: &str| text.lines().find(|line| line.starts_with("directory.id=")).map(str::to_owned);
    assert_eq!(directory(&before), directory(&after), "prepared once");

    // somebody else's kill is an end of its own, and leaves nothing to stop
    let id = rustix::process::Pid::from_raw(stores.processes()[0].1 as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    let begin = Instant::now();
    let ended = loop {
        match stores.ended(&|_| false) {
            None if begin.elapsed() < Duration::from_secs(60) => std::thread::sleep(Duration::from_millis(5)),
            ended => break ended,
        }
    };
    assert_eq!(ended, Some(("kafka".into(), "killed by signal 9".into())));
    assert_eq!(stores.stop(&|| true), []);
}

#[test]
fn nodes_that_the_memory_does_not_hold_are_not_started() {
    let of =
        |nodes: usize| Store { nodes, heap_bytes: 320 * MIB, ..Store::new("messages", Product::Cassandra) };
    assert!(super::have_memory(&[of(3)], Some(2_280 * MIB)).is_ok());
    assert!(super::have_memory(&[of(1)], Some(MIB)).is_ok(), "one is tried");
    assert!(super::have_memory(&[of(16)], None).is_ok());
    let error = super::have_memory(&[of(3)], Some(2_000 * MIB)).unwrap_err().to_string();
    assert!(
        error.contains("messages: 3 nodes of 760 MiB need 2280 MiB of memory, and 2000 MiB are free"),
        "{error}"
    );
}
