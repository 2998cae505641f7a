//! How much the variables of a thread's sessions hold. All sessions of the driver have a bound in common.

use tidemark_scenario::plan::VALUES_BYTES_MAX;
use tidemark_scenario::units::Size;
use tidemark_scenario::{Shared, Slot};

/// A thread reserves memory of all threads in such pieces, so that they rarely meet.
const PIECE_BYTES: u64 = 1 << 20;
/// The largest buffer that a variable keeps for its next value.
const KEPT_BYTES: usize = 64 << 10;

/// What a thread's sessions hold, and what it has reserved for that.
#[derive(Debug, Default)]
pub(crate) struct HeldValues {
    bytes: u64,
    reserved: u64,
    /// Values that were not kept: for want of room, or because they are too long by themselves.
    pub refused: u64,
}

impl HeldValues {
    /// Writes a variable. False where there is no room for what it holds now: it is missing then.
    #[inline]
    pub fn write<T>(
        &mut self,
        shared: &Shared,
        slot: &mut Slot,
        write: impl FnOnce(&mut Slot) -> T,
    ) -> (T, bool) {
        let before = slot.held_bytes();
        let written = write(slot);
        let after = slot.held_bytes();
        (written, before == after || self.changed(shared, slot, (before, after)))
    }

    /// The memory of a variable has changed.
    fn changed(&mut self, shared: &Shared, slot: &mut Slot, bytes: (usize, usize)) -> bool {
        let has_room = self.changes(shared, bytes);
        if !has_room {
            slot.free();
        }
        has_room
    }

    /// What is held changes from so many bytes to so many. False where there is no room for it: it counts as given back.
    pub fn changes(&mut self, shared: &Shared, (before, after): (usize, usize)) -> bool {
        self.bytes = (self.bytes + after as u64).saturating_sub(before as u64);
        if self.bytes > self.reserved {
            let lacking = (self.bytes - self.reserved).next_multiple_of(PIECE_BYTES);
            if !shared.reserve(lacking) {
                self.bytes -= after as u64;
                self.refused += 1;
                return false;
            }
            self.reserved += lacking;
        } else if self.reserved - self.bytes > 2 * PIECE_BYTES {
            let spare = self.reserved - self.bytes - PIECE_BYTES;
            shared.give_room(spare);
            self.reserved -= spare;
        }
        true
    }

    /// Puts a value that was just made into a variable, and leaves its old buffer for the next one. Returns false as
    /// [`write`](HeldValues::write) does.
    #[inline]
    pub fn put(&mut self, shared: &Shared, slot: &mut Slot, made: &mut Slot) -> bool {
        let ((), has_room) = self.write(shared, slot, |slot| std::mem::swap(slot, made));
        // a short value must not keep a large buffer
        if made.held_bytes() > KEPT_BYTES {
            made.free();
        }
        has_room
    }

    /// Makes a variable missing; a large buffer is given back.
    #[inline]
    pub fn clear(&mut self, shared: &Shared, slot: &mut Slot) {
        slot.clear();
        if slot.held_bytes() > KEPT_BYTES {
            self.write(shared, slot, Slot::free);
        }
    }
}

/// Why a value was not kept, for want of room.
pub(crate) fn no_room() -> String {
    format!(
        "the variables of all users hold {} already; set shorter values, or use fewer users",
        Size(VALUES_BYTES_MAX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_variables_hold_is_bounded_and_given_back() {
        let shared = Shared::new(0, Vec::new());
        assert!(shared.reserve(VALUES_BYTES_MAX - 3 * PIECE_BYTES));
        let (mut one, mut other) = (HeldValues::default(), HeldValues::default());
        let mut slots = [Slot::default(), Slot::default(), Slot::default()];
        let text = vec![b'x'; 3 << 19];
        assert!(one.write(&shared, &mut slots[0], |slot| slot.set_text(&text)).1, "2 of 3 pieces");
        assert!(!other.write(&shared, &mut slots[1], |slot| slot.set_text(&text)).1, "2 more are too many");
        assert_eq!((other.bytes, other.refused, slots[1].held_bytes()), (0, 1, 0), "and it is missing");
        assert!(other.write(&shared, &mut slots[2], |slot| slot.set_text(b"short")).1);
        one.clear(&shared, &mut slots[0]);
        assert_eq!((one.bytes, slots[0].held_bytes()), (0, 0));
        assert!(
            one.write(&shared, &mut slots[0], |slot| slot.set_text(b"short")).1,
            "what it reserved is its own"
        );
        for slot in &mut slots {
            slot.free();
        }
    }

    #[test]
    fn what_is_written_over_and_over_holds_no_more() {
        let shared = Shared::new(0, Vec::new());
        let (mut held, mut slot) = (HeldValues::default(), Slot::default());
        for length in [0, 10, 3 << 20, 5, 40 << 20, 7] {
            assert!(held.write(&shared, &mut slot, |slot| slot.set_text(&vec![b'x'; length])).1);
            assert_eq!(held.bytes, slot.held_bytes() as u64);
            assert!(held.reserved >= held.bytes);
            held.clear(&shared, &mut slot);
        }
        assert!(held.bytes <= KEPT_BYTES as u64 && held.reserved <= 3 * PIECE_BYTES);
    }
}
