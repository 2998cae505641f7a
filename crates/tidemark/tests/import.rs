//! `tidemark import` and `tidemark run` of a JMeter plan, as a person uses them: what is sent is what JMeter sends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::program::server::Server;
use crate::program::{assert_refused, code, run, stderr, stdout};

/// Defaults, headers, a data set, a login once and a transaction. (All other elements are those of the recorded plans below.)
const PLAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6.3"><hashTree>
  <TestPlan testname="Shop"/><hashTree>
    <ConfigTestElement guiclass="HttpDefaultsGui" testname="Defaults">
      <stringProp name="HTTPSampler.domain">${__P(host,127.0.0.1)}</stringProp>
      <stringProp name="HTTPSampler.port">${__P(port,1)}</stringProp>
    </ConfigTestElement><hashTree/>
    <HeaderManager testname="Headers"><collectionProp name="HeaderManager.headers">
      <elementProp name="" elementType="Header">
        <stringProp name="Header.name">X-Plan</stringProp>
        <stringProp name="Header.value">shop</stringProp>
      </elementProp>
    </collectionProp></HeaderManager><hashTree/>
    <ThreadGroup testname="Buyers">
      <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
        <stringProp name="LoopController.loops">2</stringProp>
      </elementProp>
      <stringProp name="ThreadGroup.num_threads">${__P(threads,1)}</stringProp>
    </ThreadGroup><hashTree>
      <CSVDataSet testname="People">
        <stringProp name="filename">people.csv</stringProp>
        <stringProp name="variableNames">name,town</stringProp>
      </CSVDataSet><hashTree/>
      <OnceOnlyController testname="Once"/><hashTree>
        <HTTPSamplerProxy testname="Login">
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments"><collectionProp name="Arguments.arguments">
            <elementProp name="password" elementType="HTTPArgument">
              <boolProp name="HTTPArgument.always_encode">true</boolProp>
              <stringProp name="Argument.name">password</stringProp>
              <stringProp name="Argument.value">geheim&amp;1</stringProp>
            </elementProp>
          </collectionProp></elementProp>
          <stringProp name="HTTPSampler.path">/login</stringProp>
          <stringProp name="HTTPSampler.method">POST</stringProp>
        </HTTPSamplerProxy><hashTree/>
      </hashTree>
      <TransactionController testname="Buy"/><hashTree>
        <HTTPSamplerProxy testname="Page">
          <stringProp name="HTTPSampler.path">/towns/${town}?by=${name}</stringProp>
        </HTTPSamplerProxy><hashTree/>
      </hashTree>
      <HTTPSamplerProxy testname="Off" enabled="false"/><hashTree/>
    </hashTree>
    <ResultCollector testname="Tree"/><hashTree/>
  </hashTree>
</hashTree></jmeterTestPlan>
"#;

/// What JMeter sends for it with one thread.
const SENT: [&str; 3] =
    ["POST /login password=geheim%261", "GET /towns/Ulm?by=ann ", "GET /towns/Bonn?by=bob "];

fn write(folder: &Path) {
    fs::write(folder.join("plan.jmx"), PLAN).unwrap();
    fs::write(folder.join("people.csv"), "ann,Ulm\nbob,Bonn\n").unwrap();
}

/// Method, path and body of each request.
fn sent(server: &Server) -> Vec<String> {
    let short = |request: &String| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let line: Vec<&str> = head.split(' ').take(2).collect();
        format!("{} {body}", line.join(" "))
    };
    server.requests().iter().map(short).collect()
}

