//! From an OpenAPI document: a step for each GET, and what writes as a comment.

pub(super) mod bundle;
mod sample;
mod security;
mod style;
mod swagger;

use serde_json::{Map as Object, Value as Json};
use tidemark_scenario::source::{
    Entry, Load, Map, Method, Request, Scalar, Scenario, Session, Step, System, Think, Value, verbatim,
};
use tidemark_scenario::system_url::SystemUrl;
use tidemark_scenario::units::Time;
use url::{Position, Url};

use self::sample::Samples;
use self::security::Login;
use crate::error::ImportError;
use crate::har::hidden::{is_hidden, is_secret_name};
use crate::names::{Settings, free, name_of, variable};
use crate::{Imported, add_header, objectives};

/// What the user is called in a login.
const USERS: [&str; 6] = ["user", "username", "user_name", "login", "email", "userid"];
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
/// Most servers beside the first.
const SERVERS_MAX: usize = 50;
/// Methods that are taken, as documents name them; the first two read.
const METHODS: [(&str, Method); 6] = [
    ("get", Method::Get),
    ("head", Method::Head),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
];
/// Others.
const METHODS_NOT_TAKEN: [&str; 3] = ["options", "trace", "query"];
/// Last words of the paths that give a token to who says a password.
const LOGINS: [&str; 10] = [
    "login",
    "log-in",
    "signin",
    "sign-in",
    "sign_in",
    "auth",
    "authenticate",
    "token",
    "session",
    "sessions",
];
/// The same of those that take it back.
const LOGOUTS: [&str; 6] = ["logout", "log-out", "signout", "sign-out", "sign_out", "revoke"];
/// Members of its answer that may be the token.
const TOKENS: [&str; 7] =
    ["access_token", "accessToken", "token", "id_token", "idToken", "jwt", "auth_token"];
/// What the token is called that a login has left.
const TOKEN: &str = "token";
/// Where the system is if the document does not say so.
const SOMEWHERE: &str = "http://127.0.0.1:8080";
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

/// The scenario of a document; `name` is what messages call it.
pub(super) fn scenario(name: &str, document: &Json) -> Result<Imported, ImportError> {
    let wrong = |reason: &str| ImportError::new(format!("{name}: {reason}"));
    let swagger =
        document["swagger"].as_str().map(str::to_owned).or(document["swagger"].as_f64().map(|_| "2".into()));
    let converted;
    let document = match (document["openapi"].as_str(), swagger) {
        (Some(version), _) if version.starts_with("3.") => document,
        (Some(version), _) => {
            return Err(wrong(&format!("it is of OpenAPI {}; versions 2 and 3 are read", short(version))));
        }
        (None, Some(version)) if version.starts_with('2') => {
            converted = swagger::as_3(document);
            &converted
        }
        (None, Some(version)) => {
            return Err(wrong(&format!("it is of Swagger {}; versions 2 and 3 are read", short(&version))));
        }
        (None, None) => {
            return Err(wrong("it is neither an OpenAPI document (no `openapi`) nor a HAR file (no `log`)"));
        }
    };
    let paths = document["paths"].as_object().filter(|paths| !paths.is_empty());
    let paths = paths.ok_or_else(|| wrong("it has no paths, so that there is nothing to request"))?;
    let mut settings = Map::new();
    settings.insert_with_comment("replaced with --set rate=100/s, or with -r", "rate", "10/s");
    let mut making = Making {
        document,
        samples: Samples::new(document),
        settings: Settings::new(settings),
        system: None,
        targets: Vec::new(),
        login: None,
        steps: Vec::new(),
        written: Vec::new(),
        writes: 0,
        left_out: 0,
        other_methods: 0,
        event_streams: 0,
    };
    making.paths(paths);
    let title = document["info"]["title"].as_str().map(short).filter(|title| !title.is_empty());
    let notes = making.notes();
    let mut comment = format!("Made by tidemark init from {}.", short(name));
    comment += "\nA user asks for everything once; put the steps in the order in which people take them.";
    comment += "\nValues are examples of the document, or made up: they must be there in the system.";
    notes.iter().for_each(|note| comment += &format!("\n{note}"));
    let remark = if notes.is_empty() { String::new() } else { format!("{name}: {}", notes.join("\n  ")) };
    let (url, about_url) = making.system.take().unwrap_or_else(|| server(&document["servers"], None));
    let targets = making
        .targets
        .iter()
        .map(|(url, name)| (name.clone(), Value::Map(Map::from([("url", verbatim(url))]))));
    let scenario = Scenario {
        comment,
        name: title.map(|title| verbatim(&title).into()),
        targets: targets.collect(),
        settings: std::mem::take(&mut making.settings.map),
        system: Some(System { comment: about_url, url: Some(verbatim(&url).into()), ..System::default() }),
        sessions: vec![("visitor".into(), Session { steps: making.finished(), ..Session::default() })],
        load: Some(Load {
            comment: "Open: so many arrive, whether or not the system keeps up; `users: 10` makes it closed."
                .into(),
            rate: Some("${rate}".into()),
            warm_up: Some("5s".into()),
            hold: Some("30s".into()),
            ..Load::default()
        }),
        objectives: objectives(),
        ..Scenario::default()
    };
    Ok(Imported { remark, ..Imported::from(scenario) })
}

