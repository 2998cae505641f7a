//! Scripts of k6: what our program sends beside what k6 sends, and what becomes of loads, thresholds and mistakes.

mod websockets;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::{code, json, run, stderr, stdout};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6")
}

/// The server that k6's own requests were recorded with.
struct Recorder {
    child: Child,
    folder: tempfile::TempDir,
    place: String,
}

impl Recorder {
    fn start() -> Recorder {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = Command::new("python3")
            .arg(folder().join("server.py"))
            .arg(temporary.path().join("log"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Recorder { child, folder: temporary, place: format!("127.0.0.1:{}", line.trim()) }
    }

    /// What has been asked, a line each.
    fn requests(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default().replace(&self.place, "HOST")
    }

    /// The same, once it is so; or as it is after a while.
    fn requests_once(&self, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let requests = self.requests();
            if is_so(&requests) || begun.elapsed() > Duration::from_secs(5) {
                return requests;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn forget(&self) {
        fs::write(self.folder.path().join("log"), "").unwrap();
    }

    fn run(&self, script: &Path, more: &[&str]) -> Output {
        let base = format!("BASE=http://{}", self.place);
        let out = format!("OUT={}", self.folder.path().join("out.json").display());
        let flags = ["run", script.to_str().unwrap(), "-e", &base, "-e", &out, "-q"];
        run(self.folder.path(), &[&flags[..], more].concat())
    }

    fn run_text(&self, text: &str) -> Output {
        let script = self.folder.path().join("it.js");
        fs::write(&script, text).unwrap();
        self.run(&script, &[])
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was asked, by path.
fn by_path(sent: &str) -> String {
    let mut lines: Vec<&str> = sent.split_inclusive('\n').collect();
    lines.sort_by_key(|line| line.split('\t').nth(1));
    lines.concat()
}

#[test]
fn each_script_sends_what_k6_sends() {
    let server = Recorder::start();
    let mut scripts: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "requests"));
    scripts.sort();
    assert!(scripts.len() >= 17);
    for recorded in scripts {
        server.forget();
        let script = recorded.with_extension("js");
        let script = if script.exists() { script } else { recorded.with_extension("ts") };
        let output = server.run(&script, &["-t", "1"]);
        let mut sent = server.requests();
        if ["parallel.requests", "rejected.requests"].iter().any(|name| recorded.ends_with(name)) {
            // what is under way at once has no order
            let mut lines: Vec<&str> = sent.split_inclusive('\n').collect();
            lines.sort_unstable();
            sent = lines.concat();
        }
        let wanted = fs::read_to_string(&recorded).unwrap();
        if script.file_name().unwrap().to_string_lossy().starts_with("ws-") {
            // nor what goes over different connections
            sent = by_path(&server.requests_once(|sent| by_path(sent) == wanted));
        }
        assert_eq!(sent, wanted, "{}: {}{}", script.display(), stdout(&output), stderr(&output));
        assert!([0, 1].contains(&code(&output)), "{}: {}", script.display(), stdout(&output));
    }
}

#[test]
fn thresholds_are_objectives_and_checks_are_in_every_output() {
    let server = Recorder::start();
    let output = server.run(&folder().join("checks.js"), &["-t", "1", "--latency"]);
    let shown = stdout(&output);
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains("is small 75.0% 3 1"), "{shown}");
    for words in [
        "shop › cart › ok",
        "is small",
        "bought",
        "1 of 4 iterations ended with an exception",
        "size: p(90)<=4",
    ] {
        assert!(shown.contains(words), "{words} in {shown}{}", stderr(&output));
    }
    let output = server.run(&folder().join("checks.js"), &["-t", "1", "--json"]);
    let json = json(&output);
    let script = &json["run"]["script"];
    assert_eq!((script["iterations"].as_u64(), script["exceptions"].as_u64()), (Some(4), Some(1)), "{json}");
    assert_eq!(script["checks"][1]["passes"], 3, "{script}");
    let missed = server.run_text(
        "import http from 'k6/http';
export const options = {
    iterations: 3,
    thresholds: { 'http_req_duration{name:a}': ['max<0.000001'], http_reqs: ['count>2'] },
};
export default () => { http.get(`${__ENV.BASE}/`, { tags: { name: 'a' } }); };",
    );
    let shown = stdout(&missed).replace('\n', " ");
    assert_eq!(code(&missed), 1, "{shown}");
    assert!(shown.contains("http_req_duration{name:a}: max<0.000001 missed"), "{shown}");
    let summary = server.run(&folder().join("summary.js"), &["-t", "1"]);
    assert!(stdout(&summary).contains("told: 2 3 true 3 3 counter fine\n"), "{}", stdout(&summary));
    let written = fs::read_to_string(server.folder.path().join("out.json")).unwrap();
    assert_eq!(written, "{\"avg\":2,\"p(99)\":2.98,\"count\":3}");
}

#[test]
fn loads_are_those_of_the_options() {
    let server = Recorder::start();
    let counted = |text: &str, least_s: f64| {
        server.forget();
        let begun = Instant::now();
        let output = server.run_text(text);
        assert!([0, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
        assert!(begun.elapsed().as_secs_f64() > least_s);
        let requests = server.requests();
        move |path: &str| requests.lines().filter(|line| line.contains(path)).count()
    };
    let count = counted(
        "import http from 'k6/http';
import { sleep } from 'k6';
import exec from 'k6/execution';
export const options = { scenarios: {
    shared: { executor: 'shared-iterations', vus: 2, iterations: 7, exec: 'shared' },
    each: { executor: 'per-vu-iterations', vus: 2, iterations: 3, exec: 'each', startTime: '300ms' },
    users: { executor: 'constant-vus', vus: 2, duration: '1s', exec: 'users', env: { NAME: 'u' } },
    rate: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 5, maxVUs: 50, exec: 'rate' },
} };
const get = (path) => http.get(`${__ENV.BASE}/${path}`);
export const shared = () => get('shared');
export const each = () => get(`each/${exec.scenario.name}`);
export const users = () => { get(`users/${__ENV.NAME}`); sleep(0.1); };
export const rate = () => get('rate');",
        1.0,
    );
    assert_eq!((count("/shared"), count("/each/each")), (7, 6));
    assert!((6..=24).contains(&count("/users/u")), "{}", count("/users/u"));
    assert!((17..=21).contains(&count("/rate")), "{}", count("/rate"));
    let count = counted(
        "import http from 'k6/http';
import { sleep } from 'k6';
export const options = { stages: [
    { duration: '500ms', target: 4 }, { duration: '500ms', target: 4 },
    { duration: '0s', target: 1 }, { duration: '500ms', target: 1 },
] };
export default () => { http.get(`${__ENV.BASE}/ramp?${__VU}`); sleep(0.05); };",
        1.4,
    );
    assert!(count("/ramp?4") > 1 && count("/ramp") > 12, "{} {}", count("/ramp?4"), count("/ramp"));
    // each of two threads begins iterations of both, by users of its own
    let rate = "{ executor: 'constant-arrival-rate', rate: 20, duration: '500ms', preAllocatedVUs: 1 }";
    fs::write(
        server.folder.path().join("it.js"),
        format!(
            "import http from 'k6/http';
export const options = {{ scenarios: {{ a: {rate}, b: {rate} }} }};
export default () => {{ http.get(`${{__ENV.BASE}}/rated`); }};
export const handleSummary = ({{ metrics }}) => ({{ [__ENV.OUT]: JSON.stringify([metrics.vus.values.max, metrics.vus_max.values.max]) }});"
        ),
    )
    .unwrap();
    let output = server.run(&server.folder.path().join("it.js"), &["-t", "2"]);
    let users = fs::read_to_string(server.folder.path().join("out.json")).unwrap_or_default();
    assert!(["[1,2]", "[2,2]"].contains(&users.as_str()), "{users}: {}{}", stdout(&output), stderr(&output));
}

#[test]
fn what_the_command_line_says_goes_before_the_options() {
    let server = Recorder::start();
    let script = server.folder.path().join("it.js");
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
export const options = { iterations: 1000, thresholds: { dropped_iterations: ['count<1'] }, stages: [{ duration: '1m', target: 9 }] };
export default () => { http.get(`${__ENV.BASE}/`); sleep(0.05); };";
    fs::write(&script, text).unwrap();
    let output = server.run(&script, &["-c", "2", "-d", "1s"]);
    let count = server.requests().lines().count();
    assert!(
        stdout(&output).contains("closed, 2 users") && (8..=42).contains(&count),
        "{count} {}",
        stdout(&output)
    );
    fs::write(&script, text.replace("stages:", "other:").replace("iterations: 1000, ", "")).unwrap();
    let output = server.run(&script, &["-c", "2"]);
    assert!(code(&output) == 2 && stderr(&output).contains("add -d TIME"), "{}", stderr(&output));
    fs::write(&script, text).unwrap();
    server.forget();
    let output = server.run(&script, &["-r", "20", "-d", "1s"]);
    let count = server.requests().lines().count();
    assert!((17..=21).contains(&count), "{count} {}", stdout(&output));
}

#[test]
fn users_have_numbers_and_cookies_of_their_own() {
    let server = Recorder::start();
    let text = "import http from 'k6/http'; import exec from 'k6/execution';
export const options = { scenarios: {
    a: { executor: 'shared-iterations', vus: 1, iterations: 3, exec: 'a' },
    b: { executor: 'per-vu-iterations', vus: 3, iterations: 2, exec: 'b' },
} };
const base = __ENV.BASE;
export function setup() { http.get(`${base}/setup`); return {}; }
export function a() {
    http.get(`${base}/set`);
    http.get(`${base}/a/${exec.scenario.iterationInTest}`, { jar: new http.CookieJar() });
}
export function b() { http.get(`${base}/b/${__VU}`); }";
    let output = server.run_text(text);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let requests = server.requests();
    for iteration in 0..3 {
        assert!(requests.contains(&format!("GET\t/a/{iteration}\t{{}}\t")), "{requests}");
    }
    for user in 1..=4 {
        let count = requests.matches(&format!("/b/{user}\t")).count();
        assert!(count == 0 || count == 2, "{user}: {requests}");
    }
    assert_eq!(requests.matches("/b/").count(), 6, "{requests}");
}

#[test]
fn what_goes_wrong_is_in_the_verdict() {
    let server = Recorder::start();
    let imports = "import http from 'k6/http'; import { check, sleep } from 'k6'; const base = __ENV.BASE;\n";
    let run = |text: &str| {
        let output = server.run_text(&format!("{imports}{text}"));
        let shown = format!("{}{}", stdout(&output), stderr(&output)).replace('\n', " ");
        (code(&output), shown.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    // all iterations throw, and the threshold has nothing to hold of
    let (status, shown) =
        run("export const options = { iterations: 3, thresholds: { checks: ['rate>0.9'] } };
export default () => { http.get(`${base}/`); undefined.x; };");
    assert!(status == 1 && shown.contains("all 3 iterations ended with an exception"), "{shown}");
    // a check that throws did not hold
    let (status, shown) =
        run("export const options = { iterations: 4, thresholds: { checks: ['rate>0.9'] } };
export default () => {
    http.get(`${base}/`);
    try { check(1, { field: () => { if (__ITER % 2) undefined.x; return true; } }); } catch (error) {}
};");
    assert!(status == 1 && shown.contains("checks: rate>0.9 0.5"), "{shown}");
    // a group has the tags of its user
    let (status, shown) = run("import exec from 'k6/execution'; import { group } from 'k6';
export const options = { iterations: 1, tags: { env: 'test' }, thresholds: { 'group_duration{team:x}': ['max<1'] } };
export default () => {
    exec.vu.metrics.tags['team'] = 'x';
    const { scenario, env, team } = exec.vu.tags;
    if (`${scenario} ${env} ${team}` !== 'default test x') throw new Error('tags');
    group('g', () => { http.get(`${base}/`); sleep(0.05); });
};");
    assert!(status == 1 && !shown.contains("no value"), "{shown}");
    // what was due is to be sent, also where the script says how much may fail
    for (more, expected) in [("", 1), ("dropped_iterations: ['count<1000'],", 0)] {
        let (status, shown) = run(&format!(
            "export const options = {{ scenarios: {{ a: {{ executor: 'constant-arrival-rate', rate: 50, duration: '3s', preAllocatedVUs: 2, maxVUs: 2 }} }},
    thresholds: {{ {more} http_req_failed: ['rate<0.01'] }} }};
export default () => {{ http.get(`${{base}}/`); sleep(0.2); }};"
        ));
        assert_eq!(status, expected, "{shown}");
    }
    // a promise that nobody waits for
    let (_, shown) = run("export const options = { iterations: 3 };
export default () => { http.get(`${base}/`); (async () => { throw new Error('lost'); })(); };");
    assert!(shown.contains("uncaught in a promise: lost") && shown.contains("3 of 3 iterations"), "{shown}");
    // several of them are one iteration
    let (status, shown) = run("export const options = { iterations: 4 };
export default () => {
    http.get(`${base}/`);
    if (__ITER % 2) for (const n of [1, 2, 3]) Promise.reject(new Error(`lost ${n}`));
};");
    assert!(status == 0 && shown.contains("2 of 4 iterations"), "{shown}");
    // what is not measured is not held
    let (status, shown) = run("export const options = { thresholds: { http_req_sending: ['avg<1'] } };
export default () => { http.get(`${base}/`); };");
    assert!(status == 3 && shown.contains("undecided"), "{shown}");
    // iterations that nobody had time for
    let (status, shown) = run("export const options = { scenarios: { a: { executor: 'shared-iterations', iterations: 50, maxDuration: '300ms' } }, thresholds: { dropped_iterations: ['count<1'] } };
export default () => { http.get(`${base}/`); sleep(0.1); };");
    assert!(status != 0 && shown.contains("dropped_iterations: count<1"), "{shown}");
    // the teardown's mistake does not take the run with it, and it is done after an abort, too
    let (status, shown) = run("export const options = { iterations: 2 };
export default () => { http.get(`${base}/`); };
export function teardown() { throw new Error('cleanup failed'); }");
    assert!(status == 1 && shown.contains("teardown: ") && shown.contains("By label"), "{shown}");
    server.forget();
    run("import exec from 'k6/execution';
export const options = { vus: 1, duration: '20s' };
export default () => { http.get(`${base}/`); exec.test.abort(); };
export function teardown() { http.del(`${base}/down`); }");
    assert!(server.requests().contains("DELETE\t/down"), "{}", server.requests());
    // URLs that lead nowhere fail in the script
    let (_, shown) = run("export const options = { iterations: 2 };
export default () => { const res = http.get(__ITER ? 'nonsense' : `${base}/`); check(res, { there: (r) => r.status === 200 }); };");
    assert!(
        shown.contains("there 50.0% 1 1") && shown.contains("requests of the script not sent: 1"),
        "{shown}"
    );
    // options that are not read are named
    let (_, shown) = run("export const options = { noVUConnectionReuse: true,
    scenarios: { a: { executor: 'shared-iterations', vus: 1, iterations: 1, gracefulStp: '5s' } } };
export default () => { http.get(`${base}/`); };");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = "ignored: options.noVUConnectionReuse, options.scenarios.a.gracefulStp";
    assert!(words.contains(named), "{shown}");
}

#[test]
fn options_of_all_requests_and_iterations_hold() {
    let server = Recorder::start();
    let imports = "import http from 'k6/http'; import { sleep } from 'k6'; const base = __ENV.BASE;\n";
    let run = |text: &str| {
        server.forget();
        let output = server.run_text(&format!("{imports}{text}"));
        assert_eq!(code(&output), 0, "{text}: {}{}", stdout(&output), stderr(&output));
        let requests = server.requests();
        move |path: &str| requests.lines().filter(|line| line.contains(path)).count()
    };
    // iterations that are under way at the end come to theirs
    let text = |more: &str| {
        format!(
            "export const options = {{ scenarios: {{ a: {{ executor: 'constant-vus', vus: 2, duration: '300ms', {more} }} }} }};
export default () => {{ http.get(`${{base}}/first`); sleep(0.8); http.get(`${{base}}/last`); }};"
        )
    };
    let count = run(&text(""));
    assert_eq!((count("/first"), count("/last")), (2, 2));
    let count = run(&text("gracefulStop: '0s'"));
    assert_eq!((count("/first"), count("/last")), (2, 0));
    let told = server.run(&server.folder.path().join("it.js"), &[]);
    assert!(stdout(&told).contains("iterations interrupted: 2"), "{}", stdout(&told));
    // rates that are no higher than they may be
    let count = run(
        "export const options = { vus: 3, iterations: 12, rps: 20, thresholds: { http_reqs: ['rate<23'] } };
export default () => { http.get(`${base}/one`); };",
    );
    assert_eq!(count("/one"), 12);
    let count = run("export const options = { iterations: 4, minIterationDuration: '200ms', thresholds: {
    iterations: ['rate<6.7'], iteration_duration: ['min<150'] } };
export default () => { http.get(`${base}/one`); };");
    assert_eq!(count("/one"), 4);
    // each request has a connection, whose making is in its parts
    let count = run("export const options = { iterations: 5, noConnectionReuse: true, thresholds: {
    http_req_connecting: ['min>0'], http_req_blocked: ['min>0'], http_req_receiving: ['max<1000'] } };
export default () => { http.get(`${base}/one`); };");
    assert_eq!(count("/one"), 5);
}

#[test]
fn iterations_end_with_the_time_of_their_own_scenario() {
    let server = Recorder::start();
    let imports = "import http from 'k6/http'; import { sleep } from 'k6'; const base = __ENV.BASE;\n";
    let run = |text: &str| {
        server.forget();
        fs::write(server.folder.path().join("it.js"), format!("{imports}{text}")).unwrap();
        let begun = Instant::now();
        let output = server.run(&server.folder.path().join("it.js"), &["--json"]);
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
        let requests = server.requests();
        let count = move |path: &str| requests.lines().filter(|line| line.contains(path)).count();
        (json, count, begun.elapsed().as_secs_f64())
    };
    // one sleeps, one waits for an answer, one that is both is done in time
    let (json, count, took_s) = run("const of = (exec, gracefulStop) => ({ executor: 'constant-vus', vus: 1, duration: '1s', exec, gracefulStop });
export const options = { scenarios: { asleep: of('asleep', '0s'), waits: of('waits', '200ms'), done: of('done', '30s') } };
const twice = (name) => { http.get(`${base}/first/${name}`); sleep(2); http.get(`${base}/last/${name}`); };
export const asleep = () => { try { twice('asleep'); } catch { http.get(`${base}/caught`); } };
export const waits = () => { http.get(`${base}/hold`); http.get(`${base}/caught`); };
export const done = () => { twice('done'); };");
    assert_eq!(
        (count("/first/"), count("/last/done"), count("/last/asleep"), count("/caught")),
        (2, 1, 0, 0)
    );
    assert!((2.0..15.0).contains(&took_s), "{took_s} s: {json}");
    let script = &json["run"]["script"];
    assert_eq!((&script["iterations"], &script["interrupted"]), (&1.into(), &2.into()), "{json}");
    // the last one of all is due behind the measured second
    assert_eq!((&json["requests"], &json["errors"]), (&3.into(), &serde_json::json!({"unfinished": 1})));
    let metrics = script["metrics"].as_array().unwrap();
    let reqs = metrics.iter().find(|of| of["name"] == "http_reqs").unwrap();
    assert_eq!(reqs["figures"][0]["value"], 3.0, "k6 counts none that it interrupted: {reqs}");
    assert!(json.to_string().contains("iterations interrupted: 2"), "{json}");
    // whom a ramp takes away
    for (grace, last) in [("'100ms'", 0), ("'20s'", 2)] {
        let (json, count, _) = run(&format!("export const options = {{ scenarios: {{ a: {{
    executor: 'ramping-vus', startVUs: 2, gracefulRampDown: {grace},
    stages: [{{ duration: '400ms', target: 2 }}, {{ duration: '0s', target: 0 }}, {{ duration: '2s', target: 0 }}] }} }} }};
export default () => {{ http.get(`${{base}}/first`); sleep(1); http.get(`${{base}}/last`); }};"));
        assert_eq!((count("/first"), count("/last")), (2, last), "{grace}: {json}");
        assert_eq!(json["run"]["script"]["interrupted"], 2 - last, "{grace}");
    }
}

#[test]
fn iterations_that_are_never_begun_fail_the_run_and_all_threads_end_with_the_last_iteration() {
    let server = Recorder::start();
    let script = server.folder.path().join("it.js");
    let run_for = |text: &str, more: &[&str]| {
        let imports = "import http from 'k6/http'; import { sleep } from 'k6';";
        fs::write(&script, format!("{imports}\n{text}")).unwrap();
        let begun = Instant::now();
        let output = server.run(&script, more);
        (code(&output), format!("{}{}", stdout(&output), stderr(&output)), begun.elapsed().as_secs_f64())
    };
    // the users of the rate are busy, and the driver drops nothing
    let text = "export const options = { OPTIONS scenarios: {
    rate: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 1, maxVUs: 1, exec: 'slow' },
    users: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'slow' } } };
export const slow = () => { http.get(`${__ENV.BASE}/page`); sleep(1.5); };";
    let (status, shown, _) = run_for(&text.replace("OPTIONS", ""), &[]);
    assert!(status == 1 && shown.contains(" iterations that were due were never begun"), "{shown}");
    let bounded = text.replace("OPTIONS", "thresholds: { dropped_iterations: ['count<1000'] },");
    let (_, shown, _) = run_for(&bounded, &[]);
    assert!(!shown.contains("never begun"), "{shown}");
    // one thread has users of the first alone, who never rest
    let text = "export const options = { scenarios: {
    users: { executor: 'constant-vus', vus: 1, duration: '1s' },
    few: { executor: 'shared-iterations', vus: 1, iterations: 3 } } };
export default () => { http.get(`${__ENV.BASE}/page`); sleep(0.1); };";
    let (_, shown, took_s) = run_for(text, &["-t", "2"]);
    assert!(took_s < 30.0, "{took_s}: {shown}");
}

#[test]
fn once_shows_each_session_and_what_the_script_says_of_it() {
    let server = Recorder::start();
    let script = server.folder.path().join("it.js");
    let text = "import http from 'k6/http'; import { check } from 'k6';
export const options = { scenarios: {
    alpha: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'a' },
    beta: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'b' },
} };
export const a = () => { http.get(`${__ENV.BASE}/a`); };
export const b = () => { check(http.get(`${__ENV.BASE}/b`), { 'is a page': (r) => r.body === 'page' }); };";
    fs::write(&script, text).unwrap();
    let once = |kind: &str| {
        server.forget();
        let base = format!("BASE=http://{}", server.place);
        let flags = ["run", script.to_str().unwrap(), "-e", &base, kind];
        let output = run(server.folder.path(), &flags);
        (code(&output), format!("{}{}", stdout(&output), stderr(&output)), server.requests())
    };
    let (status, shown, requests) = once("--once=alpha");
    assert!(status == 0 && requests.contains("/a\t") && !requests.contains("/b\t"), "{shown}{requests}");
    let (status, shown, requests) = once("--once=beta");
    assert!(status == 1 && requests.contains("/b\t") && !requests.contains("/a\t"), "{shown}{requests}");
    assert!(shown.contains("check \"is a page\" failed 1 of 1 times"), "{shown}");
}

#[test]
fn an_imported_script_is_a_scenario() {
    let server = Recorder::start();
    let folder = server.folder.path();
    fs::write(
        folder.join("it.js"),
        "import http from 'k6/http'; import secrets from 'k6/secrets';
export const options = { vus: 1, duration: '1s', thresholds: { http_req_duration: ['p(50)<0.0001'] } };
export default async () => { await secrets.get('CODE').catch(() => {}); http.get(`${__ENV.BASE}/`); };",
    )
    .unwrap();
    let base = format!("BASE=http://{}", server.place);
    let given = ["-e", base.as_str(), "-e", "API_TOKEN=s3cr3t-17", "-e", "CODE=s3cr3t-18"];
    let output = run(folder, &[&["import", "it.js", "-o", "it.yaml"], &given[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let scenario = fs::read_to_string(folder.join("it.yaml")).unwrap();
    assert!(scenario.contains(&base) && !scenario.contains("s3cr3t"), "{scenario}");
    for name in ["API_TOKEN", "CODE"] {
        assert!(stderr(&output).contains(&format!("{name} is a secret")), "{}", stderr(&output));
    }
    let output = run(folder, &["check", "it.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // a search finds its goals by their place among the objectives: thresholds stand behind them
    let output = run(folder, &["run", "it.yaml", "-t", "1", "-q", "--json"]);
    let json = json(&output);
    let all = json["objectives"].as_array().unwrap();
    let all: Vec<&str> = all.iter().map(|of| of["objective"].as_str().unwrap()).collect();
    assert_eq!(all, ["errors < 0.1%", "http_req_duration: p(50)<0.0001"], "{json}");
}

/// A secret in a path is in the labels, by which everything that is written down knows its figures.
#[test]
fn labels_with_secrets_are_masked_and_told_apart() {
    let server = Recorder::start();
    let folder = server.folder.path();
    let text = "import http from 'k6/http'; import secrets from 'k6/secrets';
export const options = { iterations: 4 };
export default async () => {
    for (const name of ['ONE', 'TWO']) { http.get(`${__ENV.BASE}/x/${await secrets.get(name)}`); }
};";
    fs::write(folder.join("it.js"), text).unwrap();
    let base = format!("BASE=http://{}", server.place);
    let given = ["-e", base.as_str(), "-e", "ONE=s3cr3t-one-a", "-e", "TWO=s3cr3t-two-b"];
    let output = run(folder, &[&["run", "it.js", "--out", "out", "-q", "--json"], &given[..]].concat());
    let json = json(&output);
    let steps = json["steps"].as_array().unwrap();
    let told: Vec<_> = steps.iter().map(|step| (step["label"].as_str(), step["requests"].as_u64())).collect();
    assert_eq!(told, [(Some("GET /x/***"), Some(4)), (Some("GET /x/*** (2)"), Some(4))], "{json}");
    let report = run(folder, &["report", "out"]);
    assert!(stdout(&report).contains("GET /x/*** (2)"), "{}{}", stdout(&report), stderr(&report));
    for entry in fs::read_dir(folder.join("out")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        assert!(!bytes.windows(6).any(|part| part == b"s3cr3t"), "{}", path.display());
    }
}

#[test]
fn a_script_closes_a_connection_and_names_no_agent() {
    let server = Recorder::start();
    let output = server.run_text(
        "import http from 'k6/http';
export const options = { iterations: 1, thresholds: { http_req_failed: ['rate<0.5'] } };
const heads = (headers) => http.get(`${__ENV.BASE}/heads`, { headers }).json();
export default function () {
  const [kept, closing, after] = [heads({}), heads({ connection: 'Close', 'User-Agent': '' }), heads({})];
  const bad = http.get(`${__ENV.BASE}/never`, { headers: { 'a b': 'c' } });
  const told = [
    kept.port === closing.port, closing.port === after.port, kept.heads.connection, closing.heads.connection,
    'user-agent' in closing.heads, 'user-agent' in after.heads, bad.status, bad.error_code,
  ];
  http.get(`${__ENV.BASE}/told/${told.map(String).join('/')}`);
}",
    );
    let sent = server.requests();
    let told = "/told/true/false/undefined/close/false/true/0/1000\t";
    let shown = format!("{}{}", stdout(&output), stderr(&output));
    assert!(sent.contains(told) && !sent.contains("/never"), "{sent}{shown}");
    assert!(shown.contains("requests of the script not sent: 1"), "{shown}");
}

#[test]
fn credentials_stay_with_their_host() {
    let server = Recorder::start();
    let other = Recorder::start();
    let text = format!(
        "import http from 'k6/http'; export const options = {{ iterations: 1 }};
export default () => {{
    http.get('http://localhost:{}/other');
    http.get(`${{__ENV.BASE}}/away/{}`, {{ headers: {{ Authorization: 'Bearer secret', Cookie: 'own=secret' }} }});
}};",
        other.place.rsplit(':').next().unwrap(),
        other.place.rsplit(':').next().unwrap(),
    );
    let output = server.run_text(&text);
    assert!(server.requests().contains("Bearer secret"), "{}", stderr(&output));
    let sent = other.requests();
    assert!(sent.contains("/from-away") && !sent.contains("secret"), "{sent}{}", stdout(&output));
}

#[test]
fn what_ends_a_run_is_told() {
    let server = Recorder::start();
    let imports =
        "import http from 'k6/http'; import exec from 'k6/execution'; import { sleep } from 'k6';\n";
    let run = |text: &str| {
        let output = server.run_text(&format!("{imports}{text}"));
        (
            code(&output),
            format!("{}{}", stdout(&output), stderr(&output)).replace('\n', " ").replace("  ", " "),
        )
    };
    let (status, shown) = run("export const options = { vus: 1, duration: '20s' };
export default () => { http.get(`${__ENV.BASE}/`); if (__ITER === 5) exec.test.abort('enough'); };");
    assert!(status == 1 && shown.contains("it.js: enough"), "{shown}");
    let (status, shown) = run("export const options = {
    vus: 1, duration: '20s', thresholds: { http_reqs: [{ threshold: 'count<3', abortOnFail: true }] },
};
export default () => { http.get(`${__ENV.BASE}/`); sleep(0.1); };");
    assert!(status == 1 && shown.contains("threshold count<3 of http_reqs"), "{shown}");
    let (status, shown) = run("export function setup() { throw new Error('no setup'); }
export default () => { http.get(`${__ENV.BASE}/`); };");
    assert!(status == 2 && shown.contains("no setup"), "{shown}");
    let (status, shown) = run("export const options = { vus: 1, duration: '20s' };
let n = 0;
export default () => { n += 1; http.get(n < 500 ? `${__ENV.BASE}/` : 'http://127.0.0.2:9/'); };");
    assert!(status == 1 && shown.contains("http://127.0.0.2:9 is not among"), "{shown}");
    // what sends nothing is judged by its own thresholds, if they are of something else than requests
    for (thresholds, wanted) in
        [("made: ['count==1']", 0), ("made: ['count==2']", 1), ("http_reqs: ['count<9']", 3), ("", 3)]
    {
        let (status, shown) = run(&format!(
            "import {{ Counter }} from 'k6/metrics'; const made = new Counter('made');
export const options = {{ iterations: 1, thresholds: {{ {thresholds} }} }};
export default () => {{ made.add(1); console.log('it ran', NaN); }};"
        ));
        assert!(status == wanted && shown.contains("it ran NaN"), "{thresholds}: {status} {shown}");
    }
}

#[test]
fn mistakes_are_refused_before_anything_is_sent() {
    let server = Recorder::start();
    for (text, words) in [
        ("export default function () { let x = ; }", "it.js:1"),
        ("import { browser } from 'k6/browser'; export default () => {};", "browser"),
        ("export default () => { throw new Error('early'); };", "before it sent a request"),
        (
            "import http from 'k6/http'; export default () => { http.get(`${__ENV.NONE}/a`); };",
            "\"undefined/a\", which is no URL",
        ),
        ("export const options = { vus: 'x', duration: '1s' }; export default () => {};", "vus"),
    ] {
        let output = server.run_text(text);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{text}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
    assert_eq!(server.requests(), "");
}

/// `setup` and `--once` have several requests under way, too.
#[test]
fn several_requests_are_under_way_wherever_a_script_runs() {
    let server = Recorder::start();
    let text = "import http from 'k6/http';
export const options = { iterations: 1 };
const batch = (name) => http.batch([1, 2, 3].map((nth) => `${__ENV.BASE}/together/3/${name}${nth}`));
export const setup = () => batch('s').map((res) => res.status);
export default (data) => { http.get(`${__ENV.BASE}/after?${data}&${batch('d').map((res) => res.status)}`); };
export const teardown = () => { batch('t'); };";
    let paths = |names: &[&str]| {
        let wave =
            |name: &str| (1..=3).map(|nth| format!("GET\t/together/3/{name}{nth}\t{{}}\t\n")).collect();
        names.iter().map(|name| wave(name)).collect::<Vec<String>>().concat()
    };
    let output = server.run_text(text);
    let wanted =
        format!("{}GET\t/after?200,200,200&200,200,200\t{{}}\t\n{}", paths(&["s", "d"]), paths(&["t"]));
    assert_eq!(server.requests(), wanted, "{}{}", stdout(&output), stderr(&output));
    server.forget();
    let output = server.run(&server.folder.path().join("it.js"), &["--once", "-v"]);
    let shown = stdout(&output);
    for path in ["/together/3/d1", "/together/3/d2", "/together/3/d3"] {
        assert!(shown.contains(path), "{path} in {shown}{}", stderr(&output));
    }
    assert_eq!((code(&output), shown.contains("4 requests: all good")), (0, true), "{shown}");
}

#[test]
fn a_check_counts_thresholds_and_an_output_of_k6_has_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let text = "import http from 'k6/http';
export const options = { thresholds: { http_req_duration: ['p(95)<500', 'p(99)<900'], http_req_failed: ['rate<0.01'] } };
export default function () { http.get('http://127.0.0.1:1/'); }";
    fs::write(folder.path().join("it.js"), text).unwrap();
    let checked = run(folder.path(), &["check", "it.js"]);
    assert!(stdout(&checked).contains(", 3 objectives"), "{}{}", stdout(&checked), stderr(&checked));
    let refused = run(folder.path(), &["run", "it.js", "--out", "json=all.json"]);
    let said = stderr(&refused);
    assert!(code(&refused) == 2 && said.contains("--out is the directory of the run here"), "{said}");
    assert!(!folder.path().join("json=all.json").exists());
    for (flags, words) in [
        (["--vus", "3"], "--users"),
        (["-u", "3"], "--users"),
        (["--iterations", "9"], "limits: {sessions: 10}"),
        (["-i", "9"], "iterations: 10"),
        (["--stage", "10s:5"], "load: phases"),
    ] {
        let refused = run(folder.path(), &["run", "it.js", flags[0], flags[1]]);
        let said = stderr(&refused).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code(&refused) == 2 && said.contains(words), "{flags:?}: {said}");
    }
}
