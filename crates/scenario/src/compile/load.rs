//! The load: its model and its phases, for all kinds of sessions together or for each its own.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::rates;
use crate::diagnostic::did_you_mean;
use crate::grammar::kinds::{self, Or};
use crate::grammar::record::{At, Kind};
use crate::language::{self, AnyRate, Spike};
use crate::load::tell_apart;
use crate::plan::{Curve, KindLoad, Load, LoadModel, PHASES_MAX, Phase, SessionKind, Spacing};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::steps::think;
use crate::units::Rate;
use crate::yaml::Node;

/// Shortest pace: a user that begins sessions more often is better a rate.
const PACE_MIN: Duration = Duration::from_millis(1);
/// Shortest measured window that the loads of several kinds may have in common.
const COMMON_MIN: Duration = Duration::from_millis(100);

/// What a level counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Users,
    Rate,
}

/// A level over time.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) unit: Unit,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) curve: Curve,
    /// How long it is by itself.
    pub(super) length: Option<Duration>,
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
    let said = language::Load::read(node?, reader)?;
    if let (Some(key), Some(each)) = (said.sessions.key(), said.sessions.value) {
        if let Some((other, _)) = said.node.entries().iter().find(|(other, _)| other.position != key.position)
        {
            let name = other.text().unwrap_or_default();
            let message = format!("where kinds have loads of their own, \"{name}\" stands in those");
            reader.sink.error(other, message);
        }
        return by_kind(said.node, each, kinds, base, reader);
    }
    let (model, phases) = LoadReader { said: &said, base, sink: reader.sink }.read()?;
    if is_zero(&phases) {
        reader.sink.error(said.node, ZERO);
    }
    Some(Load::new(model, phases))
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
        let Some(said) = language::Load::read(own, reader) else { continue };
        if said.sessions.is_there() {
            said.sessions.refuse(reader.sink, "this is the load of one kind already");
            continue;
        }
        let read = LoadReader { said: &said, base, sink: reader.sink }.read();
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

struct LoadReader<'a, 'n> {
    said: &'a language::Load<'n>,
    base: &'a Path,
    sink: &'a Sink<'a>,
}

impl LoadReader<'_, '_> {
    fn read(&self) -> Option<(LoadModel, Vec<Phase>)> {
        let said = self.said;
        if said.node.entries().is_empty() {
            return None;
        }
        let own = self.level(&said.users, &said.rate, &said.spike);
        let mut phases = match &said.phases.value {
            Some(list) => self.listed(list, own.as_ref()),
            None => self.short(own.as_ref()),
        };
        let unit = own.map(|level| level.unit).or_else(|| phases.first().map(|(unit, _)| *unit))?;
        if phases.iter().any(|(other, _)| *other != unit) {
            said.phases.error(self.sink, "all phases of a load have users, or all have a rate");
        }
        if phases.is_empty() {
            return None;
        }
        phases.retain(|(_, phase)| !phase.duration.is_zero());
        let mut phases: Vec<Phase> = phases.into_iter().map(|(_, phase)| phase).collect();
        let mut names: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
        tell_apart(&mut names);
        phases.iter_mut().zip(names).for_each(|(phase, name)| phase.name = name);
        self.check(&phases);
        let model = match unit {
            Unit::Users => self.closed(),
            Unit::Rate => self.open(),
        };
        Some((model, phases))
    }

    fn closed(&self) -> LoadModel {
        let said = self.said;
        said.spacing.error(self.sink, "users do not arrive: spacing belongs to a load with a rate");
        match (said.pace.value, &said.think.value) {
            (Some(_), _) if said.think.is_there() => {
                let message = "a load has either a pace or a think time between sessions, not both";
                said.think.refuse(self.sink, message);
                LoadModel::Closed
            }
            (Some(time), _) => {
                if time < PACE_MIN {
                    said.pace.error(self.sink, "this pace is too short; at least 1ms");
                }
                LoadModel::Paced(time)
            }
            (None, Some(think)) => {
                think::pause(think, self.sink).map_or(LoadModel::Closed, LoadModel::Thinking)
            }
            (None, None) => LoadModel::Closed,
        }
    }

    fn open(&self) -> LoadModel {
        for key in [self.said.think.key(), self.said.pace.key()].into_iter().flatten() {
            let name = key.text().unwrap_or_default();
            let message = format!("sessions arrive at a rate here; \"{name}\" belongs to a load with users");
            self.sink.error(key, message);
        }
        LoadModel::Open(self.said.spacing.value.unwrap_or(Spacing::Constant))
    }

