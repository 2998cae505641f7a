//! Real key-value stores of several servers, of several products, and with all that they keep on disk.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidemark_scenario::plan::{AppendOnly, Cluster, Durability, Persistence, SnapshotAfter};
use tidemark_scenario::store_servers;

use super::tests_installed::{go_on, is_here, setup, wait_until};
use super::*;
use crate::products::redis::{self, Connection};

fn start(store: &Store, folder: &Path) -> Stores {
    let setup = setup(folder, &|_| false);
    Stores::start(std::slice::from_ref(store), &setup, &go_on, &mut |_| ()).unwrap()
}

fn url(stores: &Stores) -> String {
    stores.resolved(&format!("{{stores.{}.url}}", stores.0[0].store.name))
}

/// Password and place of each server of a URL.
fn servers(url: &str) -> Vec<(String, SocketAddr)> {
    let parts = |server: &String| {
        let (user, place) = server.split_once("://").unwrap().1.split_once('@').unwrap();
        (user.trim_start_matches(':').to_owned(), place.parse().unwrap())
    };
    store_servers(url).iter().map(parts).collect()
}

fn connect((password, place): &(String, SocketAddr)) -> Connection {
    redis::connect(*place, password).unwrap()
}

fn names(stores: &Stores) -> Vec<String> {
    stores.started().iter().map(|node| held(node).name().to_owned()).collect()
}

