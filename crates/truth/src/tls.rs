//! TLS with a certificate made on the spot.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

/// For `localhost` and 127.0.0.1; nobody trusts it.
pub(crate) fn config() -> io::Result<Arc<ServerConfig>> {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
        });
    config.map(Arc::new).map_err(io::Error::other)
}
