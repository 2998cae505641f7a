//! Scripts of wrk: made ready before the load, told of its figures after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tidemark_drive::{Address, Protocol, Target};
use tidemark_record::{Outcome, RunWriter, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{LoadModel, ScriptPlan};
use tidemark_script::{Errors, Figures, Place, Wrk};

use super::{Begin, Begun, EndedScript, Said, Script};
use crate::error::LabError;

/// Longest that a script may be at work without coming back, where that is looked at.
const LONGEST_TURN: Duration = Duration::from_secs(30);

/// A script that goes with the load.
struct WrkScript {
    /// None once the load is over.
    wrk: Option<Wrk>,
    /// Of each thread, the turn that the script was in when that was looked at, and since when.
    turns: Vec<(Option<u64>, Instant)>,
}

/// Runs a script up to the load, and has the drive's sessions ask it.
///
/// # Errors
/// The script's error, with its line.
pub(super) fn begin(script: &ScriptPlan, begin: &Begin<'_>) -> Result<Begun, LabError> {
    let mut options = begin.options.clone();
    let system = &options.targets[0];
    let connections = begin.plan.limits.connections;
    let place = Place { connections, ..place(system, script, begin.prints_to_stderr)? };
    let failed = |error: tidemark_script::ScriptError| LabError::Usage(error.to_string());
    let (of_thread, threads) = (script.clone(), options.threads);
    let made = super::apart(script, begin.stop_request, move || Wrk::new(&of_thread, threads, place))?;
    let wrk = made.map_err(failed)?;
    let first_other = options.targets.len() as u16;
    let others = wrk.other_addresses();
    let at = |address| Target { address: Address::Tcp(address), others: Vec::new(), ..system.clone() };
    let others: Vec<Target> = others.into_iter().map(at).collect();
    options.programs = Some(wrk.programs(first_other).map_err(failed)?);
    options.targets.extend(others);
    let turns = vec![(None, Instant::now()); options.threads];
    Ok((Box::new(WrkScript { wrk: Some(wrk), turns }), options))
}

/// Compiles a script, and runs nothing of it.
///
/// # Errors
/// The first mistake, with its line.
pub(super) fn check(script: &ScriptPlan) -> Result<(), LabError> {
    tidemark_script::check(script).map_err(|error| LabError::Usage(error.to_string()))
}

impl Script for WrkScript {
    /// Finds a script that does not come back: its thread could never be waited for.
    ///
    /// # Errors
    /// Once it has been at work for too long.
    fn look(&mut self) -> Result<(), LabError> {
        let now = Instant::now();
        for (known, at_work) in self.turns.iter_mut().zip(self.wrk.iter().flat_map(Wrk::at_work)) {
            if known.0 != at_work || at_work.is_none() {
                *known = (at_work, now);
            }
            if now.duration_since(known.1) > LONGEST_TURN {
                return Err(LabError::Script(format!(
                    "the script has not come back for {} s",
                    LONGEST_TURN.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// The plan that is driven: where the script makes several requests at once, so many users share each connection.
    fn driven(&self, plan: &Arc<Plan>) -> Arc<Plan> {
        let at_once = self.wrk.as_ref().map_or(1, Wrk::at_once);
        if at_once == 1 {
            return Arc::clone(plan);
        }
        let mut plan = Plan::clone(plan);
        plan.limits.pipeline = at_once;
        if plan.load.model == LoadModel::Closed {
            for phase in &mut plan.load.phases {
                phase.from *= at_once as f64;
                phase.to *= at_once as f64;
            }
        }
        Arc::new(plan)
    }

    fn end(mut self: Box<Self>, writer: &RunWriter<'_>, threads: usize) -> Option<EndedScript> {
        let per_s = writer.seconds().iter().map(|second| second.achieved_per_s);
        let figures = figures(writer.totals(), per_s, threads);
        let wrk = self.wrk.take()?;
        Some(EndedScript(Arc::new(move || {
            let status = wrk.done(Figures::clone(&figures)).map_err(|error| error.to_string())?;
            Ok(Said { status, ..Said::default() })
        })))
    }
}

impl Drop for WrkScript {
    fn drop(&mut self) {
        // a state that is at work is its thread's for as long as the process lives
        if let Some(wrk) = self.wrk.take_if(|wrk| wrk.at_work().iter().any(Option::is_some)) {
            std::mem::forget(wrk);
        }
    }
}

fn place(system: &Target, script: &ScriptPlan, prints_to_stderr: bool) -> Result<Place, LabError> {
    let as_written = match system.protocol {
        Protocol::Http1 => true,
        Protocol::Http2(_) => false,
        _ => return Err(LabError::Usage(format!("{}: a script of wrk speaks HTTP", script.file))),
    };
    let scheme = if system.tls.is_some() { "https" } else { "http" };
    let (host, port) = match system.authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port.parse().ok())
        }
        _ => (system.authority.as_str(), None),
    };
    let address = match &system.address {
        Address::Tcp(address) => Some(*address),
        _ => None,
    };
    Ok(Place {
        scheme: scheme.to_owned(),
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
        base_path: system.base_path.clone(),
        origin: format!("{scheme}://{}", system.authority),
        prints_to_stderr,
        connections: 0,
        address,
        as_written,
    })
}

fn figures(totals: &Totals, per_s: impl Iterator<Item = f64>, threads: usize) -> Figures {
    let measured = |outcome: Outcome| totals.all.measured[outcome as usize];
    let answered: u64 = [Outcome::Ok, Outcome::Status, Outcome::Check].map(measured).iter().sum();
    let mut rates = new_histogram();
    for per_s in per_s {
        rates.saturating_record_n((per_s / threads as f64).round() as u64, threads as u64);
    }
    let window_s = totals.window.map_or(0.0, |window| window.length_s());
    if rates.is_empty() && window_s > 0.0 {
        // shorter than a second
        rates.saturating_record_n(
            (answered as f64 / window_s / threads as f64).round() as u64,
            threads as u64,
        );
    }
    let mut latency = new_histogram();
    let known =
        [Outcome::Status, Outcome::Check].iter().filter_map(|kind| totals.all.known_after_us.get(kind));
    for times in known.chain([&totals.all.response_time_us]) {
        for at in times.iter_recorded() {
            latency.saturating_record_n(at.value_iterated_to(), at.count_at_value());
        }
    }
    Figures {
        duration_us: totals.window.map_or(0, |window| window.end_us - window.start_us),
        requests: answered,
        bytes: totals.all.body_bytes,
        errors: Errors {
            connect: measured(Outcome::Connect),
            read: measured(Outcome::Reset) + measured(Outcome::Protocol),
            write: measured(Outcome::Variable),
            status: measured(Outcome::Status),
            timeout: measured(Outcome::Timeout) + measured(Outcome::Unfinished),
        },
        latency,
        rates,
    }
}

/// Values up to an hour in microseconds, with three digits.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap_or_else(|_| unreachable!("these bounds are good"))
}
