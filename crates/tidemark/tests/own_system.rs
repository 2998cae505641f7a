//! Systems of one's own: real programs, started by a scenario.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::program::{children, code, is_alive, read_json, run, send, stderr, stdout, tidemark, wait_until};
use rustix::process::Signal;

const LOAD: &str = "sessions: {a: {steps: [{GET: /index.html}]}}\nload: {users: 2, hold: 1s}\n";

/// Writes `own.yaml` with this system, and a page to be served.
fn scenario(folder: &Path, system: &str) {
    fs::create_dir_all(folder.join("pages")).unwrap();
    fs::write(folder.join("pages/index.html"), "hello").unwrap();
    fs::write(folder.join("own.yaml"), format!("system:\n{system}\n{LOAD}")).unwrap();
}

fn summary(folder: &Path, scenario: &str) -> Value {
    let output = run(folder, &["run", scenario, "--json", "--out", "out"]);
    let text = stdout(&output);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

fn refused(folder: &Path, status: i32, says: &[&str]) {
    let output = run(folder, &["run", "own.yaml", "--out", "out"]);
    let told = stderr(&output);
    assert_eq!(code(&output), status, "{told}");
    assert!(says.iter().all(|said| told.contains(said)), "{says:?}: {told}");
    fs::remove_dir_all(folder.join("out")).ok();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn pythons_server_is_driven_from_a_folder_of_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    scenario(
        &inner,
        "  command: python3 -m http.server {port} --bind 127.0.0.1
  cwd: pages
  before: [\"sh -c 'echo made > made.html'\"]
  after: [\"sh -c 'echo over >> made.html'\"]",
    );
    // the folder is beside the scenario, wherever tidemark is
    let summary = summary(folder.path(), "inner/own.yaml");
    assert!(summary["statuses"]["200"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["statuses"]["404"].is_null(), "{summary}");
    assert_eq!(fs::read_to_string(inner.join("pages/made.html")).unwrap(), "made\nover\n");
}

#[test]
fn a_program_is_told_its_port_by_its_environment_and_says_when_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let program = "const http = require('http');
setTimeout(() => http.createServer((_, answer) => answer.end(process.env.WORD))
  .listen(+process.env.PORT, '127.0.0.1', () => console.log('Listening on', process.env.PORT)), 300);
";
    fs::write(folder.path().join("server.js"), program).unwrap();
    scenario(
        folder.path(),
        "  command: node server.js
  env: {PORT: '{port}', WORD: good}
  cwd: .
  ready: {log: 'Listening on {port}'}",
    );
    let load =
        "sessions: {a: {steps: [{GET: /, check: {body: {equals: good}}}]}}\nload: {users: 1, hold: 1s}\n";
    let text = fs::read_to_string(folder.path().join("own.yaml")).unwrap().replace(LOAD, load);
    fs::write(folder.path().join("own.yaml"), text).unwrap();
    let summary = summary(folder.path(), "own.yaml");
    assert!(summary["requests"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["errors"].as_object().is_none_or(|errors| errors.is_empty()), "{summary}");
}

#[test]
fn readiness_may_be_another_status_and_the_port_a_fixed_one() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let system = format!(
        "  command: python3 -m http.server {port} --bind 127.0.0.1
  cwd: pages
  port: {port}
  ready: {{path: /nothing, status: 4xx}}"
    );
    scenario(folder.path(), &system);
    assert!(summary(folder.path(), "own.yaml")["statuses"]["200"].as_u64().unwrap() > 0);
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    // nobody is left there
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    refused(
        folder.path(),
        3,
        &[&format!("cannot listen on port {port}"), "Address already in use", "another `port`"],
    );
    drop(listener);
}

#[test]
fn what_does_not_start_is_told_at_once_with_its_last_lines() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "  command: python3 -c 'raise SystemExit(\"no {port} for me\")'");
    refused(folder.path(), 3, &["ended before it was ready (exit status 1)", "for me"]);
    scenario(folder.path(), "  command: no-such-program {port}");
    refused(folder.path(), 3, &["cannot start the system: `no-such-program`"]);
    scenario(folder.path(), "  command: sh -c 'exec sleep 600' {port}\n  ready within: 300ms");
    refused(folder.path(), 3, &["not ready within 300ms: nobody listens at 127.0.0.1:", "`{port}`"]);
    let log =
        "  command: sh -c 'echo hello; exec sleep 600' {port}\n  ready: {log: bye}\n  ready within: 300ms";
    scenario(folder.path(), log);
    refused(folder.path(), 3, &["no line of its output has \"bye\" in it", "python3 -u", "  | hello"]);
}

#[test]
fn what_ends_under_load_is_told_with_its_last_lines() {
    let folder = tempfile::tempdir().unwrap();
    let program = "import http.server, os, sys, threading, time

class Handler(http.server.SimpleHTTPRequestHandler):
    is_hit = False

    def log_message(self, *words):
        pass

    def do_GET(self):
        if not Handler.is_hit and self.path == '/index.html':
            Handler.is_hit = True
            threading.Thread(target=end, daemon=True).start()
        super().do_GET()

def end():
    time.sleep(1)
    print('the end is near; password=hunter22', flush=True)
    os._exit(7)

http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";
    let system = "  command: python3 ../server.py {port}\n  cwd: pages\n  ready: {path: /}";
    scenario(folder.path(), system);
    fs::write(folder.path().join("server.py"), program).unwrap();
    let text = fs::read_to_string(folder.path().join("own.yaml")).unwrap().replace("hold: 1s", "hold: 60s");
    fs::write(folder.path().join("own.yaml"), text).unwrap();
    let output = run(folder.path(), &["run", "own.yaml", "--out", "out"]);
    let told = stdout(&output);
    assert_ne!(code(&output), 0, "{told}");
    let ended = told.find("the system ended by itself: exit status 7 after ");
    let quoted = told.find("| the end is near; password=***\n");
    assert!(ended.zip(quoted).is_some_and(|(ended, quoted)| ended < quoted), "{told}{}", stderr(&output));
    assert!(!told.contains("hunter22"), "{told}");
    let manifest = read_json(folder.path().join("out/run.json"));
    let reasons = manifest["summary"]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("  | the end is near; password=***\""), "{reasons}");
}

