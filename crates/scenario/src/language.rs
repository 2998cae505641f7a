//! The scenario language, described once: the checker, the JSON Schema, the hints and what the compiler reads are made from
//! this, and from the kinds of [steps](crate::steps).

use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::grammar::kinds::{self, Bool, Text, Whole, nodes, words};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Keys, Rule, Scalar as Plain, Shape};
use crate::plan::RatioForm;
use crate::reader::Reader;
use crate::steps::{AUTH, FOLLOW, HEADERS, STEPS};
use crate::yaml::Node;

pub(crate) mod comparison;
mod faults;
mod limits;
mod load;
mod script;
mod store;
mod system;
mod verify;
pub(crate) mod watch;

pub(crate) use self::faults::Fault;
pub(crate) use self::limits::Limits;
pub(crate) use self::load::{AnyRate, BetweenRows, Load, Phase, RateOverTime, Sine, Spike};
pub(crate) use self::script::Script;
pub(crate) use self::store::Store;
pub(crate) use self::system::{Hook, Ready, System, Tls};
pub(crate) use self::verify::{Contents, Counted, Numbers, Verify};
pub(crate) use self::watch::Watch;

/// Settings by name: each has a default, or all that it may be.
pub(crate) const SETTINGS: Shape =
    Map(Keys::Name("settings"), &Either(&[Scalar(Plain::Value), List(&Scalar(Plain::Value), 1)]));

/// A bound: of the whole run, with more about it, or of the phase that is its key.
const OBJECTIVE: Shape = Either(&[
    Scalar(Plain::Objective),
    Objective::SHAPE,
    Map(Keys::Text("phase names"), &Scalar(Plain::Objective)),
]);

/// Numbers of records: the last one, or more about them.
pub(crate) type KeysOf<'n> = kinds::Either<Whole<1>, Keyspace<'n>>;

nodes! {
    /// Steps, in order.
    pub(crate) Steps = STEPS;
    /// Texts known before the run.
    pub(crate) Texts = List(&Scalar(Plain::Text), 1);
    /// Headers by name.
    pub(crate) Headers = HEADERS;
    /// Credentials.
    pub(crate) Auth = AUTH.shape;
    /// Most redirects that are followed.
    pub(crate) Follow = FOLLOW.shape;
    /// Counters and labels: one, or several, which are added up.
    pub(crate) Counts = Either(&[Scalar(Plain::Text), List(&Scalar(Plain::Text), 1)]);
    /// Rows of a feeder.
    pub(crate) Rows = List(&Map(Keys::Name("columns"), &Scalar(Plain::Text)), 1);
}

words! {
    /// How a file's text is encoded.
    pub(crate) enum Encoding {
        /// UTF-8.
        Utf8 = "utf-8",
        /// Latin-1.
        Latin1 = "latin-1",
        /// What Windows has in its place.
        Windows1252 = "windows-1252",
        /// UTF-16.
        Utf16 = "utf-16",
    }
}

words! {
    /// In which order rows are drawn.
    pub(crate) enum Order {
        /// One after the other, over all sessions.
        InTurn = "in turn",
        /// Any of them.
        Random = "random",
    }
}

