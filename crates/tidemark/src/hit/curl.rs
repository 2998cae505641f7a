//! A command line of curl, as browsers copy it, as a request.
//!
//! What says how curl shows an answer is passed over; a flag that would change the request and is not known here is an
//! error that names it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidemark_scenario::plan::{Follow, HttpVersion};
use tidemark_scenario::units;
use url::Url;

use super::form::{self, Field};
use super::target::{Target, header, method, parse_url, read, shown};
use crate::reach::{ReachArguments, TlsArguments};

/// What a command line says.
#[derive(Debug, Clone)]
pub struct Curl {
    /// What is sent.
    pub target: Target,
    /// How it gets there.
    pub reach: ReachArguments,
    /// Longest time until a connection is made.
    pub connect_timeout: Option<Duration>,
    /// Whether each request has a connection of its own.
    pub no_keepalive: bool,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Value,
}

/// A flag: its short form, if it has one, its name, and what it takes.
type Flag = (Option<char>, &'static str, Takes);

/// Flags that say something here.
const KNOWN: &[Flag] = &[
    (Some('X'), "request", Takes::Value),
    (Some('H'), "header", Takes::Value),
    (Some('d'), "data", Takes::Value),
    (None, "data-ascii", Takes::Value),
    (None, "data-raw", Takes::Value),
    (None, "data-binary", Takes::Value),
    (None, "data-urlencode", Takes::Value),
    (None, "json", Takes::Value),
    (Some('G'), "get", Takes::Nothing),
    (Some('I'), "head", Takes::Nothing),
    (Some('T'), "upload-file", Takes::Value),
    (Some('F'), "form", Takes::Value),
    (None, "form-string", Takes::Value),
    (Some('u'), "user", Takes::Value),
    (None, "oauth2-bearer", Takes::Value),
    (Some('A'), "user-agent", Takes::Value),
    (Some('e'), "referer", Takes::Value),
    (Some('b'), "cookie", Takes::Value),
    (Some('c'), "cookie-jar", Takes::Value),
    (Some('L'), "location", Takes::Nothing),
    (None, "max-redirs", Takes::Value),
    (Some('r'), "range", Takes::Value),
    (Some('C'), "continue-at", Takes::Value),
    (None, "url-query", Takes::Value),
    (Some('g'), "globoff", Takes::Nothing),
    (None, "no-sessionid", Takes::Nothing),
    (Some('k'), "insecure", Takes::Nothing),
    (None, "cacert", Takes::Value),
    (Some('E'), "cert", Takes::Value),
    (None, "key", Takes::Value),
    (None, "url", Takes::Value),
    (None, "connect-to", Takes::Value),
    (None, "resolve", Takes::Value),
    (None, "unix-socket", Takes::Value),
    (Some('4'), "ipv4", Takes::Nothing),
    (Some('6'), "ipv6", Takes::Nothing),
    (None, "http1.1", Takes::Nothing),
    (None, "http2", Takes::Nothing),
    (None, "http2-prior-knowledge", Takes::Nothing),
    (Some('m'), "max-time", Takes::Value),
    (None, "connect-timeout", Takes::Value),
    (Some('x'), "proxy", Takes::Value),
    (None, "compressed", Takes::Nothing),
    (None, "no-keepalive", Takes::Nothing),
];

/// Flags that are about what curl shows and keeps of the answer, or say what is so anyway: versions of TLS are agreed on, and
/// `--basic` is how `-u` is meant.
const PASSED_OVER: &[Flag] = &[
    (None, "basic", Takes::Nothing),
    (None, "tlsv1", Takes::Nothing),
    (None, "tlsv1.0", Takes::Nothing),
    (None, "tlsv1.1", Takes::Nothing),
    (None, "tlsv1.2", Takes::Nothing),
    (None, "tlsv1.3", Takes::Nothing),
    (Some('s'), "silent", Takes::Nothing),
    (Some('S'), "show-error", Takes::Nothing),
    (Some('i'), "include", Takes::Nothing),
    (None, "show-headers", Takes::Nothing),
    (Some('v'), "verbose", Takes::Nothing),
    (Some('f'), "fail", Takes::Nothing),
    (None, "fail-with-body", Takes::Nothing),
    (Some('#'), "progress-bar", Takes::Nothing),
    (None, "no-progress-meter", Takes::Nothing),
    (Some('N'), "no-buffer", Takes::Nothing),
    (Some('O'), "remote-name", Takes::Nothing),
    (Some('J'), "remote-header-name", Takes::Nothing),
    (None, "tcp-nodelay", Takes::Nothing),
    (Some('o'), "output", Takes::Value),
    (Some('w'), "write-out", Takes::Value),
    (Some('D'), "dump-header", Takes::Value),
    (None, "stderr", Takes::Value),
    (None, "trace", Takes::Value),
    (None, "trace-ascii", Takes::Value),
    (None, "output-dir", Takes::Value),
    (None, "create-dirs", Takes::Nothing),
    (None, "remote-name-all", Takes::Nothing),
    (Some('R'), "remote-time", Takes::Nothing),
    (Some('j'), "junk-session-cookies", Takes::Nothing),
    (Some('q'), "disable", Takes::Nothing),
    (None, "fail-early", Takes::Nothing),
    (None, "styled-output", Takes::Nothing),
    (None, "no-styled-output", Takes::Nothing),
    (None, "keepalive-time", Takes::Value),
    (None, "expect100-timeout", Takes::Value),
    (None, "suppress-connect-headers", Takes::Nothing),
    (None, "ssl-no-revoke", Takes::Nothing),
];

/// Flags that cannot be done here, with what to do.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["--digest", "--ntlm", "--negotiate", "--anyauth", "--aws-sigv4"],
        "only Basic (-u NAME:PASSWORD) and Bearer (--oauth2-bearer TOKEN) are sent; a signature can be computed in a scenario",
    ),
    (
        &["--retry", "--retry-delay", "--retry-max-time", "--retry-all-errors", "--retry-connrefused"],
        "a request that fails is a result here and is not sent again; leave it out",
    ),
    (&["-:", "--next"], "several requests stand in a list, one a line: --urls FILE"),
    (&["-Z", "--parallel", "--parallel-max"], "how many are under way is hit's -c, before the word curl"),
    (&["-K", "--config"], "write the flags of that file here"),
    (
        &["-n", "--netrc", "--netrc-file", "--netrc-optional"],
        "write -u NAME:PASSWORD; hit's own -n stands before the word curl",
    ),
    (&["-U", "--proxy-user"], "write it into the proxy's URL: -x http://NAME:PASSWORD@HOST:PORT"),
    (&["--noproxy"], "leave it out, and -x for hosts without a proxy"),
    (
        &["--preproxy", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "-p", "--proxytunnel"],
        "a proxy is one of HTTP: -x http://HOST:PORT",
    ),
    (&["-0", "--http1.0", "--http0.9", "--http3", "--http3-only"], "HTTP/1.1 and HTTP/2 are spoken here"),
    (&["-z", "--time-cond"], "write -H 'If-Modified-Since: DATE'"),
    (&["--etag-compare", "--etag-save"], "write -H 'If-None-Match: TAG'"),
    (
        &["--limit-rate", "-y", "--speed-time", "-Y", "--speed-limit"],
        "bytes are sent and taken as fast as they come; leave it out",
    ),
    (&["--location-trusted", "--post301", "--post302", "--post303"], "redirects are followed as by -L alone"),
    (&["--path-as-is", "--request-target"], "the path is sent as its URL has it"),
];

