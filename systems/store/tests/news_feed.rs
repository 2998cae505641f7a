//! Stores of a news feed: one set of checks, over each store that has the role.
//!
//! `TIDEMARK_TEST_CASSANDRA=127.0.0.1:9042 cargo test -p tidemark-store --features cassandra --test every_store -- --ignored news_feed::`;
//! OpenSearch is checked where one is started, in `tests/stores/newsfeed_stores.rs`.

#[path = "common/feed_roles.rs"]
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod feed_roles;

use tidemark_store::{Durability, EmbeddedFeed, InvertedIndex};

#[cfg(feature = "cassandra")]
fn given(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names a server to test with"))
}

/// A name that no other test uses.
#[cfg(feature = "cassandra")]
fn fresh() -> String {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("test_{}", since_1970.as_nanos())
}

#[test]
fn the_embedded_store_has_feeds() {
    let dir = tempfile::tempdir().unwrap();
    feed_roles::feeds(&|| EmbeddedFeed::open(dir.path(), Durability::Buffered).unwrap());
}

#[test]
fn the_embedded_index_finds_stories() {
    feed_roles::search(&InvertedIndex::new(1 << 20));
}

#[cfg(feature = "tantivy")]
#[test]
fn tantivy_finds_stories() {
    let dir = tempfile::tempdir().unwrap();
    for dir in [None, Some(dir.path())] {
        feed_roles::search(&*tidemark_store::TantivyIndex::open(dir, |_| Ok(())).unwrap());
    }
}

/// A note whose post is not there is counted, and hides none behind it.
#[cfg(feature = "cassandra")]
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn cassandra_reads_past_notes_without_a_post() {
    use tidemark_store::cassandra::{CassandraFeeds, Options};
    use tidemark_store::feeds::{Feeds, Post, PostId};
    let contact: Vec<String> = given("TIDEMARK_TEST_CASSANDRA").split(',').map(str::to_owned).collect();
    let keyspace = fresh();
    let options = Options { contact: contact.clone(), keyspace: keyspace.clone(), ..Options::default() };
    let store = CassandraFeeds::open(options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for at_us in 1..=4 {
            let id = PostId { at_us, server: 1 };
            let post = Post { id, poster: 7, subject: "s".into(), story: "s".into() };
            store.post_undelivered(post.into()).await.unwrap();
        }
        let session = scylla::client::session_builder::SessionBuilder::new()
            .known_nodes(&contact)
            .build()
            .await
            .unwrap();
        // the first two are of no post any more
        let before =
            store.outbound(tidemark_store::feeds::FeedQuery { participant: 7, before: None, limit: 4 });
        assert_eq!(before.await.unwrap().posts.len(), 4);
        let rows = session
            .query_unpaged(format!("SELECT occurred FROM {keyspace}.outbound WHERE participantid = 7"), ());
        let rows = rows.await.unwrap().into_rows_result().unwrap();
        let times: Vec<_> =
            rows.rows::<(scylla::value::CqlTimeuuid,)>().unwrap().map(|row| row.unwrap().0).collect();
        for time in &times[2..] {
            let remove = format!("DELETE FROM {keyspace}.outbound WHERE participantid = 7 AND occurred = ?");
            session.query_unpaged(remove, (time,)).await.unwrap();
        }
        let first = store.undelivered(None, 2).await.unwrap();
        assert_eq!((first.posts.len(), first.missing), (0, 2));
        let rest = store.undelivered(first.next, 3).await.unwrap();
        assert_eq!((rest.posts.len(), rest.missing, rest.next), (2, 0, None));
    });
}

/// Inbound feeds only, and by the table, whoever writes into it.
#[cfg(feature = "cassandra")]
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn cassandra_forgets_inbound_posts_after_90_days_and_no_other() {
    use tidemark_store::cassandra::{CassandraFeeds, Options};
    let contact: Vec<String> = given("TIDEMARK_TEST_CASSANDRA").split(',').map(str::to_owned).collect();
    let keyspace = fresh();
    CassandraFeeds::open(Options {
        contact: contact.clone(),
        keyspace: keyspace.clone(),
        ..Options::default()
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let session = scylla::client::session_builder::SessionBuilder::new()
            .known_nodes(&contact)
            .build()
            .await
            .unwrap();
        let question =
            "SELECT table_name, default_time_to_live FROM system_schema.tables WHERE keyspace_name = ?";
        let rows = session.query_unpaged(question, (&keyspace,)).await.unwrap().into_rows_result().unwrap();
        rows.rows::<(String, i32)>().unwrap().map(Result::unwrap).collect::<Vec<_>>()
    });
    let expected = [("inbound", 7_776_000), ("outbound", 0), ("undelivered", 0)];
    assert_eq!(found, expected.map(|(table, ttl_s)| (table.to_owned(), ttl_s)));
}
