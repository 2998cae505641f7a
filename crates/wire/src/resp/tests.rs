use proptest::prelude::*;

use super::*;

fn decode(input: &[u8]) -> Result<(Kind, String), RespError> {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let decoded = decoder.decode(input)?;
    assert!(decoded.complete && decoded.consumed == input.len(), "{decoded:?}");
    Ok((decoder.kind(), String::from_utf8_lossy(decoder.body()).into_owned()))
}

#[test]
fn each_type_becomes_what_a_person_expects() {
    for (input, kind, body) in [
        ("+OK\r\n", Kind::Scalar, "OK"),
        ("-ERR no such key\r\n", Kind::Error, "ERR no such key"),
        (":-17\r\n", Kind::Scalar, "-17"),
        ("$5\r\na\r\nbc\r\n", Kind::Scalar, "a\r\nbc"),
        ("$0\r\n\r\n", Kind::Scalar, ""),
        ("$-1\r\n", Kind::Null, ""),
        ("*-1\r\n", Kind::Null, ""),
        ("_\r\n", Kind::Null, ""),
        ("#t\r\n", Kind::Scalar, "true"),
        (",3.25\r\n", Kind::Scalar, "3.25"),
        (",inf\r\n", Kind::Scalar, "inf"),
        ("(12345678901234567890123\r\n", Kind::Scalar, "12345678901234567890123"),
        ("!9\r\nERR wrong\r\n", Kind::Error, "ERR wrong"),
        ("=8\r\ntxt:some\r\n", Kind::Scalar, "some"),
        ("*0\r\n", Kind::Aggregate, "[]"),
        ("%0\r\n", Kind::Aggregate, "{}"),
        ("*3\r\n:1\r\n$2\r\na\"\r\n*2\r\n_\r\n,-inf\r\n", Kind::Aggregate, r#"[1,"a\"",[null,"-inf"]]"#),
        ("%2\r\n+a\r\n:1\r\n:2\r\n~1\r\n#f\r\n", Kind::Aggregate, r#"{"a":1,"2":[false]}"#),
        ("*2\r\n-ERR x\r\n+ok\r\n", Kind::Aggregate, r#"[{"error":"ERR x"},"ok"]"#),
        ("*2\r\n:+5\r\n:007\r\n", Kind::Aggregate, r#"[5,"007"]"#),
        ("*1\r\n$3\r\n\x01\n\\\r\n", Kind::Aggregate, r#"["\u0001\n\\"]"#),
        // what is streamed is as what comes as a whole
        ("$?\r\n;4\r\na\r\nb\r\n;2\r\nc\"\r\n;0\r\n", Kind::Scalar, "a\r\nbc\""),
        ("$?\r\n;0\r\n", Kind::Scalar, ""),
        ("*?\r\n.\r\n", Kind::Aggregate, "[]"),
        ("%?\r\n.\r\n", Kind::Aggregate, "{}"),
        ("*?\r\n:1\r\n$?\r\n;1\r\na\r\n;1\r\n\"\r\n;0\r\n.\r\n", Kind::Aggregate, r#"[1,"a\""]"#),
        (
            "~?\r\n%?\r\n$?\r\n;1\r\na\r\n;0\r\n*?\r\n.\r\n+b\r\n*1\r\n~?\r\n:1\r\n.\r\n.\r\n_\r\n.\r\n",
            Kind::Aggregate,
            r#"[{"a":[],"b":[[1]]},null]"#,
        ),
        ("*?\r\n-ERR x\r\n.\r\n", Kind::Aggregate, r#"[{"error":"ERR x"}]"#),
        // what is said about a value, and what is pushed between replies, is passed over
        ("|1\r\n+ttl\r\n*2\r\n:1\r\n:2\r\n$1\r\nv\r\n", Kind::Scalar, "v"),
        ("*2\r\n|1\r\n+a\r\n%1\r\n+b\r\n*1\r\n:2\r\n:1\r\n:2\r\n", Kind::Aggregate, "[1,2]"),
        (">2\r\n+message\r\n*1\r\n$2\r\nhi\r\n:3\r\n", Kind::Scalar, "3"),
        (">0\r\n|0\r\n:3\r\n", Kind::Scalar, "3"),
        (
            "|1\r\n+a\r\n%?\r\n+b\r\n$?\r\n;1\r\nc\r\n;0\r\n.\r\n>1\r\n*?\r\n.\r\n|1\r\n+a\r\n:1\r\n+OK\r\n",
            Kind::Scalar,
            "OK",
        ),
        ("*?\r\n|1\r\n+a\r\n*?\r\n:2\r\n.\r\n:1\r\n|1\r\n+a\r\n:1\r\n:2\r\n.\r\n", Kind::Aggregate, "[1,2]"),
    ] {
        assert_eq!(decode(input.as_bytes()), Ok((kind, body.to_owned())), "{input:?}");
    }
}

#[test]
fn the_first_error_within_a_reply_is_known_however_little_of_it_is_kept() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let text = "a".repeat(BEGINNING_BYTES);
    let large = format!("*3\r\n${BEGINNING_BYTES}\r\n{text}\r\n!5\r\nERR x\r\n-ERR y\r\n");
    for (reply, error) in [
        ("*2\r\n+OK\r\n*1\r\n-ERR x\r\n", Some("ERR x")),
        (&large[..], Some("ERR x")),
        ("-ERR x\r\n", None),
        ("|1\r\n+a\r\n-ERR x\r\n*1\r\n:1\r\n", None),
        (">1\r\n-ERR x\r\n*1\r\n-\r\n", Some("")),
        ("*1\r\n+ERR x\r\n", None),
    ] {
        for keep in [Keep::All, Keep::Beginning] {
            decoder.start(keep);
            assert!(decoder.decode(reply.as_bytes()).is_ok_and(|decoded| decoded.complete));
            assert_eq!(decoder.error(), error.map(str::as_bytes), "{reply}");
        }
    }
}

#[test]
fn the_bytes_of_a_string_are_known_however_little_of_it_is_kept() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let text = "a".repeat(2 * BEGINNING_BYTES);
    for (reply, bytes) in [
        (format!("${}\r\n{text}\r\n", text.len()), Some(text.len())),
        ("$0\r\n\r\n".to_owned(), Some(0)),
        ("$-1\r\n".to_owned(), Some(0)),
        ("+OK\r\n".to_owned(), Some(2)),
        (":12\r\n".to_owned(), Some(2)),
        ("=8\r\ntxt:some\r\n".to_owned(), Some(4)),
        ("$?\r\n;4\r\na\r\nb\r\n;2\r\nc\"\r\n;0\r\n".to_owned(), Some(6)),
        ("*2\r\n:1\r\n:2\r\n".to_owned(), None),
    ] {
        for (keep, pieces) in
            [Keep::All, Keep::Beginning, Keep::Nothing].into_iter().flat_map(|keep| [(keep, 1), (keep, 2)])
        {
            decoder.start(keep);
            let bytes = if keep == Keep::All { bytes.or(Some("[1,2]".len())) } else { bytes };
            let first = reply.len() / pieces;
            let taken = decoder.decode(&reply.as_bytes()[..first]).unwrap().consumed;
            assert!(decoder.decode(&reply.as_bytes()[taken..]).is_ok_and(|decoded| decoded.complete));
            assert_eq!(decoder.body_bytes(), bytes, "{reply:?} {keep:?} in {pieces}");
        }
    }
}

#[test]
fn what_is_no_reply_is_an_error_that_says_why() {
    for (input, expected) in [
        ("HTTP/1.1 400\r\n", RespError::Type(b'H')),
        ("\r\n", RespError::End),
        (":1\n", RespError::End),
        ("$1\r\nabc\r\n", RespError::End),
        ("+a\rb\r\n", RespError::End),
        ("$x\r\n", RespError::Number),
        ("$-2\r\n", RespError::Number),
        ("$\r\n", RespError::Number),
        ("*9999999999999999999\r\n", RespError::Number),
        (":1.5\r\n", RespError::Number),
        ("#y\r\n", RespError::Number),
        ("=3\r\ntxt\r\n", RespError::Number),
        ("|?\r\n", RespError::Streamed),
        (">?\r\n", RespError::Streamed),
        ("=?\r\n", RespError::Streamed),
        ("!?\r\n", RespError::Streamed),
        ("$?\r\n+a\r\n", RespError::Type(b'+')),
        ("$?\r\n;1\r\na\r\n$1\r\na\r\n", RespError::Type(b'$')),
        ("$?\r\n;1\r\nab\r\n", RespError::End),
        ("$?\r\n;-1\r\n", RespError::Number),
        ("$?\r\n;?\r\n", RespError::Number),
        (";1\r\na\r\n", RespError::Type(b';')),
        ("*1\r\n;0\r\n", RespError::Type(b';')),
        (".\r\n", RespError::Type(b'.')),
        ("*1\r\n.\r\n", RespError::Type(b'.')),
        ("*?\r\n*2\r\n:1\r\n.\r\n", RespError::Type(b'.')),
        ("|1\r\n+a\r\n.\r\n", RespError::Type(b'.')),
        ("*?\r\n.1\r\n", RespError::End),
        ("*?\r\n>1\r\n:1\r\n", RespError::Type(b'>')),
        ("%?\r\n+a\r\n.\r\n", RespError::Entry),
        ("%?\r\n*?\r\n.\r\n:2\r\n", RespError::Name),
        ("%1\r\n*1\r\n:1\r\n:2\r\n", RespError::Name),
        ("*1\r\n>1\r\n:1\r\n", RespError::Type(b'>')),
        ("$99999999\r\n", RespError::TooLarge { limit_bytes: 16 << 20 }),
    ] {
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let error = decoder.decode(input.as_bytes()).unwrap_err();
        assert_eq!(error, expected, "{input:?}");
        assert_eq!(decoder.decode(b"+OK\r\n"), Err(error), "until the next");
        decoder.start(Keep::All);
        assert!(decoder.decode(b"+OK\r\n").is_ok_and(|decoded| decoded.complete));
    }
    let deep = "*1\r\n".repeat(MAX_DEPTH + 1);
    assert_eq!(decode(deep.as_bytes()), Err(RespError::TooDeep));
    let long = vec![b'+'; MAX_LINE_BYTES + 2];
    assert_eq!(ReplyDecoder::new(ReplyLimits::default()).decode(&long), Err(RespError::LineTooLong));
}

#[test]
fn a_limit_holds_for_what_is_kept_and_anything_else_is_passed_by() {
    let limits = ReplyLimits { body_bytes: 4 };
    let mut decoder = ReplyDecoder::new(limits);
    assert!(decoder.decode(b"$4\r\nabcd\r\n").is_ok_and(|decoded| decoded.complete));
    assert_eq!(decoder.body(), b"abcd");
    for (large, beginning) in [
        (&b"$5\r\nabcde\r\n"[..], "abcde"),
        (b"*3\r\n:1\r\n:2\r\n:3\r\n", "[1,2,3]"),
        (b"+hello\r\n", "hello"),
        (b"$?\r\n;3\r\nabc\r\n;2\r\nde\r\n;0\r\n", "abcde"),
        (b"*?\r\n:1\r\n:2\r\n:3\r\n.\r\n", "[1,2,3]"),
    ] {
        decoder.start(Keep::All);
        assert_eq!(decoder.decode(large), Err(RespError::TooLarge { limit_bytes: 4 }), "{large:?}");
        decoder.start(Keep::Beginning);
        assert_eq!(decoder.decode(large), Ok(Decoded { consumed: large.len(), complete: true }));
        assert_eq!(String::from_utf8_lossy(decoder.body()), beginning);
    }
    decoder.start(Keep::Beginning);
    assert!(decoder.decode(b"-ERR all the same\r\n").is_ok());
    assert_eq!((decoder.kind(), decoder.body()), (Kind::Error, &b"ERR all the same"[..]));
}

/// Thousands of decoders are used in turn: each is a part of a cache line.
#[test]
fn a_decoder_is_small() {
    assert!(size_of::<ReplyDecoder>() <= 24, "{}", size_of::<ReplyDecoder>());
}

#[test]
fn of_a_string_that_nobody_keeps_the_beginning_is_seen_where_it_came() {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 4 });
    let long = format!("${}\r\n{}\r\n", 2 * BEGINNING_BYTES, "x".repeat(2 * BEGINNING_BYTES));
    let beginning = "x".repeat(BEGINNING_BYTES);
    for (reply, kept, seen) in [
        ("$5\r\nabcde\r\n", "", "abcde"),
        ("$0\r\n\r\n", "", ""),
        (long.as_str(), "", beginning.as_str()),
        ("+hello\r\n", "hello", "hello"),
        ("-ERR no\r\n", "ERR no", "ERR no"),
        ("$-1\r\n", "", ""),
        ("*2\r\n:1\r\n$1\r\na\r\n", "[1,\"a\"]", "[1,\"a\"]"),
    ] {
        decoder.start(Keep::Nothing);
        let received = [reply, "$3\r\nof \r\n"].concat();
        let decoded = decoder.decode(received.as_bytes());
        assert_eq!(decoded, Ok(Decoded { consumed: reply.len(), complete: true }), "{reply}");
        let told = [decoder.body(), decoder.seen(received.as_bytes())].map(String::from_utf8_lossy);
        assert_eq!(told, [kept, seen], "{reply}");
        // what came in two pieces is kept
        decoder.start(Keep::Nothing);
        assert!(!decoder.decode(&reply.as_bytes()[..3]).unwrap().complete, "{reply}");
        assert!(decoder.decode(&reply.as_bytes()[3..]).unwrap().complete, "{reply}");
        assert_eq!(String::from_utf8_lossy(decoder.seen(&reply.as_bytes()[3..])), seen, "{reply}");
    }
}

/// What a reply of any size leaves behind is its beginning, also of an error.
#[test]
fn of_what_is_passed_by_the_beginning_is_kept() {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 4 });
    let part = [b'x'; 1 << 16];
    for (begins, ends, parts, kind) in [
        ("$536870912\r\n", "\r\n", 8192, Kind::Scalar),
        ("!6553600\r\n", "\r\n", 100, Kind::Error),
        ("*2\r\n:1\r\n$6553600\r\n", "\r\n", 100, Kind::Aggregate),
        ("*?\r\n$?\r\n;6553600\r\n", "\r\n;0\r\n.\r\n", 100, Kind::Aggregate),
    ] {
        decoder.start(Keep::Beginning);
        assert!(!decoder.decode(begins.as_bytes()).unwrap().complete);
        for _ in 0..parts {
            assert_eq!(decoder.decode(&part), Ok(Decoded { consumed: part.len(), complete: false }));
        }
        assert!(decoder.decode(ends.as_bytes()).unwrap().complete, "{begins}");
        assert_eq!((decoder.kind(), decoder.body().len()), (kind, BEGINNING_BYTES));
    }
}

#[test]
fn a_connection_that_ends_says_where() {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    assert_eq!(decoder.finish(), RespError::Empty);
    assert!(!decoder.decode(b"$3\r\na").unwrap().complete);
    assert_eq!(decoder.finish(), RespError::Truncated);
}

#[test]
fn a_word_has_its_length_in_front_however_long_it_is() {
    for bytes in [0, 1, 9, 10, 57, 99, 100, 12_345] {
        let word = vec![b'w'; bytes];
        let (mut at_once, mut by_another) = (Vec::new(), b"*1\r\n".to_vec());
        write_command(&[word.as_slice()], &mut at_once);
        write_word_by(&mut by_another, |out| {
            out.extend_from_slice(&word);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(at_once, by_another);
    }
    assert_eq!(write_word_by(&mut Vec::new(), |_| Err(7)), Err(7));
}

/// A value, as it is written and as JSON has it.
fn value() -> impl Strategy<Value = (Vec<u8>, serde_json::Value)> {
    let text = |kind: char, text: String| format!("{kind}{}\r\n{text}\r\n", text.len()).into_bytes();
    let streamed = |parts: Vec<String>| {
        let written = parts.iter().map(|part| format!(";{}\r\n{part}\r\n", part.len()));
        format!("$?\r\n{};0\r\n", written.collect::<String>()).into_bytes()
    };
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (format!(":{n}\r\n").into_bytes(), n.into())),
        "\\PC{0,40}".prop_map(move |s| (text('$', s.clone()), s.into())),
        "[ -~]{0,20}".prop_map(|s| (format!("+{s}\r\n").into_bytes(), s.into())),
        prop::collection::vec("[ -~ü\r\n]{1,9}", 0..4)
            .prop_map(move |parts| (streamed(parts.clone()), parts.concat().into())),
        any::<bool>().prop_map(|b| (format!("#{}\r\n", if b { 't' } else { 'f' }).into_bytes(), b.into())),
        Just((b"_\r\n".to_vec(), serde_json::Value::Null)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let list = (prop::collection::vec(inner.clone(), 0..6), "[*~]", any::<bool>());
        let list = list.prop_map(|(values, kind, is_streamed)| {
            let count = if is_streamed { "?".to_owned() } else { values.len().to_string() };
            let mut written = format!("{kind}{count}\r\n").into_bytes();
            values.iter().for_each(|(bytes, _)| written.extend_from_slice(bytes));
            written.extend_from_slice(if is_streamed { &b".\r\n"[..] } else { b"" });
            (written, values.into_iter().map(|(_, json)| json).collect())
        });
        let map = (prop::collection::btree_map("[a-z]{1,5}", inner.clone(), 0..4), any::<bool>());
        let map = map.prop_map(|(entries, is_streamed)| {
            let count = if is_streamed { "?".to_owned() } else { entries.len().to_string() };
            let mut written = format!("%{count}\r\n").into_bytes();
            for (name, (bytes, _)) in &entries {
                written.extend_from_slice(format!("+{name}\r\n").as_bytes());
                written.extend_from_slice(bytes);
            }
            written.extend_from_slice(if is_streamed { &b".\r\n"[..] } else { b"" });
            let json = entries.into_iter().map(|(name, (_, json))| (name, json));
            (written, serde_json::Value::Object(json.collect()))
        });
        let told = (inner.clone(), inner).prop_map(|((about, _), (bytes, json))| {
            ([b"|1\r\n+about\r\n", about.as_slice(), bytes.as_slice()].concat(), json)
        });
        prop_oneof![list, map, told]
    })
}

/// What comes of a reply in pieces of these sizes, again and again.
fn in_pieces(keep: Keep, bytes: &[u8], pieces: &[usize]) -> (Decoded, Kind, Vec<u8>) {
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    decoder.start(keep);
    let mut taken = 0;
    let mut complete = false;
    for piece in pieces.iter().cycle() {
        let decoded = decoder.decode(&bytes[taken..bytes.len().min(taken + piece)]).unwrap();
        taken += decoded.consumed;
        complete = decoded.complete;
        if complete || taken == bytes.len() {
            break;
        }
    }
    (Decoded { consumed: taken, complete }, decoder.kind(), decoder.body().to_vec())
}

proptest! {
    #[test]
    fn an_array_of_anything_is_the_same_json_however_it_is_cut(
        values in prop::collection::vec(value(), 0..5),
        cuts in prop::collection::vec(1..20_usize, 1..30),
        behind in prop::collection::vec(any::<u8>(), 0..5),
    ) {
        let mut written = format!("*{}\r\n", values.len()).into_bytes();
        values.iter().for_each(|(bytes, _)| written.extend_from_slice(bytes));
        let bytes = written.len();
        written.extend_from_slice(&behind);
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let (mut taken, mut fed) = (0, 0);
        let mut cuts = cuts.iter().cycle();
        loop {
            fed = written.len().min(fed + cuts.next().unwrap());
            let decoded = decoder.decode(&written[taken..fed]).unwrap();
            taken += decoded.consumed;
            if decoded.complete {
                break;
            }
            prop_assert!(fed < written.len());
        }
        prop_assert_eq!(taken, bytes, "nothing of the next reply");
        prop_assert_eq!(decoder.kind(), Kind::Aggregate);
        let expected: serde_json::Value = values.into_iter().map(|(_, json)| json).collect();
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(decoder.body()).unwrap(), expected);
    }

    #[test]
    fn a_reply_is_the_same_wherever_it_is_split_and_its_beginning_is_left_where_it_is_passed_by(
        (reply, _) in value(),
        pushed in prop::option::of(value()),
    ) {
        let pushed = pushed.map(|(bytes, _)| [b">2\r\n+message\r\n", bytes.as_slice()].concat());
        let bytes = [pushed.unwrap_or_default(), reply].concat();
        let whole = in_pieces(Keep::All, &bytes, &[bytes.len()]);
        prop_assert_eq!(whole.0, Decoded { consumed: bytes.len(), complete: true });
        prop_assert_eq!(&whole, &in_pieces(Keep::All, &bytes, &[1]));
        let mut passed_by = whole.clone();
        passed_by.2.truncate(BEGINNING_BYTES);
        for cut in 1..=bytes.len() {
            prop_assert_eq!(&whole, &in_pieces(Keep::All, &bytes, &[cut, bytes.len()]));
            prop_assert_eq!(&passed_by, &in_pieces(Keep::Beginning, &bytes, &[cut, bytes.len()]));
        }
    }

    #[test]
    fn any_bytes_are_a_reply_or_an_error_and_the_same_however_they_are_cut(
        parts in prop::collection::vec(prop_oneof![
            Just(b"\r\n".to_vec()),
            "[-+:$*%~>|_#,(!=;.][0-9?-]{0,3}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..6),
        ], 0..30),
        cut in 0..200_usize,
    ) {
        let bytes = parts.concat();
        let outcome = |decoder: &ReplyDecoder| (decoder.kind(), decoder.body().to_vec());
        let mut whole = ReplyDecoder::new(ReplyLimits { body_bytes: 100 });
        let at_once = whole.decode(&bytes);
        let mut cut_up = ReplyDecoder::new(ReplyLimits { body_bytes: 100 });
        let cut = cut.min(bytes.len());
        let in_two = match cut_up.decode(&bytes[..cut]) {
            Ok(first) if !first.complete => {
                prop_assert_eq!(first.consumed, cut);
                let second = cut_up.decode(&bytes[cut..]);
                second.map(|second| Decoded { consumed: cut + second.consumed, complete: second.complete })
            }
            ended => ended,
        };
        prop_assert_eq!(at_once, in_two);
        if at_once.is_ok() {
            prop_assert_eq!(outcome(&whole), outcome(&cut_up));
        }
    }

    #[test]
    fn a_command_is_read_back_as_it_was_written(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..8)) {
        let mut written = Vec::new();
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        write_command(&slices, &mut written);
        // an array of strings is a reply, too
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        prop_assert!(decoder.decode(&written).is_ok_and(|decoded| decoded.complete && decoded.consumed == written.len()));
        let mut expected = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            expected.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            expected.extend_from_slice(word);
            expected.extend_from_slice(b"\r\n");
        }
        prop_assert_eq!(written, expected);
    }
}
