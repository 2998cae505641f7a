//! A store that keeps what it is sent and shows it page by page, over whatever carries bytes; it may lose on purpose.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Contents on a page.
const PAGE: usize = 500;

/// A store: `POST /n` keeps its body unless it is one of those that are lost, `GET /all?from=N` shows a page.
pub struct Store {
    pub url: String,
    kept: Arc<Mutex<Stored>>,
}

#[derive(Default)]
pub struct Stored {
    pub contents: Vec<String>,
    pub posts: u64,
    /// Of each so many writes one is acknowledged and not kept; none if 0.
    lose_each: u64,
    /// Whether it answers no question any more.
    pub gone: bool,
}

impl Store {
    /// Over TCP.
    pub fn start(lose_each: u64) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let store = Store { url, kept: Arc::new(Mutex::new(Stored { lose_each, ..Stored::default() })) };
        store.serve(move || Some(listener.accept().ok()?.0));
        store
    }

    /// Over TLS.
    pub fn start_tls(config: ServerConfig) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let store =
            Store { url: format!("https://{}", listener.local_addr().unwrap()), kept: Arc::default() };
        let config = Arc::new(config);
        store.serve(move || {
            let session = ServerConnection::new(config.clone()).ok()?;
            Some(StreamOwned::new(session, listener.accept().ok()?.0))
        });
        store
    }

    /// On a unix socket; what the URL names is not there.
    pub fn start_unix(path: &Path) -> Store {
        let listener = UnixListener::bind(path).unwrap();
        let store = Store { url: "http://store.test".into(), kept: Arc::default() };
        store.serve(move || Some(listener.accept().ok()?.0));
        store
    }

    fn serve<S: Read + Write + Send + 'static>(&self, mut next: impl FnMut() -> Option<S> + Send + 'static) {
        let shared = Arc::clone(&self.kept);
        std::thread::spawn(move || {
            while let Some(stream) = next() {
                let kept = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
    }

    pub fn kept(&self) -> MutexGuard<'_, Stored> {
        self.kept.lock().unwrap()
    }

    pub fn count(&self) -> usize {
        self.kept().contents.len()
    }
}

/// Answers until the other side is done.
fn serve(stream: impl Read + Write, kept: &Mutex<Stored>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        stream.read_line(&mut first).ok().filter(|read| *read > 0)?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let answer = kept.lock().unwrap().answer(&first, body)?;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.get_mut().write_all((head + &answer).as_bytes()).ok()?;
        stream.get_mut().flush().ok()?;
    }
}

impl Stored {
    fn answer(&mut self, first: &str, body: Vec<u8>) -> Option<String> {
        let path = first.split(' ').nth(1)?;
        if first.starts_with("POST") {
            self.posts += 1;
            if self.lose_each == 0 || !self.posts.is_multiple_of(self.lose_each) {
                self.contents.push(String::from_utf8(body).ok()?);
            }
            return Some("OK".into());
        }
        if self.gone {
            return None;
        }
        if path == "/count" {
            return Some(self.contents.len().to_string());
        }
        let from: usize = path.split_once("from=").map_or(Some(0), |(_, from)| from.parse().ok())?;
        let page: Vec<_> = self.contents.iter().skip(from).take(PAGE).collect();
        let next = (from + PAGE < self.contents.len()).then_some(from + PAGE);
        Some(serde_json::json!({"items": page, "next": next}).to_string())
    }
}

/// How all that a [`Store`] holds is read back.
pub const VERIFY: &str =
    "verify: {count: /count, contents: {GET: /all, items: '$.items[*]', next: {json: $.next}, as: from}}";

/// Writes `s.yaml`: 400 writes a second for two seconds, each entered in the ledger. `system` is its URL and what
/// belongs to it, as a flow mapping has them; `rest` comes behind.
pub fn scenario(folder: &Path, system: &str, rest: &str) {
    let text = format!(
        "system: {{url: {system}}}
sessions:
  a:
    steps:
      - POST: /n
        ledger: {{content: 'at ${{now()}} |${{entry}}|${{check}}| \"quoted\"', as: note}}
        body: ${{note}}
        check: {{status: 200}}
load: {{rate: 400/s, hold: 2s}}
{rest}
"
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}
