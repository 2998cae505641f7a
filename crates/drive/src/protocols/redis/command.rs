//! A command and its replies.

use std::net::{IpAddr, SocketAddr};

use tidemark_scenario::plan::{RedisCommand, Wait};
use tidemark_scenario::{Context, Stencil, Template, Unmet};
use tidemark_wire::resp::{self, Keep, Kind, ReplyDecoder, ReplyLimits, RespError};

use super::keys::KeyWords;
use super::written::Written;
use super::{GREETING_BYTES, MAP_BYTES, cluster};
use crate::protocols::codec::{Closed, Codec, Decoded};
use crate::protocols::sharding::{self, Keyed, Redirect, Shards};
use crate::protocols::store_status::{NO_CONTENT, OK, SERVER_ERROR};
use crate::session::answer::{Answer, Wrote};
use crate::session::failure::Violation;
use crate::session::jar::Jar;

/// A part of a command.
#[derive(Debug)]
enum Piece {
    /// Words of lengths that are known, with what stands before and behind them.
    Fixed(Stencil),
    /// A word of a length that is known only once it is written.
    Any(Template),
}

/// A command made ready: what does not vary is put together once.
#[derive(Debug)]
pub(crate) struct Command {
    pieces: Vec<Piece>,
    /// What is kept of the reply.
    keep: Keep,
    /// Which words are keys; none where that is known only once its name is.
    keys: Option<KeyWords>,
    /// When it has written; none where words decide that vary.
    written: Option<Written>,
    /// How many replicas must have it.
    replicas: u32,
}

impl Command {
    /// With what somebody looks at of its reply.
    pub fn new(RedisCommand { words, wait }: &RedisCommand, keep: Keep) -> Self {
        let replicas = wait.map_or(0, |wait| wait.replicas);
        let keys = words.first().and_then(Template::as_literal).map(KeyWords::of);
        let written = Written::of(words.iter().map(Template::as_literal));
        let (mut pieces, mut fixed) = (Vec::new(), Stencil::default());
        resp::write_head(words.len(), fixed.bytes_mut());
        for word in words {
            match word.fixed_bytes() {
                Some(bytes) => {
                    resp::write_word_head(bytes, fixed.bytes_mut());
                    fixed.append(word);
                    fixed.bytes_mut().extend_from_slice(resp::WORD_END);
                }
                None => {
                    pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
                    pieces.push(Piece::Any(word.clone()));
                }
            }
        }
        if let Some(Wait { replicas, within_ms }) = wait {
            let [replicas, within_ms] = [u64::from(*replicas), *within_ms].map(|number| number.to_string());
            resp::write_command(&[b"WAIT", replicas.as_bytes(), within_ms.as_bytes()], fixed.bytes_mut());
        }
        pieces.push(Piece::Fixed(fixed));
        pieces.retain(|piece| !matches!(piece, Piece::Fixed(fixed) if fixed.is_empty()));
        Command { pieces, keep, keys, written, replicas }
    }

