//! Remote calls as bytes: what is written is read again, whatever comes is taken or refused with a reason, and a
//! small call costs two bytes.

use proptest::prelude::*;
use tidemark_wire::rpc::{
    Answer, AnswerReader, AnswerWriter, Call, CallReader, CallWriter, Greeting, Limits, Request, RpcError,
};
use tidemark_wire::websocket::{PROTOCOL_ERROR, TOO_LARGE};

const TRADE: &[u8] = br#"{"name":"ibm","amount":1}"#;

fn requests(frame: &[u8], limits: Limits) -> Result<Vec<Request<'_>>, RpcError> {
    CallReader::new(limits).all(frame).collect()
}

fn refused(frame: &[u8]) -> RpcError {
    requests(frame, Limits::default()).unwrap_err()
}

#[test]
fn a_small_call_and_its_answer_take_two_bytes_each() {
    let (mut frame, mut answer) = (Vec::new(), Vec::new());
    let (mut calls, mut answers) = (CallWriter::new(), AnswerWriter::new());
    for id in 1000..1100 {
        calls.call(&mut frame, id, 3, 10_000, TRADE);
        answers.answer(&mut answer, id, b"true");
    }
    // the first one of each frame says which id, method and time
    assert_eq!(frame.len(), 100 * (TRADE.len() + 2) + 5);
    assert_eq!(answer.len(), 100 * ("true".len() + 2) + 2);
    assert_eq!((calls.items(), answers.items()), (100, 100));
}

#[test]
fn a_payload_of_any_length_can_be_written_in_place() {
    for length in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
        let payload = vec![7; length];
        let (mut there, mut in_place) = (Vec::new(), Vec::new());
        for id in [1, 2] {
            CallWriter::new().call(&mut there, id, 0, 1, &payload);
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(&payload);
                Ok::<(), ()>(())
            };
            CallWriter::new().call_with(&mut in_place, id, 0, 1, write).unwrap();
        }
        assert_eq!(there, in_place);
    }
}

#[test]
fn a_payload_that_cannot_be_written_leaves_no_trace() {
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    calls.call(&mut frame, 1, 0, 5, b"a");
    let before = frame.clone();
    let failing = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"half a");
        Err("no")
    };
    assert_eq!(calls.call_with(&mut frame, 9, 4, 7, failing), Err("no"));
    assert_eq!((&frame, calls.items()), (&before, 1));
    calls.call(&mut frame, 2, 0, 5, b"b");
    let call = |id, payload| Request::Call(Call { id, method: 0, deadline_ms: 5, payload });
    assert_eq!(requests(&frame, Limits::default()).unwrap(), [call(1, b"a"), call(2, b"b")]);

    let (mut frame, mut answers) = (Vec::new(), AnswerWriter::new());
    assert_eq!(answers.answer_with(&mut frame, 9, failing), Err("no"));
    answers.failure(&mut frame, 9, 500, "it broke");
    let read: Result<Vec<_>, _> = AnswerReader::new(Limits::default()).all(&frame).collect();
    assert_eq!(read.unwrap(), [Answer::Failed { id: 9, code: 500, reason: "it broke" }]);
}

#[test]
fn what_is_malformed_is_refused_with_a_reason() {
    assert_eq!(refused(&[0x01, 0x00]), RpcError::NothingBefore);
    assert_eq!(refused(&[0x21, 0x00, 0x00]), RpcError::NothingBefore);
    assert_eq!(refused(&[0x41, 0x05, 0x00]), RpcError::NothingBefore);
    assert_eq!(refused(&[0x61, 0x00, 0x00, 0x00]), RpcError::Deadline);
    assert_eq!(refused(&[0x61, 0x00, 0xff, 0xff, 0xff, 0xff, 0x10, 0x00]), RpcError::Deadline);
    assert_eq!(refused(&[0x61, 0x00, 0x05, 0x02, b'a']), RpcError::CutOff);
    assert_eq!(refused(&[0x61, 0x00, 0x05]), RpcError::CutOff);
    assert_eq!(refused(&[0x12, 0x01]), RpcError::Id); // -1
    for tag in [0x00, 0x03, 0x0f, 0x81, 0x22, 0x42] {
        assert_eq!(refused(&[tag, 0, 0, 0, 0]), RpcError::Item(tag), "{tag:#x}");
    }
    let failed = |frame: &[u8]| AnswerReader::new(Limits::default()).next(frame).unwrap_err();
    assert_eq!(failed(&[0x02, 0x10, 0x00]), RpcError::Code);
    assert_eq!(failed(&[0x02, 0x90, 0x03, 0x01, 0xff]), RpcError::Text);
    assert_eq!(failed(&[0x21, 0x00]), RpcError::Item(0x21));
    assert_eq!(failed(&[0x03]), RpcError::Item(0x03));
    assert_eq!(RpcError::Deadline.close_code(), PROTOCOL_ERROR);
}

