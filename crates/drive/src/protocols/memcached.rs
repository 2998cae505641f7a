//! memcached's text protocol and its meta commands: how a command is written, its replies.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use tidemark_scenario::plan::{MemcachedCommand, MemcachedWord, RequestKind};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::memcached::{
    Form, Kind, MAX_LINE_BYTES, ReplyDecoder, ReplyError, ReplyLimits, is_count, is_key, is_time, is_word,
};

use crate::io::Io;
use crate::io::greeted::read_whole;
use crate::protocols::codec::{Closed, Codec, Decoded, byte_transport};
use crate::protocols::sharding::{Keyed, Shards, sharded_transport};
use crate::protocols::store_status::{CONFLICT, NO_CONTENT, OK, SERVER_ERROR};
use crate::protocols::transport::{Client, Setup, Transport};
use crate::session::answer::{Answer, Wrote};
use crate::session::failure::Violation;
use crate::session::jar::Jar;

/// A server that speaks memcached's text protocol. A connection begins without a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memcached {
    /// The servers that share the keys, where there are several.
    pub shards: Option<Shards>,
}

impl Client for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Memcached(_))
    }

    fn shards(&self) -> Option<&Shards> {
        self.shards.as_ref()
    }

    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        stream.write_all(b"version\r\n")?;
        let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: MAX_LINE_BYTES });
        decoder.start(Form::Word, b"", true);
        let owed = ("memcached's text protocol", "its version");
        read_whole(stream, owed, |bytes| decoder.decode(bytes))?;
        if decoder.kind() == Kind::Error {
            let words = format!(
                "the server answered \"{}\" when it was asked for its version; one that wants to know who comes cannot be driven",
                String::from_utf8_lossy(decoder.body())
            );
            return Err(io::Error::new(ErrorKind::PermissionDenied, words));
        }
        Ok(())
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let commands = setup.plan.requests.iter().filter_map(|request| match &request.ask {
            RequestKind::Memcached(command) => Some(Command::new(command, request.needs_body())),
            _ => None,
        });
        let commands = commands.collect();
        match &self.shards {
            Some(shards) => sharded_transport::<_, Replies>(io, &setup, shards, commands),
            None => byte_transport::<_, Replies>(io, &setup, commands),
        }
    }
}

/// What a word must be.
#[derive(Debug, Clone, Copy)]
enum Must {
    Key,
    Count,
    Time,
    Flag,
    Word,
}

impl Must {
    /// Why it is none, if so.
    fn reason(self, text: &[u8]) -> Option<&'static str> {
        match self {
            Must::Key if !is_key(text) => {
                Some("a key has 1 to 250 bytes, without white space and control characters")
            }
            Must::Count if !is_count(text) => Some("this is not a whole number from 0 on, of 64 bits"),
            Must::Time if !is_time(text) => Some("this is not a whole number: seconds, or a Unix time"),
            Must::Flag if text.starts_with(b"q") => Some("the flag q leaves replies out"),
            Must::Flag | Must::Word if !is_word(text) => {
                Some("this is not one word, without white space and control characters")
            }
            _ => None,
        }
    }
}

/// A part of a command.
#[derive(Debug)]
enum Piece {
    /// What does not vary.
    Literal(Box<[u8]>),
    /// A word, and what it is for a person.
    Word(Template, Must, Arc<str>),
    /// The length of a value that varies.
    Length,
    /// That value.
    Value,
}

/// A command made ready.
#[derive(Debug)]
pub(crate) struct Command {
    pieces: Vec<Piece>,
    /// What is stored, where that varies.
    value: Option<Template>,
    form: Form,
    /// How many words stand before the first key; 0 where there is none.
    before_keys: usize,
    /// Whether the reply is kept.
    needs_body: bool,
}

impl Command {
    fn new(command: &MemcachedCommand, needs_body: bool) -> Self {
        let is_key = |word: &MemcachedWord| matches!(word, MemcachedWord::Key(_));
        let mut made = Command {
            pieces: Vec::new(),
            value: None,
            form: command.reply,
            before_keys: command.words.iter().position(is_key).map_or(0, |first| first + 1),
            needs_body,
        };
        let stored = command.value.as_ref().map(|value| (value, value.as_literal()));
        let mut written = command.name.as_bytes().to_vec();
        for word in &command.words {
            written.push(b' ');
            let (template, must, what) = match word {
                MemcachedWord::Key(key) => (key, Must::Key, "the key"),
                MemcachedWord::Count(number) => (number, Must::Count, "a number"),
                MemcachedWord::Time(time) => (time, Must::Time, "a time"),
                MemcachedWord::Flag(flag) => (flag, Must::Flag, "a flag"),
                MemcachedWord::Other(word) => (word, Must::Word, "a word"),
                MemcachedWord::Length => {
                    match stored {
                        Some((_, Some(literal))) => {
                            written.extend_from_slice(literal.len().to_string().as_bytes());
                        }
                        _ => {
                            made.literal(&mut written);
                            made.pieces.push(Piece::Length);
                        }
                    }
                    continue;
                }
            };
            // one that is wrong is told of as if it varied
            match template.as_literal().filter(|literal| must.reason(literal).is_none()) {
                Some(literal) => written.extend_from_slice(literal),
                None => {
                    made.literal(&mut written);
                    let what = format!("{what} of {}", command.name);
                    made.pieces.push(Piece::Word(template.clone(), must, what.into()));
                }
            }
        }
        written.extend_from_slice(b"\r\n");
        if let Some((value, literal)) = stored {
            match literal {
                Some(literal) => written.extend_from_slice(literal),
                None => {
                    made.literal(&mut written);
                    made.pieces.push(Piece::Value);
                    made.value = Some(value.clone());
                }
            }
            written.extend_from_slice(b"\r\n");
        }
        made.literal(&mut written);
        made
    }

