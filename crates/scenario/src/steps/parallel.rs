//! Requests that leave at the same time.

use super::{STEPS, Step, request};
use crate::compile::Session;
use crate::grammar::Scalar::Whole;
use crate::grammar::Shape::Scalar;
use crate::plan::{Op, PARALLEL_REQUESTS_MAX};

step! {
    /// Sends requests at the same time, as a browser loads the parts of a page. The session goes on when all are over.
    KIND("parallel", "a parallel step") ["parallel": STEPS => "Requests of HTTP."] {
        "at most": Scalar(Whole(1)) => "How many are under way to one target; all by default.",
    }
    example: "
- GET: /shop
- parallel:
    - GET: /shop.css
    - GET: /cart
      extract: {items: $.count}
  at most: 6
- GET: /cart?seen=${items}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let sink = session.reader.sink;
    if session.transaction.is_some() {
        let message = "a transaction goes over one connection, and cannot contain a parallel step";
        return sink.error(step.node, message);
    }
    let at_most = step.get("at most").and_then(|node| session.reader.whole(node, 1));
    let at_most = at_most.map_or(u16::MAX, |most| u16::try_from(most).unwrap_or(u16::MAX));
    let requests = step.value.items();
    if requests.len() > PARALLEL_REQUESTS_MAX {
        sink.error(step.value, format!("a parallel step has at most {PARALLEL_REQUESTS_MAX} requests"));
    }
    let place = session.ops.len();
    session.ops.push(Op::Parallel { until: 0, at_most });
    for node in requests {
        let Some(inner) = Step::of(node) else { continue };
        if !std::ptr::eq(inner.kind, &request::KIND) {
            let what = inner.kind.record().what;
            sink.error(inner.verb, format!("a parallel step has requests of HTTP only, and not {what}"));
            continue;
        }
        if let Some((measure, _)) = node.entry("measure") {
            sink.error(
                measure,
                "requests of a parallel step measure nothing; put a `measure` step behind it",
            );
            continue;
        }
        (inner.kind.compile)(session, &inner);
    }
    let until = session.here();
    session.ops[place] = Op::Parallel { until, at_most };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn checked(steps: &str) -> (Option<Vec<Op>>, String) {
        let text = format!("sessions: {{a: {{steps: [{steps}]}}}}\nload: {{users: 1, hold: 1s}}\n");
        let (plan, told) = crate::check_text("t.yaml", &text, Path::new("."), &[]);
        (plan.map(|mut plan| plan.sessions.swap_remove(0).ops), told.to_string())
    }

    #[test]
    fn its_requests_stand_behind_it() {
        let (ops, told) = checked("{parallel: [GET: /a, POST: /b], at most: 2}, {GET: /c}");
        let ops = ops.expect(&told);
        assert!(matches!(
            ops[..],
            [Op::Parallel { until: 3, at_most: 2 }, Op::Request(0), Op::Request(1), Op::Request(2), Op::End]
        ));
        let (ops, told) = checked("{parallel: [GET: /a]}");
        assert!(matches!(ops.expect(&told)[0], Op::Parallel { until: 2, at_most: u16::MAX }));
    }

    #[test]
    fn what_cannot_be_parallel_is_told() {
        for (steps, told) in [
            ("{parallel: []}", "parallel"),
            ("{parallel: [GET: /a], at most: 0}", "at most"),
            ("{parallel: [GET: /a, think: 1s]}", "requests of HTTP only, and not a think step"),
            ("{parallel: [{parallel: [GET: /a]}]}", "requests of HTTP only, and not a parallel step"),
            ("{parallel: [{GET: /a, measure: {n: 1}}]}", "put a `measure` step behind it"),
            ("{transaction: [{parallel: [GET: /a]}]}", "a transaction"),
        ] {
            let (ops, errors) = checked(steps);
            assert!(ops.is_none() && errors.contains(told), "{steps}: {errors}");
        }
    }
}
