//! Real stores that are installed on this machine; a test whose product is not says so and is skipped.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_scenario::plan::{Durability, StoreOrigin};

use super::installed::answer;
use super::jars::cache;
use super::launcher::Fetch;
use super::*;

pub fn go_on() -> StopRequest {
    StopRequest::None
}

pub fn setup<'a>(folder: &Path, is_linked: &'a dyn Fn(&str) -> bool) -> Setup<'a> {
    let run_dir = folder.join("run");
    Setup { run_dir, cores: Vec::new(), keep_data: false, data_of: &|_| None, is_linked }
}

/// Asks a store at a URL; a statement of SQL, or a command of Redis.
type Ask = fn(&str, &str) -> std::io::Result<String>;

/// The password and the address of a URL.
fn parts(url: &str) -> (&str, SocketAddr) {
    let (_, rest) = url.split_once("://").unwrap();
    let (user, place) = rest.split_once('@').unwrap_or((":", rest));
    let (_, password) = user.split_once(':').unwrap();
    (password, place.split('/').next().unwrap().parse().unwrap())
}

fn redis(url: &str, command: &str) -> std::io::Result<String> {
    let (password, address) = parts(url);
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("AUTH {password}\r\n").as_bytes())?;
    stream.read_exact(&mut [0; 5])?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer)?;
    match String::from_utf8_lossy(&answer[..length]).trim() {
        "" => Err(std::io::ErrorKind::ConnectionReset.into()),
        text => Ok(text.replace("\r\n", " ")),
    }
}

fn postgres(url: &str, statement: &str) -> std::io::Result<String> {
    let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let program = folders.map(|entry| entry.path().join("bin/psql")).find(|path| path.is_file());
    let program = program.unwrap_or_else(|| "psql".into());
    let words = ["-X", "-A", "-t", "-q", "-w", "-d", url, "-c", statement];
    answer(&program, words, &[("PGCONNECT_TIMEOUT", "5")])
}

fn mariadb(url: &str, statement: &str) -> std::io::Result<String> {
    let (password, address) = parts(url);
    let (host, port) = (format!("--host={}", address.ip()), format!("--port={}", address.port()));
    let words = ["--no-defaults", "--protocol=tcp", "--connect-timeout=5", "-N", "-B", "--user=tidemark"];
    answer(
        Path::new("mariadb"),
        words.into_iter().chain([&host, &port, "-e", statement, "tidemark"]),
        &[("MYSQL_PWD", password)],
    )
}

/// A request: method and target on the first line, then its body.
fn http(url: &str, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&parts(url).1, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (line, body) = request.split_once('\n').unwrap_or((request, ""));
    let head = "host: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length";
    stream.write_all(format!("{line} HTTP/1.1\r\n{head}: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 20") => Ok(body.to_owned()),
        _ => Err(std::io::Error::other(answer)),
    }
}

/// The value that etcd answers with, which has revisions around it.
fn etcd(url: &str, request: &str) -> std::io::Result<String> {
    let said = http(url, request)?;
    let value = said.split_once("\"value\":\"").and_then(|(_, rest)| rest.split_once('"'));
    Ok(value.map(|(value, _)| value.to_owned()).unwrap_or_default())
}

