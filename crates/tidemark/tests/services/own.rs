//! Systems of one's own: real frameworks that a scenario starts, waits for and stops.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use super::{assert_all_good, free_port, measured, nginx, python, services, shop};
use crate::program::{code, run, stderr};

/// Writes a scenario with this system; its one session asks for `path`.
fn scenario(folder: &Path, system: &str, path: &str) {
    // whoever is asked for a service says so here where it is not installed
    assert!(shop().url.starts_with("http://"));
    let text = format!(
        "system:\n{system}\nsessions: {{a: {{steps: [{{GET: {path}, check: {{status: 200}}}}]}}}}\n\
         load: {{users: 2, hold: 1s}}\n"
    );
    let text =
        text.replace("BIN", python().to_str().unwrap()).replace("SERVICES", services().to_str().unwrap());
    fs::write(folder.join("s.yaml"), text).unwrap();
}

/// Runs it: every request is answered well, and nobody listens at `port` afterwards.
fn runs(folder: &Path, port: Option<u16>) -> Value {
    let summary = measured(folder, &["run", "s.yaml"]);
    assert_all_good(&summary);
    if let Some(port) = port {
        TcpListener::bind(("127.0.0.1", port)).unwrap();
    }
    summary
}

fn refused(folder: &Path, says: &[&str]) {
    let output = run(folder, &["run", "s.yaml"]);
    let told = stderr(&output);
    assert_eq!(code(&output), 3, "{told}");
    assert!(says.iter().all(|said| told.contains(said)), "{says:?}: {told}");
}

#[test]
fn fastapi_is_started_ready_at_a_path_by_its_log_or_once_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let command = "  command: BIN/uvicorn shop:app --port {port}\n  cwd: SERVICES\n";
    for ready in [
        "  ready: {path: /health, status: 200}",
        "  ready: {log: Uvicorn running on}",
        "  ready within: 30s",
        "  env: {PYTHONDONTWRITEBYTECODE: '1'}",
    ] {
        scenario(folder.path(), &format!("{command}{ready}"), "/items/7");
        let summary = runs(folder.path(), None);
        assert!(
            super::of(&summary, "processes", "name", "system")["cpu_s"].as_f64() > Some(0.0),
            "{summary}"
        );
    }
}

#[test]
fn express_is_told_its_port_by_its_environment_and_what_stands_around_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("inner")).unwrap();
    scenario(
        folder.path(),
        "  command: node 'SERVICES/account.js'
  env: {PORT: '{port}'}
  cwd: inner
  ready: {log: 'Accounts at http://127.0.0.1:{port}'}
  before: ['sh -c \"echo before > order\"']
  after: ['sh -c \"echo after >> order\"']",
        "/",
    );
    runs(folder.path(), None);
    assert_eq!(fs::read_to_string(folder.path().join("inner/order")).unwrap(), "before\nafter\n");
}

#[test]
fn a_service_of_several_processes_at_a_port_of_its_own_is_gone_afterwards() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let gunicorn = format!(
        "  command: BIN/gunicorn --bind 127.0.0.1:{port} --workers 2 --threads 2 --no-control-socket httpbin:app
  port: {port}
  ready: {{path: /status/204, status: 204}}"
    );
    scenario(folder.path(), &gunicorn, "/get");
    runs(folder.path(), Some(port));
    // nginx has a master and a worker
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    assert!(nginx().url.starts_with("http://"));
    let conf = format!(
        "daemon off;\npid {0}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{ access_log off;
         client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 hello; }} }} }}\n",
        folder.path().display()
    );
    fs::write(folder.path().join("nginx.conf"), conf).unwrap();
    let system = format!(
        "  command: sh -c 'PATH=$PATH:/usr/sbin; exec nginx -e stderr -c {}/nginx.conf'\n  port: {port}",
        folder.path().display()
    );
    scenario(folder.path(), &system, "/");
    runs(folder.path(), Some(port));
}

#[test]
fn what_does_not_start_is_told_at_once_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "  command: BIN/uvicorn shop:nothing --port {port}\n  cwd: SERVICES", "/");
    refused(folder.path(), &["ended before it was ready (exit status 3)", "\"nothing\" not found in module"]);
    fs::write(folder.path().join("broken.js"), "require('no-such-package')").unwrap();
    scenario(folder.path(), "  command: node broken.js {port}\n  cwd: .", "/");
    refused(folder.path(), &["ended before it was ready", "Cannot find module 'no-such-package'"]);
    // it listens, and never says that it is well
    scenario(
        folder.path(),
        "  command: BIN/uvicorn shop:app --port {port}\n  cwd: SERVICES\n  ready: {path: /me, status: 200}\n  ready within: 8s",
        "/",
    );
    refused(folder.path(), &["not ready within 8s", "401"]);
    // a port that somebody has already
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let system = format!("  command: BIN/uvicorn shop:app --port {port}\n  cwd: SERVICES\n  port: {port}");
    scenario(folder.path(), &system, "/");
    refused(folder.path(), &[&format!("cannot listen on port {port}"), "Address already in use"]);
}
