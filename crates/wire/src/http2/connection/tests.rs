//! What a server may do to a connection.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::http2::frame::flag;
use crate::http2::hpack;

/// A stream, the flags of its frame, and its fields.
type Headers<'a> = (u32, u8, &'a [(&'a str, &'a str)]);

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const GET: Request = Request { owner: 7, ends: true, is_head: false, holds: false };
const POST: Request = Request { owner: 8, ends: false, ..GET };

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(kind, flags, stream, payload, &mut bytes);
    bytes
}

fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields.iter().for_each(|(name, value)| hpack::write_field(name.as_bytes(), value.as_bytes(), &mut block));
    frame_of(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
}

fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame_of(kind::DATA, flags, stream, payload)
}

/// A connection whose server has said hello, and what is to be sent on it.
struct Client {
    connection: Connection,
    out: Vec<u8>,
}

impl Client {
    fn new() -> Client {
        Client::greeted(SETTINGS)
    }

    fn greeted(hello: &[u8]) -> Client {
        let mut out = Vec::new();
        let mut client = Client { connection: Connection::new(&mut out), out };
        assert_eq!(client.hear(hello), Vec::<String>::new());
        client.out.clear();
        client
    }

    fn ask(&mut self, request: Request) -> u32 {
        self.connection.request(&[0x82], request, &mut self.out).unwrap()
    }

    fn say(&mut self, stream: u32, bytes: &[u8], ends: bool) {
        self.connection.send(
            stream,
            bytes,
            ends,
            |sent| Bytes::copy_from_slice(&bytes[sent..]),
            &mut self.out,
        );
    }

    /// What these bytes mean, in words.
    fn hear(&mut self, bytes: &[u8]) -> Vec<String> {
        let (mut input, mut heard) = (bytes, Vec::new());
        loop {
            match self.connection.next(&mut input, &mut self.out) {
                Ok(None) => break,
                Ok(Some(Event::Data { owner, bytes, ends })) => {
                    heard.push(format!("{owner} data {}{}", bytes.len(), if ends { " end" } else { "" }));
                }
                Ok(Some(Event::Head { owner, status, ends, .. })) => {
                    let fields = self.connection.fields();
                    heard.push(format!(
                        "{owner} head {status} {}{}",
                        fields.len(),
                        if ends { " end" } else { "" }
                    ));
                }
                Ok(Some(Event::Failed { owner, why })) => heard.push(match why {
                    StreamError::Reset(reason) => format!("{owner} reset {reason}"),
                    StreamError::NotTaken(reason) => format!("{owner} left {reason}"),
                    StreamError::Wrong(violation) => format!("{owner} wrong {violation}"),
                }),
                Ok(Some(Event::Interim { owner })) => heard.push(format!("{owner} interim")),
                Ok(Some(Event::Trailers { owner })) => heard.push(format!("{owner} trailers")),
                Err(violation) => {
                    heard.push(format!("over {violation}"));
                    return heard;
                }
            }
        }
        assert!(input.is_empty());
        heard
    }

    /// Kinds, flags, streams and lengths of the frames that are to be sent, which are gone then.
    fn said(&mut self) -> Vec<(u8, u8, u32, usize)> {
        let mut heads = Vec::new();
        let mut rest = &self.out[..];
        while let Some((bytes, behind)) = rest.split_first_chunk() {
            let head = FrameHead::read(bytes);
            rest = &behind[head.length..];
            heads.push((head.kind, head.flags, head.stream, head.length));
        }
        assert!(rest.is_empty());
        self.out.clear();
        self.connection.taken();
        heads
    }
}

const OK: &[(&str, &str)] = &[(":status", "200")];
const END: u8 = flag::END_STREAM;

