//! What is made of an answer: the status judged, values kept, checks made.

pub(crate) mod words;

use std::cmp::Ordering;

use regex::bytes::CaptureLocations;
use tidemark_record::{FIRST_WRONG_STATUS, GrpcCode, Outcome, is_wrong_status, status_name};
use tidemark_scenario::plan::{
    Check, Extraction, Follow, JsonTest, JsonType, RequestPlan, SlotIndex, Source, TextTest, WhenMissing,
};
use tidemark_scenario::template::Encoding;
use tidemark_scenario::value::{self, Wrong};
use tidemark_scenario::{Context, Shared, Slot, Unmet, Value};
use tidemark_wire::json;

use crate::session::Environment;
use crate::session::content::ENCODING;
use crate::session::findings::{self, Checked, Extracted};
use crate::session::held_values::{HeldValues, no_room};
use crate::session::location::{is_redirect, write_location};

/// Bytes of a body that an example of a failure shows.
const EXAMPLE_BODY_BYTES: usize = 120;

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its status.
    Status,
    /// Its body cannot be read, and somebody looks at it.
    Unreadable,
    /// The check of this index.
    Check(usize),
    /// What the check of this index expects cannot be told: a variable that it needs is not set, or an expression failed.
    Unmet(usize),
    /// The extraction of this index found nothing.
    Extraction(usize),
    /// There is no room for what the extraction of this index found.
    NoRoom(usize),
    /// It is good, but says that what was to be inserted was not.
    NotInserted,
    /// A program finds it wrong.
    Objection,
}

/// What an answer says of what was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// It was written.
    Yes,
    /// It certainly was not.
    No,
    /// It may have been, or may yet be.
    Unknown,
}

impl Flaw {
    /// How it is counted.
    pub fn outcome(self) -> Outcome {
        match self {
            Flaw::Status => Outcome::Status,
            Flaw::Unreadable => Outcome::Protocol,
            Flaw::Check(_) | Flaw::Unmet(_) | Flaw::Extraction(_) | Flaw::NotInserted | Flaw::Objection => {
                Outcome::Check
            }
            Flaw::NoRoom(_) => Outcome::Variable,
        }
    }
}

/// What an extraction found in good answers.
#[derive(Debug, Clone, Copy, Default)]
struct Finds {
    /// In how many nothing, and in how many something.
    missed: u64,
    found: u64,
    /// Whether nothing in the last answer, good or not.
    missed_last: bool,
}

/// Extractions and checks of one request, as one thread carries them out.
#[derive(Debug)]
pub(crate) struct Probe {
    extractions: Vec<Extraction>,
    checks: Vec<Check>,
    /// Of each extraction.
    finds: Vec<Finds>,
    /// Room for the groups of each extraction's regular expression.
    groups: Vec<Option<CaptureLocations>>,
    /// Whether the body is kept.
    pub needs_body: bool,
    /// Whether there is anything to be looked at beside the status.
    looks: bool,
    looks_at_body: bool,
    looks_at_json: bool,
    judges_status: bool,
    follows: bool,
    /// How many good answers were redirects that nobody follows and no check is about.
    unfollowed: u64,
}

