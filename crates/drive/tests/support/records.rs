//! A store of records that speaks Redis' protocol, SET and GET, and lies as told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tidemark_wire::resp::{Keep, ReplyDecoder, ReplyLimits};

use super::websocket::listen;

/// What was written under each key, from the first on.
pub type Written = HashMap<String, Vec<String>>;

/// A store that answers a GET with what `told` makes of all that was written, given the key; `meet` is called by each thread of
/// it.
pub fn server(
    meet: impl Fn() + Send + Sync + 'static,
    told: impl Fn(&str, &Written) -> Option<String> + Send + Sync + 'static,
) -> SocketAddr {
    let written = Arc::new(Mutex::new(Written::new()));
    listen(None, move |stream| {
        meet();
        let mut decoder = ReplyDecoder::new(ReplyLimits::default());
        let (mut buffer, mut out) = ([0; 4096], Vec::new());
        while let Ok(bytes @ 1..) = std::io::Read::read(stream, &mut buffer) {
            let mut received = &buffer[..bytes];
            while !received.is_empty() {
                let decoded = decoder.decode(received).unwrap();
                received = &received[decoded.consumed..];
                if decoded.complete {
                    let words: Vec<&str> =
                        std::str::from_utf8(decoder.body()).unwrap().split('"').skip(1).step_by(2).collect();
                    let mut written = written.lock().unwrap();
                    match words[..] {
                        ["SET", key, value] => {
                            let all = written.entry(key.to_owned()).or_default();
                            // as many as a lie may take, so that this stays small
                            if all.len() == 8 {
                                all.remove(0);
                            }
                            all.push(value.to_owned());
                            out.extend_from_slice(b"+OK\r\n");
                        }
                        ["GET", key] => match told(key, &written) {
                            Some(value) => {
                                out.extend_from_slice(format!("${}\r\n{value}\r\n", value.len()).as_bytes());
                            }
                            None => out.extend_from_slice(b"$-1\r\n"),
                        },
                        _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
                    }
                    decoder.start(Keep::All);
                }
            }
            if std::io::Write::write_all(stream, &out).is_err() {
                return;
            }
            out.clear();
        }
    })
}

/// What was written last.
pub fn newest(key: &str, written: &Written) -> Option<String> {
    written.get(key)?.last().cloned()
}
