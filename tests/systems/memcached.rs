//! Commands to a memcached that runs: needs `memcached` on the path.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Killed, assert_refused, free_port, report, run, tidemark_in, wait_until};

/// A memcached of this test, killed when dropped.
struct Memcached {
    _child: Killed,
    port: u16,
}

impl Memcached {
    /// With these settings; it is waited for at the unix socket that they name, else at its port.
    fn start(settings: &[&str]) -> Memcached {
        let port = free_port();
        let port_text = port.to_string();
        let mut command = Command::new("memcached");
        if rustix::process::getuid().is_root() {
            command.args(["-u", "root"]);
        }
        let child = command
            .args(["-l", "127.0.0.1", "-p", &port_text, "-U", "0", "-t", "2"])
            .args(settings)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached starts; Debian: apt-get install memcached");
        let memcached = Memcached { _child: Killed(child), port };
        wait_until("memcached is ready", || {
            match settings.iter().find(|setting| setting.ends_with(".sock")) {
                Some(socket) => Path::new(socket).exists(),
                None => TcpStream::connect(("127.0.0.1", port)).is_ok(),
            }
        });
        memcached
    }

    /// What it says to some lines, on a connection that it closes.
    fn says(&self, lines: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.write_all(format!("{lines}\r\nquit\r\n").as_bytes()).expect("written");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("read");
        said
    }
}

const SESSION: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${count(n)}"}
      - set: {value: "v-${k}\r\n\"-ü"}
      - memcached: [set, "k:${k}", "${value}"]
        label: Set
        flags: "${k % 7}"
        expires: 100
        check: {status: 200, body: STORED}
      - memcached: [gets, "k:${k}"]
        label: Get
        extract: {got: body, flags: {header: flags}, unique: {header: cas}}
        check: {that: ["got == value", "flags == k % 7"]}
      - memcached: [cas, "k:${k}", new, "${unique}"]
        label: Cas
      - memcached: [cas, "k:${k}", newer, "${unique}"]
        label: Late
        check: {status: 409, body: EXISTS}
      - memcached: [get, "none:${k}", "k:${k}", "none"]
        label: Three
        extract: {second: "$[1]"}
        check: {status: 200, that: "second == 'new'"}
      - memcached: [get, "none:${k}"]
        label: Miss
        check: {status: 204}
      - memcached: [add, "k:${k}", x]
        check: {status: 409, body: NOT_STORED}
      - memcached: [append, "k:${k}", "${value}"]
      - memcached: [gat, 50, "k:${k}"]
        check: {body: "new${value}"}
      - memcached: [set, "n:${k}", 41]
      - memcached: [incr, "n:${k}", 2]
        check: {body: 43}
      - memcached: [touch, "n:${k}", 60]
        check: {body: TOUCHED}
      - memcached: [delete, "n:${k}"]
        check: {body: DELETED}
      - memcached: [delete, "n:${k}"]
        check: {status: 204}
      - memcached: [ms, "m:${k}", "${value}", T90, "F${k % 5}"]
        label: Meta set
        check: {body: HD}
      - memcached: [mg, "m:${k}", v, f, t]
        label: Meta get
        extract: {meta: body, number: {header: f}, seconds: {header: t}}
        check: {that: ["meta == value", "number == k % 5", "seconds > 0"]}
      - memcached: [md, "c:${k}"]
        check: {status: [200, 204]}
      - memcached: [ma, "c:${k}", N0, J5, v]
        check: {body: 5}
      - memcached: [md, "m:${k}"]
      - memcached: [mg, "m:${k}", v]
        check: {status: 204}
      - memcached: [mn]
        check: {body: MN}
      - memcached: [incr, hits, 1]
"#;

