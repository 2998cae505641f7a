//! The functions of expressions: one table, from which the parser, the checker's hints and the reference are made.

use std::cell::Cell;
use std::sync::Arc;

use super::choose::{self, EXPONENTIAL_DRAWS, EXPONENTIAL_NUMBERS, SCRAMBLED_RANKS};
use super::date::{date, epoch_ms};
use super::digest;
use super::eval::{
    Absent, Bytes, Function, Got, MADE_MAX, Machine, Made, NO_NUMBER, NO_NUMBER_TEXT, Number, TOO_LONG,
    argument, computed, constant_value, operand, whole,
};
use super::node::Node;
use super::zipf::{Table, YCSB_EXPONENT, Zipf};
use crate::slot::Value;
use crate::value;

thread_local! {
    /// Room for the key of a value that is made; it stays warm.
    static KEY_ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What is wrong where a value is wanted.
const NO_VALUE: Absent = Absent::Failed("not a whole value of value()");

/// What is wrong with a share, and with a weight.
const NO_SHARE: &str = "a share is from 0 to 1";
const NO_WEIGHT: &str = "a weight is 0 or more";

/// What is wrong with the bounds of random numbers, how many they are, how many are chosen from, and a length.
const REVERSED: &str = "empty range: the second number is below the first";
const NO_COUNT: &str = "a count is 0 or more";
const NO_NUMBERS: &str = "how many numbers to choose from is 1 or more";
const NO_LENGTH: &str = "a length is from 0 to 65536";

/// Longest text that one function makes on its own (`pad`, `random_text`), bytes.
const MADE_TEXT_MAX: i64 = 65_536;
const DAY_MS: i64 = 86_400_000;

/// Functions that take a name instead of a value; the parser handles them.
pub(crate) const NAMING: [(&str, &str, &str); 6] = [
    ("count", "count(NAME)", "counts the shared counter NAME up; the count before, 0 for the first caller"),
    (
        "next",
        "next(FEEDER) or next(FEEDER, COLUMN)",
        "a column of the feeder's next row (its first column if none is named)",
    ),
    (
        "inserted",
        "inserted(KEYS)",
        "the newest number of these keys whose insert, and those of all before it, were acknowledged",
    ),
    (
        "latest",
        "latest(KEYS) or latest(KEYS, exponent)",
        "one of the numbers up to that one, the newest most often: zipf() backwards from it",
    ),
    (
        "env",
        "env(NAME) or env(NAME, default)",
        "the environment variable NAME, read once when the scenario is; it is written down nowhere",
    ),
    (
        "file",
        "file('PATH')",
        "what a file holds, relative to the scenario, up to 16 MiB; read once when the scenario is",
    ),
];

/// Name of the function whose value stands in a request's path with its slashes.
pub(crate) const PATH: &str = "path";

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    let name = if name == "url_encode" { "url" } else { name };
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// All function names, for hints.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name).chain(NAMING.iter().map(|(name, ..)| *name))
}

const ANY: usize = 16;

macro_rules! functions {
    ($($name:literal $usage:literal $about:literal $min:literal ..= $max:tt $pure:ident $run:expr;)*) => {
        /// All of them.
        pub(crate) static FUNCTIONS: &[Function] = &[$(Function {
            name: $name, usage: $usage, about: $about,
            arguments_min: $min, arguments_max: $max, pure: functions!(@$pure), run: $run,
        }),*];
    };
    (@pure) => { true };
    (@varies) => { false };
}

