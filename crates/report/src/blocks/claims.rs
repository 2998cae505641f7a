//! What a comparison claims: the sentence first.

use std::path::PathBuf;

use super::{Block, Cell, Level, Table, cost};
use crate::comparison::{Claim, Claims, Covers, Errors, Figure, ShownSide, range, title};
use crate::history::Line;
use crate::units::{bytes, duration, mean, plural, three_digits};

/// Figures whose history stands below a comparison.
const HISTORY: [Figure; 4] = [Figure::Rate, Figure::P50, Figure::P99, Figure::Cpu];
/// Characters of a revision that are shown.
const REVISION: usize = 10;

/// What a person wants to know of a comparison. With how the figures went before, where that is to be shown, and links to
/// the reports of the sides, as far as they have one.
pub fn claims(claims: &Claims, history: Option<&Line>, reports: &[String]) -> Vec<Block> {
    let leads = claims.sides.iter().skip(1).zip(&claims.says);
    let leads: Vec<(Level, String)> =
        leads.map(|(side, says)| (worth(claims, &side.side), says.clone())).collect();
    let is_any = |level| leads.iter().any(|(of, _)| *of == level);
    let level = match claims.has_failed() {
        true => Level::Bad,
        false if is_any(Level::Bad) || is_any(Level::Warning) => Level::Warning,
        false if is_any(Level::Good) => Level::Good,
        false => Level::Quiet,
    };
    let names: Vec<&str> = claims.sides.iter().map(|side| side.name.as_str()).collect();
    let mut blocks = vec![Block::Title(level, title(&names))];
    blocks.extend(leads.into_iter().map(|(level, says)| Block::Lead(level, says)));
    blocks.extend(judged(claims));
    blocks.push(Block::Gap);
    for (index, side) in claims.sides.iter().enumerate() {
        blocks.push(self::side(side));
        let report = reports.get(index).cloned();
        blocks.extend(report.map(|report| Block::Link(format!("report of {}", side.side), report)));
    }
    for side in claims.sides.iter().skip(1).filter(|_| !claims.comparisons.is_empty()) {
        blocks.push(Block::Heading(format!("{} against {}", side.side, claims.sides[0].side)));
        blocks.extend(figures(claims, &side.side));
    }
    blocks.extend([Block::Gap, Block::point(Level::Quiet, covers(claims))]);
    blocks.extend(claims.notes.iter().map(|note| Block::point(Level::Warning, note)));
    blocks.extend(history.filter(|line| line.runs.len() > 1).map(self::history));
    blocks.extend(claims.run_dir.iter().map(|dir| Block::Place("Runs", PathBuf::from(dir))));
    blocks.extend(cost::below(&claims.bills));
    blocks
}

/// How a side is beside the first.
fn worth(claims: &Claims, side: &str) -> Level {
    let found = claims.of_side(side).filter(|claim| claim.differs());
    let errors = claims.errors_of(side).filter(|of| of.differs());
    let is_worse =
        found.clone().any(Claim::is_worse) || errors.is_some_and(Errors::is_worse) || claims.is_broken(side);
    let is_better = found.clone().any(Claim::is_better) || errors.is_some();
    // what is faster because it answers less is no better
    let answers_else = found.clone().any(|claim| claim.figure.is_neutral());
    match (is_worse, answers_else, is_better) {
        (true, ..) => Level::Bad,
        (false, true, _) => Level::Warning,
        (false, false, true) => Level::Good,
        (false, false, false) => Level::Quiet,
    }
}

/// What the intervals are.
fn covers(claims: &Claims) -> String {
    let corrected = "corrected for how many figures are compared; below 1% no difference is claimed";
    match claims.covers {
        Covers::BetweenRounds => {
            format!(
                "from .. to: where a ratio lies 95 of 100 times, by how {} rounds differ, {corrected}",
                claims.rounds
            )
        }
        Covers::BetweenRuns => {
            format!(
                "from .. to: where a ratio lies 95 of 100 times, by how runs of a side differ, {corrected}"
            )
        }
        Covers::WithinRuns => {
            format!(
                "from .. to: where a ratio lies 95 of 100 times, by how the seconds of a run differ, {corrected}"
            )
        }
        Covers::Nothing => "nothing is claimed: what differs from run to run is not known by so few".into(),
    }
}

