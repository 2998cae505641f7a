//! From an OpenAPI 3 document: a step for each GET, and what writes as a comment.

mod sample;

use serde_json::{Map as Object, Value as Json};
use tidemark_scenario::source::{
    Map, Method, Request, Scalar, Scenario, Session, Step, System, Think, Value, verbatim,
};
use tidemark_scenario::system_url::SystemUrl;
use tidemark_scenario::units::Time;
use url::{Position, Url};

use self::sample::Samples;
use super::names::{Settings, name_of};
use super::{closed, objectives, users};
use crate::failure::Failure;

/// Most operations that are taken.
const OPERATIONS_MAX: usize = 500;
/// Longest path, characters.
const PATH_MAX: usize = 2_000;
/// Longest text that is taken over, characters: a title, a name, a value.
const TEXT_MAX: usize = 200;
/// Most settings that are made; beyond, paths hold values.
const SETTINGS_MAX: usize = 200;
/// Most text of all steps, bytes: less than a scenario may have, however it is quoted.
const STEPS_BYTES_MAX: usize = 512 << 10;
/// Most parameters of an operation.
const PARAMETERS_MAX: usize = 50;
/// Methods that write, as documents name them.
const WRITES: [(&str, Method); 4] =
    [("post", Method::Post), ("put", Method::Put), ("patch", Method::Patch), ("delete", Method::Delete)];
/// Where the system is if the document does not say so.
const SOMEWHERE: &str = "http://127.0.0.1:8080";
/// What stands for the path of a file that is sent.
const FILE: &str = "FILE";
/// Headers that the driver writes itself, or that are secrets.
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

/// The scenario of a document; `name` is what messages call it.
pub(super) fn scenario(name: &str, document: &Json) -> Result<Scenario, Failure> {
    let wrong = |reason: &str| Failure::usage(format!("{name}: {reason}"));
    match (document["openapi"].as_str(), document.get("swagger")) {
        (Some(version), _) if version.starts_with("3.") => {}
        (Some(version), _) => {
            return Err(wrong(&format!("it is of OpenAPI {}; version 3 is read", short(version))));
        }
        (None, Some(_)) => {
            return Err(wrong("it is of Swagger 2; convert it to OpenAPI 3 first"));
        }
        (None, None) => {
            return Err(wrong("it is neither an OpenAPI document (no `openapi`) nor a HAR file (no `log`)"));
        }
    }
    let paths = document["paths"].as_object().filter(|paths| !paths.is_empty());
    let paths = paths.ok_or_else(|| wrong("it has no paths, so that there is nothing to request"))?;
    let mut making = Making {
        samples: Samples::new(document),
        settings: Settings::new(users()),
        steps: Vec::new(),
        written: Vec::new(),
        left_out: 0,
    };
    making.paths(paths);
    let (url, about_url) = server(document);
    let title = document["info"]["title"].as_str().map(short).filter(|title| !title.is_empty());
    let mut comment = format!("Made by tidemark init from {}.", short(name));
    comment += "\nA user asks for everything once, then pauses; put the steps in the order in which people take them.";
    comment += "\nValues are examples of the document, or made up: they must be there in the system.";
    if document["security"].as_array().is_some_and(|all| !all.is_empty())
        || document["components"]["securitySchemes"].as_object().is_some_and(|all| !all.is_empty())
    {
        comment += "\nThe API requires authentication. Keep credentials out of this file:";
        comment += "\n  defaults: {auth: {bearer: '${env(\"TOKEN\")}'}}";
    }
    if making.left_out > 0 {
        comment +=
            &format!("\n{} operations are left out: at most {OPERATIONS_MAX} are taken.", making.left_out);
    }
    Ok(Scenario {
        comment,
        name: title.map(|title| verbatim(&title).into()),
        settings: std::mem::take(&mut making.settings.map),
        system: Some(System { comment: about_url, url: Some(verbatim(&url).into()), ..System::default() }),
        sessions: vec![("visitor".into(), Session { steps: making.finished(), ..Session::default() })],
        load: Some(closed("5s".into(), "30s".into())),
        objectives: objectives(),
        ..Scenario::default()
    })
}

