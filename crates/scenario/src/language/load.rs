//! How many come, and for how long.

use crate::grammar::kinds::{Bool, Either, List, OneRate, Rate, Text, Time, Users, nodes, words};
use crate::grammar::record::record;
use crate::grammar::{Keys, Rule, Shape};
use crate::plan::Spacing;
use crate::steps::think::ThinkTime;

record! {
    /// Closed (`users`) or open (`rate`), in phases; for all kinds of sessions together, or for each its own.
    pub(crate) struct Load("load", "a load", Rule::AtMostOneOf(&["users", "rate"])) {
        users: Users = "Closed: how many users; each begins its next session when its last ended.",
        think: ThinkTime<'n> = "Closed: how long each user waits between two sessions.",
        pace: Time = "Closed: each user begins a session every so often, at once if the last one took longer.",
        rate: AnyRate<'n> = "Open: how many sessions arrive each second, whatever the system does.",
        spike: Spike<'n> = "Open: what the rate jumps to, again and again.",
        spacing: Spacing =
            "Open: time between arrivals, always the same (default), or Poisson, as from many independent users.",
        ramp: Time = "From nothing evenly up to the full level; not measured.",
        warm_up: Time as "warm-up" = "At the full level, not measured.",
        hold: Time = "At the full level, measured.",
        phases: List<Phase<'n>> = "Instead of ramp, warm-up and hold: any phases, one after another.",
        sessions: Loads =
            "Instead of all that: a load for each kind of session, all begun together.",
    }
}

record! {
    /// A stretch of the load at one level, or evenly from one to another.
    pub(crate) struct Phase("phase", "a phase", Rule::AtMostOneOf(&["users", "rate"])) {
        name: Text = "Its name in results and objectives; made from its level by default, like `hold 500/s`.",
        length: Time as "for" = "How long it is; needed unless its rates come from a file.",
        users: Users = "Closed: `50`, `10 to 100`, or `10 to 100 in 4 steps`.",
        rate: AnyRate<'n> = "Open: `50/s`, `10/s to 100/s`, `10/s to 100/s in 4 steps`, a sine, or a file of rates.",
        spike: Spike<'n> = "Open: what the rate jumps to, again and again.",
        measured: Bool = "Whether it counts; by default if it is not named warm-up or ramp.",
    }
}

/// A rate as it is written, or one over time.
pub(crate) type AnyRate<'n> = Either<Rate, RateOverTime<'n>>;

nodes! {
    /// A load for each kind of session.
    pub(crate) Loads = Shape::Map(Keys::Text("session names"), &Shape::Record(Load::record));
}

words! {
    /// What a rate from a file does between two rows.
    pub(crate) enum BetweenRows {
        /// It stays until the next row.
        Hold = "hold",
        /// It changes evenly to it.
        Line = "line",
    }
}

record! {
    /// A rate that swings, or rates from a file.
    pub(crate) struct RateOverTime("rateOverTime", "a rate over time", Rule::OneOf(&["sine", "file"])) {
        sine: Sine<'n> = "Swings around a mean.",
        file: Text =
            "A CSV file, relative to the scenario, with the columns seconds and rate (sessions each second).",
        between_rows: BetweenRows as "between rows" =
            "A file's rate stays until the next row (`hold`, the default), or changes evenly to it (`line`).",
    }
}

record! {
    /// A rate that swings around its mean; at the mean and rising at the begin.
    pub(crate) struct Sine("sine", "a sine") {
        mean (required): OneRate = "The rate that it swings around.",
        amplitude (required): OneRate = "How far it swings to either side; at most the mean.",
        period (required): Time = "Length of one swing.",
    }
}

record! {
    /// Another rate for a while, at the end of every period.
    pub(crate) struct Spike("spike", "a spike") {
        rate (required): OneRate = "The rate of a spike.",
        every (required): Time = "From the end of one spike to the end of the next.",
        length (required): Time as "for" = "Length of a spike.",
    }
}
