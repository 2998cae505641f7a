//! An address at which nobody is.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port that is taken, so that nobody else gets it, and at which nobody listens: every connection is refused.
#[derive(Debug)]
pub struct Refusing {
    socket: Socket,
}

impl Refusing {
    /// Takes a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the system does not give one.
    pub fn start() -> io::Result<Refusing> {
        Refusing::at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Takes this port, also beside a [`Server`](crate::Server) of the same process.
    pub(crate) fn at(address: SocketAddr) -> io::Result<Refusing> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(Refusing { socket })
    }

    /// Where nobody is.
    ///
    /// # Errors
    /// If the system does not say it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?.as_socket();
        address.ok_or_else(|| io::Error::other("the address is none of the Internet"))
    }

    /// From now on somebody is.
    pub(crate) fn listen(self, backlog: i32) -> io::Result<mio::net::TcpListener> {
        self.socket.listen(backlog)?;
        Ok(mio::net::TcpListener::from_std(self.socket.into()))
    }
}
