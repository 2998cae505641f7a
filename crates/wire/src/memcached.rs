//! memcached's text protocol and its meta commands, as a client reads the replies
//! (`protocol.txt` of memcached's sources).
//!
//! A reply becomes a [`Kind`] and bytes: of one key its value; of several a JSON array, a value for each key that was
//! asked for, in that order, `null` for those that are not there; of `stats` a JSON object; of all others the line itself.
//! What the line says beside the value (flags of an item, its unique number, what a meta command returns) is found
//! [by name](ReplyDecoder::field). Buffers are used again from one reply to the next.
//!
//! ```
//! use tidemark_wire::memcached::{Form, Kind, ReplyDecoder, ReplyLimits};
//!
//! let mut decoder = ReplyDecoder::new(ReplyLimits::default());
//! decoder.start(Form::Values, b"a b", true);
//! assert!(decoder.decode(b"VALUE b 0 2\r\nhi\r\nEND\r\n")?.complete);
//! assert_eq!((decoder.kind(), decoder.body()), (Kind::Fine, &b"[null,\"hi\"]"[..]));
//! # Ok::<(), tidemark_wire::memcached::ReplyError>(())
//! ```

use crate::http1::Decoded;
use crate::json;
pub use crate::reply::ReplyLimits;

/// The longest line of a reply.
pub const MAX_LINE_BYTES: usize = 8 << 10;
/// The longest key.
pub const MAX_KEY_BYTES: usize = 250;

/// What may come as the reply to a command. Errors may come to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Values of keys, then `END`: `get`, `gets`, `gat`, `gats`.
    Values,
    /// Whether something was stored: `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Stored,
    /// `DELETED` or `NOT_FOUND`.
    Deleted,
    /// `TOUCHED` or `NOT_FOUND`.
    Touched,
    /// A number or `NOT_FOUND`: `incr`, `decr`.
    Number,
    /// `OK`, `RESET` or `VERSION …`.
    Word,
    /// Names and values, then `END`: `stats`.
    Stats,
    /// Of a meta command.
    Meta(Meta),
}

/// Meta commands, by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meta {
    /// `mg`.
    Get,
    /// `ms`.
    Set,
    /// `md`.
    Delete,
    /// `ma`.
    Arithmetic,
    /// `me`.
    Debug,
    /// `mn`.
    Noop,
}

impl Meta {
    /// What its reply may begin with, but for an error.
    fn has(self, word: &[u8]) -> bool {
        let words: &[&[u8]] = match self {
            Meta::Get => &[b"VA", b"HD", b"EN"],
            Meta::Set => &[b"HD", b"NS", b"EX", b"NF"],
            Meta::Delete => &[b"HD", b"NF", b"EX"],
            Meta::Arithmetic => &[b"VA", b"HD", b"NF", b"NS", b"EX"],
            Meta::Debug => &[b"ME", b"EN"],
            Meta::Noop => &[b"MN"],
        };
        words.contains(&word)
    }
}

/// What a reply is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// A value, at least one of several, or that what was asked for is done.
    #[default]
    Fine,
    /// The key is not there (`END`, `EN`, `NOT_FOUND`, `NF`); the body is empty, of several keys an array of nulls.
    Miss,
    /// It was not stored, since something is or is not there, or has another unique number (`NOT_STORED`, `EXISTS`, `NS`, `EX`;
    /// of commands that store also `NOT_FOUND`, `NF`); the body is its line.
    NotStored,
    /// An error (`ERROR`, `CLIENT_ERROR`, `SERVER_ERROR`); the body is its line.
    Error,
}

/// Why bytes are no reply, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The connection was closed before the first byte.
    #[error("the connection was closed before any byte of the reply")]
    Empty,
    /// The connection was closed inside the reply.
    #[error("the connection was closed in the middle of the reply")]
    Truncated,
    /// A line without its end within [`MAX_LINE_BYTES`].
    #[error("a line of a reply is longer than the limit of {MAX_LINE_BYTES} bytes")]
    LineTooLong,
    /// A line that does not end with carriage return and line feed, or a value that does not end where its length says.
    #[error("a line or value of a reply does not end with carriage return and line feed where it should")]
    End,
    /// A line that cannot be a reply to what was asked.
    #[error("a line of a reply is none that this command has")]
    Line,
    /// A value of a key that was not asked for, or not in this order.
    #[error("a reply has a value of a key that was not asked for")]
    Key,
    /// A length that is none.
    #[error("a length in a reply is none")]
    Number,
    /// More than [`ReplyLimits::body_bytes`].
    #[error("the reply is larger than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// That limit.
        limit_bytes: usize,
    },
}

