//! Why a request failed, how that is counted and how it is said.

use std::borrow::Cow;
use std::fmt;
use std::io;

use tidemark_record::Outcome;
use tidemark_scenario::Unmet;
use tidemark_wire::http1::HttpError;

use crate::io::stream_failure;
use crate::session::answer::Flaw;
use crate::session::held_values::no_room;

/// Why what came is no answer, in words.
#[derive(Debug)]
pub(crate) struct Violation(pub Box<str>);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Violation {
    /// A decoder's error; of a reply that is too large with the setting that bounds it.
    pub(crate) fn of(error: &impl fmt::Display, is_too_large: bool) -> Violation {
        let more = if is_too_large { " that `limits: body` sets" } else { "" };
        Violation(format!("{error}{more}").into())
    }
}

impl From<Unmet> for Failure {
    fn from(unmet: Unmet) -> Self {
        Failure::Unmet(unmet)
    }
}

impl From<HttpError> for Violation {
    fn from(error: HttpError) -> Self {
        Violation::of(&error, matches!(error, HttpError::BodyTooLarge { .. }))
    }
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection could be made.
    Connect(io::Error),
    /// No connection was made in time: nobody said anything.
    ConnectTimeout,
    /// None was made in time, since the last try was refused or broke and the next one had to wait.
    BackingOff,
    /// No whole answer in time.
    Timeout,
    /// Still under way when the run ended.
    CutOff,
    /// The connection broke.
    Broken(io::Error),
    /// The peer closed before any byte of the answer.
    ClosedBefore,
    /// The peer closed within the answer.
    ClosedWithin,
    /// What came is no answer, or not within the bounds.
    Protocol(Violation),
    /// The answer is not as it should be.
    Flawed(Flaw),
    /// It could not be sent, because something that it needs is not there.
    Unmet(Unmet),
    /// It could not be sent, because there is no room for a value of its own.
    NoRoom,
    /// It was not sent, because no connection was free; how it counts.
    NoConnection(Outcome),
    /// It could not be sent, because the protocol cannot say it; in words.
    Unsendable(String),
    /// Something else that a protocol knows of, as what it counts and in words.
    Other(Outcome, Cow<'static, str>),
}

impl Failure {
    /// Whether the request could not even be written.
    pub fn is_of_writing(&self) -> bool {
        matches!(self, Failure::Unmet(_) | Failure::NoRoom | Failure::Unsendable(_))
    }

    /// How it is counted.
    pub fn outcome(&self) -> Outcome {
        match self {
            Failure::Connect(_) | Failure::BackingOff => Outcome::Connect,
            Failure::Timeout | Failure::ConnectTimeout => Outcome::Timeout,
            Failure::CutOff => Outcome::Unfinished,
            Failure::Broken(error)
                if stream_failure::of(error).is_some_and(|failure| failure.is_violation) =>
            {
                Outcome::Protocol
            }
            Failure::Broken(error) if stream_failure::is_time_out(error) => Outcome::Timeout,
            Failure::Broken(_) | Failure::ClosedBefore | Failure::ClosedWithin => Outcome::Reset,
            Failure::Protocol(_) | Failure::Unsendable(_) => Outcome::Protocol,
            Failure::Flawed(flaw) => flaw.outcome(),
            Failure::Unmet(_) | Failure::NoRoom => Outcome::Variable,
            Failure::Other(outcome, _) | Failure::NoConnection(outcome) => *outcome,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => write!(
                f,
                "could not connect: {error}; all local ports to it are taken, or wait after a close: keep connections \
                 alive, use fewer, or widen net.ipv4.ip_local_port_range"
            ),
            Failure::Connect(error) => write!(f, "could not connect: {error}"),
            Failure::ConnectTimeout => f.write_str("no connection was made in time"),
            Failure::BackingOff => {
                f.write_str("could not connect in time: the last try was refused or broke")
            }
            Failure::Timeout => f.write_str("no whole answer in time"),
            Failure::CutOff => f.write_str("no whole answer when the run ended"),
            Failure::Broken(error) if stream_failure::of(error).is_some() => write!(f, "{error}"),
            Failure::Broken(error) => write!(f, "the connection broke: {error}"),
            Failure::ClosedBefore => f.write_str("the connection was closed before any byte of the answer"),
            Failure::ClosedWithin => f.write_str("the connection was closed before the answer was whole"),
            Failure::Protocol(violation) => write!(f, "{violation}"),
            Failure::Flawed(flaw) => write!(f, "{flaw:?}"),
            Failure::Unmet(unmet) => f.write_str(&unmet.describe(&[])),
            Failure::NoRoom => write!(f, "no room for its value: {}", no_room()),
            Failure::NoConnection(_) => {
                f.write_str("not sent: no connection was free (`limits: connections`)")
            }
            Failure::Unsendable(words) => f.write_str(words),
            Failure::Other(_, words) => f.write_str(words),
        }
    }
}
