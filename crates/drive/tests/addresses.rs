//! Every kind of address that a system can stand at is driven.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::support::{get, run, whole_sessions};
use tidemark_drive::Address;
use tidemark_record::Outcome;
use tidemark_scenario::Plan;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// 20 sessions of two GETs.
fn twenty() -> Plan {
    whole_sessions(vec![get(0, "/a"), get(1, "/b")], 20)
}

/// Answers each request of a stream; a request comes in one piece.
fn serve(mut stream: impl Read + Write) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
        if stream.write_all(ANSWER).is_err() {
            return;
        }
    }
}

#[test]
fn an_ipv6_address_is_driven() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return eprintln!("this machine has no IPv6; nothing was tested");
    };
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|s| drop(std::thread::spawn(|| serve(s))))
    });
    let sum = run(twenty(), address);
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (40, 40), "{:?}", sum.examples());
}

#[test]
fn a_unix_socket_is_driven_and_its_end_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("system.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|s| drop(std::thread::spawn(|| serve(s))))
    });
    let sum = run(twenty(), Address::Unix(path.clone()));
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (40, 40), "{:?}", sum.examples());
    assert!(sum.connects() < 20, "connections are kept: {}", sum.connects());

    let closing = folder.path().join("closing.sock");
    let listener = UnixListener::bind(&closing).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|mut s| drop(s.read(&mut [0; 4096]))));
    let sum = run(twenty(), Address::Unix(closing));
    assert_eq!((sum.offered(), sum.outcome(Outcome::Reset)), (40, 40), "{:?}", sum.examples());
}

#[test]
fn a_unix_socket_where_nobody_listens_is_a_failed_connect() {
    let folder = tempfile::tempdir().unwrap();
    let never = folder.path().join("never.sock");
    let left = folder.path().join("left.sock");
    drop(UnixListener::bind(&left).unwrap());
    let full = folder.path().join("full.sock");
    let listener = full_listener(&full);
    for (path, detail) in [(never, "No such file"), (left, "refused"), (full, "queue")] {
        let sum = run(twenty(), Address::Unix(path));
        assert_eq!((sum.offered(), sum.outcome(Outcome::Connect)), (40, 40), "{:?}", sum.examples());
        assert!(sum.examples().iter().all(|e| e.detail.contains(detail)), "{:?}", sum.examples());
    }
    drop(listener);
}

/// A listener that never accepts, and whose queue is full.
fn full_listener(path: &Path) -> impl Drop + use<> {
    use socket2::{Domain, SockAddr, Socket, Type};
    struct Full(#[allow(dead_code)] Vec<Socket>);
    impl Drop for Full {
        fn drop(&mut self) {}
    }
    let address = SockAddr::unix(path).unwrap();
    let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let listener = socket();
    listener.bind(&address).unwrap();
    listener.listen(1).unwrap();
    let mut held = vec![listener];
    loop {
        let next = socket();
        next.set_nonblocking(true).unwrap();
        if next.connect(&address).is_err() {
            return Full(held);
        }
        held.push(next);
        assert!(held.len() < 100, "the queue never fills");
    }
}
