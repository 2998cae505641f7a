//! Where requests go, and what is spoken there.

use std::io::{self, Read, Write};

use tidemark_scenario::plan::HttpVersion;

use crate::io::address::Address;
use crate::io::greeted::GreetedIo;
use crate::io::tls::TlsIo;
use crate::io::tls_settings::{ALPN_2, NO_HTTP_2, NO_TLS, Tls};
use crate::io::{BoxedIo, Io};
use crate::protocols::Protocol;
use crate::protocols::http1::Http1;
use crate::protocols::http2::Http2;
use crate::protocols::proxy::Proxy;
use crate::protocols::rpc::{self, Rpc};
use crate::protocols::tls_request;
use crate::protocols::transport::{Client, Origin, Setup, Transport};

/// A connection that blocks.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// Where the requests go.
#[derive(Debug, Clone)]
pub struct Target {
    /// The resolved address: the proxy's where there is one.
    pub address: Address,
    /// Further addresses of the same server, which connections go to in turn with the first.
    pub others: Vec<Address>,
    /// The `Host` header.
    pub authority: String,
    /// Put in front of every path; empty, or begins with `/` and does not end with it.
    pub base_path: String,
    /// Where TLS is spoken.
    pub tls: Option<Tls>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// What stands between, where HTTP is spoken.
    pub proxy: Option<Proxy>,
}

