//! Run directories that look like those of real runs, without a load.

use std::path::Path;

use tidemark_limit::{
    Figures, Goal, GoalResult, Options, Purpose, Resources, Search, Searches, Trial, TrialPlan,
};
use tidemark_record::summary::{Process, Status, Verdict};
use tidemark_record::{
    Manifest, Outcome, RunWriter, Sample, Series, ThreadInterval, new_histogram, summarize,
};

/// What a run saw.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// Its measured seconds.
    pub seconds: u64,
    /// Response times of its two labels, Search and Checkout, microseconds; a hundred a second of each.
    pub us: [u64; 2],
    /// When it began, RFC 3339.
    pub started_at: String,
    /// Git revision.
    pub revision: String,
    /// Cores of the machine.
    pub cores: u64,
}

impl Default for StoredRun {
    fn default() -> Self {
        StoredRun {
            seconds: 10,
            us: [10_000, 20_000],
            started_at: "2026-03-01T10:00:00Z".into(),
            revision: "a".repeat(40),
            cores: 4,
        }
    }
}

impl StoredRun {
    /// Writes it into a directory that is not there yet.
    pub fn write(&self, dir: &Path) {
        let labels = ["Search", "Checkout"].map(String::from);
        let mut writer = RunWriter::create(dir, &labels, "name: shop\n").unwrap();
        writer.threads(1);
        for second in 0..self.seconds {
            let mut one = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
            one.in_window = true;
            (one.offered, one.measured_offered) = (200, 200);
            // a second differs from the next by a little
            one.series = (0..).zip(self.us).map(|(label, us)| series(label, us + second % 3 * 20)).collect();
            writer.add_interval(&one).unwrap();
            let at_us = (second + 1) * 1_000_000;
            let sample = Sample { at_us, process: "system".into(), cpu_share: 0.2, ..Sample::default() };
            writer.add_sample(&sample).unwrap();
        }
        let mut summary = summarize(writer.totals(), dir);
        summary.verdict = Verdict { status: Status::Pass, reasons: Vec::new() };
        summary.processes = vec![Process {
            name: "system".into(),
            cpu_s: 0.2 * self.seconds as f64,
            cpu_share: 0.2,
            rss_bytes_max: 10 << 20,
            ..Process::default()
        }];
        let mut manifest = Manifest::new("shop", labels.to_vec(), summary);
        manifest.load = "closed, 2 users".into();
        manifest.started_at = self.started_at.clone();
        manifest.git_revision = Some(self.revision.clone());
        manifest.machine.cores = self.cores;
        writer.finish(&manifest).unwrap();
    }
}

fn series(label: u16, us: u64) -> Series {
    let mut times = new_histogram();
    times.record_n(us, 100);
    Series {
        label,
        outcome: Outcome::Ok,
        measured: true,
        phase: None,
        response_time_us: times.clone(),
        response_time_less_lag_us: times.clone(),
        service_time_us: times,
        bodies: 0,
        body_bytes: 0,
    }
}

/// A search that was stopped: the directory and the level of each trial, and whether it held.
pub fn search(name: &str, trials: &[(&str, f64, bool)]) -> Searches {
    let trial = |&(dir, level, met): &(&str, f64, bool)| {
        let ask = TrialPlan { level, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 4.0 };
        let figures = Figures { offered_per_s: level, achieved_per_s: level, ..Figures::default() };
        let seen = vec![GoalResult { met, ..GoalResult::default() }];
        Trial { dir: dir.into(), ..Trial::new(ask, seen, figures) }
    };
    let mut searches = Searches::new(name, "");
    searches.searches = vec![Search {
        setting: None,
        goals: vec![Goal { text: "errors < 0.1%".into(), is_of_errors: true, ..Goal::default() }],
        options: Options::new(50.0, 300.0),
        resources: Resources::default(),
        trials: trials.iter().map(trial).collect(),
        ended: None,
        at_least_per_s: None,
        notes: Vec::new(),
    }];
    searches.stopped = Some("stopped by the user".into());
    searches
}
