//! Against grpc-go: `tests/services/grpc-go` serves the calls of gRPC's interoperability cases. It is built with Go, and where
//! that or its modules cannot be had these tests fail and say so.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::grpc::interoperability;
use super::{loaded, services};

/// A server; it ends when this is dropped.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
}

impl Server {
    /// One whose connections live for so long.
    fn start(max_age: &str) -> Server {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grpc-go");
        let program = target.join("server");
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(services().join("grpc-go"))
            // modules stay with what is built; no other version of Go is fetched
            .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", "-modcacherw")])
            .env("GOPATH", target.join("go"))
            .output()
            .expect("there is no go (Debian: apt-get install golang-go)");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let mut child = Command::new(program)
            .args(["-max-age", max_age])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut address).expect("where it listens");
        Server { child, address: address.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs Go: make test-long"]
fn the_cases_of_interoperability_pass_with_grpc_go() {
    interoperability(&Server::start("0").address);
}

#[test]
#[ignore = "needs Go: make test-long"]
fn connections_that_grpc_go_lets_live_for_a_while_fail_no_call() {
    let server = Server::start("200ms");
    let summary = loaded(&format!(
        r#"
system: {{url: "grpc://{}", protos: '{}'}}
sessions:
  short: {{steps: [{{grpc: grpc.testing.TestService/EmptyCall}}]}}
  long:
    steps:
      - grpc: grpc.testing.TestService/StreamingOutputCall
        message: {{response_parameters: [{{size: 1}}, {{size: 9, interval_us: 300000}}]}}
        check: {{json: {{"$[1].payload.body": AAAAAAAAAAAA}}}}
load: {{users: 20, hold: 4s}}
limits: {{connections: 4, streams: 5}}
"#,
        server.address,
        services().join("interop.proto").display(),
    ));
    // calls that waited for a new connection
    let connect = &summary["parts"]["connect"];
    assert!(connect["count"].as_u64() > Some(30), "{connect}");
}