#[test]
fn a_head_that_comes_again_is_one_and_no_trailers() {
    let mut client = Client::new();
    let said = [(":status", "200"), ("content-length", "2")];
    let streams: Vec<u32> = (0..5).map(|_| client.ask(GET)).collect();
    let mut answer = |of: &[Headers<'_>]| {
        let bytes = of.iter().flat_map(|(stream, flags, list)| headers(*stream, *flags, list));
        client.hear(&bytes.collect::<Vec<u8>>())
    };
    let (first, second, third) = (streams[0], streams[1], streams[2]);
    assert_eq!(answer(&[(first, 0, &said), (second, 0, &said)]), ["7 head 200 1", "7 head 200 1"]);
    let told = answer(&[(first, END, &said)]);
    assert!(told.len() == 1 && told[0].contains(":status behind the body"), "{told:?}");
    // its length is that of this answer, too
    let told = answer(&[(second, END, &[("x-a", "1")])]);
    assert!(told[0].contains("shorter than it says"), "{told:?}");
    // what was trailers is no head
    let told = answer(&[(third, END, &[("x-a", "1")])]);
    assert!(told[0].contains("no :status"), "{told:?}");
    // what was wrong is wrong again
    for stream in &streams[3..] {
        let told = answer(&[(*stream, 0, &[(":status", "20")])]);
        assert!(told[0].contains("three digits"), "{told:?}");
    }
}

#[test]
fn answers_are_told_as_they_come() {
    let mut client = Client::new();
    assert_eq!((client.ask(GET), client.ask(Request { owner: 9, ..GET })), (1, 3));
    let heard = client.hear(
        &[
            headers(3, 0, &[(":status", "103"), ("link", "x")]),
            headers(3, 0, &[(":status", "200"), ("a", "b"), ("content-length", "5")]),
            data(3, flag::PADDED, b"\x03abc123"),
            headers(1, END, &[(":status", "204")]),
            data(3, 0, b""),
            data(3, 0, b"de"),
            headers(3, END, &[("grpc-status", "0")]),
        ]
        .concat(),
    );
    let expected = ["9 interim", "9 head 200 2", "9 data 3", "7 head 204 0 end", "9 data 2", "9 trailers"];
    assert_eq!(heard, expected);
    assert_eq!(client.connection.fields().get("grpc-status"), Some(&b"0"[..]));
    assert_eq!(client.said(), [(1, 5, 1, 1), (1, 5, 3, 1)]);
    assert!(client.connection.streams.is_empty());
}

#[test]
fn the_first_words_are_those_of_a_client() {
    let mut out = Vec::new();
    let mut connection = Connection::new(&mut out);
    assert_eq!(out[..24], *PREFACE);
    out.drain(..24);
    let mut client = Client { connection: Connection::new(&mut Vec::new()), out };
    assert_eq!(client.said(), [(4, 0, 0, 18), (8, 0, 0, 4)]);
    let mut input = &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..];
    assert!(connection.next(&mut input, &mut Vec::new()).unwrap_err().words.contains("no SETTINGS"));
}

#[test]
fn what_is_owed_is_said_and_bounded() {
    let mut client = Client::new();
    let ping = frame_of(kind::PING, 0, 0, b"12345678");
    assert!(client.hear(&[SETTINGS, &ping].concat()).is_empty());
    assert_eq!(client.said(), [(4, 1, 0, 0), (6, 1, 0, 8)]);
    assert!(client.hear(&[frame_of(4, 1, 0, b""), frame_of(6, 1, 0, b"12345678")].concat()).is_empty());
    assert!(client.said().is_empty());
    let most = OWED_BYTES / ping.len();
    assert!(client.hear(&ping.repeat(most)).is_empty());
    let heard = client.hear(&ping);
    assert!(heard[0].contains("are unread"), "{heard:?}");
}

#[test]
fn data_goes_as_far_as_the_windows_let_it_and_the_rest_follows() {
    let small = frame_of(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 10]);
    let mut client = Client::greeted(&small);
    let stream = client.ask(POST);
    client.say(stream, &[b'x'; 25], true);
    assert_eq!(client.said(), [(1, 4, 1, 1), (0, 0, 1, 10)]);
    assert_eq!(client.connection.waiting_bytes(stream), 15 + PIECE_BYTES);
    let grant = |stream, bytes: u32| frame_of(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    assert!(client.hear(&grant(stream, 4)).is_empty());
    assert_eq!(client.said(), [(0, 0, 1, 4)]);
    assert_eq!(client.connection.waiting_bytes(stream), 11 + PIECE_BYTES);
    // a larger first window is more for those that are open, too; a smaller one is less
    assert!(client.hear(&frame_of(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 4])).is_empty());
    assert!(client.hear(&grant(stream, 6)).is_empty());
    assert_eq!(client.said(), [(4, 1, 0, 0)]);
    assert!(client.hear(&frame_of(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 15])).is_empty());
    assert_eq!(client.said(), [(4, 1, 0, 0), (0, END, 1, 11)]);
    assert_eq!(client.connection.waiting_bytes(stream), 0);
    assert_eq!(client.hear(&headers(1, END, OK)), ["8 head 200 0 end"]);
    assert!(client.said().is_empty());
}

