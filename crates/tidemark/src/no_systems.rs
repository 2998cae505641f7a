//! A program without the shipped systems: there is nothing to serve.

use tidemark_lab::shipped::{NoSystems, ShippedStores};
use tidemark_report::published::Experiment;
use tidemark_scenario::{ShippedSystem, WrongSetting};

/// What a scenario must know of shipped systems: there are none.
pub const KNOWN: &[ShippedSystem] = &[];

/// The experiments that they repeat.
pub const EXPERIMENTS: &[Experiment] = &[];

/// How their stores are read.
pub static STORES: &dyn ShippedStores = &NoSystems;

/// Whether a shipped system takes a setting.
pub fn check_setting(_: &str, _: &str, _: &str) -> Result<(), WrongSetting> {
    Ok(())
}

/// What a setting of a shipped system is where nobody says it.
pub fn default_of(_: &str, _: &str) -> Option<&'static str> {
    None
}

/// What there is to serve, for the help.
pub fn settings_help() -> String {
    "This program was built without the shipped systems.\n".into()
}