#[test]
fn limits_are_held_to() {
    let mut frame = Vec::new();
    let mut calls = CallWriter::new();
    (0..3).for_each(|id| calls.call(&mut frame, id, 0, 1, b"abc"));
    let wide = Limits { frame_bytes: frame.len(), items: 3, payload_bytes: 3 };
    assert_eq!(requests(&frame, wide).unwrap().len(), 3);
    let narrow = |limits: Limits, error: RpcError| {
        assert_eq!(requests(&frame, limits), Err(error));
        assert_eq!(error.close_code(), TOO_LARGE);
    };
    let limit_bytes = frame.len() - 1;
    narrow(Limits { frame_bytes: limit_bytes, ..wide }, RpcError::FrameTooLarge { limit_bytes });
    narrow(Limits { items: 2, ..wide }, RpcError::TooManyItems { limit: 2 });
    narrow(Limits { payload_bytes: 2, ..wide }, RpcError::PayloadTooLarge { limit_bytes: 2 });
}

#[test]
fn a_length_beyond_all_memory_is_refused_before_anything_is_kept() {
    let huge = [0x61, 0x00, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(matches!(refused(&huge), RpcError::PayloadTooLarge { .. }));
}

#[test]
fn a_greeting_names_methods_by_their_place() {
    let methods = vec!["trade.trade".to_owned(), "trade.count".to_owned()];
    let greeting = Greeting { limits: Limits::default(), in_flight_max: 5000, methods };
    let mut frame = Vec::new();
    greeting.write(&mut frame).unwrap();
    assert_eq!(Greeting::read(&frame), Ok(greeting.clone()));
    assert_eq!((greeting.number_of("trade.count"), greeting.number_of("count")), (Some(1), None));
    frame.extend_from_slice(b"of a later version");
    assert_eq!(Greeting::read(&frame), Ok(greeting.clone()));
    assert_eq!(Greeting::read(&[0x01, 0x00]), Err(RpcError::NoGreeting));
    assert_eq!(Greeting::read(&[]), Err(RpcError::CutOff));
    let many = Greeting { methods: vec![String::new(); 4097], ..greeting.clone() };
    assert_eq!(many.write(&mut Vec::new()), Err(RpcError::GreetingTooLarge));
    let long = Greeting { methods: vec!["x".repeat(256)], ..greeting };
    assert_eq!(long.write(&mut Vec::new()), Err(RpcError::GreetingTooLarge));
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let (mut frame, reason) = (Vec::new(), "ä".repeat(600) + "x");
    AnswerWriter::new().failure(&mut frame, 1, 503, &reason);
    let Ok(Some(Answer::Failed { reason: read, .. })) = AnswerReader::new(Limits::default()).next(&frame)
    else {
        panic!("no failure")
    };
    assert_eq!(read, "ä".repeat(512));
}

/// What is written, with the payload kept.
#[derive(Debug, Clone)]
enum Item {
    Call { id: u64, method: u32, deadline_ms: u32, payload: Vec<u8> },
    Cancel { id: u64 },
    Failed { id: u64, code: u16, reason: String },
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let id = prop_oneof![0u64..20, any::<u64>()];
    let payload = prop::collection::vec(any::<u8>(), 0..300);
    let call = (id.clone(), 0u32..3, 1u32..5, payload)
        .prop_map(|(id, method, deadline_ms, payload)| Item::Call { id, method, deadline_ms, payload });
    let failed =
        (id.clone(), 400u16..600, ".{0,40}").prop_map(|(id, code, reason)| Item::Failed { id, code, reason });
    prop::collection::vec(
        prop_oneof![4 => call, 1 => id.prop_map(|id| Item::Cancel { id }), 1 => failed],
        0..20,
    )
}

proptest! {
    #[test]
    fn what_a_client_writes_the_server_reads(items in items()) {
        let (mut frame, mut writer, mut expected) = (Vec::new(), CallWriter::new(), Vec::new());
        // differences of ids are of 64 bits with a sign
        let mut id_before = 0u64;
        for item in &items {
            let (Item::Call { id, .. } | Item::Cancel { id } | Item::Failed { id, .. }) = item;
            if id_before.checked_add_signed(id.wrapping_sub(id_before) as i64) != Some(*id) {
                continue;
            }
            id_before = *id;
            match item {
                Item::Call { id, method, deadline_ms, payload } => {
                    writer.call(&mut frame, *id, *method, *deadline_ms, payload);
                    expected.push(Request::Call(Call {
                        id: *id, method: *method, deadline_ms: *deadline_ms, payload,
                    }));
                }
                Item::Cancel { id } | Item::Failed { id, .. } => {
                    writer.cancel(&mut frame, *id);
                    expected.push(Request::Cancel { id: *id });
                }
            }
        }
        prop_assert_eq!(writer.items(), expected.len());
        prop_assert_eq!(requests(&frame, Limits::default()), Ok(expected));
    }

    #[test]
    fn what_a_server_writes_the_client_reads(items in items()) {
        let (mut frame, mut writer, mut expected) = (Vec::new(), AnswerWriter::new(), Vec::new());
        let mut id_before = 0u64;
        for item in &items {
            let (Item::Call { id, .. } | Item::Cancel { id } | Item::Failed { id, .. }) = item;
            if id_before.checked_add_signed(id.wrapping_sub(id_before) as i64) != Some(*id) {
                continue;
            }
            match item {
                Item::Call { id, payload, .. } => {
                    writer.answer(&mut frame, *id, payload);
                    expected.push(Answer::Done { id: *id, payload });
                }
                Item::Failed { id, code, reason } => {
                    writer.failure(&mut frame, *id, *code, reason);
                    expected.push(Answer::Failed { id: *id, code: *code, reason });
                }
                Item::Cancel { .. } => continue,
            }
            id_before = *id;
        }
        let read: Result<Vec<_>, _> = AnswerReader::new(Limits::default()).all(&frame).collect();
        prop_assert_eq!(read, Ok(expected));
    }

    #[test]
    fn whatever_comes_is_read_or_refused(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        let limits = Limits { items: 20, ..Limits::default() };
        let _ = requests(&frame, limits);
        let _ = AnswerReader::new(limits).all(&frame).count();
        let _ = Greeting::read(&frame);
    }

    #[test]
    fn a_frame_that_is_cut_is_read_up_to_a_whole_item(cut in 0usize..60) {
        let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
        (7..10).for_each(|id| calls.call(&mut frame, id, 1, 1000, b"0123456789"));
        let cut = cut.min(frame.len());
        let read: Vec<_> = CallReader::new(Limits::default()).all(&frame[..cut]).collect();
        let whole = read.iter().filter(|item| item.is_ok()).count();
        // the first has its id, method and time beside tag and length
        let ends = [0, 16, 28, 40];
        prop_assert_eq!(whole, ends.iter().filter(|end| **end > 0 && **end <= cut).count());
        prop_assert_eq!(read.last().is_some_and(Result::is_err), !ends.contains(&cut));
    }
}

/// The example of `docs/rpc.md`, byte by byte.
#[test]
fn the_description_says_what_is_written() {
    let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
    let payload = br#"[{"name":"ibm","amount":1}]"#;
    (1..=2).for_each(|id| calls.call(&mut frame, id, 0, 10_000, payload));
    let text = include_str!("../../../docs/rpc.md");
    let mut described = Vec::new();
    for line in text.lines().filter(|line| line.contains(r#"1b [{"name":"ibm""#)) {
        let (head, _) = line.split_once(" [").expect("bytes in hexadecimal, then the payload");
        described.extend(head.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")));
        described.extend_from_slice(payload);
    }
    assert_eq!(frame, described);
}
