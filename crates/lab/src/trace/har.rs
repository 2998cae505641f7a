//! A request and its answer as an entry of HAR 1.2, without secrets.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tidemark_drive::{Address, LoggedAnswer, Target, Traced};
use tidemark_scenario::Plan;
use tidemark_scenario::secrets::MASK;
use tidemark_wire::encoding;
use tidemark_wire::http1::cookie;

use crate::masked::{self, Learned};

/// Most bytes of a body once it is decoded.
const DECODED_BYTES_MAX: usize = 256 << 10;
/// What is not known, in numbers of HAR.
const UNKNOWN: i64 = -1;

/// Where a target is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// `http://host:port`.
    origin: String,
    ip: Option<String>,
}

impl Place {
    pub fn of(target: &Target) -> Place {
        let scheme = if target.tls.is_some() { "https" } else { "http" };
        let ip = match &target.address {
            Address::Tcp(address) => Some(address.ip().to_string()),
            Address::Unix(_) => None,
        };
        Place { origin: format!("{scheme}://{}", target.authority), ip }
    }
}

/// A request as it was written: of HTTP/2 as HTTP/1.1 would say it.
struct Sent<'a> {
    method: &'a str,
    target: &'a str,
    version: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    head_bytes: usize,
    body: &'a [u8],
}

/// The entry, and what it tells of secrets is learned.
pub(super) fn entry(traced: &Traced, plan: &Plan, place: Option<&Place>, learned: &mut Learned) -> Value {
    let head_bytes = masked::head_end(&traced.sent).unwrap_or(traced.sent.len());
    let head = String::from_utf8_lossy(&traced.sent[..head_bytes]);
    let sent = sent(&head, &traced.sent[head_bytes..]);
    learned.learn(secrets(traced, &sent));
    let learned = &*learned;
    let parts = &traced.parts;
    let ms = |us: u64| us as f64 / 1_000.0;
    let all_us = parts.wait_us
        + parts.connect_us.unwrap_or(0)
        + parts.handshake_us.unwrap_or(0)
        + parts.first_byte_us
        + parts.transfer_us;
    let known = |us: Option<u64>| us.map_or(json!(UNKNOWN), |us| json!(ms(us)));
    let mut entry = json!({
        "startedDateTime": moment(traced.due_ms),
        "time": ms(all_us),
        "request": request(&sent, traced, place, learned),
        "response": response(traced.answer.as_ref(), learned),
        "cache": {},
        "timings": {
            "blocked": ms(parts.wait_us),
            "dns": UNKNOWN,
            // what HAR calls so has the handshake in it
            "connect": known(parts.connect_us.map(|us| us + parts.handshake_us.unwrap_or(0))),
            "ssl": known(parts.handshake_us),
            "send": 0,
            "wait": ms(parts.first_byte_us),
            "receive": ms(parts.transfer_us),
        },
        "connection": format!("{}-{}", traced.connection.0, traced.connection.1),
        "_label": plan.labels.get(usize::from(traced.label)).cloned().unwrap_or_default(),
        "_outcome": traced.outcome.name(),
    });
    if let Some(ip) = place.and_then(|place| place.ip.as_deref()) {
        entry["serverIPAddress"] = ip.into();
    }
    if let Some(fault) = &traced.failure {
        entry["_error"] = learned.masked(fault).into();
    }
    if !traced.hops.is_empty() {
        let hops = traced.hops.iter();
        let hops = hops.map(|(status, to)| json!({"status": status, "location": learned.masked(to)}));
        entry["_redirects"] = hops.collect::<Vec<_>>().into();
    }
    entry
}

/// Secrets of the session whose request it is: its variables, the cookies that it sends and those that it gets.
fn secrets(traced: &Traced, sent: &Sent<'_>) -> Vec<masked::Named> {
    let carried = sent.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let carried = carried.flat_map(|(_, value)| masked::cookies_sent(value));
    let set = traced.answer.iter().flat_map(masked::cookies_set);
    traced.secrets.iter().cloned().chain(carried).chain(set).collect()
}

fn moment(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| String::new(), |at| at.to_string())
}

