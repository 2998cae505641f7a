//! A queue over a WebSocket: what crosses, and what is left of it when something breaks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::StreamExt;
use tidemark_queue::remote::{Message, Options, Outgoing, RemoteError};
use tidemark_queue::stream::{StreamError, unicast};
use tidemark_queue::websocket::{Incoming, connect, listen};
use tidemark_queue::{Receiver, Sender, TrySendError};
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
use tidemark_wire::websocket::{Decoder, Event, Kind, Limits, Role, handshake, write_message};

use crate::remote::{PATIENCE, eventually, nothing_is_lost_or_doubled};

const MANY: u64 = 50_000;

fn small() -> Options {
    Options::new().queue(tidemark_queue::Options::new().capacity(16).batch(4)).within(PATIENCE)
}

fn url(address: SocketAddr) -> String {
    format!("ws://{address}/queue")
}

fn pair<T: Message>(options: Options) -> (Sender<T>, Outgoing, Receiver<T>, Incoming) {
    let (receiver, incoming) = listen("127.0.0.1:0", options).unwrap();
    let (sender, outgoing) = connect(&url(incoming.address()), options).unwrap();
    (sender, outgoing, receiver, incoming)
}

/// Where another one has just gone; a child that is being started may still hold its socket for a moment.
fn listen_again(place: SocketAddr, options: Options) -> (Receiver<u64>, Incoming) {
    let mut listening = None;
    eventually("a free address", || {
        listening = listen(place, options).ok();
        listening.is_some()
    });
    listening.unwrap()
}

fn rest<T>(receiver: &mut Receiver<T>) -> Vec<T> {
    std::iter::from_fn(|| receiver.recv().ok()).collect()
}

