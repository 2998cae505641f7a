//! Through an HTTP proxy: plain requests in absolute form, TLS through a tunnel, and the environment only where it is
//! asked for.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::{ServerConnection, StreamOwned};

use crate::program::{assert_refused, code, run, stderr, stdout, tidemark, tls_config};

/// me:s3cret-pw
const BASIC: &str = "Basic bWU6czNjcmV0LXB3";
/// What the proxy answers plain requests with.
const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A proxy on a free port: answers plain requests itself, and makes tunnels to one place whatever is asked for.
struct Proxy {
    place: String,
    /// Each head that it was sent.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(tunnels_to: Option<String>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy { place: listener.local_addr().unwrap().to_string(), heads: Arc::default() };
        let heads = Arc::clone(&proxy.heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heads, tunnels_to) = (Arc::clone(&heads), tunnels_to.clone());
                std::thread::spawn(move || serve(stream, &heads, tunnels_to.as_deref()));
            }
        });
        proxy
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>, tunnels_to: Option<&str>) -> Option<()> {
    while let Some(head) = head(&mut stream) {
        heads.lock().unwrap().push(head.clone());
        match tunnels_to {
            _ if !head.starts_with("CONNECT ") => stream.write_all(HELLO).ok()?,
            Some(to) => {
                let there = TcpStream::connect(to).ok()?;
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
                return tunnel(stream, there);
            }
            None => {
                let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(refused).ok()?;
            }
        }
    }
    Some(())
}

/// The next head, up to its blank line; none at the end.
fn head(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut one = [0];
        stream.read_exact(&mut one).ok()?;
        bytes.push(one[0]);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn tunnel(one: TcpStream, other: TcpStream) -> Option<()> {
    let (mut from, mut to) = (one.try_clone().ok()?, other.try_clone().ok()?);
    let there = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (other, one);
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    there.join().ok()
}

/// A server over TLS that answers everything, and its certificate.
fn secured() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["shop.test".to_owned()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let config = Arc::new(tls_config(&made.cert, &made.signing_key));
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let session = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(session, socket);
                while head(&mut stream).is_some_and(|head| head.starts_with("GET /v1/a HTTP/1.1\r\n")) {
                    stream.write_all(HELLO).unwrap();
                }
            });
        }
    });
    (place, made.cert.pem())
}

fn scenario(folder: &Path, system: &str) {
    let text = format!(
        "system: {system}\nsessions: {{a: {{steps: [{{GET: /a, check: {{body: hello}}}}]}}}}\nload: {{users: 1, hold: \
         60s}}\nlimits: {{sessions: 3}}\n"
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}

/// Everything that a run left, but for binary files.
fn written(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all += &written(&entry.path()),
            false => all += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap()),
        }
    }
    all
}

#[test]
fn plain_requests_name_their_server_to_the_proxy_and_the_report_says_that_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(None);
    let place = &proxy.place;
    // nobody knows the host but the proxy
    scenario(
        folder.path(),
        &format!("{{url: 'http://shop.invalid/v1', proxy: 'http://me:s3cret-pw@{place}'}}"),
    );
    let output = run(folder.path(), &["run", "s.yaml", "--out", "kept"]);
    let text = stdout(&output) + &stderr(&output);
    assert_eq!(code(&output), 0, "{text}");
    let heads = proxy.heads();
    assert_eq!(heads.len(), 3, "{heads:?}");
    for head in heads {
        assert!(
            head.starts_with("GET http://shop.invalid/v1/a HTTP/1.1\r\nHost: shop.invalid\r\n"),
            "{head}"
        );
        assert!(head.contains(&format!("\r\nProxy-Authorization: {BASIC}\r\n")), "{head}");
    }
    assert!(text.contains(&format!("through the proxy {place}")), "{text}");
    let kept = written(&folder.path().join("kept"));
    assert!(kept.contains(&format!("through the proxy {place}")));
    for secret in ["s3cret-pw", BASIC] {
        assert!(!kept.contains(secret) && !text.contains(secret), "{secret}");
    }
}

