//! How a run is verified, written down when it begins: with it nothing else needs to be known later.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidemark_drive::Target;
use tidemark_record::ledger::DIR;
use tidemark_scenario::plan::{
    CassandraTable, ContentsQuestion, CountQuestion, Durability, Each, NextPage, Objective, ReadFrom,
    Resolve, System, SystemOrigin, TlsSettings,
};
use tidemark_scenario::{Plan, Secrets, Shared};
use tidemark_wire::json;

use super::hidden;
use crate::LabError;
use crate::shipped::MessageTable;
use crate::target::target;

const NAME: &str = "verify.json";

/// `ledger/verify.json`: how everything is read back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recipe {
    /// Where the system is.
    url: String,
    connect_to: Option<String>,
    #[serde(default)]
    proxy: Option<String>,
    resolve: Resolve,
    tls: TlsSettings,
    settle_ms: u64,
    within_ms: u64,
    /// Connections that ask at once.
    pub(super) parallel: usize,
    pub(super) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(super) behind: Option<CountQuestion>,
    pub(super) count: Option<CountQuestion>,
    pub(super) contents: Option<Contents>,
    #[serde(default)]
    pub(super) store: Option<Store>,
    /// The store that this is and that the run started; it is stopped by its end.
    #[serde(default)]
    started: Option<String>,
    /// The objectives that the ledger decides.
    objectives: Vec<String>,
    /// What it is written down without.
    #[serde(skip)]
    pub(super) secrets: Secrets,
}

/// A store that is read past its system.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Store {
    /// The directory of an embedded one, within the run directory, if it is there.
    Directory {
        dir: PathBuf,
        #[serde(with = "durability")]
        durability: Durability,
    },
    Cassandra(MessageTable),
    /// The keys of the Redis that is driven.
    Redis {
        keys: String,
    },
    /// Those of the memcached that is driven, listed by this pattern.
    Memcached {
        listed: String,
    },
    /// The records of a set of the Aerospike that is driven.
    Aerospike {
        set: String,
    },
    /// The rows of the PostgreSQL or Cassandra that is driven.
    Rows {
        statement: String,
    },
}

/// What a run knows of its stores, for them to be read directly.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// The system as it was told where the stores are; as the plan has it where nothing was started.
    pub system: Option<&'a System>,
    /// The folder of the system's own store, and what an acknowledged write in it is worth.
    pub directory: Option<(&'a Path, Durability)>,
    /// Addresses and name of the Cassandra that it started.
    pub cassandra: Option<(Vec<String>, String)>,
    /// The store at the URL, where it started that.
    pub started: Option<String>,
}

/// Questions for contents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Contents {
    pub items: json::Path,
    pub next: Option<NextPage>,
    pub paths: Vec<String>,
    /// In place of the paths.
    #[serde(default)]
    pub numbers: Option<Numbers>,
    /// The first group of this in a content is in how many places that is to be.
    #[serde(default)]
    pub copies: Option<String>,
}

/// Paths that differ in a number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Numbers {
    pub from: u64,
    /// Where the last one is asked for.
    pub to: CountQuestion,
    /// What stands before and behind it in each path.
    pub around: Vec<[String; 2]>,
}

