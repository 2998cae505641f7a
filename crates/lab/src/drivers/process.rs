//! A driver that is a process of its own, seen by whoever started it.
//!
//! It is told what to do on its standard input, and hands over on its standard output. It ends when its input does; and
//! whatever becomes of it, nobody waits for it forever.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tidemark_drive::{DriveEnd, DriveOptions, PhaseTimes, Protocol, Tracing};
use tidemark_record::{Counter, Handover, Hello, ThreadInterval, frame};

use super::{Driver, Ended, Handed, Order, Place, Setup, could_not_drive};
use crate::child::{Child, Spec};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::system::Running;

/// The verb of the program by which it drives for another process.
pub const VERB: &str = "driver";
/// Handovers that may lie untaken: as many seconds of a single thread.
const UNTAKEN: usize = 128;
/// Longest time that it may take to make its plan, find the system and begin.
const BEGIN_WITHIN: Duration = Duration::from_secs(60);
/// How often a stop request is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A driver that hands nothing over for so long does not drive any more: each thread tells something once a second.
const SILENT_MAX: Duration = Duration::from_secs(60);
/// How long it may take to be gone once it is over.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What a run is, as a driver in another process needs to know it.
pub struct Run<'r> {
    /// The program.
    pub executable: &'r Path,
    /// The command line of the run.
    pub words: &'r [String],
    /// The text of its scenario.
    pub scenario: &'r str,
    /// The system, and behind it the plan's other targets.
    pub targets: Vec<&'r Running>,
    /// Where its log goes.
    pub run_dir: &'r Path,
}

/// A driver that is a process of its own.
pub struct Process {
    child: Child,
    orders: ChildStdin,
    handed: Receiver<Result<Handover, String>>,
    hello: Hello,
    log: PathBuf,
    /// When something was handed over last.
    heard: Instant,
    /// Where the last interval ended, microseconds since the run began.
    last_us: u64,
    end: Option<DriveEnd>,
    broke: Option<String>,
    /// Tells at the end how many requests of the trace were lost on this side.
    lost: Receiver<u64>,
}

