use proptest::prelude::*;

use super::*;
use crate::testing;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As Aerospike's own clients have them.
#[test]
fn a_digest_is_as_other_clients_compute_it() {
    for (key, expected) in [
        ("", "2819b1ff6e346a43b4f5f6b77a88bc3eaac22a83"),
        ("s", "607cddba7cd111745ef0a3d783d57f0e83c8f311"),
        ("aaaaaaaaaa", "5979fb32a80da070ff356f7695455592272e36c2"),
        ("haha", "36eb02a807dbade8cd784e7800d76308b4e89212"),
    ] {
        assert_eq!(hex(&digest("set", key.as_bytes())), expected, "{key}");
    }
}

/// As Aerospike's client for Python (19.3.0) sends them, but for the time that a node has for a request, which we leave to the node.
#[test]
fn requests_are_as_aerospikes_own_client_writes_them() {
    // behind the header: the namespace, the set, the digest of `ann`
    let (namespace, set) = ("000000050074657374", "000000070170656f706c65");
    let fields = format!("{namespace}{set}00000015049f3de62701d45333e1e6c0ba636d23ad93eabafd");
    let put = "0000000702030001767879";
    let with = |expires_s, generation| Extra { expires_s, generation };
    let none = Extra::default();
    for (action, bins, value, extra, header, operations) in [
        (Action::Put, &["v"][..], &b"xy"[..], with(60, None), "4e160001000000000000000000003c0003", put),
        (Action::Put, &["v"], b"xy", with(0, Some(1)), "4e16000500000000000001000000000003", put),
        (Action::Create, &["v"], b"xy", none, "4e16002100000000000000000000000003", put),
        (Action::Update, &["v"], b"xy", none, "4e16000108000000000000000000000003", put),
        (Action::Replace, &["v"], b"xy", none, "4e16000110000000000000000000000003", put),
        (Action::Get, &[], b"", none, "4316030000000000000000000000000003", ""),
        (Action::Get, &["v"], b"", none, "4c16010000000000000000000000000003", "000000050100000176"),
        (Action::Exists, &[], b"", none, "4316210000000000000000000000000003", ""),
        (Action::Append, &["v"], b"z", none, "4d16000100000000000000000000000003", "0000000609030001767a"),
        (Action::Prepend, &["v"], b"z", none, "4d16000100000000000000000000000003", "000000060a030001767a"),
        (
            Action::Add,
            &["n"],
            &3_i64.to_be_bytes(),
            none,
            "5416000100000000000000000000000003",
            "0000000d050100016e0000000000000003",
        ),
        (Action::Touch, &[], b"", with(10, None), "4b160001000000000000000000000a0003", "000000040b000000"),
        (Action::Delete, &[], b"", none, "4316000300000000000000000000000003", ""),
    ] {
        let form = Form::new(action, "test", "people", bins);
        let mut out = Vec::new();
        let begin = form.begin(b"ann", extra, &mut out);
        if action.has_values() {
            let written: Result<(), ()> = form.value(0, &mut out, |out| {
                out.extend_from_slice(value);
                Ok(())
            });
            assert_eq!(written, Ok(()));
        }
        end(begin, &mut out);
        // length, header up to the seconds, four bytes of the time, the number of fields and of operations
        let (head, counts) = header.split_at(header.len() - 4);
        let count = if operations.is_empty() { "0000" } else { "0001" };
        let expected = format!("02030000000000{head}00000000{counts}{count}{fields}{operations}");
        assert_eq!(hex(&out), expected, "{action:?} {extra:?}");
    }
}

/// A frame with a message of this result code and these bins, each a name, a type and a value.
fn reply(code: u8, bins: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut payload =
        vec![22, 0, 0, 0, 0, code, 0, 0, 0, 3, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, bins.len() as u8];
    for (name, particle, value) in bins {
        payload.extend_from_slice(&((4 + name.len() + value.len()) as u32).to_be_bytes());
        payload.extend_from_slice(&[1, *particle, 0, name.len() as u8]);
        payload.extend_from_slice(name.as_bytes());
        payload.extend_from_slice(value);
    }
    let length = (payload.len() as u64).to_be_bytes();
    [&[2, 3], &length[2..], &payload].concat()
}

type Understood = (Kind, String, Option<String>, Option<String>);

