//! A file of requests, of which each is a line of the report: URLs, `METHOD URL [body]`, vegeta's targets as text and as
//! JSON, and command lines of curl, in any order.
//!
//! ```text
//! # a path, or a URL, with the method and body of the flags
//! /a
//! # a method, a URL, and the rest of the line as body
//! PUT /items/7 {"count": 1}
//!
//! # the same with the version of a request line, or as siege writes it
//! GET /a HTTP/1.1
//! http://127.0.0.1:8080/items POST count=1
//!
//! # vegeta's text: headers, and a file with the body, on lines of their own
//! POST http://127.0.0.1:8080/items
//! Content-Type: application/json
//! @item.json
//!
//! {"method": "GET", "url": "http://127.0.0.1:8080/a", "header": {"X-One": ["1"]}, "body": "aGVsbG8="}
//!
//! curl -X POST http://127.0.0.1:8080/ \
//!   --data-raw 'a=1'
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tidemark_scenario::source::Method;
use tidemark_wire::http1::is_token;
use url::Url;

use crate::curl::{self, Curl, is_curl};
use crate::error::ImportError;
use crate::foreign;
use crate::shell;
use crate::target::{Target, header, method, read_small, shown};

/// How lines of other languages begin, with what they are.
const FOREIGN: [(&str, &str); 8] = [
    ("Invoke-WebRequest", "PowerShell"),
    ("Invoke-RestMethod", "PowerShell"),
    ("$session", "PowerShell"),
    ("fetch(", "JavaScript"),
    ("await fetch(", "JavaScript"),
    ("wget ", "a command line of wget"),
    ("http ", "a command line of HTTPie"),
    ("import ", "a program"),
];

/// What may be written.
const FORMS: &str = "write one URL a line, or a JSON array of URLs: [\"/a\", \"/b\"]";

/// What a file says.
#[derive(Debug, Default)]
pub struct List {
    /// In its order.
    pub targets: Vec<Target>,
    /// What its command lines of curl say beside that.
    pub curls: Vec<Curl>,
}

/// Reads a file. `base` is what paths are of, if that is known; `defaults` are the method and the body of lines that say none.
///
/// # Errors
/// Where the file cannot be read or a line is no request, with its place.
pub fn list(file: &Path, base: Option<&Url>, defaults: &Defaults) -> Result<List, ImportError> {
    list_of(file, read_small(file, "the URLs")?, base, defaults)
}

/// The same of a file's bytes; `file` is what messages call it, and where bodies named in it lie.
///
/// # Errors
/// As of [`list`].
pub fn list_of(
    file: &Path,
    bytes: Vec<u8>,
    base: Option<&Url>,
    defaults: &Defaults,
) -> Result<List, ImportError> {
    let text = foreign::text(bytes).map_err(|reason| {
        ImportError::new(format!("cannot read the URLs in {}: {reason}", file.display()))
    })?;
    let mut reader = Reader { file, base: base.cloned(), defaults, list: List::default() };
    let wrong = |place: String| {
        move |reason: String| ImportError::new(format!("{}{place}: {reason}", file.display()))
    };
    match array(&text).map_err(wrong(String::new()))? {
        Some(items) => {
            for (number, item) in (1..).zip(items) {
                reader.item(&item).map_err(wrong(format!(": entry {number}")))?;
            }
        }
        None => reader.lines(&text).map_err(|(number, reason)| wrong(format!(":{number}"))(reason))?,
    }
    if reader.list.targets.is_empty() {
        return Err(ImportError::new(format!("{} has no URL; write one a line", file.display())));
    }
    Ok(reader.list)
}

/// What a JSON array holds; none of a file that is none. An IPv6 address begins with a bracket, too.
fn array(text: &str) -> Result<Option<Vec<serde_json::Value>>, String> {
    let inner = text.trim_start().strip_prefix('[').map(str::trim_start);
    if !inner.is_some_and(|inner| inner.is_empty() || inner.starts_with(['"', '{', '[', ']'])) {
        return Ok(None);
    }
    serde_json::from_str(text)
        .map(Some)
        .map_err(|error| format!("it begins as a JSON array and is not: {error}; {FORMS}"))
}

/// What lines have that say nothing about it.
#[derive(Debug, Default)]
pub struct Defaults {
    /// Their method; GET, or POST where there is a body.
    pub method: Option<String>,
    /// Their body.
    pub body: Option<Vec<u8>>,
}

impl Defaults {
    fn method(&self) -> String {
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        self.method.clone().unwrap_or_else(|| usual.to_owned())
    }
}

