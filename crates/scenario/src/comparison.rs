//! Comparisons: files that name several scenarios, which run in turn and are held against each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::Diagnostics;
use crate::grammar::Shape;
use crate::grammar::check::check;
use crate::grammar::record::Kind;
use crate::language::comparison::{COMPARE, COMPARISON, Variant, is_comparison};
use crate::load::{Source, folder_of, read_bounded, text_of, told, unknown_name};
use crate::plan::{Op, Plan, SessionKind};
use crate::reader::{Checker, Reader};
use crate::secrets::{self, Secrets};
use crate::settings::{self, Settings};
use crate::sink::Sink;
use crate::yaml::{self, Node};

/// Most scenarios that one file compares.
pub const SIDES_MAX: usize = 24;
/// Most rounds.
pub const ROUNDS_MAX: u64 = 20;

/// What a scenario file says: one experiment, or several to be held against each other.
#[derive(Debug, Clone)]
pub enum Experiment {
    /// One.
    One(Box<Plan>),
    /// Several.
    Comparison(Box<Comparison>),
}

/// Several scenarios that run in turn.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// What is compared, for a person.
    pub description: String,
    /// The scenarios, at least two; the others are held against the first.
    pub sides: Vec<Side>,
    /// At which share of what the slowest did each runs again, above 0 and at most 1; none where it does not.
    pub equal_rate: Option<f64>,
    /// At which share of what itself did each runs again, above 0 and at most 1; none where it does not.
    pub own_rate: Option<f64>,
    /// How often each runs, in turn.
    pub rounds: u64,
    /// The file as the user named it.
    pub source_name: String,
    /// The file as it is, without its secrets.
    pub source: String,
    /// What must not be written down, of the scenarios, too.
    pub secrets: Secrets,
}

/// One of several scenarios.
#[derive(Debug, Clone)]
pub struct Side {
    /// How it is called here.
    pub name: String,
    /// What it does.
    pub plan: Plan,
    /// Whether it is left out where a program of its stores is not installed, or nobody answers at its URL.
    pub if_installed: bool,
}

impl Plan {
    /// Requests of every session, where that is the same number for all of them whatever happens.
    ///
    /// ```
    /// let session = |steps: &str| {
    ///     let text = format!("sessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n");
    ///     tidemark_scenario::load_text("s.yaml", &text, std::path::Path::new("."), &[]).unwrap()
    /// };
    /// assert_eq!(session("      - GET: /a\n      - GET: /b").requests_per_session(), Some(2));
    /// assert_eq!(session("      - repeat: 3\n        steps: [GET: /a]").requests_per_session(), None);
    /// ```
    pub fn requests_per_session(&self) -> Option<u64> {
        let mut numbers = self.sessions.iter().filter(|kind| kind.weight > 0).map(|kind| {
            let straight = kind.ops.iter().all(|op| {
                !matches!(op, Op::Jump(_) | Op::JumpUnless { .. } | Op::JumpUnlessGood(_) | Op::Choose { .. })
            });
            straight.then(|| kind.ops.iter().filter(|op| matches!(op, Op::Request(_))).count() as u64)
        });
        let first = numbers.next()??;
        numbers.all(|number| number == Some(first)).then_some(first)
    }