fn sent<'a>(head: &'a str, body: &'a [u8]) -> Sent<'a> {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, target, version) = (word(), word(), word());
    let header = |line: &'a str| line.split_once(':').map(|(name, value)| (name, value.trim()));
    Sent {
        method,
        target,
        version,
        headers: lines.filter_map(header).collect(),
        head_bytes: head.len(),
        body,
    }
}

fn request(sent: &Sent<'_>, traced: &Traced, place: Option<&Place>, learned: &Learned) -> Value {
    let is_absolute = sent.target.starts_with("http://") || sent.target.starts_with("https://");
    let origin = place.map_or("", |place| place.origin.as_str());
    let url = if is_absolute { sent.target.to_owned() } else { format!("{origin}{}", sent.target) };
    let query = sent.target.split_once('?').map_or("", |(_, query)| query);
    let written = traced.sent_bytes - sent.head_bytes.min(traced.sent_bytes);
    let told: Option<usize> =
        header(sent.headers.iter().copied(), "content-length").and_then(|bytes| bytes.parse().ok());
    let body_bytes = told.unwrap_or(0).max(written);
    let mut request = json!({
        "method": sent.method,
        "url": learned.masked(&url),
        "httpVersion": sent.version,
        "cookies": cookies_sent(sent.headers.iter().copied()),
        "headers": headers(sent.headers.iter().copied(), learned),
        "queryString": parameters(query, learned),
        "headersSize": sent.head_bytes,
        "bodySize": body_bytes,
    });
    if body_bytes > written {
        request["comment"] = "the body was read from a file while it was sent, and is not kept".into();
    }
    if !sent.body.is_empty() {
        let (text, comment) = shown(sent.body, written, learned);
        let mime_type = header(sent.headers.iter().copied(), "content-type").unwrap_or_default();
        request["postData"] = json!({"mimeType": mime_type, "params": [], "text": text});
        if let Some(comment) = comment {
            request["postData"]["comment"] = comment.into();
        }
    }
    request
}

/// The answer; one that is not there has a status of 0, as browsers have it.
fn response(answer: Option<&LoggedAnswer>, learned: &Learned) -> Value {
    let Some(answer) = answer else {
        return json!({
            "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [],
            "content": {"size": 0, "mimeType": "x-unknown"},
            "redirectURL": "", "headersSize": UNKNOWN, "bodySize": UNKNOWN,
        });
    };
    let all = || answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let is_whole =
        answer.received_bytes == answer.body_bytes as u64 && answer.body.len() == answer.body_bytes;
    let decoded = decoded(answer, is_whole);
    let (body, of) = match &decoded {
        Some(body) => (body.as_slice(), body.len()),
        None if answer.is_decoded => (answer.body.as_slice(), answer.body_bytes),
        None => (answer.body.as_slice(), usize::try_from(answer.received_bytes).unwrap_or(usize::MAX)),
    };
    let (text, comment) = shown(body, of, learned);
    let comment = answer.unreadable.clone().or(comment);
    let mut content = json!({
        "size": of,
        "mimeType": header(all(), "content-type").unwrap_or("x-unknown"),
        "text": text,
    });
    if let Some(comment) = comment {
        content["comment"] = learned.masked(&comment).into();
    }
    json!({
        "status": answer.status,
        "statusText": "",
        "httpVersion": "",
        "cookies": cookies_set(all()),
        "headers": headers(all(), learned),
        "content": content,
        "redirectURL": learned.masked(header(all(), "location").unwrap_or_default()),
        "headersSize": UNKNOWN,
        "bodySize": answer.received_bytes,
    })
}

/// A body that nobody has looked at yet, once it is read; none where it is not encoded, not whole, or cannot be read.
fn decoded(answer: &LoggedAnswer, is_whole: bool) -> Option<Vec<u8>> {
    if answer.is_decoded || !is_whole {
        return None;
    }
    let encodings = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let encodings = encodings.map(|(_, value)| value.as_bytes());
    let (mut decoded, mut room) = (Vec::new(), encoding::Scratch::default());
    match encoding::decode(encodings, &answer.body, DECODED_BYTES_MAX, &mut decoded, &mut room) {
        Ok(true) => Some(decoded),
        _ => None,
    }
}