impl Target {
    /// What requests say of it.
    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin {
            authority: &self.authority,
            base_path: &self.base_path,
            is_secured: self.tls.is_some(),
            proxy: self.proxy.as_ref(),
        }
    }

    /// What carries a thread's requests over its sockets, secured where that is wanted.
    pub(crate) fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let needs_tunnel = self.tls.is_some() || self.protocol != Protocol::Http1 || setup.has_websockets();
        match (&self.proxy, &self.tls) {
            (Some(proxy), _) if needs_tunnel => self.through(proxy, io, setup),
            (_, None) => self.protocol.transport(io, setup),
            (_, Some(tls)) => match self.protocol.tls_request() {
                None => {
                    let io: BoxedIo = Box::new(TlsIo::new(io, tls, setup.sockets));
                    self.protocol.transport(io, setup)
                }
                Some(request) => {
                    let io = GreetedIo::new(io, setup.sockets, move || request);
                    let io: BoxedIo = Box::new(TlsIo::new(io, tls, setup.sockets));
                    self.protocol.transport(io, setup)
                }
            },
        }
    }

    /// The same through a tunnel, which each connection asks the proxy for.
    fn through<I: Io + 'static>(&self, proxy: &Proxy, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let (tunnel, sockets) = (proxy.tunnel(&self.authority, self.tls.is_some()), setup.sockets);
        let io = GreetedIo::new(io, sockets, move || tunnel.again());
        // in the tunnel requests are as if there were none
        let setup = Setup { origin: Origin { proxy: None, ..setup.origin }, ..setup };
        match &self.tls {
            None => self.http(Box::new(io), setup),
            Some(tls) => self.http(Box::new(TlsIo::new(io, tls, sockets)), setup),
        }
    }

    /// What carries requests of HTTP.
    fn http(&self, io: BoxedIo, setup: Setup<'_>) -> Box<dyn Transport> {
        match &self.protocol {
            Protocol::Http2(server) => server.transport(io, setup),
            Protocol::Calls(server) => server.transport(io, setup),
            // a proxy stands before no other
            _ => Http1.transport(io, setup),
        }
    }

    /// Asks the proxy for a tunnel, where there is one, over a connection that blocks.
    fn tunnel(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        match &self.proxy {
            Some(proxy) => proxy.connect(&self.authority, self.tls.is_some(), stream),
            None => Ok(()),
        }
    }

    /// Begins to speak with the server, over a connection that blocks, and settles the version of HTTP, where that is
    /// spoken: by ALPN over TLS, else as asked.
    ///
    /// # Errors
    /// What a person has to know who wants to drive this server.
    pub fn greet(&mut self, version: HttpVersion, stream: &mut (impl Read + Write)) -> io::Result<()> {
        if let Protocol::Grpc(_) = self.protocol {
            return self.greet_grpc(stream);
        }
        if !matches!(self.protocol, Protocol::Http1 | Protocol::Http2(_)) {
            return self.speak(stream, |_| ());
        }
        if self.tls.is_some() {
            self.tunnel(stream)?;
        }
        let Some(tls) = &mut self.tls else {
            let speaks_2 = version == HttpVersion::Two;
            self.protocol = if speaks_2 { Protocol::Http2(Http2::greet(stream)?) } else { Protocol::Http1 };
            return Ok(());
        };
        let mut session = tls.greet(version, stream)?;
        let agreed = session.alpn_protocol() == Some(ALPN_2);
        if version == HttpVersion::Two && !agreed {
            let told = "the server does not agree to HTTP/2 by ALPN; ask for 1.1, or for auto";
            return Err(io::Error::new(io::ErrorKind::InvalidData, told));
        }
        let mut secured = rustls::Stream::new(&mut session, stream);
        self.protocol = if agreed { Protocol::Http2(Http2::greet(&mut secured)?) } else { Protocol::Http1 };
        tls.offer(if agreed { HttpVersion::Two } else { HttpVersion::One });
        session.send_close_notify();
        // A last word; whether anybody still hears it does not matter.
        let _ = session.complete_io(stream);
        Ok(())
    }

    /// The same with a server of gRPC, which speaks HTTP/2: over TLS it agrees to that by ALPN.
    fn greet_grpc(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let Protocol::Grpc(server) = &mut self.protocol else { return Ok(()) };
        let Some(tls) = &mut self.tls else { return server.meet((&self.authority, false), stream) };
        let mut session = tls.greet(HttpVersion::Two, stream).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                let words = format!("the server closed the connection in the handshake of TLS; {NO_TLS}");
                io::Error::new(error.kind(), words)
            }
            _ => error,
        })?;
        if session.alpn_protocol() != Some(ALPN_2) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, NO_HTTP_2));
        }
        let mut secured = rustls::Stream::new(&mut session, stream);
        server.meet((&self.authority, true), &mut secured)?;
        tls.offer(HttpVersion::Two);
        session.send_close_notify();
        // A last word; whether anybody still hears it does not matter.
        let _ = session.complete_io(stream);
        Ok(())
    }

    /// Begins to speak with a server that speaks no HTTP, over a connection that blocks, and goes on over it with `with`.
    ///
    /// # Errors
    /// What a person has to know who wants to drive this server.
    pub fn speak<R>(
        &mut self,
        stream: &mut (impl Read + Write),
        with: impl FnOnce(&mut dyn Stream) -> R,
    ) -> io::Result<R> {
        if self.tls.is_some()
            && let Some(request) = self.protocol.tls_request()
        {
            match request.ask(stream)? {
                // A server that speaks it once is not spoken with in clear later: a password would be.
                true => self.protocol.require_tls(),
                false if request.is_optional => self.tls = None,
                false => return Err(tls_request::refused()),
            }
        }
        let Some(tls) = &mut self.tls else {
            self.protocol.greet(stream)?;
            return Ok(with(stream));
        };
        tls.offer_nothing();
        let mut session = tls.shake_hands(stream)?;
        let mut secured = rustls::Stream::new(&mut session, stream);
        self.protocol.greet(&mut secured)?;
        let result = with(&mut secured);
        session.send_close_notify();
        let _ = session.complete_io(stream);
        Ok(result)
    }

    /// Begins to speak with a server that takes remote calls at `path`, over a connection that blocks. It must have
    /// these methods.
    ///
    /// # Errors
    /// What a person has to know who wants to call this server.
    pub fn greet_calls<'m>(
        &mut self,
        path: &str,
        methods: impl Iterator<Item = &'m str>,
        stream: &mut (impl Read + Write),
    ) -> io::Result<()> {
        self.tunnel(stream)?;
        let path = format!("{}{path}", self.base_path);
        let greeting = match &mut self.tls {
            None => rpc::greet(stream, &self.authority, &path, methods)?,
            Some(tls) => {
                let mut session = tls.greet(HttpVersion::One, stream)?;
                let mut secured = rustls::Stream::new(&mut session, stream);
                let greeting = rpc::greet(&mut secured, &self.authority, &path, methods)?;
                tls.offer(HttpVersion::One);
                session.send_close_notify();
                // A last word; whether anybody still hears it does not matter.
                let _ = session.complete_io(stream);
                greeting
            }
        };
        self.protocol = Protocol::Calls(Rpc { path, most_calls: greeting.in_flight_max.max(1) });
        Ok(())
    }
}
