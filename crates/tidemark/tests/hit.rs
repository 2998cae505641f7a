//! `tidemark hit` on the real executable, against a tiny server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::program::server::Server;
use crate::program::{code, json, run, stderr, stdout};
use serde_json::Value;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs a hit that gives figures; whether a busy machine lets them count is not what is asked here.
fn hit(arguments: &[&str]) -> String {
    let folder = folder();
    let arguments: Vec<&str> = ["hit", "-q"].iter().chain(arguments).copied().collect();
    let output = run(folder.path(), &arguments);
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    stdout(&output)
}

#[test]
fn it_stops_after_exactly_so_many_requests_and_prints_one_object() {
    let server = Server::start();
    let text = hit(&[&server.url("/"), "-n", "137", "-c", "5", "-t", "2", "--json"]);
    let summary: Value = serde_json::from_str(&text).expect("one object");
    assert_eq!(server.requests().len(), 137);
    assert_eq!((summary["requests"].as_u64(), summary["statuses"]["200"].as_u64()), (Some(137), Some(137)));
    assert_eq!((summary["run_dir"].as_str(), &summary["errors"]), (Some(""), &serde_json::json!({})));
    assert_eq!(summary["steps"][0]["label"], "GET /");
}

#[test]
fn the_output_says_which_loop_it_was() {
    let server = Server::start();
    let closed = hit(&[&server.url("/a?b=1"), "-c", "3", "-d", "300ms", "--warm-up", "0.2s"]);
    for part in ["closed loop", "leave out", "3 connections", "200: ", "0.2s of warm-up", "GET /a?b=1"] {
        assert!(closed.replace('\n', " ").contains(part), "{part}:\n{closed}");
    }
    let open = hit(&[&server.url("/"), "-r", "200", "--poisson", "-n", "40", "--latency"]);
    for part in [
        "open loop",
        "count from then",
        "Poisson arrivals",
        "200 requests/s",
        "Percentiles",
        "Load generator",
    ] {
        assert!(open.contains(part), "{part}:\n{open}");
    }
    assert!(closed.lines().chain(open.lines()).all(|line| line.chars().count() <= 80), "{closed}\n{open}");
}

#[test]
fn failures_are_named_at_the_top_and_the_same_example_once() {
    let server = Server::start();
    let output = hit(&[&server.url("/missing"), "-n", "20", "-c", "2"]);
    let head: Vec<&str> = output.lines().take(2).collect();
    // On a machine that is busy with other things the driver may find itself to be the limit.
    let verdicts = ["PASS", "FAIL", "INVALID"];
    assert!(verdicts.iter().any(|verdict| head[0].starts_with(verdict)), "{output}");
    let failed = "of the requests failed; --until 'errors<1%' makes that decide";
    assert!(!head[0].starts_with("PASS") || head[1].contains(failed), "{output}");
    assert_eq!(output.matches("GET /missing: status 404").count(), 1, "{output}");
}

#[test]
fn what_is_wrong_is_told_in_words_of_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["htp://x"][..], "begins neither with http:// nor with https://"),
        (&["http://x", "--until", "p99 10ms"], "error: \"p99 10ms\" compares nothing"),
        (&["http://x", "-d", "{\"a\": 1}"], "a body is given with -b"),
        (&["http://x", "--until", "p99 ≤ 10ms"], "write <= instead"),
        (&["http://x", "-r", "5/s", "--until", "achieved>1%"], "write \"1% of offered\""),
        (
            &["http://x", "-r", "-5/s"],
            "-5/s is neither a flag nor a value: rates, times and numbers are never below 0",
        ),
        (&["http://x", "-r", "-5", "-c", "2"], "-r -5: -5 is neither a flag nor a value"),
        (&["http://x", "-r", "-c", "5"], "a value is required for '--rate <RATE>'"),
        (&[":1/", "-n", "1"], "http://localhost:1 is unreachable"),
    ] {
        let output = run(folder.path(), &[&["hit"], arguments].concat());
        assert!([1, 2].contains(&code(&output)), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(says) && !said.starts_with("hit:"), "{arguments:?}: {said}");
    }
}

#[test]
fn statuses_that_are_expected_are_good_and_all_others_fail() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let with = |path: &str, expect: &str| {
        let url = server.url(path);
        code(&run(folder.path(), &["hit", &url, "-n", "20", "-c", "2", "--warm-up", "0", "--expect", expect]))
    };
    assert_eq!([with("/missing", "404"), with("/missing", "2xx,404"), with("/", "2xx")], [0, 0, 0]);
    assert_eq!([with("/missing", "2xx"), with("/", "201,3xx"), with("/", "ok")], [1, 1, 2]);
}

