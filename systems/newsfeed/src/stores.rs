//! Which stores a news feed has, and how they are opened.

use std::path::Path;
use std::sync::Arc;

use tidemark_service::{SettingError, Settings, StartError};
use tidemark_store::cache::Cache;
use tidemark_store::feeds::Feeds;
#[cfg(feature = "opensearch")]
use tidemark_store::opensearch::{Engine, Options};
use tidemark_store::people::People;
use tidemark_store::search::Search;
use tidemark_store::{Durability, EmbeddedFeed, InvertedIndex};

use crate::cache_in::CacheIn;
use crate::people_in::PeopleIn;

/// Where posts and feeds are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeedsIn {
    /// In this process.
    Embedded,
    /// In Apache Cassandra.
    #[cfg(feature = "cassandra")]
    Cassandra(tidemark_store::cassandra::Options),
}

impl FeedsIn {
    /// Settings of a store that is not taken are read too, so that mistakes show.
    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let cassandra = Self::cassandra(settings)?;
        let not_built_in = SettingError::NotBuiltIn { store: "Apache Cassandra", feature: "cassandra" };
        settings.text("feeds", |name| match name {
            "embedded" => Some(Ok(FeedsIn::Embedded)),
            "cassandra" => Some(cassandra.ok_or(not_built_in)),
            _ => None,
        })?
    }

    #[cfg(not(feature = "cassandra"))]
    fn cassandra(_: &Settings<'_>) -> Result<Option<Self>, SettingError> {
        Ok(None)
    }

    #[cfg(feature = "cassandra")]
    fn cassandra(settings: &Settings<'_>) -> Result<Option<Self>, SettingError> {
        use tidemark_store::cassandra::Options;
        let contact = settings.text("contact", Options::contact_of)?;
        let replication = settings.text("replication", |text| Options::replication_of(text, &contact))?;
        Ok(Some(FeedsIn::Cassandra(Options {
            contact,
            keyspace: settings.text("keyspace", Options::keyspace_of)?,
            replication,
            consistency: settings.text("consistency", |text| text.parse().ok())?,
            timeout: std::time::Duration::from_secs(settings.value("feeds_timeout_s", 1..=3600)?),
            ..Options::default()
        })))
    }
}

/// What finds stories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchIn {
    /// An index in this process, of so many bytes.
    Embedded { bytes_max: usize },
    /// An index on this process's disk.
    #[cfg(feature = "tantivy")]
    Tantivy,
    /// In OpenSearch or Solr.
    #[cfg(feature = "opensearch")]
    Server(tidemark_store::opensearch::Options),
}

impl SearchIn {
    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let mib: usize = settings.value("search_mib_max", 16..=1 << 20)?;
        #[cfg(feature = "opensearch")]
        let [opensearch, solr] = [
            Self::server(settings, Engine::OpenSearch, ["opensearch", "search_index"])?,
            Self::server(settings, Engine::Solr, ["solr", "solr_core"])?,
        ];
        settings.text("search", |name| match name {
            "embedded" => Some(Ok(SearchIn::Embedded { bytes_max: mib << 20 })),
            #[cfg(feature = "tantivy")]
            "tantivy" => Some(Ok(SearchIn::Tantivy)),
            #[cfg(not(feature = "tantivy"))]
            "tantivy" => Some(Err(SettingError::NotBuiltIn { store: "tantivy", feature: "tantivy" })),
            #[cfg(feature = "opensearch")]
            "opensearch" => Some(Ok(opensearch)),
            #[cfg(feature = "opensearch")]
            "solr" => Some(Ok(solr)),
            #[cfg(not(feature = "opensearch"))]
            "opensearch" => {
                Some(Err(SettingError::NotBuiltIn { store: "OpenSearch", feature: "opensearch" }))
            }
            #[cfg(not(feature = "opensearch"))]
            "solr" => Some(Err(SettingError::NotBuiltIn { store: "Solr", feature: "opensearch" })),
            _ => None,
        })?
    }

    /// A server, by the names of the settings that say where it is and what its index is called.
    #[cfg(feature = "opensearch")]
    fn server(
        settings: &Settings<'_>,
        engine: Engine,
        [place, index]: [&'static str; 2],
    ) -> Result<Self, SettingError> {
        let usual = || Options { engine, ..Options::default() };
        let checked = |options: Options| options.check().is_ok().then_some(options);
        let url = settings
            .text(place, |url| checked(Options { url: url.to_owned(), ..usual() }).map(|of| of.url))?;
        let index = settings.text(index, |index| {
            checked(Options { index: index.to_owned(), ..usual() }).map(|of| of.index)
        })?;
        let timeout = std::time::Duration::from_secs(settings.value("search_timeout_s", 1..=3600)?);
        Ok(SearchIn::Server(Options { url, index, timeout, ..usual() }))
    }
}

