//! A run that did not come to its end: killed, or stopped before its load. What it recorded becomes a run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::directory::Begun;
use crate::error::{RecordError, io_error};
use crate::journal::{self, Entry};
use crate::summary::{Status, Verdict};
use crate::told::{Told, take_operations};
use crate::{Event, Manifest, ReasonKind, RunWriter, directory, files, ledger, resumed, summarize, summary};

/// Makes a run of what a run that did not come to its end has recorded. Its verdict is `invalid`, and says so.
///
/// `stopped`: by the user, who knows; else it was killed or failed. Nothing happens to a directory that holds a finished
/// run, or none.
///
/// # Errors
/// If the run still goes on, or the directory cannot be read or written.
pub fn rebuild(dir: &Path, stopped: bool) -> Result<(), RecordError> {
    if !directory::is_unfinished(dir) {
        return Ok(());
    }
    let journals = [dir.join(files::JOURNAL), dir.join(files::BEFORE).join(files::JOURNAL)];
    if journals.iter().any(|path| journal::is_written(path)) {
        return Err(RecordError::GoesOn(dir.to_owned()));
    }
    resumed::restore(dir)?;
    let journal_path = dir.join(files::JOURNAL);
    let Some(journal) = journal::open(&journal_path)? else {
        return Err(RecordError::GoesOn(dir.to_owned()));
    };
    journal::check(&journal, &journal_path)?;
    let Begun { threads, anchor_s, mut manifest } = directory::read_begun(dir)?;
    let scenario = dir.join(files::SCENARIO);
    let scenario = fs::read_to_string(&scenario).map_err(io_error("read", &scenario))?;

    // beside what is there, and moved over it when it is whole
    let rebuilt = dir.join(files::REBUILT);
    remove(&rebuilt)?;
    fs::create_dir(&rebuilt).map_err(io_error("create", &rebuilt))?;
    let mut writer = RunWriter::create(&rebuilt, &manifest.labels, &scenario)?;
    writer.threads(threads);
    writer.groups(&manifest.groups)?;
    writer.own_metrics(&manifest.metrics)?;
    writer.ratios(&manifest.summary.ratios);
    writer.phases(&manifest.phases, |_| false);
    writer.tags(&manifest.tags());
    let begun = &manifest.summary;
    let names: Vec<String> = begun.targets.iter().map(|of| of.target.clone()).collect();
    let target_of =
        |label: &String| begun.steps.iter().find(|step| step.label == *label).map_or("", |step| &step.target);
    let index = |label| names.iter().position(|name| name == target_of(label)).unwrap_or(0);
    writer.targets(&names, &manifest.labels.iter().map(index).collect::<Vec<_>>());
    let anchor = anchor_s.and_then(|s| std::time::Duration::try_from_secs_f64(s).ok());
    let anchor = anchor.map(|since| std::time::UNIX_EPOCH + since);
    // before the run began there is nothing that operations are about
    if let Some(anchor) = anchor {
        writer.anchor(anchor);
        manifest.notes.extend(take_operations(dir, anchor)?.iter().flat_map(Told::notes));
    }
    let mut end_us = 0;
    let unread_bytes = journal::entries(&journal, |entry| match entry {
        Entry::Interval(interval) if interval.start_us < interval.end_us => {
            end_us = end_us.max(interval.end_us);
            writer.add_interval(&interval)
        }
        Entry::Interval(_) => Ok(()),
        Entry::Sample(sample) => writer.add_sample(&sample),
        Entry::Store(look) => writer.add_store_looks(&[look.into_owned()]),
    })?;
    manifest.notes.extend(not_read(unread_bytes, end_us));
    for event in whole_events(&dir.join(files::EVENTS)) {
        writer.add_event(&event)?;
    }
    manifest.summary = summarize(writer.totals(), dir);
    manifest.share_costs();
    manifest.summary.ledger = entered(dir);
    manifest.summary.steps.retain(|step| step.requests > 0);
    manifest.summary.groups.retain(|group| group.count > 0);
    manifest.summary.verdict = verdict(&manifest, stopped, end_us);
    manifest.machine.steal_share = writer.totals().steal_share();
    manifest.error_examples = writer.totals().error_examples.clone();
    manifest.interrupted = stopped;
    manifest.phases.retain(|phase| phase.start_us < end_us);
    for phase in &mut manifest.phases {
        phase.end_us = phase.end_us.min(end_us);
    }
    writer.finish(&manifest)?;
    // the manifest last
    for name in files::RECORDED.into_iter().chain([files::MANIFEST]) {
        let (from, to) = (rebuilt.join(name), dir.join(name));
        if files::OPTIONAL.contains(&name) && !from.exists() {
            continue;
        }
        fs::rename(&from, &to).map_err(io_error("write", &to))?;
    }
    remove(&rebuilt)?;
    // what stays does no harm beside a run.json
    let _ = fs::remove_file(dir.join(files::FLEET));
    let told = dir.join(files::OPERATIONS_TOLD);
    for path in [journal_path, dir.join(files::BEGUN)] {
        fs::remove_file(&path).map_err(io_error("remove", &path))?;
    }
    match fs::remove_file(&told) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", &told)(error)),
        _ => Ok(()),
    }
}