functions! {
    "if" "if(condition, then, else)" "one of two values; the other is not evaluated" 3..=3 pure |m, a| {
        let condition = computed(m.eval(&a[0]))?;
        m.eval(if m.is_true(&condition) { &a[1] } else { &a[2] })
    };
    "exists" "exists(value)" "whether it is not missing" 1..=1 pure |m, a| {
        Ok(Got::Bool(m.eval(&a[0]).is_ok()))
    };
    "default" "default(value, …)" "the first that is not missing" 1..=ANY pure |m, a| {
        let mut made = Err(Absent::Said);
        for node in a {
            made = m.eval(node);
            if made.is_ok() {
                break;
            }
        }
        made
    };

    "random" "random(low, high)" "a random whole number, both bounds included" 2..=2 varies |m, a| {
        let (low, high) = (whole(m, &a[0])?, whole(m, &a[1])?);
        if high < low {
            return Err(Absent::Failed(REVERSED));
        }
        Ok(Got::Int(m.random.i64(low..=high)))
    };
    "pick" "pick(value, …)" "one of the values at random" 1..=ANY varies |m, a| {
        let index = m.random.usize(..a.len());
        m.eval(&a[index])
    };
    "random_text" "random_text(length)" "random letters and digits" 1..=1 varies |m, a| {
        let length = whole(m, &a[0])?;
        if !(0..=MADE_TEXT_MAX).contains(&length) {
            return Err(Absent::Failed(NO_LENGTH));
        }
        make(m, |m| {
            for _ in 0..length {
                let byte = m.random.alphanumeric() as u8;
                m.made.push(byte);
            }
        })
    };
    "random_numbers" "random_numbers(count, low, high)" "random whole numbers as one text, with spaces between" 3..=3 varies
        |m, a| {
        let (count, low, high) = (whole(m, &a[0])?, whole(m, &a[1])?, whole(m, &a[2])?);
        if high < low {
            return Err(Absent::Failed(REVERSED));
        }
        if count < 0 {
            return Err(Absent::Failed(NO_COUNT));
        }
        make(m, |m| {
            let begin = m.made.len();
            for number in 0..count {
                if m.made.len() - begin > MADE_TEXT_MAX as usize {
                    break;
                }
                if number > 0 {
                    m.made.push(b' ');
                }
                let random = m.random.i64(low..=high);
                m.made.extend_from_slice(itoa::Buffer::new().format(random).as_bytes());
            }
        })
    };
    "zipf" "zipf(n) or zipf(n, exponent)" "a whole number from 1 to n, small ones more often: k in proportion to 1/k^exponent, 0.99 where none is said" 1..=2 varies |m, a| {
        let n = numbers(m, &a[0])?;
        let exponent = real(m, a.get(1), YCSB_EXPONENT)?;
        Ok(Got::Int(Zipf::new(n as f64, exponent).pick(|| m.random.f64())))
    };
    "scrambled_zipf" "scrambled_zipf(n) or scrambled_zipf(n, exponent)" "the same with the popular numbers spread over all, as YCSB does it (docs/kv.md)" 1..=2 varies |m, a| {
        let n = numbers(m, &a[0])?;
        let exponent = real(m, a.get(1), YCSB_EXPONENT)?;
        Ok(Got::Int(choose::scrambled(Zipf::new(SCRAMBLED_RANKS, exponent).pick(|| m.random.f64()), n)))
    };
    "hotspot" "hotspot(n, share of numbers, share of draws)" "a whole number from 1 to n: one of the first with this share of all draws, evenly among them, otherwise one of the rest" 3..=3 varies |m, a| {
        let n = numbers(m, &a[0])?;
        let (numbers, draws) = (share(m, a.get(1), 0.0)?, share(m, a.get(2), 0.0)?);
        Ok(Got::Int(choose::hotspot(n, numbers, draws, m.random)))
    };
    "exponential" "exponential(n) or exponential(n, share of numbers, share of draws)" "a whole number from 1 to n, small ones exponentially more often; 0.95 of draws are in the first 6/7 where nothing is said" 1..=3 varies |m, a| {
        let n = numbers(m, &a[0])?;
        let (numbers, draws) = (share(m, a.get(1), EXPONENTIAL_NUMBERS)?, share(m, a.get(2), EXPONENTIAL_DRAWS)?);
        Ok(Got::Int(choose::exponential(n, draws, numbers, m.random)))
    };
    "weighted" "weighted(value, weight, …)" "one of up to 8 values, each in proportion to the weight behind it" 2..=ANY varies weighted;
    "hash" "hash(n)" "the whole number that n becomes by FNV-1a, 64 bits without sign, as in the names of YCSB's records" 1..=1 pure |m, a| {
        Ok(Got::Int(choose::hash(whole(m, &a[0])?)))
    };
    "value" "value(key, version, size)" "a text of so many bytes that says of which key and version it is, and shows any change (docs/kv.md)" 3..=3 pure |m, a| {
        let key = argument(m, &a[0])?;
        let (version, size) = (whole(m, &a[1])?, whole(m, &a[2])?);
        let size = usize::try_from(size).unwrap_or(0);
        let start = m.made.len();
        m.append(key);
        let key_end = m.made.len();
        // the key stands in front of the value, which is made of it in the same buffer
        let mut made = std::mem::take(&mut m.made);
        let mut room = KEY_ROOM.take();
        room.clear();
        room.extend_from_slice(&made[start..key_end]);
        made.truncate(start);
        let is_made = value::write(&room, u64::try_from(version).unwrap_or(0), size, &mut made);
        KEY_ROOM.set(room);
        m.made = made;
        match is_made {
            true => Ok(Got::Text(Bytes::Made(start, m.made.len()))),
            false => Err(Absent::Failed("the size does not fit: it takes 11 bytes beside key and version, and 16 MiB at most; or the key is no plain text")),
        }
    };
    "key_of" "key_of(value)" "the key of what value() made; none if it is not whole" 1..=1 pure |m, a| {
        let text = argument(m, &a[0])?;
        let told = value::read(m.bytes(&text)).ok_or(NO_VALUE)?;
        Ok(Got::Text(text.part(0, told.key.len())))
    };
    "version_of" "version_of(value)" "its version; none if it is not whole" 1..=1 pure |m, a| {
        let text = argument(m, &a[0])?;
        let told = value::read(m.bytes(&text)).ok_or(NO_VALUE)?;
        Ok(Got::Int(told.version as i64))
    };
    "is_value" "is_value(value, key)" "whether it is whole, and of this key" 2..=2 pure |m, a| {
        let (text, key) = (argument(m, &a[0])?, argument(m, &a[1])?);
        Ok(Got::Bool(value::read(m.bytes(&text)).is_some_and(|told| told.key == m.bytes(&key))))
    };
    "uuid" "uuid()" "a new random UUID (version 4)" 0..=0 varies |m, _| {
        let bytes = m.random.u128(..).to_le_bytes();
        let mut text = uuid::Uuid::encode_buffer();
        let text = uuid::Builder::from_random_bytes(bytes).into_uuid().hyphenated().encode_lower(&mut text);
        make(m, |m| m.made.extend_from_slice(text.as_bytes()))
    };

    "now" "now()" "milliseconds since 1970 UTC" 0..=0 varies |m, _| Ok(Got::Int(m.epoch_ms));
    "days" "days(n)" "n days in milliseconds" 1..=1 pure |m, a| scale(m, &a[0], DAY_MS);
    "hours" "hours(n)" "n hours in milliseconds" 1..=1 pure |m, a| scale(m, &a[0], 3_600_000);
    "minutes" "minutes(n)" "n minutes in milliseconds" 1..=1 pure |m, a| scale(m, &a[0], 60_000);
    "seconds" "seconds(n)" "n seconds in milliseconds" 1..=1 pure |m, a| scale(m, &a[0], 1_000);
    "date" "date(ms, format)" "a moment as text in UTC; the format is strftime's: '%Y-%m-%d'" 2..=2 pure date;
    "epoch_ms" "epoch_ms(text, format)" "the moment that a date in this strftime format names, UTC" 2..=2 pure
        epoch_ms;

    "number" "number(value)" "the number that a text spells; missing if none" 1..=1 pure |m, a| {
        let what_is_none = |absent| if absent == NO_NUMBER { Absent::Nothing(NO_NUMBER_TEXT) } else { absent };
        operand(m, &a[0]).map(number).map_err(what_is_none)
    };
    "text" "text(value)" "the value as text" 1..=1 pure |m, a| {
        Ok(Got::Text(argument(m, &a[0])?))
    };
    "round" "round(x)" "the nearest whole number" 1..=1 pure |m, a| rounded(m, &a[0], f64::round);
    "floor" "floor(x)" "the next whole number below" 1..=1 pure |m, a| rounded(m, &a[0], f64::floor);
    "ceil" "ceil(x)" "the next whole number above" 1..=1 pure |m, a| rounded(m, &a[0], f64::ceil);
    "abs" "abs(x)" "without its sign" 1..=1 pure |m, a| Ok(match operand(m, &a[0])? {
        Number::Int(value) => Got::Int(value.saturating_abs()),
        Number::Real(value) => Got::Real(value.abs()),
    });
    "min" "min(x, …)" "the smallest number" 1..=ANY pure |m, a| extreme(m, a, |new, best| new < best);
    "max" "max(x, …)" "the largest number" 1..=ANY pure |m, a| extreme(m, a, |new, best| new > best);

    "len" "len(value)" "how many items a list has, or characters a text; 0 if missing" 1..=1 pure |m, a| {
        Ok(Got::Int(match m.eval(&a[0]) {
            Err(failed @ Absent::Failed(_)) => return Err(failed),
            Err(_) => 0,
            Ok(Got::List(list)) => list.len() as i64,
            Ok(got) => {
                let text = m.textual(got);
                // Bytes that begin a character.
                m.bytes(&text).iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as i64
            }
        }))
    };
    "first" "first(list)" "the first item" 1..=1 pure |m, a| {
        let list = m.eval(&a[0])?;
        m.item(list, Got::Int(0))
    };
    "last" "last(list)" "the last item" 1..=1 pure |m, a| {
        let list = m.eval(&a[0])?;
        m.item(list, Got::Int(-1))
    };
    "join" "join(list, separator)" "the items as one text" 2..=2 pure |m, a| {
        let list = m.eval(&a[0])?;
        let separator = argument(m, &a[1])?;
        let Got::List(list) = list else { return Ok(list) };
        make(m, |m| {
            for index in 0..list.len() {
                if index > 0 {
                    m.append(separator);
                }
                m.made.extend_from_slice(list.get(index).unwrap_or_default());
            }
        })
    };
    "contains" "contains(where, what)" "whether a list has this item, or a text this part" 2..=2 pure |m, a| {
        let position = m.eval(&a[0])?;
        let what = argument(m, &a[1])?;
        if let Got::List(list) = position {
            let what = m.bytes(&what);
            return Ok(Got::Bool((0..list.len()).any(|index| list.get(index) == Some(what))));
        }
        let position = m.textual(position);
        Ok(Got::Bool(find_bytes(m.bytes(&position), m.bytes(&what)).is_some()))
    };

    "concat" "concat(value, …)" "the values as one text" 1..=ANY pure |m, a| {
        // Arguments first: what they make must not stand in the middle of the result.
        let mut texts = [Bytes::Borrowed(b""); ANY];
        for (text, node) in texts.iter_mut().zip(a) {
            *text = argument(m, node)?;
        }
        make(m, |m| texts.iter().for_each(|text| m.append(*text)))
    };
    "upper" "upper(text)" "in capitals (ASCII)" 1..=1 pure |m, a| mapped(m, &a[0], <[u8]>::make_ascii_uppercase);
    "lower" "lower(text)" "in small letters (ASCII)" 1..=1 pure |m, a| {
        mapped(m, &a[0], <[u8]>::make_ascii_lowercase)
    };
    "trim" "trim(text)" "without white space around it" 1..=1 pure |m, a| {
        let text = argument(m, &a[0])?;
        let bytes = m.bytes(&text);
        let start = bytes.len() - bytes.trim_ascii_start().len();
        let length = bytes.trim_ascii().len();
        Ok(Got::Text(text.part(start, start + length)))
    };
    "before" "before(text, separator)" "what stands before the first separator; all if there is none" 2..=2 pure
        |m, a| cut(m, a, |at, _, length| (0, at.unwrap_or(length)));
    "after" "after(text, separator)" "what stands after the first separator; nothing if there is none" 2..=2 pure
        |m, a| cut(m, a, |at, width, length| (at.map_or(length, |at| at + width), length));
    "part" "part(text, separator, index)" "piece number index (from 0) between separators; missing if there is none"
        3..=3 pure part;
    "slice" "slice(text, start, end)" "bytes from start up to (not including) end" 3..=3 pure |m, a| {
        let text = argument(m, &a[0])?;
        let (start, end) = (whole(m, &a[1])?, whole(m, &a[2])?);
        let length = m.bytes(&text).len();
        let within = |at: i64| at.clamp(0, length as i64) as usize;
        let (start, end) = (within(start), within(end));
        Ok(Got::Text(text.part(start, end.max(start))))
    };
    "replace" "replace(text, old, new)" "with every old replaced by new" 3..=3 pure replace;
    "base64" "base64(text)" "in base64" 1..=1 pure |m, a| digest::base64(m, &a[0]);
    "base64url" "base64url(text)" "in the base64 of URLs and tokens, without padding" 1..=1 pure |m, a| {
        digest::base64url(m, &a[0])
    };
    "base64_decode" "base64_decode(text)" "what a text in base64 says, in either alphabet, with or without padding" 1..=1 pure
        |m, a| digest::base64_decode(m, &a[0]);
    "sha256" "sha256(text) or sha256(text, form)" "its SHA-256; the form is 'hex' (default), 'base64', 'base64url' or 'raw'" 1..=2 pure
        |m, a| digest::sha256(m, a);
    "hmac" "hmac(key, text) or hmac(key, text, form)" "the signature of a text by HMAC with SHA-256, in the same forms" 2..=3 pure
        |m, a| digest::hmac(m, a);
    "pad" "pad(number, width)" "with zeros in front up to this width" 2..=2 pure |m, a| {
        let text = argument(m, &a[0])?;
        let width = whole(m, &a[1])?;
        padded(m, text, width_of(width))
    };
    "starts_with" "starts_with(text, start)" "whether it begins so" 2..=2 pure |m, a| {
        let (text, start) = (argument(m, &a[0])?, argument(m, &a[1])?);
        Ok(Got::Bool(m.bytes(&text).starts_with(m.bytes(&start))))
    };
    "ends_with" "ends_with(text, end)" "whether it ends so" 2..=2 pure |m, a| {
        let (text, end) = (argument(m, &a[0])?, argument(m, &a[1])?);
        Ok(Got::Bool(m.bytes(&text).ends_with(m.bytes(&end))))
    };
    "path" "path(text)" "the text; in a request's path it keeps its slashes and its query" 1..=1 pure |m, a| {
        Ok(Got::Text(argument(m, &a[0])?))
    };
    "url" "url(text) or url_encode(text)" "percent-encoded for a URL" 1..=1 pure |m, a| {
        let text = argument(m, &a[0])?;
        make(m, |m| {
            // The text may lie in the same buffer, so it is taken byte by byte.
            let length = m.bytes(&text).len();
            for index in 0..length {
                let byte = m.bytes(&text)[index];
                crate::encoding::push_url_byte(byte, &mut m.made);
            }
        })
    };
}