/// Where the first of some servers is, and what to say about it. A part of a URL is one of `base`, if that is known.
fn server(servers: &Json, base: Option<&Url>) -> (String, String) {
    let unknown = |path: &str| {
        let about = "The document names no whole URL: put the system's here, or run with --url.";
        (format!("{SOMEWHERE}{path}"), about.to_owned())
    };
    let Some(text) = servers[0]["url"].as_str() else { return unknown("") };
    let text = with_defaults(text, &servers[0]["variables"]);
    let whole = Url::parse(&text).or_else(|error| base.map_or(Err(error), |base| base.join(&text)));
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
        let default = variable["default"].as_str().or(variable["enum"][0].as_str());
        let default = short(default.unwrap_or_default());
        text = text.replace(&format!("{{{name}}}"), &default);
        text = text.chars().take(PATH_MAX).collect();
    }
    text
}

struct Making<'d> {
    document: &'d Json,
    samples: Samples<'d>,
    settings: Settings,
    /// Where most operations are, and what to say about it.
    system: Option<(String, String)>,
    /// Other servers: their URLs and names.
    targets: Vec<(String, String)>,
    /// What the login left, if there is one.
    login: Option<Login>,
    steps: Vec<Step>,
    /// What writes and stands above the next step.
    written: Vec<String>,
    /// How many of these there are.
    writes: usize,
    left_out: usize,
    other_methods: usize,
    /// GETs whose good answers are streams of events.
    event_streams: usize,
}

/// An operation, with the path that it is at.
struct Operation<'d> {
    path: &'d str,
    method: Method,
    item: &'d Json,
    body: &'d Json,
    /// Where it is.
    server: String,
}

impl Operation<'_> {
    fn is_read(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head)
    }
}