fn understood(
    wanted: Wanted,
    keep: bool,
    bytes: &[u8],
    piece_bytes: usize,
) -> Result<Understood, ReplyError> {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 64 });
    decoder.start(wanted, keep);
    let (taken, _) = testing::in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    assert_eq!(taken, bytes.len(), "whole");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let field = |name: &str| decoder.field(name).map(text);
    Ok((decoder.kind(), text(decoder.body()), field("generation"), field("expires")))
}

#[test]
fn values_are_read_by_their_types() {
    let bins: [(&str, u8, &[u8]); 8] = [
        ("i", 1, &(-7_i64).to_be_bytes()),
        ("f", 2, &1.5_f64.to_be_bytes()),
        ("s", 3, b"a\"b"),
        ("b", 4, b"\x01\x02"),
        ("t", 17, &[1]),
        ("no", 17, &[0]),
        ("x", 0, b""),
        ("n", 2, &f64::NAN.to_be_bytes()),
    ];
    for (bin, text) in bins.iter().zip(["-7", "1.5", "a\"b", "\u{1}\u{2}", "true", "false", "", "NaN"]) {
        let reply = reply(0, std::slice::from_ref(bin));
        let (kind, body, ..) = understood(Wanted::Bin, true, &reply, 4096).unwrap();
        let expected = if bin.1 == 0 { Kind::Miss } else { Kind::Done };
        assert_eq!((kind, body.as_str()), (expected, text), "{}", bin.0);
    }
    let (_, object, generation, expires) =
        understood(Wanted::Bins, true, &reply(0, &bins[..4]), 4096).unwrap();
    assert_eq!(object, r#"{"i":-7,"f":1.5,"s":"a\"b","b":"\u0001\u0002"}"#);
    assert_eq!((generation.as_deref(), expires.as_deref()), (Some("3"), Some("1262304060")));
    let (_, object, ..) = understood(Wanted::Bins, true, &reply(0, &bins[4..]), 4096).unwrap();
    assert_eq!(object, r#"{"t":true,"no":false,"x":null,"n":"NaN"}"#);
    assert_eq!(understood(Wanted::Bins, true, &reply(0, &[]), 4096).unwrap().1, "{}");
}

#[test]
fn what_was_not_done_says_why() {
    for (code, kind, body) in [
        (2, Kind::Miss, ""),
        (3, Kind::NotDone, "3: the record has another generation"),
        (5, Kind::NotDone, "5: the record is there already"),
        (8, Kind::Error, "8: out of space"),
        (199, Kind::Error, "199: an error"),
    ] {
        for keep in [true, false] {
            let (told, words, generation, _) =
                understood(Wanted::Nothing, keep, &reply(code, &[]), 4096).unwrap();
            assert_eq!((told, words.as_str(), generation), (kind, body, None));
        }
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    let whole = reply(0, &[("v", 3, b"x")]);
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        understood(Wanted::Bin, true, &bytes, 4096).unwrap_err()
    };
    assert_eq!(with(0, 1), ReplyError::Frame);
    assert_eq!(with(1, 1), ReplyError::Frame);
    assert_eq!(with(8, 21), ReplyError::Length, "a header that is too short");
    assert_eq!(with(27, 1), ReplyError::Length, "a field that is not there");
    assert_eq!(with(29, 2), ReplyError::Length, "a bin that is not there");
    assert_eq!(with(29, 0), ReplyError::Length, "a bin too many");
    assert_eq!(with(33, 200), ReplyError::Length, "a bin longer than the message");
    assert_eq!(with(37, 3), ReplyError::Length, "a name longer than the bin");
    let short = reply(0, &[("v", 1, b"1234567")]);
    assert_eq!(understood(Wanted::Bin, true, &short, 4096), Err(ReplyError::Value));
    let large = reply(0, &[("v", 3, &[b'x'; 65])]);
    assert_eq!(understood(Wanted::Bin, true, &large, 4096), Err(ReplyError::TooLarge { limit_bytes: 64 }));
    // one that says that it is larger than anything is not waited for
    assert_eq!(with(2, 255), ReplyError::TooLarge { limit_bytes: 64 });
}

#[test]
fn what_a_large_reply_needed_is_given_back() {
    const LARGE: usize = 4 << 20;
    let value = "x".repeat(LARGE);
    let reply = reply(0, &[("v", 3, value.as_bytes())]);
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: LARGE });
    decoder.start(Wanted::Bin, true);
    for piece in reply.chunks(1 << 16) {
        assert_eq!(decoder.decode(piece).unwrap().consumed, piece.len());
    }
    assert_eq!(decoder.body().len(), LARGE);
    let (frame, body) = decoder.held_bytes();
    assert!(frame >= LARGE && body >= LARGE, "{frame} {body}");
    decoder.start(Wanted::Bin, true);
    let (frame, body) = decoder.held_bytes();
    assert!(frame <= 1 << 20 && body <= 1 << 20, "{frame} {body}");
}