struct Lines<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    at: usize,
}

impl<'t> Lines<'t> {
    /// The next line and its number, from 1.
    fn next(&mut self) -> Option<(usize, &'t str)> {
        let line = *self.lines.get(self.at)?;
        self.at += 1;
        Some((self.at, line))
    }

    /// All from the line on that was last read.
    fn whole(&self) -> &'t str {
        let line = self.lines[self.at - 1];
        &self.text[line.as_ptr() as usize - self.text.as_ptr() as usize..]
    }

    /// The next line, if it is so.
    fn next_if(&mut self, is_so: impl Fn(&str) -> bool) -> Option<&'t str> {
        self.lines.get(self.at).filter(|line| is_so(line))?;
        self.next().map(|(_, line)| line)
    }
}

/// A target of vegeta's JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    method: String,
    url: String,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
    /// In base64.
    #[serde(default)]
    body: Option<String>,
}

struct Reader<'a> {
    file: &'a Path,
    base: Option<Url>,
    defaults: &'a Defaults,
    list: List,
}

impl Reader<'_> {
    /// All requests of a text; else the line that is wrong, and why.
    fn lines(&mut self, text: &str) -> Result<(), (usize, String)> {
        let mut lines = Lines { text, lines: text.lines().collect(), at: 0 };
        while let Some((number, line)) = lines.next() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.entry(line, &mut lines).map_err(|reason| (number, reason))?;
        }
        Ok(())
    }

    /// An entry of a JSON array: a line as a text, or a target of vegeta's.
    fn item(&mut self, item: &serde_json::Value) -> Result<(), String> {
        match item {
            serde_json::Value::String(line) => self.lines(line).map_err(|(_, reason)| reason),
            serde_json::Value::Object(_) => {
                let target = self.json(&item.to_string())?;
                self.list.targets.push(target);
                Ok(())
            }
            other => Err(format!("not a URL: {}; {FORMS}", shown(&other.to_string()))),
        }
    }

    /// One request, which begins on this line.
    fn entry(&mut self, line: &str, lines: &mut Lines<'_>) -> Result<(), String> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim_start();
        if let Some((_, what)) = FOREIGN.iter().find(|(begin, _)| line.starts_with(begin)) {
            return Err(format!("this is {what}; copy the request as cURL (bash), or write METHOD URL"));
        }
        let target = if is_curl(first) {
            self.curl(lines)?
        } else if line.starts_with('{') {
            self.json(line)?
        } else if rest.is_empty() && Method::ALL.iter().any(|known| known.as_str() == first) {
            return Err(format!("{first} names no URL; write {first} URL"));
        } else if is_method(first, rest) {
            self.with_method(method(first)?, rest, lines)?
        } else {
            self.without_method(line)?
        };
        self.list.targets.push(target);
        Ok(())
    }

    /// A command line, which may go on on more lines.
    fn curl(&mut self, lines: &mut Lines<'_>) -> Result<Target, String> {
        let whole = lines.whole();
        let (words, rest) = shell::command(whole)?;
        lines.at += whole[..whole.len() - rest.len()].lines().count() - 1;
        let curl = curl::parse(&words)?;
        let is_alike = |other: &Curl| {
            (&other.reach, other.connect_timeout, other.no_keepalive)
                == (&curl.reach, curl.connect_timeout, curl.no_keepalive)
        };
        if self.list.curls.first().is_some_and(|first| !is_alike(first)) {
            return Err("this curl gets there in another way than the first one (-k, -x, --http2, --connect-timeout, \
                        Connection: close and so on); one run has one way"
                .into());
        }
        let target = Target { url: self.url(curl.target.url.as_str())?, ..curl.target.clone() };
        self.list.curls.push(curl);
        Ok(target)
    }

    /// A URL or a path; a version of HTTP behind it, or a method with a body, as siege has them.
    fn without_method(&self, line: &str) -> Result<Target, String> {
        let (url, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if url.starts_with(['"', '\'']) || !rest.is_empty() && !url.starts_with('/') && !url.contains("://") {
            return Err(format!(
                "not a request: {}; write a URL or a path, METHOD URL, or a curl command line",
                shown(line)
            ));
        }
        if is_version(rest)? {
            return Ok(Target {
                body: self.defaults.body.clone(),
                ..Target::new(self.defaults.method(), self.url(url)?)
            });
        }
        let (word, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if Method::ALL.iter().any(|known| known.as_str() == word) {
            return self.with_body(word.to_owned(), url, body.trim());
        }
        let is_url = |word: &str| word.starts_with("http://") || word.starts_with("https://");
        if rest.split_whitespace().any(is_url) {
            return Err(format!("two URLs in one line: {}; write each on a line of its own", shown(line)));
        }
        if line.contains('\t') {
            return Err(format!("a tab within a URL: {}; write it as %09, or remove it", shown(line)));
        }
        Ok(Target {
            body: self.defaults.body.clone(),
            ..Target::new(self.defaults.method(), self.url(line)?)
        })
    }

    /// `METHOD URL [body]`, and vegeta's lines behind it.
    fn with_method(&self, method: String, rest: &str, lines: &mut Lines<'_>) -> Result<Target, String> {
        let (url, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut target = self.with_body(method, url, body.trim())?;
        let is_of_it = |line: &str| {
            let line = line.trim();
            line.starts_with('@')
                || (header(line).is_some_and(|(name, _)| is_token(name.as_bytes())) && !is_url(line))
        };
        while let Some(line) = lines.next_if(is_of_it).map(str::trim) {
            if let Some(file) = line.strip_prefix('@') {
                let file = self.file.parent().unwrap_or(Path::new("")).join(file.trim());
                target.body = Some(read_small(&file, "the body").map_err(|error| error.to_string())?);
            } else if let Some((name, value)) = header(line) {
                target.add_header(name, value)?;
            }
        }
        Ok(target)
    }

    /// A request with what stands behind its URL: a body, or a version of HTTP.
    fn with_body(&self, method: String, url: &str, body: &str) -> Result<Target, String> {
        let body = if is_version(body)? { "" } else { body };
        let own = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        Ok(Target { body: own.or_else(|| self.defaults.body.clone()), ..Target::new(method, self.url(url)?) })
    }

    fn json(&self, line: &str) -> Result<Target, String> {
        let json: Json = serde_json::from_str(line).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            format!("not a vegeta JSON target: {reason} at character {}; {FORMS}", error.column())
        })?;
        let mut target = Target::new(method(&json.method)?, self.url(&json.url)?);
        for (name, values) in &json.header {
            for value in values {
                target.add_header(name, value)?;
            }
        }
        target.body = match json.body {
            Some(body) => Some(
                STANDARD.decode(body).map_err(|error| format!("its body is not valid base64: {error}"))?,
            ),
            None => self.defaults.body.clone(),
        };
        Ok(target)
    }

    /// A URL of the same server as the others; a path is one of the server that is known.
    fn url(&self, text: &str) -> Result<Url, String> {
        let known = self.base.as_ref().or(self.list.targets.first().map(|target| &target.url));
        let Some(base) = known else {
            if text.starts_with('/') {
                return Err(format!(
                    "{text}: no server is known yet; give its URL before --urls, or a whole URL on the first line"
                ));
            }
            return crate::target::parse_url(text);
        };
        let url = base.join(text).map_err(|error| format!("{error}: {}", shown(text)))?;
        if url.origin() != base.origin() {
            let of = base.origin().ascii_serialization();
            return Err(format!(
                "not on {of}, and one hit drives one server: {}; in a scenario others are `targets`",
                shown(text)
            ));
        }
        Ok(url)
    }
}

