//! What a run costs, by the program.

use std::fs;

use crate::program::runs::{StoredRun, search};
use crate::program::{assert_refused, bills, code, json, read_json, run, stderr, stdout, write_prices};
use serde_json::Value;
use tidemark_limit::{Ending, NotCounted};

const SCENARIO: &str = "
settings: {users: 1}
services: {shop: {serve: trade}}
system: {service: shop}
sessions: {asker: {steps: [{GET: /count}]}}
load: {users: '${users}', hold: 2s}
";

#[test]
fn a_run_has_its_bill_and_shows_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_prices(folder.path());
    assert!(fs::read_to_string(at("prices.yaml")).unwrap().starts_with("# EXAMPLE of 2026-"));
    fs::write(at("a.yaml"), SCENARIO).unwrap();

    // what is wrong is told before the run
    let wrong = ["run", "a.yaml", "--prices", "prices.yaml", "--machine", "web=m.larg", "--out", "none"];
    assert_refused(folder.path(), &wrong, "did you mean m.large?");
    let unknown = ["--prices", "prices.yaml", "--machine", "shp=m.large", "--out", "none"];
    for verb in ["run", "limit", "compare"] {
        let more: &[&str] = if verb == "compare" { &["--vs", "users=2"] } else { &[] };
        let what = [&[verb, "a.yaml"], more, &unknown].concat();
        assert_refused(folder.path(), &what, "--machine shp=m.large: no such tier; did you mean shop?");
    }
    let twice = [
        "run",
        "a.yaml",
        "--prices",
        "prices.yaml",
        "--machine",
        "shop=m.large",
        "--machine",
        "shop=m.small",
    ];
    assert_refused(folder.path(), &twice, "shop has m.large already");
    assert!(!at("none").exists());

    let made = ["run", "a.yaml", "--prices", "prices.yaml", "--customers", "1k", "--out", "out"];
    let output = run(folder.path(), &made);
    assert!(stdout(&output).contains("whole machines"), "{}{}", stdout(&output), stderr(&output));
    let manifest = read_json(at("out/run.json"));
    let bill = &manifest["bill"];
    // one m.large for the system: exactly its hour, and 730 of them
    assert_eq!((&bill["whole"]["per_hour"], &bill["whole"]["per_month"]), (&"0.1".into(), &"73".into()));
    assert_eq!(bill["whole"]["per_customer_month"], "0.073");
    // a service has its own name
    assert_eq!((&bill["tiers"][0]["tier"], &bill["tiers"][0]["role"]), (&"shop".into(), &"system".into()));
    assert!(fs::read_to_string(at("out/report.html")).unwrap().contains("example, made up"));

    // the same again, and with another machine
    let shown = run(folder.path(), &["report", "out"]);
    assert!(stdout(&shown).contains("example, made up"), "{}", stdout(&shown));
    let other =
        run(folder.path(), &["cost", "out", "--prices", "prices.yaml", "--machine", "web=m.small", "--json"]);
    assert_eq!(code(&other), 0, "{}", stderr(&other));
    let other = json(&other);
    assert_eq!(other["bills"][0]["bill"]["whole"]["per_hour"], "0.025");
    assert_eq!(other["bills"][0]["bill"]["good"], bill["good"]);
    let of = &other["bills"][0]["runs"][0];
    assert_eq!((&of["run_dir"], &of["started_at"]), (&"out".into(), &manifest["started_at"]));

    // a run that is newer and did not end is told of
    fs::create_dir(at("runs")).unwrap();
    fs::rename(at("out"), at("runs/out")).unwrap();
    fs::create_dir_all(at("runs/broken")).unwrap();
    fs::copy(at("runs/out/intervals.parquet"), at("runs/broken/intervals.parquet")).unwrap();
    let last = run(folder.path(), &["cost", "last", "--prices", "prices.yaml"]);
    assert!(stderr(&last).contains("runs/broken is newer and has no result; this is "), "{}", stderr(&last));
    assert!(stdout(&last).contains("runs/out"), "{}", stdout(&last));
}

