//! What `--rate`, `--for` and `--users` of the command line do to a load, and what a search for its limit does.

use std::time::Duration;

use crate::compile::{are_few, window};
use crate::plan::{Curve, LoadModel, Phase, Plan, Spacing, Stream};
use crate::units::{Rate, Time};

/// Shortest measured window that makes sense.
const MEASURED_MIN: Duration = Duration::from_millis(100);

/// Why a load cannot be changed as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OverrideError(String);

impl Plan {
    /// Replaces the load's level and the length of its measured window.
    ///
    /// `duration` becomes the length of all measured phases together; each keeps its part of it. Lines and steps
    /// stretch with their phase, sines and spikes keep their period, series are cut off. Faults that are due after a share of
    /// it move. `rate` becomes the
    /// level in sessions per second: the highest level of the phases becomes this rate and the others follow in
    /// proportion, so that ramps stay ramps. A closed load turns into an open one with constant spacing, because a
    /// number of users has no rate; its highest number of users stays the least number of connections.
    ///
    /// # Errors
    /// Where the rate is not above 0, or the time too short, also for a fault to be over, or the load has no level to scale, or a series does not
    /// last so long. Where session kinds have loads of their own: for any rate, and for a time unless all are
    /// measured at the same time.
    pub fn override_load(
        &mut self,
        rate: Option<f64>,
        duration: Option<Duration>,
    ) -> Result<(), OverrideError> {
        if let Some(duration) = duration {
            self.override_duration(duration)?;
        }
        if let Some(rate) = rate {
            self.override_rate(rate)?;
        }
        Ok(())
    }

    /// The highest level of the load, all session kinds together: sessions that arrive each second, or users.
    pub fn level(&self) -> f64 {
        self.load.streams().iter().map(Stream::peak).sum()
    }

    /// Replaces the load by one level that is held, in its own unit: after a time at the calm level, if one is given, and the
    /// warm-up. Session kinds with loads of their own keep their shares of it. Faults and a bound on the number of sessions
    /// are taken away.
    ///
    /// # Errors
    /// Where some kinds arrive at a rate and others are users, or there is no level to scale.
    pub fn hold_at(
        &mut self,
        level: f64,
        calm: Option<(f64, Duration)>,
        warm_up: Duration,
        measured: Duration,
    ) -> Result<(), OverrideError> {
        let highest = self.level();
        if highest <= 0.0 {
            return Err(OverrideError("the scenario's load is always 0; there is nothing to scale".into()));
        }
        let streams = self.load.streams();
        let closed = streams.iter().filter(|stream| stream.model.is_closed()).count();
        if closed > 0 && closed < streams.len() {
            let reason = "some session kinds arrive at a rate and others are users, so that there is no one level to \
                          raise; give all of them a rate, or all of them users";
            return Err(OverrideError(reason.into()));
        }
        let phases = |part: f64| {
            let phase = |name: &str, duration: Duration, level: f64, measured| Phase {
                name: name.into(),
                duration,
                from: level * part,
                to: level * part,
                measured,
                curve: Curve::Line,
            };
            let calm = calm.map(|(level, duration)| phase("calm", duration, level, false));
            let held = [phase("warm-up", warm_up, level, false), phase("hold", measured, level, true)];
            calm.into_iter().chain(held).collect::<Vec<Phase>>()
        };
        for kind in &mut self.load.kinds {
            let peak = kind.phases.iter().map(Phase::peak).fold(0.0, f64::max);
            kind.phases = phases(peak / highest);
        }
        // where kinds have loads of their own these are a timetable alone
        self.load.phases = phases(if self.load.kinds.is_empty() { 1.0 } else { 0.0 });
        let at_once = self.limits.pipeline.max(self.limits.streams);
        self.limits.connections = self.limits.connections.max(self.load.most_users().div_ceil(at_once));
        self.limits.sessions = None;
        self.faults.clear();
        Ok(())
    }

