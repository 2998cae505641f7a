//! The load: its model and its phases, for all kinds of sessions together or for each its own.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::rates;
use crate::diagnostic::did_you_mean;
use crate::load::tell_apart;
use crate::plan::{Curve, KindLoad, Load, LoadModel, PHASES_MAX, Pause, Phase, SessionKind, Spacing};
use crate::reader::Reader;
use crate::units::Rate;
use crate::yaml::Node;

/// Shortest pace: a user that begins sessions more often is better a rate.
const PACE_MIN: Duration = Duration::from_millis(1);
/// Shortest measured window that the loads of several kinds may have in common.
const COMMON_MIN: Duration = Duration::from_millis(100);

/// What a level counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Users,
    Rate,
}

/// A level over time.
#[derive(Debug, Clone)]
struct Level {
    unit: Unit,
    from: f64,
    to: f64,
    curve: Curve,
    /// How long it is by itself.
    length: Option<Duration>,
}

/// What a phase of this level is called whose author gives it no name.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |level: f64| match self.unit {
            Unit::Users if level == 1.0 => "1 user".to_owned(),
            Unit::Users => format!("{level} users"),
            Unit::Rate => Rate(level).to_string(),
        };
        match &self.curve {
            Curve::Line if self.from == self.to => write!(f, "hold {}", level(self.to)),
            Curve::Line => write!(f, "ramp to {}", level(self.to)),
            Curve::Steps(_) => write!(f, "steps to {}", level(self.to)),
            Curve::Sine { .. } => write!(f, "sine around {}", level(self.from)),
            Curve::Spikes { level: spike, .. } => write!(f, "spikes to {}", level(*spike)),
            Curve::Series(_) => write!(f, "rates of a file"),
        }
    }
}

/// Reads the load; mistakes in how its parts fit are reported.
pub(super) fn read(
    node: Option<&Node>,
    kinds: &[SessionKind],
    base: &Path,
    reader: &Reader<'_>,
) -> Option<Load> {
    let node = node?;
    match node.entry("sessions") {
        Some((key, each)) => {
            if let Some((other, _)) = node.entries().iter().find(|(other, _)| other.position != key.position)
            {
                let name = other.text().unwrap_or_default();
                let message = format!("where kinds have loads of their own, \"{name}\" stands in those");
                reader.sink.error(other, message);
            }
            by_kind(node, each, kinds, base, reader)
        }
        None => {
            let (model, phases) = LoadReader { base, reader }.read(node)?;
            if is_zero(&phases) {
                reader.sink.error(node, ZERO);
            }
            Some(Load::new(model, phases))
        }
    }
}

/// A load for each kind, and their common timetable.
fn by_kind(
    node: &Node,
    each: &Node,
    kinds: &[SessionKind],
    base: &Path,
    reader: &Reader<'_>,
) -> Option<Load> {
    let mut loads: Vec<KindLoad> = Vec::new();
    for (name, own) in each.entries() {
        let Some(text) = name.text() else { continue };
        let Some(kind) = kinds.iter().position(|kind| kind.name == text) else {
            let hint = did_you_mean(text, kinds.iter().map(|kind| kind.name.as_str()));
            reader.sink.error(name, format!("there is no session \"{text}\"{hint}"));
            continue;
        };
        if let Some((key, _)) = own.entry("sessions") {
            reader.sink.error(key, "this is the load of one kind already");
            continue;
        }
        let read = LoadReader { base, reader }.read(own);
        loads.extend(read.map(|(model, phases)| KindLoad { kind, model, phases }));
    }
    // A kind whose load is 0 takes no part; that of all of them is a mistake.
    if !loads.is_empty() && loads.iter().all(|load| is_zero(&load.phases)) {
        reader.sink.error(each, ZERO);
    } else {
        loads.retain(|load| !is_zero(&load.phases));
    }
    let without = |kind: &&SessionKind| each.get(&kind.name).is_none() && kind.weight > 0;
    if let Some(kind) = kinds.iter().find(without) {
        let message = format!("the session \"{}\" has no load; give it one, or the weight 0", kind.name);
        reader.sink.error(each, message);
    }
    let (first, last) = common_window(&loads)?;
    if last < first + COMMON_MIN {
        let message = "the measured times of these loads have nothing in common; all begin together, and what is \
                       measured is the time that is measured in each";
        reader.sink.error(node, message);
        return None;
    }
    let end = loads.iter().map(|load| length(&load.phases)).max()?;
    let phase = |name: &str, duration: Duration, measured| Phase {
        name: name.into(),
        duration,
        from: 0.0,
        to: 0.0,
        measured,
        curve: Curve::Line,
    };
    let parts =
        [phase("warm-up", first, false), phase("hold", last - first, true), phase("rest", end - last, false)];
    let phases = parts.into_iter().filter(|phase| !phase.duration.is_zero()).collect();
    Some(Load { model: LoadModel::Closed, phases, kinds: loads })
}

