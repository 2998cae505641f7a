//! Requests of HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use tidemark_scenario::Secrets;
use tidemark_scenario::source::{Map, Request, Scalar, Step, Value, method_as_sent, verbatim};
use tidemark_wire::http1::is_token;
use url::form_urlencoded;

use super::answer::Kind;
use super::machines::server;
use super::sources::Contents;
use super::steps::State;
use super::{BYTES_MAX, Making, REQUESTS_MAX, shown};
use crate::add_header;
use crate::draft::depth;
use crate::har::decoded;
use crate::har::hidden::{has_secret, is_hidden, is_secret_name};
use crate::holes::{Hole, Place, Text};
use crate::xml::Element;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
/// Longest name of a request, characters.
const LABEL_MAX: usize = 100;
/// Headers that the driver writes itself.
const OWN_HEADERS: [&str; 6] =
    ["host", "content-length", "connection", "transfer-encoding", "upgrade", "expect"];
/// Deepest JSON that is written as YAML.
const DEPTH_MAX: usize = 16;
/// Largest body that stands in the scenario, bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Most parts of a request: headers, cookies, variables and matches.
const PARTS_MAX: usize = 1_000;
/// Most fields of a form or members of JSON that are written as such.
const FIELDS_MAX: usize = 1_000;
/// Protocols that are not spoken here, by the name of their element.
const OTHERS: [&str; 9] = ["jabber", "raw", "mysql", "ldap", "fs", "shell", "job", "amqp", "mqtt"];

/// What a request says of itself, whatever its protocol.
pub(super) struct Common {
    pub(super) subst: bool,
    pub(super) subst_body: bool,
    pub(super) tags: Map,
}

