//! Standard output for results, standard error for everything else. A reader who has seen enough and closes the
//! pipe is no error.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::AnsiColor;
use rustix::termios::tcgetwinsize;
use tidemark_record::Run;
use tidemark_report::blocks;
use tidemark_report::cube::{self, Cube, Dimension, Measure};
use tidemark_report::text::{self, Style};
use tidemark_scenario::Secrets;

use crate::failure::Failure;

/// Names for a temporary directory that are tried.
const NAMES_MAX: u32 = 100;
/// Width of a page where there is no terminal to ask.
const PAGE_COLUMNS: usize = 80;
/// Narrowest width that is laid out for.
pub const NARROWEST: usize = 45;

/// Writes a result to standard output; colours stay only where they are wanted.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of writing to standard output.
pub fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::unwritable(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A directory that was named, or a temporary one, which is removed with this.
pub struct OwnDir {
    pub path: Option<PathBuf>,
    pub temporary: bool,
}

impl OwnDir {
    /// A temporary one for a verb; `flag` is the one that names another place.
    pub fn temporary(verb: &str, flag: &str) -> Result<OwnDir, Failure> {
        let folder = std::env::temp_dir();
        let mut last = None;
        for attempt in 0..NAMES_MAX {
            let dir = folder.join(format!("tidemark-{verb}-{}-{attempt}", std::process::id()));
            // making it is the test that it is nobody else's
            match private_dir(&dir) {
                Ok(()) => return Ok(OwnDir { path: Some(dir), temporary: true }),
                Err(error) => last = Some(error),
            }
        }
        let reason = last.map_or_else(String::new, |error| error.to_string());
        let folder = folder.display();
        Err(Failure::usage(format!("no temporary directory in {folder}: {reason}; name one with {flag}")))
    }
}

impl Drop for OwnDir {
    fn drop(&mut self) {
        if let Some(dir) = self.path.as_deref().filter(|_| self.temporary) {
            // what stays is in the system's folder for temporary files
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// Makes a directory that nobody else can look into.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// A text without what is secret on this program's command line, and without what looks like a secret.
pub fn masked(text: &str) -> String {
    static OF_COMMAND: LazyLock<Secrets> = LazyLock::new(|| {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Secrets::of_command(&words)
    });
    OF_COMMAND.masked(text)
}

/// Says on standard error why there is no result, without secrets.
pub fn complain(message: &str) {
    let message = masked(message);
    let message = Place::Stderr.fit(&format!("error: {}", message.trim_end()));
    let mark = AnsiColor::Red.on_default().bold();
    let behind = message.strip_prefix("error:").unwrap_or(&message);
    // where standard error is closed there is nobody to tell
    let _ = writeln!(anstream::stderr(), "{mark}error:{mark:#}{behind}");
}

/// Whether only errors go to standard error, for as long as the program runs.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on there is nothing on standard error but errors.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Says something beside the result on standard error, without secrets, unless nothing is to be said there.
pub fn remark(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        insist(text);
    }
}

/// Says what belongs to an error on standard error, also where all else is quiet.
pub fn insist(text: &str) {
    say(&Place::Stderr.fit(&masked(text)));
}

/// What was said while a view had the terminal for itself; none while there is no view.
#[cfg(feature = "tui")]
static HELD: std::sync::Mutex<Option<Vec<String>>> = std::sync::Mutex::new(None);
/// Most remarks that wait for the end of a view.
#[cfg(feature = "tui")]
const HELD_MAX: usize = 100;

/// From now on remarks wait, as a view has the terminal.
#[cfg(feature = "tui")]
pub fn hold_remarks() {
    HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert_default();
}

/// The terminal is as it was: says what waited.
#[cfg(feature = "tui")]
pub fn release_remarks() {
    // an exit may come while somebody says something
    let Ok(held) = HELD.try_lock().map(|mut held| held.take()) else { return };
    held.into_iter().flatten().for_each(|text| say(&text));
}

/// Whether a text waits for the end of a view.
#[cfg(feature = "tui")]
fn is_held(text: &str) -> bool {
    let mut held = HELD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(held) = held.as_mut() else { return false };
    match held.len() {
        HELD_MAX => held.push("more messages were left out".to_owned()),
        0..HELD_MAX => held.push(text.to_owned()),
        _ => {}
    }
    true
}

/// There is no view.
#[cfg(not(feature = "tui"))]
fn is_held(_text: &str) -> bool {
    false
}

/// The same, of a text that has its layout.
fn say(text: &str) {
    if !text.trim().is_empty() && !is_held(text) {
        let _ = writeln!(anstream::stderr(), "{}", text.trim_end());
    }
}

/// Where a text for a person goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Standard output.
    Stdout,
    /// Standard error, as standard output is a machine's.
    Stderr,
}

impl Place {
    /// Beside results of which one may have standard output for itself.
    pub fn beside(stdout_is_taken: bool) -> Place {
        if stdout_is_taken { Place::Stderr } else { Place::Stdout }
    }

    /// How text is laid out there.
    pub fn style(self) -> Style {
        let width = self.known_columns().unwrap_or(PAGE_COLUMNS);
        Style { width, ascii: !is_utf8(), ..Style::default() }
    }

    /// Columns of the terminal; elsewhere those that COLUMNS says; none where nobody says it, as of a log.
    pub fn known_columns(self) -> Option<usize> {
        match self {
            Place::Stdout => columns_of(io::stdout()),
            Place::Stderr => columns_of(io::stderr()),
        }
    }

    /// Messages in lines that fit there, see [`fit`].
    pub fn fit(self, text: &str) -> String {
        fit(text, self.known_columns())
    }

    /// Writes a text with one line end behind it. Whoever wants quiet wants nothing on standard error.
    pub fn tell(self, text: &str, quiet: bool) -> Result<(), Failure> {
        match self {
            Place::Stdout => print(&format!("{}\n", text.trim_end())),
            Place::Stderr if quiet => Ok(()),
            Place::Stderr => {
                say(text);
                Ok(())
            }
        }
    }
}

/// The summary for a place, perhaps with a long table of percentiles.
pub fn summary(run: &Run, place: Place, percentiles: bool) -> Result<String, Failure> {
    let blocks = match percentiles {
        true => blocks::run_in_detail(run).map_err(|error| Failure::broken(error.to_string()))?,
        false => blocks::run(run),
    };
    Ok(text::render(&blocks, place.style()))
}

/// Columns of the terminal on standard output, or those of a page.
pub fn columns() -> usize {
    Place::Stdout.known_columns().unwrap_or(PAGE_COLUMNS)
}

/// Messages in lines of at most so many columns, broken between words; what goes on begins two columns behind its line. Where
/// columns are not known, as in a log, each message stays on its line. Words stay whole, as paths and URLs are there to be
/// copied, and so do lines of a file that are shown behind a `|`; one with a mark below it is cut around that.
pub fn fit(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns.map(|columns| columns.max(NARROWEST)) else { return text.to_owned() };
    let is_shown =
        |line: &str| line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|');
    let is_mark = |line: &str| line.trim_start().strip_prefix("| ").is_some_and(is_of_carets);
    let mut fitted = Vec::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        match lines.next_if(|next| is_shown(line) && is_mark(next)) {
            Some(mark) => {
                fitted.extend(excerpt(line, mark, columns, if is_utf8() { '…' } else { '~' }));
            }
            None if line.chars().count() <= columns || is_shown(line) => fitted.push(line.to_owned()),
            None => fitted.push(broken(line, columns)),
        }
    }
    fitted.join("\n")
}

fn is_of_carets(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|c| c == '^')
}