fn verdict(manifest: &Manifest, stopped: bool, end_us: u64) -> Verdict {
    let how = if stopped { "it was stopped by the user" } else { "it was killed, or failed" };
    let reason = match (end_us, manifest.summary.measured_s) {
        (0, _) => format!("incomplete: {how} before its load began, so that nothing was measured"),
        (end_us, s) => format!(
            "incomplete: {how} before it came to its end; these are the figures of the {s:.1} s measured in the {:.1} s that \
             it recorded",
            end_us as f64 / 1e6
        ),
    };
    Verdict { status: Status::Invalid, reasons: vec![ReasonKind::Incomplete.told(reason)] }
}

/// That a part of what it recorded could not be read.
fn not_read(unread_bytes: u64, end_us: u64) -> Option<String> {
    (unread_bytes > 0).then(|| {
        format!(
            "what the run recorded can be read up to second {:.1}: the {unread_bytes} bytes behind it are damaged or cut off, and \
             what they held is in no figure",
            end_us as f64 / 1e6
        )
    })
}

/// What it entered in its ledger, of which nobody has read back anything.
fn entered(dir: &Path) -> Option<summary::Ledger> {
    let ledger =
        ledger::Ledger::read(dir).ok().filter(|_| dir.join(files::LEDGER).join(files::FORMS).is_file())?;
    Some(summary::Ledger {
        sent: ledger.sent(),
        acknowledged: ledger.acknowledged(),
        verified: None,
        not_verified: Some(
            "the run did not come to its end; tidemark verify reads back what it wrote".into(),
        ),
        torn: ledger.torn(),
        broke_off: true,
    })
}

/// Those before the first line that is not whole.
pub(crate) fn whole_events(path: &Path) -> Vec<Event> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map_while(|line| crate::json::read(line).ok()).collect()
}

