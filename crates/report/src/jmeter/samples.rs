//! Results of requests: JTL files, as XML or as CSV.
//!
//! ```text
//! <httpSample t="112" lt="112" ts="1373569830000" s="true" lb="Login" rc="200" rm="OK" tn="Thread Group 1-1" dt="text" by="9"/>
//! timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,Latency,"FLIGHTTOCOUNT"
//! ```
//!
//! The XML is read line by line, as JMeter writes the head of a sample on a line and what is in it further in: so one that is
//! damaged, and the end of a test that was killed, cost no other sample. Attributes may stand in any order.

mod parse;

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead};

use self::parse::{Columns, Element, Sample, element};
use super::lines::Lines;
use super::{Times, Unread};

/// Labels in the order in which the published report has them. A label belongs to the first that it contains.
const PUBLISHED: [&str; 9] = [
    BOOK,
    "Cancel Booking",
    LOGIN,
    "logout",
    "List Bookings",
    QUERY,
    "Update Customer",
    "View Profile Information",
    "Authorization",
];
pub(super) const BOOK: &str = "BookFlight";
pub(super) const LOGIN: &str = "Login";
pub(super) const QUERY: &str = "QueryFlight";
/// Most labels; requests with others are counted as of one.
const LABELS_MAX: usize = 200;
/// What has no label of its own.
const OTHER: &str = "other labels";
/// Most codes of errors of a label.
const CODES_MAX: usize = 100;
const OTHER_CODES: &str = "other";
/// Most threads of a file that are told apart.
const THREADS_MAX: usize = 1_000_000;
/// A time cannot be longer: a year, milliseconds.
const TIME_MAX_MS: u64 = 31_536_000_000;
/// Longest record of a CSV file with line ends in it, bytes.
const RECORD_BYTES_MAX: usize = 128 << 10;
const TOO_LONG: &str = "longer than 64 KiB: what is behind that was not read";
const OPEN_QUOTE: &str = "a quote that does not end";

/// The requests of a label.
#[derive(Debug, Default, Clone)]
pub(super) struct Label {
    pub(super) name: String,
    pub(super) times: Times,
    /// Failed ones by their code.
    pub(super) errors: BTreeMap<String, u64>,
}

impl Label {
    fn fail(&mut self, code: &str) {
        let is_full = self.errors.len() >= CODES_MAX && !self.errors.contains_key(code);
        *self.errors.entry(if is_full { OTHER_CODES } else { code }.to_owned()).or_default() += 1;
    }
}

/// What the plan noted of flights, of requests that did not fail.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Flights {
    /// Queries of which the number of flights is known, those of them without a flight, and the flights.
    pub(super) queries: u64,
    pub(super) empty: u64,
    pub(super) returned: u64,
    /// Bookings of which is known whether they are one way, and those that are.
    pub(super) bookings: u64,
    pub(super) one_way: u64,
}

/// All requests.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) labels: Vec<Label>,
    /// Which of them a label that was met belongs to.
    known: HashMap<String, usize>,
    pub(super) flights: Flights,
    /// Each file with its number of distinct threads.
    pub(super) threads: Vec<(String, u64)>,
    /// When the first began and the last ended, milliseconds since 1970.
    pub(super) span_ms: Option<(u64, u64)>,
    /// Samples that are no request of their own: parts of another one (a redirect, an image of a page).
    pub(super) parts: u64,
    /// Samples that are no HTTP requests: of a transaction, of another protocol.
    pub(super) not_http: u64,
}

impl Samples {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Reads a file, and says whether it is one of JMeter's. Where it must be one, what it is otherwise is told.
    pub(super) fn read(
        &mut self,
        file: &str,
        from: impl BufRead,
        must_be: bool,
        unread: &mut Unread,
    ) -> io::Result<bool> {
        let mut lines = Lines::new(from);
        let (number, first) = loop {
            match lines.next()? {
                Some((_, line)) if line.trim().is_empty() => {}
                Some((number, line)) => break (number, line.trim().to_owned()),
                None => break (1, String::new()),
            }
        };
        let columns = Columns::of(&first);
        // a file that was cut at its begin still has samples
        let is_xml = first.starts_with("<?xml")
            || first.starts_with("<testResults")
            || must_be && first.starts_with('<');
        let mut threads = HashSet::new();
        let is_csv = columns.is_some();
        let cut = match columns {
            Some(columns) => self.csv(file, lines, &columns, &mut threads, unread),
            None if is_xml => self.xml(file, (number, first, lines), &mut threads, unread),
            None => {
                if must_be {
                    let reason = "neither XML nor CSV with a head line (jmeter.save.saveservice.print_field_names=true)";
                    unread.file(file, if first.is_empty() { "is empty" } else { reason });
                }
                return Ok(false);
            }
        };
        let is_one = must_be || is_csv || !threads.is_empty();
        if is_one {
            self.threads.push((file.to_owned(), threads.len() as u64));
        }
        // what was read before an error counts
        cut.map(|()| is_one)
    }

