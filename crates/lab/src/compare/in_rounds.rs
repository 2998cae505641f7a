//! Comparisons that run as many rounds as they need: A B B A, or B A A B by a coin, until whoever looks has seen enough
//! or the time is up.
//!
//! A round is symmetric, so that what changes evenly meanwhile meets all alike. That its order is drawn makes all orders
//! equally likely, whatever the machine does: where there is no difference, none is favoured (Fisher, The Design of
//! Experiments, 1935).

use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_record::{ComparisonFile, InRounds, Part};
use tidemark_scenario::{Comparison, Plan};

use super::{CompareOutcome, OneRun, Series, Turn, recorded, unwritten};
use crate::{EXIT_INTERRUPTED, EXIT_INVALID, LabError, RunOptions};

/// The next round is taken to need so much longer than the longest before.
const SLACK: f64 = 1.05;

/// How long a comparison may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// No round begins that would not end within this.
    pub budget: Duration,
    /// Rounds without which nothing can be said; they must fit.
    pub least: u64,
    /// Most rounds, if there is such a bound.
    pub most: Option<u64>,
}

/// What somebody has seen who looked at the rounds until now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Looked {
    /// Whether it is enough.
    pub settled: bool,
    /// How often a claim that is made now is wrong, 0 to 1: see [`InRounds::level`].
    pub level: f64,
}

/// Runs everything that a comparison names in rounds, each with its own load. `run` carries one run out; it gives
/// nothing where the user stopped it before anything was measured. After each round `look` is shown what ran and the directory,
/// and told whether it was the last; it decides whether that is enough.
///
/// # Errors
/// That the rounds without which nothing can be said do not fit, what a run failed with, or that a directory cannot be
/// written. What has run until then is kept. A run that fails once each side has run ends the comparison with what it has by
/// then: its directory says why, and the exit status is [`EXIT_INVALID`].
pub fn compare_in_rounds<E: From<LabError> + std::fmt::Display>(
    comparison: &Comparison,
    options: &RunOptions,
    bounds: Bounds,
    run: &mut OneRun<'_, E>,
    look: &mut dyn FnMut(&ComparisonFile, &Path, bool) -> Result<Looked, E>,
) -> Result<CompareOutcome, E> {
    let round = comparison.sides.iter().map(|side| 2 * length(&side.plan)).sum();
    check(round, bounds)?;
    recorded(comparison, options, &mut |series| series.rounds(round, bounds, run, look))
}

/// Length of a plan's load.
pub(super) fn length(plan: &Plan) -> Duration {
    let streams = plan.load.streams();
    let lengths =
        streams.iter().map(|stream| stream.phases.iter().map(|phase| phase.duration).sum::<Duration>());
    lengths.max().unwrap_or_default()
}

fn check(round: Duration, bounds: Bounds) -> Result<(), LabError> {
    let least = round.saturating_mul(u32::try_from(bounds.least).unwrap_or(u32::MAX));
    if bounds.most.is_some_and(|most| most < bounds.least) {
        return Err(LabError::Usage(format!("at least {} rounds are needed to say anything", bounds.least)));
    }
    if least > bounds.budget {
        return Err(LabError::Usage(format!(
            "a round takes {:.0} s and more, and {} are needed to say anything, which do not fit into --budget {:.0}s; give \
             --budget {:.0}s or more, or make the runs shorter with --for",
            round.as_secs_f64(),
            bounds.least,
            bounds.budget.as_secs_f64(),
            (least.as_secs_f64() * 1.2).ceil()
        )));
    }
    Ok(())
}