/// A line of a file and the mark below it, in so many columns: what is around the mark, with `dots` where something is left out.
fn excerpt(line: &str, mark: &str, columns: usize, dots: char) -> [String; 2] {
    // the margin with the number of the line, as wide in both
    let margin = line.chars().take_while(|c| *c != '|').count() + 2;
    let length = line.chars().count();
    if length.max(mark.chars().count()) <= columns {
        return [line.to_owned(), mark.to_owned()];
    }
    let room = columns.saturating_sub(margin).max(1);
    let begin = mark.chars().take_while(|c| *c != '^').count().saturating_sub(margin);
    let end = mark.chars().count().saturating_sub(margin);
    let skipped = if end < room { 0 } else { begin.saturating_sub(room / 3) };
    let part = |of: &str| -> Vec<char> { of.chars().skip(margin + skipped).take(room).collect() };
    let (mut shown, mut marked) = (part(line), part(mark));
    if skipped > 0
        && let (Some(shown), Some(marked)) = (shown.first_mut(), marked.first_mut())
    {
        (*shown, *marked) = (dots, ' ');
    }
    if let Some(last) = shown.last_mut().filter(|_| margin + skipped + room < length) {
        *last = dots;
    }
    let whole = |of: &str, part: Vec<char>| of.chars().take(margin).chain(part).collect();
    [whole(line, shown), whole(mark, marked)]
}