record! {
    /// One experiment: a system, what its users do, how many of them come, and what is expected.
    pub(crate) static SCENARIO("scenario", "a scenario") {
        "name": Text::SHAPE => "Name of the experiment; the file's name if it is missing.",
        "description": Text::SHAPE => "What it is, for a person.",
        "settings": SETTINGS =>
            "Named values with their defaults (of a list, which is what it may be, the first); `--set NAME=VALUE` \
             replaces them, `${NAME}` uses them anywhere.",
        "system": System::SHAPE => "What is driven, and how it is started.",
        "targets": Map(Keys::Name("targets"), &Of(|| &system::TARGET)) =>
            "Where requests go beside the system, by name; a step says so with `at`.",
        "services": Map(Keys::Name("names of services"), &Of(|| &system::SERVICE)) =>
            "Parts of the system by name, each in one or several instances, started before the system and stopped after it.",
        "stores": Map(Keys::Name("names of stores"), &Store::SHAPE) => "Stores by name, started before the system and stopped after it, or only reached.",
        "feeders": Map(Keys::Name("feeders"), &Feeder::SHAPE) => "Rows that sessions draw from, shared by all of them.",
        "defaults": Defaults::SHAPE => "What every request has unless it says otherwise.",
        "keys": Map(Keys::Name("keys"), &KeysOf::SHAPE) =>
            "Numbers of records, by name, from 1 to this: which are inserted, and how new their values are, is known \
             to all users.",
        "prepare": Either(&[STEPS, Prepare::SHAPE]) =>
            "Steps done before the load, once by one user, or more often by several; a failure ends the run.",
        "sessions" (required): Map(Keys::Text("session names"), &Session::SHAPE) =>
            "What virtual users do; where there are several kinds, each is chosen by its weight.",
        "load" (required): Load::SHAPE => "How many users or arriving sessions there are, and for how long.",
        "objectives": List(&OBJECTIVE, 0) =>
            "What decides pass or fail: of the whole run, or after `PHASE:` of that phase.",
        "ratios": Map(Keys::Text("names of ratios"), &Ratio::SHAPE) =>
            "Ratios by name, of the measured window: the sum of some counters or labels, divided by the sum of others.",
        "verify": Verify::SHAPE => "How everything is read back after the load, and compared with the ledger.",
        "limits": Limits::SHAPE => "Bounds of the load generator.",
        "script": Script::SHAPE => "Bounds of scripts of k6 and of `js` steps.",
        "watch": List(&Watch::SHAPE, 0) =>
            "What the run does not start and looks at all the same: processes, pages of metrics, other machines.",
        "faults": List(&Fault::SHAPE, 0) => "What is broken on purpose while the load is on.",
        "seed": Whole::<0>::SHAPE => "Fixes the random numbers; another run draws the same.",
    }
}

/// Parts of a scenario that several others look at; one that is not there says nothing.
pub(crate) struct Parts<'n> {
    pub(crate) defaults: Defaults<'n>,
    pub(crate) limits: Limits<'n>,
    pub(crate) system: System<'n>,
}

impl<'n> Parts<'n> {
    pub(crate) fn read(root: &'n Node, reader: &Reader<'_>) -> Option<Self> {
        static NOTHING: Node = Node::nothing();
        let part = |name| root.get(name).unwrap_or(&NOTHING);
        Some(Parts {
            defaults: Defaults::read(part("defaults"), reader)?,
            limits: Limits::read(part("limits"), reader)?,
            system: System::read(part("system"), reader)?,
        })
    }
}

record! {
    /// Numbers of records, of which it is known which are inserted and how new their values are.
    pub(crate) struct Keyspace("keys", "keys") {
        most (required): Whole<1> = "The last number that there can be; each takes 8 bytes.",
        loaded: Whole<0> = "How many are there before the run, from 1 on; 0 by default.",
    }
}

record! {
    /// What is done before the load, by several users.
    pub(crate) struct Prepare("prepare", "the preparation") {
        users: Whole<1> = "How many do it at once; 1 by default.",
        times: Whole<1> = "How often it is done, by all together; once by each user by default.",
        steps (required): Steps = "What is done, in order.",
    }
}

record! {
    /// A bound that decides pass or fail, with more about it.
    pub(crate) struct Objective("objective", "an objective") {
        objective (required): kinds::Objective = "The bound, like `p99 < 50ms`.",
        abort_early: Bool as "abort early" =
            "End the run as failed as soon as this is unreachable; `false` by default.",
    }
}