impl Recipe {
    /// Of a plan that says how, for what is asked or read at a URL.
    ///
    /// # Errors
    /// If there is too much to ask, or nobody knows where the store is that is to be read.
    pub fn of(plan: &Plan, url: &str, known: Known<'_>, seed: u64) -> Result<Option<Recipe>, LabError> {
        let Some(verify) = &plan.verify else { return Ok(None) };
        let shared = Shared::new(plan.counters, plan.feeders.clone());
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let contents = match &verify.from {
            ReadFrom::Api(question) => Some(Contents::of(question, &shared, seed, now_ms)?),
            ReadFrom::Embedded
            | ReadFrom::Cassandra(_)
            | ReadFrom::Redis { .. }
            | ReadFrom::Memcached { .. }
            | ReadFrom::Aerospike { .. }
            | ReadFrom::Rows { .. } => None,
        };
        let started = known.started.clone();
        let store = Store::of(&verify.from, known.system.unwrap_or(&plan.system), known)?;
        let asked = usize::from(verify.at).checked_sub(1).and_then(|at| plan.targets.get(at));
        let asked = asked.map_or(&plan.system, |target| &target.at);
        let objectives = plan.objectives.iter().filter(|objective| objective.metric.is_of_the_ledger());
        Ok(Some(Recipe {
            url: url.to_owned(),
            connect_to: asked.connect_to.clone(),
            proxy: asked.proxy.clone(),
            resolve: asked.resolve,
            tls: asked.tls.clone(),
            settle_ms: verify.settle.as_millis() as u64,
            within_ms: verify.within.as_millis() as u64,
            parallel: verify.parallel,
            headers: verify.headers.clone(),
            behind: verify.behind.clone(),
            count: verify.count.clone(),
            contents,
            store,
            started,
            objectives: objectives.map(|objective| objective.text.clone()).collect(),
            secrets: plan.secrets.clone(),
        }))
    }