    /// How many requests fall due in the measured window at most, of all labels or of one, where that is known beforehand:
    /// sessions arrive at a rate, and none goes back to an earlier step.
    ///
    /// ```
    /// let due = |load: &str| {
    ///     let steps = "[GET: /a, GET: /b, {GET: /a}]";
    ///     let text = format!("sessions: {{a: {{steps: {steps}}}}}\nload: {{{load}}}\n");
    ///     let plan = tidemark_scenario::load_text("s.yaml", &text, std::path::Path::new("."), &[]).unwrap();
    ///     [None, Some("GET /a")].map(|label| plan.requests_due(label))
    /// };
    /// assert_eq!(due("rate: 10/s, warm-up: 1s, hold: 2s"), [Some(60.0), Some(40.0)]);
    /// assert_eq!(due("users: 10, hold: 2s"), [None, None]);
    /// ```
    pub fn requests_due(&self, label: Option<&str>) -> Option<f64> {
        let is_asked = |request: u16| {
            let of = self.requests.get(usize::from(request)).map(|request| usize::from(request.label));
            let name = of.and_then(|of| self.labels.get(of)).map(String::as_str);
            label.is_none() || label == name
        };
        let in_kind = |kind: &SessionKind| -> Option<f64> {
            let is_back = |(at, op): (u32, &Op)| match op {
                Op::Jump(to) | Op::JumpUnless { to, .. } | Op::JumpUnlessGood(to) => *to <= at,
                Op::Choose { ways, .. } => ways.iter().any(|(_, to)| *to <= at),
                _ => false,
            };
            if (0..).zip(kind.ops.iter()).any(is_back) {
                return None;
            }
            let asked = kind.ops.iter().filter(|op| matches!(op, Op::Request(of) if is_asked(*of)));
            Some(asked.count() as f64)
        };
        let mut due = 0.0;
        for stream in self.load.streams() {
            if stream.model.is_closed() {
                return None;
            }
            let kinds = self.sessions.iter().enumerate().filter(|(index, kind)| match stream.kind {
                Some(own) => own == *index,
                None => kind.weight > 0,
            });
            let most = kinds.map(|(_, kind)| in_kind(kind)).try_fold(0.0, |most, of| Some(of?.max(most)))?;
            let measured = stream.phases.iter().filter(|phase| phase.measured);
            due += most * measured.map(|phase| phase.peak() * phase.duration.as_secs_f64()).sum::<f64>();
        }
        Some(due)
    }

    /// How long a session thinks, all its pauses of a fixed length together, of the kind that does so longest. What it does
    /// several times, or perhaps, counts once.
    pub fn think_time(&self) -> Duration {
        let fixed_us = |op: &Op| match op {
            Op::Think(time) => time.as_constant().map_or(0.0, |value| value.number().unwrap_or(0.0).max(0.0)),
            _ => 0.0,
        };
        let kinds = self.sessions.iter().filter(|kind| kind.weight > 0);
        let longest = kinds.map(|kind| kind.ops.iter().map(fixed_us).sum::<f64>()).fold(0.0, f64::max);
        Duration::try_from_secs_f64(longest / 1e6).unwrap_or(Duration::MAX)
    }
}

/// Like [`load_text`](crate::load_text), also for a text that compares scenarios.
///
/// # Errors
/// Everything that is wrong with it and with the scenarios in it.
pub fn load_experiment_text(
    name: &str,
    text: &str,
    base_dir: &Path,
    settings: &[(String, String)],
) -> Result<Experiment, Diagnostics> {
    let (experiment, diagnostics) = Checker::default().experiment_text(name, text, base_dir, settings);
    experiment.ok_or(diagnostics)
}

impl Checker {
    /// Like [`Checker::file`], also for a file that compares scenarios.
    pub fn experiment_file(
        self,
        path: &Path,
        settings: &[(String, String)],
    ) -> (Option<Experiment>, Diagnostics) {
        let name = path.display().to_string();
        match text_of(path, &name) {
            Ok(text) => self.experiment_text(&name, &text, folder_of(path), settings),
            Err(diagnostics) => (None, diagnostics),
        }
    }

    /// Like [`Checker::text`], also for a text that compares scenarios.
    pub fn experiment_text(
        self,
        name: &str,
        text: &str,
        base_dir: &Path,
        settings: &[(String, String)],
    ) -> (Option<Experiment>, Diagnostics) {
        let sink = Sink::new(name, text);
        let source = Source { name, base_dir };
        let (experiment, within) = match yaml::read(&sink) {
            Some(root) if is_comparison(&root) => {
                let (comparison, within) = read(self, &source, &root, settings, &sink);
                (comparison.map(|of| Experiment::Comparison(Box::new(of))), within)
            }
            Some(root) => {
                let plan = self.plan(&source, root, settings, &sink);
                (plan.map(|plan| Experiment::One(Box::new(plan))), Diagnostics::default())
            }
            None => (None, Diagnostics::default()),
        };
        told(experiment, name, sink, within)
    }
}

