//! Stores that a scenario has started.

use std::path::Path;
use std::time::Duration;

use tidemark_scenario::plan::{Product, Store};
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
        product: Product::Cassandra,
        version: "4.1",
        nodes: 3,
        heap_bytes: 1 << 30,
        synced: false,
        ready_within: Duration::from_secs(90),
    };
    assert_eq!((plan.unwrap().stores, told), (vec![wanted], String::new()));
}

#[test]
fn what_is_not_said_has_a_default() {
    let text = "stores: {cassandra: {}}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    let store = check(text, &[]).0.unwrap().stores.remove(0);
    assert_eq!((store.version, store.nodes, store.heap_bytes, store.synced), ("5.0", 1, 512 << 20, true));
}

#[test]
fn there_can_be_several() {
    let text = "stores: {kafka: {nodes: 3}, cassandra: {}}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    let stores = check(text, &[]).0.unwrap().stores;
    let names: Vec<_> =
        stores.iter().map(|store| (store.product.word(), store.version, store.nodes)).collect();
    assert_eq!(names, [("kafka", "4.3", 3), ("cassandra", "5.0", 1)]);
}

#[test]
fn mistakes_are_told_where_they_stand_also_in_a_store_that_is_not_started() {
    for (old, new, wanted) in [
        ("  cassandra:", "  casandra:", "t.yaml:3:3: unknown key \"casandra\"; did you mean cassandra?"),
        ("\"4.1\"", "4.2", "t.yaml:4:14: \"4.2\" is not one of 5.0, 4.1"),
        ("${nodes}", "4", "t.yaml:5:12: 4 is too many; at most 3 nodes"),
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
