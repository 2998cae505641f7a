//! Thresholds: bounds of figures, as k6 writes them.

use serde_json::Value;

use crate::metrics::{Kind, WantedTags};

/// A figure of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// How many, or their sum.
    Count,
    /// Their share, or how many each second.
    Rate,
    /// The last.
    Value,
    /// The mean.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// In hundredths of a percent.
    Percentile(u16),
}

impl Aggregate {
    /// By k6's word.
    pub fn of(word: &str) -> Option<Aggregate> {
        Some(match word {
            "count" => Aggregate::Count,
            "rate" => Aggregate::Rate,
            "value" => Aggregate::Value,
            "avg" => Aggregate::Avg,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            "med" => Aggregate::Percentile(5_000),
            _ => {
                let percent: f64 = word.strip_prefix("p(")?.strip_suffix(')')?.trim().parse().ok()?;
                (0.0..=100.0)
                    .contains(&percent)
                    .then(|| Aggregate::Percentile((percent * 100.0).round() as u16))?
            }
        })
    }

    fn fits(self, kind: Kind) -> bool {
        match kind {
            Kind::Counter => matches!(self, Aggregate::Count | Aggregate::Rate),
            Kind::Gauge => self == Aggregate::Value,
            Kind::Rate => self == Aggregate::Rate,
            Kind::Trend => !matches!(self, Aggregate::Value | Aggregate::Rate | Aggregate::Count),
        }
    }
}

/// How a figure lies to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
}

/// A bound of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threshold {
    /// The metric, with its tags, as the script names it.
    pub of: String,
    /// As the script writes it.
    pub written: String,
    pub aggregate: Aggregate,
    sign: Sign,
    bound: f64,
    /// Whether the run ends once it is crossed, and how long it is not looked at before, seconds.
    pub aborts_after_s: Option<f64>,
}

impl Threshold {
    /// Whether a figure is within it.
    pub fn holds(&self, figure: f64) -> bool {
        let bound = self.bound;
        match self.sign {
            Sign::Less => figure < bound,
            Sign::AtMost => figure <= bound,
            Sign::Greater => figure > bound,
            Sign::AtLeast => figure >= bound,
            Sign::Equal => (figure - bound).abs() < f64::EPSILON * bound.abs().max(1.0),
            Sign::Unequal => (figure - bound).abs() >= f64::EPSILON * bound.abs().max(1.0),
        }
    }

    fn parse(of: &str, written: &str) -> Result<Threshold, String> {
        let wrong = || format!("thresholds: {of}: invalid threshold '{written}'; write it like 'p(95)<200'");
        let at = written.find(['<', '>', '=', '!']).ok_or_else(wrong)?;
        let (word, rest) = written.split_at(at);
        let signs = [
            ("<=", Sign::AtMost),
            (">=", Sign::AtLeast),
            ("===", Sign::Equal),
            ("==", Sign::Equal),
            ("!=", Sign::Unequal),
            ("<", Sign::Less),
            (">", Sign::Greater),
        ];
        let found = signs.iter().find_map(|(sign, kind)| Some((*kind, rest.strip_prefix(sign)?)));
        let (sign, bound) = found.ok_or_else(wrong)?;
        let bound = bound.trim().parse().map_err(|_| wrong())?;
        let aggregate = Aggregate::of(word.trim()).ok_or_else(wrong)?;
        Ok(Threshold {
            of: of.to_owned(),
            written: written.to_owned(),
            aggregate,
            sign,
            bound,
            aborts_after_s: None,
        })
    }

    /// Refuses a figure that the metric has not.
    pub fn check(&self, kind: Kind) -> Result<(), String> {
        if self.aggregate.fits(kind) {
            return Ok(());
        }
        Err(format!("thresholds: {}: '{}' is no figure of a {}", self.of, self.written, kind.name()))
    }
}

/// All that stand in a script's options.
///
/// # Errors
/// The first that is none.
pub(crate) fn read(options: &Value) -> Result<Vec<Threshold>, String> {
    let mut all = Vec::new();
    let Some(told) = options.get("thresholds").and_then(Value::as_object) else { return Ok(all) };
    for (of, list) in told {
        let single = [list.clone()];
        let list = list.as_array().map_or(&single[..], Vec::as_slice);
        for one in list {
            let text = one.as_str().or_else(|| one.get("threshold")?.as_str());
            let Some(text) = text else {
                return Err(format!(
                    "thresholds: {of}: a threshold is a text such as 'p(95)<200', or an object with `threshold`"
                ));
            };
            let mut threshold = Threshold::parse(of, text.trim())?;
            if one.get("abortOnFail").and_then(Value::as_bool) == Some(true) {
                let delay = one.get("delayAbortEval").map(crate::options::milliseconds).transpose();
                let delay = delay.map_err(|why| format!("thresholds: {of}: delayAbortEval: {why}"))?;
                threshold.aborts_after_s = Some(delay.unwrap_or(0.0) / 1_000.0);
            }
            all.push(threshold);
        }
    }
    Ok(all)
}

/// A metric's name, and the tags in braces behind it.
///
/// # Errors
/// If the braces are not closed, or what stands in them is no tag.
pub(crate) fn split(of: &str) -> Result<(&str, WantedTags), String> {
    let Some((name, rest)) = of.split_once('{') else { return Ok((of.trim(), Vec::new())) };
    let wrong = || format!("thresholds: '{of}': tags read like {{name:value}}");
    let inner = rest.trim_end().strip_suffix('}').ok_or_else(wrong)?;
    let tag = |text: &str| {
        // the path of a group has colons of its own
        let (name, value) = text.split_once(':')?;
        let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        Some((unquoted(name), unquoted(value)))
    };
    let tags = inner.split(',').filter(|text| !text.trim().is_empty()).map(tag).collect::<Option<Vec<_>>>();
    Ok((name.trim(), tags.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thresholds_are_read() {
        let options = json!({"thresholds": {
            "http_req_duration{group:::login}": ["p(99.9) <= 200", {"threshold": "avg<10.5", "abortOnFail": true, "delayAbortEval": "10s"}],
            "http_req_failed": "rate<0.01",
        }});
        let all = read(&options).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(
            (all[0].aggregate, all[0].sign, all[0].bound),
            (Aggregate::Percentile(9_990), Sign::AtMost, 200.0)
        );
        assert_eq!(all[1].aborts_after_s, Some(10.0));
        assert!(all[2].holds(0.0) && !all[2].holds(0.01));
        let (name, tags) = split(&all[0].of).unwrap();
        assert_eq!(
            (name, &tags[..]),
            ("http_req_duration", &[("group".to_owned(), "::login".to_owned())][..])
        );
        for wrong in [
            json!({"thresholds": {"x": ["p95<1"]}}),
            json!({"thresholds": {"x": ["avg~1"]}}),
            json!({"thresholds": {"x": [1]}}),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
        assert!(all[2].check(Kind::Trend).is_err() && all[2].check(Kind::Rate).is_ok());
    }
}
