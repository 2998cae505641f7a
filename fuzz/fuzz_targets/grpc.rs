//! gRPC: messages cut out of a stream, texts of statuses, and messages through JSON.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::protobuf::{Method, MethodName, Types};
use tidemark_wire::grpc::{Messages, status_text, write_message};

const LIMIT_BYTES: usize = 4096;

static ADD: LazyLock<Method> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/services/cart.proto");
    let types = Types::of_protos(&[file], &[]).expect("the file is there");
    types.method(&MethodName::read("shop.Cart/Add").expect("a name")).expect("a method")
});

/// All messages of a stream that comes in pieces, and whether it ended in a mistake.
fn messages(stream: &[u8], piece: usize) -> (Vec<(bool, Vec<u8>)>, bool) {
    let (mut all, mut messages) = (Vec::new(), Messages::new(LIMIT_BYTES));
    for piece in stream.chunks(piece.max(1)) {
        messages.push(piece);
        loop {
            match messages.next() {
                Ok(Some(message)) => {
                    assert!(message.bytes.len() <= LIMIT_BYTES);
                    all.push((message.is_compressed, message.bytes.to_vec()));
                }
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
        assert!(messages.waiting_bytes() <= LIMIT_BYTES + 5 + piece.len());
    }
    (all, false)
}

fn framing(stream: &[u8], piece: usize) {
    let whole = messages(stream, stream.len());
    assert_eq!(messages(stream, piece), whole);
    let mut again = Vec::new();
    whole.0.iter().for_each(|(_, message)| write_message(message, &mut again));
    let reread: Vec<Vec<u8>> = messages(&again, piece).0.into_iter().map(|(_, message)| message).collect();
    assert!(reread.iter().eq(whole.0.iter().map(|(_, message)| message)));
}

/// What is read is written as JSON that is read as the same.
fn mapping(bytes: &[u8]) {
    let mut json = Vec::new();
    if ADD.decode(bytes, &mut json).is_err() {
        return;
    }
    let value: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    assert!(value.is_object());
    let mut text = Vec::new();
    status_text(&json, &mut text);
    assert!(text.len() <= json.len());
}

fn from_json(json: &[u8]) {
    let mut bytes = Vec::new();
    if ADD.encode(json, &mut bytes).is_ok() {
        let mut back = Vec::new();
        // its answer has another type; it is read all the same, or told
        let _ = ADD.decode(&bytes, &mut back);
    }
}

fuzz_target!(|data: &[u8]| {
    let [what, data @ ..] = data else { return };
    match what % 3 {
        0 => framing(data, usize::from(*what)),
        1 => mapping(data),
        _ => from_json(data),
    }
});
