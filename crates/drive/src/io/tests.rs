use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use socket2::Socket;

use super::*;
use crate::io::address::Address;

const LONG: Duration = Duration::from_secs(10);

fn nowhere() -> Address {
    Address::Tcp("127.0.0.1:9".parse().unwrap())
}

/// Waits for the next event that is not a wake-up.
fn next(io: &mut impl Io) -> (usize, Event) {
    for _ in 0..100 {
        if let Some(found) = io.next() {
            return found;
        }
        io.wait(Some(LONG)).unwrap();
    }
    panic!("nothing happened");
}

fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().unwrap().0
}

/// The server's side of a connection that is made.
fn connected(io: &mut impl Io, connection: usize, listener: &TcpListener) -> TcpStream {
    io.open(connection).unwrap();
    let event = next(io);
    assert!(matches!(event, (opened, Event::Opened) if opened == connection), "{event:?}");
    accept(listener)
}

/// Every back end that this system has, and who listens where it connects.
fn each_to(connections: usize, test: impl Fn(SystemIo, &TcpListener)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().into();
    each(connections, address, |io, _| test(io, &listener));
}

/// Every back end that this system has.
fn each(connections: usize, address: Address, test: impl Fn(SystemIo, Waker)) {
    let choices = [IoChoice::IoUring, IoChoice::Epoll, IoChoice::Portable];
    // what comes with timestamps is received in another form
    for (choice, stamped) in choices.into_iter().flat_map(|choice| [(choice, false), (choice, true)]) {
        match Poller::new(choice, connections) {
            Ok(poller) => {
                let waker = poller.waker();
                test(poller.into_io(Dialer::new(&address, 1), connections, stamped).unwrap(), waker);
            }
            Err(error) => {
                assert!(choice != IoChoice::Portable, "{error}");
                eprintln!("{choice} is not to be had here: {error}");
            }
        }
    }
}

/// The same conversation over each back end: all must keep the seam's promises.
#[test]
fn converses() {
    each_to(3, converse);
}

fn converse(mut io: SystemIo, listener: &TcpListener) {
    let mut peer = connected(&mut io, 2, listener);

    // More than any socket buffer takes: it goes out in pieces, as the peer reads.
    let large = vec![7u8; 16 << 20];
    io.output(2).extend_from_slice(&large);
    io.send(2).unwrap();
    assert!(io.is_sending(2));
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; 16 << 20];
        peer.read_exact(&mut got).unwrap();
        peer.write_all(&vec![9u8; 200_000]).unwrap();
        drop(peer);
        got
    });
    let mut received = 0;
    loop {
        match next(&mut io) {
            (2, Event::Received { .. }) => received += io.received().len(),
            (2, Event::Ended) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reader.join().unwrap(), large);
    assert_eq!(received, 200_000);
    assert_eq!(io.traffic(), (16 << 20, 200_000));
    assert!(!io.is_sending(2));
    io.close(2);

    // The number is used again; news of the first socket are not taken for the second's.
    drop(connected(&mut io, 2, listener));
    assert!(matches!(next(&mut io), (2, Event::Ended)));
    io.close(2);
}

/// What is sent in pieces leaves as the peer takes it, one when all before it has been taken.
#[test]
fn tells_when_all_is_taken() {
    const PIECE_BYTES: usize = 1 << 20;
    each_to(1, |mut io, listener| {
        let mut peer = connected(&mut io, 0, listener);
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; 16 * PIECE_BYTES];
            peer.read_exact(&mut got).unwrap();
            got
        });
        for piece in 0..16 {
            io.output(0).resize(PIECE_BYTES, piece);
            io.send(0).unwrap();
            io.tell_taken(0).unwrap();
            assert!(matches!(next(&mut io), (0, Event::Taken)));
            assert!(!io.is_sending(0));
        }
        let got = reader.join().unwrap();
        let right = |(piece, bytes): (usize, &[u8])| bytes.iter().all(|byte| usize::from(*byte) == piece);
        assert!(got.chunks(PIECE_BYTES).enumerate().all(right));
        io.close(0);
    });
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().into();
    drop(listener);
    each(1, address, |mut io, _| match io.open(0) {
        Err(_) => {}
        Ok(()) => assert!(matches!(next(&mut io), (0, Event::Failed(_)))),
    });
}

