//! The least server: an event loop in each thread that counts bytes and writes one fixed answer. Nothing is parsed but
//! the first request of a connection, for its length; all that follow on it must be as long. It tells what a load
//! generator and this machine's sockets allow any server at most. As `tidemark serve`, it takes no core from others. With
//! `--work` it computes for each answer: a server whose cost is known (bench/compare).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use clap::Args;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;
use tidemark_store::scheduling::take_no_core_from_others;

use crate::server::request;

const WAKER: Token = Token(usize::MAX);
/// News that are taken at once.
const EVENTS: usize = 1_024;
/// Bytes that are read at once, and most of a request.
const READ_BYTES: usize = 16 << 10;

/// `tidemark-bench floor`
#[derive(Debug, Args)]
pub struct Options {
    /// Where it listens; port 0 takes a free one
    #[arg(long, default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// What it answers, byte by byte: head and body, as `curl -si` prints those of the server it is the floor of
    #[arg(long)]
    answer: PathBuf,
    /// Steps of a computation before each answer; some thousand are a few microseconds
    #[arg(long, default_value_t = 0)]
    work: u64,
}

/// Serves until it is killed.
pub fn run(options: &Options) -> std::io::Result<()> {
    crate::server::raise_open_files();
    let answer: Arc<[u8]> = std::fs::read(&options.answer)?.into();
    take_no_core_from_others();
    let listener = TcpListener::bind(options.listen)?;
    let workers: Vec<_> = (0..options.threads.max(1))
        .map(|_| start(answer.clone(), options.work))
        .collect::<std::io::Result<_>>()?;
    println!("listening http://{}", listener.local_addr()?);
    // connections in turn, so that each thread has as many
    for (given, waker) in workers.iter().cycle() {
        let (stream, _) = listener.accept()?;
        given.send(stream).map_err(std::io::Error::other)?;
        waker.wake()?;
    }
    Ok(())
}

/// Starts a thread; where it is given connections.
fn start(answer: Arc<[u8]>, work: u64) -> std::io::Result<(Sender<std::net::TcpStream>, Waker)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let (given, taken) = channel();
    std::thread::Builder::new().name("floor".into()).spawn(move || {
        if let Err(error) = serve(poll, &taken, &answer, work) {
            eprintln!("bench: {error}");
        }
    })?;
    Ok((given, waker))
}

struct Connection {
    stream: TcpStream,
    /// How long each of its requests is; 0 until the first has come.
    request_bytes: usize,
    /// Of the request that has begun.
    begun_bytes: usize,
}

fn serve(
    mut poll: Poll,
    taken: &Receiver<std::net::TcpStream>,
    answer: &[u8],
    work: u64,
) -> std::io::Result<()> {
    let mut connections: Slab<Connection> = Slab::new();
    let (mut events, mut buffer) = (Events::with_capacity(EVENTS), vec![0; READ_BYTES]);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            if event.token() == WAKER {
                for stream in taken.try_iter() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let mut stream = TcpStream::from_std(stream);
                    let entry = connections.vacant_entry();
                    poll.registry().register(&mut stream, Token(entry.key()), Interest::READABLE)?;
                    entry.insert(Connection { stream, request_bytes: 0, begun_bytes: 0 });
                }
                continue;
            }
            let key = event.token().0;
            if connections.get_mut(key).is_some_and(|connection| !turn(connection, &mut buffer, answer, work))
            {
                connections.remove(key);
            }
        }
    }
}

/// Reads and answers; false when the connection is of no more use. A socket that does not take an answer at once, which
/// a client that waits for each does not let happen, is given up.
fn turn(connection: &mut Connection, buffer: &mut [u8], answer: &[u8], work: u64) -> bool {
    loop {
        let read = match connection.stream.read(buffer) {
            Ok(0) => return false,
            Ok(read) => read,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        if connection.request_bytes == 0 {
            // clients send the first one in one piece
            let Some(first) = request(&buffer[..read]) else { return false };
            connection.request_bytes = first.head_bytes + first.body_bytes;
        }
        connection.begun_bytes += read;
        while connection.begun_bytes >= connection.request_bytes {
            connection.begun_bytes -= connection.request_bytes;
            compute(work);
            if connection.stream.write_all(answer).is_err() {
                return false;
            }
        }
        // less than there was room for: more will be told
        if read < buffer.len() {
            return true;
        }
    }
}

/// So many steps, each of which needs the one before.
fn compute(steps: u64) {
    let mut state = steps;
    for step in 0..steps {
        state = std::hint::black_box(state.rotate_left(5) ^ step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    std::hint::black_box(state);
}
