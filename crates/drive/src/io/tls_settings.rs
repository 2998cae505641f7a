//! TLS as a drive speaks it: whom it trusts, what it resumes, and what it says when it fails.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue, WebPkiServerVerifier,
    verify_server_name,
};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    NamedGroup, RootCertStore, SignatureScheme,
};
use tidemark_scenario::plan::{HttpVersion, TlsSettings};

/// HTTP/1.1 in ALPN.
const ALPN_1: &[u8] = b"http/1.1";
/// HTTP/2 in ALPN.
pub(crate) const ALPN_2: &[u8] = b"h2";
/// What is asked of a server of gRPC that does not speak TLS.
pub(crate) const NO_TLS: &str = "is it grpc:// instead of grpcs://?";
/// What is said of a server of HTTP/1.1 that should speak gRPC.
pub(crate) const NO_HTTP_2: &str =
    "the server does not agree to HTTP/2 by ALPN, which gRPC needs; is it REST? https:// drives that";
/// Tickets that a thread keeps for each of its connections: servers send two with each handshake.
const TICKETS_EACH: usize = 2;

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of authorities cannot be used.
    #[error("no certificates in {}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that was named cannot be read at all.
    #[error("cannot read {}: {reason}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The driver's own certificate cannot be used.
    #[error("the client's certificate cannot be used: {}: {reason}", path.display())]
    Client {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// This machine trusts nobody.
    #[error(
        "this machine has no certificates of authorities ({0}); install them (ca-certificates), name a file with \
         --cacert, or go without the check with --insecure"
    )]
    NoRoots(String),
    /// The name cannot be asked for.
    #[error("\"{0}\" is not a name that a certificate can have")]
    Name(String),
    /// The library refused.
    #[error("TLS cannot be set up: {0}")]
    Library(#[from] Error),
}

/// What TLS connections to one server have in common.
#[derive(Clone)]
pub struct Tls {
    config: ClientConfig,
    name: ServerName<'static>,
    resumption: bool,
    ways: Ways,
}

/// How a person says whom to trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    authority: &'static str,
    unchecked: &'static str,
    own: &'static str,
    /// What is asked where a server does not speak TLS.
    plain: &'static str,
    /// What is said where a server takes nothing that ALPN offers.
    version: &'static str,
}

