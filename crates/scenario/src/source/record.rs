//! Mappings of which some keys are known: a field for each of these, and room for the others.

use super::value::{Map, Scalar, Value};

/// What a field of a record can be.
pub(crate) trait Field {
    /// What is written; nothing where nothing is said.
    fn write(&self) -> Option<Value>;
    /// What stands above it.
    fn comment(&self) -> &str {
        ""
    }
}

impl Field for Scalar {
    fn write(&self) -> Option<Value> {
        Some(Value::Scalar(self.clone()))
    }
}

impl Field for Option<Scalar> {
    fn write(&self) -> Option<Value> {
        self.clone().map(Value::Scalar)
    }
}

impl Field for Value {
    fn write(&self) -> Option<Value> {
        Some(self.clone())
    }
}

impl Field for Option<Value> {
    fn write(&self) -> Option<Value> {
        self.clone()
    }
}

impl Field for Map {
    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Map(self.clone()))
    }
}

impl Field for Vec<Value> {
    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::List(self.clone()))
    }
}

/// A part that is a mapping of its own.
pub(crate) trait Record {
    /// The keys that have fields.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests hold them against the language"))]
    const KEYS: &[&str];
    fn to_map(&self) -> Map;
    fn comment(&self) -> &str;
}

impl<T: Record> Field for Option<T> {
    fn write(&self) -> Option<Value> {
        self.as_ref().map(|whole| Value::Map(whole.to_map()))
    }

    fn comment(&self) -> &str {
        self.as_ref().map_or("", Record::comment)
    }
}

impl<T: Record> Field for Vec<T> {
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
            /// Lines for a person, written above it.
            pub comment: String,
            $( $(#[$extra_about])* pub $extra: $extra_type, )?
            $( $(#[$field_about])* pub $field: $type, )*
            /// All other keys, as they are.
            pub other: $crate::source::Map,
        }

        impl $crate::source::record::Record for $name {
            const KEYS: &[&str] = &[$($key),*];

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
                $crate::source::Map::of(entries)
            }

            fn comment(&self) -> &str {
                &self.comment
            }
        }
    };
}

pub(super) use record;
