//! The systems that this program can serve: one line for each.

mod experiments;
mod reading;

use tidemark_airline::data::AirlineData;
use tidemark_airline::{Airline, AirlineAuth};
use tidemark_ingest::Ingest;
use tidemark_lab::shipped::ShippedStores;
use tidemark_mesh::RegistrySystem;
use tidemark_newsfeed::NewsFeed;
use tidemark_scenario::{ShippedSystem, WrongSetting};
use tidemark_service::{Limits, ReferenceSystem, Setting, SettingError, SystemEntry};
use tidemark_trade::TradeSystem;

pub use experiments::EXPERIMENTS;
use reading::Stores;

/// Every shipped system.
pub const SYSTEMS: &[SystemEntry] = &[
    SystemEntry::of::<Airline>(),
    SystemEntry::of::<AirlineAuth>(),
    SystemEntry::of::<AirlineData>(),
    SystemEntry::of::<Ingest>(),
    SystemEntry::of::<NewsFeed>(),
    SystemEntry::of::<RegistrySystem>(),
    SystemEntry::of::<TradeSystem>(),
];

/// The system that knows instances of others, in its memory.
pub const REGISTRY: &str = RegistrySystem::NAME;

/// What a scenario must know of them.
pub const KNOWN: &[ShippedSystem] = &{
    let mut known = [facts(&SYSTEMS[0]); SYSTEMS.len()];
    let mut at = 0;
    while at < SYSTEMS.len() {
        known[at] = facts(&SYSTEMS[at]);
        at += 1;
    }
    known
};

const fn facts(system: &SystemEntry) -> ShippedSystem {
    let SystemEntry { name, keeps_data, store_is_readable, tells_operations, .. } = *system;
    ShippedSystem { name, keeps_data, store_is_readable, tells_operations }
}

/// The system of that name.
pub fn shipped(name: &str) -> Option<&'static SystemEntry> {
    SYSTEMS.iter().find(|system| system.name == name)
}

/// Whether a shipped system takes a setting, as far as that can be told beforehand.
pub fn check_setting(system: &str, name: &str, value: &str) -> Result<(), WrongSetting> {
    let Some(system) = shipped(system) else { return Ok(()) };
    (system.check_setting)(name, value).map_err(|error| match error {
        SettingError::Unknown { .. } => WrongSetting::Name(error.to_string()),
        error => WrongSetting::Value(error.to_string()),
    })
}

/// What a setting of a shipped system is where nobody says it.
pub fn default_of(system: &str, name: &str) -> Option<&'static str> {
    shipped(system)?.settings.iter().find(|setting| setting.name == name).map(|setting| setting.default)
}

/// How their stores are read without them.
pub static STORES: &dyn ShippedStores = &Stores;

/// What there is to serve, and the settings of each, for the help. A line that is broken keeps its indentation.
pub fn settings_help() -> String {
    let line = |Setting { name, default, allowed, help }: &Setting| {
        format!("  {name}\n      {help} (from {allowed}; else {default})\n")
    };
    let lines = |settings: &[Setting]| settings.iter().map(line).collect::<String>();
    let systems = SYSTEMS.iter().map(|system| format!("  {:<14}{}\n", system.name, system.description));
    let of_one = |system: &SystemEntry| {
        let SystemEntry { name, settings, .. } = system;
        format!("Settings of {name}:\n{}\n", lines(settings))
    };
    let (systems, of_each): (String, String) = (systems.collect(), SYSTEMS.iter().map(of_one).collect());
    format!("Systems:\n{systems}\n{of_each}Settings of every system:\n{}", lines(Limits::SETTINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_its_default_and_says_what_it_is() {
        for system in SYSTEMS {
            for setting in system.settings.iter().chain(Limits::SETTINGS) {
                let of = format!("{} of {}", setting.name, system.name);
                assert_eq!(check_setting(system.name, setting.name, setting.default), Ok(()), "{of}");
                assert!(!setting.help.is_empty() && !setting.help.contains('\n'), "{of}");
                let Err(WrongSetting::Value(error)) = check_setting(system.name, setting.name, "many!")
                else {
                    panic!("{of} takes anything")
                };
                // the stores say what is wrong with an address of theirs, which may have a password
                assert!(error.contains(setting.allowed) || error.contains("://"), "{of}: {error}");
            }
        }
    }

    #[test]
    fn a_wrong_name_is_told_the_nearest_right_one() {
        for system in SYSTEMS {
            let wrong = check_setting(system.name, "conections_max", "5");
            let Err(WrongSetting::Name(error)) = wrong else { panic!("{wrong:?}") };
            assert!(error.contains("did you mean connections_max?"), "{error}");
        }
    }

    #[cfg(feature = "cassandra")]
    #[test]
    fn a_readable_store_in_cassandra_has_a_default_place() {
        for system in SYSTEMS.iter().filter(|system| system.store_is_readable) {
            for setting in tidemark_scenario::plan::CassandraTable::SETTINGS {
                assert!(default_of(system.name, setting).is_some(), "{setting} of {}", system.name);
            }
        }
    }

    #[test]
    fn names_of_systems_and_of_their_settings_are_told_apart() {
        let mut names: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SYSTEMS.len());
        for system in SYSTEMS {
            let mut names: Vec<_> =
                system.settings.iter().chain(Limits::SETTINGS).map(|setting| setting.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", system.name);
        }
    }
}