#[test]
fn a_plan_sends_what_jmeter_sends() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    let port = format!("port={}", server.place.rsplit(':').next().unwrap());
    let done = run(folder.path(), &["run", "plan.jmx", "-J", &port, "--once"]);
    assert_eq!(code(&done), 0, "{}{}", stdout(&done), stderr(&done));
    assert_eq!(sent(&server), SENT, "{}", stdout(&done));
    for request in server.requests() {
        assert!(request.contains("\r\nX-Plan: shop\r\n") && !request.contains("\r\nCookie:"), "{request}");
    }
    let told = stderr(&done);
    assert!(told.contains("HTTPSamplerProxy \"Off\"") && told.contains("ResultCollector"), "{told}");
    assert!(!told.contains("geheim") && !stdout(&done).contains("geheim"), "{told}");

    // under a load: two rounds of each thread, and no more
    server.forget();
    let threads = ["run", "plan.jmx", "-J", &port, "-J", "threads=3", "--out", "run", "--quiet"];
    let done = run(folder.path(), &threads);
    assert_ne!(code(&done), 2, "{}{}", stdout(&done), stderr(&done));
    let all = sent(&server);
    let count = |begin: &str| all.iter().filter(|request| request.starts_with(begin)).count();
    assert_eq!((count("POST /login"), count("GET /towns/")), (3, 6), "{all:?}");
}

/// Plans that JMeter 5.6.3 has driven, with one thread, against a server like the one below; `.sent` is what came there.
/// (`; charset=UTF-8` behind the type of a form is left out.)
#[test]
fn plans_send_what_jmeter_was_seen_to_send() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/jmeter");
    for name in ["shop", "rows", "answers"] {
        let folder = tempfile::tempdir().unwrap();
        for file in [&format!("{name}.jmx"), "u.csv", "body.txt"] {
            fs::copy(plans.join(file), folder.path().join(file)).unwrap();
        }
        let (port, came) = answering();
        let port = format!("port={port}");
        let done = run(folder.path(), &["run", &format!("{name}.jmx"), "-J", &port, "--once"]);
        assert_eq!(code(&done), 0, "{name}: {}{}", stdout(&done), stderr(&done));
        let sent = fs::read_to_string(plans.join(format!("{name}.sent"))).unwrap();
        let sent: Vec<Value> = sent.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let came = came.lock().unwrap().clone();
        for (at, (one, other)) in came.iter().zip(&sent).enumerate() {
            assert_eq!(one, other, "{name}: request {}", at + 1);
        }
        assert_eq!(came.len(), sent.len(), "{name}");
    }
}

/// A collection that newman 6.2.2 has run (`newman run sent.json`), and a script that Artillery has (`artillery run sent.yml`), against a
/// server like the one below on a port in the place of 1; `.sent` is what came there. What Postman adds to each request (`Accept`,
/// `Cache-Control`, `Postman-Token`, and `Referer` behind a redirect) is left out.
#[test]
fn collections_and_scripts_send_what_their_tools_were_seen_to_send() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    for (tool, file, beside) in [("postman", "sent.json", "note.txt"), ("artillery", "sent.yml", "users.csv")]
    {
        let folder = tempfile::tempdir().unwrap();
        let (port, came) = answering();
        let text = fs::read_to_string(tests.join(tool).join(file)).unwrap();
        let text = text.replace("http://127.0.0.1:1", &format!("http://127.0.0.1:{port}"));
        fs::write(folder.path().join(file), text).unwrap();
        fs::copy(tests.join(tool).join(beside), folder.path().join(beside)).unwrap();
        let done = run(folder.path(), &["run", file, "--once"]);
        assert_eq!(code(&done), 0, "{tool}: {}{}", stdout(&done), stderr(&done));
        let sent = fs::read_to_string(tests.join(tool).join("sent.sent")).unwrap();
        let sent: Vec<Value> =
            sent.lines().map(|line| as_meant(&serde_json::from_str(line).unwrap())).collect();
        let came: Vec<Value> = came.lock().unwrap().iter().map(as_meant).collect();
        for (at, (one, other)) in came.iter().zip(&sent).enumerate() {
            assert_eq!(one, other, "{tool}: request {}", at + 1);
        }
        assert_eq!(came.len(), sent.len(), "{tool}");
    }
}

