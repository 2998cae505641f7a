use proptest::prelude::*;

use super::*;
use crate::testing;

fn int(number: i32) -> [u8; 4] {
    number.to_be_bytes()
}

fn string(text: &str) -> Vec<u8> {
    [&u16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}

fn frame(flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    [&[0x84, flags, 0, 0, opcode][..], &int(i32::try_from(body.len()).unwrap()), body].concat()
}

/// Columns of one table, with their types as they are told.
fn told(columns: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes =
        [&int(1)[..], &int(i32::try_from(columns.len()).unwrap()), &string("ks"), &string("t")].concat();
    for (name, kind) in columns {
        bytes.extend_from_slice(&string(name));
        bytes.extend_from_slice(kind);
    }
    bytes
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(&int(value.map_or(-1, |value| i32::try_from(value.len()).unwrap())));
        bytes.extend_from_slice(value.unwrap_or_default());
    }
    bytes
}

fn one_text() -> Option<Columns> {
    let prepared = [&int(4)[..], &string("id"), &int(4), &int(0), &int(0), &told(&[("t", TEXT)])].concat();
    Prepared::read(&prepared).unwrap().columns
}

type Understood = Result<(usize, bool, Kind, String), CqlError>;

fn in_pieces(columns: Option<Columns>, bytes: &[u8], keep: bool, piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 512 });
    decoder.start(columns.map(Arc::new), keep);
    let (taken, complete) = testing::in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    Ok((taken, complete, decoder.kind(), String::from_utf8_lossy(decoder.body()).into_owned()))
}

const TEXT: &[u8] = &[0, 0x0d];
const INT: &[u8] = &[0, 0x09];

#[test]
fn each_reply_becomes_what_a_person_expects() {
    let kinds: &[(&str, &[u8])] = &[
        ("t", TEXT),
        ("i", INT),
        ("b", &[0, 4]),
        ("d", &[0, 7]),
        ("u", &[0, 0x0c]),
        ("x", &[0, 3]),
        ("l", &[0, 0x20, 0, 9]),
        ("m", &[0, 0x21, 0, 9, 0, 0x0d]),
        ("ip", &[0, 0x10]),
    ];
    let list = [&int(2)[..], &row(&[Some(&int(1)), None])].concat();
    let map = [&int(1)[..], &row(&[Some(&int(7)), Some(b"x")])].concat();
    let uuid: Vec<u8> = (0..16).collect();
    let rows = [
        &int(2)[..],
        &told(kinds),
        &int(2),
        &row(&[
            Some(b"a\"\n"),
            Some(&int(-5)),
            Some(&[1]),
            Some(&1.5_f64.to_be_bytes()),
            Some(&uuid),
            Some(b"\xff\0"),
            Some(&list),
            Some(&map),
            Some(&[127, 0, 0, 1]),
        ]),
        &row(&[None, None, Some(b""), Some(&f64::NAN.to_be_bytes()), None, Some(b""), None, None, None]),
    ]
    .concat();
    let body = "[{\"t\":\"a\\\"\\n\",\"i\":-5,\"b\":true,\"d\":1.5,\"u\":\"00010203-0405-0607-0809-0a0b0c0d0e0f\",\"x\":\"0xff00\",\
                \"l\":[1,null],\"m\":{\"7\":\"x\"},\"ip\":\"127.0.0.1\"},{\"t\":null,\"i\":null,\"b\":null,\"d\":\"NaN\",\"u\":null,\
                \"x\":\"0x\",\"l\":null,\"m\":null,\"ip\":null}]";
    let none = [&int(2)[..], &told(kinds), &int(0)].concat();
    let warned = [&1_u16.to_be_bytes()[..], &string("slow"), &int(1)].concat();
    let error = [&int(0x2200)[..], &string("no table")].concat();
    for (bytes, kind, body) in [
        (frame(0, opcode::RESULT, &rows), Kind::Rows, body),
        (frame(0, opcode::RESULT, &none), Kind::NoRows, "[]"),
        (frame(8, opcode::RESULT, &warned), Kind::Done, ""),
        (frame(0, opcode::ERROR, &error), Kind::Error, "0x2200: no table"),
    ] {
        for piece in [1, 7, bytes.len()] {
            let understood = in_pieces(None, &bytes, true, piece);
            assert_eq!(understood, Ok((bytes.len(), true, kind, body.to_owned())));
        }
    }
}

