//! `tidemark compare` of runs that are there.

use std::fs;
use std::path::Path;

use crate::program::runs::StoredRun;
use crate::program::{assert_refused, code, json, run, stderr, stdout};
use serde_json::Value;

/// One run of each side, of which B's checkout takes a fifth longer, and another like A; three of each, all alike; and three
/// that take as long as B.
fn write(folder: &Path) {
    let started_at = |minute: usize| format!("2026-03-01T10:{minute:02}:00Z");
    for (minute, (name, us)) in [("a", 20_000), ("b", 24_000), ("again", 20_000)].into_iter().enumerate() {
        let started_at = started_at(minute);
        let long = StoredRun { seconds: 40, us: [10_000, us], started_at, ..StoredRun::default() };
        long.write(&folder.join(name));
    }
    for (number, off) in (1..).zip([0, 40, 16]) {
        let sides = [("before", 20_000 + off), ("behind", 20_056 - off), ("slow", 24_000 + off)];
        for (index, (side, us)) in sides.into_iter().enumerate() {
            let started_at = started_at(10 * number + index);
            let run = StoredRun { us: [10_000 + off, us], started_at, ..StoredRun::default() };
            run.write(&folder.join(format!("{side}/{number}")));
        }
    }
}

fn claim<'v>(claims: &'v Value, label: Option<&str>, figure: &str) -> &'v Value {
    let all = claims["comparisons"].as_array().expect("a list");
    let is = |of: &&Value| of["label"].as_str() == label && of["figure"] == figure;
    all.iter().find(is).unwrap_or_else(|| panic!("{figure}: {claims}"))
}