    fn xml(
        &mut self,
        file: &str,
        (number, first, mut lines): (u64, String, Lines<impl BufRead>),
        threads: &mut HashSet<u64>,
        unread: &mut Unread,
    ) -> io::Result<()> {
        // how many samples are open, and how far the outermost is indented: those in it are its parts
        let (mut open, mut outer): (usize, usize) = (0, 0);
        let (mut number, mut line): (u64, Cow<'_, str>) = (number, Cow::Owned(first));
        loop {
            let indent = line.len() - line.trim_start().len();
            let (mut rest, mut is_first, mut is_told) = (&*line, true, false);
            while let Some((element, behind)) = element(rest) {
                match element {
                    Element::Sample { sample, is_open } => {
                        // the end of the one before was lost
                        if is_first && indent <= outer {
                            open = 0;
                        }
                        match sample {
                            _ if open > 0 => self.parts += 1,
                            Ok(sample) => self.add(&sample, threads),
                            Err(reason) => {
                                unread.line(file, number, &reason);
                                is_told = true;
                            }
                        }
                        if is_open && open == 0 {
                            outer = indent;
                        }
                        open += usize::from(is_open);
                    }
                    Element::End => open = open.saturating_sub(1),
                    Element::NotHttp => self.not_http += 1,
                    // a test that was appended
                    Element::Begin => open = 0,
                    Element::Other => {}
                }
                (rest, is_first) = (behind, false);
            }
            drop(line);
            if lines.is_cut() && !is_told {
                unread.line(file, number, TOO_LONG);
            }
            let Some((next, text)) = lines.next()? else { break };
            (number, line) = (next, text);
        }
        if open > 0 {
            unread.line(file, number, "the file ends within a sample");
        }
        Ok(())
    }

    fn csv(
        &mut self,
        file: &str,
        mut lines: Lines<impl BufRead>,
        columns: &Columns,
        threads: &mut HashSet<u64>,
        unread: &mut Unread,
    ) -> io::Result<()> {
        let mut record = String::new();
        let mut begun = 0;
        while let Some((number, line)) = lines.next()? {
            // a quoted message has line ends; but where a line is a record by itself, a quote before it was not closed
            if !record.is_empty() && columns.is_alone(&line) {
                unread.line(file, begun, OPEN_QUOTE);
                record.clear();
            }
            if record.is_empty() {
                begun = number;
            } else {
                record.push('\n');
            }
            record.push_str(&line);
            drop(line);
            if lines.is_cut() || record.len() >= RECORD_BYTES_MAX {
                unread.line(file, begun, TOO_LONG);
                record.clear();
            }
            if columns.is_open(&record) {
                continue;
            }
            if !(record.is_empty() || columns.is_head(&record)) {
                self.record(file, begun, &record, columns, threads, unread);
            }
            record.clear();
        }
        if !record.is_empty() {
            unread.line(file, begun, OPEN_QUOTE);
        }
        Ok(())
    }

    fn record(
        &mut self,
        file: &str,
        number: u64,
        record: &str,
        columns: &Columns,
        threads: &mut HashSet<u64>,
        unread: &mut Unread,
    ) {
        match columns.sample(record) {
            Ok(Some(sample)) => self.add(&sample, threads),
            Ok(None) => self.not_http += 1,
            Err(reason) => unread.line(file, number, &reason),
        }
    }

    /// Counts a request.
    fn add(&mut self, sample: &Sample<'_>, threads: &mut HashSet<u64>) {
        if threads.len() < THREADS_MAX {
            let mut hasher = DefaultHasher::new();
            sample.thread.hash(&mut hasher);
            threads.insert(hasher.finish());
        }
        if let Some(at_ms) = sample.at_ms {
            let end_ms = at_ms.saturating_add(sample.elapsed_ms);
            let (first, last) = self.span_ms.unwrap_or((at_ms, end_ms));
            self.span_ms = Some((first.min(at_ms), last.max(end_ms)));
        }
        let at = self.label(&sample.label);
        let label = &mut self.labels[at];
        label.times.add(sample.elapsed_ms);
        if !sample.success {
            label.fail(&sample.code);
            return;
        }
        let flights = &mut self.flights;
        match (label.name.as_str(), sample.flights_to, sample.one_way) {
            (QUERY, Some(returned), _) => {
                flights.queries += 1;
                flights.empty += u64::from(returned == 0);
                flights.returned += returned;
            }
            (BOOK, _, Some(is_one_way)) => {
                flights.bookings += 1;
                flights.one_way += u64::from(is_one_way);
            }
            _ => {}
        }
    }

    /// Where the requests of a label are counted.
    fn label(&mut self, label: &str) -> usize {
        if let Some(at) = self.known.get(label) {
            return *at;
        }
        let published = PUBLISHED.into_iter().find(|published| label.contains(published));
        let is_full = self.labels.len() >= LABELS_MAX || self.known.len() >= 10 * LABELS_MAX;
        let name = match published {
            Some(published) => published,
            None if is_full => OTHER,
            None => label,
        };
        let at = self.labels.iter().position(|known| known.name == name).unwrap_or_else(|| {
            self.labels.push(Label { name: name.to_owned(), ..Label::default() });
            self.labels.len() - 1
        });
        if self.known.len() < 10 * LABELS_MAX {
            self.known.insert(label.to_owned(), at);
        }
        at
    }

    /// The labels in the order of the published report; others behind them by name.
    pub(super) fn ordered(&self) -> Vec<&Label> {
        let place = |label: &&Label| {
            let published = PUBLISHED.iter().position(|published| *published == label.name);
            (published.unwrap_or(PUBLISHED.len()), label.name.clone())
        };
        let mut labels: Vec<&Label> = self.labels.iter().collect();
        labels.sort_by_key(place);
        labels
    }
}
