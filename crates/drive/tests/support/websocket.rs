//! The other side of a WebSocket: accepts, and hands on what comes.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidemark_wire::http1::RequestDecoder;
use tidemark_wire::websocket::{Decoder, Event, Limits, Role};

use super::serving;

/// Bytes read at once.
const RECEIVE_BYTES: usize = 256 << 10;

/// A connection, plain or through TLS.
pub trait Socket: Read + Write {}

impl<S: Read + Write> Socket for S {}

/// Listens on a free loopback port as long as the test lasts, with a thread for each connection; over TLS where it is
/// given an identity.
pub fn listen(
    tls: Option<Arc<ServerConfig>>,
    serve: impl Fn(&mut dyn Socket) + Send + Sync + 'static,
) -> SocketAddr {
    serving(move |mut stream| {
        let _ = stream.set_nodelay(true);
        match tls.clone() {
            None => serve(&mut stream),
            Some(config) => serve(&mut StreamOwned::new(ServerConnection::new(config).unwrap(), stream)),
        }
    })
}

/// Reads one request; none where the connection ends.
pub fn receive(stream: &mut dyn Socket, request: &mut RequestDecoder) -> Option<()> {
    let mut input = [0; 4 << 10];
    request.start();
    loop {
        let have = stream.read(&mut input).ok().filter(|have| *have > 0)?;
        if request.decode(&input[..have]).unwrap().complete {
            return Some(());
        }
    }
}

/// Hands each event on, with what has been decoded and with what is to be sent, which leaves once all that was read
/// has been looked at; until the peer leaves, or the event's taker wants to.
pub fn converse(stream: &mut dyn Socket, mut on: impl FnMut(Event, &Decoder, &mut Vec<u8>) -> bool) {
    let mut decoder = Decoder::new(Role::Server, Limits::default());
    let (mut input, mut out) = (vec![0; RECEIVE_BYTES], Vec::new());
    let mut goes_on = true;
    while goes_on {
        let Some(have) = stream.read(&mut input).ok().filter(|have| *have > 0) else { return };
        let mut at = 0;
        while goes_on && at < have {
            let decoded = decoder.decode(&input[at..have]).expect("the driver's frames are right");
            at += decoded.consumed;
            goes_on = decoded.event.is_none_or(|event| on(event, &decoder, &mut out));
        }
        goes_on &= stream.write_all(&out).is_ok();
        out.clear();
    }
}
