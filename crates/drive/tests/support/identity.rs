//! Certificates made for the tests, and the settings that trust them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tempfile::NamedTempFile;
use tidemark_scenario::plan::TlsSettings;

/// Whom the certificates are for.
pub const NAME: &str = "shop.test";

/// A certificate for [`NAME`] and the file of its authority.
pub struct Identity {
    pub config: Arc<ServerConfig>,
    pub authority: NamedTempFile,
}

impl Identity {
    /// Settings that trust its authority alone.
    pub fn trusted(&self) -> TlsSettings {
        TlsSettings { ca: Some(self.authority.path().into()), ..TlsSettings::default() }
    }

    /// The same, offering other protocols by ALPN.
    pub fn speaking(self, protocols: &[&str]) -> Identity {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Identity { config: Arc::new(config), ..self }
    }
}

/// An authority and the PEM text of its certificate.
fn authority() -> (Issuer<'static, KeyPair>, rcgen::Certificate) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Each has its own name, so that one that is not known is told from one that is forged.
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let name = format!("authority {} of this test", MADE.fetch_add(1, Ordering::Relaxed));
    authority.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    (Issuer::new(authority, key), certificate)
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

pub fn identity(versions: &[&'static SupportedProtocolVersion]) -> Identity {
    make(versions, None)
}

pub fn identity_13() -> Identity {
    identity(&[&rustls::version::TLS13])
}

/// One whose server asks for a certificate, and a file with one that it accepts and its key.
pub fn identity_asking() -> (Identity, NamedTempFile) {
    let (issuer, certificate) = authority();
    let key = KeyPair::generate().unwrap();
    let own =
        CertificateParams::new(vec!["client.test".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let identity = make(&[&rustls::version::TLS13], Some(roots));
    (identity, file(&format!("{}{}", own.pem(), key.serialize_pem())))
}

fn make(versions: &[&'static SupportedProtocolVersion], clients: Option<RootCertStore>) -> Identity {
    let (issuer, root) = authority();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![NAME.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions).unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Identity { config: Arc::new(config), authority: file(&root.pem()) }
}