impl Making<'_> {
    pub(super) fn request(&mut self, element: &Element, state: &mut State) -> Vec<Step> {
        self.known(element, &["subst", "tag"]);
        let subst = element.attribute("subst").unwrap_or("false");
        let mut tags = Map::new();
        if let Some(tag) = element.attribute("tag").filter(|tag| !tag.is_empty() && *tag != "undefined") {
            tags.insert("tag", verbatim(tag));
        }
        let common = Common { subst: subst != "false", subst_body: subst == "true", tags };
        let mut asked = None;
        for child in &element.children {
            let name = child.name.as_str();
            match name {
                "match" | "dyn_variable" => {}
                "http" | "websocket" | "pgsql" if asked.is_none() => asked = Some(child),
                _ if OTHERS.contains(&name) && asked.is_none() => asked = Some(child),
                _ => self.unknown(child, true),
            }
        }
        if self.requests >= REQUESTS_MAX {
            self.tell(element, format!("been sent: it is beyond {REQUESTS_MAX} requests"), true);
            return Vec::new();
        }
        if std::iter::once(element).chain(&element.children).any(|of| of.children.len() > PARTS_MAX) {
            self.tell(element, format!("been sent: it has more than {PARTS_MAX} parts"), true);
            return Vec::new();
        }
        self.bytes += size(element);
        if self.bytes > BYTES_MAX {
            self.tell(element, format!("been sent: it is beyond {BYTES_MAX} bytes of all requests"), true);
            return Vec::new();
        }
        let Some(child) = asked else {
            self.tell(element, "been sent: there is no request in it that is known", true);
            return Vec::new();
        };
        let before = self.left_out.len();
        let steps = match child.name.as_str() {
            "http" => self.http(element, child, &common, state),
            "websocket" => self.websocket(element, child, &common, state),
            "pgsql" => self.statement(element, child, &common, state),
            other => {
                let kind = child.attribute("type").or(child.attribute("cmd")).unwrap_or_default();
                let kind = if kind.is_empty() { String::new() } else { format!(" ({})", shown(kind)) };
                self.tell(child, format!("sent a request of {other}{kind}, which is not spoken here"), true);
                None
            }
        };
        match steps {
            Some(steps) => {
                // to connect is no request of its own with PostgreSQL
                self.requests += usize::from(!steps.is_empty());
                steps
            }
            None => {
                if self.left_out.len() == before {
                    self.tell(child, "been sent: it cannot be taken over", true);
                }
                Vec::new()
            }
        }
    }

    fn http(
        &mut self,
        request: &Element,
        element: &Element,
        common: &Common,
        state: &mut State,
    ) -> Option<Vec<Step>> {
        self.known(
            element,
            &[
                "contents",
                "contents_from_file",
                "content_type",
                "if_modified_since",
                "method",
                "url",
                "version",
            ],
        );
        let method = element.attribute("method").unwrap_or("GET");
        let Some(method) = method_as_sent(method) else {
            self.tell(element, format!("sent a request of the method {:?}", shown(method)), true);
            return None;
        };
        let path = self.path(element, common, state)?;
        if element.attribute("version") == Some("1.0") {
            self.tell(element, "been sent as HTTP/1.0: it is HTTP/1.1 here", false);
        }
        let has_own = path.contains('?') || !common.tags.is_empty();
        let label = has_own.then(|| label(method, &path, common).into());
        let mut made = Request { label, ..Request::named(method, path) };
        if !common.tags.is_empty() {
            made.other.insert("tags", common.tags.clone());
        }
        if let Some(date) = element.attribute("if_modified_since") {
            let date = self.text(element, date, common.subst, state);
            add_header(&mut made.headers, "If-Modified-Since", date.write(Place::Raw));
        }
        self.parts(element, &mut made, common, state);
        self.body(element, method, &mut made, common, state);
        let mut answer = self.answer(request, Kind::Http, state);
        made.extract = std::mem::take(&mut answer.extract);
        made.check = answer.checks();
        self.has_http = true;
        let mut steps = self.left(element, state);
        steps.extend(answer.around(made.into(), self));
        Some(steps)
    }

    /// The path, with its host where that is not the system; none where it cannot be named.
    fn path(&mut self, element: &Element, common: &Common, state: &mut State) -> Option<String> {
        let url = element.attribute("url").unwrap_or_default().trim().to_owned();
        let url = self.text(element, &url, common.subst, state);
        let marked = url.marked.clone();
        let absolute = ["http://", "https://"].iter().find_map(|begin| marked.strip_prefix(begin));
        let rest = match absolute {
            Some(behind) => {
                let end = behind.find(['/', '?']).unwrap_or(behind.len());
                let (host, rest) = behind.split_at(end);
                let kind = if marked.starts_with("https") { "ssl" } else { "tcp" };
                let (name, port) = match host.rsplit_once(':') {
                    Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => (name, port),
                    _ => (host, ""),
                };
                let is_host = !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_[]:".contains(c));
                let Some((server, _)) = server(name.trim_matches(['[', ']']), port, kind).filter(|_| is_host)
                else {
                    self.tell(element, "been sent to a host that is not known before the load", true);
                    return None;
                };
                state.base = Some(server);
                rest.to_owned()
            }
            None => marked,
        };
        let begins_with_hole = !rest.is_empty()
            && !rest.starts_with('/')
            && url.write_part(&rest, Place::Path).starts_with("${");
        let origin = match &state.base {
            Some(server) if state.base != self.server => verbatim(&server.origin()),
            _ => String::new(),
        };
        let needs_slash = !(rest.starts_with('/') || begins_with_hole && origin.is_empty());
        if begins_with_hole && needs_slash {
            self.tell(element, "been sent to a path, or a host, that only a variable has", true);
        }
        let path = format!("{}{}", if needs_slash { "/" } else { "" }, self.queried(&rest, &url));
        Some(format!("{origin}{path}"))
    }

    /// A path as it is written: secrets in its query are settings.
    fn queried(&mut self, marked: &str, text: &Text) -> String {
        if let Some(hole) = text.only_hole() {
            return format!("${{{}}}", hole.expression);
        }
        let marked = marked.replace(' ', "%20");
        let Some((path, query)) = marked.split_once('?') else {
            return text.write_part(&marked, Place::Path);
        };
        let pairs: Vec<String> = query.split('&').map(|pair| self.pair(pair, text, Place::Path)).collect();
        format!("{}?{}", text.write_part(path, Place::Path), pairs.join("&"))
    }

    /// `name=value` as it is written, or with a setting for a secret.
    fn pair(&mut self, pair: &str, text: &Text, place: Place) -> String {
        if let Some((name, value)) = pair.split_once('=') {
            let (name_only, value_only) = (decoded(name), decoded(value));
            let is_text = text.is_text(name) && text.is_text(value);
            if is_text && !value_only.is_empty() && is_hidden(&name_only, &value_only) {
                let setting = self.secret(&name_only, &value_only);
                // behind the `=` of a query it is encoded anyway
                let hole = match place {
                    Place::Path => format!("${{{setting}}}"),
                    Place::Raw => format!("${{url({setting})}}"),
                };
                return format!("{}={hole}", verbatim(name));
            }
        }
        text.write_part(pair, place)
    }

    /// Headers, credentials, cookies.
    fn parts(&mut self, element: &Element, made: &mut Request, common: &Common, state: &State) {
        let mut cookies = Vec::new();
        for child in &element.children {
            let of = |name: &str| child.attribute(name).unwrap_or_default();
            match child.name.as_str() {
                "http_header" => {
                    self.known(child, &["name", "value", "encoding"]);
                    let (name, value) =
                        (of("name").trim(), self.text(child, of("value"), common.subst, state));
                    let value = match (child.attribute("encoding"), value.literal()) {
                        (None, Some(text)) if is_secret_name(name) || has_secret(text) => {
                            let text = text.to_owned();
                            format!("${{{}}}", self.secret(name, &text))
                        }
                        (Some("base64"), Some(text)) if is_secret_name(name) => {
                            let text = STANDARD.encode(text);
                            format!("${{{}}}", self.secret(name, &text))
                        }
                        (Some("base64"), Some(text)) => verbatim(&STANDARD.encode(text)),
                        (Some("base64"), None) => format!("${{base64({})}}", value.expression()),
                        (None, _) => value.write(Place::Raw),
                        (Some(encoding), _) => {
                            self.tell(child, format!("encoded a header by {}", shown(encoding)), true);
                            continue;
                        }
                    };
                    if !is_token(name.as_bytes()) {
                        self.tell(child, "sent a header that no server would read: its name is none", false);
                    } else if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                        let is_host = name.eq_ignore_ascii_case("host");
                        let is_same = match name.to_ascii_lowercase().as_str() {
                            "host" => {
                                state.base.as_ref().is_some_and(|server| server.host == of("value").trim())
                            }
                            "connection" => of("value").trim().eq_ignore_ascii_case("keep-alive"),
                            _ => false,
                        };
                        if !is_same {
                            let would = format!("sent {}: {}", shown(name), shown(of("value")));
                            // another host is another site
                            self.tell(child, format!("{would}, which the driver writes itself"), is_host);
                        }
                    } else {
                        add_header(&mut made.headers, &verbatim(name), value);
                    }
                }
                "www_authenticate" => self.credentials(child, made, common, state),
                "soap" => {
                    self.known(child, &["action"]);
                    let action = self.text(child, of("action"), common.subst, state).write(Place::Raw);
                    add_header(&mut made.headers, "SOAPAction", format!("\"{action}\""));
                }
                "add_cookie" => {
                    self.known(child, &["key", "value", "domain", "path"]);
                    let name = self.text(child, of("key"), common.subst, state).write(Place::Raw);
                    let value = self.text(child, of("value"), common.subst, state);
                    let value = match value.literal() {
                        Some(text) if is_hidden(of("key"), text) => {
                            format!("${{{}}}", self.secret(of("key"), text))
                        }
                        _ => value.write(Place::Raw),
                    };
                    cookies.push(format!("{name}={value}"));
                }
                "oauth" => self.tell(child, "signed the request by OAuth 1.0: it is sent without", true),
                _ => self.unknown(child, false),
            }
        }
        if !cookies.is_empty() {
            add_header(&mut made.headers, "Cookie", cookies.join("; "));
            self.tell(
                element,
                "sent the cookies of add_cookie beside those of the session: here they stand in their place",
                false,
            );
        }
    }

    fn credentials(&mut self, element: &Element, made: &mut Request, common: &Common, state: &State) {
        let known = ["userid", "passwd", "type", "nonce", "opaque", "cnonce", "nc", "realm", "qop"];
        self.known(element, &known);
        if element.attribute("type").is_some_and(|kind| kind != "basic") {
            return self.tell(element, "signed the request by digest: it is sent without", true);
        }
        let of = |name: &str| element.attribute(name).unwrap_or_default();
        let user = self.text(element, of("userid"), common.subst, state).write(Place::Raw);
        let password = self.text(element, of("passwd"), common.subst, state);
        let password = match password.literal() {
            Some(text) => format!("${{{}}}", self.secret("password", text)),
            None => password.write(Place::Raw),
        };
        let basic = Map::from([("user", user), ("password", password)]);
        made.other.insert("auth", Map::from([("basic", basic)]));
    }

    fn body(&mut self, element: &Element, method: &str, made: &mut Request, common: &Common, state: &State) {
        let contents = element.attribute("contents").unwrap_or_default();
        let file = element.attribute("contents_from_file").filter(|file| !file.is_empty());
        // of other methods Tsung does not send it either
        let is_empty = contents.is_empty() && file.is_none();
        if !sends_a_body(method) || is_empty && element.attribute("content_type").is_none() {
            return;
        }
        let content_type = element.attribute("content_type").unwrap_or(FORM);
        let content_type = self.text(element, content_type, common.subst, state);
        let kind = content_type.literal().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut usual = "";
        if let Some(file) = file {
            match self.contents_of(element, file, common.subst_body, state) {
                Some(Contents::File(path)) => {
                    made.other.insert("body", Map::from([("file", verbatim(&path))]));
                }
                Some(Contents::Text(text)) => made.body = Some(text.into()),
                None => {}
            }
        } else if contents.is_empty() {
            // only its type is sent
        } else if contents.len() > BODY_BYTES_MAX {
            self.tell(element, format!("sent a body that is larger than {BODY_BYTES_MAX} bytes"), true);
        } else {
            let text = self.text(element, contents, common.subst_body, state);
            if kind == FORM {
                if let Some(form) = self.form(&text) {
                    (made.form, usual) = (form, FORM);
                } else {
                    let pairs: Vec<String> =
                        text.marked.split('&').map(|pair| self.pair(pair, &text, Place::Raw)).collect();
                    made.body = Some(pairs.join("&").into());
                }
            } else if let Some(json) = text.literal().filter(|_| kind == JSON).and_then(parsed) {
                (made.json, usual) = (Some(self.json(&json, "value")), JSON);
            } else {
                made.body = Some(self.open(element, &text).into());
            }
        }
        let content_type = content_type.write(Place::Raw);
        let has_own =
            made.headers.entries().iter().any(|entry| entry.key.eq_ignore_ascii_case("content-type"));
        if !has_own && content_type != usual && !content_type.is_empty() {
            made.headers.insert("Content-Type", content_type);
        }
    }

    /// A text as it is sent, with settings for the secrets in it.
    pub(super) fn open(&mut self, element: &Element, text: &Text) -> String {
        let text = self.without_secrets(text);
        let out = text.write(Place::Raw);
        if Secrets::default().masked(&out) == out {
            return out;
        }
        let setting = self.secret("body", text.literal().unwrap_or_default());
        let would = format!("sent a text with a secret in it: the setting {setting} stands for all of it");
        self.tell(element, would, text.literal().is_none());
        format!("${{{setting}}}")
    }

    /// `<password>…</password>` and `"password": "…"` with settings in place of the values.
    fn without_secrets(&mut self, text: &Text) -> Text {
        let mut out = text.without_text();
        let mut rest = text.marked.as_str();
        while let Some(at) = rest.find(['>', ':']) {
            let (before, behind) = rest.split_at(at);
            let value = value_behind(before, behind).filter(|(name, _, value)| {
                !value.is_empty() && text.is_text(value) && is_hidden(name, value)
            });
            match value {
                Some((name, from, value)) => {
                    out.push(before);
                    out.push(&behind[..from]);
                    let expression = self.secret(&name, value);
                    out.push_hole(Hole::new(expression, false));
                    rest = &behind[from + value.len()..];
                }
                None => {
                    out.push(&rest[..=at]);
                    rest = &rest[at + 1..];
                }
            }
        }
        out.push(rest);
        out
    }

    /// Fields of a form, where they are sent just so.
    fn form(&mut self, text: &Text) -> Option<Map> {
        if text.marked.matches('&').count() >= FIELDS_MAX {
            return None;
        }
        let mut form = Map::new();
        for pair in text.marked.split('&') {
            let (name, value) = pair.split_once('=')?;
            if !text.is_text(name) || !text.is_plain(value) || name.is_empty() {
                return None;
            }
            let (name_only, value_only) = (decoded(name), decoded(value));
            let is_text = text.is_text(value);
            let is_same = encoded(&name_only) == name
                && (!is_text && value.chars().all(|c| c.is_ascii_alphanumeric() || !c.is_ascii())
                    || encoded(&value_only) == value);
            let name_only = verbatim(&name_only);
            if !is_same || form.get(&name_only).is_some() {
                return None;
            }
            let value = if is_text && !value_only.is_empty() && is_hidden(&name_only, &value_only) {
                format!("${{{}}}", self.secret(&name_only, &value_only))
            } else if is_text {
                verbatim(&value_only)
            } else {
                text.write_part(value, Place::Raw)
            };
            form.insert(name_only, value);
        }
        Some(form)
    }

    /// JSON as source; secrets are settings.
    fn json(&mut self, value: &Json, name: &str) -> Value {
        match value {
            Json::Null => Value::default(),
            Json::Bool(value) => (*value).into(),
            Json::Number(number) => Scalar::unquoted(&number.to_string()).into(),
            Json::String(text) if is_hidden(name, text) => format!("${{{}}}", self.secret(name, text)).into(),
            Json::String(text) => verbatim(text).into(),
            Json::Array(items) => items.iter().map(|item| self.json(item, name)).collect::<Vec<_>>().into(),
            Json::Object(members) => {
                let mut map = Map::new();
                for (key, member) in members {
                    map.insert(verbatim(key), self.json(member, key));
                }
                map.into()
            }
        }
    }
}

