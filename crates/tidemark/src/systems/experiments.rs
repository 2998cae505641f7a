//! What the published experiments had and measured, as far as it is known. Where nothing is known there is nothing here.

use tidemark_report::published::{Experiment, Figure, Of};

/// The five experiments, in the order in which they are repeated.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        scenario: "airline",
        title: "Airline",
        year: 2013,
        machines: "185 cloud instances, among them 51 web, 46 data grid, 28 mobile, 10 nginx, 49 for the load",
        servers: Some(136),
        cores: None,
        usd: None,
        figures: &[Figure {
            name: "airline requests",
            of: Of::All,
            per_s: 50_000.0,
            times: "mean about 70 ms, 90 % within 300 ms",
        }],
        differs: &[
            "One process has the web tier and the data; a booking is on the disk before its answer.",
            "The published data grid keeps its data in memory.",
            "The load generator shares the machine.",
        ],
        short: &["--for", "60s"],
        full: &["--for", "10m"],
    },
    Experiment {
        scenario: "newsfeed",
        title: "News feed",
        year: 2014,
        machines: "5 m1.medium, a db.m1.medium and an m1.large for the load, for about two hours",
        servers: Some(6),
        cores: Some(6),
        usd: Some(10),
        figures: &[
            Figure {
                name: "news feed posts",
                of: Of::Label("Outbound post"),
                per_s: 83.0,
                times: "median 393 ms, 95 % within 1 s",
            },
            Figure {
                name: "news feed searches",
                of: Of::Label("Outbound search"),
                per_s: 33.0,
                times: "median 135 ms, 95 % within 213 ms",
            },
        ],
        differs: &[
            "One process has the service, its store and its search; the published ones were PostgreSQL, Cassandra, Redis, Kafka and Solr.",
            "The published rate of posts was 58 to 83 a second; the higher one stands here.",
            "The load generator shares the machine.",
        ],
        short: &["--set", "sizes=2014", "--for", "60s"],
        full: &["--set", "sizes=2014", "--for", "1h"],
    },
    Experiment {
        scenario: "ingest",
        title: "Message intake",
        year: 2015,
        machines: "19 machines: 4 for the load, 8 for the intake, 7 for Cassandra",
        servers: Some(15),
        cores: None,
        usd: None,
        figures: &[Figure {
            name: "messages taken in",
            of: Of::All,
            per_s: 103_809.0,
            times: "31,145,914 sent, as many found",
        }],
        differs: &[
            "One process has the intake and its store; a message is on the disk before its answer.",
            "The published store kept each message on one of seven nodes of Cassandra.",
            "The load generator shares the machine.",
        ],
        short: &["--for", "60s"],
        full: &["--for", "11m"],
    },
    Experiment {
        scenario: "trade",
        title: "REST and WebSocket",
        year: 2015,
        machines: "one service; its machine is not known",
        servers: Some(1),
        cores: None,
        usd: None,
        figures: &[
            Figure { name: "REST calls", of: Of::Side("REST"), per_s: 68_994.0, times: "mean 1.45 ms" },
            Figure { name: "WebSocket calls", of: Of::Side("WebSocket"), per_s: 511_000.0, times: "" },
        ],
        differs: &["Every answer is checked, and every call counts in the response times."],
        short: &["--for", "5s"],
        full: &[],
    },
    Experiment {
        scenario: "kv",
        title: "Key-value stores",
        year: 2014,
        machines: "one node of 32 cores for the store, and client machines of 8 cores",
        servers: Some(1),
        // a Redis works on a core, and 12 of them do not use 32
        cores: None,
        usd: None,
        figures: &[
            Figure { name: "Redis, reads", of: Of::Side("Redis, 100/0"), per_s: 1_000_000.0, times: "" },
            Figure {
                name: "Redis ×2, reads",
                of: Of::Side("Redis ×2, 100/0"),
                per_s: 1_000_000.0,
                times: "",
            },
        ],
        differs: &[
            "The published Redis was 12 shards; its rate is close to 1 million a second.",
            "The published network was the limit before the store was; here all is on one machine.",
        ],
        short: &["--for", "2s", "--set", "records=100000"],
        full: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::EXPERIMENTS;

    #[test]
    fn each_shipped_scenario_belongs_to_its_experiment() {
        let of = |scenario: &str| EXPERIMENTS.iter().find(|of| of.has(scenario));
        for (scenario, title, usd) in [
            ("airline-split", "Airline", None),
            ("newsfeed-mix", "News feed", Some(10)),
            ("trade-websocket", "REST and WebSocket", None),
            ("kv", "Key-value stores", None),
        ] {
            assert_eq!(of(scenario).map(|of| (of.title, of.usd)), Some((title, usd)), "{scenario}");
        }
        assert!(of("shop").is_none() && of("airlines").is_none());
    }
}
