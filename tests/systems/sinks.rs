//! What is shown of a run while it is on: the page of metrics, and what is pushed to a collector.

mod otlp;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::{Client, Killed, PATIENCE, free_port, tidemark};
use page::sum;
use rustix::process::Signal;
use serde_json::Value;
use tidemark_truth::{Behaviour, Server};

const NAME: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SECRET: &str = "hush-hush-4711";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The whole answer to a request of one's own.
fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, accept: &str) -> (String, String) {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    let answer = raw(address, &request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    (head.to_owned(), body.to_owned())
}

/// The address of the page, which a run says at its begin.
fn page_address(child: &mut Child) -> String {
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line =
        said.by_ref().map(Result::unwrap).find(|line| line.contains("metrics at")).expect("an address");
    // whatever else is said must not fill the pipe
    std::thread::spawn(move || said.for_each(drop));
    line.split("http://").nth(1).unwrap().strip_suffix("/metrics").unwrap().to_owned()
}

/// Runs it with a page and a collector; the summary, the page in both forms when all is over, and the last push.
fn shown(mut command: Command) -> (Value, Vec<(String, String)>, otlp::Push) {
    let place = Arc::new(Mutex::new(String::new()));
    let pages = Arc::new(Mutex::new(Vec::new()));
    let (of_page, seen) = (place.clone(), pages.clone());
    // The last push waits for its answer, so that the page can be looked at when all is over.
    let (collector, pushes) = otlp::receive(move |push| {
        if push.metrics.contains_key("tidemark.verdict") {
            let address = of_page.lock().unwrap().clone();
            let newer = get(&address, "application/openmetrics-text; version=1.0.0, text/plain;q=0.5");
            seen.lock().unwrap().extend([newer, get(&address, "*/*")]);
        }
    });
    let held = place.lock().unwrap();
    let mut child = command
        .args(["--json", "--metrics", "127.0.0.1:0", "--otlp", &format!("http://{collector}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let address = page_address(&mut child);
    let mut held = held;
    held.clone_from(&address);
    drop(held);
    let output = child.wait_with_output().unwrap();
    let summary: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stdout)));
    let last = pushes.try_iter().last().expect("a push");
    let pages = pages.lock().unwrap().clone();
    (summary, pages, last)
}

/// The dashboard for Grafana asks for what is on the page, of the data source that its variable names.
fn dashboard_fits(samples: &page::Samples) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/grafana.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!((&variables[0]["name"], &variables[0]["type"]), (&"datasource".into(), &"datasource".into()));
    let names: BTreeSet<&str> = samples.keys().map(|series| series.split('{').next().unwrap()).collect();
    let asked = |expr: &str| {
        let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned);
        words.filter(|word| word.starts_with("tidemark_")).collect::<Vec<_>>()
    };
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut titles, mut all) = (String::new(), 0);
    for panel in panels {
        titles += &format!("{};", panel["title"].as_str().unwrap());
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
            let asked = asked(target["expr"].as_str().unwrap());
            assert!(!asked.is_empty(), "{target}");
            for name in asked {
                assert!(names.contains(name.as_str()), "{name} is not among {names:?}");
                all += 1;
            }
        }
    }
    for title in ["Rate", "Response time", "Errors", "CPU"] {
        assert!(titles.contains(&format!("{title};")), "{titles}");
    }
    assert!(all > 10, "{all}");
    assert_eq!(asked(variables[1]["query"]["query"].as_str().unwrap()), ["tidemark_run_info"]);
}

