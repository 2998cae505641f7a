//! Statements to a PostgreSQL that the run starts: needs the package `postgresql`.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, assert_refused, project, report, run, tidemark};

const SESSION: &str = r#"
stores: {db: {product: postgres, durability: buffered}}
system: {store: db}
prepare:
  - sql: "CREATE TABLE IF NOT EXISTS t (k text PRIMARY KEY, v text, n int, x numeric, ok boolean, doc jsonb)"
sessions:
  a:
    steps:
      - set: {k: "k${count(n)}"}
      - set: {value: "v-${k}\r\n\"-ü"}
      - sql: "INSERT INTO t VALUES ($1, $2, $3, 1.50, true, '{\"a\": [1, 2]}')"
        with: ["${k}", "${value}", "${random(1, 5)}"]
        label: Insert
        extract: {inserted: {header: rows}}
        check: {status: 200, body: INSERT 0 1, that: inserted == 1}
      - sql: "SELECT v, n, x, ok, doc FROM t WHERE k = $1"
        with: ["${k}"]
        label: Read
        extract: {got: "$[0].v", n: "$[0].n", second: "$[0].doc.a[1]"}
        check: {status: 200, json: {"$[0].ok": "true", "$[0].x": "1.50"}, that: ["got == value", "n >= 1", "second == 2"]}
      - sql: "SELECT v FROM t WHERE k = $1"
        with: [none]
        label: None
        check: {status: 204, body: "[]"}
      - sql: "UPDATE t SET n = n + $2 WHERE k = $1 RETURNING n"
        with: ["${k}", 10]
        extract: {more: "$[0].n"}
        check: {that: more == n + 10}
      - sql: "INSERT INTO t (k) VALUES ($1)"
        with: ["${k}"]
        label: Again
        extract: {state: {header: sqlstate}}
        check: {status: 500, body: {contains: duplicate key}, that: "state == '23505'"}
      - sql: "SELECT generate_series(1, 1000) AS n, repeat('x', 30) AS t"
        label: Many
        extract: {count: {count: "$[*]"}}
        check: {that: count == 1000}
      - sql: "DELETE FROM t WHERE k = $1"
        with: ["${k}"]
        check: {body: DELETE 1}
"#;

/// With SCRAM, one statement at a time and pipelined; its table is made by the run itself, which could not be prepared for.
#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for limits in ["connections: 4", "connections: 2, pipeline: 8"] {
        let text = format!(
            "{SESSION}load: {{users: 8, hold: 60s}}\nlimits: {{{limits}, sessions: 200}}\nobjectives: [errors = 0]\n"
        );
        let (output, result) = run(folder.path(), &text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{result:#}{told}");
        assert_eq!(result["statuses"]["500"], 200, "{result:#}");
        let password = fs::read_to_string(folder.path().join("run/stores/db/data/password"));
        for name in ["run.json", "scenario.yaml", "report.html"] {
            let text = fs::read_to_string(folder.path().join("run").join(name)).expect(name);
            assert!(password.as_ref().is_err() || !text.contains(password.as_ref().expect("read")), "{name}");
        }
    }
}

