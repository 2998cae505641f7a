//! What a script's `done` is told of the run: `summary`, `latency` and `requests`.

use hdrhistogram::Histogram;
use mlua::{Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods, Value};

/// Requests that failed, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// No connection could be made.
    pub connect: u64,
    /// The connection broke before the answer was whole.
    pub read: u64,
    /// The request could not be sent.
    pub write: u64,
    /// The status was 400 or above.
    pub status: u64,
    /// No answer came in time.
    pub timeout: u64,
}

/// The figures of a run.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Measured, microseconds.
    pub duration_us: u64,
    /// Requests that were answered, whatever the status.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: Errors,
    /// Response times of answers, microseconds.
    pub latency: Histogram<u64>,
    /// Answers of each thread in each second, per second.
    pub rates: Histogram<u64>,
}

impl Figures {
    /// `summary`, as wrk has it.
    pub(crate) fn summary(&self, lua: &Lua) -> mlua::Result<Table> {
        let summary = lua.create_table()?;
        summary.set("duration", self.duration_us)?;
        summary.set("requests", self.requests)?;
        summary.set("bytes", self.bytes)?;
        let Errors { connect, read, write, status, timeout } = self.errors;
        let errors = lua.create_table()?;
        for (name, count) in
            [("connect", connect), ("read", read), ("write", write), ("status", status), ("timeout", timeout)]
        {
            errors.set(name, count)?;
        }
        summary.set("errors", errors)?;
        Ok(summary)
    }
}

/// `latency` or `requests`: values with their statistics.
pub(crate) struct Values(pub(crate) Histogram<u64>);

impl Values {
    /// The distinct value of this number, counted from 1, and how often it was.
    fn at(&self, number: usize) -> (u64, u64) {
        let found = number.checked_sub(1).and_then(|index| self.0.iter_recorded().nth(index));
        found.map_or((0, 0), |at| (at.value_iterated_to(), at.count_at_value()))
    }
}

impl UserData for Values {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, values| Ok(values.0.min()));
        fields.add_field_method_get("max", |_, values| Ok(values.0.max()));
        fields.add_field_method_get("mean", |_, values| Ok(values.0.mean()));
        fields.add_field_method_get("stdev", |_, values| Ok(values.0.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, values, percentile: f64| {
            Ok(values.0.value_at_percentile(percentile.clamp(0.0, 100.0)))
        });
        methods.add_meta_method(MetaMethod::Call, |_, values, number: usize| Ok(values.at(number)));
        methods.add_meta_method(MetaMethod::Len, |_, values, ()| Ok(values.0.iter_recorded().count()));
        methods.add_meta_method(MetaMethod::Index, |_, values, key: Value| {
            Ok(key.as_usize().map(|number| values.at(number).0))
        });
    }
}
