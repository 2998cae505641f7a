//! Mappings of which some keys are known: a field for each of these, and room for the others.

use super::value::{Entry, Map, Scalar, Value};

/// The keys of a mapping in the order of a file, where that is not the model's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyOrder(Vec<String>);

impl KeyOrder {
    /// Of the keys as they stood in a file; `own` is how the model would write them.
    pub(super) fn of(read: Vec<String>, own: &[&str]) -> KeyOrder {
        if read == own { KeyOrder::default() } else { KeyOrder(read) }
    }

    /// Entries in this order; those that it does not know come last.
    pub(super) fn arrange(&self, entries: &mut [Entry]) {
        if !self.0.is_empty() {
            let position = |key: &str| self.0.iter().position(|known| known == key).unwrap_or(usize::MAX);
            entries.sort_by_cached_key(|entry| position(&entry.key));
        }
    }
}

/// What a field of a record can be. What does not fit it stays as it is, among the record's other keys.
pub(crate) trait Field: Sized {
    /// Whether a value can be this.
    fn fits(value: &Value) -> bool;
    /// A value that fits.
    fn read(value: Value) -> Self;
    /// What is written; nothing where nothing is said.
    fn write(&self) -> Option<Value>;
    /// What stands above it.
    fn comment(&self) -> &str {
        ""
    }
}

impl Field for Scalar {
    fn fits(value: &Value) -> bool {
        matches!(value, Value::Scalar(scalar) if !scalar.is_null())
    }

    fn read(value: Value) -> Self {
        match value {
            Value::Scalar(scalar) => scalar,
            _ => Scalar::default(),
        }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Scalar(self.clone()))
    }
}

impl Field for Option<Scalar> {
    fn fits(value: &Value) -> bool {
        Scalar::fits(value)
    }

    fn read(value: Value) -> Self {
        Some(Field::read(value))
    }

    fn write(&self) -> Option<Value> {
        self.clone().map(Value::Scalar)
    }
}

impl Field for Value {
    fn fits(_: &Value) -> bool {
        true
    }

    fn read(value: Value) -> Self {
        value
    }

    fn write(&self) -> Option<Value> {
        Some(self.clone())
    }
}

impl Field for Option<Value> {
    fn fits(_: &Value) -> bool {
        true
    }

    fn read(value: Value) -> Self {
        Some(value)
    }

    fn write(&self) -> Option<Value> {
        self.clone()
    }
}

impl Field for Map {
    fn fits(value: &Value) -> bool {
        matches!(value, Value::Map(map) if !map.is_empty())
    }

    fn read(value: Value) -> Self {
        match value {
            Value::Map(map) => map,
            _ => Map::new(),
        }
    }

    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Map(self.clone()))
    }
}

impl Field for Vec<Value> {
    fn fits(value: &Value) -> bool {
        matches!(value, Value::List(items) if !items.is_empty())
    }

    fn read(value: Value) -> Self {
        match value {
            Value::List(items) => items,
            _ => Vec::new(),
        }
    }

    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::List(self.clone()))
    }
}

/// A part that is a mapping of its own.
pub(crate) trait Record: Sized {
    fn from_map(map: Map) -> Self;
    fn to_map(&self) -> Map;
    fn comment(&self) -> &str;
}

impl<T: Record> Field for Option<T> {
    fn fits(value: &Value) -> bool {
        Map::fits(value)
    }

    fn read(value: Value) -> Self {
        Some(T::from_map(Field::read(value)))
    }

    fn write(&self) -> Option<Value> {
        self.as_ref().map(|whole| Value::Map(whole.to_map()))
    }

    fn comment(&self) -> &str {
        self.as_ref().map_or("", Record::comment)
    }
}

impl<T: Record> Field for Vec<T> {
    fn fits(value: &Value) -> bool {
        matches!(value, Value::List(items) if !items.is_empty() && items.iter().all(Map::fits))
    }

    fn read(value: Value) -> Self {
        let items: Vec<Value> = Field::read(value);
        items.into_iter().map(|item| T::from_map(Field::read(item))).collect()
    }

    /// An item's comment stands above its first key.
    fn write(&self) -> Option<Value> {
        let item = |whole: &T| {
            let mut entries = whole.to_map().into_entries();
            if let Some(first) = entries.first_mut().filter(|_| !whole.comment().is_empty()) {
                first.comment = whole.comment().to_owned();
            }
            Value::Map(Map::of(entries))
        };
        (!self.is_empty()).then(|| Value::List(self.iter().map(item).collect()))
    }
}

/// Things by name, in order.
pub type Named<T> = Vec<(String, T)>;

impl<T: Record> Field for Named<T> {
    fn fits(value: &Value) -> bool {
        let all = |map: &Map| map.entries().iter().all(|entry| Map::fits(&entry.value));
        matches!(value, Value::Map(map) if !map.is_empty() && all(map))
    }

    fn read(value: Value) -> Self {
        let map: Map = Field::read(value);
        map.into_entries()
            .into_iter()
            .map(|entry| (entry.key, T::from_map(Field::read(entry.value))))
            .collect()
    }

    fn write(&self) -> Option<Value> {
        let mut map = Map::new();
        for (name, whole) in self {
            map.insert_with_comment(whole.comment(), name.as_str(), whole.to_map());
        }
        (!self.is_empty()).then_some(Value::Map(map))
    }
}

/// Declares a mapping: its known keys in the order in which they are written, each with its field and type.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident $([ $(#[$extra_about:meta])* $extra:ident: $extra_type:ty ])? {
            $( $(#[$field_about:meta])* $field:ident: $type:ty = $key:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            /// Lines for a person, written above it; a file's are not read.
            pub comment: String,
            $( $(#[$extra_about])* pub $extra: $extra_type, )?
            $( $(#[$field_about])* pub $field: $type, )*
            /// All other keys, as they are.
            pub other: $crate::source::Map,
            /// The order of the keys in the file, if it has one of its own.
            pub key_order: $crate::source::KeyOrder,
        }

        impl $crate::source::record::Record for $name {
            fn from_map(map: $crate::source::Map) -> Self {
                use $crate::source::record::Field;
                let mut record = Self::default();
                let read = map.entries().iter().map(|entry| entry.key.clone()).collect();
                for entry in map.into_entries() {
                    match entry.key.as_str() {
                        $( $key if <$type as Field>::fits(&entry.value) => record.$field = Field::read(entry.value), )*
                        _ => record.other.put(entry),
                    }
                }
                let own = record.to_map();
                let own: Vec<&str> = own.entries().iter().map(|entry| entry.key.as_str()).collect();
                record.key_order = $crate::source::KeyOrder::of(read, &own);
                record
            }

            fn to_map(&self) -> $crate::source::Map {
                use $crate::source::record::Field;
                let mut entries: Vec<$crate::source::Entry> = Vec::new();
                $(
                    if let Some(value) = self.$field.write() {
                        let comment = Field::comment(&self.$field).to_owned();
                        entries.push($crate::source::Entry { comment, key: $key.to_owned(), value });
                    }
                )*
                for entry in self.other.entries() {
                    if entries.iter().all(|known| known.key != entry.key) {
                        entries.push(entry.clone());
                    }
                }
                self.key_order.arrange(&mut entries);
                $crate::source::Map::of(entries)
            }

            fn comment(&self) -> &str {
                &self.comment
            }
        }
    };
}

pub(super) use record;