/// A body as text without secrets, and what is to be said of it, where it is not all of its bytes or none that can be shown.
fn shown(bytes: &[u8], of: usize, learned: &Learned) -> (String, Option<String>) {
    let is_cut = bytes.len() < of;
    match learned.body_text(bytes, is_cut) {
        Some(text) => (text, is_cut.then(|| format!("the beginning of {of} bytes"))),
        None => (String::new(), Some(format!("{of} bytes of binary data"))),
    }
}

fn header<'a>(mut all: impl Iterator<Item = (&'a str, &'a str)>, wanted: &str) -> Option<&'a str> {
    all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

fn headers<'a>(all: impl Iterator<Item = (&'a str, &'a str)>, learned: &Learned) -> Vec<Value> {
    all.map(|(name, value)| json!({"name": name, "value": learned.header(name, value)})).collect()
}

/// Names of cookies that a request carries; their values are secrets.
fn cookies_sent<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let found = all.filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let each = found.flat_map(|(_, value)| value.split(';'));
    each.filter_map(|cookie| cookie.split_once('=').map(|(name, _)| masked_cookie(name.trim()))).collect()
}

/// Names of cookies that an answer sets.
fn cookies_set<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let found = all.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let each = found.filter_map(|(_, value)| cookie::parse(value.as_bytes()));
    each.map(|cookie| masked_cookie(&String::from_utf8_lossy(cookie.name))).collect()
}

fn masked_cookie(name: &str) -> Value {
    json!({"name": name, "value": MASK})
}

