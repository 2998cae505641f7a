//! What can be set about a news feed.

use tidemark_service::Setting;

/// All settings, with their defaults.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "fan_out",
        default: "sync",
        allowed: "sync or async",
        help: "whether a post is in the feeds of all friends before it is answered, or soon after",
    },
    Setting {
        name: "fan_out_within_s",
        default: "2",
        allowed: "1 to 3600",
        help: "with async: no post is taken while one waits longer for its delivery; then posts are answered 503",
    },
    Setting {
        name: "fan_out_waiting_max",
        default: "10000",
        allowed: "1 to 1000000",
        help: "with async: posts that are not delivered yet; one more waits for room",
    },
    Setting {
        name: "people",
        default: "embedded",
        allowed: "embedded, postgres or mariadb",
        help: "where participants and friends are kept: in this process, in PostgreSQL, or in MariaDB",
    },
    Setting {
        name: "cache",
        default: "off",
        allowed: "off, embedded or redis",
        help: "where participants and friends are cached: nowhere (embedded people are in memory already), in this process (only where no other service changes the same people), or in Redis",
    },
    Setting {
        name: "cache_s",
        default: "300",
        allowed: "1 to 86400",
        help: "seconds that a cached value lives at most",
    },
    Setting {
        name: "cache_mib_max",
        default: "256",
        allowed: "1 to 1048576",
        help: "MiB of the cache in this process",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis",
        default: "redis://127.0.0.1:6379",
        allowed: "redis://USER:PASSWORD@HOST:PORT/NUMBER",
        help: "where Redis is; keys Participant::ID and Friends::ID of that database are forgotten at the start",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis_connections",
        default: "2",
        allowed: "1 to 256",
        help: "connections to Redis; many requests share one",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "cache_timeout_ms",
        default: "250",
        allowed: "1 to 60000",
        help: "ms that an answer of Redis is waited for; then the database is asked",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres",
        default: "postgres://postgres@127.0.0.1:5432/postgres",
        allowed: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        help: "where PostgreSQL is; the published tables and routines are made in that database",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres_connections",
        default: "16",
        allowed: "1 to 256",
        help: "connections to PostgreSQL; many requests share one",
    },
    #[cfg(feature = "mariadb")]
    Setting {
        name: "mariadb",
        default: "mysql://feed@127.0.0.1:3306/feed",
        allowed: "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
        help: "where MariaDB is; the published tables and procedures are made in that database",
    },
    #[cfg(feature = "mariadb")]
    Setting {
        name: "mariadb_connections",
        default: "16",
        allowed: "1 to 256",
        help: "connections to MariaDB, each for one request at a time; more wait for one",
    },
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    Setting {
        name: "store_timeout_s",
        default: "5",
        allowed: "1 to 3600",
        help: "seconds that an answer of a database is waited for; then the request is answered 503",
    },
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    Setting {
        name: "store_start_timeout_s",
        default: "30",
        allowed: "1 to 3600",
        help: "seconds that the start waits for a database to be there",
    },
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    Setting {
        name: "store_waiting_max",
        default: "8192",
        allowed: "1 to 1000000",
        help: "requests to a database that wait at once; one more is answered 503",
    },
    Setting {
        name: "feeds",
        default: "embedded",
        allowed: "embedded or cassandra",
        help: "where posts and feeds are kept: in this process, or in Apache Cassandra",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "contact",
        default: "127.0.0.1:9042",
        allowed: "HOST:PORT, several with commas between",
        help: "feeds=cassandra: addresses of some of its nodes; the others are learnt from them",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "keyspace",
        default: "activity",
        allowed: "up to 48 small letters, digits and underscores",
        help: "feeds=cassandra: the keyspace of its tables; made if it is not there",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "feeds=cassandra: on how many nodes each row is kept; auto: as many as contact names, at most 3",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "consistency",
        default: "quorum",
        allowed: "one, quorum, local-quorum or all",
        help: "feeds=cassandra: how many of these acknowledge a row; reads ask as many as it takes to miss none",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "feeds_timeout_s",
        default: "10",
        allowed: "1 to 3600",
        help: "feeds=cassandra: how many seconds an answer is waited for, retries included",
    },
    Setting {
        name: "search",
        default: "embedded",
        allowed: "embedded, tantivy, opensearch or solr",
        help: "what finds stories by their words: an index in this process's memory, one on its disk by tantivy, OpenSearch, or Solr",
    },
    #[cfg(feature = "opensearch")]
    Setting {
        name: "opensearch",
        default: "http://127.0.0.1:9200",
        allowed: "http://HOST:PORT",
        help: "search=opensearch: where it is; Elasticsearch from 7 on will do, too",
    },
    #[cfg(feature = "opensearch")]
    Setting {
        name: "search_index",
        default: "feed",
        allowed: "up to 255 small letters, digits, underscores and hyphens",
        help: "search=opensearch: the index of the stories; made if it is not there",
    },
    #[cfg(feature = "opensearch")]
    Setting {
        name: "solr",
        default: "http://127.0.0.1:8983",
        allowed: "http://HOST:PORT",
        help: "search=solr: where it is",
    },
    #[cfg(feature = "opensearch")]
    Setting {
        name: "solr_core",
        default: "outbound",
        allowed: "up to 255 small letters, digits, underscores and hyphens",
        help: "search=solr: the core of the stories, with the fields id, sender and story",
    },
    #[cfg(feature = "opensearch")]
    Setting {
        name: "search_timeout_s",
        default: "5",
        allowed: "1 to 3600",
        help: "search=opensearch or solr: how many seconds an answer is waited for",
    },
    Setting {
        name: "search_mib_max",
        default: "1024",
        allowed: "16 to 1048576",
        help: "search=embedded: MiB of the index; when it is full the oldest stories are not found any more",
    },
    Setting {
        name: "events",
        default: "file",
        allowed: "off, file or kafka",
        help: "where each operation is logged: nowhere, in the file of --events if one is named, or in a topic of Apache Kafka",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "brokers",
        default: "127.0.0.1:9092",
        allowed: "HOST:PORT, several with commas between",
        help: "events=kafka: addresses of some of its brokers; the others are learnt from them",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic",
        default: tidemark_store::events::TOPIC,
        allowed: "up to 249 letters, digits, dots, underscores and hyphens",
        help: "events=kafka: the topic; Kafka makes it if it is not there",
    },
    #[cfg(feature = "graphql")]
    Setting {
        name: "graphql_mib_max",
        default: "256",
        allowed: "1 to 1048576",
        help: "MiB that all requests to GraphQL hold together until they are answered; one more is answered 503",
    },
    Setting {
        name: "streams_max",
        default: "10000",
        allowed: "1 to 1000000",
        help: "event streams open at once; one more is answered 503",
    },
    Setting {
        name: "body_bytes_max",
        default: "131072",
        allowed: "32768 to 67108864",
        help: "size of a request body; a larger one is answered 413",
    },
];