#[test]
fn the_page_and_the_last_push_say_what_the_summary_says() {
    let server = Server::start(Behaviour::default()).unwrap();
    let url = format!("http://{}/?fault=status:500@1/20", server.address());
    let mut command = tidemark();
    command
        .args(["hit", &url, "-c", "4", "-n", "2000"])
        .env(NAME, format!("authorization=Bearer%20{SECRET}"));
    let (summary, pages, last) = shown(command);
    let failed = summary["errors"]["status"].as_u64().unwrap();
    assert_eq!((summary["requests"].as_u64(), failed), (Some(2000), 100), "{summary:#}");

    let [newer, older] = &pages[..] else { panic!("{pages:?}") };
    assert!(newer.0.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{}", newer.0);
    assert!(older.0.contains("Content-Type: text/plain; version=0.0.4"), "{}", older.0);
    for samples in [page::read(&newer.1, true), page::read(&older.1, false)] {
        let of = |outcome: &str| sum(&samples, "tidemark_requests_total", &[outcome, "measured=\"true\""]);
        assert_eq!((of("outcome=\"ok\""), of("outcome=\"status\"")), (1900.0, 100.0), "{samples:#?}");
        assert_eq!(sum(&samples, "tidemark_requests_total", &[]), 2000.0);
        assert_eq!(sum(&samples, "tidemark_response_time_seconds_count", &[]), 2000.0);
        let bounded = sum(&samples, "tidemark_response_time_seconds_bucket", &["le=\"60.0\""]);
        assert_eq!(bounded, 1900.0, "a failure is slower than every bound");
        assert_eq!(sum(&samples, "tidemark_verdict", &[]), 1.0);
        assert_eq!(sum(&samples, "tidemark_run_info", &["name=", "run=", "version="]), 1.0);
        assert!(sum(&samples, "tidemark_received_bytes_total", &[]) > 0.0);
        assert!(sum(&samples, "tidemark_process_resident_memory_bytes", &["process=\"driver\""]) > 0.0);
        dashboard_fits(&samples);
    }

    assert!(last.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", last.head);
    assert!(last.head.contains(&format!("authorization: Bearer {SECRET}\r\n")), "{}", last.head);
    assert_eq!(last.resource["service.name"], "tidemark");
    let requests = &last.metrics["tidemark.requests"];
    let of = |outcome: &str| {
        requests.iter().filter(|p| p.attributes["outcome"] == outcome).map(|p| p.value).sum::<f64>()
    };
    assert_eq!((of("ok"), of("status")), (1900.0, 100.0));
    let times = &last.metrics["tidemark.response_time"][0];
    assert_eq!(times.value, 1900.0);
    let mean_us = summary["good"]["response_time_us"]["mean"].as_f64().unwrap();
    assert!((times.sum / 1900.0 * 1e6 / mean_us - 1.0).abs() < 0.01, "{} s, {mean_us} us", times.sum);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(times.start_ns < times.time_ns && times.time_ns <= now, "{times:?}");
    assert!(now - times.start_ns < 600 * 1_000_000_000, "{times:?}");
}

#[test]
fn what_a_scenario_measures_itself_is_on_the_page_and_pushed() {
    let server = Server::start(Behaviour::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!(
        "system: {{url: 'http://{}'}}
sessions:
  guest:
    steps:
      - GET: /
        extract: {{status: status}}
        measure: {{code: '${{status}}', spent: {{counter: 2, unit: EUR}}}}
      - measure: {{words: 'code ${{status}}'}}
load: {{users: 2, hold: 1s}}
",
        server.address()
    );
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let mut command = tidemark();
    command.current_dir(folder.path()).args(["run", "s.yaml", "--out", "run"]);
    let (summary, pages, last) = shown(command);
    let measured = summary["metrics"].as_array().unwrap_or_else(|| panic!("{summary:#}"));
    let measured =
        measured.iter().find(|metric| metric["metric"] == "code").unwrap()["count"].as_f64().unwrap();

    let quantiles = ["0.5", "0.9", "0.99", "1"];
    let pushed = |name: &str, labels: &[(&str, &str)]| {
        let has_all = |point: &&otlp::Point| {
            labels.iter().all(|(label, value)| point.attributes.get(*label).is_some_and(|of| of == value))
        };
        let points: Vec<f64> = last.metrics[name].iter().filter(has_all).map(|point| point.value).collect();
        let [value] = points[..] else { panic!("{name} {labels:?}: {points:?}") };
        value
    };
    let numbers = pushed("tidemark.own_numbers", &[("metric", "code")]);
    // the page and the push have all of the run, the summary what was measured
    assert!(measured > 0.0 && numbers >= measured, "{numbers} numbers, {measured} measured");
    assert_eq!(pushed("tidemark.own_sum", &[("metric", "code")]), 200.0 * numbers);
    assert_eq!(pushed("tidemark.own_counter", &[("metric", "spent"), ("unit", "EUR")]), 2.0 * numbers);
    assert!(pushed("tidemark.own_no_number", &[("metric", "words")]) > 0.0);
    for quantile in quantiles {
        let labels = [("metric", "code"), ("quantile", quantile)];
        assert_eq!(pushed("tidemark.own_quantile", &labels), 200.0, "{quantile}");
    }

    let [newer, older] = &pages[..] else { panic!("{pages:?}") };
    for samples in [page::read(&newer.1, true), page::read(&older.1, false)] {
        let of = |name: &str, labels: &[&str]| sum(&samples, name, labels);
        let code = "metric=\"code\"";
        assert_eq!(of("tidemark_own_numbers_total", &[code]), numbers, "{samples:#?}");
        assert_eq!(of("tidemark_own_sum_total", &[code]), 200.0 * numbers);
        let spent = ["metric=\"spent\"", "unit=\"EUR\""];
        assert_eq!(of("tidemark_own_counter_total", &spent), 2.0 * numbers);
        assert!(of("tidemark_own_no_number_total", &["metric=\"words\""]) > 0.0);
        for quantile in quantiles {
            let of_quantile = format!("quantile=\"{quantile}\"");
            assert_eq!(of("tidemark_own_quantile", &[code, &of_quantile]), 200.0, "{quantile}");
        }
    }
}

#[test]
fn only_get_and_head_of_the_page_are_answered() {
    let server = Server::start(Behaviour::default()).unwrap();
    let url = format!("http://{}/", server.address());
    let child = tidemark()
        .args(["hit", &url, "-c", "1", "-r", "20", "--for", "10m", "--metrics", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let address = page_address(&mut child.0);
    let status = |request: &str| raw(&address, request).lines().next().unwrap_or_default().to_owned();
    let head = raw(&address, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 404 Not Found");
    assert!(status("GET /metrics HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n").starts_with("HTTP/1.1 421 "));
    let refused = raw(&address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("Allow: GET, HEAD\r\n"), "{refused}");
    assert_eq!(status("\r\nno request\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9 << 10));
    assert!(status(&long).starts_with("HTTP/1.1 431 "));
    // more connections than are answered at once, none of which asks anything, are in nobody's way for ever
    let idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&*address).unwrap()).collect();
    assert!(get(&address, "*/*").1.contains("tidemark_run_info"));
    drop(idle);
}

fn hit_and_wait(server: &Server, arguments: &[&str]) -> std::process::Output {
    let url = format!("http://{}/", server.address());
    let mut command = tidemark();
    command.args(["hit", &url, "-c", "2", "-n", "200"]).args(arguments);
    command.env(NAME, format!("authorization={SECRET}")).output().unwrap()
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let server = Server::start(Behaviour::default()).unwrap();
    for (arguments, reason) in [
        (["--metrics", &address], address.as_str()),
        (["--metrics", "9464"], "--metrics"),
        (["--otlp", "127.0.0.1:4318"], "write it like http://127.0.0.1:4318"),
    ] {
        let output = hit_and_wait(&server, &arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    assert_eq!(server.stop().unwrap().answered, 0);
}

#[test]
fn a_run_goes_on_without_its_collector_and_keeps_no_secret() {
    let nobody: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(Behaviour::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let save = format!("--save={}", folder.path().join("run").display());
    let output = hit_and_wait(&server, &["--otlp", &format!("http://{nobody}"), &save]);
    let said = text(&output.stderr);
    assert_ne!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("pushes of metrics"), "{said}");
    let run: Value = serde_json::from_slice(&fs::read(folder.path().join("run/run.json")).unwrap()).unwrap();
    assert_eq!(run["summary"]["requests"], 200);
    let notes = run["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("pushes of metrics")), "{notes:?}");
    assert!(!said.contains(SECRET) && !holds(folder.path(), SECRET));
}

fn holds(folder: &Path, what: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => holds(&path, what),
        false => fs::read(&path).unwrap().windows(what.len()).any(|part| part == what.as_bytes()),
    })
}

#[test]
fn a_real_prometheus_scrapes_it() {
    let is_there =
        Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if is_there.is_err() {
        eprintln!("skipped: no prometheus here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (metrics, listen) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: tidemark\n    static_configs: [{{targets: ['{metrics}']}}]\n"
    );
    let config_file = folder.path().join("prometheus.yml");
    fs::write(&config_file, config).unwrap();
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config_file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={listen}"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let _prometheus = Killed(prometheus);
    let server = Server::start(Behaviour::default()).unwrap();
    let url = format!("http://{}/", server.address());
    let hit = tidemark()
        .args(["hit", &url, "-c", "2", "-r", "100", "--for", "10m", "-q", "--metrics", &metrics])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hit = Killed(hit);
    let query = |query: &str| -> Option<f64> {
        let answer = Client::connect(&listen).get(&format!("/api/v1/query?query={query}"));
        let json: Value = serde_json::from_str(&answer.body).ok()?;
        json["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    };
    let begin = Instant::now();
    let quantile = "histogram_quantile(0.5,sum%20by(le)(rate(tidemark_response_time_seconds_bucket[1m])))";
    loop {
        let requests = query("sum(tidemark_requests_total{outcome=\"ok\"})".replace('"', "%22").as_str());
        let median = query(quantile).filter(|median| median.is_finite());
        if requests.is_some_and(|requests| requests > 100.0) && median.is_some() {
            break;
        }
        let log = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        assert!(begin.elapsed() < 2 * PATIENCE, "{requests:?} {median:?}: {}", log());
        std::thread::sleep(Duration::from_millis(500));
    }
    let kind = Client::connect(&listen).get("/api/v1/metadata?metric=tidemark_requests_total").body;
    assert!(kind.contains("counter") || kind.contains("\"data\":{}"), "{kind}");
    crate::common::signal(hit.0.id(), Signal::TERM);
}
