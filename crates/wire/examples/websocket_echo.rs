//! A WebSocket server that says everything back, for trying clients against the codec:
//!
//! ```text
//! cargo run -p tidemark-wire --example websocket_echo -- 127.0.0.1:9001
//! ```

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::websocket::{
    Decoder, Event, Limits, Role, handshake, write_close, write_message, write_pong,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("ws://{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || {
            if let Err(failure) = serve(stream) {
                eprintln!("{failure}");
            }
        });
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut input = vec![0; 64 << 10];
    let mut request = RequestDecoder::new(DecoderLimits::default());
    let (mut have, mut at) = (0, 0);
    let mut decoded = request.decode(&[])?;
    while !decoded.complete {
        have = stream.read(&mut input)?;
        if have == 0 {
            return Ok(());
        }
        decoded = request.decode(&input[..have])?;
        at = decoded.consumed;
    }
    let mut out = Vec::new();
    let offer = handshake::check_request(&request)?;
    let protocol = offer.protocols().next();
    handshake::write_answer(&mut out, offer.key, protocol)?;
    let mut decoder = Decoder::new(Role::Server, Limits::default());
    loop {
        while at < have {
            let decoded = match decoder.decode(&input[at..have]) {
                Ok(decoded) => decoded,
                Err(error) => {
                    write_close(&mut out, Some(error.close_code()), &error.to_string(), None);
                    stream.write_all(&out)?;
                    return Ok(());
                }
            };
            at += decoded.consumed;
            match decoded.event {
                Some(Event::Message(kind)) => write_message(&mut out, kind, decoder.message(), None),
                Some(Event::Ping) => write_pong(&mut out, decoder.control(), None),
                Some(Event::Close) => {
                    write_close(&mut out, decoder.close_code(), "", None);
                    stream.write_all(&out)?;
                    return Ok(());
                }
                Some(Event::Pong) | None => {}
            }
        }
        stream.write_all(&out)?;
        out.clear();
        (have, at) = (stream.read(&mut input)?, 0);
        if have == 0 {
            return Ok(());
        }
    }
}
