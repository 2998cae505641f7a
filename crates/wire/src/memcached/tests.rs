use proptest::prelude::*;

use super::*;
use crate::testing;

fn decoded(form: Form, keys: &str, input: &str) -> Result<(Kind, String), ReplyError> {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    decoder.start(form, keys.as_bytes(), true);
    let decoded = decoder.decode(input.as_bytes())?;
    assert!(decoded.complete && decoded.consumed == input.len(), "{decoded:?}");
    Ok((decoder.kind(), String::from_utf8_lossy(decoder.body()).into_owned()))
}

#[test]
fn each_reply_becomes_what_a_person_expects() {
    for (form, keys, input, kind, body) in [
        (Form::Values, "k", "VALUE k 7 4\r\na\r\nb\r\nEND\r\n", Kind::Fine, "a\r\nb"),
        (Form::Values, "k", "VALUE k 0 0 12\r\n\r\nEND\r\n", Kind::Fine, ""),
        (Form::Values, "k", "END\r\n", Kind::Miss, ""),
        (Form::Values, "a b c", "VALUE b 0 2\r\n\"\n\r\nEND\r\n", Kind::Fine, r#"[null,"\"\n",null]"#),
        (Form::Values, "a a", "VALUE a 0 1\r\n1\r\nVALUE a 0 1\r\n2\r\nEND\r\n", Kind::Fine, r#"["1","2"]"#),
        (Form::Values, "a b", "END\r\n", Kind::Miss, "[null,null]"),
        (Form::Values, "a b", "VALUE a 0 1\r\n1\r\nSERVER_ERROR full\r\n", Kind::Error, "SERVER_ERROR full"),
        (Form::Stored, "", "STORED\r\n", Kind::Fine, "STORED"),
        (Form::Stored, "", "NOT_STORED\r\n", Kind::NotStored, "NOT_STORED"),
        (Form::Stored, "", "EXISTS\r\n", Kind::NotStored, "EXISTS"),
        (Form::Stored, "", "NOT_FOUND\r\n", Kind::NotStored, "NOT_FOUND"),
        (Form::Stored, "", "SERVER_ERROR too large\r\n", Kind::Error, "SERVER_ERROR too large"),
        (Form::Deleted, "", "DELETED\r\n", Kind::Fine, "DELETED"),
        (Form::Deleted, "", "NOT_FOUND\r\n", Kind::Miss, ""),
        (Form::Touched, "", "TOUCHED\r\n", Kind::Fine, "TOUCHED"),
        (Form::Number, "", "18446744073709551615\r\n", Kind::Fine, "18446744073709551615"),
        (Form::Number, "", "CLIENT_ERROR no number\r\n", Kind::Error, "CLIENT_ERROR no number"),
        (Form::Word, "", "VERSION 1.6.18\r\n", Kind::Fine, "1.6.18"),
        (Form::Word, "", "OK\r\n", Kind::Fine, "OK"),
        (Form::Word, "", "ERROR\r\n", Kind::Error, "ERROR"),
        (Form::Stats, "", "STAT pid 1\r\nSTAT v a b\r\nEND\r\n", Kind::Fine, r#"{"pid":"1","v":"a b"}"#),
        (Form::Stats, "", "END\r\n", Kind::Fine, "{}"),
        (Form::Meta(Meta::Get), "", "VA 2 t-1 W\r\nhi\r\n", Kind::Fine, "hi"),
        (Form::Meta(Meta::Set), "", "HD f30 s4\r\n", Kind::Fine, "HD f30 s4"),
        (Form::Meta(Meta::Get), "", "EN\r\n", Kind::Miss, ""),
        (Form::Meta(Meta::Delete), "", "NF\r\n", Kind::Miss, ""),
        (Form::Meta(Meta::Set), "", "NF c7\r\n", Kind::NotStored, "NF c7"),
        (Form::Meta(Meta::Arithmetic), "", "NF\r\n", Kind::Miss, ""),
        (Form::Meta(Meta::Set), "", "NS\r\n", Kind::NotStored, "NS"),
        (Form::Meta(Meta::Set), "", "EX\r\n", Kind::NotStored, "EX"),
        (Form::Meta(Meta::Noop), "", "MN\r\n", Kind::Fine, "MN"),
    ] {
        assert_eq!(decoded(form, keys, input), Ok((kind, body.to_owned())), "{input:?}");
        let mut passed_by = ReplyDecoder::new(ReplyLimits::default());
        passed_by.start(form, keys.as_bytes(), false);
        passed_by.decode(input.as_bytes()).unwrap();
        assert_eq!(passed_by.body_bytes(), Some(body.len()), "{input:?}");
    }
}

#[test]
fn what_is_no_reply_to_the_command_is_an_error_that_says_why() {
    for (form, keys, input, expected) in [
        (Form::Values, "k", "VALUE other 0 1\r\nx\r\nEND\r\n", ReplyError::Key),
        (Form::Values, "a b", "VALUE b 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n", ReplyError::Key),
        (Form::Values, "k", "STORED\r\n", ReplyError::Line),
        (Form::Values, "k", "VALUE k 0 x\r\n", ReplyError::Number),
        (Form::Values, "k", "VALUE k x 1\r\n", ReplyError::Number),
        (Form::Values, "k", "VALUE k 0 1\r\nabEND\r\n", ReplyError::End),
        (Form::Stored, "", "DELETED\r\n", ReplyError::Line),
        (Form::Stored, "", "END\r\n", ReplyError::Line),
        (Form::Number, "", "-1\r\n", ReplyError::Line),
        (Form::Values, "k", "NOT_FOUND\r\n", ReplyError::Line),
        (Form::Word, "", "NOT_FOUND\r\n", ReplyError::Line),
        // what another meta command is answered
        (Form::Meta(Meta::Set), "", "VA 1\r\nx\r\n", ReplyError::Line),
        (Form::Meta(Meta::Set), "", "EN\r\n", ReplyError::Line),
        (Form::Meta(Meta::Set), "", "MN\r\n", ReplyError::Line),
        (Form::Meta(Meta::Get), "", "NS\r\n", ReplyError::Line),
        (Form::Meta(Meta::Delete), "", "EN\r\n", ReplyError::Line),
        (Form::Meta(Meta::Noop), "", "HD\r\n", ReplyError::Line),
        (Form::Meta(Meta::Debug), "", "HD\r\n", ReplyError::Line),
        (Form::Meta(Meta::Get), "", "VA x\r\n", ReplyError::Number),
        (Form::Meta(Meta::Get), "", "HTTP/1.1 400\r\n", ReplyError::Line),
        (Form::Word, "", "OK\n", ReplyError::End),
        (Form::Word, "", "\r\n", ReplyError::Line),
        (Form::Meta(Meta::Get), "", "VA 99999999999999999999 \r\n", ReplyError::Number),
    ] {
        assert_eq!(decoded(form, keys, input), Err(expected), "{input:?}");
    }
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 3 });
    decoder.start(Form::Meta(Meta::Get), b"", false);
    assert_eq!(decoder.decode(b"VA 4\r\n"), Err(ReplyError::TooLarge { limit_bytes: 3 }));
    decoder.start(Form::Word, b"", true);
    assert_eq!(decoder.decode(&[b'x'; MAX_LINE_BYTES + 1]), Err(ReplyError::LineTooLong));
}

#[test]
fn what_stands_beside_a_value_is_found_by_its_name() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    decoder.start(Form::Values, b"k", true);
    decoder.decode(b"VALUE k 7 1 99\r\nx\r\nEND\r\n").unwrap();
    assert_eq!((decoder.field("flags"), decoder.field("cas")), (Some(&b"7"[..]), Some(&b"99"[..])));
    assert_eq!(decoder.field("t"), None);
    decoder.start(Form::Meta(Meta::Get), b"", true);
    decoder.decode(b"VA 1 t-1 W c5\r\nx\r\n").unwrap();
    assert_eq!((decoder.field("t"), decoder.field("w")), (Some(&b"-1"[..]), Some(&b""[..])));
    assert_eq!((decoder.field("c"), decoder.field("s")), (Some(&b"5"[..]), None));
    decoder.start(Form::Values, b"k", true);
    decoder.decode(b"END\r\n").unwrap();
    assert_eq!(decoder.field("flags"), None);
}