/// Whether memcached takes this as a key: 1 to [`MAX_KEY_BYTES`] bytes, without white space and control characters.
pub fn is_key(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_KEY_BYTES && is_word(bytes)
}

/// Whether this is one word of a command's line.
pub fn is_word(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// Whether memcached takes this as a count, item's flags or unique number: digits, 64 bits. It refuses a line with any other, and
/// takes the value behind that line for commands.
pub fn is_count(bytes: &[u8]) -> bool {
    is_number(bytes) && std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<u64>().is_ok())
}

/// Whether memcached takes this as a time: seconds, a Unix time, or a negative number, 64 bits.
pub fn is_time(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    is_number(digits) && std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Line,
    /// So many bytes of a value.
    Value(usize),
    /// So many bytes of a value's end.
    ValueEnd(u8),
    /// Nothing: the reply is whole.
    Done,
}

/// Decodes one reply after the other from a connection's bytes.
///
/// [`start`](Self::start) for each command that was sent, then [`decode`](Self::decode) with what comes until it is
/// complete. The accessors hold from then until the next `start`. After an error the connection is of no more use.
#[derive(Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    form: Form,
    keep_body: bool,
    /// The keys that were asked for, with spaces between.
    keys: Vec<u8>,
    /// Where the first of them begins that has not been answered.
    next_key: usize,
    reading: Reading,
    has_begun: bool,
    line: Vec<u8>,
    kind: Kind,
    /// Whether a value was there, or an entry of statistics.
    has_value: bool,
    body: Vec<u8>,
    body_bytes: usize,
    /// What stood in the line of the last value, or of a meta command's reply.
    fields: Vec<u8>,
    failed: Option<ReplyError>,
}

impl ReplyDecoder {
    /// A decoder; [`start`](Self::start) makes it ready.
    pub fn new(limits: ReplyLimits) -> Self {
        ReplyDecoder {
            limits,
            form: Form::Word,
            keep_body: true,
            keys: Vec::new(),
            next_key: 0,
            reading: Reading::Line,
            has_begun: false,
            line: Vec::new(),
            kind: Kind::Fine,
            has_value: false,
            body: Vec::new(),
            body_bytes: 0,
            fields: Vec::new(),
            failed: None,
        }
    }

    /// Begins the reply to a new command. `keys`: of [`Form::Values`], as they stood in the command, with spaces between.
    /// `keep_body`: what it holds is kept; otherwise only the line of an error or of what was not stored is.
    pub fn start(&mut self, form: Form, keys: &[u8], keep_body: bool) {
        self.form = form;
        self.keep_body = keep_body;
        self.keys.clear();
        self.keys.extend_from_slice(keys);
        self.next_key = 0;
        self.reading = Reading::Line;
        self.has_begun = false;
        self.line.clear();
        self.kind = Kind::Fine;
        self.has_value = false;
        self.body.clear();
        self.body_bytes = 0;
        self.fields.clear();
        self.failed = None;
    }

    /// What the reply is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the server may take the value that was sent behind the command's line for further commands: it refused the line, and
    /// passes over the value only where it has understood how long that is.
    pub fn may_be_out_of_step(&self) -> bool {
        let sends_value = matches!(self.form, Form::Stored | Form::Meta(Meta::Set));
        sends_value && self.kind == Kind::Error && !self.body.starts_with(b"SERVER_ERROR")
    }

    /// What it holds.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of that, kept or not.
    pub fn body_bytes(&self) -> Option<usize> {
        Some(if self.keep_body { self.body.len() } else { self.body_bytes })
    }

