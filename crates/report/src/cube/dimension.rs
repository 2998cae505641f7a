//! What a cube is cut up by, and what its cells must be.

use std::collections::BTreeSet;
use std::fmt;

use super::CubeError;

/// Where an operation was counted: by the system itself.
pub(crate) const SERVICE: &str = "service";
/// By the driver, as a request.
pub(crate) const DRIVER: &str = "driver";

/// What cells are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Which run, or which file.
    Run,
    /// `service`, where the system itself says so; `driver`, as the driver saw it.
    Source,
    /// What it was about: `Outbound`.
    Entity,
    /// What was done: `store`. With its entity, also a label of the scenario: `Outbound post`.
    Operation,
    /// What came of it: the status of an answer, or the driver's word for it.
    Status,
    /// Seconds since the measured window began.
    Second,
    /// Minutes since then.
    Minute,
    /// Hours since then.
    Hour,
    /// The minute by the clock, UTC: `2026-01-31 14:05`.
    Date,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Dimension; 9] = [
        Dimension::Run,
        Dimension::Source,
        Dimension::Entity,
        Dimension::Operation,
        Dimension::Status,
        Dimension::Second,
        Dimension::Minute,
        Dimension::Hour,
        Dimension::Date,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Run => "run",
            Dimension::Source => "source",
            Dimension::Entity => "entity",
            Dimension::Operation => "operation",
            Dimension::Status => "status",
            Dimension::Second => "second",
            Dimension::Minute => "minute",
            Dimension::Hour => "hour",
            Dimension::Date => "date",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Dimension> {
        Dimension::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

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
    /// Of a time.
    Number(i64),
    /// Of anything else.
    Text(String),
    /// All values together, in a sum.
    All,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.write_str(text),
            Value::All => f.write_str("all"),
        }
    }
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// From the longest sign on.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("!=", Comparison::IsNot),
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
    ("=", Comparison::Is),
];

/// What a cell must be: `entity=Outbound|Inbound`, `minute>=5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of which dimension it says so.
    pub dimension: Dimension,
    comparison: Comparison,
    values: Vec<Value>,
}

impl Filter {
    pub(super) fn is(dimension: Dimension, value: &str) -> Filter {
        Filter { dimension, comparison: Comparison::Is, values: vec![Value::Text(value.into())] }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none; how one is written.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let how = "a filter is DIMENSION=VALUE, like entity=Outbound, operation=store|load, status!=200 or minute>=5";
        let at = text.find(['=', '!', '<', '>']).ok_or_else(|| format!("`{text}` is no filter: {how}"))?;
        let (name, rest) = text.split_at(at);
        let Some(dimension) = Dimension::named(name.trim()) else {
            let names = Dimension::ALL.map(Dimension::name).join(", ");
            return Err(format!("there is no dimension `{}`; there are {names}", name.trim()));
        };
        let found = COMPARISONS.iter().find_map(|(sign, kind)| Some((*kind, rest.strip_prefix(sign)?)));
        let (comparison, values) = found.ok_or_else(|| format!("`{text}` is no filter: {how}"))?;
        let is_order = !matches!(comparison, Comparison::Is | Comparison::IsNot);
        if is_order && !dimension.is_time() {
            return Err(format!("`{text}`: {} has no order; use = or !=", dimension.name()));
        }
        let values: Vec<Value> = values
            .split('|')
            .map(|value| value.trim())
            .map(|value| match (dimension.seconds(), value.parse()) {
                (_, _) if value.is_empty() => Err(format!("`{text}` has no value: {how}")),
                (Some(_), Ok(number)) => Ok(Value::Number(number)),
                (Some(_), Err(_)) => Err(format!("`{text}`: {} is a whole number", dimension.name())),
                (None, _) => Ok(Value::Text(value.to_owned())),
            })
            .collect::<Result<_, _>>()?;
        if is_order && values.len() > 1 {
            return Err(format!("`{text}` has several values: only = and != take them"));
        }
        Ok(Filter { dimension, comparison, values })
    }

    /// Whether it lets a value through.
    pub(super) fn lets(&self, value: &Value) -> bool {
        let against = |value: &Value, of: &Value| match (value, of) {
            // what a person writes small is meant
            (Value::Text(value), Value::Text(of)) if self.dimension != Dimension::Date => {
                value.eq_ignore_ascii_case(of)
            }
            (value, of) => value == of,
        };
        let first = &self.values[0];
        match self.comparison {
            Comparison::Is => self.values.iter().any(|of| against(value, of)),
            Comparison::IsNot => !self.values.iter().any(|of| against(value, of)),
            Comparison::Below => value < first,
            Comparison::AtMost => value <= first,
            Comparison::Above => value > first,
            Comparison::AtLeast => value >= first,
        }
    }
}

/// Whether every filter on this dimension lets a value through.
pub(super) fn lets(filters: &[Filter], dimension: Dimension, value: &Value) -> bool {
    filters.iter().filter(|filter| filter.dimension == dimension).all(|filter| filter.lets(value))
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

    /// Whether each name that is asked for is there.
    pub(super) fn check(&self, filters: &[Filter]) -> Result<(), CubeError> {
        for filter in filters.iter().filter(|filter| !filter.dimension.is_time()) {
            let there: Vec<_> = self.texts.iter().filter(|(of, _)| *of == filter.dimension).collect();
            for value in &filter.values {
                if there.iter().any(|(_, text)| text.eq_ignore_ascii_case(&value.to_string())) {
                    continue;
                }
                let names: Vec<&str> = there.iter().map(|(_, text)| text.as_str()).collect();
                let there = if names.is_empty() { "none".into() } else { names.join(", ") };
                let name = filter.dimension.name();
                return Err(CubeError::Query(format!("no operation has {name}={value}; there are: {there}")));
            }
        }
        Ok(())
    }
}
