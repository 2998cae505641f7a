//! Requests to an Aerospike. None can be had where these tests run: they go against a node of our own that speaks its protocol.

mod node;

use std::fs;
use std::time::Duration;

use crate::common::{assert_refused, report, run, tidemark_in};
use node::{Fate, Node};
use serde_json::json;

/// A scenario of these steps at a node.
fn scenario(node: &Node, steps: &str, rest: &str) -> String {
    format!(
        "system: {{url: \"aerospike://{}/test\"}}\nsessions:\n  a:\n    steps:\n{steps}\nload: {{users: 16, hold: 60s}}\n{rest}\n",
        node.address
    )
}

const STEPS: &str = r#"
      - set: {k: "${count(n)}"}
      - set: {value: "v-${k}\r\n\"-ü"}
      - aerospike: [put, people, "k:${k}", v, "${value}", w, x]
        label: Put
        expires: 100
        extract: {first: {header: generation}}
        check: {status: 200, that: first == 1}
      - aerospike: [get, people, "k:${k}", v]
        label: Get
        extract: {got: body, unique: {header: generation}, expires: {header: expires}}
        check: {that: ["got == value", "unique == 1", "expires == 1262304100"]}
      - aerospike: [put, people, "k:${k}", v, new]
        generation: ${unique}
      - aerospike: [put, people, "k:${k}", v, newer]
        label: Late
        generation: ${unique}
        check: {status: 409, body: {contains: another generation}}
      - aerospike: [get, people, "k:${k}"]
        label: All
        check: {json: {$.v: new, $.w: x}}
      - aerospike: [get, people, "k:${k}", w, none, v]
        label: Some
        check: {body: '{"w":"x","v":"new"}'}
      - aerospike: [get, people, "k:${k}", none]
        label: No such bin
        check: {status: 204, body: ""}
      - aerospike: [get, people, "none:${k}", v]
        label: Miss
        check: {status: 204}
      - aerospike: [exists, people, "k:${k}"]
        check: {status: 200, body: ""}
      - aerospike: [exists, "", "k:${k}"]
        label: In no set
        check: {status: 204}
      - aerospike: [create, people, "k:${k}", v, again]
        check: {status: 409, body: {contains: is there already}}
      - aerospike: [update, people, "none:${k}", v, x]
        check: {status: 204}
      - aerospike: [append, people, "k:${k}", v, "-${k}"]
      - aerospike: [prepend, people, "k:${k}", v, "${k}-"]
      - aerospike: [get, people, "k:${k}", v]
        check: {body: "${k}-new-${k}"}
      - aerospike: [replace, people, "k:${k}", w, "1.5"]
      - aerospike: [get, people, "k:${k}"]
        check: {body: '{"w":"1.5"}'}
      - aerospike: [add, counts, "n:${k}", n, 41, m, "${k}"]
      - aerospike: [add, counts, "n:${k}", n, -2]
      - aerospike: [get, counts, "n:${k}"]
        check: {json: {$.n: 39, $.m: "${k}"}}
      - aerospike: [touch, counts, "n:${k}"]
        expires: 50
        extract: {third: {header: generation}, later: {header: expires}}
        check: {that: ["third == 3", "later == 1262304050"]}
      - aerospike: [add, people, "k:${k}", w, 1]
        label: Of another type
        check: {status: 500, body: {contains: "12: the bin is of another type"}}
      - aerospike: [delete, counts, "n:${k}"]
        check: {status: 200}
      - aerospike: [delete, counts, "n:${k}"]
        check: {status: 204}
"#;

#[test]
fn requests_are_answered() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for limits in ["connections: 4", "connections: 2, pipeline: 8"] {
        let node = Node::start(1, |_| Fate::Done);
        let text =
            scenario(&node, STEPS, &format!("limits: {{{limits}, sessions: 300}}\nobjectives: [errors = 0]"));
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{limits}: {result:#}{told}");
        assert_eq!(node.of("people").len(), 300);
        assert_eq!(node.of("counts").len() + node.of("").len(), 0);
        assert!(node.of("people").iter().all(|record| record.expires == 0 && record.generation == 5));
    }
}

