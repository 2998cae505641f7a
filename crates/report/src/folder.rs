//! The runs of a folder: a list of them, what one that goes on looks like, two of them compared, how a scenario went.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use tidemark_limit::{Searches, Trial};
use tidemark_record::limit as file;
use tidemark_record::summary::Status;
use tidemark_record::{
    ComparedRuns, ComparisonFile, Following, Live, Manifest, RecordError, Run, changed, goes_on,
    is_unfinished, runs_in,
};

use crate::comparison::{Asked, Claims, Compared, Side};
use crate::history::History;
use crate::units::more_than;
use crate::{html, limit, still};

/// Most runs that are listed, the newest.
const LISTED_MAX: usize = 1_000;
/// Events of a run that goes on that are shown, the last.
const EVENTS_MAX: usize = 50;
/// What a name as one part of a path of a URL cannot have as it is.
const ENCODED_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Reasons of a verdict that are listed.
const REASONS_MAX: usize = 3;
/// Searches of one directory whose sentences are listed.
const SAYS_MAX: usize = 6;

/// The runs of a folder.
#[derive(Debug, Default, Serialize)]
pub struct Listing {
    /// The newest first.
    pub runs: Vec<Listed>,
    /// How many are not listed: older ones, and entries of a folder that has very many.
    pub left_out: usize,
}

impl Listing {
    /// As one JSON object, with the name of the folder.
    pub fn to_json(&self, folder: &str) -> String {
        json!({ "folder": folder, "runs": self.runs, "left_out": self.left_out }).to_string()
    }
}

/// A run in a list.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Listed {
    /// Name of its folder.
    pub name: String,
    /// What it is.
    pub state: State,
    /// The scenario, or what was compared.
    pub scenario: String,
    /// RFC 3339, UTC; empty where it is not known.
    pub started_at: String,
    /// What it is worth; null of a comparison, and while it goes on.
    pub verdict: Option<Status>,
    /// Why, the weightiest first.
    pub reasons: Vec<String>,
    /// How many warnings stand beside the verdict.
    pub warnings: usize,
    /// Good answers per second of the measured window.
    pub achieved_per_s: Option<f64>,
    /// What became due.
    pub offered_per_s: Option<f64>,
    /// 99th percentile of the response time; null where it was not reached.
    pub p99_us: Option<u64>,
    /// Of what was due, those without a good answer, 0 to 1.
    pub failed_share: Option<f64>,
    /// What was driven.
    pub system: String,
    /// The load, for a person.
    pub load: String,
    /// Of a comparison, how many runs it has.
    pub compared: Option<usize>,
    /// Of a search for a limit, how many trials it has; null of all else.
    pub trials: Option<usize>,
    /// Of a search, what it has found by now, a sentence for each value of a setting.
    pub says: Vec<String>,
}

/// What searches had found when they were looked at last: one is not reckoned anew while its file is the same.
#[derive(Debug, Default)]
pub struct Known(HashMap<PathBuf, (SystemTime, Listed)>);

/// What a folder in a list is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A run that ended.
    #[default]
    Finished,
    /// A run, or a search, that is running.
    Running,
    /// A run, or a search, that was killed.
    Killed,
    /// Several runs that are compared.
    Comparison,
    /// A search for a limit that ended, or was stopped.
    Limit,
    /// Something that cannot be read.
    Unreadable,
}

/// Lists the runs right in a folder, the newest first. Links are not followed. `known`: of the list before, or nothing.
///
/// # Errors
/// Where the folder cannot be read.
pub fn list(folder: &Path, known: &mut Known) -> Result<Listing, RecordError> {
    let in_folder = runs_in(folder)?;
    let all = in_folder.runs.into_iter().chain(in_folder.comparisons).chain(in_folder.unfinished);
    let all = all.chain(in_folder.limits);
    let mut found: Vec<(SystemTime, PathBuf)> =
        all.map(|dir| (changed(&dir).unwrap_or(SystemTime::UNIX_EPOCH), dir)).collect();
    found.sort_by(|a, b| b.cmp(a));
    let left_out = in_folder.left_out + found.len().saturating_sub(LISTED_MAX);
    found.truncate(LISTED_MAX);
    let mut before = std::mem::take(&mut known.0);
    let mut runs = Vec::with_capacity(found.len());
    for (time, dir) in found {
        if !file::is_at(&dir) {
            runs.push(listed(&dir));
            continue;
        }
        let same = before.remove(&dir).filter(|(looked_at, _)| *looked_at == time);
        let mut of = same.map_or_else(|| listed(&dir), |(_, of)| of);
        known.0.insert(dir.clone(), (time, of.clone()));
        if of.state != State::Unreadable && file::is_locked(&dir) {
            // what stopped it before is over
            (of.state, of.reasons) = (State::Running, Vec::new());
        }
        runs.push(of);
    }
    Ok(Listing { runs, left_out })
}

