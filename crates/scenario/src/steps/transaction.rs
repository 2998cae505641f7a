//! Statements of SQL that are done together or not at all.

use super::answer::{AT, TIMEOUT};
use super::{STEPS, Step};
use crate::compile::{Session, Transaction};
use crate::grammar::Scalar::{Text, Word};
use crate::grammar::Shape::Scalar;
use crate::plan::{Check, Op, RequestKind, Statement, TextTest, TransactionPart};
use crate::template::Template;

/// Levels of isolation, as PostgreSQL has them.
const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

step! {
    /// Does its steps in one transaction of PostgreSQL, on one connection: `BEGIN`, the steps, `COMMIT`. The first
    /// one that fails leads to `ROLLBACK`, and the session goes on after the transaction (docs/sql.md).
    KIND("transaction", "a transaction step") [
        "transaction": Scalar(Text) =>
            "Name in the report, as of a group; its time is told from `BEGIN` to `COMMIT`."
    ] {
        AT,
        "isolation": Scalar(Word(&LEVELS)) => "The level of isolation; else the server's.",
        TIMEOUT,
        "steps" (required): STEPS => "What is done.",
    }
    example: "
- transaction: Transfer
  isolation: serializable
  steps:
    - sql: UPDATE accounts SET cents = cents - $2 WHERE id = $1
      with: [7, 100]
      check: {body: UPDATE 1}
    - sql: UPDATE accounts SET cents = cents + $2 WHERE id = $1
      with: [8, 100]
      check: {body: UPDATE 1}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    if session.transaction.is_some() {
        return session.reader.sink.error(step.node, "transactions cannot be nested; leave one of them out");
    }
    let name = session.reader.text(step.value).unwrap_or_default();
    if name.is_empty() {
        session.reader.sink.error(step.value, "a transaction needs a name, which the report shows");
    }
    let level = step.get("isolation").and_then(|node| session.reader.word(node, &LEVELS));
    let begin = level.map_or_else(|| "BEGIN".to_owned(), |level| format!("BEGIN ISOLATION LEVEL {level}"));
    if !session.begin_group(step.node, name) {
        return;
    }
    let first = session.ops.len();
    statement(session, step, TransactionPart::Begin, &begin);
    let not_begun = jump(session, Op::JumpUnlessGood(0));
    let aim = session.last_aim();
    session.transaction = Some(Transaction { aim, failures: Vec::new() });
    session.inner(step.get("steps"), true);
    let has_statement = session.ops[first + 2..].iter().any(|op| matches!(op, Op::Request(_)));
    if !has_statement {
        session.reader.sink.error(step.node, "a transaction without a request does nothing");
    }
    let failures = session.transaction.take().map(|transaction| transaction.failures).unwrap_or_default();
    statement(session, step, TransactionPart::Commit, "COMMIT");
    let over = jump(session, Op::Jump(0));
    failures.into_iter().for_each(|failure| session.land(failure));
    statement(session, step, TransactionPart::Rollback, "ROLLBACK");
    session.land(over);
    session.land(not_begun);
    session.end_group();
}

fn jump(session: &mut Session<'_, '_>, op: Op) -> usize {
    session.ops.push(op);
    session.ops.len() - 1
}

/// One of the statements that a transaction is made of.
fn statement(session: &mut Session<'_, '_>, step: &Step<'_>, part: TransactionPart, text: &str) {
    let word = text.split(' ').next().unwrap_or_default().to_owned();
    let Some(label) = session.label_or(step, step.node.position, || word) else { return };
    let ask = RequestKind::Sql(Statement { text: text.to_owned(), parameters: Vec::new(), part });
    let mut plan = session.request(step, label, (ask, None), None);
    if part == TransactionPart::Commit {
        // the server answers ROLLBACK, which is no error to it, where a statement before had failed
        plan.checks.push(Check::Body(TextTest::Equals(Template::literal(text))));
    }
    session.push_request(step, plan);
}

