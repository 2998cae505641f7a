//! A server that does with each request what a test says.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether the connection goes on.
pub enum Then {
    GoOn,
    Close,
}

pub struct Toy {
    pub addr: SocketAddr,
    pub requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Toy {
    /// `answer` gets the stream, the method, the path and the number of the request, from 0. It runs until the test's
    /// process ends.
    pub fn start(answer: impl Fn(&mut TcpStream, &str, &str, usize) -> Then + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let toy = Toy {
            addr: listener.local_addr().unwrap(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let (answer, requests) = (Arc::new(answer), toy.requests.clone());
        let connections = toy.connections.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, requests) = (answer.clone(), requests.clone());
                std::thread::spawn(move || serve(stream, &*answer, &requests));
            }
        });
        toy
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&mut TcpStream, &str, &str, usize) -> Then,
    requests: &AtomicUsize,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    loop {
        let head: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let Some(first) = head.first() else { return };
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        assert!(head.iter().any(|line| line.starts_with("x-deadline-ms: ")), "{head:?}");
        let number = requests.fetch_add(1, Ordering::SeqCst);
        if let Then::Close = answer(&mut stream, method, path, number) {
            // both directions, since the reader has a copy
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// Answers with a text.
pub fn say(stream: &mut TcpStream, text: &str, more: &str) -> Then {
    let answer = format!("HTTP/1.1 200 OK\r\n{more}content-length: {}\r\n\r\n{text}", text.len());
    match stream.write_all(answer.as_bytes()) {
        Ok(()) => Then::GoOn,
        Err(_) => Then::Close,
    }
}