#[test]
fn a_rate_can_rise_evenly() {
    let server = Server::start();
    hit(&[&server.url("/"), "-r", "20:180", "-d", "1s", "--warm-up", "0"]);
    let rising = server.requests().len();
    // the mean of both ends, as far as the first and the last arrival go
    assert!((99..=101).contains(&rising), "{rising}");
    server.forget();
    hit(&[&server.url("/"), "-r", "1k:1", "-d", "10s", "-n", "30"]);
    assert_eq!(server.requests().len(), 30);
}

#[test]
fn it_pipelines_and_says_so() {
    let server = Server::start();
    let folder = folder();
    let url = server.url("/");
    let flags = ["hit", &url, "-q", "-n", "64", "-c", "2", "-t", "1", "--pipeline", "8"];
    let output = run(folder.path(), &flags);
    let text = stdout(&output);
    assert!(
        text.contains("16 users") && text.contains("connections carry up to 8 requests at once"),
        "{text}"
    );
    let (seen, connections) = (server.requests(), BTreeSet::from_iter(server.connections()));
    assert!(seen.len() >= 64 && connections.len() <= 3, "{} on {connections:?}", seen.len());
    let output = run(folder.path(), &["hit", &url, "--pipeline", "8", "--disable-keepalive"]);
    assert_eq!(code(&output), 2);
}

#[test]
fn objectives_decide_the_exit_status() {
    let server = Server::start();
    let folder = folder();
    let with = |path: &str, objectives: &[&str]| {
        let url = server.url(path);
        let mut arguments = vec!["hit", &url, "-q", "-r", "100", "-n", "50"];
        objectives.iter().for_each(|objective| arguments.extend(["--until", objective]));
        let output = run(folder.path(), &arguments);
        (code(&output), stdout(&output))
    };
    let (status, text) = with("/", &["p90<1h", "errors=0"]);
    // a machine that starves the driver makes it invalid, and that is said
    assert!(status == 0 || text.contains("driver-bound"), "{text}");
    let (status, text) = with("/", &["errors=0", "mean<1us"]);
    assert!(status == 1 || text.contains("driver-bound"), "{text}");
    assert!(text.contains("mean<1us missed"), "{text}");
    let (status, text) = with("/missing", &[]);
    assert!(status == 1 || text.contains("driver-bound"), "{text}");
    assert!(text.contains("404: 50") && text.contains("GET /missing: status 404"), "{text}");
}

#[test]
fn a_saved_run_can_be_reported_and_its_scenario_run_again() {
    let server = Server::start();
    let folder = folder();
    let output = run(folder.path(), &["hit", &server.url("/"), "-q", "-n", "20", "--save=kept"]);
    assert!(stdout(&output).contains("kept"), "{}", stdout(&output));
    let report = run(folder.path(), &["report", "kept", "--json"]);
    let summary = json(&report);
    assert_eq!(summary["requests"].as_u64(), Some(20));
    assert!(folder.path().join("kept/report.html").is_file());
    let again = run(folder.path(), &["run", "kept/scenario.yaml", "-q", "--json"]);
    let summary = json(&again);
    assert_eq!((summary["requests"].as_u64(), server.requests().len()), (Some(20), 40));

    let printed = run(folder.path(), &["hit", &server.url("/"), "-n", "20", "--print-scenario"]);
    assert_eq!(stdout(&printed), fs::read_to_string(folder.path().join("kept/scenario.yaml")).unwrap());
    run(folder.path(), &["hit", &server.url("/"), "-q", "-n", "20", "--save"]);
    assert_eq!(code(&run(folder.path(), &["report", "last"])), 0);
}

