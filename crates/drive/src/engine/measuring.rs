//! What a session measures itself.

use tidemark_record::{OWN_VALUE_MAX, OwnSeries};
use tidemark_scenario::Value;
use tidemark_scenario::plan::Op;

use crate::engine::thread::Thread;
use crate::session::Environment;
use crate::session::answer::{Variables, shown};

impl Thread<'_> {
    /// A session measures a number, as the operation of this index says; what is none is counted as such.
    pub fn measure(&mut self, s: usize, op: usize, now_ns: u64) {
        self.cut(now_ns);
        let session = &self.flow.sessions[s];
        let Some(Op::Measure { metric, value, text, .. }) = self.kinds[session.kind()].ops.get(op) else {
            return;
        };
        let mut environment = Environment {
            shared: self.shared,
            random: &mut self.random,
            epoch_ms: self.clock.wall_ms(now_ns),
        };
        let measured = &mut self.flow.scratch.slot;
        value.eval_into(&mut environment.context(&session.slots), measured);
        match measured.value().number().filter(|number| OwnSeries::takes(*number)) {
            Some(number) => self.recorder.measured(*metric, number),
            None => {
                let names = &self.kinds[session.kind()].slot_names;
                let variables = Variables { slots: &session.slots, names };
                let secrets = &self.flow.secrets;
                let told = || secrets.masked(instead(text, measured.value()), variables);
                self.recorder.not_measured(*metric, told);
            }
        }
    }
}

/// What there was in place of a number, for a person.
fn instead(text: &str, value: Value<'_>) -> String {
    let what = match value {
        Value::Missing => "it has no value".to_owned(),
        Value::Bool(value) => format!("it is {value}, no number"),
        Value::Int(_) | Value::Real(_) => {
            let number = value.number().unwrap_or_default();
            format!("it is {number}; numbers from 0 to {OWN_VALUE_MAX:e} are taken")
        }
        Value::Text(text) if value.number().is_some() => {
            format!("it is {}; numbers from 0 to {OWN_VALUE_MAX:e} are taken", shown(text))
        }
        Value::Text(text) => format!("it is \"{}\", no number", shown(text)),
        Value::List(list) => format!("it is a list of {}, no number; len(…) is how many", list.len()),
    };
    format!("{text}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told() {
        let told = |value| instead("${n}", value);
        assert_eq!(told(Value::Missing), "${n}: it has no value");
        assert_eq!(told(Value::Bool(true)), "${n}: it is true, no number");
        assert_eq!(told(Value::Int(-3)), "${n}: it is -3; numbers from 0 to 1e12 are taken");
        assert_eq!(told(Value::Text(b"-3")), "${n}: it is -3; numbers from 0 to 1e12 are taken");
        assert_eq!(told(Value::Text(b"a\nb")), "${n}: it is \"a\\nb\", no number");
    }
}
