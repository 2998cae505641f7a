//! How many instances another load takes, by the program.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::runs::{StoredRun, search};
use crate::program::{assert_refused, code, run, stderr, stdout, write_prices};

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["plan"], arguments, &["--objective", "p99 < 5s", "--json"]].concat());
    crate::program::json(&output)
}

#[test]
fn a_run_becomes_a_plan_in_a_sentence_as_json_and_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    write_prices(folder.path());
    StoredRun::default().write(&folder.path().join("runs/a"));
    let asked = ["plan", "last", "--rate", "4.3G/day", "--objective", "p99 < 5s", "--prices", "prices.yaml"];
    let output = run(folder.path(), &[&asked[..], &["--survive", "zone", "--html", "plan.html"]].concat());
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 0, "{text}{}", stderr(&output));
    assert!(text.starts_with("49,769/s with p99 < 5s needs "), "{text}");
    assert!(text.contains(" USD a month. It survives the loss of a zone. All of them hold up to "), "{text}");
    assert!(text.contains("What matters most") && text.contains("Assumed"), "{text}");
    let page = fs::read_to_string(folder.path().join("plan.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("What matters most"), "{page}");

    let plan = json(folder.path(), &["last", "--rate", "1k", "--growth", "10"]);
    assert_eq!((&plan["per_s"], &plan["tiers"][0]["tier"]), (&10_000.0.into(), &"system".into()));
    // a millisecond of CPU for each of 10,000 a second
    let instances = plan["tiers"][0]["instances"].as_u64().unwrap();
    assert!((10..14).contains(&instances), "{plan}");
    let twice = json(folder.path(), &["last", "--rate", "10k", "--set", "system.cpu=2ms"]);
    assert!(twice["tiers"][0]["instances"].as_u64().unwrap() > instances * 3 / 2, "{twice}");
}

#[test]
fn an_unsteady_run_is_told_and_one_that_measured_the_load_generator_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs/a");
    StoredRun::default().write(&dir);
    let change = |change: &dyn Fn(&mut Value)| {
        let mut manifest: Value = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
        change(&mut manifest);
        fs::write(dir.join("run.json"), manifest.to_string()).unwrap();
    };
    change(&|manifest| {
        manifest["summary"]["steady_state"] = json!({"steady": false, "reason": "the rate falls"});
    });
    let asked = ["plan", "last", "--rate", "1k", "--objective", "p99 < 5s"];
    let output = run(folder.path(), &asked);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("the run was not steady, and neither is what follows from it: the rate falls"),
        "{text}"
    );
    change(&|manifest| {
        manifest["summary"]["driver"]["limits"] = json!(["its busiest thread had 98% of a core"]);
    });
    let output = run(folder.path(), &asked);
    assert_eq!((code(&output), stdout(&output).as_str()), (3, ""));
    assert!(
        stderr(&output).contains("the load generator was the bottleneck: its busiest thread had 98%"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn searches_say_what_they_do_not_tell_of_cores() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("sizes");
    for (name, seconds) in [("t1", 10), ("t2", 11)] {
        StoredRun { seconds, ..StoredRun::default() }.write(&dir.join(name));
    }
    let mut searches = search("shop", &[("t1", 200.0, true), ("t2", 400.0, false)]);
    let of_size = |cores: u32| tidemark_limit::Search {
        setting: Some(format!("cores={cores}")),
        ..searches.searches[0].clone()
    };
    searches.searches = [1, 2, 4].map(of_size).to_vec();
    tidemark_record::write_scenario(&dir, "name: shop\n").unwrap();
    tidemark_record::limit::write(&dir, &searches.to_json()).unwrap();
    let plan = json(folder.path(), &["sizes", "--rate", "1k"]);
    let notes: Vec<&str> = plan["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(notes.iter().any(|note| note.starts_with("how cores scales is not known: ")), "{notes:?}");
    assert!(notes.contains(&"the search did not come to its end"), "{notes:?}");
    assert!(plan["run_dir"].as_str().unwrap().ends_with("t1"), "{plan}");
}

#[test]
fn what_is_asked_wrongly_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop.yaml"), "name: shop\n").unwrap();
    let refused = |arguments: &[&str], says: &str| {
        assert_refused(folder.path(), &[&["plan"], arguments].concat(), says);
    };
    refused(
        &["shop.yaml"],
        "shop.yaml has no run in runs as it is now; measure it first: tidemark run shop.yaml",
    );
    refused(&["last"], "no finished run in runs");
    refused(&[], "<RUN>");
    StoredRun::default().write(&folder.path().join("runs/a"));
    refused(&["last", "--rate", "1:2"], "one rate");
    refused(&["last", "--growth", "0"], "above 0");
    refused(&["last", "--prices", "none.yaml"], "cannot read the price file");
    let none = |arguments: &[&str], says: &str| {
        let output = run(folder.path(), &[&["plan", "last"], arguments].concat());
        assert!(code(&output) == 3 && stderr(&output).contains(says), "{}", stderr(&output));
    };
    refused(&["last", "--objective", "p99<5s", "--set", "systm.cores=2"], "did you mean system");
    refused(
        &["last", "--objective", "p99<5s", "--set", "system.cores=0"],
        "--set system.cores=0: system has 1 to 10000 cores",
    );
    refused(&["last", "--objective", "p99<banana"], "\"banana\" is not a time");
    none(&["--objective", "p99<1ms"], "no number of instances keeps p99 < ");
    refused(&["last"], "give --objective 'p99 < 300ms'");
}
