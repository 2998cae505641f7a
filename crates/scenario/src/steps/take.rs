//! Drawing a row of a feeder.

use super::Step;
use crate::compile::Session;
use crate::expr::{Expr, Node as Tree};
use crate::grammar::Scalar::Feeder;
use crate::grammar::Shape::{Either, List, Scalar};
use crate::plan::Op;
use crate::yaml::one_or_many;

step! {
    /// Draws the next row of a feeder and sets a variable for each of its columns.
    KIND("take", "a take step") ["take": Either(&[Scalar(Feeder), List(&Scalar(Feeder), 1)]) => "Feeders."] {}
    example: "
- take: people
- GET: /people/${name}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    for node in one_or_many(step.value) {
        let Some(name) = session.reader.text(node) else { continue };
        let feeder = match session.shared.feeder(&name) {
            Ok(feeder) => feeder,
            Err(message) => {
                session.reader.sink.error(node, message);
                continue;
            }
        };
        let columns = session.shared.feeders[feeder].columns.clone();
        let row = session.scope.hidden("row");
        match session.shared.feeders[feeder].held {
            true => session.ops.push(Op::Take { feeder, row }),
            false => session.assign(row, Expr::new(session.shared.draw(feeder))),
        }
        for (column, name) in columns.iter().enumerate() {
            let Some(slot) = session.scope.slot(name) else { continue };
            let row = Box::new(Tree::Variable(row));
            session.assign(slot, Expr::new(Tree::Cell { feeder, column, row }));
        }
    }
}
