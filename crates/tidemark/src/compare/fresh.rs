//! Sides that run here: settings, commands, URLs, revisions, the scenarios of a file; or fresh runs against a baseline.

use std::path::Path;
use std::time::{Duration, Instant};

use tidemark_lab::{
    Bounds, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_PASS, Finished, Looked, RunOptions, Turn, compare_in_rounds,
};
use tidemark_record::{ComparisonFile, least, new_run_dir, supports};
use tidemark_report::comparison::{Asked, Figure, Looks, Rule, Side};
use tidemark_scenario::plan::Stream;
use tidemark_scenario::units::Time;
use tidemark_scenario::{Comparison, Experiment, Plan};

use super::args::{CompareArguments, WITHIN};
use super::sides::{Sides, sides};
use super::{shown, stored};
use crate::cost::Pricing;
use crate::failure::Failure;
use crate::{carry_out, output, scenario};

/// Rounds without which nothing is claimed.
const ROUNDS_MIN: u64 = 3;
/// Rounds that should fit: runs are shortened for them, where nobody says how long they are to be.
const ROUNDS_WANTED: u32 = 12;
/// Shortest measured phase that runs are shortened to.
const MEASURED_MIN: Duration = Duration::from_secs(5);
/// Fresh runs against a baseline, where nobody says how many.
const FRESH: u64 = 3;

/// Has the sides of a scenario run in turn, and shows how they compare.
pub fn compare(word: &str, prices: &Pricing<'_>, arguments: &CompareArguments) -> Result<u8, Failure> {
    if let Some(baseline) = &arguments.baseline {
        return against(baseline, word, prices, arguments);
    }
    let options = options(arguments)?;
    let Sides { mut comparison, revisions, trees } = sides(word, arguments)?;
    for side in &mut comparison.sides {
        ask(&mut side.plan, arguments)
            .map_err(|failure| Failure { message: format!("{}: {failure}", side.name), ..failure })?;
    }
    prices.check_plans(comparison.sides.iter().map(|side| &side.plan))?;
    if arguments.duration.is_none() {
        shorten(&mut comparison, arguments);
    }
    check_rules(&comparison, arguments)?;
    let sides = comparison.sides.iter().map(|side| (side.name.as_str(), &side.plan));
    tell_too_few(sides, &arguments.rules);
    let names: Vec<String> = comparison.sides.iter().map(|side| side.name.clone()).collect();
    let begin = Instant::now();
    let mut looks = Looks::default();
    let bounds = Bounds { budget: arguments.budget(), least: ROUNDS_MIN, most: arguments.rounds };
    let compared = compare_in_rounds::<Failure>(
        &comparison,
        &options,
        bounds,
        &mut |turn, plan, options| {
            tell(turn, names.len(), begin, arguments);
            let side = names.iter().position(|name| *name == turn.side);
            let revision = side.and_then(|side| revisions[side].clone());
            measured(plan, RunOptions { revision, ..options })
        },
        &mut |record, dir, is_last| look(record, dir, is_last, &mut looks, arguments),
    )?;
    drop(trees);
    let record = ComparisonFile::open(&compared.dir).map_err(|error| Failure::broken(error.to_string()))?;
    let shown_sides = shown::sides_of(&compared.dir, &record)?;
    let mut claims = shown::of_directory(&compared.dir, &record, &shown_sides, None, &arguments.rules)?;
    claims.bills = prices.bills(&shown_sides);
    let status = shown::show(&claims, &shown_sides, arguments)?;
    // a side that could not go on: the rounds before it are shown, and yet it is no whole comparison
    let is_broken_off = record.stopped.is_some() && status == EXIT_PASS;
    Ok(match compared.exit_status {
        EXIT_INTERRUPTED => EXIT_INTERRUPTED,
        _ if is_broken_off => EXIT_INVALID,
        _ => status,
    })
}

/// Carries a run out; nothing where the user stopped it before anything was measured.
fn measured(plan: Plan, options: RunOptions) -> Result<Option<Finished>, Failure> {
    match carry_out::without_page(plan, options) {
        Ok(run) if run.manifest.interrupted && run.manifest.summary.due() == 0 => Ok(None),
        Err(failure) if failure.status == EXIT_INTERRUPTED => Ok(None),
        run => run.map(Some),
    }
}

/// What is known after a round, and whether that is enough.
fn look(
    record: &ComparisonFile,
    dir: &Path,
    is_last: bool,
    looks: &mut Looks,
    arguments: &CompareArguments,
) -> Result<Looked, Failure> {
    let round = record.runs.last().map_or(0, |run| run.round);
    if is_last || !looks.is_due(round) {
        return Ok(Looked { settled: is_last, level: looks.last() });
    }
    let level = looks.on_the_way();
    let sides = shown::sides_of(dir, record)?;
    let claims = shown::of_directory(dir, record, &sides, Some(level), &arguments.rules)?;
    let settled = claims.is_settled(arguments.within.unwrap_or(WITHIN));
    Ok(Looked { settled, level: if settled { level } else { looks.last() } })
}

