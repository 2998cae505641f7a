//! What a comparison claims, for the terminal: the sentence first.

use std::path::Path;

use super::{BAD, GOOD, INDENT, QUIET, Style, Text, WARNING, clean};
use crate::comparison::{Claim, Claims, Covers, Errors, Figure, range};
use crate::table::{Table, wrap};
use crate::text::time;
use crate::units::{bytes, duration, three_digits};

/// Most labels that have rows of their own; the rest is in `--json`.
const LABELS_MAX: usize = 20;

/// What a person wants to know of a comparison.
pub fn summary(claims: &Claims, style: Style) -> String {
    let mut text = Text::new(style);
    for (side, says) in claims.sides.iter().skip(1).zip(&claims.says) {
        let found = claims.of_side(&side.side).filter(|claim| claim.differs());
        let errors = claims.errors_of(&side.side).filter(|of| of.differs());
        let is_worse = found.clone().any(Claim::is_worse)
            || errors.is_some_and(Errors::is_worse)
            || claims.is_broken(&side.side);
        let is_better = found.clone().any(Claim::is_better) || errors.is_some();
        // what is faster because it answers less is no better
        let answers_else = found.clone().any(|claim| claim.figure.is_neutral());
        let paint = match (is_worse, answers_else, is_better) {
            (true, ..) => BAD,
            (false, true, _) => WARNING,
            (false, false, true) => GOOD,
            (false, false, false) => QUIET,
        };
        for line in wrap(&clean(says), text.width) {
            let line = text.paint(paint, &line);
            text.line(&line);
        }
    }
    judged(&mut text, claims);
    sides(&mut text, claims);
    for side in claims.sides.iter().skip(1).filter(|_| !claims.comparisons.is_empty()) {
        text.heading(&format!("{} against {}", side.side, claims.sides[0].side));
        figures(&mut text, claims, &side.side);
    }
    text.line("");
    let what = covers(claims);
    text.marked("-", &what);
    for note in &claims.notes {
        let mark = text.paint(WARNING, "!");
        text.marked(&mark, note);
    }
    if let Some(dir) = &claims.run_dir {
        text.place("Runs", Path::new(dir));
    }
    text.out
}

/// What the intervals are.
pub(crate) fn covers(claims: &Claims) -> String {
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
fn judged(text: &mut Text, claims: &Claims) {
    for of in &claims.fail_if {
        let mark = match of.failed {
            Some(true) => text.paint(BAD, "✗"),
            Some(false) => text.paint(GOOD, "✓"),
            None => text.paint(WARNING, "?"),
        };
        text.marked(&mark, &format!("fails if {}: {}", of.rule, of.says));
    }
    for says in claims.fails_anyway() {
        let mark = text.paint(BAD, "✗");
        text.marked(&mark, &says);
    }
}

/// Which side is what.
fn sides(text: &mut Text, claims: &Claims) {
    text.line("");
    for side in &claims.sides {
        let runs = match &side.runs[..] {
            [only] if *only == side.name => String::new(),
            [_] => "1 run".into(),
            runs => format!("{} runs", runs.len()),
        };
        let revision = match &side.revisions[..] {
            [] => String::new(),
            revisions => {
                let short: Vec<String> = revisions.iter().map(|of| of.chars().take(10).collect()).collect();
                format!("at {}", short.join(", "))
            }
        };
        text.named(&side.side, &[&side.name, &runs, &revision]);
    }
}

fn figures(text: &mut Text, claims: &Claims, side: &str) {
    let of: Vec<&Claim> = claims.of_side(side).collect();
    let mut labels: Vec<&str> = of.iter().filter_map(|claim| claim.label.as_deref()).collect();
    labels.dedup();
    let shown = &labels[..labels.len().min(LABELS_MAX)];
    let mut table = Table::new(&["", "A", side, "change", ""]).dispensable(&["A"]);
    if let Some([to, share, points, word]) = claims.errors_of(side).and_then(Errors::row) {
        table.row(vec!["errors".into(), to, share, points.replace(" to ", ".."), word]);
    }
    for claim in &of {
        let name = match claim.label.as_deref() {
            Some(label) if !shown.contains(&label) => continue,
            Some(label) => format!("{}: {}", clean(label), claim.figure.name()),
            None => claim.figure.name().to_owned(),
        };
        table.row(vec![
            name,
            value(claim.figure, claim.value_to),
            value(claim.figure, claim.value),
            range(claim).replace(" to ", ".."),
            claim.word().to_owned(),
        ]);
    }
    text.table(&table);
    if labels.len() > shown.len() {
        text.line(&format!("{:INDENT$}and {} labels more, in --json", "", labels.len() - shown.len()));
    }
}

/// A figure's value with its unit; a dash where it is not reached.
pub(crate) fn value(figure: Figure, value: Option<f64>) -> String {
    match (figure, value) {
        (Figure::Rate, Some(value)) => format!("{}/s", three_digits(value)),
        (Figure::Cpu, Some(value)) => duration(value),
        // less than one byte is shown as one: answers without a body, or nearly
        (Figure::Bytes, Some(value)) if value <= 1.0 => "0 to 1 B".into(),
        (Figure::Memory | Figure::Bytes, Some(value)) => bytes(value.round() as u64),
        (_, value) => time(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Asked, Rule, Side};
    use crate::table::length;
    use crate::test_run;

    #[test]
    fn it_fits_a_terminal_and_begins_with_the_sentence() {
        let (dir, _run) = test_run::airline();
        let side = |name: &str| Side::of_runs(name, &[dir.path().to_owned()]).unwrap();
        let rules = [Rule::parse("p50>+5%").unwrap()];
        let asked = Asked { rules: &rules, ..Asked::default() };
        let mut claims = Claims::of(&[side("runs/a"), side("runs/b")], asked).unwrap();
        claims.run_dir = Some("runs/x".into());
        for width in [45, 80, 120] {
            let shown = summary(&claims, Style { width, colour: false, ascii: false });
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.starts_with(&claims.says[0]), "{shown}");
            assert!(flat.contains("fails if p50>+5%: B: ") && flat.contains("B against A"), "{shown}");
            assert!(shown.lines().all(|line| length(line) <= width), "{width}: {shown}");
        }
        let plain = summary(&claims, Style { width: 80, colour: true, ascii: true });
        assert!(plain.is_ascii(), "{plain}");
    }

    #[test]
    fn values_have_their_units() {
        let of = |figure, of: f64| value(figure, Some(of));
        assert_eq!(of(Figure::Rate, 12_345.0), "12,345/s");
        assert_eq!((of(Figure::Cpu, 12.3), of(Figure::P99, 1_500.0)), ("12.3µs".into(), "1.50ms".into()));
        assert_eq!((of(Figure::Memory, 222e6), value(Figure::P99, None)), ("212 MiB".into(), "-".into()));
    }
}
