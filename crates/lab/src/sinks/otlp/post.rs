//! One push: a connection, a request, its answer.

use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidemark_drive::{Protocol, Target, Tls};
use tidemark_scenario::plan::TlsSettings;
use tidemark_wire::protobuf::{Value, fields};
use url::Url;

use super::Headers;
use crate::http::{Bounds, Client, NoAnswer};

/// Longest time for all of a push.
const PUSH_MAX: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER: Bounds = Bounds { silence: PUSH_MAX, body_bytes: 64 << 10 };
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
        let url = Url::parse(text).map_err(|error| wrong(&format!("that is not a URL: {error}")))?;
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
        let go_on = || if begin.elapsed() < PUSH_MAX { Ok(()) } else { Err(()) };
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses = addresses.map_err(|error| format!("no connection: {error}"))?;
        let (headers, body) = (headers.of_a_push(), Bytes::copy_from_slice(body));
        let mut last = NoAnswer::Broken("the host has no address".into());
        for address in addresses {
            let target = Target {
                address: address.into(),
                others: Vec::new(),
                authority: self.authority.clone(),
                base_path: String::new(),
                tls: self.tls.clone(),
                protocol: Protocol::default(),
                proxy: None,
            };
            match Client::new(&target).post(&self.path, &headers, body.clone(), ANSWER, &go_on) {
                Ok(answer) if answer.status.is_success() => {
                    return rejected(&answer.body).map_or(Ok(()), Err);
                }
                Ok(answer) => return Err(format!("it answers with status {}", answer.status.as_u16())),
                // another of its addresses may be the one that listens
                Err(error @ NoAnswer::Broken(_)) => last = error,
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        Err(match last {
            NoAnswer::Request(reason) | NoAnswer::Broken(reason) => reason,
            NoAnswer::TooLarge(bytes) => format!("its answer has more than {bytes} bytes"),
            NoAnswer::Silent(_) | NoAnswer::Stopped(()) => format!("no answer within {PUSH_MAX:?}"),
        })
    }
}

/// What an `ExportMetricsServiceResponse` says was not taken: field 1 is an `ExportMetricsPartialSuccess`, of which field
/// 1 is a number of data points. Whatever else it holds is no matter of ours.
fn rejected(response: &[u8]) -> Option<String> {
    let partial = fields(response).find_map(|field| match field {
        Ok((1, Value::Bytes(partial))) => Some(partial),
        _ => None,
    })?;
    let points = fields(partial).find_map(|field| match field {
        Ok((1, Value::Number(points))) => Some(points),
        _ => None,
    })?;
    (points > 0).then(|| format!("it did not take {points} data points"))
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
