//! Systems of one's own: real frameworks that a scenario starts, waits for and stops.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

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
fn runs(folder: &Path, port: u16) {
    assert_all_good(&measured(folder, &["run", "s.yaml"]));
    TcpListener::bind(("127.0.0.1", port)).unwrap();
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
    runs(folder.path(), port);
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
    runs(folder.path(), port);
}

#[test]
fn a_service_that_listens_and_is_never_well_is_told_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let system = "  command: BIN/uvicorn shop:app --port {port}\n  cwd: SERVICES\n  ready: {path: /me, status: 200}\n  ready within: 8s";
    scenario(folder.path(), system, "/");
    let output = run(folder.path(), &["run", "s.yaml"]);
    let told = stderr(&output);
    assert!(code(&output) == 3 && told.contains("not ready within 8s") && told.contains("401"), "{told}");
}
