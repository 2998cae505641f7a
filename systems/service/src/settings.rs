//! Settings of a system by name: one table is help text, defaults and what a wrong one is told. Those of the server
//! ([`Limits::SETTINGS`]) stand behind those of every system.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use tidemark_store::{Reach, StoreError};

use crate::Limits;

/// A setting, for help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as in `--set NAME=VALUE`.
    pub name: &'static str,
    /// What holds where nothing is said.
    pub default: &'static str,
    /// The values that it takes.
    pub allowed: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
}

/// A table of settings: the name of each, what holds where nothing is said, the values that it takes, and what it is for.
///
/// ```
/// let table: &[tidemark_service::Setting] = tidemark_service::settings! {
///     "days" = "3", "1 to 9":
///         "days on offer";
/// };
/// assert_eq!((table[0].name, table[0].default, table[0].allowed), ("days", "3", "1 to 9"));
/// ```
#[macro_export]
macro_rules! settings {
    ($($(#[$on:meta])* $name:literal = $default:expr, $allowed:literal: $help:literal;)*) => {
        &[$($(#[$on])* $crate::Setting { name: $name, default: $default, allowed: $allowed, help: $help },)*]
    };
}

/// Tables one behind the other, for a system whose parts have settings of their own. `N` is the length of all.
///
/// ```
/// use tidemark_service::{Setting, joined};
/// const OWN: &[Setting] = &[Setting { name: "days", default: "3", allowed: "1 to 9", help: "days on offer" }];
/// const ALL: &[Setting] = &joined::<{ OWN.len() * 2 }>(&[OWN, OWN]);
/// assert_eq!(ALL[1], OWN[0]);
/// ```
pub const fn joined<const N: usize>(tables: &[&[Setting]]) -> [Setting; N] {
    let mut all = [Setting { name: "", default: "", allowed: "", help: "" }; N];
    let (mut table, mut at, mut next) = (0, 0, 0);
    while table < tables.len() {
        if at < tables[table].len() {
            all[next] = tables[table][at];
            (at, next) = (at + 1, next + 1);
        } else {
            (table, at) = (table + 1, 0);
        }
    }
    assert!(next == N, "N is the number of all settings");
    all
}

/// Why a setting cannot be served with.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// There is no setting of this name.
    #[error("unknown setting {name:?};{} the settings are {known}", nearest.map(|nearest| format!(" did you mean {nearest}?")).unwrap_or_default())]
    Unknown {
        /// What was given.
        name: String,
        /// The setting that is most like it, where one is.
        nearest: Option<&'static str>,
        /// All of them.
        known: String,
    },
    /// A setting has a value that it does not take.
    #[error("the setting {name} is {given:?}; allowed is {allowed}")]
    Value {
        /// Which setting.
        name: &'static str,
        /// What was given.
        given: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// It asks for a store that this program was built without.
    #[error(
        "this program was built without {store}; build it with: cargo build --release -p tidemark --features {feature}"
    )]
    NotBuiltIn {
        /// The store.
        store: &'static str,
        /// The cargo feature that has it.
        feature: &'static str,
    },
    /// The store does not take its options.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A system's settings, and what was given for them.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    table: &'static [Setting],
    given: &'a BTreeMap<String, String>,
}

impl<'a> Settings<'a> {
    /// Those of `table` and of the server, of which `given` names some.
    pub fn new(table: &'static [Setting], given: &'a BTreeMap<String, String>) -> Self {
        Settings { table, given }
    }

    fn known(&self) -> impl Iterator<Item = &'static Setting> {
        self.table.iter().chain(Limits::SETTINGS)
    }

    /// Whether every name that was given is a setting.
    ///
    /// # Errors
    /// The first that is not, with the nearest right one.
    pub fn check_names(&self) -> Result<(), SettingError> {
        let is_known = |name: &String| self.known().any(|setting| setting.name == name);
        let Some(name) = self.given.keys().find(|name| !is_known(name)) else { return Ok(()) };
        let distance = |known: &&str| strsim::damerau_levenshtein(known, name);
        let near =
            self.known().map(|setting| setting.name).filter(|known| distance(known) <= known.len() / 2);
        let nearest = near.min_by_key(distance);
        let known = self.known().map(|setting| setting.name).collect::<Vec<_>>().join(", ");
        Err(SettingError::Unknown { name: name.clone(), nearest, known })
    }

    /// A number within bounds. `name` is one of them.
    ///
    /// # Errors
    /// Where it is none, or beyond them.
    pub fn value<T: FromStr + PartialOrd>(
        &self,
        name: &'static str,
        allowed: RangeInclusive<T>,
    ) -> Result<T, SettingError> {
        self.text(name, |text| text.parse().ok().filter(|value| allowed.contains(value)))
    }

    /// What `read` makes of the text. `name` is one of them.
    ///
    /// # Errors
    /// Where it makes nothing of it.
    pub fn text<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SettingError> {
        let setting = self.known().find(|setting| setting.name == name);
        debug_assert!(setting.is_some(), "{name} is in no table");
        let (default, allowed) = setting.map_or(("", ""), |setting| (setting.default, setting.allowed));
        let given = self.given.get(name).map_or(default, String::as_str);
        let wrong = || SettingError::Value { name, given: given.to_owned(), allowed };
        read(given.trim()).ok_or_else(wrong)
    }

    /// How a server that keeps data is reached: by the settings of this name and those of all such servers.
    ///
    /// # Errors
    /// Where one of them has a value that it does not take.
    pub fn reach(&self, url: &'static str, connections: &'static str) -> Result<Reach, SettingError> {
        Ok(Reach {
            // whoever checks it tells mistakes without the password
            url: self.text(url, |url| Some(url.to_owned()))?,
            connections: self.value(connections, 1..=256)?,
            waiting_max: self.value("store_waiting_max", 1..=1_000_000)?,
            timeout: Duration::from_secs(self.value("store_timeout_s", 1..=3600)?),
            start_timeout: Duration::from_secs(self.value("store_start_timeout_s", 1..=3600)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Setting] = &[
        Setting { name: "days", default: "30", allowed: "1 to 366", help: "days" },
        Setting { name: "colour", default: "red", allowed: "red or blue", help: "colour" },
    ];

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_not_given_is_as_the_table_says() {
        let none = given(&[]);
        assert_eq!(Settings::new(TABLE, &none).value("days", 1..=366).unwrap(), 30);
        let some = given(&[("days", " 7 ")]);
        assert_eq!(Settings::new(TABLE, &some).value("days", 1..=366).unwrap(), 7);
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let wrong = given(&[("dyas", "1")]);
        let error = Settings::new(TABLE, &wrong).check_names().unwrap_err().to_string();
        let expected =
            "unknown setting \"dyas\"; did you mean days? the settings are days, colour, connections_max";
        assert!(error.starts_with(expected), "{error}");
        for value in ["0", "367", "many"] {
            let wrong = given(&[("days", value)]);
            let error = Settings::new(TABLE, &wrong).value("days", 1..=366).unwrap_err().to_string();
            assert_eq!(error, format!("the setting days is {value:?}; allowed is 1 to 366"));
        }
        let wrong = given(&[("colour", "green")]);
        let read = |text: &str| ["red", "blue"].into_iter().find(|word| *word == text);
        let error = Settings::new(TABLE, &wrong).text("colour", read).unwrap_err().to_string();
        assert_eq!(error, "the setting colour is \"green\"; allowed is red or blue");
    }
}