impl Series<'_> {
    fn rounds<E: From<LabError> + std::fmt::Display>(
        &mut self,
        planned: Duration,
        bounds: Bounds,
        run: &mut OneRun<'_, E>,
        look: &mut dyn FnMut(&ComparisonFile, &Path, bool) -> Result<Looked, E>,
    ) -> Result<(), E> {
        self.rates = vec![Vec::new(); self.comparison.sides.len()];
        let mut random = self.options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let (begin, mut longest) = (Instant::now(), planned);
        for round in 1.. {
            let began = begin.elapsed();
            let ran = self.round(round, longest, bounds, &mut random, run);
            if let Err(error) = &ran
                && self.each_has_run()
            {
                // there is something to show, were it only the figures of too few rounds
                self.record.stopped = Some(self.comparison.secrets.masked(&error.to_string()));
                self.status = EXIT_INVALID;
                let level = look(&self.record, self.dir, true)?.level;
                self.went(level, begin.elapsed(), bounds);
                return Ok(());
            }
            if !ran? {
                self.record.stopped = Some("stopped by the user".into());
                // the exit status says it, too
                self.status = EXIT_INTERRUPTED;
                let level = look(&self.record, self.dir, true)?.level;
                self.went(level, begin.elapsed(), bounds);
                return Ok(());
            }
            let took = begin.elapsed();
            longest = if round == 1 { took } else { longest.max(took - began) };
            let fits = took + longest.mul_f64(SLACK) <= bounds.budget;
            // too few rounds are worth nothing, however long they take
            let goes_on = (fits || round < bounds.least) && bounds.most.is_none_or(|most| round < most);
            let looked = look(&self.record, self.dir, !goes_on)?;
            self.went(looked.level, took, bounds);
            self.record.write(self.dir).map_err(unwritten)?;
            if looked.settled || !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether there is a run of each side.
    fn each_has_run(&self) -> bool {
        let has_run = |side: usize| self.record.runs.iter().any(|run| run.side == side);
        (0..self.comparison.sides.len()).all(has_run)
    }

    /// Notes how it went until now.
    fn went(&mut self, level: f64, took: Duration, bounds: Bounds) {
        let [took_s, budget_s] = [took, bounds.budget].map(|time| time.as_secs_f64());
        self.record.in_rounds = Some(InRounds { level, took_s, budget_s, rounds_max: bounds.most });
    }

    /// Each once in an order that is drawn, and once in the other; whether the next round may begin.
    fn round<E: From<LabError>>(
        &mut self,
        round: u64,
        longest: Duration,
        bounds: Bounds,
        random: &mut fastrand::Rng,
        run: &mut OneRun<'_, E>,
    ) -> Result<bool, E> {
        let mut order: Vec<usize> = (0..self.comparison.sides.len()).collect();
        random.shuffle(&mut order);
        let back = order.clone();
        let rounds = bounds.budget.as_secs_f64() / longest.as_secs_f64().max(1e-3);
        let rounds = (rounds as u64).max(round).min(bounds.most.unwrap_or(u64::MAX));
        let of = usize::try_from(rounds).unwrap_or(usize::MAX).saturating_mul(2 * order.len());
        for side in order.into_iter().chain(back.into_iter().rev()) {
            let name = self.comparison.sides[side].name.clone();
            let done = self.record.runs.len();
            let planned = bounds.budget;
            let turn = Turn { side: name, part: Part::OwnLoad, round, rate_per_s: None, done, of, planned };
            if !self.one(side, &turn, run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{comparison, finished};
    use tidemark_record::summary::Status;

    fn options(out: &Path) -> RunOptions {
        RunOptions { out: Some(out.to_owned()), remember: false, seed: Some(7), ..RunOptions::default() }
    }

    const BOUNDS: Bounds = Bounds { budget: Duration::from_secs(3_600), least: 3, most: None };

    /// Which side ran in which round, and what was written down.
    fn ran(out: &Path, bounds: Bounds, enough_after: u64) -> (Vec<(u64, String)>, ComparisonFile) {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        let (mut seen, mut looks) = (Vec::new(), 0);
        compare_in_rounds::<LabError>(
            &comparison,
            &options(out),
            bounds,
            &mut |turn, _, options| {
                seen.push((turn.round, turn.side.clone()));
                Ok(Some(finished(&options.out.unwrap(), 1_000.0, Status::Pass, false)))
            },
            &mut |record, _, is_last| {
                looks += 1;
                assert_eq!(record.runs.len() as u64, 4 * looks);
                assert_eq!(is_last, bounds.most == Some(looks));
                Ok(Looked { settled: looks == enough_after, level: 0.01 })
            },
        )
        .unwrap();
        (seen, ComparisonFile::open(out).unwrap())
    }

    #[test]
    fn a_round_is_symmetric_and_its_order_drawn() {
        let temp = tempfile::tempdir().unwrap();
        let (seen, record) = ran(&temp.path().join("out"), BOUNDS, 12);
        assert_eq!(seen.len(), 48);
        let mut begun = std::collections::BTreeSet::new();
        for round in seen.chunks(4) {
            let names: Vec<&str> = round.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!((names[0], names[1]), (names[3], names[2]), "{names:?}");
            assert_ne!(names[0], names[1]);
            begun.insert(names[0].to_owned());
        }
        assert_eq!(begun.len(), 2, "each begins some of the rounds");
        assert_eq!((record.runs[47].round, record.runs.len()), (12, 48));
        let in_rounds = record.in_rounds.unwrap();
        assert_eq!((in_rounds.level, in_rounds.budget_s), (0.01, 3_600.0));
    }

    #[test]
    fn it_ends_with_the_last_round_that_is_allowed() {
        let temp = tempfile::tempdir().unwrap();
        let (seen, _) = ran(&temp.path().join("out"), Bounds { most: Some(3), ..BOUNDS }, 99);
        assert_eq!(seen.len(), 12);
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_runs() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        for (bounds, says) in [
            (Bounds { budget: Duration::from_secs(11), ..BOUNDS }, "do not fit into --budget 11s"),
            (Bounds { most: Some(2), ..BOUNDS }, "at least 3 rounds"),
        ] {
            let out = temp.path().join("out");
            let error = compare_in_rounds::<LabError>(
                &comparison,
                &options(&out),
                bounds,
                &mut |_, _, _| panic!("nothing runs"),
                &mut |_, _, _| panic!("there is nothing to look at"),
            );
            let error = error.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(!out.exists());
        }
    }

    #[test]
    fn a_side_that_cannot_go_on_leaves_what_ran_before_it() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        // with the second of the four runs of a round each side has run
        for (ends_at, is_kept) in [(0, false), (1, false), (2, true), (9, true), (13, true)] {
            let out = temp.path().join(format!("out-{ends_at}"));
            let compared = compare_in_rounds::<LabError>(
                &comparison,
                &options(&out),
                BOUNDS,
                &mut |turn, _, options| match turn.done == ends_at {
                    true => Err(LabError::Measure("two ended; its last lines: out of memory".into())),
                    false => Ok(Some(finished(&options.out.unwrap(), 10.0, Status::Pass, false))),
                },
                &mut |_, _, _| Ok(Looked { settled: false, level: 0.05 }),
            );
            let status = compared.map(|compared| compared.exit_status);
            assert_eq!(status.ok(), is_kept.then_some(EXIT_INVALID));
            let record = ComparisonFile::open(&out).unwrap();
            assert_eq!(record.runs.len(), ends_at);
            assert!(record.stopped.unwrap().ends_with("out of memory"));
            assert_eq!(record.in_rounds.is_some(), is_kept, "it is shown as one in rounds");
        }
    }

    #[test]
    fn whoever_stops_it_keeps_what_ran() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        let out = temp.path().join("out");
        let compared = compare_in_rounds::<LabError>(
            &comparison,
            &options(&out),
            BOUNDS,
            &mut |turn, _, options| {
                Ok(Some(finished(&options.out.unwrap(), 10.0, Status::Pass, turn.done == 5)))
            },
            &mut |_, _, _| Ok(Looked { settled: false, level: 0.05 }),
        );
        assert_eq!(compared.unwrap().exit_status, EXIT_INTERRUPTED);
        let record = ComparisonFile::open(&out).unwrap();
        assert_eq!((record.runs.len(), record.stopped.as_deref()), (6, Some("stopped by the user")));
    }

    #[test]
    fn what_was_stopped_before_anything_was_measured_is_no_run_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        for ends_at in [0, 1, 5] {
            let out = temp.path().join(format!("out-{ends_at}"));
            let compared = compare_in_rounds::<LabError>(
                &comparison,
                &options(&out),
                BOUNDS,
                &mut |turn, _, options| {
                    let ran = finished(&options.out.unwrap(), 10.0, Status::Pass, false);
                    Ok((turn.done != ends_at).then_some(ran))
                },
                &mut |_, _, _| Ok(Looked { settled: false, level: 0.05 }),
            );
            assert_eq!(compared.unwrap().exit_status, EXIT_INTERRUPTED);
            let record = ComparisonFile::open(&out).unwrap();
            assert_eq!(
                (record.runs.len(), record.stopped.as_deref()),
                (ends_at, Some("stopped by the user"))
            );
            assert_eq!(record.in_rounds.unwrap().level, 0.05, "it is shown as one in rounds");
        }
    }
}