fn broken(line: &str, columns: usize) -> String {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let lines = text::wrap_whole(line, columns.saturating_sub(indent), 2);
    lines.iter().map(|part| format!("{:indent$}{part}", "")).collect::<Vec<_>>().join("\n")
}

fn columns_of(to: impl AsFd) -> Option<usize> {
    let of_terminal =
        tcgetwinsize(to).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    let said = || std::env::var("COLUMNS").ok()?.trim().parse::<usize>().ok().filter(|columns| *columns > 0);
    of_terminal.or_else(said)
}

/// Whether the locale takes characters beyond ASCII: the first of the three variables that is set decides, and
/// where none is, they are taken.
pub fn is_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_none_or(|locale| !matches!(locale.as_str(), "C" | "POSIX"))
}

/// A cube as wide as the terminal, or as its columns need where there is none.
pub fn table(cube: &Cube, measures: &[Measure], across: Option<Dimension>) -> String {
    let width =
        tcgetwinsize(io::stdout()).map_or(usize::MAX, |size| usize::from(size.ws_col).max(PAGE_COLUMNS));
    let lines = cube::table(cube, measures, across, width, "…");
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_between_words_and_go_on_behind_their_line() {
        let text = "  one: the first of the words, and some more of them\nhttp://127.0.0.1:8080/a/path/that/is/long/and/stays/whole it does\n";
        let wanted = "  one: the first of the words, and some more\n    of them\n\
                      http://127.0.0.1:8080/a/path/that/is/long/and/stays/whole\n  it does\n";
        assert_eq!(fit(text, Some(45)), wanted);
        // nothing is laid out for less
        assert_eq!(fit(text, Some(20)), wanted);
        assert_eq!(fit(text, Some(80)), text);
        assert_eq!(fit(text, None), text);
    }

    #[test]
    fn a_line_of_a_file_is_cut_around_its_mark() {
        let line = " 12 | system:   {url: 'http://127.0.0.1:8080', other: 1, more: 2}";
        let below = |line: &str, what: &str| {
            let at = line.chars().count() - line[line.find(what).unwrap()..].chars().count();
            format!("    | {}{}", " ".repeat(at - 6), "^".repeat(what.len()))
        };
        for what in ["system", "url", "http://127.0.0.1:8080", "other", "more: 2}"] {
            let mark = below(line, what);
            assert_eq!(excerpt(line, &mark, 80, '…'), [line, mark.as_str()]);
            let [shown, marked] = excerpt(line, &mark, 45, '…');
            assert!(shown.chars().count() <= 45 && marked.chars().count() <= 45, "{shown}\n{marked}");
            assert!(shown.starts_with(" 12 | ") && marked.starts_with("    | "), "{shown}\n{marked}");
            let under: String =
                shown.chars().zip(marked.chars()).filter(|(_, c)| *c == '^').map(|(c, _)| c).collect();
            assert_eq!(under, what);
        }
        let [shown, _] = excerpt(line, &below(line, "other"), 45, '…');
        assert!(shown.starts_with(" 12 | …") && !shown.ends_with('…'), "{shown}");
        let [shown, _] = excerpt(line, &below(line, "url"), 45, '…');
        assert!(shown.starts_with(" 12 | system") && shown.ends_with('…'), "{shown}");
        let text = format!("a mistake\n{line}\n{}", below(line, "other"));
        assert!(fit(&text, Some(45)).lines().all(|line| line.chars().count() <= 45));
        // a log has no mark
        assert_eq!(fit(&format!("  | {line}"), Some(45)), format!("  | {line}"));
    }
}
