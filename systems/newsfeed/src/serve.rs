//! A news feed from its settings to its routes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidemark_service::encode::{DescriptorEncoder, counter, gauge, info, own, syncs};
use tidemark_service::{Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System};
use tidemark_store::Durability;

use crate::app::{App, FanOut};
use crate::delivery::{Deliveries, Means, recover};
use crate::events_in::EventsIn;
use crate::handlers::router;
use crate::ids::{PostIds, day_of, now_us};
use crate::live::{EndWith, Live};
use crate::operations::Operations;
use crate::people::CachedPeople;
use crate::refusal::refuse;
use crate::settings::SETTINGS;
use crate::stores::{Choice, FeedsIn, Stores};

/// So far ahead of the clock the newest post may be without a word: five minutes.
const AHEAD_US: u64 = 300_000_000;

/// A news feed as its settings have it.
#[derive(Debug)]
pub struct NewsFeed {
    fan_out: FanOut,
    waiting_max: usize,
    within: Duration,
    streams_max: usize,
    body_bytes_max: usize,
    #[cfg(feature = "graphql")]
    graphql_mib_max: usize,
    choice: Choice,
    events: EventsIn,
}

impl ReferenceSystem for NewsFeed {
    const NAME: &'static str = "newsfeed";
    const DESCRIPTION: &'static str =
        "participants, friends, posts and feeds, after the public clojure-news-feed";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const TELLS_OPERATIONS: bool = true;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let fan_out = settings.text("fan_out", |text| match text {
            "sync" => Some(FanOut::Sync),
            "async" => Some(FanOut::Async),
            _ => None,
        })?;
        Ok(NewsFeed {
            fan_out,
            waiting_max: settings.value("fan_out_waiting_max", 1..=1_000_000)?,
            within: Duration::from_secs(settings.value("fan_out_within_s", 1..=3600)?),
            streams_max: settings.value("streams_max", 1..=1_000_000)?,
            body_bytes_max: settings.value("body_bytes_max", 32 * 1024..=64 * 1024 * 1024)?,
            #[cfg(feature = "graphql")]
            graphql_mib_max: settings.value("graphql_mib_max", 1..=1_048_576)?,
            choice: Choice::read(settings)?,
            events: EventsIn::read(settings)?,
        })
    }

    fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    fn uses_directory(&self) -> bool {
        self.choice.is_here()
    }

    /// Opens the stores, makes all stories found, and delivers what an earlier process left.
    fn start(self, options: &Options) -> Result<System, StartError> {
        let durability = options.durability;
        let stores = self.choice.open(options.data_dir.as_deref(), durability)?;
        let operations = Arc::new(Operations::new(self.events.open(options.events.as_deref())?));
        let people = || CachedPeople {
            store: stores.people.clone(),
            cache: stores.cache.clone(),
            operations: operations.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let delivered = runtime.block_on(recover(&people(), &*stores.feeds))?;
        let newest = runtime.block_on(stores.feeds.newest())?;
        if let Some(newest) = newest.filter(|newest| newest.at_us > now_us() + AHEAD_US) {
            let newest = day_of(newest.at_us);
            tracing::error!(
                newest,
                "posts are there from days to come: new ones get their dates until the clock is there"
            );
        }
        tracing::info!(delivered, fan_out = ?self.fan_out, %durability, stores = ?self.choice.names(), "data is there");

        let deliveries = Arc::new(Deliveries::new(self.waiting_max, self.within));
        let live = Live::new(self.streams_max);
        let means = Means { operations: operations.clone(), feeds: stores.feeds.clone(), live: live.clone() };
        let app = Arc::new(App {
            people: people(),
            feeds: stores.feeds.clone(),
            search: stores.search.clone(),
            fan_out: self.fan_out,
            deliveries: deliveries.clone(),
            live: live.clone(),
            ids: PostIds::behind(newest),
            operations: operations.clone(),
            #[cfg(feature = "graphql")]
            graphql: crate::graphql::Memory::new(self.graphql_mib_max << 20),
        });
        let end_streams = EndWith(live);
        let system = System::new(router(app.clone())).refusals(refuse).metrics(operations.timings.clone());
        Ok(system
            .at_stop(move || operations.close())
            .counters(move |e| encode(e, &app, &stores, &self.choice, durability))
            .background(deliveries.work(means))
            .background(async move {
                let _end_streams = end_streams;
                std::future::pending().await
            }))
    }
}