#[test]
fn wrong_use_is_status_2_with_a_way_out() {
    let folder = folder();
    fs::write(folder.path().join("urls.txt"), "/a\nhttp://elsewhere.example/b\n").unwrap();
    fs::write(folder.path().join("none.txt"), "# none\n").unwrap();
    let url = "http://127.0.0.1:1/";
    for (arguments, says) in [
        (vec!["hit"], "URL"),
        (vec!["hit", "http://"], "HOST:PORT"),
        (vec!["hit", "ftp://127.0.0.1/"], "http"),
        (vec!["hit", "memcached://127.0.0.1"], "steps like `memcached: [get, greeting]`"),
        (vec!["hit", "redis://127.0.0.1", "-m", "PUT"], "the command is the body"),
        (vec!["hit", "redis://127.0.0.1", "-b", "GET 'a"], "as in redis-cli"),
        (vec!["hit", "redis://127.0.0.1", "-b", "SUBSCRIBE a"], "SUBSCRIBE"),
        (vec!["hit", "http://a:b@127.0.0.1/", "-H", "Authorization: c"], "leave one out"),
        (vec!["hit", "http://a:b@127.0.0.1:99999/"], "http://***@127.0.0.1:99999/"),
        (vec!["hit", url, "-d", "long"], "10s"),
        (vec!["hit", url, "-n", "0"], "at least 1"),
        (vec!["hit", url, "-r", "0"], "above 0"),
        (vec!["hit", url, "-r", "5:x"], "20k/s"),
        (vec!["hit", url, "-r", "5:50", "-n", "9"], "-d beside -n"),
        (vec!["hit", url, "-r", "0:50", "--warm-up", "1s"], "leave it out"),
        (vec!["hit", url, "--poisson"], "--rate"),
        (vec!["hit", url, "-m", "A B"], "GET, POST"),
        (vec!["hit", url, "-H", "X"], "Name: value"),
        (vec!["hit", url, "-H", "Connection: close"], "--disable-keepalive"),
        (vec!["hit", url, "-T", "text/html"], "--content-type"),
        (vec!["hit", url, "-b", "@nowhere"], "nowhere"),
        (vec!["hit", url, "-b", "x", "-B", "y"], "--body-file"),
        (vec!["hit", url, "-n", "5", "--warm-up", "1s"], "--warm-up"),
        (vec!["hit", url, "--urls", "urls.txt"], "urls.txt:2"),
        (vec!["hit", "curl", "--sslv2", url], "curl's flag --sslv2"),
        (vec!["hit", "-m", "PUT", "curl", url], "leave -m out"),
        (vec!["hit", "curl", url, "-c", "5"], "stand before the word curl"),
        (vec!["hit", url, "--urls", "none.txt"], "one a line"),
        (vec!["hit", "curl http://127.0.0.1:1/ -H \"A: $TOKEN\""], "$TOKEN would be expanded by a shell"),
        (vec!["hit", url, "--random-path", "[a-z]+"], "{1,8}"),
        (vec!["hit", url, "--http", "3"], "1.1, 2, auto"),
        (vec!["hit", url, "--streams", "8"], "--http 2"),
        (vec!["hit", url, "--http", "2", "--pipeline", "8"], "--streams"),
        (vec!["hit", url, "--until", "p99<10"], "unit"),
        (vec!["hit", url, "--until", "eror=0"], "did you mean errors?"),
        (vec!["hit", url, "--connect-to", "there"], "HOST:PORT"),
        (vec!["hit", url, "--save", "out"], "out"),
    ] {
        crate::program::assert_refused(folder.path(), &arguments, says);
    }
}

/// Whichever back end is asked for does the same, and is named.
#[test]
fn each_back_end_is_had_by_name() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    for io in ["epoll", "portable", "auto"] {
        let hit = ["hit", &server.url("/x"), "-n", "50", "-c", "5", "-q", "--save=kept", "--io", io];
        let output = run(folder.path(), &hit);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let kept = fs::read_to_string(folder.path().join("kept/run.json")).unwrap();
        let manifest: Value = serde_json::from_str(&kept).unwrap();
        let used = manifest["driver_io"].as_str().unwrap();
        assert!(used == io || (io == "auto" && ["io_uring", "epoll", "portable"].contains(&used)), "{used}");
        assert!(stdout(&output).contains(used), "{}", stdout(&output));
        fs::remove_dir_all(folder.path().join("kept")).unwrap();
    }
    assert_eq!(server.requests().len(), 150);
    let output = run(folder.path(), &["hit", &server.url("/x"), "--io", "kqueue"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("auto, io_uring, epoll or portable"), "{}", stderr(&output));
}

