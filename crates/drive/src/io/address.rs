//! Addresses that are known before the drive begins, and sockets to them. No name is looked up while it runs.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// An address that connections are made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A unix socket of this machine.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Makes sockets: all to one address, unless some are [pointed](Dialer::point) elsewhere.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// In the kernel's form; an error where it has none.
    address: Result<SockAddr, (io::ErrorKind, String)>,
    is_unix: bool,
    /// All other addresses, each once. They stay where they are: the kernel may have been told to look there.
    #[allow(clippy::vec_box, reason = "they are not moved when there are more")]
    others: Vec<Box<SockAddr>>,
    /// By connection, which of them is meant.
    elsewhere: Vec<Option<usize>>,
    /// Addresses of the loopback, from 127.0.0.1 on, that sockets are bound to in turn; with one, the system chooses.
    sources: usize,
    next_source: Cell<usize>,
}

impl Dialer {
    /// To this address, from so many of the loopback's where that is where it goes.
    pub fn new(address: &Address, sources: usize) -> Self {
        let (address, is_unix) = match address {
            Address::Tcp(address) => (Ok((*address).into()), false),
            Address::Unix(path) => {
                (SockAddr::unix(path).map_err(|error| (error.kind(), error.to_string())), true)
            }
        };
        Dialer {
            address,
            is_unix,
            others: Vec::new(),
            elsewhere: Vec::new(),
            sources,
            next_source: Cell::new(0),
        }
    }

    /// From now on a connection of this number, which is not being made, goes there.
    pub fn point(&mut self, connection: usize, address: SocketAddr) {
        self.point_to(connection, address.into());
    }

    /// Connections of these numbers go there.
    ///
    /// # Errors
    /// The kernel has no form for it.
    pub fn point_all(&mut self, connections: Range<usize>, address: &Address) -> io::Result<()> {
        let address = match address {
            Address::Tcp(address) => (*address).into(),
            Address::Unix(path) => SockAddr::unix(path)?,
        };
        connections.for_each(|connection| self.point_to(connection, address.clone()));
        Ok(())
    }

    fn point_to(&mut self, connection: usize, address: SockAddr) {
        if self.elsewhere.len() <= connection {
            self.elsewhere.resize(connection + 1, None);
        }
        let known = self.others.iter().position(|other| **other == address);
        self.elsewhere[connection] = Some(known.unwrap_or_else(|| {
            self.others.push(Box::new(address));
            self.others.len() - 1
        }));
    }

    fn elsewhere(&self, connection: usize) -> Option<&SockAddr> {
        Some(&self.others[(*self.elsewhere.get(connection)?)?])
    }

    fn goes_to_unix(&self, connection: usize) -> bool {
        self.elsewhere(connection).map_or(self.is_unix, SockAddr::is_unix)
    }

    /// The source of the next socket, where it is not the system that chooses.
    fn source(&self) -> Option<SocketAddr> {
        if self.sources < 2 {
            return None;
        }
        let turn = self.next_source.get();
        self.next_source.set((turn + 1) % self.sources);
        Some(SocketAddr::from(([127, 0, 0, 1 + turn as u8], 0)))
    }

    /// Where a connection goes, in the kernel's form, where that has one.
    #[cfg(target_os = "linux")]
    pub fn address(&self, connection: usize) -> Option<&SockAddr> {
        self.elsewhere(connection).or(self.address.as_ref().ok())
    }

    /// A socket for whoever lets the kernel wait, and whether its connection is there already; else it has not begun.
    #[cfg(target_os = "linux")]
    pub fn dial_blocking(&self, connection: usize) -> io::Result<(Socket, bool)> {
        // A unix socket's connection is there at once, or not at all.
        match self.goes_to_unix(connection) {
            true => Ok((self.dial(connection)?, true)),
            false => Ok((self.socket(connection)?, false)),
        }
    }

    /// A socket that is not connected.
    fn socket(&self, connection: usize) -> io::Result<Socket> {
        let address = self.known_address(connection)?;
        let is_unix = self.goes_to_unix(connection);
        let protocol = (!is_unix).then_some(socket2::Protocol::TCP);
        let domain = if is_unix { Domain::UNIX } else { address.domain() };
        let socket = Socket::new(domain, Type::STREAM, protocol)?;
        if !is_unix {
            socket.set_tcp_nodelay(true)?;
        }
        let is_near =
            address.as_socket().is_some_and(|to| matches!(to.ip(), IpAddr::V4(to) if to.is_loopback()));
        if let Some(source) = is_near.then(|| self.source()).flatten() {
            socket.bind(&source.into())?;
        }
        Ok(socket)
    }

    fn known_address(&self, connection: usize) -> io::Result<&SockAddr> {
        match self.elsewhere(connection) {
            Some(address) => Ok(address),
            None => self.address.as_ref().map_err(|(kind, text)| io::Error::new(*kind, text.clone())),
        }
    }

    /// A socket that does not block and whose connection has begun, or is there already.
    pub fn dial(&self, connection: usize) -> io::Result<Socket> {
        let socket = self.socket(connection)?;
        socket.set_nonblocking(true)?;
        match socket.connect(self.known_address(connection)?) {
            Err(e) if Errno::from_io_error(&e) == Some(Errno::INPROGRESS) => {}
            // A unix socket does not wait in line: it is refused at once, and nothing would ever tell of it.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.goes_to_unix(connection) => {
                return Err(io::Error::new(e.kind(), "the queue of the unix socket's listener is full"));
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
            Ok(()) => {}
        }
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_for_persons() {
        let tcp = |text: &str| Address::from(text.parse::<SocketAddr>().unwrap()).to_string();
        assert_eq!(tcp("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(tcp("[::1]:80"), "[::1]:80");
        assert_eq!(Address::Unix("/tmp/x.sock".into()).to_string(), "unix:/tmp/x.sock");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn sources_are_taken_in_turn() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let from = |sources| {
            let dialer = Dialer::new(&address, sources);
            let peer = |_| {
                let _socket = dialer.dial(0).unwrap();
                listener.accept().unwrap().1.ip().to_string()
            };
            (0..4).map(peer).collect::<Vec<_>>()
        };
        assert_eq!(from(1), ["127.0.0.1"; 4]);
        assert_eq!(from(3), ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1"]);
    }

    #[test]
    fn a_connection_may_be_pointed_elsewhere() {
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (listen(), listen());
        let mut dialer = Dialer::new(&Address::Tcp(one.local_addr().unwrap()), 1);
        dialer.point(2, other.local_addr().unwrap());
        let goes_to = |connection| {
            let socket = dialer.dial(connection).unwrap();
            socket.peer_addr().unwrap().as_socket().unwrap()
        };
        assert_eq!(goes_to(1), one.local_addr().unwrap());
        assert_eq!(goes_to(2), other.local_addr().unwrap());
    }

    #[test]
    fn a_path_that_is_no_socket_address_is_an_error() {
        let error = Dialer::new(&Address::Unix("/x".repeat(200).into()), 1).dial(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        let error = Dialer::new(&Address::Unix("/no/such/socket".into()), 1).dial(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}
