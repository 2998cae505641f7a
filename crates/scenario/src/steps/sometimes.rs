//! Steps that are done in a share of all passes.

use super::{STEPS, Step};
use crate::compile::Session;
use crate::expr::{Expr, Node as Tree, PPB};
use crate::grammar::Scalar::{Share, Word};
use crate::grammar::Shape::Scalar;

step! {
    /// Does its steps in a share of all passes.
    KIND("sometimes", "a sometimes step") [
        "sometimes": Scalar(Share) => "The share of all passes, over all users."
    ] {
        "rhythm": Scalar(Word(&["shared", "random"])) =>
            "`shared` (default): evenly spread, 25% is the 3rd, 7th, 11th … pass overall; or by chance.",
        "steps" (required): STEPS => "What is done.",
    }
    example: "
- sometimes: 25%
  steps:
    - GET: /news
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let share_ppb = session.reader.share(step.value).map_or(0, |share| (share * PPB as f64).round() as u64);
    let rhythm = step.get("rhythm").and_then(|node| session.reader.word(node, &["shared", "random"]));
    let condition = match rhythm {
        Some("random") => Tree::Chance { share_ppb },
        _ => Tree::Rhythm { counter: session.shared.hidden_counter(), share_ppb },
    };
    let over = session.unless(Expr::new(condition));
    session.inner(step.get("steps"), share_ppb > 0);
    session.land(over);
}