    /// Replaces the number of users: the highest of the phases becomes this one and the others follow in proportion. Where
    /// sessions arrive at a rate it is the number of connections, which are made beforehand and used in turn.
    ///
    /// # Errors
    /// Where session kinds have loads of their own, or there are no users to scale.
    pub fn override_users(&mut self, users: u32) -> Result<(), OverrideError> {
        if !self.load.kinds.is_empty() {
            let reason = "each session kind has a load of its own, so --users cannot tell whose to change; change \
                          them in the scenario, or with --set";
            return Err(OverrideError(reason.into()));
        }
        let count = usize::try_from(users).unwrap_or(usize::MAX);
        if !self.load.model.is_closed() {
            self.limits.connections = count;
            self.limits.connections_named = true;
            return Ok(());
        }
        let highest = self.load.phases.iter().map(Phase::peak).fold(0.0, f64::max);
        if highest <= 0.0 {
            return Err(OverrideError("the scenario never has a user; there is nothing to scale".into()));
        }
        self.load.phases.iter_mut().for_each(|phase| phase.scale(f64::from(users) / highest));
        let at_once = self.limits.pipeline.max(self.limits.streams);
        self.limits.connections = self.limits.connections.max(count.div_ceil(at_once));
        Ok(())
    }

    fn override_duration(&mut self, duration: Duration) -> Result<(), OverrideError> {
        if duration < MEASURED_MIN {
            let least = Time(MEASURED_MIN);
            return Err(OverrideError(format!(
                "{} is too short to measure; at least {least}",
                Time(duration)
            )));
        }
        let load = &mut self.load;
        let Some(common) = window(&load.phases).filter(|(first, last)| last > first) else {
            return Err(OverrideError("the scenario measures nothing whose time could be changed".into()));
        };
        if load.kinds.iter().any(|kind| window(&kind.phases) != Some(common)) {
            let reason = "the loads of the session kinds are not all measured at the same time, so --for cannot \
                          tell which to change; change them in the scenario, or with --set";
            return Err(OverrideError(reason.into()));
        }
        let factor = duration.as_secs_f64() / (common.1 - common.0).as_secs_f64();
        let own = load.kinds.iter_mut().flat_map(|kind| &mut kind.phases);
        for phase in load.phases.iter_mut().chain(own).filter(|phase| phase.measured) {
            stretch(phase, factor)?;
        }
        self.move_faults(duration)
    }

    /// Faults that are due after a share of the measured window move with it, and must still fit.
    fn move_faults(&mut self, duration: Duration) -> Result<(), OverrideError> {
        for fault in &mut self.faults {
            fault.at = fault.share.map_or(fault.at, |share| duration.mul_f64(share));
            if fault.at >= duration {
                return Err(OverrideError(format!(
                    "`{fault}` is due {} after measuring begins, but --for leaves {}",
                    Time(fault.at),
                    Time(duration)
                )));
            }
            let services = self.services.iter().chain([&self.system]);
            if let Some(takes) =
                fault.roll_takes_at_least(services).filter(|takes| fault.at + *takes > duration)
            {
                return Err(OverrideError(format!(
                    "`{fault}`, {} after measuring begins, takes at least {} and would not be over within --for {}; give a longer --for",
                    Time(fault.at),
                    Time(takes),
                    Time(duration)
                )));
            }
            if let (Some(share), Some(lasts)) = (fault.share, fault.lasts)
                && fault.at + lasts > duration
            {
                // to the millisecond before it is rounded up, as 1 - 80 % is a little less than 20 %
                let least_ms = (lasts.as_secs_f64() / (1.0 - share) * 1e3).round();
                let least = Duration::from_secs((least_ms / 1e3).ceil() as u64);
                return Err(OverrideError(format!(
                    "`{fault}`, {} after measuring begins, would not be over within --for {}; give it {} or more",
                    Time(fault.at),
                    Time(duration),
                    Time(least)
                )));
            }
        }
        self.faults.sort_by_key(|fault| fault.at);
        for (index, fault) in self.faults.iter().enumerate() {
            if let Some(other) = self.faults[..index].iter().find(|other| fault.overlaps(other)) {
                return Err(OverrideError(format!(
                    "with --for {} `{fault}` would begin before `{other}` is over; give it longer",
                    Time(duration)
                )));
            }
        }
        Ok(())
    }