#[test]
fn wakes() {
    each(0, nowhere(), |mut io, wake| {
        for _ in 0..3 {
            let wake = wake.clone();
            let other = std::thread::spawn(move || wake());
            io.wait(None).unwrap();
            assert!(io.next().is_none());
            other.join().unwrap();
        }
    });
}

/// Whatever is under way when a connection is closed (being made, receiving, sending without room), the peer sees its
/// end, its number can be used again, and news of the old socket are not taken for the new one's.
#[test]
fn closes_with_anything_under_way() {
    each_to(2, |mut io, listener| {
        for round in 0..60 {
            io.open(0).unwrap();
            if round % 3 == 0 {
                io.close(0); // while it is being made; what came of it is accepted below and thrown away
                continue;
            }
            assert!(matches!(next(&mut io), (0, Event::Opened)));
            let size = if round % 3 == 1 { 100 } else { 8 << 20 };
            io.output(0).resize(size, b'x');
            io.send(0).unwrap();
            io.wait(Some(Duration::ZERO)).unwrap();
            assert!(io.next().is_none());
            assert_eq!(io.is_sending(0), size > 100);
            io.close(0);
            io.wait(Some(Duration::from_millis(1))).unwrap();
            assert!(io.next().is_none(), "no event of it follows");
            let mut peers = Vec::new();
            listener.set_nonblocking(true).unwrap();
            while let Ok((peer, _)) = listener.accept() {
                peers.push(peer);
            }
            listener.set_nonblocking(false).unwrap();
            for mut peer in peers {
                peer.set_nonblocking(false).unwrap();
                peer.set_read_timeout(Some(LONG)).unwrap();
                let mut all = Vec::new();
                // A reset is an end too.
                let _ = peer.read_to_end(&mut all).map_err(|e| assert_ne!(e.kind(), ErrorKind::WouldBlock));
                assert!(all.len() <= size && all.iter().all(|byte| *byte == b'x'));
            }
        }
    });
}

/// A request on a connection that the peer has reset in the meantime: nothing of it is taken, and that is said.
#[test]
fn tells_what_was_not_taken() {
    each_to(1, |mut io, listener| {
        let peer = Socket::from(connected(&mut io, 0, listener));
        peer.set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        io.output(0).extend_from_slice(b"GET");
        if io.send(0).is_ok() {
            let event = next(&mut io);
            assert!(matches!(event, (0, Event::Unsent(_))), "{event:?}");
        }
        io.close(0);
        assert_eq!(io.traffic(), (0, 0));
    });
}