#[test]
fn the_driver_is_pinned_and_the_report_says_where() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let core = tidemark_lab::available_cores()[0].to_string();
    for pin in [core.clone(), format!("driver={core}")] {
        let output =
            run(folder.path(), &["hit", &server.url("/"), "-n", "50", "-c", "2", "-q", "--pin", &pin]);
        assert!(stdout(&output).contains(&format!("1 thread · on core {core}")), "{}", stdout(&output));
    }
    let wrong = run(folder.path(), &["hit", &server.url("/"), "-n", "1", "--pin", "999"]);
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("core 999 is not available"), "{}", stderr(&wrong));
    let system =
        run(folder.path(), &["hit", &server.url("/"), "-n", "1", "--pin", &format!("system={core}")]);
    assert_eq!(code(&system), 2);
    assert!(stderr(&system).contains("the system is there already"), "{}", stderr(&system));
}

/// The scenario that flags stand for, as it is printed and as a file that is right.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, &[&["hit", "--print-scenario"], arguments].concat());
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{arguments:?}");
    let text = stdout(&output);
    fs::write(folder.join("printed.yaml"), &text).unwrap();
    let checked = run(folder, &["check", "printed.yaml"]);
    assert_eq!((code(&checked), stderr(&checked).as_str()), (0, ""), "{text}");
    assert!(stdout(&checked).contains("no mistakes"), "{}", stdout(&checked));
    text
}

#[test]
fn the_printed_scenario_is_one_that_a_person_would_write() {
    let folder = folder();
    let text = printed(folder.path(), &["http://127.0.0.1:8080/", "-r", "1k/s", "--for", "30s"]);
    let reference = include_str!("../../../docs/scenario.md");
    assert!(reference.contains(&format!("```yaml\n{text}```\n")), "the reference does not show\n{text}");
}

#[test]
fn every_flag_is_in_the_printed_scenario() {
    let folder = folder();
    fs::write(folder.path().join("item.json"), "{\n  \"id\": \"${id}\"\n}\n").unwrap();
    fs::write(folder.path().join("urls.txt"), "/a\n/b?c=d e\n").unwrap();
    let whole = |file: &str| fs::canonicalize(folder.path()).unwrap().join(file).display().to_string();
    let tls = [
        &[
            "https://h:1/",
            "-k",
            "--cacert",
            "ca.pem",
            "-E",
            "me.pem",
            "--key",
            "me.key",
            "--server-name",
            "s",
        ][..],
        &["--no-resumption", "--http", "2", "-p", "8", "-c", "2"],
    ]
    .concat();
    let files = format!(
        "\n  http: 2\n  tls:\n    insecure: true\n    ca: {}\n    certificate: {}\n    key: {}\n    server name: s\n    \
         resumption: false\n",
        whole("ca.pem"),
        whole("me.pem"),
        whole("me.key")
    );
    let cases: &[(&[&str], &[&str])] = &[
        (&["h:1/x?a=b", "-m", "delete"], &["\n      - DELETE: /x?a=b\n", "users: 50\n", "connections: 50\n"]),
        (
            &["h:1/", "-H", "X-One: a: ${b} # c", "-H", "Accept: */*", "-T", "2s"],
            &["headers: {X-One: \"a: $${b} # c\", Accept: \"*/*\"}\n", "\n        timeout: 2s\n"],
        ),
        (
            &["h:1/", "-b", "{\"a\": 1}"],
            &["- POST: /\n        headers: {Content-Type: application/json}\n        body: '{\"a\": 1}'\n"],
        ),
        (
            &["h:1/", "-b", "{\"a\": 1}", "--content-type", "text/x"],
            &["- POST: /\n        headers: {Content-Type: text/x}\n        body: '{\"a\": 1}'\n"],
        ),
        (&["h:1/", "-b", "{a: 1}"], &["- POST: /\n        body: "]),
        (
            &["h:1/", "-B", "item.json", "-m", "PUT"],
            &[
                "- PUT: /\n        headers: {Content-Type: application/json}\n        body: |\n          {\n            \
                 \"id\": \"$${id}\"\n          }\n",
            ],
        ),
        (&["h:1/", "-b", "@item.json"], &["        body: |\n"]),
        (
            &["h:1/", "--urls", "urls.txt"],
            &["- choose:\n", "- GET: /a\n", "- GET: /b?c=d%20e\n", "order: in turn\n"],
        ),
        (
            &["h:1/shop", "--random-path", "item-[0-9]{4}"],
            &["- GET: /shop/item-${path(pad(random(0, 9999), 4))}\n        label: GET /shop/item-[0-9]{4}\n"],
        ),
        (
            &[
                "h:1/",
                "-r",
                "1234567/s",
                "--poisson",
                "--waiting",
                "10",
                "-d",
                "3605s",
                "--warm-up",
                "0",
                "-c",
                "9",
            ],
            &[
                "load:\n  rate: 1234567/s\n  spacing: poisson\n  hold: 3605s\n",
                "connections: 9\n  waiting: 10\n",
            ],
        ),
        (
            &["h:1/", "-r", "100:5k", "-d", "20s", "--poisson"],
            &[
                "load:\n  spacing: poisson\n  phases:\n    - {name: warm-up, for: 1s, rate: 100/s}\n",
                "\n    - {name: ramp, for: 20s, rate: 100/s to 5000/s, measured: true}\n",
            ],
        ),
        (&["h:1/", "-r", "0:5k"], &["{name: ramp, for: 10s, rate: 0/s to 5000/s, measured: true}"]),
        (
            &["h:1/", "-n", "20", "-c", "30"],
            &["users: 20\n  hold: 24h\n", "connections: 20\n  sessions: 20\n"],
        ),
        (&["h:1/", "--pipeline", "16", "-c", "2"], &["users: 32\n", "connections: 2\n  pipeline: 16\n"]),
        (&["h:1/", "--disable-keepalive"], &["\n  keep alive: false\n"]),
        (
            &["h:1/", "--until", "p99<10ms", "--until", "errors = 0"],
            &["\nobjectives:\n  - p99<10ms\n  - errors = 0\n"],
        ),
        (&["h:1/", "--seed", "9007199254740991"], &["\nseed: 9007199254740991\n"]),
        (&tls, &[&files, "users: 16\n", "connections: 2\n  streams: 8\n"]),
        (
            &["h:1/", "--resolve", "first", "--connect-to", "127.0.0.1:9"],
            &["resolve: first\n  connect to: 127.0.0.1:9\n"],
        ),
        (
            &["h:1/", "-6", "--unix-socket", "/run/x.sock"],
            &["resolve: ipv6\n  connect to: unix:/run/x.sock\n"],
        ),
        (&["h:1/", "-H", "Host: shop.example"], &["url: http://shop.example\n  connect to: h:1\n"]),
        (
            &[
                "h:1/",
                "-t",
                "2",
                "--pin",
                "0 1",
                "--io",
                "epoll",
                "--spin",
                "--timestamps",
                "kernel",
                "-q",
                "--latency",
            ],
            &[
                "tidemark run takes it, with --threads 2 --pin driver=0 --pin driver=1 --io epoll --spin --timestamps kernel.\n",
            ],
        ),
    ];
    for (arguments, parts) in cases {
        let text = printed(folder.path(), arguments);
        for part in *parts {
            assert!(text.contains(part), "{part:?} of {arguments:?} is not in\n{text}");
        }
    }
}

