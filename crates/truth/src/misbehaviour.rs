//! What can be wrong with an answer, and for which requests.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;

use crate::delay::milliseconds;

/// The answer as it should be.
const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What is wrong with an answer. In brackets is how it is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misbehaviour {
    /// Nothing (`none`).
    None,
    /// It never comes; the connection stays open, and what is asked on it later is answered (`silence`).
    Silence,
    /// The server forgets the connection without a word: from this request on it neither reads nor writes there
    /// (`half-open`).
    HalfOpen,
    /// The server ends its direction of the connection in place of an answer, and goes on to read (`half-close`).
    HalfClose,
    /// The connection is reset in place of an answer (`reset`).
    Reset,
    /// Half of the answer, then the connection is reset (`reset-midway`).
    ResetMidway,
    /// The connection is closed in place of an answer (`close`).
    Close,
    /// Half of the answer, then the connection is closed (`half-answer`).
    HalfAnswer,
    /// The length that the answer names is more than what comes; the connection stays open (`too-long`).
    LengthTooLong,
    /// The length that the answer names is less than what comes (`too-short`).
    LengthTooShort,
    /// Bytes that are no HTTP (`not-http`).
    NotHttp,
    /// All is well but the content: `no` in place of `ok` (`wrong-body`).
    WrongBody,
    /// Another status, 200 to 599 (`status:500`).
    Status(u16),
    /// As it should be, so much later than without (`late:300ms`).
    Late(Duration),
    /// As it should be, byte by byte, the last one so much later than the first (`drip:2s`). Ask for nothing else on the
    /// connection meanwhile.
    Drip(Duration),
}

/// Those without a value of their own, as text.
const WORDS: [(&str, Misbehaviour); 12] = [
    ("none", Misbehaviour::None),
    ("silence", Misbehaviour::Silence),
    ("half-open", Misbehaviour::HalfOpen),
    ("half-close", Misbehaviour::HalfClose),
    ("reset", Misbehaviour::Reset),
    ("reset-midway", Misbehaviour::ResetMidway),
    ("close", Misbehaviour::Close),
    ("half-answer", Misbehaviour::HalfAnswer),
    ("too-long", Misbehaviour::LengthTooLong),
    ("too-short", Misbehaviour::LengthTooShort),
    ("not-http", Misbehaviour::NotHttp),
    ("wrong-body", Misbehaviour::WrongBody),
];

impl Misbehaviour {
    /// A list in which exactly `failing` of `of` have this fault and the others none, spread evenly: what
    /// [`Behaviour::faults`](crate::Behaviour::faults) takes.
    ///
    /// ```
    /// use tidemark_truth::Misbehaviour::{self, None, Reset};
    /// assert_eq!(Reset.of_every(2, 5), [None, None, Reset, None, Reset]);
    /// ```
    pub fn of_every(self, failing: u32, of: u32) -> Vec<Misbehaviour> {
        let (failing, of) = (u64::from(failing), u64::from(of));
        let until = |n: u64| n * failing / of;
        (0..of).map(|n| if until(n + 1) > until(n) { self } else { Misbehaviour::None }).collect()
    }

    /// Whether the answer is as it should be, at whatever time.
    pub fn is_right(self) -> bool {
        matches!(self, Misbehaviour::None | Misbehaviour::Late(_) | Misbehaviour::Drip(_))
    }

    /// What is written; empty where the connection ends without, or nothing happens.
    pub(crate) fn bytes(self) -> Cow<'static, [u8]> {
        Cow::Borrowed(match self {
            Misbehaviour::None | Misbehaviour::Late(_) | Misbehaviour::Drip(_) => RIGHT,
            Misbehaviour::Silence
            | Misbehaviour::HalfOpen
            | Misbehaviour::HalfClose
            | Misbehaviour::Reset
            | Misbehaviour::Close => b"",
            Misbehaviour::HalfAnswer | Misbehaviour::ResetMidway => {
                b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"
            }
            Misbehaviour::LengthTooLong => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok",
            Misbehaviour::LengthTooShort => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
            Misbehaviour::NotHttp => b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
            Misbehaviour::WrongBody => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
            Misbehaviour::Status(code) => return Cow::Owned(with_status(code)),
        })
    }

    /// Whether the connection is closed behind it.
    pub(crate) fn closes(self) -> bool {
        matches!(
            self,
            Misbehaviour::Reset | Misbehaviour::ResetMidway | Misbehaviour::Close | Misbehaviour::HalfAnswer
        )
    }

    /// Whether that is done by a reset.
    pub(crate) fn resets(self) -> bool {
        matches!(self, Misbehaviour::Reset | Misbehaviour::ResetMidway)
    }
}

