//! What is made of an answer: the status judged, values kept, checks made.

use regex::bytes::CaptureLocations;
use tidemark_record::Outcome;
use tidemark_scenario::plan::{Check, Extraction, RequestPlan, Source, TextTest, WhenMissing};
use tidemark_scenario::{Context, Slot};
use tidemark_wire::http1::{ResponseDecoder, cookie};
use tidemark_wire::json;

use crate::session::World;

/// Bytes of a body that an example of a failure shows.
const EXAMPLE_BODY_BYTES: usize = 120;
/// First status that is wrong where the step does not say which are right.
const FIRST_WRONG_STATUS: u16 = 400;

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its status.
    Status,
    /// The check of this index.
    Check(usize),
    /// The extraction of this index found nothing.
    Extraction(usize),
}

impl Flaw {
    /// How it is counted.
    pub fn outcome(self) -> Outcome {
        match self {
            Flaw::Status => Outcome::Status,
            Flaw::Check(_) | Flaw::Extraction(_) => Outcome::Check,
        }
    }
}

/// Extractions and checks of one request, as one thread carries them out.
#[derive(Debug)]
pub(crate) struct Probe {
    extractions: Vec<Extraction>,
    checks: Vec<Check>,
    /// Room for the groups of each extraction's regular expression.
    groups: Vec<Option<CaptureLocations>>,
    /// Whether the body is kept.
    pub needs_body: bool,
    judges_status: bool,
}

/// What is judged: an answer of HTTP, or a message.
pub(crate) trait Answer {
    /// The status.
    fn status(&self) -> u16;
    /// A header by its lower-case name.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// The value of a cookie that it sets.
    fn cookie(&self, name: &str) -> Option<&[u8]>;
    /// The body, or the message.
    fn body(&self) -> &[u8];
}

impl Answer for ResponseDecoder {
    fn status(&self) -> u16 {
        self.status()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.header(name)
    }

    fn cookie(&self, name: &str) -> Option<&[u8]> {
        let set = self.headers().filter(|(header, _)| header.eq_ignore_ascii_case(b"set-cookie"));
        let set = set.filter_map(|(_, value)| cookie::parse(value));
        set.filter(|c| c.name == name.as_bytes() && !c.removed).last().map(|cookie| cookie.value)
    }

    fn body(&self) -> &[u8] {
        self.body()
    }
}

/// A message of a WebSocket, which is nothing but a body.
#[derive(Debug)]
pub(crate) struct Message<'a>(pub &'a [u8]);

impl Answer for Message<'_> {
    fn status(&self) -> u16 {
        0
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cookie(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn body(&self) -> &[u8] {
        self.0
    }
}

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A request's body.
    pub body: Vec<u8>,
    /// A new value while the old one may still be read.
    pub slot: Slot,
    text: Vec<u8>,
    expected: Vec<u8>,
}

impl Probe {
    /// The plan's are cloned, for each thread its own: regular expressions have caches that threads would share.
    pub fn new(request: &RequestPlan) -> Self {
        let groups = |e: &Extraction| match &e.source {
            Source::Regex(regex, _) => Some(regex.capture_locations()),
            _ => None,
        };
        Probe {
            extractions: request.extractions.clone(),
            checks: request.checks.clone(),
            groups: request.extractions.iter().map(groups).collect(),
            needs_body: request.needs_body(),
            judges_status: request.checks.iter().any(|check| matches!(check, Check::Status(_))),
        }
    }

    /// Judges an answer: the status first, then what is kept, then everything else.
    pub fn judge(
        &mut self,
        answer: &impl Answer,
        slots: &mut [Slot],
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        let status = answer.status();
        if !self.judges_status && status >= FIRST_WRONG_STATUS {
            return Err(Flaw::Status);
        }
        let right = |check: &Check| match check {
            Check::Status(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&status)),
            _ => true,
        };
        if !self.checks.iter().all(right) {
            return Err(Flaw::Status);
        }
        for (index, extraction) in self.extractions.iter().enumerate() {
            let slot = &mut slots[extraction.slot as usize];
            if !extract(&extraction.source, &mut self.groups[index], answer, slot, &mut scratch.text) {
                match extraction.when_missing {
                    WhenMissing::Keep => {}
                    WhenMissing::Clear => slot.clear(),
                    WhenMissing::Fail => return Err(Flaw::Extraction(index)),
                }
            }
        }
        for (index, check) in self.checks.iter().enumerate() {
            if !holds(check, answer, &mut world.context(slots), scratch) {
                return Err(Flaw::Check(index));
            }
        }
        Ok(())
    }

    /// Whether an answer passes every check that does not look at variables, which it may set.
    pub fn fits(
        &self,
        answer: &impl Answer,
        slots: &[Slot],
        world: &mut World<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let of_answer = self.checks.iter().filter(|check| !matches!(check, Check::Holds(..)));
        of_answer.into_iter().all(|check| holds(check, answer, &mut world.context(slots), scratch))
    }

    /// What a failed request leaves: its variables become missing, unless they are to stay.
    pub fn clear(&self, slots: &mut [Slot]) {
        for extraction in &self.extractions {
            if extraction.when_missing != WhenMissing::Keep {
                slots[extraction.slot as usize].clear();
            }
        }
    }

    /// A flaw for a person, with the status and the start of the body (`received` are the last bytes that came, for
    /// bodies that are not kept).
    pub fn describe(
        &self,
        flaw: Flaw,
        answer: &impl Answer,
        received: &[u8],
        slot_names: &[String],
    ) -> String {
        let status = answer.status();
        let body = shown(if self.needs_body { answer.body() } else { behind_head(received) });
        match flaw {
            Flaw::Status => format!("status {status}: {body}"),
            Flaw::Check(index) => {
                format!("status {status}, {} failed: {body}", check_text(&self.checks[index]))
            }
            Flaw::Extraction(index) => {
                let slot = self.extractions[index].slot as usize;
                let name = slot_names.get(slot).map_or("a variable", String::as_str);
                format!("status {status}, nothing found for {name}: {body}")
            }
        }
    }
}

