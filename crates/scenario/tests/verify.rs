//! `verify:` in the language: what it becomes, and what is said of its mistakes.

use std::path::Path;
use std::time::Duration;

use crate::support;
use tidemark_scenario::plan::{CassandraTable, ContentsQuestion, Each, NextSource, ReadFrom};
use tidemark_scenario::{Checker, Plan, Shared, ShippedSystem};

fn file(verify: &str) -> String {
    format!(
        "settings: {{limit: 50}}
sessions: {{a: {{steps: [{{GET: /}}]}}}}
load: {{users: 1, hold: 1s}}
feeders: {{people: {{rows: [{{user: 'a/b', day: 1}}, {{user: c, day: 2}}, {{user: 'a/b', day: 3}}]}}}}
verify: {verify}
"
    )
}

fn plan(verify: &str) -> Plan {
    support::load(&file(verify)).unwrap()
}

fn told(verify: &str) -> String {
    const SYSTEMS: &[ShippedSystem] = &[ShippedSystem {
        name: "ingest",
        keeps_data: true,
        store_is_readable: true,
        tells_operations: false,
    }];
    let checker = Checker { systems: SYSTEMS, ..Checker::default() };
    checker.text("t.yaml", &file(verify), Path::new("."), &[]).1.to_string()
}

fn contents(plan: &Plan) -> &ContentsQuestion {
    match &plan.verify.as_ref().unwrap().from {
        ReadFrom::Api(contents) => contents,
        other => panic!("not the API: {other:?}"),
    }
}

fn paths(plan: &Plan) -> Vec<String> {
    let shared = Shared::new(plan.counters, plan.feeders.clone());
    contents(plan).paths(&shared, 1, 0).unwrap()
}

#[test]
fn contents_are_asked_for_each_different_row() {
    let plan = plan(
        "{settle: 2s, behind: /behind, count: {GET: '/count?all=${limit}', json: $.n}, parallel: 8, within: 1m, headers: {X-Key: k}, \
         contents: {for: people, GET: '/m/${user}?limit=${limit}', items: '$[*].payload', next: {header: Next-Cursor}, as: cursor}}",
    );
    let verify = plan.verify.as_ref().unwrap();
    assert_eq!((verify.settle, verify.within), (Duration::from_secs(2), Duration::from_secs(60)));
    assert_eq!(verify.parallel, 8);
    assert_eq!(verify.headers, [("X-Key".to_owned(), "k".to_owned())]);
    let count = verify.count.as_ref().unwrap();
    assert_eq!(count.path, "/count?all=50");
    let behind = verify.behind.as_ref().unwrap();
    assert_eq!(behind.path, "/behind");
    let next = contents(&plan).next.as_ref().unwrap();
    assert_eq!(next.parameter.as_deref(), Some("cursor"));
    assert!(matches!(&next.source, NextSource::Header(name) if name == "next-cursor"));
    assert_eq!(paths(&plan), ["/m/a%2Fb?limit=50", "/m/c?limit=50"], "each once, and encoded");
}

#[test]
fn contents_are_asked_for_each_number_and_of_several_paths() {
    let plan = plan(
        "{contents: {for: {number: id, to: {GET: '/count?x=${limit}', json: $.n}}, GET: ['/p/${id}/out', '/q?of=${id}&n=${limit}'], \
         items: '$[*]', copies: 'to ([0-9]+) feeds'}}",
    );
    let question = contents(&plan);
    let Some(Each::Number { from: 1, to }) = &question.each else { panic!("{question:?}") };
    assert_eq!((to.path.as_str(), question.copies.as_deref()), ("/count?x=50", Some("to ([0-9]+) feeds")));
    let shared = Shared::new(plan.counters, plan.feeders.clone());
    let around = question.around_number(&shared, 1, 0).unwrap();
    assert_eq!(around, [["/p/", "/out"], ["/q?of=", "&n=50"]]);
    for (wrong, told_of) in [
        ("{for: {number: id}, GET: '/${id}', items: $}", "to"),
        ("{for: {number: id, to: /n}, GET: '/${ix}', items: $}", "ix"),
        ("{for: {number: id, to: '/${id}'}, GET: '/${id}', items: $}", "id"),
        ("{GET: /a, items: $, copies: '[0-9]+'}", "group"),
        ("{GET: /a, items: $, copies: '('}", "copies"),
        ("{GET: [], items: $}", "GET"),
    ] {
        let text = told(&format!("{{contents: {wrong}}}"));
        assert!(text.contains(told_of), "{wrong}: {text}");
    }
}