fn listed(dir: &Path) -> Listed {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    of_any(dir).map(|listed| Listed { name: name.clone(), ..listed }).unwrap_or_else(|error| Listed {
        name,
        state: State::Unreadable,
        reasons: vec![error.to_string()],
        ..Listed::default()
    })
}

/// What is listed, without its name.
fn of_any(dir: &Path) -> Result<Listed, RecordError> {
    if ComparisonFile::is_at(dir) {
        let comparison = ComparisonFile::open(dir)?;
        return Ok(Listed {
            state: State::Comparison,
            scenario: comparison.name,
            compared: Some(comparison.runs.len()),
            system: comparison.sides.join(", "),
            reasons: comparison.stopped.into_iter().collect(),
            ..Listed::default()
        });
    }
    if file::is_at(dir) {
        return Ok(of_searches(&searches(dir)?));
    }
    // a list builds no run again: whoever opens it does
    if is_unfinished(dir) {
        let manifest = Following::begun(dir)?;
        let state = if goes_on(dir) { State::Running } else { State::Killed };
        return Ok(Listed { state, ..about(&manifest) });
    }
    let manifest = Manifest::open(dir)?;
    let summary = &manifest.summary;
    Ok(Listed {
        state: State::Finished,
        verdict: Some(summary.verdict.status),
        reasons: summary.verdict.reasons.iter().take(REASONS_MAX).map(|reason| in_short(reason)).collect(),
        warnings: summary.warnings.len(),
        achieved_per_s: Some(summary.achieved_per_s),
        offered_per_s: Some(summary.offered_per_s),
        p99_us: summary.response_time_us.p99,
        failed_share: Some(summary.failed_share()),
        ..about(&manifest)
    })
}

/// What is listed of a search that does not go on.
fn of_searches(searches: &Searches) -> Listed {
    let all = &searches.searches;
    let is_over = searches.stopped.is_some() || all.iter().all(|search| search.ended.is_some());
    let mut says: Vec<String> = all
        .iter()
        .take(SAYS_MAX)
        .map(|search| {
            let setting = search.setting.as_ref().map_or_else(String::new, |setting| format!("{setting}: "));
            format!("{setting}{}", limit::says(&search.found()))
        })
        .collect();
    says.extend(more_than(all.len(), SAYS_MAX).map(|more| format!("and {more} more")));
    Listed {
        state: if is_over { State::Limit } else { State::Killed },
        scenario: searches.name.clone(),
        reasons: searches.stopped.iter().map(|stopped| format!("stopped early: {stopped}")).collect(),
        trials: Some(all.iter().map(|search| search.trials.len()).sum()),
        says,
        ..Listed::default()
    }
}

fn searches(dir: &Path) -> Result<Searches, RecordError> {
    Searches::from_json(&file::read(dir)?).map_err(|reason| file::damaged(dir, &reason))
}