#[test]
fn what_goes_wrong_is_told() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let outcome = |steps: &str, fate: fn(usize) -> Fate, rest: &str| {
        let node = Node::start(1, fate);
        let text = scenario(&node, steps, &format!("limits: {{sessions: 20, connections: 2}}\n{rest}"));
        let (_, result) = run(folder.path(), &text);
        (result["errors"].clone(), report(folder.path()))
    };
    let done = |_| Fate::Done;
    assert_eq!(outcome("      - {aerospike: [get, s, none]}", done, "").0, json!({}), "a miss is no failure");
    let (errors, told) = outcome("      - {aerospike: [put, s, k, v, x]}", |_| Fate::Refused(8), "");
    assert_eq!(errors, json!({"status": 20}));
    assert!(told.contains("an error: 8: out of space"), "{told}");
    let (errors, told) = outcome("      - {aerospike: [get, s, k, v], timeout: 1500ms}", late, "");
    assert_eq!(errors, json!({"timeout": 10}), "{told}");
    let (errors, told) = outcome("      - {aerospike: [put, s, k, v, x]}", closed, "");
    assert_eq!(errors, json!({"reset": 10}), "{told}");
    let steps = "      - {set: {n: 'a b'}}\n      - {aerospike: [add, s, k, v, '${n}']}\n      - {aerospike: [exists, s, k]}";
    let (errors, told) = outcome(steps, done, "");
    assert_eq!(errors, json!({"variable": 20}), "{told}");
    assert!(told.contains("what is added to v: this is not a whole number"), "{told}");
    let large = "      - {aerospike: [put, s, k, v, '0123456789']}\n      - {aerospike: [get, s, k, v], check: {body: '0123456789'}}\n      \
                 - {aerospike: [get, s, k], check: {json: {$.v: '0123456789'}}}";
    let (errors, told) = outcome(large, done, "");
    assert_eq!(errors, json!({}), "{told}");
    let node = Node::start(1, done);
    let (_, result) =
        run(folder.path(), &scenario(&node, large, "limits: {sessions: 20, connections: 2, body: 9B}"));
    assert_eq!(result["errors"], json!({"protocol": 40}), "{}", report(folder.path()));
}

fn late(n: usize) -> Fate {
    if n % 2 == 1 { Fate::Late(Duration::from_secs(3)) } else { Fate::Done }
}

fn closed(n: usize) -> Fate {
    if n % 2 == 1 { Fate::Closed } else { Fate::Done }
}

#[test]
fn only_a_node_by_itself_with_the_namespace_is_driven() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let of = |node: &Node, namespace: &str| {
        let text = scenario(node, "      - {aerospike: [get, s, k]}", "").replace("/test", namespace);
        fs::write(folder.path().join("s.yaml"), text).expect("written");
        tidemark_in(folder.path(), &["run", "s.yaml"])
    };
    let (status, told) = of(&Node::start(3, |_| Fate::Done), "/test");
    assert!(status == Some(1) && told.contains("a cluster of 3 nodes"), "{status:?} {told}");
    let (status, told) = of(&Node::start(1, |_| Fate::Done), "/shop");
    assert!(
        status == Some(1) && told.contains("no namespace \"shop\"; there is bar, test"),
        "{status:?} {told}"
    );
}

#[test]
fn mistakes_are_told_when_a_scenario_is_checked() {
    let system = "{url: aerospike://127.0.0.1/test}";
    for (system, step, expected) in [
        (system, "{aerospike: [fetch, s, k]}", "use one of get, exists"),
        (system, "{aerospike: [get, s]}", "something is missing here: [get, SET, KEY, BIN, …]"),
        (system, "{aerospike: [put, s, k]}", "something is missing here: [put, SET, KEY, BIN, VALUE, …]"),
        (system, "{aerospike: [put, s, k, v]}", "something is missing here"),
        (system, "{aerospike: [touch, s, k, v]}", "one word too many: [touch, SET, KEY]"),
        (system, "{aerospike: [get, 'a:b', k]}", "at most 63 bytes, without `:`"),
        (system, "{aerospike: [get, '${random(1, 2)}', k]}", "no variable stands in the name of a set"),
        (system, "{aerospike: [get, s, k, '${random(1, 2)}']}", "no variable stands in the name of a bin"),
        (system, "{aerospike: [get, s, k, abcdefghijklmnop]}", "1 to 15 bytes"),
        (system, "{aerospike: [add, s, k, n, one]}", "this is a whole number of 64 bits"),
        (system, "{aerospike: [get, s, k], expires: 5}", "belongs to writes"),
        (system, "{aerospike: [put, s, k, v, x], expires: soon}", "whole number of seconds"),
        (system, "{aerospike: [put, s, k, v, x], generation: 0}", "from 1 to 65535"),
        (system, "{aerospike: [get, s, k], extract: {a: {cookie: b}}}", "has no cookies"),
        (system, "{GET: /}", "the server is Aerospike"),
        ("{url: 'http://127.0.0.1'}", "{aerospike: [get, s, k]}", "begins with aerospike://"),
        ("{url: 'aerospike://127.0.0.1'}", "{aerospike: [get, s, k]}", "it names no namespace"),
        (
            "{url: 'aerospike://u:p@127.0.0.1/test'}",
            "{aerospike: [get, s, k]}",
            "only its Enterprise Edition",
        ),
        ("{url: 'aerospike://a,b/test'}", "{aerospike: [get, s, k]}", "one is driven"),
    ] {
        assert_refused(system, "", step, expected);
    }
}