/// What is judged: an answer of any protocol, or a message.
pub(crate) trait Answer {
    /// The status, or what stands for it: from 400 on it is wrong unless a check allows it. 0 where there is none.
    fn status(&self) -> u16;
    /// What the status is called.
    fn status_name(&self) -> &'static str {
        "status"
    }
    /// The status for a person.
    fn status_words(&self) -> String {
        format!("status {}", status_name(self.status()))
    }
    /// A header by its lower-case name.
    fn header(&self, _name: &str) -> Option<&[u8]> {
        None
    }
    /// Its headers, one after the other, by name and value.
    fn each_header(&self, _tell: &mut dyn FnMut(&[u8], &[u8])) {}
    /// The value of a cookie that it sets; none of one that it takes away, `now_s` seconds after 1970 UTC.
    fn cookie(&self, _name: &str, _now_s: i64) -> Option<&[u8]> {
        None
    }
    /// Path and query of the request that it answers, where that is of interest later.
    fn asked(&self) -> &[u8] {
        b"/"
    }
    /// A trailer, by its lower-case name.
    fn trailer(&self, _name: &str) -> Option<&[u8]> {
        None
    }
    /// Its trailers, one after the other, by name and value. Those of gRPC are the last of `each_header`, too.
    fn each_trailer(&self, _tell: &mut dyn FnMut(&[u8], &[u8])) {}
    /// What its `Set-Cookie` headers say, one after the other.
    fn each_set_cookie(&self, _take: &mut dyn FnMut(&[u8])) {}
    /// The body, or the message.
    fn body(&self) -> &[u8];
    /// Bytes of all of the body as it came, also where it is not kept.
    fn received_bytes(&self) -> u64 {
        self.body().len() as u64
    }
    /// Bytes of the body: once decoded where it is decoded, else as it came. None where there is none, or its size is unknown.
    fn body_bytes(&self) -> Option<u64> {
        Some(if self.is_decoded() { self.body().len() as u64 } else { self.received_bytes() })
    }
    /// Whether `body` came encoded, and is what it was before.
    fn is_decoded(&self) -> bool {
        false
    }
    /// How long that took, nanoseconds.
    fn decoding_ns(&self) -> u64 {
        0
    }
    /// What it says of what was to be written; of one that is not good nothing is believed but `No`.
    fn wrote(&self) -> Wrote {
        Wrote::Yes
    }
    /// What it says of its failure beside the body.
    fn complaint(&self) -> Option<&[u8]> {
        None
    }
    /// Why the body cannot be read, in words, where it cannot; it is empty then.
    fn unreadable(&self) -> Option<&str> {
        None
    }
    /// What can be told of a body that was not kept, by the bytes that came last.
    fn seen<'a>(&'a self, _received: &'a [u8]) -> &'a [u8] {
        self.body()
    }
}

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A new value while the old one may still be read.
    pub slot: Slot,
    /// What the variables of the thread's sessions hold.
    pub held: HeldValues,
    text: Vec<u8>,
    /// What the last check expected, where that is made of variables.
    expected: Vec<u8>,
    /// What the last check lacked.
    unmet: Option<Unmet>,
    /// What a program finds wrong with the last answer, where it does.
    pub objection: String,
    /// Why the last body is not JSON, where it is not and something looks into it.
    not_json: Option<json::JsonError>,
}

