//! What JavaScript writes to the console.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lines that are written; the others are not.
const LINES_MAX: u64 = 10_000;

/// A console that several threads write to.
#[derive(Debug)]
pub(crate) struct Console {
    /// Who writes, as messages name it.
    name: String,
    lines: AtomicU64,
}

impl Console {
    pub fn new(name: &str) -> Console {
        Console { name: name.to_owned(), lines: AtomicU64::new(0) }
    }

    /// Writes a line.
    #[allow(clippy::print_stderr)]
    pub fn log(&self, level: &str, words: &str) {
        let lines = self.lines.fetch_add(1, Ordering::Relaxed);
        if lines < LINES_MAX {
            match level {
                "info" | "debug" => eprintln!("{words}"),
                _ => eprintln!("{level}: {words}"),
            }
        } else if lines == LINES_MAX {
            eprintln!("warning: {} has printed {LINES_MAX} lines; what follows is not shown", self.name);
        }
    }
}
