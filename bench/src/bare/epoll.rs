//! Readiness: wait, read, send.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::{ANSWER_BYTES, REQUEST};

/// News that are taken at once.
const EVENTS: usize = 1_024;
/// Longest time without news.
const IDLE: Duration = Duration::from_millis(100);

pub fn drive(sockets: Vec<TcpStream>, time: Duration) -> std::io::Result<u64> {
    let mut poll = Poll::new()?;
    let mut streams = Vec::with_capacity(sockets.len());
    for (index, socket) in sockets.into_iter().enumerate() {
        socket.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(socket);
        poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
        stream.write_all(REQUEST)?;
        streams.push(stream);
    }
    let mut events = Events::with_capacity(EVENTS);
    let mut buffer = [0; ANSWER_BYTES];
    let (mut answers, start) = (0, Instant::now());
    while start.elapsed() < time {
        match poll.poll(&mut events, Some(IDLE)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            let stream = &mut streams[event.token().0];
            match stream.read(&mut buffer) {
                Ok(0) => return Err(std::io::Error::other("the server closed a connection")),
                Ok(_) => {
                    answers += 1;
                    stream.write_all(REQUEST)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(answers)
}
