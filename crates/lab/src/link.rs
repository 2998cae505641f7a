//! The link between the driver and the system, or a store and its clients, for faults that slow or cut it: a proxy on
//! the loopback interface.
//!
//! Only a run with such faults goes through it. While none is on, it hands bytes on as they come; that costs a core's
//! time (in the driver's figures) and some microseconds of each answer, also then. Everything in it is bounded: a
//! direction of a connection holds at most [`CHUNKS`] times [`CHUNK_BYTES`], and reads no more until they are gone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks that wait in a direction of a connection.
const CHUNKS: usize = 64;
/// Most connections; more are reset.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Longest time to reach what is behind it.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long the proxy waits before it accepts again where it could not.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// How the link is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Condition {
    /// Added to what goes either way.
    pub latency: Duration,
    /// Bytes each second in each direction of a connection; none where there is no bound.
    pub bandwidth: Option<u64>,
    /// Share of new connections that are reset, 0 to 1.
    pub refused: f64,
    /// Counts how often all connections were reset.
    pub cuts: u64,
}

/// A link; it ends with this.
#[derive(Debug)]
pub struct Link {
    /// Where one connects to it.
    pub address: SocketAddr,
    condition: watch::Sender<Condition>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// A link to a system, at an address that the kernel chooses.
    pub fn to(system: SocketAddr) -> io::Result<Link> {
        Link::between((Ipv4Addr::LOCALHOST, 0).into(), system)
    }

    /// A link from one address to another.
    pub fn between(address: SocketAddr, to: SocketAddr) -> io::Result<Link> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let (condition, seen) = watch::channel(Condition::default());
        let (over, is_over) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, to, seen) => {}
                    // an error is the sender's end, which says the same
                    _ = is_over => {}
                }
            });
            // connections that are left end with the runtime
        })?;
        Ok(Link { address, condition, over: Some(over), thread: Some(thread) })
    }

    /// Changes how it is.
    pub fn set(&self, change: impl FnOnce(&mut Condition)) {
        self.condition.send_modify(change);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.over.take();
        if let Some(thread) = self.thread.take() {
            // it has nothing to give back
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, system: SocketAddr, seen: watch::Receiver<Condition>) {
    let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((client, _)) = listener.accept().await else {
            sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let refused = seen.borrow().refused;
        let Some(place) = Arc::clone(&places).try_acquire_owned().ok().filter(|_| fastrand::f64() >= refused)
        else {
            reset(&client);
            continue;
        };
        let seen = seen.clone();
        tokio::spawn(async move {
            carry(client, system, seen).await;
            drop(place);
        });
    }
}

/// A connection, until either side ends it or it is cut.
async fn carry(client: TcpStream, system: SocketAddr, seen: watch::Receiver<Condition>) {
    let cuts = seen.borrow().cuts;
    let Ok(Ok(server)) = tokio::time::timeout(CONNECT_MAX, TcpStream::connect(system)).await else {
        // the system is not there: as without a link, the driver's connection breaks
        return reset(&client);
    };
    // without it small answers would wait for acknowledgements
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut watch = seen.clone();
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let both = async {
        tokio::try_join!(
            one_way(client_in, server_out, seen.clone()),
            one_way(server_in, client_out, seen.clone())
        )
    };
    tokio::select! {
        _ = both => {}
        // the halves are dropped with `both`, after they were told to reset
        _ = watch.wait_for(|condition| condition.cuts != cuts) => {}
    }
}

/// What is read, and when it came; nothing where the sender sends no more.
type Chunk = (Instant, Vec<u8>);

/// Carries bytes in one direction. A connection that breaks, or is cut, is reset on the other side, too.
async fn one_way(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    seen: watch::Receiver<Condition>,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel::<Chunk>(CHUNKS);
    let mut ends = Ends { from, to: Some(to) };
    let Ends { from, to: Some(to) } = &mut ends else { return Ok(()) };
    tokio::try_join!(read(from, sender), write(to, receiver, seen))?;
    // carried to its end: nothing to reset
    ends.to = None;
    Ok(())
}

/// Both ends of a direction; reset when dropped, unless it was carried to its end.
struct Ends {
    from: OwnedReadHalf,
    /// None once it was closed in order.
    to: Option<OwnedWriteHalf>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            reset(self.from.as_ref());
            reset(to.as_ref());
            // dropped otherwise, it would say an orderly end first
            to.forget();
        }
    }
}