#[test]
fn the_bill_of_a_search_is_that_of_the_highest_load_that_held() {
    let folder = tempfile::tempdir().unwrap();
    write_prices(folder.path());
    let out = folder.path().join("out");
    let trials = [("1-50", 50.0, true), ("2-100", 100.0, true), ("3-200", 200.0, false)];
    for ((dir, ..), seconds) in trials.iter().zip([10, 20, 30]) {
        StoredRun { seconds, ..StoredRun::default() }.write(&out.join(dir));
    }
    fs::write(out.join("limit.json"), search("shop", &trials).to_json()).unwrap();
    let found = bills(folder.path(), "out");
    assert_eq!(found[0]["name"], "shop at 100/s, the highest that held");
    // 20 s of 200/s, on one m.large
    assert_eq!(
        (&found[0]["bill"]["good"], &found[0]["bill"]["whole"]["per_hour"]),
        (&4_000.into(), &"0.1".into())
    );
    let mut of_trial = bills(folder.path(), "out/2-100");
    assert_eq!(of_trial[0]["bill"]["caveat"], Value::Null);
    // the search did not come to its end
    assert!(found[0]["bill"]["caveat"].as_str().unwrap().starts_with("the search: holds "), "{found}");
    of_trial[0]["bill"]["caveat"] = found[0]["bill"]["caveat"].clone();
    assert_eq!(found[0]["bill"], of_trial[0]["bill"]);

    let report = |more: &[&str]| {
        let output = run(folder.path(), &[&["report", "out", "--prices", "prices.yaml"], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let json: Value = serde_json::from_str(&report(&["--json"])).unwrap();
    assert_eq!(json["bills"], found);
    for shown in [report(&[]), report(&["--markdown", "-"]), report(&["--html", "-"])] {
        assert!(shown.contains("shop at 100/s, the highest that held: "), "{shown}");
    }

    fs::write(out.join("limit.json"), search("shop", &trials[2..]).to_json()).unwrap();
    let refused = ["cost", "out", "--prices", "prices.yaml"];
    assert_refused(folder.path(), &refused, "no trial held at or below a limit");

    // one that held above what broke twice is above the limit
    let trials =
        [("1-50", 50.0, true), ("3-200", 60.0, false), ("3-200", 61.0, false), ("2-100", 100.0, true)];
    let mut above = search("shop", &trials);
    fs::write(out.join("limit.json"), above.to_json()).unwrap();
    assert_eq!(bills(folder.path(), "out")[0]["name"], "shop at 50/s, the highest that held");
    // others disturbed more trials than count: the search says so before any price
    above.searches[0].ended = Some(Ending::Disturbed);
    let trials = &mut above.searches[0].trials;
    trials.extend(vec![trials[0].clone(); 5]);
    for trial in &mut trials[4..] {
        trial.not_counted = Some(NotCounted::Machine("others".into()));
    }
    fs::write(out.join("limit.json"), above.to_json()).unwrap();
    let found = bills(folder.path(), "out");
    assert!(found[0]["bill"]["caveat"].as_str().unwrap().contains("not measured: others on"), "{found}");
}

#[test]
fn what_cannot_be_priced_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], says: &str| assert_refused(folder.path(), arguments, says);
    refused(&["cost", "last"], "tidemark cost --example > prices.yaml");
    refused(&["cost", "last", "--prices", "none.yaml"], "none.yaml: cannot read the price file");
    write_prices(folder.path());
    refused(&["cost", "last", "--prices", "prices.yaml"], "no finished run in runs");
    refused(&["cost", "last", "--machine", "a=b"], "--prices");
    refused(&["report", "--jmeter", ".", "--prices", "p.yaml"], "leave out --jmeter");
    fs::write(folder.path().join("p.yaml"), "machines: {a: {cores: x}}\n").unwrap();
    refused(
        &["cost", "last", "--prices", "p.yaml"],
        "p.yaml:1:15: a kind of machine needs the key \"memory\"",
    );
}