/// What became of each rule.
fn judged(claims: &Claims) -> Vec<Block> {
    let rules = claims.fail_if.iter().map(|of| {
        let (level, came_of_it) = match of.failed {
            Some(true) => (Level::Bad, "fails"),
            Some(false) => (Level::Good, "does not fail"),
            None => (Level::Unsure, "undecided"),
        };
        Block::point(level, format!("{}: {came_of_it}: {}", of.rule, of.says))
    });
    rules.chain(claims.fails_anyway().into_iter().map(|says| Block::point(Level::Bad, says))).collect()
}

/// What a side is.
fn side(side: &ShownSide) -> Block {
    let runs = match &side.runs[..] {
        [only] if *only == side.name => String::new(),
        runs => plural(runs.len() as u64, "run"),
    };
    let short: Vec<String> = side.revisions.iter().map(|of| of.chars().take(REVISION).collect()).collect();
    let revision = if short.is_empty() { String::new() } else { format!("at {}", short.join(", ")) };
    Block::line(&side.side, &[&side.name, &runs, &revision])
}

/// The figures of all requests, and those of each label.
fn figures(claims: &Claims, side: &str) -> Vec<Block> {
    let new = || Table::new(["", &claims.sides[0].side, side, "change", ""]).dispensable(&["A"]);
    let word = |differs: bool, is_worse: bool, word: &str| {
        let level = match (differs, is_worse) {
            (true, true) => Level::Bad,
            (true, false) => Level::Good,
            (false, _) => Level::Quiet,
        };
        Cell::Word(level, word.into())
    };
    let (mut all, mut by_label) = (new(), new());
    if let Some((of, [to, share, points, said])) = claims.errors_of(side).and_then(|of| Some((of, of.row()?)))
    {
        let word = word(of.differs(), of.is_worse(), &said);
        all.row("errors", [to.into(), share.into(), points.replace(" to ", "..").into(), word]);
    }
    for claim in claims.of_side(side) {
        let name = claim.figure.name();
        let word = word(claim.differs() && !claim.figure.is_neutral(), claim.is_worse(), claim.word());
        let [to, of] = [claim.value_to, claim.value].map(|of| value(claim.figure, of).into());
        let cells = [to, of, range(claim).replace(" to ", "..").into(), word];
        match &claim.label {
            Some(label) => by_label.row(&format!("{label}: {name}"), cells),
            None => all.row(name, cells),
        }
    }
    let rounds = claims.of_side(side).filter(|claim| claim.label.is_none());
    let mut blocks = vec![Block::Rounds(rounds.cloned().collect()), Block::Table(all)];
    if !by_label.rows.is_empty() {
        blocks.push(Block::Folded("By label".into(), vec![Block::Table(by_label)]));
    }
    blocks
}

/// How the figures of the stored runs went.
fn history(line: &Line) -> Block {
    let title = format!("History of {} ({} runs on {})", line.scenario, line.runs.len(), line.machine);
    let shown = line.trends.iter().filter(|trend| HISTORY.contains(&trend.figure));
    let blocks = shown.flat_map(|trend| {
        let trends = [Block::Trend(Box::new(line.clone()), trend.clone())];
        trends.into_iter().chain(trend.changes.iter().map(super::history::changed))
    });
    Block::Folded(title, blocks.collect())
}