fn length(phases: &[Phase]) -> Duration {
    phases.iter().map(|phase| phase.duration).sum()
}

/// When the measured phases begin and end, from the begin of the first phase.
pub(crate) fn window(phases: &[Phase]) -> Option<(Duration, Duration)> {
    let first = phases.iter().position(|phase| phase.measured)?;
    let last = phases.iter().rposition(|phase| phase.measured)?;
    Some((length(&phases[..first]), length(&phases[..=last])))
}

/// The time that is measured in all of them.
fn common_window(loads: &[KindLoad]) -> Option<(Duration, Duration)> {
    let mut windows = loads.iter().filter_map(|load| window(&load.phases));
    let first = windows.next()?;
    Some(windows.fold(first, |(from, to), (other_from, other_to)| (from.max(other_from), to.min(other_to))))
}

struct LoadReader<'a, 's> {
    base: &'a Path,
    reader: &'a Reader<'s>,
}

impl LoadReader<'_, '_> {
    fn read(&self, node: &Node) -> Option<(LoadModel, Vec<Phase>)> {
        if node.entries().is_empty() {
            return None;
        }
        let own = self.level(node);
        let mut phases = match node.get("phases") {
            Some(list) => self.listed(node, list, own.as_ref()),
            None => self.short(node, own.as_ref()),
        };
        let unit = own.map(|level| level.unit).or_else(|| phases.first().map(|(unit, _)| *unit))?;
        if let Some(list) = node.get("phases")
            && phases.iter().any(|(other, _)| *other != unit)
        {
            self.error(list, "all phases of a load have users, or all have a rate");
        }
        if phases.is_empty() {
            return None;
        }
        phases.retain(|(_, phase)| !phase.duration.is_zero());
        let mut phases: Vec<Phase> = phases.into_iter().map(|(_, phase)| phase).collect();
        let mut names: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
        tell_apart(&mut names);
        phases.iter_mut().zip(names).for_each(|(phase, name)| phase.name = name);
        self.check(node, &phases);
        let model = match unit {
            Unit::Users => self.closed(node),
            Unit::Rate => self.open(node),
        };
        Some((model, phases))
    }

    fn error(&self, node: &Node, message: &str) {
        self.reader.sink.error(node, message);
    }

    fn closed(&self, node: &Node) -> LoadModel {
        if let Some(spacing) = node.get("spacing") {
            self.error(spacing, "users do not arrive: spacing belongs to a load with a rate");
        }
        let pace = node.get("pace").and_then(|pace| self.reader.duration(pace).map(|time| (pace, time)));
        match (pace, node.entry("think")) {
            (Some(_), Some((think, _))) => {
                self.error(think, "a load has either a pace or a think time between sessions, not both");
                LoadModel::Closed
            }
            (Some((pace, time)), None) => {
                if time < PACE_MIN {
                    self.error(pace, "this pace is too short; at least 1ms");
                }
                LoadModel::Paced(time)
            }
            (None, Some((_, think))) => self.pause(think).map_or(LoadModel::Closed, LoadModel::Thinking),
            (None, None) => LoadModel::Closed,
        }
    }

    fn open(&self, node: &Node) -> LoadModel {
        for key in ["think", "pace"] {
            if let Some((key_node, _)) = node.entry(key) {
                let message =
                    format!("sessions arrive at a rate here; \"{key}\" belongs to a load with users");
                self.error(key_node, &message);
            }
        }
        let word =
            node.get("spacing").and_then(|spacing| self.reader.word(spacing, &["constant", "poisson"]));
        LoadModel::Open(if word == Some("poisson") { Spacing::Poisson } else { Spacing::Constant })
    }

    fn pause(&self, node: &Node) -> Option<Pause> {
        if node.text().is_some() {
            return self.reader.duration(node).map(Pause::Fixed);
        }
        if let Some(mean) = node.get("exponential") {
            return self.reader.duration(mean).map(Pause::Exponential);
        }
        let bounds = node.get("between")?;
        let [low, high] = bounds.items() else {
            self.error(bounds, "between has two times: [1s, 3s]");
            return None;
        };
        let (low, high) = self.reader.duration(low).zip(self.reader.duration(high))?;
        if low > high {
            self.error(bounds, "the first time is longer than the second");
        }
        Some(Pause::Between(low, high))
    }

    fn level(&self, node: &Node) -> Option<Level> {
        let plain = |unit, level: crate::reader::Level| Level {
            unit,
            from: level.from,
            to: level.to,
            curve: level.steps.map_or(Curve::Line, Curve::Steps),
            length: None,
        };
        let level = if let Some(users) = node.get("users") {
            self.reader.users(users).map(|level| plain(Unit::Users, level))
        } else {
            let rate = node.get("rate")?;
            if rate.text().is_some() {
                self.reader.rate(rate).map(|level| plain(Unit::Rate, level))
            } else {
                let rates = rates::read(rate, self.base, self.reader);
                rates.map(|r| Level {
                    unit: Unit::Rate,
                    from: r.from,
                    to: r.to,
                    curve: r.curve,
                    length: r.length,
                })
            }
        };
        let Some((key, spike)) = node.entry("spike") else { return level };
        let level = level?;
        if level.unit == Unit::Users || level.curve != Curve::Line {
            self.error(key, "spikes stand on a plain rate, like 50/s or 10/s to 100/s");
            return Some(level);
        }
        let curve = rates::spikes(spike, self.reader).unwrap_or(Curve::Line);
        Some(Level { curve, ..level })
    }

