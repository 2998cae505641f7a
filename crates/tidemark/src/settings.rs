//! What a scenario can be told with `--set`, for a person.

use std::path::Path;

use tidemark_report::text::wrap_whole;
use tidemark_scenario::{Listed, ListedSetting, listed_file, listed_text};

use crate::output::Place;
use crate::{output, scenario};

/// Longest default that has a column beside others.
const DEFAULT_MAX: usize = 16;
/// Least columns for what a setting is for, beside its name and default; else it stands below them.
const ABOUT_MIN: usize = 24;
/// Indentation of what stands below.
const BELOW: usize = 6;

/// Whether a scenario has a setting of this name.
pub fn has(scenario: &str, name: &str) -> bool {
    names(scenario).iter().any(|known| known == name)
}

/// The names of a scenario's settings.
pub fn names(scenario: &str) -> Vec<String> {
    listed(scenario).into_iter().flat_map(|listed| listed.settings).map(|setting| setting.name).collect()
}

/// The settings of a scenario that have no value yet: an import left them to a person.
pub fn unset(scenario: &str, given: &[(String, String)]) -> Vec<String> {
    let all = listed(scenario).into_iter().flat_map(|listed| listed.settings);
    let is_unset = |setting: &ListedSetting| {
        setting.default == tidemark_import::UNSET && !given.iter().any(|(name, _)| *name == setting.name)
    };
    all.filter(is_unset).map(|setting| setting.name).collect()
}

fn listed(scenario: &str) -> Vec<Listed> {
    match scenario::shipped_text(scenario) {
        Some(text) => listed_text(scenario, text, Path::new(".")),
        // a pipe may never end
        None if Path::new(scenario).is_file() => listed_file(Path::new(scenario)),
        None => Vec::new(),
    }
}

/// The settings of a scenario, or of a comparison and of the scenarios in it.
pub fn of(scenario: &str) -> String {
    let listed = listed(scenario);
    if listed.is_empty() {
        return Place::Stdout.fit(&format!("{scenario} has no settings"));
    }
    let columns = output::columns().max(output::NARROWEST);
    listed.iter().map(|listed| list(listed, columns)).collect::<Vec<_>>().join("\n\n")
}

fn list(listed: &Listed, columns: usize) -> String {
    let width = |of: &dyn Fn(&ListedSetting) -> &str, most: usize| {
        let widths = listed.settings.iter().map(|setting| of(setting).chars().count());
        widths.filter(|width| *width <= most).max().unwrap_or(0)
    };
    let (names, defaults) = (width(&|of| &of.name, usize::MAX), width(&|of| &of.default, DEFAULT_MAX));
    let beside = 2 + names + 2 + defaults + 2;
    let indent = if beside + ABOUT_MIN <= columns { beside } else { BELOW };
    let head = format!("Settings of {}, with their defaults (--set NAME=VALUE):", listed.scenario);
    let mut text = output::fit(&head, Some(columns));
    for setting in &listed.settings {
        let words = match &setting.words[..] {
            [] => String::new(),
            words => format!("{} or {}", words[..words.len() - 1].join(", "), words[words.len() - 1]),
        };
        let about = match (setting.about.as_str(), words.trim_start_matches(" or ")) {
            (about, "") => about.to_owned(),
            ("", words) => words.to_owned(),
            (about, words) => format!("{words}: {about}"),
        };
        let head = format!("  {:names$}  {:defaults$}", setting.name, setting.default);
        let mut lines = wrap_whole(&about, columns - indent, 0).into_iter();
        text += "\n";
        text += &output::fit(head.trim_end(), Some(columns));
        if indent == beside
            && head.chars().count() < indent
            && let Some(first) = lines.next()
        {
            text += &" ".repeat(indent - head.trim_end().chars().count());
            text += &first;
        }
        lines.for_each(|line| text += &format!("\n{:indent$}{line}", ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_defaults_and_words_stand_in_columns() {
        let setting = |name: &str, default: &str, words: &[&str], about: &str| ListedSetting {
            name: name.into(),
            default: default.into(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            about: about.into(),
        };
        let listed = Listed {
            scenario: "mine".into(),
            settings: vec![
                setting("users", "100", &[], "at once, without think time, each with a connection"),
                setting("store", "redis", &["redis", "valkey", "none"], "the product"),
                setting("one", "only", &["only"], ""),
                setting("url", "http://127.0.0.1:9200", &[], "where it is"),
            ],
        };
        let wanted = "\
Settings of mine, with their defaults (--set
  NAME=VALUE):
  users  100    at once, without think time,
                each with a connection
  store  redis  redis, valkey or none: the
                product
  one    only   only
  url    http://127.0.0.1:9200
                where it is";
        assert_eq!(list(&listed, 45), wanted);
        let mut listed = listed;
        listed.settings[0].name = "users_of_the_shop_at_once".into();
        let below = list(&listed, 45);
        let wanted = "
  users_of_the_shop_at_once  100
      at once, without think time, each with
      a connection
";
        assert!(below.contains(wanted), "{below}");
        assert!(below.lines().all(|line| line.chars().count() <= 45), "{below}");
    }
}
