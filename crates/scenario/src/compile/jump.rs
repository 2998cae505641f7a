//! Jumps, which control steps become.

use std::sync::Arc;

use super::Session;
use crate::expr::{Expr, Node as Tree, Operator, function};
use crate::plan::{Op, SlotIndex};
use crate::slot::Value;
use crate::yaml::Node;

impl Session<'_, '_> {
    /// Steps within a step; `possible` is false where they can never be reached.
    pub(crate) fn inner(&mut self, steps: Option<&Node>, possible: bool) {
        let Some(steps) = steps else { return };
        let reachable = self.reachable;
        self.reachable = reachable && possible;
        self.steps(steps);
        self.reachable = reachable;
    }

    /// The same where `decided` says whether it is possible. Where settings have decided that it is not, as another run's may
    /// not, that is no mistake: it is compiled to see what is wrong with it, and left out.
    pub(crate) fn inner_as_decided(&mut self, steps: Option<&Node>, possible: bool, decided: &Node) {
        let text = decided.text().unwrap_or_default();
        let by_setting = !possible && self.reader.settings.names().any(|name| text.contains(name));
        let begin = self.ops.len();
        self.inner(steps, possible || by_setting);
        if by_setting {
            self.ops.truncate(begin);
            self.to_end.retain(|at| *at < begin);
            if let Some(transaction) = &mut self.transaction {
                transaction.failures.retain(|at| *at < begin);
            }
            self.connection_uses.retain(|(at, _)| *at < begin);
        }
    }

    /// Begins what is skipped unless the condition holds; ended by [`Session::land`].
    pub(crate) fn unless(&mut self, condition: Expr) -> usize {
        self.ops.push(Op::JumpUnless { condition, to: 0 });
        self.ops.len() - 1
    }

    /// Lets a jump go on here.
    pub(crate) fn land(&mut self, jump: usize) {
        let here = self.here();
        match &mut self.ops[jump] {
            Op::Jump(to) | Op::JumpUnless { to, .. } | Op::JumpUnlessGood(to) => *to = here,
            other => debug_assert!(false, "not a jump: {other:?}"),
        }
    }

    pub(crate) fn assign(&mut self, slot: SlotIndex, value: Expr) {
        self.ops.push(Op::Set { slot, value });
    }

    /// A number that is asked for once; reports constants that are none.
    pub(crate) fn number(&mut self, node: &Node) -> Expr {
        let Some(value) = self.value(node) else { return Expr::int(0) };
        match value.as_constant() {
            Some(Value::Int(count)) if count >= 0 => {}
            Some(_) => self.reader.sink.error(node, "expected a whole number, not below 0, or an expression"),
            None => {}
        }
        value
    }

    /// `for round in 0..times { body }`.
    pub(crate) fn counted(&mut self, round: SlotIndex, times: Expr, body: impl FnOnce(&mut Self)) {
        let bound = if times.as_constant().is_some() {
            times
        } else {
            let slot = self.scope.hidden("times");
            self.assign(slot, times);
            Expr::variable(slot)
        };
        self.rounds(round, bound, body);
    }

    /// The same where a number of rounds that is negative, or is none, is a failure; a missing one is no round.
    pub(crate) fn counted_or_refused(&mut self, round: SlotIndex, times: Expr, body: impl FnOnce(&mut Self)) {
        if times.as_constant().is_some() {
            return self.rounds(round, times, body);
        }
        let text = Arc::clone(times.source());
        let slot = self.scope.hidden("times");
        self.assign(slot, times);
        let is_right = self.unless(is_no_count(slot));
        self.ops.push(Op::Refuse { text, reason: NO_COUNT });
        self.assign(slot, Expr::int(0));
        self.land(is_right);
        self.rounds(round, Expr::variable(slot), body);
    }

    fn rounds(&mut self, round: SlotIndex, bound: Expr, body: impl FnOnce(&mut Self)) {
        self.assign(round, Expr::int(0));
        let begin = self.here();
        let condition = Tree::binary(Operator::Less, Tree::Variable(round), bound.node().clone());
        let over = self.unless(Expr::new(condition));
        body(self);
        self.assign(round, Expr::new(Tree::binary(Operator::Add, Tree::Variable(round), Tree::Int(1))));
        self.ops.push(Op::Jump(begin));
        self.land(over);
    }
}

/// Why there are no rounds.
const NO_COUNT: &str = "it is negative, or is not a number; a repeat needs a whole number, not below 0";

/// Whether what a variable holds is not a number of rounds.
fn is_no_count(slot: SlotIndex) -> Expr {
    let call = |name: &str| {
        let arguments = vec![Tree::Variable(slot)].into_boxed_slice();
        function::find(name).map_or(Tree::Missing, |function| function::fold(function, arguments))
    };
    let is_count = Tree::binary(Operator::GreaterOrEqual, call("number"), Tree::Int(0));
    Expr::new(Tree::binary(Operator::And, call("exists"), Tree::Not(Box::new(is_count))))
}
