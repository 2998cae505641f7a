//! The request of an operation: its path, parameters, security and body.

use serde_json::{Map as Object, Value as Json};
use tidemark_scenario::source::{Entry, Map, Method, Request, Scalar, Value, verbatim};
use url::Url;

use super::{Making, Operation, PARAMETERS_MAX, TEXT_MAX, security, short, style};
use crate::add_header;
use crate::har::hidden::{is_hidden, is_secret_name};
use crate::names::{free, name_of, variable};

/// Most settings that are made; beyond, paths hold values.
const SETTINGS_MAX: usize = 200;
/// Most servers beside the first.
const SERVERS_MAX: usize = 50;
/// What stands for the path of a file that is sent.
const FILE: &str = "FILE";
/// Headers that the load generator writes itself, or that are secrets.
const NOT_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "expect",
    "accept",
    "content-type",
    "authorization",
];

impl<'d> Making<'d> {
    pub(super) fn request(&mut self, operation: &Operation<'d>) -> Request {
        let parameters = self.parameters(operation);
        let of = |place: &str| -> Vec<&'d Json> {
            parameters.iter().copied().filter(|parameter| parameter["in"] == place).collect()
        };
        let mut path = self.path(operation, &of("path"));
        let has_holes = operation.path.contains('{');
        let label: String =
            format!("{} {}", operation.method.as_str(), operation.path).chars().take(TEXT_MAX).collect();
        let required = |parameter: &&&Json| parameter["required"] == true;
        let named = |parameter: &Json| parameter["name"].as_str().map(short).filter(|name| !name.is_empty());
        let (mut query, mut styled) = (Map::new(), Vec::new());
        // what is secret is no example to be taken over: settings stand for it, unless the security says who asks
        let mut secrets: Vec<(&str, String)> = Vec::new();
        for parameter in of("query").iter().filter(required) {
            let Some(name) = named(parameter) else { continue };
            let value = self.samples.of_parameter(parameter);
            if is_secret(&name, &value) {
                secrets.push(("query", name));
                continue;
            }
            match value {
                Value::Scalar(value) => query.insert(verbatim(&name), value),
                several => styled.extend(style::query(&name, parameter, &several)),
            }
        }
        if !styled.is_empty() {
            path += &format!("?{}", styled.join("&"));
        }
        let mut headers = Map::new();
        for parameter in of("header").iter().filter(required) {
            let Some(name) = named(parameter).filter(|name| is_header(name) || is_authorization(name)) else {
                continue;
            };
            let value = self.samples.of_parameter(parameter);
            if is_secret(&name, &value) {
                secrets.push(("header", name));
                continue;
            }
            let value = match value {
                Value::Scalar(value) => value.as_str().to_owned(),
                several => verbatim(&style::header(parameter, &several)),
            };
            add_header(&mut headers, &name, value);
        }
        // who comes back is told by a cookie: none is taken over
        let cookies = of("cookie").into_iter().filter(|parameter| parameter["required"] == true);
        let cookies = cookies.filter_map(|parameter| named(parameter).filter(|name| is_header(name)));
        secrets.extend(cookies.map(|name| ("cookie", name)));
        let makes = operation.is_read();
        let target = self.target(&operation.server, makes);
        let is_elsewhere = self.system.as_ref().is_some_and(|(url, _)| *url != operation.server);
        let names_server = is_elsewhere && target.is_none();
        if names_server {
            path = format!("{}{path}", verbatim(&operation.server));
        }
        let mut request = Request {
            label: (has_holes || !styled.is_empty() || names_server).then(|| verbatim(&label).into()),
            query,
            headers,
            check: status(operation.body),
            ..Request::new(operation.method, path)
        };
        if let Some(target) = target {
            request.other.insert("at", target);
        }
        self.put_body(operation.body, &mut request);
        let about = (self.document, operation.body);
        if let Some(note) = security::put(about, &mut self.settings, self.login.as_ref(), makes, &mut request)
        {
            request.comment = [request.comment.as_str(), &note].join("\n").trim_start().to_owned();
        }
        for (place, name) in &secrets {
            self.put_secret(place, name, makes, &mut request);
        }
        request
    }

    /// Puts a secret parameter in, where nothing of its name is there yet.
    fn put_secret(&mut self, place: &str, name: &str, makes: bool, request: &mut Request) {
        let is_there = match place {
            "query" => request.query.get(&verbatim(name)).is_some(),
            "header" => {
                let mut names = request.headers.entries().iter().map(|entry| &entry.key);
                let is_sent_by_auth = is_authorization(name) && request.other.get("auth").is_some();
                is_sent_by_auth || names.any(|known| known.eq_ignore_ascii_case(name))
            }
            // the session keeps those that a login gives
            _ if self.login.is_some() => true,
            _ => {
                let sent = request.headers.get("Cookie").and_then(|value| value.as_str()).unwrap_or_default();
                sent.split("; ").any(|pair| pair.split('=').next() == Some(name))
            }
        };
        if is_there {
            return;
        }
        let value = self.secret(name, makes);
        match place {
            "query" => request.query.insert(verbatim(name), value),
            "header" => request.headers.insert(verbatim(name), value),
            _ => {
                let before = request.headers.get("Cookie").and_then(|value| value.as_str());
                let before = before.map_or_else(String::new, |before| format!("{before}; "));
                request.headers.insert("Cookie", format!("{before}{}={value}", verbatim(name)));
            }
        }
    }

    /// The hole of a secret: a setting, or where only a comment would use it, its variable.
    fn secret(&mut self, name: &str, makes: bool) -> String {
        let what = format!("secret {}", name.to_lowercase());
        let known = is_secret_name(&name_of(name));
        let wanted = if known { name_of(name) } else { format!("{}_secret", name_of(name)) };
        let other = format!("{}_secret", name_of(name));
        let comment = "a secret, no example of the document: set this variable, or give --set";
        let is_new = self.settings.of(&what).is_none();
        let setting = match is_new && self.settings.map.len() >= SETTINGS_MAX {
            _ if is_new && !makes => return variable(&wanted),
            true => self.settings.secret("secrets".into(), "secret", "other_secret", comment),
            false => self.settings.secret(what, &wanted, &other, comment),
        };
        format!("${{{setting}}}")
    }

    /// The target that a server is; none of the system, and none that only a comment would use: a run asks all of them.
    fn target(&mut self, server: &str, makes: bool) -> Option<String> {
        if self.system.as_ref().is_none_or(|(url, _)| url == server) {
            return None;
        }
        if let Some((_, name)) = self.targets.iter().find(|(url, _)| url == server) {
            return Some(name.clone());
        }
        if !makes || self.targets.len() == SERVERS_MAX {
            return None;
        }
        let host = Url::parse(server).ok().and_then(|url| url.host_str().map(name_of));
        let is_taken = |name: &str| name == "system" || self.targets.iter().any(|(_, known)| known == name);
        let name = free(&host.unwrap_or_else(|| "other".into()), &name_of(server), is_taken);
        self.targets.push((server.to_owned(), name.clone()));
        Some(name)
    }

    /// Those of the path's, replaced by those of the operation's.
    fn parameters(&self, operation: &Operation<'d>) -> Vec<&'d Json> {
        let of = |at: &'d Json| at["parameters"].as_array().into_iter().flatten().take(PARAMETERS_MAX);
        let mut all: Vec<&'d Json> = Vec::new();
        for parameter in of(operation.item).chain(of(operation.body)) {
            let parameter = self.samples.resolved(parameter);
            let same = |known: &Json| known["name"] == parameter["name"] && known["in"] == parameter["in"];
            match all.iter().position(|known| same(known)) {
                Some(at) => all[at] = parameter,
                None => all.push(parameter),
            }
        }
        all
    }

    /// The path with a setting in the place of each parameter.
    fn path(&mut self, operation: &Operation<'d>, parameters: &[&'d Json]) -> String {
        let mut out = String::new();
        let (mut rest, mut before) = (operation.path, String::new());
        while let Some((literal, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else { break };
            out += &verbatim(literal);
            if let Some(segment) =
                literal.trim_end_matches('/').rsplit('/').next().filter(|text| !text.is_empty())
            {
                before = segment.to_owned();
            }
            let parameter = parameters.iter().copied().find(|parameter| parameter["name"] == *name);
            let what = format!("{before} {name}");
            end_dollar(&mut out);
            rest = behind;
            let value =
                parameter.map_or_else(|| "1".into(), |parameter| self.samples.of_parameter(parameter));
            let parameter = parameter.unwrap_or(&Json::Null);
            if is_secret(name, &value) {
                out += &style::before(name, parameter);
                out += &self.secret(name, operation.is_read());
                continue;
            }
            let value = match value {
                Value::Scalar(value) => style::segment(value),
                several => {
                    out += &style::path(name, parameter, &several);
                    continue;
                }
            };
            out += &style::before(name, parameter);
            let setting = match operation.is_read() && self.settings.map.len() < SETTINGS_MAX {
                true => {
                    let other = format!("{}_{}", name_of(&before), name_of(name));
                    let comment = format!("of {}", short(operation.path));
                    Some(self.settings.named(what, name, &other, &comment, value.clone()))
                }
                false => self.settings.of(&what).map(str::to_owned),
            };
            match setting {
                Some(setting) => out += &format!("${{{setting}}}"),
                None => {
                    out += value.as_str();
                    end_dollar(&mut out);
                }
            }
        }
        out + &verbatim(rest)
    }

    /// An example of the body that an operation takes.
    fn put_body(&self, operation: &'d Json, request: &mut Request) {
        let body = self.samples.resolved(&operation["requestBody"]);
        let Some(content) = body["content"].as_object() else { return };
        let of =
            |wanted: &str| content.iter().find(|(kind, _)| kind.starts_with(wanted)).map(|(_, media)| media);
        let plain = |value: &Value| value.as_str().unwrap_or("x").to_owned();
        if let Some((kind, media)) = json_media(&body["content"]) {
            let text = media["example"].as_str().and_then(|text| serde_json::from_str::<Json>(text).ok());
            request.json = Some(match text.filter(|parsed| parsed.is_object() || parsed.is_array()) {
                // an example that is written out
                Some(parsed) => self.samples.given(&parsed),
                None => self.samples.value(media),
            });
            if kind != "application/json" && !kind.contains('*') && is_kind(kind) {
                request.headers.insert("Content-Type", verbatim(kind));
            }
        } else if let Some(media) = of("application/x-www-form-urlencoded") {
            if let Value::Map(fields) = self.samples.value(media) {
                let fields = fields.entries().iter().filter(|entry| !entry.key.is_empty());
                if fields.clone().all(|entry| matches!(entry.value, Value::Scalar(_))) {
                    request.form = fields.map(|entry| (entry.key.clone(), plain(&entry.value))).collect();
                } else {
                    let field = |entry: &Entry| {
                        style::query(
                            &entry.key.replace("$${", "${"),
                            &media["encoding"][&entry.key],
                            &entry.value,
                        )
                    };
                    request.headers.insert("Content-Type", "application/x-www-form-urlencoded");
                    request.body = Some(fields.flat_map(field).collect::<Vec<_>>().join("&").into());
                }
            }
        } else if let Some(media) = of("multipart/form-data") {
            let Value::Map(fields) = self.samples.value(media) else { return };
            let mut has_file = false;
            for field in fields.entries().iter().filter(|entry| !entry.key.is_empty()) {
                // what reads stands in the scenario as a step, which would lack the file
                if !matches!(request.method, Method::Get | Method::Head)
                    && self.samples.is_file(media, &field.key)
                {
                    request.multipart.insert(field.key.clone(), Map::from([("file", FILE)]));
                    has_file = true;
                } else if let Value::Scalar(_) = field.value {
                    request.multipart.insert(field.key.clone(), plain(&field.value));
                } else {
                    let text = verbatim(&style::json_text(&field.value));
                    let part = Map::from([("text", text), ("type", "application/json".to_owned())]);
                    request.multipart.insert(field.key.clone(), part);
                }
            }
            if has_file {
                add_line(&mut request.comment, "FILE must be there, beside the scenario.");
            }
        } else if let Some((kind, media)) = other_media(content) {
            if !kind.contains('*') {
                request.headers.insert("Content-Type", verbatim(kind));
            }
            let value = self.samples.value(media);
            let is_text = |scalar: &&Scalar| !scalar.is_null() && !scalar.as_str().is_empty();
            let text = if let Value::Scalar(scalar) = &value { Some(scalar).filter(is_text) } else { None };
            if text.is_none() {
                add_line(
                    &mut request.comment,
                    &format!("Its body is a placeholder: put one of {kind} here."),
                );
            }
            request.body = Some(text.map_or("x", Scalar::as_str).into());
        }
    }
}

