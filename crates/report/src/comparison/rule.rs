//! What fails a comparison: `p99>+5%`, `Checkout rate<-3%`.

use schemars::JsonSchema;
use serde::Serialize;

use super::claims::{Claim, Claims};
use super::figure::Figure;
use super::words::{change, lacking, range};

/// A bound on a ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// As it was written.
    pub text: String,
    /// The label; all requests if there is none.
    pub label: Option<String>,
    /// The figure.
    pub figure: Figure,
    /// Whether it fails above the bound, or below.
    above: bool,
    /// The bound, a ratio.
    bound: f64,
}

/// What became of a rule for one side.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Judged {
    /// The rule as it was written.
    pub rule: String,
    /// The side: `B`.
    pub side: String,
    /// Whether it failed: the whole interval lies beyond the bound, or the figure is not reached more often for sure. Null
    /// where the bound lies within it, where there is none, where runs in which it is not reached say the contrary, and of one
    /// run of each side: what differs from run to run is in no interval then.
    pub failed: Option<bool>,
    /// Whether the figure was measured on both sides.
    pub measured: bool,
    /// Whether that was enough to know how sure it is.
    #[serde(skip)]
    pub(crate) known: bool,
    /// The same for a person.
    pub says: String,
}

impl Rule {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, and how it is written.
    pub fn parse(text: &str) -> Result<Rule, String> {
        let shape = "write it like 'p99>+5%', 'rate<-3%' or 'Checkout p99>+10%'";
        let at = text.find(['<', '>']).ok_or_else(|| format!("\"{text}\" has no < or >; {shape}"))?;
        let (left, right) = (text[..at].trim(), text[at + 1..].trim());
        let (label, word) = match left.rsplit_once(char::is_whitespace) {
            Some((label, word)) => (Some(label.trim().to_owned()), word),
            None => (None, left),
        };
        let figure = Figure::from_word(word).ok_or_else(|| {
            let words = Figure::OF_ALL.map(Figure::word).join(", ");
            format!("\"{word}\" is no figure that is compared; there are {words}; {shape}")
        })?;
        if label.is_some() && !Figure::OF_LABEL.contains(&figure) {
            return Err(format!("\"{word}\" is of the whole run; it cannot be asked for one label"));
        }
        let number = right.strip_suffix('%').map(str::trim_end);
        let number = number.and_then(|number| number.parse::<f64>().ok()).filter(|number| number.is_finite());
        let share = number.ok_or_else(|| format!("\"{right}\" is no percentage; {shape}"))? / 100.0;
        if share <= -1.0 {
            return Err(format!("\"{text}\": nothing falls by 100% or more"));
        }
        let above = text[at..].starts_with('>');
        Ok(Rule { text: text.trim().to_owned(), label, figure, above, bound: 1.0 + share })
    }

    /// Holds each side against it.
    pub(crate) fn judge(&self, claims: &Claims) -> Vec<Judged> {
        let others = claims.sides.iter().skip(1);
        others.map(|side| self.of_side(&side.side, claims)).collect()
    }

    fn of_side(&self, side: &str, claims: &Claims) -> Judged {
        let of = |claim: &&Claim| claim.label == self.label && claim.figure == self.figure;
        let claim = claims.of_side(side).find(of);
        let is_of_two_runs = claims.is_of_two_runs(side);
        let failed = claim.filter(|_| !is_of_two_runs).and_then(|claim| self.failed(claim));
        let bound = change(self.bound);
        let says = match (claim, failed) {
            (None, _) => format!("{side}: it was not measured in every run"),
            (Some(claim), _) if is_of_two_runs => {
                let what = if claim.ratio.is_some() { range(claim) } else { lacking(claim) };
                format!(
                    "{side}: {what} within these two runs, not sure of others: give several runs of each side"
                )
            }
            (Some(claim), Some(_)) if claim.lacks.more_often.is_some() => {
                format!("{side}: {}", lacking(claim))
            }
            (Some(claim), None) if claim.ratio.is_none() => format!("{side}: {}, not sure", lacking(claim)),
            (Some(claim), None) if claim.lacks.runs != [0, 0] => {
                format!("{side}: {}, {}, not sure", range(claim), lacking(claim))
            }
            (Some(claim), Some(true)) => format!("{side}: {}, beyond {bound}", range(claim)),
            (Some(claim), Some(false)) => format!("{side}: {}, within {bound}", range(claim)),
            (Some(claim), None) if !claim.is_measured() => {
                format!("{side}: {}, and nothing says how sure that is", range(claim))
            }
            (Some(claim), None) => format!("{side}: {}, not sure", range(claim)),
        };
        let known = claim.is_some_and(Claim::is_measured);
        Judged {
            rule: self.text.clone(),
            side: side.to_owned(),
            failed,
            measured: claim.is_some(),
            known,
            says,
        }
    }

    fn failed(&self, claim: &Claim) -> Option<bool> {
        let fails_on_worse = self.above == claim.figure.more_is_worse();
        if let Some(is_worse) = claim.lacks.more_often {
            // beyond any bound
            return Some(is_worse == fails_on_worse);
        }
        let (low, high) = claim.low.zip(claim.high)?;
        let failed = match self.above {
            true if low > self.bound => true,
            false if high < self.bound => true,
            true if high <= self.bound => false,
            false if low >= self.bound => false,
            _ => return None,
        };
        // a run in which it is not reached is worse than any that is in the interval
        let [here, there] = claim.lacks.alone;
        let against = if failed == fails_on_worse { there } else { here };
        (against == 0).then_some(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rule = Rule::parse("p99>+5%").unwrap();
        assert_eq!((rule.label, rule.figure, rule.above), (None, Figure::P99, true));
        assert!((rule.bound - 1.05).abs() < 1e-12);
        let rule = Rule::parse(" Check out  rate < -3 % ").unwrap();
        assert_eq!(
            (rule.label.as_deref(), rule.figure, rule.above),
            (Some("Check out"), Figure::Rate, false)
        );
        assert!((rule.bound - 0.97).abs() < 1e-12);
        assert_eq!(Rule::parse("memory>10%").unwrap().bound, 1.1);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("p99", "no < or >"),
            ("p95>5%", "\"p95\" is no figure"),
            ("p99>5ms", "\"5ms\" is no percentage"),
            ("p99>", "\"\" is no percentage"),
            ("rate<-100%", "nothing falls by 100%"),
            ("Login cpu>5%", "is of the whole run"),
            ("p99>nan%", "is no percentage"),
        ] {
            let error = Rule::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