/// Headers that are counted or decided elsewhere: those that a browser copied say what is sent anyway.
const OWN_HEADERS: [&str; 2] = ["content-length", "keep-alive"];
/// Headers that are always sent, or never, with what to do.
const FIXED_HEADERS: [(&str, &str); 5] = [
    ("expect", "bodies are sent at once; leave it out"),
    ("transfer-encoding", "bodies are sent whole, with their length; leave it out"),
    ("host", "HTTP/1.1 has it always"),
    ("content-type", "a body has it always; write its value"),
    ("user-agent", "it is always sent; write -A NAME"),
];

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
                    let (_, name, takes) = find(&format!("-{short}"), |(known, ..)| *known == Some(short))?;
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
fn find(flag: &str, is_so: impl Fn(&&Flag) -> bool) -> Result<Flag, String> {
    KNOWN.iter().chain(PASSED_OVER).find(is_so).copied().ok_or_else(|| not_done(flag))
}

/// Why a flag is refused.
fn not_done(flag: &str) -> String {
    if let Some((_, way_out)) = REFUSED.iter().find(|(flags, _)| flags.contains(&flag)) {
        return format!("curl's {flag} is not supported: {way_out}");
    }
    match flag.split_once('=') {
        Some((name, _)) if KNOWN.iter().any(|(_, known, _)| name.strip_prefix("--") == Some(known)) => {
            format!("curl knows no {name}=VALUE; write {name} VALUE")
        }
        _ => not_understood(flag),
    }
}