    fn literal(&mut self, written: &mut Vec<u8>) {
        if !written.is_empty() {
            self.pieces.push(Piece::Literal(std::mem::take(written).into_boxed_slice()));
        }
    }

    /// Appends the command to `out`; what was appended, where something that it needs is not there or cannot be said, is to
    /// be taken away again.
    fn append(&self, cx: &mut Context<'_>, out: &mut Vec<u8>, scratch: &mut Vec<u8>) -> Result<(), Unmet> {
        scratch.clear();
        if let Some(value) = &self.value {
            value.render(cx, scratch)?;
        }
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Word(template, must, what) => {
                    let begin = out.len();
                    template.render(cx, out)?;
                    if let Some(reason) = must.reason(&out[begin..]) {
                        return Err(Unmet::Expression { text: Arc::clone(what), reason });
                    }
                }
                Piece::Length => {
                    out.extend_from_slice(itoa::Buffer::new().format(scratch.len()).as_bytes());
                }
                Piece::Value => out.extend_from_slice(scratch),
            }
        }
        Ok(())
    }

    /// The keys whose values come back, in a command that was written.
    fn keys<'c>(&self, written: &'c [u8]) -> &'c [u8] {
        if self.form != Form::Values {
            return b"";
        }
        let line = written.strip_suffix(b"\r\n").unwrap_or(written);
        self.keys_on(line)
    }

    /// What of a line begins with the first key.
    fn keys_on<'c>(&self, line: &'c [u8]) -> &'c [u8] {
        let Some(spaces) = self.before_keys.checked_sub(1) else { return b"" };
        memchr::memchr_iter(b' ', line).nth(spaces).map_or(b"", |space| &line[space + 1..])
    }
}

/// A connection's replies.
#[derive(Debug)]
pub(crate) struct Replies(ReplyDecoder);

impl Keyed for Replies {
    fn render(
        command: &Command,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        command.append(cx, out, scratch).inspect_err(|_| out.truncate(begin))
    }

    fn keys<'w>(command: &Command, rendered: &'w [u8], tell: &mut dyn FnMut(&'w [u8])) {
        let line = &rendered[..memchr::memchr(b'\r', rendered).unwrap_or(rendered.len())];
        let keys = command.keys_on(line).split(|byte| *byte == b' ').filter(|key| !key.is_empty());
        let count = if command.form == Form::Values { usize::MAX } else { 1 };
        keys.take(count).for_each(tell);
    }

    fn begin(&mut self, command: Option<&Command>, rendered: &[u8], _: u32) {
        if let Some(command) = command {
            self.0.start(command.form, command.keys(rendered), command.needs_body);
        }
    }
}

impl Codec for Replies {
    type Request = Command;

    fn new(body_bytes: usize) -> Self {
        Replies(ReplyDecoder::new(ReplyLimits { body_bytes }))
    }

    fn write(
        &mut self,
        command: &Command,
        cx: &mut Context<'_>,
        _: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        Self::render(command, cx, out, scratch)?;
        self.begin(Some(command), &out[begin..], 0);
        Ok(())
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        self.0
            .decode(received)
            .map(Decoded::from)
            .map_err(|error| Violation::of(&error, matches!(error, ReplyError::TooLarge { .. })))
    }

    fn finish(&mut self) -> Result<(), Closed> {
        match self.0.finish() {
            ReplyError::Empty => Err(Closed::Before),
            _ => Err(Closed::Within),
        }
    }

    fn keeps_open(&self) -> bool {
        !self.0.may_be_out_of_step()
    }

    fn answer(&self) -> &dyn Answer {
        &self.0
    }
}

impl Answer for ReplyDecoder {
    fn status(&self) -> u16 {
        match self.kind() {
            Kind::Error => SERVER_ERROR,
            Kind::NotStored => CONFLICT,
            Kind::Miss => NO_CONTENT,
            Kind::Fine => OK,
        }
    }

