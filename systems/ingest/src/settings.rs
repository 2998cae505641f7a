//! What can be set about an intake.

use tidemark_service::Setting;

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "waiting_max",
        default: "8192",
        allowed: "1 to 1000000",
        help: "messages that wait for the store at once; one more is answered 503 with Retry-After, or held back a little where many are",
    },
    Setting {
        name: "identity",
        default: "message",
        allowed: "message or key",
        help: "message: each request is one message; requests with the same Idempotency-Key and content are the same message; \
               key: the last one of a user, time and type stays",
    },
    Setting {
        name: "memory_mb",
        default: "384",
        allowed: "1 to 1000000",
        help: "megabytes of messages kept with durability memory; a message beyond that is answered 503",
    },
    Setting {
        name: "store",
        default: "embedded",
        allowed: "embedded or cassandra",
        help: "where messages are kept: in this process, or in Apache Cassandra",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "contact",
        default: "127.0.0.1:9042",
        allowed: "HOST:PORT, several with commas between",
        help: "store=cassandra: addresses of some of its nodes; the others are learnt from them",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "keyspace",
        default: "tidemark",
        allowed: "up to 48 small letters, digits and underscores",
        help: "store=cassandra: the keyspace of its tables; made if it is not there",
    },
    // there in every build, so that one scenario is for all of them
    Setting {
        name: "replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "store=cassandra: on how many nodes each message is kept; auto: as many as contact names, at most 3",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "consistency",
        default: "quorum",
        allowed: "one, quorum, local-quorum or all",
        help: "store=cassandra: how many of these acknowledge a message; reads ask as many as it takes to miss none",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "in_flight",
        default: "1024",
        allowed: "1 to 100000",
        help: "store=cassandra: writes sent and not answered at once; more wait their turn",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "node_connections",
        default: "1",
        allowed: "1 to 64",
        help: "store=cassandra: connections of each worker to each node",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "timeout_s",
        default: "10",
        allowed: "1 to 3600",
        help: "store=cassandra: how many seconds an answer is waited for, retries included",
    },
    Setting {
        name: "buffer",
        default: "none",
        allowed: "none or kafka",
        help: "what acknowledges messages before the store has them: nothing, or Apache Kafka; see /behind",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "brokers",
        default: "127.0.0.1:9092",
        allowed: "HOST:PORT, several with commas between",
        help: "buffer=kafka: addresses of some of its brokers; the others are learnt from them",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic",
        default: "tidemark-messages",
        allowed: "up to 249 letters, digits, dots, underscores and hyphens",
        help: "buffer=kafka: the topic; made if it is not there",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic_partitions",
        default: "auto",
        allowed: "1 to 128, or auto",
        help: "buffer=kafka: partitions that the topic is made with; auto: one for each broker",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic_replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "buffer=kafka: on how many brokers each message is kept, at least a majority of which has it when it is acknowledged; \
               auto: on all, at most 3",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "group",
        default: "tidemark",
        allowed: "up to 249 letters, digits, dots, underscores and hyphens",
        help: "buffer=kafka: the consumer group; intakes of one group and one store share the work of storing",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "behind_max",
        default: "10000000",
        allowed: "1 to 18446744073709551615",
        help: "buffer=kafka: messages that the store may lack; when it lacks more, the next are answered 503",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "buffer_timeout_s",
        default: "10",
        allowed: "1 to 3600",
        help: "buffer=kafka: how many seconds it has to take a message, retries included, and to be reached at the start",
    },
];