/// A session's variables with their names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variables<'a> {
    /// Their values.
    pub slots: &'a [Slot],
    /// Their names.
    pub names: &'a [String],
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
            finds: vec![Finds::default(); request.extractions.len()],
            needs_body: request.needs_body(),
            looks: !(request.checks.is_empty() && request.extractions.is_empty()),
            looks_at_body: request.looks_at_body(),
            looks_at_json: request.extractions.iter().any(|e| is_into_json(&e.source))
                || request.checks.iter().any(is_of_json),
            judges_status: request.checks.iter().any(|check| matches!(check, Check::Status(_))),
            follows: request.follow.is_some(),
            unfollowed: 0,
        }
    }

    /// Of requests whose answers a program judges.
    pub fn of_program() -> Self {
        Probe {
            extractions: Vec::new(),
            checks: Vec::new(),
            groups: Vec::new(),
            finds: Vec::new(),
            needs_body: true,
            looks: false,
            looks_at_body: false,
            looks_at_json: false,
            judges_status: true,
            follows: true,
            unfollowed: 0,
        }
    }

    /// Judges an answer with this status: that first, then what is kept, then everything else.
    #[inline]
    pub fn judge(
        &mut self,
        (answer, status): (&dyn Answer, u16),
        slots: &mut [Slot],
        environment: &mut Environment<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        if !self.judges_status && is_wrong_status(status) {
            return Err(Flaw::Status);
        }
        if self.looks {
            self.look((answer, status), slots, environment, scratch)?;
        }
        // where it is none, which costs least to see, nothing more is asked
        self.unfollowed += u64::from(is_redirect(status) && self.is_unfollowed(answer));
        Ok(())
    }

    /// What is to be looked at beside what the status says by itself.
    fn look(
        &mut self,
        (answer, status): (&dyn Answer, u16),
        slots: &mut [Slot],
        environment: &mut Environment<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        let right = |check: &Check| match check {
            Check::Status(ranges) => is_in(ranges, status),
            _ => true,
        };
        if !self.checks.iter().all(right) {
            return Err(Flaw::Status);
        }
        if self.looks_at_body && answer.unreadable().is_some() {
            return Err(Flaw::Unreadable);
        }
        self.read_json(answer, scratch);
        let is_json = scratch.not_json.is_none();
        for (index, extraction) in self.extractions.iter().enumerate() {
            let slot = &mut slots[extraction.slot as usize];
            let groups = &mut self.groups[index];
            let now_s = environment.epoch_ms / 1_000;
            let is_asked = is_json || !is_into_json(&extraction.source);
            let (found, has_room) = scratch.held.write(environment.shared, slot, |slot| {
                is_asked && extract(&extraction.source, groups, (answer, now_s), slot, &mut scratch.text)
            });
            self.finds[index].missed_last = !found;
            if !has_room {
                return Err(Flaw::NoRoom(index));
            }
            if !found {
                match extraction.when_missing {
                    WhenMissing::Keep => {}
                    WhenMissing::Tell | WhenMissing::Clear => scratch.held.clear(environment.shared, slot),
                    WhenMissing::Fail => return Err(Flaw::Extraction(index)),
                }
            }
        }
        for index in 0..self.checks.len() {
            self.check(index, answer, &mut environment.context(slots), scratch)?;
        }
        for finds in &mut self.finds {
            *if finds.missed_last { &mut finds.missed } else { &mut finds.found } += 1;
        }
        Ok(())
    }

    /// Whether a good answer is a redirect that nobody follows and no check is about.
    pub fn is_unfollowed(&self, answer: &dyn Answer) -> bool {
        let is_unasked = !self.judges_status && !self.follows && is_redirect(answer.status());
        let location = answer.header(Follow::LOCATION_HEADER).filter(|_| is_unasked);
        location.is_some_and(|location| !location.trim_ascii().is_empty())
    }

    /// Whether an answer passes every check that does not look at variables, which it may set.
    pub fn fits(
        &self,
        answer: &dyn Answer,
        slots: &[Slot],
        environment: &mut Environment<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        let of_answer =
            |index: &usize| !matches!(self.checks[*index], Check::Holds(..) | Check::Value { .. });
        self.read_json(answer, scratch);
        let mut indices = (0..self.checks.len()).filter(of_answer);
        indices.try_for_each(|index| self.check(index, answer, &mut environment.context(slots), scratch))
    }

    /// Reads a body to its end where something looks into its JSON: values are looked for no further than they stand.
    fn read_json(&self, answer: &dyn Answer, scratch: &mut Scratch) {
        scratch.not_json = self.looks_at_json.then(|| json::check(answer.body()).err()).flatten();
    }

    fn check(
        &self,
        index: usize,
        answer: &dyn Answer,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Flaw> {
        if scratch.not_json.is_some() && is_of_json(&self.checks[index]) {
            return Err(Flaw::Check(index));
        }
        match holds(&self.checks[index], answer, cx, scratch) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Flaw::Check(index)),
            Err(unmet) => {
                scratch.unmet = Some(unmet);
                Err(Flaw::Unmet(index))
            }
        }
    }

    /// How many good answers were redirects that nobody follows and no check is about.
    pub fn unfollowed(&self) -> u64 {
        self.unfollowed
    }

    /// The variables of extractions of which the scenario does not say that they may find nothing; how often each did so in a
    /// good answer, and how often it found something.
    pub fn not_found(&self) -> impl Iterator<Item = (SlotIndex, u64, u64)> {
        let all = self.extractions.iter().zip(&self.finds);
        let told = all.filter(|(extraction, _)| extraction.when_missing == WhenMissing::Tell);
        told.map(|(extraction, finds)| (extraction.slot, finds.missed, finds.found))
    }

    /// What was kept from an answer with this flaw, or with none. Nothing was where it has the wrong status, or a body that
    /// cannot be read.
    pub fn extracted(&self, variables: Variables<'_>, flaw: Option<Flaw>) -> Vec<Extracted> {
        let looked_at = match flaw {
            Some(Flaw::Status | Flaw::Unreadable) => 0,
            Some(Flaw::Extraction(index) | Flaw::NoRoom(index)) => index + 1,
            _ => self.extractions.len(),
        };
        let kept = self.extractions[..looked_at].iter().zip(&self.finds).map(|(extraction, finds)| {
            let slot = usize::from(extraction.slot);
            let value = variables.slots.get(slot).filter(|_| !finds.missed_last);
            Extracted {
                variable: variables.names.get(slot).cloned().unwrap_or_default(),
                source: words::source(&extraction.source),
                value: value.and_then(|slot| findings::text(slot.value())),
            }
        });
        kept.collect()
    }

    /// What each check saw in an answer with this flaw, or with none: the status is looked at first, then what is kept,
    /// then everything else, up to the first thing that is wrong.
    /// `scratch` is as the judging left it.
    pub fn checked(
        &self,
        answer: &dyn Answer,
        variables: Variables<'_>,
        flaw: Option<Flaw>,
        scratch: &Scratch,
    ) -> Vec<Checked> {
        let by_itself = (!self.judges_status && answer.status() > 0).then(|| Checked {
            what: match GrpcCode::of_status(answer.status()) {
                Some(_) => "check status: OK, as nothing else is said".to_owned(),
                None => format!("check status: below {FIRST_WRONG_STATUS}, as nothing else is said"),
            },
            saw: answer.status_words(),
            held: Some(!is_wrong_status(answer.status())),
        });
        let checked = self.checks.iter().enumerate().map(|(index, check)| {
            let held = match (check, flaw) {
                (Check::Status(ranges), Some(Flaw::Status)) => Some(is_in(ranges, answer.status())),
                (Check::Status(_), _) | (_, None | Some(Flaw::NotInserted | Flaw::Objection)) => Some(true),
                (_, Some(Flaw::Status | Flaw::Unreadable | Flaw::Extraction(_) | Flaw::NoRoom(_))) => None,
                (_, Some(Flaw::Check(wrong) | Flaw::Unmet(wrong))) => match index.cmp(&wrong) {
                    Ordering::Less => Some(true),
                    Ordering::Equal => Some(false),
                    Ordering::Greater => None,
                },
            };
            let expected = (held == Some(false)).then_some(scratch.expected.as_slice());
            Checked { what: words::wanted(check, expected), saw: words::saw(check, answer, variables), held }
        });
        by_itself.into_iter().chain(checked).collect()
    }

    /// What a failed request leaves: its variables become missing, unless they are to stay.
    pub fn clear(&self, slots: &mut [Slot], held: &mut HeldValues, shared: &Shared) {
        for extraction in &self.extractions {
            if extraction.when_missing != WhenMissing::Keep {
                held.clear(shared, &mut slots[extraction.slot as usize]);
            }
        }
    }

    /// A flaw for a person, with the status and the start of the body (`received` are the last bytes that came, for
    /// bodies that are not kept).
    pub fn describe(
        &self,
        flaw: Flaw,
        answer: &dyn Answer,
        received: &[u8],
        variables: Variables<'_>,
        scratch: &Scratch,
    ) -> String {
        let status = answer.status();
        let body = || match answer.header(ENCODING) {
            Some(encoding)
                if !encoding.eq_ignore_ascii_case(b"identity")
                    && (!self.needs_body || answer.unreadable().is_some()) =>
            {
                format!("(a body encoded with {})", shown(encoding))
            }
            _ => {
                let kept = || if self.needs_body { answer.body() } else { answer.seen(received) };
                shown(answer.complaint().unwrap_or_else(kept))
            }
        };
        match flaw {
            Flaw::Unreadable => {
                format!("{}: {}", answer.status_words(), answer.unreadable().unwrap_or_default())
            }
            Flaw::Status => {
                let ranges = self.checks.iter().find_map(|check| match check {
                    Check::Status(ranges) => Some(ranges.as_slice()),
                    _ => None,
                });
                match ranges {
                    None => format!("{}: {}", answer.status_words(), body()),
                    Some(ranges) => words::status(answer.status_name(), ranges, status, &body()),
                }
            }
            Flaw::Check(index) => words::check(&self.checks[index], answer, variables, scratch),
            Flaw::Unmet(index) => {
                let unmet = scratch.unmet.as_ref().map(|unmet| unmet.describe(variables.names));
                format!("{}: {}", words::subject(&self.checks[index]), unmet.unwrap_or_default())
            }
            Flaw::Extraction(index) => {
                let slot = self.extractions[index].slot as usize;
                let name = variables.names.get(slot).map_or("a variable", String::as_str);
                format!("{}, nothing found for {name}: {}", answer.status_words(), body())
            }
            Flaw::NoRoom(index) => {
                let slot = self.extractions[index].slot as usize;
                let name = variables.names.get(slot).map_or("a variable", String::as_str);
                format!("{name} was not kept: {}", no_room())
            }
            Flaw::Objection => format!("{}: {}", answer.status_words(), scratch.objection),
            Flaw::NotInserted => {
                format!(
                    "{}: nothing was inserted: the key exists already (begin with an empty store), or the command writes only \
                     to keys that exist",
                    answer.status_words()
                )
            }
        }
    }
}

