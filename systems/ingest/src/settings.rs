//! What can be set about an intake.

use tidemark_service::Setting;

pub(crate) const SETTINGS: &[Setting] = tidemark_service::settings! {
    "waiting_max" = "8192", "1 to 1000000":
        "messages that wait for the store at once; one more is answered 503 with Retry-After, or held back a little where many are";
    "identity" = "message", "message or key":
        "message: each request is one message; requests with the same Idempotency-Key and content are the same message; \
         key: the last one of a user, time and type stays";
    "memory_mb" = "384", "1 to 1000000":
        "megabytes of messages kept with durability memory; a message beyond that is answered 503";
    "store" = "embedded", "embedded or cassandra":
        "where messages are kept: in this process, or in Apache Cassandra";
    #[cfg(feature = "cassandra")]
    "contact" = "127.0.0.1:9042", "HOST:PORT, several with commas between":
        "store=cassandra: addresses of some of its nodes; the others are learnt from them";
    #[cfg(feature = "cassandra")]
    "keyspace" = "tidemark", "up to 48 small letters, digits and underscores":
        "store=cassandra: the keyspace of its tables; made if it is not there";
    // there in every build, so that one scenario is for all of them
    "replication" = "auto", "1 to 9, or auto":
        "store=cassandra: on how many nodes each message is kept; auto: as many as contact names, at most 3";
    #[cfg(feature = "cassandra")]
    "consistency" = "quorum", "one, quorum, local-quorum or all":
        "store=cassandra: how many of these acknowledge a message; reads ask as many as it takes to miss none";
    #[cfg(feature = "cassandra")]
    "in_flight" = "1024", "1 to 100000":
        "store=cassandra: writes sent and not answered at once; more wait their turn";
    #[cfg(feature = "cassandra")]
    "node_connections" = "1", "1 to 64":
        "store=cassandra: connections of each worker to each node";
    #[cfg(feature = "cassandra")]
    "timeout_s" = "10", "1 to 3600":
        "store=cassandra: how many seconds an answer is waited for, retries included";
    "buffer" = "none", "none or kafka":
        "what acknowledges messages before the store has them: nothing, or Apache Kafka; see /behind";
    #[cfg(feature = "kafka")]
    "brokers" = "127.0.0.1:9092", "HOST:PORT, several with commas between":
        "buffer=kafka: addresses of some of its brokers; the others are learnt from them";
    #[cfg(feature = "kafka")]
    "topic" = "tidemark-messages", "up to 249 letters, digits, dots, underscores and hyphens":
        "buffer=kafka: the topic; made if it is not there";
    #[cfg(feature = "kafka")]
    "topic_partitions" = "auto", "1 to 128, or auto":
        "buffer=kafka: partitions that the topic is made with; auto: one for each broker";
    #[cfg(feature = "kafka")]
    "topic_replication" = "auto", "1 to 9, or auto":
        "buffer=kafka: on how many brokers each message is kept, at least a majority of which has it when it is acknowledged; \
         auto: on all, at most 3";
    #[cfg(feature = "kafka")]
    "group" = "tidemark", "up to 249 letters, digits, dots, underscores and hyphens":
        "buffer=kafka: the consumer group; intakes of one group and one store share the work of storing";
    #[cfg(feature = "kafka")]
    "behind_max" = "10000000", "1 to 18446744073709551615":
        "buffer=kafka: messages that the store may lack; when it lacks more, the next are answered 503";
    #[cfg(feature = "kafka")]
    "buffer_timeout_s" = "10", "1 to 3600":
        "buffer=kafka: how many seconds it has to take a message, retries included, and to be reached at the start";
};
