//! Records: one declaration gives a mapping's description and what is read from a checked one.

use super::Shape;
use crate::reader::Reader;
use crate::sink::Sink;
use crate::yaml::Node;

/// What may stand at a key: its shape, and how it is read once that was checked.
pub(crate) trait Kind<'n> {
    /// What may stand there.
    const SHAPE: Shape;
    /// What is read from it.
    type Value;

    /// Reads it; `None` if it is wrong, which has been reported.
    fn read(node: &'n Node, reader: &Reader<'_>) -> Option<Self::Value>;
}

/// A key of a record: where it stands in the file, and what it says.
pub(crate) struct At<'n, K: Kind<'n>> {
    /// The key's name.
    pub(crate) name: &'static str,
    entry: Option<&'n (Node, Node)>,
    /// The value; `None` if the key is missing or its value was wrong.
    pub(crate) value: Option<K::Value>,
}

impl<'n, K: Kind<'n>> At<'n, K> {
    /// Reads a key of a mapping.
    pub(crate) fn read(record: &'n Node, name: &'static str, reader: &Reader<'_>) -> Self {
        let entry = record.entry(name);
        At { name, entry, value: entry.and_then(|(_, node)| K::read(node, reader)) }
    }

    /// `Some(None)` if the key is missing, `None` if its value was wrong.
    pub(crate) fn given(&self) -> Option<Option<&K::Value>> {
        match &self.value {
            None if self.is_there() => None,
            value => Some(value.as_ref()),
        }
    }

    /// Whether the key is there, whatever it says.
    pub(crate) fn is_there(&self) -> bool {
        self.entry.is_some()
    }

    /// The key itself.
    pub(crate) fn key(&self) -> Option<&'n Node> {
        self.entry.map(|(key, _)| key)
    }

    /// What stands behind the key.
    pub(crate) fn node(&self) -> Option<&'n Node> {
        self.entry.map(|(_, node)| node)
    }

    /// Reports that this says something wrong.
    pub(crate) fn error(&self, sink: &Sink<'_>, message: impl Into<String>) {
        if let Some(node) = self.node() {
            sink.error(node, message);
        }
    }

    /// Warns of what this says.
    pub(crate) fn warn(&self, sink: &Sink<'_>, message: String) {
        if let Some(node) = self.node() {
            sink.warn(node.position, message);
        }
    }

    /// Reports that this key should not be here.
    pub(crate) fn refuse(&self, sink: &Sink<'_>, message: impl Into<String>) {
        if let Some(key) = self.key() {
            sink.error(key, message);
        }
    }
}

/// A text without the blank that a doc comment begins with.
pub(crate) const fn unindented(text: &'static str) -> &'static str {
    match text.as_bytes() {
        [b' ', ..] => text.split_at(1).1,
        _ => text,
    }
}

/// What a part of a declaration stands for, also where it is left out.
macro_rules! declared {
    (name $field:ident) => {
        stringify!($field)
    };
    (name $field:ident $name:literal) => {
        $name
    };
    (is_required) => {
        false
    };
    (is_required required) => {
        true
    };
    (rule) => {
        $crate::grammar::Rule::Free
    };
    (rule $rule:expr) => {
        $rule
    };
    // a key that several records have
    (key $shared:tt) => {
        $shared
    };
    (key $name:tt $(: ($required:ident))?, $shape:expr, $about:expr) => {
        $crate::grammar::Key {
            name: $name,
            about: $about,
            shape: $shape,
            required: $crate::grammar::record::declared!(is_required $($required)?),
        }
    };
}

/// Declares a mapping: each key with what may stand there, and what it is about.
///
/// With kinds it becomes a structure, whose fields say where a key stands and what it says, and whose `record` describes it:
///
/// ```text
/// record! {
///     /// Another rate for a while, at the end of every period.
///     pub(crate) struct Spike("spike", "a spike") {
///         rate (required): OneRate = "The rate of a spike.",
///         length (required): Time as "for" = "Length of a spike.",
///     }
/// }
/// ```
///
/// With shapes it is only the description. In brackets stand the verbs of a step; a name alone is a [key](super::Key) that other
/// records have, too:
///
/// ```text
/// record! {
///     /// Sends a ping and waits for its pong.
///     static PING("wsPing", "a ws ping step") ["ws ping": Scalar(Template) => "What the ping holds."] {
///         LABEL, TIMEOUT,
///     }
/// }
/// ```
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident($schema:literal, $what:literal $(, $rule:expr)?) {
            $( $field:ident $(($required:ident))?: $kind:ty $(as $key:literal)? = $key_about:expr, )+
        }
    ) => {
        $(#[doc = $about])+
        $vis struct $name<'n> {
            /// All of it.
            #[allow(dead_code, reason = "not every record is pointed at as a whole")]
            pub(crate) node: &'n $crate::yaml::Node,
            $( pub(crate) $field: $crate::grammar::record::At<'n, $kind>, )+
        }

        impl<'n> $crate::grammar::record::Kind<'n> for $name<'n> {
            const SHAPE: $crate::grammar::Shape = $crate::grammar::Shape::Record($name::record);
            type Value = Self;

            fn read(node: &'n $crate::yaml::Node, reader: &$crate::reader::Reader<'_>) -> Option<Self> {
                use $crate::grammar::record::{At, declared};
                Some($name { node, $( $field: At::read(node, declared!(name $field $($key)?), reader), )+ })
            }
        }

        impl<'n> $name<'n> {
            /// Its description.
            $vis fn record() -> &'static $crate::grammar::Record {
                use $crate::grammar::record::{Kind, declared, unindented};
                const {
                    &$crate::grammar::Record {
                        what: $what,
                        schema: $schema,
                        about: unindented(concat!($($about),+)),
                        verbs: &[],
                        keys: &[ $( declared!(
                            key (declared!(name $field $($key)?)) $(: ($required))?, <$kind as Kind<'n>>::SHAPE, $key_about
                        ), )+ ],
                        rule: declared!(rule $($rule)?),
                    }
                }
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        $vis:vis static $name:ident($schema:literal, $what:literal $(, $rule:expr)?)
        $([ $($verb:tt: $verb_shape:expr => $verb_about:expr),+ ])?
        {
            $( $key:tt $(($required:ident))? $(: $shape:expr => $key_about:expr)?, )*
        }
    ) => {
        $(#[doc = $about])+
        $vis static $name: $crate::grammar::Record = $crate::grammar::Record {
            what: $what,
            schema: $schema,
            about: $crate::grammar::record::unindented(concat!($($about),+)),
            verbs: &[ $($( $crate::grammar::key($verb, $verb_shape, $verb_about), )+)? ],
            keys: &[ $( $crate::grammar::record::declared!(
                key $key $(: ($required))? $(, $shape, $key_about)?
            ), )* ],
            rule: $crate::grammar::record::declared!(rule $($rule)?),
        };
    };
}

pub(crate) use {declared, record};
