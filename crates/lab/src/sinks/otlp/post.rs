//! One push: a connection, a request of HTTP/1.1, its answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use tidemark_drive::Tls;
use tidemark_scenario::plan::TlsSettings;
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
use url::Url;

use super::Headers;

/// Longest time for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Longest time for all of a push.
const PUSH_MAX: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Where a collector takes metrics, below its base URL.
const PATH: &str = "/v1/metrics";

/// Where metrics are pushed to.
pub struct Endpoint {
    host: String,
    port: u16,
    authority: String,
    path: String,
    tls: Option<Tls>,
}

impl Endpoint {
    /// From a base URL, to which `/v1/metrics` is added unless it ends so.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let wrong = |why: &str| format!("{why}; write it like http://127.0.0.1:4318");
        let url = Url::parse(text).map_err(|error| wrong(&format!("that is no URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("no user and password in the URL; give them in {}", super::HEADERS_VARIABLE));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("the URL ends with its path"));
        }
        let host = url.host_str().filter(|_| ["http", "https"].contains(&url.scheme()));
        let host = host.ok_or_else(|| wrong("the URL begins with http:// or https:// and names a host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = (url.scheme() == "https").then(|| Tls::new(&TlsSettings::default(), &host));
        let tls = tls.transpose().map_err(|error| error.to_string())?;
        let base = url.path().trim_end_matches('/');
        let path = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let port = url.port_or_known_default().unwrap_or(80);
        let authority = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        Ok(Endpoint { host, port, authority, path, tls })
    }

    /// Pushes a request.
    ///
    /// # Errors
    /// Why it was not taken, or not as a whole; without what the headers hold.
    pub fn push(&self, body: &[u8], headers: &Headers) -> Result<(), String> {
        let begin = Instant::now();
        let stream = self.connect().map_err(|error| format!("no connection: {error}"))?;
        let asked = match &self.tls {
            None => self.exchange(stream, body, headers, begin),
            Some(tls) => match tls.connect(stream) {
                Ok(stream) => self.exchange(stream, body, headers, begin),
                Err(error) => return Err(format!("no TLS: {error}")),
            },
        };
        let answer = asked.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {PUSH_MAX:?}"),
            _ => error.to_string(),
        })?;
        match answer.status() {
            200..300 => rejected(answer.body()).map_or(Ok(()), Err),
            status => Err(format!("it answers with status {status}")),
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(PUSH_MAX))?;
                    stream.set_write_timeout(Some(PUSH_MAX))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn exchange(
        &self,
        mut stream: impl Read + Write,
        body: &[u8],
        headers: &Headers,
        begin: Instant,
    ) -> io::Result<ResponseDecoder> {
        let mut request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\nUser-Agent: \
             tidemark/{}\r\n",
            self.path,
            self.authority,
            body.len(),
            env!("CARGO_PKG_VERSION")
        )
        .into_bytes();
        headers.write(&mut request);
        request.extend_from_slice(b"Connection: close\r\n\r\n");
        request.extend_from_slice(body);
        stream.write_all(&request)?;
        stream.flush()?;
        let limits = DecoderLimits { body_bytes: ANSWER_BYTES_MAX, ..DecoderLimits::default() };
        let mut decoder = ResponseDecoder::new(limits);
        decoder.start(false, true);
        let mut input = vec![0; 8 << 10];
        let unreadable =
            |error: &dyn std::fmt::Display| io::Error::new(ErrorKind::InvalidData, error.to_string());
        while begin.elapsed() < PUSH_MAX {
            let read = match stream.read(&mut input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                decoder.finish().map_err(|error| unreadable(&error))?;
                return Ok(decoder);
            }
            if decoder.decode(&input[..read]).map_err(|error| unreadable(&error))?.complete {
                return Ok(decoder);
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

/// What an `ExportMetricsServiceResponse` says was not taken: field 1 is an `ExportMetricsPartialSuccess`, of which field
/// 1 is a number of data points. Whatever else it holds is no matter of ours.
fn rejected(mut response: &[u8]) -> Option<String> {
    let (key, length) = (varint(&mut response)?, varint(&mut response)?);
    let mut partial = (key == 0x0a).then(|| response.get(..usize::try_from(length).ok()?)).flatten()?;
    let (key, points) = (varint(&mut partial)?, varint(&mut partial)?);
    (key == 0x08 && points > 0).then(|| format!("it did not take {points} data points"))
}

fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_once() {
        let path = |url: &str| Endpoint::parse(url).map(|endpoint| (endpoint.authority, endpoint.path));
        let expected = |authority: &str, path: &str| Ok((authority.to_owned(), path.to_owned()));
        assert_eq!(path("http://127.0.0.1:4318"), expected("127.0.0.1:4318", "/v1/metrics"));
        assert_eq!(path("http://[::1]:4318/otlp/"), expected("[::1]:4318", "/otlp/v1/metrics"));
        assert_eq!(path("http://c/v1/metrics"), expected("c", "/v1/metrics"));
        for wrong in ["127.0.0.1:4318", "ftp://c", "http://c?x", "http://a:b@c", "http://"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_not_taken_is_told() {
        assert_eq!(rejected(b""), None);
        assert_eq!(rejected(b"\x0a\x02\x08\x00"), None);
        assert_eq!(
            rejected(b"\x0a\x06\x08\xac\x02\x12\x01x"),
            Some("it did not take 300 data points".into())
        );
        for length in 0..8 {
            // whatever is cut off is no panic
            let _ = rejected(&b"\x0a\x06\x08\xac\x02\x12\x01x"[..length]);
        }
        let _ = rejected(&[0xff; 30]);
    }
}
