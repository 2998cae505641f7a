//! Waiting as a person would.

use super::Step;
use crate::compile::Session;
use crate::expr::{Expr, Node as Tree};
use crate::grammar::Rule;
use crate::grammar::kinds::{Either, List, Or, Time};
use crate::grammar::record::{Kind, record};
use crate::plan::{Op, Pause};
use crate::sink::Sink;

step! {
    /// Pauses, as a user does between two requests.
    KIND("think", "a think step") ["think": ThinkTime::SHAPE => "How long."] {}
    example: "
- GET: /lamps
- think: {between: [1s, 3s]}
- GET: /chairs
"
}

/// A think time: always the same, or one that varies.
pub(crate) type ThinkTime<'n> = Either<Time, Varying<'n>>;

record! {
    /// A think time that varies.
    pub(crate) struct Varying("thinkTime", "a think time", Rule::OneOf(&["between", "exponential"])) {
        between: List<Time, 2> = "Two times: uniform between them.",
        exponential: Time = "The mean of an exponential distribution.",
    }
}

/// A think time that was read.
pub(crate) fn pause(said: &Or<std::time::Duration, Varying<'_>>, sink: &Sink<'_>) -> Option<Pause> {
    let said = match said {
        Or::First(time) => return Some(Pause::Fixed(*time)),
        Or::Second(varying) => varying,
    };
    if said.exponential.is_there() {
        return said.exponential.value.map(Pause::Exponential);
    }
    if said.between.node().is_some_and(|bounds| bounds.items().len() != 2) {
        said.between.error(sink, "between has two times: [1s, 3s]");
    }
    let [low, high] = said.between.value.as_deref()? else { return None };
    if low > high {
        said.between.error(sink, "the first time is longer than the second");
    }
    Some(Pause::Between(*low, *high))
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let reader = session.reader;
    let time = ThinkTime::read(step.value, reader).and_then(|said| pause(&said, reader.sink));
    let micros = |time: std::time::Duration| time.as_micros() as i64;
    let time = match time {
        None => Tree::Int(0),
        Some(Pause::Fixed(time)) => Tree::Int(micros(time)),
        Some(Pause::Exponential(mean)) => Tree::Exponential { mean: micros(mean) as f64 },
        Some(Pause::Between(low, high)) => Tree::Uniform { low: micros(low.min(high)), high: micros(high) },
    };
    session.ops.push(Op::Think(Expr::new(time)));
}
