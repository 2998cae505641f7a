//! Stores that a scenario has started.

use std::path::Path;
use std::time::Duration;

use tidemark_scenario::plan::{Durability, Product, Store, StoreOrigin, SystemOrigin};
use tidemark_scenario::{Plan, check_text};

const TEXT: &str = "\
settings: {store: embedded, nodes: 1, durability: synced}
stores:
  cassandra:
    version: \"4.1\"
    nodes: ${nodes}
    heap: 1GiB
    durability: ${durability}
    ready within: 90s
    when: ${store == 'cassandra'}
sessions: {a: {steps: [{GET: /}]}}
load: {users: 1, hold: 1s}
";

fn check(text: &str, set: &[(&str, &str)]) -> (Option<Plan>, String) {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (plan, diagnostics) = check_text("t.yaml", text, Path::new("."), &set);
    (plan, diagnostics.to_string())
}

#[test]
fn a_store_is_started_when_its_condition_holds() {
    let (plan, told) = check(TEXT, &[]);
    assert_eq!((plan.unwrap().stores, told), (Vec::new(), String::new()));
    let (plan, told) = check(TEXT, &[("store", "cassandra"), ("nodes", "3"), ("durability", "buffered")]);
    let wanted = Store {
        version: "4.1",
        nodes: 3,
        heap_bytes: 1 << 30,
        durability: Durability::Buffered,
        ready_within: Duration::from_secs(90),
        ..Store::new("cassandra", Product::Cassandra)
    };
    assert_eq!((plan.unwrap().stores, told), (vec![wanted], String::new()));
}

#[test]
fn what_is_not_said_has_a_default() {
    let text = "stores: {cassandra: {}}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    let store = check(text, &[]).0.unwrap().stores.remove(0);
    assert_eq!(
        (store.version, store.nodes, store.heap_bytes, store.is_synced()),
        ("5.0", 1, 512 << 20, true)
    );
}

#[test]
fn there_can_be_several() {
    let text = "stores: {kafka: {nodes: 3}, cassandra: {}}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    let stores = check(text, &[]).0.unwrap().stores;
    let names: Vec<_> =
        stores.iter().map(|store| (store.product.name(), store.version, store.nodes)).collect();
    assert_eq!(names, [("kafka", "4.3", 3), ("cassandra", "5.0", 1)]);
}

#[test]
fn mistakes_are_told_where_they_stand_also_in_a_store_that_is_not_started() {
    for (old, new, wanted) in [
        (
            "  cassandra:",
            "  casandra:",
            "t.yaml:3:3: what is the store \"casandra\"? did you mean cassandra?",
        ),
        ("\"4.1\"", "4.2", "t.yaml:4:14: \"4.2\" is not one of 5.0, 4.1"),
        ("${nodes}", "17", "t.yaml:5:12: 17 is too many; at most 16 nodes"),
        ("1GiB", "1MiB", "t.yaml:6:11: a heap has at least 128MiB and at most 64GiB"),
        ("${durability}", "memory", "t.yaml:7:17: \"memory\" is not one of synced, buffered"),
        (
            "store == 'cassandra'",
            "stroe == 'x'",
            "t.yaml:9:13: unknown setting \"stroe\"; did you mean store?",
        ),
        ("${store == 'cassandra'}", "perhaps", "t.yaml:9:11: \"perhaps\" is neither true nor false"),
    ] {
        let (plan, told) = check(&TEXT.replacen(old, new, 1), &[("nodes", "1")]);
        assert!(plan.is_none() && told.contains(wanted), "{wanted}\nbut\n{told}");
    }
}

/// A scenario of these stores and this system.
fn with(stores: &str, rest: &str) -> (Option<Plan>, String) {
    let text = format!(
        "stores: {{{stores}}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nload: {{users: 1, hold: 9s}}\n{rest}\n"
    );
    check(&text, &[])
}

const TWO: &str =
    "cache: {product: redis, durability: memory, memory: 64MiB}, redis: {}, people: {product: postgres}";

