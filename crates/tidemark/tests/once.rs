//! `tidemark run --once -v`: what each step did, with a real server and without its secrets.

use std::fs;
use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::server::Server;
use crate::program::{assert_refused, begin, code, run, send, stderr, stdout, wait_until};

const SERVER: &str = r#"
import gzip, http.server, json, sys

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        text = json.dumps({"token": "t0p-s3cret-token", "name": "ann", "items": 3})
        self.answer(200, text.encode(), Set_Cookie="sid=c00kie-value; Path=/", X_Shop="open")

    def do_GET(self):
        if self.path == "/moved":
            self.answer(302, b"", Location="/there")
        elif self.path == "/again":
            self.answer(302, b"", Location="/again")
        elif self.path == "/there":
            self.answer(200, b"you are there")
        elif self.path == "/packed":
            self.answer(200, gzip.compress(b"hello"), Content_Encoding="gzip")
        elif self.path == "/cookies":
            self.answer(200, b"hello", Set_Cookie="abroad=c00kie-value; Domain=shop.example")
        elif self.path == "/who":
            cookie, token = self.headers["Cookie"].split("=")[1], self.headers["X-Mine"]
            self.answer(200, f"{cookie} is who has {token}".encode())
        elif self.path == "/torn":
            self.answer(200, b"no gzip at all", Content_Encoding="gzip")
        elif self.path == "/odd":
            self.answer(200, b"hello", Content_Encoding="rot13")
        elif self.path == "/me":
            right = self.headers["Authorization"] == "Bearer t0p-s3cret-token" and "sid=" in self.headers["Cookie"]
            self.answer(200 if right else 401, b"you are ann")
        else:
            self.answer(500, b"broken for t0p-s3cret-token")

    def log_message(self, *arguments):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop)
print("Listening", flush=True)
server.serve_forever()
"#;

const LOGIN: &str = r#"      - POST: /login
        label: Login
        json: {user: ann, password: hunter22}
        check: {status: 200, header: {X-Shop: open}, json: {$.items: 3}, that: name == 'ann'}
        extract: {token: $.token, name: $.name, age: $.age}
      - GET: /me
        headers: {Authorization: "Bearer ${token}"}
        check: {body: {contains: ann}}
"#;

fn tried(folder: &Path, steps: &str, flags: &[&str]) -> Output {
    fs::write(folder.join("server.py"), SERVER).unwrap();
    let text = format!(
        "system:\n  command: python3 server.py {{port}}\n  cwd: .\n  ready: {{log: Listening}}\n\
         sessions:\n  shopper:\n    steps:\n{steps}load: {{rate: 1k/s, hold: 600s}}\n"
    );
    fs::write(folder.join("shop.yaml"), text).unwrap();
    run(folder, &[&["run", "shop.yaml", "--once"], flags].concat())
}

#[test]
fn a_trace_has_no_cookie_and_no_token_either_wherever_an_answer_repeats_them() {
    let folder = tempfile::tempdir().unwrap();
    let steps = "      - POST: /login\n        json: {user: ann}\n        extract: {mine: $.token}\n      - GET: /who\n        \
                 headers: {X-Mine: \"${mine}\"}\n";
    let output = tried(folder.path(), steps, &["--trace", "once.har"]);
    assert_eq!(code(&output), 0, "{}\n{}", stdout(&output), stderr(&output));
    let har = fs::read_to_string(folder.path().join("once.har")).unwrap();
    assert!(har.contains("*** is who has ***"), "{har}");
    for secret in ["c00kie-value", "t0p-s3cret-token"] {
        assert!(!har.contains(secret), "{secret} in {har}");
    }
}