/// Whether a line begins with a method: one that all know, or any other in capitals before what can only be a URL.
fn is_method(first: &str, rest: &str) -> bool {
    let is_known = Method::ALL.iter().any(|known| known.as_str().eq_ignore_ascii_case(first));
    let is_capitals = first.starts_with(|c: char| c.is_ascii_uppercase())
        && first.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
    let is_url =
        rest.starts_with(['/', '?']) || rest.split_whitespace().next().is_some_and(|url| url.contains("://"));
    !rest.is_empty() && (is_known || is_capitals && is_url)
}

/// Whether this is the version that a request line ends with.
fn is_version(text: &str) -> Result<bool, String> {
    match text.split_once('/') {
        Some(("HTTP" | "http", "1.1")) => Ok(true),
        Some(("HTTP" | "http", number)) if number.starts_with(|c: char| c.is_ascii_digit()) => {
            Err(format!("{text} cannot be set for one line: leave it out, or give --http 2 for all of them"))
        }
        _ => Ok(false),
    }
}

/// Whether what looks like a header is rather a URL: `http://…`, `localhost:8080/`.
fn is_url(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return true };
    value.starts_with("//")
        || (name.contains('.') || name == "localhost") && value.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file with this text says.
    fn read_list(text: &str) -> Result<List, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("body.bin"), [0, 0xff, b'\n']).unwrap();
        let file = folder.path().join("list");
        std::fs::write(&file, text).unwrap();
        let base = Url::parse("http://h:1/").unwrap();
        list(&file, Some(&base), &Defaults::default()).map_err(|error| error.to_string())
    }

    fn listed(targets: &[Target]) -> Vec<String> {
        let body = |target: &Target| {
            target.body.as_deref().map(String::from_utf8_lossy).map(|body| body.into_owned())
        };
        targets
            .iter()
            .map(|target| {
                let headers: Vec<String> =
                    target.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {} {headers:?} {:?}", target.method, target.path(), body(target))
            })
            .collect()
    }

    #[test]
    fn each_form_is_read() {
        let text = "# several\n/a?b=c d\nhttp://h:1/b\nPUT /items/7 {\"a\": 1}\nGET http://h:1/c\nX-One: 1:2\nX-Two: b\n\n\
                    POST /d\n@body.bin\nDELETE /e\n{\"method\":\"POST\",\"url\":\"http://h:1/f\",\"header\":{\"A\":[\"1\",\"2\"]},\"body\":\"aGVsbG8=\"}\n\
                    curl -H 'A: b' \\\n  --data-raw 'x=1' http://h:1/g\nGET /last\n";
        let list = read_list(text).unwrap();
        let wanted = [
            "GET /a?b=c%20d [] None",
            "GET /b [] None",
            "PUT /items/7 [] Some(\"{\\\"a\\\": 1}\")",
            "GET /c [\"X-One=1:2\", \"X-Two=b\"] None",
            "POST /d [] Some(\"\\0\u{fffd}\\n\")",
            "DELETE /e [] None",
            "POST /f [\"A=1\", \"A=2\"] Some(\"hello\")",
            "POST /g [\"A=b\", \"Content-Type=application/x-www-form-urlencoded\", \"Accept=*/*\"] Some(\"x=1\")",
            "GET /last [] None",
        ];
        assert_eq!(listed(&list.targets), wanted);
        assert_eq!(list.targets[4].body.as_deref(), Some(&[0, 0xff, b'\n'][..]));
        assert_eq!(list.curls.len(), 1);
    }

    #[test]
    fn a_json_array_is_a_list_and_so_is_utf_16() {
        let array =
            "\n[ \"/a\", \"http://h:1/b?c=d\",\n \"PUT /e {}\", {\"method\": \"GET\", \"url\": \"/f\"}]\n";
        let wanted = ["GET /a [] None", "GET /b?c=d [] None", "PUT /e [] Some(\"{}\")", "GET /f [] None"];
        assert_eq!(listed(&read_list(array).unwrap().targets), wanted);
        for (text, says) in [
            ("[\"/a\", 5]", "list: entry 2: not a URL: 5; write one URL a line, or a JSON array of URLs"),
            ("[\"/a\", \"http://else/b\"]", "list: entry 2: not on http://h:1"),
            ("[\"/a\"", "list: it begins as a JSON array and is not: "),
            ("[]", "list has no URL"),
            ("{\"urls\": [\"/a\"]}", "write one URL a line, or a JSON array of URLs"),
        ] {
            let error = read_list(text).map(|list| listed(&list.targets)).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert!(array_of("[::1]:8080/a").is_none());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        let bytes: Vec<u8> = "\u{feff}/a\r\n/b\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(&file, bytes).unwrap();
        let base = Url::parse("http://h:1/").unwrap();
        let list = list(&file, Some(&base), &Defaults::default()).unwrap();
        assert_eq!(listed(&list.targets), ["GET /a [] None", "GET /b [] None"]);
    }

    fn array_of(text: &str) -> Option<usize> {
        array(text).unwrap().map(|items| items.len())
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, says) in [
            ("/a\nhttp://elsewhere/b\n", "list:2: not on http://h:1"),
            ("/a\thttp://h:1/b\n", "list:1: two URLs in one line"),
            ("http://h:1/a\thttp://h:1/b\n", "list:1: two URLs in one line"),
            ("http://h:1/a http://h:1/b\n", "list:1: two URLs in one line"),
            ("/a\tb\n", "list:1: a tab within a URL"),
            ("/a\nGET\n", "list:2: GET names no URL; write GET URL"),
            ("- http://h:1/a\n", "list:1: not a request: - http://h:1/a"),
            ("GET /a\nX Y: 1\n", "list:2: not a request: X Y: 1"),
            ("/a\nPOST /b HTTP/1.0\n", "list:2: HTTP/1.0 cannot be set"),
            ("/b HTTP/2.0\n", "list:1: HTTP/2.0 cannot be set"),
            ("/a\ncurl http://h:1/ -H \"A: $TOKEN\"\n", "list:2: $TOKEN would be expanded by a shell"),
            ("curl \"http://h:1/?t=$(date +%s)\"\n", "list:1: $(date +%s) would be expanded by a shell"),
            ("curl http://h:1/a?b&c=d\n", "list:1: & outside of quotes"),
            ("curl http://h:1/a | jq .\n", "list:1: | outside of quotes"),
            ("/a\ncurl 'http://h:1/\n/b\n", "list:2: its quotes are not closed"),
            (
                "curl --compressed http://h:1/\ncurl -x p:1 http://h:1/\n",
                "list:2: this curl gets there in another way",
            ),
            ("curl ^\"http://h:1/^\" ^\n", "list:1: this is quoted for cmd.exe"),
            ("Invoke-WebRequest -Uri \"http://h:1/\"\n", "list:1: this is PowerShell"),
            ("fetch(\"http://h:1/\", {\n", "list:1: this is JavaScript"),
            ("127.0.0.1 - - [1/Jan] \"GET /a HTTP/1.1\" 200\n", "write a URL or a path, METHOD URL"),
            ("\"GET /a HTTP/1.1\"\n", "not a request"),
            ("http://ann:hunter2@elsewhere/b\n", "http://***@elsewhere/b"),
            (
                "/a\n{\"method\":\"GET\",\"url\":\"/b\",\"header\":{\"X-One\":[\"1\\r\\nX-Two: 2\"]}}\n",
                "list:2: the header X-One has a line break",
            ),
            ("GET /a\nX: 1\r2\n", "list:1: the header X has a line break"),
            ("\n{\"method\":\"GET\"}\n", "list:2: not a vegeta JSON target"),
            ("POST /a\n@nowhere\n", "list:1: the body in "),
            ("curl --sslv2 http://h:1/\n", "list:1: curl's flag --sslv2"),
            ("# none\n", "one a line"),
        ] {
            let told = read_list(text).unwrap_err();
            assert!(told.contains(says), "{text:?}: {told}");
        }
    }

    #[test]
    fn the_first_url_says_which_server_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let file = folder.path().join("list");
            std::fs::write(&file, text).unwrap();
            list(&file, None, &Defaults::default()).map_err(|error| error.to_string())
        };
        assert_eq!(of("GET http://h:1/a\n\nGET /b\n").unwrap().targets[1].url.as_str(), "http://h:1/b");
        assert!(of("/a\n").unwrap_err().contains("no server is known"));
    }

    #[test]
    fn request_lines_and_methods_of_any_name_are_read() {
        let text = "GET http://h:1/a HTTP/1.1\n/b HTTP/1.1\nPUT /c HTTP/1.1\nX: 1\nX: 2\nPURGE /d\nPROPFIND http://h:1/e\n\
                    get /f\n/f?q=\"a\"&b=it's\nhttp://h:1/g POST a=b c\n/h GET\n/i POST\n/purge\n";
        let wanted = [
            "GET /a [] None",
            "GET /b [] None",
            "PUT /c [\"X=1\", \"X=2\"] None",
            "PURGE /d [] None",
            "PROPFIND /e [] None",
            "GET /f [] None",
            "GET /f?q=%22a%22&b=it%27s [] None",
            "POST /g [] Some(\"a=b c\")",
            "GET /h [] None",
            "POST /i [] None",
            "GET /purge [] None",
        ];
        assert_eq!(listed(&read_list(text).unwrap().targets), wanted);
    }

    #[test]
    fn a_curl_ends_where_a_shell_ends_it() {
        let text = "curl http://h:1/a \\\n  --data-raw '{\n\n  \"a\": 1\n}'\n/b\n/usr/bin/curl -m 2 http://ann:b@h:1/c # one\n/d\n";
        let list = read_list(text).unwrap();
        let paths: Vec<&str> = list.targets.iter().map(Target::path).collect();
        assert_eq!(paths, ["/a", "/b", "/c", "/d"]);
        assert_eq!(list.targets[0].body.as_deref(), Some(&b"{\n\n  \"a\": 1\n}"[..]));
        assert_eq!(list.targets[2].login, Some(("ann".into(), "b".into())));
        assert_eq!(list.targets[2].timeout, Some(std::time::Duration::from_secs(2)));
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_read_or_refused(lines in proptest::collection::vec(
            "(GET |PURGE |curl |/|http://h:1/|\\{\"method\":|A: )[a-c /:'\"$\\\\^?#{}HTP1.-]{0,16}", 0..6)) {
            let _ = read_list(&lines.join("\n"));
        }
    }
}
