//! SCENARIO on the command line: a file, or the name of a shipped scenario.

use std::path::Path;

use tidemark_scenario::{Checker, Diagnostics, Experiment, shipped};

use crate::failure::Failure;
use crate::{output, systems};

/// Words that differ in more than this many letters are not suggested.
const NEAR: usize = 3;

/// Reads, checks and compiles a scenario; warnings go to standard error. What looks like a path is one; else a
/// shipped name comes first.
pub fn load(scenario: &str, settings: &[(String, String)]) -> Result<Experiment, Failure> {
    let looks_like_path = scenario.contains(['/', '\\', '.']);
    let checker = Checker {
        systems: systems::KNOWN,
        setting: systems::check_setting,
        default_of: systems::default_of,
        store: tidemark_lab::verify::can_read,
    };
    let (experiment, diagnostics) = match shipped(scenario) {
        Some(text) if !looks_like_path => {
            checker.experiment_text(&format!("{scenario}.yaml"), text, Path::new("."), settings)
        }
        _ => checker.experiment_file(Path::new(scenario), settings),
    };
    match experiment {
        Some(experiment) => {
            output::remark(&diagnostics.to_string());
            Ok(experiment)
        }
        None => Err(failure(scenario, &diagnostics)),
    }
}

/// Mistakes that have a place are listed first, as compilers do, and then counted.
pub fn failure(scenario: &str, diagnostics: &Diagnostics) -> Failure {
    match diagnostics.items() {
        [only] if only.line == 0 => Failure::usage(only.to_string()),
        items => {
            output::remark(&diagnostics.to_string());
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
