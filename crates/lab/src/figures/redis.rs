//! Redis and what else speaks its protocol: the answer to `INFO`.

use std::io;

use tidemark_wire::resp::write_command;

use super::product::{Figure, How, Kind, Of, Product, Said, Wire};

/// Whoever speaks Redis' protocol.
pub struct Redis;

const fn now(name: &'static str) -> Figure {
    Figure { name, of: name, how: How::Now }
}

const fn per_second(name: &'static str, of: &'static str) -> Figure {
    Figure { name, of, how: How::PerSecond }
}

static FIGURES: &[Figure] = &[
    now("instantaneous_ops_per_sec"),
    per_second("keyspace_hits_per_s", "keyspace_hits"),
    per_second("keyspace_misses_per_s", "keyspace_misses"),
    per_second("evicted_keys_per_s", "evicted_keys"),
    per_second("expired_keys_per_s", "expired_keys"),
    now("used_memory"),
    now("used_memory_rss"),
    now("connected_clients"),
    now("blocked_clients"),
    now("connected_slaves"),
    Figure { name: "is_master", of: "role", how: How::Is("master") },
    now("aof_current_size"),
    now("aof_base_size"),
    now("aof_rewrite_in_progress"),
    per_second("aof_delayed_fsync_per_s", "aof_delayed_fsync"),
    now("rdb_bgsave_in_progress"),
    now("latest_fork_usec"),
];

static KINDS: &[Kind] = &[
    Kind {
        word: "rewrite",
        command: &[b"BGREWRITEAOF"],
        under_way: "aof_rewrite_in_progress",
        scheduled: "aof_rewrite_scheduled",
        counted: &["aof_rewrites", "aof_base_size"],
        status: "aof_last_bgrewrite_status",
        size: "aof_current_size",
        copied: "aof_last_cow_size",
        fork: "latest_fork_usec",
    },
    Kind {
        word: "snapshot",
        command: &[b"BGSAVE", b"SCHEDULE"],
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

    fn port(&self) -> u16 {
        6379
    }

    fn is_greeted(&self) -> bool {
        true
    }

    fn ask(&self, wire: &mut Wire<'_>, of: Of) -> io::Result<Said> {
        let words: &[&[u8]] = match of {
            Of::All => &[b"INFO"],
            Of::Kinds => &[b"INFO", b"persistence"],
        };
        command(wire, words).map(|text| Said::of(&text, ':'))
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn kinds(&self) -> &'static [Kind] {
        KINDS
    }
}

/// Sends a command and gives back its reply, a text.
///
/// # Errors
/// What the server says where it refuses, as [`io::ErrorKind::Other`]; or why there is no reply.
pub fn command(wire: &mut Wire<'_>, words: &[&[u8]]) -> io::Result<String> {
    let mut out = Vec::new();
    write_command(words, &mut out);
    wire.send(&out)?;
    let head = wire.line()?;
    let odd = || io::Error::new(io::ErrorKind::InvalidData, format!("it answers {head:?}"));
    match head.split_at_checked(1) {
        Some(("+", text)) => Ok(text.to_owned()),
        Some(("-", text)) => Err(io::Error::other(format!("it answers \"{text}\""))),
        Some(("$" | "=", length)) => {
            let text = wire.bytes(length.parse().map_err(|_| odd())?)?;
            wire.bytes(2)?;
            Ok(text)
        }
        _ => Err(odd()),
    }
}