#[test]
fn what_is_left_out_has_defaults() {
    let plan = plan("{count: /n, contents: {GET: /all, items: $}}");
    let verify = plan.verify.as_ref().unwrap();
    assert_eq!((verify.parallel, verify.settle), (4, Duration::ZERO));
    assert_eq!(verify.within, Duration::from_secs(600));
    assert!(
        verify.behind.is_none()
            && contents(&plan).next.is_none()
            && verify.count.as_ref().unwrap().json.is_none()
    );
    assert_eq!(paths(&plan), ["/all"]);
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (verify, said) in [
        ("{}", "t.yaml:5:9: a verify needs one of the keys contents, store"),
        ("{contents: {items: $}}", "t.yaml:5:20: a question for contents needs the key \"GET\""),
        ("{contents: {GET: /a, items: a}}", "\"a\" is not a JSON path"),
        ("{contents: {GET: a, items: $}}", "a path begins with a slash"),
        ("{contents: {GET: '/${user}', items: $}}", "unknown variable \"user\""),
        ("{contents: {for: peopel, GET: /a, items: $}}", "unknown feeder \"peopel\"; did you mean people?"),
        ("{contents: {GET: /a, items: $, as: c}}", "say with \"next\" where that stands"),
        ("{contents: {GET: /a, items: $, next: {}}}", "needs one of the keys header, json"),
        ("{parallel: 65, contents: {GET: /a, items: $}}", "65 is too many; at most 64"),
        ("{count: '/${random(1, 2)}', contents: {GET: /a, items: $}}", "it can hold only settings"),
        ("{headers: {A: \"b\\nc\"}, contents: {GET: /a, items: $}}", "a header's value is one line"),
        ("{store: shoebox}", "t.yaml:5:17: \"shoebox\" is not one of embedded, cassandra"),
        ("{store: cassandra}", "t.yaml:5:17: the address of this system's Cassandra is not known"),
        ("{store: cassandra, consistency: two, contact: 'a:1'}", "\"two\" is not one of one, quorum"),
        ("{store: cassandra, count: /n}", "t.yaml:5:28: this belongs to \"contents\""),
        ("{keyspace: a, contents: {GET: /a, items: $}}", "t.yaml:5:10: this belongs to \"store: cassandra\""),
        (
            "{store: embedded}",
            "t.yaml:5:17: the store of this system is not read directly; that of `serve: ingest` is",
        ),
        ("{store: embedded, contents: {GET: /a, items: $}}", "contents"),
        ("{count: /n, store: embedded}", "t.yaml:5:10: this belongs to \"contents\""),
        ("{headers: {A: b}, store: embedded}", "t.yaml:5:10: this belongs to \"contents\""),
        ("{settle: 1s, store: embedded}", "t.yaml:5:10: this belongs to \"contents\""),
        ("{behind: n, store: embedded}", "t.yaml:5:18: a path begins with a slash"),
        ("{behind: '/${random(1, 2)}', contents: {GET: /a, items: $}}", "it can hold only settings"),
    ] {
        let told = told(verify);
        assert!(told.contains(said), "{verify}: {told}");
    }
}