impl Session<'_, '_> {
    /// What a statement is to the transaction that it stands in.
    pub(super) fn part(&self, step: &Step<'_>) -> TransactionPart {
        if self.transaction.is_none() || step.verb.text() != Some("sql") {
            return TransactionPart::Alone;
        }
        let told = [
            ("at", "a statement in a transaction uses its target; leave `at` out"),
            (
                "ledger",
                "a write in a transaction is not acknowledged before its COMMIT; the ledger takes writes outside of one",
            ),
            (
                "insert",
                "a write in a transaction is not acknowledged before its COMMIT; `keys` takes writes outside of one",
            ),
            (
                "write",
                "a write in a transaction is not acknowledged before its COMMIT; `keys` takes writes outside of one",
            ),
        ];
        for (name, message) in told {
            if let Some((key, _)) = step.node.entry(name) {
                self.reader.sink.error(key, message);
            }
        }
        TransactionPart::Within
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(steps: &str, limits: &str) -> (Option<crate::Plan>, String) {
        let steps = steps.replace('\n', "\n      ");
        let text = format!(
            "system: {{url: 'postgres://h'}}\nsessions:\n  one:\n    steps:\n      {steps}\nload: {{users: 1, hold: 1s}}\n{limits}"
        );
        let (plan, diagnostics) = crate::check_text("t.yaml", &text, Path::new("."), &[]);
        (plan, diagnostics.to_string())
    }

    const STEPS: &str = "- transaction: Move\n  isolation: serializable\n  steps:\n    - sql: DELETE FROM a\n    - sql: DELETE FROM b";

    #[test]
    fn each_failure_leads_to_a_rollback_and_only_what_was_begun_is_undone() {
        let (plan, told) = read(STEPS, "");
        let plan = plan.expect(&told);
        let parts = plan.requests.iter().map(|request| match &request.ask {
            RequestKind::Sql(statement) => (statement.text.as_str(), statement.part),
            other => panic!("{other:?}"),
        });
        let expected = [
            ("BEGIN ISOLATION LEVEL serializable", TransactionPart::Begin),
            ("DELETE FROM a", TransactionPart::Within),
            ("DELETE FROM b", TransactionPart::Within),
            ("COMMIT", TransactionPart::Commit),
            ("ROLLBACK", TransactionPart::Rollback),
        ];
        assert!(parts.eq(expected));
        let ops = plan.sessions[0].ops.iter().map(|op| match op {
            Op::BeginGroup(_) => "begin".to_owned(),
            Op::Request(request) => request.to_string(),
            Op::JumpUnlessGood(to) => format!("unless good {to}"),
            Op::Jump(to) => format!("to {to}"),
            Op::EndGroup => "end".to_owned(),
            other => format!("{other:?}"),
        });
        let ops: Vec<String> = ops.collect();
        assert_eq!(
            ops,
            [
                "begin",
                "0",
                "unless good 10",
                "1",
                "unless good 9",
                "2",
                "unless good 9",
                "3",
                "to 10",
                "4",
                "end",
                "End"
            ]
        );
    }

    #[test]
    fn what_cannot_stand_in_one_is_told() {
        for (steps, limits, words) in [
            (STEPS, "limits: {pipeline: 4}", "has its connection to itself"),
            ("- transaction: A\n  steps:\n    - think: 1s", "", "without a request"),
            (
                "- transaction: A\n  steps:\n    - transaction: B\n      steps: [{sql: SELECT 1}]",
                "",
                "cannot be nested",
            ),
            (
                "- transaction: A\n  steps:\n    - group: B\n      steps: [{sql: SELECT 1}]",
                "",
                "a transaction cannot contain a group",
            ),
            ("- transaction: A\n  steps:\n    - sql: COMMIT", "", "with `transaction: NAME`"),
            (
                "- transaction: A\n  steps:\n    - sql: INSERT INTO t VALUES ($1)\n      with: ['${c}']\n      \
                 ledger: {content: '${entry}|${check}', as: c}",
                "",
                "not acknowledged before its COMMIT",
            ),
        ] {
            let (_, told) = read(steps, limits);
            assert!(told.contains(words), "{steps}: {told}");
        }
    }
}
