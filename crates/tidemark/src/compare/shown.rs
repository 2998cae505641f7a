//! What a comparison claims, put where it is asked for.

use std::path::Path;

use tidemark_lab::{EXIT_FAIL, EXIT_INVALID, EXIT_PASS};
use tidemark_record::{ComparisonFile, RUNS_DIR, RecordError};
use tidemark_report::comparison::{Asked, Claims, Figure, Rule, Side};
use tidemark_report::cost::NamedBill;
use tidemark_report::history::History;
use tidemark_report::{blocks, markdown, still};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::SystemOrigin;

use super::args::{CompareArguments, Unsure};
use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::results::Places;
use crate::{carry_out, output, results};

/// The sides of a comparison's directory; two at least.
pub fn sides_of(dir: &Path, record: &ComparisonFile) -> Result<Vec<Side>, Failure> {
    Side::of_comparison(dir, record).map_err(|error| Failure::usage(error.to_string()))
}

/// The claims of a comparison's directory; at another level than its own, if one is given.
pub fn of_directory(
    dir: &Path,
    record: &ComparisonFile,
    sides: &[Side],
    level: Option<f64>,
    rules: &[Rule],
) -> Result<Claims, Failure> {
    checked(Claims::of_directory(dir, record, sides, level, rules), rules)
}

/// The claims of sides.
pub fn of_sides(sides: &[Side], asked: Asked<'_>) -> Result<Claims, Failure> {
    checked(Claims::of_measured(sides, asked), asked.rules)
}

fn checked(claims: Result<Claims, RecordError>, rules: &[Rule]) -> Result<Claims, Failure> {
    let claims = claims.map_err(|error| Failure::usage(error.to_string()))?;
    // of what was stopped before each side had a run, no label is known
    if !claims.comparisons.is_empty() {
        let labels: Vec<&str> =
            claims.comparisons.iter().filter_map(|claim| claim.label.as_deref()).collect();
        check_labels(rules, &labels)?;
    }
    Ok(claims)
}

/// Whether each label that a rule names is there.
pub fn check_labels(rules: &[Rule], labels: &[&str]) -> Result<(), Failure> {
    for rule in rules {
        let Some(label) = rule.label.as_deref().filter(|label| !labels.contains(label)) else { continue };
        let mut known = labels.to_vec();
        known.dedup();
        let known = match known.is_empty() {
            true => "there is only one, so leave it out".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        return Err(Failure::usage(format!(
            "--fail-if '{}': no label \"{label}\" is compared; {known}",
            rule.text
        )));
    }
    Ok(())
}

/// Shows claims as the flags say; gives the exit status.
pub fn show(claims: &Claims, sides: &[Side], arguments: &CompareArguments) -> Result<u8, Failure> {
    put(claims, sides, &arguments.history, arguments.results.places(arguments.quiet))?;
    Ok(status(claims, sides, arguments.unsure))
}

/// The exit status; where a rule was asked for and nobody knows whether it holds, that is said, and is what `unsure` says. A
/// side that failed whatever its figures are, where the first did not, fails any rule.
fn status(claims: &Claims, sides: &[Side], unsure: Unsure) -> u8 {
    if !Side::has_valid(sides) {
        return EXIT_INVALID;
    }
    if claims.has_failed() {
        return EXIT_FAIL;
    }
    let unknown = claims.unknown();
    let in_rounds = sides.iter().flat_map(|side| &side.runs).all(|run| run.round.is_some());
    for (rule, measured) in &unknown {
        output::insist(&format!("--fail-if '{rule}': {}", why_unknown(*measured, in_rounds)));
    }
    // what was never measured is not unsure: nothing more of the same would tell
    if unknown.iter().any(|(_, measured)| !measured) {
        return EXIT_INVALID;
    }
    if claims.fail_if.iter().all(|judged| judged.failed.is_some()) {
        return EXIT_PASS;
    }
    match unsure {
        Unsure::Fail => EXIT_FAIL,
        Unsure::Pass => EXIT_PASS,
        Unsure::Invalid => {
            output::remark("undecided: exit status 3; --unsure pass or --unsure fail changes it");
            EXIT_INVALID
        }
    }
}

fn why_unknown(measured: bool, in_rounds: bool) -> &'static str {
    match (measured, in_rounds) {
        (false, _) => "not measured on every side, so that it cannot be sure",
        (true, true) => "undecided: too few valid rounds",
        (true, false) => "undecided: too few valid runs, or too short ones",
    }
}

