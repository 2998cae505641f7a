//! What must not be shown of requests and their answers: what a plan knows, and what its sessions come by.
//!
//! Whoever shows them, step by step or as a trace, lets each text go through [`Learned`].

use std::collections::VecDeque;

use percent_encoding::percent_decode_str;
use tidemark_drive::{LoggedAnswer, text_of};
use tidemark_scenario::Secrets;
use tidemark_scenario::secrets::{MASK, Origin, is_secret};
use tidemark_wire::http1::cookie;

/// The end of a head.
const BLANK: &[u8] = b"\r\n\r\n";
/// Characters of a cookie's value from which on it is looked for elsewhere, too.
const COOKIE_CHARS: usize = 8;
/// What stands where a text was cut off; secrets are known by their beginning there.
const CUT: char = '…';

/// A secret's name and its value.
pub type Named = (String, String);

/// The secrets of a plan, and those that its sessions came by: cookies, and tokens kept from answers.
#[derive(Debug, Default)]
pub struct Learned {
    /// Of the plan.
    known: Secrets,
    /// Of the plan, and learned.
    secrets: Secrets,
    /// What was learned, the latest last.
    values: VecDeque<Named>,
    most: usize,
    forgotten: u64,
}

impl Learned {
    /// Begins with the secrets of a plan. No more than the latest `most` are learned, or as many as came at once.
    pub fn new(known: &Secrets, most: usize) -> Learned {
        let (known, secrets) = (known.clone(), known.clone());
        Learned { known, secrets, values: VecDeque::new(), most, forgotten: 0 }
    }

    /// These are secrets, wherever they turn up from now on. What belongs together comes at once, and is not forgotten
    /// for each other.
    pub fn learn(&mut self, found: Vec<Named>) {
        if found.is_empty() {
            return;
        }
        let most = self.most.max(found.len());
        for one in found {
            self.values.retain(|(_, value)| *value != one.1);
            self.values.push_back(one);
        }
        let beyond = self.values.len().saturating_sub(most);
        self.values.drain(..beyond);
        self.forgotten += beyond as u64;
        self.secrets = self.known.clone();
        for (name, value) in &self.values {
            self.secrets.add(name, Origin::Setting, value);
        }
    }

    /// How many are not looked for any more, as there were too many.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A text of traffic without them, and without what looks like one.
    pub fn masked(&self, text: &str) -> String {
        self.secrets.masked_traffic(text)
    }

    /// A text of the scenario without them, whose `${…}` stay.
    pub fn masked_of_scenario(&self, text: &str) -> String {
        self.secrets.masked(text)
    }

    /// The value of a header without them; cookies keep their names.
    pub fn header(&self, name: &str, value: &str) -> String {
        match name.to_ascii_lowercase().as_str() {
            "cookie" => without_values(value, usize::MAX),
            "set-cookie" => without_values(value, 1),
            _ => self.value(name, value),
        }
    }

    /// A value of this name without them; nothing of one that is secret by its name.
    pub fn value(&self, name: &str, value: &str) -> String {
        if is_secret(name, value) { MASK.to_owned() } else { self.masked(value) }
    }

    /// A body as text without them; none where it is no text. Of one that was cut off the end may be the beginning of a
    /// secret.
    pub fn body_text(&self, bytes: &[u8], is_cut: bool) -> Option<String> {
        let text = text_of(bytes)?;
        if !is_cut || text.ends_with(CUT) {
            return Some(self.masked(text));
        }
        let mut masked = self.masked(&format!("{text}{CUT}"));
        masked.truncate(masked.strip_suffix(CUT).map_or(masked.len(), str::len));
        Some(masked)
    }
}

/// The cookies that an answer sets.
pub fn cookies_set(answer: &LoggedAnswer) -> Vec<Named> {
    let set = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let cookies = set.filter_map(|(_, value)| cookie::parse(value.as_bytes()));
    cookies.flat_map(|cookie| named(&lossy(cookie.name), &lossy(cookie.value))).collect()
}