#[test]
fn tls_goes_through_a_tunnel_and_one_that_is_refused_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (server, certificate) = secured();
    fs::write(folder.path().join("ca.pem"), certificate).unwrap();
    let proxy = Proxy::start(Some(server));
    scenario(folder.path(), "{url: 'https://shop.test/v1', tls: {ca: ca.pem}}");
    let through = format!("http://me:s3cret-pw@{}", proxy.place);
    let output = run(folder.path(), &["run", "s.yaml", "--proxy", &through]);
    let text = stdout(&output) + &stderr(&output);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("through the proxy") && !text.contains("s3cret-pw"), "{text}");
    let heads = proxy.heads();
    // the first handshake, and the connection of the load
    assert!(heads.len() >= 2, "{heads:?}");
    for head in heads {
        assert!(head.starts_with("CONNECT shop.test:443 HTTP/1.1\r\nHost: shop.test:443\r\n"), "{head}");
        assert!(head.contains(BASIC), "{head}");
    }
    let refusing = Proxy::start(None);
    let output = run(folder.path(), &["run", "s.yaml", "--proxy", &format!("http://{}", refusing.place)]);
    let error = stderr(&output);
    assert_eq!(code(&output), 1, "{error}");
    assert!(
        error.contains("answers CONNECT with status 407") && error.contains("a user and a password"),
        "{error}"
    );
}

#[test]
fn the_environment_is_asked_only_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, direct) = (Proxy::start(None), Proxy::start(None));
    scenario(folder.path(), &format!("{{url: 'http://{}'}}", direct.place));
    let with = |arguments: &[&str], no_proxy: &str| {
        let mut command = tidemark(folder.path(), &[&["run", "s.yaml", "-q"], arguments].concat());
        command.env("HTTP_PROXY", format!("http://{}", proxy.place)).env("NO_PROXY", no_proxy);
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        (proxy.heads().len(), direct.heads().len())
    };
    assert_eq!(with(&[], ""), (0, 3));
    assert_eq!(with(&["--proxy", "env"], ""), (3, 3));
    assert_eq!(with(&["--proxy", "env"], "example.com, 127.0.0.0/8"), (3, 6));
    assert_eq!(with(&["--proxy", "none"], ""), (3, 9));
    assert_eq!(with(&["--proxy", "env"], "example.com, *"), (3, 12));
}

#[test]
fn a_proxy_that_nobody_reaches_is_named_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let direct = Proxy::start(None);
    scenario(folder.path(), &format!("{{url: 'http://{}'}}", direct.place));
    // a port that was free a moment ago
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "--proxy", &format!("http://{free}")]);
    let error = stderr(&output);
    assert_ne!(code(&output), 0, "{error}");
    assert!(error.contains(&format!("the proxy {free}")), "{error}");
}

#[test]
fn what_is_no_proxy_or_needs_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "{url: 'http://127.0.0.1:9'}");
    for (proxy, says) in [
        ("socks5://127.0.0.1:1080", "not socks5://"),
        ("127.0.0.1:3128", "http://HOST:PORT"),
        ("http://me:p/w@127.0.0.1", "percent-encoded"),
    ] {
        assert_refused(folder.path(), &["run", "s.yaml", "--proxy", proxy], says);
    }
    assert_refused(folder.path(), &["hit", "http://127.0.0.1:9", "--proxy", "ftp://h"], "not ftp://");
    scenario(folder.path(), "{url: 'redis://127.0.0.1', proxy: 'http://127.0.0.1:3128'}");
    assert_refused(folder.path(), &["check", "s.yaml"], "before http:// and https:// only");
    scenario(folder.path(), "{url: 'http://h', proxy: 'http://p', connect to: 'q:1'}");
    assert_refused(folder.path(), &["check", "s.yaml"], "both say where connections go");
}
