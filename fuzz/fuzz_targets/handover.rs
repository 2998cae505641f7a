//! What a driver in another process hands over: read, or refused with a reason; what is read can be written again.
//!
//! The first byte chooses: a stream as it is, or messages whose lengths are put right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_record::Handover;

/// Messages of this many bytes each.
fn frames(input: &[u8]) -> Vec<u8> {
    let [size, rest @ ..] = input else { return Vec::new() };
    let messages = rest.chunks(1 + usize::from(*size));
    messages.flat_map(|message| [&(message.len() as u32).to_le_bytes()[..], message].concat()).collect()
}

fn written(handover: &Handover) -> Vec<u8> {
    let mut bytes = Vec::new();
    handover.write(&mut bytes).expect("memory takes it");
    bytes
}

fuzz_target!(|data: &[u8]| {
    let stream = match data {
        [0, rest @ ..] => rest.to_vec(),
        [_, rest @ ..] => frames(rest),
        [] => return,
    };
    let _ = Handover::packed(&stream);
    let mut reader = &stream[..];
    while let Ok(Some(read)) = Handover::read(&mut reader) {
        let again = written(&read);
        let twice = Handover::read(&mut &again[..]).expect("it was read before").expect("it is there");
        assert_eq!(written(&twice), again);
        Handover::packed(&again).expect("it was read before");
    }
});