/// Plans that newman 6.2.2 and Artillery 2.0.21 have run, as `tests/plans/record` has it.
#[test]
fn each_recorded_plan_sends_what_its_tool_sent() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plans");
    let mut wrong = Vec::new();
    for tool in ["postman", "artillery"] {
        let mut recorded: Vec<_> =
            fs::read_dir(plans.join(tool)).unwrap().map(|file| file.unwrap().path()).collect();
        recorded.retain(|file| file.extension().is_some_and(|end| end == "sent"));
        recorded.sort();
        assert!(recorded.len() >= 12, "{tool}: {}", recorded.len());
        for sent in recorded {
            let folder = tempfile::tempdir().unwrap();
            let (port, came) = answering();
            for file in fs::read_dir(plans.join(tool)).unwrap().map(|file| file.unwrap().path()) {
                let text = fs::read_to_string(&file).unwrap();
                let text = text.replace("http://127.0.0.1:1", &format!("http://127.0.0.1:{port}"));
                fs::write(folder.path().join(file.file_name().unwrap()), text).unwrap();
            }
            let end = if tool == "postman" { "json" } else { "yml" };
            let name = sent.with_extension(end).file_name().unwrap().to_str().unwrap().to_owned();
            let environment = match tool {
                "postman" => name.replace(".json", ".environment.json"),
                _ => "test".to_owned(),
            };
            let has_environment = match tool {
                "postman" => folder.path().join(&environment).exists(),
                _ => fs::read_to_string(folder.path().join(&name)).unwrap().contains("environments:"),
            };
            let mut arguments = vec!["run", &name, "--once"];
            if has_environment {
                arguments.extend(["--environment", &environment]);
            }
            let done = run(folder.path(), &arguments);
            // what ends a session is an error
            if code(&done) != i32::from(name.starts_with("ended")) {
                wrong.push(format!("{tool}/{name}: {}{}", stdout(&done), stderr(&done)));
            }
            let sent = fs::read_to_string(sent).unwrap();
            let sent: Vec<Value> =
                sent.lines().map(|line| as_meant(&serde_json::from_str(line).unwrap())).collect();
            let place = format!("127.0.0.1:{port}");
            let came = came.lock().unwrap().iter().map(as_meant).collect::<Vec<_>>();
            let came: Vec<Value> = came
                .iter()
                .map(|one| serde_json::from_str(&one.to_string().replace(&place, "127.0.0.1:1")).unwrap())
                .collect();
            for (at, (one, other)) in
                came.iter().zip(&sent).enumerate().filter(|(_, (one, other))| one != other)
            {
                wrong.push(format!("{tool}/{name}: request {}:\n  ours   {one}\n  theirs {other}", at + 1));
            }
            if came.len() != sent.len() {
                wrong.push(format!("{tool}/{name}: {} requests, theirs {}", came.len(), sent.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A text without what is another one each time: UUIDs and times.
fn without_chance(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        out += match word {
            _ if word.len() == 36 && word.matches('-').count() == 4 => "UUID",
            _ if [10, 13].contains(&word.len()) && word.bytes().all(|c| c.is_ascii_digit()) => "TIME",
            word => word,
        };
        rest = &rest[end..];
        if let Some(other) = rest.chars().next() {
            out.push(other);
            rest = &rest[other.len_utf8()..];
        }
    }
    out
}

/// A request without what may be written in several ways: JSON is what it holds, a space of a query or a form is one. The
/// boundary of parts is its own each time, and so are UUIDs and times.
fn as_meant(request: &Value) -> Value {
    let mut request = request.clone();
    let boundary = request[3]["content-type"].as_str().and_then(|of| of.split_once("boundary="));
    if let Some(boundary) = boundary.map(|(_, boundary)| boundary.trim_matches('"').to_owned()) {
        request[2] = request[2].as_str().unwrap().replace(&boundary, "BOUNDARY").into();
        request[3]["content-type"] = "multipart/form-data".into();
    }
    request[1] = without_chance(request[1].as_str().unwrap()).into();
    request[2] = without_chance(request[2].as_str().unwrap()).into();
    let text = |at: usize| request[at].as_str().unwrap();
    let body = text(2);
    let body = match request[3]["content-type"].as_str() {
        Some("application/json") => serde_json::from_str(body).unwrap(),
        Some("application/x-www-form-urlencoded") => Value::from(body.replace("%20", "+")),
        _ => Value::from(body),
    };
    serde_json::json!([text(0), text(1).replace("%20", "+"), body, request[3]])
}

/// What came: method, path, body and headers but for those that each client has in its own way.
type Came = Arc<Mutex<Vec<Value>>>;

/// A server with JSON for all, a cookie for `/login`, a redirect for `/move` and any status for `/status/404`; its port.
fn answering() -> (u16, Came) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Came::default();
    let all = came.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let came = all.clone();
            std::thread::spawn(move || answer(stream, &came));
        }
    });
    (port, came)
}

