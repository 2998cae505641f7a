//! A run that was killed, and with which another process goes on: what it had recorded is recorded anew, and then all that
//! follows.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Seek};
use std::path::{Path, PathBuf};

use crate::error::{RecordError, io_error};
use crate::journal::{self, Entry};
use crate::unfinished::whole_events;
use crate::{Event, Manifest, Sample, StoreLook, ThreadInterval, directory, files};

/// What a run had recorded when it was killed. Until that is [done](Before::done), the run is built again from it.
#[derive(Debug)]
pub struct Before {
    dir: PathBuf,
    reader: BufReader<File>,
    events: Vec<Event>,
}

/// What is known of a run that was killed; nothing is changed.
///
/// # Errors
/// If it has come to its end, still goes on, or is none.
pub fn begun(dir: &Path) -> Result<Manifest, RecordError> {
    if dir.join(files::MANIFEST).exists() {
        return Err(RecordError::Whole(dir.to_owned()));
    }
    let before = dir.join(files::BEFORE).join(files::JOURNAL);
    let path = if before.is_file() { before } else { dir.join(files::JOURNAL) };
    if !path.is_file() {
        return Err(RecordError::NotARun(dir.to_owned()));
    }
    let Some(journal) = journal::open(&path)? else { return Err(RecordError::GoesOn(dir.to_owned())) };
    journal::check(&journal, &path)?;
    directory::read_begun(dir).map(|begun| begun.manifest)
}

impl Before {
    /// Takes what was recorded away, so that the directory is free for who records it anew.
    ///
    /// # Errors
    /// As [`begun`], and if files cannot be moved.
    pub fn take(dir: &Path) -> Result<Before, RecordError> {
        begun(dir)?;
        restore(dir)?;
        let path = dir.join(files::JOURNAL);
        let Some(journal) = journal::open(&path)? else { return Err(RecordError::GoesOn(dir.to_owned())) };
        let before = dir.join(files::BEFORE);
        fs::create_dir_all(&before).map_err(io_error("create", &before))?;
        let events = whole_events(&dir.join(files::EVENTS));
        for name in moved() {
            rename_if_there(&dir.join(name), &before.join(name))?;
        }
        Ok(Before { dir: dir.to_owned(), reader: BufReader::new(journal), events })
    }

    /// The events, in their order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Looks at processes and stores, in their order. To be asked for before any interval is.
    ///
    /// # Errors
    /// As who takes them.
    pub fn looks(
        &mut self,
        take: &mut dyn FnMut(Result<Sample, StoreLook>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let file = self.reader.get_ref();
        journal::entries(file, |entry| match entry {
            Entry::Interval(_) => Ok(()),
            Entry::Sample(sample) => take(Ok(sample.into_owned())),
            Entry::Store(look) => take(Err(look.into_owned())),
        })?;
        self.reader.rewind().map_err(io_error("read", &self.dir))
    }

    /// The next interval, without what it entered in the ledger, which is there; none behind the last whole one.
    pub fn next_interval(&mut self) -> Option<ThreadInterval> {
        loop {
            match journal::next(&mut self.reader)? {
                Entry::Interval(interval) if interval.start_us < interval.end_us => {
                    return Some(interval.into_owned());
                }
                Entry::Interval(_) | Entry::Sample(_) | Entry::Store(_) => {}
            }
        }
    }

    /// All of it has been recorded anew.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn done(self) -> Result<(), RecordError> {
        let before = self.dir.join(files::BEFORE);
        fs::remove_dir_all(&before).map_err(io_error("remove", &before))
    }
}

/// Puts back what somebody took who did not come to record all of it anew.
pub(crate) fn restore(dir: &Path) -> Result<(), RecordError> {
    let before = dir.join(files::BEFORE);
    if !before.is_dir() {
        return Ok(());
    }
    // the journal last: as long as it is there, so is what it was moved with
    for name in moved() {
        rename_if_there(&before.join(name), &dir.join(name))?;
    }
    fs::remove_dir_all(&before).map_err(io_error("remove", &before))
}

/// What is moved away, so that it can be written anew; the journal last.
fn moved() -> impl Iterator<Item = &'static str> {
    files::RECORDED.into_iter().chain([files::JOURNAL])
}

fn rename_if_there(from: &Path, to: &Path) -> Result<(), RecordError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("move", from)(error)),
        _ => Ok(()),
    }
}

/// Keeps what another coordinator needs to know of a fleet to go on with a run, in one step.
///
/// # Errors
/// If it cannot be written.
pub fn write_fleet(dir: &Path, text: &[u8]) -> Result<(), RecordError> {
    directory::replace(&dir.join(files::FLEET), text)
}

/// What was kept of a run's fleet; none where there is nothing of it.
///
/// # Errors
/// If it cannot be read.
pub fn read_fleet(dir: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    let path = dir.join(files::FLEET);
    match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(io_error("read", &path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::interval;
    use crate::{Run, RunWriter, summarize};

    fn writer(dir: &Path) -> RunWriter<'static> {
        let labels = vec!["a".to_owned()];
        let mut writer = RunWriter::create(dir, &labels, "name: x\n").unwrap();
        let manifest = Manifest::new("x", labels, summarize(writer.totals(), dir));
        writer.begun(&manifest).unwrap();
        writer
    }

    fn event(at_us: i64) -> Event {
        Event { at_us, kind: "phase".into(), text: "hold".into() }
    }

    #[test]
    fn what_a_killed_run_had_recorded_is_recorded_anew_and_followed_by_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let mut killed = writer(dir.path());
        (0..3).for_each(|second| killed.add_interval(&interval(0, second, second + 1)).unwrap());
        let sample = Sample { at_us: 7, process: "system".into(), ..Sample::default() };
        killed.add_sample(&sample).unwrap();
        killed.add_event(&event(5)).unwrap();
        assert!(matches!(begun(dir.path()), Err(RecordError::GoesOn(_))));
        drop(killed);
        // who is killed before all is recorded anew leaves what there was
        let mut before = Before::take(dir.path()).unwrap();
        let mut again = writer(dir.path());
        again.add_interval(&before.next_interval().unwrap()).unwrap();
        drop((before, again));
        let mut before = Before::take(dir.path()).unwrap();
        let mut again = writer(dir.path());
        before.events().to_vec().iter().for_each(|event| again.add_event(event).unwrap());
        let mut samples = 0;
        before
            .looks(&mut |look| {
                samples += 1;
                again.add_sample(&look.unwrap())
            })
            .unwrap();
        let mut seconds = Vec::new();
        while let Some(interval) = before.next_interval() {
            seconds.push(interval.start_us / 1_000_000);
            again.add_interval(&interval).unwrap();
        }
        before.done().unwrap();
        again.add_interval(&interval(0, 3, 4)).unwrap();
        assert_eq!((seconds, samples), (vec![0, 1, 2], 1));
        drop(again);
        let run = Run::open(dir.path()).unwrap();
        assert_eq!((run.load.len(), run.samples.len(), run.events.len()), (4, 1, 1));
        assert!(matches!(Before::take(dir.path()), Err(RecordError::Whole(_))));
    }

    #[test]
    fn what_was_taken_is_a_run_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut killed = writer(dir.path());
        (0..3).for_each(|second| killed.add_interval(&interval(0, second, second + 1)).unwrap());
        drop(killed);
        drop(Before::take(dir.path()).unwrap());
        assert_eq!(Run::open(dir.path()).unwrap().load.len(), 3);
    }
}