fn with_status(code: u16) -> Vec<u8> {
    let reason = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or("-");
    match code {
        // these have no body, and no length either
        204 | 304 => format!("HTTP/1.1 {code} {reason}\r\n\r\n"),
        _ => format!("HTTP/1.1 {code} {reason}\r\nContent-Length: 2\r\n\r\nno"),
    }
    .into_bytes()
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |duration: &Duration| duration.as_secs_f64() * 1e3;
        match self {
            Misbehaviour::Status(code) => write!(to, "status:{code}"),
            Misbehaviour::Late(by) => write!(to, "late:{}ms", ms(by)),
            Misbehaviour::Drip(over) => write!(to, "drip:{}ms", ms(over)),
            word => to.write_str(WORDS.iter().find(|(_, fault)| fault == word).map_or("", |(word, _)| word)),
        }
    }
}

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Misbehaviour, String> {
        if let Some((_, fault)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*fault);
        }
        let fault = text.split_once(':').and_then(|(name, value)| match name {
            "status" => value.parse().ok().filter(|code| (200..600).contains(code)).map(Misbehaviour::Status),
            "late" => milliseconds(value).map(Misbehaviour::Late),
            "drip" => milliseconds(value).map(Misbehaviour::Drip),
            _ => None,
        });
        fault.ok_or_else(|| {
            let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
            format!("`{text}` is not a fault; write {}, status:500, late:300ms or drip:2s", words.join(", "))
        })
    }
}

/// Most requests after which a share begins anew.
const OF_MAX: u32 = 1_000_000;

/// For which requests there is a fault, as text: `status:500@1/20` is one of twenty, `reset` every one.
///
/// ```
/// use tidemark_truth::{Misbehaviour, Misbehaviours};
/// let faults: Misbehaviours = "status:500@1/2".parse()?;
/// assert_eq!(faults.0, [Misbehaviour::None, Misbehaviour::Status(500)]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misbehaviours(
    /// Request `n` has the fault `n % len`.
    pub Vec<Misbehaviour>,
);

impl FromStr for Misbehaviours {
    type Err = String;

    fn from_str(text: &str) -> Result<Misbehaviours, String> {
        let Some((fault, share)) = text.split_once('@') else {
            return Ok(Misbehaviours(vec![text.parse()?]));
        };
        let fault: Misbehaviour = fault.parse()?;
        let numbers = share.split_once('/').and_then(|(failing, of)| {
            let (failing, of): (u32, u32) = (failing.parse().ok()?, of.parse().ok()?);
            ((1..=OF_MAX).contains(&of) && failing <= of).then_some((failing, of))
        });
        let (failing, of) = numbers.ok_or_else(|| {
            format!("`{share}` is not a share; write 1/20 for one request of twenty, at most of {OF_MAX}")
        })?;
        Ok(Misbehaviours(fault.of_every(failing, of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact_and_even() {
        for (failing, of) in [(0, 7), (1, 20), (40, 100), (48, 100), (76, 1000), (3, 3)] {
            let list = Misbehaviour::Reset.of_every(failing, of);
            assert_eq!(list.len(), of as usize);
            // in every first part, too
            for n in 0..=list.len() {
                let failed = list[..n].iter().filter(|fault| **fault == Misbehaviour::Reset).count();
                assert_eq!(
                    failed as u64,
                    n as u64 * u64::from(failing) / u64::from(of),
                    "{failing}/{of} at {n}"
                );
            }
        }
    }

    #[test]
    fn faults_are_read_and_mistakes_told() {
        let ms = Duration::from_millis;
        let values = [Misbehaviour::Status(503), Misbehaviour::Late(ms(300)), Misbehaviour::Drip(ms(2_000))];
        for fault in WORDS.iter().map(|(_, fault)| *fault).chain(values) {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert_eq!("drip:2s".parse(), Ok(Misbehaviour::Drip(ms(2_000))));
        for wrong in ["", "resets", "status", "status:99", "status:600", "late:5", "drip:-1s"] {
            assert!(wrong.parse::<Misbehaviour>().is_err_and(|error| error.contains("half-open")), "{wrong}");
        }
        assert_eq!("reset".parse(), Ok(Misbehaviours(vec![Misbehaviour::Reset])));
        for wrong in ["reset@", "reset@1", "reset@1/0", "reset@3/2", "reset@1/9999999", "resets@1/2"] {
            assert!(wrong.parse::<Misbehaviours>().is_err(), "{wrong}");
        }
    }
}