fn is_into_json(source: &Source) -> bool {
    matches!(source, Source::Json(_) | Source::JsonAll(_) | Source::JsonCount(_))
}

fn is_of_json(check: &Check) -> bool {
    matches!(check, Check::Json(..) | Check::JsonValue(..))
}

fn is_in(ranges: &[(u16, u16)], status: u16) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&status))
}

/// Keeps a value of JSON: a number or a truth value as such, where it is written again as it came; anything else as its text.
fn keep(token: &[u8], slot: &mut Slot, text: &mut Vec<u8>) {
    match token {
        b"true" => slot.set_bool(true),
        b"false" => slot.set_bool(false),
        [b'-' | b'0'..=b'9', ..] if keep_number(token, slot, text) => {}
        _ => json::write_text(token, slot.text_mut()),
    }
}

fn keep_number(token: &[u8], slot: &mut Slot, text: &mut Vec<u8>) -> bool {
    let Ok(spelled) = std::str::from_utf8(token) else { return false };
    match (spelled.parse(), spelled.parse()) {
        (Ok(whole), _) => slot.set_int(whole),
        (_, Ok(real)) => slot.set_real(real),
        _ => return false,
    }
    text.clear();
    Encoding::Raw.write_value(slot.value(), text);
    text == token
}

/// Keeps a value of an answer that came at this time; false if there is none.
fn extract(
    source: &Source,
    groups: &mut Option<CaptureLocations>,
    (answer, now_s): (&dyn Answer, i64),
    slot: &mut Slot,
    text: &mut Vec<u8>,
) -> bool {
    match source {
        Source::Json(path) => match found(path, answer.body()) {
            Some(token) => keep(token, slot, text),
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
        Source::Header(name) if name == Follow::LOCATION_HEADER => match answer.header(name) {
            Some(location) if write_location(answer, location, text) => slot.set_text(text),
            _ => return false,
        },
        Source::Header(name) => match answer.header(name) {
            Some(value) => slot.set_text(value),
            None => return false,
        },
        Source::Cookie(name) => match answer.cookie(name, now_s) {
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
        Source::Status => match GrpcCode::of_status(answer.status()) {
            Some(code) => slot.set_text(code.name().as_bytes()),
            None => slot.set_int(answer.status().into()),
        },
    }
    true
}

/// The first value at a path; null, and what is no JSON, count as nothing.
fn found<'a>(path: &json::Path, body: &'a [u8]) -> Option<&'a [u8]> {
    path.find(body).ok().flatten().filter(|token| *token != b"null")
}

