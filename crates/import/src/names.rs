//! Settings of a scenario, named after what others call them.

use tidemark_scenario::source::{Map, Scalar};

/// Longest name, characters.
const NAME_MAX: usize = 40;
/// How the variables of the environment begin that secrets are taken from.
const SECRET: &str = "TIDEMARK_";
/// Words that are part of the language of expressions.
const WORDS: [&str; 7] = ["and", "or", "not", "true", "false", "missing", "in"];

/// A text as a name: letters, digits and `_`.
pub(super) fn name_of(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().take(NAME_MAX).map(plain).collect();
    let name = name.trim_matches('_');
    if name.is_empty() {
        "value".into()
    } else if name.starts_with(|c: char| c.is_ascii_digit()) || WORDS.contains(&name) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}

/// A name that is not taken yet: `id`, then the first of the others, then `id_2`.
pub(super) fn free(wanted: &str, other: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    if !is_taken(other) {
        return other.to_owned();
    }
    let mut number = 2u64;
    loop {
        let name = format!("{wanted}_{number}");
        if !is_taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// The variable of the environment that holds a secret of this name, as a hole.
pub(super) fn variable(name: &str) -> String {
    format!("${{env(\"{SECRET}{}\")}}", name.to_uppercase())
}

/// Settings that are made on the way, each once for what it stands for.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) map: Map,
    /// What each stands for, and its name.
    known: Vec<(String, String)>,
}

impl Settings {
    pub(super) fn new(map: Map) -> Settings {
        Settings { map, known: Vec::new() }
    }

    /// The setting that stands for something, if there is one.
    pub(super) fn of(&self, what: &str) -> Option<&str> {
        self.known.iter().find(|(known, _)| known == what).map(|(_, name)| name.as_str())
    }

    /// The name of the setting that stands for something; `other` is what it is called where the first name is taken.
    pub(super) fn named(
        &mut self,
        what: String,
        wanted: &str,
        other: &str,
        comment: &str,
        default: impl Into<Scalar>,
    ) -> String {
        self.add(what, wanted, other, comment, |_| default.into())
    }

    /// The same of a secret, which no file holds: a run without it is refused. The variable has a beginning of its own, so that
    /// no foreign file can ask for one that is there for something else.
    pub(super) fn secret(&mut self, what: String, wanted: &str, other: &str, comment: &str) -> String {
        self.add(what, wanted, other, comment, |name| variable(name).into())
    }

    fn add(
        &mut self,
        what: String,
        wanted: &str,
        other: &str,
        comment: &str,
        default: impl FnOnce(&str) -> Scalar,
    ) -> String {
        if let Some(name) = self.of(&what) {
            return name.to_owned();
        }
        let name = free(&name_of(wanted), &name_of(other), |name| self.map.get(name).is_some());
        self.map.insert_with_comment(comment, name.as_str(), default(&name));
        self.known.push((what, name.clone()));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_becomes_a_name() {
        for (text, name) in [
            ("petId", "petId"),
            ("pet-id", "pet_id"),
            ("2nd", "_2nd"),
            ("", "value"),
            ("in", "_in"),
            ("é$", "value"),
        ] {
            assert_eq!(name_of(text), name);
        }
    }

    #[test]
    fn names_are_given_once() {
        let mut settings = Settings::default();
        assert_eq!(settings.named("pets id".into(), "id", "pets_id", "", 1u64), "id");
        assert_eq!(settings.named("pets id".into(), "id", "pets_id", "", 1u64), "id");
        assert_eq!(settings.named("users id".into(), "id", "users_id", "", 1u64), "users_id");
        assert_eq!(settings.named("old users id".into(), "id", "users_id", "", 1u64), "id_2");
    }
}