/// The shipped scenario: records are loaded, then read and written; a wrong version is a failure.
#[test]
fn the_shipped_scenario_runs() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let node = Node::start(1, |_| Fate::Done);
    let address = format!("address={}", node.address);
    let arguments = [
        "run",
        "kv-aerospike",
        "--for",
        "1s",
        "--set",
        &address,
        "--set",
        "records=2000",
        "--set",
        "reads=80",
    ];
    let (status, told) = tidemark_in(folder.path(), &arguments);
    // it may be the load generator that was the limit
    assert!(matches!(status, Some(0 | 3)), "{status:?} {told}");
    assert_eq!(node.of("kv").len(), 2000);
    assert!(node.of("kv").iter().any(|record| record.generation > 1), "some were written again");
    // what is acknowledged and not written is read as a version that is too old
    let lies = Node::start(1, |n| if n > 2000 && n % 2 == 0 { Fate::Lost } else { Fate::Done });
    let address = format!("address={}", lies.address);
    let arguments = [
        "run",
        "kv-aerospike",
        "--for",
        "1s",
        "--set",
        &address,
        "--set",
        "records=2000",
        "--set",
        "reads=50",
    ];
    let (status, told) = tidemark_in(folder.path(), &arguments);
    assert!(status == Some(1) && told.contains("stale"), "{status:?} {told}");
}

/// Run and verify again; then something is taken away behind its back.
#[test]
fn what_was_acknowledged_is_read_back_also_later() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // some answers are errors, whether it was done or not
    let fate = |n: usize| match n % 50 {
        7 => Fate::Refused(8),
        9 => Fate::DoneBut(9),
        11 => Fate::Closed,
        _ => Fate::Done,
    };
    let node = Node::start(1, fate);
    let steps = "      - aerospike: [put, notes, \"${count(n)}\", note, \"${note}\", other, 7]\n        \
                 ledger: {content: \"note ${entry}|${check}|\", as: note}";
    let rest = "limits: {connections: 2, pipeline: 8, sessions: 2000}\nverify: {store: aerospike, set: notes}\nobjectives: [lost = 0, errors < 50%]";
    fs::write(folder.path().join("s.yaml"), scenario(&node, steps, rest)).expect("the scenario is written");
    let (status, told) = tidemark_in(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("0 lost of 1,"), "{told}");
    assert_eq!(tidemark_in(folder.path(), &["verify", "run"]).0, Some(0));
    let mut taken = 0;
    let is_whole = |record: &node::Record| record.bins.contains_key(&b"note"[..]);
    node.records.lock().expect("the records").retain(|_, record| {
        let goes = taken < 3 && is_whole(record);
        taken += usize::from(goes);
        !goes
    });
    let (status, told) = tidemark_in(folder.path(), &["verify", "run"]);
    assert!(status == Some(1) && told.contains(" lost"), "{status:?} {told}");
}

/// What a node acknowledges and does not keep is found, and a scan that is not whole proves nothing.
#[test]
fn what_is_lost_is_found_and_half_a_scan_is_none() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (set, expected, words) in [("notes", 1, "20 lost of 200"), ("half", 3, "2000 of 4096 partitions")] {
        let node = Node::start(1, |n| if n % 10 == 3 { Fate::Lost } else { Fate::Done });
        let steps = format!(
            "      - aerospike: [put, {set}, \"${{count(n)}}\", note, \"${{note}}\"]\n        \
             ledger: {{content: \"note ${{entry}}|${{check}}|\", as: note}}"
        );
        let rest = format!(
            "limits: {{connections: 2, sessions: 200}}\nverify: {{store: aerospike, set: {set}}}\nobjectives: [lost = 0]"
        );
        fs::write(folder.path().join("s.yaml"), scenario(&node, &steps, &rest))
            .expect("the scenario is written");
        let _ = fs::remove_dir_all(folder.path().join("run"));
        let (status, told) = tidemark_in(folder.path(), &["run", "s.yaml", "--out", "run"]);
        assert!(status == Some(expected) && told.contains(words), "{set}: {status:?} {told}");
    }
}
