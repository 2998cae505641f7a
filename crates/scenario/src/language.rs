//! The scenario language, described once: the checker, the JSON Schema and the hints are made from this, and from the
//! kinds of [steps](crate::steps).

use crate::grammar::Scalar::{Bool, Duration, Objective, Text, Value, Whole, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, Shape, key, required};
use crate::steps::{AUTH, FOLLOW, HEADERS, STEPS};

pub(crate) mod comparison;
mod faults;
mod limits;
mod load;
mod store;
mod system;
mod verify;
pub(crate) mod watch;

/// The default of a setting, or all that it may be.
pub(crate) static SETTING: Shape = Either(&[Scalar(Value), List(&Scalar(Value), 1)]);

/// The whole file.
pub(crate) static SCENARIO: Record = Record {
    what: "a scenario",
    schema: "scenario",
    about: "One experiment: a system, what its users do, how many of them come, and what is expected.",
    verbs: &[],
    keys: &[
        key("name", Scalar(Text), "Name of the experiment; the file's name if it is missing."),
        key("description", Scalar(Text), "What it is, for a person."),
        key(
            "settings",
            Map(Keys::Name("settings"), &SETTING),
            "Named values with their defaults (of a list, which is what it may be, the first); `--set NAME=VALUE` replaces them, `${NAME}` uses them anywhere.",
        ),
        key("system", Of(&system::SYSTEM), "What is driven, and how it is started."),
        key(
            "targets",
            Map(Keys::Name("targets"), &Of(&system::TARGET)),
            "Where requests go beside the system, by name; a step says so with `at`.",
        ),
        key(
            "stores",
            store::STORES,
            "Stores by name, started before the system and stopped after it, or only reached.",
        ),
        key(
            "feeders",
            Map(Keys::Name("feeders"), &Of(&FEEDER)),
            "Rows that sessions draw from, shared by all of them.",
        ),
        key("defaults", Of(&DEFAULTS), "What every request has unless it says otherwise."),
        key(
            "keys",
            Map(Keys::Name("keys"), &Either(&[Scalar(Whole(1)), Of(&KEYS)])),
            "Numbers of records, by name, from 1 to this: which are inserted, and how new their values are, is known to all users.",
        ),
        key(
            "prepare",
            Either(&[List(&Shape::Step, 1), Of(&PREPARE)]),
            "Steps done before the load, once by one user, or more often by several; a failure ends the run.",
        ),
        required(
            "sessions",
            Map(Keys::Text("session names"), &Of(&SESSION)),
            "What virtual users do; where there are several kinds, each is chosen by its weight.",
        ),
        required("load", Of(&load::LOAD), "How many users or arriving sessions there are, and for how long."),
        key(
            "objectives",
            List(
                &Either(&[
                    Scalar(Objective),
                    Of(&OBJECTIVE),
                    Map(Keys::Text("phase names"), &Scalar(Objective)),
                ]),
                0,
            ),
            "What decides pass or fail: of the whole run, or after `PHASE:` of that phase.",
        ),
        key(
            "verify",
            Of(&verify::VERIFY),
            "How everything is read back after the load, and compared with the ledger.",
        ),
        key("limits", Of(&limits::LIMITS), "Bounds of the load generator."),
        key(
            "watch",
            List(&Of(&watch::WATCH), 0),
            "What the run does not start and looks at all the same: processes, pages of metrics, other machines.",
        ),
        key("faults", List(&Of(&faults::FAULT), 0), "What is broken on purpose while the load is on."),
        key("seed", Scalar(Whole(0)), "Fixes the random numbers; another run draws the same."),
    ],
    rule: Rule::Free,
};

static KEYS: Record = Record {
    what: "keys",
    schema: "keys",
    about: "Numbers of records, of which it is known which are inserted and how new their values are.",
    verbs: &[],
    keys: &[
        required("most", Scalar(Whole(1)), "The last number that there can be; each takes 8 bytes."),
        key("loaded", Scalar(Whole(0)), "How many are there before the run, from 1 on; 0 by default."),
    ],
    rule: Rule::Free,
};

static PREPARE: Record = Record {
    what: "the preparation",
    schema: "prepare",
    about: "What is done before the load, by several users.",
    verbs: &[],
    keys: &[
        key("users", Scalar(Whole(1)), "How many do it at once; 1 by default."),
        key(
            "times",
            Scalar(Whole(1)),
            "How often it is done, by all together; once by each user by default.",
        ),
        required("steps", STEPS, "What is done, in order."),
    ],
    rule: Rule::Free,
};

