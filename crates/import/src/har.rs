//! From a HAR file: the requests of a recording in order, with the pauses between them. What is secret in it is not
//! taken over.

mod body;
mod entry;
pub(super) mod hidden;
mod host;

use std::collections::HashMap;
use std::time::Duration;

use tidemark_scenario::Secrets;
use tidemark_scenario::plan::PARALLEL_REQUESTS_MAX;
use tidemark_scenario::secrets::MASK;
use tidemark_scenario::source::{
    Defaults, Map, Parallel, Request, Scenario, Session, Step, System, Think, Value, verbatim,
};
use tidemark_scenario::units::Time;
use url::{Url, form_urlencoded};

use self::entry::{Entry, Recording};
use self::hidden::{has_jwt, is_hidden, is_masked, is_secret_name};
use crate::error::ImportError;
use crate::names::{Settings, free, name_of};
use crate::{Imported, add_header, closed, objectives, unreadable, users};

/// Most requests that are taken.
const REQUESTS_MAX: usize = 2_000;
/// Most text of all requests, bytes: less than a scenario may have, however it is quoted.
const BYTES_MAX: usize = 512 << 10;
/// Shortest pause that is taken over; shorter ones are a browser's own.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Most settings; beyond, secrets share one.
const SETTINGS_MAX: usize = 200;
/// Most characters of a setting's name that are a secret's own.
const NAME_MAX: usize = 30;
/// Most names that a comment lists.
const SHOWN_MAX: usize = 20;
/// Most hosts that are driven.
const HOSTS_MAX: usize = 50;
/// Connections that browsers have to a host over HTTP/1.1.
const AT_MOST: usize = 6;
/// How exactly browsers write down when a request began.
const RESOLUTION: Duration = Duration::from_millis(1);
/// Longest text that is shown, characters: a host, a header's name, a label.
const TEXT_MAX: usize = 100;
/// The load holds for twice as long as one user takes, within this.
const HOLD_MIN: Duration = Duration::from_secs(30);
const HOLD_MAX: Duration = Duration::from_secs(1_800);
/// Headers that browsers add by themselves, or that the driver writes; `sec-` and `if-` begin more of them.
const OWN_HEADERS: [&str; 20] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "expect",
    "accept-encoding",
    "user-agent",
    "referer",
    "origin",
    "cache-control",
    "pragma",
    "upgrade",
    "upgrade-insecure-requests",
    "dnt",
    "te",
    "priority",
    "keep-alive",
    "range",
    "cookie",
];

/// The scenario of a recording; `name` is what messages call it. Where `hosts` are named, only those are driven, the first as the
/// system.
pub(super) fn scenario(name: &str, text: &str, hosts: &[String]) -> Result<Imported, ImportError> {
    let recording: Recording = serde_json::from_str(text).map_err(|error| unreadable(name, &error))?;
    let (entries, left_out) = entry::read(&recording);
    let Some(page) = host::of_page(entry::pages(&recording), &entries) else {
        let reason = left_out.first().map_or("it has no requests", |(reason, _)| reason.as_str());
        return Err(ImportError::new(format!(
            "{name}: there is nothing in it that can be sent again: {reason}"
        )));
    };
    let of_page = [page.to_owned()];
    let mut making = Making::new(&entries, if hosts.is_empty() { &of_page } else { hosts });
    let is_seen = |host: &str| making.origins.iter().any(|origin| origin.is_of(host));
    if let Some(host) = hosts.iter().find(|host| !is_seen(host)) {
        let seen = list(making.origins.iter().map(|origin| origin.host.as_str()));
        return Err(ImportError::new(format!(
            "{name}: nothing was requested from --host {host}; it has {seen}"
        )));
    }
    making.left_out = left_out;
    entries.iter().for_each(|entry| making.take(entry));
    let remark = making.remark(name);
    Ok(Imported { remark, ..Imported::from(making.finished(name)) })
}

/// A scheme, host and port of a recording.
struct Origin {
    url: String,
    host: String,
    /// Where its requests go.
    driven: Driven,
    requests: usize,
}

#[derive(PartialEq)]
enum Driven {
    System,
    Target(String),
    Not,
}

impl Origin {
    /// `HOST`, `HOST:PORT`, or `*.HOST` for all below a domain.
    fn is_of(&self, host: &str) -> bool {
        let is_below = |domain: &str| self.host.strip_suffix(domain).is_some_and(|own| own.ends_with('.'));
        self.host.eq_ignore_ascii_case(host)
            || self.url.split_once("://").is_some_and(|(_, place)| place == host)
            || host.strip_prefix("*.").is_some_and(is_below)
    }
}

