//! The sections of a scenario file that have fields.

use super::record::{Named, record};
use super::step::Step;
use super::value::{Map, Scalar, Value};

record! {
    /// What is driven.
    System {
        /// Where it is, if it runs already.
        url: Option<Scalar> = "url",
        /// Which address of the URL's host is driven.
        resolve: Option<Scalar> = "resolve",
        /// Where connections are made to instead of the URL's host.
        connect_to: Option<Scalar> = "connect to",
        /// The HTTP proxy that is between.
        proxy: Option<Scalar> = "proxy",
        /// The version of HTTP.
        http: Option<Scalar> = "http",
        /// How TLS is spoken.
        tls: Map = "tls",
        /// Files of message types of gRPC.
        protos: Vec<Value> = "protos",
        /// Folders in which these import each other.
        includes: Vec<Value> = "includes",
        /// A file with a descriptor set.
        descriptors: Option<Scalar> = "descriptors",
    }
}

record! {
    /// Rows that sessions draw from: a `file`, `values` or `rows`.
    Feeder {
        /// A CSV file, relative to the scenario.
        file: Option<Scalar> = "file",
        /// Values of one column.
        values: Vec<Value> = "values",
        /// Rows, each a mapping with the same columns.
        rows: Vec<Value> = "rows",
        /// `in turn` or `random`.
        order: Option<Scalar> = "order",
    }
}

record! {
    /// What every request has unless it says otherwise.
    Defaults {
        /// Headers of every request.
        headers: Map = "headers",
        /// Longest time for an answer.
        timeout: Option<Scalar> = "timeout",
    }
}

record! {
    /// What one virtual user does.
    Session {
        /// How often this kind is chosen, against the sum of all.
        weight: Option<Scalar> = "weight",
        /// Whether a user keeps cookies from one session to the next.
        keep_cookies: Option<Scalar> = "keep cookies",
        /// What is done, in order.
        steps: Vec<Step> = "steps",
        /// A script that makes the session's request, in place of steps.
        script: Option<Scalar> = "script",
        /// What the script's `init` is given.
        args: Vec<Value> = "args",
        /// Path and query that the script finds.
        path: Option<Scalar> = "path",
        /// The script's function that is an iteration.
        exec: Option<Scalar> = "exec",
        /// How many iterations all users make together.
        iterations: Option<Scalar> = "iterations",
        /// How long iterations go on after the end of their load.
        graceful_stop: Option<Scalar> = "graceful stop",
        /// How long the iteration of a user who is to leave goes on.
        graceful_ramp_down: Option<Scalar> = "graceful ramp down",
        /// What the script's requests are counted as.
        labels: Vec<Value> = "labels",
    }
}

record! {
    /// How many come: `users` or a `rate`, in phases; or a load for each kind of session.
    Load {
        /// Closed: so many users.
        users: Option<Scalar> = "users",
        /// Closed: the wait between two sessions.
        think: Option<Value> = "think",
        /// Closed: how often a user begins a session.
        pace: Option<Scalar> = "pace",
        /// Open: so many sessions arrive each second; a plain rate or a mapping.
        rate: Option<Value> = "rate",
        /// Open: `constant` or `poisson`.
        spacing: Option<Scalar> = "spacing",
        /// From nothing up to the full level.
        ramp: Option<Scalar> = "ramp",
        /// At the full level, not measured.
        warm_up: Option<Scalar> = "warm-up",
        /// At the full level, measured.
        hold: Option<Scalar> = "hold",
        /// Any phases, one after another, instead of ramp, warm-up and hold.
        phases: Vec<Phase> = "phases",
        /// A load for each kind of session, instead of all that.
        sessions: Named<Load> = "sessions",
    }
}

record! {
    /// A stretch of the load at one level, or evenly from one to another.
    Phase {
        /// Its name in the report.
        name: Option<Scalar> = "name",
        /// How long it is.
        duration: Option<Scalar> = "for",
        /// Closed: `50`, or `10 to 100`.
        users: Option<Scalar> = "users",
        /// Open: `50/s`, `10/s to 100/s`, or a mapping.
        rate: Option<Value> = "rate",
        /// Whether it counts.
        measured: Option<Scalar> = "measured",
    }
}
