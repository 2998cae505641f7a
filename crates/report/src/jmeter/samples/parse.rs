//! A sample out of a line.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::TIME_MAX_MS;

/// What a row of a transaction says in a CSV file.
const TRANSACTION: &str = "Number of samples in transaction";

/// A request.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    pub(super) elapsed_ms: u64,
    /// When it began, milliseconds since 1970, where that is written as a number.
    pub(super) at_ms: Option<u64>,
    pub(super) success: bool,
    pub(super) label: Cow<'a, str>,
    pub(super) code: Cow<'a, str>,
    pub(super) thread: Cow<'a, str>,
    /// Flights of the first leg.
    pub(super) flights_to: Option<u64>,
    pub(super) one_way: Option<bool>,
}

/// Which of its parts must be there.
#[derive(Default)]
struct Has {
    elapsed: bool,
    label: bool,
    success: bool,
}

/// A part of a sample: as attributes are called, and as columns are.
const PARTS: [(&str, &str); 8] = [
    ("t", "elapsed"),
    ("ts", "timeStamp"),
    ("s", "success"),
    ("lb", "label"),
    ("rc", "responseCode"),
    ("tn", "threadName"),
    ("FLIGHTTOCOUNT", "FLIGHTTOCOUNT"),
    ("ONEWAY", "ONEWAY"),
];

impl<'a> Sample<'a> {
    /// Sets a part, called as attributes are.
    fn set(&mut self, has: &mut Has, name: &str, value: Cow<'a, str>) -> Result<(), String> {
        match name {
            "t" => {
                let ms = value.parse().ok().filter(|ms| *ms <= TIME_MAX_MS);
                self.elapsed_ms =
                    ms.ok_or_else(|| format!("the time {value:?} is no number of milliseconds"))?;
                has.elapsed = true;
            }
            "ts" => self.at_ms = value.parse().ok().filter(|ms| *ms > 0),
            "s" => {
                self.success = value.parse().map_err(|_| format!("{value:?} is neither true nor false"))?;
                has.success = true;
            }
            "lb" => (self.label, has.label) = (value, true),
            "rc" => self.code = value,
            "tn" => self.thread = value,
            // a variable that is not set is empty or null
            "FLIGHTTOCOUNT" => self.flights_to = value.parse::<u32>().ok().map(u64::from),
            "ONEWAY" => self.one_way = value.parse().ok(),
            _ => {}
        }
        Ok(())
    }

    /// The sample, if it has what it must have.
    fn whole(self, has: &Has) -> Result<Self, String> {
        match has {
            Has { elapsed: false, .. } => Err("a sample without its time (t, elapsed)".into()),
            Has { label: false, .. } => Err("a sample without its label (lb, label)".into()),
            Has { success: false, .. } => {
                Err("a sample that does not say whether it succeeded (s, success)".into())
            }
            _ => Ok(self),
        }
    }
}

/// What an element of an XML file is.
pub(super) enum Element<'a> {
    /// A sample, and whether it is open: others may stand in it.
    Sample { sample: Result<Sample<'a>, String>, is_open: bool },
    /// The end of one that was open.
    End,
    /// A sample of something else.
    NotHttp,
    /// The begin of results.
    Begin,
    /// What is in a sample.
    Other,
}

/// The first tag of a line and what stands behind it; none where there is no other.
pub(super) fn element(line: &str) -> Option<(Element<'_>, &str)> {
    let line = &line[line.find('<')?..];
    let end = tag_end(line).unwrap_or(line.len());
    let (tag, behind) = line.split_at(end);
    let is = |name: &str| tag.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    let element = if is("<httpSample") {
        Element::Sample { sample: of_xml(tag), is_open: !tag.ends_with("/>") }
    } else if is("</httpSample") {
        Element::End
    } else if is("<sample") {
        Element::NotHttp
    } else if is("<?xml") || is("<testResults") {
        Element::Begin
    } else {
        Element::Other
    };
    Some((element, behind))
}

/// Where a tag ends: behind the first `>` that no value has in it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes()
        .position(|byte| match quote {
            Some(open) => {
                quote = quote.filter(|_| byte != open);
                false
            }
            None if byte == b'"' || byte == b'\'' => {
                quote = Some(byte);
                false
            }
            None => byte == b'>',
        })
        .map(|at| at + 1)
}

