//! What JMeter wrote, read as the published reporter of Acme Air reads it: a directory of several load generators and
//! machines becomes one report.
//!
//! [`read`] looks below a directory for three kinds of files. [`Found::figures`] makes of them what a report shows.
//!
//! | files | what is taken of them |
//! | --- | --- |
//! | `*.log` | lines with `summary +`: throughput of each interval, a series for each load generator |
//! | `*.jtl`, and `*.csv` and `*.xml` that are one | each HTTP request: its time, label, status, and what the Acme Air plan noted of flights |
//! | `*.nmon` | CPU of a machine; its tier is the first folder below the directory |
//!
//! # What holds
//!
//! - Files are read as streams: what is kept grows with intervals, labels and distinct times, never with requests.
//! - What is not understood is counted, and told with its file and line ([`Unread`]).
//! - Times are JMeter's: from when a request was sent, failed ones too. [`Times::published_p90`] is the published formula.

mod cpu;
mod figures;
mod lines;
mod samples;
mod summariser;
mod times;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use self::cpu::Machine;
use self::samples::Samples;
use self::summariser::Summaries;

pub use self::figures::{Bucket, Figures, Headline, Responses, STEP_MS, Series, Tier, Users};
pub use self::times::Times;

/// Folders within each other that are looked into.
const DEPTH_MAX: usize = 16;
/// Most files that are read.
const FILES_MAX: usize = 10_000;
/// Troubles that are told of.
const TOLD_MAX: usize = 10;

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum JmeterError {
    #[error("cannot read {0}: {1}", dir.display(), error)]
    Directory { dir: PathBuf, error: io::Error },
    #[error("{} is a file; give the directory that it lies in", .0.display())]
    File(PathBuf),
    #[error(
        "no results of JMeter below {} ({seen} files looked at{}); expected: logs (*.log) with lines `summary +`, results \
         (*.jtl) as XML or as CSV with a head line, or nmon files (*.nmon)", dir.display(), unread.first()
    )]
    Nothing { dir: PathBuf, seen: u64, unread: Box<Unread> },
    #[error("{} has more than {FILES_MAX} files below it; give a directory with fewer", .0.display())]
    TooMany(PathBuf),
}

/// What was not understood: how often, and the first of it with file and line.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unread {
    /// Lines and files that could not be read.
    pub count: u64,
    /// The first of them, as FILE:LINE: REASON.
    pub examples: Vec<String>,
}

impl Unread {
    fn line(&mut self, file: &str, number: u64, reason: &str) {
        self.add(|| format!("{file}:{number}: {reason}"));
    }

    fn file(&mut self, file: &str, reason: &str) {
        self.add(|| format!("{file}: {reason}"));
    }

    fn add(&mut self, says: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < TOLD_MAX {
            self.examples.push(says());
        }
    }

    /// The first, for an error.
    fn first(&self) -> String {
        self.examples.first().map_or_else(String::new, |first| format!("; {first}"))
    }
}

/// How many files of each kind were read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Files {
    /// Logs with lines of a summariser.
    pub logs: u64,
    /// Logs without any.
    pub logs_without_summary: u64,
    /// Results of requests.
    pub results: u64,
    /// Files of nmon.
    pub nmon: u64,
    /// Others, which were not read.
    pub others: u64,
}

/// What was found below a directory.
#[derive(Debug, Default)]
pub struct Found {
    dir: PathBuf,
    files: Files,
    summaries: Vec<Summaries>,
    samples: Samples,
    machines: Vec<Machine>,
    unread: Unread,
}

/// Reads everything below a directory.
///
/// # Errors
/// There is no such directory, or nothing of JMeter's or nmon's is below it.
pub fn read(dir: &Path) -> Result<Found, JmeterError> {
    if dir.is_file() {
        return Err(JmeterError::File(dir.to_owned()));
    }
    let mut found = Found { dir: dir.to_owned(), ..Found::default() };
    let mut files = Vec::new();
    walk(dir, 0, &mut files, &mut found.unread)
        .map_err(|error| JmeterError::Directory { dir: dir.to_owned(), error })?;
    if files.len() > FILES_MAX {
        return Err(JmeterError::TooMany(dir.to_owned()));
    }
    files.sort();
    for file in &files {
        found.file(file);
    }
    if found.is_empty() {
        let unread = Box::new(found.unread);
        return Err(JmeterError::Nothing { dir: dir.to_owned(), seen: files.len() as u64, unread });
    }
    Ok(found)
}

/// The files below a directory. Folders that cannot be looked into are told of, but for the first.
fn walk(dir: &Path, depth: usize, files: &mut Vec<PathBuf>, unread: &mut Unread) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.display().to_string();
        if files.len() > FILES_MAX {
            break;
        } else if !path.is_dir() {
            files.push(path);
        } else if path.is_symlink() {
            unread.file(&name, "a link to a folder, which is not followed");
        } else if depth == DEPTH_MAX {
            unread.file(&name, "too many folders within each other");
        } else if let Err(error) = walk(&path, depth + 1, files, unread) {
            unread.file(&name, &error.to_string());
        }
    }
    Ok(())
}

impl Found {
    /// Whether nothing can be shown.
    fn is_empty(&self) -> bool {
        self.files.logs + self.files.nmon == 0 && self.samples.is_empty()
    }

    fn file(&mut self, path: &Path) {
        let extension = path.extension().map(|of| of.to_string_lossy().to_ascii_lowercase());
        let extension = extension.unwrap_or_default();
        if !["log", "nmon", "jtl", "csv", "xml"].contains(&extension.as_str()) {
            self.files.others += 1;
            return;
        }
        let name = path.strip_prefix(&self.dir).unwrap_or(path).display().to_string();
        // a pipe would keep the reader waiting
        let opened = match path.metadata() {
            Ok(of) if !of.is_file() => return self.unread.file(&name, "no ordinary file"),
            Ok(_) => File::open(path),
            Err(error) => Err(error),
        };
        let read = opened.and_then(|file| {
            let from = BufReader::with_capacity(1 << 16, file);
            match extension.as_str() {
                "log" => self.log(&name, path, from),
                "nmon" => self.nmon(&name, path, from),
                // other tools' files have such names, too
                of => self
                    .samples
                    .read(&name, from, of == "jtl", &mut self.unread)
                    .map(|is_one| if is_one { self.files.results += 1 } else { self.files.others += 1 }),
            }
        });
        if let Err(error) = read {
            self.unread.file(&name, &error.to_string());
        }
    }

    fn log(&mut self, name: &str, path: &Path, from: impl io::BufRead) -> io::Result<()> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of = Summaries::read(stem, name, from, &mut self.unread)?;
        if of.intervals.is_empty() {
            self.files.logs_without_summary += 1;
        } else {
            self.files.logs += 1;
            self.summaries.push(of);
        }
        Ok(())
    }

    fn nmon(&mut self, name: &str, path: &Path, from: impl io::BufRead) -> io::Result<()> {
        let below = path.strip_prefix(&self.dir).unwrap_or(path);
        let folder = below.parent().and_then(|folder| folder.components().next());
        let own =
            || fs::canonicalize(&self.dir).ok()?.file_name().map(|own| own.to_string_lossy().into_owned());
        let tier = match folder {
            Some(folder) => folder.as_os_str().to_string_lossy().into_owned(),
            None => own().unwrap_or_default(),
        };
        self.machines.push(Machine::read(tier, name, from, &mut self.unread)?);
        self.files.nmon += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
