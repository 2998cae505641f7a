//! A way to a shipped system over TLS, as a proxy in front of it makes one: it takes TLS and hands on what is in it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

/// The name in its certificate.
pub const NAME: &str = "secured.test";

/// The way; closed when dropped.
pub struct Secured {
    /// Where it takes TLS.
    pub address: SocketAddr,
    _runtime: Runtime,
}

impl Secured {
    /// A way to `authority`; whom to trust is written to `ca`.
    pub fn in_front_of(authority: &str, ca: &Path) -> Secured {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).expect("a certificate");
        std::fs::write(ca, made.cert.pem()).expect("written");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate with its key");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(take(listener, TlsAcceptor::from(Arc::new(config)), authority.to_owned()));
        Secured { address, _runtime: runtime }
    }
}

async fn take(listener: TcpListener, acceptor: TlsAcceptor, authority: String) {
    while let Ok((outside, _)) = listener.accept().await {
        let (acceptor, authority) = (acceptor.clone(), authority.clone());
        tokio::spawn(async move {
            // a handshake that fails, and a connection that is cut, are for the client to tell
            let Ok(mut outside) = acceptor.accept(outside).await else { return };
            let Ok(mut inside) = TcpStream::connect(&authority).await else { return };
            let _ = copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}
