//! What each frame of a server means.

use super::head::{self, Answer, Wrong};
use super::{
    BLOCK_BYTES, BLOCK_FRAMES, Connection, Data, Event, HEADERS_BYTES, Listing, OWED_BYTES, Step, StreamError,
};
use crate::http2::frame::{self, FrameHead, MOST, PAYLOAD_BYTES, flag, kind, setting};
use crate::http2::{Reason, Violation};

/// Bytes of the priority in a HEADERS frame.
const PRIORITY_BYTES: usize = 5;
/// The largest frame that anybody may ask for.
const MOST_PAYLOAD_BYTES: u32 = (1 << 24) - 1;

const WINDOW_TOO_LARGE: Violation =
    Violation::new(Reason::FLOW_CONTROL_ERROR, "the server grants more than a window may hold");

/// The number in a payload of four bytes.
fn number(payload: &[u8]) -> Result<u32, Violation> {
    let bytes = payload.try_into().map_err(|_| Violation::size("wrong length for this type of frame"))?;
    Ok(u32::from_be_bytes(bytes))
}

impl Connection {
    /// A frame other than DATA.
    pub(super) fn frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        match head.kind {
            kind::HEADERS => return self.headers(head, payload, out),
            kind::CONTINUATION => return self.continuation(head, payload, out),
            kind::RST_STREAM => return self.reset(head, payload, out),
            kind::WINDOW_UPDATE => return self.window_update(head, number(payload)? & MOST, out),
            kind::SETTINGS => self.settings(head, payload, out)?,
            kind::PING => self.pinged(head, payload, out)?,
            kind::GOAWAY => self.going_away(head, payload, out)?,
            kind::PRIORITY if head.stream == 0 => return Err(of_no_stream()),
            kind::PUSH_PROMISE => {
                return Err(Violation::protocol("PUSH_PROMISE although push is disabled"));
            }
            // of others nothing need be known
            _ => {}
        }
        Ok(Step::Read)
    }

    fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        if head.stream == 0 {
            return Err(of_no_stream());
        }
        let mut part = frame::unpadded(head, payload).ok_or(TOO_MUCH_PADDING)?;
        if head.has(flag::PRIORITY) {
            part = part.get(PRIORITY_BYTES..).ok_or(Violation::size("a frame ends within its priority"))?;
        }
        let listing = Listing { stream: head.stream, ends: head.has(flag::END_STREAM), frames: 0 };
        if head.has(flag::END_HEADERS) {
            return self.list(listing, part, out);
        }
        self.block.clear();
        self.block.extend_from_slice(part);
        self.listing = Some(listing);
        Ok(Step::Read)
    }

    fn continuation(
        &mut self,
        head: FrameHead,
        part: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        let Some(listing) = &mut self.listing else {
            return Err(Violation::protocol("CONTINUATION without HEADERS"));
        };
        listing.frames += 1;
        if listing.frames > BLOCK_FRAMES || self.block.len() + part.len() > BLOCK_BYTES {
            return Err(Violation::new(
                Reason::ENHANCE_YOUR_CALM,
                "a header block of more than 256 KiB or 128 frames",
            ));
        }
        self.block.extend_from_slice(part);
        if !head.has(flag::END_HEADERS) {
            return Ok(Step::Read);
        }
        let listing = *listing;
        self.listing = None;
        let block = std::mem::take(&mut self.block);
        self.list(listing, &block, out)
    }

    /// A header block is whole.
    fn list(&mut self, of: Listing, block: &[u8], out: &mut Vec<u8>) -> Result<Step<'static>, Violation> {
        let Listing { stream: id, ends, .. } = of;
        // also where nobody wants it: later ones build on it
        let is_whole = self
            .decoder
            .decode(block, HEADERS_BYTES, &mut self.fields)
            .map_err(|_| Violation::new(Reason::COMPRESSION_ERROR, "a header block that cannot be read"))?;
        let known = self.decoder.place();
        if let Some(place) = known.filter(|_| !self.decoder.is_repeated()) {
            // what stood there before may have been another one's
            self.answers[place] = None;
        }
        let Some(stream) = self.streams.get_mut(&id) else { return self.late(id) };
        let owner = stream.owner;
        if !is_whole {
            let words = "the headers of the answer are more than 64 KiB";
            return Ok(self.fail(id, Violation::new(Reason::ENHANCE_YOUR_CALM, words), out));
        }
        if stream.has_answer {
            let read = head::trailers(&self.fields).and_then(|()| match (ends, stream.missing) {
                (false, _) => Err("trailers of the answer do not end it".into()),
                (true, Some(1..)) => Err(TOO_SHORT.into()),
                (true, _) => Ok(()),
            });
            return match read {
                Ok(()) => {
                    self.finish(id, out);
                    Ok(Step::Came(Event::Trailers { owner }))
                }
                Err(wrong) => self.wrong(id, wrong, out),
            };
        }
        let read = match known.filter(|_| self.decoder.is_repeated()).and_then(|place| self.answers[place]) {
            Some(answer) => Ok(head::again(answer, &mut self.fields)),
            None => head::answer(&mut self.fields),
        };
        if let Some(place) = known {
            self.answers[place] = read.ok();
        }
        let Answer { status, length } = match read {
            Ok(answer) => answer,
            Err(wrong) => return self.wrong(id, wrong, out),
        };
        if status < 200 {
            return match ends || status == 101 {
                true => {
                    self.wrong(id, "an interim answer ends the stream, or changes the protocol".into(), out)
                }
                false => Ok(Step::Came(Event::Interim { owner })),
            };
        }
        stream.has_answer = true;
        stream.missing = match status {
            _ if stream.is_head => Some(0),
            // whatever their length says
            204 | 304 => None,
            _ => length,
        };
        if ends {
            if stream.missing > Some(0) {
                return self.wrong(id, TOO_SHORT.into(), out);
            }
            self.finish(id, out);
        }
        Ok(Step::Came(Event::Head { owner, status, length, ends }))
    }

    /// A DATA frame begins.
    pub(super) fn begin_data(
        &mut self,
        head: FrameHead,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        let id = head.stream;
        let ends = head.has(flag::END_STREAM);
        // all of the frame counts, its padding too
        let bytes = head.length as u32;
        if !self.granted.take(bytes) {
            return Err(TOO_MUCH_DATA);
        }
        let says_padding = head.has(flag::PADDED);
        if says_padding && bytes == 0 {
            return Err(Violation::size("a frame ends within its padding"));
        }
        self.data = Some(Data { stream: id, missing: head.length, padding: 0, says_padding, ends });
        let Some(stream) = self.streams.get_mut(&id) else {
            self.release_connection(bytes, out);
            return self.late(id);
        };
        if !stream.granted.take(bytes) {
            self.release_connection(bytes, out);
            return Ok(self.fail(id, TOO_MUCH_DATA, out));
        }
        if !stream.has_answer {
            self.release_connection(bytes, out);
            return self.wrong(id, "a body comes before the head of its answer".into(), out);
        }
        if stream.holds {
            stream.held += bytes;
            return Ok(Step::Read);
        }
        if let Some(more) = stream.granted.release(bytes).filter(|_| !ends) {
            frame::write(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes(), out);
        }
        self.release_connection(bytes, out);
        Ok(Step::Read)
    }

    /// A piece of a DATA frame.
    pub(super) fn data<'a>(
        &mut self,
        mut data: Data,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'a>, Violation> {
        if data.says_padding {
            let Some((padding, rest)) = input.split_first() else { return Ok(Step::Wanting) };
            *input = rest;
            (data.padding, data.says_padding) = (usize::from(*padding), false);
            data.missing -= 1;
            if data.padding > data.missing {
                return Err(TOO_MUCH_PADDING);
            }
            if !data.ends {
                // its owner hears nothing of padding, and its length is padding, too
                self.release_held(data.stream, data.padding as u32 + 1, out);
            }
        }
        let (bytes, rest) = input.split_at(input.len().min(data.missing - data.padding));
        *input = rest;
        data.missing -= bytes.len();
        let is_last = data.missing == data.padding;
        if is_last {
            self.skipped = data.padding;
        }
        self.data = (!is_last).then_some(data);
        if bytes.is_empty() && !is_last {
            return Ok(Step::Wanting);
        }
        // the end of a stream that was given up, or nothing of one that goes on
        let ends = is_last && data.ends;
        let Some(stream) = self.streams.get_mut(&data.stream).filter(|_| ends || !bytes.is_empty()) else {
            return Ok(Step::Read);
        };
        let owner = stream.owner;
        if let Some(missing) = &mut stream.missing {
            match missing.checked_sub(bytes.len() as u64) {
                Some(rest) if rest == 0 || !ends => *missing = rest,
                Some(_) => return self.wrong(data.stream, TOO_SHORT.into(), out),
                None => {
                    return self.wrong(
                        data.stream,
                        "the body of the answer is longer than it says".into(),
                        out,
                    );
                }
            }
        }
        if ends {
            self.finish(data.stream, out);
        }
        Ok(Step::Came(Event::Data { owner, bytes, ends }))
    }

    fn reset(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        let reason = Reason(number(payload)?);
        self.check_number(head.stream)?;
        Ok(match self.remove(head.stream, out) {
            Some(owner) => Step::Came(Event::Failed { owner, why: StreamError::Reset(reason) }),
            None => Step::Read,
        })
    }

    fn window_update(
        &mut self,
        head: FrameHead,
        more: u32,
        out: &mut Vec<u8>,
    ) -> Result<Step<'static>, Violation> {
        const NOTHING: Violation = Violation::protocol("WINDOW_UPDATE of 0");
        if head.stream == 0 {
            if more == 0 {
                return Err(NOTHING);
            }
            self.window += i64::from(more);
            if self.window > i64::from(MOST) {
                return Err(WINDOW_TOO_LARGE);
            }
            self.pump(out);
            return Ok(Step::Read);
        }
        self.check_number(head.stream)?;
        let Some(stream) = self.streams.get_mut(&head.stream) else { return Ok(Step::Read) };
        stream.window += i64::from(more);
        let wrong = match more {
            0 => Some(NOTHING),
            _ => (stream.window > i64::from(MOST)).then_some(WINDOW_TOO_LARGE),
        };
        if let Some(wrong) = wrong {
            return Ok(self.fail(head.stream, wrong, out));
        }
        self.make_ready(head.stream);
        self.pump(out);
        Ok(Step::Read)
    }

    fn settings(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("SETTINGS on a stream"));
        }
        let is_ack = head.has(flag::ACK);
        if is_ack && !payload.is_empty() || !payload.len().is_multiple_of(setting::BYTES) {
            return Err(Violation::size("SETTINGS have not the length that they can have"));
        }
        if is_ack {
            return Ok(());
        }
        self.is_greeted = true;
        for one in payload.chunks_exact(setting::BYTES) {
            let value = u32::from_be_bytes([one[2], one[3], one[4], one[5]]);
            match u16::from_be_bytes([one[0], one[1]]) {
                setting::MAX_CONCURRENT_STREAMS => self.most_streams = value as usize,
                setting::INITIAL_WINDOW_SIZE => self.set_stream_window(value)?,
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(Violation::protocol("SETTINGS_ENABLE_PUSH is not 0"));
                }
                setting::MAX_FRAME_SIZE if !(PAYLOAD_BYTES as u32..=MOST_PAYLOAD_BYTES).contains(&value) => {
                    return Err(Violation::protocol("SETTINGS_MAX_FRAME_SIZE out of range"));
                }
                // the table of headers is not used, frames are never larger than all must take
                _ => {}
            }
        }
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], out);
        self.owe(frame::HEAD_BYTES)?;
        self.pump(out);
        Ok(())
    }

    /// The windows of all streams change with the one that they begin with.
    fn set_stream_window(&mut self, bytes: u32) -> Result<(), Violation> {
        if bytes > MOST {
            return Err(WINDOW_TOO_LARGE);
        }
        let more = i64::from(bytes) - i64::from(self.stream_window);
        self.stream_window = bytes;
        for (id, stream) in &mut self.streams {
            stream.window += more;
            if stream.window > i64::from(MOST) {
                return Err(WINDOW_TOO_LARGE);
            }
            if stream.make_ready() {
                self.ready.push_back(*id);
            }
        }
        Ok(())
    }

    fn pinged(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("a PING is of a stream"));
        }
        if payload.len() != 8 {
            return Err(Violation::size("a PING has not eight bytes"));
        }
        if !head.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, out);
            self.owe(frame::HEAD_BYTES + payload.len())?;
        }
        Ok(())
    }

    /// Counts an answer that the server has asked for.
    fn owe(&mut self, bytes: usize) -> Result<(), Violation> {
        self.owed += bytes;
        match self.owed > OWED_BYTES {
            true => Err(Violation::new(
                Reason::ENHANCE_YOUR_CALM,
                "more than 256 KiB of answers to PING and SETTINGS are unread",
            )),
            false => Ok(()),
        }
    }

    fn going_away(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::protocol("a GOAWAY is of a stream"));
        }
        let Some((last, reason)) = payload.get(..8).map(|said| said.split_at(4)) else {
            return Err(Violation::size("a GOAWAY has less than eight bytes"));
        };
        let (last, reason) = (number(last)? & MOST, Reason(number(reason)?));
        if self.last.is_some_and(|before| last > before) {
            return Err(Violation::protocol("a GOAWAY takes streams that the one before did not"));
        }
        self.last = Some(last);
        let mut behind: Vec<u32> = self.streams.keys().copied().filter(|id| *id > last).collect();
        behind.sort_unstable();
        for id in behind {
            if let Some(owner) = self.remove(id, out) {
                self.abandoned.push(id);
                self.told.push_back((owner, StreamError::NotTaken(reason)));
            }
        }
        Ok(())
    }

    /// A frame of a stream that is over, or never began.
    fn late(&self, id: u32) -> Result<Step<'static>, Violation> {
        self.check_number(id)?;
        match self.abandoned.may_have(id) {
            true => Ok(Step::Read),
            false => Err(Violation::new(Reason::STREAM_CLOSED, "a frame came on a stream that is over")),
        }
    }

    /// Whether a stream of this number was ever opened.
    fn check_number(&self, id: u32) -> Result<(), Violation> {
        if id % 2 == 1 && id < self.next { Ok(()) } else { Err(of_no_stream()) }
    }

    fn wrong(&mut self, id: u32, wrong: Wrong, out: &mut Vec<u8>) -> Result<Step<'static>, Violation> {
        match wrong {
            Wrong::Stream(violation) => Ok(self.fail(id, violation, out)),
            Wrong::Connection(violation) => Err(violation),
        }
    }

    /// Resets a stream on which something wrong came.
    fn fail(&mut self, id: u32, violation: Violation, out: &mut Vec<u8>) -> Step<'static> {
        match self.end(id, violation.reason, out) {
            Some(owner) => Step::Came(Event::Failed { owner, why: StreamError::Wrong(violation) }),
            None => Step::Read,
        }
    }

    /// The answer is whole; what is left of the request is not wanted.
    fn finish(&mut self, id: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.is_open {
            self.end(id, Reason::CANCEL, out);
            return;
        }
        self.remove(id, out);
    }
}

const TOO_SHORT: &str = "the body of the answer is shorter than it says";
const TOO_MUCH_PADDING: Violation = Violation::protocol("a frame has more padding than it has room for");
const TOO_MUCH_DATA: Violation =
    Violation::new(Reason::FLOW_CONTROL_ERROR, "the server sends more than it was granted");

const fn of_no_stream() -> Violation {
    Violation::protocol("a frame is of a stream that nobody opened")
}
