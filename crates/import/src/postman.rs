//! From a collection of Postman: its requests in order, with what its scripts check and keep.
//!
//! A user of the scenario sends them as the collection runner does, one after another. Folders are groups. What has no
//! counterpart is told with its line, never skipped.

mod answer;
mod auth;
mod body;
mod condition;
mod names;
mod script;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use regex::Regex;
use tidemark_scenario::source::{
    Defaults, Map, Request, Scenario, Session, Step, System, Value, method_as_sent, verbatim,
};

use self::answer::Answer;
use crate::draft::{Draft, is_typed};
use crate::error::ImportError;
use crate::har::hidden::is_secret_name;
use crate::holes::{Hole, Place, Text, has_marks};
use crate::plan::{Plan, is_address, nested, shown};
use crate::target::with_scheme;
use crate::tree::{Content, Node};
use crate::{Imported, UNSET, closed, objectives, users};

/// Most redirects in a row, as Postman follows.
const FOLLOW: u64 = 10;
/// Most folders within each other that are groups; deeper ones are part of the names below them.
const GROUPS_MAX: usize = 4;
/// How often a value may name another variable.
const NESTED_MAX: usize = 10;
/// Most bytes of a value with all that it names.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Most origins that are driven.
const ORIGINS_MAX: usize = 50;
/// What says nothing of what is sent.
const FOR_PEOPLE: [&str; 6] = ["id", "uid", "_postman_id", "description", "name", "_postman_isSubFolder"];

/// The scenario of a collection.
///
/// # Errors
/// Where it is no collection, or has nothing that can be driven.
pub(crate) fn scenario(plan: &Plan<'_>) -> Result<Imported, ImportError> {
    let cannot = |reason: &str| ImportError::new(format!("{}: {reason}", plan.name));
    let environment =
        plan.environment.map(|file| crate::read(Path::new(file)).map(|text| (file, text))).transpose()?;
    let texts = std::iter::once(plan.text).chain(environment.iter().map(|(_, text)| text.as_str()));
    if texts.into_iter().any(has_marks) {
        return Err(cannot("it has characters for private use (U+F0000 to U+FFFFF): remove them"));
    }
    let root = Node::from_json(plan.name, plan.text)?;
    let mut making = Making::new(plan, &root);
    if let Some((file, text)) = &environment {
        making.environment(&Node::from_json(file, text)?, file)?;
    }
    let scenario = making.collection(&root);
    making.draft.tell_unknown(&root, |keys| keys.first() != Some(&"info"));
    making.draft.finished(scenario)
}

/// What a folder hands down to what is in it.
#[derive(Clone)]
struct Above<'n> {
    auth: Option<&'n Node>,
    /// Scripts of the collection and its folders, outermost first.
    before: Vec<&'n Node>,
    after: Vec<&'n Node>,
    /// The folder, and names of those that are no groups.
    folder: String,
    path: String,
    groups: usize,
}

struct Making<'p> {
    draft: Draft<'p>,
    /// The line of the request that is made.
    line: usize,
    /// Values of the collection and of the environment, which wins.
    values: HashMap<String, String>,
    /// Variables whose type says that they are secret.
    secret: HashSet<String>,
    /// What scripts set.
    scripted: HashSet<String>,
    /// What is set at the beginning, since a script changes it later.
    initial: Map,
    /// Variables that are used, and those that are set, as they are called here.
    used: Vec<String>,
    set: HashSet<String>,
    origins: Vec<(String, usize)>,
    /// The origin of requests that name none.
    system: String,
    targets: Map,
    /// Names of variables that nothing sets, told once.
    missing: HashSet<String>,
    objectives: Vec<Value>,
    /// Credentials that stand in `defaults`, by their place in memory.
    outermost_auth: Option<usize>,
}

