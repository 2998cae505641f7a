//! Control steps become jumps.

use super::Session;
use super::define::{one_or_many, split_each};
use crate::expr::{Expr, Node as Tree, Operator};
use crate::grammar::step_kind;
use crate::language::STEP_KINDS;
use crate::plan::{Op, SlotIndex};
use crate::slot::Value;
use crate::yaml::Node;

const PPB: f64 = crate::expr::PPB as f64;

impl Session<'_, '_> {
    pub(super) fn steps(&mut self, steps: &Node) {
        let reachable = self.reachable;
        for step in steps.items() {
            let Some((record, (verb, value))) = step_kind(step, &STEP_KINDS) else {
                self.unknown(step);
                continue;
            };
            match record.schema {
                "request" => self.request(step, verb, value),
                "call" => self.call(step, value),
                "redis" => self.redis(step, value),
                "sometimes" => self.sometimes(step, value),
                "repeat" => self.repeat(step, value),
                "choose" => self.choose(value),
                "when" => self.when(step, value),
                "each" => self.each(step, value),
                "think" => self.think(value),
                "set" => self.set(value),
                "take" => self.take(value),
                "wsConnect" | "wsSend" | "wsExpect" | "wsPing" | "wsClose" => {
                    self.websocket(record.schema, step, verb, value);
                }
                _ => {
                    self.to_end.push(self.ops.len());
                    self.ops.push(Op::Jump(0));
                    self.reachable = false;
                }
            }
        }
        self.reachable = reachable;
    }

    /// A step of which nobody knows what it does: what is in it is looked at nevertheless.
    fn unknown(&mut self, step: &Node) {
        if let Some(label) = step.get("label") {
            self.label(label);
        }
        self.extractions(step.get("extract"));
        self.checks(step.get("check"));
        self.inner(step, "steps", true);
        self.inner(step, "else", true);
    }

    /// The steps under a key; `possible` is false where they can never be reached.
    fn inner(&mut self, step: &Node, key: &str, possible: bool) {
        let Some(steps) = step.get(key) else { return };
        let reachable = self.reachable;
        self.reachable = reachable && possible;
        self.steps(steps);
        self.reachable = reachable;
    }

    /// Begins what is skipped unless the condition holds; ended by [`Session::land`].
    fn unless(&mut self, condition: Expr) -> usize {
        self.ops.push(Op::JumpUnless { condition, to: 0 });
        self.ops.len() - 1
    }

    /// Lets a jump go on here.
    fn land(&mut self, jump: usize) {
        let here = self.here();
        match &mut self.ops[jump] {
            Op::Jump(to) | Op::JumpUnless { to, .. } => *to = here,
            other => debug_assert!(false, "not a jump: {other:?}"),
        }
    }

    fn assign(&mut self, slot: SlotIndex, value: Expr) {
        self.ops.push(Op::Set { slot, value });
    }

    fn sometimes(&mut self, step: &Node, share: &Node) {
        let share_ppb = self.reader.share(share).map_or(0, |share| (share * PPB).round() as u64);
        let rhythm = step.get("rhythm").and_then(|node| self.reader.word(node, &["shared", "random"]));
        let condition = match rhythm {
            Some("random") => Tree::Chance { share_ppb },
            _ => Tree::Rhythm { counter: self.shared.hidden_counter(), share_ppb },
        };
        let over = self.unless(Expr::new(condition));
        self.inner(step, "steps", share_ppb > 0);
        self.land(over);
    }

    fn when(&mut self, step: &Node, condition: &Node) {
        let condition = self.expression(condition).unwrap_or_else(|| Expr::int(1));
        let always = condition.as_constant().map(is_true);
        let over = self.unless(condition);
        self.inner(step, "steps", always != Some(false));
        if step.get("else").is_some() {
            let end = self.ops.len();
            self.ops.push(Op::Jump(0));
            self.land(over);
            self.inner(step, "else", always != Some(true));
            self.land(end);
        } else {
            self.land(over);
        }
    }

    fn repeat(&mut self, step: &Node, times: &Node) {
        let times = self.number(times);
        let round = match step.get("as").and_then(|name| self.scope.slot(name.text()?)) {
            Some(slot) => slot,
            None => self.scope.hidden("round"),
        };
        let possible = !matches!(times.as_constant(), Some(Value::Int(times)) if times <= 0);
        self.counted(round, times, possible, |session| session.inner(step, "steps", true));
    }

    /// A number that is asked for once; reports constants that are none.
    fn number(&mut self, node: &Node) -> Expr {
        let Some(value) = self.value(node) else { return Expr::int(0) };
        match value.as_constant() {
            Some(Value::Int(count)) if count >= 0 => {}
            Some(_) => self.reader.sink.error(node, "expected a whole number, not below 0, or an expression"),
            None => {}
        }
        value
    }

    /// `for round in 0..times { body }`.
    fn counted(&mut self, round: SlotIndex, times: Expr, possible: bool, body: impl FnOnce(&mut Self)) {
        let bound = if times.as_constant().is_some() {
            times
        } else {
            let slot = self.scope.hidden("times");
            self.assign(slot, times);
            Expr::variable(slot)
        };
        self.assign(round, Expr::int(0));
        let begin = self.here();
        let condition = Tree::binary(Operator::Less, Tree::Variable(round), bound.node().clone());
        let over = self.unless(Expr::new(condition));
        let reachable = self.reachable;
        self.reachable = reachable && possible;
        body(self);
        self.reachable = reachable;
        self.assign(round, Expr::new(Tree::binary(Operator::Add, Tree::Variable(round), Tree::Int(1))));
        self.ops.push(Op::Jump(begin));
        self.land(over);
    }

