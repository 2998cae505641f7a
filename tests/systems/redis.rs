//! Commands to a Redis that runs: needs `redis-server` on the path.

mod cluster;
mod figures;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{Killed, assert_refused, free_port, run, tidemark, tidemark_in, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// The file of a server's certificate.
const CERTIFICATE: &str = "certificate.pem";

/// A Redis of this test, killed when dropped.
struct Redis {
    child: Killed,
    port: u16,
    folder: tempfile::TempDir,
}

impl Redis {
    /// With these settings beside those that keep it in its own folder.
    fn start(settings: &[&str]) -> Redis {
        let port = free_port();
        Redis::start_at(port, settings)
    }

    fn start_at(port: u16, settings: &[&str]) -> Redis {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let port_text = port.to_string();
        let child = Command::new("redis-server")
            .current_dir(&folder)
            .args(["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--unixsocket", "redis.sock"])
            .args(settings)
            .stdin(Stdio::null())
            .stdout(fs::File::create(folder.path().join("log")).expect("a log"))
            .spawn()
            .expect("redis-server starts; Debian: apt-get install redis-server");
        let redis = Redis { child: Killed(child), port, folder };
        wait_until("redis-server is ready", || redis.socket().exists());
        redis
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// What it says to some lines, on a connection that it closes.
    fn says(&self, lines: &str) -> String {
        says(self.port, lines)
    }
}

/// What a server of this machine says to some lines, on a connection that it closes.
fn says(port: u16, lines: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).expect("written");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("read");
    said
}

/// One that speaks TLS, the port for that, and a folder with the certificate that is to be trusted.
fn over_tls() -> (Redis, u16, tempfile::TempDir) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (certificate, key) = (folder.path().join(CERTIFICATE), folder.path().join("key.pem"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let port = free_port();
    let file = |path: &Path| path.to_str().expect("text").to_owned();
    let (port_text, certificate_file, key_file) = (port.to_string(), file(&certificate), file(&key));
    let redis = Redis::start(&[
        "--tls-port",
        &port_text,
        "--tls-cert-file",
        &certificate_file,
        "--tls-key-file",
        &key_file,
        "--tls-ca-cert-file",
        &certificate_file,
        "--tls-auth-clients",
        "no",
    ]);
    (redis, port, folder)
}

const SESSION: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${count(n)}"}
      - set: {value: "v-${k}\r\n-ü"}
      - redis: [SET, "k:${k}", "${value}"]
        label: Set
        check: {status: 200, body: OK}
      - redis: [GET, "k:${k}"]
        label: Get
        extract: {got: body}
        check: {that: "got == value"}
      - redis: [GET, "none:${k}"]
        label: Miss
        check: {status: 204}
      - redis: [INCRBY, hits, 2]
        label: Count
        extract: {hits: body}
        check: {that: "hits >= 2"}
      - redis: [MGET, "k:${k}", nothing]
        label: Both
        extract: {first: "$[0]"}
        check: {that: "first == value"}
"#;

/// On plain TCP and the unix socket, one command at a time and pipelined, in both versions of the protocol.
#[test]
fn what_is_set_is_read_back_over_every_way() {
    let redis = Redis::start(&[]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let socket = redis.socket();
    let (port, socket) = (redis.port, socket.display());
    let (tls, secure, certificates) = over_tls();
    let authority = certificates.path().join(CERTIFICATE);
    let tls_system = format!("url: rediss://localhost:{secure}, tls: {{ca: {}}}", authority.display());
    for (system, limits) in [
        (format!("url: redis://127.0.0.1:{port}"), "connections: 4"),
        (format!("url: \"redis://127.0.0.1:{port}/3?protocol=3\""), "connections: 4"),
        (format!("url: \"redis://127.0.0.1:{port}/?protocol=3\""), "connections: 2, pipeline: 8"),
        (format!("url: redis://localhost, connect to: \"unix:{socket}\""), "connections: 2, pipeline: 4"),
        (tls_system, "connections: 2, pipeline: 2"),
    ] {
        let text = format!(
            "system: {{{system}}}{SESSION}load: {{users: 16, hold: 60s}}\nlimits: {{{limits}, sessions: 300}}\n\
             objectives: [errors = 0]\n"
        );
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{system}: {result:#}{told}");
    }
    let said = redis.says("GET hits");
    // the second way had a database of its own, and the last another server
    assert!(said.contains("\r\n1800\r\n"), "{said}");
    drop(tls);
    assert!(redis.says("SELECT 3\r\nGET hits").contains("\r\n600\r\n"));
}

/// Waits for the load of a run, whose directory was not there before.
fn load_is_on(run_dir: &Path) {
    wait_until("the load comes", || {
        fs::read_to_string(run_dir.join("events.jsonl")).is_ok_and(|told| told.contains("\"phase\""))
    });
}

#[test]
fn errors_time_outs_and_a_server_that_dies_are_told_apart() {
    let mut redis = Redis::start(&[]);
    redis.says("LPUSH list a");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |steps: &str, limits: &str| {
        format!(
            "system: {{url: \"redis://127.0.0.1:{}\"}}\nsessions: {{a: {{steps: [{steps}]}}}}\n\
             load: {{users: 2, hold: 60s}}\nlimits: {{{limits}}}\n",
            redis.port
        )
    };
    let wrong = scenario("{redis: [GET, list]}", "sessions: 20");
    let (output, result) = run(folder.path(), &wrong);
    assert_eq!((&result["errors"], output.status.code()), (&serde_json::json!({"status": 20}), Some(1)));
    let told = String::from_utf8_lossy(&output.stderr);
    let report = tidemark().current_dir(folder.path()).args(["run", "s.yaml", "--out", "again"]).output();
    let report = String::from_utf8_lossy(&report.expect("it runs").stdout).into_owned();
    assert!(report.contains("an error: WRONGTYPE"), "{report}{told}");

    let blocked = scenario("{redis: [BLPOP, none, 0], timeout: 200ms}", "sessions: 4");
    let (_, result) = run(folder.path(), &blocked);
    assert_eq!(result["errors"], serde_json::json!({"timeout": 4}), "{result:#}");

    let unset =
        scenario("{redis: [GET, \"k:${missing_before}\"]}, {set: {missing_before: 1}}", "sessions: 4");
    let (_, result) = run(folder.path(), &unset);
    assert_eq!(result["errors"], serde_json::json!({"variable": 4}), "{result:#}");

    let pid = redis.child.id();
    let dies = scenario("{redis: [PING]}, {think: 5ms}", "connections: 2").replace("hold: 60s", "hold: 4s");
    let run_dir = folder.path().join("run");
    let _ = fs::remove_dir_all(&run_dir);
    let killer = std::thread::spawn(move || {
        load_is_on(&run_dir);
        std::thread::sleep(Duration::from_millis(500));
        crate::common::signal(pid, Signal::KILL);
    });
    let (output, result) = run(folder.path(), &dies);
    killer.join().expect("it was killed");
    let _ = redis.child.wait();
    assert_eq!(output.status.code(), Some(1), "{result:#}");
    assert!(result["errors"]["connect"].as_u64() > Some(0), "{result:#}");
}

#[test]
fn a_server_that_wants_a_password_gets_it_and_nobody_else_does() {
    let redis = Redis::start(&["--requirepass", "s3cret pass/word"]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |login: &str| {
        format!(
            "system: {{url: \"redis://{login}127.0.0.1:{}/2?protocol=3\"}}\nsessions: {{a: {{steps: [{{redis: [SET, k, v]}}]}}}}\n\
             load: {{users: 2, hold: 60s}}\nlimits: {{sessions: 20}}\n",
            redis.port
        )
    };
    fs::write(folder.path().join("s.yaml"), scenario(":s3cret%20pass%2Fword@")).expect("written");
    let output = tidemark()
        .current_dir(folder.path())
        .args(["run", "s.yaml", "--out", "run", "--json"])
        .output()
        .expect("tidemark runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    for name in ["run.json", "scenario.yaml", "report.html"] {
        let text = fs::read_to_string(folder.path().join("run").join(name)).expect(name);
        assert!(!text.contains("s3cret"), "{name} has the password");
    }
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("s3cret") && !told.contains("s3cret"),
        "{told}"
    );
    for (login, expected) in [("", "NOAUTH"), (":wrong@", "WRONGPASS")] {
        fs::write(folder.path().join("s.yaml"), scenario(login)).expect("written");
        let output =
            tidemark().current_dir(folder.path()).args(["run", "s.yaml"]).output().expect("tidemark runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_ne!(output.status.code(), Some(0));
        assert!(told.contains(expected) && told.contains("redis://"), "{told}");
        assert!(!told.contains("HTTP/2"), "{told}");
        assert!(!told.contains(":wrong@"), "{told}");
    }
}

/// Replies of such commands could not be told from those to others.
#[test]
fn a_command_without_exactly_one_reply_is_refused() {
    for command in ["[subscribe, a]", "[MONITOR]", "[CLIENT, REPLY, OFF]", "[Hello, 3]"] {
        let step = format!("{{redis: {command}}}");
        assert_refused("{url: redis://127.0.0.1}", "", &step, "exactly one reply");
    }
}

/// Writes under keys that are never the same, in several forms.
const ENTERED: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${count(n)}"}
      - redis: [SET, "m:${k}", "${note}"]
        ledger: {content: "note ${entry}|${check}|", as: note}
        check: {body: OK}
      - redis: [RPUSH, "m:list:${k % 3}", "${note}"]
        ledger: {content: "\"listed\" ${entry}|${check}|", as: note}
      - redis: [XADD, "m:stream", "*", text, "${note}"]
        ledger: {content: "ünsent ${entry}|${check}|", as: note}
      - redis: [HSET, "m:hash", "f${k}", "${note}"]
        ledger: {content: "field ${entry}|${check}|", as: note}
objectives: [lost = 0]
verify: {store: redis, keys: "m:*"}
"#;

#[test]
fn what_was_acknowledged_is_read_back_also_later_and_the_password_is_kept_nowhere() {
    const PASSWORD: &str = "not-for-everyone";
    let redis = Redis::start(&["--requirepass", PASSWORD]);
    redis.says(&format!("AUTH {PASSWORD}\r\nSET other x"));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "system: {{url: \"redis://:{PASSWORD}@127.0.0.1:{}\"}}{ENTERED}load: {{users: 16, hold: 60s}}\n\
         limits: {{connections: 2, pipeline: 8, sessions: 2000}}\n",
        redis.port
    );
    fs::write(folder.path().join("s.yaml"), text).expect("the scenario is written");
    let tidemark = |arguments: &[&str]| tidemark_in(folder.path(), arguments);
    let (status, told) = tidemark(&["run", "s.yaml", "--out", "run"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("0 lost of 8,000 acknowledged"), "{told}");
    let recipe = fs::read_to_string(folder.path().join("run/ledger/verify.json")).expect("a recipe");
    assert!(!recipe.contains(PASSWORD) && recipe.contains("m:*"), "{recipe}");

    let (status, told) = tidemark(&["verify", "run"]);
    assert!(status == Some(2) && told.contains("--set password="), "{status:?} {told}");
    let given = format!("password={PASSWORD}");
    let (status, told) = tidemark(&["verify", "run", "--set", &given]);
    assert_eq!(status, Some(0), "{told}");
    let gone = redis.says(&format!("AUTH {PASSWORD}\r\nDEL m:7 m:8\r\nSET m:9 changed"));
    assert!(gone.contains(":2"), "{gone}");
    let (status, told) = tidemark(&["verify", "run", "--set", &given]);
    assert!(status == Some(1) && told.contains("3 lost"), "{status:?} {told}");
}

#[test]
fn a_pattern_that_matches_nothing_and_what_an_earlier_run_left_are_told() {
    let redis = Redis::start(&[]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |keys: &str| {
        format!(
            "system: {{url: \"redis://127.0.0.1:{}\"}}{}load: {{users: 4, hold: 60s}}\nlimits: {{sessions: 40}}\n",
            redis.port,
            ENTERED.replace("keys: \"m:*\"", &format!("keys: \"{keys}\""))
        )
    };
    let reasons = |(output, result): (Output, Value)| {
        assert_eq!(output.status.code(), Some(1), "{result:#}");
        result["verdict"]["reasons"].to_string()
    };
    let told = reasons(run(folder.path(), &scenario("nothing:*")));
    assert!(told.contains("no key matches \\\"nothing:*\\\""), "{told}");
    assert!(told.contains("the database has 45 others, \\\"m:"), "{told}");
    let told = reasons(run(folder.path(), &scenario("m:*")));
    assert!(told.contains("or an earlier run left it under their keys"), "{told}");
    redis.says("FLUSHALL");
    let (output, result) = run(folder.path(), &scenario("m:*"));
    assert_eq!(output.status.code(), Some(0), "{result:#}");
}

#[test]
fn a_store_that_is_the_system_is_pinned_as_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = "stores: {kv: {product: redis, durability: memory}}\nsystem: {store: kv}\n\
                sessions: {ping: {steps: [{redis: [PING]}]}}\nload: {users: 1, hold: 500ms}\n";
    fs::write(folder.path().join("s.yaml"), text).expect("the scenario is written");
    let output = tidemark()
        .current_dir(&folder)
        .args(["run", "s.yaml", "--out", "run", "--pin", "system=0"])
        .output()
        .expect("tidemark runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = fs::read(folder.path().join("run/run.json")).expect("run.json");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["system"]["pinned_to"], serde_json::json!([0]), "{manifest:#}");

    // another in its place: it is not started
    let redis = Redis::start(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let output = tidemark()
        .current_dir(&folder)
        .args(["run", "s.yaml", "--out", "elsewhere", "--url", &url])
        .output()
        .expect("tidemark runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = fs::read(folder.path().join("elsewhere/run.json")).expect("run.json");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert!(manifest["stores"].as_array().is_none_or(Vec::is_empty), "{manifest:#}");
    assert!(!folder.path().join("elsewhere/stores").exists());
}

/// Redis that runs start, killed in the midst of the load and started again: one that keeps nothing has losses, and where
/// it is compared with one that does they come first.
#[test]
fn what_a_killed_redis_did_not_keep_is_lost_and_told_and_comes_first_in_a_comparison() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let compare = |arguments: &[&str]| {
        let output = tidemark()
            .current_dir(&folder)
            .arg("compare")
            .args(arguments)
            .args(["--json", "--fail-if", "p99>+900%"])
            .output()
            .expect("tidemark runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let json: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        (output.status.code(), json, said)
    };
    let pings = "settings: {n: 1}\nstores: {kv: {product: redis, durability: memory}}\nsystem: {store: kv}\n\
                 sessions: {ping: {steps: [{redis: [PING]}]}}\nload: {users: '${n}', hold: 500ms}\n";
    fs::write(folder.path().join("pings.yaml"), pings).expect("the scenario is written");
    let (_, json, said) = compare(&["pings.yaml", "--set", "n=1", "--vs", "n=2", "--rounds", "3"]);
    assert_eq!(
        (json["rounds"].as_u64(), json["broken"].as_array().map(Vec::len)),
        (Some(3), Some(0)),
        "{said}"
    );

    let text = |durability: &str| {
        format!(
            "stores: {{cache: {{product: redis, durability: {durability}}}}}\nsystem: {{store: cache}}{ENTERED}\
             load: {{rate: 300/s, hold: 4s}}\nfaults: [{{at: 2s, kill: cache, restart after: 500ms}}]\n\
             limits: {{connections: 8}}\n"
        )
    };
    for durability in ["synced", "memory"] {
        fs::write(folder.path().join("s.yaml"), text(durability)).expect("the scenario is written");
        let ran = tidemark()
            .current_dir(&folder)
            .args(["run", "s.yaml", "--out", durability, "--json"])
            .output()
            .expect("tidemark runs");
        let told = String::from_utf8_lossy(&ran.stderr);
        let result: Value =
            serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        let manifest = fs::read(folder.path().join(durability).join("run.json")).expect("run.json");
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        // the store that is driven is the system, and its disk is what an answer waits for
        assert_eq!(manifest["system"]["durability"], durability);
        assert_eq!(manifest["system"]["sync_latency"].is_object(), durability == "synced", "{manifest:#}");
        let ledger = &result["ledger"];
        let number = |name: &str| ledger[name].as_u64().unwrap_or_else(|| panic!("{name}: {result:#}{told}"));
        assert!(number("acknowledged") > 0, "{result:#}");
        if durability == "memory" {
            assert!(number("lost") > 0, "{ledger:#}");
            assert_eq!((&result["verdict"]["status"], ran.status.code()), (&"fail".into(), Some(1)));
        } else {
            assert_eq!(number("lost"), 0, "{ledger:#}");
        }
    }
    let (status, json, said) = compare(&["synced", "memory"]);
    assert_eq!(status, Some(1), "{said}");
    let says = json["says"][0].as_str().expect("a sentence");
    assert!(says.starts_with("B failed in 1 of 1 run, A in none: lost = 0 missed: "), "{says}");
    assert!(said.contains("fails, whatever --fail-if asks for: B failed in 1 of 1 run"), "{said}");
    assert!(json["notes"].to_string().contains("differs: A synced, B memory"), "{json:#}");
}

/// Commands whose conditions do not hold write nothing, and acknowledge nothing; `GET` answers what was there before.
const CONDITIONAL: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${count(n)}", nx: "NX"}
      - redis: [SET, "m:first:${k % 10}", "${note}", NX]
        ledger: {content: "first ${entry}|${check}|", as: note}
      - redis: [SET, "m:varying:${k % 10}", "${note}", "${nx}"]
        ledger: {content: "varying ${entry}|${check}|", as: note}
      - redis: [SETNX, "m:once:${k % 10}", "${note}"]
        ledger: {content: "once ${entry}|${check}|", as: note}
      - redis: [SET, "m:none:${k}", "${note}", XX]
        ledger: {content: "none ${entry}|${check}|", as: note}
      - redis: [SET, "m:old:${k}", "${note}", EX, 600, GET]
        ledger: {content: "old ${entry}|${check}|", as: note}
      - redis: [SET, "m:new:${k % 10}", "${note}", NX, GET]
        ledger: {content: "new ${entry}|${check}|", as: note}
objectives: [lost = 0, errors = 0]
verify: {store: redis, keys: "m:*"}
"#;

#[test]
fn what_a_condition_kept_from_being_written_is_not_acknowledged() {
    let redis = Redis::start(&[]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "system: {{url: \"redis://127.0.0.1:{}\"}}{CONDITIONAL}load: {{users: 4, hold: 60s}}\n\
         limits: {{connections: 2, pipeline: 2, sessions: 200}}\n",
        redis.port
    );
    let (output, result) = run(folder.path(), &text);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result["verdict"]["status"], "pass", "{result:#}{told}");
    // 10 of each that is written once, and each that says what was there before
    assert_eq!(result["ledger"]["acknowledged"], 4 * 10 + 200, "{result:#}");
    assert_eq!(result["ledger"]["unacknowledged_found"], 0, "{result:#}");
}

/// The most memory that a run of a scenario had, KiB, and what it came to.
fn measured(folder: &Path, text: &str) -> (u64, Value) {
    fs::write(folder.join("s.yaml"), text).expect("written");
    let _ = fs::remove_dir_all(folder.join("run"));
    let out = fs::File::create(folder.join("out")).expect("a file");
    let mut child = tidemark()
        .current_dir(folder)
        .args(["run", "s.yaml", "--out", "run", "--json"])
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .expect("tidemark runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most_kib = 0;
    while child.try_wait().expect("waited for").is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let most = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
        most_kib = most.unwrap_or(0).max(most_kib);
        std::thread::sleep(Duration::from_millis(5));
    }
    let out = fs::read(folder.join("out")).expect("what it said");
    (most_kib, serde_json::from_slice(&out).expect("JSON"))
}

/// What no check, extraction or `read` looks at may be of any size, and takes no memory; what one looks at is bounded.
#[test]
fn an_answer_of_any_size_is_passed_by() {
    const MIB: u64 = 1 << 10;
    let redis = Redis::start(&[]);
    redis.says("SETRANGE large 67108863 x\r\nSET small x");
    let push = "EVAL \"for i=1,1000 do local t={} for j=1,1000 do t[j]=j end redis.call('RPUSH','many',unpack(t)) end\" 0";
    redis.says(push);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |steps: &str, more: &str| {
        format!(
            "system: {{url: \"redis://127.0.0.1:{}/?protocol=3\"}}\nsessions: {{a: {{steps: [{steps}]}}}}\n\
             load: {{users: 2, hold: 60s}}\nlimits: {{sessions: 6{more}}}\n",
            redis.port
        )
    };
    let (small_kib, result) = measured(folder.path(), &scenario("{redis: [GET, small]}", ""));
    assert_eq!(result["errors"], serde_json::json!({}), "{result:#}");
    let large = "{redis: [GET, large], timeout: 30s}, {redis: [LRANGE, many, 0, -1], timeout: 30s, check: {status: 200}}";
    let (large_kib, result) = measured(folder.path(), &scenario(large, ""));
    assert_eq!(
        (&result["errors"], &result["statuses"]["200"]),
        (&serde_json::json!({}), &serde_json::json!(12)),
        "{result:#}"
    );
    assert!(large_kib < small_kib + 24 * MIB, "{large_kib} KiB, {small_kib} KiB of small answers");

    let looked_at = "{redis: [GET, large], timeout: 30s, extract: {value: body}}";
    let (_, result) = measured(folder.path(), &scenario(looked_at, ""));
    assert_eq!(result["errors"], serde_json::json!({"protocol": 6}), "{result:#}");
    let told = crate::common::report(folder.path());
    assert!(told.contains("the reply is larger than the limit of 16777216 bytes"), "{told}");
    let (kept_kib, result) = measured(folder.path(), &scenario(looked_at, ", body: 64MiB"));
    assert_eq!(result["errors"], serde_json::json!({}), "{result:#}");
    assert!(kept_kib > small_kib + 64 * MIB, "{kept_kib} KiB, {small_kib} KiB of small answers");
}
