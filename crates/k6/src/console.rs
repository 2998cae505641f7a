//! What JavaScript writes to the console.

use std::io::{self, Write as _};
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

    /// Writes a line. Where standard error is closed nobody reads it.
    pub fn log(&self, level: &str, words: &str) {
        let lines = self.lines.fetch_add(1, Ordering::Relaxed);
        if lines < LINES_MAX {
            match level {
                "info" | "debug" => write(words),
                _ => write(&format!("{level}: {words}")),
            }
        } else if lines == LINES_MAX {
            write(&format!(
                "warning: {} has printed {LINES_MAX} lines; what follows is not shown",
                self.name
            ));
        }
    }
}

/// Writes a line to standard error, without what a terminal would take for a command.
fn write(words: &str) {
    let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let shown: String = words.chars().map(|c| if is_command(c) { '\u{fffd}' } else { c }).collect();
    let _ = writeln!(io::stderr(), "{shown}");
}