/// On plain TCP and a unix socket, one command at a time and pipelined.
#[test]
fn what_is_set_is_read_back_over_every_way() {
    let memcached = Memcached::start(&[]);
    memcached.says("set hits 0 0 1\r\n0");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let socket = folder.path().join("m.sock");
    let socket = socket.to_str().expect("text");
    let over_socket = Memcached::start(&["-s", socket]);
    let port = memcached.port;
    for (system, limits) in [
        (format!("url: memcached://127.0.0.1:{port}"), "connections: 4"),
        (format!("url: memcached://127.0.0.1:{port}"), "connections: 2, pipeline: 8"),
        (format!("url: memcached://localhost, connect to: \"unix:{socket}\""), "connections: 2, pipeline: 4"),
    ] {
        let session = match system.contains("unix") {
            true => SESSION.replace("      - memcached: [incr, hits, 1]\n", ""),
            false => SESSION.to_owned(),
        };
        let text = format!(
            "system: {{{system}}}{session}load: {{users: 16, hold: 60s}}\nlimits: {{{limits}, sessions: 300}}\n\
             objectives: [errors = 0]\n"
        );
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{system}: {result:#}{told}");
        assert!(!result["notes"].to_string().contains("could not be asked"), "{system}: {result:#}");
    }
    let said = memcached.says("get hits");
    assert!(said.contains("\r\n600\r\n"), "{said}");
    drop(over_socket);
}

/// Where the installed memcached has TLS.
#[test]
fn it_is_driven_over_tls() {
    let help = Command::new("memcached").arg("-h").output().expect("memcached runs");
    if !String::from_utf8_lossy(&help.stdout).contains("--enable-ssl") {
        return eprintln!("skipped: this memcached has no TLS");
    }
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let files = format!("ssl_chain_cert={},ssl_key={}", certificate.display(), key.display());
    let memcached = Memcached::start(&["-Z", "-o", &files]);
    let text = format!(
        "system: {{url: memcacheds://localhost:{}, tls: {{ca: {}}}}}\nsessions: {{a: {{steps: [{{memcached: [set, k, v]}}, \
         {{memcached: [get, k], check: {{body: v}}}}]}}}}\nload: {{users: 4, hold: 2s}}\nlimits: {{pipeline: 2}}\n\
         objectives: [errors = 0]\n",
        memcached.port,
        certificate.display()
    );
    let (output, result) = run(folder.path(), &text);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result["verdict"]["status"], "pass", "{result:#}{told}");
    let figures = &result["stores_figures"][0]["figures"];
    assert!(figures["curr_connections"]["max"].as_f64() > Some(4.0), "{result:#}");
}

#[test]
fn misses_refusals_errors_and_what_cannot_be_said_are_told_apart() {
    let memcached = Memcached::start(&["-I", "1m"]);
    memcached.says("set text 0 0 1\r\nx");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let outcome = |steps: &str| {
        let text = format!(
            "system: {{url: \"memcached://127.0.0.1:{}\"}}\nsessions: {{a: {{steps: [{steps}]}}}}\n\
             load: {{users: 2, hold: 60s}}\nlimits: {{sessions: 20}}\n",
            memcached.port
        );
        let (_, result) = run(folder.path(), &text);
        (result["errors"].clone(), report(folder.path()))
    };
    assert_eq!(outcome("{memcached: [get, none]}").0, serde_json::json!({}));
    let (errors, told) = outcome("{memcached: [add, text, y]}");
    assert_eq!(errors, serde_json::json!({"status": 20}));
    assert!(told.contains("not stored: NOT_STORED"), "{told}");
    let (errors, told) = outcome("{memcached: [incr, text, 1]}");
    assert_eq!(errors, serde_json::json!({"status": 20}));
    assert!(told.contains("an error: CLIENT_ERROR cannot increment"), "{told}");
    let (errors, told) = outcome("{set: {k: 'a b'}}, {memcached: [get, 'k:${k}']}, {memcached: [mn]}");
    assert_eq!(errors, serde_json::json!({"variable": 20}));
    assert!(told.contains("the key of get: a key has 1 to 250 bytes"), "{told}");
    let (errors, _) = outcome("{memcached: [get, 'k:${late}']}, {set: {late: 1}}, {memcached: [mn]}");
    assert_eq!(errors, serde_json::json!({"variable": 20}));
    // memcached would refuse the line and carry the value out
    memcached.says("set kept 0 0 1\r\nx");
    for flags in ["-1", "99999999999999999999"] {
        let (errors, told) = outcome(&format!(
            "{{set: {{f: '{flags}'}}}}, {{memcached: [set, k, flush_all], flags: '${{f}}'}}, {{memcached: [get, kept]}}"
        ));
        assert_eq!(errors, serde_json::json!({"variable": 20}), "{told}");
        assert!(told.contains("a number of set: this is not a whole number from 0 on"), "{told}");
    }
    // more flags than it takes: here, too, and then no further answer of the connection is believed
    let flags: Vec<String> = (0..30).map(|n| format!("O{n}")).collect();
    let flags = flags.join(", ");
    let (errors, told) = outcome(&format!(
        "{{memcached: [ms, k, version, {flags}]}}, {{memcached: [mn], check: {{body: MN}}}}"
    ));
    assert_eq!(errors, serde_json::json!({"status": 20}), "{told}");
    assert!(memcached.says("get kept").contains("VALUE"), "nothing was flushed");
    // a write that found nothing to write to is none
    let (errors, told) = outcome("{memcached: [cas, none, v, 5]}, {memcached: [ms, none, v, C5]}");
    assert_eq!(errors, serde_json::json!({"status": 40}), "{told}");
    assert!(told.contains("not stored: NOT_FOUND") && told.contains("not stored: NF"), "{told}");
    let large = format!("{{memcached: [set, large, '{}']}}", "x".repeat((1 << 20) + 1));
    let (errors, told) = outcome(&large);
    assert_eq!(errors, serde_json::json!({"status": 20}));
    assert!(told.contains("SERVER_ERROR object too large"), "{told}");
}