/// A figure's value with its unit; a dash where it is not reached.
pub(crate) fn value(figure: Figure, value: Option<f64>) -> String {
    match (figure, value) {
        (Figure::Rate, Some(value)) => format!("{}/s", three_digits(value)),
        (Figure::Cpu, Some(value)) => duration(value),
        // less than one byte is shown as one: answers without a body, or nearly
        (Figure::Bytes, Some(value)) if value <= 1.0 => "0 to 1 B".into(),
        (Figure::Memory | Figure::Bytes, Some(value)) => bytes(value.round() as u64),
        (_, value) => mean(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fitted, shown};
    use super::*;
    use crate::comparison::{Asked, Rule, Side};
    use crate::history::Trend;
    use crate::{markdown, still, test_run};

    /// A run against itself.
    fn sample() -> Claims {
        let (dir, _run) = test_run::airline();
        let side = |name: &str| Side::of_runs(name, &[dir.path().to_owned()]).unwrap();
        let rules = [Rule::parse("p50>+5%").unwrap()];
        Claims::of(&[side("a|b"), side("<b>")], Asked { rules: &rules, ..Asked::default() }).unwrap()
    }

    #[test]
    fn the_sentence_comes_first_and_what_is_of_interest_to_few_is_folded() {
        let mut of = sample();
        for width in [45, 80, 120] {
            let text = fitted(&claims(&of, None, &[]), width);
            assert!(text.starts_with(&of.says[0]), "{text}");
            assert!(text.contains("? p50>+5%: undecided: B: ") && text.contains("B against A"), "{text}");
            assert!(text.contains(" By label "), "{text}");
        }
        let text = markdown::render(&claims(&of, None, &[]));
        assert!(text.starts_with("### ➖ &lt;b&gt; against a\\|b\n\n**nothing can be said of B"), "{text}");
        assert!(text.contains("- ⚠️ p50&gt;+5%: undecided: B: "), "{text}");
        assert!(text.contains("- **A** a\\|b · 1 run\n- **B** &lt;b&gt; · 1 run\n"), "{text}");
        assert!(text.contains("<summary>By label</summary>\n\n| | A | B | change | |"), "{text}");
        let page = still::claims(&of, &["x/report.html".into()]);
        let wanted = [
            "<h1>Tidemark comparison: &lt;b&gt; against a|b</h1>\n<p class=\"lead\">nothing can be said of B",
            "<li><b>A</b> a|b · 1 run, <a href=\"x/report.html\">report of A</a></li>\n<li><b>B</b> ",
            "<th>A</th><th>B</th><th>change</th>",
        ];
        wanted.iter().for_each(|wanted| assert!(page.contains(wanted), "{wanted}: {page}"));
        // a tick never stands beside a word of failing that is not denied
        for (failed, told) in [(false, "✓ p50>+5%: does not fail: B: "), (true, "✗ p50>+5%: fails: B: ")]
        {
            of.fail_if[0].failed = Some(failed);
            let text = shown(&claims(&of, None, &[]), 80);
            assert!(text.contains(told), "{text}");
            let page = still::claims(&of, &[]);
            assert!(page.contains(&told.replace('>', "&gt;")), "{page}");
        }
        of.run_dir = Some("runs/x".into());
        assert!(shown(&claims(&of, None, &[]), 80).ends_with("\nRuns             runs/x\n"));
    }

    #[test]
    fn how_the_figures_went_before_stands_below() {
        let of = sample();
        let values = vec![Some(1_000.0), Some(2_000.0)];
        let mut line = Line {
            scenario: "shop".into(),
            what: Vec::new(),
            scenario_digest: None,
            machine: "4 cores".into(),
            runs: vec![test_run::point("1"), test_run::point("2")],
            trends: vec![Trend { figure: Figure::P99, values, not_reached: Vec::new(), changes: Vec::new() }],
        };
        let told = |line: &Line| markdown::render(&claims(&of, Some(line), &[]));
        let text = told(&line);
        assert!(text.contains("<summary>History of shop (2 runs on 4 cores)</summary>"), "{text}");
        assert!(text.contains("- p99 `▁█` last 2.00ms\n"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert!(!markdown::render(&claims(&of, None, &[])).contains("History"));
        (line.trends[0].values[1], line.trends[0].not_reached) = (None, vec![1]);
        assert!(told(&line).contains("last not reached\n"), "{}", told(&line));
    }

    #[test]
    fn values_have_their_units() {
        let of = |figure, of: f64| value(figure, Some(of));
        assert_eq!(of(Figure::Rate, 12_345.0), "12,345/s");
        assert_eq!((of(Figure::Cpu, 12.3), of(Figure::P99, 1_500.0)), ("12.3µs".into(), "1.50ms".into()));
        assert_eq!((of(Figure::Memory, 222e6), value(Figure::P99, None)), ("212 MiB".into(), "-".into()));
    }
}