#[test]
fn a_prepared_statement_tells_what_its_rows_do_not() {
    let prepared = [
        &int(4)[..],
        &string("id"),
        &int(1),
        &int(2),
        &int(1),
        &0_u16.to_be_bytes(),
        &told(&[("k", TEXT), ("n", INT)])[8..],
        &told(&[("n", INT)]),
    ]
    .concat();
    let prepared = Prepared::read(&prepared).unwrap();
    assert_eq!((&*prepared.id, &*prepared.values), (&b"id"[..], &[Type::Text, Type::Integer(4)][..]));
    let rows = [&int(2)[..], &int(4), &int(1), &int(1), &row(&[Some(&int(7))])].concat();
    let bytes = frame(0, opcode::RESULT, &rows);
    let (.., kind, body) = in_pieces(prepared.columns.clone(), &bytes, true, bytes.len()).unwrap();
    assert_eq!((kind, body.as_str()), (Kind::Rows, "[{\"n\":7}]"));
    assert_eq!(in_pieces(None, &bytes, true, 3), Err(CqlError::Malformed));
    let (.., body) = in_pieces(prepared.columns, &bytes, false, 3).unwrap();
    assert_eq!(body, "");
}

#[test]
fn what_is_no_reply_is_an_error_that_says_why() {
    for (bytes, expected) in [
        (b"HTTP/1.1 400".to_vec(), CqlError::Version(b'H')),
        (b"\x85".to_vec(), CqlError::Version(0x85)),
        (frame(0, opcode::READY, b""), CqlError::Unexpected(opcode::READY)),
        (frame(0, opcode::RESULT, b""), CqlError::Malformed),
        (frame(0, opcode::RESULT, &int(4)), CqlError::Unprepared),
        (frame(0, opcode::ERROR, &[&int(0x2500)[..], &string("x")].concat()), CqlError::Unprepared),
        (b"\x84\0\0\0\x08\x7f\0\0\0".to_vec(), CqlError::TooLarge { limit_bytes: 512 }),
        (b"\x84\0\0\0\x08\xff\0\0\0".to_vec(), CqlError::Malformed),
    ] {
        assert_eq!(in_pieces(None, &bytes, true, bytes.len()), Err(expected), "{bytes:?}");
    }
    let answers_another = [&[0x84, 0, 0, 5, opcode::RESULT][..], &int(4), &int(1)].concat();
    assert_eq!(in_pieces(None, &answers_another, true, 4), Err(CqlError::Unexpected(opcode::RESULT)));
    // flags, number of columns, and where more of the rows are
    let first_page = [&int(2)[..], &int(6), &int(1), &int(1), b"p", &int(1), &row(&[Some(b"x")])].concat();
    assert_eq!(in_pieces(one_text(), &frame(0, opcode::RESULT, &first_page), true, 4), Err(CqlError::Pages));
    // two of the table's columns where there was one, which nobody told of
    let altered = [&int(2)[..], &int(4), &int(2), &int(1), &row(&[Some(b"x"), Some(b"y")])].concat();
    let altered_rows = [&int(2)[..], &int(4), &int(2), &int(2), &row(&[Some(&b"x"[..]); 4])].concat();
    let altered_none = [&int(2)[..], &int(4), &int(2), &int(0)].concat();
    for altered in [altered, altered_rows, altered_none] {
        let altered = frame(0, opcode::RESULT, &altered);
        assert_eq!(in_pieces(one_text(), &altered, true, 4), Err(CqlError::Columns));
    }
    let deep = [&[0, 0x20].repeat(20)[..], INT].concat();
    let rows = frame(0, opcode::RESULT, &[&int(2)[..], &told(&[("l", &deep)]), &int(0)].concat());
    assert_eq!(in_pieces(None, &rows, true, 5), Err(CqlError::TooDeep));
}

