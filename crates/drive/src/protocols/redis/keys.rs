//! Which words of a command are keys, as `COMMAND DOCS` of Redis 7 tells it; written down here, so that no server need be
//! asked, and servers that do not know the question are driven, too.

use tidemark_wire::resp::words;

/// Where a command's keys stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyWords {
    /// It has none: any server may answer.
    None,
    /// From this word to that one (from the end where it is negative), each one of so many.
    Range(usize, isize, usize),
    /// This word says how many there are behind it.
    Counted(usize),
    /// The first word, and then as `Counted`.
    OneAndCounted(usize),
    /// The first half of what stands behind `STREAMS`.
    Streams,
}

use KeyWords::{Counted, None as Keyless, OneAndCounted, Range, Streams};

const FIRST: KeyWords = Range(1, 1, 1);
const ALL: KeyWords = Range(1, -1, 1);

/// Commands whose keys are not just the first word.
const OTHERS: &[(KeyWords, &str)] = &[
    (
        Keyless,
        "ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DBSIZE DISCARD ECHO EXEC FAILOVER FLUSHALL FLUSHDB \
         FUNCTION HELLO INFO KEYS LASTSAVE LATENCY LOLWUT MODULE MULTI PING PUBLISH PUBSUB QUIT RANDOMKEY READONLY READWRITE \
         REPLICAOF RESET ROLE SAVE SCAN SCRIPT SELECT SHUTDOWN SLAVEOF SLOWLOG SWAPDB TIME UNWATCH WAIT WAITAOF",
    ),
    (
        ALL,
        "DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE TOUCH UNLINK WATCH",
    ),
    (Range(1, -1, 2), "MSET MSETNX"),
    (Range(1, -2, 1), "BLPOP BRPOP BZPOPMAX BZPOPMIN"),
    (
        Range(1, 2, 1),
        "BLMOVE BRPOPLPUSH COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE",
    ),
    (Range(2, -1, 1), "BITOP"),
    (Range(2, 2, 1), "MEMORY OBJECT XGROUP XINFO"),
    (Range(3, 3, 1), "MIGRATE"),
    (Counted(1), "LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION"),
    (Counted(2), "BLMPOP BZMPOP EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO"),
    (OneAndCounted(2), "ZDIFFSTORE ZINTERSTORE ZUNIONSTORE"),
    (Streams, "XREAD XREADGROUP"),
];

impl KeyWords {
    /// Of the command of this name. One that is not known here has its key as most have: right behind it.
    pub fn of(name: &[u8]) -> KeyWords {
        let Ok(name) = std::str::from_utf8(name) else { return FIRST };
        let is_one =
            |(_, names): &&(KeyWords, &str)| names.split(' ').any(|one| one.eq_ignore_ascii_case(name));
        OTHERS.iter().find(is_one).map_or(FIRST, |(keys, _)| *keys)
    }

    /// Tells the keys of a written command, in order.
    pub fn tell<'w>(self, command: &'w [u8], tell: &mut dyn FnMut(&'w [u8])) {
        let number = |at: usize| -> usize {
            let text = words(command).nth(at).and_then(|word| std::str::from_utf8(word).ok());
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        match self {
            Keyless => {}
            // nearly all of them
            Range(first, last, _) if last == first as isize => {
                words(command).nth(first).into_iter().for_each(tell)
            }
            Range(first, last, step) => {
                let count = words(command).count();
                let end = if last < 0 { count.saturating_add_signed(last + 1) } else { last as usize + 1 };
                let keys = words(command).enumerate().take(end).skip(first).step_by(step);
                keys.for_each(|(_, key)| tell(key));
            }
            Counted(at) => words(command).skip(at + 1).take(number(at)).for_each(tell),
            OneAndCounted(at) => {
                words(command).skip(1).take(1).for_each(&mut *tell);
                words(command).skip(at + 1).take(number(at)).for_each(tell);
            }
            Streams => {
                let Some(at) = words(command).position(|word| word.eq_ignore_ascii_case(b"STREAMS")) else {
                    return;
                };
                let behind = words(command).count() - at - 1;
                words(command).skip(at + 1).take(behind / 2).for_each(tell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_wire::resp::write_command;

    fn keys(command: &str) -> Vec<String> {
        let given: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let mut written = Vec::new();
        write_command(&given, &mut written);
        let mut keys = Vec::new();
        KeyWords::of(given[0])
            .tell(&written, &mut |key| keys.push(String::from_utf8_lossy(key).into_owned()));
        keys
    }

    #[test]
    fn keys_are_found_in_each_form() {
        for (command, expected) in [
            ("GET k", "k"),
            ("get k", "k"),
            ("PING", ""),
            ("DEL a b c", "a b c"),
            ("mset a 1 b 2", "a b"),
            ("BLPOP a b 5", "a b"),
            ("RENAME a b", "a b"),
            ("BITOP AND d a b", "d a b"),
            ("OBJECT ENCODING k", "k"),
            ("MEMORY DOCTOR", ""),
            ("EVAL return 2 a b x", "a b"),
            ("EVAL return 0 x", ""),
            ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b"),
            ("ZUNION 2 a b", "a b"),
            ("XREAD COUNT 2 streams a b 0 0", "a b"),
            ("XREAD COUNT 2", ""),
            ("EVAL return 99999999999999999999", ""),
            ("FT.SEARCH index *", "index"),
        ] {
            assert_eq!(keys(command).join(" "), expected, "{command}");
        }
    }
}