/// Runs a scenario as often as is asked for, and holds the runs against those of before.
fn against(
    baseline: &str,
    word: &str,
    prices: &Pricing<'_>,
    arguments: &CompareArguments,
) -> Result<u8, Failure> {
    let baseline = stored::side(baseline)?;
    let Experiment::One(mut plan) = scenario::load(word, &arguments.settings)? else {
        return Err(Failure::usage(
            "--baseline is held against one scenario, and this file compares several",
        ));
    };
    ask(&mut plan, arguments)?;
    prices.check_plans([&*plan])?;
    let labels: Vec<&str> = plan.labels.iter().map(String::as_str).collect();
    let shared = if labels.len() > 1 { &labels[..] } else { &[] };
    shown::check_labels(&arguments.rules, shared)?;
    shown::check_processes(&arguments.rules, &[&*plan])?;
    tell_too_few(std::iter::once((plan.name.as_str(), &*plan)), &arguments.rules);
    let count = arguments.rounds.unwrap_or(FRESH);
    let folder = match (count, &arguments.out) {
        // each in the directory of its own that any run has
        (_, None) => None,
        (1, Some(out)) => Some(out.clone()),
        (_, Some(out)) => {
            let made = new_run_dir(Some(out.as_path()), &plan.name);
            Some(made.map_err(|error| Failure::usage(error.to_string()))?)
        }
    };
    let (begin, mut dirs, mut interrupted) = (Instant::now(), Vec::new(), false);
    for number in 1..=count {
        let began = begin.elapsed();
        let out =
            folder.as_ref().map(|out| if count == 1 { out.clone() } else { out.join(number.to_string()) });
        let run_options = RunOptions { out, is_part: true, ..options(arguments)? };
        if !arguments.quiet {
            output::remark(&format!("fresh run {number} of {count}"));
        }
        let Some(finished) = measured((*plan).clone(), run_options)? else {
            interrupted = true;
            break;
        };
        interrupted = finished.manifest.interrupted;
        dirs.push(finished.run_dir);
        let longest = begin.elapsed() - began;
        if interrupted || (number < count && begin.elapsed() + longest > arguments.budget()) {
            break;
        }
    }
    let name = plan.name.clone();
    let fresh = Side::of_runs(&name, &dirs).map_err(|error| Failure::broken(error.to_string()))?;
    let sides = [baseline, fresh];
    let mut claims = shown::of_sides(&sides, Asked { rules: &arguments.rules, ..Asked::default() })?;
    if interrupted {
        claims.stop("stopped by the user");
    }
    claims.bills = prices.bills(&sides);
    let status = shown::show(&claims, &sides, arguments)?;
    Ok(if interrupted { EXIT_INTERRUPTED } else { status })
}

/// Once a round: `round 3 of about 22; 1m10s of 10m`.
fn tell(turn: &Turn, sides: usize, begin: Instant, arguments: &CompareArguments) {
    let runs = 2 * sides;
    if arguments.quiet || !turn.done.is_multiple_of(runs) {
        return;
    }
    let whole = |time: Duration| Time(Duration::from_secs(time.as_secs()));
    let [now, budget] = [begin.elapsed(), arguments.budget()].map(whole);
    if turn.done == 0 {
        output::remark(&format!(
            "about {} runs in {} rounds, {budget} at most; it ends earlier once it is sure",
            turn.of,
            turn.of / runs
        ));
    }
    output::remark(&format!("round {} of about {}; {now} of {budget}", turn.round, turn.of / runs));
}

/// What the command line asks of each plan.
fn ask(plan: &mut Plan, arguments: &CompareArguments) -> Result<(), Failure> {
    let usage = |error: tidemark_scenario::OverrideError| Failure::usage(error.to_string());
    let rate = match arguments.rate.map(|range| range.constant()) {
        Some(None) => {
            return Err(Failure::usage("--rate: give one rate, which becomes the highest of the load"));
        }
        rate => rate.flatten(),
    };
    plan.override_load(rate, arguments.duration).map_err(usage)?;
    arguments.users.map_or(Ok(()), |users| plan.override_users(users)).map_err(usage)
}

/// Makes runs shorter where too few rounds would fit, and says so.
fn shorten(comparison: &mut Comparison, arguments: &CompareArguments) {
    let runs = 2 * u32::try_from(comparison.sides.len()).unwrap_or(u32::MAX);
    let each = arguments.budget() / runs.saturating_mul(ROUNDS_WANTED);
    let mut told = None;
    for plan in comparison.sides.iter_mut().map(|side| &mut side.plan) {
        let sum = |measured: bool| -> Duration {
            let phases = plan.load.phases.iter().filter(|phase| phase.measured || !measured);
            phases.map(|phase| phase.duration).sum()
        };
        let (all, measured) = (sum(false), sum(true));
        let room = each.saturating_sub(all - measured).max(MEASURED_MIN);
        // one whose load cannot be changed so runs as it is
        if room < measured && plan.override_load(None, Some(room)).is_ok() {
            told = Some(room);
        }
    }
    if let Some(room) = told.filter(|_| !arguments.quiet) {
        let (room, budget) = (Time(room), Time(arguments.budget()));
        output::remark(&format!(
            "each run measures {room} and not as long as the scenario says, so that enough rounds fit into {budget}; --for says \
             how long"
        ));
    }
}

