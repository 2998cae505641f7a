//! Frames and messages: what is understood, in whatever pieces it comes, and what is refused.

use tidemark_wire::websocket::{
    Decoder, Event, Kind, Limits, Role, WebSocketError, write_close, write_fragment, write_message,
    write_ping, write_pong,
};

const KEY: Option<[u8; 4]> = Some([0x37, 0xfa, 0x21, 0x3d]);

/// What was understood: each event with its bytes, and what went wrong.
type Understood = (Vec<(Event, Vec<u8>)>, Option<WebSocketError>);

fn feed(decoder: &mut Decoder, pieces: &[&[u8]]) -> Understood {
    let mut events = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            match decoder.decode(rest) {
                Ok(decoded) => {
                    assert!(decoded.consumed <= rest.len());
                    rest = &rest[decoded.consumed..];
                    let Some(event) = decoded.event else { break };
                    let bytes = match event {
                        Event::Message(_) => decoder.message(),
                        _ => decoder.control(),
                    };
                    events.push((event, bytes.to_vec()));
                }
                Err(error) => {
                    assert_eq!(decoder.decode(rest), Err(error), "an error is repeated");
                    return (events, Some(error));
                }
            }
        }
    }
    (events, None)
}

fn understood(role: Role, wire: &[u8]) -> Understood {
    let whole = feed(&mut Decoder::new(role, Limits::default()), &[wire]);
    for at in 0..=wire.len() {
        let (front, back) = wire.split_at(at);
        let split = feed(&mut Decoder::new(role, Limits::default()), &[front, back]);
        assert_eq!(split, whole, "split at {at}");
    }
    let bytes: Vec<&[u8]> = wire.chunks(1).collect();
    assert_eq!(feed(&mut Decoder::new(role, Limits::default()), &bytes), whole, "byte by byte");
    whole
}

fn refused(role: Role, wire: &[u8]) -> WebSocketError {
    understood(role, wire).1.unwrap_or_else(|| panic!("{wire:x?} is taken"))
}

