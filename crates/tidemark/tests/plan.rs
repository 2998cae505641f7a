//! How many instances another load takes, by the program.

use std::fs;

use serde_json::Value;

use crate::program::{assert_refused, code, run, stderr, stdout, write_prices};

const SCENARIO: &str = "
services: {shop: {serve: trade}}
system: {service: shop}
sessions: {asker: {steps: [{GET: /count}]}}
load: {users: 1, hold: 2s}
";

#[test]
fn a_run_becomes_a_plan_in_a_sentence_as_json_and_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    write_prices(folder.path());
    fs::write(folder.path().join("shop.yaml"), SCENARIO).unwrap();
    assert_refused(
        folder.path(),
        &["plan", "shop.yaml"],
        "shop.yaml has no run in runs; measure it first: tidemark run shop.yaml",
    );
    let made = run(folder.path(), &["run", "shop.yaml"]);
    // such a short one may be invalid; the load generator had room all the same
    assert!([0, 3].contains(&code(&made)), "{}", stderr(&made));

    let asked =
        ["plan", "shop.yaml", "--rate", "4.3G/day", "--objective", "p99 < 5s", "--prices", "prices.yaml"];
    let output = run(folder.path(), &[&asked[..], &["--survive", "zone", "--html", "plan.html"]].concat());
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{text}{}", stderr(&output));
    assert!(
        text.contains("49,769/s with p99 < 5s take ") && text.contains(" shop, of which a zone may be lost"),
        "{text}"
    );
    assert!(text.contains(" USD a month") && text.contains("Assumed"), "{text}");
    let page = fs::read_to_string(folder.path().join("plan.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("What matters most"), "{page}");

    let output = run(
        folder.path(),
        &["plan", "last", "--rate", "1k", "--growth", "10", "--objective", "p99<5s", "--json"],
    );
    let json: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!((&json["per_s"], &json["tiers"][0]["tier"]), (&10_000.0.into(), &"shop".into()));
    assert_eq!(json["curve"].as_array().map(Vec::len), Some(8));

    let refused =
        |more: &[&str], says: &str| assert_refused(folder.path(), &[&["plan", "last"], more].concat(), says);
    refused(&["--rate", "1:2"], "one rate");
    refused(&["--growth", "0"], "above 0");
    refused(&["--prices", "none.yaml"], "cannot read the price file");
    let wrong = run(folder.path(), &["plan", "last", "--objective", "p99<5s", "--set", "shp.cores=2"]);
    assert!(code(&wrong) == 3 && stderr(&wrong).contains("did you mean shop"), "{}", stderr(&wrong));
}