#[test]
fn shards_are_servers_of_their_own_each_of_which_can_be_broken() {
    let store = Store { nodes: 3, ..Store::new("cache", Product::Redis) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut stores = start(&store, folder.path());
    assert_eq!(names(&stores), ["cache.1", "cache.2", "cache.3"]);
    let servers = servers(&url(&stores));
    let ports: Vec<u16> = servers.iter().map(|(_, place)| place.port()).collect();
    assert_eq!(ports, [ports[0], ports[0] + 1, ports[0] + 2]);
    for (index, server) in servers.iter().enumerate() {
        connect(server).demand(&["SET", "a", &index.to_string()]).unwrap();
    }
    let second = stores.started().remove(1);
    assert_eq!(held(&second).kill(), "killed by signal 9");
    assert!(TcpStream::connect(servers[1].1).is_err());
    assert_eq!(connect(&servers[2]).demand(&["GET", "a"]).unwrap(), "2", "others go on");
    held(&second).restart(&|| true).unwrap();
    assert_eq!(connect(&servers[1]).demand(&["GET", "a"]).unwrap(), "1");
    assert!(folder.path().join("run/logs/cache.3.log").is_file());
    assert_eq!(stores.stop(&|| true).len(), 3);
}

/// What `CLUSTER NODES` says of each node but the one at `gone`: its address as clients know it, and whether it is a master with slots.
fn serving(connection: &mut Connection) -> BTreeSet<u16> {
    let said = connection.demand(&["CLUSTER", "NODES"]).unwrap();
    let masters = said.lines().filter(|line| {
        let flags = line.split(' ').nth(2).unwrap();
        flags.contains("master") && !flags.contains("fail") && line.split(' ').nth(8).is_some()
    });
    masters.map(|line| line.split([':', '@']).nth(1).unwrap().parse().unwrap()).collect()
}

/// Sets a key as a client of a cluster does, wherever it belongs; the place that took it.
fn set(servers: &[(String, SocketAddr)], key: &str, value: &str) -> SocketAddr {
    let begin = Instant::now();
    let (password, mut place) = servers[0].clone();
    loop {
        let answer =
            redis::connect(place, &password).and_then(|mut connection| connection.ask(&["SET", key, value]));
        match answer {
            Ok(Ok(_)) => return place,
            Ok(Err(moved)) if moved.starts_with("MOVED ") => {
                place = moved.rsplit(' ').next().unwrap().parse().unwrap();
            }
            other => {
                assert!(begin.elapsed() < Duration::from_secs(60), "{place}: {other:?}");
                std::thread::sleep(Duration::from_millis(50));
                place = servers[servers.len() - 1].1;
            }
        }
    }
}

fn a_cluster_fails_over(product: Product) {
    let cluster = Some(Cluster { replicas: 1, failover_after: Duration::from_secs(1) });
    let store = Store { nodes: 3, cluster, ..Store::new("cache", product) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut stores = start(&store, folder.path());
    assert_eq!(names(&stores).len(), 6);
    let url = url(&stores);
    let masters = servers(&url);
    assert!(url.starts_with("redis-cluster://:") && masters.len() == 3, "{}", masters.len());
    let first_port = masters[0].1.port();
    let all: BTreeSet<u16> = masters.iter().map(|(_, place)| place.port()).collect();
    assert_eq!(serving(&mut connect(&masters[2])), all);
    for key in 0..30 {
        set(&masters, &format!("k{key}"), "before");
    }
    // each knows what it is
    let replica = (masters[0].0.clone(), SocketAddr::new(masters[0].1.ip(), first_port + 3));
    let role = connect(&replica).demand(&["ROLE"]).unwrap();
    assert!(role.contains("slave") && role.contains(&first_port.to_string()), "{role}");
    // what is lost by a failover is another question
    for master in &masters {
        connect(master).demand(&["WAIT", "1", "5000"]).unwrap();
    }

    let first = stores.started().remove(0);
    assert_eq!(held(&first).kill(), "killed by signal 9");
    let failed_over: BTreeSet<u16> = [first_port + 1, first_port + 2, first_port + 3].into();
    wait_until("its replica takes over", || serving(&mut connect(&masters[2])) == failed_over);
    let others = &masters[1..];
    let places: BTreeSet<SocketAddr> = (0..30).map(|key| set(others, &format!("k{key}"), "after")).collect();
    assert!(places.contains(&replica.1), "{places:?}");

    held(&first).restart(&|| true).unwrap();
    let info = connect(&masters[0]).demand(&["INFO", "replication"]).unwrap();
    assert!(info.contains("role:slave") && info.contains("master_link_status:up"), "{info}");
    assert_eq!(serving(&mut connect(&masters[0])), failed_over, "and as that it has come back");
    let kept = |place: &(String, SocketAddr)| connect(place).demand(&["DBSIZE"]).unwrap();
    wait_until("it has what its new master has", || kept(&masters[0]) == kept(&replica));
    assert!(held(&first).data_dir().unwrap().join("nodes.conf").is_file());
    assert_eq!(stores.stop(&|| true).len(), 6);
}

#[test]
fn a_cluster_of_redis_fails_over_and_takes_the_old_master_back() {
    a_cluster_fails_over(Product::Redis);
}

#[test]
fn a_cluster_of_valkey_fails_over_and_takes_the_old_master_back() {
    a_cluster_fails_over(Product::Valkey);
}

/// Clients go through links, nodes do not. A master that has no replica stays one.
#[test]
fn a_cluster_behind_links_sends_its_clients_to_these() {
    let cluster = Some(Cluster { replicas: 0, failover_after: Duration::from_secs(2) });
    let store = Store { nodes: 3, cluster, ..Store::new("cache", Product::Redis) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path(), &|name| name == "cache.2");
    let stores = Stores::start(std::slice::from_ref(&store), &setup, &go_on, &mut |_| ()).unwrap();
    let masters = servers(&url(&stores));
    let known: BTreeSet<SocketAddr> = masters.iter().map(|(_, place)| *place).collect();
    let took: BTreeSet<SocketAddr> = (0..30).map(|key| set(&masters, &format!("k{key}"), "x")).collect();
    assert_eq!(took, known);
    assert_eq!(stores.links().len(), 3, "all of them or none");
    let (_, link) = stores.links().remove(1);
    link.set(|condition| (condition.refused, condition.cuts) = (1.0, 1));
    assert!(redis::connect(masters[1].1, &masters[1].0).is_err());
    let info = connect(&masters[0]).demand(&["CLUSTER", "INFO"]).unwrap();
    assert!(info.contains("cluster_state:ok"), "{info}");
    link.set(|condition| condition.refused = 0.0);
    let second = stores.started().remove(1);
    held(&second).kill();
    held(&second).restart(&|| true).unwrap();
    assert_eq!(serving(&mut connect(&masters[1])).len(), 3);

    // all at once: the first to come back does not wait for others that are down
    let all = stores.started();
    all.iter().for_each(|node| drop(held(node).kill()));
    all.iter().for_each(|node| held(node).restart(&|| true).unwrap());
    wait_until("the cluster serves again", || {
        let info = connect(&masters[0]).demand(&["CLUSTER", "INFO"]).unwrap();
        info.contains("cluster_state:ok") && serving(&mut connect(&masters[0])).len() == 3
    });
}

#[test]
fn synced_data_in_memory_are_told() {
    let shared_memory = Path::new("/dev/shm");
    let store = Store { durability: Durability::Synced, ..Store::new("cache", Product::Redis) };
    if !is_here(&store) || !crate::disk::is_memory(shared_memory) {
        return;
    }
    let told = |durability, directory: &Path| {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { durability, directory: Some(directory.to_owned()), ..store.clone() };
        let mut said = Vec::new();
        let mut tell = |text| said.push(text);
        let stores = Stores::start(&[store], &setup(folder.path(), &|_| false), &go_on, &mut tell).unwrap();
        let says = "its data are on a tmpfs, which is memory: a sync costs next to nothing there";
        let is_said = said.iter().any(|text| text == &format!("cache: {says}"));
        assert_eq!(is_said, stores.notes()[0].contains(says), "{said:?} {:?}", stores.notes());
        is_said
    };
    let data = tempfile::tempdir_in(shared_memory).unwrap();
    assert!(told(Durability::Synced, data.path()) && !told(Durability::Buffered, data.path()));
    assert!(!crate::disk::is_memory(Path::new("/proc")));
}

#[test]
fn valkey_keeps_what_it_acknowledged_on_several_threads() {
    let store = Store { threads: Some(2), ..Store::new("cache", Product::Valkey) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stores = start(&store, folder.path());
    assert!(
        stores.notes()[0].contains("Valkey") && stores.notes()[0].contains("io-threads 2"),
        "{:?}",
        stores.notes()
    );
    let server = servers(&url(&stores)).remove(0);
    assert_eq!(connect(&server).demand(&["CONFIG", "GET", "io-threads"]).unwrap(), "[\"io-threads\",\"2\"]");
    connect(&server).demand(&["SET", "a", "1"]).unwrap();
    let node = stores.started().remove(0);
    held(&node).kill();
    held(&node).restart(&|| true).unwrap();
    assert_eq!(connect(&server).demand(&["GET", "a"]).unwrap(), "1");
}

fn memcached(place: SocketAddr, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(place)?;
    stream.write_all(format!("{command}\r\nquit\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn memcached_serves_on_several_ports_and_forgets_all_by_a_kill() {
    let store = Store {
        nodes: 2,
        threads: Some(2),
        memory_bytes: Some(32 << 20),
        ..Store::new("cache", Product::Memcached)
    };
    assert_eq!(store.durability, Durability::Memory);
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let is_linked = |name: &str| name == "cache.1";
    let setup = setup(folder.path(), &is_linked);
    let mut stores = Stores::start(std::slice::from_ref(&store), &setup, &go_on, &mut |_| ()).unwrap();
    let places = stores.resolved("{stores.cache.addresses}");
    assert_eq!(url(&stores), format!("memcached://{places}"));
    let places: Vec<SocketAddr> = places.split(',').map(|place| place.parse().unwrap()).collect();
    assert_eq!(places[1].port(), places[0].port() + 1);
    for place in &places {
        assert_eq!(memcached(*place, "set a 0 0 1\r\nx").unwrap(), "STORED\r\n");
    }
    let settings = memcached(places[1], "stats settings").unwrap();
    for line in ["STAT maxbytes 33554432\r\n", "STAT num_threads 2\r\n", "STAT udpport 0\r\n"] {
        assert!(settings.contains(line), "{line} in {settings}");
    }
    let node = stores.started().remove(0);
    held(&node).kill();
    held(&node).restart(&|| true).unwrap();
    assert_eq!(memcached(places[0], "get a").unwrap(), "END\r\n");
    assert!(memcached(places[1], "get a").unwrap().contains("\r\nx\r\n"));
    // only its own process is it
    let mut ours = held(&stores.0[0].nodes[1]).place();
    ours.process = stores.processes().first().map(|(_, id)| *id);
    let answer = launcher(Product::Memcached).ask(ours, &"any".into(), None);
    assert!(matches!(answer, Err(launcher::NotReady::Another(_))), "{answer:?}");
    let endings: Vec<String> = stores.stop(&|| true).into_iter().map(|(_, how)| how).collect();
    assert_eq!(endings, ["exit status 0"; 2]);
}

/// Starts a store of these files, has it written to, and killed; the folder of its data, and what it says afterwards.
fn killed(
    product: Product,
    persistence: Persistence,
    after_writes: &dyn Fn(&mut Connection, &Path),
) -> String {
    let durability = persistence.append_only.map_or(Durability::Memory, AppendOnly::durability);
    let store = Store { persistence, durability, ..Store::new("cache", product) };
    let folder = tempfile::tempdir().unwrap();
    let stores = start(&store, folder.path());
    assert_eq!(stores.manifest()[0].durability, durability.name());
    let server = servers(&url(&stores)).remove(0);
    let node = stores.started().remove(0);
    let data: PathBuf = held(&node).data_dir().unwrap().to_owned();
    let mut connection = connect(&server);
    connection.demand(&["SET", "a", "1"]).unwrap();
    after_writes(&mut connection, &data);
    held(&node).kill();
    held(&node).restart(&|| true).unwrap();
    connect(&server).demand(&["GET", "a"]).unwrap()
}

fn append_only(append_only: AppendOnly) -> Persistence {
    Persistence { append_only: Some(append_only), ..Persistence::default() }
}

#[test]
fn each_append_only_file_survives_the_kill_of_the_process() {
    for product in [Product::Redis, Product::Valkey] {
        if !is_here(&Store::new("cache", product)) {
            continue;
        }
        for append in [AppendOnly::Always, AppendOnly::Unsynced] {
            let kept = killed(product, append_only(append), &|_, data| {
                assert!(data.join("appendonlydir").is_dir() && !data.join("dump.rdb").exists());
            });
            assert_eq!(kept, "1", "{append:?}");
        }
        let kept = killed(product, append_only(AppendOnly::Off), &|_, data| {
            assert!(!data.join("appendonlydir").exists());
        });
        assert_eq!(kept, "", "nothing is kept");
    }
}

#[test]
fn a_snapshot_keeps_what_came_before_it() {
    let usual = Store::new("cache", Product::Redis);
    if !is_here(&usual) {
        return;
    }
    let snapshots = vec![SnapshotAfter { seconds: 1, changes: 1 }];
    let files = Persistence { snapshots, ..append_only(AppendOnly::Off) };
    let kept = killed(Product::Redis, files.clone(), &|connection, data| {
        wait_until("a snapshot is written", || {
            let info = connection.demand(&["INFO", "persistence"]).unwrap();
            info.contains("rdb_changes_since_last_save:0") && data.join("dump.rdb").is_file()
        });
    });
    assert_eq!(kept, "1");
    let remarks = start_remarks(files);
    assert!(remarks.contains("what came since the last one is lost by a kill"), "{remarks}");
}

fn start_remarks(persistence: Persistence) -> String {
    let store = Store { persistence, ..Store::new("cache", Product::Redis) };
    launcher(store.product).remarks(&store)
}

#[test]
fn an_append_only_file_is_rewritten_from_the_size_on_that_is_said() {
    let usual = Store::new("cache", Product::Redis);
    if !is_here(&usual) {
        return;
    }
    for (growth, is_rewritten) in [(100, true), (0, false)] {
        let files = Persistence {
            rewrite_at_bytes: Some(64 << 10),
            rewrite_growth_percent: Some(growth),
            ..append_only(AppendOnly::EverySecond)
        };
        let kept = killed(Product::Redis, files, &|connection, data| {
            let value = "x".repeat(1 << 10);
            (0..200).for_each(|_| drop(connection.demand(&["SET", "b", &value]).unwrap()));
            let base =
                |number: u32| data.join(format!("appendonlydir/appendonly.aof.{number}.base.rdb")).is_file();
            match is_rewritten {
                true => wait_until("it is rewritten", || base(2) || base(3) || base(4)),
                false => assert!(base(1) && !base(2)),
            }
        });
        assert_eq!(kept, "1");
    }
}
