//! Requests of HTTP.

use tidemark_scenario::source::{Map, Request, Step, Value, method_as_sent, verbatim};

use super::Making;
use super::answer::Answer;
use super::steps::State;
use crate::form::media_type;
use crate::har::hidden::is_secret_name;
use crate::holes::{Place, Text};
use crate::javascript::js;
use crate::plan::{is_address, nested, shown};
use crate::postman::has_credentials;
use crate::target::with_scheme;
use crate::tree::{Content, Node};

/// Largest text of one request, bytes.
const REQUEST_BYTES_MAX: usize = 256 << 10;

impl Making<'_> {
    pub(super) fn request(&mut self, method: &str, node: &Node, state: &mut State) -> Vec<Step> {
        let url = node.text("url").or(node.text("uri")).unwrap_or_default().trim().to_owned();
        let name = node.text("name").unwrap_or_default().to_owned();
        let place = match url.as_str() {
            "" => "(no url)",
            url if has_credentials(url) => url.split_once('@').map_or(url, |(_, behind)| behind),
            url => url,
        };
        let element = format!("{method} {}", shown(place));
        // the query of the URL is not sent where there is `qs`
        let has_query = node.map("qs").is_some_and(|qs| !qs.entries().is_empty());
        let sent = if has_query { url.split('?').next().unwrap_or_default() } else { url.as_str() };
        let Some(path) = self.path(node, sent, &element, state) else {
            node.done();
            return Vec::new();
        };
        let bytes = node.size();
        if bytes > REQUEST_BYTES_MAX {
            self.draft.tell(
                node.line,
                &element,
                format!("been sent: it is larger than {REQUEST_BYTES_MAX} bytes"),
                true,
            );
            node.done();
            return Vec::new();
        }
        if !self.draft.has_room(node.line, &element, bytes) {
            node.done();
            return Vec::new();
        }
        let method = method_as_sent(method).unwrap_or("GET");
        let mut made = Request::named(method, path);
        for (name, value) in node.map("headers").map(Node::entries).unwrap_or_default() {
            let text = self.scalar_text(value, state);
            self.draft.header(value.line, &mut made.headers, name, &text);
        }
        for (name, value) in node.map("qs").map(Node::entries).unwrap_or_default() {
            let text = self.scalar_text(value, state);
            let value = self.draft.value(name, &text);
            made.query.insert(verbatim(name), value);
        }
        self.cookies(node, &element, &mut made, state);
        self.body(node, &element, &mut made, state);
        if let Some(auth) = node.map("auth") {
            let user = self.text(auth, auth.text("user").unwrap_or_default(), state);
            let password = self.text(auth, auth.text("pass").unwrap_or_default(), state);
            if let Some(basic) = self.draft.basic(auth.line, &element, &user, &password) {
                made.other.insert("auth", basic);
            }
        }
        match (node.text("followRedirect"), node.text("gzip")) {
            (Some("false"), _) => made.other.insert("follow", 0u64),
            (_, Some("false")) => {
                made.headers.insert("Accept-Encoding", Value::List(Vec::new()));
            }
            _ => {}
        }
        node.ignore(&["setContentLengthHeader"]);
        for hook in ["beforeRequest", "afterResponse"] {
            if let Some(function) = node.get(hook) {
                self.function(function, hook, &element);
            }
        }
        let label = self.text(node, &name, state);
        let label = if label.literal().is_some() || name.is_empty() {
            name
        } else {
            self.draft.tell(node.line, &element, "been counted under a name that a variable has", false);
            String::new()
        };
        self.draft.label(&mut made, &label, &state.name);
        let mut answer = Answer::default();
        self.answer(node, &element, &mut answer, state);
        made.extract = std::mem::take(&mut answer.extract);
        made.check = std::mem::take(&mut answer.check).into_map();
        let ends = self.ends_where_missing(node, &mut made, state);
        let mut steps = vec![made.into()];
        steps.extend(ends);
        if !answer.set.is_empty() {
            steps.push(Step::Other(Map::from([("set", answer.set)])));
        }
        for (code, must_be) in answer.of_page {
            steps.push(code);
            steps.extend(must_be.map(|name| ends_without(&name, state)));
        }
        self.perhaps(node, &element, steps, state)
    }

    /// Ends the session where a capture finds nothing, or an answer does not match. What a request that failed captures is
    /// missing.
    fn ends_where_missing(&mut self, node: &Node, made: &mut Request, state: &State) -> Option<Step> {
        if state.is_before {
            return None;
        }
        let is_strict = |value: &Value| match value {
            Value::Map(of) => of.get("when missing").and_then(Value::as_str) == Some("fail"),
            _ => false,
        };
        let strict = made.extract.entries().iter().find(|entry| is_strict(&entry.value));
        let name = match strict.map(|entry| entry.key.clone()) {
            Some(name) => name,
            None if node.get("match").is_some() => {
                let name = self.draft.variable("answer status");
                made.extract.insert(name.as_str(), "status");
                name
            }
            None => return None,
        };
        let end = vec![Step::Other(Map::from([("end", "session")]))];
        let when = [("when", Value::from(format!("${{not exists({name})}}"))), ("steps", nested(end))];
        Some(Step::Other(Map::from(when)))
    }

    /// Steps that are done only where `ifTrue` holds, or by chance.
    fn perhaps(&mut self, node: &Node, element: &str, mut steps: Vec<Step>, state: &mut State) -> Vec<Step> {
        if let Some(condition) = node.text("ifTrue") {
            match self.condition(condition, state) {
                Some(expression) => {
                    let when =
                        [("when", Value::from(format!("${{{expression}}}"))), ("steps", nested(steps))];
                    steps = vec![Step::Other(Map::from(when))];
                }
                None => {
                    let would = format!("been sent only if {:?}", shown(condition));
                    self.draft.tell(node.line, element, would, true);
                }
            }
        }
        if let Some(percent) = node.number("probability").filter(|percent| *percent < 100.0) {
            let percent = percent.max(0.0);
            let chance = [
                ("sometimes", Value::from(format!("{percent}%"))),
                ("rhythm", "random".into()),
                ("steps", nested(steps)),
            ];
            return if percent == 0.0 { Vec::new() } else { vec![Step::Other(Map::from(chance))] };
        }
        steps
    }

    /// The text of a plain value.
    pub(super) fn scalar_text(&mut self, node: &Node, state: &mut State) -> Text {
        match &node.content {
            Content::Scalar(scalar) if !scalar.is_null() => self.text(node, scalar.as_str(), state),
            Content::Scalar(_) => Text::default(),
            _ => {
                self.draft.tell(node.line, "value", "been a list or an object, as a text", true);
                node.done();
                Text::default()
            }
        }
    }

    /// The path, with its host where that is not the system; none where it is not known.
    pub(super) fn path(
        &mut self,
        node: &Node,
        url: &str,
        element: &str,
        state: &mut State,
    ) -> Option<String> {
        // what stands in front of the path must be known
        let mut url = url.to_owned();
        while let Some((name, behind)) = url.strip_prefix("{{").and_then(|url| url.split_once("}}")) {
            let value = self.written_out(&format!("{{{{{}}}}}", name.trim()));
            if value.starts_with("{{") || value.is_empty() {
                break;
            }
            url = format!("{value}{behind}");
            if url.len() > REQUEST_BYTES_MAX {
                break;
            }
        }
        let (origin, rest) = match with_scheme(&url) {
            Some((scheme, behind)) if !scheme.contains('{') => {
                let end = behind.find(['/', '?']).unwrap_or(behind.len());
                let host = self.written_out(&behind[..end]);
                (Some(format!("{scheme}://{host}")), behind[end..].to_owned())
            }
            _ => (None, url),
        };
        let is_system = origin.as_deref().is_none_or(|origin| origin == self.target);
        let is_known = origin
            .as_deref()
            .is_none_or(|origin| !origin.contains("{{") && !has_credentials(origin) && is_address(origin));
        if !is_known || rest.is_empty() && origin.is_none() {
            let would = "been sent to a URL that is not known before the load";
            self.draft.tell(node.line, element, would, true);
            return None;
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let text = self.text(node, rest, state).url_encoded();
        let base = if origin.is_none() { self.base.clone() } else { String::new() };
        let origin = if is_system { String::new() } else { verbatim(&origin.unwrap_or_default()) };
        // what a variable has may begin with a slash
        let first = text.marked.chars().next().and_then(|c| text.hole_of(c));
        let is_whole = first.is_some_and(|hole| !hole.expression.starts_with('\''));
        if let Some(hole) = text.only_hole().filter(|_| is_whole && base.is_empty() && origin.is_empty()) {
            // a path that an answer gave
            return Some(format!("${{{}}}", hole.expression));
        }
        let slash = if text.marked.starts_with('/') || is_whole && origin.is_empty() && base.is_empty() {
            ""
        } else {
            "/"
        };
        let (path, query) = text.marked.split_once('?').unwrap_or((text.marked.as_str(), ""));
        let mut out = format!("{origin}{base}{slash}{}", text.write_part(path, Place::Path));
        for (at, pair) in query.split('&').enumerate().filter(|_| !query.is_empty()) {
            out.push(if at == 0 { '?' } else { '&' });
            match pair.split_once('=') {
                Some((name, value)) if is_secret_name(name) && text.is_text(value) && !value.is_empty() => {
                    out += &format!("{}=${{{}}}", verbatim(name), self.draft.secret(name, value));
                }
                _ => out += &text.write_part(pair, Place::Raw),
            }
        }
        Some(out)
    }

    fn cookies(&mut self, node: &Node, element: &str, made: &mut Request, state: &mut State) {
        let Some(cookie) = node.map("cookie") else { return };
        let mut all = Vec::new();
        for (name, value) in cookie.entries() {
            let text = self.scalar_text(value, state);
            all.push(format!("{}={}", verbatim(name), self.draft.value(name, &text)));
        }
        crate::add_header(&mut made.headers, "Cookie", all.join("; "));
        let would = "added cookies to those of the session: here they stand in their place, for this request";
        self.draft.tell(cookie.line, element, would, true);
    }

    fn body(&mut self, node: &Node, element: &str, made: &mut Request, state: &mut State) {
        if let Some(json) = node.get("json") {
            node.ignore(&["body"]);
            made.json = Some(self.tree(json, "value", state));
            remove(&mut made.headers, "content-type", Some("application/json"));
        } else if let Some(form) = node.map("form") {
            for (name, value) in form.entries() {
                let text = self.scalar_text(value, state);
                made.form.insert(verbatim(name), self.draft.value(name, &text));
            }
            remove(&mut made.headers, "content-type", Some("application/x-www-form-urlencoded"));
        } else if let Some(parts) = node.map("formData") {
            for (name, value) in parts.entries() {
                if let Some(part) = self.part(value, name, element, state) {
                    made.multipart.insert(verbatim(name), part);
                }
            }
            remove(&mut made.headers, "content-type", None);
        } else if let Some(body) = node.text("body").filter(|body| !body.is_empty()) {
            let text = self.text(node, body, state);
            let out = text.write(Place::Raw);
            let masked = tidemark_scenario::Secrets::default().masked(&out);
            made.body = Some(match text.literal().filter(|_| masked != out) {
                Some(literal) => {
                    let setting = self.draft.secret("body", literal);
                    let would = format!(
                        "sent a text with a secret in it: the setting {setting} stands for all of it"
                    );
                    self.draft.tell(node.line, element, would, false);
                    format!("${{{setting}}}").into()
                }
                None => out.into(),
            });
            let has_type =
                made.headers.entries().iter().any(|entry| entry.key.eq_ignore_ascii_case("content-type"));
            if !has_type {
                made.headers.insert("Content-Type", Value::List(Vec::new()));
            }
        }
    }

    fn part(&mut self, node: &Node, name: &str, element: &str, state: &mut State) -> Option<Value> {
        if let Content::Scalar(_) = &node.content {
            let text = self.scalar_text(node, state);
            return Some(self.draft.value(name, &text).into());
        }
        let mut part = Map::new();
        if let Some(file) = node.text("fromFile") {
            let file = self.written_out(file);
            let Some((path, _)) = self.draft.file.file(&file) else {
                let would = format!("sent the file {:?}, which is not in the script's folder", shown(&file));
                self.draft.tell(node.line, element, would, true);
                return None;
            };
            part.insert("file", verbatim(&path));
        } else {
            let text = self.text(node, node.text("value").unwrap_or_default(), state);
            part.insert("text", self.draft.value(name, &text));
        }
        let of_file = part.get("file").and_then(Value::as_str).and_then(media_type);
        if let Some(kind) = node.text("contentType").or(of_file) {
            part.insert("type", verbatim(kind));
        }
        let plain = part.get("text").filter(|_| part.len() == 1).cloned();
        Some(plain.unwrap_or_else(|| part.into()))
    }
}

/// Fails where code has found no value for a variable, and ends the session.
fn ends_without(name: &str, state: &State) -> Step {
    let mut steps = vec![js(&format!("throw new Error('{name} was not found');"))];
    if !state.is_before {
        steps.push(Step::Other(Map::from([("end", "session")])));
    }
    let when = [("when", Value::from(format!("${{not exists({name})}}"))), ("steps", nested(steps))];
    Step::Other(Map::from(when))
}

/// Takes a header away that is written anyway; only one of this value if there is one.
fn remove(headers: &mut Map, name: &str, value: Option<&str>) {
    let is_it = |key: &str, of: &Value| {
        key.eq_ignore_ascii_case(name) && value.is_none_or(|value| of.as_str() == Some(value))
    };
    let known =
        headers.entries().iter().find(|entry| is_it(&entry.key, &entry.value)).map(|entry| entry.key.clone());
    if let Some(known) = known {
        headers.remove(&known);
    }
}
