//! The first words with a server that shall take calls, over a connection that blocks.

use std::io::{self, ErrorKind, Read, Write};

use tidemark_wire::rpc::Greeting;
use tidemark_wire::websocket::NORMAL;

use super::call::Reply;
use super::link::{Endpoint, Link, number_of};

/// Bytes read at once.
const RECEIVE_BYTES: usize = 4 << 10;
/// Largest payload, which no greeting comes near to.
const PAYLOAD_BYTES: usize = 1 << 20;

/// Asks for the WebSocket at `path` and waits for the greeting, which must name these methods.
///
/// # Errors
/// What a person has to know who wants to call this server.
pub(crate) fn greet<'m>(
    stream: &mut (impl Read + Write),
    authority: &str,
    path: &str,
    mut methods: impl Iterator<Item = &'m str>,
) -> io::Result<Greeting> {
    let endpoint = Endpoint { authority: authority.into(), path: path.into() };
    let (mut link, mut random) = (Link::new(PAYLOAD_BYTES), fastrand::Rng::new());
    link.ask(&endpoint, &mut random).map_err(|loss| loss.error)?;
    stream.write_all(&link.out)?;
    stream.flush()?;
    let (mut bytes, mut reply) = ([0; RECEIVE_BYTES], Reply::default());
    let greeting = loop {
        let received = stream.read(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                io::Error::new(ErrorKind::TimedOut, format!("the server does not answer at {path}"))
            }
            _ => error,
        })?;
        if received == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        link.read(&bytes[..received], &mut 0, &mut reply, &mut random).map_err(|loss| loss.error)?;
        if let Some(greeting) = link.greeting() {
            break greeting;
        }
    };
    let mut last_word = Vec::new();
    Link::write_last_word(NORMAL, &mut last_word, &mut random);
    // Whether anybody still hears it does not matter.
    let _ = stream.write_all(&last_word).and_then(|()| stream.flush());
    match methods.find_map(|method| number_of(greeting, method).err()) {
        Some(words) => Err(io::Error::new(ErrorKind::InvalidInput, words)),
        None => Ok(greeting.clone()),
    }
}
