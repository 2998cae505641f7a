//! Kinds of plain values and of lists, and what is read from them.

use std::marker::PhantomData;

use tidemark_record::bill::Amount;

use super::record::{At, Kind};
use super::{Scalar, Shape};
use crate::reader::{self, Level, Reader};
use crate::sink::Sink;
use crate::yaml::Node;

/// Declares kinds of plain values: each with its shape, what is read, and how.
macro_rules! plain {
    ($( $(#[$about:meta])* $name:ident: $scalar:ident => $value:ty = $read:expr; )*) => {$(
        $(#[$about])*
        pub(crate) enum $name {}

        impl<'n> Kind<'n> for $name {
            const SHAPE: Shape = Shape::Scalar(Scalar::$scalar);
            type Value = $value;

            fn read(node: &'n Node, reader: &Reader<'_>) -> Option<$value> {
                let read: fn(&Reader<'_>, &'n Node) -> Option<$value> = $read;
                read(reader, node)
            }
        }
    )*};
}

plain! {
    /// A text known before the run.
    Text: Text => String = |reader, node| reader.text(node);
    /// `true` or `false`.
    Bool: Bool => bool = |reader, node| reader.bool(node);
    /// `25%`, as 0 to 1.
    Share: Share => f64 = |reader, node| reader.share(node);
    /// `10s`.
    Time: Duration => std::time::Duration = |reader, node| reader.duration(node);
    /// `10s`, or `25%` of what is measured.
    Moment: Moment => reader::Moment = |reader, node| reader.moment(node);
    /// `0.0416`, exactly.
    Decimal: Decimal => Amount = |reader, node| reader.decimal(node);
    /// `64KiB`, in bytes.
    Size: Size => u64 = |reader, node| reader.size(node);
    /// `1MiB/s`, in bytes each second.
    Bandwidth: Bandwidth => u64 = |reader, node| reader.bandwidth(node);
    /// A number of users, or `10 to 100`.
    Users: Users => Level = |reader, node| reader.users(node);
    /// A rate, or `10/s to 100/s`.
    Rate: Rate => Level = |reader, node| reader.rate(node);
    /// A rate that does not change.
    OneRate: Rate => f64 = |reader, node| reader.one_rate(node);
    /// A path into JSON.
    JsonPath: JsonPath => tidemark_wire::json::Path = |reader, node| reader.json_path(node);
    /// A regular expression.
    Regex: Regex => regex::bytes::Regex = |reader, node| reader.regex(node);
    /// A status, or a range of them.
    Status: Status => (u16, u16) = |reader, node| reader.status(node);
    /// A text with holes.
    Template: Template => &'n Node = |_, node| Some(node);
    /// A bound; what it is about is known later.
    Objective: Objective => &'n Node = |_, node| Some(node);
    /// A value: an expression keeps its type.
    Value: Value => &'n Node = |_, node| Some(node);
    /// The name of a variable, which is set here.
    Variable: Variable => &'n Node = |_, node| Some(node);
}

/// A whole number, at least this.
pub(crate) enum Whole<const LEAST: u64> {}

impl<'n, const LEAST: u64> Kind<'n> for Whole<LEAST> {
    const SHAPE: Shape = Shape::Scalar(Scalar::Whole(LEAST));
    type Value = u64;

    fn read(node: &'n Node, reader: &Reader<'_>) -> Option<u64> {
        reader.whole(node, LEAST)
    }
}

impl<const LEAST: u64> At<'_, Whole<LEAST>> {
    /// The number where it is at most this, else this; what is too large is told.
    pub(crate) fn at_most(&self, most: usize, sink: &Sink<'_>) -> Option<usize> {
        let count = self.value?;
        if count > most as u64 {
            self.error(sink, format!("{count} is too large; at most {most}"));
        }
        Some(usize::try_from(count).unwrap_or(most).min(most))
    }
}

/// A list with at least so many items.
pub(crate) struct List<K, const LEAST: usize = 1>(PhantomData<K>);

impl<'n, K: Kind<'n>, const LEAST: usize> Kind<'n> for List<K, LEAST> {
    const SHAPE: Shape = Shape::List(&K::SHAPE, LEAST);
    type Value = Vec<K::Value>;

    fn read(node: &'n Node, reader: &Reader<'_>) -> Option<Self::Value> {
        Some(node.items().iter().filter_map(|item| K::read(item, reader)).collect())
    }
}

/// One of two kinds, told apart by being a plain value, a list or a mapping.
pub(crate) struct Either<A, B>(PhantomData<(A, B)>);

/// What is read from one of two kinds.
pub(crate) enum Or<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

impl<'n, A: Kind<'n>, B: Kind<'n>> Kind<'n> for Either<A, B> {
    const SHAPE: Shape = Shape::Either(&[A::SHAPE, B::SHAPE]);
    type Value = Or<A::Value, B::Value>;

    fn read(node: &'n Node, reader: &Reader<'_>) -> Option<Self::Value> {
        match A::SHAPE.accepts(node) {
            true => A::read(node, reader).map(Or::First),
            false => B::read(node, reader).map(Or::Second),
        }
    }
}

/// Declares kinds of which only the place is read.
macro_rules! nodes {
    ($( $(#[$about:meta])* $vis:vis $name:ident = $shape:expr; )*) => {$(
        $(#[$about])*
        $vis enum $name {}

        impl<'n> $crate::grammar::record::Kind<'n> for $name {
            const SHAPE: $crate::grammar::Shape = $shape;
            type Value = &'n $crate::yaml::Node;

            fn read(node: &'n $crate::yaml::Node, _: &$crate::reader::Reader<'_>) -> Option<Self::Value> {
                Some(node)
            }
        }
    )*};
}

/// Declares words: an enumeration by `named!` that is also a kind.
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident { $($variants:tt)+ }
    ) => {
        tidemark_record::named! {
            $(#[$about])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            $vis enum $name { $($variants)+ }
        }

        impl<'n> $crate::grammar::record::Kind<'n> for $name {
            const SHAPE: $crate::grammar::Shape =
                $crate::grammar::Shape::Scalar($crate::grammar::Scalar::Word(&$name::NAMES));
            type Value = $name;

            fn read(node: &'n $crate::yaml::Node, reader: &$crate::reader::Reader<'_>) -> Option<$name> {
                $name::from_name(reader.word(node, &$name::NAMES)?)
            }
        }
    };
}

nodes! {
    /// Anything that JSON can express.
    pub(crate) Tree = Shape::Tree;
}

pub(crate) use {nodes, words};
