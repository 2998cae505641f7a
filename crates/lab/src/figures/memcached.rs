//! memcached: the answer to `stats`.

use std::io;

use super::product::{Figure, How, Of, Product, Said, Wire};

/// memcached.
pub struct Memcached;

/// Most lines of an answer.
const LINES_MAX: usize = 10_000;

static FIGURES: &[Figure] = &[
    Figure { name: "get_hits_per_s", of: "get_hits", how: How::PerSecond },
    Figure { name: "get_misses_per_s", of: "get_misses", how: How::PerSecond },
    Figure { name: "evictions_per_s", of: "evictions", how: How::PerSecond },
    Figure { name: "bytes", of: "bytes", how: How::Now },
    Figure { name: "curr_items", of: "curr_items", how: How::Now },
    Figure { name: "curr_connections", of: "curr_connections", how: How::Now },
];

impl Product for Memcached {
    fn schemes(&self) -> &'static [&'static str] {
        &["memcached"]
    }

    fn port(&self) -> u16 {
        11211
    }

    fn is_greeted(&self) -> bool {
        false
    }

    fn ask(&self, wire: &mut Wire<'_>, _: Of) -> io::Result<Said> {
        wire.send(b"stats\r\n")?;
        let mut lines = String::new();
        for _ in 0..LINES_MAX {
            let line = wire.line()?;
            match line.strip_prefix("STAT ") {
                Some(stat) => lines.extend([stat, "\n"]),
                None if line == "END" => return Ok(Said::of(&lines, ' ')),
                None => return Err(io::Error::other(format!("it answers {line:?}"))),
            }
        }
        Err(io::Error::other("it answers with more than is taken"))
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }
}