fn answer(mut stream: TcpStream, came: &Came) -> Option<()> {
    const OWN: [&str; 4] = ["host", "content-length", "user-agent", "connection"];
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (mut headers, mut length) = (serde_json::Map::new(), 0);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            let name = name.to_ascii_lowercase();
            if name == "content-length" {
                length = value.parse().ok()?;
            }
            if !OWN.contains(&name.as_str()) {
                headers.insert(name, value.into());
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        // as Latin-1
        let body: String = body.into_iter().map(char::from).collect();
        let mut words = line.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        came.lock().unwrap().push(serde_json::json!([method, path, body, headers]));
        let of_path = path.strip_prefix("/status/").and_then(|path| path.get(..3));
        let (status, more) = match path {
            "/move" => ("302 Found", "Location: /moved\r\n"),
            path if path.contains("/login") => ("200 OK", "Set-Cookie: sid=abc; Path=/\r\n"),
            _ => (of_path.unwrap_or("200 OK"), ""),
        };
        let text = if method == "HEAD" || status == "204" {
            ""
        } else {
            r#"{"ids":[{"id":4},{"id":5}],"a":"x","token":"t-1","n":2}"#
        };
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status} \r\nContent-Type: application/json\r\nX-Trace: trace-1\r\n{more}Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{text}").as_bytes()).ok()?;
    }
}

#[test]
fn a_scenario_is_written_that_runs_from_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("plans")).unwrap();
    write(&folder.path().join("plans"));
    let server = Server::start();
    let port = format!("port={}", server.place.rsplit(':').next().unwrap());
    let made = run(folder.path(), &["import", "plans/plan.jmx", "-J", &port, "-o", "my.yaml", "--strict"]);
    assert_eq!((code(&made), stdout(&made).as_str()), (0, ""), "{}", stderr(&made));
    assert!(stderr(&made).contains("password"), "{}", stderr(&made));
    let text = fs::read_to_string(folder.path().join("my.yaml")).unwrap();
    assert!(text.contains("file: plans/people.csv") && !text.contains("geheim"), "{text}");
    let done = run(folder.path(), &["run", "my.yaml", "--set", "password=geheim&1", "--once"]);
    assert_eq!(code(&done), 0, "{}{}", stdout(&done), stderr(&done));
    assert_eq!(sent(&server), SENT);
    assert_refused(folder.path(), &["import", "plans/plan.jmx", "-o", "my.yaml"], "is there already");
}

