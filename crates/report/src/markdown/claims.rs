//! What a comparison claims as Markdown (GitHub's flavour), for a pull request: what is compared, the sentence, the detail folded.

use std::fmt::Write;

use super::{ROWS_MAX, code, left_out, plain};
use crate::comparison::{Claim, Claims, Errors, Figure, range, title};
use crate::history::{Line, sparkline};
use crate::text::claims::{covers, value};

/// Most runs of the history that are shown.
const HISTORY_MAX: usize = 40;

/// The summary; with how the figures went before, where that is known.
pub fn summary(claims: &Claims, history: Option<&Line>) -> String {
    let mut out = String::new();
    let worse = claims.comparisons.iter().any(|of| of.differs() && !of.is_better())
        || claims.errors.iter().any(Errors::is_worse)
        || claims.sides.iter().any(|side| claims.is_broken(&side.side));
    let better = claims.comparisons.iter().any(Claim::is_better)
        || claims.errors.iter().any(|of| of.differs() && !of.is_worse());
    let mark = match (claims.has_failed(), worse, better) {
        (true, ..) => "❌",
        (false, true, _) => "⚠️",
        (false, false, true) => "✅",
        (false, false, false) => "➖",
    };
    let names: Vec<&str> = claims.sides.iter().map(|side| side.name.as_str()).collect();
    let _ = writeln!(out, "### {mark} {}\n", plain(&title(&names)));
    for says in &claims.says {
        let _ = writeln!(out, "**{}**\n", plain(says));
    }
    for of in &claims.fail_if {
        let mark = match of.failed {
            Some(true) => "❌",
            Some(false) => "✅",
            None => "⚠️",
        };
        let _ = writeln!(out, "- {mark} fails if {}: {}", code(&of.rule), plain(&of.says));
    }
    for says in claims.fails_anyway() {
        let _ = writeln!(out, "- ❌ {}", plain(&says));
    }
    for side in &claims.sides {
        let revisions: Vec<String> = side.revisions.iter().map(|of| code(of)).collect();
        let at = if revisions.is_empty() { String::new() } else { format!(" at {}", revisions.join(", ")) };
        let runs = side.runs.len();
        let _ = writeln!(
            out,
            "- **{}** is {}{at} ({runs} run{})",
            side.side,
            code(&side.name),
            if runs == 1 { "" } else { "s" }
        );
    }
    let all = |of: &&Claim| of.label.is_none();
    table(&mut out, &claims.errors, &claims.comparisons.iter().filter(all).collect::<Vec<_>>());
    for note in &claims.notes {
        let _ = writeln!(out, "\n> {}", plain(note));
    }
    let labels: Vec<&Claim> = claims.comparisons.iter().filter(|of| of.label.is_some()).collect();
    if !labels.is_empty() {
        out.push_str("\n<details><summary>By label</summary>\n");
        table(&mut out, &[], &labels);
        out.push_str("\n</details>\n");
    }
    if let Some(line) = history.filter(|line| line.runs.len() > 1) {
        self::history(&mut out, line);
    }
    let _ = writeln!(out, "\n<sub>{}</sub>", plain(&covers(claims)));
    out
}

fn table(out: &mut String, errors: &[Errors], claims: &[&Claim]) {
    if claims.is_empty() {
        return;
    }
    out.push_str("\n| | A | other | change | |\n| --- | ---: | ---: | ---: | --- |\n");
    for of in errors {
        let Some([to, share, points, word]) = of.row() else { continue };
        let word = if of.is_worse() { format!("**{word}**") } else { word };
        let _ = writeln!(out, "| errors | {to} | {} {share} | {points} | {word} |", of.side);
    }
    for claim in claims.iter().take(ROWS_MAX) {
        let label = claim.label.as_ref().map_or_else(String::new, |label| format!("{}: ", plain(label)));
        let is_worse = claim.differs() && !claim.is_better();
        let word = if is_worse { format!("**{}**", claim.word()) } else { claim.word().to_owned() };
        let _ = writeln!(
            out,
            "| {label}{} | {} | {} {} | {} | {word} |",
            claim.figure.name(),
            value(claim.figure, claim.value_to),
            claim.side,
            value(claim.figure, claim.value),
            range(claim),
        );
    }
    left_out(out, claims.len());
}

/// How the figures of the stored runs went, folded.
fn history(out: &mut String, line: &Line) {
    let runs = line.runs.len();
    let _ = writeln!(
        out,
        "\n<details><summary>History of {} ({runs} runs on {})</summary>\n",
        plain(&line.scenario),
        plain(&line.machine)
    );
    let shown = |figure: &Figure| [Figure::Rate, Figure::P50, Figure::P99, Figure::Cpu].contains(figure);
    for trend in line.trends.iter().filter(|trend| shown(&trend.figure)) {
        let marks: Vec<usize> = trend.changes.iter().map(|changed| changed.at).collect();
        let last = match trend.values.last() {
            Some(Some(last)) => value(trend.figure, Some(*last)),
            _ => format!("last {}", trend.last()),
        };
        let bars = sparkline(&trend.values, &marks, HISTORY_MAX, false);
        let _ = writeln!(out, "- {} {} {last}", trend.figure.name(), code(&bars));
        for changed in &trend.changes {
            let _ = writeln!(out, "  - from {} on: {}", code(&changed.run), plain(&changed.says));
        }
    }
    out.push_str("\n</details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Asked, Rule, Side};
    use crate::history::{Point, Trend};
    use crate::test_run;
    use tidemark_record::summary::Status;

    #[test]
    fn the_sentence_comes_first_and_the_rest_is_folded() {
        let (dir, _run) = test_run::airline();
        let side = |name: &str| Side::of_runs(name, &[dir.path().to_owned()]).unwrap();
        let rules = [Rule::parse("p50>+5%").unwrap()];
        let asked = Asked { rules: &rules, ..Asked::default() };
        let claims = Claims::of(&[side("a|b"), side("<b>")], asked).unwrap();
        let point = |run: &str| Point {
            run: run.into(),
            run_dir: String::new(),
            started_at: String::new(),
            revision: None,
            version: String::new(),
            status: Status::Pass,
        };
        let values = vec![Some(1_000.0), Some(2_000.0)];
        let line = Line {
            scenario: "shop".into(),
            what: Vec::new(),
            scenario_digest: None,
            machine: "4 cores".into(),
            runs: vec![point("1"), point("2")],
            trends: vec![Trend { figure: Figure::P99, values, not_reached: Vec::new(), changes: Vec::new() }],
        };
        let mut unreached = line.clone();
        let text = summary(&claims, Some(&line));
        assert!(text.starts_with("### ➖ &lt;b&gt; against a\\|b\n\n**nothing can be said of B"), "{text}");
        assert!(text.contains("- ⚠️ fails if `p50>+5%`: B: "), "{text}");
        assert!(text.contains("- **A** is `a\\|b` (1 run)\n") && text.contains("`<b>`"), "{text}");
        assert!(text.contains("<summary>By label</summary>\n\n| | A |"), "{text}");
        assert!(
            text.contains("History of shop (2 runs on 4 cores)") && text.contains("- p99 `▁█` 2.00ms"),
            "{text}"
        );
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert!(!summary(&claims, None).contains("History"));
        (unreached.trends[0].values[1], unreached.trends[0].not_reached) = (None, vec![1]);
        let text = summary(&claims, Some(&unreached));
        assert!(text.contains("last not reached\n") && !text.contains("` 1.00ms"), "{text}");
    }
}
