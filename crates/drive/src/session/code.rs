//! Code of sessions: the seam for steps in another language.
//!
//! At [`Op::Code`](tidemark_scenario::plan::Op::Code) a session has its thread's [`Code`] run a step, which sees the last
//! answer and sets variables. It runs in turn with its driving thread; what follows it is due once it has ended.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use tidemark_scenario::plan::SlotIndex;
use tidemark_scenario::{Shared, Slot, Value};

use crate::session::answer::Answer;
use crate::session::held_values::HeldValues;

/// Runs the code of one thread's sessions.
pub trait Code {
    /// Runs the plan's code of this index to its end.
    ///
    /// # Errors
    /// Why the step fails, in words.
    fn run(
        &mut self,
        code: usize,
        answer: Option<&Rc<LastAnswer>>,
        variables: &mut dyn CodeVariables,
    ) -> Result<(), String>;
}

/// Makes what runs the code of each thread.
#[derive(Clone)]
pub struct Codes(Arc<dyn Fn(usize) -> Box<dyn Code> + Send + Sync>);

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codes")
    }
}

impl Codes {
    /// By a function that is called with a thread's number, on that thread.
    pub fn new(make: impl Fn(usize) -> Box<dyn Code> + Send + Sync + 'static) -> Codes {
        Codes(Arc::new(make))
    }

    /// What runs the code of a thread.
    pub(crate) fn make(&self, thread: usize) -> Box<dyn Code> {
        (self.0)(thread)
    }
}

/// The variables of the session whose step runs.
pub trait CodeVariables {
    /// What a variable is worth.
    fn get(&self, slot: SlotIndex) -> Value<'_>;
    /// Puts a value into a variable, and leaves the old buffer for the next one. False where there is no room for it: the
    /// variable is missing then.
    fn put(&mut self, slot: SlotIndex, made: &mut Slot) -> bool;
}

/// The variables of a session, with the bound of all.
pub(crate) struct BoundVariables<'a> {
    pub slots: &'a mut [Slot],
    pub held: &'a mut HeldValues,
    pub shared: &'a Shared,
}

impl CodeVariables for BoundVariables<'_> {
    fn get(&self, slot: SlotIndex) -> Value<'_> {
        self.slots.get(usize::from(slot)).map_or(Value::Missing, Slot::value)
    }

    fn put(&mut self, slot: SlotIndex, made: &mut Slot) -> bool {
        self.slots.get_mut(usize::from(slot)).is_some_and(|slot| self.held.put(self.shared, slot, made))
    }
}

/// The last answer to a session.
#[derive(Debug, Default)]
pub struct LastAnswer {
    status: u16,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl LastAnswer {
    /// Of its parts; the head is lines of `Name: value`, with a line feed behind each.
    pub fn new(status: u16, head: &[u8], body: &[u8]) -> LastAnswer {
        LastAnswer { status, head: head.to_vec(), body: body.to_vec() }
    }

    /// The status; 0 where there is none.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its headers, as lines of `Name: value`, with a line feed behind each.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The body, decoded if it came encoded; or the message.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    fn held_bytes(&self) -> usize {
        self.head.capacity() + self.body.capacity()
    }
}

/// Where a session keeps its last answer.
#[derive(Debug, Default)]
pub(crate) struct KeptAnswer {
    answer: Option<Rc<LastAnswer>>,
    /// Whether there is one, for which there was no room.
    pub lacks_room: bool,
}

impl KeptAnswer {
    /// The answer, if there is one.
    pub fn get(&self) -> Option<&Rc<LastAnswer>> {
        self.answer.as_ref()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.answer.is_none() && !self.lacks_room
    }

    /// Takes an answer's place with another one.
    pub fn keep(&mut self, answer: &dyn Answer, (held, shared): (&mut HeldValues, &Shared)) {
        let before = self.answer.as_ref().map_or(0, |answer| answer.held_bytes());
        // code may still have the one before
        let mut kept = self.answer.take().and_then(Rc::into_inner).unwrap_or_default();
        kept.status = answer.status();
        kept.head.clear();
        answer.each_header(&mut |name, value| {
            for part in [name, b": ", value, b"\n"] {
                kept.head.extend_from_slice(part);
            }
        });
        kept.body.clear();
        kept.body.extend_from_slice(answer.body());
        self.lacks_room = !held.changes(shared, (before, kept.held_bytes()));
        self.answer = (!self.lacks_room).then(|| Rc::new(kept));
    }

    /// There is no answer any more.
    pub fn clear(&mut self, (held, shared): (&mut HeldValues, &Shared)) {
        self.lacks_room = false;
        if let Some(answer) = self.answer.take() {
            held.changes(shared, (answer.held_bytes(), 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::plan::VALUES_BYTES_MAX;

    use super::*;

    struct Told(Vec<u8>);

    impl Answer for Told {
        fn status(&self) -> u16 {
            201
        }
        fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
            tell(b"a", b"b");
            tell(b"c", b"");
        }
        fn body(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn an_answer_is_kept_as_long_as_there_is_room_for_it() {
        let shared = Shared::new(0, Vec::new());
        let (mut held, mut kept) = (HeldValues::default(), KeptAnswer::default());
        kept.keep(&Told(b"body".to_vec()), (&mut held, &shared));
        let first = Rc::clone(kept.get().unwrap());
        assert_eq!((first.status(), first.head(), first.body()), (201, &b"a: b\nc: \n"[..], &b"body"[..]));
        kept.keep(&Told(b"more".to_vec()), (&mut held, &shared));
        assert_eq!((first.body(), kept.get().unwrap().body()), (&b"body"[..], &b"more"[..]));
        kept.clear((&mut held, &shared));
        assert!(kept.is_empty() && shared.reserve(VALUES_BYTES_MAX - (1 << 20)), "it is given back");
        kept.keep(&Told(vec![0; 2 << 20]), (&mut held, &shared));
        assert!(kept.get().is_none() && kept.lacks_room && !kept.is_empty());
        assert_eq!(held.refused, 1);
        kept.keep(&Told(b"short".to_vec()), (&mut held, &shared));
        assert!(kept.get().is_some() && !kept.lacks_room);
    }
}
