//! `tidemark hit` over TLS, on the real executable: whom it trusts, and what it says where it does not.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use crate::program::{code, run, stderr, stdout, tls_config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tidemark_truth::{Http2Behaviour, Http2Server};

const NAME: &str = "shop.test";

/// Answers every request; the place that it listens at.
fn serve(config: ServerConfig) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let session = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || answer(StreamOwned::<_, TcpStream>::new(session, socket)));
        }
    });
    place
}

fn answer(mut stream: impl Read + Write) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.drain(..end + 4);
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                return;
            }
        }
    }
}

/// A server whose certificate is for [`NAME`], and the PEM text of its authority.
fn trusted_server() -> (String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "an authority of this test");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    (serve(tls_config(&params.signed_by(&key, &issuer).unwrap(), &key)), authority)
}

fn hit(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let arguments: Vec<&str> = ["hit", "-q", "-n", "30"].iter().chain(arguments).copied().collect();
    let output = run(folder, &arguments);
    (code(&output), stdout(&output), stderr(&output))
}

fn answered(summary: &str) -> Option<u64> {
    serde_json::from_str::<Value>(summary).ok()?["statuses"]["200"].as_u64()
}

#[test]
fn a_certificate_of_a_known_authority_is_trusted_and_the_run_can_be_repeated_from_elsewhere() {
    let (place, authority) = trusted_server();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), authority).unwrap();
    let url = format!("https://{place}/");
    let flags = [&url, "--cacert", "ca.pem", "--server-name", NAME, "--json", "--save=kept"];
    let (_, text, error) = hit(folder.path(), &flags);
    assert_eq!(answered(&text), Some(30), "{text}{error}");
    let report = run(folder.path(), &["report", "kept"]);
    assert!(stdout(&report).contains("TLS 1.3"), "{}", stdout(&report));

    let elsewhere = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("kept/scenario.yaml");
    let again = run(elsewhere.path(), &["run", scenario.to_str().unwrap(), "-q", "--json"]);
    assert_eq!(answered(&stdout(&again)), Some(30), "{}", stderr(&again));
}

#[test]
fn a_self_signed_certificate_ends_it_before_the_load_with_a_way_out() {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let place = serve(tls_config(&made.cert, &made.signing_key));
    let folder = tempfile::tempdir().unwrap();
    let (other, ca) = trusted_server();
    fs::write(folder.path().join("ca.pem"), ca).unwrap();
    let url = format!("https://{place}/");
    let (status, text, error) = hit(folder.path(), &[&url, "--cacert", "ca.pem"]);
    assert_eq!((status, text.as_str()), (1, ""), "{error}");
    for part in ["no TLS with https://", "--cacert FILE", "--insecure"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let (_, text, error) = hit(folder.path(), &[&url, "-k", "--json"]);
    assert_eq!(answered(&text), Some(30), "{error}");
    let (status, _, error) = hit(folder.path(), &[&format!("https://{other}/"), "--cacert", "ca.pem"]);
    assert!(status == 1 && error.contains("not valid for name"), "{error}");
}

/// A server with a certificate that it has signed itself, and its PEM text.
fn self_signed(params: CertificateParams) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (serve(tls_config(&certificate, &key)), certificate.pem())
}

