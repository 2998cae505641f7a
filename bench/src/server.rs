//! The server that every tool is held against: as fast as it can be made simply, so that it is not the limit.
//!
//! Threads with an event loop each, a connection belongs to one of them, answers are constants. It counts what it
//! answered, so that nobody has to believe a client's count.

mod answers;
mod connection;
mod worker;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::Args;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

pub use answers::request;

/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 65_535;

/// `tidemark-bench serve`
#[derive(Debug, Args)]
pub struct Options {
    /// Where it listens; port 0 takes a free one
    #[arg(long, default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Speaks TLS 1.3 with a certificate made at its start, and resumes
    #[arg(long)]
    tls: bool,
}

/// What all threads count together; each adds once for each batch of events.
#[derive(Debug, Default)]
struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
    resumed: AtomicU64,
    /// Microseconds since the start of the first and the last answer; none yet: the first is `u64::MAX`.
    first_us: AtomicU64,
    last_us: AtomicU64,
    stop: AtomicBool,
}

/// Serves until standard input ends.
pub fn run(options: &Options) -> std::io::Result<()> {
    raise_open_files();
    let tls = if options.tls { Some(Arc::new(tls_config()?)) } else { None };
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(options.listen), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&options.listen.into())?;
    socket.listen(BACKLOG)?;
    let listener: std::net::TcpListener = socket.into();
    let address = listener.local_addr()?;

    let seen = Arc::new(Seen { first_us: AtomicU64::new(u64::MAX), ..Seen::default() });
    let workers: Vec<worker::Inbox> = (0..options.threads.max(1))
        .map(|_| worker::start(Arc::clone(&seen), tls.clone()))
        .collect::<std::io::Result<_>>()?;
    let accepted = Arc::clone(&seen);
    std::thread::spawn(move || {
        let mut turn = 0;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    accepted.connections.fetch_add(1, Ordering::Relaxed);
                    workers[turn % workers.len()].give(stream);
                    turn += 1;
                }
                // too many open files: those that wait stay where they are
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
    });
    println!("listening {address}");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    seen.stop.store(true, Ordering::Relaxed);
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let object = serde_json::json!({
        "requests": of(&seen.requests),
        "connections": of(&seen.connections),
        "resumed": of(&seen.resumed),
        "active_us": of(&seen.last_us).saturating_sub(of(&seen.first_us)),
    });
    println!("{object}");
    Ok(())
}

/// As many connections as the system lets it have.
pub fn raise_open_files() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    // where it may not, it goes on with what it has
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}

fn tls_config() -> std::io::Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])
        .map_err(std::io::Error::other)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(std::io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(std::io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(std::io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(std::io::Error::other)?;
    Ok(config)
}