#[test]
fn what_is_missing_is_told_and_not_driven() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let line = PLAN.lines().position(|line| line.contains("testname=\"Off\"")).unwrap() + 1;
    let with = |element: &str| {
        let whole = PLAN.replace(
            "<HTTPSamplerProxy testname=\"Off\"",
            &format!("{element}<hashTree/><HTTPSamplerProxy testname=\"Off\""),
        );
        fs::write(folder.path().join("plan.jmx"), whole).unwrap();
    };
    with("<JDBCSampler testname=\"stock\" enabled=\"true\"/>");
    let says = format!(
        "! plan.jmx: line {line}: JDBCSampler \"stock\": would have sent what a JDBCSampler of JMeter sends"
    );
    assert_refused(folder.path(), &["run", "plan.jmx", "--once"], &says);
    assert_refused(folder.path(), &["run", "plan.jmx"], "tidemark import plan.jmx -o my.yaml");
    assert_refused(
        folder.path(),
        &["import", "plan.jmx", "--strict", "-o", "my.yaml"],
        "1 left out; nothing is written",
    );
    assert!(!folder.path().join("my.yaml").exists());
    let made = run(folder.path(), &["import", "plan.jmx"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert!(stderr(&made).contains(&says) && stdout(&made).contains("- group: Buy"), "{}", stdout(&made));

    // what changes no request is told, and driven all the same
    with(
        "<SyncTimer testname=\"together\" enabled=\"true\"><intProp name=\"groupSize\">5</intProp></SyncTimer>",
    );
    let server = Server::start();
    let port = format!("port={}", server.place.rsplit(':').next().unwrap());
    let done = run(folder.path(), &["run", "plan.jmx", "-J", &port, "--once"]);
    assert_eq!(code(&done), 0, "{}{}", stdout(&done), stderr(&done));
    assert!(stderr(&done).contains("would have held 5 threads back"), "{}", stderr(&done));
    assert_refused(folder.path(), &["import", "plan.jmx", "--strict"], "1 left out");
}

#[test]
fn wrong_use_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.har", "{\"log\": {}}");
    write(
        "my.yaml",
        "sessions: {a: {steps: [{GET: /}]}}\nsystem: {url: \"http://127.0.0.1:1\"}\nload: {users: 1, hold: 1s}\n",
    );
    write("broken.jmx", "<jmeterTestPlan>\n<hashTree>\n</wrong>");
    write("plan.xml", "<tsung/>");
    write("plan.jmx", PLAN);
    write("t.lua", "wrk.method = 'POST'");
    write("empty.jmx", "<jmeterTestPlan><hashTree/></jmeterTestPlan>");
    let collection = "{\"info\": {\"schema\": \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}, \"item\": [ITEM]}";
    write("empty.json", &collection.replace("ITEM", ""));
    write("c.json", &collection.replace("ITEM", "{\"request\": \"http://127.0.0.1:1/a\", \"odd\": 1}"));
    write(
        "a.yml",
        "config: {environments: {one: {target: \"http://127.0.0.1:1\", phases: []}}}\nscenarios: [{flow: [{get: {url: /a}}]}]\n",
    );
    for (arguments, says) in [
        (vec!["import", "empty.json"], "nothing of it can be driven here"),
        (
            vec!["import", "c.json", "--strict"],
            "! c.json: line 1: item.odd: 1: would have done something that is not known",
        ),
        (vec!["run", "c.json"], "without which it would not send what the plan sends"),
        (vec!["import", "c.json", "-E", "none.json"], "cannot read none.json"),
        (vec!["import", "c.json", "-E", "c.json"], "c.json: this is not an environment of Postman"),
        (vec!["import", "c.json", "-J", "a=b"], "-J is for plans of JMeter"),
        (vec!["import", "empty.jmx", "-E", "a"], "--environment is for Postman and Artillery"),
        (vec!["run", "my.yaml", "--environment", "a"], "--set NAME=VALUE"),
        (vec!["import", "a.yml"], "has no target; give an environment: --environment NAME"),
        (vec!["import", "a.yml", "-E", "two"], "no environment \"two\" in it; it has: one"),
        (vec!["run", "a.yml", "--environment", "one"], "no phase of it can be read"),
        (vec!["check", "a.yml"], "a.yml is a script of Artillery: tidemark import a.yml -o my.yaml"),
        (vec!["init", "c.json"], "c.json is a collection of Postman: tidemark import c.json -o my.yaml"),
        (vec!["import"], "FILE"),
        (vec!["import", "none.jmx"], "cannot read none.jmx"),
        (vec!["import", "a.har"], "tidemark init"),
        (vec!["import", "my.yaml"], "this is not a plan of JMeter"),
        (vec!["import", "broken.jmx"], "broken.jmx: this is not a JMeter plan that can be read: line 3"),
        (vec!["import", "empty.jmx"], "there is nothing in it that can be sent here"),
        (vec!["run", "empty.jmx"], "there is nothing in it that can be sent here"),
        (vec!["run", "my.yaml", "-J", "a=b"], "--set NAME=VALUE"),
        (vec!["check", "empty.jmx"], "empty.jmx is a JMeter plan: tidemark import empty.jmx -o my.yaml"),
        (vec!["limit", "plan.xml"], "plan.xml is a Tsung plan: tidemark import plan.xml -o my.yaml"),
        (vec!["limit", "c.json"], "1 left out without which it would not send what the plan sends"),
        (
            vec!["limit", "plan.jmx", "--over", "threads=1,2"],
            "make one of the plan: tidemark import plan.jmx -o my.yaml",
        ),
        (vec!["limit", "my.yaml", "-J", "a=b"], "--set NAME=VALUE"),
        (vec!["import", "my.yaml", "--from", "gatling"], "it is one of jmeter, tsung, postman, artillery"),
        (vec!["init", "plan.xml"], "plan.xml is a Tsung plan: tidemark import plan.xml -o my.yaml"),
        (vec!["run", "t.lua"], "t.lua is a wrk script: tidemark hit -s t.lua URL, or name it in a scenario"),
        (
            vec!["import", "empty.jmx", "-o", "nodir/my.yaml"],
            "cannot write nodir/my.yaml: there is no such folder",
        ),
    ] {
        assert_refused(folder.path(), &arguments, says);
    }
}

