//! A warm session of the airline allocates nothing: no template, no expression, no variable does.

#[path = "../../wire/tests/support/counting.rs"]
mod counting;

use std::cell::Cell;
use std::path::Path;

use counting::Counting;
use tidemark_scenario::plan::Op;
use tidemark_scenario::{Context, Plan, Shared, Slot};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// Every operation once, in the order of the plan and whatever its conditions say.
fn pass(
    plan: &Plan,
    slots: &mut [Slot],
    spare: &mut Slot,
    out: &mut Vec<u8>,
    cx: (&Shared, &mut fastrand::Rng),
) {
    let (shared, random) = cx;
    for op in &plan.sessions[0].ops {
        let mut cx = Context { slots, shared, random, epoch_ms: 1_795_219_200_000 };
        match op {
            Op::Request(index) => {
                let request = &plan.requests[usize::from(*index)];
                out.clear();
                let request = request.http().unwrap();
                request.target.render(&mut cx, out).unwrap();
                request.headers.iter().for_each(|(_, value)| value.render(&mut cx, out).unwrap());
                if let Some(body) = &request.body {
                    body.render(&mut cx, out).unwrap();
                }
            }
            Op::Set { slot, value } => {
                value.eval_into(&mut cx, spare);
                std::mem::swap(spare, &mut slots[usize::from(*slot)]);
            }
            Op::Take { feeder, row } => {
                if let Some(taken) = shared.hold_row(*feeder) {
                    shared.give_back(*feeder, taken);
                    slots[usize::from(*row)].set_int(taken as i64);
                }
            }
            Op::JumpUnless { condition, .. } => drop(condition.is_true(&mut cx)),
            Op::Think(time) => drop(time.duration_us(&mut cx)),
            Op::Measure { value, .. } => value.eval_into(&mut cx, spare),
            Op::Jump(_)
            | Op::JumpUnlessGood(_)
            | Op::Choose { .. }
            | Op::BeginGroup(_)
            | Op::EndGroup
            | Op::Refuse { .. }
            | Op::Code { .. }
            | Op::Program
            | Op::Parallel { .. }
            | Op::End => {}
        }
    }
}

#[test]
fn a_warm_session_allocates_nothing() {
    let text = tidemark_scenario::shipped("airline").unwrap();
    let plan = tidemark_scenario::load_text("airline.yaml", text, Path::new("."), &[]).unwrap();
    let kind = &plan.sessions[0];
    let shared = Shared::of(&plan);
    let mut random = fastrand::Rng::with_seed(1);
    let mut slots = vec![Slot::default(); kind.slots];
    for (slot, name) in slots.iter_mut().zip(&kind.slot_names) {
        match name.as_str() {
            "street" => slot.set_text(b"123 Main St."),
            "bookings" => {
                slot.start_list();
                (0..9).for_each(|_| slot.push_item(b"6f9619ff-8b86-4011-b42d-00c04fc964ff"));
            }
            "flights" | "returns" => slot.set_int(1),
            _ => slot.set_text(b"27617"),
        }
    }
    let (mut spare, mut out) = (Slot::default(), Vec::new());
    for _ in 0..50 {
        pass(&plan, &mut slots, &mut spare, &mut out, (&shared, &mut random));
    }
    let before = ALLOCATIONS.get();
    for _ in 0..200 {
        pass(&plan, &mut slots, &mut spare, &mut out, (&shared, &mut random));
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert!(before > 0, "the counting allocator is not in use");
}
