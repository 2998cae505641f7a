//! `tidemark report --jmeter`: what JMeter and nmon wrote becomes a report, and nothing is written among it unasked.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{assert_refused, code, run, stderr, stdout};

/// Two load generators with three whole intervals each, results of one, a machine, and a line that is damaged.
fn write(dir: &Path) {
    fs::create_dir_all(dir.join("web")).unwrap();
    for (driver, rates) in [(1, [1.0, 10.0, 20.0, 30.0, 2.0]), (2, [1.0, 100.5, 100.0, 100.0, 2.0])] {
        let line = |(at, rate): (usize, f64)| {
            format!(
                "2026-11-29 00:27:{at:02},090 INFO o.a.j.r.Summariser: summary +     10 in 00:00:06 = {rate:6.1}/s Avg:     4 \
                 Min:     0 Max:    35 Err:     0 (0.00%) Active: 3 Started: 3 Finished: 0\n"
            )
        };
        let lines: String = rates.into_iter().enumerate().map(line).collect();
        fs::write(dir.join(format!("AcmeAir{driver}.log")), lines).unwrap();
    }
    let samples = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testResults version=\"1.2\">\n\
                   <httpSample t=\"700\" lb=\"Login\" s=\"true\" rc=\"200\" tn=\"g 1-1\" ts=\"1795912031023\"/>\n\
                   <httpSample t=\"20\" lb=\"<i>\" s=\"false\" rc=\"503\" tn=\"g 1-2\" ts=\"1795912031023\"/>\n\
                   <httpSample t=\"soon\" lb=\"Login\" s=\"true\" rc=\"200\" tn=\"g 1-1\" ts=\"1795912031023\"/>\n</testResults>\n";
    fs::write(dir.join("AcmeAir1.jtl"), samples.replace("<i>", "&lt;i>")).unwrap();
    let nmon = "AAA,host,web1\nCPU_ALL,T1,9,9\nCPU_ALL,T2,30,20\nCPU_ALL,T3,40,20\nCPU_ALL,T4,9,9\n";
    fs::write(dir.join("web/output.nmon"), nmon).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_becomes_text_json_markdown_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("results");
    write(&dir);
    let before = names(&dir);
    let output = run(folder.path(), &["report", "--jmeter", "results"]);
    let text = stdout(&output);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let says = [
        "120.2 requests/s on average, 10.4 M operations/day",
        "1 × 503",
        "AcmeAir1.jtl:5: the time \"soon\"",
        "UNKNOWN",
    ];
    for says in says {
        assert!(text.contains(says), "should say `{says}`: {text}");
    }
    assert_eq!(
        (names(&dir), names(folder.path())),
        (before, vec!["results".to_owned()]),
        "nothing is written unasked"
    );

    let files = ["--json=r.json", "--markdown", "r.md", "--html", "results/results.html"];
    let output = run(folder.path(), &[["report", "--jmeter", "results"].as_slice(), &files].concat());
    assert_eq!((code(&output), stdout(&output).as_str()), (0, ""), "{}", stderr(&output));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("r.json")).unwrap();
    let average = json["throughput"]["average_per_s"].as_f64().unwrap();
    assert!((average - 360.5 / 3.0).abs() < 1e-9, "{average}");
    assert_eq!(json["total"]["values"], serde_json::json!([2.0, 110.5, 120.0, 130.0, 4.0]));
    assert_eq!(
        (&json["cpu"][0]["average"], &json["cpu"][0]["nodes"][0]["name"]),
        (&55.0.into(), &"web1".into())
    );
    assert_eq!((&json["unread"]["count"], &json["users"]["total"]), (&1.into(), &2.into()));
    assert_eq!(json["labels"][0]["distribution"][0]["from_ms"], 500);
    assert!(read("r.md").contains("| Login | 700 | 700 | 700 | 700 |"), "{}", read("r.md"));
    let page = read("results/results.html");
    assert!(
        page.contains("120.2 requests/s") && page.contains("&lt;i&gt;") && !page.contains("<i>"),
        "{page}"
    );
    assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    // the page lies among what is read, and changes nothing
    let again = run(folder.path(), &["report", "--jmeter", "results"]);
    assert_eq!(stdout(&again), text.replace("1 nmon file\n", "1 nmon file · 1 other file\n"));
}

#[test]
fn what_is_not_there_and_what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("empty/x.jtl"), "nothing").unwrap();
    let refused = |arguments: &[&str], says: &str| assert_refused(folder.path(), arguments, says);
    refused(&["report", "--jmeter", "none"], "cannot read none: No such file");
    refused(&["report", "--jmeter", "empty/x.jtl"], "is a file; give the directory");
    refused(&["report", "--jmeter", "empty"], "logs (*.log) with lines `summary +`");
    refused(&["report", "--jmeter", "empty"], "x.jtl: neither XML nor CSV with a head line");
    refused(&["report", "--jmeter", "empty", "--csv", "x.csv"], "--csv is of a run of Tidemark");
    refused(&["report", "last", "--jmeter", "empty"], "cannot be used with");
    refused(&["report"], "<RUN>");
}