    /// `ramp`, `warm-up` and `hold`.
    fn short(&self, node: &Node, own: Option<&Level>) -> Vec<(Unit, Phase)> {
        let is_said = node.get("users").is_some() || node.get("rate").is_some();
        if !is_said {
            self.error(node, "a load needs users, a rate, or phases");
            if let Some((spike, _)) = node.entry("spike") {
                self.error(spike, "spikes stand on a plain rate, like 50/s or 10/s to 100/s");
            }
        }
        let has_length = own.is_some_and(|level| level.length.is_some());
        if node.get("hold").is_none() && !has_length && (own.is_some() || !is_said) {
            self.error(node, "a load needs the key \"hold\" (how long is measured), or phases");
        }
        let Some(level) = own else { return Vec::new() };
        let time = |key| node.get(key).and_then(|node| self.reader.duration(node));
        let flat = |name: &str, from: f64, duration: Duration| {
            let to = level.from;
            (level.unit, Phase { name: name.into(), duration, from, to, measured: false, curve: Curve::Line })
        };
        let ramp = time("ramp").map(|duration| flat("ramp", 0.0, duration));
        let warm_up = time("warm-up").map(|duration| flat("warm-up", level.from, duration));
        let hold = if node.get("hold").is_some() { time("hold") } else { level.length };
        let hold = hold.and_then(|duration| self.phase(node, "hold".into(), level, duration, true));
        [ramp, warm_up, hold].into_iter().flatten().collect()
    }

    fn listed(&self, node: &Node, list: &Node, own: Option<&Level>) -> Vec<(Unit, Phase)> {
        for key in ["ramp", "warm-up", "hold"] {
            if let Some((key_node, _)) = node.entry(key) {
                self.error(key_node, &format!("a load has either \"phases\" or \"{key}\", not both"));
            }
        }
        let mut phases = Vec::new();
        if list.items().len() > PHASES_MAX {
            let message =
                format!("a load has at most {PHASES_MAX} phases; one phase can follow a file of rates");
            self.error(list, &message);
        }
        for node in list.items() {
            let has_own = node.get("users").is_some() || node.get("rate").is_some();
            let level = if has_own { self.level(node) } else { own.cloned() };
            if level.is_none() && !has_own && own.is_none() {
                self.error(node, "this phase needs users or a rate, as the load has none of its own");
            }
            if let Some((spike, _)) = node.entry("spike").filter(|_| !has_own) {
                self.error(spike, "spikes stand on a plain rate of the same phase");
            }
            let name = node.get("name").and_then(|name| self.reader.text(name));
            let measured = node.get("measured").and_then(|node| self.reader.bool(node));
            let measured = measured.unwrap_or(!matches!(name.as_deref(), Some("warm-up" | "ramp")));
            let own_length = level.as_ref().and_then(|level| level.length);
            let duration = match node.get("for") {
                Some(time) => self.reader.duration(time),
                None => own_length,
            };
            if node.get("for").is_none() && own_length.is_none() && (level.is_some() || !has_own) {
                self.error(node, "a phase needs the key \"for\": How long it is.");
            }
            let Some((level, duration)) = level.zip(duration) else { continue };
            let name = name.unwrap_or_else(|| level.to_string());
            phases.extend(self.phase(node, name, &level, duration, measured));
        }
        phases
    }

    fn phase(
        &self,
        node: &Node,
        name: String,
        level: &Level,
        duration: Duration,
        measured: bool,
    ) -> Option<(Unit, Phase)> {
        let Level { unit, from, to, curve, .. } = level.clone();
        if !rates::are_few(&curve, duration) {
            self.error(node, "this phase has too many spikes");
            return None;
        }
        Some((unit, Phase { name, duration, from, to, measured, curve }))
    }

    fn check(&self, node: &Node, phases: &[Phase]) {
        let measured: Vec<usize> = (0..phases.len()).filter(|index| phases[*index].measured).collect();
        match (measured.first(), measured.last()) {
            (Some(first), Some(last)) if last - first + 1 != measured.len() => {
                self.error(node, "the measured phases must follow each other without another between them");
            }
            (None, _) => self.error(node, "nothing is measured; a phase needs \"measured: true\" and a time"),
            _ => {}
        }
    }
}

/// Whether a load is 0 all the time.
fn is_zero(phases: &[Phase]) -> bool {
    !phases.is_empty() && phases.iter().all(|phase| phase.peak() <= 0.0)
}

const ZERO: &str = "this load is always 0; nothing would be sent";
