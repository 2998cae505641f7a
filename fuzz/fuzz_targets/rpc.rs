//! Frames of remote calls, from either side.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::rpc::{
    Answer, AnswerReader, AnswerWriter, CallReader, CallWriter, Greeting, Limits, Request,
};

const LIMITS: Limits = Limits { frame_bytes: 1 << 16, items: 512, payload_bytes: 4096 };

fn calls(frame: &[u8]) {
    let read: Vec<_> = CallReader::new(LIMITS).all(frame).collect();
    let (mut again, mut writer) = (Vec::new(), CallWriter::new());
    for request in read.iter().flatten() {
        match request {
            Request::Call(call) => {
                assert!(call.deadline_ms > 0 && call.payload.len() <= LIMITS.payload_bytes);
                writer.call(&mut again, call.id, call.method, call.deadline_ms, call.payload);
            }
            Request::Cancel { id } => writer.cancel(&mut again, *id),
        }
    }
    assert!(writer.items() <= LIMITS.items);
    let whole: Vec<_> = read.into_iter().filter_map(Result::ok).collect();
    let reread: Result<Vec<_>, _> = CallReader::new(LIMITS).all(&again).collect();
    assert_eq!(reread.as_deref(), Ok(&whole[..]));
}

fn answers(frame: &[u8]) {
    let read: Vec<_> = AnswerReader::new(LIMITS).all(frame).collect();
    let (mut again, mut writer) = (Vec::new(), AnswerWriter::new());
    for answer in read.iter().flatten() {
        match answer {
            Answer::Done { id, payload } => writer.answer(&mut again, *id, payload),
            Answer::Failed { id, code, reason } => writer.failure(&mut again, *id, *code, reason),
        }
    }
    let whole: Vec<_> = read.into_iter().filter_map(Result::ok).collect();
    let reread: Result<Vec<_>, _> = AnswerReader::new(LIMITS).all(&again).collect();
    assert_eq!(reread.as_deref(), Ok(&whole[..]));
}

fn greeting(frame: &[u8]) {
    let Ok(greeting) = Greeting::read(frame) else { return };
    let mut again = Vec::new();
    greeting.write(&mut again).expect("what was read can be written");
    assert_eq!(Greeting::read(&again), Ok(greeting));
}

fuzz_target!(|data: &[u8]| {
    let [what, frame @ ..] = data else { return };
    match what % 3 {
        0 => calls(frame),
        1 => answers(frame),
        _ => greeting(frame),
    }
});
