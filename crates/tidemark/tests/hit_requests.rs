//! What `tidemark hit` sends where more is said than a URL: lists of requests, command lines of curl, bodies of any bytes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use crate::program::server::Server;
use crate::program::{code, json, run, stderr, stdout, tidemark};
use serde_json::Value;

/// Bytes that are no text.
const BYTES: [u8; 7] = [0, 0xff, b'\r', b'\n', b'$', b'{', 0xfe];

/// The JSON of a hit; whether a busy machine lets it count is not what is asked here.
fn hit(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["hit", "-q", "--json"], arguments].concat());
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    json(&output)
}

fn body(request: &[u8]) -> &[u8] {
    let head = request.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    &request[head + 4..]
}

fn labels(summary: &Value) -> Vec<(&str, u64)> {
    let steps = summary["steps"].as_array().unwrap();
    steps.iter().map(|step| (step["label"].as_str().unwrap(), step["requests"].as_u64().unwrap())).collect()
}

#[test]
fn each_url_with_its_method_and_body_is_a_line() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    fs::write(
        folder.path().join("list"),
        "/a\nGET /missing\nPUT /items {\"a\": 1}\nPUT /items {\"a\": 2}\n/a\n",
    )
    .unwrap();
    let summary = hit(folder.path(), &[&server.url("/"), "--urls", "list", "-n", "10", "-c", "1"]);
    let wanted = [("GET /a", 4), ("GET /missing", 2), ("PUT /items", 2), ("PUT /items (2)", 2)];
    assert_eq!(labels(&summary), wanted);
    assert_eq!(summary["steps"][1]["errors"]["status"], 2);
    let sent = server.requests();
    let order: Vec<&str> = sent.iter().map(|request| request.split(" HTTP").next().unwrap()).collect();
    assert_eq!(order[..5], ["GET /a", "GET /missing", "PUT /items", "PUT /items", "GET /a"]);
    assert_eq!(order[..5], order[5..]);
    assert!(sent[3].ends_with("\r\n\r\n{\"a\": 2}"), "{}", sent[3]);
    let text = stdout(&run(folder.path(), &["hit", &server.url("/"), "--urls", "list", "-n", "10", "-q"]));
    assert!(
        text.contains("4 requests in turn") && text.contains("By label") && text.contains("PUT /items (2)"),
        "{text}"
    );
}

#[test]
fn vegetas_targets_are_taken_as_they_are() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    fs::write(folder.path().join("body.bin"), BYTES).unwrap();
    let text = format!(
        "GET {0}\n\nPOST {1}\nContent-Type: application/octet-stream\nX-Account: 8675309\n@body.bin\n",
        server.url("/a"),
        server.url("/b")
    );
    fs::write(folder.path().join("targets.txt"), &text).unwrap();
    let json = format!(
        "{{\"method\":\"POST\",\"url\":\"{}\",\"body\":\"AP8NCiR7/g==\",\"header\":{{\"X-Account\":[\"8675309\"]}}}}\n",
        server.url("/b")
    );
    fs::write(folder.path().join("targets.json"), json).unwrap();
    for (file, requests) in [("targets.txt", "4"), ("targets.json", "2")] {
        server.forget();
        hit(folder.path(), &["--urls", file, "-n", requests, "-c", "1"]);
        let posted: Vec<Vec<u8>> =
            server.raw().into_iter().filter(|it| it.starts_with(b"POST /b ")).collect();
        assert_eq!(posted.len(), 2, "{file}");
        assert!(String::from_utf8_lossy(&posted[0]).contains("\r\nX-Account: 8675309\r\n"), "{file}");
        assert_eq!(body(&posted[0]), BYTES, "{file}");
    }
    // and from standard input
    let mut command = tidemark(folder.path(), &["hit", "--urls", "-", "-n", "2", "-q"]);
    server.forget();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("GET {}\n", server.url("/in")).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(server.targets(), ["/in", "/in"]);
}

#[test]
fn a_command_line_of_curl_may_be_one_word_or_stand_in_a_list() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/api?q=1");
    let line = format!("curl -I '{url}'");
    hit(folder.path(), &[&line, "-n", "1"]);
    fs::write(folder.path().join("list"), format!("{line}\ncurl '{url}' \\\n  --data-raw $'it\\'s'\n"))
        .unwrap();
    hit(folder.path(), &["--urls", "list", "-n", "2", "-c", "1"]);
    let sent = server.requests();
    let methods: Vec<&str> = sent.iter().map(|request| request.split(' ').next().unwrap()).collect();
    assert_eq!(methods, ["HEAD", "HEAD", "POST"]);
    assert!(sent[2].ends_with("\r\n\r\nit's"), "{}", sent[2]);
}