#[test]
fn stores_have_names_of_their_own() {
    let (plan, told) = with(TWO, "faults: [{at: 1s, kill: cache, restart after: 1s}]");
    let stores = plan.unwrap_or_else(|| panic!("{told}")).stores;
    let names: Vec<_> = stores.iter().map(|store| (store.name.as_str(), store.product)).collect();
    assert_eq!(names, [("cache", Product::Redis), ("redis", Product::Redis), ("people", Product::Postgres)]);
    assert_eq!((stores[0].durability, stores[0].memory_bytes), (Durability::Memory, Some(64 << 20)));
    let there = "people: {product: postgres, url: 'postgres://me@db/x'}, kafka: {addresses: ['k:9092']}";
    let (plan, told) = with(there, "faults: [{at: 1s, cut: people, for: 1s}]");
    let stores = plan.unwrap_or_else(|| panic!("{told}")).stores;
    assert_eq!(stores[0].origin, StoreOrigin::Url("postgres://me@db/x".into()));
    assert_eq!(stores[1].origin, StoreOrigin::Addresses(vec!["k:9092".into()]));
}

#[test]
fn a_command_and_a_system_are_told_where_stores_are() {
    let command = "system: {command: 'x {postgres} --cache={stores.cache.url} {stores.redis.port} {port}'}";
    let (plan, told) = with(TWO, command);
    let SystemOrigin::Command(words) = plan.unwrap_or_else(|| panic!("{told}")).system.origin else {
        panic!()
    };
    assert_eq!(
        words,
        ["x", "{stores.people.url}", "--cache={stores.cache.url}", "{stores.redis.port}", "{port}"]
    );
    let (plan, told) = with(TWO, "system: {serve: airline, settings: {redis: '{stores.cache.url}'}}");
    let settings = plan.unwrap_or_else(|| panic!("{told}")).system.settings;
    let postgres = settings.get("postgres").map(String::as_str);
    assert_eq!((postgres, settings["redis"].as_str()), (Some("{stores.people.url}"), "{stores.cache.url}"));
    let text = "stores: {cache: {product: redis}}\nsystem: {store: cache}\nsessions: {a: {steps: [{redis: [PING]}]}}\nload: {users: 1, hold: 1s}\n";
    let (plan, told) = check(text, &[]);
    let origin = plan.unwrap_or_else(|| panic!("{told}")).system.origin;
    assert!(matches!(&origin, SystemOrigin::Url(url) if url == "{stores.cache.url}"), "{origin:?}");
}

#[test]
fn an_opensearch_is_started_or_reached_and_a_command_is_told_its_url() {
    let system = "system: {command: 'x {opensearch} {port}'}";
    for (store, origin) in [
        ("search: {product: opensearch, version: '3.8', heap: 1GiB}", StoreOrigin::Started),
        ("search: {product: opensearch, url: 'http://a:1'}", StoreOrigin::Url("http://a:1".into())),
    ] {
        let (plan, told) = with(store, system);
        let plan = plan.unwrap_or_else(|| panic!("{told}"));
        assert_eq!((plan.stores[0].product, &plan.stores[0].origin), (Product::Opensearch, &origin));
        assert_eq!((plan.stores[0].version, plan.stores[0].nodes), ("3.8", 1));
        let SystemOrigin::Command(words) = plan.system.origin else { panic!() };
        assert_eq!(words[1], "{stores.search.url}");
    }
}

#[test]
fn a_registry_is_a_store_that_is_named_by_its_url_or_its_address() {
    let stores = "eureka: {}, etcd: {}, other: {product: etcd, url: 'http://a:1'}";
    let command = "system: {command: 'x {eureka}/eureka etcd://{stores.etcd.address} {port}'}";
    let (plan, told) =
        with(stores, &format!("{command}\nfaults: [{{at: 1s, kill: eureka, restart after: 1s}}]"));
    let plan = plan.unwrap_or_else(|| panic!("{told}"));
    let all: Vec<_> =
        plan.stores.iter().map(|of| (of.product, of.version, of.nodes, of.durability)).collect();
    let wanted = [
        (Product::Eureka, "4.3", 1, Durability::Memory),
        (Product::Etcd, "", 1, Durability::Synced),
        (Product::Etcd, "", 1, Durability::Synced),
    ];
    assert_eq!((all, plan.stores[0].heap_bytes), (wanted.to_vec(), 256 << 20));
    let SystemOrigin::Command(words) = plan.system.origin else { panic!() };
    assert_eq!(words[1..3], ["{stores.eureka.url}/eureka", "etcd://{stores.etcd.address}"]);
}

