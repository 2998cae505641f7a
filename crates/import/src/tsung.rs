//! From a plan of Tsung: its sessions, their shares, and the arrivals of its users.
//!
//! Users arrive at random (exponential times between them), each does one session, and waits where the plan says so: an
//! open load with `spacing: poisson`. What has no counterpart is told with its line, never skipped.

mod answer;
mod audit;
mod http;
mod load;
mod machines;
mod options;
mod pattern;
mod sources;
mod sql;
mod steps;
#[cfg(test)]
mod tests;
mod text;
mod websocket;

use std::collections::{HashMap, HashSet};

use tidemark_scenario::source::{Load, Map, Scenario, Session, Step, System, verbatim};

use self::machines::Server;
use self::options::Options;
use self::sources::Sources;
use self::steps::State;
use self::text::{Piece, pieces};
use crate::error::ImportError;
use crate::holes::{Hole, Text, has_marks};
use crate::left_out::LeftOut;
use crate::names::{Settings, name_of};
use crate::plan::{Plan, beside, nested, shown};
use crate::xml::Element;
use crate::{Imported, xml};

/// Most requests that become steps.
const REQUESTS_MAX: usize = 2_000;
/// Most text of all requests, bytes.
const BYTES_MAX: usize = 1 << 20;
/// How long the answers of one user may take all together, seconds: nobody knows before.
const ANSWERS_S: f64 = 5.0;
/// Most parts that an error tells.
const SHOWN_PARTS_MAX: usize = 10;

/// The scenario of a plan.
///
/// # Errors
/// Where it is no plan, or has nothing that can be driven.
pub(crate) fn scenario(plan: &Plan<'_>) -> Result<Imported, ImportError> {
    let cannot = |reason: String| ImportError::new(format!("{}: {reason}", plan.name));
    if has_marks(plan.text) {
        return Err(cannot("it has characters for private use (U+F0000 to U+FFFFF): remove them".into()));
    }
    let open = |name: &str| match beside(plan.folder, name) {
        Some(path) => crate::read(&plan.folder.join(path)).map_err(|error| error.to_string()),
        None => Err(format!("{name:?} is not a file beside the plan")),
    };
    let root = xml::parse_with(plan.text, &open).map_err(cannot)?;
    if root.name != "tsung" {
        return Err(cannot(format!("line {}: <{}> is not a plan of Tsung", root.line, root.name)));
    }
    let mut making = Making::new(plan, &root);
    let scenario = making.plan(&root);
    making.audit(&root);
    let Making { mut left_out, given, .. } = making;
    left_out.sort_by_key(|one| one.line);
    match scenario {
        Some(scenario) => Ok(Imported { left_out, given, ..Imported::from(scenario) }),
        None => {
            let told: Vec<String> =
                left_out.iter().take(SHOWN_PARTS_MAX).map(|one| format!("\n  {one}")).collect();
            Err(cannot(format!("nothing of it can be driven here:{}", told.concat())))
        }
    }
}

/// A session of the plan.
struct Chosen {
    /// What it is called here; none if it is not driven.
    ours: Option<String>,
    /// What Tsung calls it.
    theirs: String,
    /// How often it is chosen, against the sum of all.
    share: f64,
}

/// What is made on the way.
struct Making<'p> {
    file: &'p Plan<'p>,
    /// Secrets of the plan, by the settings that stand for them.
    given: Vec<(String, String)>,
    left_out: Vec<LeftOut>,
    settings: Settings,
    /// What the plan's variables are called here.
    names: HashMap<String, String>,
    server: Option<Server>,
    is_v6: bool,
    options: Options,
    sources: Sources,
    targets: Map,
    /// The database that statements go to.
    database: Option<String>,
    has_http: bool,
    requests: usize,
    bytes: usize,
    /// How long the pauses of one user are, at most or nearly so, seconds.
    lasts_s: f64,
    /// Elements that were told as unknown, by their place in memory.
    unknown: HashSet<usize>,
}