/// One more line of a comment.
fn add_line(comment: &mut String, line: &str) {
    *comment = [comment.as_str(), line].join("\n").trim_start().to_owned();
}

/// What takes neither JSON nor fields, of several media types: one with an example, else the first.
fn other_media(content: &Object<String, Json>) -> Option<(&String, &Json)> {
    let mut all = content.iter().filter(|(kind, _)| is_kind(kind));
    let is_given =
        |(_, media): &(&String, &Json)| !media["example"].is_null() || media["examples"].is_object();
    all.clone().find(is_given).or_else(|| all.next())
}

/// What takes JSON, of several media types: the plain one first, then those that end with `+json`, then any at all.
pub(super) fn json_media(content: &Json) -> Option<(&String, &Json)> {
    let all = || content.as_object().into_iter().flatten();
    let essence = |kind: &str| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let of = |is_so: &dyn Fn(&str) -> bool| all().find(|(kind, _)| is_so(&essence(kind)));
    let is_of_others = |kind: &str| kind.starts_with("multipart/") || kind.ends_with("x-www-form-urlencoded");
    of(&|kind| kind == "application/json")
        .or_else(|| of(&|kind| kind.ends_with("+json") || kind == "text/json"))
        .or_else(|| of(&|kind| ["*/*", "application/*"].contains(&kind)))
        .filter(|(kind, _)| {
            !essence(kind).contains('*') || !all().any(|(kind, _)| is_of_others(&essence(kind)))
        })
}