struct Making {
    origins: Vec<Origin>,
    /// Where each is among them, by URL.
    places: HashMap<String, usize>,
    settings: Settings,
    steps: Vec<Step>,
    /// Requests that were under way together, and when the first of them was answered.
    together: Vec<Step>,
    /// Where their redirects lead: what goes there comes after them.
    leads_to: Vec<Url>,
    first_answered: Option<Duration>,
    requests: usize,
    bytes: usize,
    /// When everything so far was answered.
    answered: Option<Duration>,
    /// How long one user takes, at least.
    lasts: Duration,
    /// Why requests are not taken, and how many.
    left_out: Vec<(String, usize)>,
    /// Headers that are left out because they are secret.
    secret_headers: Vec<String>,
}

impl Making {
    /// The system is the first of the hosts, there the scheme and port with most requests; the others are targets.
    fn new(entries: &[Entry<'_>], hosts: &[String]) -> Making {
        let mut origins: Vec<Origin> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for entry in entries {
            let url = entry.origin();
            let place = *places.entry(url.clone()).or_insert(origins.len());
            if place == origins.len() {
                let host = entry.host().to_owned();
                origins.push(Origin { url, host, driven: Driven::Not, requests: 0 });
            }
            origins[place].requests += 1;
        }
        let of_first =
            origins.iter_mut().filter(|origin| hosts.first().is_some_and(|host| origin.is_of(host)));
        // of several with as many, the first
        if let Some(system) = of_first.rev().max_by_key(|origin| origin.requests) {
            system.driven = Driven::System;
        }
        let mut names: Vec<String> = vec!["system".into()];
        for origin in origins.iter_mut().filter(|origin| origin.driven == Driven::Not) {
            if hosts.iter().any(|host| origin.is_of(host)) && names.len() <= HOSTS_MAX {
                let wanted = name_of(&origin.host);
                let name =
                    free(&wanted, &name_of(&origin.url), |name| names.iter().any(|known| known == name));
                names.push(name.clone());
                origin.driven = Driven::Target(name);
            }
        }
        Making {
            origins,
            places,
            settings: Settings::new(users()),
            steps: Vec::new(),
            together: Vec::new(),
            leads_to: Vec::new(),
            first_answered: None,
            requests: 0,
            bytes: 0,
            answered: None,
            lasts: Duration::ZERO,
            left_out: Vec::new(),
            secret_headers: Vec::new(),
        }
    }

    fn take(&mut self, entry: &Entry<'_>) {
        let Some(&place) = self.places.get(&entry.origin()) else { return };
        let target = match &self.origins[place].driven {
            Driven::System => None,
            Driven::Target(name) => Some(name.clone()),
            Driven::Not => return,
        };
        self.bytes += entry.bytes();
        if self.requests == REQUESTS_MAX || self.bytes > BYTES_MAX {
            let reason = format!("beyond {REQUESTS_MAX} requests or {BYTES_MAX} bytes");
            return entry::count(&mut self.left_out, &reason);
        }
        self.requests += 1;
        let before = self.answered;
        let pause = self.pause_before(entry);
        let answered = entry.started.map(|started| started.saturating_add(entry.took));
        if self.was_together(entry) {
            let later = answered.zip(before).map(|(answered, before)| answered.saturating_sub(before));
            self.lasts += later.unwrap_or_default();
            self.first_answered = self.first_answered.min(answered);
        } else {
            self.end_together();
            self.first_answered = answered;
            self.lasts += pause + entry.took;
        }
        if !pause.is_zero() {
            self.steps.push(Think { time: Value::Scalar(Time(pause).into()), ..Think::default() }.into());
        }
        let step = self.request(entry, target);
        self.together.push(step.into());
        self.leads_to.extend(entry.redirect.clone());
    }

    /// Whether a request was sent before any of those before it was answered.
    fn was_together(&self, entry: &Entry<'_>) -> bool {
        let is_earlier = |(started, first): (Duration, Duration)| started + RESOLUTION < first;
        entry.started.zip(self.first_answered).is_some_and(is_earlier)
            && !self.leads_to.contains(&entry.url)
            && (1..PARALLEL_REQUESTS_MAX).contains(&self.together.len())
    }

    /// The requests that were under way together become one step.
    fn end_together(&mut self) {
        let requests = std::mem::take(&mut self.together);
        self.leads_to.clear();
        if requests.len() < 2 {
            return self.steps.extend(requests);
        }
        let at_most = (requests.len() > AT_MOST).then(|| (AT_MOST as u64).into());
        self.steps.push(Parallel { requests, at_most, ..Parallel::default() }.into());
    }

    /// How long nothing was under way before a request.
    fn pause_before(&mut self, entry: &Entry<'_>) -> Duration {
        let Some(started) = entry.started else { return Duration::ZERO };
        let pause = self.answered.map_or(Duration::ZERO, |answered| started.saturating_sub(answered));
        self.answered = self.answered.max(Some(started.saturating_add(entry.took)));
        let tens = Duration::from_millis(pause.min(PAUSE_MAX).as_millis() as u64 / 10 * 10);
        if tens < PAUSE_MIN { Duration::ZERO } else { tens }
    }

    fn request(&mut self, entry: &Entry<'_>, target: Option<String>) -> Request {
        let path = entry.url.path();
        let method = entry.method;
        let has_label = entry.url.query().is_some() || path.chars().count() > TEXT_MAX;
        let label: String = format!("{method} {path}").chars().take(TEXT_MAX).collect();
        let label = target.iter().fold(label, |label, target| format!("{target} {label}"));
        let (path, query) = self.path(entry);
        let mut request = Request {
            label: has_label.then(|| verbatim(&label).into()),
            query,
            headers: self.headers(entry),
            check: entry.status.map(|status| Map::from([("status", status)])).unwrap_or_default(),
            ..Request::named(method, path)
        };
        if let Some(status) = entry.status.filter(|status| *status >= 400) {
            body::note(
                &mut request,
                &format!("recorded with status {status}: is that what a good answer has?"),
            );
        }
        if let Some(target) = target {
            request.other.insert("at", target);
        }
        let user = percent_encoding::percent_decode_str(entry.url.username()).decode_utf8_lossy();
        if !user.is_empty() && !user.contains(':') {
            let password = format!("${{{}}}", secret(&mut self.settings, "password"));
            let basic = Map::from([("user", verbatim(&user)), ("password", password)]);
            request.other.insert("auth", Map::from([("basic", basic)]));
        }
        if entry.lacks_body {
            body::note(&mut request, "its body is not in the recording");
        }
        if let Some(recorded) = entry.body {
            body::put(recorded, &mut request, &mut |name| secret(&mut self.settings, name));
        }
        request
    }

    /// The path with its query, and the parameters that are secret: a setting stands for each.
    fn path(&mut self, entry: &Entry<'_>) -> (String, Map) {
        let (mut open, mut secrets) = (Vec::new(), Map::new());
        for pair in entry.url.query().into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name), decoded(value));
            if value.is_empty() || !is_hidden(&name, &value) {
                open.push(verbatim(pair));
            } else if !name.is_empty() {
                let setting = secret(&mut self.settings, &name);
                secrets.insert(verbatim(&name), format!("${{{setting}}}"));
            }
        }
        let mut path = verbatim(entry.url.path());
        if !open.is_empty() {
            path += &format!("?{}", open.join("&"));
        }
        (path, secrets)
    }

    /// Those that an application's own code has set, as far as one can tell.
    fn headers(&mut self, entry: &Entry<'_>) -> Map {
        let mut headers = Map::new();
        for (name, value) in entry.headers() {
            let small = name.to_ascii_lowercase();
            let is_own = OWN_HEADERS.contains(&small.as_str())
                || ["sec-", "if-", "proxy-"].iter().any(|begin| small.starts_with(begin))
                || (small == "accept" && value == "*/*");
            if is_own {
                continue;
            }
            let masked = || Secrets::default().masked(&format!("{name}: {value}"));
            if is_secret_name(name) || is_masked(value) || has_jwt(value) || masked().contains(MASK) {
                let name = short(name);
                if !self.secret_headers.contains(&name) && self.secret_headers.len() < SHOWN_MAX {
                    self.secret_headers.push(name);
                }
                continue;
            }
            add_header(&mut headers, name, verbatim(value));
        }
        headers
    }

    fn finished(mut self, name: &str) -> Scenario {
        self.end_together();
        let common = self.take_common_headers();
        let comment = self.comment(name);
        let hold = (self.lasts * 2).clamp(HOLD_MIN, HOLD_MAX).as_secs();
        let mut targets = Map::new();
        for origin in &self.origins {
            if let Driven::Target(name) = &origin.driven {
                targets.insert(name.as_str(), Map::from([("url", verbatim(&origin.url))]));
            }
        }
        let system = self.origins.iter().find(|origin| origin.driven == Driven::System);
        let system = system.map(|origin| System {
            comment: "Is this the one to drive? Another: run with --url.".into(),
            url: Some(verbatim(&origin.url).into()),
            ..System::default()
        });
        Scenario {
            comment,
            settings: self.settings.map,
            system,
            targets,
            defaults: (!common.is_empty()).then(|| Defaults { headers: common, ..Defaults::default() }),
            sessions: vec![("visitor".into(), Session { steps: self.steps, ..Session::default() })],
            load: Some(closed("5s".into(), Time(Duration::from_secs(hold)).into())),
            objectives: objectives(),
            ..Scenario::default()
        }
    }

    /// Headers that all requests have.
    fn take_common_headers(&mut self) -> Map {
        let steps = self.steps.iter_mut().flat_map(|step| match step {
            Step::Parallel(step) => step.requests.iter_mut(),
            step => std::slice::from_mut(step).iter_mut(),
        });
        let mut all = steps.filter_map(|step| match step {
            Step::Request(request) => Some(&mut request.headers),
            _ => None,
        });
        let Some(first) = all.next() else { return Map::new() };
        let mut rest: Vec<&mut Map> = all.collect();
        if rest.is_empty() {
            return Map::new();
        }
        let mut common = Map::new();
        for entry in first.entries().to_vec() {
            if rest.iter().all(|headers| headers.get(&entry.key) == Some(&entry.value)) {
                first.remove(&entry.key);
                rest.iter_mut().for_each(|headers| drop(headers.remove(&entry.key)));
                common.insert(entry.key, entry.value);
            }
        }
        common
    }

    /// How many requests went to hosts that are not driven, and to each.
    fn other_hosts(&self) -> Option<(usize, String)> {
        let mut others: Vec<&Origin> =
            self.origins.iter().filter(|origin| origin.driven == Driven::Not).collect();
        others.sort_by_key(|origin| std::cmp::Reverse(origin.requests));
        let names: Vec<String> =
            others.iter().map(|origin| format!("{} ({})", origin.host, origin.requests)).collect();
        let requests = others.iter().map(|origin| origin.requests).sum();
        (requests > 0).then(|| (requests, list(names.iter().map(String::as_str))))
    }

    /// What of the recording is not in the scenario; nothing where all is.
    fn remark(&self, name: &str) -> String {
        let other = self.other_hosts();
        let elsewhere = other.as_ref().map_or(0, |(requests, _)| *requests);
        let all = self.requests + elsewhere + self.left_out.iter().map(|(_, count)| count).sum::<usize>();
        if all == self.requests && self.secret_headers.is_empty() {
            return String::new();
        }
        let driven = self.origins.iter().filter(|origin| origin.driven != Driven::Not);
        let driven = list(driven.map(|origin| origin.host.as_str()));
        let mut lines =
            vec![format!("{name}: {} of {all} requests are taken: those to {driven}", self.requests)];
        lines.extend(other.map(|(requests, hosts)| {
            format!("  left out, {requests} to other hosts: {hosts}; --host HOST names one that is taken (repeatable)")
        }));
        lines.extend(self.left_out.iter().map(|(reason, count)| format!("  left out, {count}: {reason}")));
        if !self.secret_headers.is_empty() {
            lines.push(format!("  left out, since secret: {}", self.secret_headers.join(", ")));
        }
        lines.join("\n")
    }

    /// What stands at the top: what this is, and what it is not.
    fn comment(&self, name: &str) -> String {
        let s = if self.requests == 1 { "" } else { "s" };
        let mut lines = vec![
            format!("Made by tidemark init from {}: {} request{s} of one user.", short(name), self.requests),
            "What was under way together is sent together (parallel), with the pauses of the recording."
                .into(),
            "Left out: cookies (a session keeps those that it is given), and what a browser adds by itself."
                .into(),
        ];
        if !self.secret_headers.is_empty() {
            let names = list(self.secret_headers.iter().map(String::as_str));
            lines
                .push(format!("Left out, since secret: {names}. Credentials can come from the environment:"));
            lines.push("  defaults: {auth: {bearer: '${env(\"TOKEN\")}'}}".into());
        }
        if let Some((_, hosts)) = self.other_hosts() {
            lines.push("Left out: requests to other hosts, whose owners have not asked for load. Each --host HOST names one that is taken;".into());
            lines.push("the first is the system, others are targets:".into());
            lines.push(format!("  {hosts}"));
        }
        for (reason, count) in &self.left_out {
            lines.push(format!("Left out, {count}: {reason}."));
        }
        lines.join("\n")
    }
}

/// The setting that stands for a secret. Its value is masked for its name, which is a secret's therefore.
fn secret(settings: &mut Settings, name: &str) -> String {
    let comment = "a secret, not copied from the recording: set this variable, give --set, or extract it from an answer";
    let name = short(name);
    let what = format!("secret {}", name.to_lowercase());
    if settings.map.len() >= SETTINGS_MAX && settings.of(&what).is_none() {
        return settings.secret("secrets".into(), "secret", "other_secret", comment);
    }
    let begin: String = name_of(&name).chars().take(NAME_MAX).collect();
    let other = format!("{begin}_secret");
    let is_known = tidemark_scenario::secrets::is_secret_name(&name_of(&name));
    settings.secret(what, if is_known { &name } else { &other }, &other, comment)
}

/// A name or value of a query or form as it is meant.
pub(crate) fn decoded(text: &str) -> String {
    // as the value of a field without a name, which may have more `=` in it
    let field = format!("={text}");
    form_urlencoded::parse(field.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(short).collect();
    let more = names.len().saturating_sub(SHOWN_MAX);
    names.truncate(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn short(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}
