//! The published star schema, loaded into a real PostgreSQL and a real MariaDB by their own command lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::tidemark;
use quick_xml::events::Event;
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
    mondrian_finds_what_its_cube_names(&database);
}

/// The elements of the definition, each with its attributes, in their order.
fn definition() -> Vec<(String, BTreeMap<String, String>)> {
    let text = include_str!("../../docs/examples/newsfeed.mondrian.xml");
    let (mut reader, mut elements) = (quick_xml::Reader::from_str(text), Vec::new());
    loop {
        let element = match reader.read_event().expect("XML") {
            Event::Start(element) | Event::Empty(element) => element,
            Event::Eof => return elements,
            _ => continue,
        };
        let attributes = element.attributes().map(|attribute| attribute.expect("an attribute"));
        let attributes =
            attributes.map(|found| (found.key.as_ref().to_owned(), found.value.into_owned())).collect();
        elements.push((element.name().as_ref().to_owned(), attributes));
    }
}

/// Asks the database what Mondrian would: its members through the keys, its measures, and what else the facts have.
fn mondrian_finds_what_its_cube_names(database: &Database) {
    let (mut fact, mut dimensions, mut measures) = (None, Vec::new(), Vec::new());
    for (name, mut of) in definition() {
        let mut take = |name: &str| of.remove(name).unwrap_or_else(|| panic!("no {name}"));
        match (&*name, dimensions.last_mut()) {
            ("Table", None) => fact = Some(take("name")),
            ("Table", Some((_, _, table, _))) => *table = take("name"),
            ("Dimension", _) => dimensions.push((take("foreignKey"), String::new(), String::new(), vec![])),
            ("Hierarchy", Some((_, key, ..))) => *key = take("primaryKey"),
            ("Level", Some((.., levels))) => levels.push((take("column"), take("uniqueMembers") == "true")),
            ("Measure", _) => measures.push((take("aggregator"), take("column"))),
            ("Schema" | "Cube", None) => {}
            other => panic!("{other:?}"),
        }
    }
    let fact = fact.expect("a table of facts");
    let (mut joined, mut members) = (fact.clone(), Vec::new());
    for (foreign, key, table, levels) in &dimensions {
        joined += &format!(" JOIN {table} ON {fact}.{foreign} = {table}.{key}");
        let columns: Vec<String> = levels.iter().map(|(column, _)| format!("{table}.{column}")).collect();
        let columns = columns.join(", ");
        let sql = format!(
            "SELECT DISTINCT {columns} FROM {fact} JOIN {table} ON {fact}.{foreign} = {table}.{key} ORDER BY {columns};"
        );
        members.push(database.answer(&sql));
        let twice = |what: &str| format!("SELECT count({what}) - count(DISTINCT {what}) FROM {table};");
        assert_eq!(database.answer(&twice(key)).trim(), "0", "{table}.{key} is no key");
        // of a dimension with one level its members are the table's rows
        if let [(column, true)] = &levels[..] {
            assert_eq!(database.answer(&twice(column)).trim(), "0", "{table}.{column} is not unique");
        }
    }
    assert_eq!(
        members,
        [
            "2014\t1\t3\t0\t33\n2014\t1\t3\t0\t34\n2014\t1\t3\t0\t35\n",
            "Friend\nOutbound\nParticipant\n",
            "load\npost\nstore\n"
        ]
    );
    let asked: Vec<String> = measures.iter().map(|(by, column)| format!("{by}({fact}.{column})")).collect();
    let measured = database.answer(&format!("SELECT count(*), {} FROM {joined};", asked.join(", ")));
    let measured: Vec<f64> =
        measured.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    // four facts: 1, 1, 1, 30 operations, 7, 5, 9, 4 ms and 7, 5, 9, 8 ms
    assert_eq!(measured, [4.0, 33.0, 6.25, 7.25, 9.0]);
    let mut named: Vec<&str> = dimensions.iter().map(|dimension| &*dimension.0).collect();
    named.extend(measures.iter().map(|(_, column)| &**column));
    named.sort();
    named.dedup();
    let columns =
        format!("SELECT column_name FROM information_schema.columns WHERE table_name = '{fact}' ORDER BY 1;");
    let columns = database.answer(&columns);
    assert_eq!(columns.split_whitespace().collect::<Vec<_>>(), named, "the facts have other columns");
}

#[test]
fn postgres_has_the_published_star_schema() {
    is_loaded_once("postgres");
}

#[test]
fn mariadb_has_the_published_star_schema() {
    is_loaded_once("mariadb");
}
