//! The progress line on standard error: in place on a terminal, a plain line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidemark_lab::Progress;
use tidemark_record::Live;
use tidemark_report::units;

use crate::output::Place;

/// Time between two plain lines where standard error is no terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Redraws a second on a terminal, at most.
const DRAWS_PER_S: u8 = 10;
/// Columns of the spinner and the space behind it.
const SPINNER_COLUMNS: usize = 2;
/// Time between two turns of the spinner.
const TURN: Duration = Duration::from_millis(200);

/// Shows how far a run is; gone from a terminal when dropped.
pub enum ProgressLine {
    /// Nothing is shown.
    Quiet,
    /// One line, drawn again in place.
    Terminal(ProgressBar),
    /// Plain lines; when the last one about a second was written.
    Plain(Option<Instant>),
}

impl ProgressLine {
    /// For standard error as it is.
    pub fn new(quiet: bool) -> ProgressLine {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => ProgressLine::Quiet,
            (false, false) => ProgressLine::Plain(None),
            (false, true) => {
                let bar =
                    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S));
                let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg}");
                bar.set_style(style.expect("the template is a constant").tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
                bar.enable_steady_tick(TURN);
                ProgressLine::Terminal(bar)
            }
        }
    }

    /// Shows what happens.
    pub fn show(&mut self, progress: &Progress) {
        let columns = Place::Stderr.known_columns();
        let columns = match self {
            ProgressLine::Terminal(_) => columns.map(|columns| columns.saturating_sub(SPINNER_COLUMNS)),
            ProgressLine::Quiet | ProgressLine::Plain(_) => columns,
        };
        self.put(progress, line(progress, columns));
    }

    /// Shows what happens in these words.
    pub fn put(&mut self, progress: &Progress, line: String) {
        match self {
            ProgressLine::Quiet => {}
            // a line says nothing of single processes
            _ if matches!(progress, Progress::Look { .. }) => {}
            ProgressLine::Terminal(bar) => bar.set_message(line),
            ProgressLine::Plain(last) => {
                match progress {
                    Progress::Second { .. } | Progress::Verifying { .. } | Progress::Loading { .. } => {
                        if last.is_some_and(|last| last.elapsed() < PLAIN_EVERY) {
                            return;
                        }
                        *last = Some(Instant::now());
                    }
                    Progress::Phase { .. } => *last = Some(Instant::now()),
                    _ => {}
                }
                // where standard error is closed there is nobody to tell
                let _ = writeln!(std::io::stderr(), "{}", Place::Stderr.fit(&line));
            }
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let ProgressLine::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &Progress, columns: Option<usize>) -> String {
    match progress {
        Progress::Starting { system } => starting(system),
        Progress::Store { text } => text.clone(),
        Progress::Probing => "measuring the disk's sync latency".into(),
        Progress::Preparing => "loading data".into(),
        Progress::Loading { done, of } => format!("loading {} of {}", units::count(*done), units::count(*of)),
        Progress::Phase { name, level, duration } => format!("{name}: {level} for {}", length(*duration)),
        Progress::Second { phase, left, live } => {
            let left = Duration::from_secs(left.as_secs_f64().round() as u64);
            let mut parts = load(live);
            parts.insert(0, (PHASE, format!("{phase}: {} left", length(left))));
            joined(parts, columns)
        }
        Progress::Look { .. } => String::new(),
        Progress::Fault { text } => format!("fault: {text}"),
        Progress::Verifying { read, of } => verifying(*read, *of),
        Progress::CutShort { reason } => format!("stopping: {reason}"),
        Progress::Stopping { interrupted: true } => "stopping; Ctrl-C again stops at once".into(),
        Progress::Stopping { interrupted: false } => "what was started ended by itself; stopping".into(),
    }
}

/// `starting airline`; a system at a URL is there already.
pub fn starting(system: &str) -> String {
    if system.contains("://") { format!("reaching {system}") } else { format!("starting {system}") }
}

/// `verifying: 12,000,000 read of 31,145,914 acknowledged; Ctrl-C ends it`
pub fn verifying(read: u64, of: u64) -> String {
    format!("verifying: {} read of {} acknowledged; Ctrl-C ends it", units::count(read), units::count(of))
}

/// What the parts of a line are worth: where it is too long, the least goes first.
const WELL: u8 = 0;
const MEDIAN: u8 = 1;
const PHASE: u8 = 2;
const TAIL: u8 = 3;
const RATE: u8 = 4;
const WRONG: u8 = 5;

/// `52.3k/s, p50 1.24ms, p99 8.41ms, no errors`, and what each part is worth.
fn load(live: &Live) -> Vec<(u8, String)> {
    let time = |us: Option<u64>| us.map_or_else(|| "-".into(), |us| units::duration(us as f64));
    let (tail, tail_us) = live.tail_us();
    let mut parts = vec![
        (RATE, format!("{}/s", units::compact(live.achieved_per_s))),
        (MEDIAN, format!("p50 {}", time(live.p50_us))),
        (TAIL, format!("{tail} {}", time(tail_us))),
        match live.errors {
            0 => (WELL, "no errors".to_owned()),
            1 => (WRONG, "1 error".to_owned()),
            errors => (WRONG, format!("{} errors", units::compact(errors as f64))),
        },
    ];
    if live.dropped > 0 {
        parts.push((WRONG, format!("{} dropped", units::compact(live.dropped as f64))));
    }
    parts
}

/// As many parts beside each other as fit, in their order.
fn joined(mut parts: Vec<(u8, String)>, columns: Option<usize>) -> String {
    loop {
        let text = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(", ");
        let fits = columns.is_none_or(|columns| text.chars().count() <= columns);
        let least = parts.iter().enumerate().min_by_key(|(_, (worth, _))| *worth).map(|(at, _)| at);
        match least {
            Some(least) if !fits && parts.len() > 1 => drop(parts.remove(least)),
            _ => return text,
        }
    }
}

/// Whole seconds up to two minutes, then minutes and seconds: `45s`, `2m05s`.
pub fn length(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    if duration < Duration::from_secs(1) && !duration.is_zero() {
        format!("{}ms", duration.as_millis())
    } else if seconds < 120 {
        format!("{seconds}s")
    } else {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_a_narrow_terminal() {
        let live = Live {
            achieved_per_s: 1_234_567.0,
            p50_us: Some(123_456),
            p99_us: Some(12_345_678),
            errors: 123_456,
            ..Live::default()
        };
        let second = Progress::Second {
            phase: "warm-up".into(),
            left: Duration::from_secs(5999),
            live: Box::new(live),
        };
        let text = line(&second, Some(78));
        assert_eq!(text, "warm-up: 99m59s left, 1.23M/s, p50 123ms, p99 12.3s, 123k errors");
        assert_eq!(line(&second, None), text);
        // wrong is told before all else, and figures before what is known anyway
        assert_eq!(line(&second, Some(43)), "1.23M/s, p99 12.3s, 123k errors");
        assert_eq!(line(&second, Some(5)), "123k errors");
    }

    #[test]
    fn a_second_without_answers_has_no_percentiles() {
        let text = joined(load(&Live::default()), None);
        assert!(text.ends_with("/s, p50 -, p99 -, no errors"), "{text}");
        let few = Live { p50_us: Some(900), max_us: Some(4_000), ..Live::default() };
        let text = joined(load(&few), Some(35));
        assert!(text.ends_with("/s, p50 900µs, max 4.00ms"), "{text}");
    }

    #[test]
    fn lengths_are_short() {
        for (ms, text) in
            [(0, "0s"), (250, "250ms"), (1_000, "1s"), (1_600, "2s"), (119_000, "119s"), (125_000, "2m05s")]
        {
            assert_eq!(length(Duration::from_millis(ms)), text);
        }
    }
}