/// Many large answers at once, more than there are buffers.
#[test]
fn receives_more_than_there_are_buffers() {
    const PEERS: usize = 40;
    const BYTES: usize = 1 << 20;
    each_to(PEERS, |mut io, listener| {
        let peers: Vec<TcpStream> = (0..PEERS).map(|one| connected(&mut io, one, listener)).collect();
        let write =
            |mut peer: TcpStream| std::thread::spawn(move || peer.write_all(&vec![5; BYTES]).unwrap());
        let threads: Vec<_> = peers.into_iter().map(write).collect();
        let (mut received, mut ended) = (0, 0);
        while ended < PEERS {
            match next(&mut io) {
                (_, Event::Received { .. }) => {
                    assert!(io.received().iter().all(|byte| *byte == 5));
                    received += io.received().len();
                }
                (_, Event::Ended) => ended += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(received, PEERS * BYTES);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A selector whose sockets are told beforehand: they only count how much is left to be read.
#[derive(Default)]
struct Told {
    tokens: Vec<u64>,
    news: Vec<Ready>,
    waits: Vec<Option<Duration>>,
}

struct ToldStream(usize);

impl Read for ToldStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = buffer.len().min(self.0);
        self.0 -= bytes;
        if bytes == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(bytes) }
    }
}

impl Write for ToldStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Selector for Told {
    type Stream = ToldStream;

    fn add(&mut self, _: TcpStream, token: u64) -> io::Result<ToldStream> {
        self.tokens.push(token);
        Ok(ToldStream(0))
    }

    fn error_of(_: &ToldStream) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.waits.push(at_most);
        Ok(())
    }

    fn ready(&self, index: usize) -> Option<Ready> {
        self.news.get(index).copied()
    }
}

/// A socket that always has more is read in turn with the others, though its readiness is told once; and is read to its end.
#[test]
fn one_that_sends_without_end_leaves_the_others_their_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: Address = listener.local_addr().unwrap().into();
    let mut io = Readiness::new(Told::default(), Dialer::new(&address, 1), 3);
    (0..3).for_each(|connection| io.open(connection).unwrap());
    let tokens = io.selector.tokens.clone();
    let news = |of: &[usize], readable| -> Vec<Ready> {
        let ready = |connection: &usize| Ready {
            token: tokens[*connection],
            readable,
            writable: true,
            closing: false,
        };
        of.iter().map(ready).collect()
    };
    let turn = |io: &mut Readiness<Told>, news: Vec<Ready>| -> Vec<(usize, bool)> {
        io.selector.news = news;
        io.wait(None).unwrap();
        std::iter::from_fn(|| io.next())
            .take(10)
            .map(|(from, event)| (from, matches!(event, Event::Opened)))
            .collect()
    };
    assert_eq!(turn(&mut io, news(&[0, 1, 2], false)), [(0, true), (1, true), (2, true)]);
    for (connection, bytes) in [(0, usize::MAX), (1, 2 * RECEIVE_BYTES + 1), (2, 1)] {
        io.connections[connection].stream = Some(ToldStream(bytes));
    }
    assert_eq!(turn(&mut io, news(&[0, 1, 2], true)), [(0, false), (1, false), (2, false)]);
    // what is told again meanwhile gives no second turn
    assert_eq!(turn(&mut io, news(&[1, 0], true)), [(0, false), (1, false)]);
    assert_eq!(turn(&mut io, news(&[], true)), [(0, false), (1, false)]);
    assert_eq!(turn(&mut io, news(&[], true)), [(0, false)], "the other one is empty");
    io.connections[2].stream = Some(ToldStream(1));
    assert_eq!(turn(&mut io, news(&[2], true)), [(0, false), (2, false)]);
    io.close(0);
    assert!(turn(&mut io, news(&[], true)).is_empty());
    let zero = Some(Duration::ZERO);
    assert_eq!(io.selector.waits, [None, None, zero, zero, zero, zero, None], "no wait while there is more");
}

/// What was sent and handed over leaves without a wait.
#[test]
fn hands_over() {
    each_to(1, |mut io, listener| {
        let mut peer = connected(&mut io, 0, listener);
        io.output(0).extend_from_slice(b"ping");
        io.send(0).unwrap();
        io.hand_over().unwrap();
        peer.set_read_timeout(Some(LONG)).unwrap();
        let mut got = [0; 4];
        peer.read_exact(&mut got).unwrap();
        assert!(!io.is_sending(0));
        peer.write_all(b"pong").unwrap();
        assert!(matches!(next(&mut io), (0, Event::Received { .. })));
        assert_eq!(io.received(), b"pong");
        io.close(0);
    });
}