#[test]
fn the_window_of_the_connection_and_the_room_of_the_output_bound_all_streams() {
    let wide = frame_of(kind::SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let mut client = Client::greeted(&wide);
    let streams = [client.ask(POST), client.ask(POST)];
    client.out.clear();
    let body = vec![b'x'; 1 << 20];
    streams.iter().for_each(|stream| client.say(*stream, &body, true));
    let sent = |said: &[(u8, u8, u32, usize)]| -> usize {
        said.iter().filter(|frame| frame.0 == 0).map(|frame| frame.3).sum()
    };
    assert_eq!(sent(&client.said()), 65_535);
    assert!(client.hear(&frame_of(kind::WINDOW_UPDATE, 0, 0, &(4u32 << 20).to_be_bytes())).is_empty());
    let mut all = 65_535;
    while !client.out.is_empty() {
        assert!(client.out.len() < OUTPUT_BYTES + 2 * PAYLOAD_BYTES);
        let said = client.said();
        all += sent(&said);
        let of = |stream| said.iter().filter(|frame| frame.2 == stream).count();
        assert!(of(1) > 0 && of(3) > 0 || all == 2 << 20, "in turn");
        client.connection.pump(&mut client.out);
    }
    assert_eq!(all, 2 << 20);
    assert!(client.connection.ready.is_empty());
}

#[test]
fn what_is_said_on_an_open_stream_follows_and_its_end_too() {
    let mut client = Client::new();
    let stream = client.ask(POST);
    client.say(stream, b"one", false);
    client.say(stream, b"", false);
    client.say(stream, b"two", false);
    client.say(stream, b"", true);
    client.say(stream, b"never", true);
    assert_eq!(client.said(), [(1, 4, 1, 1), (0, 0, 1, 3), (0, 0, 1, 3), (0, END, 1, 0)]);
    // an answer that is whole before the request is: the rest is not wanted
    let stream = client.ask(POST);
    client.out.clear();
    assert_eq!(client.hear(&headers(stream, END, OK)), ["8 head 200 0 end"]);
    assert_eq!(client.said(), [(3, 0, 3, 4)]);
}

#[test]
fn what_came_is_granted_again_at_once_or_when_it_is_released() {
    let mut client = Client::new();
    let (free, held) = (client.ask(GET), client.ask(Request { holds: true, ..GET }));
    client.out.clear();
    let body = |stream| -> Vec<u8> { data(stream, 0, &[b'x'; PAYLOAD_BYTES]).repeat(32) };
    client.hear(&[headers(free, 0, OK), headers(held, 0, OK), body(free), body(held)].concat());
    assert_eq!(client.said(), [(8, 0, free, 4)], "512 KiB");
    client.connection.release(held, &mut client.out);
    assert_eq!(client.said(), [(8, 0, held, 4)]);
    client.hear(&body(held).repeat(2));
    assert!(client.said().is_empty());
    let heard = client.hear(&data(held, 0, b"x"));
    assert_eq!(heard, ["7 wrong the server sends more than it was granted (FLOW_CONTROL_ERROR)"]);
    // the stream is gone, and what it held is granted to others
    assert_eq!(client.said(), [(3, 0, held, 4)]);
    client.hear(&body(free).repeat(14));
    assert_eq!(client.said().iter().filter(|frame| frame.0 == 8 && frame.2 == 0).count(), 1, "8 MiB in all");
}

#[test]
fn padding_is_granted_again_at_once_since_nobody_hears_of_it() {
    let mut client = Client::new();
    let held = client.ask(Request { holds: true, ..GET });
    client.hear(&headers(held, 0, OK));
    client.out.clear();
    // 256 bytes, all of them padding
    let padding = data(held, flag::PADDED, &[&[255][..], &[0; 255]].concat());
    assert_eq!(client.hear(&padding.repeat(2_047)), Vec::<String>::new());
    assert!(client.said().is_empty());
    // its length comes later than its head
    client.hear(&padding[..HEAD_BYTES]);
    client.connection.release(held, &mut client.out);
    assert_eq!(client.said(), [(8, 0, held, 4)], "512 KiB, released between the two");
    assert_eq!(client.hear(&padding[HEAD_BYTES..]), Vec::<String>::new());
    assert_eq!(client.connection.streams[&held].held, 0);
    client.hear(&padding.repeat(2_048));
    assert_eq!(client.said(), [(8, 0, held, 4)]);
    // what is not padding waits for its owner
    let heard = client.hear(&data(held, flag::PADDED, b"\x03abc123"));
    assert_eq!((&heard[..], client.connection.streams[&held].held), (&["7 data 3".to_owned()][..], 3));
    assert_eq!(client.hear(&data(held, flag::PADDED | END, b"\x03123")), ["7 data 0 end"]);
    assert!(client.connection.streams.is_empty());
}

#[test]
fn a_server_that_goes_away_names_what_it_left() {
    let mut client = Client::new();
    (1..=3).for_each(|owner| assert_eq!(client.ask(Request { owner, ..GET }), owner * 2 - 1));
    let away = |last: u8, reason: u8| frame_of(kind::GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, reason, b'x']);
    assert_eq!(client.hear(&away(3, 0)), ["3 left NO_ERROR"]);
    assert!(client.connection.is_going_away());
    assert_eq!(client.connection.request(&[0x82], GET, &mut client.out), None);
    // what comes of it all the same is passed over; others are answered
    assert_eq!(client.hear(&[headers(5, END, OK), headers(1, END, OK)].concat()), ["1 head 200 0 end"]);
    assert_eq!(client.hear(&away(1, 2)), ["2 left INTERNAL_ERROR"]);
    assert!(client.hear(&away(3, 0))[0].contains("that the one before did not"));
}