/// Checks a comparison and the scenarios in it, with what was found wrong in those.
fn read(
    checker: Checker,
    source: &Source<'_>,
    root: &Node,
    outside: &[(String, String)],
    sink: &Sink<'_>,
) -> (Option<Comparison>, Diagnostics) {
    let mut found = Diagnostics::default();
    let own_names = settings::names(root);
    let (own, others): (Vec<_>, Vec<_>) =
        outside.iter().cloned().partition(|(name, _)| own_names.iter().any(|own| own == name));
    let settings = Settings::read(root.get("settings"), source.base_dir, &own, sink);
    let reader = Reader { sink, settings: &settings, checker };
    check(root, &Shape::Record(|| &COMPARISON), "the comparison", &reader);
    let mut sides = Vec::new();
    let mut reached = vec![Reached::default(); others.len()];
    let named = root.get(COMPARE).map(Node::entries).unwrap_or_default();
    let read = named.iter().filter_map(|(key, node)| Some((key, node, Variant::read(node, &reader)?)));
    let named: Vec<_> = read.filter(|(.., said)| said.when.value != Some(false)).collect();
    if named.len() < 2 && !sink.has_errors() {
        sink.error(root.get(COMPARE).unwrap_or(root), "at least two scenarios are needed to compare");
    }
    if let Some((key, ..)) = named.get(SIDES_MAX) {
        sink.error(key, format!("at most {SIDES_MAX} scenarios can be compared"));
    }
    for (key, node, said) in named.iter().take(SIDES_MAX) {
        let Some(name) = key.text() else { continue };
        let of = said.scenario.node().unwrap_or(node);
        let Some(scenario) = reader.text(of) else { continue };
        let Some(text) = Text::find(&scenario, source.base_dir) else {
            sink.error(of, unknown_name(&scenario));
            continue;
        };
        let known = settings::names_in(&text.text);
        let mut given: Vec<(String, String)> = Vec::new();
        for ((setting, value), reached) in others.iter().zip(&mut reached) {
            if said.set.value.is_some_and(|set| set.get(setting).is_some()) {
                reached.said.push((name, scenario.clone()));
            } else if known.iter().any(|known| known == setting) {
                given.push((setting.clone(), value.clone()));
                reached.by.push(name);
            } else {
                reached.without.push(name);
            }
        }
        // what the comparison says of one scenario stands: it is what makes the difference
        for (key, value) in said.set.value.map(Node::entries).unwrap_or_default() {
            let (Some(key_text), Some(value)) = (key.text(), reader.text(value)) else { continue };
            if !known.iter().any(|known| known == key_text) {
                let hint = crate::diagnostic::did_you_mean(key_text, known.iter().map(String::as_str));
                sink.error(key, format!("{scenario} has no setting \"{key_text}\"{hint}"));
                continue;
            }
            given.push((key_text.to_owned(), value));
        }
        let (plan, diagnostics) = checker.text(&text.name, &text.text, &text.base_dir, &given);
        found.append(diagnostics);
        if let Some(plan) = plan {
            let if_installed = said.if_installed.value.unwrap_or(false);
            sides.push(Side { name: name.to_owned(), plan, if_installed });
        }
    }
    others.iter().zip(&reached).for_each(|((name, _), reached)| reached.tell(name, sink));
    let equal_rate = again("equal rate", root, &sides, named.len(), &reader);
    let own_rate = again("own rate", root, &sides, named.len(), &reader);
    let rounds = rounds(root, &reader);
    settings.warn_of_unused(sink);
    sink.mask(&settings.secrets(), root);
    if sink.has_errors() || found.has_errors() || sides.len() < 2 {
        return (None, found);
    }
    let mut secrets = settings.secrets();
    sides.iter().for_each(|side| secrets.extend(&side.plan.secrets));
    let stem = Path::new(source.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(source.name);
    let text = |key| root.get(key).and_then(|node| reader.text(node));
    let comparison = Comparison {
        name: text("name").unwrap_or_else(|| stem.to_owned()),
        description: text("description").unwrap_or_default(),
        sides,
        equal_rate,
        own_rate,
        rounds,
        source_name: source.name.to_owned(),
        source: secrets::source::masked(root, sink.text(), &mut secrets),
        secrets,
    };
    (Some(comparison), found)
}

/// Whom a setting from outside reaches.
#[derive(Debug, Clone, Default)]
struct Reached<'n> {
    by: Vec<&'n str>,
    /// Of whom the comparison says it itself, and their scenario.
    said: Vec<(&'n str, String)>,
    /// Whose scenario has no such setting.
    without: Vec<&'n str>,
}

impl Reached<'_> {
    /// A setting without effect is refused; of one that has some on a part only, that is said.
    fn tell(&self, setting: &str, sink: &Sink<'_>) {
        let about = format!("--set {setting}");
        match (&self.by[..], &self.said[..]) {
            ([], []) => {
                let message =
                    format!("neither the comparison nor a scenario in it has a setting \"{setting}\"");
                sink.error_outside(about, message);
            }
            ([], [(_, scenario), ..]) => {
                let message = format!(
                    "this would change nothing: the comparison itself sets \"{setting}\" for each scenario that has it; run one \
                     scenario, `tidemark run {scenario} --set {setting}=…`, or write a comparison of your own"
                );
                sink.error_outside(about, message);
            }
            (by, said) if !said.is_empty() || !self.without.is_empty() => {
                let mut message = format!("this reaches only {}", by.join("; "));
                if !said.is_empty() {
                    let names: Vec<&str> = said.iter().map(|(name, _)| *name).collect();
                    message += &format!(". The comparison itself sets it for {}", names.join("; "));
                }
                if !self.without.is_empty() {
                    message += &format!(". No such setting: {}", self.without.join("; "));
                }
                sink.warn_outside(about, message);
            }
            _ => {}
        }
    }
}

