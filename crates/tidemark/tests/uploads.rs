//! Bodies from files: small ones, large ones, and forms that have some.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::server::Server;
use crate::program::{assert_refused, code, run, stderr, stdout};

const STEPS: &str = "      - PUT: /small\n        body: {file: small.bin}\n      - POST: /form\n        multipart: {title: large, film: {file: large.bin, type: video/mp4}}\n";

fn scenario(folder: &Path, server: &Server, steps: &str) {
    let text = format!(
        "system: {{url: '{}'}}\nsessions:\n  a:\n    steps:\n{steps}load: {{users: 2, hold: 60s}}\nlimits: {{sessions: 6}}\n",
        server.url("")
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    // the end of the head is where a body can begin
    let mut starts =
        bytes.windows(4).enumerate().filter(|(_, four)| *four == b"\r\n\r\n").map(|(at, _)| at + 4);
    starts.any(|at| bytes[at..].starts_with(part))
}

#[test]
fn files_arrive_whole_and_a_trace_says_what_it_has_not_kept() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, STEPS);
    let large: Vec<u8> = (0..(3_u32 << 20) + 5).map(|at| (at % 251) as u8).collect();
    fs::write(folder.path().join("large.bin"), &large).unwrap();
    fs::write(folder.path().join("small.bin"), b"\x00\xffsmall").unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "-t", "1"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let raw = server.raw();
    let (forms, small): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
        raw.iter().partition(|one| one.starts_with(b"POST /form "));
    assert_eq!((forms.len(), small.len()), (6, 6));
    assert!(small.iter().all(|one| one.ends_with(b"\r\n\r\n\x00\xffsmall")));
    for form in forms {
        assert!(holds(form, &large), "the file is not whole, of {} bytes", form.len());
        assert!(form.ends_with(b"--\r\n"));
    }
    server.forget();
    let output = run(folder.path(), &["run", "s.yaml", "--once", "-v", "--trace", "t.har"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("POST /form HTTP/1.1"), "{}", stdout(&output));
    let har: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("t.har")).unwrap()).unwrap();
    let form = &har["log"]["entries"][1]["request"];
    assert!(form["bodySize"].as_u64().unwrap() > large.len() as u64, "{form}");
    assert!(form["comment"].as_str().unwrap().contains("not kept"), "{form}");
}

#[test]
fn a_large_file_and_http_2_do_not_go_together() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    fs::File::create(folder.path().join("large.bin")).unwrap().set_len(2 << 20).unwrap();
    let text = "system: {url: 'https://127.0.0.1:9', http: 2}\nsessions: {a: {steps: [{PUT: /a, body: {file: large.bin}}]}}\n\
                load: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    assert_refused(folder.path(), &["run", "s.yaml", "-q"], "HTTP/1.1 only");
    scenario(folder.path(), &server, "      - PUT: /a\n        body: {file: no.bin}\n");
    assert_refused(folder.path(), &["run", "s.yaml", "-q"], "no.bin: there is no such file");
    assert!(server.requests().is_empty());
}