/// Writes the counters of the news feed and its stores.
fn encode(
    e: &mut DescriptorEncoder<'_>,
    app: &App,
    stores: &Stores,
    choice: &Choice,
    durability: Durability,
) -> fmt::Result {
    let fan_out = if app.fan_out == FanOut::Sync { "sync" } else { "async" };
    let promise = [("durability", durability.as_str()), ("fan_out", fan_out)];
    info(e, "newsfeed_store", "What an answered post is worth", &promise)?;
    info(e, "newsfeed_data", "Where the data is", &choice.names())?;
    gauge(e, "newsfeed_behind", "Posts that are not delivered yet", app.deliveries.behind())?;
    let failures = app.deliveries.failures.load(Ordering::Relaxed);
    counter(e, "newsfeed_delivery_failures", "Deliveries that failed and were tried again", failures)?;
    let help = "Seconds by which the newest post is ahead of the clock";
    gauge(e, "newsfeed_ids_ahead_seconds", help, app.ids.ahead_us() / 1_000_000)?;
    gauge(e, "newsfeed_streams", "Event streams that are open", app.live.open() as u64)?;
    #[cfg(feature = "graphql")]
    gauge(
        e,
        "newsfeed_graphql_held_bytes",
        "Bytes that GraphQL holds for answers that are made, roughly",
        app.graphql.held_bytes() as u64,
    )?;
    app.operations.encode(e)?;
    let help = "Operations that could not be told one by one";
    counter(e, "newsfeed_events_dropped", help, app.operations.dropped())?;
    if let Some(embedded) = &stores.embedded {
        let now = tidemark_store::feeds::Feeds::metrics(&**embedded);
        counter(e, "newsfeed_store_commits", "Groups of writes made durable", now.commits)?;
        counter(e, "newsfeed_store_writes", "Writes in those groups", now.writes)?;
        let help = "Writes that found the queue full and waited for room";
        counter(e, "newsfeed_store_queue_waits", help, now.queue_waits)?;
        gauge(e, "newsfeed_store_queue_depth", "Writes that wait to enter a group", now.queue_depth)?;
        let help = "1 after a write has failed: the store takes no more";
        gauge(e, "newsfeed_store_stopped", help, u64::from(now.stopped))?;
        let help = "Time to make a group of writes durable, in seconds";
        syncs(e, "newsfeed_store_sync_seconds", help, (&now.sync_buckets, now.sync_sum_us))?;
        own(e, "newsfeed_store", &now.own)?;
    }
    // the embedded store's are there already
    if choice.feeds != FeedsIn::Embedded {
        let now = stores.feeds.metrics();
        counter(e, "newsfeed_feeds_posts", "Posts that the store of feeds has acknowledged", now.writes)?;
        counter(e, "newsfeed_feeds_failed", "Posts that it did not acknowledge", now.failed)?;
        counter(e, "newsfeed_feeds_refused", "Posts refused because too many waited", now.refused)?;
        gauge(e, "newsfeed_feeds_waiting", "Posts that wait for the store of feeds", now.queue_depth)?;
        let help = "Time until a post was acknowledged, in seconds";
        syncs(e, "newsfeed_feeds_seconds", help, (&now.sync_buckets, now.sync_sum_us))?;
        own(e, "newsfeed_feeds", &now.own)?;
    }
    if choice.people.name() != "embedded" {
        own(e, &format!("newsfeed_{}", choice.people.name()), &stores.people.metrics().own)?;
    }
    if let Some(cache) = &stores.cache {
        own(e, "newsfeed_cache", &cache.metrics().own)?;
    }
    own(e, "newsfeed_search", &stores.search.metrics().own)
}
