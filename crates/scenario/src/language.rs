//! The scenario language, described once: the checker, the JSON Schema and the hints are made from this.

use crate::grammar::Scalar::{
    Bool, Condition, Duration, Each, JsonPath, Name, Number, Objective, Rate, Regex, Share, Size, Status,
    Template, Text, Users, Value, Whole, Word,
};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar, Step, Tree};
use crate::grammar::{Key, Keys, Record, Rule, Shape, key, required};
use crate::plan::{HttpVersion, Resolve};

mod call;
pub(crate) mod comparison;
mod faults;
mod redis;
mod store;
mod verify;
pub(crate) mod websocket;

/// A list of steps.
pub(crate) static STEPS: Shape = List(&Step(&STEP_KINDS), 1);

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
            Map(Keys::Name("settings"), &Scalar(Value)),
            "Named values with their defaults; `--set NAME=VALUE` replaces them, `${NAME}` uses them anywhere.",
        ),
        key("system", Of(&SYSTEM), "What is driven, and how it is started."),
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
        key("prepare", STEPS, "Steps done once before the load, by one user; a failure ends the run."),
        required(
            "sessions",
            Map(Keys::Text("session names"), &Of(&SESSION)),
            "What virtual users do; where there are several kinds, each is chosen by its weight.",
        ),
        required("load", Of(&LOAD), "How many users or arriving sessions there are, and for how long."),
        key(
            "objectives",
            List(&Either(&[Scalar(Objective), Of(&OBJECTIVE)]), 0),
            "What decides pass or fail.",
        ),
        key(
            "verify",
            Of(&verify::VERIFY),
            "How everything is read back after the load, and held against the ledger.",
        ),
        key("limits", Of(&LIMITS), "Bounds of the driver."),
        key("faults", List(&Of(&faults::FAULT), 0), "What is broken on purpose while the load is on."),
        key("seed", Scalar(Whole(0)), "Fixes the random numbers; another run draws the same."),
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
            "Cut the run short, as failed, once this can no longer be met; `false` by default.",
        ),
    ],
    rule: Rule::Free,
};

static SYSTEM: Record = Record {
    what: "a system",
    schema: "system",
    about: "What is driven: a shipped system by name, a command, or a URL.",
    verbs: &[],
    keys: &[
        key("serve", Scalar(Text), "Name of a shipped system, started with `tidemark serve NAME`."),
        key(
            "command",
            Either(&[Scalar(Text), List(&Scalar(Text), 1)]),
            "A command that starts the system; `{port}` in it stands for a free port.",
        ),
        key(
            "url",
            Scalar(Text),
            "Where the system is, if it runs already: `http://host:port/base`, or `https`; `ws` and `wss` are the same.",
        ),
        key("store", Scalar(Text), "Name of a Redis under `stores`, which is then driven itself."),
        key(
            "settings",
            Map(Keys::Text("settings of the system"), &Scalar(Text)),
            "Of `serve`: handed to the system as `--set NAME=VALUE`; `{stores.NAME.url}` stands for a store's.",
        ),
        key(
            "durability",
            Scalar(Word(&["synced", "buffered", "memory"])),
            "When the system answers a write: on disk, with the operating system, or in memory.",
        ),
        key("health", Scalar(Text), "Path that answers 200 when the system is ready; `/health` by default."),
        key("ready within", Scalar(Duration), "Longest time until it is; 60s by default."),
        key(
            "resolve",
            Scalar(Word(&Resolve::WORDS)),
            "Which address of the URL's host is driven, looked up once: `ipv4` (default) and `ipv6` prefer one kind.",
        ),
        key(
            "connect to",
            Scalar(Text),
            "Where connections are made to instead of the URL's host: `HOST:PORT` or `unix:PATH`.",
        ),
        key("tls", Of(&TLS), "How TLS is spoken to an `https` URL."),
        key(
            "http",
            Scalar(Word(&HttpVersion::WORDS)),
            "Version of HTTP at a `url`: `1.1` (default), `2`, or `auto`: over TLS what the server prefers.",
        ),
        key(
            "rpc",
            Scalar(Text),
            "Path of the WebSocket that takes the calls of CALL steps; `/rpc` by default.",
        ),
    ],
    rule: Rule::OneOf(&["serve", "command", "url", "store"]),
};

