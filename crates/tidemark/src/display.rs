//! How a run is shown while it is on: by the full-screen view, by the progress line, or not at all.

use tidemark_lab::Progress;
use tidemark_report::units;

use crate::failure::Failure;
use crate::progress::ProgressLine;

/// How somebody wishes to see it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DisplayOptions {
    /// On the whole screen.
    pub tui: bool,
    /// Not at all.
    pub quiet: bool,
    /// The number of requests after which the load ends, where that is what ends it.
    pub goal: Option<u64>,
}

/// Whoever is shown the lab's progress.
pub struct Display {
    #[cfg(feature = "tui")]
    view: View,
    line: ProgressLine,
    goal: Option<u64>,
}

/// The view begins with the first news: from then on the lab looks after Ctrl-C.
#[cfg(feature = "tui")]
enum View {
    None,
    Wanted(String),
    Shown(crate::tui::Screen),
}

impl Display {
    /// With the view where it is wanted and can be had. `title` stands at its top.
    #[cfg(feature = "tui")]
    pub fn new(display_options: DisplayOptions, title: &str) -> Result<Display, Failure> {
        if display_options.tui {
            crate::tui::possible().map_err(Failure::usage)?;
        }
        let view = if display_options.tui { View::Wanted(title.to_owned()) } else { View::None };
        Ok(Display {
            view,
            line: ProgressLine::new(display_options.quiet || display_options.tui),
            goal: display_options.goal,
        })
    }

    /// This build has no view.
    #[cfg(not(feature = "tui"))]
    pub fn new(display_options: DisplayOptions, _title: &str) -> Result<Display, Failure> {
        if display_options.tui {
            let reason = "this program was built without the full-screen view; leave --tui out, or build it again with: cargo build --release --features tui";
            return Err(Failure::usage(reason));
        }
        Ok(Display { line: ProgressLine::new(display_options.quiet), goal: display_options.goal })
    }

    /// Shows what happens.
    pub fn show(&mut self, progress: Progress) {
        #[cfg(feature = "tui")]
        {
            if let View::Wanted(title) = &mut self.view {
                let title = std::mem::take(title);
                self.view = match crate::tui::Screen::start(title, self.goal) {
                    Ok(screen) => View::Shown(screen),
                    Err(error) => {
                        crate::output::remark(&format!("no --tui: {error}"));
                        self.line = ProgressLine::new(false);
                        View::None
                    }
                };
            }
            if let View::Shown(screen) = &self.view {
                screen.show(progress);
                return;
            }
        }
        match (&progress, self.goal) {
            (Progress::Phase { level, .. }, Some(goal)) => {
                self.line.put(&progress, format!("{goal} requests, {level}"))
            }
            (Progress::Second { live, .. }, Some(goal)) => {
                let (done, rate) = (units::count(live.requests), units::compact(live.achieved_per_s));
                let line = format!("{done} of {} requests, {rate}/s", units::count(goal));
                self.line.put(&progress, line);
            }
            _ => self.line.show(&progress),
        }
    }

    /// What puts the terminal right where the process is ended under the run.
    pub fn before_exit() -> Option<fn()> {
        #[cfg(feature = "tui")]
        return Some(crate::tui::leave);
        #[cfg(not(feature = "tui"))]
        return None;
    }
}