#[test]
fn streams_that_were_given_up_may_hear_more() {
    let mut client = Client::new();
    let (given_up, over) = (client.ask(GET), client.ask(GET));
    client.out.clear();
    client.connection.give_up(given_up, &mut client.out);
    assert_eq!(client.said(), [(3, 0, 1, 4)]);
    let late = [headers(1, 0, OK), data(1, 0, b"abc"), data(1, END, b""), frame_of(3, 0, 1, &[0, 0, 0, 8])];
    assert!(client.hear(&late.concat()).is_empty());
    assert_eq!(client.hear(&headers(over, END, OK)), ["7 head 200 0 end"]);
    // these may cross the end of a stream, a body may not
    let crossing =
        [frame_of(8, 0, over, &[0, 0, 0, 1]), frame_of(3, 0, over, &[0; 4]), frame_of(2, 0, over, &[0; 5])];
    assert!(client.hear(&crossing.concat()).is_empty());
    assert!(client.hear(&data(over, 0, b"x"))[0].contains("STREAM_CLOSED"));
}

#[test]
fn what_is_wrong_on_a_stream_ends_that_stream() {
    const WRONG: &str = "PROTOCOL_ERROR";
    let status = (":status", "200");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (headers(1, END, &[]), "no :status"),
        (headers(1, END, &[(":status", "20")]), "three digits"),
        (headers(1, END, &[(":status", "2x0")]), "three digits"),
        (headers(1, END, &[status, status]), "twice"),
        (headers(1, END, &[("a", "b"), status]), "behind other"),
        (headers(1, END, &[status, ("A", "b")]), "name of a header"),
        (headers(1, END, &[status, ("a b", "b")]), "name of a header"),
        (headers(1, END, &[status, ("", "b")]), "name of a header"),
        (headers(1, END, &[status, ("a", "b\r\nc: d")]), "value of a header"),
        (headers(1, END, &[status, ("connection", "close")]), "HTTP/1.1"),
        (headers(1, END, &[status, ("content-length", "x")]), "length"),
        (headers(1, END, &[status, ("content-length", "+1")]), "length"),
        (headers(1, 0, &[status, ("content-length", "1"), ("content-length", "2")]), "length"),
        (headers(1, END, &[status, ("content-length", "1")]), "shorter"),
        (headers(1, END, &[(":status", "100")]), "interim"),
        (headers(1, 0, &[(":status", "101")]), "interim"),
        (data(1, 0, b"x"), "before the head"),
        ([headers(1, 0, &[status, ("content-length", "1")]), data(1, END, b"")].concat(), "shorter"),
        ([headers(1, 0, &[status, ("content-length", "1")]), data(1, 0, b"xy")].concat(), "longer"),
        ([headers(1, 0, &[status, ("content-length", "1")]), headers(1, END, &[])].concat(), "shorter"),
        ([headers(1, 0, OK), headers(1, 0, &[("a", "b")])].concat(), "do not end it"),
        ([headers(1, 0, OK), headers(1, END, OK)].concat(), "behind the body"),
        (frame_of(8, 0, 1, &[0; 4]), "WINDOW_UPDATE of 0"),
    ];
    for (bytes, words) in cases {
        let mut client = Client::new();
        client.ask(GET);
        client.ask(Request { owner: 9, ..GET });
        client.out.clear();
        let heard = client.hear(&[bytes, headers(3, END, OK)].concat());
        let (last, before) = heard.split_last().unwrap();
        let wrong = before.last().unwrap();
        assert!(
            wrong.starts_with("7 wrong") && wrong.contains(words) && wrong.contains(WRONG),
            "{words}: {heard:?}"
        );
        assert_eq!(last, "9 head 200 0 end", "{words}");
        assert_eq!(client.said(), [(3, 0, 1, 4)], "{words}");
    }
}

