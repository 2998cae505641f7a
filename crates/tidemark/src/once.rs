//! `tidemark run SCENARIO --once`: each kind of session once, and what came of each step.

use std::cell::RefCell;

use tidemark_lab::masked::{Learned, Named, cookies_set, head_end};
use tidemark_lab::{EXIT_FAIL, EXIT_INTERRUPTED, EXIT_PASS, LOGGED_BYTES, LoggedAnswer, LoggedStep, text_of};
use tidemark_report::text::steers;
use tidemark_report::units::count;
use tidemark_scenario::Plan;
use tidemark_scenario::secrets::{MASK, comes_from_a_secret, is_secret};

use crate::args::RunArguments;
use crate::display::Display;
use crate::failure::Failure;
use crate::output::{OwnDir, Place};
use crate::{carry_out, output, trace};

/// Cookies and tokens that are looked for in all that is shown later, the latest.
const LEARNED_MAX: usize = 1_000;
/// Characters of a value, and of what a check saw, that are shown.
const VALUE_CHARS: usize = 200;

/// Carries it out; the exit status says whether every request was answered well and every check held, or that the user stopped
/// it.
pub fn once(plan: Plan, arguments: &RunArguments) -> Result<u8, Failure> {
    if let Some(flag) = arguments.results.any_but_json() {
        return Err(Failure::usage(format!(
            "--once measures nothing that {flag} could show; leave one of them out"
        )));
    }
    let mut options = carry_out::options(arguments)?;
    options.remember = false;
    let mut dir = match &arguments.out {
        Some(out) => OwnDir { path: Some(out.clone()), temporary: false },
        None => OwnDir::temporary("once", "--out DIR")?,
    };
    options.out = dir.path.clone();
    let place = Place::beside(arguments.trace.takes_stdout());
    let mut told = Told {
        learned: Learned::new(&plan.secrets, LEARNED_MAX),
        verbose: arguments.verbose,
        columns: place.known_columns(),
        ..Told::default()
    };
    let mut unwritten = None;
    let kind = arguments.once.as_deref().filter(|kind| !kind.is_empty());
    let display = RefCell::new(Some(Display::new(arguments.display_options(), &plan.name)?));
    let mut show = |kind: &str, step: LoggedStep| {
        // what is shown in place has to go first
        drop(display.take());
        if unwritten.is_none() {
            unwritten = place.tell(&told.step(kind, &step), arguments.quiet).err();
        }
    };
    let mut progress = |progress| {
        if let Some(display) = display.borrow_mut().as_mut() {
            display.show(progress);
        }
    };
    let once = tidemark_lab::once(plan, options, kind, &mut progress, &mut show);
    drop(display.take());
    let once = once.inspect_err(|error| keep_where_named(&mut dir, &error.to_string()))?;
    once.notes.iter().for_each(|note| keep_where_named(&mut dir, note));
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    let Told { steps, failed, learned, .. } = told;
    let mut notes: String = once.notes.iter().map(|note| format!("note: {}\n", clean_lines(note))).collect();
    if learned.forgotten() > 0 {
        let forgotten = learned.forgotten();
        notes += &format!(
            "note: cookies and tokens: the latest {LEARNED_MAX} are masked, {forgotten} older ones are not\n"
        );
    }
    let says = match (steps, failed) {
        (0, _) if once.is_stopped => "stopped before a request was sent\n".to_owned(),
        (_, 0) if once.is_stopped => format!("\nstopped after {}\n", counted(steps)),
        _ if once.is_stopped => format!("\nstopped after {}: {failed} failed\n", counted(steps)),
        (0, _) => "no request was sent\n".to_owned(),
        (_, 0) if once.is_good => format!("\n{}: all good\n", counted(steps)),
        _ => format!("\n{}: {failed} failed\n", counted(steps)),
    };
    place.tell(&place.fit(&format!("{notes}{says}")), arguments.quiet)?;
    trace::whole(once.trace_unwritten.as_deref())?;
    if once.is_stopped {
        return Ok(EXIT_INTERRUPTED);
    }
    Ok(if once.is_good && steps > 0 { EXIT_PASS } else { EXIT_FAIL })
}

/// A temporary folder to which a message sends the user, for a log, stays.
fn keep_where_named(dir: &mut OwnDir, message: &str) {
    let is_named = dir.path.as_ref().is_some_and(|path| message.contains(&path.display().to_string()));
    dir.temporary &= !is_named;
}