#[test]
fn commands_before_must_end_well_and_in_time_and_those_after_are_run_whatever_comes() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        "  command: python3 -m http.server {port} --bind 127.0.0.1\n  cwd: .\n  after: [touch cleared]";
    let cleared = folder.path().join("cleared");
    scenario(
        folder.path(),
        &format!("{server}\n  before: ['true', \"sh -c 'echo no room; exit 4'\", touch never]"),
    );
    refused(folder.path(), 3, &["command 2 of `before` (`sh`) failed (exit status 4)", "  | no room"]);
    assert!(cleared.exists() && !folder.path().join("never").exists());
    fs::remove_file(&cleared).unwrap();
    scenario(folder.path(), &format!("{server}\n  before: [{{command: sleep 600, within: 200ms}}]"));
    refused(folder.path(), 3, &["command 1 of `before` (`sleep`) was not over within 200ms", "`within`"]);
    assert!(cleared.exists());
    let server = server.replace("touch cleared", "'false'").replace("cwd: .", "cwd: pages");
    scenario(folder.path(), &server);
    let summary = summary(folder.path(), "own.yaml");
    let notes = summary["notes"].to_string();
    assert!(notes.contains("command 1 of `after` (`false`) failed (exit status 1)"), "{summary}");
}

#[test]
fn nothing_is_left_of_a_command_when_tidemark_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "  command: python3 -m http.server {port} --bind 127.0.0.1\n  cwd: pages");
    let text = fs::read_to_string(folder.path().join("own.yaml")).unwrap().replace("hold: 1s", "hold: 600s");
    fs::write(folder.path().join("own.yaml"), text).unwrap();
    let mut running =
        tidemark(folder.path(), &["run", "own.yaml", "--quiet", "--out", "out"]).spawn().unwrap();
    let is_python = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|words| words.contains("http.server"))
    };
    let mut server = 0;
    wait_until("the server is there", || {
        let found = children(running.id()).into_iter().find(is_python);
        server = found.unwrap_or(0);
        found.is_some()
    });
    let log = folder.path().join("out/logs/python3.log");
    wait_until("the load is on", || fs::read_to_string(&log).is_ok_and(|log| log.contains("GET ")));
    send(running.id(), Signal::KILL);
    running.wait().unwrap();
    wait_until("the server is gone", || !is_alive(server));
}

#[test]
fn the_example_of_the_documentation_works() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/pages.yaml");
    fs::copy(example, folder.path().join("pages.yaml")).unwrap();
    let output = run(folder.path(), &["run", "pages.yaml", "--once"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("  1. Page: status 200 in "), "{}", stdout(&output));
    assert!(!folder.path().join("pages").exists(), "it is cleared away");
}
