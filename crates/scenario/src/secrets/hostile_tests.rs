//! Texts that somebody else wrote: the masker panics on none, and goes through each a bounded number of times.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{Origin, Secrets};

/// Beginnings of everything that the masker looks for, and what ends it.
const PIECES: [&str; 64] = [
    "password",
    "token",
    "pin",
    "auth",
    "basic",
    "user",
    "url",
    "steps",
    "key",
    ":",
    ": ",
    "=",
    "&",
    "?",
    ";",
    ",",
    "|",
    ">-",
    "\n",
    "\r\n",
    "  ",
    "- ",
    "# ",
    "#",
    "\"",
    "\\\"",
    "'",
    "''",
    "\\",
    "`",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "</",
    "/>",
    "<password>",
    "<![CDATA[",
    "<!--",
    "${",
    "$${",
    "***",
    "…",
    "://",
    ":\\/\\/",
    "%3A%2F%2F",
    "%40",
    "@",
    "/",
    "h:80",
    "cookie: ",
    "Bearer ",
    "hmac(",
    "&a",
    "*a",
    "; name=\"pin\"\r\n\r\n",
    "-u ",
    "12",
    "ü",
    "#S3CRET1",
];

/// Texts in which each piece finds no end, or ends at once.
const UNITS: [&str; 36] = [
    "password=${;",
    "token=",
    "\"password\":\"",
    "\"password\":\"${ ",
    "\"token\":{",
    "\"token\":[\"a\",",
    "<password>",
    "<pin>${x}<pin>",
    "<password a=\"",
    "<a password='",
    "</password>",
    "://u:",
    "://u@",
    "://u:1/",
    "@",
    "%3A%2F%2Fu",
    "cookie: a; ",
    "authorization: ",
    "; name=\"pin\"\n",
    "-u a:",
    "bearer ",
    "password: ",
    "password: \"",
    "password: 'a' ",
    "token: {",
    "{token: ${",
    "auth: {",
    "auth: {steps: ",
    "url: ",
    "url: \"://",
    "hmac(",
    "hmac('",
    "password: *a ",
    "{x: &a b, password: *a, ",
    "password:\n ",
    "# token: x\n",
];
/// Where work grew with the square, this would take ever so long.
const HOSTILE_BYTES: usize = 8 << 10;

fn known() -> Secrets {
    let mut secrets = Secrets::default();
    for value in ["#S3CRET1", "S3CRET\n  of-lines", "\u{1}\u{2}\u{3}\u{4}", "pass", "….…."] {
        secrets.add("NAME", Origin::Environment, value);
    }
    secrets
}

fn masked_in_all_ways(text: &str) {
    let mut secrets = known();
    for masked in [secrets.masked(text), secrets.masked_traffic(text)] {
        assert!(!masked.contains("#S3CRET1"), "{text:?}: {masked:?}");
    }
    let in_place = secrets.masked_in_place(text);
    assert_eq!(in_place.chars().count(), text.chars().count(), "{text:?}: {in_place:?}");
    let of_source = secrets.masked_source(text, &HashSet::new());
    assert_eq!(of_source.matches('\n').count(), text.matches('\n').count(), "{text:?}: {of_source:?}");
    secrets.masked_command(&[text.to_owned(), text.to_owned()]);
    Secrets::of_command(&[text.to_owned(), text.to_owned()]);
}

proptest! {
    #[test]
    fn any_text_is_masked(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24)) {
        masked_in_all_ways(&pieces.concat());
    }
}

#[test]
fn a_text_is_gone_through_a_bounded_number_of_times() {
    for unit in UNITS {
        masked_in_all_ways(&unit.repeat(HOSTILE_BYTES / unit.len()));
    }
}