    /// Appends the command to `out`; nothing of it where something that it needs is not there.
    #[inline(always)]
    fn write(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        let begin = out.len();
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(fixed) => fixed.write(cx.random, out),
                Piece::Any(word) => {
                    if let Err(unmet) = resp::write_word_by(out, |out| word.render(cx, out)) {
                        out.truncate(begin);
                        return Err(unmet);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A connection's replies. Small, as there may be thousands of connections: what few need lies apart.
#[derive(Debug)]
pub(crate) struct Replies {
    decoder: ReplyDecoder,
    /// How large replies to the plan's commands may be.
    limits: ReplyLimits,
    /// Replies in front of the one that is awaited, which nobody wants.
    passed_over: u32,
    /// How many replicas must have what was written.
    replicas: u32,
    /// Of those, once the command's own reply is there.
    replicated: Option<Box<Replicated>>,
    /// Whether that reply is there, so that what comes next says how many have it.
    is_waiting: bool,
    keep: Keep,
    /// When the command has written.
    written: Written,
}

/// How many replicas have what was written.
#[derive(Debug)]
struct Replicated {
    /// What says it.
    decoder: ReplyDecoder,
    /// Why the command has failed though its own reply is well.
    shortage: Option<String>,
}

impl Replicated {
    fn new() -> Self {
        Replicated { decoder: ReplyDecoder::new(ReplyLimits { body_bytes: GREETING_BYTES }), shortage: None }
    }
}

impl Replies {
    /// How many replicas have it is known.
    fn counted(&mut self) {
        let Some(replicated) = &mut self.replicated else { return };
        let said = String::from_utf8_lossy(replicated.decoder.body());
        let shortage = match (replicated.decoder.kind(), said.parse::<u32>()) {
            // what did not succeed is nowhere
            _ if self.decoder.kind() == Kind::Error => None,
            (Kind::Scalar, Ok(have)) if have >= self.replicas => None,
            (Kind::Scalar, Ok(have)) => Some(format!("{have} of {} replicas have it (WAIT)", self.replicas)),
            _ => Some(format!("WAIT: {said}")),
        };
        replicated.shortage = shortage;
    }

    /// Why the command has failed though its own reply is well.
    fn shortage(&self) -> Option<&str> {
        self.replicated.as_ref()?.shortage.as_deref()
    }
}

impl Keyed for Replies {
    const MAP: &'static [u8] = b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
    const ASKING: &'static [u8] = b"*1\r\n$6\r\nASKING\r\n";

    fn render(
        command: &Command,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        command.write(cx, out)
    }

    fn keys<'w>(command: &Command, rendered: &'w [u8], tell: &mut dyn FnMut(&'w [u8])) {
        let name = || resp::words(rendered).next().unwrap_or_default();
        command.keys.unwrap_or_else(|| KeyWords::of(name())).tell(rendered, tell);
    }

    fn tag(key: &[u8]) -> &[u8] {
        sharding::tag(key)
    }

    #[inline]
    fn begin(&mut self, command: Option<&Command>, rendered: &[u8], passed_over: u32) {
        self.written = command.map_or(Written::UnlessNil, |command| {
            let of_rendered = || Written::of(resp::words(rendered).map(Some)).unwrap_or(Written::UnlessNil);
            command.written.unwrap_or_else(of_rendered)
        });
        self.passed_over = passed_over;
        self.replicas = command.map_or(0, |command| command.replicas);
        self.keep = match command.map_or(Keep::All, |command| command.keep) {
            // beside other replies its bytes may be gone
            Keep::Nothing if passed_over > 0 || self.replicas > 0 => Keep::Beginning,
            keep => keep,
        };
        self.is_waiting = false;
        if let Some(replicated) = &mut self.replicated {
            replicated.shortage = None;
        }
        let map = ReplyLimits { body_bytes: MAP_BYTES };
        self.decoder.limit(if command.is_some() { self.limits } else { map });
        self.decoder.start(self.keep);
    }

    fn redirect(&self) -> Option<Redirect> {
        if self.decoder.kind() == Kind::Error { cluster::read_redirect(self.decoder.body()) } else { None }
    }

    fn map(&self, asked: IpAddr, known: &dyn Fn(&str, u16) -> Option<SocketAddr>) -> Result<Shards, String> {
        cluster::read_map(self.decoder.body(), asked, known)
    }
}

impl Codec for Replies {
    type Request = Command;

    fn new(body_bytes: usize) -> Self {
        let limits = ReplyLimits { body_bytes };
        Replies {
            decoder: ReplyDecoder::new(limits),
            limits,
            passed_over: 0,
            replicas: 0,
            replicated: None,
            is_waiting: false,
            keep: Keep::All,
            written: Written::UnlessNil,
        }
    }

    fn write(
        &mut self,
        command: &Command,
        cx: &mut Context<'_>,
        _: &Jar,
        out: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        command.write(cx, out)?;
        self.begin(Some(command), &out[begin..], 0);
        Ok(())
    }

    #[inline(always)]
    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        // most commands have a reply, and nothing beside it
        if self.passed_over > 0 || self.replicas > 0 {
            return self.decode_several(received);
        }
        match self.decoder.decode(received) {
            Ok(decoded) => Ok(Decoded { consumed: decoded.consumed, complete: decoded.complete }),
            Err(error) => Err(violation(error)),
        }
    }

    fn finish(&mut self) -> Result<(), Closed> {
        match self.decoder.finish() {
            RespError::Empty if !self.is_waiting => Err(Closed::Before),
            _ => Err(Closed::Within),
        }
    }

    fn keeps_open(&self) -> bool {
        true
    }

    fn answer(&self) -> &dyn Answer {
        self
    }
}

/// What is wrong with a reply.
fn violation(error: RespError) -> Violation {
    Violation::of(&error, matches!(error, RespError::TooLarge { .. }))
}

impl Replies {
    /// Decodes where there is more than the command's own reply.
    fn decode_several(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        let mut taken = 0;
        loop {
            let decoder = match &mut self.replicated {
                Some(replicated) if self.is_waiting => &mut replicated.decoder,
                _ => &mut self.decoder,
            };
            let decoded = decoder.decode(&received[taken..]).map_err(violation)?;
            taken += decoded.consumed;
            if !decoded.complete {
                return Ok(Decoded { consumed: taken, complete: false });
            }
            if self.passed_over > 0 {
                self.passed_over -= 1;
                self.decoder.start(self.keep);
            } else if self.replicas > 0 && !self.is_waiting {
                self.is_waiting = true;
                self.replicated.get_or_insert_with(|| Box::new(Replicated::new())).decoder.start(Keep::All);
            } else {
                if self.is_waiting {
                    self.counted();
                }
                return Ok(Decoded { consumed: taken, complete: true });
            }
        }
    }
}

impl Answer for Replies {
    fn status(&self) -> u16 {
        match self.decoder.kind() {
            _ if self.complaint().is_some() => SERVER_ERROR,
            Kind::Error => SERVER_ERROR,
            Kind::Null => NO_CONTENT,
            Kind::Scalar | Kind::Aggregate => OK,
        }
    }

    fn status_words(&self) -> String {
        match self.decoder.kind() {
            _ if self.shortage().is_some() => "too few replicas".into(),
            Kind::Error => "an error".into(),
            Kind::Aggregate if self.decoder.error().is_some() => "an error in a reply".into(),
            Kind::Null => "nil".into(),
            Kind::Scalar | Kind::Aggregate => "a reply".into(),
        }
    }

    fn body(&self) -> &[u8] {
        self.decoder.body()
    }

    fn body_bytes(&self) -> Option<u64> {
        self.decoder.body_bytes().map(|bytes| bytes as u64)
    }

    fn wrote(&self) -> Wrote {
        if self.complaint().is_some() {
            return Wrote::Unknown;
        }
        self.written.said_by(self.decoder.kind(), self.decoder.body())
    }

    fn complaint(&self) -> Option<&[u8]> {
        self.shortage().map(str::as_bytes).or(self.decoder.error())
    }

    fn seen<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        self.complaint().unwrap_or_else(|| self.decoder.seen(received))
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::template::{Encoding, Part};
    use tidemark_scenario::{Expr, Shared};

    use super::*;
    use crate::protocols::codec::Connection;

    fn written(words: Vec<Vec<Part>>, wait: Option<Wait>) -> String {
        let words: Vec<Template> = words.into_iter().map(|parts| Template { parts }).collect();
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        let command = RedisCommand { words, wait };
        Command::new(&command, Keep::Nothing).write(&mut cx, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_command_has_the_length_of_each_word() {
        let hole = || Part::Hole(Expr::int(42), Encoding::Url);
        let literal = |text: &str| Part::Literal(text.as_bytes().into());
        assert_eq!(written(vec![vec![literal("PING")]], None), "*1\r\n$4\r\nPING\r\n");
        let set = vec![
            vec![literal("SET")],
            vec![literal("k:"), hole()],
            vec![literal("")],
            vec![hole()],
            vec![literal("NX")],
        ];
        let expected = "*5\r\n$3\r\nSET\r\n$4\r\nk:42\r\n$0\r\n\r\n$2\r\n42\r\n$2\r\nNX\r\n";
        assert_eq!(written(set, None), expected);
        let padded = Expr::parse_constant("pad(random(7, 7), 12)").unwrap();
        let padded = || Part::Hole(padded.clone(), Encoding::Raw);
        let set = vec![
            vec![literal("SET")],
            vec![literal("k:"), padded()],
            vec![hole()],
            vec![padded()],
            vec![literal("NX")],
        ];
        let expected =
            "*5\r\n$3\r\nSET\r\n$14\r\nk:000000000007\r\n$2\r\n42\r\n$12\r\n000000000007\r\n$2\r\nNX\r\n";
        assert_eq!(written(set, None), expected);
    }

    #[test]
    fn an_error_within_a_reply_is_a_failure_and_what_failed_or_waits_acknowledges_nothing() {
        let words = ["EXEC"].map(Template::literal).into();
        let command = Command::new(&RedisCommand { words, wait: None }, Keep::Nothing);
        let mut replies = Replies::new(100);
        for (reply, status, seen, wrote) in [
            ("*2\r\n+OK\r\n:1\r\n", 200, "[\"OK\",1]", Wrote::Yes),
            ("*3\r\n+OK\r\n-WRONGTYPE no\r\n-ERR b\r\n", 500, "WRONGTYPE no", Wrote::Unknown),
            ("-EXECABORT no\r\n", 500, "EXECABORT no", Wrote::Unknown),
            ("*-1\r\n", 204, "", Wrote::No),
            ("+QUEUED\r\n", 200, "QUEUED", Wrote::Unknown),
            ("+OK\r\n", 200, "OK", Wrote::Yes),
        ] {
            replies.begin(Some(&command), b"", 0);
            assert!(replies.decode(reply.as_bytes()).unwrap().complete);
            let answer = replies.answer();
            assert_eq!((answer.status(), answer.seen(b"")), (status, seen.as_bytes()), "{reply}");
            assert_eq!(answer.wrote(), wrote, "{reply}");
        }
    }

    /// Thousands of connections are used in turn.
    #[test]
    fn what_every_command_looks_at_of_a_connection_is_one_cache_line() {
        assert_eq!(size_of::<Connection<Replies>>(), 64);
    }

    #[test]
    fn of_a_string_nothing_is_kept_where_nobody_looks_at_it_and_no_other_reply_stands_beside_it() {
        let words = ["GET", "k"].map(Template::literal).into();
        let get = Command::new(&RedisCommand { words, wait: None }, Keep::Nothing);
        let mut replies = Replies::new(100);
        replies.begin(Some(&get), b"", 0);
        let came = b"$5\r\nhello\r\n$2\r\nno\r\n";
        assert_eq!(replies.decode(came).unwrap(), Decoded { consumed: 11, complete: true });
        let answer = replies.answer();
        assert_eq!((answer.status(), answer.body(), answer.seen(came)), (OK, &b""[..], &b"hello"[..]));
        // behind the reply to ASKING
        replies.begin(Some(&get), b"", 1);
        let came = b"+OK\r\n$5\r\nhello\r\n";
        assert_eq!(replies.decode(came).unwrap(), Decoded { consumed: came.len(), complete: true });
        assert_eq!(replies.answer().seen(came), b"hello");
    }

    #[test]
    fn what_too_few_replicas_have_has_failed() {
        let wait = Wait { replicas: 2, within_ms: 50 };
        let ping = || vec![vec![Part::Literal(b"PING".as_slice().into())]];
        let sent = written(ping(), Some(wait));
        assert_eq!(sent, "*1\r\n$4\r\nPING\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$2\r\n50\r\n");
        let words = ping().into_iter().map(|parts| Template { parts }).collect();
        let command = Command::new(&RedisCommand { words, wait: Some(wait) }, Keep::All);
        let mut replies = Replies::new(100);
        for (reply, status, seen) in [
            ("+OK\r\n:2\r\n", 200, "OK"),
            ("+OK\r\n:1\r\n", 500, "1 of 2 replicas have it (WAIT)"),
            ("$-1\r\n:3\r\n", 204, ""),
            ("-ERR no\r\n:0\r\n", 500, "ERR no"),
            ("+OK\r\n-ERR WAIT cannot be used\r\n", 500, "WAIT: ERR WAIT cannot be used"),
        ] {
            for cut in 0..reply.len() {
                replies.begin(Some(&command), b"", 0);
                let first = replies.decode(&reply.as_bytes()[..cut]).unwrap();
                assert!(!first.complete, "{reply} {cut}");
                let rest = replies.decode(&reply.as_bytes()[first.consumed..]).unwrap();
                assert_eq!((rest.complete, first.consumed + rest.consumed), (true, reply.len()));
                let answer = replies.answer();
                assert_eq!((answer.status(), answer.seen(b"")), (status, seen.as_bytes()), "{reply}");
                assert_eq!(answer.wrote() == Wrote::Yes, status == 200, "{reply}");
            }
        }
    }
}