#[test]
fn mistakes_about_named_stores_have_a_way_out() {
    for (stores, rest, wanted) in [
        ("cache: {}", "", "what is the store \"cache\"? it needs `product:`, one of cassandra, kafka, redis"),
        ("redis: {product: kafka}", "", "a store called \"redis\" is Redis, this is Kafka"),
        ("system: {product: redis}", "", "\"system\" is another part of the run"),
        (
            "postgres: {nodes: 2}",
            "",
            "PostgreSQL has no \"nodes\"; write a second store with a name of its own",
        ),
        ("redis: {heap: 1GiB}", "", "Redis has no \"heap\"; it has product, nodes, cluster"),
        ("kafka: {version: '5.0'}", "", "\"5.0\" is not one of 4.3"),
        ("postgres: {durability: memory}", "", "\"memory\" is not one of synced, buffered"),
        ("redis: {memory: 1KiB}", "", "at least 8MiB"),
        ("redis: {url: 'http://a'}", "", "this is not a URL of Redis; write redis://HOST:PORT"),
        ("opensearch: {url: 'https://a'}", "", "this is not a URL of OpenSearch; write http://HOST:PORT"),
        ("eureka: {version: '5.0'}", "", "\"5.0\" is not one of 4.3"),
        ("eureka: {durability: memory}", "", "Eureka has no \"durability\"; it has product, version, heap"),
        ("etcd: {url: 'etcd://a'}", "", "this is not a URL of etcd; write http://HOST:PORT"),
        ("etcd: {}", "system: {store: etcd}", "and \"etcd\" is etcd; drive a system"),
        ("opensearch: {memory: 1GiB}", "", "OpenSearch has no \"memory\"; it has product, version, heap"),
        ("redis: {url: 'redis://a', memory: 9MiB}", "", "what is there has its own \"memory\""),
        ("kafka: {addresses: [a]}", "", "\"a\" is not an address; write HOST:PORT"),
        (
            "redis: {url: 'redis://a'}",
            "faults: [{at: 1s, kill: redis}]",
            "of it the link can be slowed or cut",
        ),
        ("kafka: {addresses: ['a:1']}", "faults: [{at: 1s, cut: kafka, for: 1s}]", "past any link"),
        (
            "a: {product: redis}, b: {product: redis}",
            "system: {command: 'x {redis} {port}'}",
            "several stores of Redis (a, b)",
        ),
        (
            "a: {product: redis}, b: {product: redis}",
            "system: {serve: airline}",
            "say which is meant: settings: {redis: \"{stores.a.url}\"",
        ),
        (
            "cache: {product: redis}",
            "system: {command: 'x {stores.cash.url} {port}'}",
            "no store is called \"cash\"",
        ),
        ("redis: {when: false}", "system: {command: 'x {stores.redis.url} {port}'}", "its `when` is false"),
        (
            "redis: {}",
            "system: {command: 'x {stores.redis.prot} {port}'}",
            "there is url, address, addresses, host, port",
        ),
        (
            "kafka: {}",
            "system: {command: 'x {stores.kafka.url} {port}'}",
            "has no URL; write {stores.kafka.addresses}",
        ),
        (
            "people: {product: mariadb}",
            "system: {store: people}",
            "is MariaDB; drive a system in front of it",
        ),
    ] {
        let (plan, told) = with(stores, rest);
        assert!(plan.is_none() && told.contains(wanted), "{wanted}\nbut\n{told}");
    }
}