/// The cookies that a request carries, of the value of its header.
pub fn cookies_sent(header: &str) -> Vec<Named> {
    let pairs = header.split(';').filter_map(|pair| pair.split_once('='));
    pairs.flat_map(|(name, value)| named(name.trim(), value.trim())).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A cookie as it may turn up elsewhere: as it was sent, and decoded. None that would be found everywhere.
fn named(name: &str, value: &str) -> Vec<Named> {
    let value = value.trim_matches('"');
    let decoded = percent_decode_str(value).decode_utf8_lossy();
    let mut all = vec![value.to_owned()];
    if decoded != value {
        all.push(decoded.into_owned());
    }
    all.retain(|value| value.chars().count() >= COOKIE_CHARS);
    all.into_iter().map(|value| (name.to_owned(), value)).collect()
}

/// Cookies by their names: the first so many parts of `sid=abc; Path=/` lose their values.
fn without_values(cookies: &str, first: usize) -> String {
    let part = |(number, part): (usize, &str)| match part.split_once('=') {
        _ if number >= first => part.to_owned(),
        Some((name, _)) => format!("{name}={MASK}"),
        None => MASK.to_owned(),
    };
    cookies.split(';').enumerate().map(part).collect::<Vec<_>>().join(";")
}

/// Where the head of a message of HTTP ends, with the blank line behind it.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(BLANK.len()).position(|four| four == BLANK).map(|at| at + BLANK.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: &str) -> Named {
        (name.to_owned(), value.to_owned())
    }

    fn answer(headers: &[(&str, &str)]) -> LoggedAnswer {
        LoggedAnswer {
            status: 200,
            status_words: String::new(),
            is_unfollowed: false,
            headers: headers.iter().map(|(name, value)| named(name, value)).collect(),
            body: Vec::new(),
            body_bytes: 0,
            received_bytes: 0,
            is_decoded: true,
            unreadable: None,
        }
    }

    #[test]
    fn a_cookie_keeps_its_name_and_where_it_is_sent() {
        let learned = Learned::default();
        let header = "sid=abcdefgh; Path=/a; HttpOnly";
        assert_eq!(learned.header("Set-Cookie", header), "sid=***; Path=/a; HttpOnly");
        assert_eq!(learned.header("cookie", "abcdefgh"), "***");
        assert_eq!(learned.header("X-Token-Bytes", "20"), "20");
    }

    #[test]
    fn the_values_of_cookies_are_secrets_wherever_they_turn_up() {
        let mut learned = Learned::new(&Secrets::default(), 9);
        let headers = [
            ("Set-Cookie", "sid=c00kie-value; Path=/"),
            ("set-cookie", "lang=en"),
            ("set-cookie", "a=\"s%3Aencoded\""),
        ];
        learned.learn(cookies_set(&answer(&headers)));
        learned.learn(cookies_sent("b=another-value; c=en"));
        assert_eq!(
            learned.masked("you are c00kie-value, in en, s:encoded, s%3Aencoded, another-value"),
            "you are ***, in en, ***, ***, ***"
        );
    }

    #[test]
    fn the_latest_are_kept_and_all_that_came_at_once() {
        let mut learned = Learned::new(&Secrets::default(), 2);
        learned.learn(vec![named("a", "first-one"), named("a", "second-one"), named("a", "third-one")]);
        assert_eq!(learned.masked("first-one second-one third-one"), "*** *** ***");
        learned.learn(vec![named("a", "second-one")]);
        assert_eq!(learned.masked("first-one second-one third-one"), "first-one *** ***");
        assert_eq!(learned.forgotten(), 1);
    }

    #[test]
    fn a_body_that_was_cut_off_keeps_no_beginning_of_a_secret() {
        let mut learned = Learned::default();
        learned.learn(vec![named("a", "abcdefghijkl")]);
        assert_eq!(learned.body_text(b"it is abcdefgh", true).as_deref(), Some("it is ***"));
        assert_eq!(learned.body_text(b"it is abcdefgh", false).as_deref(), Some("it is abcdefgh"));
        assert_eq!(learned.body_text(b"hello", true).as_deref(), Some("hello"));
        assert_eq!(learned.body_text(b"\xff\xfe", false), None);
    }

    #[test]
    fn a_head_ends_with_a_blank_line() {
        assert_eq!(head_end(b"GET / HTTP/1.1\r\n\r\nbody"), Some(18));
        assert_eq!(head_end(b"GET / HTTP/1.1\r\n"), None);
    }
}
