//! What is sent: each is a line of the report.

use tidemark_scenario::source::Method;
use url::Url;

use crate::failure::Failure;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub method: Method,
    /// Whole.
    pub url: Url,
    /// In order, each name once.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// User and password.
    pub login: Option<(String, String)>,
    /// Whether redirects are followed.
    pub follow: bool,
}

impl Target {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url) -> Target {
        Target { method, url, headers: Vec::new(), body: None, login: None, follow: false }
    }

    /// Its path and query.
    pub fn path(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Adds a header that is not there yet.
    ///
    /// # Errors
    /// Where it is, or cannot be set.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.header(name).is_some() {
            return Err(format!(
                "the header {name} is given twice; put its values into one, with a comma between them"
            ));
        }
        if name.chars().chain(value.chars()).any(|c| c.is_control() && c != '\t') {
            return Err(format!(
                "the header {} has a line break or another control character in it, which HTTP does not allow",
                name.escape_debug()
            ));
        }
        if name.eq_ignore_ascii_case("connection") {
            return Err("'Connection: …' cannot be set as a header; see --disable-keepalive".into());
        }
        if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(format!("{name} is written by itself: the body is sent whole; leave it out"));
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// `Name: value`.
pub fn header(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(name, value)| (name.trim(), value.trim())).filter(|(name, _)| !name.is_empty())
}

/// The method of this name, in any case.
///
/// # Errors
/// Where no step has it, with those that there are.
pub fn method(name: &str) -> Result<Method, String> {
    let name = name.to_ascii_uppercase();
    Method::from_name(&name).ok_or_else(|| {
        let all: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
        format!("unknown method {name}; it is one of {}", all.join(", "))
    })
}

/// Schemes that only a scenario has, each with a step.
const BY_SCENARIO: [(&str, &str); 8] = [
    ("aerospike", "aerospike: [get, people, ann]"),
    ("memcached", "memcached: [get, greeting]"),
    ("memcacheds", "memcached: [get, greeting]"),
    ("postgres", "sql: SELECT 1"),
    ("postgresql", "sql: SELECT 1"),
    ("cql", "cql: SELECT release_version FROM system.local"),
    ("ws", "ws connect: /chat"),
    ("wss", "ws connect: /chat"),
];

/// A URL; `http://` may be left out, and a port alone is one of this machine.
///
/// # Errors
/// Where it is none, or not one of HTTP.
pub fn parse_url(text: &str) -> Result<Url, String> {
    let whole = match text {
        _ if text.contains("://") => text.to_owned(),
        _ if text.starts_with(':') => format!("http://localhost{text}"),
        _ => format!("http://{text}"),
    };
    let wrong = |reason: String| format!("`{text}` is not a URL to hit: {reason}");
    let url = Url::parse(&whole).map_err(|error| wrong(format!("{error}; write http://HOST:PORT/PATH")))?;
    if let Some((_, step)) = BY_SCENARIO.iter().find(|(scheme, _)| *scheme == url.scheme()) {
        return Err(wrong(format!(
            "it is driven by a scenario, with `system: {{url: …}}` and steps like `{step}`; give that to `tidemark run`"
        )));
    }
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong("it begins neither with http:// nor with https:// nor with redis://".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("give a name and password as a header: -H 'Authorization: Basic …'".into()));
    }
    Ok(url)
}

/// Where a URL is without its path.
pub fn origin(url: &Url) -> &str {
    &url[..url::Position::BeforePath]
}

/// Largest file that becomes a part of the scenario, bytes.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// The bytes of a file, or of standard input as `-`; `what` is for messages.
pub fn read(file: &std::path::Path, what: &str) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let stdin = file == std::path::Path::new("-");
    let shown = if stdin { "standard input".to_owned() } else { file.display().to_string() };
    let wrong = |reason: String| Failure::usage(format!("{what} in {shown}: {reason}"));
    let mut bytes = Vec::new();
    let done = match stdin {
        true => std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(file)
            .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    done.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it is larger than {} MiB; use a smaller one", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}