fn parameters(query: &str, learned: &Learned) -> Vec<Value> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let one = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name), decoded(value));
        json!({"name": name, "value": learned.value(&name, &value)})
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use tidemark_drive::RequestParts;
    use tidemark_record::Outcome;
    use tidemark_scenario::plan::LoadModel;

    use super::*;
    use tidemark_verdict::test_plan::plan;

    fn traced(sent: &[u8], answer: Option<LoggedAnswer>) -> Traced {
        Traced {
            label: 0,
            target: 0,
            due_ms: 1_767_225_600_123,
            sent: sent.to_vec(),
            sent_bytes: sent.len(),
            hops: vec![(302, "/there?token=abcdefgh".into())],
            answer,
            outcome: Outcome::Status,
            failure: Some("status 500: password=hunter22".into()),
            secrets: Vec::new(),
            parts: RequestParts {
                wait_us: 1_500,
                connect_us: Some(1_000),
                handshake_us: Some(500),
                first_byte_us: 2_000,
                transfer_us: 3_000,
            },
            connection: (1, 3),
        }
    }

    fn answer(headers: &[(&str, &str)], body: &[u8], received_bytes: u64) -> LoggedAnswer {
        LoggedAnswer {
            status: 500,
            status_words: "status 500".into(),
            is_unfollowed: false,
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: body.to_vec(),
            body_bytes: body.len(),
            received_bytes,
            is_decoded: false,
            unreadable: None,
        }
    }

    fn place() -> Place {
        Place { origin: "http://shop.test:81".into(), ip: Some("127.0.0.1".into()) }
    }

    fn entry_of(traced: &Traced, place: Option<&Place>) -> Value {
        entry(traced, &plan(LoadModel::Closed), place, &mut Learned::default())
    }

    #[test]
    fn what_a_session_came_by_is_in_no_entry_wherever_it_stands() {
        let sent = b"POST /of/t0ken-of-ann HTTP/1.1\r\nHost: shop.test\r\nX-Who: t0ken-of-ann\r\nCookie: \
                     sid=sent-c00kie\r\n\r\nI am sent-c00kie, t0ken-of-ann";
        let headers = [("set-cookie", "sid=new-c00kie; Path=/"), ("x-old", "sent-c00kie")];
        let body = b"new-c00kie follows sent-c00kie of t0ken-of-ann";
        let mut one = traced(sent, Some(answer(&headers, body, body.len() as u64)));
        one.secrets.push(("mine".into(), "t0ken-of-ann".into()));
        one.failure = Some("saw new-c00kie".into());
        let text = entry_of(&one, Some(&place())).to_string();
        for secret in ["t0ken-of-ann", "sent-c00kie", "new-c00kie"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert!(text.contains("*** follows *** of ***"), "{text}");
    }

    #[test]
    fn a_request_and_its_answer_are_an_entry_without_secrets() {
        let sent = b"POST /login?user=ann&api_key=k3y-k3y-k3y&q=a%20b HTTP/1.1\r\nHost: shop.test:81\r\nContent-Type: \
                     application/json\r\nAuthorization: Bearer t0ken\r\nCookie: sid=c00kie; b=c00kie\r\n\r\n\
                     {\"password\":\"hunter22\",\"n\":1}";
        let headers = [("content-type", "text/plain"), ("set-cookie", "sid=c00kie; Path=/"), ("x-a", "1")];
        let one = traced(sent, Some(answer(&headers, b"hello", 5)));
        let entry = entry_of(&one, Some(&place()));
        let text = entry.to_string();
        for secret in ["hunter22", "k3y-k3y", "t0ken", "c00kie", "abcdefgh"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(entry["startedDateTime"], "2026-01-01T00:00:00.123Z");
        assert_eq!(entry["time"], 8.0);
        assert_eq!(entry["timings"]["connect"], 1.5);
        assert_eq!(entry["timings"]["ssl"], 0.5);
        assert_eq!(entry["serverIPAddress"], "127.0.0.1");
        let request = &entry["request"];
        assert_eq!((&request["method"], &request["httpVersion"]), (&json!("POST"), &json!("HTTP/1.1")));
        assert!(request["url"].as_str().unwrap().starts_with("http://shop.test:81/login?user=ann&"));
        assert_eq!(request["queryString"][2], json!({"name": "q", "value": "a b"}));
        assert_eq!(
            request["cookies"],
            json!([{"name": "sid", "value": "***"}, {"name": "b", "value": "***"}])
        );
        assert_eq!(request["bodySize"], 29);
        assert_eq!(request["postData"]["mimeType"], "application/json");
        let response = &entry["response"];
        assert_eq!((&response["status"], &response["content"]["text"]), (&json!(500), &json!("hello")));
        assert_eq!(response["cookies"], json!([{"name": "sid", "value": "***"}]));
        assert_eq!(response["bodySize"], 5);
    }

    #[test]
    fn bodies_are_decoded_where_they_are_whole_and_said_to_be_cut_where_they_are_not() {
        let hello = b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15";
        let headers = [("content-encoding", "deflate")];
        let content = |answer: LoggedAnswer| {
            let entry = entry_of(&traced(b"GET / HTTP/1.1\r\n\r\n", Some(answer)), None);
            entry["response"]["content"].clone()
        };
        let whole = content(answer(&headers, hello, hello.len() as u64));
        assert_eq!((&whole["text"], &whole["size"]), (&json!("hello"), &json!(5)));
        let cut = content(answer(&headers, hello, 1_000));
        assert_eq!((&cut["text"], &cut["comment"]), (&json!(""), &json!("1000 bytes of binary data")));
        let cut = content(answer(&[], b"hello", 1_000));
        assert_eq!((&cut["text"], &cut["comment"]), (&json!("hello"), &json!("the beginning of 1000 bytes")));
    }

    #[test]
    fn a_body_that_was_read_while_it_was_sent_is_told_by_its_size() {
        let sent = b"PUT /a HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n";
        let entry = entry_of(&traced(sent, None), None);
        let request = &entry["request"];
        assert_eq!((&request["bodySize"], request["postData"].is_null()), (&json!(1_073_741_824), true));
        assert!(request["comment"].as_str().unwrap().contains("not kept"), "{request}");
    }

    #[test]
    fn a_request_without_an_answer_has_status_0_and_its_error() {
        let entry = entry_of(&traced(b"GET http://other.test/a HTTP/1.1\r\n\r\n", None), None);
        assert_eq!(entry["response"]["status"], 0);
        assert_eq!(entry["request"]["url"], "http://other.test/a");
        assert!(entry["_error"].as_str().unwrap().starts_with("status 500: "));
        assert!(entry["request"]["postData"].is_null());
    }
}
