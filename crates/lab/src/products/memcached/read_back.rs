//! A memcached as what it holds: the value of every key that matches a pattern. Keys are listed by its crawler, which goes
//! over all of its hash table; then each is asked for, several without a wait for each answer.

use std::time::Duration;

use tidemark_drive::Stream;
use tidemark_wire::http1::Decoded;
use tidemark_wire::memcached::{Form, Kind, MAX_LINE_BYTES, ReplyDecoder, ReplyError, ReplyLimits};

use super::stats;
use crate::target::{each_server, speak};
use crate::verify::answers::{Answers, Matching, each_readable, failed, patiently};
use crate::verify::search::{Bounds, Unfinished};

const SERVER: &str = "memcached";
const LIST: &[u8] = b"lru_crawler metadump hash\r\n";
/// Values that are asked for at once.
const VALUES_AT_ONCE: usize = 64;
/// Most keys: each is remembered.
const KEYS_MAX: usize = 10_000_000;
/// Most bytes of a key, by the protocol.
const KEY_BYTES: usize = 250;
/// Most bytes of a value.
const VALUE_BYTES: usize = 256 << 20;
/// Longest time without a byte of an answer.
const SILENCE: Duration = Duration::from_secs(30);
/// How often keys are listed where fewer are told than it holds, or its crawler is busy, and the wait in between.
const LISTINGS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// Reads the items of a server that match.
pub fn read(of: &Matching<'_>, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
    let servers = patiently(SERVER, bounds, || each_server(of.target, SILENCE))?;
    let (mut matching, mut others) = (0, Vec::new());
    each_readable(
        &servers,
        |server| server.address.to_string(),
        &of.unread,
        |server| {
            let keys = patiently(SERVER, bounds, || {
                speak(&mut server.clone(), SILENCE, |stream| keys(stream, bounds))
            })??;
            let (wanted, rest): (Vec<_>, Vec<_>) =
                keys.into_iter().partition(|key| matches(of.pattern.as_bytes(), key));
            matching += wanted.len();
            others.extend(rest.into_iter().take(1));
            patiently(SERVER, bounds, || {
                speak(&mut server.clone(), SILENCE, |stream| values(stream, &wanted, bounds, visit))
            })?
        },
    )?;
    if matching == 0 {
        let _ = of.unmatched.set(match others.first() {
            Some(key) => format!("there are others, \"{}\" for example", String::from_utf8_lossy(key)),
            None => "it holds nothing".into(),
        });
    }
    Ok(())
}

/// All keys, each once. Items that have expired are counted by the server and not listed, so where fewer are listed than
/// counted it is asked again, LISTINGS times at most.
fn keys(stream: &mut dyn Stream, bounds: &Bounds) -> Result<Vec<Vec<u8>>, Unfinished> {
    let held = stats(stream).map_err(|error| failed(SERVER, "no statistics", error))?;
    let held: usize = held.get("curr_items").and_then(|count| count.parse().ok()).unwrap_or(0);
    let mut answers = Answers::new(SERVER, stream);
    let (mut keys, mut was_listed) = (Vec::new(), false);
    for listing in 0..LISTINGS {
        if listing > 0 {
            bounds.sleep(PAUSE)?;
        }
        let is_listed = list(&mut answers, bounds, &mut keys)?;
        was_listed |= is_listed;
        if is_listed && keys.len() >= held {
            break;
        }
    }
    if !was_listed {
        return Err(failed(SERVER, "its keys cannot be listed", "its crawler is busy"));
    }
    Ok(keys)
}

/// Adds the keys that it lists now; false where its crawler is busy.
fn list(answers: &mut Answers<'_>, bounds: &Bounds, keys: &mut Vec<Vec<u8>>) -> Result<bool, Unfinished> {
    answers.ask(LIST)?;
    let mut lines = Lines::default();
    let before = keys.len();
    let mut came = Ok(true);
    let (mut too_long, mut too_many) = (None, false);
    answers.take(bounds, |received| {
        lines.each(received, |line| {
            if let Some(rest) = line.strip_prefix(b"key=") {
                let key = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
                let key: Vec<u8> = percent_encoding::percent_decode(key).collect();
                if key.len() > KEY_BYTES {
                    too_long = Some(key.len());
                    return true;
                }
                keys.push(key);
                too_many = keys.len() - before > KEYS_MAX;
                return too_many;
            }
            match line {
                b"END" => {}
                line if line.starts_with(b"BUSY") => came = Ok(false),
                line => came = Err(String::from_utf8_lossy(line).into_owned()),
            }
            true
        })
    })?;
    if let Some(bytes) = too_long {
        let why =
            format!("it lists one of {bytes} bytes, and the protocol has none of more than {KEY_BYTES}");
        return Err(failed(SERVER, "its keys cannot be listed", why));
    }
    keys.sort_unstable();
    keys.dedup();
    if too_many || keys.len() > KEYS_MAX {
        return Err(failed(SERVER, "too much to read", format!("there are more than {KEYS_MAX} keys")));
    }
    came.map_err(|words| {
        let why = format!(
            "it answers \"{words}\" to `lru_crawler metadump hash`, which memcached 1.6 and later know"
        );
        failed(SERVER, "its keys cannot be listed", why)
    })
}

