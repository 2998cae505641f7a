//! A command line of curl, as browsers copy it, as a request.
//!
//! What says how curl shows an answer is passed over; a flag that would change the request and is not known here is an
//! error that names it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_scenario::plan::HttpVersion;
use tidemark_scenario::source::Method;
use tidemark_scenario::units;

use super::form::{self, Field};
use super::target::{Target, header, method, parse_url, read};
use crate::reach::{ReachArguments, TlsArguments};

/// What a command line says.
#[derive(Debug, Clone)]
pub struct Curl {
    /// What is sent.
    pub target: Target,
    /// How it gets there.
    pub reach: ReachArguments,
    /// Longest time for an answer.
    pub timeout: Option<Duration>,
    /// Longest time until a connection is made.
    pub connect_timeout: Option<Duration>,
    /// Whether each request has a connection of its own.
    pub no_keepalive: bool,
}

/// The words of a command line, as a shell has them, with bash's `$'…'`, which browsers write.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let open = || "its quotes are not closed".to_owned();
    shlex::split(&without_dollar_quotes(line).ok_or_else(open)??).ok_or_else(open)
}

/// The line with `$'…'` in ordinary quotes; nothing where one is not closed.
fn without_dollar_quotes(line: &str) -> Option<Result<String, String>> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        // a line that goes on; of `shlex` it would be an empty word
        if let Some(next) = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix("\\\r\n")) {
            rest = next;
            continue;
        }
        let length = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '\'' => 2 + rest[1..].find('\'')?,
            '"' => 2 + end_of(&rest[1..], '"')?,
            '$' if rest[1..].starts_with('\'') => {
                let end = end_of(&rest[2..], '\'')?;
                let quoted = unescaped(&rest[2..2 + end]).and_then(|text| {
                    Ok(shlex::try_quote(&text).map_err(|error| error.to_string())?.into_owned())
                });
                match quoted {
                    Ok(quoted) => out += &quoted,
                    Err(reason) => return Some(Err(reason)),
                }
                rest = &rest[3 + end..];
                continue;
            }
            other => other.len_utf8(),
        };
        out += &rest[..length];
        rest = &rest[length..];
    }
    Some(Ok(out))
}

/// The byte of the first such mark without a backslash before it.
fn end_of(text: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return Some(at),
            _ => {}
        }
    }
    None
}

/// What stands between `$'` and `'`.
fn unescaped(text: &str) -> Result<String, String> {
    let mut out: Vec<u8> = Vec::new();
    let mut rest = text;
    let push = |out: &mut Vec<u8>, c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let Some(kind) = rest.chars().next() else { break };
        let behind = &rest[kind.len_utf8()..];
        let (radix, most, digits) = match kind {
            'x' => (16, 2, behind),
            'u' => (16, 4, behind),
            'U' => (16, 8, behind),
            '0'..='7' => (8, 3, rest),
            _ => {
                let plain = match kind {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    other => other,
                };
                push(&mut out, plain);
                rest = behind;
                continue;
            }
        };
        let length = digits.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let code = u32::from_str_radix(&digits[..length], radix)
            .map_err(|_| format!("there are no digits behind \\{kind}"))?;
        rest = &digits[length..];
        match (kind, u8::try_from(code & 0xff)) {
            ('u' | 'U', _) => push(&mut out, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
            (_, Ok(byte)) => out.push(byte),
            (_, Err(_)) => {}
        }
    }
    String::from_utf8(out).map_err(|_| {
        "a text between $' and ' is not UTF-8; put the body into a file: --data-binary @FILE".into()
    })
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Value,
}