#[test]
fn any_method_and_repeated_headers_are_sent_as_they_are_given() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/cache").replace("http://", "http://ann:p%40ss@");
    let list = format!("PURGE {url} HTTP/1.1\nX-Tag: a\nX-Tag: b\ncurl -X PROPFIND -H 'Depth: 1' '{url}'\n");
    fs::write(folder.path().join("list"), list).unwrap();
    hit(folder.path(), &["--urls", "list", "-n", "2", "-c", "1", "-H", "X-All: 1", "-H", "X-All: 2"]);
    let sent = server.requests();
    assert!(sent[0].starts_with("PURGE /cache HTTP/1.1\r\n"), "{}", sent[0]);
    assert!(sent[1].starts_with("PROPFIND /cache HTTP/1.1\r\n"), "{}", sent[1]);
    for (at, header) in [
        (0, "X-Tag: a\r\nX-Tag: b"),
        (0, "X-All: 1\r\nX-All: 2"),
        (1, "X-All: 1\r\nX-All: 2"),
        (1, "Depth: 1"),
        (1, "Accept: */*"),
        (0, "Authorization: Basic YW5uOnBAc3M="),
        (1, "Authorization: Basic YW5uOnBAc3M="),
    ] {
        assert!(sent[at].contains(&format!("\r\n{header}\r\n")), "{header}: {}", sent[at]);
    }
}

#[test]
fn a_body_of_any_bytes_is_sent_unchanged_and_so_is_that_of_the_printed_scenario() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    fs::write(folder.path().join("body.bin"), BYTES).unwrap();
    let url = server.url("/b");
    hit(folder.path(), &[&url, "-b", "@body.bin", "-n", "1"]);
    let mut command = tidemark(folder.path(), &["hit", &url, "-b", "@-", "-n", "1", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&BYTES).unwrap();
    assert!(child.wait().unwrap().success());
    let printed =
        stdout(&run(folder.path(), &["hit", &url, "-b", "@body.bin", "-n", "1", "--print-scenario"]));
    assert!(printed.contains("base64_decode("), "{printed}");
    fs::write(folder.path().join("printed.yaml"), printed).unwrap();
    run(folder.path(), &["run", "printed.yaml", "-q"]);
    let sent = server.raw();
    assert_eq!(sent.len(), 3);
    for request in &sent {
        assert_eq!(body(request), BYTES);
        assert!(String::from_utf8_lossy(request).contains("\r\nContent-Type: application/octet-stream\r\n"));
    }
}

#[test]
fn more_than_there_are_lines_for_are_one_where_only_their_urls_differ() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let many: String = (0..300).map(|number| format!("/item/{number}\n")).collect();
    fs::write(folder.path().join("many"), &many).unwrap();
    let summary = hit(folder.path(), &[&server.url("/"), "--urls", "many", "-n", "300", "-c", "1"]);
    assert_eq!(labels(&summary), [("GET 300 URLs in turn", 300)]);
    assert_eq!(server.targets()[299], "/item/299");
    fs::write(folder.path().join("mixed"), many + "PUT /x\n").unwrap();
    let output = run(folder.path(), &["hit", &server.url("/"), "--urls", "mixed"]);
    assert!(code(&output) == 2 && stderr(&output).contains("number 301 does"), "{}", stderr(&output));
}

/// A server that answers every command of Redis with OK, and what it was sent.
pub(crate) fn redis() -> (String, Arc<Mutex<Vec<Vec<String>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let all = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let all = all.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some(words) = command(&mut stream) {
                    all.lock().unwrap().push(words);
                    if stream.get_mut().write_all(b"+OK\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, seen)
}

/// The words of the next command.
fn command(stream: &mut impl BufRead) -> Option<Vec<String>> {
    fn number(mark: char, stream: &mut impl BufRead) -> Option<usize> {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        line.trim().strip_prefix(mark)?.parse().ok()
    }
    let count = number('*', stream)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number('$', stream)?;
        let mut word = vec![0; length + 2];
        stream.read_exact(&mut word).ok()?;
        words.push(String::from_utf8_lossy(&word[..length]).into_owned());
    }
    Some(words)
}

#[test]
fn a_command_of_redis_is_the_body() {
    let folder = tempfile::tempdir().unwrap();
    let (url, seen) = redis();
    let summary = hit(folder.path(), &[&url, "-n", "20", "-c", "2", "-b", "SET greeting 'good day ${x}'"]);
    assert_eq!((summary["requests"].as_u64(), summary["failed"].as_u64()), (Some(20), Some(0)), "{summary}");
    let sent = |words: &[&str]| seen.lock().unwrap().iter().filter(|command| *command == words).count();
    assert_eq!(sent(&["SET", "greeting", "good day ${x}"]), 20);
    hit(folder.path(), &[&url, "-n", "5", "-c", "1"]);
    assert!(sent(&["PING"]) >= 5);
}
