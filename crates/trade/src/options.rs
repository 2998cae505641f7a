//! What can be set about a trade service.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tidemark_service::{Limits, Setting, SettingError, Settings};

use crate::TradeError;

/// How to serve it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Worker threads; as many as there are processors where nothing is said.
    pub workers: Option<usize>,
    /// Settings by name; [`settings`] lists them.
    pub settings: BTreeMap<String, String>,
    /// Whether to print `listening http://ADDRESS` on standard output.
    pub announce: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 9080)),
            workers: None,
            settings: BTreeMap::new(),
            announce: true,
        }
    }
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "connections_max",
        default: "16384",
        allowed: "1 to 1000000",
        help: "connections open at once; one more is answered 503 with Retry-After, 1000 a second at most",
    },
    Setting {
        name: "body_bytes_max",
        default: "65536",
        allowed: "1 to 16777216",
        help: "bytes of a request body; a larger one is answered 413",
    },
    Setting {
        name: "head_timeout_s",
        default: "75",
        allowed: "1 to 86400",
        help: "a connection that sends nothing whole for so many seconds is closed; WebSockets are pinged halfway",
    },
    Setting {
        name: "stop_deadline_s",
        default: "10",
        allowed: "0 to 3600",
        help: "how many seconds requests and calls in flight have to finish when the server stops",
    },
];

/// All settings, for help texts.
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

/// Whether a setting can be served with.
///
/// # Errors
/// That it is unknown, or does not take this value.
pub fn check_setting(name: &str, value: &str) -> Result<(), TradeError> {
    Ok(read(&BTreeMap::from([(name.to_owned(), value.to_owned())])).map(drop)?)
}

/// The settings as limits of the server.
pub(crate) fn read(given: &BTreeMap<String, String>) -> Result<Limits, SettingError> {
    let settings = Settings::new(SETTINGS, given);
    settings.check_names()?;
    Ok(Limits {
        connections_max: settings.value("connections_max", 1..=1_000_000)?,
        body_bytes_max: settings.value("body_bytes_max", 1..=16 << 20)?,
        head_timeout: Duration::from_secs(settings.value("head_timeout_s", 1..=86_400)?),
        stop_deadline: Duration::from_secs(settings.value("stop_deadline_s", 0..=3600)?),
        ..Limits::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_its_default_and_says_what_it_is() {
        for setting in settings() {
            assert!(check_setting(setting.name, setting.default).is_ok(), "{}", setting.name);
            assert!(!setting.help.is_empty() && !setting.help.contains('\n'));
            let error = check_setting(setting.name, "many!").unwrap_err().to_string();
            assert!(error.contains(setting.name) && error.contains(setting.allowed), "{error}");
        }
    }
}
