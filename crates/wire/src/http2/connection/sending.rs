//! What a client says.

use std::collections::VecDeque;

use bytes::Bytes;

use super::stream::{Granted, Stream};
use super::{Connection, OUTPUT_BYTES, PIECE_BYTES, Request, STREAM_WINDOW_BYTES};
use crate::http2::Reason;
use crate::http2::frame::{self, PAYLOAD_BYTES, flag, kind};

impl Stream {
    /// Whether it has data that may go, and is to be put among those that are ready.
    pub fn make_ready(&mut self) -> bool {
        let becomes = !self.is_ready && !self.waiting.is_empty() && self.window > 0;
        self.is_ready |= becomes;
        becomes
    }

    /// How many of so many bytes may go in one frame.
    fn may_send(&self, bytes: usize, window: i64) -> usize {
        let granted = usize::try_from(self.window.min(window)).unwrap_or(0);
        bytes.min(PAYLOAD_BYTES).min(granted)
    }

    fn write(&mut self, id: u32, bytes: &[u8], ends: bool, window: &mut i64, out: &mut Vec<u8>) {
        let flags = if ends { flag::END_STREAM } else { 0 };
        frame::write(kind::DATA, flags, id, bytes, out);
        self.window -= bytes.len() as i64;
        *window -= bytes.len() as i64;
        self.is_open = !ends;
    }
}

impl Connection {
    /// Begins a stream with a header block, as [`hpack`](crate::http2::hpack) writes it; its number. None where the
    /// connection takes no further one.
    pub fn request(&mut self, block: &[u8], request: Request, out: &mut Vec<u8>) -> Option<u32> {
        if self.is_going_away() {
            return None;
        }
        let id = self.next;
        self.next += 2;
        let end_stream = if request.ends { flag::END_STREAM } else { 0 };
        let mut parts = block.chunks(PAYLOAD_BYTES);
        let (mut kind, mut part, mut flags) = (kind::HEADERS, parts.next().unwrap_or_default(), end_stream);
        for next in parts {
            frame::write(kind, flags, id, part, out);
            (kind, part, flags) = (kind::CONTINUATION, next, 0);
        }
        frame::write(kind, flags | flag::END_HEADERS, id, part, out);
        let stream = Stream {
            owner: request.owner,
            granted: Granted::new(STREAM_WINDOW_BYTES),
            held: 0,
            holds: request.holds,
            is_head: request.is_head,
            has_answer: false,
            missing: None,
            window: i64::from(self.stream_window),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ends: request.ends,
            is_open: !request.ends,
            is_ready: false,
        };
        self.streams.insert(id, stream);
        Some(id)
    }

