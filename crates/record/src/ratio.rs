//! Ratios of a run's own counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sum of some counts, divided by the sum of others: counters of the scenario's own, and labels for their good answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Its name.
    pub name: String,
    /// What is divided: names of counters and labels.
    pub of: Vec<String>,
    /// What it is divided by.
    pub per: Vec<String>,
    /// What came of it; null where it was divided by 0.
    pub value: Option<f64>,
    /// How a person is shown it.
    #[serde(default, rename = "as")]
    pub form: RatioForm,
}

/// How a ratio is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RatioForm {
    /// As a figure.
    #[default]
    Plain,
    /// In per cent.
    Percent,
}

impl Ratio {
    /// The same with its value, of what each name came to.
    pub(crate) fn told(&self, count: impl Fn(&str) -> f64) -> Ratio {
        let [of, per] = [&self.of, &self.per].map(|names| names.iter().map(|name| count(name)).sum::<f64>());
        Ratio { value: (per > 0.0).then(|| of / per), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_sums_and_unknown_where_it_is_divided_by_nothing() {
        let count = |name: &str| match name {
            "a" => 3.0,
            "b" => 1.5,
            "c" => 9.0,
            _ => 0.0,
        };
        let value = |of: &[&str], per: &[&str]| {
            let [of, per] = [of, per].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            Ratio { of, per, value: Some(7.0), ..Ratio::default() }.told(count).value
        };
        assert_eq!(value(&["a", "b"], &["c"]), Some(0.5));
        assert_eq!(value(&["c"], &["a", "b", "none"]), Some(2.0));
        assert_eq!(value(&["none"], &["a"]), Some(0.0));
        assert_eq!((value(&["a"], &["none"]), value(&["none"], &["none"])), (None, None));
    }
}