/// An argument as a number, or what it is where there is none.
fn real<'e>(m: &mut Machine<'e>, node: Option<&'e Node>, default: f64) -> Result<f64, Absent> {
    node.map_or(Ok(default), |node| operand(m, node).map(Number::as_f64))
}

/// An argument as a share, or what it is where there is none.
fn share<'e>(m: &mut Machine<'e>, node: Option<&'e Node>, default: f64) -> Result<f64, Absent> {
    let share = real(m, node, default)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(Absent::Failed(NO_SHARE)) }
}

fn weighted<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let (pairs, []) = nodes.as_chunks::<2>() else {
        return Err(Absent::Failed("each value needs a weight behind it"));
    };
    let mut weights = [0.0; ANY / 2];
    for (weight, [_, node]) in weights.iter_mut().zip(pairs) {
        *weight = real(m, Some(node), 0.0)?;
        if *weight < 0.0 {
            return Err(Absent::Failed(NO_WEIGHT));
        }
    }
    let mut left = m.random.f64() * weights.iter().sum::<f64>();
    let mut drawn = &pairs[0][0];
    for (weight, [value, _]) in weights.iter().zip(pairs).filter(|(weight, _)| **weight > 0.0) {
        drawn = value;
        if left < *weight {
            break;
        }
        left -= weight;
    }
    m.eval(drawn)
}