#[test]
fn the_printed_scenario_sends_what_the_flags_do() {
    let server = Server::start();
    let folder = folder();
    let url = server.url("/p?q=1");
    let body = "two\n  \"lines\": ${x}\n\n";
    for flags in [
        &["-m", "PUT", "-H", "X-One: yes", "-H", "X-Two: ${b}, 1: '", "-b", body, "--content-type", "text/x"]
            [..],
        &["-H", "Host: shop.example:81", "-b", " - a\r\n\t"],
        &["--disable-keepalive"],
    ] {
        let flags = [&[&url, "-n", "3", "-c", "1", "-t", "1"], flags].concat();
        printed(folder.path(), &flags);
        assert_eq!(server.requests().len(), 0, "nothing is sent");
        hit(&flags);
        let by_flags = server.requests();
        server.forget();
        let output = run(folder.path(), &["run", "printed.yaml", "-q", "--threads", "1"]);
        assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
        assert_eq!((by_flags.len(), server.requests()), (3, by_flags), "{flags:?}");
        server.forget();
    }
}

#[test]
fn printing_takes_no_flag_that_asks_for_a_run() {
    let folder = folder();
    for flag in ["--json", "--save", "--tui", "--junit=x", "--markdown=-", "--github", "--csv=x", "--hlog=x"]
    {
        let output = run(folder.path(), &["hit", "h:1/", "--print-scenario", flag]);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{flag}");
        assert!(stderr(&output).contains("--print-scenario"), "{}", stderr(&output));
    }
    let help =
        stdout(&run(folder.path(), &["hit", "--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("it holds headers and body as given"), "{help}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
}
