//! Several servers: shards of the driver's own, and a real Redis Cluster that loses a master or moves its slots.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use super::{Redis, load_is_on, run, says};
use crate::common::PATIENCE;

/// Keys that are written, found again and counted; two of one tag go together.
const SESSION: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${count(n)}"}
      - redis: [SET, "k:${k}", "${note}"]
        label: Set
        ledger: {content: "note ${entry}|${check}|", as: note}
        check: {body: OK}
      - redis: [GET, "k:${k}"]
        label: Get
        check: {body: "${note}"}
      - redis: [MSET, "a{${k}}", 1, "b{${k}}", 2]
        label: Both
        check: {body: OK}
      - redis: [PING]
        label: Ping
objectives: [errors = 0, lost = 0]
verify: {store: redis, keys: "k:*"}
"#;

#[test]
fn keys_are_shared_among_servers_and_all_are_read_back() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (sharding, limits) in [
        ("", "connections: 6"),
        ("?sharding=slots", "connections: 1, pipeline: 16"),
        ("?sharding=consistent", "connections: 6, pipeline: 4"),
        ("?sharding=consistent&protocol=3", "connections: 5"),
    ] {
        let servers: Vec<Redis> = (0..3).map(|_| Redis::start(&["--requirepass", "pw"])).collect();
        let hosts: Vec<String> = servers.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        let url = format!("redis://:pw@{}/{sharding}", hosts.join(","));
        let text = format!(
            "system: {{url: \"{url}\"}}{SESSION}load: {{users: 16, hold: 60s}}\nlimits: {{{limits}, sessions: 1000}}\n"
        );
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{url}: {result:#}{told}");
        assert_eq!(result["ledger"]["found"], 1000, "{url}: {result:#}");
        let sizes = servers.iter().map(|one| {
            let said = one.says("AUTH pw\r\nDBSIZE");
            said.lines().find_map(|line| line.strip_prefix(':')?.trim().parse::<u64>().ok()).expect("a count")
        });
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes.iter().sum::<u64>(), 3000, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size > 500), "each has its part: {sizes:?}");
    }
}

#[test]
fn what_would_go_to_two_servers_is_not_sent_and_a_shard_that_is_gone_fails_alone() {
    let mut servers = [Redis::start(&[]), Redis::start(&[])];
    let url = format!("redis://127.0.0.1:{},127.0.0.1:{}", servers[0].port, servers[1].port);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |steps: &str, rest: &str| {
        format!("system: {{url: \"{url}\"}}\nsessions: {{a: {{steps: [{steps}]}}}}\n{rest}\n")
    };
    // foo and bar have slots 12182 and 5061
    let text = scenario(
        "{redis: [MGET, foo, bar], label: Apart}, {redis: [MGET, \"{x}foo\", \"{x}bar\"], label: Together}",
        "load: {users: 2, hold: 60s}\nlimits: {sessions: 10}",
    );
    let (_, result) = run(folder.path(), &text);
    assert_eq!(result["errors"], serde_json::json!({"protocol": 10}), "{result:#}");
    let report = crate::common::tidemark()
        .current_dir(folder.path())
        .args(["run", "s.yaml"])
        .output()
        .expect("it runs");
    let report = String::from_utf8_lossy(&report.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("on different servers: \"foo\" and \"bar\""), "{report}");

    let pid = servers[0].child.id();
    let text = scenario(
        "{redis: [GET, foo], label: There}, {redis: [GET, bar], label: Gone}, {think: 5ms}",
        "load: {users: 4, hold: 5s}\nlimits: {connections: 4}",
    );
    let run_dir = folder.path().join("run");
    let _ = fs::remove_dir_all(&run_dir);
    let killer = std::thread::spawn(move || {
        load_is_on(&run_dir);
        std::thread::sleep(Duration::from_millis(500));
        crate::common::signal(pid, Signal::KILL);
    });
    let (_, result) = run(folder.path(), &text);
    killer.join().expect("it was killed");
    let _ = servers[0].child.wait();
    let step = |label: &str| {
        let steps = result["steps"].as_array().expect("steps");
        steps
            .iter()
            .find(|step| step["label"] == label)
            .unwrap_or_else(|| panic!("{label}: {result:#}"))
            .clone()
    };
    assert!(step("Gone")["errors"]["connect"].as_u64() > Some(0), "{result:#}");
    assert_eq!(step("There")["errors"], serde_json::json!({}), "{result:#}");
}

/// A cluster of masters with a replica each, as redis-cli makes it.
fn cluster(masters: usize) -> Vec<Redis> {
    let nodes: Vec<Redis> = (0..2 * masters)
        .map(|_| {
            // its bus has the port 10,000 above
            let port = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").expect("a port"))
                .map(|free| free.local_addr().expect("an address").port())
                .find(|port| *port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok())
                .expect("a free port");
            Redis::start_at(port, &["--cluster-enabled", "yes", "--cluster-node-timeout", "1500"])
        })
        .collect();
    let mut made = Command::new("redis-cli");
    made.args(["--cluster", "create"]).args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    made.args(["--cluster-replicas", "1", "--cluster-yes"]);
    let made = made.stdin(Stdio::null()).output().expect("redis-cli");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let begun = Instant::now();
    let is_whole = |node: &Redis| {
        let replicas = node.says("INFO replication");
        node.says("CLUSTER INFO").contains("cluster_state:ok")
            && (replicas.contains("master_link_status:up") || replicas.contains("state=online"))
    };
    while !nodes.iter().all(is_whole) {
        assert!(begun.elapsed() < PATIENCE, "the cluster is not ready");
        std::thread::sleep(Duration::from_millis(50));
    }
    nodes
}

