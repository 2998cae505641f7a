//! The published star schema, loaded into a real PostgreSQL and a real MariaDB by their own command lines.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::tidemark;
use tempfile::TempDir;
use tidemark_lab::StopRequest;
use tidemark_lab::stores::{Setup, Stores};
use tidemark_scenario::load_text;
use url::Url;

/// A database of this product, and where it is.
struct Database {
    _stores: Stores,
    url: Url,
    _folder: TempDir,
}

impl Database {
    fn start(product: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let scenario = format!(
            "stores: {{{product}: {{durability: buffered}}}}
sessions: {{a: {{steps: [{{GET: /}}]}}}}
load: {{users: 1, hold: 1s}}
"
        );
        let plan = load_text("store.yaml", &scenario, Path::new("."), &[]).expect("a plan");
        let (data_of, is_linked) = (&|_: &str| None, &|_: &str| false);
        let run_dir = folder.path().join("store");
        let setup = Setup { run_dir, cores: Vec::new(), keep_data: false, data_of, is_linked };
        let stores = Stores::start(&plan.stores, &setup, &|| StopRequest::None, &mut |_| {})
            .expect("the database starts");
        let url = Url::parse(&stores.settings().remove(0).1).expect("a URL");
        Database { _stores: stores, url, _folder: folder }
    }

    /// What its own command line answers.
    fn answer(&self, sql: &str) -> String {
        let mut command = match self.url.scheme() {
            "mysql" => {
                let mut command = Command::new("mariadb");
                let (host, port) = (self.url.host_str().expect("a host"), self.url.port().expect("a port"));
                command.args(["--batch", "--skip-column-names", "--protocol=tcp", "-h", host]);
                command.args([format!("-P{port}"), format!("-u{}", self.url.username())]);
                command.args(self.url.password().map(|password| format!("-p{password}")));
                command.arg(self.url.path().trim_start_matches('/'));
                command
            }
            _ => {
                let mut command = Command::new("psql");
                command.args(["-q", "-At", "-F\t", "-v", "ON_ERROR_STOP=1", self.url.as_str()]);
                command
            }
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the database's own command line");
        child.stdin.take().expect("a pipe").write_all(sql.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\nof\n{sql}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

fn star_of(lines: &str, dialect: &str) -> String {
    let mut child = tidemark()
        .args(["cube", "-", "--format", dialect])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tidemark cube starts");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn is_loaded_once(product: &str) {
    let database = Database::start(product);
    let mut lines: String = (1..=20).map(|ms| format!("2014|1|3|0|33|Outbound|post|{ms}\n")).collect();
    lines += "2014|1|3|0|33|class feed.core.Friend|load|7\n2014|1|3|0|34|participant|store|9\n";
    let facts =
        "SELECT t.year, t.month, t.day, t.hour, t.minute, e.name, a.name, f.throughput, f.mode, f.vigintile
        FROM fact f JOIN timeperiod t ON t.time_id = f.time_id JOIN entity e ON e.entity_id = f.entity_id
        JOIN activity a ON a.activity_id = f.activity_id ORDER BY t.minute, e.name;";
    let loaded = "2014\t1\t3\t0\t33\tFriend\tload\t1\t7\t7
2014\t1\t3\t0\t33\tOutbound\tpost\t20\t11\t20
2014\t1\t3\t0\t34\tParticipant\tstore\t1\t9\t9
";
    database.answer(&star_of(&lines, product));
    assert_eq!(database.answer(facts), loaded);
    database.answer(&star_of(&lines, product));
    assert_eq!(database.answer(facts), loaded, "loaded again it is the same");
    database.answer(&star_of("2014|1|3|0|33|Outbound|post|5\n", product));
    let replaced = loaded.replace("post\t20\t11\t20", "post\t1\t5\t5");
    assert_eq!(database.answer(facts), replaced, "a minute that is loaded again is replaced");
    assert_eq!(database.answer("SELECT count(*) FROM timeperiod;").trim(), "2");
    assert_eq!(database.answer("SELECT name FROM activity WHERE activity_id = 3;").trim(), "post");

    // as the published loader puts a minute in: twice the same
    let call = if product == "postgres" { "SELECT" } else { "CALL" };
    for _ in 0..2 {
        let minute = database.answer(&format!("{call} InsertTimeData(2014, 1, 3, 0, 35);"));
        let minute = minute.trim();
        database.answer(&format!("{call} InsertFactData(30, 4, 8, 3, 3, {minute});"));
    }
    assert_eq!(database.answer(facts), format!("{replaced}2014\t1\t3\t0\t35\tOutbound\tpost\t30\t4\t8\n"));
}

#[test]
fn postgres_has_the_published_star_schema() {
    is_loaded_once("postgres");
}

#[test]
fn mariadb_has_the_published_star_schema() {
    is_loaded_once("mariadb");
}
