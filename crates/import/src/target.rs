//! What is sent: each is a line of the report.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use tidemark_scenario::source::method_as_sent;
use tidemark_wire::http1::is_token;
use url::Url;

use crate::error::ImportError;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// A token of HTTP.
    pub method: String,
    /// Whole, but for a login.
    pub url: Url,
    /// In order; what is sent several times stands here as often.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<Vec<u8>>,
    /// Headers that are otherwise sent by themselves, and are not.
    pub omitted: Vec<&'static str>,
    /// User and password.
    pub login: Option<(String, String)>,
    /// How many redirects are followed.
    pub follow: u64,
    /// Longest time for its answer, where no flag says another.
    pub timeout: Option<Duration>,
}

impl Target {
    /// A request without headers and body. User and password of the URL become its login.
    pub fn new(method: impl Into<String>, mut url: Url) -> Target {
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let login =
            has_login(&url).then(|| (plain(url.username()), plain(url.password().unwrap_or_default())));
        // every URL of HTTP can be without
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Target {
            method: method.into(),
            url,
            headers: Vec::new(),
            body: None,
            omitted: Vec::new(),
            login,
            follow: 0,
            timeout: None,
        }
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

    /// Lets a form's own Content-Type say what stands between its parts, as this one does.
    pub fn add_boundary(&mut self, content_type: &str) {
        let Some((plain, _)) = content_type.split_once(';') else { return };
        for (name, value) in &mut self.headers {
            if name.eq_ignore_ascii_case("content-type") && value.trim().eq_ignore_ascii_case(plain) {
                content_type.clone_into(value);
            }
        }
    }

    /// Adds a header; one that is there already is sent twice.
    ///
    /// # Errors
    /// Where it cannot be set.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("keep-alive") {
            // connections are kept anyway
            return Ok(());
        }
        if !is_token(name.as_bytes()) && !name.chars().any(char::is_control) {
            return Err(format!("\"{name}\" cannot be a header's name"));
        }
        if name.chars().chain(value.chars()).any(|c| c.is_control() && c != '\t') {
            return Err(format!(
                "the header {} has a line break or another control character in it, which HTTP does not allow",
                name.escape_debug()
            ));
        }
        if name.eq_ignore_ascii_case("connection") {
            return Err(format!("'Connection: {value}' cannot be set as a header; see --disable-keepalive"));
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

/// The method of this name: one that all know in any case, any other as it is written.
///
/// # Errors
/// Where HTTP allows no such name.
pub fn method(name: &str) -> Result<String, String> {
    let wrong = || format!("`{name}` cannot be the method of a request; write one like GET, POST or PURGE");
    method_as_sent(name).map(str::to_owned).ok_or_else(wrong)
}

fn has_login(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The scheme of a URL, and what is behind `://`; none where that stands in its path or query: `localhost/to?url=http://h`.
pub(crate) fn with_scheme(url: &str) -> Option<(&str, &str)> {
    url.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#']))
}

/// A URL as it may be shown: without user and password.
pub fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((_, host)) = place.rsplit_once('@') else { return url.to_owned() };
    let begin = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{begin}***@{host}{}", &rest[place.len()..])
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
        _ if with_scheme(text).is_some() => text.to_owned(),
        _ if text.starts_with(':') => format!("http://localhost{text}"),
        _ => format!("http://{text}"),
    };
    let wrong = |reason: String| format!("`{}` is not a URL to hit: {reason}", shown(text));
    let url = Url::parse(&whole).map_err(|error| wrong(format!("{error}; write http://HOST:PORT/PATH")))?;
    if let Some((_, step)) = BY_SCENARIO.iter().find(|(scheme, _)| *scheme == url.scheme()) {
        return Err(wrong(format!(
            "it is driven by a scenario, with `system: {{url: …}}` and steps like `{step}`; give that to `tidemark run`"
        )));
    }
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong(
            "it begins neither with http:// nor with https:// nor with grpc:// nor with redis://".into(),
        ));
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
pub fn read_small(file: &std::path::Path, what: &str) -> Result<Vec<u8>, ImportError> {
    use std::io::Read;
    let stdin = file == std::path::Path::new("-");
    let shown = if stdin { "standard input".to_owned() } else { file.display().to_string() };
    let wrong = |reason: String| ImportError::new(format!("{what} in {shown}: {reason}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leaves_the_url() {
        for (url, user, password) in [
            ("http://admin:p%40ss@h/a?b=1", "admin", "p@ss"),
            ("h.test:80/", "", ""),
            ("http://token@h/", "token", ""),
            ("http://:only@h/", "", "only"),
            ("u:p@h.test/", "u", "p"),
        ] {
            let of = Target::new("GET", parse_url(url).unwrap());
            let login = of.login.clone().unwrap_or_default();
            assert_eq!((login.0.as_str(), login.1.as_str()), (user, password), "{url}");
            assert!(!of.url.as_str().contains('@'), "{}", of.url);
        }
        assert_eq!(shown("http://a:b@h/c@d"), "http://***@h/c@d");
        assert_eq!(shown("a:b@h"), "***@h");
        assert_eq!(shown("http://h/c@d"), "http://h/c@d");
        let to = parse_url("localhost:8080/to?url=http://h/").unwrap();
        assert_eq!(to.as_str(), "http://localhost:8080/to?url=http://h/");
        let told = parse_url("http://ann:hunter2@h:99999/").unwrap_err();
        assert!(told.contains("http://***@h:99999/") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn any_token_is_a_method() {
        for (name, wanted) in
            [("get", "GET"), ("PURGE", "PURGE"), ("Own-1", "Own-1"), ("M-SEARCH", "M-SEARCH")]
        {
            assert_eq!(method(name).unwrap(), wanted);
        }
        for name in ["", "A B", "GET/", "connect"] {
            assert!(method(name).unwrap_err().contains("cannot be the method"), "{name}");
        }
    }
}
