//! The bounds of a server. Nothing that a client does makes it hold more than these allow.

use std::net::SocketAddr;
use std::time::Duration;

use tidemark_wire::http1::MAX_HEADERS;

use crate::{ServiceError, Setting, SettingError, Settings};

/// Bounds on what clients may hold or send; each one that is hit is counted in `/metrics`.
///
/// ```
/// use tidemark_service::Limits;
/// let limits = Limits { body_bytes_max: 4 * 1024, ..Limits::default() };
/// assert!(limits.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once, over all workers. One more is answered 503 and closed.
    pub connections_max: usize,
    /// Bytes of a request body. More is answered 413.
    pub body_bytes_max: usize,
    /// Bytes of a request head: request line and headers. More is answered 431, or 414 where it is the target's fault.
    pub head_bytes_max: usize,
    /// Header lines of a request. More is answered 431.
    pub headers_max: usize,
    /// Bytes of requests and answers that all connections together may hold while they wait: for the rest of a request,
    /// for an answer to be made, for a client to take it. Each may hold 4 KiB beside that, and the buffers that hyper has for
    /// it, so that small requests are taken in any case. A request beyond is answered 503 with `Retry-After`, a WebSocket closed with 1013; a client
    /// that does not take its answers is cut off.
    pub held_bytes_max: usize,
    /// A connection that does not deliver a whole request head for this long is closed,
    /// whether it sends slowly or nothing at all.
    pub head_timeout: Duration,
    /// A request body must be there this long after its head, else 408. A client that takes nothing of an answer for
    /// as long is cut off.
    pub body_timeout: Duration,
    /// After the stop requests in flight have this long to finish; then their connections are cut.
    pub stop_deadline: Duration,
    /// After the stop idle connections are kept this long for a last request, whose answer says `Connection: close`: a
    /// balancer in front loses none that was on its way. New connections are refused meanwhile.
    pub drain: Duration,
    /// Where others reach it, where that is not where it listens.
    pub advertise: Option<SocketAddr>,
    /// Whether connections wait until the system has started; else they are answered 503 before. A balancer that does not
    /// ask for `/health` then sends no request that is refused.
    pub accept_when_ready: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 16_384,
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 16 * 1024,
            headers_max: 64,
            held_bytes_max: 256 << 20,
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            stop_deadline: Duration::from_secs(10),
            drain: Duration::ZERO,
            advertise: None,
            accept_when_ready: false,
        }
    }
}

/// What any client may expect to be taken.
const HEAD_BYTES_LEAST: usize = 8 * 1024;

impl Limits {
    /// What can be set about the server of every system: [`connections_max`](Limits::connections_max),
    /// [`held_bytes_max`](Limits::held_bytes_max) in MiB, [`head_timeout`](Limits::head_timeout) and
    /// [`stop_deadline`](Limits::stop_deadline) in seconds, [`drain`](Limits::drain) in milliseconds.
    pub const SETTINGS: &'static [Setting] = crate::settings! {
        "connections_max" = "16384", "1 to 1000000":
            "connections open at once; one more is answered 503 with Retry-After, 1000 a second at most";
        "held_mib_max" = "256", "1 to 1048576":
            "MiB of requests and answers that all connections together may hold; a request beyond is answered 503 with Retry-After";
        "head_timeout_s" = "75", "1 to 86400":
            "a connection that sends no whole request head for so many seconds is closed; WebSockets are pinged halfway";
        "stop_deadline_s" = "10", "0 to 3600":
            "how many seconds requests and calls in flight have to finish when the server stops";
        "accept" = "always", "always or ready":
            "whether a request that comes before the system has started is answered 503 (always) or waits (ready)";
        "drain_ms" = "0", "0 to 60000":
            "how many milliseconds idle connections are kept for a last request when the server stops";
        "advertise" = "", "IP:PORT":
            "address that a registry gives to others; nothing: where it listens";
    };

    /// The limits that these settings say; all others as they are by default.
    ///
    /// # Errors
    /// Where one of them has a value that it does not take.
    pub fn read(settings: &Settings<'_>) -> Result<Limits, SettingError> {
        Ok(Limits {
            connections_max: settings.value("connections_max", 1..=1_000_000)?,
            held_bytes_max: settings.value::<usize>("held_mib_max", 1..=1 << 20)? << 20,
            head_timeout: Duration::from_secs(settings.value("head_timeout_s", 1..=86_400)?),
            stop_deadline: Duration::from_secs(settings.value("stop_deadline_s", 0..=3600)?),
            drain: Duration::from_millis(settings.value("drain_ms", 0..=60_000)?),
            advertise: settings.text("advertise", |text| match text {
                "" => Some(None),
                text => text.parse().ok().map(Some),
            })?,
            accept_when_ready: settings.text("accept", |word| match word {
                "always" => Some(false),
                "ready" => Some(true),
                _ => None,
            })?,
            ..Limits::default()
        })
    }

    /// Says what is wrong with these limits, if anything is.
    pub fn check(&self) -> Result<(), ServiceError> {
        let wrong = |name, given: String, allowed| Err(ServiceError::Setting { name, given, allowed });
        if self.connections_max == 0 {
            return wrong("the bound on connections", "0".into(), "at least 1");
        }
        if self.head_bytes_max < HEAD_BYTES_LEAST {
            return wrong(
                "the bound on a request head",
                self.head_bytes_max.to_string(),
                "at least 8192 bytes",
            );
        }
        if self.headers_max == 0 || self.headers_max > MAX_HEADERS {
            return wrong("the bound on header lines", self.headers_max.to_string(), "1 to 256");
        }
        for (name, time) in [("the head timeout", self.head_timeout), ("the body timeout", self.body_timeout)]
        {
            if time < Duration::from_millis(10) {
                return wrong(name, format!("{time:?}"), "at least 10 ms");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn settings_say_the_defaults_and_set_what_they_name() {
        let read = |pairs: &[(&str, &str)]| {
            let given: BTreeMap<_, _> =
                pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            Limits::read(&Settings::new(&[], &given))
        };
        assert_eq!(read(&[]).unwrap(), Limits::default());
        let given = [
            ("connections_max", "7"),
            ("held_mib_max", "6"),
            ("head_timeout_s", "8"),
            ("stop_deadline_s", "9"),
        ];
        let set = read(&given).unwrap();
        assert_eq!((set.connections_max, set.held_bytes_max), (7, 6 << 20));
        assert_eq!((set.head_timeout.as_secs(), set.stop_deadline.as_secs()), (8, 9));
        for setting in Limits::SETTINGS {
            let error = read(&[(setting.name, "-1")]).unwrap_err().to_string();
            assert!(error.contains(setting.name) && error.contains(setting.allowed), "{error}");
        }
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        assert!(Limits::default().check().is_ok());
        let none = Limits { connections_max: 0, ..Limits::default() };
        assert_eq!(
            none.check().unwrap_err().to_string(),
            "the bound on connections is 0; allowed is at least 1"
        );
        assert!(Limits { head_bytes_max: 100, ..Limits::default() }.check().is_err());
        assert!(Limits { body_timeout: Duration::ZERO, ..Limits::default() }.check().is_err());
    }
}