fn counted(steps: usize) -> String {
    if steps == 1 { "1 request".to_owned() } else { format!("{steps} requests") }
}

/// What has been shown so far, and what must not be.
#[derive(Default)]
struct Told {
    learned: Learned,
    verbose: bool,
    /// Columns that messages fit, where they are known.
    columns: Option<usize>,
    /// The kind of session whose steps are being shown.
    kind: String,
    steps: usize,
    failed: usize,
}

impl Told {
    /// A step in words.
    fn step(&mut self, kind: &str, step: &LoggedStep) -> String {
        self.learn(step);
        let mut out = String::new();
        if self.kind != kind {
            self.kind = kind.to_owned();
            out += &format!("{}session {}\n", if self.steps == 0 { "" } else { "\n" }, clean(kind));
        }
        if step.is_code {
            return out + &self.code(step);
        }
        self.steps += 1;
        let fault = step.failure.as_ref().filter(|_| !step.is_unfinished);
        self.failed += usize::from(fault.is_some());
        let verdict = match fault {
            _ if step.is_unfinished => "stopped",
            Some(_) => "FAILED",
            None => "ok",
        };
        out += &self.head(&step.label, &came(step), verdict);
        if let Some(fault) = fault {
            out += &self.line("!", &self.masked_text(fault));
        }
        for hint in step.answer.iter().flat_map(|answer| hints(answer, step.failure.is_none())) {
            out += &self.line("!", &self.masked_text(&hint));
        }
        for (name, why) in &step.cookies {
            out += &self.line("!", &format!("cookie {}: {why}", clean(name)));
        }
        if self.verbose {
            out += &self.details(step);
        }
        out
    }

    /// Code that ran between two requests: told where it failed, or somebody wants to know all.
    fn code(&mut self, step: &LoggedStep) -> String {
        if step.failure.is_none() && !self.verbose {
            return String::new();
        }
        self.failed += usize::from(step.failure.is_some());
        let verdict = if step.failure.is_some() { "FAILED" } else { "ok" };
        let took = milliseconds(step.took_us.unwrap_or_default());
        let mut out = self.line(&step.label, &format!("ran in {took}, {verdict}"));
        if let Some(fault) = &step.failure {
            out += &self.line("!", &self.masked_text(fault));
        }
        if self.verbose {
            out += &self.variables(step);
        }
        out
    }

    /// The one line of a step. Its parts are masked apart: what came is no value of a label that ends in `/cookie`.
    fn head(&self, label: &str, came: &str, verdict: &str) -> String {
        let (label, came) = (self.learned.masked_of_scenario(label), self.masked_text(came));
        let line = format!("{:>3}. {}: {}, {verdict}", self.steps, clean(&label), clean(&came));
        output::fit(&line, self.columns) + "\n"
    }

    /// Values that turn up under the name of a secret are one wherever they turn up later.
    fn learn(&mut self, step: &LoggedStep) {
        let of = |name: &String, value: &String| (name.clone(), value.clone());
        let variables = step.variables.iter().filter_map(|(name, value)| {
            value.as_ref().filter(|value| is_secret(name, value)).map(|value| of(name, value))
        });
        let extracted = step.extracted.iter().filter_map(|extracted| {
            let (name, value) = (&extracted.variable, extracted.value.as_ref()?);
            let is_secret = comes_from_a_secret(&extracted.source) || is_secret(name, value);
            is_secret.then(|| of(name, value))
        });
        let cookies = step.answer.iter().flat_map(cookies_set);
        let found: Vec<Named> = variables.chain(cookies).chain(extracted).collect();
        self.learned.learn(found);
    }