impl Comparison {
    /// The first side whose requests for each session are unknown, where sides are of different scenarios: no rate of sessions
    /// makes their requests equal then.
    pub fn uneven(sides: &[Side]) -> Option<&str> {
        let are_alike = sides.iter().all(|side| side.plan.source == sides[0].plan.source);
        let is_unknown = |side: &&Side| !are_alike && side.plan.requests_per_session().is_none();
        sides.iter().find(is_unknown).map(|side| side.name.as_str())
    }
}

/// The share that stands at a key: each runs again at a rate.
fn again(key: &str, root: &Node, sides: &[Side], named: usize, reader: &Reader<'_>) -> Option<f64> {
    let node = root.get(key)?;
    let share = reader.share(node)?;
    if share <= 0.0 {
        reader.sink.error(node, "at a rate of 0 nothing is measured; write a share like 50%");
        return None;
    }
    if let Some(other) = Comparison::uneven(sides).filter(|_| key == "equal rate") {
        let message = format!(
            "sessions of \"{other}\" do not all make the same number of requests, and other sides are of other scenarios, so \
             that there is no {key}",
        );
        reader.sink.error(node, message);
    } else if let Some(other) = sides.iter().find(|side| !side.plan.load.kinds.is_empty()) {
        let message =
            format!("the session kinds of \"{}\" have loads of their own; there is no {key}", other.name);
        reader.sink.error(node, message);
    }
    (sides.len() == named).then_some(share)
}

fn rounds(root: &Node, reader: &Reader<'_>) -> u64 {
    let Some(node) = root.get("rounds") else { return 1 };
    let rounds = reader.whole(node, 1).unwrap_or(1);
    if rounds > ROUNDS_MAX {
        reader.sink.error(node, format!("{rounds} is too large; at most {ROUNDS_MAX}"));
    }
    rounds
}

/// A scenario's text, and where its own files are looked for.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
    base_dir: PathBuf,
}