/// Whether a rule is about CPU or memory, and so few sides have such that none can be held against another.
pub fn check_processes(rules: &[Rule], plans: &[&Plan]) -> Result<(), Failure> {
    let has = |plan: &&Plan| {
        let is_started = matches!(plan.system.origin, SystemOrigin::Shipped(_) | SystemOrigin::Command(_));
        is_started || !plan.watch.is_empty() || !plan.stores.is_empty()
    };
    let (first, others) = plans
        .split_first()
        .map_or((true, true), |(first, others)| (has(first), others.is_empty() || others.iter().any(has)));
    let of_process =
        |rule: &&Rule| rule.figure.is_some_and(|figure| matches!(figure, Figure::Cpu | Figure::Memory));
    match rules.iter().find(of_process) {
        Some(rule) if !first || !others => Err(Failure::usage(format!(
            "--fail-if '{}': what runs already is not watched, so that {} of two sides is not measured; say in the scenario \
             what it is: `watch: [{{port: 8080}}]`",
            rule.text,
            rule.figure.map_or("errors", Figure::name)
        ))),
        _ => Ok(()),
    }
}

/// Shows a comparison that ran in rounds again.
pub fn report(
    dir: &Path,
    record: &ComparisonFile,
    bills: Vec<NamedBill>,
    arguments: &ReportArguments,
) -> Result<u8, Failure> {
    let sides = sides_of(dir, record)?;
    let mut claims = of_directory(dir, record, &sides, None, &[])?;
    claims.bills = bills;
    put(&claims, &sides, Path::new(RUNS_DIR), arguments.places())?;
    Ok(EXIT_PASS)
}

fn put(claims: &Claims, sides: &[Side], history: &Path, places: Places<'_>) -> Result<(), Failure> {
    if let Some(dir) = &claims.run_dir {
        let page = Path::new(dir).join(carry_out::PAGE);
        // a directory that can only be read stays as it is
        let _ = results::write("", &page, &still::claims(claims, &[]));
    }
    let in_markdown = || {
        // the history is of runs by themselves; where there is none nothing is missing
        let history = History::read(history).ok();
        let line = history.as_ref().and_then(|history| {
            let runs = sides.iter().flat_map(|side| &side.runs);
            runs.map(|run| &run.manifest).find_map(|manifest| history.line_of(manifest))
        });
        markdown::render(&blocks::claims(claims, line, &[]))
    };
    let (blocks, page) = (blocks::claims(claims, None, &[]), || still::claims(claims, &[]));
    places.put(&blocks, || claims.json(), in_markdown, page)
}

#[cfg(test)]
mod tests {
    use tidemark_record::summary::{Status, Verdict};
    use tidemark_record::{Manifest, RunWriter, summarize};
    use tidemark_report::comparison::SideRun;

    use super::*;

    /// A side of two rounds whose runs failed for these reasons, or passed.
    fn side(dir: &Path, name: &str, reasons: &[&str]) -> Side {
        let run = |round: u64| {
            let dir = dir.join(format!("{name}-{round}"));
            let mut writer = RunWriter::create(&dir, &[], "").unwrap();
            writer.threads(1);
            let mut summary = summarize(writer.totals(), &dir);
            summary.verdict = Verdict {
                status: if reasons.is_empty() { Status::Pass } else { Status::Fail },
                reasons: reasons.iter().map(|reason| (*reason).into()).collect(),
            };
            let manifest = Manifest::new("x", Vec::new(), summary);
            writer.finish(&manifest).unwrap();
            SideRun { dir, round: Some(round), manifest }
        };
        Side { name: name.to_owned(), runs: vec![run(1), run(2)] }
    }

