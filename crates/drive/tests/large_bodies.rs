//! Bodies that no memory would hold: files that are read while they are sent, and answers that are only counted.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use support::identity::{NAME, identity_13};
use support::{Sum, finish, get, http, options, phase, plan, resident_kib, serving};
use tempfile::NamedTempFile;
use tidemark_drive::{DriveOptions, IoChoice, Tls, start};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::plan::{FileBody, LoadModel, UploadPiece};
use tidemark_scenario::{Plan, Shared, Template};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const LONG_MS: u64 = 3_600_000;

/// A byte of a body, by its place.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte).collect()
}

/// A file of nothing but zeros that takes no room.
fn empty_file(bytes: u64) -> (NamedTempFile, UploadPiece) {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    let body = FileBody::open(file.path()).unwrap();
    (file, UploadPiece::File(body))
}

/// So many sessions of so many users, of one POST each that sends these pieces.
fn uploads(pieces: Vec<UploadPiece>, users: f64, sessions: u64) -> Plan {
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(LONG_MS, users)]);
    plan.limits.sessions = Some(sessions);
    plan.requests[0].timeout = Duration::from_secs(60);
    let request = http(&mut plan.requests[0]);
    request.method = "POST".into();
    request.upload = pieces;
    plan
}

/// Takes the head of a request: how long the body is, and what came of it so far.
fn head(stream: &mut impl Read) -> Option<(u64, Vec<u8>)> {
    let (mut came, mut buffer) = (Vec::new(), vec![0; 4096]);
    loop {
        if let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&came[..end]).into_owned();
            let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            return Some((length.unwrap_or("0").parse().unwrap(), came.split_off(end + 4)));
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => came.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

/// Answers requests once they are whole, and tells how long their bodies were, as long as each byte is as it should be.
fn take(mut stream: impl Read + Write, right: fn(u64) -> u8, told: &Sender<u64>) {
    let mut buffer = vec![0; 64 << 10];
    while let Some((length, first)) = head(&mut stream) {
        let check = |at: u64, bytes: &[u8]| (at..).zip(bytes).all(|(at, byte)| *byte == right(at));
        assert!(check(0, &first), "the first bytes are others");
        let mut at = first.len() as u64;
        while at < length {
            match stream.read(&mut buffer) {
                Ok(n) if n > 0 => {
                    assert!(check(at, &buffer[..n]), "another byte behind {at}");
                    at += n as u64;
                }
                _ => return,
            }
        }
        assert_eq!(at, length);
        told.send(length).unwrap();
        if stream.write_all(OK).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// A server that takes bodies, with or without TLS.
fn taking(tls: Option<Arc<ServerConfig>>, right: fn(u64) -> u8, told: &Sender<u64>) -> SocketAddr {
    let told = told.clone();
    serving(move |socket| match tls.clone() {
        Some(config) => {
            let session = ServerConnection::new(config).unwrap();
            take(StreamOwned::new(session, socket), right, &told);
        }
        None => take(socket, right, &told),
    })
}

/// What came of a plan; none where this system has not that way of input and output.
fn run(plan: Plan, options: DriveOptions) -> Option<Sum> {
    let io = options.io;
    match start(plan.into(), Shared::new(1, Vec::new()).into(), options) {
        Ok(drive) => Some(finish(drive)),
        Err(error) => {
            assert!(matches!(io, IoChoice::IoUring | IoChoice::Epoll), "{error}");
            eprintln!("{error}");
            None
        }
    }
}

#[test]
fn a_file_between_texts_is_sent_whole_over_each_back_end_with_and_without_tls() {
    const END: u64 = (3 << 20) + 17;
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&bytes(100, END)).unwrap();
    let text = |from, to| UploadPiece::Text(Template::literal(bytes(from, to)));
    let body = UploadPiece::File(FileBody::open(file.path()).unwrap());
    let pieces = vec![text(0, 100), body, text(END, END + 7)];
    let identity = identity_13();
    for io in [IoChoice::IoUring, IoChoice::Epoll, IoChoice::Portable] {
        for tls in [false, true] {
            let (told, lengths) = channel();
            let address = taking(tls.then(|| identity.config.clone()), byte, &told);
            let mut options = DriveOptions { io, ..options(address, 1) };
            options.targets[0].tls = tls.then(|| Tls::new(&identity.trusted(), NAME).unwrap());
            let Some(sum) = run(uploads(pieces.clone(), 2.0, 4), options) else { break };
            assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (4, 4), "{io} {tls}: {:?}", sum.examples());
            assert_eq!(lengths.try_iter().collect::<Vec<_>>(), [END + 7; 4]);
            assert_eq!(sum.counted(Counter::UploadsCut), 0);
            assert!(sum.connects() <= 2, "connections are kept, and {} were made", sum.connects());
        }
    }
}

#[test]
fn an_answer_that_comes_before_the_end_is_one_and_the_rest_is_not_sent() {
    const FILE_BYTES: u64 = 256 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, came) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let Some((length, _)) = head(&mut socket) else { continue };
            socket.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n").unwrap();
            // whatever is still on its way
            let rest = std::io::copy(&mut socket, &mut std::io::sink()).unwrap_or(0);
            told.send((length, rest)).unwrap();
        }
    });
    let (_file, piece) = empty_file(FILE_BYTES);
    let sum = run(uploads(vec![piece], 1.0, 3), options(address, 1)).unwrap();
    assert_eq!((sum.outcome(Outcome::Status), sum.ended()), (3, 3), "{:?}", sum.examples());
    assert_eq!(sum.connects(), 3, "nothing follows half a request");
    assert_eq!(sum.counted(Counter::UploadsCut), 3, "and that it was half is told");
    for _ in 0..3 {
        let (length, rest) = came.recv().unwrap();
        assert!(length == FILE_BYTES && rest < FILE_BYTES / 2, "{rest} of {length} came");
    }
}

