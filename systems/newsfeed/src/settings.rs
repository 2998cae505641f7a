//! What can be set about a news feed.

use tidemark_service::Setting;

/// All settings, with their defaults.
pub(crate) const SETTINGS: &[Setting] = tidemark_service::settings! {
    "fan_out" = "sync", "sync or async":
        "whether a post is in the feeds of all friends before it is answered, or soon after";
    "fan_out_within_s" = "2", "1 to 3600":
        "with async: no post is taken while one waits longer for its delivery; then posts are answered 503";
    "fan_out_waiting_max" = "10000", "1 to 1000000":
        "with async: posts that are not delivered yet; one more waits for room";
    "people" = "embedded", "embedded, postgres or mariadb":
        "where participants and friends are kept: in this process, in PostgreSQL, or in MariaDB";
    "cache" = "off", "off, embedded or redis":
        "where participants and friends are cached: nowhere (embedded people are in memory already), in this process (only where no other service changes the same people), or in Redis";
    "cache_s" = "300", "1 to 86400":
        "seconds that a cached value lives at most";
    "cache_mib_max" = "256", "1 to 1048576":
        "MiB of the cache in this process";
    #[cfg(feature = "redis")]
    "redis" = "redis://127.0.0.1:6379", "redis://USER:PASSWORD@HOST:PORT/NUMBER":
        "where Redis is; keys Participant::ID and Friends::ID of that database are forgotten at the start";
    #[cfg(feature = "redis")]
    "redis_connections" = "2", "1 to 256":
        "connections to Redis; many requests share one";
    #[cfg(feature = "redis")]
    "cache_timeout_ms" = "250", "1 to 60000":
        "ms that an answer of Redis is waited for; then the database is asked";
    #[cfg(feature = "postgres")]
    "postgres" = "postgres://postgres@127.0.0.1:5432/postgres", "postgres://USER:PASSWORD@HOST:PORT/DATABASE":
        "where PostgreSQL is; the published tables and routines are made in that database";
    #[cfg(feature = "postgres")]
    "postgres_connections" = "16", "1 to 256":
        "connections to PostgreSQL; many requests share one";
    #[cfg(feature = "mariadb")]
    "mariadb" = "mysql://feed@127.0.0.1:3306/feed", "mysql://USER:PASSWORD@HOST:PORT/DATABASE":
        "where MariaDB is; the published tables and procedures are made in that database";
    #[cfg(feature = "mariadb")]
    "mariadb_connections" = "16", "1 to 256":
        "connections to MariaDB, each for one request at a time; more wait for one";
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    "store_timeout_s" = "5", "1 to 3600":
        "seconds that an answer of a database is waited for; then the request is answered 503";
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    "store_start_timeout_s" = "30", "1 to 3600":
        "seconds that the start waits for a database to be there";
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    "store_waiting_max" = "8192", "1 to 1000000":
        "requests to a database that wait at once; one more is answered 503";
    "feeds" = "embedded", "embedded or cassandra":
        "where posts and feeds are kept: in this process, or in Apache Cassandra";
    #[cfg(feature = "cassandra")]
    "contact" = "127.0.0.1:9042", "HOST:PORT, several with commas between":
        "feeds=cassandra: addresses of some of its nodes; the others are learnt from them";
    #[cfg(feature = "cassandra")]
    "keyspace" = "activity", "up to 48 small letters, digits and underscores":
        "feeds=cassandra: the keyspace of its tables; made if it is not there";
    #[cfg(feature = "cassandra")]
    "replication" = "auto", "1 to 9, or auto":
        "feeds=cassandra: on how many nodes each row is kept; auto: as many as contact names, at most 3";
    #[cfg(feature = "cassandra")]
    "consistency" = "quorum", "one, quorum, local-quorum or all":
        "feeds=cassandra: how many of these acknowledge a row; reads ask as many as it takes to miss none";
    #[cfg(feature = "cassandra")]
    "feeds_timeout_s" = "10", "1 to 3600":
        "feeds=cassandra: how many seconds an answer is waited for, retries included";
    "search" = "embedded", "embedded, tantivy, opensearch or solr":
        "what finds stories by their words: an index in this process's memory, one on its disk by tantivy, OpenSearch, or Solr";
    #[cfg(feature = "opensearch")]
    "opensearch" = "http://127.0.0.1:9200", "http://HOST:PORT":
        "search=opensearch: where it is; Elasticsearch from 7 on will do, too";
    #[cfg(feature = "opensearch")]
    "search_index" = "feed", "up to 255 small letters, digits, underscores and hyphens":
        "search=opensearch: the index of the stories; made if it is not there";
    #[cfg(feature = "opensearch")]
    "solr" = "http://127.0.0.1:8983", "http://HOST:PORT":
        "search=solr: where it is";
    #[cfg(feature = "opensearch")]
    "solr_core" = "outbound", "up to 255 small letters, digits, underscores and hyphens":
        "search=solr: the core of the stories, with the fields id, sender and story";
    #[cfg(feature = "opensearch")]
    "search_timeout_s" = "5", "1 to 3600":
        "search=opensearch or solr: how many seconds an answer is waited for";
    "search_mib_max" = "1024", "16 to 1048576":
        "search=embedded: MiB of the index; when it is full the oldest stories are not found any more";
    "events" = "file", "off, file or kafka":
        "where each operation is logged: nowhere, in the file of --events if one is named, or in a topic of Apache Kafka";
    #[cfg(feature = "kafka")]
    "brokers" = "127.0.0.1:9092", "HOST:PORT, several with commas between":
        "events=kafka: addresses of some of its brokers; the others are learnt from them";
    #[cfg(feature = "kafka")]
    "topic" = tidemark_store::events::TOPIC, "up to 249 letters, digits, dots, underscores and hyphens":
        "events=kafka: the topic; Kafka makes it if it is not there";
    #[cfg(feature = "graphql")]
    "graphql_mib_max" = "256", "1 to 1048576":
        "MiB that all requests to GraphQL hold together until they are answered; one more is answered 503";
    "streams_max" = "10000", "1 to 1000000":
        "event streams open at once; one more is answered 503";
    "body_bytes_max" = "131072", "32768 to 67108864":
        "size of a request body; a larger one is answered 413";
};
