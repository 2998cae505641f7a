//! Once its buffers have grown, the hot path allocates nothing.

#[path = "support/counting.rs"]
mod counting;

use std::cell::Cell;

use counting::Counting;

use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder, cookie, request};
use tidemark_wire::http2::connection::{Connection, Event as Http2Event, Request as Http2Request};
use tidemark_wire::http2::{frame, hpack};
use tidemark_wire::json::{Path, write_text};
use tidemark_wire::resp::{Keep, Kind as Reply, ReplyDecoder, ReplyLimits};
use tidemark_wire::websocket::{self, Decoder, Event, Kind, Role};

thread_local! {
    /// Of this thread alone: the test harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

#[global_allocator]
static COUNTING: Counting = Counting(count_one);

const ANSWERS: [&[u8]; 2] = [
    b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1; Path=/\r\nContent-Length: 27\r\n\r\n[{\"id\": \"a\\u00e9\"}, [1, 2]] ",
    b"HTTP/1.1 200 OK\r\nSet-Cookie: id=2\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n[{\"id\": \"b\"}, {}, [3, 4]]\r\n0\r\n\r\n",
];

#[test]
fn a_warm_codec_allocates_nothing() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    let mut server = RequestDecoder::new(DecoderLimits::default());
    let id = Path::parse("$[0].id").unwrap();
    let last = Path::parse("$[-1][-1]").unwrap();
    let (mut out, mut text) = (Vec::new(), Vec::new());
    let mut round = |piece_bytes: usize| {
        for answer in ANSWERS {
            decoder.start(false, true);
            let complete = answer.chunks(piece_bytes).any(|piece| decoder.decode(piece).unwrap().complete);
            assert!(complete);
            let cookie = cookie::parse(decoder.header("set-cookie").unwrap()).unwrap();
            text.clear();
            write_text(id.find(decoder.body()).unwrap().unwrap(), &mut text);
            assert!(last.find(decoder.body()).unwrap().is_some());

            out.clear();
            request::write_line(&mut out, "POST", &[b"/a/", &b"b"[..]]).unwrap();
            request::write_host(&mut out, b"localhost").unwrap();
            request::write_header(&mut out, b"Cookie", cookie.value).unwrap();
            let mut length = itoa::Buffer::new();
            request::write_header(&mut out, b"Content-Length", length.format(text.len()).as_bytes()).unwrap();
            request::end_head(&mut out);
            out.extend_from_slice(&text);
            server.start();
            assert!(out.chunks(piece_bytes).any(|piece| server.decode(piece).unwrap().complete));
            assert_eq!(server.body(), text);
        }
    };
    let sizes = [4096, 1, 7, 50];
    sizes.into_iter().for_each(&mut round);
    let before = ALLOCATIONS.get();
    assert!(before > 0, "growing is counted");
    sizes.into_iter().for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

/// An answer of a server: its date goes into the table, its body is two frames, and there are headers behind it.
fn answer(stream: u32) -> Vec<u8> {
    let mut block = vec![0x88, 0x61];
    hpack::write_value(b"Mon, 21 Oct 2013 20:13:21 GMT", &mut block);
    let mut out = Vec::new();
    frame::write(1, 4, stream, &block, &mut out);
    frame::write(0, 0, stream, &[b'x'; 16_000], &mut out);
    frame::write(0, 0, stream, b"yz", &mut out);
    frame::write(1, 5, stream, &[0x61, 1, b'1'], &mut out);
    out
}

#[test]
fn a_warm_connection_of_http2_allocates_nothing() {
    let mut out = Vec::new();
    let mut connection = Connection::new(&mut out);
    assert!(connection.next(&mut &[0, 0, 0, 4, 0, 0, 0, 0, 0][..], &mut out).unwrap().is_none());
    let (mut block, mut next) = (Vec::new(), 1);
    hpack::write_field(b":method", b"POST", &mut block);
    // made before anything is counted
    let answers: Vec<Vec<u8>> = (0..200).map(|n| answer(2 * n + 1)).collect();
    let mut round = |piece_bytes: usize| {
        for _ in 0..10 {
            out.clear();
            let stream = connection.request(&block, Http2Request::default(), &mut out).unwrap();
            connection.send(stream, b"hello", true, |_| unreachable!("there is room"), &mut out);
            assert_eq!(stream, next);
            let mut bytes = 0;
            for mut piece in answers[stream as usize / 2].chunks(piece_bytes) {
                while let Some(event) = connection.next(&mut piece, &mut out).unwrap() {
                    if let Http2Event::Data { bytes: more, .. } = event {
                        bytes += more.len();
                    }
                }
            }
            assert_eq!((bytes, connection.fields().get("date")), (16_002, Some(&b"1"[..])));
            next += 2;
        }
    };
    let sizes = [100_000, 1, 7, 50];
    // until the table of headers is full
    (0..4).for_each(|_| sizes.into_iter().for_each(&mut round));
    let before = ALLOCATIONS.get();
    sizes.into_iter().for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

const LONG_TEXT: &str = "a ü text that is longer than what fits in the seven bits of a frame's second byte, \
    so that its length takes two bytes of its own; and a few ü more";

#[test]
fn a_warm_websocket_allocates_nothing() {
    let mut decoders =
        [Role::Client, Role::Server].map(|role| Decoder::new(role, websocket::Limits::default()));
    let mut out = Vec::new();
    let mut round = |piece_bytes: usize| {
        for (decoder, key) in decoders.iter_mut().zip([None, Some([1, 2, 3, 4])]) {
            out.clear();
            websocket::write_fragment(&mut out, Some(Kind::Text), false, LONG_TEXT.as_bytes(), key);
            websocket::write_ping(&mut out, b"are you there", key);
            websocket::write_fragment(&mut out, None, true, &[b'x'; 300], key);
            websocket::write_message(&mut out, Kind::Binary, &[7; 70_000], key);
            let mut events = [0; 3];
            for mut piece in out.chunks(piece_bytes) {
                while let decoded = decoder.decode(piece).unwrap()
                    && let Some(event) = decoded.event
                {
                    match event {
                        Event::Message(_) => events[0] += 1,
                        Event::Ping => events[1] += 1,
                        _ => events[2] += 1,
                    }
                    piece = &piece[decoded.consumed..];
                }
            }
            assert_eq!(events, [2, 1, 0]);
        }
    };
    let sizes = [100_000, 1, 7, 50];
    sizes.into_iter().for_each(&mut round);
    let before = ALLOCATIONS.get();
    sizes.into_iter().for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

/// However large a reply is, however many parts it has and wherever it is cut: what nobody looks at takes no memory.
#[test]
fn a_reply_that_is_passed_by_allocates_nothing() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let value = [b'v'; 1 << 16];
    let elements = b":1\r\n$3\r\nabc\r\n*1\r\n$?\r\n;1\r\na\r\n;0\r\n".repeat(1_000);
    let large = [
        (Reply::Scalar, "$536870912\r\n", &value[..], 8_192, "\r\n"),
        (Reply::Aggregate, "*?\r\n", elements.as_slice(), 300, ".\r\n"),
        (Reply::Aggregate, "*900000\r\n", elements.as_slice(), 300, ""),
    ];
    let mut round = || {
        for (kind, begins, piece, times, ends) in large {
            decoder.start(Keep::Beginning);
            decoder.decode(begins.as_bytes()).unwrap();
            let mut is_whole = false;
            for part in (0..times).flat_map(move |_| piece.chunks(16_381)) {
                assert!(!is_whole);
                is_whole = decoder.decode(part).unwrap().complete;
            }
            assert_eq!(is_whole, ends.is_empty());
            assert!(is_whole || decoder.decode(ends.as_bytes()).unwrap().complete);
            assert_eq!(decoder.kind(), kind);
        }
    };
    round();
    let before = ALLOCATIONS.get();
    round();
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
