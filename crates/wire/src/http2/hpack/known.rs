//! A list that a server sends again and again: the same bytes mean the same headers.

use super::{Effects, Fields};

/// Longest block that is remembered, and most bytes of its headers.
const BLOCK_BYTES: usize = 1 << 10;
const LIST_BYTES: usize = 4 << 10;

/// A list that came, and what it does to the connection's table.
#[derive(Debug, Default)]
pub(super) struct Known {
    block: Vec<u8>,
    pub fields: Fields,
    /// Which of its headers the table keeps.
    kept: Vec<u32>,
    /// What it counts against a limit, bytes.
    list_bytes: usize,
    /// How often the table had changed when it came, where it names something in that.
    needs_changes: Option<u64>,
}

impl Known {
    /// Whether a block means this list, now that the table has changed so often.
    pub fn is(&self, block: &[u8], changes: u64, limit_bytes: usize) -> bool {
        self.block == block
            && self.needs_changes.is_none_or(|needed| needed == changes)
            && self.list_bytes <= limit_bytes
    }

    /// Keeps a list that was just read, if the same bytes can mean the same again; whether they can. The table, which had
    /// changed so often, has `kept` these of its headers.
    pub fn remember(
        &mut self,
        block: &[u8],
        fields: &Fields,
        effects: &Effects,
        (kept, changes): (&[u32], u64),
    ) -> bool {
        let changes_what_it_uses = effects.used_table && !kept.is_empty();
        let is_large = block.len() > BLOCK_BYTES || effects.list_bytes > LIST_BYTES;
        if effects.is_cut || effects.resized_table || changes_what_it_uses || is_large {
            return false;
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.fields.copy_from(fields);
        self.kept.clear();
        self.kept.extend_from_slice(kept);
        self.list_bytes = effects.list_bytes;
        self.needs_changes = effects.used_table.then_some(changes);
        true
    }

    /// Whether the table keeps any of its headers.
    pub fn changes_table(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Those that the table keeps, in order: their bytes, and how many of these are the name.
    pub fn kept(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.kept.iter().map(|index| self.fields.header(*index as usize))
    }
}
