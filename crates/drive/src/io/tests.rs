use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(10);

fn nowhere() -> Address {
    Address::Tcp("127.0.0.1:9".parse().unwrap())
}

/// Waits for the next event that is not a wake-up.
fn next<S: Selector>(io: &mut Readiness<S>) -> (usize, Event) {
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

/// The same conversation for each selector: both must keep the seam's promises.
fn converses<S: Selector>(selector: S) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut io = Readiness::new(selector, &listener.local_addr().unwrap().into(), 3);

    io.open(2).unwrap();
    assert!(matches!(next(&mut io), (2, Event::Opened)));
    let mut peer = accept(&listener);

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
    io.open(2).unwrap();
    assert!(matches!(next(&mut io), (2, Event::Opened)));
    drop(accept(&listener));
    assert!(matches!(next(&mut io), (2, Event::Ended)));
    io.close(2);

    // Nobody listens any more.
    drop(listener);
    match io.open(0) {
        Err(_) => {}
        Ok(()) => assert!(matches!(next(&mut io), (0, Event::Failed(_)))),
    }
}

fn wakes<S: Selector>(selector: S, wake: Waker) {
    let mut io = Readiness::new(selector, &nowhere(), 0);
    for _ in 0..3 {
        let wake = wake.clone();
        let other = std::thread::spawn(move || wake());
        io.wait(None).unwrap();
        assert!(io.next().is_none());
        other.join().unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn epoll_converses() {
    converses(super::epoll::Seat::new().unwrap().sit());
}

#[test]
#[cfg(target_os = "linux")]
fn epoll_wakes() {
    let seat = super::epoll::Seat::new().unwrap();
    let waker = seat.waker();
    wakes(seat.sit(), waker);
}

#[test]
fn portable_converses() {
    converses(portable::Seat::new().unwrap().sit());
}

#[test]
fn portable_wakes() {
    let seat = portable::Seat::new().unwrap();
    let waker = seat.waker();
    wakes(seat.sit(), waker);
}

/// A sleep is never shorter than asked for, and not a millisecond longer just because of rounding.
#[test]
#[cfg(target_os = "linux")]
fn epoll_waits_to_the_microsecond() {
    let mut io = Readiness::new(super::epoll::Seat::new().unwrap().sit(), &nowhere(), 0);
    let mut shortest = LONG;
    for _ in 0..200 {
        let begin = std::time::Instant::now();
        io.wait(Some(Duration::from_micros(150))).unwrap();
        let took = begin.elapsed();
        assert!(took >= Duration::from_micros(150), "{took:?}");
        shortest = shortest.min(took);
    }
    assert!(shortest < Duration::from_micros(900), "{shortest:?}");
}
