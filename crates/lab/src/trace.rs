//! A sample of the requests, with their answers, as HAR that browsers' tools open: a file, or standard output.
//!
//! The driving threads hand requests over and wait for nobody; a thread of its own writes each as it comes. How many of
//! them there may be is bounded, and what is beyond a bound, or was lost, is counted and told. The file takes its place when
//! all of it is written.

mod har;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidemark_drive::{Traced, Tracing};
use tidemark_record::{Counter, Counters, OutputFile};
use tidemark_scenario::Plan;

use crate::error::LabError;
use crate::masked::Learned;
use crate::system::Running;
use har::Place;

/// One request in so many where nobody says it.
const EVERY: u64 = 100;
/// Most requests that are kept as a sample, and most that failed.
const SAMPLED_MAX: u64 = 10_000;
const FAILED_MAX: u64 = 1_000;
/// Cookies and tokens of other sessions that each entry is searched for, the latest; its own session's come on top.
const LEARNED_MAX: usize = 64;
/// Requests that wait to be written.
const WAITING: usize = 256;
/// How long the end of the load waits for the rest to be written while nobody takes anything of it, and at most.
const STALLED: Duration = Duration::from_secs(5);
const END_WITHIN: Duration = Duration::from_secs(60);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What is traced, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// The file; none for standard output, on which nobody else may write then.
    pub file: Option<PathBuf>,
    /// One request in so many, and all that failed; 0 for those alone. A sensible number where nothing is said.
    pub every: Option<u64>,
}

/// A trace while it is written.
pub struct Trace {
    file: Option<PathBuf>,
    every: u64,
    /// Bytes that were taken so far.
    taken: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<Written>>,
}

/// Counts what is taken.
struct Counted<W> {
    out: W,
    taken: Arc<AtomicU64>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(bytes)?;
        self.taken.fetch_add(taken as u64, Ordering::Relaxed);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    good: u64,
    failed: u64,
    /// Cookies and tokens of sessions that later entries were not searched for.
    forgotten: u64,
}

/// Finds out whether it can be written, before anything is started.
///
/// # Errors
/// If it cannot, or the plan has no request that could stand in it.
pub fn check(options: &TraceOptions, plan: &Plan) -> Result<(), LabError> {
    let has_script = plan.sessions.iter().any(|kind| kind.script.is_some());
    if !has_script && plan.requests.iter().all(|request| request.http().is_none()) {
        let reason = "--trace writes requests of HTTP (as HAR), and this scenario makes none; leave it out";
        return Err(LabError::Usage(reason.into()));
    }
    match &options.file {
        // whoever reads a FIFO would take it for the end
        Some(file) if !fs::metadata(file).is_ok_and(|there| !there.is_file() && !there.is_dir()) => {
            open(file).map(drop)
        }
        _ => Ok(()),
    }
}

fn open(file: &Path) -> Result<OutputFile, LabError> {
    let wrong = |error| LabError::Usage(format!("--trace: cannot write {}: {error}", file.display()));
    OutputFile::begin(file).map_err(wrong)
}

/// Where a trace is written to.
enum Out {
    Stdout(io::Stdout),
    File(OutputFile),
}

impl Out {
    /// All of it is written.
    fn finish(self) -> io::Result<()> {
        match self {
            Out::Stdout(mut out) => out.flush(),
            Out::File(file) => file.finish(),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stdout(out) => out.write(bytes),
            Out::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stdout(out) => out.flush(),
            Out::File(file) => file.flush(),
        }
    }
}

/// Whether standard output is the device that keeps nothing; one that was closed is that, too, once a program runs.
fn goes_nowhere() -> bool {
    let device = |path: &str| fs::metadata(path).ok().map(|of| of.rdev());
    let nowhere = device("/dev/null");
    nowhere.is_some() && device("/proc/self/fd/1") == nowhere
}