#[test]
fn what_is_wrong_on_a_connection_ends_it() {
    let settings = |payload: &[u8]| frame_of(4, 0, 0, payload);
    let cases: Vec<(Vec<u8>, &str, Reason)> = vec![
        (
            headers(1, END, &[(":status", "200"), (":path", "/")]),
            "only requests have",
            Reason::PROTOCOL_ERROR,
        ),
        (headers(1, END, &[(":status", "200"), (":x", "/")]), "nobody knows", Reason::PROTOCOL_ERROR),
        (headers(5, END, OK), "nobody opened", Reason::PROTOCOL_ERROR),
        (headers(2, END, OK), "nobody opened", Reason::PROTOCOL_ERROR),
        (headers(0, END, OK), "nobody opened", Reason::PROTOCOL_ERROR),
        (data(0, 0, b"x"), "nobody opened", Reason::PROTOCOL_ERROR),
        (data(1, flag::PADDED, b"\x01"), "padding", Reason::PROTOCOL_ERROR),
        (data(1, flag::PADDED, b""), "padding", Reason::FRAME_SIZE_ERROR),
        (frame_of(1, 4 | flag::PADDED, 1, b"\x02\x88"), "padding", Reason::PROTOCOL_ERROR),
        (frame_of(1, 4 | flag::PRIORITY, 1, b"\0\0\0\0"), "priority", Reason::FRAME_SIZE_ERROR),
        (frame_of(1, 4, 1, b"\xff"), "cannot be read", Reason::COMPRESSION_ERROR),
        (frame_of(9, 4, 1, b"\x88"), "without HEADERS", Reason::PROTOCOL_ERROR),
        (
            [frame_of(1, 0, 1, b""), frame_of(9, 4, 3, b"\x88")].concat(),
            "within a header block",
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame_of(1, 0, 1, b""), frame_of(6, 0, 0, &[0; 8])].concat(),
            "within a header block",
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame_of(1, 0, 1, b""), frame_of(9, 0, 1, b"").repeat(BLOCK_FRAMES + 1)].concat(),
            "or 128 frames",
            Reason::ENHANCE_YOUR_CALM,
        ),
        (
            [frame_of(1, 0, 1, b""), frame_of(9, 0, 1, &[0x88; PAYLOAD_BYTES]).repeat(17)].concat(),
            "or 128 frames",
            Reason::ENHANCE_YOUR_CALM,
        ),
        (frame_of(3, 0, 1, &[0; 5]), "for this type of frame", Reason::FRAME_SIZE_ERROR),
        (frame_of(3, 0, 0, &[0; 4]), "nobody opened", Reason::PROTOCOL_ERROR),
        (frame_of(3, 0, 9, &[0; 4]), "nobody opened", Reason::PROTOCOL_ERROR),
        (frame_of(2, 0, 0, &[0; 5]), "nobody opened", Reason::PROTOCOL_ERROR),
        (frame_of(5, 4, 1, &[0, 0, 0, 2, 0x82]), "PUSH_PROMISE", Reason::PROTOCOL_ERROR),
        (frame_of(6, 0, 0, &[0; 7]), "eight bytes", Reason::FRAME_SIZE_ERROR),
        (frame_of(6, 0, 1, &[0; 8]), "of a stream", Reason::PROTOCOL_ERROR),
        (frame_of(7, 0, 0, &[0; 7]), "eight bytes", Reason::FRAME_SIZE_ERROR),
        (frame_of(7, 0, 1, &[0; 8]), "of a stream", Reason::PROTOCOL_ERROR),
        (frame_of(8, 0, 0, &[0; 4]), "WINDOW_UPDATE of 0", Reason::PROTOCOL_ERROR),
        (frame_of(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), "window", Reason::FLOW_CONTROL_ERROR),
        (frame_of(8, 0, 0, &[0; 3]), "for this type of frame", Reason::FRAME_SIZE_ERROR),
        (frame_of(4, 0, 1, b""), "on a stream", Reason::PROTOCOL_ERROR),
        (frame_of(4, 1, 0, &[0; 6]), "length", Reason::FRAME_SIZE_ERROR),
        (settings(&[0; 5]), "length", Reason::FRAME_SIZE_ERROR),
        (settings(&[0, 2, 0, 0, 0, 1]), "ENABLE_PUSH", Reason::PROTOCOL_ERROR),
        (settings(&[0, 4, 0x80, 0, 0, 0]), "window", Reason::FLOW_CONTROL_ERROR),
        (settings(&[0, 5, 0, 0, 0x3f, 0xff]), "MAX_FRAME_SIZE", Reason::PROTOCOL_ERROR),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], "larger than a frame", Reason::FRAME_SIZE_ERROR),
    ];
    for (bytes, words, reason) in cases {
        let mut client = Client::new();
        client.ask(GET);
        client.ask(GET);
        client.out.clear();
        let heard = client.hear(&bytes);
        let over = heard.last().unwrap();
        let told = over.starts_with("over") && over.contains(words) && over.contains(&reason.to_string());
        assert!(told, "{words}: {heard:?}");
        let away = frame_of(7, 0, 0, &[[0; 4], reason.0.to_be_bytes()].concat());
        assert!(client.out.ends_with(&away), "{words}: {:?}", client.out);
    }
}

