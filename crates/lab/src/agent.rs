//! What `tidemark agent` does: it looks at the machine that it runs on and at processes of it, and says so once a second, a
//! line of JSON each, for a run elsewhere that [watches](tidemark_scenario::plan::Watch) them. It ends when its input does.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tidemark_record::Sample;
use tidemark_scenario::plan::Watched;

use crate::error::LabError;
use crate::timetable::{microseconds, next_second_us};
use crate::watch::local::Local;

/// A line. The first has `version` and `found`, or an `error`; each that follows `samples`, and `events` if there are any.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Version of Tidemark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What was found, in the order in which it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundThere>,
    /// What each used since the line before; `process` is what was asked for, or `machine`, and `at_us` counts from the first
    /// line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// What has become of processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Why nothing can be watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an agent has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundThere {
    /// What was asked for: `port 8080`.
    pub what: String,
    /// What it is: `nginx, pid 123`.
    pub found: String,
}

/// Looks once a second until the input ends, or nobody reads the output any more.
///
/// # Errors
/// [`LabError::Usage`] where something is not found, after a line that says so; [`LabError::Measure`] where the output cannot
/// be written.
pub fn look_around(
    watched: &[Watched],
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), LabError> {
    let mut local = Local::new().with_machine();
    let mut first = Line { version: Some(env!("CARGO_PKG_VERSION").to_owned()), ..Line::default() };
    for what in watched {
        match local.follow(&what.to_string(), what) {
            Ok((found, _)) => first.found.push(FoundThere { what: what.to_string(), found: found.text }),
            Err(error) => {
                tell(output, &Line { error: Some(error.clone()), ..Line::default() }).map_err(unwritten)?;
                return Err(LabError::Usage(error));
            }
        }
    }
    let over = end_of(input).map_err(|error| LabError::Measure(error.to_string()))?;
    let begin = Instant::now();
    local.look(0);
    match until_over(&mut local, &first, begin, &over, output) {
        // whoever asked has gone
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(unwritten),
    }
}

fn unwritten(error: io::Error) -> LabError {
    LabError::Measure(format!("what was seen cannot be told: {error}"))
}

fn until_over(
    local: &mut Local,
    first: &Line,
    begin: Instant,
    over: &Receiver<()>,
    output: &mut dyn Write,
) -> io::Result<()> {
    tell(output, first)?;
    loop {
        let now_us = microseconds(begin.elapsed());
        let next = Duration::from_micros(next_second_us(now_us) - now_us);
        match over.recv_timeout(next) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        let (samples, events) = local.look(microseconds(begin.elapsed()));
        tell(output, &Line { samples, events, ..Line::default() })?;
    }
}

fn tell(output: &mut dyn Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
    text.push('\n');
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Tells, by its own end, when the input has ended.
fn end_of(mut input: impl Read + Send + 'static) -> io::Result<Receiver<()>> {
    let (sender, over) = channel();
    std::thread::Builder::new().name("input".into()).spawn(move || {
        let _sender = sender;
        let mut bytes = [0; 256];
        // what comes is of no interest
        while !matches!(input.read(&mut bytes), Ok(0) | Err(_)) {}
    })?;
    Ok(over)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// Takes lines, and is closed after so many.
    struct Lines(Vec<u8>, usize);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.1 -= usize::from(bytes.ends_with(b"\n"));
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn read(bytes: &[u8]) -> Vec<Line> {
        let lines = std::str::from_utf8(bytes).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn it_tells_what_it_found_and_then_a_line_each_second() {
        let own = Watched::Pid(std::process::id());
        let mut output = Lines(Vec::new(), 2);
        let (reader, _writer) = io::pipe().unwrap();
        look_around(std::slice::from_ref(&own), reader, &mut output).unwrap();
        let lines = read(&output.0);
        assert_eq!(lines[0].found[0].what, own.to_string());
        let names: Vec<&str> = lines[1].samples.iter().map(|sample| sample.process.as_str()).collect();
        assert_eq!(names, ["machine", own.to_string().as_str()]);
        assert!(lines[1].samples.iter().all(|sample| sample.rss_bytes > 0));
    }

    #[test]
    fn it_ends_with_its_input_and_says_what_is_not_there() {
        let mut output = Lines(Vec::new(), 100);
        look_around(&[], io::empty(), &mut output).unwrap();
        let lines = read(&output.0);
        assert!(lines.len() == 1 && lines[0].version.is_some());
        let mut output = Lines(Vec::new(), 100);
        let error = look_around(&[Watched::Pid(i32::MAX as u32)], io::empty(), &mut output).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        let lines = read(&output.0);
        assert_eq!(lines[0].error.as_deref(), Some("no process has the number 2147483647"));
    }
}