#[test]
fn each_step_is_shown_with_all_that_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = tried(folder.path(), LOGIN, &["-v"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{text}\n{}", stderr(&output));
    for line in [
        "session shopper",
        "  1. Login: status 200 in ",
        "> POST /login HTTP/1.1",
        "> {\"user\":\"ann\",\"password\":\"***\"}",
        "< x-shop: open",
        "< {\"token\": \"***\", \"name\": \"ann\", \"items\": 3}",
        "extracted token = *** ($.token)",
        "extracted name = ann ($.name)",
        "extracted nothing for age ($.age)",
        "held check status: 200; saw status 200",
        "held check $.items: 3; saw 3",
        "name is ann",
        "variables token = ***, name = ann, age is not set",
        "> Authorization: ***",
        "> Cookie: sid=***",
        "< set-cookie: sid=***; path=/",
        "held check status: below 400, as nothing else is said; saw status 200",
        "held check body: contains ann; saw you are ann",
        "2 requests: all good",
    ] {
        assert!(text.to_lowercase().contains(&line.to_lowercase()), "no {line} in\n{text}");
    }
    for secret in ["t0p-s3cret", "c00kie", "hunter22"] {
        assert!(!text.contains(secret) && !stderr(&output).contains(secret), "{secret} in\n{text}");
    }
    // no run is left
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn without_more_words_a_step_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = tried(folder.path(), LOGIN, &["--out", "kept"]);
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!((code(&output), lines.len()), (0, 5), "{lines:?}");
    assert!(lines[2].starts_with("  2. GET /me: status 200 in ") && lines[2].ends_with(", ok"), "{lines:?}");
    assert!(folder.path().join("kept/logs/python3.log").exists());
}

#[test]
fn what_goes_wrong_and_what_is_easily_overlooked_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let steps = r#"      - GET: /moved
        extract: {who: $.who}
      - GET: /odd
      - GET: /cookies
      - GET: /broken?api_key=abcdefgh
      - GET: "/hello/${who}"
"#;
    let output = tried(folder.path(), steps, &["-v"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 1, "{text}");
    for line in [
        "1. GET /moved: status 302 in ",
        "! redirected to /there, which nobody follows",
        "! the body is encoded with \"rot13\", which is not known here: gzip, deflate, br and zstd are; no step looks at it",
        "FAILED\n     ! status 500: broken for",
        "FAILED check status: below 400, as nothing else is said; saw status 500",
        "! cookie abroad: its Domain does not cover this host",
        "5. GET /hello/${who}: not sent, FAILED\n     ! ",
        "variable \"who\" is not set",
        "5 requests: 2 failed",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(text.contains("?api_key=***") && !text.contains("abcdefgh"), "{text}");
}

#[test]
fn redirects_that_are_followed_and_bodies_that_are_decoded_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let steps = r#"      - GET: /moved
        headers: {X-Once: "${uuid()}"}
        follow: 3
        check: {body: {equals: you are there}}
      - GET: /packed
      - GET: /again
        follow: 1
"#;
    let output = tried(folder.path(), steps, &["-v"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 1, "{text}\n{}", stderr(&output));
    for line in [
        "1. GET /moved: status 200 in ",
        " after 1 redirect, ok",
        "redirected by status 302 to /there",
        "> GET /there HTTP/1.1",
        "< you are there",
        "< content-encoding: gzip",
        "< hello",
        "body 5 bytes, 25 as it came (gzip)",
        "3. GET /again: status 302 in ",
        " after 1 redirect, failed",
        "! status 302: /again: one redirect more than `follow: 1` allows",
    ] {
        assert!(text.to_lowercase().contains(&line.to_lowercase()), "no {line} in\n{text}");
    }
    assert!(!text.contains("variables") && !text.contains("! redirected"), "{text}");
    assert_eq!(text.matches("as it came").count(), 1, "only of what was decoded: {text}");
}

#[test]
fn a_session_is_chosen_by_name_and_wrong_use_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let steps = format!("{LOGIN}  reader:\n    steps:\n      - POST: /login\n");
    let output = tried(folder.path(), &steps, &["--quiet"]);
    let both = stdout(&output);
    assert!(both.contains("session shopper") && both.contains("\nsession reader\n"), "{both}");
    let output = run(folder.path(), &["run", "shop.yaml", "--once=reader"]);
    let text = stdout(&output);
    assert!(text.contains("session reader") && !text.contains("shopper"), "{text}");
    assert_eq!(code(&output), 0, "{text}");
    assert_refused(folder.path(), &["run", "shop.yaml", "--once=raeder"], "it has shopper, reader");
    assert_refused(folder.path(), &["run", "shop.yaml", "-v"], "--once");
    assert_refused(
        folder.path(),
        &["run", "shop.yaml", "--once", "--junit", "x.xml"],
        "measures nothing that --junit",
    );
    assert_refused(folder.path(), &["run", "shop.yaml", "--once", "--rate", "5/s"], "--rate");
}

#[test]
fn a_command_of_redis_protocol_is_shown_with_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = crate::hit_requests::redis();
    let text = format!(
        "system: {{url: '{url}'}}\nsessions: {{a: {{steps: [{{redis: [GET, fruit]}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
    );
    fs::write(folder.path().join("r.yaml"), text).unwrap();
    let output = run(folder.path(), &["run", "r.yaml", "--once", "-v"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{text}\n{}", stderr(&output));
    assert!(text.contains("> GET fruit\n") && text.contains("< OK\n"), "{text}");
}

#[test]
fn a_body_that_cannot_be_read_is_not_called_none() {
    let folder = tempfile::tempdir().unwrap();
    let steps = "      - GET: /torn\n        check: {body: {contains: x}, json: {$.a: 1}}\n";
    let output = tried(folder.path(), steps, &["-v"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 1, "{text}\n{}", stderr(&output));
    let saw = "saw a body that cannot be read (gzip), 14 bytes as it came";
    assert_eq!(text.matches(saw).count(), 2, "{text}");
    assert!(!text.contains("(no body)"), "{text}");
}

#[test]
fn ctrl_c_tells_the_step_under_way_and_leaves_a_whole_trace() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let text = format!(
        "system: {{url: '{}'}}\nsessions: {{a: {{steps: [{{GET: /login}}, {{GET: /stall}}, {{GET: /never}}]}}}}\n\
         load: {{users: 1, hold: 1s}}\n",
        server.url("")
    );
    fs::write(folder.path().join("x.yaml"), text).unwrap();
    let arguments = ["run", "x.yaml", "--once", "--trace", "x.har"];
    let child = begin(folder.path(), &arguments);
    wait_until("the second step hangs", || server.targets().iter().any(|target| target == "/stall"));
    send(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output) + &stderr(&output);
    assert_eq!(code(&output), 130, "{text}");
    for line in
        ["  1. GET /login: status 200", "  2. GET /stall: no answer after ", "stopped after 2 requests"]
    {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(!text.contains("FAILED") && text.contains("x.har has"), "{text}");
    let har: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("x.har")).unwrap()).expect("a whole HAR");
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{har}");
    assert_eq!(entries[1]["_outcome"], "unfinished", "{har}");
    assert!(entries[1]["request"]["url"].as_str().unwrap().ends_with("/stall"), "{har}");
}