impl<'p> Making<'p> {
    fn new(file: &'p Plan<'p>, root: &Element) -> Making<'p> {
        let mut names = HashMap::new();
        let mut taken = HashSet::new();
        name_variables(root, &mut names, &mut taken);
        Making {
            file,
            given: Vec::new(),
            left_out: Vec::new(),
            settings: Settings::default(),
            names,
            server: None,
            is_v6: false,
            options: Options::default(),
            sources: Sources::of(root),
            targets: Map::new(),
            database: None,
            has_http: false,
            requests: 0,
            bytes: 0,
            lasts_s: 0.0,
            unknown: HashSet::new(),
        }
    }

    fn plan(&mut self, root: &Element) -> Option<Scenario> {
        // these are about Tsung's own logs
        self.known(root, &["loglevel", "dumptraffic", "version", "backend"]);
        let mut watch = Vec::new();
        let mut name = None;
        for child in &root.children {
            match child.name.as_str() {
                "information" => name = self.information(child),
                "clients" => self.clients(child),
                "servers" => self.servers(child),
                "monitoring" => watch = self.monitoring(child),
                "options" => self.read_options(child),
                "load" | "sessions" => {}
                _ => self.unknown(child, false),
            }
        }
        let mut sessions = Vec::new();
        let mut kinds: Vec<Chosen> = Vec::new();
        for child in root.children.iter().filter(|child| child.name == "sessions") {
            self.known(child, &[]);
            for session in &child.children {
                if session.name == "session" {
                    self.session(session, &mut sessions, &mut kinds);
                } else {
                    self.unknown(session, true);
                }
            }
        }
        if sessions.is_empty() {
            return None;
        }
        weigh(&mut sessions, &kinds);
        let loads: Vec<&Element> = root.children.iter().filter(|child| child.name == "load").collect();
        let made = loads.first().and_then(|first| self.load(first, &loads, &kinds));
        let mut limits = Map::new();
        let load = match made {
            Some(made) => {
                load::limits(made.sessions, &mut limits);
                made.load
            }
            None => {
                self.left_out(
                    root.line,
                    "<load>".into(),
                    "begun users: there are none of a session that is driven here, so one stands in their place".into(),
                    true,
                );
                Load { users: Some(1u64.into()), hold: Some("30s".into()), ..Load::default() }
            }
        };
        if let Some(timeout) = self.options.connect_timeout.take() {
            limits.insert("connect timeout", timeout);
        }
        if !load.sessions.is_empty() {
            // weights say nothing beside loads of their own
            for (name, session) in &mut sessions {
                let has_load = load.sessions.iter().any(|(known, _)| known == name);
                session.weight = (!has_load).then(|| 0u64.into());
            }
        }
        let defaults = self.options.defaults();
        Some(Scenario {
            name: name.map(Into::into),
            comment: format!(
                "Made of {}. What was left out was told on the way.\nUsers arrive at random, as in Tsung. The phase \"last users\" is for \
                 those who are still there when no more arrive.",
                shown(self.file.name.rsplit(['/', '\\']).next().unwrap_or_default())
            ),
            settings: std::mem::take(&mut self.settings.map),
            system: Some(self.system()),
            targets: std::mem::take(&mut self.targets),
            feeders: self.sources.take_feeders(),
            defaults,
            sessions,
            load: Some(load),
            limits,
            watch,
            seed: self.options.seed.take(),
            ..Scenario::default()
        })
    }

    /// The first server, or the database where nothing else is driven.
    fn system(&mut self) -> System {
        let database = self.database.take();
        let url = match (&self.server, database) {
            (_, Some(database)) if !self.has_http => database,
            (Some(server), database) => {
                if let Some(database) = database {
                    self.targets.insert("database", Map::from([("url", database)]));
                }
                verbatim(&server.origin())
            }
            (None, Some(database)) => database,
            (None, None) => "http://127.0.0.1".into(),
        };
        System {
            url: Some(url.into()),
            resolve: self.is_v6.then(|| "ipv6".into()),
            comment: "Is this the one to drive? Another: run with --url.".into(),
            ..System::default()
        }
    }

    fn information(&mut self, information: &Element) -> Option<String> {
        self.known(information, &[]);
        for child in &information.children {
            // only for people
            if !["name", "description", "username", "organisation"].contains(&child.name.as_str()) {
                self.unknown(child, false);
            }
        }
        let name = information.child("name")?.text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!name.is_empty()).then(|| verbatim(&name))
    }

    fn session(&mut self, session: &Element, sessions: &mut Vec<(String, Session)>, kinds: &mut Vec<Chosen>) {
        self.known(session, &["name", "bidi", "persistent", "probability", "weight", "type"]);
        if session.attribute("persistent") == Some("false") {
            self.tell(session, "ended a session whose connection the server closes", false);
        }
        let share = ["probability", "weight"].iter().find_map(|name| session.attribute(name));
        let share = share.map_or(Some(1.0), |share| share.trim().parse::<f64>().ok());
        let share = share.filter(|share| share.is_finite() && *share >= 0.0);
        if share.is_none() {
            self.tell(session, "been chosen by a share that cannot be read: it is 1 here", false);
        }
        let mut state = State::new(session, self.server.clone());
        let mut steps = self.begin(session);
        let before = self.requests;
        steps.extend(self.steps(&session.children, &mut state));
        let theirs = session.attribute("name").unwrap_or_default().to_owned();
        let share = share.unwrap_or(1.0);
        if self.requests == before {
            if has_request(session) {
                self.tell(session, "done its requests, of which none can be sent here", true);
            } else {
                self.tell(session, "begun users who send nothing: as many fewer arrive", false);
            }
            return kinds.push(Chosen { ours: None, theirs, share });
        }
        let wanted = if theirs.trim().is_empty() { "session".to_owned() } else { verbatim(theirs.trim()) };
        let is_taken = |name: &str| sessions.iter().any(|(known, _)| known == name);
        let name = if is_taken(&wanted) {
            (2..).map(|number| format!("{wanted} ({number})")).find(|name| !is_taken(name)).unwrap_or(wanted)
        } else {
            wanted
        };
        self.lasts_s = self.lasts_s.max(self.pauses_s(&session.children) + ANSWERS_S);
        kinds.push(Chosen { ours: Some(name.clone()), theirs, share });
        sessions.push((name, Session { steps, ..Session::default() }));
    }

    /// What every session begins with: what a user draws once.
    fn begin(&mut self, session: &Element) -> Vec<Step> {
        let mut set = Map::new();
        if uses(session, "tsung_userid") {
            let name = self.variable("tsung_userid");
            set.insert(name, "${count(users) + 1}");
        }
        if let Some((name, agent)) = self.options.agent_of_user() {
            set.insert(name, agent);
        }
        if set.is_empty() { Vec::new() } else { vec![Step::Other(Map::from([("set", set)]))] }
    }

    /// What a variable is called here.
    fn variable(&self, name: &str) -> String {
        self.names.get(name).cloned().unwrap_or_else(|| name_of(name))
    }

    /// A name for a variable of our own.
    fn own_variable(&mut self, wanted: &str) -> String {
        let is_taken = |name: &str| {
            self.names.values().any(|known| known == name) || self.settings.map.get(name).is_some()
        };
        let name = crate::names::free(&name_of(wanted), &format!("{}_2", name_of(wanted)), is_taken);
        self.names.insert(format!("\0{name}"), name.clone());
        name
    }

    /// A text in which variables are replaced, if `subst` says so.
    fn text(&mut self, element: &Element, text: &str, subst: bool, state: &State) -> Text {
        let mut out = Text::default();
        if !subst {
            out.push(text);
            return out;
        }
        for piece in pieces(text) {
            if out.is_full() {
                self.tell(element, "replaced more variables than a text may have here", true);
                break;
            }
            match piece {
                Piece::Text(text) => out.push(text),
                Piece::Open(rest) => {
                    self.tell(element, format!("dropped {:?}, a mark that has no end", shown(rest)), false);
                }
                Piece::Variable(name) if state.is_set(name) => {
                    let mut expression = self.variable(name);
                    if state.is_unsure(name) {
                        expression = format!("default({expression}, 'undefined')");
                    }
                    out.push_hole(Hole::new(expression, state.is_plain(name)));
                }
                Piece::Variable(name) => {
                    self.tell(
                        element,
                        format!(
                            "written \"undefined\" for the variable {:?}, which is not set before",
                            shown(name)
                        ),
                        false,
                    );
                    out.push("undefined");
                }
                Piece::Function("ts_user_server", "get_unique_id" | "get_really_unique_id") => {
                    out.push_hole(Hole::new("count(unique_id) + 1", true));
                }
                Piece::Function(module, function) => {
                    let expression = self.unknown_value(element, &format!("{module}:{function}"));
                    out.push_hole(Hole::new(expression, false));
                }
            }
        }
        out
    }

    /// A setting that stands for what code of the plan's own gives.
    fn unknown_value(&mut self, element: &Element, code: &str) -> String {
        let code = shown(code);
        self.tell(
            element,
            format!("called {code}, which is code of its own: a setting stands for what it gives"),
            true,
        );
        let comment = format!("what {code} gave in Tsung: put a value or an expression here");
        let wanted = self.free_of_variables(&name_of(&code));
        self.settings.named(
            format!("code {code}"),
            &wanted,
            &format!("{wanted}_value"),
            &comment,
            crate::UNSET,
        )
    }

    /// A setting for a secret of the plan, which is not copied: one for each value.
    fn secret(&mut self, name: &str, value: &str) -> String {
        let comment = "a secret, not copied from the plan: set this variable, or give --set";
        let begin: String = name_of(name).chars().take(30).collect();
        let other = format!("{begin}_secret");
        let is_known = tidemark_scenario::secrets::is_secret_name(&begin);
        let wanted = self.free_of_variables(if is_known { &begin } else { &other });
        let what = format!("secret {} {value}", name.to_lowercase());
        let setting = self.settings.secret(what, &wanted, &other, comment);
        if !self.given.iter().any(|(known, _)| *known == setting) {
            self.given.push((setting.clone(), value.to_owned()));
        }
        setting
    }

    /// A name that no variable has.
    fn free_of_variables(&self, wanted: &str) -> String {
        let is_taken = |name: &str| self.names.values().any(|known| known == name);
        crate::names::free(wanted, &format!("{wanted}_setting"), is_taken)
    }
}

