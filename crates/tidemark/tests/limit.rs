//! `tidemark limit` against a server whose limit is known.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::program::{
    assert_refused, begin, bills, code, json, read_json, run, send, stderr, stdout, wait_until, write_prices,
};
use rustix::process::Signal;
use serde_json::Value;
use tidemark_truth::{Behaviour, Delay, Server};

const SCENARIO: &str = "sessions: {s: {steps: [{GET: /}]}}\n\
                        load: {rate: 50/s, spacing: poisson, hold: 30s}\n\
                        objectives: [p90 < 40ms]\n";

/// One worker who takes 5 ms for each request: 200/s, and beyond it each waits longer than the last.
fn one_worker() -> Server {
    let delays = vec![Delay::Fixed(Duration::from_millis(5))];
    Server::start(Behaviour { delays, workers: Some(1), ..Behaviour::default() }).unwrap()
}

fn folder(server: &Server) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), SCENARIO).unwrap();
    (folder, format!("http://{}", server.address()))
}

fn kept(dir: &Path) -> Value {
    read_json(dir.join("limit.json"))
}

fn trials(kept: &Value) -> &Vec<Value> {
    kept["searches"][0]["trials"].as_array().unwrap()
}

#[test]
fn the_limit_of_a_server_is_found_shown_again_and_gone_on_with() {
    let server = one_worker();
    let (folder, url) = folder(&server);
    let search = |budget: &str, more: &[&str]| {
        let arguments = ["limit", "s.yaml", "--url", &url, "--out", "out", "--budget", budget, "--json"];
        run(folder.path(), &[&arguments[..], more].concat())
    };
    // time for the first trials alone
    let short = json(&search("8s", &[]));
    let before = short["limit"]["trials"].as_array().unwrap().len();
    assert!(before >= 1, "{short}");

    // others may have the cores for a while: it goes on where it was until enough trials are undisturbed
    let (budget, output) = ["35s", "70s", "140s"]
        .into_iter()
        .map(|budget| (budget, search(budget, &[])))
        .find(|(budget, output)| code(output) == 0 || *budget == "140s")
        .expect("the last one");
    let found = json(&output);
    let limit = &found["limit"];
    assert_eq!(code(&output), 0, "{limit}");
    let per_s = limit["per_s"].as_f64().unwrap();
    // in so short a search nothing may bound it from above for sure
    let (low, high) = (limit["low_per_s"].as_f64().unwrap(), limit["high_per_s"].as_f64());
    // how near it comes is a matter of crates/limit's tests, in virtual time; it is below 200/s at any rate
    assert!(low <= per_s && high.is_none_or(|high| per_s <= high) && low < 200.0, "{limit}");
    assert!(limit["first_to_break"].is_string(), "{limit}");
    assert!(limit["says"].as_str().unwrap().starts_with("holds "), "{limit}");
    let all = limit["trials"].as_array().unwrap();
    assert!(all.len() > before && limit["curve"].as_array().unwrap().len() <= all.len());
    // those of before are as they were
    let dir = folder.path().join("out");
    for (first, again) in short["limit"]["trials"].as_array().unwrap().iter().zip(all) {
        assert_eq!((&first["level"], &first["run"]), (&again["level"], &again["run"]));
    }
    // each is a run by itself
    let one = all[0]["run"].as_str().unwrap();
    assert_eq!(code(&run(&dir, &["report", one])), 0);
    assert!(fs::read_to_string(dir.join("report.html")).unwrap().contains("<svg"));
    // it is over, so that whether it is enough is told at once
    let output = search(budget, &["--at-least", "100k/s"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let told = &json(&output)["limit"]["at_least"];
    assert_eq!((&told["holds"], &told["says"]), (&false.into(), &"less than the 100,000/s asked for".into()));
    // what holds is shown by a last trial, for which a budget may be too short
    let output = search(budget, &["--at-least", "1/s"]);
    let told = &json(&output)["limit"]["at_least"];
    match limit["lasted_per_s"].is_number() {
        true => {
            assert_eq!((code(&output), &told["says"]), (0, &"at least the 1/s asked for".into()), "{told}")
        }
        false => assert!(code(&output) == 3 && told["holds"].is_null(), "{}", stderr(&output)),
    }
    // again from the directory
    let again = run(folder.path(), &["report", "out"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).starts_with("holds "), "{}", stdout(&again));
    let files = ["report", "out", "--json=l.json", "--markdown", "l.md", "--html", "l.html"];
    assert_eq!(code(&run(folder.path(), &files)), 0);
    let same = read_json(folder.path().join("l.json"));
    assert_eq!(same["limit"]["says"], limit["says"]);
    assert_eq!(same["limit"]["trials"].as_array().unwrap().len(), all.len());
    assert!(fs::read_to_string(folder.path().join("l.md")).unwrap().contains("**holds "));
    for (flag, file) in [("--markdown", "l.md"), ("--html", "l.html")] {
        let printed = run(folder.path(), &["report", "out", flag, "-"]);
        let written = fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!((code(&printed), stdout(&printed)), (0, written), "{flag}: {}", stderr(&printed));
    }
    // the highest load that held has a bill: with the result, by the directory and as that of a run
    write_prices(folder.path());
    let priced = json(&search(budget, &["--prices", "prices.yaml"]));
    assert_eq!(priced["bills"], bills(folder.path(), "out"));
    let [of] = &priced["bills"].as_array().unwrap()[..] else { panic!("{priced}") };
    assert!(of["name"].as_str().unwrap().ends_with("/s, the highest that held"), "{of}");
    let held = all.iter().filter(|trial| trial["holds"] == true);
    let best =
        held.max_by(|a, b| a["level"].as_f64().unwrap().total_cmp(&b["level"].as_f64().unwrap())).unwrap();
    let of_run = bills(folder.path(), &format!("out/{}", best["run"].as_str().unwrap()));
    assert_eq!(of["bill"], of_run[0]["bill"]);
    assert!(of["bill"]["not_in_sums"][0].as_str().unwrap().contains("was not watched"), "{of}");
    assert!(fs::read_to_string(dir.join("report.html")).unwrap().contains("example, made up"));

    let refused = run(folder.path(), &["compare", "out", "out"]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("a search for a limit"), "{}", stderr(&refused));
    // another question is another search, and so is another way to the system
    let other = search(budget, &["--connect-to", "127.0.0.1:9"]);
    assert!(code(&other) == 2 && stderr(&other).contains("--connect-to 127.0.0.1:9"), "{}", stderr(&other));
    let other = search(budget, &["--until", "p50<1ms"]);
    assert_eq!(code(&other), 2);
    assert!(stderr(&other).contains("this search cannot go on"), "{}", stderr(&other));
    assert_refused(folder.path(), &["report", "out", "--csv", "x.csv"], "--csv is of one run");
    let url = ["limit", &url, "--budget", "30s"];
    assert_refused(folder.path(), &url, "tidemark init http://");
    assert_refused(folder.path(), &["limit", "s.yaml", "--budget", "1s"], "--budget 1s");
    let cores = ["limit", "s.yaml", "--url", "http://127.0.0.1:9", "--over", "cores=1,2"];
    assert_refused(folder.path(), &cores, "--over cores");
    server.stop().unwrap();
    // the system is gone: what is known is shown, and how it goes on
    let gone = search("200s", &["--within", "0.1%"]);
    let told = stderr(&gone);
    assert_eq!(code(&gone), 1, "{told}");
    assert!(told.contains("is unreachable") && told.contains("the same command with --out out"), "{told}");
    assert_eq!(json(&gone)["limit"]["trials"].as_array().unwrap().len(), all.len());
    assert_eq!(kept(&dir)["searches"][0]["options"]["precision"], 0.001);
}

#[test]
fn a_search_that_is_stopped_is_kept() {
    let server = one_worker();
    let (folder, url) = folder(&server);
    let arguments = ["limit", "s.yaml", "--url", &url, "--out", "out", "--budget", "10m"];
    let child = begin(folder.path(), &arguments);
    let dir = folder.path().join("out");
    // at whatever level it is, which others on the machine change; its signals are the run's once its load is on
    let second = || {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(|path| path.join("unfinished.journal").is_file())
    };
    wait_until("a trial is over and the load of the next one on", || {
        dir.join("limit.json").is_file()
            && trials(&kept(&dir)).len() == 1
            && second().is_some_and(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("2-"))
            })
    });
    send(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let kept = kept(&dir);
    assert_eq!(trials(&kept).len(), 1, "the second was no whole trial");
    assert!(kept["stopped"].as_str().unwrap().contains("stopped"), "{}", kept["stopped"]);
    let shown = stdout(&run(folder.path(), &["report", "out"]));
    assert!(shown.contains("--out out goes on where it was"), "{shown}");
    server.stop().unwrap();
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("s.yaml", SCENARIO);
    write("compared.yaml", "compare: {a: s.yaml, b: s.yaml}\n");
    let sessions = "sessions: {a: {steps: [{GET: /}]}, b: {steps: [{GET: /b}]}}\n";
    write(
        "mixed.yaml",
        &format!("{sessions}load: {{sessions: {{a: {{rate: 5/s, hold: 1s}}, b: {{users: 5, hold: 1s}}}}}}\n"),
    );
    fs::create_dir(folder.path().join("full")).unwrap();
    write("full/mine", "");
    fs::create_dir(folder.path().join("own")).unwrap();
    write("own/scenario.yaml", SCENARIO);
    let refused = |arguments: &[&str], says: &str| {
        assert_refused(folder.path(), &[&["limit"], arguments].concat(), says);
    };
    refused(&["none.yaml"], "none.yaml");
    refused(&["compared.yaml"], "a limit is of one scenario");
    let url = "http://127.0.0.1:9";
    refused(&["mixed.yaml", "--url", url], "no one level to raise");
    refused(&["s.yaml", "--url", url, "--until", "p99"], "compares nothing");
    refused(&["s.yaml", "--url", url, "--until", "p99>50ms"], "bounded from above: p99<50ms");
    refused(&["s.yaml", "--url", url, "--over", "cores=1"], "two values or more");
    refused(&["s.yaml", "--url", url, "--over", "colour=red,blue"], "colour");
    refused(
        &["s.yaml", "--url", url, "--over", "cores=0,1"],
        "--over cores gives cores to what is started here",
    );
    write(
        "secret.yaml",
        "settings: {token: qrstuvwx}\nsessions: {s: {steps: [{GET: '/${token}'}]}}\nload: {rate: 5/s, hold: 1s}\n",
    );
    refused(&["secret.yaml", "--url", url, "--over", "token=abcdefgh,ijklmnop"], "its values are secret");
    refused(&["s.yaml", "--url", url, "--within", "0%"], "0.1% to 100%");
    refused(&["s.yaml", "--url", url, "--prices", "none.yaml"], "cannot read the price file");
    refused(&["s.yaml", "--url", url, "--rate", "5:9"], "one number, not two");
    let above_most = ["s.yaml", "--url", url, "--most", "10", "-r", "100"];
    refused(&above_most, "--rate: a search that begins at 100/s tries more than --most 10/s");
    write("users.yaml", "sessions: {s: {steps: [{GET: /}]}}\nload: {users: 5, hold: 1s}\n");
    let above_most = ["users.yaml", "--url", url, "--most", "10", "--users", "100"];
    refused(&above_most, "--users: a search that begins at 100 users tries more than --most 10 users");
    let more_than_is_tried = ["s.yaml", "--url", url, "--at-least", "600", "--most", "500"];
    refused(&more_than_is_tried, "raise --most to 600/s, or ask for less");
    refused(&["s.yaml", "--url", url, "--out", "full"], "never overwritten");
    refused(&["own/scenario.yaml", "--url", url, "--out", "own"], "never overwritten");
    refused(&["s.yaml", "--url", url, "--json", "--markdown", "-"], "both want standard output");
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}
