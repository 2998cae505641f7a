//! Server-sent events: a body of `text/event-stream` as the HTML standard ("Server-sent events") has it, event by event.
//!
//! The stream's own encoding is not looked at: names and data are the bytes that came, which should be UTF-8.

use std::mem;

/// What every stream may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Most bytes of an event's name.
const NAME_BYTES: usize = 1 << 10;
/// Buffers that grew beyond this are given back once their event is told.
const RETAINED_BYTES: usize = 16 << 10;

/// What is whole by the bytes that were decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An event: [`EventDecoder::name`] and [`EventDecoder::data`] have it until the next call.
    Whole,
    /// An event that was larger than the bound, of which nothing was kept.
    TooLarge,
}

/// What a call to [`EventDecoder::decode`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that were taken; all of them where no event is whole.
    pub consumed: usize,
    /// What is whole by them.
    pub event: Option<Event>,
}

/// Decodes the events of one stream. Comments, `id` and `retry` are passed over, as they mean something only to who
/// connects again.
#[derive(Debug)]
pub struct EventDecoder {
    /// Most bytes of an event's data and name; while it comes, of these and the line together.
    event_bytes: usize,
    /// The begin of a line whose end has not come.
    line: Vec<u8>,
    /// The line is longer than what is kept of it.
    is_cut: bool,
    /// The last line ended with CR: a LF that follows belongs to it.
    after_return: bool,
    is_first_line: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    /// Lines of data so far.
    data_lines: u64,
    is_too_large: bool,
    /// The event was told: what is kept of it goes with the next call.
    is_told: bool,
}

impl EventDecoder {
    /// For events with so many bytes of data and name at most; a name has at most 1 KiB of them.
    pub fn new(event_bytes: usize) -> Self {
        EventDecoder {
            event_bytes,
            line: Vec::new(),
            is_cut: false,
            after_return: false,
            is_first_line: true,
            name: Vec::new(),
            data: Vec::new(),
            data_lines: 0,
            is_too_large: false,
            is_told: false,
        }
    }

    /// Takes bytes from the front of `input`, up to the end of an event.
    pub fn decode(&mut self, input: &[u8]) -> Decoded {
        if mem::take(&mut self.is_told) {
            self.forget();
        }
        let mut at = 0;
        while at < input.len() {
            if mem::take(&mut self.after_return) && input[at] == b'\n' {
                at += 1;
                continue;
            }
            let rest = &input[at..];
            let Some(length) = memchr::memchr2(b'\r', b'\n', rest) else {
                self.keep(rest);
                at = input.len();
                break;
            };
            at += length + 1;
            self.after_return = rest[length] == b'\r';
            let event = match self.line.is_empty() && !self.is_cut {
                true => self.line(&rest[..length]),
                false => {
                    self.keep(&rest[..length]);
                    let mut line = mem::take(&mut self.line);
                    let event = self.line(&line);
                    line.clear();
                    self.line = line;
                    event
                }
            };
            if event.is_some() {
                self.is_told = true;
                return Decoded { consumed: at, event };
            }
        }
        Decoded { consumed: at, event: None }
    }

    /// What kind of event it is: `message` where the server gave it no name.
    pub fn name(&self) -> &[u8] {
        if self.name.is_empty() { b"message" } else { &self.name }
    }

