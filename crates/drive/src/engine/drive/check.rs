//! What the threads rely on without looking again.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Curve, Op, PARALLEL_REQUESTS_MAX, Phase, SessionKind};

use super::allotment::plans;
use crate::DriveOptions;
use crate::engine::{codes, programs};
use crate::error::{DriveError, MOST_THREADS};
use crate::session::Weights;
use crate::session::arrivals::{MOST_PIECES, pieces_of};

/// Whether a drive can begin.
pub(super) fn check(plan: &Plan, options: &DriveOptions) -> Result<(), DriveError> {
    if !(1..=MOST_THREADS).contains(&options.threads) {
        return Err(DriveError::Threads(options.threads));
    }
    let (end, all) = options.place(options.threads);
    let last = options.number(options.threads);
    if end > all || all.max(last) > MOST_THREADS {
        return Err(DriveError::Threads(all.max(end).max(last)));
    }
    let load = &plan.load;
    let own = load.kinds.iter().all(|one| one.kind < plan.sessions.len()) && !load.kinds.is_empty();
    if !own && !Weights::new(&plan.sessions).any() {
        return Err(DriveError::Nothing("session with a weight above 0"));
    }
    if load.phases.is_empty() {
        return Err(DriveError::Nothing("phase of load"));
    }
    load.phases.iter().chain(load.kinds.iter().flat_map(|kind| &kind.phases)).try_for_each(check_phase)?;
    if let Some(limit) = plan.limits.in_flight.filter(|limit| limit.most < all) {
        return Err(DriveError::SessionLimit { limit: limit.most, threads: all });
    }
    plan.sessions.iter().try_for_each(|kind| check_ops(plan, kind))?;
    if options.targets.is_empty() {
        return Err(DriveError::Nothing("target"));
    }
    if let Some(request) = plan.requests.iter().find(|one| usize::from(one.target) >= options.targets.len()) {
        return Err(DriveError::Target(request.target));
    }
    programs::check(plan, &plan.sessions, options.programs.as_ref(), &options.targets)?;
    codes::check(&plan.sessions, options.codes.as_ref())?;
    let plans = plans(plan, &options.targets);
    plans.iter().zip(&options.targets).try_for_each(|(plan, target)| target.protocol.check(plan))
}

fn check_phase(phase: &Phase) -> Result<(), DriveError> {
    for level in [phase.from, phase.to, phase.peak()] {
        if !level.is_finite() || level < 0.0 {
            return Err(DriveError::Level { name: phase.name.clone(), level });
        }
    }
    let reason = match &phase.curve {
        _ if pieces_of(phase) > MOST_PIECES => "it has too many steps, spikes or rows",
        Curve::Steps(0) => "it has no step",
        Curve::Sine { amplitude, .. } if !(0.0..=phase.from).contains(amplitude) => {
            "its sine falls below 0; the amplitude is at most the mean"
        }
        Curve::Sine { period, .. } if period.is_zero() => "its period is 0",
        Curve::Spikes { every, length, .. } if length >= every => "its spikes are longer than their period",
        Curve::Series(series) if !is_in_order(&series.points) => {
            "its rows are not in order: seconds ascend from 0, levels are not below 0"
        }
        _ => return Ok(()),
    };
    Err(DriveError::Curve { name: phase.name.clone(), reason })
}

fn is_in_order(points: &[(f64, f64)]) -> bool {
    let right = |(seconds, level): &(f64, f64)| seconds.is_finite() && level.is_finite() && *level >= 0.0;
    points.first().is_some_and(|(seconds, _)| *seconds == 0.0)
        && points.is_sorted_by(|(a, _), (b, _)| a < b)
        && points.iter().all(right)
}

pub(super) fn check_ops(plan: &Plan, kind: &SessionKind) -> Result<(), DriveError> {
    let jumps = |to: u32| (to as usize) < kind.ops.len();
    for (index, op) in kind.ops.iter().enumerate() {
        let right = match op {
            Op::Request(request) => plan.requests.get(*request as usize).is_some_and(|request| {
                let own = request.ledger.iter().map(|ledger| ledger.slot);
                let followed = request
                    .follow
                    .iter()
                    .flat_map(|follow| follow.fixed.iter().map(|(slot, _)| *slot).chain([follow.location]));
                let mut hops = request.follow.iter().flat_map(|follow| &follow.hops);
                let mut slots = request.extractions.iter().map(|e| e.slot).chain(own).chain(followed);
                let is_request = |hop: u16| usize::from(hop) < plan.requests.len();
                hops.all(|hops| is_request(hops.same) && is_request(hops.get))
                    && slots.all(|slot| (slot as usize) < kind.slots)
                    && (request.label as usize) < plan.labels.len()
            }),
            Op::Set { slot, .. } => (*slot as usize) < kind.slots,
            Op::Take { feeder, row } => {
                let known = plan.feeders.get(*feeder).is_some_and(|feeder| !feeder.rows.is_empty());
                known && (*row as usize) < kind.slots
            }
            Op::Jump(to) | Op::JumpUnless { to, .. } | Op::JumpUnlessGood(to) => jumps(*to),
            Op::Choose { ways, .. } => ways.iter().all(|(_, to)| jumps(*to)),
            Op::Parallel { until, .. } => {
                let requests = kind.ops.get(index + 1..*until as usize);
                let is_http = |op: &Op| match op {
                    Op::Request(of) => {
                        plan.requests.get(usize::from(*of)).is_some_and(|request| request.http().is_some())
                    }
                    _ => false,
                };
                requests.is_some_and(|ops| ops.len() <= PARALLEL_REQUESTS_MAX && ops.iter().all(is_http))
                    && jumps(*until)
            }
            Op::BeginGroup(group) => usize::from(*group) < plan.groups.len(),
            Op::Measure { metric, .. } => usize::from(*metric) < plan.metrics.len(),
            Op::Code { code, .. } => plan.codes.get(usize::from(*code)).is_some_and(|code| {
                code.variables.iter().all(|variable| usize::from(variable.slot) < kind.slots)
            }),
            Op::Think(_) | Op::EndGroup | Op::Refuse { .. } | Op::Program | Op::End => true,
        };
        if !right {
            return Err(DriveError::Op { kind: kind.name.clone(), op: index });
        }
    }
    Ok(())
}