impl<'p> Making<'p> {
    fn new(file: &'p Plan<'p>, root: &Node) -> Making<'p> {
        let mut making = Making {
            draft: Draft::new(file),
            line: 1,
            values: HashMap::new(),
            secret: HashSet::new(),
            scripted: HashSet::new(),
            initial: Map::new(),
            used: Vec::new(),
            set: HashSet::new(),
            origins: Vec::new(),
            system: String::new(),
            targets: Map::new(),
            missing: HashSet::new(),
            objectives: objectives(),
            outermost_auth: None,
        };
        making.draft.settings.map = users();
        making.variables(root, "variable");
        making
    }

    /// Variables of the collection, or of an environment.
    fn variables(&mut self, root: &Node, key: &str) {
        for node in root.list(key) {
            node.ignore(&["description", "system", "id", "name"]);
            let name = node.text("key").or(node.text("id")).unwrap_or_default();
            let is_on = !node.is_true("disabled") && node.text("enabled") != Some("false");
            let value = node.text("value").or(node.text("current")).unwrap_or_default();
            if node.text("type") == Some("secret") {
                self.secret.insert(name.to_owned());
            }
            if is_on && !name.is_empty() {
                self.values.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    fn environment(&mut self, root: &Node, file: &str) -> Result<(), ImportError> {
        if root.list("values").is_empty() {
            return Err(ImportError::new(format!(
                "{file}: this is not an environment of Postman: it has no values"
            )));
        }
        self.variables(root, "values");
        root.ignore(&[
            "id",
            "name",
            "_postman_variable_scope",
            "_postman_exported_at",
            "_postman_exported_using",
            "timestamp",
            "synced",
            "color",
        ]);
        self.draft.tell_unknown(root, |_| false);
        Ok(())
    }

    fn collection(&mut self, root: &Node) -> Option<Scenario> {
        let name = root.map("info").and_then(|info| info.text("name")).unwrap_or_default().trim().to_owned();
        root.ignore(&["info", "_postman_id"]);
        self.scan(root);
        self.system =
            self.origins.iter().rev().max_by_key(|(_, count)| *count).map(|(one, _)| one.clone())?;
        let mut above = Above {
            auth: None,
            before: Vec::new(),
            after: Vec::new(),
            folder: String::new(),
            path: String::new(),
            groups: 0,
        };
        let mut defaults = Defaults {
            headers: Map::from([("Accept-Encoding", "gzip, deflate, br")]),
            ..Defaults::default()
        };
        above.auth = root.map("auth");
        if let Some(auth) = above.auth
            && let Some(made) = self.simple_auth(auth)
        {
            self.outermost_auth = Some(std::ptr::from_ref(auth).addr());
            defaults.other.insert("auth", made);
        }
        defaults.other.insert("follow", FOLLOW);
        self.events(root, &mut above);
        self.behaviour(root, None);
        let mut steps = self.items(root, &above);
        if !self.draft.has_requests() {
            return None;
        }
        for name in std::mem::take(&mut self.used) {
            // what would have set it was told
            if !self.set.contains(&name) && self.initial.get(&name).is_none() {
                let comment = "a script of the collection would have set it";
                self.draft.settings.map.insert_with_comment(comment, name, UNSET);
            }
        }
        if !self.initial.is_empty() {
            let set = Map::from([("set", std::mem::take(&mut self.initial))]);
            steps.insert(0, Step::Other(set));
        }
        let file = self.draft.file.name.rsplit(['/', '\\']).next().unwrap_or_default();
        Some(Scenario {
            name: (!name.is_empty()).then(|| verbatim(&name).into()),
            comment: format!(
                "Made of {}. What was left out was told on the way.\nA user sends the requests one after another, as the collection runner does.",
                shown(file)
            ),
            system: Some(System {
                url: Some(self.url(&self.system.clone()).into()),
                comment: "Is this the one to drive? Another: run with --url.".into(),
                ..System::default()
            }),
            targets: std::mem::take(&mut self.targets),
            defaults: Some(defaults),
            sessions: vec![("visitor".into(), Session { steps, ..Session::default() })],
            load: Some(closed("5s".into(), "30s".into())),
            objectives: std::mem::take(&mut self.objectives),
            ..Scenario::default()
        })
    }

    /// Looks through all requests for where they go, and through scripts for what they set.
    fn scan(&mut self, folder: &Node) {
        let set = Regex::new(r#"(?:\.set|set\w+Variable)\(\s*["'`]([^"'`]+)["'`]"#).ok();
        for event in folder.list("event") {
            for line in event.map("script").map(script::lines).unwrap_or_default() {
                let found = set.iter().flat_map(|set| set.captures_iter(line.1));
                let names = found.filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
                self.scripted.extend(names);
            }
        }
        if let Some(request) = folder.get("request") {
            let raw = raw_url(request);
            let (origin, _) = self.origin(&raw);
            match self.origins.iter_mut().find(|(known, _)| *known == origin) {
                Some((_, count)) => *count += 1,
                None => self.origins.push((origin, 1)),
            }
        }
        folder.list("item").iter().for_each(|item| self.scan(item));
    }

    fn items(&mut self, folder: &Node, above: &Above<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        for item in folder.list("item") {
            let name = item.text("name").unwrap_or_default().trim().to_owned();
            item.ignore(&FOR_PEOPLE);
            let mut inner = above.clone();
            if item.get("request").is_some() {
                // answers that were saved
                item.ignore(&["response"]);
                self.events(item, &mut inner);
                steps.extend(self.request(item, &name, &inner));
                continue;
            }
            inner.auth = item.map("auth").or(inner.auth);
            self.events(item, &mut inner);
            self.behaviour(item, None);
            let is_group = inner.groups < GROUPS_MAX && !name.is_empty();
            inner.folder.clone_from(&name);
            if is_group {
                inner.groups += 1;
            } else if !name.is_empty() {
                inner.path = format!("{}{name} / ", inner.path);
            }
            let within = self.items(item, &inner);
            let has_request = |step: &Step| {
                matches!(step, Step::Request(_))
                    || matches!(step, Step::Other(map) if map.get("group").is_some())
            };
            if is_group && within.iter().any(has_request) {
                let group = [("group", Value::from(verbatim(&name))), ("steps", nested(within))];
                steps.push(Step::Other(Map::from(group)));
            } else {
                steps.extend(within);
            }
        }
        steps
    }

    fn events<'n>(&mut self, of: &'n Node, above: &mut Above<'n>) {
        for event in of.list("event") {
            event.ignore(&["id"]);
            if event.is_true("disabled") {
                event.done();
                continue;
            }
            match (event.text("listen"), event.map("script")) {
                (Some("prerequest"), Some(script)) => above.before.push(script),
                (Some("test"), Some(script)) => above.after.push(script),
                (listen, _) => {
                    let element = format!("event {}", shown(listen.unwrap_or_default()));
                    self.draft.tell(event.line, &element, "been done at a time that is not known here", true);
                    event.done();
                }
            }
        }
    }

    /// `protocolProfileBehavior`: what of it the request can have.
    fn behaviour(&mut self, of: &Node, mut made: Option<&mut Request>) {
        let Some(behaviour) = of.map("protocolProfileBehavior") else { return };
        for (key, node) in behaviour.entries() {
            let value = node.as_str().unwrap_or_default();
            match (key.as_str(), value, made.as_deref_mut()) {
                ("followRedirects", "false", Some(made)) => made.other.insert("follow", 0u64),
                ("followRedirects" | "followOriginalHttpMethod", "true" | "", _) => {}
                ("disableCookies", "false", _) | ("strictSSL", "true", _) => {}
                ("disableBodyPruning", "true", _) => {}
                _ => {
                    let element = format!("protocolProfileBehavior.{}: {}", shown(key), shown(value));
                    self.draft.tell(node.line, &element, "changed how the request is sent", true);
                    node.done();
                }
            }
        }
    }

    fn request(&mut self, item: &Node, name: &str, above: &Above<'_>) -> Vec<Step> {
        let Some(request) = item.get("request") else { return Vec::new() };
        let element = format!("request {:?}", shown(name));
        self.line = request.line;
        request.ignore(&["description", "name"]);
        let method = request.text("method").unwrap_or("GET");
        let (raw, bytes) = (raw_url(request), request.size());
        let Some(method) = method_as_sent(method) else {
            self.draft.tell(
                request.line,
                &element,
                format!("been sent by the method {:?}", shown(method)),
                true,
            );
            request.done();
            return Vec::new();
        };
        if !self.draft.has_room(request.line, &element, bytes) {
            request.done();
            return Vec::new();
        }
        let mut answer = Answer::new(&element);
        let mut steps = self.before(&above.before, &mut answer);
        let (origin, path) = self.origin(&raw);
        if has_credentials(&raw) {
            let would = "sent the credentials that stand in its URL: it is sent without";
            self.draft.tell(request.line, &element, would, true);
        }
        let path = self.path(&path, request);
        let mut made = Request::named(method, path);
        self.place(&origin, &mut made);
        self.headers(request, &mut made);
        let behaviour = item.map("protocolProfileBehavior");
        let keeps = behaviour.is_some_and(|behaviour| behaviour.is_true("disableBodyPruning"));
        self.body(request, keeps, &element, &mut made);
        self.auth(request.map("auth"), above.auth, &element, &mut made);
        self.behaviour(item, Some(&mut made));
        let label = if name.is_empty() { String::new() } else { format!("{}{name}", above.path) };
        self.draft.label(&mut made, &label, &above.folder);
        self.after(&above.after, &mut answer);
        let label = made
            .label
            .as_ref()
            .map_or_else(|| format!("{method} {}", made.path.as_str()), |label| label.as_str().to_owned());
        self.slow(&answer, &label);
        made.extract = std::mem::take(&mut answer.extract);
        made.check = std::mem::take(&mut answer.check).into_map();
        steps.push(made.into());
        if !answer.set.is_empty() {
            steps.push(Step::Other(Map::from([("set", answer.set)])));
        }
        steps
    }

    /// Where a request goes: an origin, and the rest of its URL. Variables at the begin are written out.
    fn origin(&self, raw: &str) -> (String, String) {
        let mut url = raw.trim().to_owned();
        for _ in 0..NESTED_MAX * 2 {
            let from = with_scheme(&url).map_or(0, |(scheme, _)| scheme.len() + 3);
            let end = url[from..].find(['/', '?', '#']).map_or(url.len(), |at| from + at);
            let known = url[..end].match_indices("{{").find_map(|(at, _)| {
                let name = url[at + 2..].split("}}").next()?;
                let value = self.values.get(name.trim()).filter(|value| !value.is_empty())?;
                Some((at, name.len() + 4, value.clone()))
            });
            match known {
                Some((at, length, value))
                    if url.get(at..at + length).is_some() && value.len() < VALUE_BYTES_MAX =>
                {
                    url.replace_range(at..at + length, &value);
                }
                _ => break,
            }
        }
        let (scheme, rest) = with_scheme(&url).unwrap_or(("http", url.as_str()));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        // a variable of a script behind a whole address is a path
        let begin = rest[..end].find("{{").filter(|at| {
            let (open, name) = (&rest[..*at], rest[*at..end].trim_matches(['{', '}']));
            let is_whole = open.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ']');
            is_whole && self.scripted.contains(name.trim()) && is_address(&format!("{scheme}://{open}"))
        });
        let (host, path) = rest.split_at(begin.unwrap_or(end));
        let path = path.split('#').next().unwrap_or_default();
        let is_path = path.starts_with('/') || begin.is_some();
        let path = if is_path { path.to_owned() } else { format!("/{path}") };
        // what stands in front of the host is a secret
        let open = format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default());
        let is_known = scheme.starts_with("http") && is_address(&open);
        (
            if is_known { open } else { format!("?{}", host.rsplit('@').next().unwrap_or_default().trim()) },
            path,
        )
    }

    /// The address of an origin; a setting where it is not known.
    fn url(&mut self, origin: &str) -> String {
        let Some(host) = origin.strip_prefix('?') else { return verbatim(origin) };
        let name = host.trim_start_matches("{{").split("}}").next().unwrap_or_default().trim();
        let name = if name.is_empty() { "url" } else { name }.to_owned();
        let setting = format!("{}_url", crate::names::name_of(&name).trim_end_matches("_url"));
        if self.missing.insert(format!("url {name}")) {
            let would = format!(
                "gone to {:?}, which has no value: give its environment with --environment FILE, or --set {setting}=URL",
                shown(host)
            );
            self.draft.tell_missing(self.line, "url", would, &setting);
        }
        let comment = "where the requests go: has no value in the collection";
        let name = self.draft.settings.named(origin.to_owned(), &setting, &setting, comment, UNSET);
        format!("${{{name}}}")
    }

    /// Sends a request to its origin.
    fn place(&mut self, origin: &str, made: &mut Request) {
        if *origin == self.system {
            // told here, with the line of the first such request
            self.url(origin);
            return;
        }
        if !origin.starts_with('?') && self.origins.len() <= ORIGINS_MAX {
            made.path = format!("{}{}", verbatim(origin), made.path.as_str()).into();
            return;
        }
        let url = self.url(origin);
        let name = crate::names::name_of(origin.trim_matches(['?', '{', '}']));
        self.targets.insert(name.as_str(), Map::from([("url", url)]));
        made.other.insert("at", name);
    }

    /// A path with its query, and variables of the path (`:id`) with their values.
    fn path(&mut self, path: &str, request: &Node) -> String {
        let url = request.map("url");
        let mut own = HashMap::new();
        for node in url.map_or(&[][..], |url| url.list("variable")) {
            node.ignore(&["description", "id", "type", "disabled"]);
            let value = node.text("value").unwrap_or_default();
            own.insert(node.text("key").unwrap_or_default().to_owned(), value.to_owned());
        }
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let segments = path.split('/').map(|segment| {
            let name = segment.strip_prefix(':').filter(|name| !name.is_empty());
            name.and_then(|name| own.get(name))
                .map_or_else(|| segment.to_owned(), |value| percent_path(value))
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let mut out = self.text(&path).url_encoded().write(Place::Path);
        for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            out.push(if at == 0 { '?' } else { '&' });
            match pair.split_once('=') {
                Some((name, value)) if is_secret_name(name) && !value.is_empty() => {
                    let value = self.text(value);
                    let value = self.draft.value(name, &value);
                    out += &format!("{}={value}", verbatim(name));
                }
                // a mark in front: it is part of a query
                _ => out += &self.text(&format!("?{pair}")).url_encoded().write(Place::Raw)[1..],
            }
        }
        out
    }

    fn headers(&mut self, request: &Node, made: &mut Request) {
        if let Some(text) = request.text("header") {
            // as version 1 had them
            for line in text.lines().filter_map(|line| line.split_once(':')) {
                let value = self.text(line.1.trim());
                self.draft.header(request.line, &mut made.headers, line.0.trim(), &value);
            }
        }
        for node in request.list("header") {
            node.ignore(&["description", "type", "name", "warning", "uuid"]);
            let (name, value) =
                (node.text("key").unwrap_or_default(), node.text("value").unwrap_or_default());
            if node.is_true("disabled") || name.is_empty() && value.is_empty() {
                continue;
            }
            let value = self.text(value);
            let name = self.written_out(name.trim(), |_| true);
            if name.contains("{{") {
                let would = "sent a header whose name is known only while it runs";
                self.draft.tell(node.line, &format!("header {}", shown(&name)), would, true);
                continue;
            }
            if name.eq_ignore_ascii_case("cookie") {
                let would = "been sent beside the cookies of the session: it stands in their place";
                self.draft.tell(node.line, "header Cookie", would, true);
            }
            self.draft.header(node.line, &mut made.headers, &name, &value);
        }
    }

    /// A text with its variables.
    fn text(&mut self, text: &str) -> Text {
        let written = self.written_out(text, |value| value.contains("{{"));
        let text = Text::of_braces(&written, &mut |name| Some(self.hole(name)));
        if text.is_full() {
            self.draft.tell(self.line, "text", "replaced more variables than a text may have here", true);
        }
        text
    }

    /// A text in which values such as these are written out.
    fn written_out(&self, text: &str, is_such: impl Fn(&str) -> bool) -> String {
        let mut out = text.to_owned();
        for _ in 0..NESTED_MAX {
            let next = Text::of_braces(&out, &mut |name| {
                let value = self.values.get(name).filter(|value| is_such(value))?;
                let is_fixed = !self.scripted.contains(name);
                is_fixed.then(|| Hole::new(value.clone(), false))
            });
            let next = next.written_out();
            if next == out || next.len() > VALUE_BYTES_MAX {
                break;
            }
            out = next;
        }
        out
    }

    /// What stands for `{{name}}`.
    fn hole(&mut self, name: &str) -> Hole {
        if let Some(dynamic) = name.strip_prefix('$') {
            return self.dynamic(dynamic);
        }
        if self.scripted.contains(name) {
            let ours = self.draft.variable(name);
            let value = self.values.get(name).filter(|value| !value.is_empty()).cloned();
            if let Some(value) = value.filter(|_| self.initial.get(&ours).is_none()) {
                let text = Text::of_braces(&value, &mut |_| None);
                let value = self.draft.value(name, &text);
                self.initial.insert(ours.as_str(), value);
            }
            self.used.push(ours.clone());
            return Hole::new(ours, false);
        }
        let value = self.values.get(name).cloned();
        let is_unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        let is_plain = value.as_ref().is_some_and(|value| value.chars().all(is_unreserved));
        let is_text = value.as_ref().is_some_and(|value| !is_typed(value) && value.parse::<f64>().is_err());
        let expression = match &value {
            Some(value) if self.secret.contains(name) && !value.is_empty() => self.draft.secret(name, value),
            Some(value) => self.draft.setting(name, Some(value), ""),
            None => {
                if self.missing.insert(name.to_owned()) {
                    let setting = self.draft.setting(name, None, "has no value in the collection");
                    let would = format!(
                        "been a value that is not in the collection: give its environment with --environment FILE, or --set {setting}=…"
                    );
                    let element = format!("{{{{{}}}}}", shown(name));
                    self.draft.tell_missing(self.line, &element, would, &setting);
                    return Hole::new(setting, false);
                }
                self.draft.setting(name, None, "has no value in the collection")
            }
        };
        Hole { is_text, ..Hole::new(expression, is_plain) }
    }
}

/// Whether something stands in front of the host of a URL.
pub(crate) fn has_credentials(url: &str) -> bool {
    let rest = with_scheme(url).map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@'))
}

/// A value within a path keeps no slashes.
fn percent_path(value: &str) -> String {
    value.replace('/', "%2F").replace('?', "%3F")
}

/// The URL of a request as it is sent: of its parts where they are there.
fn raw_url(request: &Node) -> String {
    if let Some(text) = request.as_str() {
        return text.to_owned();
    }
    if let Some(text) = request.text("url") {
        return text.to_owned();
    }
    let Some(url) = request.map("url") else { return String::new() };
    let joined = |key: &str, by: &str| match url.get(key).map(|node| &node.content) {
        Some(Content::List(items)) => {
            let parts = items.iter().map(|node| {
                node.done();
                node.as_str().or(node.text("value")).unwrap_or_default()
            });
            Some(parts.collect::<Vec<_>>().join(by))
        }
        Some(Content::Scalar(scalar)) => Some(scalar.as_str().to_owned()),
        _ => None,
    };
    url.ignore(&["raw", "hash"]);
    let raw = url.text("raw").unwrap_or_default().to_owned();
    let Some(host) = joined("host", ".") else { return raw };
    let scheme = url.text("protocol").map_or(String::new(), |scheme| format!("{scheme}://"));
    let port = url.text("port").map_or(String::new(), |port| format!(":{port}"));
    let path = joined("path", "/").map_or(String::new(), |path| format!("/{}", path.trim_start_matches('/')));
    let mut query = Vec::new();
    for node in url.list("query") {
        node.ignore(&["description", "type", "uuid"]);
        let (key, value) = (node.text("key"), node.text("value"));
        if node.is_true("disabled") {
            continue;
        }
        query.push(match (key.unwrap_or_default(), value) {
            (key, Some(value)) => format!("{key}={}", value.replace('&', "%26").replace('#', "%23")),
            (key, None) => key.to_owned(),
        });
    }
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    format!("{scheme}{host}{port}{path}{query}")
}
