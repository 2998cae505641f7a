//! Key-value stores of a scenario: several servers, clusters, what they keep on disk.

use std::path::Path;
use std::time::Duration;

use crate::support;
use tidemark_scenario::plan::{
    AppendOnly, Cluster, Durability, Persistence, Product, SnapshotAfter, Store, StoreOrigin, SystemOrigin,
};
use tidemark_scenario::{Plan, check_text};

/// A scenario of this store, called `kv`, and this system.
fn with(store: &str, rest: &str) -> (Option<Plan>, String) {
    let text = format!(
        "stores: {{kv: {store}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 9s}}\n{rest}\n"
    );
    let (plan, diagnostics) = support::checked(&text);
    (plan, diagnostics.to_string())
}

fn store(text: &str) -> Store {
    let (plan, told) = with(text, "");
    plan.unwrap_or_else(|| panic!("{told}")).stores.remove(0)
}

#[test]
fn a_store_has_several_servers_or_is_a_cluster() {
    let shards = store("{product: redis, nodes: 12, threads: 2}");
    assert_eq!((shards.nodes, shards.processes(), shards.threads, shards.cluster), (12, 12, Some(2), None));
    assert_eq!(shards.names()[12], "kv.12");
    let cluster = |replicas, failover_after| Some(Cluster { replicas, failover_after });
    let usual = store("{product: valkey, cluster: true}");
    assert_eq!((usual.nodes, usual.cluster), (3, cluster(0, Duration::from_secs(2))));
    let said = store("{product: redis, nodes: 4, cluster: true, replicas: 2, failover after: 500ms}");
    assert_eq!((said.nodes, said.processes()), (4, 12));
    assert_eq!(said.cluster, cluster(2, Duration::from_millis(500)));
    assert_eq!(store("{product: redis, cluster: false}").processes(), 1);
    // nodes and replicas can be broken
    let fault = "faults: [{at: 1s, kill: kv.6, restart after: 1s}]";
    assert!(with("{product: redis, cluster: true, replicas: 1}", fault).0.is_some());
}