async fn read(from: &mut OwnedReadHalf, sender: mpsc::Sender<Chunk>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 || sender.send((Instant::now(), buffer[..read].to_vec())).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    to: &mut OwnedWriteHalf,
    mut chunks: mpsc::Receiver<Chunk>,
    mut seen: watch::Receiver<Condition>,
) -> io::Result<()> {
    let mut free_at = Instant::now();
    while let Some((came, bytes)) = chunks.recv().await {
        let read_at = Instant::now();
        loop {
            let Condition { latency, bandwidth, .. } = *seen.borrow_and_update();
            // the line is taken for as long as these bytes need, then for the next
            let takes = |per_s: u64| Duration::from_secs_f64(bytes.len() as f64 / per_s.max(1) as f64);
            let passed_at = bandwidth.map(|per_s| free_at.max(read_at) + takes(per_s));
            let due = passed_at.unwrap_or(came).max(came + latency);
            if due > Instant::now() {
                tokio::select! {
                    () = sleep_until(due) => {}
                    // what waits feels the change at once
                    Ok(()) = seen.changed() => continue,
                }
            }
            free_at = passed_at.unwrap_or(free_at);
            break;
        }
        to.write_all(&bytes).await?;
    }
    to.shutdown().await
}

/// Has a connection reset when it is closed.
fn reset(stream: &TcpStream) {
    // where it is gone already there is nothing to reset
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener as Listener, TcpStream as Stream};

    use super::*;

    /// A server that sends back what it gets, and a link to it.
    fn link() -> Link {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(listener.local_addr().unwrap()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut own = stream.try_clone().unwrap();
                    let _ = io::copy(&mut own, &mut stream);
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                });
            }
        });
        link
    }

    fn connect(link: &Link) -> Stream {
        let stream = Stream::connect(link.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    fn echo(stream: &mut Stream, bytes: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(bytes)?;
        let mut back = vec![0; bytes.len()];
        stream.read_exact(&mut back)?;
        Ok(back)
    }

    #[test]
    fn bytes_go_both_ways_and_so_do_ends() {
        let link = link();
        let mut stream = connect(&link);
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        let mut sender = stream.try_clone().unwrap();
        let sent = bytes.clone();
        let thread = std::thread::spawn(move || {
            sender.write_all(&sent).unwrap();
            sender.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        thread.join().unwrap();
        assert!(back == bytes, "{} of {}", back.len(), bytes.len());
    }

    #[test]
    fn a_slow_link_takes_its_time() {
        let link = link();
        let mut stream = connect(&link);
        echo(&mut stream, b"warm").unwrap();
        link.set(|condition| condition.latency = Duration::from_millis(60));
        let begin = std::time::Instant::now();
        echo(&mut stream, b"x").unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(120), "{:?}", begin.elapsed());
        link.set(|condition| {
            *condition = Condition { bandwidth: Some(100_000), cuts: condition.cuts, ..Condition::default() };
        });
        let begin = std::time::Instant::now();
        echo(&mut stream, &[7; 20_000]).unwrap();
        // 20 kB there; most of the way back goes on at the same time
        assert!(begin.elapsed() >= Duration::from_millis(200), "{:?}", begin.elapsed());
    }

    #[test]
    fn what_waits_feels_the_end_of_a_fault() {
        let link = link();
        let mut stream = connect(&link);
        link.set(|condition| condition.bandwidth = Some(1));
        let begin = std::time::Instant::now();
        let thread = std::thread::spawn(move || echo(&mut stream, &[1; 10_000]).map(|back| back.len()));
        std::thread::sleep(Duration::from_millis(50));
        link.set(|condition| condition.bandwidth = None);
        assert_eq!(thread.join().unwrap().unwrap(), 10_000);
        assert!(begin.elapsed() < Duration::from_secs(1_000), "at 1 byte a second it would take hours");
    }

    #[test]
    fn a_cut_resets_what_there_is_and_what_comes() {
        let link = link();
        let mut stream = connect(&link);
        echo(&mut stream, b"warm").unwrap();
        link.set(|condition| {
            condition.refused = 1.0;
            condition.cuts += 1;
        });
        let error = echo(&mut stream, b"x").and_then(|_| echo(&mut stream, b"x")).unwrap_err();
        assert!(
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
            "{error}"
        );
        let refused = Stream::connect(link.address).and_then(|mut stream| echo(&mut stream, b"x"));
        assert!(refused.is_err());
        link.set(|condition| condition.refused = 0.0);
        assert_eq!(echo(&mut connect(&link), b"again").unwrap(), b"again");
    }

    #[test]
    fn without_a_system_a_connection_breaks() {
        let nobody = Listener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(nobody.local_addr().unwrap()).unwrap();
        drop(nobody);
        assert!(echo(&mut connect(&link), b"x").is_err());
    }
}