/// What stands behind a news feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) people: PeopleIn,
    pub(crate) feeds: FeedsIn,
    pub(crate) search: SearchIn,
    pub(crate) cache: CacheIn,
}

/// The stores, open.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) people: Arc<dyn People>,
    pub(crate) feeds: Arc<dyn Feeds>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    /// Absent where nothing is in this process.
    pub(crate) embedded: Option<Arc<EmbeddedFeed>>,
}

impl Choice {
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        Ok(Choice {
            people: PeopleIn::read(settings)?,
            cache: CacheIn::read(settings)?,
            feeds: FeedsIn::read(settings)?,
            search: SearchIn::read(settings)?,
        })
    }

    /// Whether some data is in a directory of this process.
    pub(crate) fn is_here(&self) -> bool {
        #[cfg(feature = "tantivy")]
        if self.search == SearchIn::Tantivy {
            return true;
        }
        self.has_rows_here()
    }

    fn has_rows_here(&self) -> bool {
        self.people == PeopleIn::Embedded || self.feeds == FeedsIn::Embedded
    }

    /// What each is in.
    pub(crate) fn names(&self) -> [(&'static str, &'static str); 4] {
        let feeds = match self.feeds {
            FeedsIn::Embedded => "embedded",
            #[cfg(feature = "cassandra")]
            FeedsIn::Cassandra(_) => "cassandra",
        };
        let search = match self.search {
            SearchIn::Embedded { .. } => "embedded",
            #[cfg(feature = "tantivy")]
            SearchIn::Tantivy => "tantivy",
            #[cfg(feature = "opensearch")]
            SearchIn::Server(Options { engine: Engine::OpenSearch, .. }) => "opensearch",
            #[cfg(feature = "opensearch")]
            SearchIn::Server(Options { engine: Engine::Solr, .. }) => "solr",
        };
        [("people", self.people.name()), ("feeds", feeds), ("search", search), ("cache", self.cache.name())]
    }

    pub(crate) fn open(&self, dir: Option<&Path>, durability: Durability) -> Result<Stores, StartError> {
        let embedded = match dir {
            _ if !self.has_rows_here() => None,
            Some(dir) if durability != Durability::Memory => Some(EmbeddedFeed::open(dir, durability)?),
            _ => Some(EmbeddedFeed::in_memory()),
        };
        let here = || embedded.clone().ok_or("nothing is kept in this process");
        let people = match self.people.open(durability)? {
            Some(people) => people,
            None => here()?,
        };
        let feeds: Arc<dyn Feeds> = match &self.feeds {
            FeedsIn::Embedded => here()?,
            #[cfg(feature = "cassandra")]
            FeedsIn::Cassandra(options) => cassandra(options.clone(), durability)?,
        };
        let search: Arc<dyn Search> = match &self.search {
            #[cfg(feature = "opensearch")]
            SearchIn::Server(options) => tidemark_store::opensearch::OpenSearch::open(options.clone())?,
            #[cfg(feature = "tantivy")]
            SearchIn::Tantivy => {
                let dir = dir.filter(|_| durability != Durability::Memory).map(|dir| dir.join("search"));
                tidemark_store::TantivyIndex::open(dir.as_deref(), |each| feeds.each_story(each))?
            }
            SearchIn::Embedded { bytes_max } => {
                let index = InvertedIndex::new(*bytes_max);
                let mut stories = 0u64;
                feeds.each_story(&mut |post| {
                    index.add_story(post.poster, &post.story);
                    stories += 1;
                })?;
                tracing::info!(stories, "stories can be found");
                Arc::new(index)
            }
        };
        Ok(Stores { people, feeds, search, cache: self.cache.open()?, embedded })
    }
}

