//! The runs of a folder over time.

use super::{Block, Level};
use crate::history::{Changed, History, Line, Point, looked_at};
use crate::units::plural;

/// Each line of a history, and where it changed.
pub fn history(history: &History) -> Vec<Block> {
    let mut blocks: Vec<Block> = history.lines.iter().flat_map(line).collect();
    if history.lines.is_empty() {
        // a path stays whole
        blocks.push(Block::Remark(Level::Plain, format!("no run to show in {}", history.folder)));
    }
    blocks.extend((!history.notes.is_empty()).then_some(Block::Gap));
    blocks.extend(history.notes.iter().map(|note| Block::point(Level::Warning, note)));
    blocks
}

fn line(line: &Line) -> Vec<Block> {
    let day = |run: Option<&Point>| {
        run.map_or_else(String::new, |run| run.started_at.chars().take(10).collect::<String>())
    };
    let (first, last) = (day(line.runs.first()), day(line.runs.last()));
    let when = if first == last { first } else { format!("{first} to {last}") };
    let runs = plural(line.runs.len() as u64, "run");
    let failed = (Level::Bad, line.failed().unwrap_or_default());
    let mut blocks = vec![
        Block::Heading(line.scenario.clone()),
        Block::line("what", &line.what.iter().map(String::as_str).collect::<Vec<_>>()),
        Block::line("machine", &[&line.machine]),
        Block::Line("runs".into(), vec![(Level::Plain, runs), (Level::Plain, when), failed]),
    ];
    let trend = |trend: &crate::history::Trend| Block::Trend(Box::new(line.clone()), trend.clone());
    blocks.extend(line.trends.iter().map(trend));
    blocks.extend(looked_at(line).map(|looked_at| Block::point(Level::Plain, looked_at)));
    blocks.extend(line.trends.iter().flat_map(|trend| &trend.changes).map(changed));
    blocks
}

/// A change of a figure.
pub(super) fn changed(of: &Changed) -> Block {
    let (level, word) = if of.worse { (Level::Bad, "worse") } else { (Level::Good, "better") };
    Block::point(level, format!("{word} from {} on: {}", of.run, of.says))
}

#[cfg(test)]
mod tests {
    use super::super::tests::fitted;
    use super::*;
    use crate::comparison::Figure;
    use crate::history::Trend;
    use tidemark_record::summary::Status;

    fn sample() -> History {
        let point = |number: usize| Point {
            run: format!("{number:02}-shop"),
            started_at: format!("2026-03-{:02}T10:00:00Z", number % 28 + 1),
            ..crate::test_run::point("")
        };
        let says = "p99 +18% to +22%, from aaaaaaaaaa to bbbbbbbbbb".to_owned();
        let run = "06-shop".into();
        let revisions = [None, None];
        let changed = Changed { at: 6, run, revisions, ratio: 1.2, low: 1.18, high: 1.22, worse: true, says };
        let trend = |figure, changes| Trend {
            figure,
            values: (0..100).map(|n| Some(if n < 6 { 100.0 } else { 120.0 } + f64::from(n % 5))).collect(),
            not_reached: Vec::new(),
            changes,
        };
        let line = Line {
            scenario: "shop".into(),
            what: vec!["closed, 2 users".into(), "store=embedded".into()],
            scenario_digest: None,
            machine: "AMD EPYC, 4 cores".into(),
            runs: (0..100).map(point).collect(),
            trends: vec![trend(Figure::Rate, Vec::new()), trend(Figure::P99, vec![changed])],
        };
        let notes = vec!["not shown: runs that are invalid or were stopped early (1)".into()];
        History { folder: "runs".into(), lines: vec![line], notes }
    }

    #[test]
    fn it_fits_a_terminal_and_names_the_change() {
        let of = sample();
        for width in [45, 80, 120] {
            let text = fitted(&history(&of), width);
            assert!(text.contains("✗ worse from 06-shop on: p99 +18% to +22%, from aaaaaaaaaa"), "{text}");
            assert!(text.contains("100 runs") && text.contains("were stopped early (1)"), "{text}");
        }
        let none = History { lines: Vec::new(), notes: Vec::new(), ..of };
        assert_eq!(fitted(&history(&none), 80), "no run to show in runs");
    }

    #[test]
    fn what_the_last_run_did_not_reach_and_failed_runs_are_told() {
        let mut of = sample();
        let line = &mut of.lines[0];
        for at in 96..100 {
            line.runs[at].status = Status::Fail;
            line.trends.iter_mut().for_each(|trend| trend.values[at] = None);
            line.trends[1].not_reached.push(at);
        }
        line.runs[3].status = Status::Fail;
        for width in [45, 80] {
            let text = fitted(&history(&of), width);
            assert!(text.contains(" last not measured ") && text.contains(" last not reached "), "{text}");
            assert!(text.contains("5 of 100 runs failed, the last 4"), "{text}");
        }
    }
}
