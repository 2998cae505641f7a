//! A run that goes on, read beside whoever writes it: by its journal, without a word to the writer.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{RecordError, io_error};
use crate::journal::{self, Entry};
use crate::live::LiveTracker;
use crate::merge::Merging;
use crate::{Event, Live, Manifest, Sample, directory, files};

/// Whole seconds that are kept, the last ones.
pub const FOLLOWED_SECONDS: usize = 600;
/// Most processes whose last sample is kept.
const SAMPLES_MAX: usize = 256;
/// So long after it was last seen a process is shown, microseconds.
const SAMPLE_SHOWN_US: u64 = 1_900_000;
/// Of the events so much is read, bytes: the last ones.
const EVENTS_BYTES: u64 = 64 << 10;

/// Whether a directory holds a run that goes on right now.
pub fn goes_on(dir: &Path) -> bool {
    directory::is_unfinished(dir) && journal::is_written(&dir.join(files::JOURNAL))
}

/// What a directory's run came to so far, as far as it was read.
pub struct Following {
    dir: PathBuf,
    journal: File,
    /// Where the next record begins.
    offset: u64,
    threads: usize,
    manifest: Manifest,
    pending: Merging,
    live: LiveTracker,
    seconds: VecDeque<Live>,
    samples: Vec<Sample>,
}

impl Following {
    /// Begins to read a run that has not come to its end; none where there is no such run here.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn open(dir: &Path) -> Result<Option<Following>, RecordError> {
        if !directory::is_unfinished(dir) {
            return Ok(None);
        }
        let path = dir.join(files::JOURNAL);
        let journal = File::open(&path).map_err(io_error("read", &path))?;
        let begun = directory::read_begun(dir)?;
        let mut following = Following {
            dir: dir.to_owned(),
            journal,
            offset: 0,
            threads: begun.threads.max(1),
            manifest: begun.manifest,
            pending: Merging::default(),
            live: LiveTracker::new(),
            seconds: VecDeque::new(),
            samples: Vec::new(),
        };
        following.look()?;
        Ok(Some(following))
    }

    /// What a run that has not come to its end is, without figures.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn begun(dir: &Path) -> Result<Manifest, RecordError> {
        directory::read_begun(dir).map(|begun| begun.manifest)
    }

    /// Reads what has come since the last time.
    ///
    /// # Errors
    /// Where it cannot be read; also once it is over, and its files are gone.
    pub fn look(&mut self) -> Result<(), RecordError> {
        let begun = directory::read_begun(&self.dir)?;
        (self.threads, self.manifest) = (begun.threads.max(1), begun.manifest);
        let path = self.dir.join(files::JOURNAL);
        let mut reader = BufReader::new(&self.journal);
        reader.seek(SeekFrom::Start(self.offset)).map_err(io_error("read", &path))?;
        let mut reader = Counted { reader, read: 0 };
        while let Some(entry) = journal::next(&mut reader) {
            self.offset += std::mem::take(&mut reader.read);
            match entry {
                Entry::Interval(interval) if interval.start_us < interval.end_us => {
                    self.pending.add_interval(&interval, self.threads);
                    while let Some(interval) = self.pending.next_whole() {
                        if self.live.add(&interval) {
                            self.seconds.push_back(self.live.last());
                        }
                    }
                    let old = self.seconds.len().saturating_sub(FOLLOWED_SECONDS);
                    self.seconds.drain(..old);
                }
                Entry::Sample(sample) => {
                    self.samples.retain(|known| {
                        known.process != sample.process && known.at_us + SAMPLE_SHOWN_US >= sample.at_us
                    });
                    if self.samples.len() < SAMPLES_MAX {
                        self.samples.push(sample.into_owned());
                    }
                }
                Entry::Interval(_) | Entry::Store(_) => {}
            }
        }
        Ok(())
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it is, without figures.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The last whole seconds, in order of time; at most [`FOLLOWED_SECONDS`].
    pub fn seconds(&self) -> impl Iterator<Item = &Live> {
        self.seconds.iter()
    }

    /// The last sample of each process.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The last events, in order of time.
    pub fn events(&self) -> Vec<Event> {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(self.dir.join(files::EVENTS))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(EVENTS_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(EVENTS_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        // a line that is not whole is none
        read().unwrap_or_default().lines().filter_map(|line| crate::json::read(line).ok()).collect()
    }
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(bytes)?;
        self.read += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::{interval, series};
    use crate::{Outcome, RunWriter, summarize};

    fn add(writer: &mut RunWriter<'_>, second: u64) {
        for thread in 0..2 {
            let mut one = interval(thread, second, second + 1);
            one.in_window = true;
            one.offered = 50;
            one.series = vec![series(0, Outcome::Ok, true, &[(300, 50)])];
            writer.add_interval(&one).unwrap();
        }
        let at_us = (second + 1) * 1_000_000;
        for (process, cpu_share) in [("system", 0.5), ("driver", 0.25)] {
            let sample = Sample { at_us, process: process.into(), cpu_share, ..Sample::default() };
            writer.add_sample(&sample).unwrap();
        }
    }

    #[test]
    fn a_run_is_followed_while_it_is_written_and_is_over_with_its_files() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Following::open(dir.path()).unwrap().is_none() && !goes_on(dir.path()));
        let mut writer = RunWriter::create(dir.path(), &["a".into()], "name: x\n").unwrap();
        writer.threads(2);
        let manifest = Manifest::new("x", vec!["a".into()], summarize(writer.totals(), dir.path()));
        writer.begun(&manifest).unwrap();
        add(&mut writer, 0);
        let mut following = Following::open(dir.path()).unwrap().unwrap();
        assert!(goes_on(dir.path()));
        let seen = |following: &Following| -> Vec<(f64, f64)> {
            following.seconds().map(|live| (live.at_s, live.achieved_per_s)).collect()
        };
        assert_eq!(seen(&following), [(1.0, 100.0)]);
        assert_eq!(following.manifest().scenario, "x");
        let cpu: Vec<f64> = following.samples().iter().map(|sample| sample.cpu_share).collect();
        assert_eq!(cpu, [0.5, 0.25]);
        following.look().unwrap();
        assert_eq!(seen(&following).len(), 1, "nothing counts twice");
        add(&mut writer, 1);
        add(&mut writer, 2);
        writer.add_event(&Event { at_us: 5, kind: "phase".into(), text: "hold".into() }).unwrap();
        following.look().unwrap();
        assert_eq!(seen(&following), [(1.0, 100.0), (2.0, 100.0), (3.0, 100.0)]);
        assert_eq!(following.seconds().last().unwrap().p99_us, Some(300));
        assert_eq!(following.events()[0].text, "hold");
        assert_eq!(following.samples().len(), 2);
        let last = following.seconds().last().unwrap().clone();
        assert_eq!(last, writer.live(), "as the writer itself sees it");
        writer.finish(&manifest).unwrap();
        assert!(following.look().is_err() && !goes_on(dir.path()));
    }

    #[test]
    fn one_that_was_killed_does_not_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &["a".into()], "").unwrap();
        let manifest = Manifest::new("x", vec!["a".into()], summarize(writer.totals(), dir.path()));
        writer.begun(&manifest).unwrap();
        assert!(goes_on(dir.path()));
        drop(writer);
        assert!(!goes_on(dir.path()) && Following::open(dir.path()).unwrap().is_some());
    }
}
