//! What a good answer says of whether its command has written: a write that was not made is not acknowledged.

use tidemark_wire::resp::Kind;

use crate::session::answer::Wrote;

/// When a command has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Where the answer is not nil: nearly all commands.
    UnlessNil,
    /// Where the answer is not nil, not 0 and not -1.
    UnlessZero,
    /// Whatever the answer is: it is what was there before.
    Always,
    /// Where the answer is nil: nothing was there before, as there had to be.
    IfNil,
    /// The answer does not tell.
    Unknown,
}

/// Commands that answer 0, or -1, where they have written nothing.
const ZERO_IF_NOT_WRITTEN: [&[u8]; 12] = [
    b"COPY",
    b"HSETEX",
    b"HSETNX",
    b"LINSERT",
    b"LPUSHX",
    b"MOVE",
    b"MSETEX",
    b"MSETNX",
    b"RENAMENX",
    b"RPUSHX",
    b"SETNX",
    b"SMOVE",
];

/// Options of `SET` with a time behind them.
const TIMES: [&[u8]; 4] = [b"EX", b"EXAT", b"PX", b"PXAT"];
/// Options of `SET` with what there has to be, or must not be, behind them.
const COMPARISONS: [&[u8]; 4] = [b"IFDEQ", b"IFDNE", b"IFEQ", b"IFNE"];