/// Stands between the two ends.
struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(place: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new(Vec::new()));
        let opened = open.clone();
        // ends with the test's process
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(client), Ok(server)) = (stream, TcpStream::connect(place)) else { continue };
                let mut open = opened.lock().unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    open.push(to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Proxy { address, open }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn batches_and_the_end_cross() {
    let (mut sender, outgoing, mut receiver, _incoming) = pair::<u64>(Options::new());
    let sending = thread::spawn(move || {
        let mut other = sender.clone();
        sender.send_batch(0..MANY).unwrap();
        drop(sender);
        other.send(MANY).unwrap();
    });
    let (mut sum, mut batches) = (0, 0);
    while let Ok(batch) = receiver.recv_batch() {
        sum += batch.sum::<u64>();
        batches += 1;
    }
    assert_eq!(sum, MANY * (MANY + 1) / 2);
    assert!(batches < MANY / 4, "{batches} batches");
    sending.join().unwrap();
    outgoing.finish(PATIENCE).unwrap();
    assert!(receiver.failure().is_none());
}

#[test]
fn a_stream_with_demand_stands_on_it() {
    let (mut sender, outgoing, receiver, _incoming) = pair::<u64>(small());
    let sending = thread::spawn(move || {
        sender.send_batch(0..1000).unwrap();
        sender.fail("enough");
    });
    let (publisher, mut distribution) = unicast(receiver);
    let mut stream = publisher.stream(8);
    let distributing = thread::spawn(move || distribution.run());
    let mut got: Vec<_> = block_on((&mut stream).collect());
    let Some(Err(StreamError::Failed(failure))) = got.pop() else { panic!("{got:?}") };
    assert_eq!(failure.to_string(), "enough");
    assert!(got.into_iter().map(Result::unwrap).eq(0..1000));
    sending.join().unwrap();
    distributing.join().unwrap();
    outgoing.finish(PATIENCE).unwrap();
}

#[test]
fn a_slow_receiver_makes_the_sender_wait() {
    let (mut sender, outgoing, mut receiver, _incoming) = pair::<u64>(small());
    let (mut sent, mut full) = (0, 0);
    while full < 100 {
        match sender.try_send(sent) {
            Ok(()) => (sent, full) = (sent + 1, 0),
            Err(TrySendError::Full(_)) => full += 1,
            Err(TrySendError::Closed(_)) => panic!("closed"),
        }
        if full > 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    // in the receiver's queue, and in the sender's; what is kept until it is acknowledged is what the receiver has
    assert_eq!(sent, 32);
    assert_eq!(receiver.metrics().queued(), 16);
    assert_eq!(outgoing.acknowledged(), 0);
    drop(sender);
    assert!(rest(&mut receiver).into_iter().eq(0..sent));
    outgoing.finish(PATIENCE).unwrap();
}

#[test]
fn connections_that_are_cut_lose_and_double_nothing() {
    let (mut receiver, incoming) = listen::<u64>("127.0.0.1:0", small()).unwrap();
    let proxy = Proxy::to(incoming.address());
    let (mut sender, outgoing) = connect::<u64>(&url(proxy.address), small()).unwrap();
    let sending = thread::spawn(move || sender.send_batch(0..20_000).unwrap());
    for number in 0..20_000 {
        assert_eq!(receiver.recv(), Ok(number));
        if number % 1000 == 500 {
            proxy.cut();
        }
    }
    assert!(receiver.recv().is_err() && receiver.failure().is_none());
    sending.join().unwrap();
    outgoing.finish(PATIENCE).unwrap();
}

#[test]
fn processes_that_are_killed_lose_and_double_nothing() {
    let place = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let proxy = Proxy::to(place);
    nothing_is_lost_or_doubled(&url(proxy.address), &place.to_string(), || proxy.cut());
}

#[test]
fn a_receiver_that_goes_is_an_error_for_the_sender() {
    let (mut sender, outgoing, mut receiver, _incoming) = pair::<u64>(small());
    sender.send_batch(0..6).unwrap();
    for number in 0..3 {
        assert_eq!(receiver.recv(), Ok(number));
    }
    drop(receiver);
    eventually("the end of the sender", || sender.is_closed());
    // what was dropped with the receiver was not taken
    assert_eq!(outgoing.finish(PATIENCE), Err(RemoteError::Closed { acknowledged: 3 }));
}

#[test]
fn a_receiver_that_closes_takes_what_it_has() {
    let (mut sender, outgoing, mut receiver, _incoming) = pair::<u64>(small());
    sender.send_batch(0..6).unwrap();
    eventually("six messages", || receiver.metrics().queued() == 6);
    receiver.close();
    assert_eq!(rest(&mut receiver), (0..6).collect::<Vec<_>>());
    assert_eq!(outgoing.finish(PATIENCE), Err(RemoteError::Closed { acknowledged: 6 }));
    assert!(sender.send(6).is_err());
}

#[test]
fn a_receiver_that_is_started_again_goes_on_where_it_was() {
    let (mut sender, outgoing, mut receiver, incoming) = pair::<u64>(small());
    let place = incoming.address();
    sender.send_batch(0..4).unwrap();
    for number in 0..4 {
        assert_eq!(receiver.recv(), Ok(number));
    }
    eventually("acknowledgement", || outgoing.acknowledged() == 4);
    drop((incoming, receiver));
    sender.send_batch(4..8).unwrap();
    // without a position: with what is not acknowledged
    let (mut receiver, incoming) = listen_again(place, small());
    assert_eq!(receiver.recv(), Ok(4));
    drop(incoming);
    // a link that is given up is no end
    assert!(rest(&mut receiver).len() < 4);
    assert!(receiver.failure().unwrap().to_string().contains("given up"));
    drop(receiver);
    // with one: exactly there
    let (mut receiver, incoming) = listen_again(place, small().position(6));
    assert_eq!(receiver.recv(), Ok(6));
    incoming.acknowledge(7);
    eventually("acknowledgement", || outgoing.acknowledged() == 7);
    drop((incoming, receiver));
    // and what nobody has any more is asked for in vain
    let (_receiver, _incoming) = listen_again(place, small().position(2));
    let Err(RemoteError::Refused(reason)) = outgoing.finish(PATIENCE) else { panic!("it goes on") };
    assert!(reason.contains("asks for message 2, the sender has those from 7"), "{reason}");
}

#[test]
fn one_sender_takes_the_place_of_another() {
    let (mut first, outgoing, mut receiver, incoming) = pair::<u64>(small());
    first.send(0).unwrap();
    assert_eq!(receiver.recv(), Ok(0));
    let (mut second, its_outgoing) = connect::<u64>(&url(incoming.address()), small()).unwrap();
    assert_eq!(its_outgoing.position(), 1);
    let Err(RemoteError::Refused(reason)) = outgoing.finish(PATIENCE) else { panic!("it goes on") };
    assert!(reason.contains("another sender"), "{reason}");
    assert!(first.is_closed());
    second.send(1).unwrap();
    drop(second);
    assert_eq!(rest(&mut receiver), [1]);
    its_outgoing.finish(PATIENCE).unwrap();
    let late = connect::<u64>(&url(incoming.address()), small());
    assert!(matches!(&late, Err(RemoteError::Refused(reason)) if reason.contains("ended")), "{late:?}");
}

#[test]
fn a_message_that_is_too_large_ends_the_link_on_both_sides() {
    let (mut sender, outgoing, mut receiver, _incoming) = pair::<String>(small().message_bytes_max(10));
    sender.send_batch(["short", "this one is longer"].map(str::to_owned)).unwrap();
    assert_eq!(rest(&mut receiver), ["short"]);
    let failure = receiver.failure().unwrap().to_string();
    assert_eq!(failure, "message 1 cannot be sent: it has 19 bytes, and 10 are allowed");
    assert_eq!(outgoing.finish(PATIENCE), Err(RemoteError::Refused(failure)));
    assert!(sender.is_closed());
}

#[test]
fn nobody_there_is_an_error_in_time() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let refused = connect::<u64>(&url(free), Options::new().within(Duration::from_millis(50)));
    assert!(matches!(refused, Err(RemoteError::Unreachable { .. })), "{refused:?}");
}

/// Numbers of a frame behind its kind.
fn frame(kind: u8, numbers: &[u64], rest: &[u8]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    [kind].into_iter().chain(numbers).chain(rest.iter().copied()).collect()
}

/// Says these frames as a sender would, and hears the last word of the receiver.
fn answer(place: SocketAddr, frames: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (key, mut out) = (handshake::key([7; 16]), Vec::new());
    handshake::write_request(&mut out, b"/", b"x", &key, &["tidemark.queue.1"]).unwrap();
    frames.iter().for_each(|frame| write_message(&mut out, Kind::Binary, frame, Some([1, 2, 3, 4])));
    stream.write_all(&out).unwrap();
    let (mut head, mut decoder) =
        (ResponseDecoder::new(DecoderLimits::default()), Decoder::new(Role::Client, Limits::default()));
    let (mut input, mut last, mut is_open) = ([0; 4096], None, false);
    loop {
        let have = stream.read(&mut input).unwrap_or(0);
        if have == 0 {
            return last;
        }
        let mut at = 0;
        if !is_open {
            let decoded = head.decode(&input[..have]).unwrap();
            (at, is_open) = (decoded.consumed, decoded.complete);
        }
        while is_open && at < have {
            let decoded = decoder.decode(&input[at..have]).unwrap();
            at += decoded.consumed;
            if decoded.event == Some(Event::Message(Kind::Binary)) {
                last = Some(decoder.message().to_vec());
            }
        }
        if last.as_ref().is_some_and(|last| last[0] == 7) {
            return last;
        }
    }
}

#[test]
fn what_a_sender_must_not_say_is_refused_and_harms_nobody() {
    let (mut receiver, incoming) = listen::<u64>("127.0.0.1:0", small()).unwrap();
    let place = incoming.address();
    let hello = |sender: u64, is_new: u64| frame(1, &[sender, is_new, 0, 0], &[]);
    // message 0 is 5, so many times
    let batch = |first: u64, count: u32| {
        frame(2, &[first], &[&count.to_le_bytes()[..], &[1, 0, 0, 0, 5].repeat(count as usize)].concat())
    };
    for (wrong, why) in [
        (batch(1, 1), "message 1 came, and 0 is missing"),
        (batch(0, 17), "more came than was asked for"),
        (frame(2, &[16], &[1, 0, 0, 0, 1, 0, 0, 0, 0xff]), "message 16 cannot be read"),
        (frame(3, &[3, 0], &[]), "the end came at 3, and 16 messages had come"),
        (frame(5, &[0, 9], &[]), "what a receiver says"),
        (vec![99; 50], "what no end of a queue says"),
        (vec![2; Options::MESSAGE_BYTES_MAX.min(2 << 20)], "larger than the limit"),
    ] {
        let refused = answer(place, &[hello(1, 1), wrong]).expect(why);
        let reason = String::from_utf8_lossy(&refused[1..]);
        assert!(refused[0] == 7 && reason.contains(why), "{why}: {reason}");
    }
    let refused = answer(place, &[hello(2, 0)]).unwrap();
    assert!(refused[0] == 7, "it was never new: {refused:?}");
    assert_eq!(answer(place, &[batch(0, 1)]), None, "no word before the first one");
    TcpStream::connect(place).and_then(|mut stream| stream.write_all(b"GET / HTTP/1.0\r\n\r\n")).unwrap();
    // of all that, the batch that was too large has left what there was room for
    let (mut sender, outgoing) = connect::<u64>(&url(place), small()).unwrap();
    assert_eq!(outgoing.position(), 16);
    sender.send(6).unwrap();
    drop(sender);
    assert_eq!(rest(&mut receiver), [[5; 16].as_slice(), &[6]].concat());
    outgoing.finish(PATIENCE).unwrap();
}