/// Flags that say something here; a space stands for no short form.
const KNOWN: &[(char, &str, Takes)] = &[
    ('X', "request", Takes::Value),
    ('H', "header", Takes::Value),
    ('d', "data", Takes::Value),
    (' ', "data-ascii", Takes::Value),
    (' ', "data-raw", Takes::Value),
    (' ', "data-binary", Takes::Value),
    (' ', "data-urlencode", Takes::Value),
    (' ', "json", Takes::Value),
    ('G', "get", Takes::Nothing),
    ('I', "head", Takes::Nothing),
    ('T', "upload-file", Takes::Value),
    ('F', "form", Takes::Value),
    (' ', "form-string", Takes::Value),
    ('u', "user", Takes::Value),
    (' ', "basic", Takes::Nothing),
    (' ', "oauth2-bearer", Takes::Value),
    ('A', "user-agent", Takes::Value),
    ('e', "referer", Takes::Value),
    ('b', "cookie", Takes::Value),
    ('L', "location", Takes::Nothing),
    ('k', "insecure", Takes::Nothing),
    (' ', "cacert", Takes::Value),
    ('E', "cert", Takes::Value),
    (' ', "key", Takes::Value),
    (' ', "url", Takes::Value),
    (' ', "connect-to", Takes::Value),
    (' ', "resolve", Takes::Value),
    (' ', "unix-socket", Takes::Value),
    ('4', "ipv4", Takes::Nothing),
    ('6', "ipv6", Takes::Nothing),
    (' ', "http1.1", Takes::Nothing),
    (' ', "http2", Takes::Nothing),
    (' ', "http2-prior-knowledge", Takes::Nothing),
    ('m', "max-time", Takes::Value),
    (' ', "connect-timeout", Takes::Value),
    ('x', "proxy", Takes::Value),
    (' ', "compressed", Takes::Nothing),
    (' ', "no-keepalive", Takes::Nothing),
    (' ', "tlsv1", Takes::Nothing),
    (' ', "tlsv1.0", Takes::Nothing),
    (' ', "tlsv1.1", Takes::Nothing),
    (' ', "tlsv1.2", Takes::Nothing),
    (' ', "tlsv1.3", Takes::Nothing),
];

/// Flags that are about what curl shows and keeps of the answer.
const PASSED_OVER: &[(char, &str, Takes)] = &[
    ('s', "silent", Takes::Nothing),
    ('S', "show-error", Takes::Nothing),
    ('i', "include", Takes::Nothing),
    (' ', "show-headers", Takes::Nothing),
    ('v', "verbose", Takes::Nothing),
    ('f', "fail", Takes::Nothing),
    (' ', "fail-with-body", Takes::Nothing),
    ('#', "progress-bar", Takes::Nothing),
    (' ', "no-progress-meter", Takes::Nothing),
    ('N', "no-buffer", Takes::Nothing),
    ('g', "globoff", Takes::Nothing),
    ('O', "remote-name", Takes::Nothing),
    ('J', "remote-header-name", Takes::Nothing),
    (' ', "tcp-nodelay", Takes::Nothing),
    ('o', "output", Takes::Value),
    ('w', "write-out", Takes::Value),
    ('D', "dump-header", Takes::Value),
    (' ', "stderr", Takes::Value),
    (' ', "trace", Takes::Value),
    (' ', "trace-ascii", Takes::Value),
    (' ', "max-redirs", Takes::Value),
];

/// Headers that the driver writes itself: those that a browser copied say what it writes anyway.
const OWN_HEADERS: [&str; 5] = ["connection", "content-length", "expect", "keep-alive", "transfer-encoding"];

/// Reads a command line; its first word is curl.
pub fn parse(words: &[String]) -> Result<Curl, String> {
    let mut line = Line::default();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let mut next =
            |flag: &str| words.next().cloned().ok_or_else(|| format!("curl's flag {flag} has no value"));
        match word.strip_prefix('-') {
            None | Some("") => line.urls.push(word.clone()),
            Some("-") => line.urls.extend(words.by_ref().cloned()),
            Some(long) if long.starts_with('-') => {
                let (_, name, takes) = find(word, |(_, name, _)| *name == &long[1..])?;
                let value = if takes == Takes::Value { next(word)? } else { String::new() };
                line.apply(name, &value)?;
            }
            Some(shorts) => {
                for (at, short) in shorts.char_indices() {
                    let (_, name, takes) = find(&format!("-{short}"), |(known, ..)| *known == short)?;
                    if takes == Takes::Nothing {
                        line.apply(name, "")?;
                        continue;
                    }
                    // what follows in the same word is its value
                    let behind = &shorts[at + short.len_utf8()..];
                    let value =
                        if behind.is_empty() { next(&format!("-{short}"))? } else { behind.to_owned() };
                    line.apply(name, &value)?;
                    break;
                }
            }
        }
    }
    line.into_curl()
}