    /// Writes it into a run directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, run_dir: &Path) -> Result<(), LabError> {
        let path = path(run_dir);
        let kept = hidden::kept(self, &self.secrets).and_then(|kept| serde_json::to_vec_pretty(&kept));
        let text = kept.map_err(|error| LabError::Measure(error.to_string()))?;
        fs::create_dir_all(run_dir.join(DIR))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| LabError::Measure(format!("{}: cannot write: {error}", path.display())))
    }

    /// The recipe of a run. Its secrets were not kept: `given` has the values of settings and headers by name, and what
    /// came from the environment comes from there again. `url`: where what is asked or read is now, if not where it was.
    ///
    /// # Errors
    /// If it kept none, what is there is no recipe, a secret is missing, or what is to be read was a store that the run
    /// started: whoever is there now is another one.
    pub fn read(run_dir: &Path, given: &[(String, String)], url: Option<&str>) -> Result<Recipe, LabError> {
        let path = path(run_dir);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LabError::Usage(format!(
                "{}: this run has nothing to verify by: its scenario had no `verify:` section",
                run_dir.display()
            )),
            _ => LabError::Usage(format!("{}: cannot read: {error}", path.display())),
        })?;
        let wrong = |error| LabError::Usage(format!("{}: no recipe to verify by: {error}", path.display()));
        let mut kept: serde_json::Value = serde_json::from_slice(&text).map_err(wrong)?;
        match (kept["started"].as_str(), url) {
            (Some(name), None) => {
                return Err(LabError::Usage(format!(
                    "the run started its store {name} and stopped it with its end, so that it can only be verified while the run \
                     goes on; if it runs again with what it held, say where: --url"
                )));
            }
            // it has its own password
            (_, Some(url)) => kept["url"] = url.into(),
            (None, None) => {}
        }
        let (kept, mut secrets) = hidden::given_back(kept, given)?;
        if let Some(url) = url {
            secrets.add_password_of(url);
        }
        let recipe: Recipe = serde_json::from_value(kept).map_err(wrong)?;
        Ok(Recipe { secrets, ..recipe })
    }

    /// What is asked or read is somewhere else now.
    pub fn move_to(&mut self, url: &str) {
        url.clone_into(&mut self.url);
        self.connect_to = None;
        self.proxy = None;
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
            proxy: self.proxy.clone(),
            resolve: self.resolve,
            tls: self.tls.clone(),
            ..System::default()
        };
        target(&self.url, &system)
    }

    /// Whether the store's directory is read and not the system asked, which is stopped for that.
    pub fn is_of_a_directory(&self) -> bool {
        matches!(self.store, Some(Store::Directory { .. }))
    }

    /// Whether there is something that the system is asked: everything, or when its store has all of it.
    pub fn asks_the_system(&self) -> bool {
        let of_a_run = matches!(self.store, Some(Store::Directory { .. } | Store::Cassandra(_)));
        !of_a_run || self.behind.is_some()
    }

    /// The store has all that it is to be read for: from now on nobody needs to be asked or waited for.
    pub(super) fn caught_up(&mut self) {
        (self.behind, self.settle_ms) = (None, 0);
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

impl Store {
    /// What `verify` wants to be read directly; nothing where it is the system that is asked.
    fn of(from: &ReadFrom, system: &System, known: Known<'_>) -> Result<Option<Store>, LabError> {
        let unknown = |reason: &str| Err(LabError::Usage(reason.into()));
        match from {
            ReadFrom::Api(_) => Ok(None),
            ReadFrom::Redis { keys } => Ok(Some(Store::Redis { keys: keys.clone() })),
            ReadFrom::Memcached { keys } => Ok(Some(Store::Memcached { listed: keys.clone() })),
            ReadFrom::Aerospike { set } => Ok(Some(Store::Aerospike { set: set.clone() })),
            ReadFrom::Rows { statement } => Ok(Some(Store::Rows { statement: statement.clone() })),
            ReadFrom::Embedded => match known.directory {
                Some((dir, durability)) => Ok(Some(Store::Directory { dir: dir.to_owned(), durability })),
                None => unknown(
                    "`verify: {store: embedded}` reads the directory of a system that this run starts, not of \
                     one at a URL; read that back through its API, with `contents`",
                ),
            },
            ReadFrom::Cassandra(said) => match MessageTable::of(said, system, known.cassandra) {
                Some(table) => Ok(Some(Store::Cassandra(table))),
                None => unknown(
                    "`verify: {store: cassandra}` cannot know where the Cassandra of a system at a URL is; name some \
                     of its nodes: `verify: {store: cassandra, contact: HOST:PORT}`",
                ),
            },
        }
    }
}

/// A durability is written down as its word.
mod durability {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use tidemark_scenario::plan::Durability;

    pub fn serialize<S: Serializer>(durability: &Durability, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(durability.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Durability, D::Error> {
        let word = String::deserialize(deserializer)?;
        Durability::from_name(&word).ok_or_else(|| D::Error::custom(format!("`{word}` is no durability")))
    }
}

impl MessageTable {
    /// As `verify` says it, else as the settings of the system say it that this run starts, else where it started one,
    /// else the settings' defaults.
    fn of(
        said: &CassandraTable,
        system: &System,
        started: Option<(Vec<String>, String)>,
    ) -> Option<MessageTable> {
        let is_ours = !matches!(system.origin, SystemOrigin::Url(_));
        let set =
            |name: &str| system.settings.get(name).filter(|_| is_ours).map(|text| text.trim().to_owned());
        let [contact_name, keyspace_name, consistency_name] = CassandraTable::SETTINGS;
        let [default_contact, default_keyspace, default_consistency] =
            said.defaults.map(|default| default.map(str::to_owned));
        let named = said.contact.clone().or_else(|| set(contact_name));
        let (contact, cluster) = match (named, started) {
            (Some(named), started) => {
                let contact: Vec<String> = named.split(',').map(|node| node.trim().to_owned()).collect();
                let started =
                    started.filter(|(addresses, _)| contact.iter().all(|node| addresses.contains(node)));
                (contact, started.map(|(_, cluster)| cluster))
            }
            (None, Some((addresses, cluster))) => (addresses, Some(cluster)),
            (None, None) if is_ours => (vec![default_contact?], None),
            (None, None) => return None,
        };
        Some(MessageTable {
            contact,
            keyspace: said.keyspace.clone().or_else(|| set(keyspace_name)).or(default_keyspace)?,
            consistency: said
                .consistency
                .clone()
                .or_else(|| set(consistency_name))
                .or(default_consistency)?,
            cluster,
        })
    }
}

impl Contents {
    fn of(
        question: &ContentsQuestion,
        shared: &Shared,
        seed: u64,
        now_ms: i64,
    ) -> Result<Contents, LabError> {
        let ContentsQuestion { items, next, copies, .. } = question.clone();
        let (paths, numbers) = match &question.each {
            Some(Each::Number { from, to }) => {
                let around = question.around_number(shared, seed, now_ms).map_err(LabError::Usage)?;
                (Vec::new(), Some(Numbers { from: *from, to: to.clone(), around }))
            }
            _ => (question.paths(shared, seed, now_ms).map_err(LabError::Usage)?, None),
        };
        Ok(Contents { items, next, paths, numbers, copies })
    }
}

fn path(run_dir: &Path) -> PathBuf {
    run_dir.join(DIR).join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(origin: SystemOrigin, settings: &[(&str, &str)]) -> System {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        System { origin, settings: settings.collect(), ..System::default() }
    }

    fn nothing_said() -> CassandraTable {
        let defaults = [Some("127.0.0.1:9042"), Some("tidemark"), Some("quorum")];
        CassandraTable { defaults, ..CassandraTable::default() }
    }

    fn started() -> Option<(Vec<String>, String)> {
        Some((vec!["127.0.0.1:1".into(), "127.0.0.2:1".into()], "ours".into()))
    }

    #[test]
    fn where_cassandra_is_says_verify_then_the_settings_then_the_run_that_started_it() {
        let intake = |settings| system(SystemOrigin::Shipped("ingest".into()), settings);
        let said = CassandraTable { contact: Some("a:1, b:2".into()), ..nothing_said() };
        let of = |said: &CassandraTable, system: &System, started| {
            let table = MessageTable::of(said, system, started)?;
            Some((table.contact.join(" "), table.keyspace, table.consistency, table.cluster))
        };
        let found = |contact: &str, keyspace: &str, consistency: &str, cluster: Option<&str>| {
            Some((contact.into(), keyspace.into(), consistency.into(), cluster.map(Into::into)))
        };
        let nothing = nothing_said();
        let set = [("contact", "c:3"), ("keyspace", "k"), ("consistency", "all")];
        assert_eq!(of(&said, &intake(&set), started()), found("a:1 b:2", "k", "all", None));
        assert_eq!(of(&nothing, &intake(&set), started()), found("c:3", "k", "all", None));
        let handed = [("contact", "127.0.0.2:1,127.0.0.1:1")];
        let handed = of(&nothing, &intake(&handed), started());
        assert_eq!(handed, found("127.0.0.2:1 127.0.0.1:1", "tidemark", "quorum", Some("ours")));
        let ours = found("127.0.0.1:1 127.0.0.2:1", "tidemark", "quorum", Some("ours"));
        assert_eq!(of(&nothing, &intake(&[]), started()), ours);
        assert_eq!(of(&nothing, &intake(&[]), None), found("127.0.0.1:9042", "tidemark", "quorum", None));
        // whatever is at a URL need not have the settings of what the scenario would start
        let elsewhere = system(SystemOrigin::Url("http://a".into()), &set);
        assert_eq!(of(&nothing, &elsewhere, None), None);
        assert_eq!(of(&said, &elsewhere, None), found("a:1 b:2", "tidemark", "quorum", None));
    }

    #[test]
    fn a_store_is_written_down_and_read_again() {
        let table = MessageTable::of(&nothing_said(), &System::default(), started()).unwrap();
        for store in [
            Store::Directory { dir: "data".into(), durability: Durability::Buffered },
            Store::Cassandra(table),
            Store::Redis { keys: "k:*".into() },
            Store::Memcached { listed: "k:*".into() },
            Store::Rows { statement: "SELECT note FROM notes".into() },
        ] {
            let text = serde_json::to_string(&store).unwrap();
            let read: Store = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
