//! The runs of a folder: a list of them, what one that goes on looks like, two of them compared.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use tidemark_record::summary::Status;
use tidemark_record::{
    ComparedRuns, Comparison, Following, Live, Manifest, RecordError, Run, changed, goes_on, is_unfinished,
    runs_in,
};

use crate::comparison::{Asked, Claims, Compared, Side};
use crate::{html, still};

/// Most runs that are listed, the newest.
const LISTED_MAX: usize = 1_000;
/// Events of a run that goes on that are shown, the last.
const EVENTS_MAX: usize = 50;
/// What a name as one part of a path of a URL cannot have as it is.
const ENCODED_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Reasons of a verdict that are listed.
const REASONS_MAX: usize = 3;

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
#[derive(Debug, Default, Serialize)]
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
}

/// What a folder in a list is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A run that ended.
    #[default]
    Finished,
    /// A run that is running.
    Running,
    /// A run that was killed.
    Killed,
    /// Several runs that are compared.
    Comparison,
    /// Something that cannot be read.
    Unreadable,
}

/// Lists the runs right in a folder, the newest first. Links are not followed.
///
/// # Errors
/// Where the folder cannot be read.
pub fn list(folder: &Path) -> Result<Listing, RecordError> {
    let in_folder = runs_in(folder)?;
    let all = in_folder.runs.into_iter().chain(in_folder.comparisons).chain(in_folder.unfinished);
    let mut found: Vec<(SystemTime, PathBuf)> =
        all.map(|dir| (changed(&dir).unwrap_or(SystemTime::UNIX_EPOCH), dir)).collect();
    found.sort_by(|a, b| b.cmp(a));
    let left_out = in_folder.left_out + found.len().saturating_sub(LISTED_MAX);
    found.truncate(LISTED_MAX);
    Ok(Listing { runs: found.iter().map(|(_, dir)| listed(dir)).collect(), left_out })
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
    if Comparison::is_at(dir) {
        let comparison = Comparison::open(dir)?;
        return Ok(Listed {
            state: State::Comparison,
            scenario: comparison.name,
            compared: Some(comparison.runs.len()),
            system: comparison.sides.join(", "),
            reasons: comparison.stopped.into_iter().collect(),
            ..Listed::default()
        });
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
        reasons: summary.verdict.reasons.iter().take(REASONS_MAX).cloned().collect(),
        achieved_per_s: Some(summary.achieved_per_s),
        offered_per_s: Some(summary.offered_per_s),
        p99_us: summary.response_time_us.p99,
        failed_share: Some(summary.failed_share()),
        ..about(&manifest)
    })
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

/// The page of a run, or of a comparison: what stands as `report.html` in its directory.
///
/// # Errors
/// Where there is neither, or a run cannot be read.
pub fn page(dir: &Path) -> Result<String, RecordError> {
    if !Comparison::is_at(dir) {
        return html::page(&Run::open(dir)?);
    }
    let comparison = Comparison::open(dir)?;
    if comparison.in_rounds.is_some() {
        let sides = Side::of_comparison(dir, &comparison)?;
        return Ok(still::claims(&Claims::of_directory(dir, &comparison, &sides, None, &[])?));
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
    Ok(still::claims_linked(&claims, &reports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;
    use std::fs;
    use tidemark_record::{InRounds, RunWriter, summarize};

    fn states(folder: &Path) -> Vec<(String, State)> {
        let listing = list(folder).unwrap();
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
        Comparison::new("x", "", vec!["p".into(), "q".into()]).write(&of("c")).unwrap();
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
        let listing = list(folder.path()).unwrap();
        let finished = listing.runs.last().unwrap();
        assert_eq!((finished.scenario.as_str(), finished.verdict), ("airline", Some(Status::Fail)));
        assert!(finished.achieved_per_s.unwrap() > 0.0 && finished.failed_share.unwrap() > 0.0);
        assert!(list(&of("none")).is_err());
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
        comparison.in_rounds = Some(InRounds { level: 0.05, took_s: 60.0, budget_s: 600.0 });
        comparison.write(dir.path()).unwrap();
        let page = page(dir.path()).unwrap();
        assert!(!page.contains("<script") && page.contains("B against A"), "{page}");
    }
}
