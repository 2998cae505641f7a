//! What a cube is cut up by, and what its cells must be.

use std::collections::BTreeSet;
use std::fmt;

use super::{CubeError, clock};

/// Where an operation was counted: by the system itself.
pub(crate) const SYSTEM: &str = "system";
/// By the driver, as a request.
pub(crate) const DRIVER: &str = "driver";

tidemark_record::named! {
    /// What cells are told apart by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Dimension {
        /// Which run, or which file.
        Run = "run",
        /// `system`, where the system itself says so; `driver`, as the driver saw it.
        Source = "source",
        /// What it was about: `Outbound`.
        Entity = "entity",
        /// What was done: `store`. With its entity, also a label of the scenario: `Outbound post`.
        Operation = "operation",
        /// What came of it: the status of an answer, or the driver's word for it.
        Status = "status",
        /// Seconds since the measured window began.
        Second = "second",
        /// Minutes since then.
        Minute = "minute",
        /// Hours since then.
        Hour = "hour",
        /// The minute by the clock, UTC: `2026-01-31 14:05`.
        Date = "date",
    }
}

impl Dimension {
    /// Whether it is a number of something since the begin; of how many seconds.
    pub(super) fn seconds(self) -> Option<i64> {
        match self {
            Dimension::Second => Some(1),
            Dimension::Minute => Some(60),
            Dimension::Hour => Some(3600),
            _ => None,
        }
    }

    /// Whether it is about when.
    pub(super) fn is_time(self) -> bool {
        self.seconds().is_some() || self == Dimension::Date
    }
}

/// A cell's value in one dimension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Seconds, minutes or hours since the begin.
    Number(i64),
    /// A minute by the clock: minutes since 1970, UTC.
    Date(i64),
    /// Of anything else.
    Text(String),
    /// All values together, in a sum.
    All,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Date(minute) => f.write_str(&clock::minute(*minute)),
            Value::Text(text) => f.write_str(text),
            Value::All => f.write_str("all"),
        }
    }
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// From the longest sign on.
const OPERATORS: [(&str, Operator); 6] = [
    ("!=", Operator::IsNot),
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Is),
];

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Text(String),
    /// From the first to before the second: a day is many minutes.
    Range(i64, i64),
}

/// What a cell must be: `entity=Outbound|Inbound`, `minute>=5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of which dimension it says so.
    pub dimension: Dimension,
    operator: Operator,
    wanted: Vec<Wanted>,
}

impl Filter {
    pub(super) fn is(dimension: Dimension, value: &str) -> Filter {
        Filter { dimension, operator: Operator::Is, wanted: vec![Wanted::Text(value.into())] }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none; how one is written.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let how = "a filter is DIMENSION=VALUE, like entity=Outbound, operation=store|load, status!=200 or minute>=5";
        let at = text.find(['=', '!', '<', '>']).ok_or_else(|| format!("`{text}` is not a filter: {how}"))?;
        let (name, rest) = text.split_at(at);
        let Some(dimension) = Dimension::from_name(name.trim()) else {
            let names = Dimension::NAMES.join(", ");
            return Err(format!("there is no dimension `{}`; there are {names}", name.trim()));
        };
        let found = OPERATORS.iter().find_map(|(sign, kind)| Some((*kind, rest.strip_prefix(sign)?)));
        let (operator, values) = found.ok_or_else(|| format!("`{text}` is not a filter: {how}"))?;
        let is_order = !matches!(operator, Operator::Is | Operator::IsNot);
        if is_order && !dimension.is_time() {
            return Err(format!("`{text}`: {} has no order; use = or !=", dimension.name()));
        }
        let wanted = |value: &str| match dimension {
            _ if value.is_empty() => Err(format!("`{text}` has no value: {how}")),
            Dimension::Date => clock::range(value)
                .map(|(from, to)| Wanted::Range(from, to))
                .ok_or_else(|| format!("`{text}`: a date is 2026-01-31 or 2026-01-31 14:05")),
            _ if dimension.is_time() => {
                match value.parse::<i64>().ok().and_then(|n| Some((n, n.checked_add(1)?))) {
                    Some((from, to)) => Ok(Wanted::Range(from, to)),
                    None => Err(format!("`{text}`: {} is a whole number", dimension.name())),
                }
            }
            _ => Ok(Wanted::Text(value.to_owned())),
        };
        let wanted: Vec<Wanted> =
            values.split('|').map(|value| wanted(value.trim())).collect::<Result<_, _>>()?;
        if is_order && wanted.len() > 1 {
            return Err(format!("`{text}` has several values: only = and != take them"));
        }
        Ok(Filter { dimension, operator, wanted })
    }

    /// Whether it lets a name through. Large and small letters are the same.
    fn lets_text(&self, text: &str) -> bool {
        let is =
            |wanted: &Wanted| matches!(wanted, Wanted::Text(wanted) if wanted.eq_ignore_ascii_case(text));
        self.wanted.iter().any(is) == (self.operator == Operator::Is)
    }

    /// Whether it lets a time through.
    pub(super) fn lets_time(&self, time: i64) -> bool {
        let of = |wanted: &Wanted| match *wanted {
            Wanted::Range(from, to) => match self.operator {
                Operator::Is | Operator::IsNot => (from..to).contains(&time),
                Operator::Below => time < from,
                Operator::AtMost => time < to,
                Operator::Above => time >= to,
                Operator::AtLeast => time >= from,
            },
            Wanted::Text(_) => false,
        };
        self.wanted.iter().any(of) == (self.operator != Operator::IsNot)
    }
}

/// Whether filters let these names through.
pub(super) fn lets(filters: &[Filter], texts: &[(Dimension, &str)]) -> bool {
    let of = |dimension: Dimension| filters.iter().filter(move |filter| filter.dimension == dimension);
    texts.iter().all(|(dimension, text)| of(*dimension).all(|filter| filter.lets_text(text)))
}

/// What values were met, so that a filter that asks for something else can be told.
#[derive(Debug, Default)]
pub(super) struct Seen {
    texts: BTreeSet<(Dimension, String)>,
}

impl Seen {
    pub(super) fn see(&mut self, dimension: Dimension, text: &str) {
        self.texts.insert((dimension, text.to_owned()));
    }

    /// Whether a system told of anything.
    pub(super) fn has_system(&self) -> bool {
        self.texts.contains(&(Dimension::Source, SYSTEM.to_owned()))
    }

    /// Whether each name that is asked for is there. What is not wanted need not be, nor a status: that nothing failed is an
    /// answer.
    pub(super) fn check(&self, filters: &[Filter]) -> Result<(), CubeError> {
        let may_lack = |dimension: Dimension| dimension.is_time() || dimension == Dimension::Status;
        let asking = |filter: &&Filter| filter.operator == Operator::Is && !may_lack(filter.dimension);
        for filter in filters.iter().filter(asking) {
            let there: Vec<_> = self.texts.iter().filter(|(of, _)| *of == filter.dimension).collect();
            for wanted in &filter.wanted {
                let Wanted::Text(wanted) = wanted else { continue };
                if there.iter().any(|(_, text)| text.eq_ignore_ascii_case(wanted)) {
                    continue;
                }
                let names: Vec<&str> = there.iter().map(|(_, text)| text.as_str()).collect();
                let there = if names.is_empty() { "none".into() } else { names.join(", ") };
                let name = filter.dimension.name();
                return Err(CubeError::Query(format!(
                    "no operation has {name}={wanted}; there are: {there}"
                )));
            }
        }
        Ok(())
    }
}
