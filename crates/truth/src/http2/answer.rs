//! How a request is answered.

use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, Request, Response};
use tokio::sync::mpsc;

use super::{Http2Misbehaviour, Order};

const GRPC: &str = "application/grpc";

/// Answers a request, or does what is done in place of it.
pub(super) async fn send(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    fault: Http2Misbehaviour,
    orders: &mpsc::UnboundedSender<Order>,
) -> Result<(), h2::Error> {
    let with_length = |length: &str| {
        let head = Response::builder().header("content-length", length).header("set-cookie", "seen=1");
        head.body(()).unwrap_or_default()
    };
    let body =
        |respond: &mut SendResponse<Bytes>, length: &str| respond.send_response(with_length(length), false);
    match fault {
        Http2Misbehaviour::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
        Http2Misbehaviour::Refuse => respond.send_reset(Reason::REFUSED_STREAM),
        Http2Misbehaviour::HalfAnswer => {
            let mut stream = body(&mut respond, "8")?;
            stream.send_data(Bytes::from_static(b"half"), false)?;
            tokio::time::sleep(Duration::from_millis(5)).await;
            stream.send_reset(Reason::CANCEL);
        }
        Http2Misbehaviour::LengthTooLong => {
            body(&mut respond, "100")?.send_data(Bytes::from_static(b"ok"), true)?
        }
        // nobody asks for an answer any more
        Http2Misbehaviour::Silence => {}
        Http2Misbehaviour::GrpcStatus(status) => {
            let head = Response::builder().header("content-type", GRPC).header("grpc-status", status);
            respond.send_response(head.body(()).unwrap_or_default(), true)?;
        }
        Http2Misbehaviour::Close => drop(orders.send(Order::Close)),
        Http2Misbehaviour::None | Http2Misbehaviour::GoAway => {
            right_answer(request, respond).await?;
            if fault == Http2Misbehaviour::GoAway {
                let _ = orders.send(Order::GoAway);
            }
        }
    }
    Ok(())
}

async fn right_answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let (head, mut received) = request.into_parts();
    let path = head.uri.path();
    if path == "/stream" {
        return echo_pieces(received, respond, false).await;
    }
    if head.headers.get("content-type").is_some_and(|kind| kind == GRPC) {
        return echo_pieces(received, respond, true).await;
    }
    let answer = Response::builder();
    let (answer, body) = if let Some(count) = path.strip_prefix("/bytes/") {
        (answer, vec![b'x'; count.parse().unwrap_or(0)])
    } else if let Some(status) = path.strip_prefix("/status/") {
        (answer.status(status), Vec::new())
    } else if path == "/echo" {
        let mut body = Vec::new();
        while let Some(piece) = received.data().await {
            let piece = piece?;
            received.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        let cookie = head.headers.get("cookie").map_or("", |value| value.to_str().unwrap_or(""));
        (answer.header("x-method", head.method.as_str()).header("x-cookie", cookie), body)
    } else {
        (answer.header("content-length", "2").header("set-cookie", "seen=1"), b"ok".to_vec())
    };
    let answer = answer.body(()).unwrap_or_default();
    let is_empty = body.is_empty() || head.method == http::Method::HEAD;
    let mut stream: SendStream<Bytes> = respond.send_response(answer, is_empty)?;
    if !is_empty {
        stream.send_data(body.into(), true)?;
    }
    Ok(())
}

/// Sends back what comes, piece by piece. Behind it stands the status of a call, or how many pieces there were.
async fn echo_pieces(
    mut received: RecvStream,
    mut respond: SendResponse<Bytes>,
    is_call: bool,
) -> Result<(), h2::Error> {
    let head = match is_call {
        true => Response::builder().header("content-type", GRPC),
        false => Response::builder(),
    };
    let mut stream = respond.send_response(head.body(()).unwrap_or_default(), false)?;
    let mut pieces = 0u64;
    while let Some(piece) = received.data().await {
        let piece = piece?;
        received.flow_control().release_capacity(piece.len())?;
        pieces += u64::from(!piece.is_empty());
        stream.send_data(piece, false)?;
    }
    let (name, number) = if is_call { ("grpc-status", 0) } else { ("x-pieces", pieces) };
    stream.send_trailers(HeaderMap::from_iter([(HeaderName::from_static(name), number.into())]))
}