fn of_xml(line: &str) -> Result<Sample<'_>, String> {
    let mut reader = Reader::from_str(line);
    match reader.read_event() {
        Ok(Event::Start(tag) | Event::Empty(tag)) => of_tag(&tag),
        Ok(_) => Err("a sample that is no element".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn of_tag<'a>(tag: &BytesStart<'_>) -> Result<Sample<'a>, String> {
    let (mut sample, mut has) = (Sample::default(), Has::default());
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let name = attribute.key.as_ref();
        let Some((name, _)) = PARTS.iter().find(|(known, _)| known.as_bytes() == AsRef::<[u8]>::as_ref(name))
        else {
            continue;
        };
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        sample.set(&mut has, name, Cow::Owned(value.into_owned()))?;
    }
    sample.whole(&has)
}

/// The columns of a CSV file.
pub(super) struct Columns {
    head: String,
    delimiter: u8,
    count: usize,
    /// What each is, as attributes are called.
    parts: Vec<Option<&'static str>>,
    message: Option<usize>,
}

impl Columns {
    /// Those of a head line; none where it is no head line of JMeter's.
    pub(super) fn of(head: &str) -> Option<Columns> {
        let end = head.trim_start_matches('"').find(|c: char| !c.is_alphanumeric())?;
        let delimiter = head.trim_start_matches('"')[end..].trim_start_matches('"').bytes().next();
        let delimiter = delimiter.filter(|of| b",;\t|".contains(of))?;
        let names = fields(head, delimiter)?;
        let part = |name: &str| PARTS.iter().find(|(_, column)| *column == name).map(|(part, _)| *part);
        let parts: Vec<Option<&str>> = names.iter().map(part).collect();
        let is_one = ["t", "s", "lb"].into_iter().all(|part| parts.contains(&Some(part)));
        let message = names.iter().position(|name| name == "responseMessage");
        is_one.then(|| Columns { head: head.to_owned(), delimiter, count: names.len(), parts, message })
    }

    /// Whether a record is the head line again: a test was appended.
    pub(super) fn is_head(&self, record: &str) -> bool {
        record.trim() == self.head
    }

    /// Whether a line is a record without those before it.
    pub(super) fn is_alone(&self, line: &str) -> bool {
        !line.is_empty() && !self.is_open(line) && (self.is_head(line) || self.sample(line).is_ok())
    }

    /// Whether a quoted field has no end. Only at the begin of a field a quote opens one.
    pub(super) fn is_open(&self, record: &str) -> bool {
        /// Where in a field something stands.
        #[derive(PartialEq)]
        enum At {
            Begin,
            Plain,
            Quoted,
            /// Behind a quote that ends the field, unless another follows.
            Closed,
        }
        let end = record.bytes().fold(At::Begin, |at, byte| match (at, byte) {
            (At::Begin | At::Closed, b'"') => At::Quoted,
            (At::Quoted, b'"') => At::Closed,
            (At::Quoted, _) => At::Quoted,
            (_, byte) if byte == self.delimiter => At::Begin,
            _ => At::Plain,
        });
        end == At::Quoted
    }

    /// The sample of a record; none of a transaction.
    pub(super) fn sample(&self, record: &str) -> Result<Option<Sample<'static>>, String> {
        let fields = fields(record, self.delimiter).ok_or("no record of CSV")?;
        if fields.len() != self.count {
            return Err(format!("{} fields where the head line has {}", fields.len(), self.count));
        }
        if self.message.is_some_and(|at| fields[at].starts_with(TRANSACTION)) {
            return Ok(None);
        }
        let (mut sample, mut has) = (Sample::default(), Has::default());
        for (part, value) in self.parts.iter().zip(&fields) {
            if let Some(part) = part {
                sample.set(&mut has, part, Cow::Owned(value.to_owned()))?;
            }
        }
        sample.whole(&has).map(Some)
    }
}

/// The fields of a record.
fn fields(record: &str, delimiter: u8) -> Option<csv_reader::StringRecord> {
    let mut reader = csv_reader::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).delimiter(delimiter).buffer_capacity(512);
    reader.from_reader(record.as_bytes()).into_records().next()?.ok()
}