static TLS: Record = Record {
    what: "the TLS settings",
    schema: "tls",
    about: "How TLS is spoken to an `https` URL.",
    verbs: &[],
    keys: &[
        key("insecure", Scalar(Bool), "Accept any certificate; false by default."),
        key(
            "ca",
            Scalar(Text),
            "A PEM file, relative to the scenario, of the only authorities trusted; else the machine's.",
        ),
        key(
            "server name",
            Scalar(Text),
            "The name that the certificate must have and that is asked for; the URL's host by default.",
        ),
        key(
            "certificate",
            Scalar(Text),
            "A PEM file, relative to the scenario, with the driver's own certificate, for a server that asks.",
        ),
        key("key", Scalar(Text), "A PEM file with the certificate's key; else it is in the same file."),
        key(
            "resumption",
            Scalar(Bool),
            "Whether a new connection resumes an earlier session; true by default.",
        ),
    ],
    rule: Rule::Free,
};

static FEEDER: Record = Record {
    what: "a feeder",
    schema: "feeder",
    about: "Rows from a CSV file with a header line, written here, or numbers.",
    verbs: &[],
    keys: &[
        key("file", Scalar(Text), "A CSV file, relative to the scenario; its first line names the columns."),
        key("values", List(&Scalar(Text), 1), "Values of one column, named like the feeder."),
        key(
            "rows",
            List(&Map(Keys::Name("columns"), &Scalar(Text)), 1),
            "Rows, each a mapping with the same columns.",
        ),
        key("from", Scalar(Whole(0)), "Numbers in one column, named like the feeder: the first of them."),
        key("to", Scalar(Whole(0)), "The last of the numbers."),
        key("digits", Scalar(Whole(1)), "Numbers get zeros in front until they have so many digits."),
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
        key("headers", Map(Keys::Text("header names"), &Scalar(Template)), "Headers of every request."),
        key("timeout", Scalar(Duration), "Longest time for an answer; 30s by default."),
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

static LOAD: Record = Record {
    what: "a load",
    schema: "load",
    about: "Closed (`users`) or open (`rate`), in phases; for all kinds of sessions together, or for each its own.",
    verbs: &[],
    keys: &[
        key(
            "users",
            Scalar(Users),
            "Closed: so many users, each begins its next session when its last ended.",
        ),
        key(
            "think",
            Either(&[Scalar(Duration), Of(&THINK)]),
            "Closed: each user waits so long between two sessions.",
        ),
        key(
            "pace",
            Scalar(Duration),
            "Closed: each user begins a session every so often, at once if the last one took longer.",
        ),
        key("rate", RATE, "Open: so many sessions arrive each second, whatever the system does."),
        key("spike", Of(&SPIKE), "Open: what the rate jumps to, again and again."),
        key(
            "spacing",
            Scalar(Word(&["constant", "poisson"])),
            "Open: time between arrivals, always the same (default) or as from many independent people.",
        ),
        key("ramp", Scalar(Duration), "From nothing evenly up to the full level; not measured."),
        key("warm-up", Scalar(Duration), "At the full level, not measured."),
        key("hold", Scalar(Duration), "At the full level, measured."),
        key(
            "phases",
            List(&Of(&PHASE), 1),
            "Instead of ramp, warm-up and hold: any phases, one after another.",
        ),
        key(
            "sessions",
            Map(Keys::Text("session names"), &Of(&LOAD)),
            "Instead of all that: a load for each kind of session, all begun together.",
        ),
    ],
    rule: Rule::AtMostOneOf(&["users", "rate"]),
};

static PHASE: Record = Record {
    what: "a phase",
    schema: "phase",
    about: "A stretch of the load at one level, or evenly from one to another.",
    verbs: &[],
    keys: &[
        key("name", Scalar(Text), "Its name in the report."),
        key("for", Scalar(Duration), "How long it is; needed unless its rates come from a file."),
        key("users", Scalar(Users), "Closed: `50`, `10 to 100`, or `10 to 100 in 4 steps`."),
        key(
            "rate",
            RATE,
            "Open: `50/s`, `10/s to 100/s`, `10/s to 100/s in 4 steps`, a sine, or a file of rates.",
        ),
        key("spike", Of(&SPIKE), "Open: what the rate jumps to, again and again."),
        key("measured", Scalar(Bool), "Whether it counts; by default if it is not named warm-up or ramp."),
    ],
    rule: Rule::AtMostOneOf(&["users", "rate"]),
};

static RATE: Shape = Either(&[Scalar(Rate), Of(&RATE_OVER_TIME)]);

static RATE_OVER_TIME: Record = Record {
    what: "a rate over time",
    schema: "rateOverTime",
    about: "A rate that swings, or rates from a file.",
    verbs: &[],
    keys: &[
        key("sine", Of(&SINE), "Swings around a mean."),
        key(
            "file",
            Scalar(Text),
            "A CSV file, relative to the scenario, with the columns seconds and rate (sessions each second).",
        ),
        key(
            "between rows",
            Scalar(Word(&["hold", "line"])),
            "A file's rate stays until the next row (`hold`, the default), or changes evenly to it (`line`).",
        ),
    ],
    rule: Rule::OneOf(&["sine", "file"]),
};

static SINE: Record = Record {
    what: "a sine",
    schema: "sine",
    about: "A rate that swings around its mean; at the mean and rising at the begin.",
    verbs: &[],
    keys: &[
        required("mean", Scalar(Rate), "The rate that it swings around."),
        required("amplitude", Scalar(Rate), "How far it swings to either side; at most the mean."),
        required("period", Scalar(Duration), "Length of one swing."),
    ],
    rule: Rule::Free,
};

static SPIKE: Record = Record {
    what: "a spike",
    schema: "spike",
    about: "Another rate for a while, at the end of every period.",
    verbs: &[],
    keys: &[
        required("rate", Scalar(Rate), "The rate of a spike."),
        required("every", Scalar(Duration), "From the end of one spike to the end of the next."),
        required("for", Scalar(Duration), "Length of a spike."),
    ],
    rule: Rule::Free,
};

static LIMITS: Record = Record {
    what: "limits",
    schema: "limits",
    about: "Bounds of the driver. What reaches one is counted and shown.",
    verbs: &[],
    keys: &[
        key(
            "connections",
            Scalar(Whole(1)),
            "Connections at once; 1000 by default, and never fewer than the users need. Arrivals find as many made as are named.",
        ),
        key(
            "choose",
            Scalar(Word(&["in turn", "first free"])),
            "Which free connection a session takes: `in turn` (default), or of those that are open the `first free`.",
        ),
        key(
            "waiting",
            Scalar(Whole(0)),
            "Sessions that may wait for a connection or another session's end; more are dropped. As many as 256 MiB hold \
             by default.",
        ),
        key(
            "in flight",
            Scalar(Whole(1)),
            "Arrived sessions in flight; without it, connections are the limit. Users are their own limit.",
        ),
        key(
            "at limit",
            Scalar(Word(&["wait", "drop"])),
            "What an arrival does when so many sessions are in flight: `wait` (default; it counts) or `drop`.",
        ),
        key("connect timeout", Scalar(Duration), "Longest time to make a connection; 5s by default."),
        key("body", Scalar(Size), "Largest answer body that is kept; 16MiB by default."),
        key("drain", Scalar(Duration), "Longest wait for requests under way at the end; 10s by default."),
        key(
            "sessions",
            Scalar(Whole(1)),
            "So many sessions begin, warm-up included, and no more; the load is over when they have ended.",
        ),
        key(
            "keep alive",
            Scalar(Bool),
            "Whether a connection carries one request after another; true by default.",
        ),
        key(
            "pipeline",
            Scalar(Whole(1)),
            "Requests at once on a connection, of as many sessions (HTTP/1.1 pipelining); 1 by default, at most 1024.",
        ),
        key(
            "streams",
            Scalar(Whole(1)),
            "Requests at once on a connection of HTTP/2, or calls on a WebSocket, if the server takes as many; 1 by default.",
        ),
    ],
    rule: Rule::Free,
};

/// The kinds of steps, told apart by their verb.
pub(crate) static STEP_KINDS: [Record; 17] = [
    Record {
        what: "a request",
        schema: "request",
        about: "Sends a request and waits for its answer. The path's holes are percent-encoded.",
        verbs: &[
            method("GET"),
            method("POST"),
            method("PUT"),
            method("PATCH"),
            method("DELETE"),
            method("HEAD"),
            method("OPTIONS"),
        ],
        keys: &[
            LABEL,
            QUERY,
            key("headers", Map(Keys::Text("header names"), &Scalar(Template)), "Headers."),
            key("form", Map(Keys::Text("fields"), &Scalar(Template)), "The body as an encoded form."),
            key("json", Tree, "The body as JSON; a text that is one `${…}` keeps the value's type."),
            key("body", Scalar(Template), "The body as it is."),
            LEDGER_KEY,
            TIMEOUT,
            EXTRACT_KEY,
            key(
                "check",
                Of(&CHECK),
                "What must hold; without a status check, any status below 400 is right.",
            ),
        ],
        rule: Rule::AtMostOneOf(&["form", "json", "body"]),
    },
    Record {
        what: "a sometimes step",
        schema: "sometimes",
        about: "Does its steps in a share of all passes.",
        verbs: &[key("sometimes", Scalar(Share), "The share of all passes, over all users.")],
        keys: &[
            key(
                "rhythm",
                Scalar(Word(&["shared", "random"])),
                "`shared` (default): evenly spread, 25% is the 3rd, 7th, 11th … pass overall; or by chance.",
            ),
            required("steps", STEPS, "What is done."),
        ],
        rule: Rule::Free,
    },
    Record {
        what: "a repeat step",
        schema: "repeat",
        about: "Does its steps several times.",
        verbs: &[key("repeat", Scalar(Number), "How often.")],
        keys: &[
            key("as", Scalar(Name), "Variable that counts the rounds, from 0."),
            required("steps", STEPS, "What is done."),
        ],
        rule: Rule::Free,
    },
    Record {
        what: "a choose step",
        schema: "choose",
        about: "Goes one of several ways, by chance.",
        verbs: &[key("choose", List(&Of(&WAY), 1), "The ways.")],
        keys: &[],
        rule: Rule::Free,
    },
    Record {
        what: "a when step",
        schema: "when",
        about: "Does its steps if a condition holds.",
        verbs: &[key("when", Scalar(Condition), "The condition; missing, false, 0 and empty do not hold.")],
        keys: &[
            required("steps", STEPS, "What is done if it holds."),
            key("else", STEPS, "What is done if it does not."),
        ],
        rule: Rule::Free,
    },
    Record {
        what: "an each step",
        schema: "each",
        about: "Does its steps for each item of a list.",
        verbs: &[key("each", Scalar(Each), "`NAME in LIST`: the variable that gets the item, and the list.")],
        keys: &[
            key("limit", Scalar(Number), "Only so many, from the first."),
            required("steps", STEPS, "What is done."),
        ],
        rule: Rule::Free,
    },
    Record {
        what: "a think step",
        schema: "think",
        about: "Waits as a person would.",
        verbs: &[key("think", Either(&[Scalar(Duration), Of(&THINK)]), "How long.")],
        keys: &[],
        rule: Rule::Free,
    },
    Record {
        what: "a set step",
        schema: "set",
        about: "Sets variables of the session.",
        verbs: &[key("set", Map(Keys::Name("variables"), &Scalar(Value)), "Values by variable, in order.")],
        keys: &[],
        rule: Rule::Free,
    },
    Record {
        what: "a take step",
        schema: "take",
        about: "Draws the next row of a feeder and sets a variable for each of its columns.",
        verbs: &[key("take", Either(&[Scalar(Text), List(&Scalar(Text), 1)]), "Feeders.")],
        keys: &[],
        rule: Rule::Free,
    },
    Record {
        what: "an end step",
        schema: "end",
        about: "Ends the session here.",
        verbs: &[key("end", Scalar(Word(&["session"])), "What ends.")],
        keys: &[],
        rule: Rule::Free,
    },
    call::CALL,
    redis::REDIS,
    websocket::CONNECT,
    websocket::SEND,
    websocket::EXPECT,
    websocket::PING,
    websocket::CLOSE,
];

const fn method(name: &'static str) -> Key {
    key(name, Scalar(Template), "Path of the request, begun with a slash.")
}

static WAY: Record = Record {
    what: "a way",
    schema: "way",
    about: "One of the ways of a choose step.",
    verbs: &[],
    keys: &[
        key("weight", Scalar(Whole(0)), "How often it is gone, against the sum of all; 1 by default."),
        required("steps", STEPS, "What is done."),
    ],
    rule: Rule::Free,
};

static THINK: Record = Record {
    what: "a think time",
    schema: "thinkTime",
    about: "A think time that varies.",
    verbs: &[],
    keys: &[
        key("between", List(&Scalar(Duration), 2), "Two times: uniform between them."),
        key("exponential", Scalar(Duration), "The mean of an exponential distribution."),
    ],
    rule: Rule::OneOf(&["between", "exponential"]),
};

const LABEL: Key =
    key("label", Scalar(Text), "Name in the report; requests with the same one are counted together.");
const QUERY: Key =
    key("query", Map(Keys::Text("parameters"), &Scalar(Template)), "Put behind the path, encoded.");
const TIMEOUT: Key = key("timeout", Scalar(Duration), "Longest time for the answer.");
const EXTRACT_KEY: Key =
    key("extract", Map(Keys::Name("variables"), &EXTRACT), "What is kept of the answer, by variable.");

const LEDGER_KEY: Key = key(
    "ledger",
    Of(&LEDGER),
    "Enters what is written in the ledger, so that it is looked for after the run.",
);

static LEDGER: Record = Record {
    what: "an entry in the ledger",
    schema: "ledger",
    about: "The content of a write, made for each anew, so that it can be looked for and known again after the run.",
    verbs: &[],
    keys: &[
        required(
            "content",
            Scalar(Template),
            "What is written, with `${entry}` and `${check}` each once: 16 digits by which it is found, 12 that check it.",
        ),
        required("as", Scalar(Name), "Variable that gets the content; the step sends it."),
    ],
    rule: Rule::Free,
};

static EXTRACT: Shape = Either(&[Scalar(Text), Of(&EXTRACTION)]);

static EXTRACTION: Record = Record {
    what: "an extraction",
    schema: "extraction",
    about: "Where a value comes from. Short: a JSON path for its first value, or `status` or `body`.",
    verbs: &[],
    keys: &[
        key("json", Scalar(JsonPath), "The first value at a JSON path; null counts as nothing."),
        key("all", Scalar(JsonPath), "All values at a JSON path, as a list."),
        key("count", Scalar(JsonPath), "How many values are at a JSON path."),
        key("header", Scalar(Text), "A header of the answer."),
        key("cookie", Scalar(Text), "A cookie that the answer sets."),
        key("regex", Scalar(Regex), "A group of the first match in the body."),
        key("group", Scalar(Whole(0)), "Which group; by default the first if there is one, else the match."),
        key(
            "when missing",
            Scalar(Word(&["clear", "keep", "fail"])),
            "The variable becomes missing, stays as it was, or the request counts as failed. Where nothing is said it becomes missing, and the run's notes say how often.",
        ),
    ],
    rule: Rule::OneOf(&["json", "all", "count", "header", "cookie", "regex"]),
};

static CHECK: Record = Record {
    what: "a check",
    schema: "check",
    about: "What must hold of an answer.",
    verbs: &[],
    keys: &[
        key(
            "status",
            Either(&[Scalar(Status), List(&Scalar(Status), 1)]),
            "Right statuses: 200, 2xx, 200-204.",
        ),
        key("body", TEST, "The body: just this text, or a test."),
        key("header", Map(Keys::Text("header names"), &TEST), "Headers: just this text, or a test."),
        key("json", Map(Keys::JsonPath, &TEST), "Values by JSON path: just this text, or a test."),
        key(
            "that",
            Either(&[Scalar(Condition), List(&Scalar(Condition), 1)]),
            "Expressions over the variables, after the extractions.",
        ),
    ],
    rule: Rule::Free,
};

const TEST: Shape = Either(&[Scalar(Template), Of(&TEXT_TEST)]);

static TEXT_TEST: Record = Record {
    what: "a test",
    schema: "test",
    about: "What must hold of a text.",
    verbs: &[],
    keys: &[
        key("equals", Scalar(Template), "It is just this."),
        key("contains", Scalar(Template), "This is somewhere in it."),
        key("matches", Scalar(Regex), "This regular expression matches somewhere in it."),
        key("exists", Scalar(Word(&["true"])), "It is there at all."),
    ],
    rule: Rule::OneOf(&["equals", "contains", "matches", "exists"]),
};

#[cfg(test)]
mod tests {
    use super::*;

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
            Step(records) => records.iter().for_each(|record| visit(record, seen)),
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
