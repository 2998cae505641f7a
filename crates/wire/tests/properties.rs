//! What must hold for all bytes, all ways to cut them, and all documents.

use proptest::prelude::*;
use serde_json::Value;
use tidemark_wire::http1::{DecoderLimits, HttpError, RequestDecoder, ResponseDecoder, cookie};
use tidemark_wire::json::{self, Path};

const SMALL: DecoderLimits = DecoderLimits { head_bytes: 512, headers: 16, body_bytes: 4096 };

/// Bytes that look enough like HTTP to get past the first line.
fn nearly_http() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&str] = &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 304 \r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "GET / HTTP/1.1\r\n",
        "Host: x\r\n",
        "Content-Length: ",
        "5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "\r\n",
        "\n",
        "\r",
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "a;x=y\r\n",
        "ffffffffffffffff\r\n",
        " ",
        ":",
        "X: y\r\n",
        "\0",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Messages that are whole, for the most part, and differ little.
fn message() -> impl Strategy<Value = Vec<u8>> {
    const WHOLE: &[&str] = &[
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi!",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nhi",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n",
        "PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
        "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
        "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /a HTTP/1.1\r\n\r\n",
    ];
    prop_oneof![
        4 => prop::sample::select(WHOLE).prop_map(|message| message.as_bytes().to_vec()),
        1 => nearly_http(),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("a".to_owned()), Just("b c".to_owned()), "\\PC{0,6}", "[\\x00-\\x7f]{0,6}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Eighths: every parser reads them as exactly what was written.
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        name.clone().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Every value of a document with a path to it.
fn places(value: &Value, path: String, found: &mut Vec<(String, Value)>) {
    found.push((path.clone(), value.clone()));
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let index = if index % 2 == 0 { index as i64 } else { index as i64 - items.len() as i64 };
                places(item, format!("{path}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
                places(member, format!("{path}['{quoted}']"), found);
            }
        }
        _ => {}
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// The same text with every other way to write it: blanks, escapes.
fn rewritten(value: &Value) -> String {
    let escaped = |text: &str| -> String {
        let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        format!("\"{}\"", units.concat())
    };
    match value {
        Value::String(text) => escaped(text),
        Value::Array(items) => {
            format!("[ {}\n]", items.iter().map(rewritten).collect::<Vec<_>>().join(" ,\t"))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{} :{}", escaped(name), rewritten(value)))
                .collect();
            format!("{{\r{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// Bytes taken and completeness, status, body, its length.
type Understood = (Result<(usize, bool), HttpError>, u16, Vec<u8>, u64);

proptest! {
    #[test]
    fn any_body_in_any_chunks_and_pieces(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..8),
        cuts in prop::collection::vec(1usize..60, 1..40),
        chunked: bool,
        keep: bool,
    ) {
        let body = chunks.concat();
        let mut bytes = b"HTTP/1.1 200 OK\r\nServer: s\r\n".to_vec();
        if chunked {
            bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:x};n={}\r\n", chunk.len(), chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(&body);
        }
        let end = bytes.len();
        bytes.extend_from_slice(b"HTTP/1.1 500 Next\r\n\r\n");

        let mut decoder = ResponseDecoder::new(SMALL);
        decoder.start(false, keep);
        let mut at = 0;
        for cut in cuts.iter().cycle() {
            let piece = &bytes[at..(at + cut).min(bytes.len())];
            let decoded = decoder.decode(piece).unwrap();
            at += decoded.consumed;
            if decoded.complete {
                break;
            }
            prop_assert_eq!(decoded.consumed, piece.len());
        }
        prop_assert_eq!(at, end);
        prop_assert_eq!(decoder.body(), if keep { &body[..] } else { &[] });
        prop_assert_eq!(decoder.body_bytes(), body.len() as u64);
    }

    /// However bytes are cut, the same number of them is taken and the same is understood.
    #[test]
    fn cuts_change_nothing(bytes in nearly_http(), cut in 1usize..40, head_request: bool, keep: bool) {
        let answer = |size: usize| -> Understood {
            let mut decoder = ResponseDecoder::new(SMALL);
            decoder.start(head_request, keep);
            let mut taken = 0;
            let mut result = Ok((0, false));
            for piece in bytes.chunks(size) {
                match decoder.decode(piece) {
                    Ok(decoded) => {
                        assert!(decoded.consumed <= piece.len());
                        assert!(decoded.complete || decoded.consumed == piece.len());
                        taken += decoded.consumed;
                        result = Ok((taken, decoded.complete));
                        if decoded.complete {
                            break;
                        }
                    }
                    Err(error) => return (Err(error), 0, Vec::new(), 0),
                }
            }
            (result, decoder.status(), decoder.body().to_vec(), decoder.body_bytes())
        };
        let (whole, pieces) = (answer(bytes.len().max(1)), answer(cut));
        // A head that is wrong in two ways may be refused for either. In pieces it is not parsed at each piece, so
        // that without its end a wrong one may not have been noticed yet.
        match (&whole.0, &pieces.0) {
            (Err(_), Err(_) | Ok((_, false))) => {}
            _ => prop_assert_eq!(whole, pieces),
        }
    }

    /// A decoder that has read other messages, or the same one, understands the next as a new one does.
    #[test]
    fn what_came_before_changes_nothing(
        before in prop::collection::vec(message(), 0..4),
        again: bool,
        next in message(),
        cut in 1usize..90,
    ) {
        let next = before.last().filter(|_| again).unwrap_or(&next);
        let (mut used, mut fresh) = (ResponseDecoder::new(SMALL), ResponseDecoder::new(SMALL));
        for bytes in &before {
            let _ = used.decode(bytes);
            used.start(false, true);
            prop_assert_eq!((used.status(), used.headers().count(), used.has_begun()), (0, 0, false));
        }
        for piece in next.chunks(cut) {
            prop_assert_eq!(used.decode(piece), fresh.decode(piece));
            prop_assert_eq!((used.status(), used.reason()), (fresh.status(), fresh.reason()));
            prop_assert!(used.headers().eq(fresh.headers()) && used.body() == fresh.body());
            prop_assert_eq!(used.keep_alive(), fresh.keep_alive());
        }
        prop_assert_eq!(used.finish(), fresh.finish());

        let (mut used, mut fresh) = (RequestDecoder::new(SMALL), RequestDecoder::new(SMALL));
        for bytes in &before {
            let _ = used.decode(bytes);
            used.start();
            prop_assert!(used.head().is_empty() && used.target().is_empty() && !used.has_begun());
        }
        for piece in next.chunks(cut) {
            prop_assert_eq!(used.decode(piece), fresh.decode(piece));
            prop_assert_eq!((used.method(), used.target()), (fresh.method(), fresh.target()));
            prop_assert!(used.head() == fresh.head() && used.headers().eq(fresh.headers()));
            prop_assert_eq!((used.keep_alive(), used.body()), (fresh.keep_alive(), fresh.body()));
        }
        prop_assert_eq!(used.finish(), fresh.finish());
    }

    #[test]
    fn no_bytes_do_harm(bytes in nearly_http(), cut in 1usize..40) {
        let mut decoder = RequestDecoder::new(SMALL);
        for piece in bytes.chunks(cut) {
            let Ok(decoded) = decoder.decode(piece) else { break };
            prop_assert!(decoded.consumed <= piece.len());
            if decoded.complete {
                prop_assert!(!decoder.method().is_empty() && !decoder.target().is_empty());
                decoder.start();
            }
        }
        let _ = decoder.finish();
        let _ = cookie::parse(&bytes).map(|cookie| cookie.is_removed(0));
    }

    #[test]
    fn cookies_come_back(name in "[a-zA-Z0-9_]{1,12}", value in "[!-:<-~]{1,24}", path in "/[a-z/]{0,12}") {
        let header = format!("{name}={value}; HttpOnly; Path={path}; SameSite=Lax");
        let cookie = cookie::parse(header.as_bytes()).unwrap();
        prop_assert_eq!(cookie.name, name.as_bytes());
        prop_assert_eq!(cookie.value, value.as_bytes());
        prop_assert_eq!(cookie.path, Some(path.as_bytes()));
        prop_assert!(!cookie.is_removed(0) && !cookie.is_secure && cookie.domain.is_none());
    }

    #[test]
    fn every_value_of_a_document_is_found(document in any_json(), pretty: bool) {
        let plain = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        for text in [plain.unwrap(), rewritten(&document)] {
            prop_assert_eq!(json::check(text.as_bytes()), Ok(()));
            let mut found = Vec::new();
            places(&document, "$".into(), &mut found);
            for (path, expected) in found {
                let path = Path::parse(&path).unwrap();
                prop_assert_eq!(&Path::parse(&path.to_string()).unwrap(), &path);
                let token = path.find(text.as_bytes()).unwrap().expect("it is there");
                let value: Value = serde_json::from_slice(token).unwrap();
                prop_assert_eq!(&value, &expected, "{}", path);
                if let Value::String(expected) = &expected {
                    let mut out = Vec::new();
                    json::write_text(token, &mut out);
                    prop_assert_eq!(&out, expected.as_bytes());
                }
            }
        }
    }

    #[test]
    fn stars_see_what_a_tree_sees(document in any_json()) {
        let text = document.to_string();
        let parse = |token: &[u8]| serde_json::from_slice::<Value>(token).unwrap();
        let mut found = Vec::new();
        Path::parse("$.*[*]").unwrap().find_all(text.as_bytes(), &mut |token| found.push(parse(token))).unwrap();
        let expected: Vec<Value> = children(&document).into_iter().flat_map(children).cloned().collect();
        prop_assert_eq!(found, expected);
        let last = |value: &&Value| value.as_array().is_some_and(|items| !items.is_empty());
        let expected = children(&document).into_iter().filter(last).count();
        prop_assert_eq!(Path::parse("$[*][-1]").unwrap().count(text.as_bytes()).unwrap(), expected);
    }

    /// On any text: what a well-known parser takes is taken, and what it refuses is refused.
    #[test]
    fn json_is_what_others_take_for_it(text in "[\\[\\]{}:,\"\\\\a-ftnrul0-9eE+\\-. ]{0,24}") {
        let theirs = serde_json::from_str::<Value>(&text).is_ok();
        prop_assert_eq!(json::check(text.as_bytes()).is_ok(), theirs, "{}", text);
    }

    #[test]
    fn no_path_and_no_text_do_harm(path in "\\$?[$.\\[\\]'\"*a0-9\\\\-]{0,12}", text in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(path) = Path::parse(&path) {
            let _ = path.count(&text);
            prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }
        json::write_text(&text, &mut Vec::new());
    }
}