fn remove(dir: &PathBuf) -> Result<(), RecordError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", dir)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::{interval, series};
    use crate::{
        CoreWaits, Counter, Outcome, OwnKind, OwnMetric, OwnSeries, PartSeries, PhaseCounts, Ratio, Run,
        Sample, StoreLook,
    };

    /// A run on its way: two threads, three seconds, the last two measured.
    fn begun(dir: &Path) -> (RunWriter<'static>, Manifest) {
        let labels = vec!["a".to_owned()];
        let mut writer = RunWriter::create(dir, &labels, "name: x\n").unwrap();
        writer.threads(2);
        writer.groups(&["both".to_owned()]).unwrap();
        writer.tags(&[[("team".to_owned(), "search".to_owned())].into()]);
        let mut manifest = Manifest::new("x", labels, summarize(writer.totals(), dir));
        manifest.groups = vec!["both".to_owned()];
        let metric = |name: &str, kind| OwnMetric { name: name.into(), kind, unit: "EUR".into() };
        let metrics = [metric("spent", OwnKind::Histogram), metric("orders", OwnKind::Counter)];
        writer.own_metrics(&metrics).unwrap();
        manifest.metrics = metrics.to_vec();
        let (of, per) = (vec!["orders".to_owned()], vec!["a".to_owned()]);
        writer.ratios(&[Ratio { name: "orders each".into(), of, per, ..Ratio::default() }]);
        manifest.summary.ratios = summarize(writer.totals(), dir).ratios;
        manifest.phases = vec![phase("warm-up", 0, 1, false), phase("hold", 1, 60, true)];
        writer.phases(&manifest.phases, |_| false);
        writer.begun(&manifest).unwrap();
        for second in 0..3 {
            for thread in 0..2 {
                let mut one = interval(thread, second, second + 1);
                one.in_window = second > 0;
                (one.offered, one.cpu_us, one.statuses) = (60, 250_000, vec![(200, 50)]);
                let phase = u16::from(one.in_window);
                one.by_phase = vec![PhaseCounts { phase, offered: 60, dropped: 1 }];
                one.core_waits = Some(CoreWaits { waited_us: 125_000, sleeps: 500 });
                one.absent_us = 250_000;
                one.counters[Counter::EncodedBytes] = 100;
                one.counters[Counter::DecodedBytes] = 900 + u64::from(thread);
                (one.dropped, one.measured_dropped, one.measured_offered) = (4, 3, 50);
                one.lag_us.record_n(1_500, 7);
                one.unmeasured_lag_us.record_n(9_000, 3);
                let times = [(300 + u64::from(thread), 49), (2_000_000, 1)];
                one.series = vec![
                    series(0, Outcome::Ok, second > 0, &times),
                    series(0, Outcome::Reset, second > 0, &[(9, 2)]),
                ];
                one.groups = vec![series(0, Outcome::Ok, second > 0, &[(700 + u64::from(thread), 9)])];
                let mut spent = OwnSeries::empty(0, OwnKind::Histogram);
                spent.add(19.5 + f64::from(thread));
                (spent.no_number, spent.example) = (1, Some("${n}: it has no value".into()));
                let mut orders = OwnSeries::empty(1, OwnKind::Counter);
                orders.add(2.0);
                one.own = vec![spent, orders];
                let mut parts = PartSeries::empty(0, second > 0);
                parts.connect_us.record_n(90, 2);
                parts.pieces_service_us.record(1_000_000);
                parts.first_byte_us.record(400_000);
                parts.transfer_us.record(600_000);
                one.parts = vec![parts];
                one.series.iter_mut().chain(&mut one.groups).for_each(|of| of.phase = Some(phase));
                writer.add_interval(&one).unwrap();
            }
            let sample = Sample {
                at_us: (second + 1) * 1_000_000,
                process: "system".into(),
                cpu_share: 1.5,
                ..Sample::default()
            };
            writer.add_sample(&sample).unwrap();
            let figures = vec![("ops".to_owned(), second as f64)];
            let at_us = (second + 1) * 1_000_000;
            let look = StoreLook { at_us, store: "cache".into(), measured: second > 0, figures };
            writer.add_store_looks(&[look]).unwrap();
        }
        writer.add_event(&Event { at_us: 5, kind: "phase".into(), text: "hold".into() }).unwrap();
        (writer, manifest)
    }

    fn phase(name: &str, start_s: u64, end_s: u64, measured: bool) -> crate::manifest::Phase {
        let (start_us, end_us) = (start_s * 1_000_000, end_s * 1_000_000);
        crate::manifest::Phase { name: name.into(), start_us, end_us, measured, level: String::new() }
    }

    #[test]
    fn a_killed_run_has_the_same_figures_as_one_that_ended() {
        let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (writer, mut manifest) = begun(whole.path());
        manifest.summary = summarize(writer.totals(), whole.path());
        writer.finish(&manifest).unwrap();
        let whole = Run::open(whole.path()).unwrap();

        // the same, but its process is gone: no footer, no run.json, and the last record torn
        drop(begun(killed.path()).0);
        let journal = killed.path().join(files::JOURNAL);
        let bytes = fs::read(&journal).unwrap();
        fs::write(&journal, [&bytes[..], b"\xff\0\0\0\0thr"].concat()).unwrap();
        let events = killed.path().join(files::EVENTS);
        fs::write(&events, fs::read_to_string(&events).unwrap() + "{\"at_us\":").unwrap();
        let killed = Run::open(killed.path()).unwrap();

        let of = |run: &Run| {
            let mut summary = serde_json::to_value(&run.manifest.summary).unwrap();
            summary["verdict"].take();
            summary["run_dir"].take();
            summary
        };
        assert_eq!(of(&killed), of(&whole));
        let own = of(&whole)["metrics"].clone();
        assert_eq!((&own[0]["count"], &own[0]["no_number"]), (&4.into(), &4.into()));
        assert_eq!((&own[0]["values"]["p50"], &own[0]["values"]["max"]), (&19.5.into(), &20.5.into()));
        assert_eq!(
            (&own[1]["sum"], &own[1]["per_s"], &own[1]["values"]),
            (&8.0.into(), &4.0.into(), &().into())
        );
        let stored = |run: &Run| {
            let all = run.own_values(run.own.iter().filter(|row| row.metric == 0)).unwrap();
            (run.own.len(), all.count, all.quantile(0.5), all.min, all.no_number)
        };
        assert_eq!((stored(&killed), stored(&whole).0), (stored(&whole), 6));
        let parts = &of(&whole)["parts"].clone();
        assert_eq!((&parts["connect"]["count"], &parts["transfer"]["count"]), (&8.into(), &4.into()));
        assert_eq!(parts["first_byte"]["count"], 200);
        let stored = |run: &Run| run.part_times(run.parts.iter().filter(|row| row.measured)).unwrap();
        assert_eq!(stored(&killed).connect_us, stored(&whole).connect_us);
        assert_eq!((stored(&killed).transfer_us.len(), killed.parts.len()), (4, 3));
        assert_eq!(of(&whole)["driver"]["waited_share"], 0.125);
        assert_eq!(of(&whole)["driver"]["absent_s"], 0.5);
        let measured = |run: &Run| -> (u64, u64) {
            let of = |row: &crate::StoredLoad| (row.measured_offered, row.measured_dropped);
            run.load.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        };
        assert_eq!((measured(&killed), measured(&whole)), ((300, 18), (300, 18)));
        let bodies = |run: &Run| -> Vec<(u64, u64)> {
            run.load.iter().map(|row| (row.encoded_bytes, row.decoded_bytes)).collect()
        };
        assert_eq!((bodies(&killed), bodies(&whole)), (vec![(200, 1_801); 3], vec![(200, 1_801); 3]));
        assert_eq!(
            (killed.series.len(), killed.load.len(), killed.samples.len()),
            (whole.series.len(), 3, 3)
        );
        assert_eq!((killed.groups.len(), whole.groups.len()), (3, 3));
        assert_eq!(
            (&of(&whole)["groups"][0]["group"], &of(&whole)["groups"][0]["count"]),
            (&"both".into(), &36.into())
        );
        assert_eq!(killed.events.len(), 1);
        assert_eq!(killed.stores, whole.stores);
        assert_eq!(killed.stores[0].points, [(1_000_000, 0.0), (2_000_000, 1.0), (3_000_000, 2.0)]);
        assert_eq!(of(&whole)["stores_figures"][0]["figures"]["ops"]["mean"], 1.5);
        let verdict = &killed.manifest.summary.verdict;
        assert_eq!(verdict.status, Status::Invalid);
        assert!(
            verdict.reasons[0].starts_with("incomplete: it was killed")
                && verdict.reasons[0].contains("2.0 s measured")
        );
        assert_eq!(killed.manifest.phases[1].end_us, 3_000_000);
        let left: Vec<_> =
            fs::read_dir(&killed.dir).unwrap().flatten().map(|file| file.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("unfinished")), "{left:?}");
        Run::open(&killed.dir).unwrap();
    }

    #[test]
    fn what_is_missing_in_operations_is_known_until_the_run_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &[], "").unwrap();
        writer.anchor(std::time::UNIX_EPOCH);
        let manifest = Manifest::new("x", Vec::new(), summarize(writer.totals(), dir.path()));
        writer.begun(&manifest).unwrap();
        let told = dir.path().join(files::OPERATIONS_TOLD);
        fs::write(&told, "#began file\n5,A,store,7,200\n#dropped 3\n#ended\n").unwrap();
        // it is killed when the operations are there, and before its manifest is
        assert_eq!(take_operations(dir.path(), std::time::UNIX_EPOCH).unwrap().unwrap().missing, 3);
        drop(writer);
        let run = Run::open(dir.path()).unwrap();
        let notes: Vec<_> = crate::notes_on_operations(&run.manifest.notes).collect();
        assert!(notes.len() == 1 && notes[0].starts_with("3 of"), "{notes:?}");
        assert!(!told.exists() && dir.path().join(files::OPERATIONS).exists());
    }

    #[test]
    fn a_journal_torn_anywhere_gives_what_was_whole_before() {
        let dir = tempfile::tempdir().unwrap();
        drop(begun(dir.path()).0);
        let bytes = fs::read(dir.path().join(files::JOURNAL)).unwrap();
        let torn = tempfile::tempfile().unwrap();
        let mut last = 0;
        for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
            std::os::unix::fs::FileExt::write_all_at(&torn, &bytes[..length], 0).unwrap();
            torn.set_len(length as u64).unwrap();
            std::io::Seek::rewind(&mut &torn).unwrap();
            let mut whole = 0;
            journal::entries(&torn, |_| {
                whole += 1;
                Ok(())
            })
            .unwrap();
            assert!(whole >= last);
            last = whole;
        }
        assert_eq!(last, 11, "all but the last");
    }

    #[test]
    fn damage_in_the_middle_of_a_journal_is_told_with_its_place_and_its_size() {
        for (at, damage) in [(4, &[0xff; 4][..]), (0, &[0xff, 0xff, 0, 0]), (0, &[0xff; 4])] {
            let dir = tempfile::tempdir().unwrap();
            drop(begun(dir.path()).0);
            let journal = dir.path().join(files::JOURNAL);
            let mut bytes = fs::read(&journal).unwrap();
            let frames: Vec<usize> = std::iter::successors(Some(0), |at| {
                let length = u32::from_le_bytes(bytes.get(*at..at + 4)?.try_into().unwrap());
                Some(at + 4 + length as usize)
            })
            .take_while(|at| *at < bytes.len())
            .collect();
            let begin = frames[frames.len() / 2];
            bytes[begin + at..begin + at + damage.len()].copy_from_slice(damage);
            fs::write(&journal, &bytes).unwrap();
            let run = Run::open(dir.path()).unwrap();
            let told = format!("the {} bytes behind it are damaged or cut off", bytes.len() - begin);
            let notes = &run.manifest.notes;
            assert!(notes.iter().any(|note| note.contains(&told)), "{damage:?}: {notes:?}");
            assert!(notes.iter().any(|note| note.contains("can be read up to second ")), "{notes:?}");
        }
    }

    #[test]
    fn a_journal_of_another_version_stays() {
        let dir = tempfile::tempdir().unwrap();
        drop(begun(dir.path()).0);
        let journal = dir.path().join(files::JOURNAL);
        let mut bytes = fs::read(&journal).unwrap();
        bytes[4] = 0xff;
        fs::write(&journal, &bytes).unwrap();
        let error = rebuild(dir.path(), false).unwrap_err().to_string();
        assert!(error.contains("written by another version of tidemark, or damaged"), "{error}");
        assert_eq!(fs::read(&journal).unwrap(), bytes);
    }

    #[test]
    fn a_run_that_goes_on_is_left_alone_and_one_that_never_drove_is_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, _) = begun(dir.path());
        let error = Run::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("still going on"), "{error}");
        drop(writer);
        rebuild(dir.path(), true).unwrap();
        let run = Run::open(dir.path()).unwrap();
        assert!(run.manifest.interrupted);

        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &[], "").unwrap();
        let manifest = Manifest::new("x", Vec::new(), summarize(writer.totals(), dir.path()));
        writer.begun(&manifest).unwrap();
        drop(writer);
        let run = Run::open(dir.path()).unwrap();
        assert!(run.manifest.summary.verdict.reasons[0].contains("nothing was measured"));
        assert_eq!(run.series.len(), 0);
    }
}
