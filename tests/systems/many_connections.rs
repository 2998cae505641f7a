//! Thousands of connections, and what is said where there is no room for them.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use serde_json::Value;
use tidemark_truth::{Behaviour, Delay, Server};

const TIDEMARK: &str = env!("CARGO_BIN_EXE_tidemark");
const CONNECTIONS: u64 = 2_500;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// This process holds the server, so that it needs as many files as the driver.
fn room_for_the_server() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the hard limit");
    let files = limit.maximum.unwrap_or(u64::MAX);
    assert!(files > CONNECTIONS + 500, "the hard limit of open files is {files}: raise it for this test");
}

#[test]
fn thousands_of_connections_over_each_back_end() {
    room_for_the_server();
    for io in ["auto", "epoll", "portable"] {
        // Long enough that every user has begun before the first begins again.
        let delays = vec![Delay::Fixed(Duration::from_secs(1))];
        let server = Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap();
        let url = format!("http://{}/", server.address());
        let (connections, requests) = (CONNECTIONS.to_string(), (2 * CONNECTIONS).to_string());
        let output = Command::new(TIDEMARK)
            .args(["hit", &url, "-c", &connections, "-n", &requests, "--json", "-q", "--io", io])
            .output()
            .unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{io}: {out}{err}");
        let summary: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(summary["requests"], 2 * CONNECTIONS, "{io}: {summary}");
        assert!(summary["errors"].as_object().unwrap().is_empty(), "{io}: {}", summary["errors"]);
        let truth = server.stop().unwrap();
        assert_eq!(truth.answered, 2 * CONNECTIONS);
        // One more may have looked whether anybody is there. Where the machine stands still, some have been answered, and
        // their connections serve again, before the last have begun.
        assert!((CONNECTIONS / 2..=CONNECTIONS + 1).contains(&truth.connections), "{}", truth.connections);
    }
}

fn hit(command: &mut Command, address: SocketAddr, connections: &str) -> Output {
    let url = format!("http://{address}/");
    command.args(["hit", &url, "-c", connections, "-n", "1000000", "-q"]).output().unwrap()
}

/// Refused with the bound's name and a way out, and nobody was driven.
fn is_refused(output: &Output, named: &[&str]) {
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(named.iter().any(|name| err.contains(name)), "{err}");
    assert!(err.contains("100000 users"), "{err}");
}

/// Only IPv4's loopback has more than one address to connect from.
#[test]
fn more_connections_than_ports_are_refused() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return eprintln!("this machine has no IPv6; nothing was tested");
    };
    let address = listener.local_addr().unwrap();
    let output = hit(&mut Command::new(TIDEMARK), address, "100000");
    is_refused(&output, &["ip_local_port_range", "ulimit -n"]);
}

#[test]
fn more_connections_than_files_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Root may go beyond its hard limit, unless it gives the right to away.
    let mut command = if geteuid().is_root() {
        let setpriv = Path::new("/usr/bin/setpriv");
        if !setpriv.exists() {
            return eprintln!("root without setpriv (util-linux); nothing was tested");
        }
        let mut command = Command::new(setpriv);
        command.args(["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    command.args(["-c", "ulimit -n 500; exec \"$0\" \"$@\"", TIDEMARK]);
    let output = hit(&mut command, address, "100000");
    is_refused(&output, &["ulimit -n"]);
}