    /// What the reply says beside the value: of `get` the item's `flags`, of `gets` also its `cas`; of a meta command
    /// what stands behind the letter (nothing behind `W`). Names in lower case find letters of both cases.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut words = self.fields.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        match (self.form, name) {
            (Form::Values, "flags") => words.next(),
            (Form::Values, "cas") => words.nth(1),
            (Form::Meta(_), name) if name.len() == 1 => {
                words.find(|word| word[..1].eq_ignore_ascii_case(name.as_bytes())).map(|word| &word[1..])
            }
            _ => None,
        }
    }

    /// The peer closed the connection, before the reply was whole.
    pub fn finish(&mut self) -> ReplyError {
        match self.failed {
            Some(error) => error,
            None if self.has_begun => ReplyError::Truncated,
            None => ReplyError::Empty,
        }
    }

    /// Takes the bytes of the current reply from the front of `input`; bytes of a next one are left alone.
    ///
    /// # Errors
    /// The bytes are no reply to this command, or larger than the limits; repeated until `start`.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.failed = result.err();
        result
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, ReplyError> {
        let mut at = 0;
        self.has_begun |= !input.is_empty();
        while self.reading != Reading::Done {
            let rest = &input[at..];
            match self.reading {
                Reading::Done => {}
                Reading::Line => {
                    let Some(end) = memchr::memchr(b'\n', rest) else {
                        self.gather(rest)?;
                        return Ok(Decoded { consumed: input.len(), complete: false });
                    };
                    at += end + 1;
                    if self.line.is_empty() {
                        self.read_line(&rest[..end])?;
                    } else {
                        self.gather(&rest[..end])?;
                        let line = std::mem::take(&mut self.line);
                        let result = self.read_line(&line);
                        self.line = line;
                        self.line.clear();
                        result?;
                    }
                }
                Reading::Value(left) => {
                    let taken = left.min(rest.len());
                    if taken == 0 {
                        return Ok(Decoded { consumed: at, complete: false });
                    }
                    self.put_value(&rest[..taken])?;
                    at += taken;
                    self.reading = value(left - taken);
                }
                Reading::ValueEnd(left) => {
                    let Some(byte) = rest.first() else {
                        return Ok(Decoded { consumed: at, complete: false });
                    };
                    if *byte != if left == 2 { b'\r' } else { b'\n' } {
                        return Err(ReplyError::End);
                    }
                    at += 1;
                    match left {
                        2 => self.reading = Reading::ValueEnd(1),
                        _ => self.end_value()?,
                    }
                }
            }
        }
        Ok(Decoded { consumed: at, complete: true })
    }

    fn gather(&mut self, part: &[u8]) -> Result<(), ReplyError> {
        if self.line.len() + part.len() > MAX_LINE_BYTES {
            return Err(ReplyError::LineTooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// A line without its line feed.
    fn read_line(&mut self, line: &[u8]) -> Result<(), ReplyError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(ReplyError::LineTooLong);
        }
        let Some((b'\r', line)) = line.split_last() else { return Err(ReplyError::End) };
        if memchr::memchr(b'\r', line).is_some() {
            return Err(ReplyError::End);
        }
        let (word, rest) = first_word(line);
        if matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR") {
            // values that came before it are none
            self.body.clear();
            self.fields.clear();
            self.body_bytes = 0;
            return self.end(Kind::Error, line);
        }
        match self.form {
            Form::Values => match word {
                b"VALUE" => self.begin_value(rest),
                b"END" if rest.is_empty() => self.end_values(),
                _ => Err(ReplyError::Line),
            },
            Form::Stats => match word {
                b"STAT" => self.entry(rest),
                b"END" if rest.is_empty() => {
                    self.put(if self.has_value { b"}" } else { b"{}" })?;
                    self.done(Kind::Fine)
                }
                // `stats reset` and others that only do something
                b"RESET" | b"OK" if !self.has_value => self.end(Kind::Fine, line),
                _ => Err(ReplyError::Line),
            },
            Form::Meta(meta) if meta.has(word) => self.meta(meta, word, rest, line),
            Form::Word => match word {
                b"VERSION" => self.end(Kind::Fine, rest),
                b"OK" | b"RESET" => self.end(Kind::Fine, line),
                _ => Err(ReplyError::Line),
            },
            Form::Number if is_number(line) => self.end(Kind::Fine, line),
            Form::Stored if matches!(line, b"STORED") => self.end(Kind::Fine, line),
            Form::Stored if matches!(line, b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND") => {
                self.end(Kind::NotStored, line)
            }
            Form::Deleted if line == b"DELETED" => self.end(Kind::Fine, line),
            Form::Touched if line == b"TOUCHED" => self.end(Kind::Fine, line),
            Form::Deleted | Form::Touched | Form::Number if line == b"NOT_FOUND" => self.done(Kind::Miss),
            _ => Err(ReplyError::Line),
        }
    }

    fn meta(&mut self, meta: Meta, word: &[u8], rest: &[u8], line: &[u8]) -> Result<(), ReplyError> {
        match word {
            b"VA" => {
                let (length_word, fields) = first_word(rest);
                self.fields.extend_from_slice(fields);
                self.has_value = true;
                self.begin_bytes(length(length_word)?)
            }
            b"HD" => {
                self.fields.extend_from_slice(rest);
                self.end(Kind::Fine, line)
            }
            b"MN" | b"ME" => self.end(Kind::Fine, line),
            b"EN" | b"NF" if meta != Meta::Set => {
                self.fields.extend_from_slice(rest);
                self.done(Kind::Miss)
            }
            b"NS" | b"EX" | b"NF" => {
                self.fields.extend_from_slice(rest);
                self.end(Kind::NotStored, line)
            }
            _ => Err(ReplyError::Line),
        }
    }

    /// Whether several keys were asked for.
    fn is_list(&self) -> bool {
        self.form == Form::Values && self.keys.contains(&b' ')
    }

    /// `KEY FLAGS BYTES [CAS]` of a value.
    fn begin_value(&mut self, rest: &[u8]) -> Result<(), ReplyError> {
        let (key, rest) = first_word(rest);
        loop {
            let asked =
                self.keys.get(self.next_key..).filter(|rest| !rest.is_empty()).ok_or(ReplyError::Key)?;
            let asked = first_word(asked).0;
            let (is_it, behind) = (asked == key, self.next_key + asked.len() + 1);
            self.begin_entry()?;
            self.next_key = behind;
            if is_it {
                break;
            }
            self.put_null()?;
        }
        let (flags, rest) = first_word(rest);
        let (bytes, cas) = first_word(rest);
        if !is_number(flags) || !(cas.is_empty() || is_number(cas)) {
            return Err(ReplyError::Number);
        }
        self.fields.clear();
        self.fields.extend_from_slice(flags);
        self.fields.push(b' ');
        self.fields.extend_from_slice(cas);
        self.has_value = true;
        if self.is_list() {
            self.put(b"\"")?;
        }
        self.begin_bytes(length(bytes)?)
    }

    fn begin_bytes(&mut self, bytes: usize) -> Result<(), ReplyError> {
        if bytes > self.limits.body_bytes - self.body_bytes {
            return Err(ReplyError::TooLarge { limit_bytes: self.limits.body_bytes });
        }
        self.reading = value(bytes);
        Ok(())
    }

    fn put_value(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        if self.is_list() { self.put_escaped(bytes) } else { self.put(bytes) }
    }

    fn end_value(&mut self) -> Result<(), ReplyError> {
        if matches!(self.form, Form::Meta(_)) {
            return self.done(Kind::Fine);
        }
        if self.is_list() {
            self.put(b"\"")?;
        }
        self.reading = Reading::Line;
        Ok(())
    }

    /// What stands before a value of several.
    fn begin_entry(&mut self) -> Result<(), ReplyError> {
        if !self.is_list() {
            return Ok(());
        }
        self.put(if self.next_key == 0 { b"[" } else { b"," })
    }

    fn put_null(&mut self) -> Result<(), ReplyError> {
        if self.is_list() { self.put(b"null") } else { Ok(()) }
    }

    fn end_values(&mut self) -> Result<(), ReplyError> {
        if self.is_list() {
            while self.next_key < self.keys.len() {
                let asked = first_word(&self.keys[self.next_key..]).0.len();
                self.begin_entry()?;
                self.put_null()?;
                self.next_key += asked + 1;
            }
            self.put(b"]")?;
        }
        self.done(if self.has_value { Kind::Fine } else { Kind::Miss })
    }

    /// `NAME VALUE` of statistics.
    fn entry(&mut self, rest: &[u8]) -> Result<(), ReplyError> {
        let (name, text) = first_word(rest);
        self.put(if self.has_value { b",\"" } else { b"{\"" })?;
        self.has_value = true;
        self.put_escaped(name)?;
        self.put(b"\":\"")?;
        self.put_escaped(text)?;
        self.put(b"\"")
    }

    fn put_escaped(&mut self, mut text: &[u8]) -> Result<(), ReplyError> {
        while let Some(at) = text.iter().position(|byte| json::needs_escape(*byte)) {
            self.put(&text[..at])?;
            let (escape, length) = json::escape(text[at]);
            self.put(&escape[..length])?;
            text = &text[at + 1..];
        }
        self.put(text)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        self.body_bytes += bytes.len();
        if self.body_bytes > self.limits.body_bytes {
            return Err(ReplyError::TooLarge { limit_bytes: self.limits.body_bytes });
        }
        if self.keep_body || matches!(self.kind, Kind::Error | Kind::NotStored) {
            self.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// The reply is this line.
    fn end(&mut self, kind: Kind, line: &[u8]) -> Result<(), ReplyError> {
        self.kind = kind;
        self.put(line)?;
        self.done(kind)
    }

    fn done(&mut self, kind: Kind) -> Result<(), ReplyError> {
        self.kind = kind;
        self.reading = Reading::Done;
        Ok(())
    }
}

fn value(left: usize) -> Reading {
    if left == 0 { Reading::ValueEnd(2) } else { Reading::Value(left) }
}

/// The first word, and what stands behind the space that ends it.
fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit)
}

fn length(text: &[u8]) -> Result<usize, ReplyError> {
    if !is_number(text) {
        return Err(ReplyError::Number);
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(ReplyError::Number)
}

#[cfg(test)]
mod tests;