fn holds(
    check: &Check,
    answer: &dyn Answer,
    cx: &mut Context<'_>,
    scratch: &mut Scratch,
) -> Result<bool, Unmet> {
    match check {
        Check::Status(_) => Ok(true),
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
            let (text, expected) = (scratch.text.as_slice(), &mut scratch.expected);
            match (test, token) {
                // a number is the same however it is written
                (TextTest::Equals(template), Some(token)) => rendered(template, cx, expected, |wanted| {
                    text == wanted || json::is_same_number(token, wanted)
                }),
                _ => passes(test, token.map(|_| text), cx, expected),
            }
        }
        Check::JsonValue(path, test) => {
            let token = path.find(answer.body());
            match test {
                JsonTest::Is(template) => rendered(
                    template,
                    cx,
                    &mut scratch.expected,
                    |wanted| matches!(token, Ok(Some(token)) if json::equal(token, wanted)),
                ),
                JsonTest::Type(of) => {
                    Ok(matches!(token, Ok(Some(token)) if JsonType::of(token) == Some(*of)))
                }
                JsonTest::Absent => Ok(matches!(token, Ok(None))),
                JsonTest::Empty => Ok(matches!(token, Ok(None | Some(b"null")))),
            }
        }
        Check::Value { number, least, values } => {
            Ok(judge_value(answer.body(), cx.slots, (*number, *least), *values).is_ok())
        }
        Check::Holds(condition, _) => Ok(condition.is_true(cx)),
    }
}