impl Text {
    /// A file beside the comparison, else a shipped scenario.
    pub(crate) fn find(scenario: &str, base_dir: &Path) -> Option<Text> {
        let path = base_dir.join(scenario);
        let shipped = || {
            let text = crate::shipped(scenario)?.to_owned();
            Some(Text { name: format!("{scenario}.yaml"), text, base_dir: base_dir.to_owned() })
        };
        let file = || {
            let text = String::from_utf8(read_bounded(&path).ok()?).ok()?;
            let base_dir = path.parent().unwrap_or(Path::new(".")).to_owned();
            Some(Text { name: path.display().to_string(), text, base_dir })
        };
        if scenario.contains(['/', '\\', '.']) { file() } else { shipped().or_else(file) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: &str = "compare:\n  one: {scenario: a.yaml, set: {n: 3}}\n  two: a.yaml\n";

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let text = "settings: {n: 1, m: 2}\nsessions: {s: {steps: [{GET: /x}]}}\nload: {users: '${n * m}', hold: 1s}\n";
        std::fs::write(dir.path().join("a.yaml"), text).unwrap();
        dir
    }

    fn compared(text: &str, settings: &[(&str, &str)]) -> Result<Comparison, String> {
        let dir = folder();
        let settings: Vec<_> = settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        match load_experiment_text("c.yaml", text, dir.path(), &settings) {
            Ok(Experiment::Comparison(comparison)) => Ok(*comparison),
            Ok(Experiment::One(_)) => panic!("a comparison"),
            Err(diagnostics) => Err(diagnostics.to_string()),
        }
    }

    fn users(comparison: &Comparison) -> Vec<usize> {
        comparison.sides.iter().map(|side| side.plan.load.most_users()).collect()
    }

    #[test]
    fn each_scenario_gets_its_own_settings_and_those_of_the_command_line() {
        let comparison = compared(SIDES, &[]).unwrap();
        assert_eq!(users(&comparison), [6, 2]);
        assert_eq!((comparison.name.as_str(), comparison.rounds, comparison.equal_rate), ("c", 1, None));
        assert_eq!(users(&compared(SIDES, &[("m", "5")]).unwrap()), [15, 5]);
        assert_eq!(users(&compared(SIDES, &[("n", "7")]).unwrap()), [6, 14], "what the file says stands");
    }

    #[test]
    fn a_setting_without_effect_is_refused_and_one_for_a_part_is_told() {
        let both =
            "compare:\n  one: {scenario: a.yaml, set: {n: 3}}\n  two: {scenario: a.yaml, set: {n: 4}}\n";
        let error = compared(both, &[("n", "7")]).unwrap_err();
        assert!(error.starts_with("--set n: this would change nothing"), "{error}");
        assert!(error.contains("tidemark run a.yaml --set n=…"), "{error}");
        let dir = folder();
        let told = |setting: &str| {
            let given = [(setting.to_owned(), "7".to_owned())];
            let (_, told) = Checker::default().experiment_text("c.yaml", SIDES, dir.path(), &given);
            told.to_string()
        };
        assert_eq!(
            told("n"),
            "--set n: warning: this reaches only two. The comparison itself sets it for one"
        );
        assert_eq!(told("m"), "");
    }

    #[test]
    fn its_own_settings_are_its_own() {
        let text = format!("settings: {{n: 4}}\nrounds: ${{n}}\nequal rate: 50%\n{SIDES}");
        let comparison = compared(&text, &[("n", "2")]).unwrap();
        assert_eq!((comparison.rounds, users(&comparison)), (2, vec![6, 2]));
        assert_eq!(comparison.equal_rate, Some(0.5));
    }

    #[test]
    fn a_row_is_there_when_its_condition_holds() {
        let text = "settings: {large: false}\ncompare:\n  one: a.yaml\n  two: {scenario: a.yaml, set: {n: 2}, when: '${not large}'}\n  \
                    three: {scenario: a.yaml, set: {n: 3}, when: '${large}'}\n";
        assert_eq!(users(&compared(text, &[]).unwrap()), [2, 4]);
        assert_eq!(users(&compared(text, &[("large", "true")]).unwrap()), [2, 6]);
        let none = "compare:\n  one: a.yaml\n  two: {scenario: a.yaml, when: false}\n";
        assert!(compared(none, &[]).unwrap_err().contains("at least two scenarios"));
    }

    #[test]
    fn mistakes_are_told_with_their_place_in_either_file() {
        for (text, settings, wanted) in [
            ("compare: {one: a.yaml}", &[][..], "c.yaml:1:10: at least two"),
            ("compare: {one: a.yaml, two: b.yaml}", &[], "c.yaml:1:29: there is no such file"),
            (
                "compare: {one: a.yaml, two: {scenario: a.yaml, set: {k: 1}}}",
                &[],
                "a.yaml has no setting \"k\"",
            ),
            (
                "compare: {one: a.yaml, two: a.yaml}\nround: 3",
                &[],
                "c.yaml:2:1: unknown key \"round\"; did you mean rounds?",
            ),
            ("compare: {one: a.yaml, two: a.yaml}\nrounds: 21", &[], "c.yaml:2:9: 21 is too large"),
            ("compare: {one: a.yaml, two: a.yaml}\nequal rate: 0%", &[], "c.yaml:2:13: at a rate of 0"),
            ("compare: {one: a.yaml, two: a.yaml}", &[("k", "1")], "--set k: neither"),
            ("compare: {one: a.yaml, two: a.yaml}", &[("m", "x")], "m"),
        ] {
            let error = compared(text, settings).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn one_that_is_no_plan_cannot_be_taken_for_one() {
        let dir = folder();
        let error = crate::load_text("c.yaml", SIDES, dir.path(), &[]).unwrap_err().to_string();
        assert!(error.contains("comparison of scenarios"), "{error}");
    }
}
