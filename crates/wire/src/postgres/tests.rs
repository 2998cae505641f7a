use proptest::prelude::*;

use super::*;
use crate::testing;

/// A message of a server.
fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = i32::try_from(payload.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], payload].concat()
}

/// `T` with these names and types.
fn described(columns: &[(&str, u32)]) -> Vec<u8> {
    let mut payload = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for (name, kind) in columns {
        payload.extend_from_slice(name.as_bytes());
        payload.extend_from_slice(&[0; 7]);
        payload.extend_from_slice(&kind.to_be_bytes());
        payload.extend_from_slice(&[0; 8]);
    }
    payload
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut payload = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    for value in values {
        match value {
            None => payload.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(text) => {
                payload.extend_from_slice(&i32::try_from(text.len()).unwrap().to_be_bytes());
                payload.extend_from_slice(text.as_bytes());
            }
        }
    }
    message(b'D', &payload)
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

type Understood = Result<(usize, bool, Kind, String, String), PostgresError>;

fn in_pieces(columns: Option<&[(&str, u32)]>, bytes: &[u8], piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 256 });
    decoder.start(columns.map(|columns| Arc::new(Columns::read(&described(columns)).unwrap())), true);
    let (taken, complete) = testing::in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((taken, complete, decoder.kind(), text(decoder.body()), text(decoder.tag())))
}

#[test]
fn each_reply_becomes_what_a_person_expects() {
    let columns: &[(&str, u32)] = &[("n", 23), ("text \"", 25), ("is", 16), ("x", 701), ("doc", 3802)];
    let rows = [
        message(b'2', b""),
        row(&[Some("7"), Some("a\"\n"), Some("t"), Some("1.5e+20"), Some("{\"a\": [1]}")]),
        message(b'N', b"SNOTICE\0\0"),
        row(&[Some("-1"), None, Some("f"), Some("NaN"), None]),
        message(b'C', b"SELECT 2\0"),
        ready(),
    ]
    .concat();
    let body = r#"[{"n":7,"text \"":"a\"\n","is":true,"x":1.5e+20,"doc":{"a": [1]}},{"n":-1,"text \"":null,"is":false,"x":"NaN","doc":null}]"#;
    let none = [message(b'2', b""), message(b'C', b"SELECT 0\0"), ready()].concat();
    let inline = [
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', &described(&[("v", 25)])),
        row(&[Some("x")]),
        message(b'C', b"SELECT 1\0"),
        ready(),
    ]
    .concat();
    let error = [message(b'E', b"SERROR\0C42P01\0Mno relation\0\0"), ready()].concat();
    let uncommitted =
        [message(b'C', b"INSERT 0 1\0"), message(b'E', b"SERROR\0C23503\0Mno key\0\0"), ready()].concat();
    for (columns, bytes, kind, body) in [
        (Some(columns), rows, Kind::Rows, body),
        (Some(columns), none.clone(), Kind::NoRows, "[]"),
        (None, none, Kind::Done, "SELECT 0"),
        (None, inline, Kind::Rows, r#"[{"v":"x"}]"#),
        (Some(columns), error, Kind::Error, "42P01: no relation"),
        (None, uncommitted, Kind::Error, "23503: no key"),
        (None, [message(b'I', b""), ready()].concat(), Kind::Done, ""),
    ] {
        for piece in [1, 3, bytes.len()] {
            let (taken, complete, is, text, _) = in_pieces(columns, &bytes, piece).unwrap();
            assert_eq!((taken, complete, is, text.as_str()), (bytes.len(), true, kind, body));
        }
    }
}

#[test]
fn what_is_no_reply_is_an_error_that_says_why() {
    for (bytes, expected) in [
        (message(b'Z', b"T"), PostgresError::Transaction),
        (message(b'Z', b""), PostgresError::Malformed),
        (message(b'G', b""), PostgresError::Copy),
        (message(b'R', b"\0\0\0\0"), PostgresError::Unexpected(b'R')),
        (row(&[None]), PostgresError::Columns),
        (message(b'E', b"C42P01"), PostgresError::Malformed),
        (b"C\0\0\0\x03".to_vec(), PostgresError::Malformed),
        (b"C\x7f\0\0\x03".to_vec(), PostgresError::TooLarge { limit_bytes: 256 }),
        (message(b'T', b"\0\x01a"), PostgresError::Malformed),
        // nobody said that the statement is done
        (ready(), PostgresError::Unexpected(b'Z')),
        ([message(b'2', b""), ready()].concat(), PostgresError::Unexpected(b'Z')),
        (
            [message(b'T', &described(&[("v", 25)])), row(&[Some("x")]), ready()].concat(),
            PostgresError::Unexpected(b'Z'),
        ),
        // done already
        (message(b'C', b"INSERT 0 1\0").repeat(2), PostgresError::Unexpected(b'C')),
        (
            [message(b'C', b"SELECT 0\0"), message(b'T', &described(&[("v", 25)]))].concat(),
            PostgresError::Unexpected(b'T'),
        ),
    ] {
        assert_eq!(in_pieces(None, &bytes, bytes.len()), Err(expected), "{bytes:?}");
    }
    let many = [row(&[Some("0123456789")]).repeat(20), ready()].concat();
    let error = PostgresError::TooLarge { limit_bytes: 256 };
    assert_eq!(in_pieces(Some(&[("v", 25)]), &many, 7), Err(error));
}

#[test]
fn an_error_before_the_end_of_a_connection_is_the_reply() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    decoder.start(None, false);
    assert_eq!(decoder.finish(), Err(PostgresError::Empty));
    decoder.decode(&message(b'2', b"")).unwrap();
    assert_eq!(decoder.finish(), Err(PostgresError::Truncated));
    decoder.decode(&message(b'E', b"SFATAL\0C57P01\0Mterminating\0\0")).unwrap();
    assert_eq!(decoder.finish(), Ok(()));
    assert_eq!(decoder.sqlstate(), Some(&b"57P01"[..]));
}

