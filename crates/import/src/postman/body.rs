//! Bodies of requests.

use tidemark_scenario::source::{Map, Request, Value, verbatim};

use super::Making;
use crate::form::media_type;
use crate::holes::{Place, Text};
use crate::plan::shown;
use crate::tree::Node;

/// Largest body that stands in the scenario, bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Methods whose bodies Postman does not send.
const BODYLESS: [&str; 2] = ["GET", "HEAD"];
/// What a body may be, by its mode.
const CONTENTS: [&str; 5] = ["raw", "urlencoded", "formdata", "graphql", "file"];

impl Making<'_> {
    pub(super) fn body(&mut self, request: &Node, keeps: bool, element: &str, made: &mut Request) {
        let Some(body) = request.map("body") else { return };
        let mode = body.text("mode").unwrap_or_default().to_owned();
        let method = made.method.as_str();
        if body.is_true("disabled")
            || mode.is_empty()
            || mode == "none"
            || BODYLESS.contains(&method) && !keeps
        {
            // what is not sent may be whatever is known
            body.ignore(&["disabled", "mode", "options"]);
            return body.ignore(&CONTENTS);
        }
        // contents of modes that are not chosen are not sent
        for other in CONTENTS {
            if other != mode {
                body.ignore(&[other]);
            }
        }
        let language = body.map("options").and_then(|options| {
            options.ignore(&["urlencoded", "formdata", "graphql", "file"]);
            options.map("raw").and_then(|raw| raw.text("language"))
        });
        match mode.as_str() {
            "raw" => self.raw(body, language, element, made),
            "urlencoded" => self.form(body, made),
            "formdata" => self.parts(body, element, made),
            "graphql" => self.graphql(body, element, made),
            "file" => {
                let source = body.map("file").and_then(|file| {
                    file.ignore(&["content"]);
                    file.text("src")
                });
                let Some((path, _)) = source.and_then(|source| self.draft.file.file(source)) else {
                    return self.no_file(body, element, source.unwrap_or_default());
                };
                let is_type = |key: &str| key.eq_ignore_ascii_case("content-type");
                let is_typed = made.headers.entries().iter().any(|entry| is_type(&entry.key));
                if let Some(kind) = media_type(&path).filter(|_| !is_typed) {
                    made.headers.insert("Content-Type", kind);
                }
                made.other.insert("body", Map::from([("file", verbatim(&path))]));
            }
            other => {
                let would = format!("sent a body of the mode {:?}", shown(other));
                self.draft.tell(body.line, element, would, true);
                body.done();
            }
        }
    }

    fn no_file(&mut self, node: &Node, element: &str, source: &str) {
        let would = format!("sent the file {:?}, which is not in the collection's folder", shown(source));
        self.draft.tell(node.line, element, would, true);
    }

    fn raw(&mut self, body: &Node, language: Option<&str>, element: &str, made: &mut Request) {
        let raw = body.text("raw").unwrap_or_default();
        if raw.is_empty() {
            return;
        }
        if raw.len() > BODY_BYTES_MAX {
            let would = format!("sent a body that is larger than {BODY_BYTES_MAX} bytes");
            return self.draft.tell(body.line, element, would, true);
        }
        let text = self.text(raw);
        let own = made.headers.entries().iter().find(|entry| entry.key.eq_ignore_ascii_case("content-type"));
        let own = own.map(|entry| (entry.key.clone(), entry.value.as_str().unwrap_or_default().to_owned()));
        let kind = match &own {
            Some((_, kind)) => kind.as_str(),
            None => match language {
                Some("json") => "application/json",
                Some("javascript") => "application/javascript",
                Some("html") => "text/html",
                Some("xml") => "application/xml",
                _ => "text/plain",
            },
        };
        if kind == "application/json"
            && let Some(json) = self.draft.json_text(&text)
        {
            made.json = Some(json);
            if let Some((name, _)) = own {
                made.headers.remove(&name);
            }
            return;
        }
        if own.is_none() {
            made.headers.insert("Content-Type", kind);
        }
        made.body = Some(self.open(body, element, &text).into());
    }

    /// A text as it is sent; one setting stands for all of it where a secret is in it.
    fn open(&mut self, node: &Node, element: &str, text: &Text) -> String {
        let out = text.write(Place::Raw);
        let masked = tidemark_scenario::Secrets::default().masked(&out);
        let Some(literal) = text.literal().filter(|_| masked != out) else { return out };
        let setting = self.draft.secret("body", literal);
        let would = format!("sent a text with a secret in it: the setting {setting} stands for all of it");
        self.draft.tell(node.line, element, would, false);
        format!("${{{setting}}}")
    }

    fn form(&mut self, body: &Node, made: &mut Request) {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for node in body.list("urlencoded") {
            node.ignore(&["description", "type", "uuid"]);
            let (name, value) =
                (node.text("key").unwrap_or_default(), node.text("value").unwrap_or_default());
            if node.is_true("disabled") || name.is_empty() && value.is_empty() {
                continue;
            }
            let text = self.text(value);
            pairs.push((self.text(name).write(Place::Raw), self.draft.value(name, &text)));
        }
        let names: std::collections::HashSet<&String> = pairs.iter().map(|(name, _)| name).collect();
        if names.len() == pairs.len() {
            made.form = pairs.into_iter().collect();
            return;
        }
        // a name that comes twice
        let of = |text: &str| match text.strip_prefix("${").and_then(|text| text.strip_suffix('}')) {
            Some(inner) => format!("${{url({inner})}}"),
            None if text.contains("${") => text.to_owned(),
            None => crate::percent::encoded(text),
        };
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", of(name), of(value))).collect();
        made.body = Some(pairs.join("&").into());
        made.headers.insert("Content-Type", "application/x-www-form-urlencoded");
    }

    fn parts(&mut self, body: &Node, element: &str, made: &mut Request) {
        for node in body.list("formdata") {
            node.ignore(&["description", "uuid", "fileName"]);
            let name = node.text("key").unwrap_or_default();
            let kind = node.text("contentType").filter(|kind| !kind.is_empty());
            let is_file = node.text("type") == Some("file");
            if node.is_true("disabled") || name.is_empty() && !is_file {
                node.ignore(&["src", "value"]);
                continue;
            }
            let ours = self.text(name).write(Place::Raw);
            if made.multipart.get(&ours).is_some() {
                self.draft.tell(node.line, element, format!("sent a second part {:?}", shown(name)), true);
                node.done();
                continue;
            }
            let mut part = Map::new();
            if is_file {
                let sources = node.get("src").map(Node::one_or_many).unwrap_or_default();
                let source = sources.first().and_then(Node::as_str).unwrap_or_default();
                if let [_, second, ..] = sources {
                    self.draft.tell(
                        second.line,
                        element,
                        format!("sent several files as {:?}", shown(name)),
                        true,
                    );
                }
                let Some((path, _)) = self.draft.file.file(source) else {
                    self.no_file(node, element, source);
                    continue;
                };
                part.insert("file", verbatim(&path));
            } else {
                let text = self.text(node.text("value").unwrap_or_default());
                part.insert("text", self.draft.value(name, &text));
            }
            let of_file = part.get("file").and_then(Value::as_str).and_then(media_type);
            if let Some(kind) = kind.or(of_file) {
                part.insert("type", verbatim(kind));
            }
            let value = part.get("text").filter(|_| part.len() == 1).cloned();
            made.multipart.insert(ours, value.unwrap_or(Value::Map(part)));
        }
        made.headers.remove("Content-Type");
    }

    fn graphql(&mut self, body: &Node, element: &str, made: &mut Request) {
        let Some(of) = body.map("graphql") else { return };
        let query = self.text(of.text("query").unwrap_or_default()).write(Place::Raw);
        let mut json = Map::from([("query", query)]);
        if let Some(name) = of.text("operationName").filter(|name| !name.is_empty()) {
            json.insert("operationName", verbatim(name));
        }
        let text = of.text("variables").unwrap_or_default();
        let variables = if text.trim().is_empty() { "{}" } else { text };
        let variables = self.text(variables);
        match self.draft.json_text(&variables) {
            Some(value) => json.insert("variables", value),
            None => {
                self.draft.tell(of.line, element, "sent variables of GraphQL that are no JSON here", true);
            }
        }
        made.json = Some(json.into());
        made.headers.remove("Content-Type");
    }
}