    fn status_words(&self) -> String {
        match self.kind() {
            Kind::Error => "an error".into(),
            Kind::NotStored => "not stored".into(),
            Kind::Miss => "a miss".into(),
            Kind::Fine => "a reply".into(),
        }
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.field(name)
    }

    fn body(&self) -> &[u8] {
        self.body()
    }

    fn body_bytes(&self) -> Option<u64> {
        self.body_bytes().map(|bytes| bytes as u64)
    }

    fn wrote(&self) -> Wrote {
        match self.kind() {
            Kind::Fine => Wrote::Yes,
            Kind::NotStored | Kind::Miss => Wrote::No,
            Kind::Error => Wrote::Unknown,
        }
    }

    fn seen<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        if matches!(self.kind(), Kind::Error | Kind::NotStored) { self.body() } else { received }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::Expr;
    use tidemark_scenario::Shared;
    use tidemark_scenario::template::{Encoding, Part};
    use tidemark_wire::memcached::Meta;

    use super::*;

    /// What a command is written as with a text in its hole, and the keys that are waited for.
    fn written(command: &MemcachedCommand, hole: &[u8]) -> Result<(String, String), Unmet> {
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut slot = tidemark_scenario::Slot::default();
        slot.set_text(hole);
        let mut cx = Context { slots: &[slot], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = b"before".to_vec();
        let command = Command::new(command, false);
        let result = Replies::new(64).write(&command, &mut cx, &Jar::default(), &mut out, &mut Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let sent = out.strip_prefix(b"before").unwrap();
        assert_eq!(result.is_err(), sent.is_empty());
        result.map(|()| (text(sent), text(command.keys(sent))))
    }

    fn literal(text: &str) -> Template {
        Template::literal(text)
    }

    fn hole(before: &str) -> Template {
        let literal = Part::Literal(before.as_bytes().into());
        Template { parts: vec![literal, Part::Hole(Expr::variable(0), Encoding::Raw)] }
    }

    #[test]
    fn a_value_has_its_length_in_front_of_it() {
        use MemcachedWord::{Count, Key, Length, Time};
        let set = |key, value| MemcachedCommand {
            name: "set",
            words: vec![Key(key), Count(literal("0")), Time(literal("60")), Length],
            value: Some(value),
            reply: Form::Stored,
        };
        let sent = |command| written(&command, b"a b\r\n").map(|(sent, _)| sent);
        assert_eq!(sent(set(literal("k"), hole(""))).unwrap(), "set k 0 60 5\r\na b\r\n\r\n");
        assert_eq!(sent(set(literal("k"), literal("v"))).unwrap(), "set k 0 60 1\r\nv\r\n");
        let (sent, _) = written(&set(hole("k:"), hole("")), b"7").unwrap();
        assert_eq!(sent, "set k:7 0 60 1\r\n7\r\n");
    }

    #[test]
    fn only_what_was_stored_is_acknowledged() {
        for (reply, wrote) in [
            ("STORED\r\n", Wrote::Yes),
            ("NOT_STORED\r\n", Wrote::No),
            ("SERVER_ERROR out of memory storing object\r\n", Wrote::Unknown),
        ] {
            let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: 64 });
            decoder.start(Form::Stored, b"", true);
            assert!(decoder.decode(reply.as_bytes()).unwrap().complete);
            assert_eq!(Answer::wrote(&decoder), wrote, "{reply}");
        }
    }

    #[test]
    fn keys_are_known_and_what_cannot_be_said_is_not() {
        use MemcachedWord::{Count, Flag, Key, Time};
        let command = |name, words, reply| MemcachedCommand { name, words, value: None, reply };
        let gat = command("gat", vec![Time(hole("")), Key(literal("a")), Key(hole("b"))], Form::Values);
        assert_eq!(written(&gat, b"9").unwrap(), ("gat 9 a b9\r\n".into(), "a b9".into()));
        for (words, text) in [
            (vec![Key(hole("k"))], &b" x"[..]),
            (vec![Key(hole("k"))], b"\r\nflush_all"),
            (vec![Key(hole(""))], b""),
            (vec![Key(hole(""))], &[b'k'; 251]),
            (vec![Key(literal("k")), Count(hole(""))], b"noreply"),
            // memcached would refuse the line, and take the value behind it for commands
            (vec![Key(literal("k")), Count(hole(""))], b"-1"),
            (vec![Key(literal("k")), Count(hole(""))], b"18446744073709551616"),
            (vec![Key(literal("k")), Time(hole(""))], b"9223372036854775808"),
            (vec![Key(literal("k")), Flag(hole(""))], b"q"),
            (vec![Key(literal("k")), Flag(hole("O"))], b"1 q"),
        ] {
            let mg = command("mg", words, Form::Meta(Meta::Get));
            let unmet = written(&mg, text).unwrap_err().describe(&[]);
            assert!(unmet.contains("of mg: "), "{unmet}");
        }
    }
}
