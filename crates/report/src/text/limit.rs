//! A search for a limit, for the terminal: the sentence first.

use std::path::Path;

use tidemark_limit::{Found, Search, SearchVerdict, Searches};

use super::{BAD, GOOD, HEADING, Paint, QUIET, Style, Text, WARNING, clean};
use crate::limit::{columns, more, points, rate, remarks, row, says, took};
use crate::table::Table;

/// Rows of a curve.
const ROWS: usize = 14;

/// What a person wants to know of it.
pub fn summary(searches: &Searches, dir: &Path, style: Style) -> String {
    let mut text = Text::new(style);
    if searches.searches.len() > 1 {
        overview(&mut text, searches);
    }
    for search in &searches.searches {
        one(&mut text, search);
    }
    if let Some(stopped) = &searches.stopped {
        text.line("");
        text.wrapped(WARNING, &format!("stopped early: {stopped}"));
        text.marked("-", &format!("the same command with --out {} goes on where it was", dir.display()));
    }
    text.place("Trials", dir);
    text.out
}

/// A line for each setting.
fn overview(text: &mut Text, searches: &Searches) {
    let mut table = Table::new(&["", "holds", "from", "to", "CPU"]).whole_names();
    let of = |value: Option<f64>| value.map_or_else(|| "-".into(), |per_s| format!("{}/s", rate(per_s)));
    for search in &searches.searches {
        let found = search.found();
        let cores: f64 = found.cpu.iter().map(|process| process.cores).sum();
        table.row(vec![
            clean(search.setting.as_deref().unwrap_or_default()),
            of(found.per_s),
            of(found.low_per_s),
            of(found.high_per_s),
            if cores > 0.0 { format!("{cores:.2}") } else { "-".into() },
        ]);
    }
    text.table(&table);
}

fn one(text: &mut Text, search: &Search) {
    let found = search.found();
    if let Some(setting) = &search.setting {
        text.heading(setting);
    }
    text.wrapped(paint(search, &found), &says(&found));
    text.wrapped(QUIET, &took(search, &found));
    for remark in remarks(search, &found) {
        text.marked("-", &remark);
    }
    if !found.curve.is_empty() {
        curve(text, &found);
    }
}

/// What a search is worth; of one that has not ended nothing is known.
fn paint(search: &Search, found: &Found) -> Paint {
    match found.verdict(search.at_least_per_s) {
        _ if found.ended.is_none() => HEADING,
        SearchVerdict::Pass => GOOD,
        SearchVerdict::Fail => BAD,
        SearchVerdict::Unknown => WARNING,
    }
}

fn curve(text: &mut Text, found: &Found) {
    text.line("");
    let mut table = Table::new(&columns(found.users)).dispensable(&["p90", "failed", "CPU"]);
    for point in points(found, ROWS) {
        table.row(row(point, found.users).into());
    }
    text.table(&table);
    if let Some(more) = more(found, ROWS) {
        text.marked("-", &more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::tests::searches;
    use crate::table::length;
    use tidemark_limit::{Ending, Purpose};

    #[test]
    fn its_colour_is_what_it_is_worth() {
        let mut search = searches(None).searches.remove(0);
        search.trials[1].ask.purpose = Purpose::Last;
        let of = |ended, at_least_per_s| {
            let search = Search { ended, at_least_per_s, ..search.clone() };
            paint(&search, &search.found())
        };
        assert_eq!([of(Some(Ending::Precise), None), of(None, None)], [GOOD, HEADING]);
        let driver = |at_least_per_s| of(Some(Ending::Driver), at_least_per_s);
        assert_eq!([driver(None), driver(Some(100.0)), driver(Some(1e9))], [WARNING, GOOD, BAD]);
    }

    #[test]
    fn the_sentence_comes_first_and_all_fits_a_terminal() {
        for width in [45, 60, 80, 110] {
            let style = Style { width, colour: false, ascii: false };
            let shown = summary(&searches(None), Path::new("runs/x"), style);
            assert!(shown.starts_with("holds 42,400/s (between"), "{shown}");
            assert!(shown.lines().all(|line| length(line) <= width), "{width}: {shown}");
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("the limit is the CPU: system uses 1.00 of 1 core"), "{shown}");
            assert!(flat.contains("3 trials in 15.0s") && flat.ends_with("Trials runs/x"), "{shown}");
            let mut short = searches(None);
            short.searches[0].ended = Some(Ending::Budget);
            let shown = summary(&short, Path::new("runs/x"), style);
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("--budget 5m leaves no time for another"), "{shown}");
            assert!(shown.lines().all(|line| length(line) <= width), "{width}: {shown}");
        }
        assert!(
            summary(&searches(None), Path::new("x"), Style { width: 80, colour: true, ascii: true })
                .is_ascii()
        );
    }

    #[test]
    fn a_family_has_a_line_for_each_setting_and_a_stop_says_how_to_go_on() {
        let mut family = searches(Some("cores=1"));
        family.searches.push(Search { setting: Some("cores=2".into()), ..family.searches[0].clone() });
        family.stopped = Some("stopped by the user".into());
        let shown = summary(&family, Path::new("runs/x"), Style { width: 80, colour: false, ascii: false });
        for text in ["  cores=2  42,400/s", "stopped early: stopped by the user", "--out runs/x goes on"] {
            let flat: Vec<String> =
                shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            let wanted = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.iter().any(|line| line.contains(&wanted)), "{text}: {shown}");
        }
    }
}