    /// Sends data on a stream whose request has not ended, and with `ends` ends it. What may not go yet is kept: `rest` gives
    /// all but so many of the first bytes.
    pub fn send(
        &mut self,
        id: u32,
        bytes: &[u8],
        ends: bool,
        rest: impl FnOnce(usize) -> Bytes,
        out: &mut Vec<u8>,
    ) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.is_open || stream.ends || bytes.is_empty() && !ends {
            return;
        }
        stream.ends = ends;
        let mut sent = 0;
        while stream.waiting.is_empty() && (out.len() < OUTPUT_BYTES || bytes.is_empty()) {
            let now = stream.may_send(bytes.len() - sent, self.window);
            if now == 0 && !bytes.is_empty() {
                break;
            }
            let is_last = sent + now == bytes.len();
            stream.write(id, &bytes[sent..sent + now], ends && is_last, &mut self.window, out);
            sent += now;
            if is_last {
                return;
            }
        }
        if sent < bytes.len() {
            stream.waiting_bytes += bytes.len() - sent;
            stream.waiting.push_back(rest(sent));
            self.make_ready(id);
        }
    }

    /// What waits on a stream until flow control lets it go, and takes room so long: bytes, with 64 more for each piece.
    pub fn waiting_bytes(&self, id: u32) -> usize {
        let stream = self.streams.get(&id);
        stream.map_or(0, |stream| stream.waiting_bytes + stream.waiting.len() * PIECE_BYTES)
    }

    /// Puts a stream among those that are ready, if it is.
    pub(super) fn make_ready(&mut self, id: u32) {
        if self.streams.get_mut(&id).is_some_and(Stream::make_ready) {
            self.ready.push_back(id);
        }
    }

    /// Appends data that waits, a frame of each stream in turn, as far as it may go and there is room for it.
    pub fn pump(&mut self, out: &mut Vec<u8>) {
        while self.window > 0 && out.len() < OUTPUT_BYTES {
            let Some(id) = self.ready.pop_front() else { return };
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.is_ready = false;
            let Some(mut bytes) = stream.waiting.pop_front() else { continue };
            let now = bytes.split_to(stream.may_send(bytes.len(), self.window));
            stream.waiting_bytes -= now.len();
            if !bytes.is_empty() {
                stream.waiting.push_front(bytes);
            }
            let is_last = stream.waiting.is_empty();
            if !now.is_empty() {
                stream.write(id, &now, stream.ends && is_last, &mut self.window, out);
            }
            self.make_ready(id);
        }
    }

    /// Resets a stream whose answer nobody waits for any more.
    pub fn give_up(&mut self, id: u32, out: &mut Vec<u8>) {
        self.end(id, Reason::CANCEL, out);
    }

    /// Lets the server send what it was granted on a stream that [holds](Request::holds) once more: what came has been read.
    pub fn release(&mut self, id: u32, out: &mut Vec<u8>) {
        self.release_held(id, u32::MAX, out);
    }

    /// The same of so many bytes at most.
    pub(super) fn release_held(&mut self, id: u32, most: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let bytes = stream.held.min(most);
        stream.held -= bytes;
        if let Some(more) = stream.granted.release(bytes) {
            frame::write(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes(), out);
        }
        self.release_connection(bytes, out);
    }

    /// Asks the server for a sign of life.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        frame::write(kind::PING, 0, 0, &[0; 8], out);
    }

    /// Resets a stream that is not over; whose it was.
    pub(super) fn end(&mut self, id: u32, reason: Reason, out: &mut Vec<u8>) -> Option<u32> {
        let owner = self.remove(id, out)?;
        self.abandoned.push(id);
        frame::write(kind::RST_STREAM, 0, id, &reason.0.to_be_bytes(), out);
        Some(owner)
    }

    /// Forgets a stream; whose it was. What its owner has not released does not hinder others.
    pub(super) fn remove(&mut self, id: u32, out: &mut Vec<u8>) -> Option<u32> {
        let stream = self.streams.remove(&id)?;
        if stream.is_ready {
            self.ready.retain(|ready| *ready != id);
        }
        if stream.held > 0 {
            self.release_connection(stream.held, out);
        }
        Some(stream.owner)
    }

    /// Lets the server send so much on the connection once more.
    pub(super) fn release_connection(&mut self, bytes: u32, out: &mut Vec<u8>) {
        if let Some(more) = self.granted.release(bytes) {
            frame::write(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::frame::{FrameHead, MOST};

    #[test]
    fn numbers_of_streams_are_used_up() {
        let mut out = Vec::new();
        let mut connection = Connection::new(&mut out);
        connection.next = MOST;
        assert_eq!(connection.request(b"", Request::default(), &mut out), Some(MOST));
        assert!(connection.is_going_away());
        assert_eq!(connection.request(b"", Request::default(), &mut out), None);
    }

    #[test]
    fn a_long_list_goes_in_several_frames() {
        let mut out = Vec::new();
        let mut connection = Connection::new(&mut out);
        out.clear();
        let request = Request { ends: true, ..Request::default() };
        connection.request(&vec![7; 2 * PAYLOAD_BYTES + 1], request, &mut out);
        let mut heads = Vec::new();
        while let Some((bytes, rest)) = out.split_first_chunk() {
            let head = FrameHead::read(bytes);
            out = rest[head.length..].to_vec();
            heads.push((head.kind, head.flags, head.length));
        }
        let last = flag::END_HEADERS;
        assert_eq!(heads, [(1, flag::END_STREAM, PAYLOAD_BYTES), (9, 0, PAYLOAD_BYTES), (9, last, 1)]);
    }
}
