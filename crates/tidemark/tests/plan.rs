//! How many instances another load takes, by the program.

use std::fs;
use std::path::Path;

use serde_json::Value;

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
    assert!(
        text.contains(" system and survives the loss of a zone") && text.contains(" USD a month"),
        "{text}"
    );
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
    refused(&["last", "--objective", "p99<banana"], "\"banana\" is not a time");
    none(&["--objective", "p99<1ms"], "no number of instances keeps p99 < ");
    refused(&["last"], "give --objective 'p99 < 300ms'");
}