#[test]
fn a_planted_slowdown_is_found_and_fails_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let output = run(folder.path(), &["compare", "a", "b", "--json"]);
    assert_eq!(code(&output), 0, "nobody asked that it fails: {}", stderr(&output));
    let claims = json(&output);
    assert_eq!(claims["covers"], "within-runs");
    let checkout = claim(&claims, Some("Checkout"), "p50");
    assert_eq!(checkout["difference"], true, "{checkout}");
    assert!(checkout["low"].as_f64() > Some(1.15) && checkout["high"].as_f64() < Some(1.25), "{checkout}");
    assert_eq!(claim(&claims, Some("Search"), "p50")["difference"], false);
    let says = claims["says"][0].as_str().unwrap();
    assert!(says.starts_with("Within these two runs, B is slower: "), "{says}");
    // the text, and that one run of each says nothing of others
    let text = stderr(&output);
    assert!(text.contains("B is slower: ") && text.contains("one run of each"), "{text}");

    for (flag, begins) in [("--markdown", "#"), ("--html", "<!doctype html>")] {
        let printed = run(folder.path(), &["compare", "a", "b", flag, "-"]);
        let text = stdout(&printed);
        assert_eq!(code(&printed), 0, "{flag}: {}", stderr(&printed));
        assert!(text.to_lowercase().starts_with(begins) && text.contains("B is slower: "), "{flag}: {text}");
        assert!(stderr(&printed).contains("B is slower: "), "{flag}: the text is there");
    }

    let rules = |rule: &str| code(&run(folder.path(), &["compare", "before", "slow", "--fail-if", rule]));
    assert_eq!(
        ["Checkout p50>+5%", "Checkout p50>+50%", "rate<-50%", "cpu>+10%"].map(rules),
        [1, 0, 0, 0],
        "only what is sure fails"
    );
    // what differs in memory within a run is not known
    let output = run(folder.path(), &["compare", "a", "b", "--fail-if", "memory>+5%"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("'memory>+5%': undecided: too few valid runs"), "{}", stderr(&output));
    // of one run of each nothing is, as what differs from run to run is not known
    let output = run(folder.path(), &["compare", "a", "b", "--fail-if", "Checkout p50>+5%", "--json"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let claims = json(&output);
    let judged = &claims["fail_if"][0];
    assert!(judged["failed"].is_null(), "{judged}");
    assert!(judged["says"].as_str().unwrap().contains("one run of each side cannot decide"), "{judged}");
}

#[test]
fn runs_that_are_alike_show_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let one = run(folder.path(), &["compare", "a", "again", "--json", "--fail-if", "p99>+1%"]);
    assert_eq!(code(&one), 3, "not sure: {}", stderr(&one));
    for (unsure, status) in [("pass", 0), ("fail", 1), ("3", 3)] {
        let one = ["compare", "a", "again", "--fail-if", "p99>+1%", "--unsure", unsure];
        assert_eq!(code(&run(folder.path(), &one)), status, "{unsure}");
    }
    let names: Vec<String> = fs::read_dir(folder.path().join("before"))
        .unwrap()
        .map(|entry| format!("before/{}", entry.unwrap().file_name().display()))
        .collect();
    let several = names.join(",");
    let arguments =
        ["compare", several.as_str(), "behind", "--json", "--markdown", "pr.md", "--html", "c.html"];
    let output = run(folder.path(), &arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let claims = json(&output);
    assert_eq!(claims["covers"], "between-runs");
    assert_eq!(claims["sides"][1]["runs"].as_array().map(Vec::len), Some(3), "a folder is all of its runs");
    let differing = claims["comparisons"].as_array().unwrap().iter().filter(|of| of["difference"] == true);
    assert_eq!(differing.count(), 0, "{claims}");
    let markdown = fs::read_to_string(folder.path().join("pr.md")).unwrap();
    assert!(markdown.starts_with("### ➖ behind against before/"), "{markdown}");
    assert!(markdown.contains("\n\n**B against A: no difference larger than "), "{markdown}");
    assert!(markdown.contains("<details><summary>By label</summary>"), "{markdown}");
    assert!(fs::read_to_string(folder.path().join("c.html")).unwrap().contains("B against A"));
}

#[test]
fn one_fresh_run_is_held_against_several_of_before() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let slow = StoredRun { us: [10_000, 30_000], ..StoredRun::default() };
    slow.write(&folder.path().join("new"));
    let claims = json(&run(folder.path(), &["compare", "before", "new", "--json"]));
    assert_eq!(claims["covers"], "between-runs");
    let checkout = claim(&claims, Some("Checkout"), "p50");
    assert_eq!(checkout["difference"], true, "{checkout}");
}

#[test]
fn one_run_several_times_is_not_several_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("copy")).unwrap();
    fs::copy(at("before/1/run.json"), at("copy/run.json")).unwrap();
    std::os::unix::fs::symlink("before/1", at("link")).unwrap();
    for again in ["before/1", "./before/../before/1", "copy", "link", "before"] {
        let side = format!("before/1,{again}");
        assert_refused(folder.path(), &["compare", "behind", &side], "are the same run, which counts once");
    }
    for sides in [["before", "before/1"], ["before/1,before/2", "behind,before/2"], ["a", "a"]] {
        let arguments = ["compare", sides[0], sides[1]];
        assert_refused(folder.path(), &arguments, "are the same run, which counts once");
    }
    let output = run(folder.path(), &["compare", "behind", "copy,before/2"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn wrong_use_is_told_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    fs::write(
        folder.path().join("s.yaml"),
        "sessions: {s: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n",
    )
    .unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (arguments, says) in [
        (&["compare", "a"][..], "is one run; name another one to hold it against"),
        (&["compare", "a", "nowhere"], "no run \"nowhere\""),
        (&["compare", "a", "empty"], "empty"),
        (&["compare", "a", ","], "\",\" names no run"),
        (&["compare", "s.yaml"], "say what it is held against: --vs SETTING=VALUE"),
        (&["compare", "a", "b", "--vs", "k=v"], "are for one scenario"),
        (&["compare", "s.yaml", "--vs", "k=v"], "--set k"),
        (&["compare", "s.yaml", "--url", "http://127.0.0.1:1"], "--url is given once for each side"),
        (&["compare", "s.yaml", "--command", "a", "--command", "b"], "nobody tells `a` where to listen"),
        (&["compare", "s.yaml", "--revision", "a", "--revision", "b"], "whose system is a `command`"),
        (&["compare", "a", "b", "--fail-if", "p99>5ms"], "\"5ms\" is no percentage"),
        (&["compare", "a", "b", "--fail-if", "Buy p99>+5%"], "no label \"Buy\" is compared"),
        (&["compare", "a", "b", "--markdown", "no/pr.md"], "there is no folder no"),
        (&["compare", "a", "b", "--within", "0%"], "write a percentage"),
        (&["compare", "a", "b", "--set", "k=v"], "--set is of sides that run here"),
        (&["compare", "a", "b", "--budget", "5m"], "--budget is of sides that run here"),
        (
            &["compare", "http://me:hidden@a", "http://b"],
            "error: a URL is not a run; systems that run are compared by a scenario: tidemark compare my.yaml --url A --url B",
        ),
        (&["compare", "s.yaml", "t.yaml"], "s.yaml is a scenario and no run"),
    ] {
        assert_refused(folder.path(), arguments, says);
    }
}