fn not_understood(flag: &str) -> String {
    format!(
        "curl's flag {flag} is not understood here; leave it out if it says nothing about the request. Flags of hit stand before \
         the word curl"
    )
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
    /// Its name, and what it holds.
    upload: Option<(String, Vec<u8>)>,
    fields: Vec<Field>,
    login: Option<(String, String)>,
    cookies: Vec<String>,
    /// Files of cookies.
    jars: Vec<String>,
    /// Parameters that are put behind the URL's.
    query: Vec<String>,
    globoff: bool,
    follow: bool,
    max_redirects: Option<i64>,
    compressed: bool,
    connect_to: Vec<(usize, String)>,
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
        if PASSED_OVER.iter().any(|(_, passed_over, _)| *passed_over == name) {
            return Ok(());
        }
        match name {
            "request" => self.method = Some(value.to_owned()),
            "header" if value.starts_with('@') => {
                let text = String::from_utf8(file_of(&value[1..])?)
                    .map_err(|_| format!("-H {value}: the file is not UTF-8 text"))?;
                self.headers
                    .extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
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
            "upload-file" => {
                let name = Path::new(value).file_name().map(|name| name.to_string_lossy().into_owned());
                self.upload = Some((name.unwrap_or_default(), file_of(value)?));
            }
            // both would rather be of hit
            "cookie-jar" if value.parse::<u64>().is_ok() => return Err(not_understood("-c")),
            "range" if !value.contains('-') => return Err(not_understood("-r")),
            "cookie-jar" => {}
            "range" => self.headers.push(format!("Range: bytes={value}")),
            "continue-at" => match value.parse::<u64>() {
                Ok(begin) => self.headers.push(format!("Range: bytes={begin}-")),
                Err(_) => return Err(format!("-C {value} is not a number of bytes; write it as -C 1000")),
            },
            "url-query" => match value.strip_prefix('+') {
                Some(plain) => self.query.push(plain.to_owned()),
                None => self.query.push(String::from_utf8_lossy(&form::encoded(value)?).into_owned()),
            },
            "globoff" => self.globoff = true,
            "no-sessionid" => self.reach.tls.no_resumption = true,
            "max-redirs" => {
                let most = value.parse().map_err(|_| format!("--max-redirs {value} is not a number"))?;
                self.max_redirects = Some(most);
            }
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
            "cookie" if value.is_empty() => {}
            "cookie" if !value.contains('=') => self.jars.push(value.to_owned()),
            "cookie" => self.cookies.push(value.to_owned()),
            "location" => self.follow = true,
            "insecure" => self.reach.tls.insecure = true,
            "cacert" => self.reach.tls.cacert = Some(PathBuf::from(value)),
            "cert" => self.reach.tls.cert = Some(PathBuf::from(value)),
            "key" => self.reach.tls.key = Some(PathBuf::from(value)),
            "url" => self.urls.push(value.to_owned()),
            "connect-to" => self.connect_to.push((CONNECT_TO, value.to_owned())),
            "resolve" => self.connect_to.push((RESOLVE, value.trim_start_matches('+').to_owned())),
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
            _ => return Err(not_understood(&format!("--{name}"))),
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

    fn into_curl(mut self) -> Result<Curl, String> {
        let url = match &self.urls[..] {
            [url] => url,
            [] => return Err("this curl has no URL".into()),
            [_, other, ..] => {
                return Err(format!("this curl has two URLs; {other} is for a curl of its own"));
            }
        };
        let url = if self.globoff { url.clone() } else { without_globs(url)? };
        let mut url = parse_url(&url)?;
        let bodies = [
            self.head,
            self.data.is_some() && !self.in_query,
            !self.fields.is_empty(),
            self.upload.is_some(),
        ];
        if bodies.iter().filter(|is_given| **is_given).count() > 1 {
            return Err(
                "this curl has two of -I, -d, -F and -T; a request has one body, and HEAD none".into()
            );
        }
        let mut data = self.data;
        let mut query = self.query;
        if self.in_query
            && let Some(data) = data.take()
        {
            query
                .insert(0, String::from_utf8(data).map_err(|_| "-G: the data is not UTF-8 text".to_owned())?);
        }
        if !query.is_empty() {
            let before = url.query().map(str::to_owned);
            url.set_query(Some(&before.into_iter().chain(query).collect::<Vec<_>>().join("&")));
        }
        if let Some((name, _)) = self.upload.as_ref().filter(|_| url.path().ends_with('/')) {
            let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string().replace("%2E", ".");
            url.set_path(&format!("{}{name}", url.path()));
        }
        let multipart = (!self.fields.is_empty()).then(|| form::multipart(&self.fields));
        let usual = if self.head {
            "HEAD"
        } else if self.upload.is_some() {
            "PUT"
        } else if data.is_some() || multipart.is_some() {
            "POST"
        } else {
            "GET"
        };
        let method = self.method.as_deref().map_or(Ok(usual.to_owned()), method)?;
        let mut target = Target { timeout: self.timeout, ..Target::new(method, url) };
        target.login = self.login.or(target.login);
        if self.follow {
            let most = self.max_redirects.and_then(|most| u64::try_from(most).ok());
            target.follow = most.unwrap_or(Follow::MOST).min(Follow::MOST);
        }
        let mut removed: Vec<String> = Vec::new();
        let mut no_keepalive = self.no_keepalive;
        for line in &self.headers {
            match header(line) {
                Some((name, value)) if name.eq_ignore_ascii_case("connection") => match value {
                    "" => {}
                    value if value.eq_ignore_ascii_case("keep-alive") => {}
                    value if value.eq_ignore_ascii_case("close") => no_keepalive = true,
                    value => {
                        return Err(format!(
                            "-H 'Connection: {value}' cannot be sent: it is keep-alive or close; a WebSocket is a scenario's `ws connect`"
                        ));
                    }
                },
                Some((name, "")) => removed.push(name.to_ascii_lowercase()),
                _ => add_header(&mut target, line)?,
            }
        }
        if target.header("authorization").is_some() {
            // as curl does: what is written out goes before -u
            target.login = None;
        }
        let has_body = multipart.is_some() || data.is_some() || self.upload.is_some();
        let is_sent = |name: &str| removed.iter().any(|removed| removed == name);
        let fixed = FIXED_HEADERS.iter().skip(2).filter(|(name, _)| *name != "content-type" || has_body);
        if let Some((name, way_out)) = fixed.into_iter().find(|(name, _)| is_sent(name)) {
            return Err(format!("-H '{name}:' is not supported: {way_out}"));
        }
        for jar in &self.jars {
            self.cookies.extend(cookies_of(jar, &target.url)?);
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
        let accept = Some(("Accept", if self.json { "application/json" } else { "*/*" }))
            .filter(|_| !removed.iter().any(|name| name == "accept"));
        let encodings = self.compressed.then_some(("Accept-Encoding", "deflate, gzip, br, zstd"));
        for (name, value) in
            content_type.map(|of| ("Content-Type", of)).into_iter().chain(accept).chain(encodings)
        {
            if target.header(name).is_none() {
                target.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        target.body = multipart.map(|(_, body)| body).or(data).or(self.upload.map(|(_, content)| content));
        let mut reach = self.reach;
        if reach.connect_to.is_none() {
            reach.connect_to = place(&self.connect_to, &target.url)?;
        }
        let TlsArguments { cert, key, .. } = &reach.tls;
        if key.is_some() && cert.is_none() {
            return Err("--key needs --cert beside it".into());
        }
        if target.url.scheme() == "http" {
            // as curl does: they say nothing where TLS is not spoken
            reach.tls = TlsArguments::default();
        }
        Ok(Curl { target, reach, connect_timeout: self.connect_timeout, no_keepalive })
    }
}

/// Adds `Name: value`, or `Name;` for an empty one.
fn add_header(target: &mut Target, line: &str) -> Result<(), String> {
    let is = |known: &str, name: &str| name.eq_ignore_ascii_case(known);
    match header(line) {
        Some((name, _)) if OWN_HEADERS.iter().any(|own| is(own, name)) => Ok(()),
        Some((name, value)) => match FIXED_HEADERS.iter().take(2).find(|(fixed, _)| is(fixed, name)) {
            Some((_, way_out)) => Err(format!("-H '{name}: {value}' cannot be sent: {way_out}")),
            None => target.add_header(name, value),
        },
        // what browsers show of HTTP/2
        None if line.starts_with(':') => Ok(()),
        None => match line.strip_suffix(';') {
            Some(name) => target.add_header(name.trim(), ""),
            None => Err(format!("-H '{line}' is not a header; write it as 'Name: value'")),
        },
    }
}

/// A URL as curl reads it, for which `{…}` and `[…]` are several URLs and a backslash makes them part of one.
fn without_globs(url: &str) -> Result<String, String> {
    let host = url.split_once("://").map_or(0, |(scheme, _)| scheme.len() + 3);
    let host =
        url[host..].split('/').next().and_then(|place| place.rfind('@')).map_or(host, |at| host + at + 1);
    let (begin, mut rest) = url.split_at(host);
    let mut out = begin.to_owned();
    // an address of IPv6
    if let Some((address, behind)) = rest.strip_prefix('[').and_then(|behind| behind.split_once(']')) {
        out += &format!("[{address}]");
        rest = behind;
    }
    let mut escaped = false;
    for c in rest.chars() {
        match c {
            '[' | ']' | '{' | '}' if escaped => out.push(c),
            '[' | '{' => {
                return Err(format!(
                    "{}: curl makes several URLs of {{…}} and […]; write a line for each, or -g to send them as they are",
                    shown(url)
                ));
            }
            _ => {
                if escaped {
                    out.push('\\');
                }
                if c != '\\' {
                    out.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    if escaped {
        out.push('\\');
    }
    Ok(out)
}

/// Cookies for a URL in a file as curl and browsers keep them (Netscape's format).
fn cookies_of(file: &str, url: &Url) -> Result<Vec<String>, String> {
    let wrong = |why: &str| {
        format!("-b {file}: {why}; it is a file of cookies as `curl -c` writes it, or write -b 'NAME=VALUE'")
    };
    let text = String::from_utf8(file_of(file)?).map_err(|_| wrong("it is not UTF-8 text"))?;
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let host = url.host_str().unwrap_or_default();
    let mut cookies = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, below, path, secure, until, name, value] = fields[..] else {
            return Err(wrong(&format!("line {} has not 7 fields", number + 1)));
        };
        let bare = domain.trim_start_matches('.');
        let is_below = below == "TRUE" && host.strip_suffix(bare).is_some_and(|own| own.ends_with('.'));
        let is_of_path = url.path().strip_prefix(path.trim_end_matches('/'));
        let is_of_path = is_of_path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_over = until.parse::<u64>().is_ok_and(|until| until != 0 && until < now);
        let is_open = secure != "TRUE" || url.scheme() == "https";
        if (host.eq_ignore_ascii_case(bare) || is_below) && is_of_path && is_open && !is_over {
            cookies.push(format!("{name}={value}"));
        }
    }
    Ok(cookies)
}

/// Where the first of `HOST1:PORT1:HOST2:PORT2` and `HOST:PORT:ADDRESS` leads to that is of this URL.
fn place(places: &[(usize, String)], url: &Url) -> Result<Option<String>, String> {
    let port = url.port_or_known_default().unwrap_or(80).to_string();
    for (parts, text) in places {
        let wrong = || {
            format!(
                "{text} is not understood; write --connect-to HOST1:PORT1:HOST2:PORT2 or --resolve HOST:PORT:ADDRESS"
            )
        };
        // an address of IPv6 has colons, too
        let bracket = if text.starts_with('[') { text.find(']').ok_or_else(wrong)? } else { 0 };
        let colon = bracket + text[bracket..].find(':').ok_or_else(wrong)?;
        let (of_host, rest) = (&text[..colon], &text[colon + 1..]);
        let (of_port, behind) = rest.split_once(':').ok_or_else(wrong)?;
        let host = url.host_str().unwrap_or_default();
        let any_host = if *parts == RESOLVE { "*" } else { "" };
        let is_of_url = (of_host == any_host || of_host.eq_ignore_ascii_case(host))
            && (of_port == port || *parts == CONNECT_TO && of_port.is_empty());
        if !is_of_url {
            continue;
        }
        if *parts == RESOLVE {
            let address = behind.split(',').next().filter(|address| !address.is_empty()).ok_or_else(wrong)?;
            let is_bare_6 = address.contains(':') && !address.starts_with('[');
            return Ok(Some(if is_bare_6 {
                format!("[{address}]:{port}")
            } else {
                format!("{address}:{port}")
            }));
        }
        let (to_host, to_port) = behind.rsplit_once(':').ok_or_else(wrong)?;
        let to_host = if to_host.is_empty() { host } else { to_host };
        return Ok(Some(format!("{to_host}:{}", if to_port.is_empty() { &port } else { to_port })));
    }
    match places.first() {
        None => Ok(None),
        Some((_, text)) => Err(format!(
            "{text} is for another host; this URL's is {}:{port}; leave it out",
            url.host_str().unwrap_or_default()
        )),
    }
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
    use crate::hit::shell::words;

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
        assert_eq!((of.method.as_str(), of.url.as_str()), ("POST", "https://shop.test/api/items?page=2"));
        assert_eq!(body(&of), "{\"it's\":\"ä\n\"}");
        let names: Vec<&str> = of.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["accept", "user-agent", "Cookie", "Content-Type", "Accept-Encoding"]);
        assert_eq!(of.header("cookie"), Some("sid=1; theme=dark"));
    }

    #[test]
    fn what_is_sent_is_what_curl_sends() {
        for (line, method, path, sent) in [
            ("curl h/a", "GET", "/a", ""),
            ("curl -XDELETE h/a", "DELETE", "/a", ""),
            ("curl -sSLI h/a", "HEAD", "/a", ""),
            ("curl -d a=1 -d b=2 h", "POST", "/", "a=1&b=2"),
            ("curl -X PUT -da=1 --url h/x", "PUT", "/x", "a=1"),
            ("curl -G -d a=1 -d b=2 'h/s?q=0'", "GET", "/s?q=0&a=1&b=2", ""),
            ("curl --data-urlencode 'a=b c&d' h", "POST", "/", "a=b%20c%26d"),
            ("curl --json '{}' h", "POST", "/", "{}"),
            ("curl -o /dev/null -w '%{http_code}' -s h/x", "GET", "/x", ""),
            ("curl -- h/x", "GET", "/x", ""),
            ("curl -X PURGE h/x", "PURGE", "/x", ""),
            ("curl -X PROPFIND -H 'Depth: 1' h/x", "PROPFIND", "/x", ""),
            ("curl --url-query 'a=b c' --url-query +c=%20 'h/x?y'", "GET", "/x?y&a=b%20c&c=%20", ""),
            ("curl -sSLkgvf 'h/x?a[]={b}'", "GET", "/x?a[]={b}", ""),
            (r"curl 'h/x?a\[0\]=1'", "GET", "/x?a[0]=1", ""),
            ("curl -IG -d a=1 h/x", "HEAD", "/x?a=1", ""),
        ] {
            let of = target(line);
            assert_eq!((of.method.as_str(), of.path(), body(&of)), (method, path, sent), "{line}");
        }
        assert_eq!(target("curl --json '{}' h").header("accept"), Some("application/json"));
        assert_eq!(target("curl -H 'Content-Type: text/x' -d a h").header("content-type"), Some("text/x"));
        assert_eq!(target("curl -A me -e from -H 'X-Empty;' -H 'Accept:' h").headers.len(), 3);
        assert_eq!(target("curl -u ann:p:w h").login, Some(("ann".into(), "p:w".into())));
        assert!(target("curl -L h").follow == Follow::MOST && target("curl h").follow == 0);
        let form = target("curl -F a=1 -F 'b=x' h");
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
        assert_eq!((upload.method.as_str(), upload.body.unwrap().len()), ("PUT", 3));
    }

    #[test]
    fn how_it_gets_there() {
        let of =
            curl("curl -k --http2 -4 -m 2.5 --connect-timeout 1 --resolve shop:443:127.0.0.1 https://shop/")
                .unwrap();
        assert!(of.reach.tls.insecure && of.reach.ipv4);
        assert_eq!(
            (of.reach.http, of.target.timeout),
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
    fn every_known_flag_says_something_and_what_is_passed_over_nothing() {
        for (_, name, takes) in KNOWN {
            let value = if *takes == Takes::Value { "1" } else { "" };
            let told = Line::default().apply(name, value);
            assert_ne!(told, Err(not_understood(&format!("--{name}"))));
            assert!(
                REFUSED.iter().all(|(flags, _)| !flags.contains(&format!("--{name}").as_str())),
                "{name}"
            );
        }
        assert_eq!(target("curl --basic --tlsv1.2 -s -u a:b h").login, Some(("a".into(), "b".into())));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, says) in [
            ("curl --sslv2 h", "curl's flag --sslv2 is not understood here"),
            ("curl '- ' h", "curl's flag -  is not understood here"),
            ("curl -K config h", "curl's -K is not supported"),
            ("curl h -c 100", "Flags of hit stand before the word curl"),
            ("curl h -r 100", "Flags of hit stand before the word curl"),
            ("curl h -n 100", "hit's own -n stands before the word curl"),
            ("curl -X", "-X has no value"),
            ("curl", "no URL"),
            ("curl h i", "two URLs"),
            ("curl -b /no/such/jar h", "/no/such/jar"),
            ("curl --digest -u a:b h", "curl's --digest is not supported: only Basic"),
            ("curl --retry 3 h", "--retry is not supported: a request that fails"),
            ("curl h --next h", "--next is not supported: several requests stand in a list"),
            ("curl -: h", "-: is not supported"),
            ("curl -U a:b -x p h", "-x http://NAME:PASSWORD@HOST:PORT"),
            ("curl --request=POST h", "write --request VALUE"),
            ("curl 'h/[1-3]'", "several URLs"),
            ("curl 'h/{a,b}'", "several URLs"),
            ("curl -I -d a h", "HEAD none"),
            ("curl -T /dev/null -d a h", "one body"),
            ("curl -H 'Connection: Upgrade' h", "ws connect"),
            ("curl -H 'Transfer-Encoding: chunked' -d a h", "bodies are sent whole"),
            ("curl -H 'Expect: 100-continue' -d a h", "bodies are sent at once"),
            ("curl -H 'Content-Type:' -d a h", "a body has it always"),
            ("curl -H 'User-Agent:' h", "write -A NAME"),
            ("curl --resolve other:80:127.0.0.1 http://h/", "is for another host; this URL's is h:80"),
            ("curl --max-redirs x -L h", "is not a number"),
            ("curl -C - h", "not a number of bytes"),
            ("curl \"h/$ID\"", "$ID would be expanded by a shell"),
            ("curl -u ann h", "NAME:PASSWORD"),
            ("curl -d a -F b=c h", "one body"),
            ("curl -d @/no/such/file h", "/no/such/file"),
            ("curl -X 'A B' h", "cannot be the method"),
            ("curl 'h", "quotes are not closed"),
            ("curl $'h", "quotes are not closed"),
            ("curl ftp://h/", "begins neither with http://"),
        ] {
            let told = curl(line).unwrap_err();
            assert!(told.contains(says), "{line}: {told}");
        }
    }

    #[test]
    fn headers_are_as_curl_sends_them() {
        let of =
            target("curl -H 'X-A: 1' -H 'x-a: 2' -H 'Connection: keep-alive' -H ':authority: h' -r 0-99 h");
        let all: Vec<String> = of.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(all, ["X-A: 1", "x-a: 2", "Range: bytes=0-99", "Accept: */*"]);
        assert!(curl("curl -H 'Connection: close' h").unwrap().no_keepalive);
        assert!(!curl("curl -H 'Connection: keep-alive' h").unwrap().no_keepalive);
        assert_eq!(target("curl -H 'accept:' h").headers, []);
        assert_eq!(target("curl -C 100 h").header("range"), Some("bytes=100-"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        std::fs::write(&file, "X-A: 1\r\n\nX-B: 2\n").unwrap();
        let of = target(&format!("curl -H @{} h", file.display()));
        assert_eq!((of.header("x-a"), of.header("x-b")), (Some("1"), Some("2")));
    }

    #[test]
    fn who_comes_may_stand_in_the_url() {
        let of = target("curl 'http://admin:p%40ss@h:1/api'");
        assert_eq!((of.url.as_str(), of.login), ("http://h:1/api", Some(("admin".into(), "p@ss".into()))));
        assert_eq!(target("curl -u ann:b http://admin:c@h/").login, Some(("ann".into(), "b".into())));
        assert_eq!(target("curl -H 'Authorization: Own' http://admin:c@h/").login, None);
        let told = curl("curl 'http://ann:hunter2@h/{a,b}'").unwrap_err();
        assert!(!told.contains("hunter2"), "{told}");
    }

    #[test]
    fn a_file_of_cookies_has_those_of_the_url() {
        let folder = tempfile::tempdir().unwrap();
        let jar = folder.path().join("jar");
        let lines = [
            "# Netscape HTTP Cookie File",
            "",
            "#HttpOnly_h.test\tFALSE\t/\tFALSE\t0\tsid\t1",
            ".h.test\tTRUE\t/\tFALSE\t4102444800\tlong\t2",
            "h.test\tFALSE\t/\tFALSE\t1\tover\t3",
            "h.test\tFALSE\t/other\tFALSE\t0\tpath\t4",
            "h.test\tFALSE\t/\tTRUE\t0\tsecure\t5",
            "other.test\tTRUE\t/\tFALSE\t0\tother\t6",
        ];
        std::fs::write(&jar, lines.join("\n")).unwrap();
        let cookies = |url: &str| {
            let of = target(&format!("curl -b {} {url}", jar.display()));
            of.header("cookie").unwrap_or_default().to_owned()
        };
        assert_eq!(cookies("http://h.test/a"), "sid=1; long=2");
        assert_eq!(cookies("https://h.test/a"), "sid=1; long=2; secure=5");
        assert_eq!(cookies("http://h.test/other/a"), "sid=1; long=2; path=4");
        assert_eq!(cookies("http://a.h.test/"), "long=2");
        std::fs::write(&jar, "sid 1\n").unwrap();
        assert!(
            curl(&format!("curl -b {} h", jar.display())).unwrap_err().contains("line 1 has not 7 fields")
        );
    }

    #[test]
    fn what_curl_does_without_tls_and_with_bounds() {
        assert!(!curl("curl -k http://h/").unwrap().reach.tls.insecure);
        assert!(curl("curl -k https://h/").unwrap().reach.tls.insecure);
        assert_eq!(target("curl -L --max-redirs 3 h").follow, 3);
        assert_eq!(target("curl -L --max-redirs -1 h").follow, Follow::MOST);
        assert_eq!(target("curl --max-redirs 3 h").follow, 0);
        assert!(curl("curl --no-sessionid https://h/").unwrap().reach.tls.no_resumption);
        let place = |line: &str| curl(line).unwrap().reach.connect_to;
        let line = "curl --resolve other:80:127.0.0.1 --resolve h:80:127.0.0.2 http://h/";
        assert_eq!(place(line).as_deref(), Some("127.0.0.2:80"));
        assert_eq!(place("curl --resolve '*:80:127.0.0.3' http://h/").as_deref(), Some("127.0.0.3:80"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.txt");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(target(&format!("curl -T '{}' h/d/", file.display())).path(), "/d/a%20b.txt");
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "curl( -{0,2}[a-zA-Z:#.0-9]{0,12}| [ -~]{0,12}){0,6}") {
            // it waits for nothing, and looks at no file that happens to be there
            if !line.contains(['@', '<', '/']) && !line.split_whitespace().any(|word| word.ends_with('-')) {
                let _ = curl(&line);
            }
        }
    }
}
