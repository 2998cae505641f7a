//! The least HTTPS server that answers: a thread for each connection, a certificate made at its start.
//!
//! `cargo run --release --example tiny_tls_server -- 127.0.0.1:18443`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:18443".to_owned());
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let config = Arc::new(config);
    for socket in TcpListener::bind(address)?.incoming() {
        let (socket, connection) = (socket?, ServerConnection::new(config.clone())?);
        socket.set_nodelay(true)?;
        std::thread::spawn(move || serve(StreamOwned::new(connection, socket)));
    }
    Ok(())
}

/// Answers each request; one comes in one piece.
fn serve(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|n| buffer[..n].ends_with(b"\r\n\r\n")) {
        if stream.write_all(ANSWER).is_err() {
            return;
        }
    }
}