#[test]
fn each_product_has_the_strongest_durability_that_it_can() {
    for (product, durability) in [
        ("redis", Durability::Synced),
        ("valkey", Durability::Synced),
        ("keydb", Durability::Synced),
        ("garnet", Durability::Buffered),
        ("dragonfly", Durability::Memory),
        ("memcached", Durability::Memory),
    ] {
        let store = store(&format!("{{product: {product}}}"));
        assert_eq!((store.product.name(), store.durability), (product, durability));
        let step = if product == "memcached" { "memcached: [version]" } else { "redis: [PING]" };
        let text = format!(
            "system: {{store: kv}}\nsessions: {{a: {{steps: [{{{step}}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let text = format!("stores: {{kv: {{product: {product}}}}}\n{text}");
        let (plan, told) = support::checked(&text);
        let origin = plan.unwrap_or_else(|| panic!("{told}")).system.origin;
        assert!(matches!(&origin, SystemOrigin::Url(url) if url == "{stores.kv.url}"), "{origin:?}");
    }
}

#[test]
fn what_is_kept_on_disk_decides_the_durability() {
    let of = |persistence: &str| {
        let store = store(&format!("{{product: redis, {persistence}}}"));
        (store.durability, store.append_only(), store.persistence)
    };
    let none = Persistence::default();
    assert_eq!(of("durability: buffered"), (Durability::Buffered, AppendOnly::EverySecond, none.clone()));
    for (word, append_only, durability) in [
        ("always", AppendOnly::Always, Durability::Synced),
        ("everysec", AppendOnly::EverySecond, Durability::Buffered),
        ("no", AppendOnly::Unsynced, Durability::Buffered),
        ("off", AppendOnly::Off, Durability::Memory),
    ] {
        let files = Persistence { append_only: Some(append_only), ..none.clone() };
        let text = format!("persistence: {{append only: {word}}}");
        assert_eq!(of(&text), (durability, append_only, files.clone()));
        // said twice, the same way
        assert_eq!(of(&format!("{text}, durability: {}", durability.name())).2, files);
    }
    let after = |seconds, changes| SnapshotAfter { seconds, changes };
    let snapshots = vec![after(60, 1000), after(300, 10)];
    let files = Persistence { snapshots, ..none.clone() };
    let memory = of("durability: memory, persistence: {snapshots: 60 1000 300 10}");
    assert_eq!(memory, (Durability::Memory, AppendOnly::Off, files.clone()));
    let both = of("persistence: {snapshots: 60 1000 300 10}");
    assert_eq!(both, (Durability::Synced, AppendOnly::Always, files));
    let rewritten = of("persistence: {rewrite at: 64MiB, rewrite growth: 200%, snapshots: off}").2;
    assert_eq!((rewritten.rewrite_at_bytes, rewritten.rewrite_growth_percent), (Some(64 << 20), Some(200)));
    assert_eq!(of("persistence: {rewrite growth: off}").2.rewrite_growth_percent, Some(0));
}

#[test]
fn what_runs_already_may_be_several_servers() {
    for (product, url) in [
        ("redis", "redis://:p@a:1,b:2/3"),
        ("valkey", "redis-cluster://:p@a:1,b:2"),
        ("memcached", "memcached://a:1,b:2"),
    ] {
        let store = store(&format!("{{product: {product}, url: '{url}'}}"));
        assert_eq!(store.origin, StoreOrigin::Url(url.into()));
    }
    let cut = |url: &str| {
        with(&format!("{{product: redis, url: '{url}'}}"), "faults: [{at: 1s, cut: kv, for: 1s}]")
    };
    assert!(cut("redis://a:1").0.is_some());
    for url in ["redis://a:1,b:2", "redis-cluster://a:1"] {
        assert!(cut(url).1.contains("past any link"), "{url}");
    }
}

#[test]
fn a_command_for_one_user_does_not_go_where_connections_are_shared() {
    let told = |system: &str, command: &str, limits: &str| {
        let text = format!(
            "stores: {{a: {{product: redis}}, b: {{product: redis, nodes: 2}}, c: {{product: redis, cluster: true}}}}\n\
             system: {{{system}}}\nsessions: {{a: {{steps: [{{redis: [{command}]}}]}}}}\n\
             load: {{users: 1, hold: 1s}}\nlimits: {{{limits}}}\n"
        );
        let (plan, told) = support::checked(&text);
        (plan.is_some(), told.to_string())
    };
    let one = "url: 'redis://a'";
    let shared = [
        (one, "connections: 2, pipeline: 4"),
        ("url: 'redis://a:1,b:2'", "connections: 2"),
        ("url: 'redis-cluster://a:1'", "connections: 2"),
        ("store: b", "connections: 2"),
        ("store: c", "connections: 2"),
    ];
    for command in [
        "multi",
        "EXEC",
        "SELECT, 1",
        "BLPOP, k, 0",
        "XREAD, BLOCK, 9, STREAMS, s, $",
        "AUTH, p",
        "WAIT, 1, 9",
        "client, tracking, on",
    ] {
        for (system, limits) in shared {
            let (is_right, told) = told(system, command, limits);
            assert!(!is_right && told.contains("changes its connection, or holds it up"), "{system}: {told}");
        }
        for (system, limits) in
            [(one, "pipeline: 1"), (one, "connections: 2"), ("store: a", "connections: 2")]
        {
            let (is_right, told) = told(system, command, limits);
            assert!(is_right, "{system}, {command}: {told}");
        }
    }
    let (is_right, told) = told(one, "XREAD, STREAMS, BLOCK, $", "connections: 2, pipeline: 4");
    assert!(is_right, "{told}");
}

#[test]
fn nor_does_it_go_to_a_target_of_several_servers() {
    let told = |target: &str, command: &str| {
        let text = format!(
            "stores: {{b: {{product: redis, nodes: 2}}}}\nsystem: {{url: 'http://h'}}\ntargets: {{cache: {{{target}}}}}\n\
             sessions: {{a: {{steps: [{{GET: /}}, {{redis: [{command}], at: cache}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let (plan, told) = support::checked(&text);
        (plan.is_some(), told.to_string())
    };
    for target in ["url: 'redis://a:1,b:2'", "url: 'redis-cluster://a:1'", "store: b"] {
        let (is_right, told) = told(target, "MULTI");
        assert!(!is_right && told.contains("where there are several servers"), "{target}: {told}");
    }
    assert!(told("url: 'redis://a:1,b:2'", "GET, k").0);
    assert!(told("url: 'redis://a:1'", "MULTI").0);
    assert!(told("url: 'redis://a:1'", "SUBSCRIBE, k").1.contains("exactly one reply"));
}

#[test]
fn a_misspelt_command_is_warned_of_and_one_of_a_module_is_not() {
    let told = |command: &str| {
        let text = format!(
            "system: {{url: 'redis://a'}}\nsessions: {{a: {{steps: [{{redis: [{command}, k]}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let (plan, told) = support::checked(&text);
        (plan.is_some(), told.to_string())
    };
    let (is_right, warned) = told("GTE");
    assert!(
        is_right && warned.contains("2:33: warning: \"GTE\" is an unknown Redis command; did you mean GET?"),
        "{warned}"
    );
    for command in ["GET", "hgetall", "JSON.SET", "FT.SEARCH", "NEWLYINVENTED"] {
        assert_eq!(told(command), (true, String::new()), "{command}");
    }
}

#[test]
fn systems_find_what_speaks_redis_as_their_redis() {
    let told = |store: &str| with(store, "system: {serve: airline}");
    let (plan, why) = told("{product: valkey}");
    assert_eq!(plan.unwrap_or_else(|| panic!("{why}")).system.settings["redis"], "{stores.kv.url}");
    let (plan, why) = told("{product: valkey, nodes: 2}");
    assert!(
        plan.is_none() && why.contains("airline takes one server as its `redis`, and \"kv\" is 2"),
        "{why}"
    );
}

#[test]
fn mistakes_have_a_way_out() {
    for (store, wanted) in [
        ("{product: redis, nodes: 17}", "17 is too many; at most 16 nodes"),
        ("{product: redis, nodes: 2, cluster: true}", "a cluster has at least 3 nodes (masters), not 2"),
        ("{product: redis, replicas: 1}", "\"replicas\" belongs to a cluster; say `cluster: true`, too"),
        ("{product: redis, cluster: false, failover after: 2s}", "\"failover after\" belongs to a cluster"),
        ("{product: redis, cluster: true, replicas: 3}", "3 is too many; at most 2 replicas"),
        ("{product: redis, cluster: true, failover after: 10ms}", "may only be slow"),
        ("{product: redis, threads: 0}", "0 is too small"),
        ("{product: redis, threads: 200}", "at most 128 threads"),
        ("{product: keydb, cluster: true}", "KeyDB has no \"cluster\"; it has product, nodes, threads"),
        ("{product: garnet, threads: 2}", "Garnet has no \"threads\""),
        ("{product: garnet, durability: synced}", "\"synced\" is not one of buffered, memory"),
        ("{product: memcached, durability: synced}", "\"synced\" is not one of memory"),
        ("{product: memcached, persistence: {}}", "memcached has no \"persistence\""),
        ("{product: memcached, url: 'redis://a'}", "not a URL of memcached; write memcached://HOST:PORT"),
        ("{product: redis, url: 'redis://a:1,:2'}", "not a URL of Redis"),
        ("{product: redis, url: 'redis://a', cluster: true}", "what is there has its own \"cluster\""),
        (
            "{product: redis, durability: synced, persistence: {append only: no}}",
            "`append only: no` makes the durability buffered, and `durability` says synced",
        ),
        ("{product: redis, persistence: {append only: never}}", "is not one of always, everysec, no, off"),
        (
            "{product: redis, persistence: {snapshots: 60}}",
            "write pairs of seconds and changes like \"60 1000\"",
        ),
        ("{product: redis, persistence: {snapshots: 60 0}}", "write pairs"),
        ("{product: redis, persistence: {rewrite growth: 2}}", "is not a growth; write it like 100%, or off"),
        (
            "{product: redis, durability: memory, persistence: {rewrite at: 1MiB}}",
            "with `durability: memory` there is no file that could be rewritten",
        ),
        (
            "{product: redis, persistence: {append only: off, rewrite growth: 50%}}",
            "with `append only: off` there is no file",
        ),
    ] {
        let (plan, told) = with(store, "");
        assert!(plan.is_none() && told.contains(wanted), "{wanted}\nbut\n{told}");
    }
    let (plan, told) = with("{product: mariadb}", "system: {store: kv}");
    assert!(plan.is_none() && told.contains("\"kv\" is MariaDB; drive a system in front of it"), "{told}");
    assert_eq!(Product::from_name("memcached"), Some(Product::Memcached));
}

#[test]
fn settings_of_a_store_that_a_url_replaces_are_refused() {
    let text = "settings: {shards: 1, append_only: 'off', users: 3, both: 2, product: [redis, valkey]}\n\
                system: {store: \"${if(product == 'redis', 'kv', 'kv')}\"}\n\
                stores:\n  kv: {product: \"${product}\", nodes: \"${shards}\", threads: \"${both}\", \
                durability: \"${if(append_only == 'off', 'memory', 'buffered')}\", persistence: {append only: \"${append_only}\"}}\n\
                sessions: {a: {steps: [{redis: [PING]}]}}\n\
                load: {users: \"${users}\", hold: 9s}\nlimits: {pipeline: \"${both}\"}\n";
    let instead = |given: &[(&str, &str)]| {
        let given: Vec<(String, String)> =
            given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (plan, told) = check_text("t.yaml", text, Path::new("."), &given);
        plan.unwrap_or_else(|| panic!("{told}")).drive_instead("redis://127.0.0.1:1")
    };
    assert_eq!(instead(&[]), Ok(()));
    assert_eq!(instead(&[("users", "9"), ("both", "4")]), Ok(()), "they say of something else, too");
    let told = instead(&[("shards", "2"), ("append_only", "no"), ("users", "4")]).unwrap_err();
    assert!(told.starts_with("--set shards and --set append_only would be of no effect"), "{told}");
    assert!(told.contains("\"kv\""), "{told}");
    let told = instead(&[("product", "valkey")]).unwrap_err();
    assert!(told.starts_with("--set product would"), "also where the system says which store it is: {told}");
    // what another target is stays
    let text = text.replace("sessions:", "targets: {other: {store: kv}}\nsessions:");
    let text = text.replace("[PING]}", "[PING]}, {redis: [PING], at: other}");
    let text = text.replace("\"${product}\"", "redis");
    let given = [("shards".to_owned(), "2".to_owned())];
    let (plan, told) = check_text("t.yaml", &text, Path::new("."), &given);
    assert_eq!(plan.unwrap_or_else(|| panic!("{told}")).drive_instead("redis://127.0.0.1:1"), Ok(()));
}