fn number<'e>(number: Number) -> Got<'e> {
    match number {
        Number::Int(value) => Got::Int(value),
        Number::Real(value) => Got::Real(value),
    }
}

/// A text that `write` appends to the machine's buffer.
/// The width that a text is padded to, where it was said so.
fn width_of(said: i64) -> usize {
    said.clamp(0, MADE_TEXT_MAX) as usize
}

/// A text with zeros in front up to this width.
pub(super) fn padded<'e>(m: &mut Machine<'e>, text: Bytes<'e>, width: usize) -> Made<'e> {
    let missing = width.saturating_sub(m.bytes(&text).len());
    make(m, |m| {
        let zeros = m.made.len() + missing;
        m.made.resize(zeros, b'0');
        m.append(text);
    })
}

pub(super) fn make<'e>(m: &mut Machine<'e>, write: impl FnOnce(&mut Machine<'e>)) -> Made<'e> {
    let start = m.made.len();
    write(m);
    if m.is_full || m.made.len() > MADE_MAX {
        m.is_full = false;
        m.made.truncate(start);
        return Err(TOO_LONG);
    }
    Ok(Got::Text(Bytes::Made(start, m.made.len())))
}

fn mapped<'e>(m: &mut Machine<'e>, node: &'e Node, change: fn(&mut [u8])) -> Made<'e> {
    let text = argument(m, node)?;
    make(m, |m| {
        let start = m.made.len();
        m.append(text);
        change(&mut m.made[start..]);
    })
}

fn scale<'e>(m: &mut Machine<'e>, node: &'e Node, unit_ms: i64) -> Made<'e> {
    Ok(Got::Int(match operand(m, node)? {
        Number::Int(count) => count.saturating_mul(unit_ms),
        Number::Real(count) => (count * unit_ms as f64) as i64,
    }))
}

fn rounded<'e>(m: &mut Machine<'e>, node: &'e Node, round: fn(f64) -> f64) -> Made<'e> {
    Ok(Got::Int(match operand(m, node)? {
        Number::Int(value) => value,
        Number::Real(value) => round(value) as i64,
    }))
}

fn extreme<'e>(m: &mut Machine<'e>, nodes: &'e [Node], better: fn(f64, f64) -> bool) -> Made<'e> {
    let mut best: Option<Number> = None;
    for node in nodes {
        let new = operand(m, node)?;
        if best.is_none_or(|best| better(new.as_f64(), best.as_f64())) {
            best = Some(new);
        }
    }
    best.map(number).ok_or(NO_NUMBER)
}

fn find_bytes(position: &[u8], what: &[u8]) -> Option<usize> {
    if what.is_empty() {
        return Some(0);
    }
    position.windows(what.len()).position(|window| window == what)
}

type Bounds = fn(Option<usize>, usize, usize) -> (usize, usize);

fn cut<'e>(m: &mut Machine<'e>, nodes: &'e [Node], bounds: Bounds) -> Made<'e> {
    let (text, separator) = (argument(m, &nodes[0])?, argument(m, &nodes[1])?);
    let (bytes, separator) = (m.bytes(&text), m.bytes(&separator));
    let (start, end) = bounds(find_bytes(bytes, separator), separator.len(), bytes.len());
    Ok(Got::Text(text.part(start, end)))
}

fn part<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let (text, separator) = (argument(m, &nodes[0])?, argument(m, &nodes[1])?);
    let index = whole(m, &nodes[2])?;
    let (bytes, separator) = (m.bytes(&text), m.bytes(&separator));
    let mut start = 0;
    let mut left = index;
    loop {
        let next = if separator.is_empty() { None } else { find_bytes(&bytes[start..], separator) };
        match next {
            Some(at) if left == 0 => return Ok(Got::Text(text.part(start, start + at))),
            Some(at) => start += at + separator.len(),
            None if left == 0 => return Ok(Got::Text(text.part(start, bytes.len()))),
            None => return Err(Absent::Nothing("the text has no such piece")),
        }
        left -= 1;
    }
}

