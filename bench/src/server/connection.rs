//! One connection: plain or through TLS.

use std::io::{ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::{HandshakeKind, ServerConnection};

use super::answers::{Answers, request};

/// Most bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;

/// A connection, and what is under way on it.
pub struct Connection {
    stream: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// The beginning of a request that is not whole yet.
    begun: Vec<u8>,
    /// Bytes of a body that are still to come.
    body_left: usize,
    /// Answers that the socket has not taken yet, from `written` on.
    out: Vec<u8>,
    written: usize,
    close: bool,
    /// Whether its handshake has been counted.
    counted: bool,
}

/// What a turn brought.
#[derive(Debug, Default, Clone, Copy)]
pub struct Turn {
    pub requests: u64,
    pub resumed: u64,
    pub gone: bool,
}

impl Connection {
    pub fn new(stream: TcpStream, tls: Option<ServerConnection>) -> Connection {
        let tls = tls.map(Box::new);
        let (begun, out) = (Vec::new(), Vec::new());
        Connection { stream, tls, begun, body_left: 0, out, written: 0, close: false, counted: false }
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Reads, answers, writes, as far as it goes without waiting.
    pub fn turn(&mut self, buffer: &mut [u8], answers: &Answers) -> Turn {
        let mut turn = Turn::default();
        turn.gone = match self.tls.take() {
            None => !self.turn_plain(buffer, answers, &mut turn),
            Some(mut tls) => {
                let there = self.turn_tls(&mut tls, buffer, answers, &mut turn);
                self.tls = Some(tls);
                !there
            }
        };
        turn
    }

    fn turn_plain(&mut self, buffer: &mut [u8], answers: &Answers, turn: &mut Turn) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    turn.requests += self.take(&buffer[..n], answers);
                    if !self.flush() {
                        return false;
                    }
                    // less than asked for: there is no more for now, and more will be told
                    if n < buffer.len() {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn turn_tls(
        &mut self,
        tls: &mut ServerConnection,
        buffer: &mut [u8],
        answers: &Answers,
        turn: &mut Turn,
    ) -> bool {
        loop {
            let there = match tls.read_tls(&mut self.stream) {
                Ok(0) => return false,
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => false,
                Err(_) => return false,
            };
            if there {
                if tls.process_new_packets().is_err() {
                    return false;
                }
                while let Ok(n @ 1..) = tls.reader().read(buffer) {
                    turn.requests += self.take(&buffer[..n], answers);
                }
                if !self.counted && !tls.is_handshaking() {
                    self.counted = true;
                    turn.resumed += u64::from(tls.handshake_kind() == Some(HandshakeKind::Resumed));
                }
            }
            if !self.flush_tls(tls) {
                return false;
            }
            if !there {
                return true;
            }
        }
    }

    fn flush_tls(&mut self, tls: &mut ServerConnection) -> bool {
        loop {
            // rustls takes as much as its own buffer holds, and is emptied below
            if self.written < self.out.len() {
                match tls.writer().write(&self.out[self.written..]) {
                    Ok(n) => self.written += n,
                    Err(_) => return false,
                }
            }
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                    Err(_) => return false,
                }
            }
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
                if self.close {
                    tls.send_close_notify();
                    let _ = tls.write_tls(&mut self.stream);
                }
                return !self.close;
            }
        }
    }

    /// Takes bytes of requests, and puts their answers behind those that wait; tells how many.
    fn take(&mut self, bytes: &[u8], answers: &Answers) -> u64 {
        if self.begun.is_empty() {
            return self.take_from(bytes, answers);
        }
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(bytes);
        self.take_from(&whole, answers)
    }

    fn take_from(&mut self, mut bytes: &[u8], answers: &Answers) -> u64 {
        let mut requests = 0;
        loop {
            let body = self.body_left.min(bytes.len());
            self.body_left -= body;
            bytes = &bytes[body..];
            let Some(found) = request(bytes) else { break };
            self.out.extend_from_slice(answers.of(&found));
            self.close |= found.close;
            self.body_left = found.body_bytes;
            bytes = &bytes[found.head_bytes..];
            requests += 1;
        }
        self.begun.extend_from_slice(bytes);
        self.close |= bytes.len() > HEAD_BYTES;
        requests
    }

    /// Writes what waits; false when the connection is of no more use.
    fn flush(&mut self) -> bool {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.out.clear();
        self.written = 0;
        !self.close
    }
}
