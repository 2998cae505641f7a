//! How large an answer may be, and what all that are made may hold together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_graphql::{Context, Error, ErrorExtensions, SelectionField, ServerError};

/// Most objects and lists in an answer.
pub(super) const OBJECTS_MAX: usize = 10_000;
/// Most bytes of an answer. Texts count as they are written, with escapes, and when they are read from a feed.
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a field takes in an answer beside its name and its text; more than any number, day or cursor.
pub(super) const FIELD_BYTES: usize = 48;
/// What an object holds while the answer is made, and what each of its fields does.
const OBJECT_HELD: usize = 2 * 1024;
const FIELD_HELD: usize = 192;
/// What a byte of a request holds once it is read: a list has an element for each two.
const READ_HELD: usize = 64;

/// What all requests may hold together while their answers are made.
#[derive(Debug)]
pub(crate) struct Memory {
    held: AtomicUsize,
    most: usize,
}

impl Memory {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Memory { held: AtomicUsize::new(0), most })
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let sum = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }
}

/// What the answer to one request has so far, and what the request holds.
#[derive(Debug)]
pub(super) struct Room {
    memory: Arc<Memory>,
    held: AtomicUsize,
    objects: AtomicUsize,
    bytes: AtomicUsize,
    exceeded: OnceLock<Error>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(*self.held.get_mut(), Ordering::Relaxed);
    }
}

impl Room {
    /// Room for a request of so many bytes; none if others hold all there is.
    pub(super) fn of(memory: &Arc<Memory>, request_bytes: usize) -> Option<Self> {
        // a large one has at least its turn
        let held = request_bytes.saturating_mul(READ_HELD).min(memory.most / 2);
        let room = || Room {
            memory: memory.clone(),
            held: AtomicUsize::new(held),
            objects: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            exceeded: OnceLock::new(),
        };
        memory.take(held).then(room)
    }

    /// Takes room for as many objects with the fields that are asked for.
    pub(super) fn objects(&self, context: &Context<'_>, count: usize) -> Result<(), Error> {
        // the list itself is one, or it would be free where nothing is in it
        let objects = self.objects.fetch_add(count.max(1), Ordering::Relaxed).saturating_add(count);
        if objects > OBJECTS_MAX {
            return self.exceeds(&format!("{OBJECTS_MAX} objects"));
        }
        let field = context.field();
        let name = |field: SelectionField<'_>| field.alias().unwrap_or(field.name()).len();
        let (fields, names) =
            field.selection_set().fold((0, 0), |(fields, names), field| (fields + 1, names + name(field)));
        self.hold(count.saturating_mul(OBJECT_HELD + fields * FIELD_HELD))?;
        self.bytes(count.saturating_mul(names + (fields + 1) * FIELD_BYTES))
    }

    /// Takes room for a text.
    pub(super) fn text(&self, text: &str) -> Result<(), Error> {
        self.bytes(escaped_bytes(text))
    }

    /// Takes room for so many bytes of an answer.
    pub(super) fn bytes(&self, count: usize) -> Result<(), Error> {
        match self.bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > BYTES_MAX {
            true => self.exceeds(&format!("{} MiB", BYTES_MAX / (1024 * 1024))),
            false => self.hold(count),
        }
    }

    /// Takes room for so many bytes of an answer about the schema, whose fields are small.
    pub(super) fn introspected(&self, bytes: usize) -> Result<(), Error> {
        self.hold(bytes / FIELD_BYTES * FIELD_HELD)?;
        self.bytes(bytes)
    }

    fn hold(&self, bytes: usize) -> Result<(), Error> {
        if self.memory.take(bytes) {
            self.held.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        let error = || {
            let full = "the memory for answers of GraphQL is taken; ask for less, or try again later";
            Error::new(full).extend_with(|_, extensions| extensions.set("code", "UNAVAILABLE"))
        };
        Err(self.exceeded.get_or_init(error).clone())
    }

    fn exceeds(&self, bound: &str) -> Result<(), Error> {
        Err(self.exceeded.get_or_init(|| too_large(bound)).clone())
    }

    /// The error in place of an answer that is too large.
    pub(super) fn exceeded(&self) -> Option<ServerError> {
        self.exceeded.get().map(|error| error.clone().into_server_error(Default::default())).map(|error| {
            // of the whole answer, not of the field where it was noticed
            ServerError { locations: Vec::new(), ..error }
        })
    }
}

/// The error in place of an answer that has more than `bound`.
pub(super) fn too_large(bound: &str) -> Error {
    Error::new(format!("the answer has more than {bound}; ask for less: with limit, or in several requests"))
}

/// The bytes of a text in JSON.
fn escaped_bytes(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_requests_hold_no_more_than_they_may() {
        let memory = Memory::new(1 << 20);
        let one = Room::of(&memory, 100).unwrap();
        assert_eq!(memory.held_bytes(), 100 * READ_HELD);
        one.bytes(500_000).unwrap();
        let other = Room::of(&memory, usize::MAX).unwrap();
        assert!(other.bytes(100_000).is_err() && Room::of(&memory, 100_000).is_none());
        let error = other.exceeded().unwrap();
        assert_eq!(error.extensions.unwrap().get("code"), Some(&"UNAVAILABLE".into()));
        assert!(error.message.contains("try again") && one.exceeded().is_none());
        drop(one);
        assert!(other.bytes(100_000).is_ok());
        drop(other);
        assert_eq!(memory.held_bytes(), 0);
    }

    proptest! {
        #[test]
        fn a_text_has_as_many_bytes_as_it_is_written_with(text: String) {
            prop_assert_eq!(escaped_bytes(&text) + 2, serde_json::to_string(&text).unwrap().len());
        }
    }

    #[test]
    fn control_characters_are_longer() {
        assert_eq!(escaped_bytes("\u{1}\"\\\n\t\r\u{8}\u{c}\u{1f}ä"), 6 + 7 * 2 + 6 + 2);
    }
}
