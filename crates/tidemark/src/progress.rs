//! The progress line on standard error: in place on a terminal, a plain line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidemark_lab::Progress;
use tidemark_record::Live;
use tidemark_report::units;

/// Time between two plain lines where standard error is no terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Redraws a second on a terminal, at most.
const DRAWS_PER_S: u8 = 10;
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
        self.put(progress, line(progress));
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
                let _ = writeln!(std::io::stderr(), "{line}");
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

fn line(progress: &Progress) -> String {
    match progress {
        Progress::Starting { system } => starting(system),
        Progress::Store { text } => text.clone(),
        Progress::Probing => "measuring the disk's sync latency".into(),
        Progress::Preparing => "loading data".into(),
        Progress::Loading { done, of } => format!("loading {} of {}", units::count(*done), units::count(*of)),
        Progress::Phase { name, level, duration } => format!("{name}: {level} for {}", length(*duration)),
        Progress::Second { phase, left, live } => {
            let left = Duration::from_secs(left.as_secs_f64().round() as u64);
            format!("{phase}: {} left, {}", length(left), load(live))
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

/// `52.3k/s, p50 1.24ms, p99 8.41ms, no errors`
fn load(live: &Live) -> String {
    let time = |us: Option<u64>| us.map_or_else(|| "-".into(), |us| units::duration(us as f64));
    let mut text = format!(
        "{}/s, p50 {}, p99 {}, {}",
        units::compact(live.achieved_per_s),
        time(live.p50_us),
        time(live.p99_us),
        match live.errors {
            0 => "no errors".into(),
            1 => "1 error".into(),
            errors => format!("{} errors", units::compact(errors as f64)),
        }
    );
    if live.dropped > 0 {
        text.push_str(&format!(", {} dropped", units::compact(live.dropped as f64)));
    }
    text
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
        let text = line(&second);
        assert!(text.starts_with("warm-up: 99m59s left, "), "{text}");
        assert!(text.chars().count() <= 78, "{} columns: {text}", text.chars().count());
    }

    #[test]
    fn a_second_without_answers_has_no_percentiles() {
        assert!(
            load(&Live::default()).ends_with("/s, p50 -, p99 -, no errors"),
            "{}",
            load(&Live::default())
        );
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