#[test]
fn a_file_that_became_shorter_fails_its_request() {
    let (told, lengths) = channel();
    let address = taking(None, |_| 0, &told);
    let (file, piece) = empty_file(8 << 20);
    file.as_file().set_len(3 << 20).unwrap();
    let sum = run(uploads(vec![piece], 1.0, 1), options(address, 1)).unwrap();
    assert_eq!((sum.outcome(Outcome::Reset), sum.ended()), (1, 1), "{:?}", sum.examples());
    assert!(sum.examples()[0].detail.contains("became shorter"), "{:?}", sum.examples());
    assert!(lengths.try_recv().is_err(), "no whole request came");
}

/// Says that something is over, also where that failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How much more memory is in use while this goes on, MiB.
fn growth(of: impl FnOnce()) -> u64 {
    let before = resident_kib();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = resident_kib().max(most);
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let over = Over(&is_over);
        of();
        drop(over);
        watch.join().unwrap().saturating_sub(before) >> 10
    })
}

/// Sends so many zeros for each request.
fn answering(body_bytes: u64) -> SocketAddr {
    serving(move |mut socket| {
        while head(&mut socket).is_some() {
            let _ = write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n");
            let _ = std::io::copy(&mut std::io::repeat(0).take(body_bytes), &mut socket);
        }
    })
}

/// Four users with a file, and an answer, each of which is larger than what all may take. Other tests of this file run
/// meanwhile, which take less than that.
#[test]
fn memory_does_not_grow_with_bodies() {
    const LARGE: u64 = 112 << 20;
    const MOST_MIB: u64 = 96;
    let (_file, piece) = empty_file(LARGE);
    let (told, lengths) = channel();
    let address = taking(None, |_| 0, &told);
    let grown = growth(|| {
        let sum = run(uploads(vec![piece], 4.0, 4), options(address, 1)).unwrap();
        assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (4, 4), "{:?}", sum.examples());
    });
    assert_eq!(lengths.try_iter().collect::<Vec<_>>(), [LARGE; 4]);
    assert!(grown < MOST_MIB, "{grown} MiB more while files were sent");

    let address = answering(LARGE);
    let grown = growth(|| {
        let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(LONG_MS, 4.0)]);
        plan.limits.sessions = Some(4);
        plan.limits.body_bytes = 1 << 30;
        plan.requests[0].timeout = Duration::from_secs(60);
        let sum = run(plan, options(address, 1)).unwrap();
        assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (4, 4), "{:?}", sum.examples());
    });
    assert!(grown < MOST_MIB, "{grown} MiB more while answers came");
}
