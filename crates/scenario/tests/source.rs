//! Scenarios as source: files are read and written again, and mean the same.

use std::path::{Path, PathBuf};

use tidemark_scenario::source::{Map, Value};
use tidemark_scenario::{Experiment, check_text, load_experiment_text, shipped, shipped_names};

fn read(text: &str) -> Map {
    match Value::from_yaml("t.yaml", text) {
        Ok(Value::Map(map)) => map,
        other => panic!("{other:?}\nin\n{text}"),
    }
}

/// The plan without its text, and without the lines in which steps stand there; none where something is wrong.
fn meaning(text: &str, base: &Path) -> Option<String> {
    let (plan, _) = check_text("t.yaml", text, base, &[]);
    plan.map(|mut plan| {
        plan.source.clear();
        let shown = format!("{plan:#?}");
        shown.split_inclusive('\n').filter(|line| !line.trim_start().starts_with("line: ")).collect()
    })
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Reads a text, writes it, and holds both against each other.
fn written_again(text: &str, base: &Path) -> String {
    let scenario = read(text);
    let written = scenario.to_yaml();
    assert_eq!(read(&written), scenario, "{written}");
    assert_eq!(read(&written).to_yaml(), written);
    let (before, after) = (meaning(text, base), meaning(&written, base));
    assert!(before == after, "{before:?}\nis not\n{after:?}\nin\n{written}");
    written
}

#[test]
fn shipped_scenarios_mean_the_same_when_written_again() {
    for name in shipped_names() {
        let text = shipped(name).expect("is shipped");
        let written = written_again(text, Path::new("."));
        let is_comparison = text.contains("\ncompare:");
        assert_eq!(is_comparison, meaning(text, Path::new(".")).is_none(), "{name}");
        if is_comparison {
            let loaded = |text: &str| match load_experiment_text("t.yaml", text, Path::new("."), &[]) {
                Ok(Experiment::Comparison(mut comparison)) => {
                    comparison.source.clear();
                    format!("{comparison:?}")
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(loaded(text), loaded(&written));
        }
    }
}

#[test]
fn examples_mean_the_same_when_written_again() {
    let folder = docs().join("examples");
    let files = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut count = 0;
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "yaml")) {
        let text = std::fs::read_to_string(&file).expect("a text");
        let written = written_again(&text, &folder);
        assert!(meaning(&written, &folder).is_some(), "{}", file.display());
        // they are written as we would write them
        let without_comments = |text: &str| {
            let lines = text.lines().map(|line| line.split(" #").next().unwrap_or(line).trim_end());
            lines.filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect::<String>()
        };
        assert_eq!(without_comments(&text), written, "{}", file.display());
        count += 1;
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn each_block_of_the_reference_is_kept() {
    let reference = std::fs::read_to_string(docs().join("scenario.md")).expect("the reference");
    let blocks = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for block in blocks.filter(|block| !block.starts_with("- ")) {
        written_again(block, &docs().join("examples"));
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn the_airline_reads_as_if_a_person_had_written_it() {
    let written = read(shipped("airline").expect("is shipped")).to_yaml();
    for part in [
        "settings:\n  users: 100\n",
        "  to: {values: [DEL, FRA, HKG, LHR, BOM, YUL, SVO, JFK, CDG, FCO, SIN, SYD, IKA, NRT]}\n",
        "      - set: {user: \"uid${random(0, customers - 1)}@email.com\"}\n",
        "        form: {login: \"${user}\", password: password}\n        check: {status: 200, body: logged in}\n",
        "      - sometimes: 25%\n        steps:\n          - GET: ${root}/rest/api/customer/byid/${user}\n",
        "              street: $.address.streetAddress1\n",
        "                streetAddress1: ${before(street, \" \") + 1} ${after(street, \" \")}\n",
        "              flight: {json: \"$.tripFlights[0].flightsOptions[-1]._id\", when missing: keep}\n",
        "\nobjectives:\n  - errors ${if(fault == 'none', '= 0', '< 100%')}\n",
    ] {
        assert!(written.contains(part), "{part}\nis not in\n{written}");
    }
}

#[test]
fn keys_keep_the_order_of_the_file() {
    let text = "\
load:
  hold: 1s
  users: 1

sessions:
  one:
    steps:
      - label: Home
        check: {status: 200}
        POST: /
        body: |
          two
          lines
";
    let mut scenario = read(text);
    assert_eq!(scenario.to_yaml(), text);
    scenario.insert("name", "later");
    assert!(scenario.to_yaml().ends_with("\nname: later\n"), "{}", scenario.to_yaml());
}

#[test]
fn what_is_wrong_is_kept_as_it_is() {
    for text in [
        "sessions: []\n",
        "sessions: {}\n",
        "load: null\n",
        "name: [a]\n",
        "sessions:\n  one:\n    steps: []\n    weight: [1]\n",
        "sessions:\n  one:\n    steps:\n      - GET: /\n        POST: /\n",
        "sessions:\n  one:\n    steps:\n      - GET: [a]\n      - think: null\n",
        "sessions:\n  one:\n    steps:\n      - a\n      - GET: /\n",
        "{}\n",
    ] {
        let scenario = read(text);
        assert_eq!(scenario, read(&scenario.to_yaml()), "{text}");
        assert_eq!(
            scenario.to_yaml().replace(['[', ']', ' ', '-', '\n'], ""),
            text.replace(['[', ']', ' ', '-', '\n'], "")
        );
    }
}

#[test]
fn what_is_no_yaml_is_told_with_its_place() {
    let told = |text: &str| Value::from_yaml("t.yaml", text).expect_err("no YAML").to_string();
    assert!(
        told("name: a\nload: {users: 1\n").starts_with("t.yaml:"),
        "{}",
        told("name: a\nload: {users: 1\n")
    );
    assert!(told("a: 1\nb: 2\na: 3\n").starts_with("t.yaml:3:1: the key \"a\" stands here twice"));
    assert!(told("").contains("empty"));
}