/// Judges an answer that is to hold values of a number.
fn judge_value<'a>(
    body: &'a [u8],
    slots: &[Slot],
    (number, least): (SlotIndex, SlotIndex),
    values: u32,
) -> Result<(), Wrong<'a>> {
    let value = |slot: SlotIndex| slots.get(usize::from(slot)).map_or(Value::Missing, Slot::value);
    let least = match value(least) {
        Value::Int(least) => least as u64,
        _ => 0,
    };
    match value(number) {
        Value::Int(number) => {
            value::judge(body, itoa::Buffer::new().format(number).as_bytes(), least, values)
        }
        Value::Text(number) => value::judge(body, number, least, values),
        _ => Err(Wrong::Gone),
    }
}

fn passes(
    test: &TextTest,
    text: Option<&[u8]>,
    cx: &mut Context<'_>,
    expected: &mut Vec<u8>,
) -> Result<bool, Unmet> {
    match test {
        TextTest::Exists => Ok(text.is_some()),
        TextTest::Equals(template) => rendered(template, cx, expected, |wanted| text == Some(wanted)),
        TextTest::Contains(template) => rendered(template, cx, expected, |wanted| {
            text.is_some_and(|text| memchr::memmem::find(text, wanted).is_some())
        }),
        TextTest::Matches(regex) => Ok(text.is_some_and(|text| regex.is_match(text))),
    }
}

fn rendered(
    template: &tidemark_scenario::Template,
    cx: &mut Context<'_>,
    buffer: &mut Vec<u8>,
    test: impl Fn(&[u8]) -> bool,
) -> Result<bool, Unmet> {
    match template.as_literal() {
        Some(literal) => Ok(test(literal)),
        None => {
            buffer.clear();
            template.render(cx, buffer)?;
            Ok(test(buffer))
        }
    }
}

/// The start of a body for one line of text.
pub(crate) fn shown(body: &[u8]) -> String {
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