#[test]
fn behind_a_line_that_was_refused_the_value_may_be_taken_for_commands() {
    for (form, reply, may_be) in [
        (Form::Stored, "CLIENT_ERROR bad command line format\r\n", true),
        (Form::Meta(Meta::Set), "ERROR\r\n", true),
        (Form::Stored, "SERVER_ERROR object too large for cache\r\n", false),
        (Form::Stored, "NOT_STORED\r\n", false),
        (Form::Number, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", false),
    ] {
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        decoder.start(form, b"", false);
        assert!(decoder.decode(reply.as_bytes()).unwrap().complete);
        assert_eq!(decoder.may_be_out_of_step(), may_be, "{reply}");
    }
}

#[test]
fn a_key_is_what_memcached_takes() {
    assert!(is_key(b"k:1") && is_key(&[b'k'; 250]) && is_key("ü".as_bytes()));
    for wrong in [&b""[..], b"a b", b"a\r\n", b"\x7f", &[b'k'; 251]] {
        assert!(!is_key(wrong));
    }
}

#[test]
fn numbers_are_those_that_memcached_takes() {
    for (text, count, time) in [
        ("0", true, true),
        ("18446744073709551615", true, false),
        ("9223372036854775807", true, true),
        ("18446744073709551616", false, false),
        ("-1", false, true),
        ("-9223372036854775809", false, false),
        ("+1", false, false),
        ("--1", false, false),
        ("", false, false),
        ("-", false, false),
        ("1 0", false, false),
    ] {
        assert_eq!((is_count(text.as_bytes()), is_time(text.as_bytes())), (count, time), "{text}");
    }
}

fn form() -> impl Strategy<Value = Form> {
    prop::sample::select(
        &[
            Form::Values,
            Form::Stored,
            Form::Deleted,
            Form::Touched,
            Form::Number,
            Form::Word,
            Form::Stats,
            Form::Meta(Meta::Get),
            Form::Meta(Meta::Set),
            Form::Meta(Meta::Arithmetic),
        ][..],
    )
}

/// Bytes that look enough like replies.
fn nearly_replies() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&str] = &[
        "VALUE a 0 2\r\nhi\r\n",
        "VALUE b 1 0 7\r\n\r\n",
        "END\r\n",
        "STORED\r\n",
        "NOT_FOUND\r\n",
        "VA 2 t1\r\nhi\r\n",
        "HD\r\n",
        "EN\r\n",
        "STAT a b\r\n",
        "ERROR\r\n",
        "12\r\n",
        "VALUE ",
        "\r\n",
        "\n",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

type Understood = Result<(usize, bool, Kind, Vec<u8>), ReplyError>;

fn in_pieces(form: Form, bytes: &[u8], piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 64 });
    decoder.start(form, b"a b", true);
    let (taken, complete) = testing::in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    Ok((taken, complete, decoder.kind(), decoder.body().to_vec()))
}