impl Written {
    /// Of a command, each word where it is known; none where one that is not decides.
    pub fn of<'w>(mut words: impl Iterator<Item = Option<&'w [u8]>>) -> Option<Written> {
        let name = words.next().unwrap_or(Some(&b""[..]))?;
        let is = |one: &[u8]| name.eq_ignore_ascii_case(one);
        Some(match name {
            _ if is(b"SET") => return Written::of_set(words.skip(2)),
            _ if is(b"ZADD") || is(b"GEOADD") => return Written::of_zadd(words.skip(1)),
            _ if is(b"GETSET") => Written::Always,
            _ if ZERO_IF_NOT_WRITTEN.into_iter().any(is) => Written::UnlessZero,
            _ => Written::UnlessNil,
        })
    }

    /// Of `SET` with these words behind key and value.
    fn of_set<'w>(mut options: impl Iterator<Item = Option<&'w [u8]>>) -> Option<Written> {
        let (mut with_nil, mut gets) = (Written::Always, false);
        while let Some(option) = options.next() {
            let option = option?;
            let is = |one: &[u8]| option.eq_ignore_ascii_case(one);
            if is(b"GET") {
                gets = true;
            } else if is(b"NX") {
                with_nil = Written::IfNil;
            } else if is(b"XX") {
                with_nil = Written::UnlessNil;
            } else if TIMES.into_iter().any(is) {
                options.next();
            } else if COMPARISONS.into_iter().any(is) {
                options.next();
                with_nil = Written::Unknown;
            }
        }
        // without GET nil says that a condition did not hold
        Some(if gets { with_nil } else { Written::UnlessNil })
    }

    /// Of `ZADD` or `GEOADD` with these words behind the key. The answer counts what was added; with `CH`, what was changed, too.
    fn of_zadd<'w>(options: impl Iterator<Item = Option<&'w [u8]>>) -> Option<Written> {
        let (mut written, mut with_changed) = (Written::UnlessNil, false);
        for option in options {
            let option = option?;
            let is = |one: &[u8]| option.eq_ignore_ascii_case(one);
            if is(b"NX") {
                written = Written::UnlessZero;
            } else if is(b"XX") || is(b"GT") || is(b"LT") {
                written = Written::Unknown;
            } else if is(b"CH") {
                with_changed = true;
            } else if is(b"INCR") {
                return Some(Written::UnlessNil);
            } else {
                break;
            }
        }
        Some(if with_changed && written == Written::Unknown { Written::UnlessZero } else { written })
    }

    /// What this answer says of whether its command has written.
    pub fn said_by(self, kind: Kind, body: &[u8]) -> Wrote {
        // within a transaction nothing is written before its EXEC
        if kind == Kind::Error || (kind == Kind::Scalar && body == b"QUEUED") {
            return Wrote::Unknown;
        }
        let has_written = match self {
            Written::UnlessNil => kind != Kind::Null,
            Written::UnlessZero => kind != Kind::Null && !matches!(body, b"0" | b"-1"),
            Written::Always => true,
            Written::IfNil => kind == Kind::Null,
            Written::Unknown => return Wrote::Unknown,
        };
        if has_written { Wrote::Yes } else { Wrote::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<Written> {
        Written::of(command.split(' ').map(|word| (word != "?").then_some(word.as_bytes())))
    }

    #[test]
    fn a_commands_words_say_what_its_answer_says() {
        for (command, expected) in [
            ("SET k v", Some(Written::UnlessNil)),
            ("set k v nx", Some(Written::UnlessNil)),
            ("SET k v EX 60 XX", Some(Written::UnlessNil)),
            ("SET GET NX", Some(Written::UnlessNil)),
            ("SET k v GET", Some(Written::Always)),
            ("SET k v GET PX ?", Some(Written::Always)),
            ("SET k v EX GET", Some(Written::UnlessNil)),
            ("SET k v KEEPTTL nx GET", Some(Written::IfNil)),
            ("SET k v XX GET", Some(Written::UnlessNil)),
            ("SET k v IFEQ NX", Some(Written::UnlessNil)),
            ("SET k v IFEQ NX GET", Some(Written::Unknown)),
            ("SET ? ? EX ?", Some(Written::UnlessNil)),
            ("SET k v ?", None),
            ("? k v", None),
            ("GETSET k v", Some(Written::Always)),
            ("SetNX k v", Some(Written::UnlessZero)),
            ("LPUSHX ? ?", Some(Written::UnlessZero)),
            ("LINSERT k BEFORE ? ?", Some(Written::UnlessZero)),
            ("ZADD k 1 xx", Some(Written::UnlessNil)),
            ("ZADD k XX 1 m", Some(Written::Unknown)),
            ("zadd k gt ch 1 m", Some(Written::UnlessZero)),
            ("ZADD k NX 1 m", Some(Written::UnlessZero)),
            ("ZADD k XX INCR 1 m", Some(Written::UnlessNil)),
            ("ZADD k ? m", None),
            ("GEOADD k XX 1 1 m", Some(Written::Unknown)),
            ("XADD k NOMKSTREAM * f v", Some(Written::UnlessNil)),
            ("SET", Some(Written::UnlessNil)),
            ("", Some(Written::UnlessNil)),
        ] {
            assert_eq!(of(command), expected, "{command}");
        }
        assert_eq!(Written::of(std::iter::empty()), Some(Written::UnlessNil));
    }

    #[test]
    fn an_answer_is_taken_at_its_word() {
        let said = |written: Written| {
            [(Kind::Null, ""), (Kind::Scalar, "0"), (Kind::Scalar, "-1"), (Kind::Scalar, "OK")]
                .map(|(kind, body)| written.said_by(kind, body.as_bytes()))
        };
        let (yes, no) = (Wrote::Yes, Wrote::No);
        assert_eq!(said(Written::UnlessNil), [no, yes, yes, yes]);
        assert_eq!(said(Written::UnlessZero), [no, no, no, yes]);
        assert_eq!(said(Written::Always), [yes; 4]);
        assert_eq!(said(Written::IfNil), [yes, no, no, no]);
        assert_eq!(said(Written::Unknown), [Wrote::Unknown; 4]);
        for written in [Written::UnlessNil, Written::UnlessZero, Written::Always, Written::IfNil] {
            assert_eq!(written.said_by(Kind::Error, b"ERR"), Wrote::Unknown);
            assert_eq!(written.said_by(Kind::Scalar, b"QUEUED"), Wrote::Unknown);
        }
    }
}
