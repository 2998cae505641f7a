//! What sessions come by and nobody may see: the values of variables that are secrets.

use std::collections::HashMap;

use tidemark_scenario::plan::SessionKind;
use tidemark_scenario::secrets::{Origin, comes_from_a_secret, is_secret, is_secret_name};
use tidemark_scenario::template::Encoding;
use tidemark_scenario::{Plan, Secrets, Value};

use crate::observation::trace::TRACED_BYTES;
use crate::session::answer::{Variables, words};

/// The variables of a plan that are secret by their name, or by where their value is taken from.
#[derive(Debug, Default)]
pub(crate) struct SecretVariables {
    /// Whether each is one whatever its value is.
    names: HashMap<String, bool>,
}

impl SecretVariables {
    /// Those of these kinds of sessions.
    pub fn of(plan: &Plan, kinds: &[SessionKind]) -> SecretVariables {
        let mut names = HashMap::new();
        for kind in kinds {
            for name in kind.slot_names.iter().filter(|name| is_secret_name(name)) {
                names.entry(name.clone()).or_insert(false);
            }
            for extraction in plan.requests_of(kind).flat_map(|request| &request.extractions) {
                let name = kind.slot_names.get(usize::from(extraction.slot));
                if let Some(name) = name.filter(|_| comes_from_a_secret(&words::source(&extraction.source))) {
                    names.insert(name.clone(), true);
                }
            }
        }
        SecretVariables { names }
    }

    /// Adds names and values of those that have a value now, each value once.
    pub fn add_to(&self, found: &mut Vec<(String, String)>, variables: Variables<'_>) {
        if self.names.is_empty() {
            return;
        }
        for (name, slot) in variables.names.iter().zip(variables.slots) {
            let Some(is_always) = self.names.get(name) else { continue };
            if slot.value() == Value::Missing {
                continue;
            }
            let mut text = Vec::new();
            Encoding::Raw.write_value(slot.value(), &mut text);
            text.truncate(TRACED_BYTES);
            let value = String::from_utf8_lossy(&text);
            if (*is_always || is_secret(name, &value)) && found.iter().all(|(_, known)| *known != value) {
                found.push((name.clone(), value.into_owned()));
            }
        }
    }

    /// A text about a request without what the variables of its session hold. Not for each request: it takes its time.
    pub fn masked(&self, text: String, variables: Variables<'_>) -> String {
        let mut found = Vec::new();
        self.add_to(&mut found, variables);
        if found.is_empty() {
            return text;
        }
        let mut secrets = Secrets::default();
        found.iter().for_each(|(name, value)| secrets.add(name, Origin::Setting, value));
        secrets.masked(&text)
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::Slot;

    use super::*;

    #[test]
    fn what_is_told_of_a_request_has_no_secret_of_its_session() {
        let text = "sessions: {a: {steps: [{GET: /a, extract: {token: $.a, mine: $.jwt, id: $.id}}]}}\n\
                    load: {users: 1, hold: 1s}\n";
        let plan =
            tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).expect("a scenario");
        let names = &plan.sessions[0].slot_names;
        let slots = |token: &[u8]| {
            let slot = |name: &String| {
                let mut slot = Slot::default();
                match name.as_str() {
                    "token" => slot.set_text(token),
                    "mine" => slot.set_int(123_456_789),
                    "id" => slot.set_text(b"id-of-all"),
                    _ => {}
                }
                slot
            };
            names.iter().map(slot).collect::<Vec<_>>()
        };
        let secrets = SecretVariables::of(&plan, &plan.sessions);
        let masked = |told: &str| {
            secrets.masked(told.to_owned(), Variables { slots: &slots(b"tokenLONG/secret000016"), names })
        };
        for (told, wanted) in [
            (
                "check $.path: expected nope, got /x?u=tokenLONG%2Fsecret000016",
                "check $.path: expected nope, got /x?u=***",
            ),
            ("check body: got tokenLONG/secr…", "check body: got ***…"),
            ("got 123456789 of id-of-all", "got *** of id-of-all"),
            ("no route", "no route"),
        ] {
            assert_eq!(masked(told), wanted);
        }
        let none = Variables { slots: &[], names };
        assert_eq!(secrets.masked("got tokenLONG".to_owned(), none), "got tokenLONG");
    }
}