#[test]
fn errors_and_a_server_that_dies_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = |steps: &str, rest: &str| {
        format!(
            "stores: {{db: {{product: postgres}}}}\nsystem: {{store: db}}\nsessions: {{a: {{steps: [{steps}]}}}}\n\
             load: {{users: 2, hold: 60s}}\n{rest}\n"
        )
    };
    // a table that is not there, too many parameters, one that is none, one that is not set; each error is the statement's own
    let steps = "{sql: 'SELECT * FROM missing', label: a}, {sql: 'SELECT $1::int AS n', with: [1, 2], label: b}, \
                 {sql: 'SELECT $1::int AS n', with: [x], label: c}, {sql: 'SELECT $1::text AS n', with: ['${late}'], label: d}, \
                 {sql: 'SELECT 1 AS n', check: {body: '[{\"n\":1}]'}, label: e}, {set: {late: 1}}";
    // of one user, so that each kind of error is among the first examples
    let text = scenario(steps, "limits: {sessions: 10}").replace("users: 2", "users: 1");
    let (_, result) = run(folder.path(), &text);
    assert_eq!(result["errors"], serde_json::json!({"status": 30, "variable": 10}), "{result:#}");
    let told = report(folder.path());
    for words in ["a: an error: 42P01: relation", "c: an error: 22P02: invalid input syntax for type integer"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    let slow = "{sql: 'SELECT pg_sleep(20)', timeout: 2s}";
    let (_, result) = run(folder.path(), &scenario(slow, "limits: {sessions: 4}"));
    assert_eq!(result["errors"], serde_json::json!({"timeout": 4}), "{result:#}");
    let killed = scenario(
        "{sql: 'SELECT 1 AS n'}, {think: 5ms}",
        "faults: [{at: 1s, kill: db, restart after: 500ms}]\nlimits: {connections: 2}",
    )
    .replace("hold: 60s", "hold: 4s");
    let (_, result) = run(folder.path(), &killed);
    assert!(result["errors"]["connect"].as_u64() > Some(0), "{result:#}");
    assert!(result["statuses"]["200"].as_u64() > Some(10), "{result:#}");
}

/// A column is added under statements that are prepared: each connection fails once, and prepares them anew.
#[test]
fn a_table_that_is_altered_under_load_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = "stores: {db: {product: postgres, durability: buffered}}\nsystem: {store: db}\n\
                prepare:\n  - sql: \"CREATE TABLE t (k int)\"\n  - sql: \"INSERT INTO t VALUES (1)\"\n\
                sessions:\n  a:\n    weight: 99\n    steps:\n      - {sql: 'SELECT * FROM t WHERE k = $1', with: [1], label: Read}\n  \
                b:\n    steps:\n      - {sql: 'ALTER TABLE t ADD COLUMN IF NOT EXISTS more int', label: Alter}\n\
                load: {users: 4, hold: 60s}\nlimits: {connections: 4, sessions: 2000}\n";
    let (output, result) = run(folder.path(), text);
    let told = String::from_utf8_lossy(&output.stderr);
    let failed = result["errors"]["status"].as_u64().unwrap_or_default();
    assert!((1..=4).contains(&failed), "{result:#}{told}");
    assert!(report(folder.path()).contains("0A000: cached plan must not change result type"));
}

/// Where an error that may be about a plan comes again right after the statement was prepared, it is an error like others.
#[test]
fn a_statement_that_always_fails_keeps_its_connection() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let function = "CREATE FUNCTION refuse() RETURNS int LANGUAGE plpgsql AS \
                    $f$ BEGIN RAISE EXCEPTION USING ERRCODE = ''0A000'', MESSAGE = ''never''; END $f$";
    let text = format!(
        "stores: {{db: {{product: postgres, durability: buffered}}}}\nsystem: {{store: db}}\n\
         prepare:\n  - sql: '{function}'\n  - sql: CREATE TABLE backends (pid int PRIMARY KEY)\n\
         sessions:\n  a:\n    steps:\n      - {{sql: 'SELECT refuse() AS n', label: Refused}}\n      \
         - {{sql: 'INSERT INTO backends VALUES (pg_backend_pid()) ON CONFLICT DO NOTHING', label: Here}}\n      \
         - {{sql: 'SELECT count(*) AS n FROM backends', extract: {{n: '$[0].n'}}, check: {{that: 'n <= 8'}}, label: Few}}\n\
         load: {{users: 4, hold: 60s}}\nlimits: {{connections: 2, sessions: 100}}\n"
    );
    let (output, result) = run(folder.path(), &text);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result["errors"], serde_json::json!({"status": 100}), "{result:#}{told}");
    assert!(report(folder.path()).contains("0A000: never"));
}

