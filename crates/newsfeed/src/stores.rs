//! Which stores a news feed has, and how they are opened.

use std::path::Path;
use std::sync::Arc;

use tidemark_service::{SettingError, Settings, StartError};
use tidemark_store::cache::Cache;
use tidemark_store::feeds::Feeds;
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
}

/// What finds stories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchIn {
    /// An index in this process, of so many bytes.
    Embedded { bytes_max: usize },
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
        let mib: usize = settings.value("search_mib_max", 16..=1 << 20)?;
        let embedded = SearchIn::Embedded { bytes_max: mib << 20 };
        Ok(Choice {
            people: PeopleIn::read(settings)?,
            cache: CacheIn::read(settings)?,
            feeds: settings.text("feeds", |name| (name == "embedded").then_some(FeedsIn::Embedded))?,
            search: settings.text("search", |name| (name == "embedded").then(|| embedded.clone()))?,
        })
    }

    /// Whether some data is in a directory of this process.
    pub(crate) fn is_here(&self) -> bool {
        self.people == PeopleIn::Embedded || self.feeds == FeedsIn::Embedded
    }

    /// What each is in.
    pub(crate) fn names(&self) -> [(&'static str, &'static str); 4] {
        let feeds = match self.feeds {
            FeedsIn::Embedded => "embedded",
        };
        let search = match self.search {
            SearchIn::Embedded { .. } => "embedded",
        };
        [("people", self.people.name()), ("feeds", feeds), ("search", search), ("cache", self.cache.name())]
    }

    pub(crate) fn open(&self, dir: Option<&Path>, durability: Durability) -> Result<Stores, StartError> {
        let embedded = match dir {
            _ if !self.is_here() => None,
            Some(dir) if durability != Durability::Memory => Some(EmbeddedFeed::open(dir, durability)?),
            _ => Some(EmbeddedFeed::in_memory()),
        };
        let here = || embedded.clone().ok_or("nothing is kept in this process");
        let people = match self.people.open(durability)? {
            Some(people) => people,
            None => here()?,
        };
        let feeds: Arc<dyn Feeds> = match self.feeds {
            FeedsIn::Embedded => here()?,
        };
        let search: Arc<dyn Search> = match self.search {
            SearchIn::Embedded { bytes_max } => {
                let index = InvertedIndex::new(bytes_max);
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
