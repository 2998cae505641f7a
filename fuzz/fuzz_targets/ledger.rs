//! A thread's file of a ledger, and contents that a store might hold: read, or refused with a reason.
//!
//! The first byte chooses: a file as it is, a file of frames whose checksums are put right, or a content.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_record::ledger::{CHECK_DIGITS, ENTRY_DIGITS, Entry, Form, Forms, Ledger, Piece, Reading, Search, stamp};

const SEED: u64 = 1;

fn forms() -> &'static Forms {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    FORMS.get_or_init(|| {
        let mark = Piece::Literal(b"|");
        let marked = [Piece::Varying, mark, Piece::Entry, mark, Piece::Check, mark, Piece::Varying];
        let placed = [Piece::Varying, Piece::Entry, Piece::Literal(b","), Piece::Check];
        Forms::new(SEED, &[Form::new("marked", &marked), Form::new("placed", &placed)]).expect("right forms")
    })
}

/// Frames of this many bytes each, the checksums right.
fn frames(input: &[u8]) -> Vec<u8> {
    let [size, rest @ ..] = input else { return Vec::new() };
    let mut file = b"tidemkL1\x02\0".to_vec();
    for body in rest.chunks(16 + usize::from(*size)) {
        file.extend_from_slice(&(body.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        file.extend_from_slice(body);
    }
    file
}

fn file(bytes: &[u8]) {
    let mut ledger = Ledger::default();
    if ledger.take_file(bytes).is_err() {
        return;
    }
    assert!(ledger.acknowledged() <= ledger.sent() && ledger.torn() <= 1);
    // Everything that was acknowledged is lost where nothing is found.
    let findings = Search::new(&ledger).findings();
    assert_eq!((findings.lost, findings.found), (ledger.acknowledged(), 0));
    for entry in findings.lost_examples {
        assert!(ledger.was_sent(entry) && ledger.was_acknowledged(entry) && ledger.sent_between(entry).is_some());
    }
}

/// What is read as whole is not when a byte is another; and what was made by the rule is read as whole.
fn content(input: &[u8]) {
    let mut spare = Vec::new();
    if let Reading::Whole(entry) = forms().reading(input, &mut spare) {
        let mut changed = input.to_vec();
        changed[0] ^= 1;
        assert_ne!(forms().reading(&changed, &mut spare), Reading::Whole(entry));
    }
    let entry = Entry { thread: (input.len() % 1_000) as u16, number: input.len() as u64 };
    let mut made = [input, &entry.digits(), b",", &[b'0'; CHECK_DIGITS]].concat();
    stamp(SEED, entry, &mut made, input.len() + ENTRY_DIGITS + 1);
    assert_eq!(forms().reading(&made, &mut spare), Reading::Whole(entry));
}

fuzz_target!(|data: &[u8]| match data {
    [0, rest @ ..] => file(rest),
    [1, rest @ ..] => file(&frames(rest)),
    [_, rest @ ..] => content(rest),
    [] => {}
});