#[test]
fn the_examples_of_the_standard() {
    // RFC 6455, section 5.7.
    let hello = || vec![(Event::Message(Kind::Text), b"Hello".to_vec())];
    assert_eq!(understood(Role::Client, b"\x81\x05Hello"), (hello(), None));
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(understood(Role::Server, masked), (hello(), None));
    assert_eq!(understood(Role::Client, b"\x01\x03Hel\x80\x02lo"), (hello(), None));
    assert_eq!(understood(Role::Client, b"\x89\x05Hello"), (vec![(Event::Ping, b"Hello".to_vec())], None));
    let mut out = Vec::new();
    write_message(&mut out, Kind::Text, b"Hello", KEY);
    assert_eq!(out, masked);
    out.clear();
    write_message(&mut out, Kind::Binary, &[1; 256], None);
    assert_eq!(out[..5], [0x82, 0x7e, 1, 0, 1]);
    out.clear();
    write_message(&mut out, Kind::Binary, &[1; 65_536], None);
    assert_eq!(out[..11], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
}

#[test]
fn control_frames_stand_between_fragments() {
    for (role, key) in [(Role::Client, None), (Role::Server, KEY)] {
        let mut wire = Vec::new();
        write_fragment(&mut wire, Some(Kind::Text), false, "gr\u{fc}".as_bytes(), key);
        write_ping(&mut wire, b"1", key);
        write_fragment(&mut wire, None, false, b"", key);
        write_pong(&mut wire, b"", key);
        write_fragment(&mut wire, None, true, "\u{df}e".as_bytes(), key);
        write_message(&mut wire, Kind::Binary, &[0xff; 130], key);
        write_close(&mut wire, Some(1001), "bye", key);
        let expected = vec![
            (Event::Ping, b"1".to_vec()),
            (Event::Pong, Vec::new()),
            (Event::Message(Kind::Text), "gr\u{fc}\u{df}e".as_bytes().to_vec()),
            (Event::Message(Kind::Binary), vec![0xff; 130]),
            (Event::Close, b"\x03\xe9bye".to_vec()),
        ];
        assert_eq!(understood(role, &wire), (expected, None));
    }
}

#[test]
fn a_character_may_be_cut_by_frames_but_not_by_the_end() {
    let whole = b"\x01\x02\xce\xba\x00\x01\xe1\x80\x02\xbd\xb9";
    let text = "\u{3ba}\u{1f79}".as_bytes().to_vec();
    assert_eq!(understood(Role::Client, whole), (vec![(Event::Message(Kind::Text), text)], None));
    assert_eq!(refused(Role::Client, b"\x81\x02\xe1\xbd"), WebSocketError::InvalidText);
}

#[test]
fn wrong_text_is_refused_at_its_first_wrong_byte() {
    let wrong: [&[u8]; 10] = [
        b"\x80",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\xaf",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
        b"a\xc3(",
    ];
    for bytes in wrong {
        let mut wire = vec![0x81, bytes.len() as u8];
        wire.extend_from_slice(bytes);
        assert_eq!(refused(Role::Client, &wire), WebSocketError::InvalidText, "{bytes:x?}");
    }
    // The frame has far more to come, and is refused all the same.
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    assert_eq!(decoder.decode(b"\x81\x7e\x10\x00good"), Ok(decoded(8)));
    assert_eq!(decoder.decode(b"\xf4\x90"), Err(WebSocketError::InvalidText));
    assert_eq!(WebSocketError::InvalidText.close_code(), 1007);
}

fn decoded(consumed: usize) -> tidemark_wire::websocket::Decoded {
    tidemark_wire::websocket::Decoded { consumed, event: None }
}

#[test]
fn what_breaks_the_protocol() {
    use WebSocketError::*;
    let cases: [(Role, &[u8], WebSocketError); 20] = [
        (Role::Client, b"\xc1\x00", ReservedBits),
        (Role::Client, b"\xa1\x00", ReservedBits),
        (Role::Client, b"\x91\x00", ReservedBits),
        (Role::Client, b"\x83\x00", UnknownOpcode(3)),
        (Role::Client, b"\x8b\x00", UnknownOpcode(11)),
        (Role::Client, b"\x8f\x7e", UnknownOpcode(15)),
        (Role::Client, b"\x81\x80\0\0\0\0", Masked),
        (Role::Server, b"\x81\x00", NotMasked),
        (Role::Client, b"\x80\x00", NothingToContinue),
        (Role::Client, b"\x00\x01x", NothingToContinue),
        (Role::Client, b"\x01\x01x\x81\x01y", MessageNotEnded),
        (Role::Client, b"\x81\x01x\x80\x01y", NothingToContinue),
        (Role::Client, b"\x09\x00", FragmentedControl),
        (Role::Client, b"\x89\x7e\x00\x7e", ControlTooLarge),
        (Role::Client, b"\x82\x7e\x00\x7d", LengthForm),
        (Role::Client, b"\x82\x7f\0\0\0\0\0\0\xff\xff", LengthForm),
        (Role::Client, b"\x82\x7f\x80\0\0\0\0\0\0\0", LengthForm),
        (Role::Client, b"\x88\x01\x03", CloseCode),
        (Role::Client, b"\x88\x02\x03\xed", CloseCode),
        (Role::Client, b"\x88\x04\x03\xe8\xc3(", InvalidText),
    ];
    for (role, wire, expected) in cases {
        assert_eq!(refused(role, wire), expected, "{wire:x?}");
        assert!([1002, 1007].contains(&expected.close_code()));
    }
}

#[test]
fn close_codes() {
    for code in [1000u16, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        let mut wire = Vec::new();
        write_close(&mut wire, Some(code), "ok", None);
        let mut decoder = Decoder::new(Role::Client, Limits::default());
        assert_eq!(decoder.decode(&wire).unwrap().event, Some(Event::Close));
        assert_eq!((decoder.close_code(), decoder.close_reason()), (Some(code), "ok"));
        assert_eq!(decoder.decode(b"\x81\x00"), Ok(decoded(0)), "nothing is taken behind a close");
    }
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        let [high, low] = code.to_be_bytes();
        assert_eq!(refused(Role::Client, &[0x88, 2, high, low]), WebSocketError::CloseCode, "{code}");
    }
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    assert_eq!(decoder.decode(b"\x88\x00").unwrap().event, Some(Event::Close));
    assert_eq!((decoder.close_code(), decoder.close_reason()), (None, ""));
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let mut wire = Vec::new();
    write_close(&mut wire, Some(1000), &"\u{fc}".repeat(100), None);
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    assert_eq!(decoder.decode(&wire).unwrap().event, Some(Event::Close));
    assert_eq!(decoder.close_reason(), "\u{fc}".repeat(61));
}

#[test]
fn limits_hold_before_anything_is_kept() {
    let limits = Limits { frame_bytes: 200, message_bytes: 300 };
    let mut large = Decoder::new(Role::Client, limits);
    let error = large.decode(b"\x82\x7f\0\0\0\x7f\xff\xff\xff\xff").unwrap_err();
    assert_eq!(error, WebSocketError::FrameTooLarge { limit_bytes: 200 });
    assert!(error.to_string().contains("200 bytes"));
    assert_eq!(error.close_code(), 1009);
    let mut wire = Vec::new();
    write_fragment(&mut wire, Some(Kind::Binary), false, &[0; 200], None);
    write_fragment(&mut wire, None, false, &[0; 100], None);
    write_fragment(&mut wire, None, true, &[0; 1], None);
    let mut many = Decoder::new(Role::Client, limits);
    let (_, error) = feed(&mut many, &[&wire]);
    assert_eq!(error, Some(WebSocketError::MessageTooLarge { limit_bytes: 300 }));
    let mut just = Decoder::new(Role::Client, limits);
    let (events, error) = feed(&mut just, &[&wire[..wire.len() - 3], b"\x80\x00"]);
    assert_eq!((events.len(), events[0].1.len(), error), (1, 300, None));
}

#[test]
fn it_knows_when_it_stands_between_messages() {
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    assert!(decoder.is_between_messages());
    for (wire, between) in
        [(&b"\x01"[..], false), (b"\x01x", false), (b"\x89\x00", false), (b"\x80\x01", false), (b"y", true)]
    {
        decoder.decode(wire).unwrap();
        assert_eq!(decoder.is_between_messages(), between, "after {wire:x?}");
    }
    decoder.decode(b"\x01\x05x").unwrap();
    decoder.start();
    assert!(decoder.is_between_messages());
    assert_eq!(decoder.decode(b"\x81\x00").unwrap().event, Some(Event::Message(Kind::Text)));
    assert_eq!(decoder.message(), b"");
}