    fn override_rate(&mut self, rate: f64) -> Result<(), OverrideError> {
        if !rate.is_finite() || rate <= 0.0 {
            return Err(OverrideError(format!(
                "{} is not a rate to drive with; it must be above 0",
                Rate(rate)
            )));
        }
        if !self.load.kinds.is_empty() {
            let reason = "each session kind has a load of its own, so --rate cannot tell whose to change; change \
                          them in the scenario, or with --set";
            return Err(OverrideError(reason.into()));
        }
        let highest = self.load.phases.iter().map(Phase::peak).fold(0.0, f64::max);
        if highest <= 0.0 {
            return Err(OverrideError("the scenario's load is always 0; there is nothing to scale".into()));
        }
        self.load.phases.iter_mut().for_each(|phase| phase.scale(rate / highest));
        if self.load.model.is_closed() {
            self.load.model = LoadModel::Open(Spacing::Constant);
        }
        Ok(())
    }
}

/// Makes a phase longer or shorter. Lines and steps stretch; sines and spikes keep their period; a series keeps its
/// times and can only be cut off.
fn stretch(phase: &mut Phase, factor: f64) -> Result<(), OverrideError> {
    phase.duration = phase.duration.mul_f64(factor);
    if let Curve::Series(series) = &phase.curve
        && factor > 1.0
        && phase.duration.as_secs_f64() > series.length_s * (1.0 + 1e-9)
    {
        let length = Time(Duration::from_secs_f64(series.length_s));
        return Err(OverrideError(format!(
            "the phase {} replays a file of rates that lasts {length}; --for can only shorten it",
            phase.name
        )));
    }
    if !are_few(&phase.curve, phase.duration) {
        return Err(OverrideError(format!(
            "the phase {} would have too many spikes for {}",
            phase.name,
            Time(phase.duration)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn plan(load: &str) -> Plan {
        let text = format!("sessions:\n  a:\n    steps:\n      - GET: /\nload: {load}\n");
        crate::load_text("t.yaml", &text, Path::new("."), &[]).unwrap()
    }

    #[test]
    fn a_duration_is_shared_out_in_proportion() {
        let mut plan = plan("{rate: 10/s, phases: [{name: warm-up, for: 5s}, {for: 10s}, {for: 30s}]}");
        plan.override_load(None, Some(Duration::from_secs(4))).unwrap();
        let times: Vec<_> = plan.load.phases.iter().map(|phase| phase.duration.as_millis()).collect();
        assert_eq!(times, [5_000, 1_000, 3_000]);
        assert!(
            plan.override_load(None, Some(Duration::ZERO)).unwrap_err().to_string().contains("too short")
        );
    }

    #[test]
    fn faults_that_are_due_after_a_share_move_and_must_fit() {
        let text = "system: {store: kv}\nstores: {kv: {product: redis}}\nsessions: {a: {steps: [{redis: [PING]}]}}\n\
                    load: {users: 1, warm-up: 1s, hold: 30s}\nfaults:\n\
                    - {at: 80%, kill: kv, restart after: 1s}\n- {at: 20%, kill: kv, restart after: 2s}\n";
        let plan = crate::load_text("t.yaml", text, Path::new("."), &[]).unwrap();
        let at = |plan: &Plan| plan.faults.iter().map(|fault| fault.at.as_millis()).collect::<Vec<_>>();
        assert_eq!(at(&plan), [6_000, 24_000]);
        let moved = |duration: &str| {
            let mut plan = plan.clone();
            let duration = crate::units::parse_duration(duration).unwrap();
            plan.override_load(None, Some(duration)).map(|()| at(&plan)).map_err(|error| error.to_string())
        };
        assert_eq!(moved("10s").unwrap(), [2_000, 8_000]);
        let error = moved("4s").unwrap_err();
        assert!(
            error.contains("`kill kv, restart after 1s`") && error.contains("give it 5s or more"),
            "{error}"
        );
        let error = moved("1s").unwrap_err();
        assert!(error.contains("would not be over within --for 1s"), "{error}");
    }

    #[test]
    fn a_rate_scales_all_phases_and_opens_a_closed_load() {
        let mut plan = plan("{users: 100, ramp: 2s, hold: 10s}");
        plan.override_load(Some(500.0), None).unwrap();
        assert_eq!(plan.load.model, LoadModel::Open(Spacing::Constant));
        let levels: Vec<_> = plan.load.phases.iter().map(|phase| (phase.from, phase.to)).collect();
        assert_eq!(levels, [(0.0, 500.0), (500.0, 500.0)]);
        assert!(plan.override_load(Some(0.0), None).is_err());
        assert!(plan.override_load(Some(f64::NAN), None).is_err());
    }

    #[test]
    fn users_scale_all_phases_and_of_arrivals_they_are_connections() {
        let mut closed = plan("{users: 100, ramp: 2s, hold: 10s}");
        closed.override_users(2_000).unwrap();
        let levels: Vec<_> = closed.load.phases.iter().map(|phase| (phase.from, phase.to)).collect();
        assert_eq!(levels, [(0.0, 2_000.0), (2_000.0, 2_000.0)]);
        assert_eq!((closed.limits.connections, closed.limits.connections_named), (2_000, false));
        let mut open = plan("{rate: 10/s, hold: 5s}");
        open.override_users(7).unwrap();
        assert_eq!((open.limits.connections, open.limits.connections_named), (7, true));
        assert_eq!(open.load.phases[0].to, 10.0);
        let mut both = plan("{sessions: {a: {users: 5, hold: 2s}}}");
        assert!(both.override_users(7).unwrap_err().to_string().contains("--users cannot tell whose"));
    }

    #[test]
    fn a_level_is_held_after_a_calm_one() {
        let (second, ten) = (Duration::from_secs(1), Duration::from_secs(10));
        let mut open =
            plan("{spacing: poisson, phases: [{for: 5s, rate: 10/s}, {for: 10s, rate: 5/s to 40/s}]}");
        assert_eq!(open.level(), 40.0);
        open.hold_at(300.0, Some((20.0, second)), second, ten).unwrap();
        let levels =
            |phases: &[Phase]| phases.iter().map(|of| (of.from, of.to, of.measured)).collect::<Vec<_>>();
        let wanted = [(20.0, 20.0, false), (300.0, 300.0, false), (300.0, 300.0, true)];
        assert_eq!(levels(&open.load.phases), wanted);
        assert_eq!((open.load.model, open.level()), (LoadModel::Open(Spacing::Poisson), 300.0));
        let mut closed = plan("{users: 10, hold: 5s}");
        closed.hold_at(2_000.0, None, second, ten).unwrap();
        assert_eq!(levels(&closed.load.phases), [(2_000.0, 2_000.0, false), (2_000.0, 2_000.0, true)]);
        assert_eq!(closed.limits.connections, 2_000);
    }

    #[test]
    fn kinds_keep_their_shares_of_a_level_that_is_held() {
        let of = |a: &str, b: &str| {
            let text = format!(
                "sessions:\n  a: {{steps: [GET: /]}}\n  b: {{steps: [GET: /b]}}\nload: {{sessions: {{a: {a}, b: {b}}}}}\n"
            );
            crate::load_text("t.yaml", &text, Path::new("."), &[]).unwrap()
        };
        let second = Duration::from_secs(1);
        let mut plan = of("{rate: 30/s, hold: 5s}", "{rate: 10/s, hold: 5s}");
        plan.hold_at(80.0, None, second, second).unwrap();
        let levels: Vec<f64> = plan.load.kinds.iter().map(|kind| kind.phases[1].to).collect();
        assert_eq!((levels, plan.level()), (vec![60.0, 20.0], 80.0));
        assert_eq!(plan.load.phases[1].to, 0.0);
        let mut mixed = of("{rate: 30/s, hold: 5s}", "{users: 10, hold: 5s}");
        let error = mixed.hold_at(80.0, None, second, second).unwrap_err().to_string();
        assert!(error.contains("no one level to raise"), "{error}");
    }

    #[test]
    fn poisson_stays_poisson() {
        let mut plan = plan("{rate: 10/s, spacing: poisson, hold: 10s}");
        plan.override_load(Some(20.0), Some(Duration::from_secs(5))).unwrap();
        assert_eq!(plan.load.model, LoadModel::Open(Spacing::Poisson));
        assert_eq!((plan.load.phases[0].to, plan.load.phases[0].duration.as_secs()), (20.0, 5));
    }
}