/// The flag that is so; one that is passed over is among them.
fn find(
    flag: &str,
    is_so: impl Fn(&&(char, &'static str, Takes)) -> bool,
) -> Result<(char, &'static str, Takes), String> {
    let mut all = KNOWN.iter().chain(PASSED_OVER);
    all.find(|known| flag != "- " && is_so(known)).copied().ok_or_else(|| {
        format!(
            "curl's flag {flag} is not understood here; leave it out if it says nothing about the request. Flags of hit stand \
             before the word curl"
        )
    })
}

/// What has been read of a command line.
#[derive(Default)]
struct Line {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<String>,
    data: Option<Vec<u8>>,
    /// Content type and answers' type, where --json gave the data.
    json: bool,
    in_query: bool,
    head: bool,
    upload: Option<Vec<u8>>,
    fields: Vec<Field>,
    login: Option<(String, String)>,
    cookies: Vec<String>,
    follow: bool,
    compressed: bool,
    connect_to: Option<(usize, String)>,
    reach: ReachArguments,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    no_keepalive: bool,
}

/// Where each of `--connect-to`'s and `--resolve`'s parts ends.
const CONNECT_TO: usize = 2;
const RESOLVE: usize = 1;

impl Line {
    fn apply(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "request" => self.method = Some(value.to_owned()),
            "header" if value.starts_with('@') => {
                return Err("-H @FILE is not understood here; write each header as -H 'Name: value'".into());
            }
            "header" => self.headers.push(value.to_owned()),
            "data" | "data-ascii" => {
                let data = match value.strip_prefix('@') {
                    // of a file curl leaves out the ends of lines
                    Some(file) => {
                        let mut data = file_of(file)?;
                        data.retain(|byte| !b"\r\n\0".contains(byte));
                        data
                    }
                    None => value.as_bytes().to_vec(),
                };
                self.add_data(data);
            }
            "data-raw" => self.add_data(value.as_bytes().to_vec()),
            "data-binary" => self.add_data(form::value_or_file(value)?),
            "data-urlencode" => self.add_data(form::encoded(value)?),
            "json" => {
                let data = form::value_or_file(value)?;
                self.json = true;
                // these are put together without a mark
                self.data.get_or_insert_default().extend_from_slice(&data);
            }
            "get" => self.in_query = true,
            "head" => self.head = true,
            "upload-file" => self.upload = Some(file_of(value)?),
            "form" => self.fields.push(Field::read(value)?),
            "form-string" => self.fields.push(Field::text(value)?),
            "user" => {
                let (user, password) =
                    value.split_once(':').ok_or("-u has no password; write it as -u NAME:PASSWORD")?;
                self.login = Some((user.to_owned(), password.to_owned()));
            }
            "oauth2-bearer" => self.headers.push(format!("Authorization: Bearer {value}")),
            "user-agent" => self.headers.push(format!("User-Agent: {value}")),
            "referer" => self.headers.push(format!("Referer: {}", value.trim_end_matches(";auto"))),
            "cookie" if !value.contains('=') => {
                return Err(format!(
                    "-b {value} names a file of cookies; write them as -b 'NAME=VALUE; NAME=VALUE'"
                ));
            }
            "cookie" => self.cookies.push(value.to_owned()),
            "location" => self.follow = true,
            "insecure" => self.reach.tls.insecure = true,
            "cacert" => self.reach.tls.cacert = Some(PathBuf::from(value)),
            "cert" => self.reach.tls.cert = Some(PathBuf::from(value)),
            "key" => self.reach.tls.key = Some(PathBuf::from(value)),
            "url" => self.urls.push(value.to_owned()),
            "connect-to" => self.connect_to = Some((CONNECT_TO, value.to_owned())),
            "resolve" => self.connect_to = Some((RESOLVE, value.trim_start_matches(['+', '*']).to_owned())),
            "unix-socket" => self.reach.unix_socket = Some(PathBuf::from(value)),
            "ipv4" => self.reach.ipv4 = true,
            "ipv6" => self.reach.ipv6 = true,
            "http1.1" => self.reach.http = Some(HttpVersion::One),
            "http2" => self.reach.http = Some(HttpVersion::Auto),
            "http2-prior-knowledge" => self.reach.http = Some(HttpVersion::Two),
            "max-time" => self.timeout = Some(seconds(value)?),
            "connect-timeout" => self.connect_timeout = Some(seconds(value)?),
            "proxy" if value.contains("://") => self.reach.proxy = Some(value.to_owned()),
            "proxy" => self.reach.proxy = Some(format!("http://{value}")),
            "compressed" => self.compressed = true,
            "no-keepalive" => self.no_keepalive = true,
            // versions of TLS are agreed on, --basic is how -u is meant, and the rest is about what is shown
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, data: Vec<u8>) {
        match &mut self.data {
            Some(before) => {
                before.push(b'&');
                before.extend_from_slice(&data);
            }
            None => self.data = Some(data),
        }
    }

    fn into_curl(self) -> Result<Curl, String> {
        let url = match &self.urls[..] {
            [url] => url,
            [] => return Err("this curl has no URL".into()),
            [_, other, ..] => {
                return Err(format!("this curl has two URLs; {other} is for a curl of its own"));
            }
        };
        let mut url = parse_url(url)?;
        if self.data.is_some() && !self.fields.is_empty() {
            return Err("this curl has -d and -F; a request has one body".into());
        }
        let mut data = self.data;
        if self.in_query
            && let Some(data) = data.take()
        {
            let data = String::from_utf8(data).map_err(|_| "-G: the data is no text".to_owned())?;
            let before = url.query().map_or_else(String::new, |query| format!("{query}&"));
            url.set_query(Some(&(before + &data)));
        }
        let multipart = (!self.fields.is_empty()).then(|| form::multipart(&self.fields));
        let usual = if self.head {
            Method::Head
        } else if self.upload.is_some() {
            Method::Put
        } else if data.is_some() || multipart.is_some() {
            Method::Post
        } else {
            Method::Get
        };
        let method = self.method.as_deref().map_or(Ok(usual), method)?;
        let mut target = Target { login: self.login, follow: self.follow, ..Target::new(method, url) };
        for line in &self.headers {
            add_header(&mut target, line)?;
        }
        if !self.cookies.is_empty() {
            let at = target.headers.iter().position(|(name, _)| name.eq_ignore_ascii_case("cookie"));
            let own = at.map(|at| target.headers.remove(at).1);
            let all: Vec<String> = own.into_iter().chain(self.cookies).collect();
            target.headers.push(("Cookie".into(), all.join("; ")));
        }
        let content_type = match (&multipart, &data) {
            (Some((content_type, _)), _) => Some(content_type.as_str()),
            (_, Some(_)) if self.json => Some("application/json"),
            (_, Some(_)) => Some("application/x-www-form-urlencoded"),
            _ => None,
        };
        let accept = self.json.then_some(("Accept", "application/json"));
        let encodings = self.compressed.then_some(("Accept-Encoding", "deflate, gzip, br, zstd"));
        for (name, value) in
            content_type.map(|of| ("Content-Type", of)).into_iter().chain(accept).chain(encodings)
        {
            if target.header(name).is_none() {
                target.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        target.body = multipart.map(|(_, body)| body).or(data).or(self.upload);
        let mut reach = self.reach;
        if let Some((parts, text)) = &self.connect_to {
            reach.connect_to = Some(place(*parts, text, &target)?);
        }
        let TlsArguments { cert, key, .. } = &reach.tls;
        if key.is_some() && cert.is_none() {
            return Err("--key needs --cert beside it".into());
        }
        Ok(Curl {
            target,
            reach,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            no_keepalive: self.no_keepalive,
        })
    }
}

/// Adds `Name: value`, or `Name;` for an empty one; `Name:` takes one away that curl would send.
fn add_header(target: &mut Target, line: &str) -> Result<(), String> {
    // what browsers show of HTTP/2, and what the driver writes itself
    let is_own = |name: &str| name.is_empty() || OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    match header(line) {
        Some((_, "")) => Ok(()),
        Some((name, _)) if is_own(name) => Ok(()),
        Some((name, value)) => target.add_header(name, value),
        None if line.starts_with(':') => Ok(()),
        None => match line.strip_suffix(';') {
            Some(name) => target.add_header(name.trim(), ""),
            None => Err(format!("-H '{line}' is not a header; write it as 'Name: value'")),
        },
    }
}

/// Where `HOST1:PORT1:HOST2:PORT2` or `HOST:PORT:ADDRESS` leads to.
fn place(parts: usize, text: &str, target: &Target) -> Result<String, String> {
    let wrong = || {
        format!(
            "{text} is not understood; write --connect-to HOST1:PORT1:HOST2:PORT2 or --resolve HOST:PORT:ADDRESS"
        )
    };
    let behind = text.splitn(3, ':').nth(2).ok_or_else(wrong)?;
    let url = &target.url;
    let port = url.port_or_known_default().unwrap_or(80).to_string();
    if parts == RESOLVE {
        let address = behind.split(',').next().filter(|address| !address.is_empty()).ok_or_else(wrong)?;
        let is_bare_6 = address.contains(':') && !address.starts_with('[');
        return Ok(if is_bare_6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") });
    }
    let (host, to_port) = behind.rsplit_once(':').ok_or_else(wrong)?;
    let host = if host.is_empty() { url.host_str().unwrap_or_default() } else { host };
    Ok(format!("{host}:{}", if to_port.is_empty() { &port } else { to_port }))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time =
        units::parse_duration(&format!("{text}s")).map_err(|_| format!("{text} is no number of seconds"))?;
    if time.is_zero() { Err("0 means no limit; leave it out".into()) } else { Ok(time) }
}

/// The bytes of a file that a flag names.
pub(super) fn file_of(name: &str) -> Result<Vec<u8>, String> {
    read(Path::new(name), "the data").map_err(|failure| failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curl(line: &str) -> Result<Curl, String> {
        parse(&words(line)?)
    }

    fn target(line: &str) -> Target {
        curl(line).unwrap_or_else(|error| panic!("{line}: {error}")).target
    }

    fn body(target: &Target) -> &str {
        target.body.as_deref().map_or("", |body| std::str::from_utf8(body).unwrap())
    }

    #[test]
    fn as_a_browser_copies_it() {
        let line = "curl 'https://shop.test/api/items?page=2' \\\n  -H 'accept: application/json' \\\n  -H 'content-length: 17' \\\n  \
                    -b 'sid=1; theme=dark' \\\n  -H 'user-agent: Mozilla/5.0 (X11)' \\\n  --data-raw $'{\"it\\'s\":\"\\u00e4\\n\"}' \\\n  --compressed";
        let of = target(line);
        assert_eq!((of.method, of.url.as_str()), (Method::Post, "https://shop.test/api/items?page=2"));
        assert_eq!(body(&of), "{\"it's\":\"ä\n\"}");
        let names: Vec<&str> = of.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["accept", "user-agent", "Cookie", "Content-Type", "Accept-Encoding"]);
        assert_eq!(of.header("cookie"), Some("sid=1; theme=dark"));
    }

    #[test]
    fn what_is_sent_is_what_curl_sends() {
        for (line, method, path, sent) in [
            ("curl h/a", Method::Get, "/a", ""),
            ("curl -XDELETE h/a", Method::Delete, "/a", ""),
            ("curl -sSLI h/a", Method::Head, "/a", ""),
            ("curl -d a=1 -d b=2 h", Method::Post, "/", "a=1&b=2"),
            ("curl -X PUT -da=1 --url h/x", Method::Put, "/x", "a=1"),
            ("curl -G -d a=1 -d b=2 'h/s?q=0'", Method::Get, "/s?q=0&a=1&b=2", ""),
            ("curl --data-urlencode 'a=b c&d' h", Method::Post, "/", "a=b%20c%26d"),
            ("curl --json '{}' h", Method::Post, "/", "{}"),
            ("curl -o /dev/null -w '%{http_code}' -s h/x", Method::Get, "/x", ""),
            ("curl -- h/x", Method::Get, "/x", ""),
        ] {
            let of = target(line);
            assert_eq!((of.method, of.path(), body(&of)), (method, path, sent), "{line}");
        }
        assert_eq!(target("curl --json '{}' h").header("accept"), Some("application/json"));
        assert_eq!(target("curl -H 'Content-Type: text/x' -d a h").header("content-type"), Some("text/x"));
        assert_eq!(target("curl -A me -e from -H 'X-Empty;' -H 'Accept:' h").headers.len(), 3);
        assert_eq!(target("curl -u ann:p:w h").login, Some(("ann".into(), "p:w".into())));
        assert!(target("curl -L h").follow && !target("curl h").follow);
        let form = target("curl -F a=1 -F 'b=x;y' h");
        assert!(form.header("content-type").unwrap().starts_with("multipart/form-data; boundary="));
        assert!(body(&form).contains("name=\"a\"\r\n\r\n1\r\n"), "{}", body(&form));
    }

    #[test]
    fn files_are_read_as_curl_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        std::fs::write(&file, [b'a', b'\n', 0xff]).unwrap();
        let sent = |flag: &str| target(&format!("curl {flag} @{} h", file.display())).body.unwrap();
        assert_eq!(sent("-d"), [b'a', 0xff]);
        assert_eq!(sent("--data-binary"), [b'a', b'\n', 0xff]);
        let upload = target(&format!("curl -T {} h/x", file.display()));
        assert_eq!((upload.method, upload.body.unwrap().len()), (Method::Put, 3));
    }

    #[test]
    fn how_it_gets_there() {
        let of =
            curl("curl -k --http2 -4 -m 2.5 --connect-timeout 1 --resolve shop:443:127.0.0.1 https://shop/")
                .unwrap();
        assert!(of.reach.tls.insecure && of.reach.ipv4);
        assert_eq!(
            (of.reach.http, of.timeout),
            (Some(HttpVersion::Auto), Some(Duration::from_millis(2_500)))
        );
        assert_eq!(of.connect_timeout, Some(Duration::from_secs(1)));
        assert_eq!(of.reach.connect_to.as_deref(), Some("127.0.0.1:443"));
        let place = |flag: &str| curl(&format!("curl {flag} http://h:1/")).unwrap().reach.connect_to.unwrap();
        assert_eq!(place("--connect-to ::other:2"), "other:2");
        assert_eq!(place("--connect-to h:1::2"), "h:2");
        assert_eq!(place("--resolve h:1:::1"), "[::1]:1");
        let proxy = |flag: &str| curl(&format!("curl {flag} http://h/")).unwrap().reach.proxy.unwrap();
        assert_eq!(proxy("-x me:mine@p:3128"), "http://me:mine@p:3128");
        assert_eq!(proxy("--proxy http://p"), "http://p");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, says) in [
            ("curl --sslv2 h", "curl's flag --sslv2 is not understood here"),
            ("curl -K config h", "curl's flag -K"),
            ("curl h -c 100", "Flags of hit stand before the word curl"),
            ("curl -X", "-X has no value"),
            ("curl", "no URL"),
            ("curl h i", "two URLs"),
            ("curl -b cookies.txt h", "-b 'NAME=VALUE"),
            ("curl -u ann h", "NAME:PASSWORD"),
            ("curl -d a -F b=c h", "one body"),
            ("curl -d @/no/such/file h", "/no/such/file"),
            ("curl -X FETCH h", "unknown method FETCH"),
            ("curl 'h", "quotes are not closed"),
            ("curl $'h", "quotes are not closed"),
            ("curl ftp://h/", "begins neither with http://"),
        ] {
            let told = curl(line).unwrap_err();
            assert!(told.contains(says), "{line}: {told}");
        }
    }

    #[test]
    fn quotes_are_bashs() {
        for (line, wanted) in [
            ("a 'b c' \"d 'e\" f\\ g", vec!["a", "b c", "d 'e", "f g"]),
            ("$'a\\tb' '$'\\''x'", vec!["a\tb", "$'x"]),
            ("\"$'a'\"", vec!["$'a'"]),
            ("$'\\x41\\102\\u00df\\\\'", vec!["AB\u{df}\\"]),
            ("x$''y", vec!["xy"]),
        ] {
            assert_eq!(words(line).unwrap(), wanted, "{line}");
        }
        assert!(words("$'\\xff'").unwrap_err().contains("not UTF-8"));
    }
}
