//! Redis and what else speaks its protocol: the answer to `INFO`.

use std::collections::HashMap;
use std::io;

use tidemark_drive::Stream;

use super::resp::Connection;
use crate::figures::product::{Figure, FigureKind, MaintenanceKind, Product, Scope, Stats};

/// Whoever speaks Redis' protocol.
pub struct Redis;

const fn gauge(name: &'static str) -> Figure {
    Figure { name, field: name, kind: FigureKind::Gauge }
}

const fn rate(name: &'static str, field: &'static str) -> Figure {
    Figure { name, field, kind: FigureKind::Rate }
}

static FIGURES: &[Figure] = &[
    gauge("instantaneous_ops_per_sec"),
    rate("keyspace_hits_per_s", "keyspace_hits"),
    rate("keyspace_misses_per_s", "keyspace_misses"),
    rate("evicted_keys_per_s", "evicted_keys"),
    rate("expired_keys_per_s", "expired_keys"),
    gauge("used_memory"),
    gauge("used_memory_rss"),
    gauge("connected_clients"),
    gauge("blocked_clients"),
    gauge("connected_slaves"),
    Figure { name: "is_master", field: "role", kind: FigureKind::Is("master") },
    gauge("aof_current_size"),
    gauge("aof_base_size"),
    gauge("aof_rewrite_in_progress"),
    rate("aof_delayed_fsync_per_s", "aof_delayed_fsync"),
    gauge("rdb_bgsave_in_progress"),
    gauge("latest_fork_usec"),
];

static MAINTENANCE: &[MaintenanceKind] = &[
    MaintenanceKind {
        word: "rewrite",
        command: &["BGREWRITEAOF"],
        under_way: "aof_rewrite_in_progress",
        scheduled: "aof_rewrite_scheduled",
        counted: &["aof_rewrites", "aof_base_size"],
        status: "aof_last_bgrewrite_status",
        size: "aof_current_size",
        copied: "aof_last_cow_size",
        fork: "latest_fork_usec",
    },
    MaintenanceKind {
        word: "snapshot",
        command: &["BGSAVE", "SCHEDULE"],
        under_way: "rdb_bgsave_in_progress",
        scheduled: "",
        counted: &["rdb_saves", "rdb_last_save_time"],
        status: "rdb_last_bgsave_status",
        size: "",
        copied: "rdb_last_cow_size",
        fork: "latest_fork_usec",
    },
];

impl Product for Redis {
    fn schemes(&self) -> &'static [&'static str] {
        &["redis", "rediss", "redis-cluster", "rediss-cluster"]
    }

    fn ask(&self, stream: &mut dyn Stream, scope: Scope) -> io::Result<Stats> {
        let words: &[&str] = match scope {
            Scope::All => &["INFO"],
            Scope::Maintenance => &["INFO", "persistence"],
        };
        let text = Connection::new(stream).demand(words)?;
        let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        let owned = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(owned.collect::<HashMap<_, _>>().into())
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn maintenance(&self) -> &'static [MaintenanceKind] {
        MAINTENANCE
    }
}
