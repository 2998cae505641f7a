//! What can be set about a trade service.

use std::collections::BTreeMap;
use std::net::SocketAddr;

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
    Limits::CONNECTIONS_MAX,
    Setting {
        name: "body_bytes_max",
        default: "65536",
        allowed: "1 to 16777216",
        help: "bytes of a request body; a larger one is answered 413",
    },
    Limits::HELD_MIB_MAX,
    Limits::HEAD_TIMEOUT_S,
    Limits::STOP_DEADLINE_S,
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
    Ok(Limits { body_bytes_max: settings.value("body_bytes_max", 1..=16 << 20)?, ..Limits::read(&settings)? })
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