/// Where the system is, and what to say about it.
fn server(document: &Json) -> (String, String) {
    let unknown = |base: &str| {
        let about = "The document names no whole URL: put the system's here, or run with --url.";
        (format!("{SOMEWHERE}{base}"), about.to_owned())
    };
    let Some(text) = document["servers"][0]["url"].as_str() else { return unknown("") };
    let text = with_defaults(text, &document["servers"][0]["variables"]);
    let whole = Url::parse(&text);
    let is_whole = whole.is_ok();
    let Ok(url) = whole.or_else(|_| Url::parse(SOMEWHERE).and_then(|base| base.join(&text))) else {
        return unknown("");
    };
    let (origin, base) = (&url[..Position::BeforePath], url.path().trim_end_matches('/'));
    let has_login = !url.username().is_empty() || url.password().is_some();
    let drives = |url: &str| !has_login && url.starts_with("http") && SystemUrl::read(url).is_ok();
    match format!("{origin}{base}") {
        whole if is_whole && whole.chars().count() <= PATH_MAX && drives(&whole) => {
            (whole, "Is this the one to drive? Another: run with --url.".into())
        }
        _ if base.chars().count() <= PATH_MAX && drives(&format!("{SOMEWHERE}{base}")) => unknown(base),
        _ => unknown(""),
    }
}

/// A server's URL with its variables written out.
fn with_defaults(text: &str, variables: &Json) -> String {
    let mut text: String = text.chars().take(PATH_MAX).collect();
    for (name, variable) in variables.as_object().into_iter().flatten().take(PARAMETERS_MAX) {
        // short, so that many places for it make no long text
        let default = short(variable["default"].as_str().unwrap_or_default());
        text = text.replace(&format!("{{{name}}}"), &default);
        text = text.chars().take(PATH_MAX).collect();
    }
    text
}

struct Making<'d> {
    samples: Samples<'d>,
    settings: Settings,
    steps: Vec<Step>,
    /// What writes and stands above the next step.
    written: Vec<String>,
    left_out: usize,
}

/// An operation, with the path that it is at.
struct Operation<'d> {
    path: &'d str,
    method: Method,
    item: &'d Json,
    body: &'d Json,
}

impl<'d> Making<'d> {
    /// What reads has its settings first: what writes uses those, and makes none that nothing would use.
    fn paths(&mut self, paths: &'d Object<String, Json>) {
        let mut operations: Vec<Operation<'d>> = Vec::new();
        for (path, item) in paths {
            let item = self.samples.resolved(item);
            let named = [("get", Method::Get)].into_iter().chain(WRITES);
            for (key, method) in named {
                let Some(body) = item.get(key).filter(|body| body.is_object()) else { continue };
                if operations.len() == OPERATIONS_MAX
                    || path.chars().count() > PATH_MAX
                    || !path.starts_with('/')
                {
                    self.left_out += 1;
                } else {
                    operations.push(Operation { path, method, item, body });
                }
            }
        }
        let reads: Vec<Option<Request>> = operations
            .iter()
            .map(|operation| (operation.method == Method::Get).then(|| self.request(operation)))
            .collect();
        let mut bytes = 0;
        for (operation, read) in operations.iter().zip(reads) {
            let is_read = read.is_some();
            let mut step = read.unwrap_or_else(|| self.request(operation));
            let lines = as_lines(step.clone());
            bytes += lines.len();
            if bytes > STEPS_BYTES_MAX {
                self.left_out += 1;
            } else if is_read {
                let mut lines = std::mem::take(&mut self.written);
                lines.extend(Some(std::mem::take(&mut step.comment)).filter(|own| !own.is_empty()));
                step.comment = lines.join("\n");
                self.steps.push(step.into());
            } else {
                if self.written.is_empty() {
                    self.written.push("It writes: take the # away once the system may be written to.".into());
                }
                self.written.push(lines);
            }
        }
    }

    /// All steps; what writes last stands above a pause.
    fn finished(self) -> Vec<Step> {
        let mut steps = self.steps;
        if steps.is_empty() {
            let comment = "The document has no GET; this one stands in for the steps below.".to_owned();
            steps.push(Request { comment, ..Request::new(Method::Get, "/") }.into());
        }
        let time = Scalar::from(Time(std::time::Duration::from_secs(1)));
        steps.push(Think { comment: self.written.join("\n"), time: time.into(), ..Think::default() }.into());
        steps
    }

