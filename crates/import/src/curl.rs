//! A command line of curl, as browsers copy it, as a request.
//!
//! What says how curl shows an answer is passed over; a flag that would change the request and is not known here is an
//! error that names it.

mod cookies;
mod flags;
mod place;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_scenario::plan::{Follow, HttpVersion};
use tidemark_scenario::units;

use cookies::cookies_of;
use flags::{PASSED_OVER, Takes, find, meant_for_hit, not_understood};
use place::{CONNECT_TO, RESOLVE, place};

use crate::form::{self, Field};
use crate::percent;
use crate::reach::{Reach, TlsReach};
use crate::target::{Target, header, method, parse_url, read_small, shown, with_scheme};

/// What a command line says.
#[derive(Debug, Clone)]
pub struct Curl {
    /// What is sent.
    pub target: Target,
    /// How it gets there.
    pub reach: Reach,
    /// Longest time until a connection is made.
    pub connect_timeout: Option<Duration>,
    /// Whether each request has a connection of its own.
    pub no_keepalive: bool,
}

/// Headers that are counted or decided elsewhere: those that a browser copied say what is sent anyway.
const OWN_HEADERS: [&str; 2] = ["content-length", "keep-alive"];
/// Headers that are always sent, or never, with what to do.
const FIXED_HEADERS: [(&str, &str); 3] = [
    ("expect", "bodies are sent at once; leave it out"),
    ("transfer-encoding", "bodies are sent whole, with their length; leave it out"),
    ("host", "HTTP/1.1 has it always"),
];

/// A text that is a command line of curl, without the prompt, `sudo` and the folder that may stand before that word.
pub fn command_line(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let prompt = ["$ ", "% ", "> ", "# "].into_iter().find_map(|prompt| text.strip_prefix(prompt));
    let line = prompt.unwrap_or(text).trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line).trim_start();
    line.split_whitespace().next().filter(|first| is_curl(first)).map(|_| line)
}

/// Whether this word begins a command line of curl.
pub fn is_curl(first: &str) -> bool {
    first.rsplit(['/', '\\']).next().is_some_and(|name| ["curl", "curl.exe"].contains(&name))
        && !first.contains("://")
}

/// Reads a command line; its first word is curl.
///
/// # Errors
/// Where a flag changes the request and is not known here, or a file that it names cannot be read.
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
    reach: Reach,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    no_keepalive: bool,
}

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
            // this would rather be of hit
            "data" if units::parse_duration(value).is_ok() => {
                let is = "the body, which is written --data-raw where it looks like a time";
                return Err(meant_for_hit("-d", value, is));
            }
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
            // these would rather be of hit
            "cookie-jar" if value.parse::<u64>().is_ok() => {
                return Err(meant_for_hit("-c", value, "the file that cookies are written to"));
            }
            "range" if !value.contains('-') => {
                return Err(meant_for_hit("-r", value, "a range of bytes, like 0-99"));
            }
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
            url.set_path(&format!("{}{}", url.path(), percent::encoded(name)));
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
        let is_removed = |name: &str| removed.iter().any(|removed| removed == name);
        if let Some((name, way_out)) = FIXED_HEADERS.iter().skip(2).find(|(name, _)| is_removed(name)) {
            return Err(format!("-H '{name}:' is not supported: {way_out}"));
        }
        for jar in &self.jars {
            self.cookies.extend(cookies_of(jar, &target.url)?);
        }
        // as curl does: what is written out goes before -b
        if !self.cookies.is_empty() && target.header("cookie").is_none() {
            target.headers.push(("Cookie".into(), self.cookies.join("; ")));
        }
        let content_type = match (&multipart, &data) {
            (Some((content_type, _)), _) => Some(content_type.as_str()),
            // also with -G, which puts the data into the query
            _ if self.json => Some("application/json"),
            (_, Some(_)) => Some("application/x-www-form-urlencoded"),
            _ => None,
        };
        let accept = if self.json { "application/json" } else { "*/*" };
        let encodings = self.compressed.then_some(("Accept-Encoding", "deflate, gzip, br, zstd"));
        let usual = content_type.map(|of| ("Content-Type", of)).into_iter().chain([("Accept", accept)]);
        for (name, value) in usual.chain(encodings) {
            if target.header(name).is_none() && !is_removed(&name.to_ascii_lowercase()) {
                target.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        if let Some((content_type, _)) = &multipart {
            target.add_boundary(content_type);
        }
        for name in ["Content-Type", "User-Agent"] {
            let is_unsent = name == "Content-Type" || is_removed("user-agent");
            if is_unsent && target.header(name).is_none() {
                target.omitted.push(name);
            }
        }
        target.body = multipart.map(|(_, body)| body).or(data).or(self.upload.map(|(_, content)| content));
        let mut reach = self.reach;
        if reach.connect_to.is_none() {
            reach.connect_to = place(&self.connect_to, &target.url)?;
        }
        let TlsReach { cert, key, .. } = &reach.tls;
        if key.is_some() && cert.is_none() {
            return Err("--key needs --cert beside it".into());
        }
        if target.url.scheme() == "http" {
            // as curl does: they say nothing where TLS is not spoken
            reach.tls = TlsReach::default();
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
    let host = with_scheme(url).map_or(0, |(scheme, _)| scheme.len() + 3);
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

fn seconds(text: &str) -> Result<Duration, String> {
    let time = units::parse_duration(&format!("{text}s"))
        .map_err(|_| format!("{text} is not a number of seconds"))?;
    if time.is_zero() { Err("0 means no limit; leave it out".into()) } else { Ok(time) }
}

/// The bytes of a file that a flag names.
pub(crate) fn file_of(name: &str) -> Result<Vec<u8>, String> {
    read_small(Path::new(name), "the data").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