    fn level<'n>(
        &self,
        users: &At<'n, kinds::Users>,
        rate: &At<'n, AnyRate<'n>>,
        spike: &At<'n, Spike<'n>>,
    ) -> Option<Level> {
        let plain = |unit, level: crate::reader::Level| Level {
            unit,
            from: level.from,
            to: level.to,
            curve: level.steps.map_or(Curve::Line, Curve::Steps),
            length: None,
        };
        let level = match &rate.value {
            _ if users.is_there() => plain(Unit::Users, users.value?),
            Some(Or::First(level)) => plain(Unit::Rate, *level),
            Some(Or::Second(over_time)) => rates::read(over_time, self.base, self.sink)?,
            None => return None,
        };
        if !spike.is_there() {
            return Some(level);
        }
        if level.unit == Unit::Users || level.curve != Curve::Line {
            spike.refuse(self.sink, "spikes stand on a plain rate, like 50/s or 10/s to 100/s");
            return Some(level);
        }
        let curve = spike.value.as_ref().and_then(|spike| rates::spikes(spike, self.sink));
        Some(Level { curve: curve.unwrap_or(Curve::Line), ..level })
    }

    /// `ramp`, `warm-up` and `hold`.
    fn short(&self, own: Option<&Level>) -> Vec<(Unit, Phase)> {
        let said = self.said;
        let is_said = said.users.is_there() || said.rate.is_there();
        if !is_said {
            self.sink.error(said.node, "a load needs users, a rate, or phases");
            said.spike.refuse(self.sink, "spikes stand on a plain rate, like 50/s or 10/s to 100/s");
        }
        let has_length = own.is_some_and(|level| level.length.is_some());
        if !said.hold.is_there() && !has_length && (own.is_some() || !is_said) {
            self.sink.error(said.node, "a load needs the key \"hold\" (how long is measured), or phases");
        }
        let Some(level) = own else { return Vec::new() };
        let flat = |name: &str, from: f64, duration: Duration| {
            let to = level.from;
            (level.unit, Phase { name: name.into(), duration, from, to, measured: false, curve: Curve::Line })
        };
        let ramp = said.ramp.value.map(|duration| flat("ramp", 0.0, duration));
        let warm_up = said.warm_up.value.map(|duration| flat("warm-up", level.from, duration));
        let hold = if said.hold.is_there() { said.hold.value } else { level.length };
        let hold = hold.and_then(|duration| self.phase(said.node, "hold".into(), level, duration, true));
        [ramp, warm_up, hold].into_iter().flatten().collect()
    }

    fn listed(&self, list: &[language::Phase<'_>], own: Option<&Level>) -> Vec<(Unit, Phase)> {
        for at in [&self.said.ramp, &self.said.warm_up, &self.said.hold] {
            at.refuse(self.sink, format!("a load has either \"phases\" or \"{}\", not both", at.name));
        }
        let mut phases = Vec::new();
        if list.len() > PHASES_MAX {
            let message =
                format!("a load has at most {PHASES_MAX} phases; one phase can follow a file of rates");
            self.said.phases.error(self.sink, message);
        }
        for said in list {
            let has_own = said.users.is_there() || said.rate.is_there();
            let level = if has_own { self.level(&said.users, &said.rate, &said.spike) } else { own.cloned() };
            if !has_own {
                if own.is_none() {
                    let message = "this phase needs users or a rate, as the load has none of its own";
                    self.sink.error(said.node, message);
                }
                said.spike.refuse(self.sink, "spikes stand on a plain rate of the same phase");
            }
            let name = said.name.value.clone();
            let is_measured = !matches!(name.as_deref(), Some("warm-up" | "ramp"));
            let own_length = level.as_ref().and_then(|level| level.length);
            let duration = if said.length.is_there() { said.length.value } else { own_length };
            if !said.length.is_there() && own_length.is_none() && (level.is_some() || !has_own) {
                self.sink.error(said.node, "a phase needs the key \"for\": How long it is.");
            }
            let Some((level, duration)) = level.zip(duration) else { continue };
            let name = name.unwrap_or_else(|| level.to_string());
            let measured = said.measured.value.unwrap_or(is_measured);
            phases.extend(self.phase(said.node, name, &level, duration, measured));
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
            self.sink.error(node, "this phase has too many spikes");
            return None;
        }
        Some((unit, Phase { name, duration, from, to, measured, curve }))
    }

    fn check(&self, phases: &[Phase]) {
        let measured: Vec<usize> = (0..phases.len()).filter(|index| phases[*index].measured).collect();
        let message = match (measured.first(), measured.last()) {
            (Some(first), Some(last)) if last - first + 1 != measured.len() => {
                "the measured phases must follow each other without another between them"
            }
            (None, _) => "nothing is measured; a phase needs \"measured: true\" and a time",
            _ => return,
        };
        self.sink.error(self.said.node, message);
    }
}

/// Whether a load is 0 all the time.
fn is_zero(phases: &[Phase]) -> bool {
    !phases.is_empty() && phases.iter().all(|phase| phase.peak() <= 0.0)
}

const ZERO: &str = "this load is always 0; nothing would be sent";