static OBJECTIVE: Record = Record {
    what: "an objective",
    schema: "objective",
    about: "A bound that decides pass or fail, with more about it.",
    verbs: &[],
    keys: &[
        required("objective", Scalar(Objective), "The bound, like `p99 < 50ms`."),
        key(
            "abort early",
            Scalar(Bool),
            "End the run as failed as soon as this is unreachable; `false` by default.",
        ),
    ],
    rule: Rule::Free,
};
static FEEDER: Record = Record {
    what: "a feeder",
    schema: "feeder",
    about: "Rows from a CSV file, written here, or numbers.",
    verbs: &[],
    keys: &[
        key("file", Scalar(Text), "A CSV file, relative to the scenario; its first line names the columns."),
        key("header", List(&Scalar(Text), 1), "Names of the columns of a file whose first line is a row."),
        key(
            "delimiter",
            Scalar(Text),
            "What stands between a file's cells: `,` (default), another character, or `tab`.",
        ),
        key(
            "encoding",
            Scalar(Word(&["utf-8", "latin-1", "windows-1252", "utf-16"])),
            "How a file's text is encoded; `utf-8` by default.",
        ),
        key("values", List(&Scalar(Text), 1), "Values of one column, named like the feeder."),
        key(
            "rows",
            List(&Map(Keys::Name("columns"), &Scalar(Text)), 1),
            "Rows, each a mapping with the same columns.",
        ),
        key("from", Scalar(Whole(0)), "Numbers in one column, named like the feeder: the first of them."),
        key("to", Scalar(Whole(0)), "The last of the numbers."),
        key("digits", Scalar(Whole(1)), "Numbers get zeros in front up to this many digits."),
        key(
            "order",
            Scalar(Word(&["in turn", "random"])),
            "`in turn` (default): one shared cursor over all sessions, begun again at the end.",
        ),
        key(
            "held",
            Scalar(Bool),
            "A row that a session has taken is given to no other until it takes the next one, or ends; false by default.",
        ),
    ],
    rule: Rule::OneOf(&["file", "values", "rows", "from"]),
};

static DEFAULTS: Record = Record {
    what: "the defaults",
    schema: "defaults",
    about: "What every request has unless it says otherwise.",
    verbs: &[],
    keys: &[
        key("headers", HEADERS, "Headers of every request; one with a list is sent once for each item."),
        AUTH,
        key("timeout", Scalar(Duration), "Longest time for an answer; 30s by default."),
        FOLLOW,
    ],
    rule: Rule::Free,
};

static SESSION: Record = Record {
    what: "a session",
    schema: "session",
    about: "What one virtual user does, from the first step to the last.",
    verbs: &[],
    keys: &[
        key(
            "weight",
            Scalar(Whole(0)),
            "How often this kind is chosen, against the sum of all; 1 by default.",
        ),
        key(
            "keep cookies",
            Scalar(Bool),
            "Whether a user of a closed load keeps cookies from one session to the next; false by default.",
        ),
        required("steps", STEPS, "What is done, in order."),
    ],
    rule: Rule::Free,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Shape::{self, Step, Tree};
    use crate::steps;

    fn visit(record: &'static Record, seen: &mut Vec<&'static Record>) {
        if seen.iter().any(|known| std::ptr::eq(*known, record)) {
            return;
        }
        seen.push(record);
        record.verbs.iter().chain(record.keys).for_each(|key| visit_shape(&key.shape, seen));
    }

    fn visit_shape(shape: &'static Shape, seen: &mut Vec<&'static Record>) {
        match shape {
            Of(record) => visit(record, seen),
            Step => steps::kinds().for_each(|kind| visit(&kind.record, seen)),
            Map(_, inner) | List(inner, _) => visit_shape(inner, seen),
            Either(shapes) => shapes.iter().for_each(|shape| visit_shape(shape, seen)),
            Scalar(_) | Tree => {}
        }
    }

    #[test]
    fn the_reference_names_every_key_and_word() {
        let reference = include_str!("../../../docs/scenario.md");
        let mut records = Vec::new();
        visit(&SCENARIO, &mut records);
        assert!(records.len() > 20);
        for key in records.iter().flat_map(|record| record.verbs.iter().chain(record.keys)) {
            let (quoted, in_yaml) = (format!("`{}`", key.name), format!("{}:", key.name));
            let named = reference.contains(&quoted) || reference.contains(&in_yaml);
            assert!(named, "docs/scenario.md does not name the key {}", key.name);
            if let Scalar(Word(words)) = key.shape {
                for word in words {
                    assert!(reference.contains(word), "docs/scenario.md does not name the word {word}");
                }
            }
        }
    }

    #[test]
    fn schema_names_are_unique() {
        let mut records = Vec::new();
        visit(&SCENARIO, &mut records);
        let mut names: Vec<_> = records.iter().map(|record| record.schema).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), records.len());
    }
}