impl Ways {
    /// By flags.
    const FLAGS: Ways = Ways {
        authority: "--cacert FILE",
        unchecked: "--insecure",
        own: "--cert FILE and --key FILE",
        plain: "is it http instead of https?",
        version: "the server does not speak the version of HTTP that is asked for; try --http 1.1, or auto",
    };
    /// Where gRPC is spoken.
    const GRPC: Ways = Ways { plain: NO_TLS, version: NO_HTTP_2, ..Ways::FLAGS };
    /// In a URL of PostgreSQL.
    const POSTGRES: Ways = Ways {
        authority: "sslrootcert=FILE in the URL",
        unchecked: "sslmode=require and no sslrootcert",
        own: "sslcert=FILE and sslkey=FILE in the URL",
        ..Ways::FLAGS
    };
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// For the server at `host`, unless the settings give it another name. Certificates are read here, once.
    ///
    /// # Errors
    /// If there is nobody to trust, or the name cannot be that of a certificate.
    pub fn new(settings: &TlsSettings, host: &str) -> Result<Tls, TlsError> {
        let host = settings.server_name.as_deref().unwrap_or(host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let verifier: Arc<dyn ServerCertVerifier> = match &settings.ca {
            _ if settings.insecure => Arc::new(Unchecked(provider)),
            Some(path) => Arc::new(Named::in_file(path, provider)?),
            None => {
                let usual = WebPkiServerVerifier::builder_with_provider(roots()?.into(), provider).build();
                usual.map_err(|error| TlsError::NoRoots(error.to_string()))?
            }
        };
        let verifier = if settings.any_name { Arc::new(AnyName(verifier)) } else { verifier };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let (chain, key) = own(path, settings.key.as_deref().unwrap_or(path))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| TlsError::Client {
                    path: path.clone(),
                    reason: format!("{error}; does the key belong to it?"),
                })?
            }
        };
        let mut tls = Tls { config, name, resumption: settings.resumption, ways: Ways::FLAGS };
        tls.offer(HttpVersion::One);
        Ok(tls)
    }

    /// With advice for a URL of PostgreSQL, where whom to trust stands in the URL.
    #[must_use]
    pub fn of_postgres(self) -> Tls {
        Tls { ways: Ways::POSTGRES, ..self }
    }

    /// With advice for a URL of gRPC.
    #[must_use]
    pub fn of_grpc(self) -> Tls {
        Tls { ways: Ways::GRPC, ..self }
    }

    /// How a person says whom to trust.
    pub(crate) fn ways(&self) -> Ways {
        self.ways
    }

    /// What is offered by ALPN from now on.
    pub(crate) fn offer(&mut self, version: HttpVersion) {
        let names: &[&[u8]] = match version {
            HttpVersion::One => &[ALPN_1],
            HttpVersion::Two => &[ALPN_2],
            HttpVersion::Auto => &[ALPN_2, ALPN_1],
        };
        self.config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
    }

    /// Nothing is offered by ALPN: what is spoken is no HTTP.
    pub(crate) fn offer_nothing(&mut self) {
        self.config.alpn_protocols.clear();
    }

    /// One handshake over a connection that blocks, offering a version.
    ///
    /// # Errors
    /// What a person has to know who wants to drive this server.
    pub(crate) fn greet(
        &self,
        version: HttpVersion,
        stream: &mut (impl Read + Write),
    ) -> io::Result<ClientConnection> {
        let mut offering = self.clone();
        offering.offer(version);
        offering.shake_hands(stream)
    }

    /// One handshake over a connection that blocks, offering what is offered.
    ///
    /// # Errors
    /// What a person has to know who wants to drive this server.
    pub(crate) fn shake_hands(&self, stream: &mut (impl Read + Write)) -> io::Result<ClientConnection> {
        let told = |error: &Error| io::Error::new(ErrorKind::InvalidData, explain(error, self.ways));
        let mut session = ClientConnection::new(Arc::new(self.config.clone()), self.name.clone())
            .map_err(|error| told(&error))?;
        while session.is_handshaking() {
            session.complete_io(stream).map_err(|error| {
                let silent = "the server does not answer; does it speak TLS there?";
                let closed = "the server closed the connection; does it speak TLS there?";
                match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                    Some(inner) => told(inner),
                    None if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        io::Error::new(ErrorKind::TimedOut, silent)
                    }
                    None if error.kind() == ErrorKind::UnexpectedEof => io::Error::new(error.kind(), closed),
                    None => error,
                }
            })?;
        }
        Ok(session)
    }

    /// What a client of HTTP/1.1 needs that asks a question or two beside a drive.
    pub fn of_http1(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        let mut offering = self.clone();
        offering.offer(HttpVersion::One);
        (Arc::new(offering.config), offering.name)
    }

    /// An error of a handshake, in words for a person who wants to reach this server.
    pub fn explained(error: io::Error) -> io::Error {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(inner) => io::Error::new(ErrorKind::InvalidData, explain(inner, Ways::FLAGS)),
            None => error,
        }
    }

    /// For one thread: the tickets of its `connections` connections are its own.
    pub(crate) fn of_thread(&self, connections: usize) -> (Arc<ClientConfig>, ServerName<'static>) {
        let mut config = self.config.clone();
        config.resumption = match self.resumption {
            true => Resumption::store(Arc::new(Tickets::new(connections * TICKETS_EACH))),
            false => Resumption::disabled(),
        };
        (Arc::new(config), self.name.clone())
    }
}

