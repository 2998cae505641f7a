//! Steps whose code sessions run.

use tidemark_scenario::plan::{Op, SessionKind};

use crate::engine::thread::Thread;
use crate::error::DriveError;
use crate::session::code::{BoundVariables, Codes};

/// Whether sessions of a kind run code.
pub(crate) fn has_code(kind: &SessionKind) -> bool {
    kind.ops.iter().any(|op| matches!(op, Op::Code { .. }))
}

/// Of each kind, whether its code looks at answers.
pub(crate) fn keeps_answers(kinds: &[SessionKind]) -> Vec<bool> {
    let reads = |op: &Op| matches!(op, Op::Code { reads_answer: true, .. });
    kinds.iter().map(|kind| kind.ops.iter().any(reads)).collect()
}

/// Whether the code of these kinds can be run.
pub(crate) fn check<'k>(
    kinds: impl IntoIterator<Item = &'k SessionKind>,
    codes: Option<&Codes>,
) -> Result<(), DriveError> {
    let kind = kinds.into_iter().find(|kind| has_code(kind)).filter(|_| codes.is_none());
    kind.map_or(Ok(()), |kind| Err(DriveError::Code { kind: kind.name.clone() }))
}

impl Thread<'_> {
    /// Runs the code of the operation of this index. What follows is due once that has ended. How long it took, nanoseconds.
    pub fn run_code(&mut self, s: usize, op: usize) -> u64 {
        let session = &mut self.flow.sessions[s];
        let Some(Op::Code { code, reads_answer }) = self.kinds[session.kind()].ops.get(op) else { return 0 };
        let (code, reads_answer) = (usize::from(*code), *reads_answer);
        let begun_ns = self.clock.now_ns();
        let answer = session.cold().map(|cold| &cold.answer).filter(|_| reads_answer);
        let failed = match (&mut self.code, answer) {
            (_, Some(answer)) if answer.lacks_room => Some(None),
            (None, _) => None,
            (Some(runs), answer) => {
                let answer = answer.and_then(|answer| answer.get()).cloned();
                let held = &mut self.flow.scratch.held;
                let mut variables = BoundVariables { slots: &mut session.slots, held, shared: self.shared };
                runs.run(code, answer.as_ref(), &mut variables).err().map(Some)
            }
        };
        let now_ns = self.clock.now_ns();
        let took_ns = now_ns.saturating_sub(begun_ns);
        self.flow.sessions[s].worked(took_ns);
        if let Some(why) = &failed {
            self.fail_step(s, (op, why.as_deref()), now_ns);
        }
        self.tell_code(s, took_ns, failed);
        took_ns
    }
}
