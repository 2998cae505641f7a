//! The ledger in the language: what is compiled, and what is told about mistakes.

use crate::support::{self, load, told_in};
use tidemark_scenario::template::Part;

const GOOD: &str = "\
settings: {kind: ABC}
feeders:
  people: {values: [ada, bob]}
sessions:
  writer:
    steps:
      - take: people
      - GET: /m
        label: Message
        ledger: {content: \"${people}${now()}${kind}${entry},${check}\", as: message}
        query: {c: \"${message}\"}
load: {users: 1, hold: 10s}
";

const CHAT: &str = "\
sessions:
  writer:
    steps:
      - ws connect: /chat
      - ws send: {json: {say: \"${words}\"}}
        label: Say
        ledger: {content: \"${check} ${entry} ${random(1, 9)}\", as: words}
        expect: {json: {$.heard: \"${words}\"}}
load: {users: 1, hold: 10s}
";

#[test]
fn a_content_is_compiled_around_its_marks() {
    for (text, label, entry_first) in [(GOOD, "Message", true), (CHAT, "Say", false)] {
        let (plan, diagnostics) = support::checked(text);
        assert_eq!(diagnostics.to_string(), "");
        let plan = plan.unwrap();
        let entered: Vec<_> = plan.entered().collect();
        let [(entered_label, ledger)] = entered[..] else { panic!("{entered:?}") };
        assert_eq!((entered_label, ledger.entry_first), (label, entry_first));
        assert!(plan.sessions[0].slot_names[usize::from(ledger.slot)].len() > 4);
    }
    let plan = load(GOOD).unwrap();
    let (_, ledger) = plan.entered().next().unwrap();
    // The setting is written out beforehand.
    assert!(
        matches!(&ledger.text[0].parts[..], [Part::Hole(..), Part::Hole(..), Part::Literal(kind)] if **kind == *b"ABC")
    );
    assert_eq!(ledger.text[1].as_literal(), Some(&b","[..]));
    assert_eq!(ledger.text[2].as_literal(), Some(&b""[..]));
}

#[test]
fn prepare_enters_its_writes_too() {
    let steps = "prepare:\n  - POST: /m\n    ledger: {content: \"${entry}${check}\", as: it}\n    body: ${it}\nsessions:";
    let plan = load(&GOOD.replacen("sessions:", steps, 1)).unwrap();
    assert_eq!(plan.entered().count(), 2);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let cases = [
        (
            "${entry},",
            ",",
            "t.yaml:10:27: this content needs ${entry}, the number by which this write is looked for afterwards",
        ),
        (
            ",${check}",
            "",
            "t.yaml:10:27: this content needs ${check}, the checksum by which a changed content is noticed",
        ),
        (
            ",${check}",
            ",${check}${entry}",
            "t.yaml:10:71: ${entry} stands in this content before; once is enough",
        ),
        (
            "${entry},",
            "${entry + 1},",
            "t.yaml:10:27: this content needs ${entry}, the number by which this write is looked for afterwards\n\
             t.yaml:10:54: ${entry} is the number by which this write is looked for afterwards; it stands alone in a \
             ledger's content and nowhere else",
        ),
        (
            "c: \"${message}\"",
            "c: \"${message}${check}\"",
            "t.yaml:11:33: ${check} is the checksum by which a changed content is noticed; it stands alone in a \
             ledger's content and nowhere else",
        ),
        (
            "c: \"${message}\"",
            "c: message",
            "t.yaml:10:76: this step does not send the content that it enters; put ${message} where it belongs, like \
             query: {c: \"${message}\"}",
        ),
        (
            "{kind: ABC}",
            "{kind: ABC, entry: 1}",
            "t.yaml:10:54: there is a setting \"entry\", which ${entry} is not in a ledger's content; rename it",
        ),
        (
            "- take: people",
            "- set: {people: x, check: 1}",
            "t.yaml:10:63: there is a variable \"check\", which ${check} is not in a ledger's content; rename it",
        ),
        (
            "${kind}${entry},${check}",
            "${entry}${people}${check}",
            "t.yaml:10:27: what stands on both sides of ${entry} or ${check} varies, so that they could not be found \
             again; put a mark beside them, like |${entry}|${check}|",
        ),
        (
            ", as: message",
            "",
            "t.yaml:10:17: an entry in the ledger needs the key \"as\": Variable that gets",
        ),
        ("as: message", "as: kind", "t.yaml:10:76: \"kind\" is a setting and cannot be set here"),
        ("${entry},", "${entry,", "t.yaml:10:"),
    ];
    for (old, new, expected) in cases {
        let told = told_in(GOOD, old, new);
        assert!(told.starts_with(expected), "{new}:\n{told}\nexpected:\n{expected}");
    }
    let silent = CHAT.replacen("        expect: {json: {$.heard: \"${words}\"}}\n", "", 1);
    let told = load(&silent).unwrap_err().to_string();
    assert!(told.contains("t.yaml:7:17: without expect nothing acknowledges this message"), "{told}");
}

/// Places from either end, or marks beside them.
#[test]
fn contents_in_which_both_can_be_found() {
    let good = [
        "${entry}${check}",
        "${entry}${people}x${check}",
        "${entry}${people}${check}",
        "${people}${entry}${check}",
        "${people}|${entry}${check}${people}",
        "${people}${entry}${check}|${people}",
        "${people}${entry}-${check}${people}",
        "${people}${check}7${entry}",
    ];
    for content in good {
        load(&GOOD.replacen("${people}${now()}${kind}${entry},${check}", content, 1))
            .unwrap_or_else(|told| panic!("{content}: {told}"));
    }
    let bad = [
        "${people}${entry}${check}${people}",
        "${people}${entry}7${check}${people}",
        "${people}|${entry}${people}${check}${people}",
        "${people}12${entry}${check}3${people}",
    ];
    for content in bad {
        assert!(
            load(&GOOD.replacen("${people}${now()}${kind}${entry},${check}", content, 1)).is_err(),
            "{content}"
        );
    }
}
