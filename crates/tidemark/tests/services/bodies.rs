//! Bodies of any bytes, of files, in parts, and encoded ones. How much memory large ones take is checked in `drive`.

use std::fs;

use serde_json::Value;

use super::{assert_all_good, folder, loaded, measured, of, once};

/// Bytes that are no text, so many of them.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn a_file_is_sent_as_it_is_and_in_a_form_with_parts() {
    let folder = folder(
        r#"
system: {url: "{shop}"}
settings: {part: "--one-of-three"}
sessions:
  sender:
    steps:
      - PUT: /raw
        headers: {Content-Type: image/png}
        body: "${file('picture.png')}"
        check: {json: {$.size: 100000, $.sha256: "${sha256(file('picture.png'))}", $.type: image/png}}
      - POST: /uploads
        headers: {Content-Type: multipart/form-data; boundary=one-of-three}
        body: "${part}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n${part}\r\n\
          Content-Disposition: form-data; name=\"file\"; filename=\"picture.png\"\r\nContent-Type: image/png\r\n\r\n\
          ${file('picture.png')}\r\n${part}--\r\n"
        check: {json: {$.size: 100000, $.sha256: "${sha256(file('picture.png'))}", $.name: picture.png, $.note: hello}}
load: {users: 1, hold: 1s}
"#,
    );
    fs::write(folder.path().join("picture.png"), bytes(100_000)).unwrap();
    assert_all_good(&measured(folder.path(), &["run", "s.yaml", "--out", "run"]));
    let shown = once(
        r#"
system: {url: "{shop}"}
sessions:
  sender:
    steps:
      - PUT: /raw
        body: "${base64_decode('//4AAQ==')}"
        check: {json: {$.size: 4}}
load: {users: 1, hold: 1s}
"#,
    );
    assert!(shown.contains("> PUT /raw HTTP/1.1") && shown.contains("> (4 bytes of binary data)"), "{shown}");
}

#[test]
fn a_file_that_is_read_while_it_is_sent_arrives_whole_alone_and_in_a_form() {
    let folder = folder(
        r#"
system: {url: "{shop}"}
sessions:
  sender:
    steps:
      - POST: /uploads
        multipart: {note: "for ${uuid()}", file: {file: film.bin, type: video/mp4, name: today.mp4}}
        extract: {note: $.note}
        check:
          json: {$.size: 3145728, $.sha256: "${sha256(file('film.bin'))}", $.name: today.mp4, $.type: video/mp4}
          that: "${starts_with(note, 'for ') and len(note) == 40}"
      - PUT: /raw
        body: {file: film.bin}
        check: {json: {$.size: 3145728, $.sha256: "${sha256(file('film.bin'))}", $.type: application/octet-stream}}
load: {users: 2, hold: 60s}
limits: {sessions: 6}
"#,
    );
    fs::write(folder.path().join("film.bin"), bytes(3 << 20)).unwrap();
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_all_good(&summary);
    assert_eq!(summary["statuses"]["200"], 12, "{summary}");
}

#[test]
fn bytes_are_known_as_they_came_and_as_they_are_once_decoded() {
    let summary = loaded(
        r#"
system: {url: "{nginx}"}
sessions:
  reader:
    steps:
      - GET: /words.txt
        headers: {Accept-Encoding: gzip}
        extract: {words: body}
        measure: {decoded: {counter: "${len(words)}", unit: bytes}}
load: {users: 1, hold: 1s}
"#,
    );
    let decoded = of(&summary, "metrics", "metric", "decoded")["sum"].as_f64().unwrap();
    let page = &summary["page"];
    let total = |series: &str| {
        let rates = page["series"][series].as_array().unwrap().iter();
        rates.filter_map(Value::as_f64).sum::<f64>() * page["bin_s"].as_f64().unwrap()
    };
    let received = total("received_bytes_per_s");
    assert!(received > 0.0 && received < decoded / 2.0, "{received} bytes for {decoded}");
    let (came, bodies) = (total("encoded_bytes_per_s"), total("decoded_bytes_per_s"));
    assert!(came > 0.0 && came < received, "{came} of {received} bytes");
    assert!(bodies >= decoded * 0.9, "{bodies} for {decoded}: nginx' words, all decoded");
    assert!(bodies / came > 2.0, "{bodies} of {came}");
}