    fn request(&mut self, operation: &Operation<'d>) -> Request {
        let parameters = self.parameters(operation);
        let of = |place: &str| -> Vec<&'d Json> {
            parameters.iter().copied().filter(|parameter| parameter["in"] == place).collect()
        };
        let path = self.path(operation, &of("path"));
        let has_holes = operation.path.contains('{');
        let label: String =
            format!("{} {}", operation.method.as_str(), operation.path).chars().take(TEXT_MAX).collect();
        let required = |parameter: &&&Json| parameter["required"] == true;
        let named = |parameter: &Json| parameter["name"].as_str().map(short);
        let mut query = Map::new();
        for parameter in of("query").iter().filter(required) {
            if let Some(name) = named(parameter).filter(|name| !name.is_empty()) {
                query.insert(verbatim(&name), self.samples.of_parameter(parameter));
            }
        }
        let mut headers = Map::new();
        for parameter in of("header").iter().filter(required) {
            if let Some(name) = named(parameter).filter(|name| is_header(name)) {
                headers.insert(name, self.samples.text(parameter));
            }
        }
        let cookies = of("cookie");
        let cookies: Vec<String> =
            cookies.iter().filter(required).filter_map(|parameter| named(parameter)).collect();
        let comment = match cookies.as_slice() {
            [] => String::new(),
            names => format!("left out, though required: cookie {}", names.join(", ")),
        };
        let mut request = Request {
            comment,
            label: has_holes.then(|| verbatim(&label).into()),
            query,
            headers,
            check: status(operation.body),
            ..Request::new(operation.method, path)
        };
        self.put_body(operation.body, &mut request);
        request
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
            let setting = match operation.method {
                Method::Get if self.settings.map.len() < SETTINGS_MAX => {
                    let value = parameter
                        .map_or_else(|| "1".into(), |parameter| self.samples.of_parameter(parameter));
                    let other = format!("{}_{}", name_of(&before), name_of(name));
                    let comment = format!("of {}", short(operation.path));
                    Some(self.settings.named(what, name, &other, &comment, value))
                }
                _ => self.settings.of(&what).map(str::to_owned),
            };
            match setting {
                Some(setting) => out += &format!("${{{setting}}}"),
                None => {
                    let value =
                        parameter.map_or_else(|| "1".to_owned(), |parameter| self.samples.text(parameter));
                    out += &value;
                    end_dollar(&mut out);
                }
            }
            rest = behind;
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
        if let Some(media) = of("application/json") {
            request.json = Some(self.samples.value(media));
        } else if let Some(media) = of("application/x-www-form-urlencoded") {
            if let Value::Map(fields) = self.samples.value(media) {
                let fields = fields.entries().iter().filter(|entry| !entry.key.is_empty());
                request.form = fields.map(|entry| (entry.key.clone(), plain(&entry.value))).collect();
            }
        } else if let Some(media) = of("multipart/form-data") {
            let Value::Map(fields) = self.samples.value(media) else { return };
            for field in fields.entries().iter().filter(|entry| !entry.key.is_empty()) {
                // what reads stands in the scenario as a step, which would lack the file
                if request.method != Method::Get && self.samples.is_file(media, &field.key) {
                    request.multipart.insert(field.key.clone(), Map::from([("file", FILE)]));
                } else {
                    request.multipart.insert(field.key.clone(), plain(&field.value));
                }
            }
            if request.multipart.entries().iter().any(|field| matches!(field.value, Value::Map(_))) {
                let lines = [request.comment.as_str(), "FILE must be there, beside the scenario."];
                request.comment = lines.join("\n").trim_start().to_owned();
            }
        } else if let Some((kind, _)) = content.iter().next().filter(|(kind, _)| is_kind(kind)) {
            request.headers.insert("Content-Type", verbatim(kind));
            request.body = Some("x".into());
        }
    }
}

/// A `$` in front of a brace would mean something else.
fn end_dollar(path: &mut String) {
    if path.ends_with('$') {
        path.pop();
        path.push_str("%24");
    }
}

/// The one good status that is named, if there is one alone.
fn status(operation: &Json) -> Map {
    let codes = operation["responses"].as_object().into_iter().flatten().map(|(code, _)| code);
    let good: Vec<u64> =
        codes.filter_map(|code| code.parse().ok()).filter(|code| (200..300).contains(code)).collect();
    match good.as_slice() {
        [only] => Map::from([("status", *only)]),
        _ => Map::new(),
    }
}

fn is_header(name: &str) -> bool {
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

fn short(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// A step as it would stand in the file.
fn as_lines(step: Request) -> String {
    let session = Session { steps: vec![step.into()], ..Session::default() };
    let text = Scenario { sessions: vec![("visitor".into(), session)], ..Scenario::default() }.to_yaml();
    // sessions, visitor, steps
    let lines: Vec<&str> = text.lines().skip(3).map(|line| line.get(6..).unwrap_or_default()).collect();
    lines.join("\n")
}
