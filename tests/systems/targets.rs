//! Sessions whose requests go to several servers and protocols: needs `redis-server` on the path.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{Killed, Served, free_port, report, run, tidemark, wait_until};
use crate::secured::Secured;
use serde_json::Value;

/// A server that gives a cookie with each answer, and remembers what it was asked: path, cookie, host.
struct Giving {
    address: SocketAddr,
    asked: Arc<Mutex<BTreeSet<[String; 3]>>>,
}

impl Giving {
    fn start(cookie: &'static str) -> Giving {
        Giving::at("127.0.0.1:0", cookie)
    }

    fn at(place: &str, cookie: &'static str) -> Giving {
        let listener = TcpListener::bind(place).expect("a port");
        let giving = Giving { address: listener.local_addr().expect("an address"), asked: Arc::default() };
        let asked = giving.asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = asked.clone();
                std::thread::spawn(move || serve(stream, cookie, &asked));
            }
        });
        giving
    }

    fn asked(&self) -> Vec<[String; 3]> {
        self.asked.lock().expect("whole").iter().cloned().collect()
    }
}

/// Answers requests without a body until the connection ends.
fn serve(mut stream: TcpStream, cookie: &str, asked: &Mutex<BTreeSet<[String; 3]>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    loop {
        let first = lines.next()?.ok()?;
        let path = first.split(' ').nth(1)?.to_owned();
        let (mut sent, mut host) = (String::new(), String::new());
        loop {
            let line = lines.next()?.ok()?;
            match line.split_once(": ") {
                Some(("Cookie", value)) => value.clone_into(&mut sent),
                Some(("Host", value)) => value.clone_into(&mut host),
                None if line.is_empty() => break,
                _ => {}
            }
        }
        asked.lock().ok()?.insert([path, sent, host]);
        let answer = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {cookie}=1\r\nContent-Length: 2\r\n\r\nhi");
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

/// A Redis of this test, killed when dropped.
struct Redis {
    _child: Killed,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Redis {
    fn start() -> Redis {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let child = Command::new("redis-server")
            .current_dir(&folder)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts; Debian: apt-get install redis-server");
        wait_until("redis-server is ready", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Redis { _child: Killed(child), port, _folder: folder }
    }
}

/// Figures by the name of a target, or of a label.
fn of<'a>(result: &'a Value, list: &str, key: &str, name: &str) -> &'a Value {
    let all = result[list].as_array().unwrap_or_else(|| panic!("no {list} in {result}"));
    all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name} in {result}"))
}

#[test]
fn one_session_goes_to_four_servers_by_three_protocols() {
    let folder = tempfile::tempdir().expect("a folder");
    let (api, images, redis) = (Giving::start("api"), Giving::at("127.0.0.2:0", "images"), Redis::start());
    let trade = Served::start("trade", &[]);
    let secured = Secured::in_front_of(&trade.authority, &folder.path().join("ca.pem"));
    let scenario = format!(
        r#"
settings: {{images: 'http://{images}'}}
system: {{url: 'http://{api}/v1'}}
targets:
  cache: {{url: 'redis://127.0.0.1:{redis}'}}
  auth: {{url: 'https://{name}', connect to: '{auth}', tls: {{ca: ca.pem}}}}
prepare:
  - redis: [SET, greeting, hello]
sessions:
  customer:
    steps:
      - set: {{id: "${{count(n)}}"}}
      - GET: /first
      - redis: [GET, greeting]
        check: {{body: hello}}
      - GET: ${{images}}/logo?one
      - GET: /health
        at: auth
        label: Health
      - GET: /second
      - redis: [SET, "k:${{id}}", "${{id}}"]
        at: cache
      - GET: ${{images}}/logo?two
load: {{users: 3, hold: 1s}}
objectives: [errors < 0.01%]
"#,
        api = api.address,
        images = images.address,
        redis = redis.port,
        name = crate::secured::NAME,
        auth = secured.address,
    );
    let (output, result) = run(folder.path(), &scenario);
    assert!(output.status.success(), "{result}");
    let images_origin = format!("http://{}", images.address);
    let share_of = |name: &str| of(&result, "targets", "target", name)["share"].as_f64().expect("a share");
    for (name, share) in [("system", 2.0), ("cache", 2.0), ("auth", 1.0), (&images_origin, 2.0)] {
        assert!((share_of(name) - share / 7.0).abs() < 0.02, "{name}: {result}");
        assert!(of(&result, "targets", "target", name)["response_time_us"]["p99"].is_number());
    }
    assert_eq!(of(&result, "steps", "label", "GET")["target"], "cache");
    assert_eq!(of(&result, "steps", "label", "cache SET")["target"], "cache");
    assert_eq!(of(&result, "steps", "label", "Health")["target"], "auth");
    let text = report(folder.path());
    assert!(text.contains("By target") && text.contains(&images_origin), "{text}");
    // no cookie of one is sent to another
    let asked = |giving: &Giving, paths: [&str; 2], cookie: &str| {
        let host = giving.address.to_string();
        let all: BTreeSet<[String; 3]> = [(paths[0], ""), (paths[1], cookie)]
            .map(|(path, cookie)| [path.to_owned(), cookie.to_owned(), host.clone()])
            .into();
        assert_eq!(giving.asked(), all.into_iter().collect::<Vec<_>>());
    };
    asked(&api, ["/v1/first", "/v1/second"], "api=1");
    asked(&images, ["/logo?one", "/logo?two"], "images=1");
}

#[test]
fn one_that_goes_down_fails_alone_and_the_verdict_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = Giving::start("api");
    // there for the question before the load, and for nobody after it
    let leaving = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = leaving.local_addr().expect("an address");
    let left = std::thread::spawn(move || drop(leaving.accept()));
    let scenario = format!(
        "system: {{url: 'http://{}'}}\ntargets: {{side: {{url: 'http://{address}'}}}}\nsessions:\n  a:\n    steps:\n      \
         - GET: /a\n      - {{GET: /b, at: side, label: Side}}\n      - GET: /c\nload: {{rate: 50/s, hold: 1s}}\n\
         objectives: ['Side errors < 1%', errors < 40%]\n",
        api.address
    );
    let (output, result) = run(folder.path(), &scenario);
    left.join().expect("it left");
    assert_eq!(output.status.code(), Some(1), "{result}");
    let side = of(&result, "targets", "target", "side");
    assert_eq!(side["errors"]["connect"], side["requests"], "{result}");
    let system = of(&result, "targets", "target", "system");
    assert_eq!(system["errors"], serde_json::json!({}), "{result}");
    let counted = |of: &Value| of["requests"].as_u64().expect("a count");
    assert!(counted(system) >= 2 * counted(side) - 2 && counted(side) > 30, "others go on: {result}");
    assert!(result["verdict"]["reasons"].to_string().contains("Side errors < 1%"), "{result}");
}

