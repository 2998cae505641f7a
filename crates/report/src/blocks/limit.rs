//! A search for a limit: the sentence first.

use std::path::Path;

use tidemark_limit::{Found, Search, SearchVerdict, Searches, Trial};

use super::{Block, Curve, Level, Table, cost};
use crate::cost::NamedBill;
use crate::limit::{columns, more, points, rate, remarks, row, says, took};

/// Where the page of a trial is, if there is one.
pub type Link<'a> = &'a dyn Fn(&Trial) -> Option<String>;

/// What a person wants to know of it, and what the limit of each costs, where that is known.
pub fn limit(searches: &Searches, dir: &Path, bills: &[NamedBill]) -> Vec<Block> {
    limit_linked(searches, dir, false, &|_| None).into_iter().chain(cost::below(bills)).collect()
}

/// The same with links to the pages of its trials; of a search that goes on right now it says so.
pub(crate) fn limit_linked(searches: &Searches, dir: &Path, goes_on: bool, link: Link<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Title(Level::Plain, format!("Limit of {}", searches.name))];
    if goes_on {
        let running = "running: this is what is known by now; load the page again for more";
        blocks.push(Block::Remark(Level::Good, running.into()));
    }
    if searches.searches.len() > 1 {
        blocks.push(overview(searches));
    }
    blocks.extend(searches.searches.iter().flat_map(|search| one(search, link)));
    // what was stopped before, and goes on again, is not stopped
    if let Some(stopped) = searches.stopped.as_ref().filter(|_| !goes_on) {
        let again = format!("the same command with --out {} goes on where it was", dir.display());
        blocks.extend([
            Block::Gap,
            Block::Remark(Level::Warning, format!("stopped early: {stopped}")),
            Block::point(Level::Plain, again),
        ]);
    }
    blocks.push(Block::Place("Trials", dir.to_owned()));
    blocks
}

/// A line for each setting.
fn overview(searches: &Searches) -> Block {
    let mut table = Table::new(["", "holds", "from", "to", "CPU"]).whole_names();
    let of = |value: Option<f64>| value.map_or_else(|| "-".into(), |per_s| format!("{}/s", rate(per_s)));
    for search in &searches.searches {
        let found = search.found();
        let cores: f64 = found.cpu.iter().map(|process| process.cores).sum();
        let cores = if cores > 0.0 { format!("{cores:.2}") } else { "-".into() };
        let limits = [found.per_s, found.low_per_s, found.high_per_s].map(of).into_iter();
        table.row(search.setting.as_deref().unwrap_or_default(), limits.chain([cores]));
    }
    Block::Table(table)
}

fn one(search: &Search, link: Link<'_>) -> Vec<Block> {
    let found = search.found();
    let mut blocks: Vec<Block> = search.setting.iter().cloned().map(Block::Heading).collect();
    blocks.push(Block::Lead(level(search, &found), says(&found)));
    blocks.push(Block::Remark(Level::Quiet, took(search, &found)));
    blocks.extend(remarks(search, &found).into_iter().map(|remark| Block::point(Level::Plain, remark)));
    let links = search.trials.iter().map(link).collect();
    blocks.push(Block::Curve(Box::new(Curve { search: search.clone(), found, links })));
    blocks
}

/// What a search is worth; of one that has not ended nothing is known.
fn level(search: &Search, found: &Found) -> Level {
    match found.verdict(search.at_least_per_s) {
        _ if found.ended.is_none() => Level::Strong,
        SearchVerdict::Pass => Level::Good,
        SearchVerdict::Fail => Level::Bad,
        SearchVerdict::Unknown => Level::Warning,
    }
}

impl Curve {
    /// The curve as a table of so many rows at most; nothing where no trial made a point.
    pub(crate) fn shown(&self, rows: usize) -> Vec<Block> {
        if self.found.curve.is_empty() {
            return Vec::new();
        }
        let mut table = Table::new(columns(self.found.users)).dispensable(&["p90", "failed", "CPU"]);
        for point in points(&self.found, rows) {
            let [level, figures @ ..] = row(point, self.found.users);
            table.row(&level, figures);
        }
        let more = more(&self.found, rows).map(|more| Block::point(Level::Plain, more));
        std::iter::once(Block::Table(table)).chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fitted;
    use super::*;
    use crate::limit::tests::searches;
    use crate::markdown;
    use tidemark_limit::{Ending, Purpose};

    #[test]
    fn its_colour_is_what_it_is_worth() {
        let mut search = searches(None).searches.remove(0);
        search.trials[1].ask.purpose = Purpose::Last;
        let of = |ended, at_least_per_s| {
            let search = Search { ended, at_least_per_s, ..search.clone() };
            level(&search, &search.found())
        };
        assert_eq!([of(Some(Ending::Precise), None), of(None, None)], [Level::Good, Level::Strong]);
        let driver = |at_least_per_s| of(Some(Ending::Driver), at_least_per_s);
        let wanted = [Level::Warning, Level::Good, Level::Bad];
        assert_eq!([driver(None), driver(Some(100.0)), driver(Some(1e9))], wanted);
    }

    #[test]
    fn the_sentence_comes_first_and_then_the_curve() {
        let of = |searches: &Searches| limit(searches, Path::new("runs/x"), &[]);
        for width in [45, 60, 80, 110] {
            let text = fitted(&of(&searches(None)), width);
            assert!(text.starts_with("holds 42,400/s (between"), "{text}");
            assert!(text.contains("the limit is the CPU: system uses 1.00 of 1 core"), "{text}");
            assert!(text.contains("3 trials in 15.0s") && text.ends_with("Trials runs/x"), "{text}");
            let mut short = searches(None);
            short.searches[0].ended = Some(Ending::Budget);
            let text = fitted(&of(&short), width);
            assert!(text.contains("--budget 5m leaves no time for another"), "{text}");
        }
        let text = markdown::render(&of(&searches(None)));
        let says = "**holds 42,400/s (between 40,000 and 45,000); first to break: mean &lt; 50ms";
        assert!(text.contains(says) && text.contains("| 45,000/s | 44,000/s | 60.0ms |"), "{text}");
        assert!(text.contains("- a &lt;note&gt;") && !text.contains("<note>"), "{text}");
    }

    #[test]
    fn a_family_has_a_line_for_each_setting_and_a_stop_says_how_to_go_on() {
        let mut family = searches(Some("cores=1"));
        family.searches.push(Search { setting: Some("cores=2".into()), ..family.searches[0].clone() });
        family.stopped = Some("stopped by the user".into());
        let text = fitted(&limit(&family, Path::new("runs/x"), &[]), 80);
        for wanted in [" cores=2 42,400/s", "stopped early: stopped by the user", "--out runs/x goes on"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
