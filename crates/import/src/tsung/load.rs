//! How many users arrive, and when.

use std::time::Duration;

use tidemark_scenario::source::{Load, Map, Phase, Value};
use tidemark_scenario::units::{Rate, Time};

use super::{Chosen, Making, shown};
use crate::xml::Element;

/// Most phases of a load.
const PHASES_MAX: usize = 200;
/// Longest time for users who are still there when no more arrive, seconds.
const LAST_MAX_S: f64 = 3_600.0;
/// Longest phase, seconds.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// A phase as it is written.
#[derive(Debug, Clone, Default)]
struct Arrivals {
    name: String,
    number: f64,
    seconds: f64,
    /// Users that arrive each second, on average.
    per_second: f64,
    most: Option<u64>,
    /// How often each session is chosen in this phase, by name.
    setup: Vec<(String, f64)>,
    line: usize,
    /// How often it was there before.
    round: usize,
    /// Whether it is only for users who are still there.
    is_last: bool,
}

/// What became of it.
pub(super) struct Made {
    pub(super) load: Load,
    /// The most sessions that begin, where that is said.
    pub(super) sessions: Option<u64>,
}

impl Making<'_> {
    /// The load of these sessions: all phases, and what the first says of all.
    pub(super) fn load(&mut self, load: &Element, loads: &[&Element], kinds: &[Chosen]) -> Option<Made> {
        loads.iter().for_each(|load| self.known(load, &["duration", "unit", "loop"]));
        let mut phases = Vec::new();
        for child in loads.iter().flat_map(|load| &load.children) {
            match child.name.as_str() {
                "arrivalphase" => phases.extend(self.arrivals(child, kinds)),
                "user" => self.user(child),
                _ => self.unknown(child, false),
            }
        }
        phases.sort_by(|a, b| a.number.total_cmp(&b.number));
        let rounds = load.attribute("loop").and_then(|text| text.trim().parse().ok()).unwrap_or(0usize) + 1;
        if phases.len().saturating_mul(rounds) > PHASES_MAX {
            self.tell(
                load,
                format!("done its phases {rounds} times: only the first {PHASES_MAX} are there"),
                false,
            );
        }
        let once = phases.clone();
        for round in 2..=rounds.min(PHASES_MAX) {
            phases.extend(once.iter().cloned().map(|phase| Arrivals {
                name: format!("{} ({round})", phase.name),
                round: round - 1,
                ..phase
            }));
        }
        phases.truncate(PHASES_MAX);
        let mut left = self.seconds(load, "duration").unwrap_or(f64::INFINITY);
        for phase in &mut phases {
            phase.seconds = phase.seconds.min(left);
            left -= phase.seconds;
        }
        phases.retain(|phase| phase.per_second > 0.0 && phase.seconds > 0.0);
        if phases.is_empty() {
            return None;
        }
        self.made(phases, kinds, left)
    }

    fn arrivals(&mut self, phase: &Element, kinds: &[Chosen]) -> Option<Arrivals> {
        self.known(phase, &["phase", "duration", "unit", "wait_all_sessions_end"]);
        if phase.attribute("wait_all_sessions_end") == Some("true") {
            self.tell(phase, "waited for all users of this phase before the next one", false);
        }
        let number = phase.attribute("phase").unwrap_or_default().trim();
        let mut made = Arrivals {
            name: format!("phase {number}"),
            number: number.parse().unwrap_or(f64::MAX),
            line: phase.line,
            ..Arrivals::default()
        };
        match self.seconds(phase, "duration") {
            Some(seconds) => made.seconds = seconds,
            None => {
                self.tell(phase, "been a phase: its duration cannot be read", true);
                return None;
            }
        }
        for child in &phase.children {
            match child.name.as_str() {
                "users" => self.users(child, &mut made),
                "session_setup" => {
                    self.known(child, &["name", "probability", "weight"]);
                    let share = ["probability", "weight"].iter().find_map(|of| child.attribute(of));
                    let share = share.and_then(|share| share.trim().parse().ok());
                    let name = child.attribute("name").unwrap_or_default();
                    match share.filter(|_| kinds.iter().any(|kind| kind.theirs == name)) {
                        Some(share) => made.setup.push((name.to_owned(), share)),
                        None => self.tell(
                            child,
                            "changed how often a session is chosen: there is none of this name",
                            false,
                        ),
                    }
                }
                _ => self.unknown(child, false),
            }
        }
        Some(made)
    }

    fn users(&mut self, users: &Element, phase: &mut Arrivals) {
        self.known(users, &["interarrival", "arrivalrate", "unit", "maxnumber", "start_time"]);
        if let Some(at) = users.attribute("start_time") {
            let would = format!("begun its users at {}: they arrive from the phase's begin", shown(at));
            self.tell(users, would, false);
        }
        let unit = unit(users);
        let number = |name: &str| {
            let number = users.attribute(name)?.trim().parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number > 0.0)
        };
        match (number("arrivalrate"), number("interarrival"), unit) {
            (Some(rate), None, Some(unit)) => phase.per_second = rate / unit,
            (None, Some(between), Some(unit)) => phase.per_second = 1.0 / (between * unit),
            _ => self.tell(users, "begun users: neither arrivalrate nor interarrival can be read", true),
        }
        match users.attribute("maxnumber").map(|most| most.trim().parse()) {
            None => {}
            Some(Ok(0)) => phase.per_second = 0.0,
            Some(Ok(most)) => phase.most = Some(most),
            Some(Err(_)) => self.tell(users, "bounded the number of users: maxnumber cannot be read", false),
        }
    }

    fn user(&mut self, user: &Element) {
        self.known(user, &["start_time", "unit", "session"]);
        let session = user.attribute("session").unwrap_or_default();
        let at = user.attribute("start_time").unwrap_or("0");
        let unit = user.attribute("unit").unwrap_or("second");
        let (session, at, unit) = (shown(session), shown(at), shown(unit));
        self.tell(
            user,
            format!("begun one session {session:?} at {at} {unit}, beside those that arrive"),
            true,
        );
    }

    fn made(&mut self, phases: Vec<Arrivals>, kinds: &[Chosen], left: f64) -> Option<Made> {
        let all_bounded = phases.iter().all(|phase| phase.most.is_some());
        let sessions =
            all_bounded.then(|| phases.iter().filter_map(|phase| phase.most).fold(0, u64::saturating_add));
        let is_alone = phases.len() == 1;
        let mut stretches = Vec::new();
        for phase in &phases {
            let seconds = phase.most.map(|most| most as f64 / phase.per_second);
            match seconds.filter(|seconds| *seconds < phase.seconds && !is_alone) {
                None => stretches.push((phase.clone(), phase.per_second)),
                Some(seconds) => {
                    if phase.round == 0 {
                        let most = phase.most.unwrap_or_default();
                        let would = format!(
                            "begun no more than {most} users: it ends after the time in which so many come on average"
                        );
                        self.left_out(phase.line, "<arrivalphase>".into(), would, false);
                    }
                    let rest = Arrivals {
                        name: format!("{} without arrivals", phase.name),
                        seconds: phase.seconds - seconds,
                        ..phase.clone()
                    };
                    stretches.push((Arrivals { seconds, ..phase.clone() }, phase.per_second));
                    stretches.push((rest, 0.0));
                }
            }
        }
        // Tsung ends when all users have done their session. Where their number is known, so does the load; else this is how
        // long they may take
        while stretches.last().is_some_and(|(_, rate)| *rate == 0.0) {
            stretches.pop();
        }
        let lasts = if all_bounded { LAST_MAX_S } else { self.lasts_s.min(LAST_MAX_S).ceil() };
        let seconds = lasts.min(left);
        if seconds > 0.0 && stretches.len() < PHASES_MAX {
            let name = "last users".to_owned();
            stretches.push((Arrivals { name, seconds, is_last: !all_bounded, ..Arrivals::default() }, 0.0));
        }
        let of = |share: &dyn Fn(&Arrivals) -> f64| Load {
            spacing: Some("poisson".into()),
            phases: stretches
                .iter()
                .map(|(phase, rate)| Phase {
                    name: Some(phase.name.clone().into()),
                    duration: Some(time(phase.seconds).into()),
                    rate: Some(Value::Scalar(Rate(shared(*rate, share(phase))).into())),
                    // without arrivals a rate over this time would say little
                    measured: phase.is_last.then(|| false.into()),
                    ..Phase::default()
                })
                .collect(),
            ..Load::default()
        };
        let share = |phase: &Arrivals, kind: &Chosen| {
            let sum: f64 = match phase.setup.as_slice() {
                [] => kinds.iter().map(|kind| kind.share).sum(),
                setup => setup.iter().map(|(_, share)| share).sum(),
            };
            let own: f64 = match phase.setup.as_slice() {
                [] => kind.share,
                setup => setup.iter().filter(|(name, _)| *name == kind.theirs).map(|(_, share)| share).sum(),
            };
            if sum > 0.0 { own / sum } else { 0.0 }
        };
        let driven = || kinds.iter().filter_map(|kind| Some((kind.ours.clone()?, kind)));
        // of those who send nothing, or nothing here, none begins
        let part: f64 =
            phases.iter().map(|phase| driven().map(|(_, kind)| share(phase, kind)).sum::<f64>()).sum();
        let part = part / phases.len().max(1) as f64;
        if part <= 0.0 {
            return None;
        }
        let load = if phases.iter().all(|phase| phase.setup.is_empty()) {
            // without those who are not driven
            let is_all = kinds.iter().all(|kind| kind.ours.is_some());
            of(&|phase| if is_all { 1.0 } else { driven().map(|(_, kind)| share(phase, kind)).sum() })
        } else {
            let arrives = |kind: &Chosen| phases.iter().any(|phase| share(phase, kind) > 0.0);
            let sessions = driven()
                .filter(|(_, kind)| arrives(kind))
                .map(|(name, kind)| (name, of(&|phase| share(phase, kind))));
            Load { sessions: sessions.collect(), ..Load::default() }
        };
        let sessions = sessions.map(|most: u64| ((most as f64 * part).round() as u64).max(1));
        Some(Made { load, sessions })
    }

    /// A time in an attribute, in the element's unit, as seconds.
    fn seconds(&mut self, element: &Element, name: &str) -> Option<f64> {
        let number = element.attribute(name)?.trim().parse::<f64>().ok()?;
        let seconds = number * unit(element)?;
        (seconds > 0.0 && seconds <= SECONDS_MAX).then_some(seconds)
    }
}

/// How long the unit of an element is, seconds.
fn unit(element: &Element) -> Option<f64> {
    Some(match element.attribute("unit").unwrap_or("second") {
        "millisecond" => 0.001,
        "second" => 1.0,
        "minute" => 60.0,
        "hour" => 3_600.0,
        _ => return None,
    })
}

pub(super) fn time(seconds: f64) -> Time {
    Time(Duration::from_micros((seconds * 1e6).round() as u64))
}

/// A share of a rate, without what binary fractions add.
fn shared(rate: f64, share: f64) -> f64 {
    const DIGITS: f64 = 1e9;
    if share == 1.0 { rate } else { (rate * share * DIGITS).round() / DIGITS }
}

/// The limit that keeps to a number of sessions.
pub(super) fn limits(sessions: Option<u64>, limits: &mut Map) {
    if let Some(sessions) = sessions {
        limits.insert("sessions", sessions);
    }
}