proptest! {
    #[test]
    fn bytes_mean_the_same_however_they_are_cut(form in form(), bytes in nearly_replies(), piece in 1..9_usize) {
        prop_assert_eq!(in_pieces(form, &bytes, bytes.len().max(1)), in_pieces(form, &bytes, piece));
    }

    #[test]
    fn values_come_back_as_they_were_stored(
        values in prop::collection::vec(prop::option::of("\\PC{0,20}|[\\x00-\\x7f]{0,20}"), 1..6),
        piece in 1..40_usize,
    ) {
        let keys: Vec<String> = (0..values.len()).map(|n| format!("k{n}")).collect();
        let mut reply = Vec::new();
        for (key, value) in keys.iter().zip(&values) {
            if let Some(value) = value {
                reply.extend_from_slice(format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len()).as_bytes());
            }
        }
        reply.extend_from_slice(b"END\r\n");
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        decoder.start(Form::Values, keys.join(" ").as_bytes(), true);
        for part in reply.chunks(piece) {
            decoder.decode(part).unwrap();
        }
        match &values[..] {
            [value] => prop_assert_eq!(decoder.body(), value.as_deref().unwrap_or_default().as_bytes()),
            _ => prop_assert_eq!(serde_json::from_slice::<Vec<Option<String>>>(decoder.body()).unwrap(), values),
        }
    }
}