/// Why a file gives nothing: it cannot be read, or what is `wrong` with what it has.
fn unusable(path: &Path, error: &pem::Error, wrong: impl FnOnce(String) -> TlsError) -> TlsError {
    let pem::Error::Io(io) = error else { return wrong(error.to_string()) };
    let reason = match io.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => io.to_string(),
    };
    TlsError::Unread { path: path.to_owned(), reason }
}

/// The authorities that this machine trusts.
fn roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // One that cannot be used is passed over, as every program does that reads the system's.
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        false => Ok(roots),
        true => {
            let reason = found.errors.first().map_or_else(|| "none found".into(), ToString::to_string);
            Err(TlsError::NoRoots(reason))
        }
    }
}

/// The driver's own certificate, with those that lead to its authority, and its key.
fn own(path: &Path, key: &Path) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let wrong = |path: &Path, reason: String| TlsError::Client { path: path.into(), reason };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unusable(path, &error, |reason| wrong(path, reason)))?;
    if chain.is_empty() {
        return Err(wrong(path, "it has no PEM block of a certificate".into()));
    }
    let read = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        unusable(key, &error, |reason| {
            // it may be the certificate's file, where no other was named
            let hint = if key == path { "; a key in a file of its own is named with --key" } else { "" };
            wrong(key, format!("no key in it ({reason}){hint}"))
        })
    })?;
    Ok((chain, read))
}

/// What a failure of the library means to a person, who says whom to trust in these ways.
pub(crate) fn explain(error: &Error, ways: Ways) -> String {
    let Ways { authority, unchecked, own, plain, version } = ways;
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => format!(
            "the server's certificate is signed by nobody trusted here; name its authority with {authority}, or go \
             without the check with {unchecked}"
        ),
        Error::InvalidCertificate(CertificateError::BadSignature) => format!(
            "the server's certificate names an authority that is trusted here, but was not signed by it; name the \
             right one with {authority}, or go without the check with {unchecked}"
        ),
        error if is_an_authoritys(error) => format!(
            "the server shows the certificate of an authority as its own, which is accepted only where that certificate \
             itself is named with {authority}; or go without the check with {unchecked}"
        ),
        error if has_no_names(error) => format!(
            "the server's certificate has a name only in its subject (there is no subjectAltName), which is accepted only \
             where that certificate itself is named with {authority}; or go without the check with {unchecked}"
        ),
        Error::InvalidCertificate(error) => format!("the server's certificate is not accepted: {error}"),
        Error::InvalidMessage(_) => format!("the server does not speak TLS there; {plain}"),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("the server asks for a certificate of the client; give it one with {own}")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => version.into(),
        Error::AlertReceived(alert) => format!("the server refused it ({alert:?})"),
        Error::PeerIncompatible(why) => format!("the server offers nothing in common ({why:?})"),
        other => other.to_string(),
    }
}

/// Sessions to resume with one server, the oldest forgotten first.
#[derive(Debug)]
struct Tickets {
    kept: Mutex<Kept>,
    most: usize,
}

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn new(most: usize) -> Self {
        Tickets { kept: Mutex::default(), most: most.max(1) }
    }

    /// The lock is one thread's own: it is never waited for.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().session = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().session.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == self.most {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop_back()
    }
}

/// Signatures are looked at by another verifier, which is this field.
macro_rules! signatures_by {
    ($field:tt) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.$field.verify_tls12_signature(message, certificate, signed)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.$field.verify_tls13_signature(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.$field.supported_verify_schemes()
        }
    };
}