#[test]
fn mistakes_are_told_when_a_scenario_is_checked() {
    let system = "{url: memcached://127.0.0.1}";
    for (system, step, expected) in [
        (system, "{memcached: [fetch, k]}", "there is get, gets"),
        (system, "{memcached: [get]}", "something is missing here: [get, KEY, …]"),
        (system, "{memcached: [get, 'a b']}", "1 to 250 bytes"),
        (system, "{memcached: [set, k, v, noreply]}", "leave out `noreply`"),
        (
            system,
            "{memcached: [set, k, 1, v]}",
            "one word too many: [set, KEY, VALUE]; lengths are not written",
        ),
        (system, "{memcached: [mg, k, v, q]}", "the flag q leaves replies out"),
        (system, "{memcached: [quit]}", "has no reply"),
        (system, "{memcached: [incr, k, one]}", "this is a whole number"),
        (system, "{memcached: [get, k], expires: 5}", "belongs to set, add"),
        (system, "{memcached: [get, k], extract: {a: {cookie: b}}}", "has no cookies"),
        (system, "{GET: /}", "the server is memcached"),
        ("{url: 'http://127.0.0.1'}", "{memcached: [get, k]}", "begins with memcached:// or memcacheds://"),
        ("{url: 'redis://127.0.0.1'}", "{memcached: [get, k]}", "the server is Redis"),
        ("{url: 'memcached://a:b@127.0.0.1'}", "{memcached: [mn]}", "authentication is not spoken"),
    ] {
        assert_refused(system, "", step, expected);
    }
}

/// Two servers, on the ring and by slots; each value is read from where it was written.
#[test]
fn keys_are_shared_among_servers() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (sharding, limits) in [("", "connections: 4"), ("?sharding=slots", "connections: 2, pipeline: 8")] {
        let servers = [Memcached::start(&[]), Memcached::start(&[])];
        let url =
            format!("memcached://127.0.0.1:{},127.0.0.1:{}/{sharding}", servers[0].port, servers[1].port);
        let text = format!(
            "system: {{url: \"{url}\"}}\nsessions:\n  a:\n    steps:\n      - set: {{k: \"${{count(n)}}\"}}\n      \
             - memcached: [set, \"k:${{k}}\", \"v${{k}}\"]\n      - memcached: [get, \"k:${{k}}\"]\n        \
             check: {{body: \"v${{k}}\"}}\n\
             load: {{users: 8, hold: 60s}}\nlimits: {{{limits}, sessions: 1000}}\nobjectives: [errors = 0]\n"
        );
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{url}: {result:#}{told}");
        let counts = servers.iter().map(|server| {
            let said = server.says("stats");
            let line = said.lines().find_map(|line| line.strip_prefix("STAT curr_items "));
            line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count")
        });
        let counts: Vec<u64> = counts.collect();
        assert_eq!(counts.iter().sum::<u64>(), 1000, "{counts:?}");
        assert!(counts.iter().all(|count| *count > 200), "each has its part: {counts:?}");
    }
}

/// Run and verify again; then something is taken away behind its back.
#[test]
fn what_was_acknowledged_is_read_back_also_later() {
    let memcached = Memcached::start(&["-m", "64"]);
    memcached.says("set other 0 0 1\r\nx");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        r#"
system: {{url: "memcached://127.0.0.1:{}"}}
sessions:
  a:
    steps:
      - set: {{k: "${{count(n)}}"}}
      - memcached: [set, "note:${{k}}", "${{note}}"]
        ledger: {{content: "note ${{entry}}|${{check}}|", as: note}}
load: {{users: 16, hold: 60s}}
limits: {{connections: 2, pipeline: 8, sessions: 2000}}
verify: {{store: memcached, keys: "note:*"}}
objectives: [lost = 0]
"#,
        memcached.port
    );
    fs::write(folder.path().join("s.yaml"), text).expect("the scenario is written");
    let tidemark = |arguments: &[&str]| tidemark_in(folder.path(), arguments);
    let (status, told) = tidemark(&["run", "s.yaml", "--out", "run"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("0 lost of 2,000 acknowledged"), "{told}");
    let (status, told) = tidemark(&["verify", "run"]);
    assert_eq!(status, Some(0), "{told}");
    let said = memcached.says("delete note:7\r\ndelete note:8\r\nset note:9 0 0 7\r\nchanged");
    assert_eq!(said.matches("DELETED").count(), 2, "{said}");
    let (status, told) = tidemark(&["verify", "run"]);
    assert!(status == Some(1) && told.contains("3 lost"), "{status:?} {told}");
}
