//! Postman's dynamic variables: `{{$guid}}` and the like.

use super::Making;
use crate::holes::Hole;
use crate::plan::shown;

/// Each with its expression, and whether its values are letters, digits and `_-.` only.
const DYNAMIC: [(&str, &str, bool); 38] = [
    ("guid", "uuid()", true),
    ("randomUUID", "uuid()", true),
    ("timestamp", "floor(now() / 1000)", true),
    ("isoTimestamp", "date(now(), '%Y-%m-%dT%H:%M:%S%.3fZ')", false),
    ("randomInt", "random(0, 1000)", true),
    ("randomBoolean", "pick(true, false)", true),
    ("randomAlphaNumeric", "lower(random_text(1))", true),
    ("randomPassword", "random_text(15)", true),
    ("randomFirstName", "pick('Ann', 'Bob', 'Clara', 'David', 'Emma', 'Frank')", true),
    ("randomLastName", "pick('Adams', 'Brown', 'Cole', 'Davis', 'Evans', 'Fox')", true),
    ("randomFullName", "concat(pick('Ann', 'Bob', 'Clara'), ' ', pick('Adams', 'Brown', 'Cole'))", false),
    ("randomUserName", "concat('user_', lower(random_text(8)))", true),
    ("randomEmail", "concat(lower(random_text(10)), '@example.com')", false),
    ("randomExampleEmail", "concat(lower(random_text(10)), '@example.com')", false),
    ("randomPhoneNumber", "concat(random(200, 999), '-', random(200, 999), '-', random(1000, 9999))", true),
    ("randomCity", "pick('Berlin', 'Lima', 'Oslo', 'Paris', 'Rome', 'Tokyo')", true),
    ("randomCountry", "pick('Chile', 'France', 'Italy', 'Japan', 'Kenya', 'Norway')", true),
    ("randomCountryCode", "pick('CL', 'FR', 'IT', 'JP', 'KE', 'NO')", true),
    ("randomStreetName", "pick('Main Street', 'High Street', 'Park Road')", false),
    (
        "randomStreetAddress",
        "concat(random(1, 999), ' ', pick('Main Street', 'High Street', 'Park Road'))",
        false,
    ),
    ("randomLatitude", "concat(random(-89, 89), '.', pad(random(0, 9999), 4))", true),
    ("randomLongitude", "concat(random(-179, 179), '.', pad(random(0, 9999), 4))", true),
    ("randomColor", "pick('red', 'green', 'blue', 'black', 'white')", true),
    (
        "randomIP",
        "concat(random(1, 223), '.', random(0, 255), '.', random(0, 255), '.', random(1, 254))",
        true,
    ),
    ("randomProtocol", "pick('http', 'https')", true),
    ("randomSemver", "concat(random(0, 9), '.', random(0, 9), '.', random(0, 9))", true),
    ("randomPrice", "concat(random(0, 999), '.', pad(random(0, 99), 2))", true),
    ("randomBankAccount", "pad(random(0, 99999999), 8)", true),
    ("randomProduct", "pick('Chair', 'Lamp', 'Shirt', 'Table')", true),
    ("randomProductName", "pick('Small Chair', 'Green Lamp', 'Soft Shirt')", false),
    ("randomCompanyName", "pick('Adams Inc', 'Brown Ltd', 'Cole Group')", false),
    ("randomWord", "lower(random_text(8))", true),
    ("randomLoremWord", "pick('lorem', 'ipsum', 'dolor', 'amet')", true),
    ("randomWords", "concat(lower(random_text(6)), ' ', lower(random_text(5)))", false),
    ("randomLoremSentence", "'Lorem ipsum dolor sit amet.'", false),
    ("randomDateRecent", "date(now() - hours(random(1, 23)), '%a %b %d %Y')", false),
    ("randomDatePast", "date(now() - days(random(1, 364)), '%a %b %d %Y')", false),
    ("randomDateFuture", "date(now() + days(random(1, 364)), '%a %b %d %Y')", false),
];

impl Making<'_> {
    /// What stands for a dynamic variable.
    pub(super) fn dynamic(&mut self, name: &str) -> Hole {
        if let Some((_, expression, is_plain)) = DYNAMIC.iter().find(|(known, ..)| *known == name) {
            let is_number =
                ["floor(", "random(", "pick(true"].iter().any(|begin| expression.starts_with(begin));
            return Hole { is_text: !is_number, ..Hole::new(*expression, *is_plain) };
        }
        let element = format!("{{{{${}}}}}", shown(name));
        let would = "written a made-up value of its kind: random letters stand for it";
        self.draft.tell(self.line, &element, would, true);
        Hole::new("lower(random_text(10))", true)
    }
}