/// Trusts the authorities in a file, and takes a server's certificate that stands in it as it is: who names it means it,
/// also where it calls itself an authority's, or has a name only in its subject. curl and OpenSSL do the same.
#[derive(Debug)]
struct Named {
    usual: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Named {
    fn in_file(path: &Path, provider: Arc<CryptoProvider>) -> Result<Named, TlsError> {
        let wrong = |reason: String| TlsError::Authorities { path: path.to_owned(), reason };
        let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let certificates = found.map_err(|error| unusable(path, &error, wrong))?;
        if certificates.is_empty() {
            return Err(wrong("it has no PEM block of one".into()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
        }
        let usual = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
        Ok(Named { usual: usual.map_err(|error| wrong(error.to_string()))?, certificates })
    }
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.usual.verify_server_cert(shown, others, name, ocsp_response, now) {
            Err(error) if self.certificates.iter().any(|one| one.as_ref() == shown.as_ref()) => error,
            usual => return usual,
        };
        // that it is in time was looked at before what it may be used for
        let error = match is_an_authoritys(&error) {
            true => verify_server_name(&ParsedCertificate::try_from(shown)?, name).err(),
            false => Some(error),
        };
        match error.filter(|error| !has_no_names(error)) {
            Some(error) => Err(error),
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    signatures_by!(usual);
}

/// Accepts a certificate that would be accepted but for the name in it.
#[derive(Debug)]
struct AnyName(Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        // the name is looked at last
        match self.0.verify_server_cert(shown, others, name, ocsp_response, now) {
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    signatures_by!(0);
}

/// Whether a certificate is not accepted because it calls itself an authority's.
fn is_an_authoritys(error: &Error) -> bool {
    // the library names this one only by its words
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// Whether a certificate is not accepted because no name is in it but in its subject.
fn has_no_names(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })
        if presented.is_empty())
}

/// Accepts every certificate whose owner holds its key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_ones_own_needs_its_key() {
        let made = rcgen::generate_simple_self_signed(vec!["me.test".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let with = |certificate: PathBuf, key: Option<PathBuf>| {
            let settings =
                TlsSettings { insecure: true, certificate: Some(certificate), key, ..TlsSettings::default() };
            Tls::new(&settings, "localhost").map_err(|error| error.to_string())
        };
        let (alone, own) = (file("a.pem", &certificate), file("key.pem", &key));
        with(alone.clone(), Some(own.clone())).unwrap();
        with(file("both.pem", &format!("{certificate}{key}")), None).unwrap();
        let error = with(alone.clone(), None).unwrap_err();
        assert!(error.contains("--key"), "{error}");
        let error = with(alone.clone(), Some("/no/such/key".into())).unwrap_err();
        assert_eq!(error, "cannot read /no/such/key: there is no such file");
        let error = with("/no/such/cli.pem".into(), None).unwrap_err();
        assert_eq!(error, "cannot read /no/such/cli.pem: there is no such file");
        let error = with(alone.clone(), Some(file("empty.pem", ""))).unwrap_err();
        assert!(error.contains("no key in it") && !error.contains("--key"), "{error}");
        let error = with(own.clone(), None).unwrap_err();
        assert!(error.contains("no PEM block of a certificate"), "{error}");
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let error = with(alone, Some(file("other.pem", &other))).unwrap_err();
        assert!(error.contains("does the key belong to it?"), "{error}");
    }

    #[test]
    fn a_file_without_certificates_and_a_wrong_name_are_told() {
        let settings = TlsSettings { ca: Some("/no/such/file.pem".into()), ..TlsSettings::default() };
        let error = Tls::new(&settings, "localhost").unwrap_err().to_string();
        assert_eq!(error, "cannot read /no/such/file.pem: there is no such file");
        let empty = tempfile::NamedTempFile::new().unwrap();
        let settings = TlsSettings { ca: Some(empty.path().into()), ..TlsSettings::default() };
        let error = Tls::new(&settings, "localhost").unwrap_err().to_string();
        assert!(error.contains("no PEM block"), "{error}");
        let settings = TlsSettings { insecure: true, ..TlsSettings::default() };
        assert!(matches!(Tls::new(&settings, "not a name"), Err(TlsError::Name(_))));
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            Tls::new(&settings, host).unwrap();
        }
    }
}
