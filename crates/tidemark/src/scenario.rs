//! SCENARIO on the command line: a file, or the name of a shipped scenario.

use std::path::Path;

use tidemark_scenario::{Checker, Diagnostics, Experiment, shipped};

use crate::failure::Failure;
use crate::{output, systems};

/// Words that differ in more than this many letters are not suggested.
const NEAR: usize = 3;

/// Reads, checks and compiles a scenario; warnings go to standard error. What looks like a path is one; else a
/// shipped name comes first. Where a setting is wrong, all settings are told.
pub fn load(scenario: &str, settings: &[(String, String)]) -> Result<Experiment, Failure> {
    let unset = match shipped_text(scenario) {
        Some(_) => Vec::new(),
        None => crate::settings::unset(scenario, settings),
    };
    if unset.is_empty() {
        read(scenario, settings)
    } else {
        Err(Failure::usage(without_value(scenario, &unset)))
    }
}

/// That settings have no value.
pub fn without_value(scenario: &str, unset: &[String]) -> String {
    let flags: Vec<String> = unset.iter().map(|name| format!("--set {name}=VALUE")).collect();
    format!(
        "{scenario}: no value for {}; give {}, or write it into the file in place of FILL-IN",
        unset.join(", "),
        flags.join(" ")
    )
}

/// The same, though settings have no value yet.
pub fn read(scenario: &str, settings: &[(String, String)]) -> Result<Experiment, Failure> {
    let checker = checker();
    let shipped = shipped_text(scenario);
    let (experiment, diagnostics) = match shipped {
        Some(text) => checker.experiment_text(&format!("{scenario}.yaml"), text, Path::new("."), settings),
        None => checker.experiment_file(Path::new(scenario), settings),
    };
    match experiment {
        Some(experiment) => {
            output::remark(&diagnostics.to_string());
            Ok(experiment)
        }
        None => {
            if shipped.is_none()
                && let Some(reason) = tidemark_import::of_file(Path::new(scenario))
            {
                return Err(Failure::usage(reason));
            }
            let mut failure = failure(scenario, &diagnostics);
            // in a shipped scenario a setting is what is wrong, wherever that shows
            let of_settings = diagnostics.items().iter().any(|item| item.file.starts_with("--set "));
            if of_settings || (shipped.is_some() && !settings.is_empty()) {
                failure.message += &format!("\n\n{}", crate::settings::of(scenario));
            }
            Err(failure)
        }
    }
}

/// The same of a text that was read elsewhere; warnings have been told there.
pub fn of_text(scenario: &str, text: &str, settings: &[(String, String)]) -> Result<Experiment, Failure> {
    let path = Path::new(scenario);
    let (name, folder) = match shipped_text(scenario) {
        Some(_) => (format!("{scenario}.yaml"), Path::new(".")),
        None => (path.display().to_string(), path.parent().unwrap_or(Path::new("."))),
    };
    let (experiment, diagnostics) = checker().experiment_text(&name, text, folder, settings);
    experiment.ok_or_else(|| failure(scenario, &diagnostics))
}

/// The plan of a scenario that was read elsewhere.
#[cfg(feature = "fleet")]
pub fn again(from: &tidemark_scenario::outside::Origin) -> Result<tidemark_scenario::Plan, String> {
    let (plan, diagnostics) = checker().text(&from.name, &from.text, &from.folder, &from.settings);
    plan.ok_or_else(|| diagnostics.to_string())
}

/// The text of a shipped scenario. What looks like a path is none.
pub fn shipped_text(scenario: &str) -> Option<&'static str> {
    shipped(scenario).filter(|_| !scenario.contains(['/', '\\', '.']))
}

fn checker() -> Checker {
    Checker {
        systems: systems::KNOWN,
        setting: systems::check_setting,
        default_of: systems::default_of,
        store: |name| systems::STORES.can_read(name),
    }
}

/// Mistakes that have a place are listed first, as compilers do, and then counted.
pub fn failure(scenario: &str, diagnostics: &Diagnostics) -> Failure {
    match diagnostics.items() {
        [only] if only.line == 0 => Failure::usage(only.to_string()),
        items => {
            output::insist(&diagnostics.to_string());
            let count = items.len() + diagnostics.not_kept();
            Failure::usage(format!("{count} mistake{} in {scenario}", if count == 1 { "" } else { "s" }))
        }
    }
}

/// `did you mean NAME?`, or all names where none is near.
pub fn nearest_or_all<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let distance = |name: &&str| strsim::damerau_levenshtein(name, &word.to_lowercase());
    match names.iter().copied().min_by_key(|name| distance(name)).filter(|name| distance(name) <= NEAR) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("there is {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_or_all_are_named() {
        let names = || ["airline", "newsfeed"].into_iter();
        assert_eq!(nearest_or_all("airlin", names()), "did you mean airline?");
        assert_eq!(nearest_or_all("AIRLINE", names()), "did you mean airline?");
        assert_eq!(nearest_or_all("zzz", names()), "there is airline, newsfeed");
    }
}