#[test]
fn messages_of_a_client_have_their_length() {
    let mut out = Vec::new();
    write::parse("s1", "SELECT $1", &mut out);
    assert_eq!(out, b"P\0\0\0\x13s1\0SELECT $1\0\0\0");
    out.clear();
    let bind = write::Bind::begin("s1", 1, &mut out);
    bind.parameter(&mut out, |out| {
        out.extend_from_slice(b"hi");
        Ok::<(), ()>(())
    })
    .unwrap();
    bind.end(&mut out);
    assert_eq!(out, b"B\0\0\0\x14\0s1\0\0\0\0\x01\0\0\0\x02hi\0\0");
    out.clear();
    write::startup(&[("user", "me")], &mut out);
    assert_eq!(out, b"\0\0\0\x11\0\x03\0\0user\0me\0\0");
    out.clear();
    write::execute(&mut out);
    write::sync(&mut out);
    assert_eq!(out, b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
}

fn nearly_replies() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::sample::select(vec![
        message(b'2', b""),
        row(&[Some("7"), None]),
        row(&[Some("a\n"), Some("x")]),
        message(b'T', &described(&[("a", 23), ("b", 25)])),
        message(b'C', b"SELECT 2\0"),
        message(b'E', b"SERROR\0C42P01\0Mno\0\0"),
        ready(),
    ]);
    let piece = prop_oneof![9 => whole, 1 => prop::collection::vec(any::<u8>(), 0..6)];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn bytes_mean_the_same_however_they_are_cut(bytes in nearly_replies(), known in any::<bool>(), piece in 1..12_usize) {
        let columns: Option<&[(&str, u32)]> = if known { Some(&[("a", 23), ("b", 25)]) } else { None };
        prop_assert_eq!(in_pieces(columns, &bytes, bytes.len()), in_pieces(columns, &bytes, piece));
    }

    #[test]
    fn any_text_is_read_back(values in prop::collection::vec(prop::option::of("[\\x00-\\x7f]{0,9}|\\PC{0,9}"), 1..4)) {
        let names = ["a", "b", "c"];
        let columns: Vec<(&str, u32)> = names.iter().take(values.len()).map(|name| (*name, 25)).collect();
        let given: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        decoder.start(Some(Arc::new(Columns::read(&described(&columns)).unwrap())), true);
        decoder.decode(&[row(&given), message(b'C', b"SELECT 1\0"), ready()].concat()).unwrap();
        let read: serde_json::Value = serde_json::from_slice(decoder.body()).unwrap();
        for (name, value) in names.iter().zip(&values) {
            prop_assert_eq!(read[0][name].as_str(), value.as_deref());
        }
    }
}

#[test]
fn a_transaction_may_be_open_where_it_is_expected() {
    let reply = |state: u8| [&b"2\0\0\0\x04C\0\0\0\x0dUPDATE 1\0Z\0\0\0\x05"[..], &[state]].concat();
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    for (may_be_open, state, is_open) in
        [(true, b'T', true), (true, b'E', true), (true, b'I', false), (false, b'I', false)]
    {
        decoder.allow_transaction(may_be_open);
        decoder.start(None, true);
        assert!(decoder.decode(&reply(state)).unwrap().complete);
        assert_eq!(decoder.is_in_transaction(), is_open, "{}", char::from(state));
    }
    decoder.allow_transaction(false);
    decoder.start(None, true);
    assert_eq!(decoder.decode(&reply(b'T')), Err(PostgresError::Transaction));
    decoder.closed();
    assert!(!decoder.is_in_transaction());
}
