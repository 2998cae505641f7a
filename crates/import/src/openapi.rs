//! From an OpenAPI document: a step for each GET, and what writes as a comment.

pub(super) mod bundle;
mod request;
mod sample;
mod security;
mod style;
mod swagger;

use serde_json::{Map as Object, Value as Json};
use tidemark_scenario::source::{
    Load, Map, Method, Request, Scalar, Scenario, Session, Step, System, Think, Value, verbatim,
};
use tidemark_scenario::system_url::SystemUrl;
use tidemark_scenario::units::Time;
use url::{Position, Url};

use self::request::json_media;
use self::sample::Samples;
use self::security::Login;
use crate::error::ImportError;
use crate::har::hidden::is_secret_name;
use crate::names::Settings;
use crate::{Imported, objectives};

/// What the user is called in a login.
const USERS: [&str; 6] = ["user", "username", "user_name", "login", "email", "userid"];
/// Most operations that are taken.
const OPERATIONS_MAX: usize = 500;
/// Longest path, characters.
const PATH_MAX: usize = 2_000;
/// Longest text that is taken over, characters: a title, a name, a value.
const TEXT_MAX: usize = 200;
/// Most text of all steps, bytes: less than a scenario may have, however it is quoted.
const STEPS_BYTES_MAX: usize = 512 << 10;
/// Most parameters of an operation.
const PARAMETERS_MAX: usize = 50;
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
}

/// Whether a path ends with this word.
fn is_last(path: &str, word: &str) -> bool {
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(word))
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