    /// The event's lines of data, with LF between them.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Keeps a part of a line, as far as there is room.
    fn keep(&mut self, part: &[u8]) {
        // the longest name of a field, its colon and a blank come on top
        let held = self.line.len() + self.held();
        let room = self.event_bytes.saturating_add(8).saturating_sub(held);
        self.is_cut |= part.len() > room;
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Bytes of the event so far, without the line that comes.
    fn held(&self) -> usize {
        self.name.len() + self.data.len()
    }

    fn forget(&mut self) {
        self.name.clear();
        self.data.clear();
        for buffer in [&mut self.line, &mut self.data] {
            if buffer.capacity() > RETAINED_BYTES {
                buffer.shrink_to(RETAINED_BYTES);
            }
        }
        (self.data_lines, self.is_too_large) = (0, false);
    }

    /// A line is whole, as far as it is kept.
    fn line(&mut self, mut line: &[u8]) -> Option<Event> {
        if mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        let is_cut = mem::take(&mut self.is_cut);
        if line.is_empty() && !is_cut {
            return self.dispatch();
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let more = value.len() + usize::from(self.data_lines > 0);
                if is_cut || self.held() + more > self.event_bytes {
                    self.give_up();
                }
                if !self.is_too_large {
                    if self.data_lines > 0 {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(value);
                }
                self.data_lines += 1;
            }
            // the name before counts until it is replaced, as it does while the line comes
            b"event"
                if is_cut || value.len() > NAME_BYTES || self.held() + value.len() > self.event_bytes =>
            {
                self.give_up();
            }
            b"event" if self.is_too_large => {}
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        None
    }

    /// The event is too large: nothing more of it is kept.
    fn give_up(&mut self) {
        self.is_too_large = true;
        self.data.clear();
        self.name.clear();
    }

    /// A blank line: the event before it is whole, if it has data.
    fn dispatch(&mut self) -> Option<Event> {
        if self.is_too_large {
            self.forget();
            return Some(Event::TooLarge);
        }
        // The standard asks whether the data is empty once each line has its LF: one blank line of data is an event.
        if self.data_lines == 0 {
            self.forget();
            return None;
        }
        Some(Event::Whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUND: usize = 64;

    type Told = Vec<Option<(Vec<u8>, Vec<u8>)>>;

    /// The events of a stream that comes in pieces; none for one that was too large.
    fn told(stream: &[u8], piece_bytes: &[usize]) -> Told {
        let (mut decoder, mut told) = (EventDecoder::new(BOUND), Vec::new());
        let (mut at, mut pieces) = (0, piece_bytes.iter().cycle());
        while at < stream.len() {
            let piece = *pieces.next().unwrap_or(&stream.len());
            let end = (at + piece.max(1)).min(stream.len());
            while at < end {
                let decoded = decoder.decode(&stream[at..end]);
                at += decoded.consumed;
                assert!(decoder.line.len() + decoder.name.len() + decoder.data.len() <= BOUND + 8);
                match decoded.event {
                    None => assert_eq!(at, end),
                    Some(Event::TooLarge) => told.push(None),
                    Some(Event::Whole) => {
                        told.push(Some((decoder.name().to_vec(), decoder.data().to_vec())));
                    }
                }
            }
        }
        told
    }

    fn event(name: &str, data: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        Some((name.as_bytes().to_vec(), data.as_bytes().to_vec()))
    }

    #[test]
    fn the_standards_examples() {
        let of = |stream: &str| told(stream.as_bytes(), &[]);
        let stock = "data: YHOO\ndata: +2\ndata: 10\n\n";
        assert_eq!(of(stock), [event("message", "YHOO\n+2\n10")]);
        let stream =
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
        assert_eq!(of(stream), [event("message", "first event"), event("message", "second event")]);
        assert_eq!(of("data\n\ndata\ndata\n\ndata:"), [event("message", ""), event("message", "\n")]);
        assert_eq!(of("data:test\n\ndata: test\n\n"), [event("message", "test"), event("message", "test")]);
        let named = "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: none\n\ndata: 1\n\n";
        assert_eq!(of(named), [event("add", "73857293"), event("remove", "2153"), event("message", "1")]);
    }

    #[test]
    fn lines_end_in_three_ways_and_a_stream_may_begin_with_a_mark() {
        let expected = [event("a", "1\n2"), event("message", "3")];
        for end in ["\n", "\r\n", "\r"] {
            let stream = "\u{feff}event: a|data: 1|data: 2||retry: 5|data: 3||".replace('|', end);
            for piece in 1..5 {
                assert_eq!(told(stream.as_bytes(), &[piece]), expected, "{end:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_is_too_large_is_told_and_passed_over() {
        let (most, more) = ("x".repeat(BOUND), "x".repeat(BOUND + 1));
        let huge = "x".repeat(100 * BOUND);
        let stream = format!(
            "data: {most}\n\ndata: {more}\n\ndata: {huge}\ndata: 1\n\n:{huge}\ndata: 2\n\nevent: {huge}\ndata: 3\n\n\
             data: {most}\ndata\n\nother: {huge}\ndata: 4\n\n"
        );
        let fits = |data: &str| event("message", data);
        let expected = [fits(&most), None, None, fits("2"), None, None, fits("4")];
        for piece in [1, 7, 64, 100_000] {
            assert_eq!(told(stream.as_bytes(), &[piece]), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn an_event_has_one_bound_and_a_large_one_leaves_no_room_behind() {
        const LARGE: usize = 1 << 20;
        let mut decoder = EventDecoder::new(LARGE);
        let held = |decoder: &EventDecoder| {
            decoder.line.capacity() + decoder.name.capacity() + decoder.data.capacity()
        };
        let (long, name) = ("x".repeat(LARGE - 100), "n".repeat(NAME_BYTES + 1));
        for (stream, told) in [
            (format!("event: a\ndata: {long}\n\n"), Event::Whole),
            (format!("data: {long}\ndata: {long}\n\n"), Event::TooLarge),
            (format!("event: {name}\ndata: 1\n\n"), Event::TooLarge),
            (format!("data: 1\nevent: {name}\n\n"), Event::TooLarge),
            (format!("event: {}\ndata: {long}\n\n", &name[1..]), Event::TooLarge),
            (format!("event: {}\ndata: 1\n\n", &name[1..]), Event::Whole),
        ] {
            let (mut seen, mut most) = (Vec::new(), 0);
            for mut piece in stream.as_bytes().chunks(10_000) {
                while !piece.is_empty() {
                    let decoded = decoder.decode(piece);
                    piece = &piece[decoded.consumed..];
                    seen.extend(decoded.event);
                    most = most.max(decoder.line.len() + decoder.name.len() + decoder.data.len());
                }
            }
            assert_eq!(seen, [told], "{}", &stream[..20]);
            assert!(most <= LARGE + 8, "{most}");
        }
        decoder.decode(b":\n");
        assert!(held(&decoder) <= 2 * RETAINED_BYTES + 2 * NAME_BYTES, "{}", held(&decoder));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            lines in prop::collection::vec("(data|event|id|:|x|)(:? ?[a-z:]{0,40})(\n|\r\n|\r|\n\n)", 0..20),
            pieces in prop::collection::vec(1usize..30, 1..6),
        ) {
            let stream = lines.concat().into_bytes();
            prop_assert_eq!(told(&stream, &pieces), told(&stream, &[]));
        }

        #[test]
        fn any_bytes_in_any_pieces(
            stream in prop::collection::vec(any::<u8>(), 0..400),
            pieces in prop::collection::vec(1usize..30, 1..6),
        ) {
            prop_assert_eq!(told(&stream, &pieces), told(&stream, &[]));
        }

        #[test]
        fn what_is_written_is_read(
            events in prop::collection::vec(("[a-z]{1,20}", "[ -~]{0,13}(\n[ -~]{0,13}){0,2}"), 0..8),
            pieces in prop::collection::vec(1usize..30, 1..6),
        ) {
            let write = |(name, data): &(String, String)| {
                format!("event: {name}\ndata: {}\n\n", data.replace('\n', "\ndata: "))
            };
            let stream: String = events.iter().map(write).collect();
            let expected: Told = events.iter().map(|(name, data)| event(name, data)).collect();
            prop_assert_eq!(told(stream.as_bytes(), &pieces), expected);
        }
    }
}
