//! memcached: the answer to `stats`.

use std::io;

use tidemark_drive::Stream;

use super::stats;
use crate::figures::product::{Figure, FigureKind, Product, Scope, Stats};

/// memcached.
pub struct Memcached;

static FIGURES: &[Figure] = &[
    Figure { name: "get_hits_per_s", field: "get_hits", kind: FigureKind::Rate },
    Figure { name: "get_misses_per_s", field: "get_misses", kind: FigureKind::Rate },
    Figure { name: "evictions_per_s", field: "evictions", kind: FigureKind::Rate },
    Figure { name: "bytes", field: "bytes", kind: FigureKind::Gauge },
    Figure { name: "curr_items", field: "curr_items", kind: FigureKind::Gauge },
    Figure { name: "curr_connections", field: "curr_connections", kind: FigureKind::Gauge },
];

impl Product for Memcached {
    fn schemes(&self) -> &'static [&'static str] {
        &["memcached", "memcacheds"]
    }

    fn ask(&self, stream: &mut dyn Stream, _: Scope) -> io::Result<Stats> {
        stats(stream).map(Stats::from)
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }
}