record! {
    /// A ratio of what was counted in the measured window.
    pub(crate) struct Ratio("ratio", "a ratio") {
        of (required): Counts =
            "What is divided: a counter of `measure`, or a label for its good answers; of a list the sum.",
        per (required): Counts = "What it is divided by, the same; where it is 0 the ratio is unknown.",
        form: RatioForm as "as" = "How it is shown: `plain` (default), or `percent`.",
    }
}

record! {
    /// Rows from a CSV file, written here, or numbers.
    pub(crate) struct Feeder("feeder", "a feeder", Rule::OneOf(&["file", "values", "rows", "from"])) {
        file: Text = "A CSV file, relative to the scenario; its first line names the columns.",
        header: Texts = "Names of the columns of a file whose first line is a row.",
        delimiter: Text = "What stands between a file's cells: `,` (default), another character, or `tab`.",
        encoding: Encoding =
            "How a file's text is encoded; `utf-8` by default.",
        values: Texts = "Values of one column, named like the feeder.",
        rows: Rows =
            "Rows, each a mapping with the same columns.",
        from: Whole<0> = "Numbers in one column, named like the feeder: the first of them.",
        to: Whole<0> = "The last of the numbers.",
        digits: Whole<1> = "Numbers get zeros in front up to this many digits.",
        order: Order =
            "`in turn` (default): one shared cursor over all sessions, begun again at the end.",
        held: Bool =
            "A row that a session has taken is given to no other until it takes the next one, or ends; false by \
             default.",
    }
}

record! {
    /// What every request has unless it says otherwise.
    pub(crate) struct Defaults("defaults", "the defaults") {
        headers: Headers = "Headers of every request; one with a list is sent once for each item.",
        auth: Auth = AUTH.about,
        timeout: kinds::Time = "Longest time for an answer; 30s by default.",
        follow: Follow = FOLLOW.about,
    }
}

record! {
    /// What one virtual user does: steps from the first to the last, or what a script says.
    pub(crate) struct Session("session", "a session", Rule::OneOf(&["steps", "script"])) {
        weight: Whole<0> = "How often this kind is chosen, against the sum of all; 1 by default.",
        keep_cookies: Bool as "keep cookies" =
            "Whether a user of a closed load keeps cookies from one session to the next; false by default.",
        steps: Steps = "What is done, in order.",
        script: Text =
            "A script of wrk (`.lua`) or k6 (`.js`, `.ts`), relative to the scenario, which makes the session's requests.",
        args: Texts = "What a script of wrk gives its `init`; of k6 what `__ENV` has besides, as `NAME=VALUE`.",
        path: Text = "Path and query that a script of wrk finds as `wrk.path`; `/` by default.",
        exec: Text = "The exported function of a script of k6 that is an iteration; `default` by default.",
        iterations: Whole<1> = "How many iterations of a script of k6 all users make together; no bound by default.",
        graceful_stop: kinds::Time as "graceful stop" =
            "How long iterations of a script of k6 go on after the end of their load, within `limits: drain`.",
        graceful_ramp_down: kinds::Time as "graceful ramp down" =
            "How long the iteration of a script of k6 goes on whose user is to leave before that.",
        labels: Texts =
            "What requests of a script of k6 are counted as, by their tag `name` or method and path; others as the session.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Record;
    use crate::grammar::Shape::{Step, Tree};
    use crate::steps;

    fn visit(record: &'static Record, seen: &mut Vec<&'static Record>) {
        if seen.iter().any(|known| known.schema == record.schema && known.about == record.about) {
            return;
        }
        seen.push(record);
        record.verbs.iter().chain(record.keys).for_each(|key| visit_shape(&key.shape, seen));
    }

    fn visit_shape(shape: &'static Shape, seen: &mut Vec<&'static Record>) {
        match shape {
            Of(record) => visit(record(), seen),
            Step => steps::kinds().for_each(|kind| visit(kind.record(), seen)),
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
            if let Scalar(Plain::Word(words)) = key.shape {
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
