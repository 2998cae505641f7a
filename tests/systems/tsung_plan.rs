//! A plan of Tsung as a scenario: one user sends the same requests, in the same order, as Debian's Tsung does with the plan.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::{project, tidemark};
use crate::tsung::tsung;

/// Headers that each client writes as it likes.
const OWN_HEADERS: [&str; 6] =
    ["host", "connection", "content-length", "accept", "accept-encoding", "transfer-encoding"];

/// What was asked: the first line, headers in order, the body.
type Asked = Arc<Mutex<Vec<String>>>;

/// Answers, and notes what it is asked.
fn record(listener: &TcpListener) -> Asked {
    let asked = Asked::default();
    let (listener, notes) = (listener.try_clone().expect("a listener"), asked.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let notes = notes.clone();
            std::thread::spawn(move || while answer(&stream, &notes).is_some() {});
        }
    });
    asked
}

fn answer(stream: &TcpStream, notes: &Asked) -> Option<()> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == "content-length" {
            length = value.parse().ok()?;
        }
        if !OWN_HEADERS.contains(&name.as_str()) {
            headers.push(format!("{name}: {value}"));
        }
    }
    headers.sort();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?;
    let before = {
        let mut notes = notes.lock().ok()?;
        let before = notes.iter().filter(|note| note.contains(" /retry ")).count();
        notes.push(format!("{first}\n{}\n{}", headers.join("\n"), String::from_utf8_lossy(&body)));
        before
    };
    let (head, text) = match path.split('?').next()? {
        "/page" => (
            "200 OK\r\nSet-Cookie: sid=abc; Path=/",
            "Welcome <title>The Title</title> <input name=\"csrf\" value=\"tok1\"/>",
        ),
        "/json" => ("200 OK", r#"{"a":{"id":7},"list":[{"id":"x","v":1},{"id":"y","v":2}]}"#),
        "/moved" => ("302 Found\r\nLocation: /where?x=1&y=2", ""),
        "/retry" => ("200 OK", if before < 2 { "Retry" } else { "Done" }),
        "/error" => ("200 OK", "Error here"),
        _ => ("200 OK", "ok"),
    };
    let length = text.len();
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{text}").ok()
}

fn prepare(folder: &Path, port: u16) {
    let plan = std::fs::read_to_string(project().join("tests/tsung/user.xml")).expect("the plan");
    let plan = plan.replace("PORT", &port.to_string());
    // Tsung looks for files from where it is started
    let file = |name: &str| format!("\"{}\"", folder.join(name).display());
    let plan = ["people.csv", "lines.csv", "body.txt", "login.xml"]
        .iter()
        .fold(plan, |plan, name| plan.replace(&format!("\"{name}\""), &file(name)));
    let plan = plan.replace("tsung-1.0.dtd", "/usr/share/tsung/tsung-1.0.dtd");
    for (name, text) in [
        ("plan.xml", plan.as_str()),
        ("people.csv", "ann;secret-1\nbob;secret-2\n"),
        ("lines.csv", "l1;l2\nl3;l4\n"),
        ("body.txt", "hello %%_user%%\nline two\n"),
        ("login.xml", "<request><http url=\"/included\"/></request>\n"),
    ] {
        std::fs::write(folder.join(name), text).expect("a file of the plan");
    }
}

#[test]
fn one_user_sends_what_tsung_sends() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    prepare(folder, port);
    let asked = record(&listener);
    let plan = folder.join("plan.xml");

    let log = tsung(folder, &plan);
    let theirs = std::mem::take(&mut *asked.lock().expect("what was asked"));
    assert!(theirs.len() > 50, "{log}");

    let imported =
        tidemark_import::plan(&plan, &tidemark_import::PlanOptions::default(), folder).expect("a scenario");
    let told: Vec<String> = imported.left_out.iter().map(ToString::to_string).collect();
    assert!(told.len() == 2 && told[0].contains("\"never\"") && told[1].contains("\"nowhere\""), "{told:?}");
    assert!(imported.left_out.iter().all(|one| !one.is_request));
    let output =
        tidemark().current_dir(folder).args(["run", "plan.xml", "--once"]).output().expect("tidemark runs");
    let ours = std::mem::take(&mut *asked.lock().expect("what was asked"));
    for (number, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(ours, theirs, "request {number}");
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(ours.len(), theirs.len(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{shown}");
}