    /// All that is known of a step beside its one line.
    fn details(&self, step: &LoggedStep) -> String {
        let mut out = String::new();
        for (status, location) in &step.hops {
            out += &self.line("redirected", &self.masked_text(&format!("by status {status} to {location}")));
        }
        if step.sent_bytes > 0 {
            self.message(">", &step.sent, step.sent_bytes, &mut out);
        }
        if let Some(answer) = &step.answer {
            out += &self.line("<", &answer.status_words);
            for (name, value) in &answer.headers {
                out += &self.line("<", &self.header(name, value));
            }
            if answer.body_bytes > 0 {
                out += &self.line("<", "");
                self.message("<", &answer.body, answer.body_bytes, &mut out);
            }
            if let Some(encodings) = decoded_from(answer) {
                let (bytes, came) = (count(answer.body_bytes as u64), count(answer.received_bytes));
                out += &self.line("body", &format!("{bytes} bytes, {came} as it came ({encodings})"));
            }
        }
        for extracted in &step.extracted {
            let (variable, source) = (&extracted.variable, &extracted.source);
            let said = match &extracted.value {
                Some(_) if comes_from_a_secret(source) => format!("{variable} = {MASK}"),
                Some(value) => format!("{variable} = {}", self.value(variable, value)),
                None => format!("nothing for {variable}"),
            };
            out += &self.line("extracted", &format!("{said} ({source})"));
        }
        for check in &step.checks {
            let held = match check.held {
                Some(true) => "held",
                Some(false) => "FAILED",
                None => "not looked at",
            };
            let saw = match comes_from_a_secret(&check.what) {
                true => MASK.to_owned(),
                false => shortened(&self.masked_text(&check.saw)),
            };
            out += &self.line(held, &format!("{}; saw {saw}", self.learned.masked_of_scenario(&check.what)));
        }
        out + &self.variables(step)
    }

    /// The session's variables after a step.
    fn variables(&self, step: &LoggedStep) -> String {
        if step.variables.is_empty() {
            return String::new();
        }
        let all = step.variables.iter().map(|(name, value)| match value {
            Some(value) => format!("{name} = {}", self.value(name, value)),
            None => format!("{name} is not set"),
        });
        self.line("variables", &all.collect::<Vec<_>>().join(", "))
    }

    /// A request or a body, line by line; the head of a request of HTTP without its secrets.
    fn message(&self, mark: &str, bytes: &[u8], of: usize, out: &mut String) {
        // of a body that is no text the head is shown all the same
        let (head, whole) = (head(bytes), readable(bytes));
        let is_cut = whole.is_none();
        let Some(text) = whole.or_else(|| readable(head).filter(|head| !head.is_empty())) else {
            *out += &self.line(mark, &format!("({of} bytes of binary data)"));
            return;
        };
        let mut in_head = text.lines().next().is_some_and(|line| line.contains(" HTTP/"));
        let mut shown = String::new();
        for (number, line) in text.lines().enumerate() {
            in_head &= !line.is_empty();
            let header = line.split_once(": ").filter(|_| in_head && number > 0);
            shown += &header.map_or_else(|| line.to_owned(), |(name, value)| self.header(name, value));
            shown.push('\n');
        }
        self.masked_text(&shown).lines().for_each(|line| *out += &self.line(mark, line));
        if is_cut {
            *out += &self.line(mark, &format!("({} bytes of binary data)", of - head.len()));
        } else if of > LOGGED_BYTES {
            *out += &self.line(mark, &format!("… {} more bytes", of - bytes.len()));
        }
    }

    fn header(&self, name: &str, value: &str) -> String {
        format!("{name}: {}", self.learned.header(name, value))
    }

    fn value(&self, name: &str, value: &str) -> String {
        shortened(&self.learned.value(name, value))
    }

    fn masked_text(&self, text: &str) -> String {
        self.learned.masked(text)
    }

    fn line(&self, mark: &str, text: &str) -> String {
        let line = format!("     {}", format!("{mark} {}", clean(text)).trim_end());
        // what was sent and what came stays as it is
        let columns = self.columns.filter(|_| ![">", "<"].contains(&mark));
        output::fit(&line, columns) + "\n"
    }
}

/// Control characters of a server, and of somebody else's scenario, must not reach a terminal.
fn clean(text: &str) -> String {
    let is_shown = |c: &char| !steers(*c) || *c == '\t';
    text.chars().map(|c| if is_shown(&c) { c } else { '\u{FFFD}' }).collect()
}

fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// What came of a step, without a judgement.
fn came(step: &LoggedStep) -> String {
    let said = match &step.answer {
        Some(answer) => answer.status_words.clone(),
        None if step.failure.is_none() => return "sent".to_owned(),
        None if step.took_us.is_none() => return "not sent".to_owned(),
        None => "no answer".to_owned(),
    };
    let word = if step.is_unfinished { "after" } else { "in" };
    let took = step.took_us.map_or_else(String::new, |took_us| format!(" {word} {}", milliseconds(took_us)));
    let after = match step.hops.len() {
        0 => String::new(),
        1 => " after 1 redirect".to_owned(),
        hops => format!(" after {hops} redirects"),
    };
    format!("{said}{took}{after}")
}

