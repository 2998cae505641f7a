//! HTTP/2 with a server that we did not write: what one end says, the other understands.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tidemark_wire::http2::connection::{Connection, Event, Request};
use tidemark_wire::http2::hpack;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A request, and its answer: both have these headers and this body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exchange {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    has_trailers: bool,
}

/// What came of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
    ends: u32,
}

/// Answers each request with the status that its path names, its own headers but those of HTTP, and its body.
async fn serve(io: DuplexStream) {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(5_000).max_concurrent_streams(100);
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::task::spawn_local(async move {
            let (head, mut body) = request.into_parts();
            let mut echo = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                body.flow_control().release_capacity(piece.len()).unwrap();
                echo.extend_from_slice(&piece);
            }
            let (status, trailers) = head.uri.path()[1..].split_once('/').unwrap();
            let mut answer = http::Response::builder().status(status.parse::<u16>().unwrap());
            *answer.headers_mut().unwrap() = head.headers;
            let mut send = respond.send_response(answer.body(()).unwrap(), false).unwrap();
            let trailing = trailers == "trailers";
            send.send_data(echo.into(), !trailing).unwrap();
            if trailing {
                let list = [(http::HeaderName::from_static("x-end"), http::HeaderValue::from_static("yes"))];
                send.send_trailers(list.into_iter().collect()).unwrap();
            }
        });
    }
}

fn list(fields: &hpack::Fields) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    fields.iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// Sends all requests at once and takes their answers.
async fn ask(mut io: DuplexStream, exchanges: &[Exchange], piece: usize) -> BTreeMap<u32, Answer> {
    let mut out = Vec::new();
    let mut connection = Connection::new(&mut out);
    for (owner, exchange) in exchanges.iter().enumerate() {
        let trailers = if exchange.has_trailers { "trailers" } else { "none" };
        let path = format!("/{}/{trailers}", exchange.status);
        let mut block = Vec::new();
        let pseudo = [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", &path)];
        let own = exchange.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pseudo.into_iter().chain(own).for_each(|(name, value)| {
            hpack::write_field(name.as_bytes(), value.as_bytes(), &mut block);
        });
        let request = Request { owner: owner as u32, holds: owner % 2 == 1, ..Request::default() };
        let stream = connection.request(&block, request, &mut out).unwrap();
        let body = Bytes::from(exchange.body.clone());
        connection.send(stream, &body, true, |sent| body.slice(sent..), &mut out);
    }
    let mut answers = BTreeMap::<u32, Answer>::new();
    let mut room = vec![0; piece];
    while answers.values().map(|answer| answer.ends).sum::<u32>() < exchanges.len() as u32 {
        loop {
            connection.pump(&mut out);
            if out.is_empty() {
                break;
            }
            io.write_all(&out).await.unwrap();
            out.clear();
            connection.taken();
        }
        let bytes = io.read(&mut room).await.unwrap();
        assert!(bytes > 0, "the server closed");
        let mut input = &room[..bytes];
        while let Some(event) = connection.next(&mut input, &mut out).unwrap() {
            let owner = event.owner();
            let answer = answers.entry(owner).or_default();
            match event {
                Event::Head { status, ends, .. } => {
                    (answer.status, answer.headers) = (status, list(connection.fields()));
                    answer.ends += u32::from(ends);
                }
                Event::Data { bytes, ends, .. } => {
                    answer.body.extend_from_slice(bytes);
                    answer.ends += u32::from(ends);
                    connection.release(owner * 2 + 1, &mut out);
                }
                Event::Trailers { .. } => {
                    answer.trailers = list(connection.fields());
                    answer.ends += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    answers
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let header = ("x-[a-c]{1,2}", "[ -~]{0,30}").prop_map(|(name, value)| (name, value.trim().to_owned()));
    let body = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..300),
        1 => prop::collection::vec(any::<u8>(), 1..2).prop_map(|byte| byte.repeat(200_000)),
    ];
    (200..600u16, prop::collection::vec(header, 0..8), body, any::<bool>()).prop_map(
        |(status, mut headers, body, has_trailers)| {
            // bodies belong to all others, and the server puts those of a name together
            let status = if matches!(status, 204 | 304) { 200 } else { status };
            headers.sort_by(|a, b| a.0.cmp(&b.0));
            Exchange { status, headers, body, has_trailers }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_server_understands_and_is_understood(
        exchanges in prop::collection::vec(exchange(), 1..30),
        piece in prop_oneof![Just(1usize), Just(100), Just(64 << 10)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = tokio::task::LocalSet::new().block_on(&runtime, async {
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            tokio::task::spawn_local(serve(theirs));
            ask(ours, &exchanges, piece).await
        });
        for (owner, exchange) in exchanges.iter().enumerate() {
            let answer = &answers[&(owner as u32)];
            prop_assert_eq!((answer.status, answer.ends), (exchange.status, 1));
            let mut headers = answer.headers.clone();
            headers.sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(&headers, &exchange.headers);
            prop_assert_eq!(&answer.body, &exchange.body);
            let trailers = if exchange.has_trailers { vec![("x-end".to_owned(), "yes".to_owned())] } else { vec![] };
            prop_assert_eq!(&answer.trailers, &trailers);
        }
    }
}