/// Warns of each rule on a percentile for which a run has too few requests: no round would ever decide it.
fn tell_too_few<'p>(sides: impl Iterator<Item = (&'p str, &'p Plan)> + Clone, rules: &[Rule]) {
    for rule in rules {
        if let Some(warning) = sides.clone().find_map(|(name, plan)| too_few(name, plan, rule)) {
            output::insist(&format!("warning: {warning}"));
        }
    }
}

/// That a run of a side has too few requests for the percentile of a rule, where that is known; with the way out.
fn too_few(name: &str, plan: &Plan, rule: &Rule) -> Option<String> {
    let share = rule.figure.and_then(Figure::quantile)?;
    let due = plan.requests_due(rule.label.as_deref())?;
    let word = |figure: &Figure| figure.word();
    if due < 1.0 || supports(share, due as u64) {
        return None;
    }
    let streams = plan.load.streams();
    let measured_s = |stream: &Stream<'_>| -> f64 {
        stream.phases.iter().filter(|phase| phase.measured).map(|phase| phase.duration.as_secs_f64()).sum()
    };
    let seconds = streams.iter().map(measured_s).fold(0.0, f64::max);
    let least = least(share);
    let longer = (seconds * least as f64 / due).ceil();
    let lower = [Figure::P90, Figure::P50].into_iter().filter(|lower| lower.quantile() < Some(share));
    let lower = lower.filter(|lower| lower.quantile().is_some_and(|share| supports(share, due as u64)));
    let lower = lower.map(|lower| format!(", or ask for {}", word(&lower))).next().unwrap_or_default();
    let of = rule.label.as_ref().map_or_else(String::new, |label| format!(" of {label}"));
    Some(format!(
        "--fail-if '{}' cannot be decided: a run of {name} has at most {:.0} requests{of}, and {} needs {least}; give --for \
         {longer}s or more{lower}",
        rule.text,
        due.floor(),
        rule.figure.as_ref().map_or("", word),
    ))
}

/// Whether the labels of all rules are those of all sides.
fn check_rules(comparison: &Comparison, arguments: &CompareArguments) -> Result<(), Failure> {
    let plans = || comparison.sides.iter().map(|side| &side.plan);
    let has_more = plans().any(|plan| plan.labels.len() > 1);
    let first = plans().next().map(|plan| &plan.labels[..]).unwrap_or_default();
    let shared = first.iter().filter(|label| has_more && plans().all(|plan| plan.labels.contains(label)));
    let shared: Vec<&str> = shared.map(String::as_str).collect();
    shown::check_labels(&arguments.rules, &shared)?;
    shown::check_processes(&arguments.rules, &plans().collect::<Vec<_>>())
}

/// How the command line wants each run carried out.
fn options(arguments: &CompareArguments) -> Result<RunOptions, Failure> {
    Ok(RunOptions { out: arguments.out.clone(), ..arguments.driver.options()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_no_round_can_decide_is_told_before_the_first() {
        let says = |load: &str, rule: &str| {
            let steps = "[GET: /a, GET: /b]";
            let text =
                format!("system: {{url: http://h}}\nsessions: {{a: {{steps: {steps}}}}}\nload: {{{load}}}\n");
            let plan = tidemark_scenario::load_text("s", &text, Path::new("."), &[]).unwrap();
            too_few("x", &plan, &Rule::parse(rule).unwrap())
        };
        assert_eq!(
            says("rate: 4/s, warm-up: 60s, hold: 5s", "p99>+10%").unwrap(),
            "--fail-if 'p99>+10%' cannot be decided: a run of x has at most 40 requests, and p99 needs 100; give --for 13s or \
             more, or ask for p90"
        );
        let of_label = says("rate: 1/s, hold: 4s", "GET /b p90>+10%").unwrap();
        assert!(of_label.contains(
            "at most 4 requests of GET /b, and p90 needs 10; give --for 10s or more, or ask for p50"
        ));
        for (load, rule) in [
            ("rate: 10/s, hold: 5s", "p99>+10%"),
            ("rate: 1/s, hold: 4s", "rate<-10%"),
            ("rate: 1/s, hold: 4s", "errors>+10%"),
            ("users: 1, hold: 4s", "p99>+10%"),
        ] {
            assert_eq!(says(load, rule), None, "{load} {rule}");
        }
    }
}