/// Keeps a value; false if there is none.
fn extract(
    source: &Source,
    groups: &mut Option<CaptureLocations>,
    answer: &impl Answer,
    slot: &mut Slot,
    text: &mut Vec<u8>,
) -> bool {
    match source {
        Source::Json(path) => match found(path, answer.body()) {
            Some(token) => json::write_text(token, slot.text_mut()),
            None => return false,
        },
        Source::JsonAll(path) => {
            slot.start_list();
            let push = &mut |token: &[u8]| {
                text.clear();
                json::write_text(token, text);
                slot.push_item(text);
            };
            return path.find_all(answer.body(), push).is_ok();
        }
        Source::JsonCount(path) => match path.count(answer.body()) {
            Ok(count) => slot.set_int(count as i64),
            Err(_) => return false,
        },
        Source::Header(name) => match answer.header(name) {
            Some(value) => slot.set_text(value),
            None => return false,
        },
        Source::Cookie(name) => match answer.cookie(name) {
            Some(value) => slot.set_text(value),
            None => return false,
        },
        Source::Regex(regex, group) => {
            let Some(groups) = groups.as_mut() else { return false };
            if regex.captures_read(groups, answer.body()).is_none() {
                return false;
            }
            match groups.get(*group) {
                Some((start, end)) => slot.set_text(&answer.body()[start..end]),
                None => return false,
            }
        }
        Source::Body => slot.set_text(answer.body()),
        Source::Status => slot.set_int(answer.status().into()),
    }
    true
}

/// The first value at a path; null, and what is no JSON, count as nothing.
fn found<'a>(path: &json::Path, body: &'a [u8]) -> Option<&'a [u8]> {
    path.find(body).ok().flatten().filter(|token| *token != b"null")
}

fn holds(check: &Check, answer: &impl Answer, cx: &mut Context<'_>, scratch: &mut Scratch) -> bool {
    match check {
        Check::Status(_) => true,
        Check::Header(name, test) => passes(test, answer.header(name), cx, &mut scratch.expected),
        Check::Body(test) => {
            let body =
                Some(answer.body()).filter(|body| !body.is_empty() || !matches!(test, TextTest::Exists));
            passes(test, body, cx, &mut scratch.expected)
        }
        Check::Json(path, test) => {
            let token = found(path, answer.body());
            scratch.text.clear();
            if let Some(token) = token {
                json::write_text(token, &mut scratch.text);
            }
            passes(test, token.map(|_| scratch.text.as_slice()), cx, &mut scratch.expected)
        }
        Check::Holds(condition, _) => condition.is_true(cx),
    }
}

fn passes(test: &TextTest, text: Option<&[u8]>, cx: &mut Context<'_>, expected: &mut Vec<u8>) -> bool {
    let Some(text) = text else { return false };
    match test {
        TextTest::Exists => true,
        TextTest::Equals(template) => rendered(template, cx, expected, |wanted| text == wanted),
        TextTest::Contains(template) => {
            rendered(template, cx, expected, |wanted| memchr::memmem::find(text, wanted).is_some())
        }
        TextTest::Matches(regex) => regex.is_match(text),
    }
}

fn rendered(
    template: &tidemark_scenario::Template,
    cx: &mut Context<'_>,
    buffer: &mut Vec<u8>,
    test: impl Fn(&[u8]) -> bool,
) -> bool {
    match template.as_literal() {
        Some(literal) => test(literal),
        None => {
            buffer.clear();
            template.render(cx, buffer);
            test(buffer)
        }
    }
}

fn check_text(check: &Check) -> String {
    match check {
        Check::Status(_) => "check of the status".to_owned(),
        Check::Header(name, _) => format!("check of header {name}"),
        Check::Body(_) => "check of the body".to_owned(),
        Check::Json(..) => "check of a JSON value".to_owned(),
        Check::Holds(_, text) => format!("check `{text}`"),
    }
}

/// What stands behind the blank line, if it is there.
fn behind_head(received: &[u8]) -> &[u8] {
    memchr::memmem::find(received, b"\r\n\r\n").map_or(received, |at| &received[at + 4..])
}

/// The start of a body for one line of text.
fn shown(body: &[u8]) -> String {
    let start = &body[..body.len().min(EXAMPLE_BODY_BYTES)];
    let mut text = String::new();
    for c in String::from_utf8_lossy(start).chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    if body.len() > EXAMPLE_BODY_BYTES {
        text.push('…');
    }
    if text.is_empty() {
        text.push_str("(no body)");
    }
    text
}

#[cfg(test)]
mod tests;
