//! Results for CI, of the real executable.

use std::fs;
use std::process::Command;

use crate::program::store::Store;
use crate::program::{code, json, run, stderr, stdout, tidemark, write_airline};
use serde_json::Value;

const SHORT: [&str; 9] =
    ["run", "airline.yaml", "--for", "1s", "--set", "durability=memory", "--set", "users=2", "-q"];

#[test]
fn a_run_leaves_its_results_where_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    write_airline(folder.path());
    fs::write(folder.path().join("summary.md"), "earlier step\n").unwrap();
    let wanted = [
        "--json",
        "--junit",
        "r.xml",
        "--markdown",
        "r.md",
        "--github",
        "--csv",
        "r.csv",
        "--hlog",
        "r.hlog",
    ];
    let arguments: Vec<&str> = SHORT.into_iter().chain(wanted).collect();
    let output = tidemark(folder.path(), &arguments)
        .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
        .output()
        .unwrap();
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    // annotations must not stand between a machine and its JSON
    let summary = json(&output);
    assert!(stderr(&output).lines().all(|line| line.starts_with("::")), "{}", stderr(&output));

    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let markdown = read("r.md");
    assert!(markdown.starts_with("### ") && markdown.contains("| response time |"), "{markdown}");
    assert_eq!(read("summary.md"), format!("earlier step\n{markdown}\n"));
    let status = summary["verdict"]["status"].as_str().unwrap();
    let xml = read("r.xml");
    assert_eq!(xml.contains("<error type=\"invalid\""), status == "invalid", "{xml}");
    assert_eq!(xml.contains("<failure type=\"fail\""), status == "fail", "{xml}");
    assert!(read("r.csv").starts_with("start_s,end_s,measured,label,"));
    let dir = summary["run_dir"].as_str().unwrap();
    assert_eq!(read("r.hlog"), fs::read_to_string(folder.path().join(dir).join("latency.hlog")).unwrap());

    // the same again from the run directory
    let again = run(folder.path(), &["report", "last", "--markdown", "-", "--junit", "again.xml"]);
    assert_eq!((code(&again), stdout(&again)), (0, markdown), "{}", stderr(&again));
    assert_eq!(read("again.xml"), xml);
}

/// Each result in turn has standard output for itself, and the text goes to standard error.
#[test]
fn whatever_is_asked_for_as_a_dash_is_all_that_standard_output_has() {
    let folder = tempfile::tempdir().unwrap();
    write_airline(folder.path());
    let loud = SHORT.into_iter().filter(|word| *word != "-q").chain(["--json"]).collect::<Vec<_>>();
    let output = run(folder.path(), &loud);
    let first = json(&output);
    let text = stderr(&output);
    assert!(text.contains("Throughput") && text.contains("report.html"), "the text is there: {text}");
    for (flags, begins) in [
        (&["--json", "-"][..], "{\n"),
        (&["--json"], "{\n"),
        (&["--junit", "-"], "<?xml"),
        (&["--markdown", "-"], "### "),
        (&["--csv", "-"], "start_s,"),
        (&["--hlog", "-"], "#["),
        (&["--html", "-"], "<!doctype html>"),
    ] {
        let output = run(folder.path(), &[&["report", "last"], flags].concat());
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{flags:?}");
        let printed = stdout(&output);
        assert!(
            printed.to_lowercase().starts_with(begins),
            "{flags:?}: {}",
            &printed[..80.min(printed.len())]
        );
        // JUnit's has the text within
        assert!(flags[0] == "--junit" || !printed.contains("\nThroughput"), "{flags:?}");
    }
    let printed = run(folder.path(), &["report", "last", "--json=r.json"]);
    assert_eq!((code(&printed), stdout(&printed).as_str()), (0, ""));
    let again: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(again, first);
}

#[test]
fn results_that_cannot_be_written_stop_a_run_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    write_airline(folder.path());
    for (more, says) in [
        (vec!["--junit", "none/r.xml"], "--junit: there is no folder none"),
        (vec!["--csv", "."], "--csv: . is a folder"),
        (vec!["--json", "--markdown", "-"], "--json and --markdown both want standard output"),
        (vec!["--csv", "-", "--hlog", "-"], "--hlog FILE"),
        (vec!["--github"], "GITHUB_STEP_SUMMARY"),
        (vec!["--csv", "r", "--markdown", "./r"], "--markdown and --csv both write"),
    ] {
        let arguments: Vec<&str> = SHORT.into_iter().chain(more).collect();
        let output = tidemark(folder.path(), &arguments).env_remove("GITHUB_STEP_SUMMARY").output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(!folder.path().join("runs").exists(), "{arguments:?}");
    }
}

/// The first and the last that are written fail; all between are there, and the text was shown before.
#[test]
fn a_result_that_cannot_be_written_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    let url = format!("{}/count", store.url);
    fs::write(folder.path().join("old.md"), "old").unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
    let files =
        ["--json=/dev/full", "--junit", "r.xml", "--csv", "r.csv", "--markdown", "old.md", "--hlog", "full"];
    let output = run(folder.path(), &[&["hit", &url, "-n", "20", "--save=out"][..], &files].concat());
    let (text, said) = (stdout(&output), stderr(&output));
    assert_eq!(code(&output), 74, "{said}");
    assert!(text.contains("\nLatency\n"), "the figures were shown: {text}");
    assert!(
        said.contains("--json: cannot write /dev/full") && said.contains("--hlog: cannot write full"),
        "{said}"
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("r.xml").starts_with("<?xml") && read("r.csv").starts_with("start_s,"));
    assert!(read("old.md").starts_with("### "));
    assert!(fs::metadata(folder.path().join("out/report.html")).is_ok());

    // a page of the run that cannot be written
    fs::remove_file(folder.path().join("out/report.html")).unwrap();
    let again = ["report", "out", "--html", "full", "--markdown", "/dev/full", "--csv", "again.csv"];
    let output = run(folder.path(), &again);
    let said = stderr(&output);
    assert_eq!(code(&output), 74, "{said}");
    assert!(said.contains("full: ") && said.contains("--markdown: cannot write /dev/full"), "{said}");
    assert_eq!(read("again.csv"), read("r.csv"));

    // nobody who reads
    let piped = format!("{} report out --json > /dev/full", env!("CARGO_BIN_EXE_tidemark"));
    let output = Command::new("sh").args(["-c", &piped]).current_dir(folder.path()).output().unwrap();
    assert_eq!(code(&output), 74, "{}", stderr(&output));
}
