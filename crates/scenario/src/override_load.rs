//! What `--rate` and `--for` of the command line do to a load.

use std::time::Duration;

use crate::plan::{LoadModel, Plan, Spacing};
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
    /// `duration` becomes the length of all measured phases together; each keeps its part of it. `rate` becomes the
    /// level in sessions per second: the highest level of the phases becomes this rate and the others follow in
    /// proportion, so that ramps stay ramps. A closed load turns into an open one with constant spacing, because a
    /// number of users has no rate; its highest number of users stays the least number of connections.
    ///
    /// # Errors
    /// Where the rate is not above 0, or the time too short, or the load has no level to scale.
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

    fn override_duration(&mut self, duration: Duration) -> Result<(), OverrideError> {
        if duration < MEASURED_MIN {
            let least = Time(MEASURED_MIN);
            return Err(OverrideError(format!(
                "{} is too short to measure; at least {least}",
                Time(duration)
            )));
        }
        let measured = || self.load.phases.iter().filter(|phase| phase.measured);
        let total: Duration = measured().map(|phase| phase.duration).sum();
        if total.is_zero() {
            return Err(OverrideError("the scenario measures nothing whose time could be changed".into()));
        }
        let factor = duration.as_secs_f64() / total.as_secs_f64();
        for phase in self.load.phases.iter_mut().filter(|phase| phase.measured) {
            phase.duration = phase.duration.mul_f64(factor);
        }
        Ok(())
    }

    fn override_rate(&mut self, rate: f64) -> Result<(), OverrideError> {
        if !rate.is_finite() || rate <= 0.0 {
            return Err(OverrideError(format!(
                "{} is no rate to drive with; it must be above 0",
                Rate(rate)
            )));
        }
        let highest = self.load.phases.iter().map(|phase| phase.from.max(phase.to)).fold(0.0, f64::max);
        if highest <= 0.0 {
            return Err(OverrideError("the scenario's load is always 0; there is nothing to scale".into()));
        }
        let factor = rate / highest;
        for phase in &mut self.load.phases {
            phase.from *= factor;
            phase.to *= factor;
        }
        if self.load.model == LoadModel::Closed {
            self.load.model = LoadModel::Open(Spacing::Constant);
        }
        Ok(())
    }
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
    fn poisson_stays_poisson() {
        let mut plan = plan("{rate: 10/s, spacing: poisson, hold: 10s}");
        plan.override_load(Some(20.0), Some(Duration::from_secs(5))).unwrap();
        assert_eq!(plan.load.model, LoadModel::Open(Spacing::Poisson));
        assert_eq!((plan.load.phases[0].to, plan.load.phases[0].duration.as_secs()), (20.0, 5));
    }
}