fn replace<'e>(m: &mut Machine<'e>, nodes: &'e [Node]) -> Made<'e> {
    let text = argument(m, &nodes[0])?;
    let old = argument(m, &nodes[1])?;
    let new = argument(m, &nodes[2])?;
    let width = m.bytes(&old).len();
    if width == 0 {
        return Ok(Got::Text(text));
    }
    make(m, |m| {
        let length = m.bytes(&text).len();
        let mut start = 0;
        while let Some(at) = find_bytes(&m.bytes(&text)[start..], m.bytes(&old)) {
            m.append(text.part(start, start + at));
            m.append(new);
            start += at + width;
        }
        m.append(text.part(start, length));
    })
}

/// How many numbers are chosen from.
fn numbers<'e>(m: &mut Machine<'e>, node: &'e Node) -> Result<i64, Absent> {
    let n = whole(m, node)?;
    if n < 1 { Err(Absent::Failed(NO_NUMBERS)) } else { Ok(n) }
}

/// Evaluates a call whose arguments are all constants, and makes ready what has some that are.
pub(crate) fn fold(function: &'static Function, arguments: Box<[Node]>) -> Node {
    if let Some(ready) = ready(function.name, &arguments) {
        return ready;
    }
    let constant = function.pure && arguments.iter().all(|node| node.as_literal().is_some());
    let call = Node::Call(function, arguments);
    if constant { constant_value(&call).unwrap_or(call) } else { call }
}