#[test]
fn a_connection_that_ends_is_told_from_one_that_said_nothing() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    decoder.start(Wanted::Bin, true);
    assert_eq!(decoder.finish(), ReplyError::Empty);
    assert_eq!(decoder.decode(&[2, 3]).map(|decoded| decoded.complete), Ok(false));
    assert_eq!(decoder.finish(), ReplyError::Truncated);
}

#[test]
fn a_node_is_asked_and_its_answer_read() {
    let mut out = Vec::new();
    ask(&["build", "namespaces"], &mut out);
    assert_eq!(out, b"\x02\x01\0\0\0\0\0\x11build\nnamespaces\n");
    let answer = b"\x02\x01\0\0\0\0\0\x1cbuild\t8.1.0\nnamespaces\ttest\nrest";
    let mut decoder = InfoDecoder::default();
    let taken = testing::in_pieces(answer, 1, |byte| decoder.decode(byte)).unwrap();
    assert_eq!(taken, (answer.len() - 4, true));
    assert_eq!((decoder.answer("build"), decoder.answer("namespaces")), (Some("8.1.0"), Some("test")));
    assert_eq!(decoder.answer("node"), None);
}

/// What a scan tells in these bytes, and whether more is to come.
fn scanned(bytes: &[u8], piece_bytes: usize) -> (Vec<String>, bool) {
    let (mut records, mut told, mut complete) = (Records::new(1 << 20), Vec::new(), false);
    for piece in bytes.chunks(piece_bytes) {
        let decoded = records.decode(piece, &mut |found| told.push(format!("{found:?}"))).unwrap();
        complete = decoded.complete;
    }
    (told, complete)
}

#[test]
fn a_scan_tells_values_partitions_and_its_end() {
    let message = |info3: u8, code: u8, generation: u8, field: &[u8]| {
        let mut message = vec![22, 0, 0, info3, 0, code, 0, 0, 0, generation];
        message.resize(22, 0);
        message[19] = u8::from(!field.is_empty());
        message.extend_from_slice(field);
        message
    };
    let mut record = message(0, 0, 1, b"\0\0\0\x02\x01s");
    record[21] = 1;
    record.extend_from_slice(b"\0\0\0\x06\x01\x03\0\x01vx");
    let done = [message(4, 0, 9, b""), message(4, 11, 10, b"")].concat();
    let frame = |payload: &[u8]| [&[2, 3, 0, 0, 0, 0, 0, payload.len() as u8], payload].concat();
    let bytes = [frame(&[record, done].concat()), frame(&message(1, 0, 0, b""))].concat();
    let expected = [
        "Value([120])",
        "Partition { number: 9, code: 0 }",
        "Partition { number: 10, code: 11 }",
        "End { code: 0 }",
    ];
    for piece_bytes in [1, 7, 4096] {
        assert_eq!(
            scanned(&bytes, piece_bytes),
            (expected.map(str::to_owned).to_vec(), true),
            "{piece_bytes}"
        );
    }
    let refused = frame(&message(0, 22, 0, b""));
    assert_eq!(scanned(&refused, 4096), (vec!["End { code: 22 }".to_owned()], true));
}

proptest! {
    #[test]
    fn whole_or_in_pieces_the_same_is_understood(
        code in prop_oneof![Just(0), any::<u8>()],
        bins in prop::collection::vec(("[a-z]{0,3}", prop_oneof![0_u8..5, Just(17), any::<u8>()], prop::collection::vec(any::<u8>(), 0..10)), 0..4),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        wanted in prop_oneof![Just(Wanted::Nothing), Just(Wanted::Bin), Just(Wanted::Bins)],
        keep in any::<bool>(),
        piece_bytes in 1_usize..40,
    ) {
        let bins: Vec<_> = bins.iter().map(|(name, kind, value)| (name.as_str(), *kind, value.as_slice())).collect();
        let mut bytes = reply(code, &bins);
        // the length stays, so that it is known where the reply ends
        if let Some((at, byte)) = change {
            let at = 8 + at.index(bytes.len() - 8);
            bytes[at] = byte;
        }
        let whole = understood(wanted, keep, &bytes, bytes.len());
        prop_assert_eq!(whole, understood(wanted, keep, &bytes, piece_bytes));
    }
}