/// Whether its program is on this machine, or can be fetched to it.
pub fn is_here(store: &Store) -> bool {
    let cache = cache().unwrap();
    let mut fetch = Fetch { cache: &cache, stop_request: &go_on, tell: &mut |_| () };
    match launcher(store.product).program(store, &mut fetch) {
        Ok(_) => true,
        Err(LabError::Usage(reason)) => {
            eprintln!("skipped: {reason}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn gone(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts it behind a link, breaks it in every way, and asks after each for what it acknowledged.
fn keeps_what_it_acknowledged(store: &Store, ask: Ask, writes: [&str; 3], read: (&str, &str)) {
    if !is_here(store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let is_linked = &|name: &str| name == store.name;
    let setup = setup(folder.path(), is_linked);
    let mut stores = Stores::start(std::slice::from_ref(store), &setup, &go_on, &mut |_| ()).unwrap();
    assert!(stores.notes()[0].starts_with(&format!("{}: ", store.name)), "{:?}", stores.notes());
    let address: SocketAddr = stores.resolved(&format!("{{stores.{}.address}}", store.name)).parse().unwrap();
    let url = stores.resolved(&format!("{{stores.{}.url}}", store.name));
    assert!(url.contains(&address.to_string()), "{url}");
    for statement in writes {
        ask(&url, statement).unwrap();
    }
    let holds = |when: &str| assert_eq!(ask(&url, read.0).unwrap(), read.1, "{when}");
    holds("at first");
    if url.contains('@') {
        let (password, _) = parts(&url);
        assert_eq!(password.len(), 32);
        let stranger = ask(&url.replace(password, "another"), read.0);
        assert!(
            stranger.is_err() || !stranger.unwrap().contains(read.1),
            "only who has the password is let in"
        );
    }

    let node = stores.started().remove(0);
    let (name, first) = stores.processes().remove(0);
    assert_eq!(name, store.name);
    let below = crate::descendants::descendants(rustix::process::Pid::from_raw(first as i32).unwrap());
    assert_eq!(held(&node).kill(), "killed by signal 9");
    wait_until("all of its processes end", || {
        gone(first) && below.iter().all(|id| gone(id.as_raw_nonzero().get() as u32))
    });
    assert!(ask(&url, read.0).is_err() && stores.ended(&|_| false).is_none());
    held(&node).restart(&|| true).unwrap();
    holds("after a kill");

    let mut idle = TcpStream::connect(address).unwrap();
    held(&node).freeze().unwrap();
    // the signal is on its way to each of its threads
    let (_, id) = stores.processes().remove(0);
    wait_until("it stands still", || stands_still(id));
    let frozen = std::thread::spawn({
        let (url, statement) = (url.clone(), read.0.to_owned());
        move || ask(&url, &statement)
    });
    std::thread::sleep(Duration::from_millis(300));
    if frozen.is_finished() {
        panic!("it answers although it is frozen: {:?}", frozen.join().unwrap());
    }
    held(&node).thaw();
    assert_eq!(frozen.join().unwrap().unwrap(), read.1);

    let link = stores.links().remove(0).1;
    link.set(|condition| (condition.refused, condition.cuts) = (1.0, 1));
    assert!(ask(&url, read.0).is_err(), "its link is cut");
    wait_until("what was connected is cut", || !matches!(idle.read(&mut [0; 256]), Ok(1..)));
    link.set(|condition| condition.refused = 0.0);
    holds("after a cut");

    let data = held(&node).data_dir().unwrap().to_owned();
    let (_, second) = stores.processes().remove(0);
    assert!(data.is_dir() && folder.path().join(format!("run/logs/{}.log", store.name)).is_file());
    // as they do on SIGTERM
    let ending = match store.product {
        Product::Opensearch | Product::Solr => "exit status 143",
        Product::Etcd => "killed by signal 15",
        _ => "exit status 0",
    };
    assert_eq!(stores.stop(&|| true), [(store.name.clone(), ending.to_owned())]);
    drop((node, stores));
    assert!(gone(second) && !data.exists());
}

/// Whether each thread of a process is stopped.
fn stands_still(id: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let states: Vec<bool> = stats.map(|stat| stat.contains(") T ")).collect();
    !states.is_empty() && states.iter().all(|stopped| *stopped)
}

#[test]
fn redis_keeps_what_it_acknowledged() {
    let store = Store::new("cache", Product::Redis);
    keeps_what_it_acknowledged(&store, redis, ["SET a 1", "INCR a", "SET b x"], ("GET a", "$1 2"));
}

#[test]
fn postgres_keeps_what_it_acknowledged() {
    let store = Store { memory_bytes: Some(32 << 20), ..Store::new("people", Product::Postgres) };
    let writes =
        ["CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"];
    keeps_what_it_acknowledged(&store, postgres, writes, ("SELECT sum(id) FROM t", "3"));
}

/// One of its processes outlives it and holds its memory, as one may for a moment on a machine that is busy.
#[test]
fn postgres_starts_again_once_its_processes_are_gone() {
    use rustix::process::{Pid, Signal, kill_process};

    let store = Store { memory_bytes: Some(32 << 20), ..Store::new("people", Product::Postgres) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path(), &|_| false);
    let mut stores = Stores::start(std::slice::from_ref(&store), &setup, &go_on, &mut |_| ()).unwrap();
    let url = stores.resolved("{stores.people.url}");
    postgres(&url, "CREATE TABLE t (id int)").unwrap();
    let node = stores.started().remove(0);
    let (_, first) = stores.processes().remove(0);
    let first = Pid::from_raw(first as i32).unwrap();
    let left = crate::descendants::descendants(first)[0];
    kill_process(left, Signal::STOP).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    wait_until("it is dead", || gone(first.as_raw_nonzero().get() as u32) || held(&node).ended().is_some());
    held(&node).kill();
    let log = folder.path().join("run/logs/people.log");
    let freed = std::thread::spawn(move || {
        let tried = || std::fs::read_to_string(&log).unwrap_or_default().contains("shared memory block");
        wait_until("it was started too early", tried);
        kill_process(left, Signal::KILL).unwrap();
    });
    held(&node).restart(&|| true).unwrap();
    freed.join().unwrap();
    assert_eq!(postgres(&url, "SELECT count(*) FROM t").unwrap(), "0");
    stores.stop(&|| true);
}

#[test]
fn mariadb_keeps_what_it_acknowledged() {
    let store = Store { memory_bytes: Some(32 << 20), ..Store::new("shop", Product::Mariadb) };
    let writes =
        ["CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"];
    keeps_what_it_acknowledged(&store, mariadb, writes, ("SELECT sum(id) FROM t", "3"));
}

#[test]
fn opensearch_keeps_what_it_acknowledged() {
    let heap_bytes = 256 << 20;
    let within = Duration::from_secs(300);
    let store = Store { heap_bytes, ready_within: within, ..Store::new("stories", Product::Opensearch) };
    let writes = [
        "PUT /t\n{\"settings\": {\"number_of_replicas\": 0}}",
        "PUT /t/_doc/1?refresh=true\n{\"story\": \"Rain\"}",
        "PUT /t/_doc/2?refresh=true\n{\"story\": \"rain and snow\"}",
    ];
    keeps_what_it_acknowledged(
        &store,
        http,
        writes,
        ("GET /t/_count?q=story:rain&filter_path=count", "{\"count\":2}"),
    );
}

#[test]
#[ignore = "takes long: make test-long"]
fn solr_keeps_what_it_acknowledged() {
    let within = Duration::from_secs(300);
    let store = Store { heap_bytes: 256 << 20, ready_within: within, ..Store::new("stories", Product::Solr) };
    let update = "POST /solr/outbound/update?softCommit=true";
    let story = |id: u8, words: &str| {
        format!("{update}\n[{{\"id\": \"{id}\", \"sender\": {id}, \"story\": \"{words}\"}}]")
    };
    let [first, second, third] = [story(1, "snow"), story(2, "Rain"), story(3, "rain and snow")];
    let count = "GET /solr/outbound/select?q=rain&fl=id&sort=id+asc&omitHeader=true&indent=false";
    let found =
        r#"{"response":{"numFound":2,"start":0,"numFoundExact":true,"docs":[{"id":"2"},{"id":"3"}]}}"#;
    keeps_what_it_acknowledged(&store, http, [&first, &second, &third], (count, found));
}

/// Of a new index, whoever makes it.
#[test]
fn opensearch_acknowledges_before_the_disk_where_the_scenario_says_so() {
    let within = Duration::from_secs(300);
    let store = Store {
        heap_bytes: 256 << 20,
        ready_within: within,
        durability: Durability::Buffered,
        ..Store::new("a", Product::Opensearch)
    };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path(), &|_| false);
    let stores = Stores::start(&[store], &setup, &go_on, &mut |_| ()).unwrap();
    let url = stores.resolved("{stores.a.url}");
    http(&url, "PUT /t\n{}").unwrap();
    let said = http(&url, "GET /t/_settings/index.translog.durability?include_defaults=true").unwrap();
    assert!(said.contains(r#""durability":"async""#), "{said}");
}

#[test]
fn etcd_keeps_what_it_acknowledged() {
    let store = Store::new("registry", Product::Etcd);
    // keys and values in base64: `a`, `b`; `1`, `2`
    let put =
        |key: &str, value: &str| format!("POST /v3/kv/put\n{{\"key\":\"{key}\",\"value\":\"{value}\"}}");
    let writes = [put("YQ==", "MQ=="), put("Yg==", "MQ=="), put("YQ==", "Mg==")];
    let read = ("POST /v3/kv/range\n{\"key\":\"YQ==\"}", "Mg==");
    keeps_what_it_acknowledged(&store, etcd, writes.each_ref().map(String::as_str), read);
}

/// Registers an instance, with a lease of so many seconds.
fn register(url: &str, lease_s: u32) {
    let instance = "{\"instance\":{\"instanceId\":\"i-1\",\"hostName\":\"i-1\",\"app\":\"SHOP\",\
                    \"ipAddr\":\"127.0.0.1\",\"status\":\"UP\",\"dataCenterInfo\":{\"@class\":\
                    \"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo\",\"name\":\"MyOwn\"},\
                    \"leaseInfo\":{\"durationInSecs\":LEASE}}}";
    let instance = instance.replace("LEASE", &lease_s.to_string());
    http(url, &format!("POST /eureka/apps/SHOP\n{instance}")).unwrap();
}

#[test]
fn eureka_knows_who_registered_until_it_is_killed_or_the_lease_is_over() {
    let store = Store { ready_within: Duration::from_secs(300), ..Store::new("registry", Product::Eureka) };
    if !is_here(&store) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path(), &|_| true);
    let mut stores = Stores::start(&[store], &setup, &go_on, &mut |_| ()).unwrap();
    let url = stores.resolved("{stores.registry.url}");
    let is_known = || http(&url, "GET /eureka/apps").unwrap().contains("<instanceId>i-1</instanceId>");
    assert!(!is_known());
    register(&url, 300);
    assert!(is_known(), "at once");
    let node = stores.started().remove(0);
    assert_eq!(held(&node).kill(), "killed by signal 9");
    assert!(http(&url, "GET /eureka/apps").is_err());
    held(&node).restart(&|| true).unwrap();
    assert!(!is_known(), "it is kept in memory only");
    register(&url, 300);
    assert!(is_known(), "again");
    register(&url, 1);
    wait_until("a lease that is over goes", || !is_known());
    assert_eq!(stores.stop(&|| true), [("registry".to_owned(), "exit status 143".to_owned())]);
}

#[test]
fn two_of_one_product_are_two_and_one_that_is_there_is_reached() {
    let mut all = vec![Store::new("cache", Product::Redis), Store::new("sessions", Product::Redis)];
    if !is_here(&all[0]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = |name: &str, is_linked| Setup {
        run_dir: folder.path().join(name),
        ..setup(folder.path(), is_linked)
    };
    let stores = Stores::start(&all, &setup("run", &|_| false), &go_on, &mut |_| ()).unwrap();
    let place = |stores: &Stores, name: &str| -> SocketAddr {
        stores.resolved(&format!("{{stores.{name}.host}}:{{stores.{name}.port}}")).parse().unwrap()
    };
    let url = |stores: &Stores, name: &str| stores.resolved(&format!("{{stores.{name}.url}}"));
    let (cache, sessions) = (url(&stores, "cache"), url(&stores, "sessions"));
    assert_eq!(parts(&cache).1, place(&stores, "cache"));
    assert_ne!(parts(&cache).0, parts(&sessions).0, "each has its own password");
    redis(&cache, "SET a 1").unwrap();
    assert_eq!(
        (redis(&cache, "GET a").unwrap(), redis(&sessions, "GET a").unwrap()),
        ("$1 1".into(), "$-1".into())
    );

    all.truncate(1);
    all[0].origin = StoreOrigin::Url(format!("{cache}/3"));
    let reached = Stores::start(&all, &setup("other", &|_| true), &go_on, &mut |_| ()).unwrap();
    let linked = place(&reached, "cache");
    assert!(linked != parts(&cache).1 && reached.started().is_empty() && reached.processes().is_empty());
    let through = format!("redis://:{}@{linked}/3", parts(&cache).0);
    assert_eq!(url(&reached, "cache"), through);
    assert_eq!(redis(&through, "GET a").unwrap(), "$1 1");
    reached.links().remove(0).1.set(|condition| condition.refused = 1.0);
    assert!(redis(&through, "GET a").is_err());
    drop(reached);
    assert_eq!(redis(&cache, "GET a").unwrap(), "$1 1", "what is only reached stays");
    drop(stores);
    // a port that no other test gets
    all[0].origin = StoreOrigin::Url("redis://127.0.0.1:1".into());
    let nobody = Stores::start(&all, &setup("third", &|_| false), &go_on, &mut |_| ()).unwrap_err();
    assert!(nobody.to_string().contains("is unreachable at"), "{nobody}");
}