impl Process {
    /// Starts it, and waits until it is about to begin.
    ///
    /// # Errors
    /// If it cannot be started, or cannot begin.
    pub fn start(
        run: &Run<'_>,
        options: &DriveOptions,
        stop_request: &dyn Fn() -> StopRequest,
    ) -> Result<Process, LabError> {
        let log = run.run_dir.join(tidemark_record::LOGS_DIR).join("driver.log");
        let command = vec![run.executable.display().to_string(), VERB.to_owned()];
        let spec = Spec { hands_over: true, ..Spec::new(VERB, command, log.clone()) };
        let mut child = Child::spawn(&spec).map_err(could_not_drive)?;
        let (mut orders, output) = child.pipes().ok_or("it has no pipes").map_err(could_not_drive)?;
        let setup = Setup::new((run.words, run.scenario), &run.targets, options);
        // one that ended already says why
        let told = frame::write(&setup, &mut orders);
        let (sink, handed) = sync_channel(UNTAKEN);
        let (count, lost) = sync_channel(1);
        let trace = options.trace.clone();
        std::thread::Builder::new()
            .name("driver-out".into())
            .spawn(move || {
                let _ = count.send(take(output, &sink, trace));
            })
            .map_err(could_not_drive)?;
        let begun = Instant::now();
        let hello = loop {
            match handed.recv_timeout(LOOK_EVERY) {
                Ok(Ok(Handover::Hello(hello))) => break hello,
                Ok(Ok(Handover::Error(reason))) => return Err(could_not_drive(reason)),
                Ok(Ok(_)) => return Err(could_not_drive("the driver did not begin with a hello")),
                Ok(Err(reason)) => return Err(could_not_drive(reason)),
                Err(RecvTimeoutError::Disconnected) => {
                    let ending = ending(&mut child);
                    let tail = child.log_tail(crate::child::TAIL_LINES);
                    let untold = told.err().map_or_else(String::new, |error| format!(" ({error})"));
                    return Err(could_not_drive(format!(
                        "the driver did not begin: {ending}{untold}; {tail}"
                    )));
                }
                Err(RecvTimeoutError::Timeout) if stop_request() == StopRequest::Abort => {
                    return Err(LabError::Interrupted(None));
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > BEGIN_WITHIN => {
                    return Err(could_not_drive("the driver did not begin in time"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        if hello.epoch_us != setup.epoch_us || usize::from(hello.threads) != setup.threads {
            return Err(could_not_drive("the driver began with something else than it was told"));
        }
        Ok(Process {
            child,
            orders,
            handed,
            hello,
            log,
            heard: Instant::now(),
            last_us: 0,
            end: None,
            broke: None,
            lost,
        })
    }

    fn broke(&mut self, reason: impl Into<String>) -> Handed {
        self.broke.get_or_insert(reason.into());
        Handed::Over
    }

    /// One that ended already does not hear it, which is seen by what it hands over.
    fn tell(&mut self, order: Order) {
        let _ = frame::write(&order, &mut self.orders);
    }
}

impl Place {
    pub(super) fn of(found: &Running) -> Place {
        let target = &found.target;
        let is_one = target.proxy.is_none() && target.protocol.shards().is_none();
        Place {
            url: found.url.clone(),
            address: is_one.then(|| target.address.to_string()),
            is_http2: matches!(target.protocol, Protocol::Http2(_)),
        }
    }
}

impl Driver for Process {
    fn phases(&self) -> &[PhaseTimes] {
        &self.hello.phases
    }

    fn next(&mut self, within: Duration) -> Handed {
        if self.end.is_some() || self.broke.is_some() {
            return Handed::Over;
        }
        let handed = self.handed.recv_timeout(within);
        if handed.is_ok() {
            self.heard = Instant::now();
        }
        match handed {
            Ok(Ok(Handover::Interval(mut interval, part))) => {
                if interval.thread >= self.hello.threads {
                    return self.broke("it told of a thread that it does not have");
                }
                self.last_us = self.last_us.max(interval.end_us);
                interval.ledger = part;
                Handed::Interval(*interval)
            }
            Ok(Ok(Handover::Event(event))) => Handed::Event(event),
            Ok(Ok(Handover::End(end))) => {
                self.end = Some(*end);
                Handed::Over
            }
            Ok(Ok(Handover::Error(reason))) => self.broke(reason),
            Ok(Ok(Handover::Hello(_) | Handover::Traced(_) | Handover::NotTaken(..))) => {
                self.broke("it began anew")
            }
            Ok(Err(reason)) => self.broke(reason),
            Err(RecvTimeoutError::Disconnected) => {
                let ending = ending(&mut self.child);
                self.broke(ending)
            }
            Err(RecvTimeoutError::Timeout) if self.heard.elapsed() > SILENT_MAX => {
                self.broke(format!("it said nothing for {} s", SILENT_MAX.as_secs()))
            }
            Err(RecvTimeoutError::Timeout) => Handed::Nothing,
        }
    }

    fn recycle(&mut self, _: ThreadInterval) {}

    fn stop(&mut self) {
        self.tell(Order::Stop);
    }

    fn abort(&mut self) {
        self.tell(Order::Abort);
    }

    fn end(self: Box<Self>) -> Result<Ended, LabError> {
        let Process { mut child, orders, hello, log, last_us, end, broke, lost, .. } = *self;
        // its input ends, and with that it does
        drop(orders);
        if end.is_some() {
            let begun = Instant::now();
            while child.ending().is_none() && begun.elapsed() < GONE_WITHIN {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(child);
        // one that said nothing is no file of the run
        if std::fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
            let _ = std::fs::remove_file(&log);
        }
        let Some(mut end) = end else {
            let mut phases = hello.phases;
            phases.retain(|phase| phase.start_us < last_us);
            phases.iter_mut().for_each(|phase| phase.end_us = phase.end_us.min(last_us));
            let end = DriveEnd { phases, ended_us: last_us, ..DriveEnd::default() };
            let broke = broke.or_else(|| Some("it has no end".into()));
            return Ok(Ended { end, broke, ..Ended::default() });
        };
        end.counters[Counter::UntracedLost] += lost.recv().unwrap_or(0);
        Ok(Ended { end, broke, ..Ended::default() })
    }

    fn process_id(&self) -> Option<u32> {
        Some(self.child.id())
    }
}

/// How it ended, which it is about to if its output is over.
fn ending(child: &mut Child) -> String {
    let begun = Instant::now();
    loop {
        match child.ending() {
            Some(ending) => return ending,
            None if begun.elapsed() > GONE_WITHIN => return "it closed its output".into(),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Takes what a driver hands over until its output ends; how many requests of the trace nobody took in time.
fn take(output: ChildStdout, sink: &SyncSender<Result<Handover, String>>, trace: Option<Tracing>) -> u64 {
    let mut output = BufReader::new(output);
    let mut lost = 0;
    loop {
        let handed = match Handover::read(&mut output) {
            Ok(None) => return lost,
            // cut off: it died, and how says more
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return lost,
            Ok(Some(Handover::Traced(traced))) => {
                if let Some(trace) = &trace
                    && let Err(TrySendError::Full(_)) = trace.sink.try_send(*traced)
                {
                    lost += 1;
                }
                continue;
            }
            Ok(Some(handover)) => Ok(handover),
            Err(error) => Err(format!("what it hands over cannot be read: {error}")),
        };
        let is_last = handed.is_err();
        if sink.send(handed).is_err() || is_last {
            return lost;
        }
    }
}
