//! Phases as an open load.

use std::time::Duration;

use tidemark_scenario::source::{Load, Map, Phase, Scalar, Value};
use tidemark_scenario::units::{Rate, Time};

use super::Making;
use crate::draft::seconds;
use crate::plan::shown;
use crate::tree::Node;

/// Most phases of a load.
const PHASES_MAX: usize = 199;
/// How long the answers of one user may take all together, seconds: nobody knows before.
const ANSWERS_S: f64 = 5.0;
/// Longest time for users who are still there when no more arrive, seconds.
const LAST_MAX_S: f64 = 3_600.0;
/// Names of phases that are not measured here, and are in Artillery.
const UNMEASURED: [&str; 2] = ["warm-up", "ramp"];

impl Making<'_> {
    /// The load; `lasts_s` is how long the pauses of one user are.
    pub(super) fn load(&mut self, lasts_s: f64, limits: &mut Map) -> Load {
        if self.of("phases").is_none() {
            limits.insert("sessions", 1u64);
            return Load {
                comment: "One user, as in Artillery without phases; it is over when that one has ended."
                    .into(),
                users: Some(1u64.into()),
                hold: Some("1h".into()),
                ..Load::default()
            };
        }
        let mut phases: Vec<Phase> = Vec::new();
        let mut most: Vec<(usize, u64)> = Vec::new();
        let all = self.of("phases").map(Node::one_or_many).unwrap_or_default();
        for node in all {
            let name = node.text("name").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            if let Some(number) = node.number("maxVusers").filter(|number| *number >= 1.0) {
                most.push((node.line, number as u64));
            }
            let Some((seconds, rate)) = self.phase(node) else { continue };
            if phases.len() == PHASES_MAX {
                let would = format!("been a phase: only the first {PHASES_MAX} are there");
                self.draft.tell(node.line, "phase", would, false);
                continue;
            }
            // measured is what lies between the first and the last arrivals
            let is_before = rate.as_str() == "0/s" && !phases.iter().any(is_sent);
            let unique = name.map(|name| {
                let mut one = name.clone();
                let mut number = 1;
                while phases
                    .iter()
                    .any(|phase| phase.name.as_ref().is_some_and(|known| known.as_str() == one))
                {
                    number += 1;
                    one = format!("{name} ({number})");
                }
                one
            });
            let is_counted = unique.as_deref().is_some_and(|name| UNMEASURED.contains(&name));
            phases.push(Phase {
                name: unique.map(Into::into),
                duration: Some(time(seconds)),
                rate: Some(Value::Scalar(rate)),
                measured: if is_before { Some(false.into()) } else { is_counted.then(|| true.into()) },
                ..Phase::default()
            });
        }
        if !phases.iter().any(is_sent) {
            let would = "begun users: no phase of it can be read, so one stands in their place";
            self.draft.tell(self.config.line, "config.phases", would, true);
            return Load { users: Some(1u64.into()), hold: Some("30s".into()), ..Load::default() };
        }
        if let Some((line, bound)) = most.first().copied() {
            limits.insert("in flight", bound);
            limits.insert("at limit", "drop");
            if most.len() < all.len() || most.iter().any(|(_, other)| *other != bound) {
                let would =
                    format!("bounded the users of this phase only: here all phases have at most {bound}");
                self.draft.tell(line, "phase maxVusers", would, false);
            }
        }
        while phases.last().is_some_and(|phase| !is_sent(phase)) {
            phases.pop();
        }
        if lasts_s > 0.0 {
            phases.push(Phase {
                name: Some("last users".into()),
                duration: Some(time((lasts_s + ANSWERS_S).min(LAST_MAX_S).ceil())),
                rate: Some("0/s".into()),
                measured: Some(false.into()),
                ..Phase::default()
            });
        }
        match phases.as_mut_slice() {
            [only]
                if only.name.is_none()
                    && !only.rate.as_ref().and_then(Value::as_str).unwrap_or_default().contains(" to ") =>
            {
                Load { rate: only.rate.take(), hold: only.duration.take(), ..Load::default() }
            }
            _ => Load { phases, ..Load::default() },
        }
    }

    /// How long a phase is, seconds, and its rate.
    fn phase(&mut self, node: &Node) -> Option<(f64, Scalar)> {
        let of = |key: &str, making: &mut Self| {
            let text = node.text(key)?;
            let text = making.written_out(text);
            let number =
                if ["duration", "pause"].contains(&key) { seconds(&text) } else { text.trim().parse().ok() };
            let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
            if number.is_none() {
                let would = format!("been a phase: {key} {:?} cannot be read", shown(&text));
                making.draft.tell(node.line, "phase", would, true);
            }
            Some(number)
        };
        if let Some(pause) = of("pause", self) {
            return Some((pause.filter(|pause| *pause > 0.0)?, "0/s".into()));
        }
        let (duration, rate) = (of("duration", self), of("arrivalRate", self));
        let (count, ramp) = (of("arrivalCount", self), of("rampTo", self));
        let seconds = duration??;
        if seconds <= 0.0 {
            return None;
        }
        let per_second = match (count, rate) {
            (Some(count), _) => count? / seconds,
            (None, Some(rate)) => rate?,
            (None, None) if ramp.is_some() => 0.0,
            (None, None) => {
                self.draft.tell(node.line, "phase", "begun users: it has no rate", true);
                return None;
            }
        };
        let text = match ramp {
            Some(to) => Scalar::from(format!("{} to {}", shown_rate(per_second), shown_rate(to?))),
            None => shown_rate(per_second).into(),
        };
        Some((seconds, text))
    }
}

/// Whether users arrive in a phase.
fn is_sent(phase: &Phase) -> bool {
    !matches!(&phase.rate, Some(Value::Scalar(rate)) if rate.as_str() == "0/s")
}

fn shown_rate(per_second: f64) -> String {
    Scalar::from(Rate(per_second)).as_str().to_owned()
}

fn time(seconds: f64) -> Scalar {
    Time(Duration::from_micros((seconds * 1e6).round() as u64)).into()
}