#[test]
fn the_shipped_intakes_own_store_is_read_directly_where_there_is_a_directory() {
    let text = |settings: &str| {
        format!("system: {{serve: ingest, {settings}}}\n{}", file("{store: embedded, parallel: 2}"))
    };
    let load = |settings: &str| support::load(&text(settings));
    let plan = load("durability: buffered, settings: {store: embedded}").unwrap();
    assert!(matches!(plan.verify.unwrap().from, ReadFrom::Embedded));
    for (settings, said) in [
        ("durability: memory", "t.yaml:6:17: with durability memory nothing is kept in a directory"),
        ("settings: {store: cassandra}", "t.yaml:6:17: this system's store is cassandra and not embedded"),
        ("settings: {buffer: kafka}", "t.yaml:6:17: with a buffer the store lacks some"),
    ] {
        let told = load(settings).unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_store_behind_a_buffer_is_read_directly_once_nothing_is_missing_there() {
    for store in ["embedded", "cassandra"] {
        let system = format!("{{serve: ingest, settings: {{store: {store}, buffer: kafka}}}}");
        let verify =
            format!("{{store: {store}, behind: {{GET: /behind, json: $.n}}, settle: 1s, headers: {{A: b}}}}");
        let text = format!("system: {system}\n{}", file(&verify));
        let verify = support::load(&text).unwrap().verify.unwrap();
        assert_eq!(verify.behind.unwrap().path, "/behind", "{store}");
        assert!(!matches!(verify.from, ReadFrom::Api(_)), "{store}");
        assert_eq!((verify.settle, verify.headers.len()), (Duration::from_secs(1), 1), "{store}");
    }
}

#[test]
fn the_shipped_intakes_table_is_read_directly_in_the_cassandra_of_its_settings() {
    let text = |system: &str, verify: &str| format!("system: {system}\n{}", file(verify));
    let load = |system: &str, verify: &str| support::load(&text(system, verify));
    let from = |system: &str, verify: &str| match load(system, verify).unwrap().verify.unwrap().from {
        ReadFrom::Cassandra(table) => table,
        other => panic!("not Cassandra: {other:?}"),
    };
    let intake = "{serve: ingest, settings: {store: cassandra}}";
    assert_eq!(from(intake, "{store: cassandra, settle: 1s}"), CassandraTable::default());
    let table =
        from("{url: 'http://a'}", "{store: cassandra, contact: 'a:1,b:2', keyspace: k, consistency: all}");
    let said = [table.contact, table.keyspace, table.consistency].map(Option::unwrap);
    assert_eq!(said, ["a:1,b:2", "k", "all"]);
    // a system of somebody else's whose store this run starts
    from("{command: 'x {contact} {port}'}\nstores: {cassandra: {}}", "{store: cassandra}");
    // what neither says is as the shipped system has it by default, also where it is at a URL
    const SYSTEMS: &[ShippedSystem] = &[ShippedSystem {
        name: "ingest",
        keeps_data: true,
        store_is_readable: true,
        tells_operations: false,
    }];
    fn default_of(system: &str, setting: &str) -> Option<&'static str> {
        (system == "ingest" && setting == "keyspace").then_some("tidemark")
    }
    let checker = Checker { systems: SYSTEMS, default_of, ..Checker::default() };
    for system in [intake, "{url: 'http://a'}"] {
        let text = text(system, "{store: cassandra, contact: 'a:1'}");
        let plan = checker.text("t.yaml", &text, Path::new("."), &[]).0.unwrap();
        let ReadFrom::Cassandra(table) = plan.verify.unwrap().from else { panic!("not Cassandra") };
        assert_eq!(table.defaults, [None, Some("tidemark"), None], "{system}");
    }
    let told = load("{serve: ingest}", "{store: cassandra}").unwrap_err().to_string();
    assert!(told.contains("t.yaml:6:17: this system's store is embedded and not cassandra"), "{told}");
}

#[test]
fn a_store_that_this_program_cannot_read_is_told_where_it_stands() {
    let checker = Checker { store: |store| Err(format!("no client of {store}")), ..Checker::default() };
    let text =
        format!("system: {{serve: ingest, settings: {{store: cassandra}}}}\n{}", file("{store: cassandra}"));
    let (plan, told) = checker.text("t.yaml", &text, Path::new("."), &[]);
    assert!(plan.is_none() && told.to_string().contains("t.yaml:6:17: no client of cassandra"), "{told}");
}

#[test]
fn what_is_driven_is_read_by_its_protocol_wherever_it_is() {
    let text = |head: &str, step: &str, verify: &str| {
        format!(
            "{head}\nsessions:\n  a:\n    steps:\n      - {{{step}, ledger: {{content: \"|${{entry}}|${{check}}|\", as: note}}}}\n\
             load: {{users: 1, hold: 1s}}\nverify: {verify}\n"
        )
    };
    let load = |head: &str, step: &str, verify: &str| support::load(&text(head, step, verify));
    let set = "memcached: [set, k, \"${note}\"]";
    let (redis, command) = ("system: {url: redis://a}", "redis: [SET, k, \"${note}\"]");
    let (http, get) = ("system: {url: 'http://a'}", "GET: '/${note}'");
    let put = "aerospike: [put, s, k, v, \"${note}\"]";
    let sql = "sql: INSERT INTO t VALUES ($1), with: [\"${note}\"]";
    let cql = "cql: INSERT INTO t (n) VALUES (?), with: [\"${note}\"]";
    let beside = "system: {url: 'http://a'}\ntargets: {m: {url: 'memcached://b'}, p: {url: 'postgres://u@c/d'}, o: {url: 'http://e'}}";
    let (to_m, to_p) = (format!("at: m, {set}"), format!("at: p, {sql}"));
    for (head, step, verify, at, wanted) in [
        ("system: {url: memcached://a}", set, "{store: memcached}", 0, "Memcached { keys: \"*\" }"),
        (redis, command, "{store: redis, settle: 1s}", 0, "Redis { keys: \"*\" }"),
        (redis, command, "{store: redis, keys: 'm:*'}", 0, "Redis { keys: \"m:*\" }"),
        (
            "system: {url: 'postgres://u@a/d'}",
            sql,
            "{store: postgres, sql: SELECT 1}",
            0,
            "statement: \"SELECT 1\"",
        ),
        (
            "system: {url: 'cql://a/k'}",
            cql,
            "{store: cassandra, cql: SELECT 2}",
            0,
            "statement: \"SELECT 2\"",
        ),
        (
            "system: {url: 'aerospike://a/test'}",
            put,
            "{store: aerospike, set: notes}",
            0,
            "Aerospike { set: \"notes\" }",
        ),
        ("system: {url: 'aerospike://a/test'}", put, "{store: aerospike}", 0, "Aerospike { set: \"\" }"),
        (beside, &to_m, "{at: m, store: memcached, keys: 'n:*'}", 1, "keys: \"n:*\""),
        (beside, &to_p, "{at: p, store: postgres, sql: SELECT 3}", 2, "statement: \"SELECT 3\""),
        (
            beside,
            "at: o, POST: /, body: \"${note}\"",
            "{at: o, contents: {GET: /, items: '$[*]'}}",
            3,
            "Api(",
        ),
    ] {
        let others = if head == beside {
            "\n      - {GET: /, at: o}\n      - {memcached: [get, k]}\n      - {sql: SELECT 1}"
        } else {
            ""
        };
        let text = text(head, step, verify).replacen("\nload:", &format!("{others}\nload:"), 1);
        let verify = support::load(&text).map(|plan| plan.verify.unwrap());
        let verify = verify.unwrap_or_else(|told| panic!("{told}"));
        assert_eq!(verify.at, at, "{text}");
        assert!(format!("{:?}", verify.from).contains(wanted), "{:?}", verify.from);
    }
    for (head, step, verify, said) in [
        (
            "system: {url: memcached://a}",
            set,
            "{store: redis}",
            "a memcached is read back with `store: memcached`",
        ),
        ("system: {url: 'postgres://u@a/d'}", sql, "{store: postgres}", "say with `sql` which rows are read"),
        (
            "system: {url: 'postgres://u@a/d'}",
            sql,
            "{store: postgres, cql: x, sql: y}",
            "belongs to \"store: cassandra\"",
        ),
        (
            "system: {url: 'cql://a'}",
            cql,
            "{store: cassandra}",
            "a Cassandra is read back with `store: cassandra` and `cql`",
        ),
        ("system: {url: memcached://a}", set, "{store: memcached, parallel: 2}", "read over one connection"),
        (redis, command, "{store: redis, parallel: 2}", "read over one connection"),
        (redis, command, "{store: embedded, keys: x}", "belongs to \"store: redis\" or \"store: memcached\""),
        (redis, command, "{contents: {GET: /, items: '$[*]'}}", "is read back with `store: redis`"),
        (http, get, "{store: redis}", "a server of HTTP, and not redis"),
        (
            "system: {url: memcached://a}",
            set,
            "{store: memcached, set: s}",
            "belongs to \"store: aerospike\"",
        ),
        (
            "system: {url: 'aerospike://a/test'}",
            put,
            "{store: memcached}",
            "an Aerospike is read back with `store: aerospike`",
        ),
        (beside, &to_m, "{at: x, store: memcached}", "there is no target \"x\""),
        (beside, &to_m, "{store: memcached}", "not memcached; say with `at`"),
        (beside, &to_m, "{at: p, store: postgres, sql: z}", "looked for in \"p\", and this goes to \"m\""),
    ] {
        let told = load(head, step, verify).unwrap_err().to_string();
        assert!(told.contains(said), "{said}\n{told}");
    }
}
