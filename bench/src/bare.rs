//! The least loops that could drive the server: send a fixed request, read, count. No parsing, no record, and where they
//! have no schedule, no clock for each request. What a load generator is held against: what sockets allow one that looks as soon as something came.

mod epoll;
#[cfg(target_os = "linux")]
mod open;
#[cfg(target_os = "linux")]
mod uring;

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use clap::ValueEnum;

/// What is sent.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
/// Bytes of a connection's buffer; an answer fits.
const ANSWER_BYTES: usize = 512;

/// How a loop waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Io {
    /// epoll, or its kin on other systems
    Epoll,
    /// `io_uring`
    Uring,
}

/// Keeps a rate, then prints what it came to.
#[cfg(target_os = "linux")]
pub fn open(
    address: SocketAddr,
    connections: usize,
    rate: f64,
    seconds: f64,
    spin: bool,
) -> std::io::Result<()> {
    if !(rate.is_finite() && rate > 0.0) {
        return Err(std::io::Error::other("the rate is above 0"));
    }
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0));
    let open::Open { answers, p50_us, cpu_s } =
        open::drive(connect(address, connections)?, rate, time, spin)?;
    println!("{}", serde_json::json!({ "answers": answers, "p50_us": p50_us, "cpu_s": cpu_s }));
    Ok(())
}

/// Keeps a rate, then prints what it came to.
#[cfg(not(target_os = "linux"))]
pub fn open(_: SocketAddr, _: usize, _: f64, _: f64, _: bool) -> std::io::Result<()> {
    Err(std::io::Error::other("its timers are Linux's"))
}

/// Drives, then prints how many answers came.
pub fn run(io: Io, address: SocketAddr, connections: usize, seconds: f64) -> std::io::Result<()> {
    crate::server::raise_open_files();
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0));
    let sockets = connect(address, connections)?;
    let answers = match io {
        Io::Epoll => epoll::drive(sockets, time)?,
        #[cfg(target_os = "linux")]
        Io::Uring => uring::drive(&sockets, time)?,
        #[cfg(not(target_os = "linux"))]
        Io::Uring => return Err(std::io::Error::other("io_uring is Linux's")),
    };
    println!("{}", serde_json::json!({ "answers": answers }));
    Ok(())
}

fn connect(address: SocketAddr, connections: usize) -> std::io::Result<Vec<TcpStream>> {
    let one = || {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(socket)
    };
    (0..connections).map(|_| one()).collect()
}