/// A reason without the lines of a log that it quotes: they stand on the run's own page.
fn in_short(reason: &str) -> String {
    reason.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

fn about(manifest: &Manifest) -> Listed {
    Listed {
        scenario: manifest.scenario.clone(),
        started_at: manifest.started_at.clone(),
        system: manifest.system.name.clone(),
        load: manifest.load.clone(),
        ..Listed::default()
    }
}

/// What a run that goes on looks like now, as one JSON object.
pub fn live(following: &Following) -> String {
    let manifest = following.manifest();
    let mut events = following.events();
    let old = events.len().saturating_sub(EVENTS_MAX);
    events.drain(..old);
    let phase = |phase: &tidemark_record::manifest::Phase| json!({ "name": phase.name, "level": phase.level, "start_us": phase.start_us, "end_us": phase.end_us, "measured": phase.measured });
    let processes = following.samples().iter().map(|sample| {
        json!({ "name": sample.process, "cpu_share": sample.cpu_share, "rss_bytes": sample.rss_bytes })
    });
    json!({
        "scenario": manifest.scenario,
        "system": manifest.system.name,
        "load": manifest.load,
        "started_at": manifest.started_at,
        "running": goes_on(following.dir()),
        "phases": manifest.phases.iter().map(phase).collect::<Vec<Value>>(),
        "seconds": following.seconds().collect::<Vec<&Live>>(),
        "processes": processes.collect::<Vec<Value>>(),
        "events": events.iter().map(|event| json!({ "at_s": event.at_us as f64 / 1e6, "kind": event.kind, "text": event.text })).collect::<Vec<Value>>(),
    })
    .to_string()
}

/// The page of a run, of a comparison or of a search: what stands as `report.html` in its directory. That of a search, also
/// while it goes on, leads to the pages of its trials.
///
/// # Errors
/// Where there is none of them, or one cannot be read.
pub fn page(dir: &Path) -> Result<String, RecordError> {
    if file::is_at(dir) {
        let link = |trial: &Trial| {
            let is_name = !["", ".", ".."].contains(&trial.dir.as_str());
            is_name.then(|| format!("{}/report.html", utf8_percent_encode(&trial.dir, ENCODED_IN_PATH)))
        };
        return Ok(still::limit_linked(&searches(dir)?, dir, file::is_locked(dir), &link));
    }
    if !ComparisonFile::is_at(dir) {
        return html::page(&Run::open(dir)?);
    }
    let comparison = ComparisonFile::open(dir)?;
    if comparison.in_rounds.is_some() {
        let sides = Side::of_comparison(dir, &comparison)?;
        return Ok(still::claims(&Claims::of_directory(dir, &comparison, &sides, None, &[])?, &[]));
    }
    let runs = ComparedRuns::open(dir)?;
    html::comparison(&Compared::of(&runs)?, &runs)
}

/// The page of two runs of a folder, the second held against the first, as `tidemark compare` does it. `place`: what stands
/// in front of a run's name in links to their reports.
///
/// # Errors
/// Where a run cannot be read, or nothing was measured in it.
pub fn compare(folder: &Path, names: [&str; 2], place: &str) -> Result<String, RecordError> {
    let [a, b] = names.map(|name| Side::of_runs(name, &[folder.join(name)]));
    let claims = Claims::of_measured(&[a?, b?], Asked::default())?;
    let reports =
        names.map(|name| format!("{place}{}/report.html", utf8_percent_encode(name, ENCODED_IN_PATH)));
    Ok(still::claims(&claims, &reports))
}

/// The page of how the runs of a scenario went, as `tidemark history --scenario` makes it.
///
/// # Errors
/// Where the folder cannot be read, or has no run of it that is in a history.
pub fn history(folder: &Path, scenario: &str) -> Result<String, String> {
    let history = History::read(folder).map_err(|error| error.to_string())?;
    Ok(still::history(&history.of_scenario(scenario)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;
    use std::fs;
    use tidemark_record::{InRounds, RunWriter, summarize};

    fn states(folder: &Path) -> Vec<(String, State)> {
        let listing = list(folder, &mut Known::default()).unwrap();
        listing.runs.into_iter().map(|run| (run.name, run.state)).collect()
    }

    #[test]
    fn a_folder_is_listed_whatever_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        assert!(states(folder.path()).is_empty());
        let (dir, _) = test_run::airline();
        fs::rename(dir.path(), of("a")).unwrap();
        let later = |name: &str, s: u64| {
            let time = SystemTime::now() + std::time::Duration::from_secs(s);
            fs::File::options().append(true).open(of(name)).unwrap().set_modified(time).unwrap();
        };
        fs::create_dir(of("b")).unwrap();
        fs::write(of("b/run.json"), "{").unwrap();
        later("b/run.json", 10);
        fs::create_dir(of("c")).unwrap();
        ComparisonFile::new("x", "", vec!["p".into(), "q".into()]).write(&of("c")).unwrap();
        later("c/comparison.json", 20);
        fs::create_dir(of("d")).unwrap();
        let mut writer = RunWriter::create(&of("d"), &[], "").unwrap();
        let manifest = Manifest::new("goes", Vec::new(), summarize(writer.totals(), &of("d")));
        writer.begun(&manifest).unwrap();
        later("d/unfinished.json", 30);
        fs::create_dir(of("nothing")).unwrap();
        fs::write(of("file"), "").unwrap();
        std::os::unix::fs::symlink("/", of("link")).unwrap();
        let expected = |d| {
            [("d", d), ("c", State::Comparison), ("b", State::Unreadable), ("a", State::Finished)]
                .map(|(name, state)| (name.to_owned(), state))
        };
        assert_eq!(states(folder.path()), expected(State::Running));
        drop(writer);
        assert_eq!(states(folder.path()), expected(State::Killed));
        let listing = list(folder.path(), &mut Known::default()).unwrap();
        let finished = listing.runs.last().unwrap();
        assert_eq!((finished.scenario.as_str(), finished.verdict), ("airline", Some(Status::Fail)));
        assert!(finished.achieved_per_s.unwrap() > 0.0 && finished.failed_share.unwrap() > 0.0);
        assert!(list(&of("none"), &mut Known::default()).is_err());
    }

    #[test]
    fn a_search_is_listed_with_its_sentence_and_as_running_while_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("search");
        fs::create_dir(&dir).unwrap();
        let mut known = Known::default();
        let mut write = |searches: &Searches, later_s: u64| {
            file::write(&dir, &searches.to_json()).unwrap();
            let time = SystemTime::now() + std::time::Duration::from_secs(later_s);
            fs::File::options()
                .append(true)
                .open(dir.join("limit.json"))
                .unwrap()
                .set_modified(time)
                .unwrap();
            let runs = list(folder.path(), &mut known).unwrap().runs;
            assert_eq!((runs.len(), known.0.len(), runs[0].name.as_str()), (1, 1, "search"));
            runs.into_iter().next().unwrap()
        };
        let mut searches = limit::tests::searches(Some("cores=2"));
        let over = write(&searches, 0);
        assert_eq!((over.state, over.trials, over.scenario.as_str()), (State::Limit, Some(3), "shop"));
        assert!(
            over.says[0].starts_with("cores=2: holds 42,400/s (between 40,000 and 45,000)"),
            "{:?}",
            over.says
        );
        let again = write(&searches, 0);
        assert_eq!(again.says, over.says);
        searches.searches[0].ended = None;
        assert_eq!(write(&searches, 10).state, State::Killed);
        searches.stopped = Some("by the user".into());
        searches.searches[0].trials.truncate(2);
        let stopped = write(&searches, 20);
        assert_eq!((stopped.state, stopped.trials), (State::Limit, Some(2)), "what is known is not kept");
        assert_eq!(stopped.reasons, ["stopped early: by the user"]);
        tidemark_record::write_scenario(&dir, "").unwrap();
        let lock = file::lock(&dir).unwrap();
        let going = write(&searches, 30);
        assert_eq!((going.state, going.reasons.len()), (State::Running, 0));
        assert!(page(&dir).unwrap().contains("running: "));
        drop(lock);
        assert_eq!(write(&searches, 30).state, State::Limit);
        searches.searches = vec![searches.searches[0].clone(); SAYS_MAX + 2];
        assert_eq!(write(&searches, 40).says.last().unwrap(), "and 2 more");
        fs::write(dir.join("limit.json"), "{").unwrap();
        let damaged = &list(folder.path(), &mut known).unwrap().runs[0];
        assert!(
            damaged.state == State::Unreadable && damaged.reasons[0].contains("limit.json"),
            "{damaged:?}"
        );
        assert!(page(&dir).is_err());
    }

    #[test]
    fn the_page_of_a_search_leads_to_trials_below_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut searches = limit::tests::searches(None);
        for (trial, name) in searches.searches[0].trials.iter_mut().zip(["1-100", "../../x\"<", ".."]) {
            trial.dir = name.into();
        }
        file::write(dir.path(), &searches.to_json()).unwrap();
        let page = page(dir.path()).unwrap();
        assert!(page.contains("<a href=\"1-100/report.html\">100/s</a>"), "{page}");
        assert!(page.contains("<a href=\"..%2F..%2Fx%22%3C/report.html\">"), "{page}");
        assert_eq!(page.matches("<a ").count(), 2, "{page}");
    }

    #[test]
    fn the_history_of_a_scenario_is_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let error = history(folder.path(), "<b>").unwrap_err();
        assert!(error.starts_with("no run of \"<b>\" in "), "{error}");
        assert!(history(&folder.path().join("none"), "x").is_err());
    }

    #[test]
    fn two_runs_are_one_page() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a b", "c"] {
            let (dir, _) = test_run::airline();
            fs::rename(dir.path(), folder.path().join(name)).unwrap();
        }
        let page = compare(folder.path(), ["a b", "c"], "/runs/").unwrap();
        assert!(page.contains("/runs/a%20b/report.html") && page.contains("/runs/c/report.html"));
        // the answer of `tidemark compare`: one run each, told apart by their seconds
        assert!(page.contains("B against A"), "{page}");
        let sides = ["a b", "c"].map(|name| Side::of_runs(name, &[folder.path().join(name)]).unwrap());
        let claims = Claims::of(&sides, Asked::default()).unwrap();
        assert!(page.contains(&claims.says[0].replace('<', "&lt;")), "{page}");
        assert!(compare(folder.path(), ["c", "none"], "/runs/").is_err());
    }

    #[test]
    fn a_comparison_has_the_page_of_how_it_ran() {
        let (dir, runs) = crate::comparison::tests::runs();
        assert!(page(dir.path()).unwrap().contains("id=\"run\">{"));
        let mut comparison = runs.comparison;
        comparison.in_rounds =
            Some(InRounds { level: 0.05, took_s: 60.0, budget_s: 600.0, rounds_max: None });
        comparison.write(dir.path()).unwrap();
        let page = page(dir.path()).unwrap();
        assert!(!page.contains("<script") && page.contains("B against A"), "{page}");
    }
}
