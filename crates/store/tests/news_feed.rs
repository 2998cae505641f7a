//! Stores of a news feed: one set of checks, over each store that has the role.
//!
//! `TIDEMARK_TEST_CASSANDRA=127.0.0.1:9042 cargo test -p tidemark-store --features cassandra --test news_feed -- --ignored`,
//! and the same with `TIDEMARK_TEST_OPENSEARCH=http://127.0.0.1:9200` and the feature `opensearch`.

#[path = "common/feed_roles.rs"]
#[allow(dead_code, reason = "shared by tests that each use a part of it")]
mod feed_roles;

use tidemark_store::{Durability, EmbeddedFeed, InvertedIndex};

#[cfg(any(feature = "cassandra", feature = "opensearch"))]
fn given(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names a server to test with"))
}

/// A name that no other test uses.
#[cfg(any(feature = "cassandra", feature = "opensearch"))]
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

#[cfg(feature = "cassandra")]
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn cassandra_has_feeds() {
    use tidemark_store::cassandra::{CassandraFeeds, Options};
    let contact = given("TIDEMARK_TEST_CASSANDRA").split(',').map(str::to_owned).collect();
    let options = Options { contact, keyspace: fresh(), ..Options::default() };
    feed_roles::feeds(&|| CassandraFeeds::open(options.clone()).unwrap());
}

#[cfg(feature = "opensearch")]
#[test]
#[ignore = "needs an OpenSearch: see the top of this file"]
fn opensearch_finds_stories() {
    use tidemark_store::opensearch::{OpenSearch, Options};
    let options = Options { url: given("TIDEMARK_TEST_OPENSEARCH"), index: fresh(), ..Options::default() };
    feed_roles::search(&*OpenSearch::open(options).unwrap());
}
