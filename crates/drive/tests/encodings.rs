//! Bodies that come encoded: read where a step looks at them, and told by their encoding's name where they cannot be.

use std::io::Write as _;

use crate::support::{Next, Server, Sum, begin, finish, options, told, with_steps};
use tidemark_record::{Counter, Outcome};

/// `{"id": "lamp"}` in each encoding, as their own programs write it.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\xca\x4c\x51\xb2\x52\x50\xca\x49\xcc\x2d\x50\xaa\x05\x00\
    \x43\xf2\x04\x6c\x0e\x00\x00\x00";
const DEFLATE: &[u8] =
    b"\x78\x9c\xab\x56\xca\x4c\x51\xb2\x52\x50\xca\x49\xcc\x2d\x50\xaa\x05\x00\x1f\x38\x04\x52";
const BROTLI: &[u8] = b"\x8b\x06\x80\x7b\x22\x69\x64\x22\x3a\x20\x22\x6c\x61\x6d\x70\x22\x7d\x03";
const ZSTD: &[u8] =
    b"\x28\xb5\x2f\xfd\x00\x58\x71\x00\x00\x7b\x22\x69\x64\x22\x3a\x20\x22\x6c\x61\x6d\x70\x22\x7d";
/// In gzip, and then in zstd.
const GZIP_ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x00\x58\x11\x01\x00\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\xca\x4c\x51\xb2\x52\
    \x50\xca\x49\xcc\x2d\x50\xaa\x05\x00\x43\xf2\x04\x6c\x0e\x00\x00\x00";
/// 3 MiB of zeros, twice in gzip.
const BOMB: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x93\xef\xe6\x60\x00\x01\x26\xe6\xb7\x07\x19\x79\x19\x18\x18\x0e\
    \x2d\xf8\xee\x9f\xcb\x67\xbe\x80\x61\x14\x8c\x82\x51\x30\x0a\x46\xc1\x28\x18\x05\xa3\x60\x14\x8c\x82\x51\
    \x30\xec\xc0\x3e\xde\x63\xfe\x45\x95\x0c\x0c\x06\x0c\x00\xbd\x8a\x2f\xf2\x0b\x0c\x00\x00";

/// Answers with what the path names.
fn server() -> Server {
    Server::start(|request, stream| {
        let (encoding, body) = match request.target() {
            "/gzip" => ("gzip", GZIP),
            "/deflate" => ("deflate", DEFLATE),
            "/br" => ("br", BROTLI),
            "/zstd" => ("zstd", ZSTD),
            "/both" => ("gzip\r\nContent-Encoding: zstd", GZIP_ZSTD),
            "/cut" => ("gzip", &GZIP[..GZIP.len() - 9]),
            "/bomb" => ("gzip, gzip", BOMB),
            "/odd" => ("rot13", &b"ynzc"[..]),
            "/as-asked" if request.head.contains("Accept-Encoding: br\r\n") => ("br", BROTLI),
            "/as-asked" => {
                assert!(!request.head.to_lowercase().contains("accept-encoding"), "{}", request.head);
                ("identity", &b"{\"id\": \"lamp\"}"[..])
            }
            other => panic!("{other}"),
        };
        let status = if request.head.contains("X-Wrong") { "500 Wrong" } else { "200 OK" };
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Encoding: {encoding}\r\nContent-Length: {length}\r\n\r\n");
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        Next::Keep
    })
}

fn ten(server: &Server, steps: &str) -> Sum {
    let plan = with_steps(steps, "load: {users: 2, hold: 60s}\nlimits: {sessions: 10, body: 1MiB}");
    finish(begin(plan, options(server.address, 1)))
}

/// Bytes of bodies that were decoded, as they came and after.
fn bodies(sum: &Sum) -> (u64, u64) {
    (sum.in_intervals(Counter::EncodedBytes), sum.in_intervals(Counter::DecodedBytes))
}

/// Bytes of the bodies of good answers.
fn good_bytes(sum: &Sum) -> u64 {
    sum.intervals.iter().flat_map(|of| &of.series).map(|series| series.body_bytes).sum()
}

#[test]
fn what_is_looked_at_is_read_whatever_its_encoding() {
    let server = server();
    let mut steps = String::new();
    for path in ["gzip", "deflate", "br", "zstd", "both"] {
        steps += &format!(
            "- GET: /{path}\n  extract: {{id: $.id}}\n  check: {{json: {{$.id: lamp}}, that: \"id == 'lamp'\"}}\n"
        );
    }
    steps += "- GET: /as-asked\n  label: Plain\n  check: {json: {$.id: lamp}}\n\
              - GET: /as-asked\n  label: Asked\n  headers: {Accept-Encoding: br}\n  \
                check: {json: {$.id: lamp}, header: {content-encoding: br}}";
    let sum = ten(&server, &steps);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (70, 70), "{:?}", told(&sum));
    assert_eq!(server.connections(), 2, "connections are kept");
    let came = [GZIP, DEFLATE, BROTLI, ZSTD, GZIP_ZSTD, BROTLI].map(<[u8]>::len).iter().sum::<usize>() as u64;
    let lamp = r#"{"id": "lamp"}"#.len() as u64;
    assert_eq!(bodies(&sum), (10 * came, 10 * 6 * lamp), "the plain one is none of them");
    assert!(sum.in_intervals(Counter::ReceivedBytes) > 10 * came);
    assert_eq!(good_bytes(&sum), sum.ended() * lamp, "once decoded");
}

#[test]
fn what_cannot_be_read_fails_by_its_encodings_name_and_the_connection_goes_on() {
    let server = server();
    let check = "check: {body: {contains: lamp}}";
    let steps = format!(
        "- GET: /odd\n  {check}\n- GET: /cut\n  {check}\n- GET: /bomb\n  {check}\n- GET: /gzip\n  {check}"
    );
    let sum = ten(&server, &steps);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Protocol)), (10, 30), "{:?}", told(&sum));
    let lamp = r#"{"id": "lamp"}"#.len() as u64;
    assert_eq!(bodies(&sum), (10 * GZIP.len() as u64, 10 * lamp), "only what could be read");
    let details = told(&sum).join("\n");
    for words in [
        "status 200: the body is encoded with \"rot13\", which is not known here: gzip, deflate, br and zstd are",
        "status 200: the body cannot be read as gzip: ",
        "status 200: the body is larger than the limit of 1048576 bytes once its gzip is read (`limits: body`)",
    ] {
        assert!(details.contains(words), "{details}");
    }
    assert_eq!(server.connections(), 2, "what came was whole");
}

#[test]
fn what_nobody_looks_at_is_not_read_and_a_wrong_status_is_told_first() {
    let server = server();
    let sum = ten(
        &server,
        "- GET: /odd\n- GET: /bomb\n- GET: /cut\n  label: Wrong\n  headers: {X-Wrong: \"1\"}\n  extract: {a: body}",
    );
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Status)), (20, 10), "{:?}", told(&sum));
    assert_eq!(told(&sum), ["status 500: (a body encoded with gzip)"]);
    assert_eq!(bodies(&sum), (0, 0));
    assert_eq!(
        good_bytes(&sum),
        10 * (b"ynzc".len() + BOMB.len()) as u64,
        "as they came, and none of a failure"
    );
}