/// A `$` in front of a brace would mean something else.
fn end_dollar(path: &mut String) {
    if path.ends_with('$') {
        path.pop();
        path.push_str("%24");
    }
}

/// The good statuses that are named: those of 2xx, else those of 3xx. `default` alone beside failures is any of 2xx.
fn status(operation: &Json) -> Map {
    let codes = operation["responses"].as_object().into_iter().flatten().map(|(code, _)| code.as_str());
    let of_class = |class: char| -> Vec<String> {
        let is_status =
            |code: &str| code.len() == 3 && code.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let is_class = |code: &str| code[1..].eq_ignore_ascii_case("xx");
        let of = codes.clone().filter(|code| code.is_ascii() && code.starts_with(class) && code.len() == 3);
        if of.clone().any(is_class) {
            return vec![format!("{class}xx")];
        }
        of.filter(|code| is_status(code)).map(str::to_owned).collect()
    };
    let mut good = of_class('2');
    if good.is_empty() && codes.clone().any(|code| code == "default") {
        good = vec!["2xx".into()];
    }
    if good.is_empty() {
        good = of_class('3');
    }
    let mut good: Vec<Value> = good.iter().map(|status| Scalar::unquoted(status).into()).collect();
    match (good.pop(), good.is_empty()) {
        (Some(only), true) => Map::from([("status", only)]),
        (Some(last), false) => {
            good.push(last);
            Map::from([("status", Value::List(good))])
        }
        (None, _) => Map::new(),
    }
}

/// Whether an example is not taken over: by the parameter's name, or as it looks like a secret itself.
fn is_secret(name: &str, value: &Value) -> bool {
    // a handshake's key is drawn for each connection
    if name.to_ascii_lowercase().starts_with("sec-websocket-") {
        return false;
    }
    is_secret_name(name) || value.as_str().is_some_and(|value| !value.is_empty() && is_hidden(name, value))
}

/// The header that says who asks. OpenAPI would have it ignored as a parameter, yet services name it.
fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

pub(super) fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_token)
        && !NOT_HEADERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

fn is_kind(kind: &str) -> bool {
    kind.len() <= TEXT_MAX
        && kind.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && !kind.is_empty()
}