fn of_authority(mut params: CertificateParams) -> CertificateParams {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

#[test]
fn a_certificate_that_is_named_itself_is_taken_as_curl_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let named = || CertificateParams::new(vec![NAME.to_owned(), "127.0.0.1".to_owned()]).unwrap();
    // as `openssl req -x509` makes them
    let authority = of_authority(named());
    let mut nameless = CertificateParams::new(Vec::new()).unwrap();
    nameless.distinguished_name.push(DnType::CommonName, "localhost");
    let nameless_authority = of_authority(nameless.clone());
    let (_, other) = trusted_server();
    fs::write(folder.path().join("other.pem"), other).unwrap();
    for (params, without) in [
        (authority, "the certificate of an authority as its own"),
        (nameless, "signed by nobody trusted here"),
        (nameless_authority, "the certificate of an authority as its own"),
    ] {
        let (place, pem) = self_signed(params);
        let url = format!("https://{place}/");
        let (status, _, error) = hit(folder.path(), &[&url, "--cacert", "other.pem"]);
        assert!(status == 1 && error.contains(without), "{without}: {error}");
        fs::write(folder.path().join("own.pem"), pem).unwrap();
        let (_, text, error) = hit(folder.path(), &[&url, "--cacert", "own.pem", "--json"]);
        assert_eq!(answered(&text), Some(30), "{without}: {error}");
    }
    // another name, or another time, is refused all the same
    let authority = of_authority(named());
    let mut expired = authority.clone();
    expired.not_before = rcgen::date_time_ymd(2001, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2002, 1, 1);
    for (params, more, says) in
        [(authority, &["--server-name", "other.test"][..], "not valid for name"), (expired, &[], "expired")]
    {
        let (place, pem) = self_signed(params);
        fs::write(folder.path().join("own.pem"), pem).unwrap();
        let url = format!("https://{place}/");
        let (status, _, error) = hit(folder.path(), &[&[url.as_str(), "--cacert", "own.pem"], more].concat());
        assert!(status == 1 && error.contains(says), "{says}: {error}");
    }
}

#[test]
fn what_does_not_speak_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|socket| {
            std::thread::spawn(move || answer(socket));
        });
    });
    let folder = tempfile::tempdir().unwrap();
    let (status, _, error) = hit(folder.path(), &[&format!("https://{place}/"), "-k"]);
    assert!(status == 1 && error.contains("does it speak TLS there?"), "{status}: {error}");
    // and the flags of TLS are not for what goes without
    let (status, _, error) = hit(folder.path(), &[&format!("http://{place}/"), "-k"]);
    assert!(status == 2 && error.contains("https://"), "{status}: {error}");
}

#[test]
fn http_2_by_alpn_or_prior_knowledge_and_never_without_the_servers_word() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let mut tls = tls_config(&made.cert, &made.signing_key);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let secured =
        Http2Server::start(Http2Behaviour { tls: Some(tls.into()), ..Http2Behaviour::default() }).unwrap();
    let plain =
        Http2Server::start(Http2Behaviour { most_streams: Some(3), ..Http2Behaviour::default() }).unwrap();
    let url = format!("https://{}/", secured.address());
    for version in ["2", "auto"] {
        let (_, text, error) = hit(folder.path(), &[&url, "-k", "--http", version, "-c", "2", "-t", "1"]);
        assert!(text.contains("HTTP/2 agreed to by ALPN") && text.contains("200: 30"), "{text}{error}");
    }
    let flags = ["--http", "2", "-p", "5", "-c", "2", "-t", "1", "--save=kept"];
    let url = format!("http://{}/", plain.address());
    let (_, text, error) = hit(folder.path(), &[&[url.as_str()][..], &flags].concat());
    for part in ["HTTP/2 by prior knowledge", "up to 3 requests at once", "5 were wanted", "200: 30"] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part}: {text}{error}");
    }
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("kept/run.json")).unwrap()).unwrap();
    assert_eq!(manifest["system"]["http"], "HTTP/2");

    // a server of HTTP/1.1, with TLS and without
    let (old, _) = trusted_server();
    let (status, _, error) = hit(folder.path(), &[&format!("https://{old}/"), "-k", "--http", "2"]);
    assert!(status == 1 && error.contains("HTTP/2") && error.contains("1.1"), "{status}: {error}");
    let (_, text, error) =
        hit(folder.path(), &[&format!("https://{old}/"), "-k", "--http", "auto", "--json"]);
    assert_eq!(answered(&text), Some(30), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|socket| {
            std::thread::spawn(move || answer(socket));
        });
    });
    let (status, _, error) = hit(folder.path(), &[&place, "--http", "2"]);
    assert!(status == 1 && error.contains("the server answers in HTTP/1.1"), "{status}: {error}");
}
