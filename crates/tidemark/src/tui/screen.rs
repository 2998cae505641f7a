//! The terminal: taken over, drawn on, listened to, and given back as it was.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Mutex, Once, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use signal_hook::consts::SIGINT;
use tidemark_lab::Progress;

use super::draw::{Paint, draw};
use super::state::State;
use crate::output;

/// Longest time between two frames.
const FRAME: Duration = Duration::from_millis(250);
/// How long keys are waited for at a time; also how late news are drawn.
const KEYS: Duration = Duration::from_millis(100);
/// News that may wait to be drawn; more are left out of the view, for the run must not wait for it.
const NEWS_MAX: usize = 64;
/// How long giving the terminal back waits for a frame that is being drawn.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// Whether the terminal is ours. Held while a frame is drawn, so that none is drawn after it was given back.
static TAKEN: Mutex<bool> = Mutex::new(false);
static HOOK: Once = Once::new();

/// Why there can be no view, if so.
pub fn possible() -> Result<(), String> {
    if !stdout().is_terminal() {
        return Err(
            "--tui draws on the terminal, but standard output is not a terminal; leave it out, or use --json"
                .into(),
        );
    }
    if !output::is_utf8() {
        return Err("--tui needs a UTF-8 locale, such as LC_ALL=C.UTF-8".into());
    }
    match std::env::var("TERM") {
        Ok(term) if term == "dumb" => {
            Err("--tui needs a terminal that can move its cursor; TERM is dumb".into())
        }
        _ => Ok(()),
    }
}

/// The view, on a thread of its own; dropping it gives the terminal back.
pub struct Screen {
    news: Option<SyncSender<Progress>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes the terminal over.
    pub fn start(title: String, goal: Option<u64>) -> io::Result<Screen> {
        HOOK.call_once(|| {
            // what a panic says is for the terminal as it was
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                before(panic);
            }));
        });
        let terminal = enter().inspect_err(|_| leave())?;
        let (news, receiver) = sync_channel(NEWS_MAX);
        let thread = std::thread::Builder::new()
            .name("screen".into())
            .spawn(move || show(terminal, State::new(title, goal), &receiver))
            .inspect_err(|_| leave())?;
        Ok(Screen { news: Some(news), thread: Some(thread) })
    }

    /// Shows what happens.
    pub fn show(&self, progress: Progress) {
        if let Some(news) = &self.news {
            // full, or the thread is gone: the run goes on without being seen
            let _ = news.try_send(progress);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.news.take();
        if let Some(thread) = self.thread.take() {
            // that it panicked was said by the hook
            let _ = thread.join();
        }
        leave();
    }
}

fn enter() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    *TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
    output::hold_remarks();
    enable_raw_mode()?;
    // some terminals have no other screen: what was said before would stay where nothing is drawn
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All), cursor::Hide)?;
    Terminal::new(CrosstermBackend::new(stdout()))
}

/// Gives the terminal back; more often than once does no harm.
pub fn leave() {
    let begin = Instant::now();
    loop {
        match TAKEN.try_lock() {
            Ok(mut taken) if *taken => *taken = false,
            Ok(_) => return,
            // a panic while drawing
            Err(TryLockError::Poisoned(_)) => TAKEN.clear_poison(),
            Err(TryLockError::WouldBlock) if begin.elapsed() < LEAVE_WITHIN => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            // a panic is being told on the thread that draws, or the terminal is stuck
            Err(TryLockError::WouldBlock) => {}
        }
        // each is tried, whatever came of the one before
        let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
        output::release_remarks();
        return;
    }
}

/// Draws and listens until there is no more news.
fn show(mut terminal: Terminal<CrosstermBackend<Stdout>>, mut state: State, news: &Receiver<Progress>) {
    let paint = Paint { colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let mut drawn: Option<Instant> = None;
    loop {
        let mut changed = false;
        loop {
            match news.try_recv() {
                Ok(progress) => state.take(progress, Instant::now()),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
            changed = true;
        }
        let now = Instant::now();
        if changed || drawn.is_none_or(|drawn| now.duration_since(drawn) >= FRAME) {
            let taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if !*taken {
                return;
            }
            // a terminal that went away is no reason to end the run; SIGHUP does that
            let _ = terminal.draw(|frame| draw(frame, &state, now, paint));
            drop(taken);
            drawn = Some(now);
        }
        match event::poll(KEYS) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                    let control = key.modifiers.contains(KeyModifiers::CONTROL);
                    if is_stop(key.code, control) {
                        // as Ctrl-C does without a view: once stops, twice stops at once
                        let _ = signal_hook::low_level::raise(SIGINT);
                    }
                }
                Ok(Event::Resize(..)) => drawn = None,
                _ => {}
            },
            Err(_) => std::thread::sleep(KEYS),
        }
    }
}

/// Whether a key stops the run.
pub fn is_stop(key: KeyCode, control: bool) -> bool {
    match key {
        KeyCode::Char('q' | 'Q') => !control,
        KeyCode::Char('c' | 'C') => control,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash;
    use crate::pty::Pty;

    /// Set for the process that is to panic.
    const CHILD: &str = "TIDEMARK_TEST_PANICS_ON_SCREEN";

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let name = "tui::screen::tests::a_panic_gives_the_terminal_back_before_it_is_told";
        if std::env::var_os(CHILD).is_some() {
            crash::no_backtraces();
            let _screen = Screen::start("panics".into(), None).unwrap();
            std::thread::sleep(2 * KEYS);
            panic!("on the screen");
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
        let mut pty = Pty::open(80, 24);
        let before = pty.modes();
        let status = pty.run(command).wait().unwrap();
        let said = pty.rest();
        assert!(!status.success(), "{said}");
        let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("no {what:?} in {said:?}"));
        let (entered, left) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"));
        assert!(entered < left && left < at("an internal error"), "{said:?}");
        assert_eq!(pty.modes(), before);
    }
}