    fn each(&mut self, step: &Node, header: &Node) {
        let Some((name, offset, list_text)) = header.text().and_then(split_each) else {
            if header.text().is_some() {
                self.reader.sink.error(header, "write it like: each: id in ${bookings}");
            }
            return;
        };
        if !crate::expr::parse::is_name(name) {
            self.reader.sink.error(header, format!("\"{name}\" cannot be a variable's name"));
            return;
        }
        let (inner_offset, list_text) = crate::pieces::only_hole(list_text).unwrap_or((0, list_text));
        let list = self.parsed(header, offset + inner_offset, list_text);
        let (Some(list), Some(item)) = (list, self.scope.slot(name)) else { return };
        let list = match list.node() {
            Tree::Variable(slot) => *slot,
            _ => {
                let slot = self.scope.hidden("list");
                self.assign(slot, list);
                slot
            }
        };
        let length = call("len", vec![Tree::Variable(list)]);
        let times = match step.get("limit") {
            Some(limit) => {
                let limit = self.number(limit);
                call("min", vec![length, limit.node().clone()])
            }
            None => length,
        };
        let index = self.scope.hidden("index");
        let value = Tree::Item(Box::new([Tree::Variable(list), Tree::Variable(index)]));
        self.counted(index, Expr::new(times), true, |session| {
            session.assign(item, Expr::new(value));
            session.inner(step, "steps", true);
        });
    }

    fn choose(&mut self, ways: &Node) {
        let choice = self.ops.len();
        self.ops.push(Op::Choose { ways: Vec::new(), total: 0 });
        let (mut bounds, mut ends, mut total) = (Vec::new(), Vec::new(), 0u64);
        for way in ways.items() {
            let weight = way.get("weight").and_then(|node| self.reader.whole(node, 0)).unwrap_or(1);
            total = total.saturating_add(weight);
            if weight > 0 {
                bounds.push((u32::try_from(total).unwrap_or(u32::MAX), self.here()));
            }
            self.inner(way, "steps", weight > 0);
            ends.push(self.ops.len());
            self.ops.push(Op::Jump(0));
        }
        ends.into_iter().for_each(|end| self.land(end));
        let Some(total) = u32::try_from(total).ok().filter(|total| *total > 0) else {
            self.reader.sink.error(ways, "the sum of the weights must be above 0 and below 4 billion");
            return;
        };
        self.ops[choice] = Op::Choose { ways: bounds, total };
    }

    fn think(&mut self, node: &Node) {
        let micros = |node: &Node| self.reader.duration(node).map(|time| time.as_micros() as i64);
        let time = if node.text().is_some() {
            micros(node).map(Tree::Int)
        } else if let Some(mean) = node.get("exponential") {
            micros(mean).map(|mean| Tree::Exponential { mean: mean as f64 })
        } else {
            node.get("between").and_then(|bounds| match bounds.items() {
                [low, high] => micros(low).zip(micros(high)).map(|(low, high)| {
                    if low > high {
                        self.reader.sink.error(bounds, "the first time is longer than the second");
                    }
                    Tree::Uniform { low: low.min(high), high }
                }),
                _ => {
                    self.reader.sink.error(bounds, "between has two times: [1s, 3s]");
                    None
                }
            })
        };
        self.ops.push(Op::Think(time.map_or_else(|| Expr::int(0), Expr::new)));
    }

    fn set(&mut self, values: &Node) {
        for (name, value) in values.entries() {
            let value = self.value(value);
            if let Some((slot, value)) = name.text().and_then(|name| self.scope.slot(name)).zip(value) {
                self.assign(slot, value);
            }
        }
    }

    fn take(&mut self, feeders: &Node) {
        for node in one_or_many(feeders) {
            let Some(name) = self.reader.text(node) else { continue };
            let feeder = match self.shared.feeder(&name) {
                Ok(feeder) => feeder,
                Err(message) => {
                    self.reader.sink.error(node, message);
                    continue;
                }
            };
            let columns = self.shared.feeders[feeder].columns.clone();
            let row = self.scope.hidden("row");
            match self.shared.feeders[feeder].held {
                true => self.ops.push(Op::Take { feeder, row }),
                false => self.assign(row, Expr::new(self.shared.draw(feeder))),
            }
            for (column, name) in columns.iter().enumerate() {
                let Some(slot) = self.scope.slot(name) else { continue };
                let row = Box::new(Tree::Variable(row));
                self.assign(slot, Expr::new(Tree::Cell { feeder, column, row }));
            }
        }
    }
}

fn call(name: &str, arguments: Vec<Tree>) -> Tree {
    match crate::expr::function::find(name) {
        Some(function) => crate::expr::function::fold(function, arguments.into_boxed_slice()),
        None => Tree::Missing,
    }
}

fn is_true(value: Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Bool(false) | Value::Int(0) | Value::Text(b"" | b"false" | b"0"))
}
