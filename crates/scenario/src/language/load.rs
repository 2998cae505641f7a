//! How many come, and for how long.

use crate::grammar::Scalar::{Bool, Duration, Rate, Text, Users, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, Shape, key, required};
use crate::steps::think;

pub(super) static LOAD: Record = Record {
    what: "a load",
    schema: "load",
    about: "Closed (`users`) or open (`rate`), in phases; for all kinds of sessions together, or for each its own.",
    verbs: &[],
    keys: &[
        key(
            "users",
            Scalar(Users),
            "Closed: how many users; each begins its next session when its last ended.",
        ),
        key("think", think::TIME, "Closed: how long each user waits between two sessions."),
        key(
            "pace",
            Scalar(Duration),
            "Closed: each user begins a session every so often, at once if the last one took longer.",
        ),
        key("rate", RATE, "Open: how many sessions arrive each second, whatever the system does."),
        key("spike", Of(&SPIKE), "Open: what the rate jumps to, again and again."),
        key(
            "spacing",
            Scalar(Word(&["constant", "poisson"])),
            "Open: time between arrivals, always the same (default), or Poisson, as from many independent users.",
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
        key(
            "name",
            Scalar(Text),
            "Its name in results and objectives; made from its level by default, like `hold 500/s`.",
        ),
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