/// Shows what these keys hold.
fn values(
    stream: &mut dyn Stream,
    keys: &[Vec<u8>],
    bounds: &Bounds,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfinished> {
    let mut answers = Answers::new(SERVER, stream);
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: VALUE_BYTES });
    let mut question = Vec::new();
    for keys in keys.chunks(VALUES_AT_ONCE) {
        question.clear();
        for key in keys {
            question.extend_from_slice(&[b"get ", key.as_slice(), b"\r\n"].concat());
        }
        answers.ask(&question)?;
        for key in keys {
            decoder.start(Form::Values, key, true);
            answers.take(bounds, |received| decoder.decode(received))?;
            match decoder.kind() {
                Kind::Fine => visit(decoder.body()),
                // it has expired meanwhile, or had to give way
                Kind::Miss | Kind::NotStored => {}
                Kind::Error => {
                    let words = String::from_utf8_lossy(decoder.body()).into_owned();
                    return Err(failed(SERVER, "the server answered", words));
                }
            }
        }
    }
    Ok(())
}

/// Takes lines from bytes as they come.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// Hands lines over until one is the last (`take` says so) or there is none; what is not whole is kept.
    fn each(&mut self, received: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> Result<Decoded, ReplyError> {
        let mut consumed = 0;
        for line in received.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(line);
            consumed += line.len();
            if self.0.len() > MAX_LINE_BYTES {
                return Err(ReplyError::LineTooLong);
            }
            if self.0.ends_with(b"\n") {
                let is_last = take(self.0.trim_ascii_end());
                self.0.clear();
                if is_last {
                    return Ok(Decoded { consumed, complete: true });
                }
            }
        }
        Ok(Decoded { consumed, complete: false })
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any bytes and `?` for one.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // behind the last star, and where what it stands for ends
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((behind, until)) = star else { return false };
                star = Some((behind, until + 1));
                (p, t) = (behind, until + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, text, is_so) in [
            ("*", "", true),
            ("*", "a", true),
            ("k:*", "k:1", true),
            ("k:*", "l:1", false),
            ("k:?", "k:12", false),
            ("*a*b", "xaxxbab", true),
            ("*a*b", "xaxxba", false),
            ("ab", "abc", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), is_so, "{pattern} {text}");
        }
    }

    /// Answers with this, whatever it is asked.
    struct Says(io::Cursor<Vec<u8>>);

    impl io::Read for Says {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            io::Read::read(&mut self.0, buffer)
        }
    }

    impl io::Write for Says {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_key_that_is_too_long_ends_the_list() {
        let listed = |bytes: usize| {
            let mut stream =
                Says(io::Cursor::new(format!("key={} exp=-1\r\nEND\r\n", "k".repeat(bytes)).into()));
            let mut keys = Vec::new();
            let bounds = Bounds::new(Duration::from_secs(9));
            let is_listed = list(&mut Answers::new(SERVER, &mut stream), &bounds, &mut keys);
            is_listed.map(|is_listed| (is_listed, keys.len())).map_err(|error| error.to_string())
        };
        assert_eq!(listed(KEY_BYTES), Ok((true, 1)));
        let told = listed(KEY_BYTES + 1).unwrap_err();
        assert!(told.contains("it lists one of 251 bytes"), "{told}");
    }

    #[test]
    fn a_list_is_read_however_it_comes() {
        let listed = b"key=a%20b exp=-1 la=5\r\nkey=c exp=-1\r\nEND\r\n";
        for cut in 0..listed.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            let mut feed = |bytes: &[u8]| {
                lines
                    .each(bytes, |line| {
                        seen.push(String::from_utf8_lossy(line).into_owned());
                        line == b"END"
                    })
                    .unwrap()
            };
            let first = feed(&listed[..cut]);
            assert_eq!(first, Decoded { consumed: cut, complete: false });
            assert_eq!(feed(&listed[cut..]), Decoded { consumed: listed.len() - cut, complete: true });
            assert_eq!(seen, ["key=a%20b exp=-1 la=5", "key=c exp=-1", "END"], "{cut}");
        }
    }
}
