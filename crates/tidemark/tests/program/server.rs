//! A tiny server that keeps what it is sent.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Whole requests as they came, each with the number of its connection.
type Seen = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

pub struct Server {
    pub place: String,
    seen: Seen,
}

impl Server {
    /// Answers 404 under `/missing`, nothing under `/stall`, and 200 elsewhere.
    pub fn start() -> Server {
        Server::answering(|_| ("", "hello"))
    }

    /// The same with these headers and this body for a target.
    pub fn answering(answer: fn(&str) -> (&'static str, &'static str)) -> Server {
        Server::start_at(Ipv4Addr::LOCALHOST.into(), answer)
    }

    /// The same at another address of this machine.
    pub fn start_at(address: IpAddr, answer: fn(&str) -> (&'static str, &'static str)) -> Server {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let seen = Seen::default();
        let server = Server { place, seen: seen.clone() };
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let seen = seen.clone();
                std::thread::spawn(move || serve(stream, number, &seen, answer));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place)
    }

    /// Each request, as text.
    pub fn requests(&self) -> Vec<String> {
        self.raw().iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }

    /// Each request, as it came.
    pub fn raw(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().iter().map(|(_, request)| request.clone()).collect()
    }

    /// The connection that each request came over.
    pub fn connections(&self) -> Vec<usize> {
        self.seen.lock().unwrap().iter().map(|(number, _)| *number).collect()
    }

    pub fn targets(&self) -> Vec<String> {
        self.requests().iter().map(|request| request.split(' ').nth(1).unwrap_or("").to_owned()).collect()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The targets of what has come, which it then forgets.
    pub fn take_targets(&self) -> Vec<String> {
        let targets = self.targets();
        self.forget();
        targets
    }

    /// Forgets what has come.
    pub fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }
}

/// The end of the head.
const BLANK: &[u8] = b"\r\n\r\n";

fn serve(
    mut stream: TcpStream,
    number: usize,
    seen: &Seen,
    answer: fn(&str) -> (&'static str, &'static str),
) {
    let _ = stream.set_nodelay(true);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(BLANK.len()).position(|at| at == BLANK) {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: "));
            let whole = end + BLANK.len() + length.map_or(0, |l| l.parse::<usize>().unwrap());
            if bytes.len() >= whole {
                seen.lock().unwrap().push((number, bytes.drain(..whole).collect()));
                if head.contains(" /stall") {
                    continue;
                }
                let status = if head.contains(" /missing") { "404 Not Found" } else { "200 OK" };
                let (headers, body) = answer(head.split(' ').nth(1).unwrap_or_default());
                let length = body.len();
                // an answer to HEAD has no body
                let body = if head.starts_with("HEAD ") { "" } else { body };
                let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
                if stream.write_all(text.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    }
}