/// A choice that a constant decides; a distribution whose shape is constant, or a width.
fn ready(name: &str, arguments: &[Node]) -> Option<Node> {
    let exponent = arguments.get(1).map_or(Some(YCSB_EXPONENT), constant_number);
    let table = |n, exponent| Table::new(n, exponent).map(Arc::new);
    match name {
        // what a setting decides is decided once
        "if" => match arguments[0].as_literal()? {
            Value::Missing | Value::Bool(false) | Value::Int(0) | Value::Text(b"" | b"false" | b"0") => {
                Some(arguments[2].clone())
            }
            Value::Real(0.0) => Some(arguments[2].clone()),
            _ => Some(arguments[1].clone()),
        },
        "random" => {
            let (low, high) = (constant_whole(&arguments[0])?, constant_whole(&arguments[1])?);
            (low <= high).then_some(Node::Uniform { low, high })
        }
        "pad" if arguments[0].as_literal().is_none() => {
            let width = width_of(constant_whole(&arguments[1])?);
            Some(Node::Pad { inner: Box::new(arguments[0].clone()), width })
        }
        "zipf" => table(constant_number(&arguments[0])?.max(1.0).floor(), exponent?).map(Node::Zipf),
        "scrambled_zipf" => {
            let ranks = table(SCRAMBLED_RANKS, exponent?)?;
            Some(Node::Scrambled { ranks, n: Box::new(arguments[0].clone()) })
        }
        _ => None,
    }
}