/// What a person should know of an answer that counts as good.
fn hints(answer: &LoggedAnswer, is_good: bool) -> Vec<String> {
    let header = |wanted: &str| {
        let found = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str())
    };
    let mut hints = Vec::new();
    if answer.is_unfollowed {
        let to = header("location").unwrap_or_default();
        hints.push(format!(
            "redirected to {to}, which nobody follows and no check forbids: `follow: 5` goes there, `check: {{status: 2xx}}` \
             makes a failure of it"
        ));
    }
    // where a step looks at the body, this is the failure itself
    if is_good {
        hints.extend(answer.unreadable.as_ref().map(|why| format!("{why}; no step looks at it")));
    }
    hints
}

/// How the body was encoded on its way; none where it came as it is, or could not be read.
fn decoded_from(answer: &LoggedAnswer) -> Option<String> {
    if !answer.is_decoded || answer.unreadable.is_some() || answer.received_bytes == 0 {
        return None;
    }
    let all = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let words = all.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let words: Vec<&str> =
        words.filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("identity")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The head of a request of HTTP with the blank line behind it; nothing of anything else.
fn head(bytes: &[u8]) -> &[u8] {
    let end = head_end(bytes).unwrap_or(0);
    let first = bytes[..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
    if first.windows(6).any(|six| six == b" HTTP/") { &bytes[..end] } else { &[] }
}

/// Bytes as text; a command of Redis' protocol as its words. None where they are neither.
fn readable(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(b"*") && bytes.ends_with(b"\r\n") {
        let words: Vec<_> = tidemark_wire::resp::words(bytes).map(String::from_utf8_lossy).collect();
        if !words.is_empty() {
            return Some(words.join(" "));
        }
    }
    let text = text_of(bytes)?;
    let is_text = !text.chars().any(|c| c.is_control() && !matches!(c, '\r' | '\n' | '\t'));
    is_text.then(|| text.to_owned())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_words_and_binary_data_not_at_all() {
        assert_eq!(readable(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").as_deref(), Some("GET k"));
        assert_eq!(readable("grün".as_bytes()).as_deref(), Some("grün"));
        assert_eq!(readable(&"grü".as_bytes()[..3]).as_deref(), Some("gr"));
        assert_eq!((readable(b"\0\x01"), readable(b"\xff\xfe ")), (None, None));
        assert_eq!(milliseconds(1_234), "1.23 ms");
    }

    #[test]
    fn of_a_body_that_is_no_text_the_head_is_shown() {
        let (told, mut out) = (Told::default(), String::new());
        let sent = b"PUT /a HTTP/1.1\r\nCookie: sid=abcdefgh; b=c\r\n\r\n\0\xff\xfe";
        told.message(">", sent, sent.len(), &mut out);
        assert_eq!(
            out,
            "     > PUT /a HTTP/1.1\n     > Cookie: sid=***; b=***\n     >\n     > (3 bytes of binary data)\n"
        );
        out.clear();
        told.message("<", b"\0\r\n\r\n", 5, &mut out);
        assert_eq!(out, "     < (5 bytes of binary data)\n");
    }

    #[test]
    fn what_a_server_sends_does_not_steer_the_terminal() {
        assert_eq!(Told::default().line("<", "a\x1b[2Jb"), "     < a\u{FFFD}[2Jb\n");
        assert_eq!(Told::default().line("<", "a\u{202e}b"), "     < a\u{FFFD}b\n");
        assert_eq!(clean_lines("a\x1b[2Jb\n  c"), "a\u{FFFD}[2Jb\n  c");
    }

    #[test]
    fn the_line_of_a_step_has_no_control_characters_and_keeps_its_own_words() {
        let told = Told { steps: 7, ..Told::default() };
        let head = told.head("GET /cookie", "status 200 in 1.23 ms", "ok");
        assert_eq!(head, "  7. GET /cookie: status 200 in 1.23 ms, ok\n");
        let head = told.head("a\x1b[2Jb\nc?api_key=abcdefgh", "no answer", "FAILED");
        assert_eq!(head, "  7. a\u{FFFD}[2Jb\u{FFFD}c?api_key=***: no answer, FAILED\n");
    }

    #[test]
    fn a_temporary_folder_that_a_message_names_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("once");
        let kept = |message: &str| {
            std::fs::create_dir(&path).unwrap();
            let mut dir = OwnDir { path: Some(path.clone()), temporary: true };
            keep_where_named(&mut dir, message);
            drop(dir);
            path.exists()
        };
        assert!(!kept("the system is gone"));
        assert!(kept(&format!("the end of its log {}/logs/x.log:", path.display())));
    }
}
