//! Elements and texts of any kind.

use proptest::prelude::*;

use super::*;

/// A plan with a place for another element in each of its scopes.
const PLACES: usize = 6;

fn with_unknown(at: usize, element: &str) -> String {
    let here = |place: usize| if place == at { element.to_owned() } else { String::new() };
    let inner = node(
        "LoopController",
        "L",
        &text("LoopController.loops", "2"),
        &[here(3), get("B", "/b", &here(4))].concat(),
    );
    let users = group("Users", "", &[here(1), get("A", "/a", &here(2)), inner].concat());
    plan(&[here(0), users, here(5)].concat())
}

proptest! {
    /// Whatever stands wherever, it is told, with its line.
    #[test]
    fn unknown_elements_are_told(name in "[A-Z][a-z]{2,12}", suffix in "(Sampler|Controller|Config|Timer|Gui|Modifier)", at in 0..PLACES, inside: bool) {
        let kind = format!("org.example.My{name}{suffix}");
        let element = node(&kind, "unknown one", "", &if inside { get("Hidden", "/hidden", "") } else { String::new() });
        let text = with_unknown(at, &element);
        let made = made(&text);
        let line = text.lines().position(|line| line.contains(&kind)).unwrap() + 1;
        let told = made.left_out.iter().find(|left| left.line == line);
        prop_assert!(told.is_some(), "{:?}\n{text}", made.left_out);
        prop_assert!(told.unwrap().is_request || !inside);
        let yaml = made.checked().unwrap();
        prop_assert!(!yaml.contains("/hidden"), "{yaml}");
    }

    /// No text makes the importer panic, nor a scenario that the checker refuses.
    #[test]
    fn texts_of_any_kind_are_safe(path in "(\\$\\{|__|[a-zA-Z(){},.'\"\\\\$ /?&=%-]){0,24}", condition in "(\\$\\{a\\}|vars.get\\(|[a-z0-9\"'()!=<>&|+*. -]){0,30}") {
        let inner = node("IfController", "I", &[text("IfController.condition", &condition), flag("IfController.useExpression", false)].concat(), &get("C", "/c", ""));
        let text = plan(&group("Users", "", &[get(&path, &path, ""), get("B", "/b", ""), inner].concat().replace('\u{0}', "")));
        let made = made(&text);
        let checked = made.checked();
        prop_assert!(checked.is_ok(), "{}\n{}", checked.unwrap_err(), made.scenario.to_yaml());
    }
}