/// The arguments with which a chooser can never choose, as they are constant: the index of each, and why.
pub(super) fn never_right(name: &str, arguments: &[Node]) -> Vec<(usize, &'static str)> {
    let reason = |index: usize, number: f64| match (name, index) {
        ("zipf" | "scrambled_zipf" | "hotspot" | "exponential", 0) if number < 1.0 => {
            Some("this is always below 1: there is no number to choose")
        }
        ("hotspot" | "exponential", 1 | 2) if !(0.0..=1.0).contains(&number) => Some(NO_SHARE),
        ("weighted", index) if index % 2 == 1 && number < 0.0 => Some(NO_WEIGHT),
        ("random_text", 0) if !(0.0..=MADE_TEXT_MAX as f64).contains(&number) => Some(NO_LENGTH),
        ("random_numbers", 0) if number < 0.0 => Some(NO_COUNT),
        _ => None,
    };
    // bounds of which both are constant
    let reversed = match name {
        "random" => Some(1),
        "random_numbers" => Some(2),
        _ => None,
    };
    let reversed = reversed.filter(|high: &usize| {
        let bounds = arguments
            .get(high - 1)
            .and_then(constant_whole)
            .zip(arguments.get(*high).and_then(constant_whole));
        bounds.is_some_and(|(low, high)| high < low)
    });
    let numbers = arguments.iter().map(constant_number).enumerate();
    let wrong = numbers.filter_map(|(index, number)| Some((index, reason(index, number?)?)));
    wrong.chain(reversed.map(|high| (high, REVERSED))).collect()
}

/// `latest(KEYS)` of so many numbers.
pub(crate) fn latest(keys: usize, most: u64, exponent: Option<&Node>) -> Result<Node, String> {
    let exponent = exponent.map_or(Some(YCSB_EXPONENT), constant_number);
    let exponent = exponent.ok_or("the exponent of latest() is the same every time")?;
    let ranks = Table::new(most.max(1) as f64, exponent).ok_or("there are too many numbers")?;
    Ok(Node::Latest { keys, ranks: Arc::new(ranks) })
}

/// The number that a node is, or its text spells, every time.
fn constant(node: &Node) -> Option<Number> {
    match node {
        Node::Int(value) => Some(Number::Int(*value)),
        Node::Real(value) => Some(Number::Real(*value)),
        Node::Text(text) => Number::parse(text),
        _ => None,
    }
}

fn constant_number(node: &Node) -> Option<f64> {
    constant(node).map(Number::as_f64)
}

fn constant_whole(node: &Node) -> Option<i64> {
    constant(node).map(Number::as_i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_every_function() {
        let reference = include_str!("../../../../docs/scenario.md");
        let rows = FUNCTIONS
            .iter()
            .map(|f| (f.usage, f.about))
            .chain(NAMING.map(|(_, usage, about)| (usage, about)));
        for (usage, about) in rows {
            let row = format!("| `{usage}` | {about} |");
            assert!(reference.contains(&row), "docs/scenario.md lacks the row\n{row}");
        }
    }

    #[test]
    fn functions_are_found_by_their_own_name_only() {
        for function in FUNCTIONS {
            assert!(std::ptr::eq(find(function.name).unwrap(), function), "{} twice", function.name);
            assert!(function.usage.starts_with(&format!("{}(", function.name)));
        }
    }
}