/// As YCSB on PostgreSQL inserts: one of which nobody knew whether it took place is inserted again.
#[test]
fn a_record_of_ycsb_can_be_inserted_twice() {
    let scenario = fs::read_to_string(project().join("scenarios/ycsb-postgres.yaml")).expect("the scenario");
    let after = |begin: &str| {
        let line = scenario.lines().find_map(|line| line.split_once(begin)).expect(begin);
        line.1.to_owned()
    };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (create, insert) = (after("- sql: CREATE"), after("- sql: &insert "));
    let values = |version: u32| format!("[user1{}]", format!(", v{version}").repeat(10));
    let text = format!(
        "stores: {{db: {{product: postgres, durability: buffered}}}}\nsystem: {{store: db}}\nprepare:\n  - sql: CREATE{create}\n\
         sessions:\n  a:\n    steps:\n      - {{sql: '{insert}', with: {}, check: {{body: INSERT 0 1}}}}\n      - {{sql: '{insert}', \
         with: {}, check: {{body: INSERT 0 1}}}}\n      - {{sql: 'SELECT field0, field9 FROM usertable', check: {{body: \
         '[{{\"field0\":\"v2\",\"field9\":\"v2\"}}]'}}}}\nload: {{users: 1, hold: 60s}}\nlimits: {{sessions: 3}}\nobjectives: [errors = 0]\n",
        values(1),
        values(2)
    );
    let (output, result) = run(folder.path(), &text);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result["verdict"]["status"], "pass", "{result:#}{told}");
}

#[test]
fn mistakes_are_told_when_a_scenario_is_checked() {
    let system = "{url: 'postgres://me@127.0.0.1/db'}";
    for (system, step, expected) in [
        (system, "{set: {k: 1}}, {sql: 'SELECT ${k}'}", "put its place there, and its value into `with`"),
        (system, "{sql: 'BEGIN'}", "each is a transaction of its own"),
        (system, "{sql: '-- why'}", "this statement is empty"),
        (system, "{sql: 'SELECT 1', extract: {a: {cookie: b}}}", "has no cookies"),
        (system, "{GET: /}", "the server is PostgreSQL"),
        ("{url: 'http://127.0.0.1'}", "{sql: 'SELECT 1'}", "begins with postgres:// or postgresql://"),
        (
            "{url: 'postgres://a@127.0.0.1?sslmode=on'}",
            "{sql: 'SELECT 1'}",
            "disable, prefer, require, verify-ca or verify-full",
        ),
    ] {
        assert_refused(system, "", step, expected);
    }
}

