//! A file of requests, of which each is a line of the report: URLs, `METHOD URL [body]`, vegeta's targets as text and as
//! JSON, and command lines of curl, in any order.
//!
//! ```text
//! # a path, or a URL, with the method and body of the flags
//! /a
//! # a method, a URL, and the rest of the line as body
//! PUT /items/7 {"count": 1}
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

use super::curl::{self, Curl};
use super::shell;
use super::target::{Target, header, method, read};
use crate::failure::Failure;

/// What a file says.
#[derive(Debug, Default)]
pub struct List {
    /// In its order.
    pub targets: Vec<Target>,
    /// What its command lines of curl say beside that.
    pub curls: Vec<Curl>,
}

/// Reads a file. `base` is what paths are of, if that is known; `usual` is the method and the body of lines that say none.
pub fn list(file: &Path, base: Option<&Url>, usual: &Usual) -> Result<List, Failure> {
    let bytes = read(file, "the URLs")?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the URLs in {}: they are not UTF-8 text", file.display())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reader = Reader { file, base: base.cloned(), usual, list: List::default() };
    let mut lines = Lines { lines: text.lines().collect(), at: 0 };
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        reader
            .entry(line, &mut lines)
            .map_err(|reason| Failure::usage(format!("{}:{number}: {reason}", file.display())))?;
    }
    if reader.list.targets.is_empty() {
        return Err(Failure::usage(format!("{} has no URL; write one a line", file.display())));
    }
    Ok(reader.list)
}

/// What lines have that say nothing about it.
#[derive(Debug, Default)]
pub struct Usual {
    pub method: Option<Method>,
    pub body: Option<Vec<u8>>,
}

struct Lines<'t> {
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
    usual: &'a Usual,
    list: List,
}

impl Reader<'_> {
    /// One request, which begins on this line.
    fn entry(&mut self, line: &str, lines: &mut Lines<'_>) -> Result<(), String> {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let target = if first == "curl" {
            let curl = curl::parse(&shell::words(&whole_command(line, lines))?)?;
            let target = curl.target.clone();
            self.list.curls.push(curl);
            Target { url: self.url(target.url.as_str())?, ..target }
        } else if line.starts_with("{\"") {
            self.json(line)?
        } else if Method::from_name(first).is_some() && !rest.trim().is_empty() {
            self.with_method(method(first)?, rest.trim_start(), lines)?
        } else {
            let usual = if self.usual.body.is_some() { Method::Post } else { Method::Get };
            let target = Target::new(self.usual.method.unwrap_or(usual), self.url(line)?);
            Target { body: self.usual.body.clone(), ..target }
        };
        self.list.targets.push(target);
        Ok(())
    }

    /// `METHOD URL [body]`, and vegeta's lines behind it.
    fn with_method(&self, method: Method, rest: &str, lines: &mut Lines<'_>) -> Result<Target, String> {
        let (url, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut target = Target::new(method, self.url(url)?);
        target.body.clone_from(&self.usual.body);
        if !body.trim().is_empty() {
            target.body = Some(body.trim().as_bytes().to_vec());
        }
        let is_of_it = |line: &str| {
            let line = line.trim();
            line.starts_with('@')
                || (header(line).is_some_and(|(name, _)| is_token(name.as_bytes())) && !is_url(line))
        };
        while let Some(line) = lines.next_if(is_of_it).map(str::trim) {
            if let Some(file) = line.strip_prefix('@') {
                let file = self.file.parent().unwrap_or(Path::new("")).join(file.trim());
                target.body = Some(read(&file, "the body").map_err(|failure| failure.message)?);
            } else if let Some((name, value)) = header(line) {
                target.add_header(name, value)?;
            }
        }
        Ok(target)
    }

    fn json(&self, line: &str) -> Result<Target, String> {
        let json: Json = serde_json::from_str(line)
            .map_err(|error| format!("it is no target of vegeta's JSON: {error}"))?;
        let mut target = Target::new(method(&json.method)?, self.url(&json.url)?);
        for (name, values) in &json.header {
            target.add_header(name, &values.join(", "))?;
        }
        target.body = match json.body {
            Some(body) => {
                Some(STANDARD.decode(body).map_err(|error| format!("its body is no base64: {error}"))?)
            }
            None => self.usual.body.clone(),
        };
        Ok(target)
    }

    /// A URL of the same server as the others; a path is one of the server that is known.
    fn url(&self, text: &str) -> Result<Url, String> {
        let known = self.base.as_ref().or(self.list.targets.first().map(|target| &target.url));
        let Some(base) = known else {
            if text.starts_with('/') {
                return Err(format!(
                    "{text} is of no server: give its URL before --urls, or a whole URL here"
                ));
            }
            return super::target::parse_url(text);
        };
        let url = base.join(text).map_err(|error| format!("{error}: {text}"))?;
        if url.origin() != base.origin() {
            let of = super::target::origin(base);
            return Err(format!("not on {of}, and one run drives one server: {text}"));
        }
        Ok(url)
    }
}

/// A command line with those that it goes on on.
fn whole_command(first: &str, lines: &mut Lines<'_>) -> String {
    let mut whole = first.to_owned();
    while whole.ends_with('\\') {
        let Some((_, next)) = lines.next() else { break };
        whole.push('\n');
        whole.push_str(next.trim_end());
    }
    whole
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
        list(&file, Some(&base), &Usual::default()).map_err(|failure| failure.message)
    }

    fn shown(targets: &[Target]) -> Vec<String> {
        let body = |target: &Target| {
            target.body.as_deref().map(String::from_utf8_lossy).map(|body| body.into_owned())
        };
        targets
            .iter()
            .map(|target| {
                let headers: Vec<String> =
                    target.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {} {headers:?} {:?}", target.method.as_str(), target.path(), body(target))
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
            "POST /f [\"A=1, 2\"] Some(\"hello\")",
            "POST /g [\"A=b\", \"Content-Type=application/x-www-form-urlencoded\"] Some(\"x=1\")",
            "GET /last [] None",
        ];
        assert_eq!(shown(&list.targets), wanted);
        assert_eq!(list.targets[4].body.as_deref(), Some(&[0, 0xff, b'\n'][..]));
        assert_eq!(list.curls.len(), 1);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, says) in [
            ("/a\nhttp://elsewhere/b\n", "list:2: not on http://h:1"),
            ("GET /a\nX: 1\nX: 2\n", "list:1: the header X is given twice"),
            (
                "/a\n{\"method\":\"GET\",\"url\":\"/b\",\"header\":{\"X-One\":[\"1\\r\\nX-Two: 2\"]}}\n",
                "list:2: the header X-One has a line break",
            ),
            ("GET /a\nX: 1\r2\n", "list:1: the header X has a line break"),
            ("\n{\"method\":\"GET\"}\n", "list:2: it is no target of vegeta's JSON"),
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
            list(&file, None, &Usual::default()).map_err(|failure| failure.message)
        };
        assert_eq!(of("GET http://h:1/a\n\nGET /b\n").unwrap().targets[1].url.as_str(), "http://h:1/b");
        assert!(of("/a\n").unwrap_err().contains("of no server"));
    }
}