#[test]
fn more_than_the_connection_was_granted_ends_it() {
    let mut client = Client::new();
    let hold = Request { holds: true, ..GET };
    let streams: Vec<u32> = (0..17).map(|_| client.ask(hold)).collect();
    let mut heard = Vec::new();
    for stream in streams {
        let body = data(stream, 0, &[b'x'; PAYLOAD_BYTES]).repeat(64);
        heard = client.hear(&[headers(stream, 0, OK), body].concat());
        if stream < 33 {
            assert_eq!(heard.len(), 65);
        }
    }
    assert!(heard.last().unwrap().contains("more than it was granted (FLOW_CONTROL_ERROR)"), "{heard:?}");
}

#[test]
fn headers_that_are_too_many_end_their_stream_and_the_table_is_right() {
    let mut client = Client::new();
    client.ask(GET);
    client.ask(Request { owner: 9, ..GET });
    client.out.clear();
    // `a: b` into the table, then `x: y…` without end
    let mut block = vec![0x88, 0x40, 1, b'a', 1, b'b'];
    while block.len() < HEADERS_BYTES {
        hpack::write_field(b"x", &[b'y'; 1_000], &mut block);
    }
    let mut parts = block.chunks(PAYLOAD_BYTES);
    let mut bytes = frame_of(1, END, 1, parts.next().unwrap());
    parts.for_each(|part| bytes.extend(frame_of(9, 0, 1, part)));
    bytes.extend(frame_of(9, 4, 1, b""));
    bytes.extend(frame_of(1, 5, 3, &[0x88, 0xbe]));
    let heard = client.hear(&bytes);
    assert!(heard[0].contains("7 wrong") && heard[0].contains("64 KiB"), "{heard:?}");
    assert_eq!(heard[1], "9 head 200 1 end");
    assert_eq!(client.connection.fields().get("a"), Some(&b"b"[..]));
}

