//! How a run is verified, written down when it begins: with it nothing else needs to be known later.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidemark_drive::Target;
use tidemark_record::ledger::DIR;
use tidemark_scenario::plan::{
    ContentsQuestion, CountQuestion, NextSource, Objective, ReadFrom, Resolve, System, TlsSettings,
};
use tidemark_scenario::{Plan, Shared};
use tidemark_store::Durability;

use crate::LabError;
use crate::target::target;

const NAME: &str = "verify.json";

/// `ledger/verify.json`: how everything is read back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recipe {
    /// Where the system is.
    url: String,
    connect_to: Option<String>,
    resolve: Resolve,
    tls: TlsSettings,
    settle_ms: u64,
    within_ms: u64,
    /// Connections that ask at once.
    pub(super) parallel: usize,
    pub(super) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(super) behind: Option<Count>,
    pub(super) count: Option<Count>,
    pub(super) contents: Option<Contents>,
    #[serde(default)]
    pub(super) store: Option<Store>,
    /// The objectives that the ledger decides.
    objectives: Vec<String>,
}

/// The directory of an embedded store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Store {
    /// Within the run directory, if it is there.
    pub dir: PathBuf,
    pub durability: Durability,
}

/// A question for a number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Count {
    pub path: String,
    pub json: Option<String>,
}

/// Questions for contents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Contents {
    pub items: String,
    pub next: Option<NextPage>,
    pub paths: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NextPage {
    pub source: Source,
    pub parameter: Option<String>,
}

/// Where an answer names the next page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    Header(String),
    Json(String),
}

impl Recipe {
    /// Of a plan that says how, for its system at a URL, which keeps its data in `store` where it has a folder.
    ///
    /// # Errors
    /// If there is too much to ask, or no folder where one is to be read.
    pub fn of(
        plan: &Plan,
        url: &str,
        store: Option<(&Path, Durability)>,
        seed: u64,
    ) -> Result<Option<Recipe>, LabError> {
        let Some(verify) = &plan.verify else { return Ok(None) };
        let shared = Shared::new(plan.counters, plan.feeders.clone());
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let contents = match &verify.from {
            ReadFrom::Api(question) => Some(Contents::of(question, &shared, seed, now_ms)?),
            ReadFrom::Embedded => None,
        };
        let store = match (&verify.from, store) {
            (ReadFrom::Api(_), _) => None,
            (ReadFrom::Embedded, Some((dir, durability))) => Some(Store { dir: dir.to_owned(), durability }),
            (ReadFrom::Embedded, None) => {
                let reason = "`verify: {store: embedded}` reads the directory of a system that this run starts, not of \
                    one at a URL; read that back through its API, with `contents`";
                return Err(LabError::Usage(reason.into()));
            }
        };
        let objectives = plan.objectives.iter().filter(|objective| objective.metric.is_of_the_ledger());
        Ok(Some(Recipe {
            url: url.to_owned(),
            connect_to: plan.system.connect_to.clone(),
            resolve: plan.system.resolve,
            tls: plan.system.tls.clone(),
            settle_ms: verify.settle.as_millis() as u64,
            within_ms: verify.within.as_millis() as u64,
            parallel: verify.parallel,
            headers: verify.headers.clone(),
            behind: verify.behind.as_ref().map(Count::of),
            count: verify.count.as_ref().map(Count::of),
            contents,
            store,
            objectives: objectives.map(|objective| objective.text.clone()).collect(),
        }))
    }

    /// Writes it into a run directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, run_dir: &Path) -> Result<(), LabError> {
        let path = path(run_dir);
        let text = serde_json::to_vec_pretty(self).map_err(|error| LabError::Measure(error.to_string()))?;
        fs::create_dir_all(run_dir.join(DIR))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| LabError::Measure(format!("{}: cannot write: {error}", path.display())))
    }

    /// The recipe of a run.
    ///
    /// # Errors
    /// If it kept none, or what is there is no recipe.
    pub fn read(run_dir: &Path) -> Result<Recipe, LabError> {
        let path = path(run_dir);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LabError::Usage(format!(
                "{}: this run has nothing to verify by: its scenario had no `verify:` section",
                run_dir.display()
            )),
            _ => LabError::Usage(format!("{}: cannot read: {error}", path.display())),
        })?;
        serde_json::from_slice(&text)
            .map_err(|error| LabError::Usage(format!("{}: no recipe to verify by: {error}", path.display())))
    }

    /// The system is somewhere else now.
    pub fn move_to(&mut self, url: &str) {
        url.clone_into(&mut self.url);
        self.connect_to = None;
        if !["https:", "wss:"].iter().any(|scheme| url.starts_with(scheme)) {
            self.tls = TlsSettings::default();
        }
    }

    /// Where the system is.
    ///
    /// # Errors
    /// If the URL leads nowhere.
    pub fn target(&self) -> Result<Target, LabError> {
        let system = System {
            connect_to: self.connect_to.clone(),
            resolve: self.resolve,
            tls: self.tls.clone(),
            ..System::default()
        };
        target(&self.url, &system)
    }

    /// Whether the store's directory is read and not the system asked, which is stopped for that.
    pub fn is_of_a_directory(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    pub(super) fn within(&self) -> Duration {
        Duration::from_millis(self.within_ms)
    }

    /// The objectives that the ledger decides; one of another version that is not understood is passed over.
    pub(super) fn objectives(&self) -> Vec<Objective> {
        self.objectives.iter().filter_map(|text| Objective::read(text).ok()).collect()
    }
}

impl Count {
    fn of(question: &CountQuestion) -> Count {
        let path = question.path.as_literal().unwrap_or_default();
        Count {
            path: String::from_utf8_lossy(path).into_owned(),
            json: question.json.as_ref().map(ToString::to_string),
        }
    }
}

impl Contents {
    fn of(
        question: &ContentsQuestion,
        shared: &Shared,
        seed: u64,
        now_ms: i64,
    ) -> Result<Contents, LabError> {
        let paths = question.paths(shared, seed, now_ms).map_err(LabError::Usage)?;
        let next = question.next.as_ref().map(|next| NextPage {
            source: match &next.source {
                NextSource::Header(name) => Source::Header(name.clone()),
                NextSource::Json(path) => Source::Json(path.to_string()),
            },
            parameter: next.parameter.clone(),
        });
        Ok(Contents { items: question.items.to_string(), next, paths })
    }
}

fn path(run_dir: &Path) -> PathBuf {
    run_dir.join(DIR).join(NAME)
}