/// The value behind `<name>` or `"name":`, where it begins behind the mark, and its name.
fn value_behind<'t>(before: &str, behind: &'t str) -> Option<(String, usize, &'t str)> {
    if behind.starts_with('>') {
        let tag = before.rsplit('<').next()?.split_whitespace().next()?;
        let name = tag.rsplit(':').next()?;
        let end = behind.find("</")?;
        let value = behind.get(1..end)?;
        return (!value.contains('<') && !name.is_empty()).then(|| (name.to_owned(), 1, value));
    }
    let name = before.trim_end().strip_suffix('"')?.rsplit('"').next()?;
    let from = behind.find('"').filter(|from| behind[1..*from].trim().is_empty())? + 1;
    let end = behind[from..].find('"')?;
    Some((name.to_owned(), from, &behind[from..from + end]))
}

/// How much a request says, bytes.
fn size(element: &Element) -> usize {
    let attributes: usize = element.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    attributes + element.text.len() + element.children.iter().map(size).sum::<usize>()
}

/// JSON that can be written again with the same meaning.
fn parsed(text: &str) -> Option<Json> {
    if text.matches(':').count() > FIELDS_MAX {
        return None;
    }
    let value: Json = serde_json::from_str(text).ok()?;
    // a number with more digits than it can keep, or a key that is there twice, is sent as it is
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    let is_same = plain(&value.to_string()) == plain(text);
    (is_same && depth(&value) <= DEPTH_MAX && (value.is_object() || value.is_array())).then_some(value)
}

/// Whether Tsung sends a body with a method.
fn sends_a_body(method: &str) -> bool {
    !["GET", "HEAD", "OPTIONS"].contains(&method)
}

/// The name of a request in the report, without its query; requests of a name have the same tags.
fn label(method: &str, path: &str, common: &Common) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let mut out = format!("{method} ");
    let mut rest = path;
    while let Some((before, hole)) = rest.split_once("${") {
        out += before;
        let Some((hole, behind)) = hole.split_once('}') else { break };
        let name: String = hole.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
        out += &format!("[{}]", name.strip_prefix("path").unwrap_or(&name));
        rest = behind;
    }
    let label: String = (out + rest).chars().take(LABEL_MAX).collect();
    match common.tags.get("tag").and_then(Value::as_str) {
        Some(tag) => format!("{label} ({tag})"),
        None => label,
    }
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