#[test]
fn slots_that_move_under_load_are_followed() {
    let nodes = cluster(3);
    let port = |index: usize| nodes[index].port;
    let id =
        |index: usize| nodes[index].says("CLUSTER MYID").lines().nth(1).expect("an id").trim().to_owned();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "system: {{url: \"redis-cluster://127.0.0.1:{},127.0.0.1:1\"}}{}load: {{users: 12, hold: 6s}}\n\
         limits: {{connections: 6, pipeline: 2}}\n",
        port(0),
        SESSION.replace("- redis: [PING]", "- think: 5ms\n      - redis: [PING]")
    );
    let (from, to, entry) = (id(0), id(1), format!("127.0.0.1:{}", port(0)));
    let run_dir = folder.path().join("run");
    let mover = std::thread::spawn(move || {
        load_is_on(&run_dir);
        std::thread::sleep(Duration::from_millis(500));
        let moved = Command::new("redis-cli")
            .args(["--cluster", "reshard", &entry, "--cluster-from", &from, "--cluster-to", &to])
            .args(["--cluster-slots", "300", "--cluster-yes", "--cluster-pipeline", "1"])
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli");
        assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stdout));
    });
    let (output, result) = run(folder.path(), &text);
    mover.join().expect("slots were moved");
    let told = String::from_utf8_lossy(&output.stderr);
    // keys of one tag may be apart while their slot moves, which the server tells
    let errors = result["errors"].as_object().expect("errors");
    assert!(errors.keys().all(|kind| kind == "status"), "{result:#}{told}");
    assert_eq!(result["ledger"]["lost"], 0, "{result:#}");
    let notes = result["notes"].to_string();
    assert!(notes.contains("MOVED") && notes.contains("map of the cluster"), "{notes}");
}

#[test]
fn a_master_that_is_killed_is_replaced_and_the_load_goes_on() {
    let mut nodes = cluster(3);
    let folder = tempfile::tempdir().expect("a temporary directory");
    // its slots are the first third: those of bar
    let text = format!(
        "system: {{url: \"redis-cluster://127.0.0.1:{}\"}}{}load: {{users: 6, hold: 20s}}\n\
         limits: {{connections: 6}}\n",
        nodes[1].port,
        SESSION.replace(
            "- redis: [PING]",
            "- think: 10ms\n      - redis: [SET, bar, \"${now()}\"]\n        timeout: 500ms"
        )
    );
    let pid = nodes[0].child.id();
    let replicas: Vec<u16> = nodes[3..].iter().map(|node| node.port).collect();
    let run_dir = folder.path().join("run");
    let killer = std::thread::spawn(move || {
        load_is_on(&run_dir);
        std::thread::sleep(Duration::from_millis(1_500));
        crate::common::signal(pid, Signal::KILL);
        let begun = Instant::now();
        while !replicas.iter().any(|port| says(*port, "ROLE").contains("master")) {
            assert!(begun.elapsed() < PATIENCE, "no replica takes over");
            std::thread::sleep(Duration::from_millis(50));
        }
        SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_millis()
    });
    fs::write(folder.path().join("s.yaml"), text).expect("written");
    let output = crate::common::tidemark()
        .current_dir(folder.path())
        .args(["run", "s.yaml", "--out", "run", "--json"])
        .output()
        .expect("tidemark runs");
    let took_over = killer.join().expect("it was killed, and replaced");
    let _ = nodes[0].child.wait();
    let told = String::from_utf8_lossy(&output.stderr);
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"));
    assert!(result["errors"].as_object().is_some_and(|errors| !errors.is_empty()), "{result:#}");
    // whatever was lost by the change of master is told, and nothing else is wrong
    let ledger = &result["ledger"];
    assert_eq!((&ledger["different"], &ledger["duplicated"]), (&0.into(), &0.into()), "{ledger:#}");
    // the key of the dead master's slots is written again
    let written = nodes[3..].iter().filter_map(|node| {
        let said = node.says("GET bar");
        said.lines().nth(1).and_then(|text| text.trim().parse::<u128>().ok())
    });
    let last = written.max().expect("bar has a value");
    assert!(last > took_over, "written last at {last}, taken over at {took_over}");
}

#[test]
fn a_write_that_too_few_replicas_have_is_not_acknowledged() {
    let master = Redis::start(&[]);
    let replica = Redis::start(&["--replicaof", &format!("127.0.0.1 {}", master.port)]);
    let begun = Instant::now();
    while !replica.says("INFO replication").contains("master_link_status:up") {
        assert!(begun.elapsed() < PATIENCE, "the replica is not in step");
        std::thread::sleep(Duration::from_millis(50));
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |replicas: u32| {
        // who is there has answered by then, on a busy machine, too; the second never comes
        let within = if replicas < 2 { "5s" } else { "100ms" };
        format!(
            "system: {{url: \"redis://127.0.0.1:{}\"}}\nsettings: {{replicas: {replicas}}}\nsessions: {{a: {{steps: [{{redis: \
             [SET, k, \"${{note}}\"], wait: {{replicas: \"${{replicas}}\", within: {within}}}, ledger: {{content: \
             \"n ${{entry}}|${{check}}|\", as: note}}}}]}}}}\nload: {{users: 1, hold: 60s}}\nlimits: {{sessions: 20, pipeline: 2}}\n",
            master.port
        )
    };
    for (replicas, errors, acknowledged) in [(0, 0, 20), (1, 0, 20), (2, 20, 0)] {
        let (_, result) = run(folder.path(), &scenario(replicas));
        assert_eq!(result["failed"], errors, "{replicas}: {result:#}");
        assert_eq!(result["ledger"]["acknowledged"], acknowledged, "{replicas}: {result:#}");
    }
}