/// One that runs by itself, beside a system of HTTP; and one that the run starts, which ends with it.
#[test]
fn what_was_acknowledged_is_read_back_wherever_it_was_stored() {
    let entered = |system: &str, at: &str| {
        format!(
            r#"
stores: {{db: {{product: postgres, durability: buffered}}}}
{system}
prepare:
  - sql: CREATE TABLE notes (k text PRIMARY KEY, note text)
sessions:
  a:
    steps:
      - set: {{k: "${{count(n)}}"}}
      - sql: INSERT INTO notes (k, note) VALUES ($1, $2)
        with: ["${{k}}", "${{note}}"]
        ledger: {{content: "note ${{entry}}|${{check}}|", as: note}}
load: {{users: 8, hold: 60s}}
limits: {{connections: 4, sessions: 500}}
verify: {{{at}store: postgres, sql: SELECT note FROM notes}}
objectives: [lost = 0, errors = 0]
"#
        )
    };
    let web = tidemark_truth::Server::start(tidemark_truth::Behaviour::default()).expect("a server");
    let beside = format!("system: {{url: 'http://{}'}}\ntargets: {{db: {{store: db}}}}", web.address());
    for (system, at) in [("system: {store: db}", ""), (beside.as_str(), "at: db, ")] {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (output, result) = run(folder.path(), &entered(system, at));
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{result:#}{told}");
        let ledger = &result["ledger"];
        assert_eq!((&ledger["acknowledged"], &ledger["found"]), (&500.into(), &500.into()), "{ledger:#}");
        assert_eq!((&ledger["lost"], &ledger["foreign"]), (&0.into(), &0.into()), "{ledger:#}");
        let again = tidemark().current_dir(folder.path()).args(["verify", "run"]).output().expect("it runs");
        let told = String::from_utf8_lossy(&again.stderr);
        assert_eq!(again.status.code(), Some(2), "{told}");
        assert!(told.contains("started its store db and stopped it with its end"), "{told}");
    }
}

/// A PostgreSQL by itself, which lets nobody in but over TLS and with a password, as managed ones do; ended when dropped.
struct Managed {
    server: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Managed {
    fn start(is_secured: bool) -> Managed {
        let installed = fs::read_dir("/usr/lib/postgresql").expect("the package postgresql").flatten();
        let bin = installed.map(|version| version.path().join("bin")).max().expect("a version");
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().to_str().expect("UTF-8").to_owned();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        fs::write(folder.path().join("cert.pem"), made.cert.pem()).expect("written");
        fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).expect("written");
        fs::write(folder.path().join("password"), "s3cret").expect("written");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        // it does not run as root
        let is_root = rustix::process::geteuid().is_root();
        let as_other = |words: &str| {
            let mut command = Command::new(if is_root { "runuser" } else { "env" });
            command.args(if is_root { &["-u", "postgres", "--"][..] } else { &[] }).args(["sh", "-c", words]);
            command.current_dir("/");
            command
        };
        if is_root {
            let owned = Command::new("chown").args(["-R", "postgres", &path]).status().expect("it runs");
            assert!(owned.success());
        }
        let bin = bin.display();
        let host = if is_secured { "hostssl" } else { "host" };
        let prepare = format!(
            "cd {path} && chmod 600 key.pem && {bin}/initdb -U me -A scram-sha-256 --pwfile=password -D data >/dev/null && \
             echo '{host} all all 127.0.0.1/32 scram-sha-256' > data/pg_hba.conf"
        );
        assert!(as_other(&prepare).status().expect("it runs").success());
        let ssl = if is_secured {
            "-c ssl=on -c ssl_cert_file=../cert.pem -c ssl_key_file=../key.pem"
        } else {
            "-c ssl=off"
        };
        let serve = format!(
            "exec {bin}/postgres -D {path}/data -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' \
             -c fsync=off {ssl} 2>{path}/data/log"
        );
        let server = as_other(&serve).spawn().expect("it starts");
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                Instant::now() < until,
                "{}",
                fs::read_to_string(folder.path().join("data/log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Managed { server, port, folder }
    }

    fn url(&self, host: &str, query: &str) -> String {
        format!("postgres://me:s3cret@{host}:{}/postgres{query}", self.port)
    }

    fn certificate(&self) -> std::path::PathBuf {
        self.folder.path().join("cert.pem")
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // runuser hands it on; it stops at once
        let pid = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap_or_default();
        if let Some(pid) = pid.lines().next() {
            let _ = Command::new("kill").args(["-INT", pid]).status();
        }
        let _ = self.server.wait();
    }
}

/// Runs ten sessions; the status of the program and what it told.
fn ten(folder: &Path, url: &str, steps: &str) -> (Option<i32>, String, serde_json::Value) {
    let text = format!(
        "system: {{url: \"{url}\"}}\nsessions:\n  a:\n    steps:\n{steps}load: {{users: 2, hold: 60s}}\n\
         limits: {{connections: 2, sessions: 10}}\n"
    );
    fs::write(folder.join("s.yaml"), text).expect("written");
    let _ = fs::remove_dir_all(folder.join("run"));
    let words = ["run", "s.yaml", "--out", "run", "--json"];
    let output = tidemark().current_dir(folder).args(words).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), told, serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn a_managed_database_is_driven_over_tls_with_a_password() {
    let server = Managed::start(true);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let steps = "      - {sql: 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()', check: {json: {'$[0].ssl': true}}}\n";
    let ca = format!("&sslrootcert={}", server.certificate().display());
    for (host, query) in [
        ("127.0.0.1", "?sslmode=require".to_owned()),
        ("127.0.0.1", "?sslmode=prefer".to_owned()),
        ("127.0.0.1", format!("?sslmode=verify-ca{ca}")),
        ("localhost", format!("?sslmode=verify-full{ca}")),
    ] {
        let (status, told, result) = ten(folder.path(), &server.url(host, &query), steps);
        assert_eq!((status, &result["requests"]), (Some(0), &10.into()), "{query}: {told}{result:#}");
        assert_eq!(result["errors"], serde_json::json!({}), "{query}: {result:#}");
    }
    for (host, query, words) in [
        ("127.0.0.1", "".to_owned(), "add ?sslmode=require"),
        ("127.0.0.1", "?sslmode=verify-full".to_owned(), "signed by nobody trusted here"),
        ("127.0.0.1", format!("?sslmode=verify-full{ca}"), "not accepted"),
    ] {
        let (status, told, _) = ten(folder.path(), &server.url(host, &query), steps);
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status != Some(0) && told.contains(words), "{query}: {told}");
    }
    let plain = Managed::start(false);
    let steps = "      - {sql: 'SELECT 1 AS n', check: {json: {'$[0].n': 1}}}\n";
    let (status, told, _) = ten(folder.path(), &plain.url("127.0.0.1", "?sslmode=prefer"), steps);
    assert_eq!(status, Some(0), "{told}");
    let (status, told, _) = ten(folder.path(), &plain.url("127.0.0.1", "?sslmode=require"), steps);
    assert!(status != Some(0) && told.contains("does not speak TLS"), "{told}");
}

#[test]
fn a_transaction_is_committed_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = r#"
stores: {db: {product: postgres, durability: buffered}}
system: {store: db}
prepare:
  - sql: CREATE TABLE accounts (id int PRIMARY KEY, cents int CHECK (cents >= 0))
  - sql: INSERT INTO accounts VALUES (1, 1000000), (2, 0), (3, 5)
sessions:
  good:
    steps:
      - transaction: Move
        steps:
          - {sql: "UPDATE accounts SET cents = cents - 1 WHERE id = 1", label: Take, check: {body: UPDATE 1}}
          - {sql: "UPDATE accounts SET cents = cents + 1 WHERE id = 2", label: Give, check: {body: UPDATE 1}}
          - {sql: "SELECT sum(cents)::int AS n FROM accounts", label: Within, check: {json: {"$[0].n": 1000005}}}
  checked:
    steps:
      - transaction: Wrong
        steps:
          - {sql: "UPDATE accounts SET cents = cents - 1 WHERE id = 1", label: Lost, check: {body: UPDATE 7}}
          - {sql: "UPDATE accounts SET cents = cents + 1 WHERE id = 2", label: Never}
      - {sql: "SELECT sum(cents)::int AS n FROM accounts", label: After, check: {json: {"$[0].n": 1000005}}}
  refused:
    steps:
      - transaction: Refused
        steps:
          - {sql: "UPDATE accounts SET cents = cents + 1 WHERE id = 2", label: Undone}
          - {sql: "UPDATE accounts SET cents = cents - 6 WHERE id = 3", label: Refused}
      - {sql: "SELECT cents AS n FROM accounts WHERE id = 3", label: After, check: {json: {"$[0].n": 5}}}
  late:
    steps:
      - transaction: Late
        steps:
          - {sql: "UPDATE accounts SET cents = cents + 1 WHERE id = 3", label: Undone}
          - {sql: "SELECT pg_sleep(1)", label: Slow, timeout: 100ms}
load: {users: 4, hold: 60s}
limits: {connections: 4, sessions: 40}
"#;
    let (output, result) = run(folder.path(), text);
    let told = String::from_utf8_lossy(&output.stderr);
    let of = |label: &str, field: &str| {
        let steps = result["steps"].as_array().expect("steps");
        let step = steps.iter().find(|step| step["label"] == label);
        step.map_or(0, |step| step[field].as_u64().unwrap_or_default())
    };
    assert_eq!(of("Never", "requests"), 0, "{result:#}{told}");
    assert!(of("BEGIN", "requests") >= 30 && of("COMMIT", "requests") > 0, "{result:#}{told}");
    assert!(of("ROLLBACK", "requests") > 0, "{result:#}{told}");
    for label in ["BEGIN", "COMMIT", "ROLLBACK", "Take", "Give", "Within", "After", "Undone"] {
        let errors: u64 = result["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .filter(|step| step["label"] == label)
            .flat_map(|step| step["errors"].as_object().cloned().unwrap_or_default())
            .map(|(_, count)| count.as_u64().unwrap_or_default())
            .sum();
        assert_eq!(errors, 0, "{label}: {result:#}{told}");
    }
}