/// The kernel tells when what is read late came, of a sample of connections at least; never of what came over others.
/// What is done with bytes before the next event is asked for changes nothing of when they were taken.
#[test]
fn tells_when_bytes_were_taken() {
    each_to(2, |mut io, listener| {
        let mut peers = [0, 1].map(|connection| connected(&mut io, connection, listener));
        let before = Instant::now();
        peers.iter_mut().for_each(|peer| peer.write_all(b"pong").unwrap());
        for _ in 0..2 {
            assert!(matches!(next(&mut io), (_, Event::Received { .. })));
            let (taken_at, now) = (io.taken_at().expect("bytes are taken"), Instant::now());
            assert!(before < taken_at && taken_at <= now, "{:?}", now - before);
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(io.taken_at(), Some(taken_at));
        }
        assert!(io.next().is_none() && io.taken_at().is_none(), "nothing more came");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn tells_when_bytes_came() {
    const LATE: Duration = Duration::from_millis(30);
    const TRIES: usize = 1_000;
    each_to(2, |mut io, listener| {
        let mut peers = [0, 1].map(|connection| connected(&mut io, connection, listener));
        // the kernel begins to stamp a moment after the first socket asks for it
        for _ in 0..TRIES {
            peers[0].write_all(b"ping").unwrap();
            assert!(matches!(next(&mut io), (0, Event::Received { .. })));
            if io.arrived().is_some() || matches!(io, SystemIo::Portable(_)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for (connection, peer) in peers.iter_mut().enumerate() {
            let before = std::time::SystemTime::now();
            peer.write_all(b"pong").unwrap();
            std::thread::sleep(LATE);
            assert!(matches!(next(&mut io), (from, Event::Received { .. }) if from == connection));
            assert_eq!(io.received(), b"pong");
            match (io.arrived(), &io) {
                (None, SystemIo::Portable(_)) => {}
                (None, _) => assert_eq!(connection, 1, "the first of a sample"),
                (Some(at_ns), _) => {
                    let at = std::time::UNIX_EPOCH + Duration::from_nanos(at_ns);
                    // else somebody set the clock
                    if let (Ok(_), Ok(late)) = (at.duration_since(before), at.elapsed()) {
                        assert!(late >= LATE, "{late:?}");
                    }
                }
            }
        }
        drop(peers);
        let mut ended = [next(&mut io), next(&mut io)].map(|(connection, event)| match event {
            Event::Ended => connection,
            other => panic!("{other:?}"),
        });
        ended.sort_unstable();
        assert_eq!(ended, [0, 1]);
    });
}

/// A sleep is never shorter than asked for, and not a millisecond longer just because of rounding.
#[test]
#[cfg(target_os = "linux")]
fn waits_to_the_microsecond() {
    each(0, nowhere(), |mut io, _| {
        if matches!(io, SystemIo::Portable(_)) {
            return;
        }
        // On a busy machine a wait is long for other reasons; one that is not will come.
        let begun = std::time::Instant::now();
        loop {
            let begin = std::time::Instant::now();
            io.wait(Some(Duration::from_micros(150))).unwrap();
            let took = begin.elapsed();
            assert!(took >= Duration::from_micros(150), "{took:?}");
            if took < Duration::from_micros(900) {
                break;
            }
            assert!(begun.elapsed() < 3 * LONG, "every wait is rounded up");
        }
    });
}

/// Long waits may share a timer, which rings before they are over: none is longer than it was to be, and few are cut short.
#[test]
fn long_waits_end_when_they_are_to() {
    let whole = Duration::from_millis(120);
    each(1, nowhere(), |mut io, wake| {
        let (begun, mut waits) = (Instant::now(), 0);
        wake();
        while let Some(rest) = whole.checked_sub(begun.elapsed()) {
            io.wait(Some(rest)).unwrap();
            while io.next().is_some() {}
            waits += 1;
        }
        assert!((2..20).contains(&waits), "{waits} waits");
        assert!(begun.elapsed() < LONG, "a wait took as long as it wanted");
    });
}
