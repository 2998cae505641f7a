//! A session's variables: slots whose buffers are used again, so that a warm session allocates nothing.

/// Index of a variable in a session.
pub type SlotIndex = u16;

/// What a variable is worth right now, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Never set, cleared, or extracted from where there was nothing.
    Missing,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text; bytes as they came, UTF-8 by custom.
    Text(&'a [u8]),
    /// A list of texts.
    List(List<'a>),
}

impl Value<'_> {
    /// The number that it is, or that its text spells; none otherwise.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Real(value) => Some(*value),
            Value::Text(text) => crate::expr::number_in(text),
            Value::Missing | Value::Bool(_) | Value::List(_) => None,
        }
    }
}

/// A list of texts, borrowed from its slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct List<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

impl<'a> List<'a> {
    /// How many items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no item.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Item `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        Some(&self.bytes[start..end])
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Kind {
    #[default]
    Missing,
    Bool,
    Int,
    Real,
    Text,
    List,
}

/// One variable of a session.
#[derive(Debug, Clone, Default)]
pub struct Slot {
    kind: Kind,
    int: i64,
    real: f64,
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Slot {
    /// The value, borrowed.
    pub fn value(&self) -> Value<'_> {
        match self.kind {
            Kind::Missing => Value::Missing,
            Kind::Bool => Value::Bool(self.int != 0),
            Kind::Int => Value::Int(self.int),
            Kind::Real => Value::Real(self.real),
            Kind::Text => Value::Text(&self.bytes),
            Kind::List => Value::List(List { bytes: &self.bytes, ends: &self.ends }),
        }
    }

    /// Memory of its buffers, bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// Makes it missing and gives its buffers back.
    pub fn free(&mut self) {
        *self = Slot::default();
    }

    /// Makes it missing; buffers are kept.
    pub fn clear(&mut self) {
        self.kind = Kind::Missing;
    }

    /// Sets a truth value.
    pub fn set_bool(&mut self, value: bool) {
        self.kind = Kind::Bool;
        self.int = value.into();
    }

    /// Sets a whole number.
    pub fn set_int(&mut self, value: i64) {
        self.kind = Kind::Int;
        self.int = value;
    }

    /// Sets a number with a fraction.
    pub fn set_real(&mut self, value: f64) {
        self.kind = Kind::Real;
        self.real = value;
    }

    /// Sets text.
    pub fn set_text(&mut self, value: &[u8]) {
        let text = self.text_mut();
        text.extend_from_slice(value);
    }

    /// Makes it an empty text and hands out the buffer to write into.
    pub fn text_mut(&mut self) -> &mut Vec<u8> {
        self.kind = Kind::Text;
        self.bytes.clear();
        &mut self.bytes
    }

    /// Makes it an empty list.
    pub fn start_list(&mut self) {
        self.kind = Kind::List;
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends an item to the list begun with [`Slot::start_list`].
    pub fn push_item(&mut self, item: &[u8]) {
        debug_assert_eq!(self.kind, Kind::List);
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len() as u32);
    }
}
