//! What must hold of an answer, as it is gathered.

use tidemark_scenario::source::{Map, Value};

/// The parts of `check`.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) status: Option<Value>,
    pub(crate) header: Map,
    pub(crate) body: Option<Value>,
    pub(crate) json: Map,
    /// Conditions, as expressions.
    pub(crate) that: Vec<String>,
}

impl Checks {
    /// As a step has them; nothing where there are none.
    pub(crate) fn into_map(self) -> Map {
        let mut check = Map::new();
        if let Some(status) = self.status {
            check.insert("status", status);
        }
        if !self.header.is_empty() {
            check.insert("header", self.header);
        }
        if let Some(body) = self.body {
            check.insert("body", body);
        }
        if !self.json.is_empty() {
            check.insert("json", self.json);
        }
        let that: Vec<Value> = self.that.into_iter().map(|text| format!("${{{text}}}").into()).collect();
        match <[Value; 1]>::try_from(that) {
            Ok([one]) => check.insert("that", one),
            Err(all) if !all.is_empty() => check.insert("that", all),
            Err(_) => {}
        }
        check
    }
}

/// Numbers as ranges: `200`, `201-204`, `3xx`.
pub(crate) fn ranges(numbers: &[u32]) -> Value {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let mut values: Vec<Value> = ranges
        .into_iter()
        .map(|(first, last)| match (first, last) {
            _ if first == last => Value::from(first),
            _ if first % 100 == 0 && last == first + 99 => format!("{}xx", first / 100).into(),
            _ => format!("{first}-{last}").into(),
        })
        .collect();
    if values.len() == 1 { values.remove(0) } else { Value::List(values) }
}
