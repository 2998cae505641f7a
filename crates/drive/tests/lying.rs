//! Databases and caches that are late, close anywhere, or say what nobody asked: no request ever has another's answer, and none is
//! good that was not answered whole.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::websocket::{Socket, listen};
use crate::support::{Sum, begin, finish, load, options};
use tidemark_drive::{Aerospike, Cassandra, Memcached, Postgres, Protocol, Redis};
use tidemark_record::Outcome;
use tidemark_wire::resp::{ReplyDecoder, ReplyLimits, words};

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    /// Sent after so long.
    Late(Duration),
    /// Only so many of its bytes, then the connection is closed.
    Cut(usize),
    /// With these bytes behind it.
    Followed(&'static [u8]),
}

/// Takes requests from bytes: how long the first is, and what it is answered, once it is whole.
type Answers = fn(&[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)>;

/// What each value begins with, and no greeting has.
const MARK: &[u8] = b"v1";

/// A server whose answers to requests, counted over all connections, have these fates.
fn server(answers: Answers, fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> SocketAddr {
    let count = AtomicUsize::new(0);
    listen(None, move |stream| {
        let (mut buffer, mut had, mut greeted) = ([0; 4096], Vec::new(), false);
        while let Ok(bytes @ 1..) = Read::read(stream, &mut buffer) {
            had.extend_from_slice(&buffer[..bytes]);
            while let Some((length, answer)) = answers(&had, &mut greeted) {
                had.drain(..length);
                let is_request = greeted && answer.windows(2).any(|two| two == MARK);
                let fate = if is_request { fate(count.fetch_add(1, Ordering::SeqCst)) } else { Fate::Sent };
                if !send(stream, answer, fate) {
                    return;
                }
            }
        }
    })
}

fn send(stream: &mut dyn Socket, mut answer: Vec<u8>, fate: Fate) -> bool {
    match fate {
        Fate::Sent => {}
        Fate::Late(time) => std::thread::sleep(time),
        Fate::Cut(bytes) => answer.truncate(bytes),
        Fate::Followed(bytes) => answer.extend_from_slice(bytes),
    }
    stream.write_all(&answer).is_ok() && !matches!(fate, Fate::Cut(_))
}

/// `get k:N` has the value `vN`.
fn memcached(had: &[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)> {
    *greeted = true;
    let end = had.windows(2).position(|end| end == b"\r\n")? + 2;
    let line = std::str::from_utf8(&had[..end - 2]).unwrap();
    let answer = match line.split_once(' ') {
        Some(("get", key)) => {
            let value = key.replace("k:", "v");
            format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len())
        }
        _ => "VERSION 1\r\n".into(),
    };
    Some((end, answer.into_bytes()))
}

/// Each statement has one column, `n`, and one row with what was bound to it.
fn postgres(had: &[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)> {
    let before = usize::from(*greeted);
    let length = u32::from_be_bytes(had.get(before..before + 4)?.try_into().unwrap()) as usize;
    let message = had.get(..before + length)?;
    if !std::mem::replace(greeted, true) {
        return Some((message.len(), b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I".to_vec()));
    }
    // a request is what goes up to `Sync`
    let mut at = 0;
    let mut answer = Vec::new();
    loop {
        let length = u32::from_be_bytes(had.get(at + 1..at + 5)?.try_into().unwrap()) as usize;
        let message = had.get(at..=at + length)?;
        at += message.len();
        match message[0] {
            b'P' => answer.extend_from_slice(b"1\0\0\0\x04"),
            b'D' => answer.extend_from_slice(
                b"t\0\0\0\x06\0\0T\0\0\0\x1a\0\x01n\0\0\0\0\0\0\0\0\0\0\x19\0\x04\0\0\0\0\0\0",
            ),
            b'B' => {
                // name of the portal and of the statement, formats, number of values, the value with its length, formats
                let value = &message[5..message.len() - 2];
                let value = &value[value.iter().rposition(|byte| *byte == 0).unwrap() + 2..];
                answer.extend_from_slice(b"2\0\0\0\x04D");
                answer.extend_from_slice(&(value.len() as u32 + 10).to_be_bytes());
                answer.extend_from_slice(&[0, 1]);
                answer.extend_from_slice(&(value.len() as u32).to_be_bytes());
                answer.extend_from_slice(value);
            }
            b'E' => answer.extend_from_slice(b"C\0\0\0\x0dSELECT 1\0"),
            b'S' => {
                answer.extend_from_slice(b"Z\0\0\0\x05I");
                return Some((at, answer));
            }
            _ => {}
        }
    }
}

/// The same of Cassandra.
fn cassandra(had: &[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)> {
    let length = u32::from_be_bytes(had.get(5..9)?.try_into().unwrap()) as usize + 9;
    let message = had.get(..length)?;
    *greeted = true;
    let (opcode, body): (u8, Vec<u8>) = match message[4] {
        1 => (2, Vec::new()),
        9 => (
            8,
            b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\0\0\x01k\0\x01t\0\x01k\0\x0d\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01n\0\x0d"
                .to_vec(),
        ),
        _ => {
            // id, consistency, flags, number of values
            let value = &message[9 + 4 + 2 + 1 + 2..];
            (8, [&b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01"[..], value].concat())
        }
    };
    let mut answer = vec![0x84, 0, message[2], message[3], opcode];
    answer.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    answer.extend_from_slice(&body);
    Some((length, answer))
}

/// The record `k:N` has the value `vN`; only the digest of the key comes.
fn aerospike(had: &[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)> {
    *greeted = true;
    let length = u32::from_be_bytes(had.get(4..8)?.try_into().unwrap()) as usize + 8;
    let message = had.get(..length)?;
    // behind the header: the namespace, the set, the digest
    let digest = &message[30 + 9 + 6 + 5..][..20];
    let number =
        (1000..5000).find(|n| digest == tidemark_wire::aerospike::digest("s", format!("k:{n}").as_bytes()));
    let value = format!("v{}", number.expect("a key"));
    let bin = [&(value.len() as u32 + 5).to_be_bytes()[..], b"\x01\x03\0\x01n", value.as_bytes()].concat();
    let header = b"\x16\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01";
    let bytes = (header.len() + bin.len()) as u8;
    Some((length, [&[2, 3, 0, 0, 0, 0, 0, bytes][..], header, &bin].concat()))
}

/// The first command of Redis, with what its key is answered.
fn redis_answers(had: &[u8], answer: impl FnOnce(&str) -> String) -> Option<(usize, Vec<u8>)> {
    let decoded = ReplyDecoder::new(ReplyLimits::default()).decode(had).unwrap();
    let key = words(had).nth(1).filter(|_| decoded.complete)?;
    Some((decoded.consumed, answer(std::str::from_utf8(key).unwrap()).into_bytes()))
}

/// `GET k:N` has the value `vN`, in parts, with an attribute in front.
fn redis(had: &[u8], greeted: &mut bool) -> Option<(usize, Vec<u8>)> {
    *greeted = true;
    redis_answers(had, |key| {
        let value = key.replace("k:", "v");
        let (first, rest) = value.split_at(2);
        let bytes = rest.len();
        format!("|1\r\n+a\r\n*?\r\n:1\r\n.\r\n$?\r\n;2\r\n{first}\r\n;{bytes}\r\n{rest}\r\n;0\r\n")
    })
}

const PEERS: [(&str, Answers, &str, &str); 5] = [
    ("redis", redis, "redis: [GET, \"k:${n}\"]", "body: \"v${n}\""),
    ("memcached", memcached, "memcached: [get, \"k:${n}\"]", "body: \"v${n}\""),
    ("postgres", postgres, "sql: SELECT $1 AS n, with: [\"v${n}\"]", "json: {\"$[0].n\": \"v${n}\"}"),
    (
        "cql",
        cassandra,
        "cql: SELECT n FROM t WHERE k = ?, with: [\"v${n}\"]",
        "json: {\"$[0].n\": \"v${n}\"}",
    ),
    ("aerospike", aerospike, "aerospike: [get, s, \"k:${n}\", n]", "body: \"v${n}\""),
];

/// Longest wait for an answer where the test is about those that come too late.
const SHORT: &str = "60ms";
/// Where it is not, no busy machine reaches it.
const LONG: &str = "20s";

fn drive(scheme: &str, step: &str, check: &str, address: SocketAddr, limits: &str, timeout: &str) -> Sum {
    let namespace = if scheme == "aerospike" { "/test" } else { "" };
    let text = format!(
        "system: {{url: {scheme}://127.0.0.1{namespace}}}\nsessions:\n  a:\n    steps:\n      - set: {{n: \"${{count(n) + 1000}}\"}}\n      \
         - {{{step}, timeout: {timeout}, check: {{{check}}}}}\nload: {{users: 8, hold: 60s}}\nlimits: {{{limits}}}\n"
    );
    let plan = load(&text);
    let mut options = options(address, 2);
    options.targets[0].protocol = match scheme {
        "redis" => Protocol::Redis(Redis::new(false, None, None)),
        "memcached" => Protocol::Memcached(Memcached::default()),
        "aerospike" => Protocol::Aerospike(Aerospike { namespace: "test".into() }),
        "postgres" => Protocol::Postgres(Postgres { password: "p".into(), ..Postgres::default() }),
        _ => Protocol::Cassandra(Cassandra { login: Some(("u".into(), "p".into())), ..Cassandra::default() }),
    };
    finish(begin(plan, options))
}

fn limits(scheme: &str) -> Vec<&'static str> {
    let mut limits = vec!["connections: 4, sessions: 400"];
    if scheme != "cql" {
        limits.push("connections: 2, pipeline: 4, sessions: 400");
    }
    limits
}

#[test]
fn an_answer_that_is_late_is_nobodys() {
    for (scheme, answers, step, check) in PEERS {
        for limits in limits(scheme) {
            let late =
                |n: usize| if n % 23 == 7 { Fate::Late(Duration::from_millis(90)) } else { Fate::Sent };
            let sum = drive(scheme, step, check, server(answers, late), limits, SHORT);
            let told = format!("{scheme} {limits}: {:?}", sum.examples());
            assert_eq!(sum.outcome(Outcome::Check), 0, "{told}");
            assert!(sum.outcome(Outcome::Timeout) > 5 && sum.outcome(Outcome::Ok) > 100, "{told}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_anywhere_is_none() {
    for (scheme, answers, step, check) in PEERS {
        for limits in limits(scheme) {
            let cut = |n: usize| if n % 3 == 2 { Fate::Cut(n / 3 % 60) } else { Fate::Sent };
            let sum = drive(scheme, step, check, server(answers, cut), limits, SHORT);
            let told = format!("{scheme} {limits}: {:?}", sum.examples());
            assert_eq!(sum.outcome(Outcome::Check), 0, "{told}");
            assert!(sum.outcome(Outcome::Reset) > 50 && sum.outcome(Outcome::Ok) > 50, "{told}");
        }
    }
}

#[test]
fn what_nobody_asked_for_is_nobodys_answer() {
    let more: [&'static [u8]; 5] = [
        b"$?\r\n;2\r\nv9\r\n;0\r\n",
        b"VALUE k:9 0 2\r\nv9\r\nEND\r\n",
        b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x019C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I",
        b"\x84\0\0\0\x08\0\0\0\x15\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01\0\0\0\x019",
        b"\x02\x03\0\0\0\0\0\x16\x16\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0",
    ];
    for ((scheme, answers, step, check), more) in PEERS.into_iter().zip(more) {
        let limits = "connections: 4, sessions: 400";
        let fate = move |n: usize| if n % 9 == 4 { Fate::Followed(more) } else { Fate::Sent };
        let sum = drive(scheme, step, check, server(answers, fate), limits, LONG);
        let told = format!("{scheme}: {:?}", sum.examples());
        assert_eq!(sum.outcome(Outcome::Ok) + sum.outcome(Outcome::Reset), 400, "{told}");
        assert!(sum.outcome(Outcome::Ok) > 390, "{told}");
    }
}

/// It wants to know who comes, again and again, and never listens.
#[test]
fn a_server_that_asks_without_end_is_left() {
    for (scheme, asks) in
        [("postgres", &b"R\0\0\0\x08\0\0\0\x03"[..]), ("cql", b"\x84\0\0\0\x03\0\0\0\x03\0\x01x")]
    {
        let address = listen(None, move |stream| {
            let _ = stream.read(&mut [0; 64]);
            while stream.write_all(asks).is_ok() {}
        });
        let (_, _, step, check) = PEERS.into_iter().find(|peer| peer.0 == scheme).unwrap();
        let sum = drive(scheme, step, check, address, "connections: 2, sessions: 20", SHORT);
        assert_eq!(
            sum.outcome(Outcome::Connect) + sum.outcome(Outcome::Timeout),
            20,
            "{scheme}: {:?}",
            sum.examples()
        );
    }
}

#[test]
fn a_greeting_that_never_comes_is_a_time_out() {
    for scheme in ["postgres", "cql"] {
        let address = listen(None, |stream| while matches!(stream.read(&mut [0; 64]), Ok(1..)) {});
        let (_, _, step, check) = PEERS.into_iter().find(|peer| peer.0 == scheme).unwrap();
        let sum = drive(scheme, step, check, address, "connections: 8, sessions: 20", SHORT);
        assert_eq!(sum.outcome(Outcome::Timeout), 20, "{scheme}: {:?}", sum.examples());
        let details: Vec<&str> = sum.examples().iter().map(|example| example.detail.as_str()).collect();
        assert!(details.contains(&"no connection was made in time"), "{scheme}: {details:?}");
    }
}

/// What nobody looks at must be whole all the same, and what is wrong in it breaks only its own request.
#[test]
fn what_is_passed_by_must_be_an_answer() {
    const LIES: [&str; 10] = [
        "$?\r\n;3\r\nabcd\r\n;0\r\n",
        "$?\r\n$1\r\na\r\n",
        "*?\r\n:1\r\n;0\r\n",
        "%?\r\n+a\r\n.\r\n",
        "*2\r\n:1\r\n.\r\n",
        ".\r\n",
        ";0\r\n",
        "$3\r\nabcdefg\r\n",
        ">?\r\n",
        "*?\r\n>1\r\n:1\r\n.\r\n",
    ];
    let count = Arc::new(AtomicUsize::new(0));
    let address = listen(None, move |stream| {
        let (mut buffer, mut had) = ([0; 4096], Vec::new());
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            had.extend_from_slice(&buffer[..bytes]);
            let answer = |key: &str| match count.fetch_add(1, Ordering::SeqCst) {
                n if n % 2 == 0 => {
                    format!("*?\r\n$?\r\n;{}\r\n{key}\r\n;0\r\n%1\r\n+a\r\n:1\r\n.\r\n", key.len())
                }
                n => LIES[n / 2 % LIES.len()].to_owned(),
            };
            if let Some((length, answer)) = redis_answers(&had, answer) {
                had.drain(..length);
                let _ = stream.write_all(&answer);
            }
        }
    });
    let text = "system: {url: redis://127.0.0.1}\nsessions:\n  a:\n    steps:\n      - {redis: [GET, k]}\n\
                load: {users: 1, hold: 60s}\nlimits: {sessions: 60, body: 1B}\n";
    let plan = load(text);
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Redis(Redis::new(false, None, None));
    let sum = finish(begin(plan, options));
    let told = format!("{:?}", sum.examples());
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Protocol)), (30, 30), "{told}");
}
