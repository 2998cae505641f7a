//! A small server whose answers a test decides.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is answered.
#[derive(Default)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut: bool,
    none: bool,
    die: bool,
}

impl Answer {
    pub fn ok(body: String) -> Answer {
        Answer::bytes(body.into_bytes())
    }

    pub fn bytes(body: Vec<u8>) -> Answer {
        Answer { status: 200, body, ..Answer::default() }
    }

    pub fn status(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }

    pub fn with(mut self, name: &str, value: String) -> Answer {
        self.headers.push((name.into(), value));
        self
    }

    /// All but the last byte, then the connection is closed.
    pub fn cut(mut self) -> Answer {
        self.cut = true;
        self
    }

    /// The connection is closed without a word.
    pub fn none() -> Answer {
        Answer { none: true, ..Answer::default() }
    }

    /// The same, and nobody is answered any more.
    pub fn die() -> Answer {
        Answer { none: true, die: true, ..Answer::default() }
    }
}

/// `[{"name": "…"}, …]`, each content once.
pub fn json_list(name: &str, contents: &[&[u8]]) -> String {
    let item = |content: &&[u8]| {
        let text = String::from_utf8_lossy(content).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{{\"other\": 1, \"{name}\": \"{text}\"}}")
    };
    format!("[{}]", contents.iter().map(item).collect::<Vec<_>>().join(", "))
}

/// Listens until it is dropped.
pub struct Server {
    pub url: String,
    address: std::net::SocketAddr,
    over: Arc<AtomicBool>,
}

impl Server {
    pub fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, over) = (Arc::new(answer), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&over);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (answer, over) = (Arc::clone(&answer), Arc::clone(&is_over));
                std::thread::spawn(move || serve(stream.unwrap(), &*answer, &over));
            }
        });
        Server { url: format!("http://{address}"), address, over }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&str) -> Answer, over: &AtomicBool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            line.clear();
        }
        let answer = answer(first.split(' ').nth(1).unwrap());
        if answer.die {
            over.store(true, Ordering::SeqCst);
        }
        if answer.none || over.load(Ordering::SeqCst) {
            return;
        }
        let mut bytes = format!("HTTP/1.1 {} x\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            bytes += &format!("{name}: {value}\r\n");
        }
        let mut bytes = [bytes.as_bytes(), b"\r\n", &answer.body[..]].concat();
        bytes.truncate(bytes.len() - usize::from(answer.cut));
        if writer.write_all(&bytes).is_err() || answer.cut {
            return;
        }
    }
}