impl Trace {
    /// Begins a trace of a plan's requests to these systems, and says what the driver is to hand over.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn begin<'r>(
        options: &TraceOptions,
        usual: Option<u64>,
        plan: &Arc<Plan>,
        systems: impl Iterator<Item = &'r Running>,
    ) -> Result<(Trace, Tracing), LabError> {
        let out = match &options.file {
            Some(file) => Out::File(open(file)?),
            None => Out::Stdout(io::stdout()),
        };
        let every = options.every.or(usual).unwrap_or(EVERY);
        let places: Vec<Place> = systems.map(|system| Place::of(&system.target)).collect();
        let (sink, traced) = sync_channel(WAITING);
        let plan = Arc::clone(plan);
        let taken = Arc::new(AtomicU64::new(0));
        let mut out = BufWriter::new(Counted { out, taken: Arc::clone(&taken) });
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || {
                let written = write(&mut out, &traced, &plan, &places)?;
                out.into_inner().map_err(io::IntoInnerError::into_error)?.out.finish()?;
                Ok(written)
            })
            .map_err(|error| LabError::Measure(format!("cannot start a thread: {error}")))?;
        let trace = Trace { file: options.file.clone(), every, taken, thread };
        Ok((trace, Tracing { every, sampled_max: SAMPLED_MAX, failed_max: FAILED_MAX, sink }))
    }

    /// The driver is done: what stands in the file, and what it lacks.
    ///
    /// # Errors
    /// Why it is not whole.
    pub fn end(self, counters: &Counters) -> Result<String, String> {
        let Trace { file, every, taken, thread } = self;
        let place =
            file.as_ref().map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
        if !is_over(&thread, &taken, STALLED, END_WITHIN) {
            // its thread is left behind: whoever reads holds it up
            return Err(format!(
                "the trace in {place} is not whole: its reader took nothing for {} s, or had not all {} s after the load; read \
                 it as it comes",
                STALLED.as_secs(),
                END_WITHIN.as_secs()
            ));
        }
        let written = match thread.join() {
            Ok(Ok(written)) => written,
            // a reader who has seen enough is no error
            Ok(Err(error)) if file.is_none() && error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok("trace: standard output was closed before all of it was written".to_owned());
            }
            Ok(Err(error)) => return Err(format!("--trace: cannot write {place}: {error}")),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if file.is_none() && goes_nowhere() {
            return Ok("trace: nothing of it is kept: standard output is closed, or /dev/null".to_owned());
        }
        let sample = match every {
            0 => String::new(),
            1 => format!("{} and ", requests(written.good, "good")),
            every => format!("{} (1 in {every}) and ", requests(written.good, "good")),
        };
        let mut told = format!("trace: {place} has {sample}{}", requests(written.failed, "failed"));
        let lacking = [
            (Counter::UntracedSampled, format!("beyond the first {SAMPLED_MAX}")),
            (Counter::UntracedFailed, format!("that failed beyond the first {FAILED_MAX}")),
            (Counter::UntracedLost, "that came faster than they could be written".into()),
        ];
        let lacking = lacking.map(|(counter, which)| (counters[counter], which));
        for (count, which) in lacking.into_iter().filter(|(count, _)| *count > 0) {
            told += &format!("; it lacks {count} {which}");
        }
        if written.forgotten > 0 {
            told += &format!(
                "; cookies and tokens of its own session are masked in each, and the latest {LEARNED_MAX} of others ({} older \
                 ones are not)",
                written.forgotten
            );
        }
        Ok(told)
    }
}

/// Waits until a thread is over; false once nothing was taken of it for so long, or it took so long as a whole.
fn is_over<T>(thread: &JoinHandle<T>, taken: &AtomicU64, stalled: Duration, within: Duration) -> bool {
    let begin = Instant::now();
    let (mut known, mut since) = (taken.load(Ordering::Relaxed), begin);
    while !thread.is_finished() {
        std::thread::sleep(LOOK_EVERY);
        let now = taken.load(Ordering::Relaxed);
        if now != known {
            (known, since) = (now, Instant::now());
        }
        if since.elapsed() > stalled || begin.elapsed() > within {
            return thread.is_finished();
        }
    }
    true
}

/// A count in words: `no failed request`, `1 good request`.
fn requests(count: u64, kind: &str) -> String {
    match count {
        0 => format!("no {kind} request"),
        1 => format!("1 {kind} request"),
        n => format!("{n} {kind} requests"),
    }
}

/// Writes what comes until nobody has more.
fn write(
    mut out: impl Write,
    traced: &Receiver<Traced>,
    plan: &Plan,
    places: &[Place],
) -> io::Result<Written> {
    let creator = serde_json::json!({"name": "tidemark", "version": env!("CARGO_PKG_VERSION")});
    write!(out, "{{\"log\": {{\"version\": \"1.2\", \"creator\": {creator}, \"entries\": [")?;
    let mut written = Written::default();
    let mut learned = Learned::new(&plan.secrets, LEARNED_MAX);
    let mut separator = "\n";
    for one in traced {
        let entry = har::entry(&one, plan, places.get(usize::from(one.target)), &mut learned);
        write!(out, "{separator}{entry}")?;
        separator = ",\n";
        if one.outcome.is_error() { written.failed += 1 } else { written.good += 1 }
    }
    writeln!(out, "\n]}}}}")?;
    out.flush()?;
    written.forgotten = learned.forgotten();
    Ok(written)
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::plan::LoadModel;

    use super::*;
    use tidemark_verdict::test_plan::plan;

    #[test]
    fn requests_are_counted_in_words() {
        assert_eq!(
            [0, 1, 2].map(|count| requests(count, "failed")),
            ["no failed request", "1 failed request", "2 failed requests"]
        );
    }

    #[test]
    fn a_trace_without_requests_is_a_whole_file() {
        let (sink, traced) = sync_channel(1);
        drop(sink);
        let mut out = Vec::new();
        write(&mut out, &traced, &plan(LoadModel::Closed), &[]).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["log"]["version"], "1.2");
        assert_eq!(read["log"]["entries"].as_array().map(Vec::len), Some(0));
    }

    #[test]
    fn a_reader_who_takes_nothing_is_not_waited_for_and_a_slow_one_is() {
        let (long, short) = (Duration::from_secs(600), Duration::from_millis(300));
        let (mut reader, writer) = io::pipe().unwrap();
        let taken = Arc::new(AtomicU64::new(0));
        let mut out = Counted { out: writer, taken: Arc::clone(&taken) };
        // more than a pipe holds
        let thread = std::thread::spawn(move || out.write_all(&[0; 1 << 20]));
        assert!(!is_over(&thread, &taken, short, long), "it takes nothing more");
        assert!(!is_over(&thread, &taken, long, short), "it takes too long");
        let reading = std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
        assert!(is_over(&thread, &taken, long, long));
        thread.join().unwrap().unwrap();
        assert_eq!((reading.join().unwrap().unwrap(), taken.load(Ordering::Relaxed)), (1 << 20, 1 << 20));
    }
}