/// A collection with a host and a value that are not in it.
const OPEN_COLLECTION: &str = r#"{
  "info": {"name": "c", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
  "item": [{"name": "r", "request": "{{host}}/of/{{tenant}}"}]
}"#;

#[test]
fn nothing_is_driven_without_the_values_that_a_plan_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("c.json"), OPEN_COLLECTION).unwrap();
    let server = Server::start();
    let url = server.url("");
    let (of_host, tenant) = (format!("host_url={url}"), "tenant=acme");
    assert_refused(folder, &["run", "c.json"], "! c.json: line 3: {{tenant}}: would have been a value");
    assert_refused(folder, &["run", "c.json", "--set", tenant], "--set host_url=URL");
    for given in [["--set", of_host.as_str()], ["--url", url.as_str()]] {
        let done = run(folder, &[&["run", "c.json", "--once", "--set", tenant][..], &given].concat());
        assert_eq!(code(&done), 0, "{}{}", stdout(&done), stderr(&done));
    }
    // the scenario that is made of it keeps to that
    let made = run(folder, &["import", "c.json", "-o", "my.yaml"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    for verb in ["run", "limit"] {
        let says = "my.yaml: no value for tenant, host_url; give --set tenant=VALUE --set host_url=VALUE, or write it into the file";
        assert_refused(folder, &[verb, "my.yaml"], says);
    }
    let checked = run(folder, &["check", "my.yaml", "--set", &of_host]);
    assert!(code(&checked) == 0 && stderr(&checked).contains("no value for tenant"), "{}", stderr(&checked));
    let done = run(folder, &["run", "my.yaml", "--once", "--set", tenant, "--set", &of_host]);
    assert_eq!(code(&done), 0, "{}{}", stdout(&done), stderr(&done));
    assert_eq!(server.targets(), vec!["/of/acme"; 3]);
}

#[test]
fn a_plan_comes_by_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder);
    let piped = |arguments: &[&str], text: &str| {
        let mut command = crate::program::tidemark(folder, arguments);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        child.wait_with_output().unwrap()
    };
    let made = piped(&["import", "-", "--strict"], PLAN);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let of_file = stdout(&run(folder, &["import", "plan.jmx"]));
    assert_eq!(stdout(&made).replace("standard input", "plan.jmx"), of_file);
    for (arguments, text, says) in [
        (
            &["import", "-"][..],
            "import http from 'k6/http';",
            "standard input: this is a k6 script, which is not read from there",
        ),
        (&["import", "-"], "a: 1\n", "standard input: this is not a plan of JMeter"),
        (&["import", "-", "--from", "postman"], "<x/>", "standard input:1:1: this is not JSON"),
    ] {
        let refused = piped(arguments, text);
        assert!(code(&refused) == 2 && stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

#[test]
fn a_search_takes_a_plan_as_a_run_does() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let server = Server::start();
    let port = format!("port={}", server.place.rsplit(':').next().unwrap());
    let search =
        ["limit", "plan.jmx", "-J", &port, "--set", "password=geheim&1", "--budget", "8s", "--most", "20"];
    let done = run(folder.path(), &[&search[..], &["--until", "p99<1s"]].concat());
    assert!([0, 3].contains(&code(&done)), "{}{}", stdout(&done), stderr(&done));
    assert!(stderr(&done).contains("a search does not end there"), "{}", stderr(&done));
    assert!(
        server.targets().iter().any(|target| target.starts_with("/towns/Ulm?")),
        "{:?}",
        server.targets()
    );
}