#[cfg(feature = "cassandra")]
fn cassandra(
    options: tidemark_store::cassandra::Options,
    wanted: Durability,
) -> Result<Arc<dyn Feeds>, StartError> {
    use tidemark_store::StoreError;
    let place = options.contact.join(", ").into();
    let store = tidemark_store::cassandra::CassandraFeeds::open(options)?;
    let given = store.durability();
    let remedy = match given {
        Durability::Memory => "alter the keyspace to durable_writes = true, or name another one",
        _ => "let Cassandra's commit log be synced before it answers (commitlog_sync: batch or group)",
    };
    match given >= wanted {
        true => Ok(store),
        false => Err(StoreError::LessDurable { place, given, wanted, remedy }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Choice, SettingError> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Choice::read(&Settings::new(crate::settings::SETTINGS, &given))
    }

    #[test]
    fn a_store_that_there_is_not_is_refused() {
        let embedded = read(&[]).unwrap();
        assert!(
            embedded.is_here() && embedded.names().iter().all(|(_, name)| ["embedded", "off"].contains(name))
        );
        for role in ["feeds", "search"] {
            let error = read(&[(role, "shoebox")]).unwrap_err().to_string();
            assert!(error.contains("shoebox") && error.contains("allowed is embedded"), "{error}");
        }
    }

    #[cfg(not(feature = "cassandra"))]
    #[test]
    fn feeds_that_were_not_built_in_say_how_to_have_them() {
        let error = read(&[("feeds", "cassandra")]).unwrap_err().to_string();
        assert!(error.contains("--features cassandra"), "{error}");
    }

    #[cfg(not(feature = "opensearch"))]
    #[test]
    fn a_search_that_was_not_built_in_says_how_to_have_it() {
        let error = read(&[("search", "opensearch")]).unwrap_err().to_string();
        assert!(error.contains("--features opensearch"), "{error}");
    }

    #[cfg(feature = "cassandra")]
    #[test]
    fn the_settings_of_cassandra_are_read() {
        let choice =
            read(&[("feeds", "cassandra"), ("contact", "a:1, b:2"), ("consistency", "one")]).unwrap();
        let FeedsIn::Cassandra(options) = &choice.feeds else { panic!("not Cassandra") };
        assert_eq!(options.contact, ["a:1", "b:2"]);
        assert_eq!((options.keyspace.as_str(), options.replication), ("activity", 2));
        assert!(choice.is_here(), "participants are here");
        for (name, value) in
            [("contact", "nowhere"), ("replication", "10"), ("consistency", "some"), ("keyspace", "A-B")]
        {
            assert!(read(&[(name, value)]).is_err(), "{name}={value}");
        }
    }

    #[cfg(feature = "opensearch")]
    #[test]
    fn the_settings_of_opensearch_are_read() {
        let given =
            [("search", "opensearch"), ("opensearch", "http://search:9201"), ("search_timeout_s", "7")];
        let SearchIn::Server(options) = read(&given).unwrap().search else { panic!("not OpenSearch") };
        assert_eq!((options.url.as_str(), options.index.as_str()), ("http://search:9201", "feed"));
        assert_eq!(options.timeout.as_secs(), 7);
        let choice = read(&[("search", "solr"), ("solr", "http://search:8984")]).unwrap();
        assert_eq!(choice.names()[2], ("search", "solr"));
        let SearchIn::Server(options) = choice.search else { panic!("not Solr") };
        assert_eq!((options.url.as_str(), options.index.as_str()), ("http://search:8984", "outbound"));
        for (name, value) in [("opensearch", "https://search"), ("search_index", "Feed"), ("solr", "search")]
        {
            assert!(read(&[(name, value)]).is_err(), "{name}={value}");
        }
    }
}
