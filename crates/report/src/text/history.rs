//! The runs of a folder over time, for the terminal.

use super::{BAD, GOOD, INDENT, NAME, QUIET, Style, Text, WARNING, clean};
use crate::history::{History, Line, Trend, looked_at, sparkline};
use crate::table::{length, pad_right};

/// Least room for the row of bars.
const BARS_MIN: usize = 8;

/// Each line of a history, and where it changed.
pub fn summary(history: &History, style: Style) -> String {
    let mut text = Text::new(style);
    for (index, line) in history.lines.iter().enumerate() {
        if index > 0 {
            text.line("");
        }
        self::line(&mut text, line);
    }
    if history.lines.is_empty() {
        // a path stays whole
        text.line(&format!("no run to show in {}", clean(&history.folder)));
    }
    if !history.notes.is_empty() {
        text.line("");
    }
    for note in &history.notes {
        let mark = text.paint(WARNING, "!");
        text.marked(&mark, note);
    }
    text.out
}

fn line(text: &mut Text, line: &Line) {
    text.wrapped(super::HEADING, &line.scenario);
    let day = |at: Option<&crate::history::Point>| {
        at.map_or_else(String::new, |run| run.started_at.chars().take(10).collect::<String>())
    };
    let (first, last) = (day(line.runs.first()), day(line.runs.last()));
    let when = if first == last { first } else { format!("{first} to {last}") };
    let runs = if line.runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", line.runs.len()) };
    let parts: Vec<&str> = line.what.iter().map(String::as_str).collect();
    text.named("what", &parts);
    text.named("machine", &[&line.machine]);
    let failed = line.failed().unwrap_or_default();
    text.named_painted("runs", &[&runs, &when, &failed], &failed, BAD);
    for trend in &line.trends {
        self::trend(text, trend);
    }
    if let Some(looked_at) = looked_at(line) {
        text.marked("-", &looked_at);
    }
    for trend in &line.trends {
        for changed in &trend.changes {
            let mark = if changed.worse { text.paint(BAD, "✗") } else { text.paint(GOOD, "✓") };
            let word = if changed.worse { "worse" } else { "better" };
            text.marked(&mark, &format!("{word} from {} on: {}", changed.run, changed.says));
        }
    }
}

/// A figure: its name, a bar for each run, and what it was last.
fn trend(text: &mut Text, trend: &Trend) {
    let last = format!("last {}", trend.last());
    let room = text.width.saturating_sub(INDENT + NAME + 2 + length(&last)).max(BARS_MIN);
    let marks: Vec<usize> = trend.changes.iter().map(|changed| changed.at).collect();
    let bars = sparkline(&trend.values, &marks, room.saturating_sub(marks.len()), text.style.ascii);
    let name = text.paint(QUIET, &pad_right(trend.figure.word(), NAME));
    text.line(&format!("{:INDENT$}{name}{bars}  {last}", ""));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Figure;
    use crate::history::{Changed, Point};
    use tidemark_record::summary::Status;

    fn history() -> History {
        let point = |number: usize| Point {
            run: format!("{number:02}-shop"),
            run_dir: format!("runs/{number:02}-shop"),
            started_at: format!("2026-03-{:02}T10:00:00Z", number % 28 + 1),
            revision: None,
            version: "0.1.0".into(),
            status: Status::Pass,
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
        let history = history();
        for width in [45, 80, 120] {
            let shown = summary(&history, Style { width, colour: false, ascii: false });
            assert!(shown.lines().all(|line| length(line) <= width), "{width}: {shown}");
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("worse from 06-shop on: p99 +18% to +22%, from aaaaaaaaaa"), "{shown}");
            assert!(flat.contains("100 runs") && flat.contains("were stopped early (1)"), "{shown}");
        }
        assert!(summary(&history, Style { width: 80, colour: true, ascii: true }).is_ascii());
        let none = History { lines: Vec::new(), notes: Vec::new(), ..history };
        assert!(summary(&none, Style::default()).contains("no run to show in runs"));
    }

    #[test]
    fn what_the_last_run_did_not_reach_and_failed_runs_are_told() {
        let mut history = history();
        let line = &mut history.lines[0];
        for at in 96..100 {
            line.runs[at].status = Status::Fail;
            line.trends.iter_mut().for_each(|trend| trend.values[at] = None);
            line.trends[1].not_reached.push(at);
        }
        line.runs[3].status = Status::Fail;
        for width in [45, 80] {
            let shown = summary(&history, Style { width, colour: false, ascii: false });
            assert!(shown.lines().all(|line| length(line) <= width), "{width}: {shown}");
            assert!(
                shown.contains("  last not measured\n") && shown.contains("  last not reached\n"),
                "{shown}"
            );
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("5 of 100 runs failed, the last 4"), "{shown}");
        }
        let shown = summary(&history, Style { width: 120, colour: true, ascii: false });
        assert!(shown.contains(&format!("{BAD}5 of 100 runs failed, the last 4{BAD:#}")), "{shown}");
    }
}