    #[test]
    fn a_side_that_alone_lost_writes_fails_where_a_failure_is_asked_for() {
        let temp = tempfile::tempdir().unwrap();
        let whole = side(temp.path(), "whole", &[]);
        let lossy = side(temp.path(), "lossy", &["lost = 0 missed: 3501"]);
        let rules = [Rule::parse("p99>+5%").unwrap()];
        let of = |sides: &[Side], rules: &[Rule]| {
            let claims = Claims::of(sides, Asked { rules, ..Asked::default() }).unwrap();
            status(&claims, sides, Unsure::default())
        };
        let worse = [whole.clone(), lossy.clone()];
        assert_eq!(of(&worse, &rules), EXIT_FAIL);
        assert_eq!(of(&worse, &[]), EXIT_PASS, "nobody asked");
        // two rounds are too few for the rule
        assert_eq!(of(&[lossy.clone(), whole.clone()], &rules), EXIT_INVALID, "B is the better one");
        assert_eq!(of(&[lossy.clone(), lossy], &rules), EXIT_INVALID, "as before");
        assert_eq!(of(&[whole.clone(), whole], &rules), EXIT_INVALID);
    }

    #[test]
    fn a_rule_of_cpu_needs_two_sides_that_are_started_or_watched() {
        let plan = |system: &str| {
            let text = format!(
                "{system}\nsessions: {{s: {{steps: [{{GET: /x}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
            );
            tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap()
        };
        let url = "system: {url: 'http://127.0.0.1:1'}";
        let [apart, watched, started] = [
            url.to_owned(),
            format!("{url}\nwatch: [{{port: 8080}}]"),
            "system: {command: 'a {port}'}".into(),
        ]
        .map(|system| plan(&system));
        let rules = ["p99>+5%", "cpu>+5%", "bytes<-5%"].map(|text| Rule::parse(text).unwrap());
        let error = check_processes(&rules, &[&apart, &apart]).unwrap_err().message;
        assert!(
            error.starts_with("--fail-if 'cpu>+5%': ") && error.contains("watch: [{port: 8080}]"),
            "{error}"
        );
        assert!(check_processes(&rules, &[&watched, &apart]).is_err(), "nothing to hold it against");
        assert!(check_processes(&rules, &[&apart]).is_err() && check_processes(&rules, &[&started]).is_ok());
        assert!(check_processes(&rules, &[&watched, &apart, &started]).is_ok());
        let of_answers = [rules[0].clone(), rules[2].clone()];
        assert!(check_processes(&of_answers, &[&apart, &apart]).is_ok());
    }

    #[test]
    fn what_was_measured_too_seldom_is_not_said_to_be_unmeasured() {
        assert!(why_unknown(false, true).starts_with("not measured"));
        assert_eq!(why_unknown(true, true), "undecided: too few valid rounds");
        assert!(why_unknown(true, false).starts_with("undecided: too few valid runs"));
    }

    #[test]
    fn rules_are_of_labels_that_are_there() {
        let rules = [Rule::parse("p99>+5%").unwrap(), Rule::parse("Checkout p99>+5%").unwrap()];
        assert!(check_labels(&rules, &["Search", "Checkout"]).is_ok());
        let error = check_labels(&rules, &["Search", "Search", "Buy"]).unwrap_err().message;
        assert!(error.contains("no label \"Checkout\" is compared; there are Search, Buy"), "{error}");
        assert!(check_labels(&rules, &[]).unwrap_err().message.contains("only one"));
        assert!(check_labels(&rules[..1], &[]).is_ok());
    }
}