impl<'d> Making<'d> {
    /// What reads has its settings first: what writes uses those, and makes none that nothing would use.
    fn paths(&mut self, paths: &'d Object<String, Json>) {
        let mut operations: Vec<Operation<'d>> = Vec::new();
        let own = server(&self.document["servers"], None);
        let base = Url::parse(&own.0).ok();
        for (path, item) in paths {
            let item = self.samples.resolved(item);
            let is_there = |key: &&&str| item.get(**key).is_some_and(Json::is_object);
            self.other_methods += METHODS_NOT_TAKEN.iter().filter(is_there).count();
            for (key, method) in METHODS {
                let Some(body) = item.get(key).filter(|body| body.is_object()) else { continue };
                if operations.len() == OPERATIONS_MAX
                    || path.chars().count() > PATH_MAX
                    || !path.starts_with('/')
                {
                    self.left_out += 1;
                    continue;
                }
                if method == Method::Get && self.is_event_stream(body) {
                    self.event_streams += 1;
                    continue;
                }
                let nearer = [&body["servers"], &item["servers"]];
                let nearer = nearer.into_iter().find(|servers| servers[0]["url"].is_string());
                let place = nearer.map_or_else(|| own.clone(), |servers| server(servers, base.as_ref()));
                if self.system.is_none() || place == own {
                    self.system = Some(place.clone());
                }
                operations.push(Operation { path, method, item, body, server: place.0 });
            }
        }
        // who has left is asked who comes again
        operations.sort_by_key(|operation| LOGOUTS.iter().any(|word| is_last(operation.path, word)));
        let login = operations.iter().position(|operation| self.is_login(operation));
        if let Some(login) = login.map(|at| operations.remove(at)) {
            let step = self.login(&login);
            self.steps.push(step.into());
        }
        let reads: Vec<Option<Request>> =
            operations.iter().map(|operation| operation.is_read().then(|| self.request(operation))).collect();
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
                self.writes += 1;
            }
        }
    }

    /// What is to be known of what is not in the scenario.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.writes > 0 {
            let s = if self.writes == 1 { "" } else { "s" };
            notes.push(format!("Commented out, as they write: {} operation{s}.", self.writes));
        }
        if self.left_out > 0 {
            notes
                .push(format!("Left out, {}: at most {OPERATIONS_MAX} operations are taken.", self.left_out));
        }
        if self.other_methods > 0 {
            notes.push(format!(
                "Left out, {}: OPTIONS, TRACE and QUERY operations; `REQUEST` steps send them.",
                self.other_methods
            ));
        }
        if self.event_streams > 0 {
            notes.push(format!(
                "Left out, {}: GET of a stream of events (text/event-stream); `sse connect` steps read them.",
                self.event_streams
            ));
        }
        let lost = self.samples.lost();
        if !lost.is_empty() {
            notes.push(format!("References that could not be resolved: {}.", lost.join(", ")));
        }
        notes
    }

    /// All steps; what writes last stands above a pause.
    fn finished(self) -> Vec<Step> {
        let mut steps = self.steps;
        if steps.is_empty() {
            let comment = "The document has no GET; this one stands in for the steps below.".to_owned();
            steps.push(Request { comment, ..Request::new(Method::Get, "/") }.into());
        }
        if !self.written.is_empty() {
            let time = Scalar::from(Time(std::time::Duration::from_secs(1)));
            steps.push(
                Think { comment: self.written.join("\n"), time: time.into(), ..Think::default() }.into(),
            );
        }
        steps
    }

    /// Whether every good answer is a stream of events, which does not end.
    fn is_event_stream(&self, operation: &'d Json) -> bool {
        let answers = operation["responses"].as_object().into_iter().flatten();
        let good = answers.filter(|(code, _)| code.starts_with('2'));
        let contents = good.filter_map(|(_, answer)| self.samples.resolved(answer)["content"].as_object());
        let kinds = contents.flatten().map(|(kind, _)| kind.as_str());
        // of Swagger 2
        let produced = operation["produces"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let mut kinds = kinds.chain(produced).peekable();
        kinds.peek().is_some() && kinds.all(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// Whether this is where a token is given to who says a password.
    fn is_login(&self, operation: &Operation<'d>) -> bool {
        let has_body = operation.body["requestBody"].is_object();
        operation.method == Method::Post
            && has_body
            && LOGINS.iter().any(|word| is_last(operation.path, word))
            && security::is_open(self.document, operation.body)
            && security::has_logins(self.document)
    }

    /// The login, with settings for what is secret in it, and the token that its answer holds.
    fn login(&mut self, operation: &Operation<'d>) -> Request {
        let mut step = self.request(operation);
        let comment = "a secret for the login: set this variable, or give --set";
        let mut hide = |map: &mut Map| {
            for entry in map.entries().to_vec() {
                if is_secret_name(&entry.key) {
                    let what = format!("login {}", entry.key);
                    let given = entry.value.as_str().filter(|text| text.chars().any(|c| c != 'x'));
                    let setting = match given {
                        // no secret: the document tells everyone
                        Some(given) => {
                            self.settings.named(what, &entry.key, "login_password", "of the document", given)
                        }
                        None => self.settings.secret(what, &entry.key, "login_password", comment),
                    };
                    map.insert(entry.key, format!("${{{setting}}}"));
                } else if USERS.contains(&entry.key.to_ascii_lowercase().as_str())
                    && let Some(given) = entry.value.as_str()
                {
                    let what = format!("login {}", entry.key);
                    let setting = self.settings.named(what, &entry.key, "login_user", "for the login", given);
                    map.insert(entry.key, format!("${{{setting}}}"));
                }
            }
        };
        hide(&mut step.form);
        if let Some(Value::Map(map)) = &mut step.json {
            hide(map);
        }
        let answers = operation.body["responses"].as_object().into_iter().flatten();
        let answer = answers
            .filter(|(code, _)| code.starts_with('2'))
            .find_map(|(_, answer)| json_media(&self.samples.resolved(answer)["content"]));
        let members = answer.map(|(_, media)| self.samples.value(media)).unwrap_or_default();
        let token = match &members {
            Value::Map(map) => TOKENS.into_iter().find(|name| map.get(name).is_some()),
            _ => None,
        };
        let mut left = Login::default();
        if let Some(token) = token {
            step.extract.insert(TOKEN, format!("$.{token}"));
            left.token = Some(TOKEN);
        }
        self.login = Some(left);
        step
    }

    fn request(&mut self, operation: &Operation<'d>) -> Request {
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

/// Whether a path ends with this word.
fn is_last(path: &str, word: &str) -> bool {
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(word))
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
fn json_media(content: &Json) -> Option<(&String, &Json)> {
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
