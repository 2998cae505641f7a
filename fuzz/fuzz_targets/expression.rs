//! Expressions, over what an answer brought: the first line is the expression, what follows the variable `x`.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::plan::Op;
use tidemark_scenario::{Context, Shared, Slot, check_text};

fuzz_target!(|text: &str| {
    let Some((expression, value)) = text.split_once('\n') else { return };
    let quoted = expression.replace('\\', "\\\\").replace('"', "\\\"");
    let scenario = format!(
        "system: {{url: 'http://localhost'}}\nload: {{users: 1, hold: 1s}}\n\
         sessions: {{s: {{steps: [{{set: {{x: 1}}}}, {{set: {{y: \"${{{quoted}}}\"}}}}, {{GET: /}}]}}}}\n"
    );
    let (Some(plan), _) = check_text("fuzz.yaml", &scenario, Path::new("/nonexistent"), &[]) else { return };
    let session = &plan.sessions[0];
    let mut slots = vec![Slot::default(); session.slots];
    let shared = Shared::new(plan.counters, plan.feeders.clone());
    let mut random = fastrand::Rng::with_seed(1);
    let mut found = Slot::default();
    for op in &session.ops {
        let Op::Set { slot, value: expr } = op else { continue };
        let mut context =
            Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 1_792_000_000_000 };
        expr.eval_into(&mut context, &mut found);
        let mut written = Vec::new();
        let _ = expr.write(&mut context, &mut written);
        let _ = (expr.is_true(&mut context), expr.duration_us(&mut context));
        let index = usize::from(*slot);
        // what the server sent stands in place of the 1
        match session.slot_names[index].as_str() {
            "x" => slots[index].set_text(value.as_bytes()),
            _ => slots[index] = found.clone(),
        }
    }
});