/// Weights are whole numbers.
fn weigh(sessions: &mut [(String, Session)], kinds: &[Chosen]) {
    let shares: Vec<f64> = kinds.iter().filter(|kind| kind.ours.is_some()).map(|kind| kind.share).collect();
    // where none is ever chosen, each is as good as the others
    if sessions.len() < 2 || shares.iter().sum::<f64>() == 0.0 {
        return;
    }
    let scale = [1.0, 10.0, 100.0, 1_000.0, 1e6];
    let is_whole = |share: f64| (share - share.round()).abs() < 1e-9;
    let scale =
        scale.into_iter().find(|scale| shares.iter().all(|share| is_whole(share * scale))).unwrap_or(1e6);
    let mut weights: Vec<u64> = shares.iter().map(|share| (share * scale).round() as u64).collect();
    let divisor = weights.iter().fold(0, |a, b| gcd(a, *b));
    if divisor > 1 {
        weights.iter_mut().for_each(|weight| *weight /= divisor);
    }
    for ((_, session), weight) in sessions.iter_mut().zip(weights) {
        session.weight = Some(weight.into());
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Gives every variable of the plan a name; what differs there differs here.
fn name_variables(element: &Element, names: &mut HashMap<String, String>, taken: &mut HashSet<String>) {
    let mut add = |name: &str| {
        if !names.contains_key(name) {
            let wanted = name_of(name);
            let ours = crate::names::free(&wanted, &format!("{wanted}_2"), |name| taken.contains(name));
            taken.insert(ours.clone());
            names.insert(name.to_owned(), ours);
        }
    };
    let attribute = match element.name.as_str() {
        "var" | "dyn_variable" | "foreach" => "name",
        "for" => "var",
        "sessions" => {
            add("tsung_userid");
            ""
        }
        _ => "",
    };
    if let Some(name) = element.attribute(attribute) {
        add(name.trim());
    }
    element.children.iter().for_each(|child| name_variables(child, names, taken));
}

/// Whether a variable is used anywhere in an element.
fn uses(element: &Element, name: &str) -> bool {
    let mark = format!("%%_{name}%%");
    element.text.contains(&mark)
        || element
            .attributes
            .iter()
            .any(|(key, value)| value.contains(&mark) || (key == "var" && value.trim() == name))
        || element.children.iter().any(|child| uses(child, name))
}

fn has_request(element: &Element) -> bool {
    element.name == "request" || element.children.iter().any(has_request)
}