#[test]
fn a_body_belongs_to_no_answer_to_head() {
    let mut client = Client::new();
    client.ask(Request { is_head: true, ..GET });
    client.ask(Request { is_head: true, ..GET });
    let long = [(":status", "200"), ("content-length", "5")];
    assert_eq!(client.hear(&headers(1, END, &long)), ["7 head 200 1 end"]);
    assert!(client.hear(&[headers(3, 0, &long), data(3, 0, b"hello")].concat())[1].contains("longer"));
    client.ask(GET);
    let unchanged = [(":status", "304"), ("content-length", "5")];
    assert_eq!(client.hear(&headers(5, END, &unchanged)), ["7 head 304 1 end"]);
}

/// A frame that a server might send, right or wrong.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40),
        2 => Just(vec![0x88]),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![0x88, 0x40, 1, b'a', 1, b'b']),
        1 => Just(vec![b'x'; 600]),
    ];
    let flags = prop_oneof![3 => Just(5u8), 2 => Just(4u8), 1 => Just(0u8), 1 => any::<u8>()];
    (0..11u8, flags, 0..12u32, payload)
        .prop_map(|(kind, flags, stream, payload)| frame_of(kind, flags, stream, &payload))
}

/// What came of bytes in pieces, and what is to be sent.
fn heard_in_pieces(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let mut client = Client::new();
    for owner in 0..4 {
        client.ask(Request { owner, holds: owner == 2, ..GET });
    }
    let upload = client.ask(Request { owner: 4, ..POST });
    client.say(upload, &[b'x'; 70_000], true);
    let mut all: Vec<String> = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        all.extend(client.hear(piece));
        let held = [&client.connection.partial, &client.connection.block].map(Vec::capacity);
        assert!(held[0] <= 2 * (PAYLOAD_BYTES + HEAD_BYTES) && held[1] <= 2 * BLOCK_BYTES, "{held:?}");
        assert!(client.connection.streams.len() <= 5);
        if all.last().is_some_and(|last| last.starts_with("over")) {
            break;
        }
    }
    (all, client.out)
}

/// The same where pieces of one body that follow each other are one.
fn joined(heard: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for words in heard {
        match (all.last(), words.split_once(" data ")) {
            (Some(last), Some((owner, _)))
                if last.starts_with(&format!("{owner} data")) && !last.ends_with("end") =>
            {
                let bytes = |words: &str| {
                    words.split(' ').nth(2).and_then(|bytes| bytes.parse::<usize>().ok()).unwrap_or(0)
                };
                let sum = bytes(last) + bytes(&words);
                let end = if words.ends_with("end") { " end" } else { "" };
                *all.last_mut().unwrap() = format!("{owner} data {sum}{end}");
            }
            _ => all.push(words),
        }
    }
    all
}

proptest! {
    #[test]
    fn frames_mean_the_same_in_whatever_pieces_they_come(
        frames in prop::collection::vec(any_frame(), 0..30),
        piece in 1..50usize,
    ) {
        let bytes = frames.concat();
        let (whole, said) = heard_in_pieces(&bytes, bytes.len());
        let (pieces, said_in_pieces) = heard_in_pieces(&bytes, piece);
        prop_assert_eq!(joined(pieces), joined(whole));
        prop_assert_eq!(said_in_pieces, said);
    }

    #[test]
    fn any_bytes_are_read_or_told(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1..50usize) {
        heard_in_pieces(&bytes, piece);
    }
}