/// What is told of a scenario that is not begun, and its exit status.
fn refused(scenario: &str) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.yaml"), scenario).expect("written");
    let output = tidemark().current_dir(&folder).args(["run", "s.yaml"]).output().expect("it runs");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn a_target_that_is_not_there_ends_the_run_before_the_load_with_its_name() {
    let api = Giving::start("api");
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("an address");
    for (scheme, step) in
        [("redis", "redis: [GET, k]"), ("http", "{GET: /, at: side}"), ("https", "{GET: /, at: side}")]
    {
        let (told, status) = refused(&format!(
            "system: {{url: 'http://{}'}}\ntargets: {{side: {{url: '{scheme}://{nobody}'}}}}\nsessions:\n  a:\n    steps:\n      \
             - GET: /a\n      - {step}\nload: {{users: 1, hold: 1s}}\n",
            api.address
        ));
        assert!(told.contains("target side: ") && told.contains("unreachable"), "{told}");
        assert_eq!(status, Some(1), "{told}");
    }
    assert!(api.asked().is_empty(), "no load before all are there");
}

#[test]
fn a_mistake_is_told_with_its_place_and_a_way_out() {
    let (told, status) = refused(
        "system: {url: 'http://h'}\nsessions:\n  a:\n    steps:\n      - set: {host: x}\n      - GET: http://${host}/\nload: {users: 1, hold: 1s}\n",
    );
    assert!(told.contains("s.yaml:6:") && told.contains("name each host under `targets`"), "{told}");
    assert_eq!(status, Some(2));
}