#[test]
fn texts_become_values_of_their_types() {
    let written = |kind: &Type, text: &str| {
        let mut out = Vec::new();
        kind.write(text.as_bytes(), &mut out).map(|()| out)
    };
    for (kind, text, bytes) in [
        (Type::Text, "hé", "hé".as_bytes()),
        (Type::Blob, "0xFf00", b"\xff\0"),
        (Type::Blob, "plain", b"plain"),
        (Type::Boolean, "true", &[1]),
        (Type::Integer(1), "-128", &[0x80]),
        (Type::Integer(4), "258", &[0, 0, 1, 2]),
        (Type::Integer(8), "-1", &[0xff; 8]),
        (Type::Double, "1.5", &1.5_f64.to_be_bytes()),
        (Type::Float, "-2", &(-2_f32).to_be_bytes()),
        (Type::Inet, "::1", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ] {
        assert_eq!(written(&kind, text).as_deref(), Ok(bytes), "{text}");
    }
    assert_eq!(
        written(&Type::Uuid, "00010203-0405-0607-0809-0a0b0c0d0e0f").unwrap(),
        (0..16).collect::<Vec<u8>>()
    );
    for (kind, text) in [
        (Type::Integer(1), "128"),
        (Type::Integer(4), "2147483648"),
        (Type::Integer(8), "1.5"),
        (Type::Boolean, "yes"),
        (Type::Uuid, "0001"),
        (Type::Uuid, "zz010203-0405-0607-0809-0a0b0c0d0e0f"),
        (Type::Blob, "0xf"),
        (Type::Other(0x0e), "1"),
        (Type::Inet, "host"),
    ] {
        assert!(written(&kind, text).is_err(), "{text}");
    }
}

#[test]
fn frames_of_a_client_have_their_lengths() {
    let mut out = Vec::new();
    write::startup(&mut out);
    assert_eq!(&out[..9], b"\x04\0\0\0\x01\0\0\0\x16");
    assert_eq!(out.len(), 9 + 0x16);
    out.clear();
    let value = |out: &mut Vec<u8>| {
        write::value(out, |out| {
            out.extend_from_slice(b"hi");
            Ok::<(), ()>(())
        })
    };
    write::execute(b"id", 10, true, 1, &mut out, value).unwrap();
    assert_eq!(out, b"\x04\0\0\0\x0a\0\0\0\x0f\0\x02id\0\x0a\x03\0\x01\0\0\0\x02hi");
}

fn nearly_replies() -> impl Strategy<Value = Vec<u8>> {
    let rows = [&int(2)[..], &told(&[("a", TEXT), ("n", INT)]), &int(1), &row(&[Some(b"x"), None])].concat();
    let whole = prop::sample::select(vec![
        frame(0, opcode::RESULT, &rows),
        frame(0, opcode::RESULT, &int(1)),
        frame(0, opcode::ERROR, &[&int(0x1000)[..], &string("unavailable")].concat()),
        frame(8, opcode::RESULT, &int(1)),
        vec![0x84],
    ]);
    let piece = prop_oneof![9 => whole, 1 => prop::collection::vec(any::<u8>(), 0..6)];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn bytes_mean_the_same_however_they_are_cut(bytes in nearly_replies(), keep in any::<bool>(), piece in 1..12_usize) {
        prop_assert_eq!(in_pieces(None, &bytes, keep, bytes.len()), in_pieces(None, &bytes, keep, piece));
    }

    #[test]
    fn numbers_are_read_back(number in any::<i64>(), real in any::<f64>()) {
        let mut out = Vec::new();
        Type::Integer(8).write(number.to_string().as_bytes(), &mut out).unwrap();
        let mut text = Vec::new();
        Type::Integer(8).write_json(&out, &mut text).unwrap();
        prop_assert_eq!(text, number.to_string().into_bytes());
        if real.is_finite() {
            let mut text = Vec::new();
            Type::Double.write_json(&real.to_be_bytes(), &mut text).unwrap();
            prop_assert!(crate::json::check(&text).is_ok());
            prop_assert_eq!(std::str::from_utf8(&text).unwrap().parse::<f64>().unwrap(), real);
        }
    }
}
