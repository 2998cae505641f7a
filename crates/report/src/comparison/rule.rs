//! What fails a comparison: `p99>+5%`, `Checkout rate<-3%`.

use schemars::JsonSchema;
use serde::Serialize;

use super::claims::{Claim, Claims};
use super::errors::Errors;
use super::figure::Figure;
use super::words::{change, lacking, range};

/// The word for requests without a good answer, as in objectives.
const ERRORS: &str = "errors";

/// A bound on a ratio, or on the difference of two shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// As it was written.
    pub text: String,
    /// The label; all requests if there is none.
    pub label: Option<String>,
    /// The figure; the share of requests without a good answer (`errors`) if there is none.
    pub figure: Option<Figure>,
    /// Whether it fails above the bound, or below.
    above: bool,
    /// The bound, a ratio; of `errors` 1 and the difference of the shares.
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
        let figure = Figure::from_word(word);
        if figure.is_none() && word != ERRORS {
            let words = Figure::OF_ALL.map(Figure::word).join(", ");
            return Err(format!(
                "\"{word}\" is no figure that is compared; there are {words}, {ERRORS}; {shape}"
            ));
        }
        if label.is_some() && figure.is_none_or(|figure| !Figure::OF_LABEL.contains(&figure)) {
            return Err(format!("\"{word}\" is for the whole run only, not for one label"));
        }
        let number = right.strip_suffix('%').map(str::trim_end);
        let number = number.and_then(|number| number.parse::<f64>().ok()).filter(|number| number.is_finite());
        let share = number.ok_or_else(|| format!("\"{right}\" is no percentage; {shape}"))? / 100.0;
        if share <= -1.0 {
            return Err(format!("\"{text}\": nothing falls by 100% or more"));
        }
        let above = text[at..].starts_with('>');
        let more_is_worse = figure.is_none_or(Figure::more_is_worse);
        // what fails on the better side of a bound that is on the worse one fails where nothing changed
        let is_neutral = figure.is_some_and(Figure::is_neutral);
        if !is_neutral && above != more_is_worse && (if above { share < 0.0 } else { share > 0.0 }) {
            let meant = if above { '<' } else { '>' };
            return Err(format!(
                "\"{text}\" fails whatever did not get worse; did you mean '{left}{meant}{right}'?"
            ));
        }
        Ok(Rule { text: text.trim().to_owned(), label, figure, above, bound: 1.0 + share })
    }

    /// Holds each side against it.
    pub(crate) fn judge(&self, claims: &Claims) -> Vec<Judged> {
        let others = claims.sides.iter().skip(1);
        others.map(|side| self.of_side(&side.side, claims)).collect()
    }

    fn of_side(&self, side: &str, claims: &Claims) -> Judged {
        let Some(figure) = self.figure else { return self.of_errors(side, claims) };
        let of = |claim: &&Claim| claim.label == self.label && claim.figure == figure;
        let claim = claims.of_side(side).find(of);
        let is_of_two_runs = claims.is_of_two_runs(side);
        let failed = claim.filter(|_| !is_of_two_runs).and_then(|claim| self.failed(claim));
        let bound = change(self.bound);
        let says = match (claim, failed) {
            (None, _) => format!("{side}: it was not measured in every run"),
            (Some(claim), _) if is_of_two_runs => {
                let what = if claim.ratio.is_some() { range(claim) } else { lacking(claim) };
                format!(
                    "{side}: {what} between these two runs; one run of each side cannot decide: give several"
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

    /// Of one run of each side nothing is sure, as for figures; that is no lack of runs that count.
    fn of_errors(&self, side: &str, claims: &Claims) -> Judged {
        let errors = claims.errors_of(side);
        let bounds = errors.and_then(|of| of.low.zip(of.high));
        let failed = bounds.and_then(|(low, high)| self.beyond(low, high, self.bound - 1.0));
        let says = match (errors, errors.and_then(Errors::range)) {
            (None, _) => format!("{side}: it was not measured in every run"),
            (Some(of), None) => format!("{}, and nothing says how sure that is", of.says()),
            (Some(of), Some(range)) => {
                let sure = match failed {
                    Some(true) => "beyond the bound",
                    Some(false) => "within the bound",
                    None => "not sure",
                };
                format!("{}: {range} percentage points, {sure}", of.says())
            }
        };
        Judged {
            rule: self.text.clone(),
            side: side.to_owned(),
            failed,
            measured: errors.is_some(),
            known: bounds.is_some() || (errors.is_some() && claims.is_of_two_runs(side)),
            says,
        }
    }

    /// Whether all of an interval lies beyond a bound (true), or none of it (false).
    fn beyond(&self, low: f64, high: f64, bound: f64) -> Option<bool> {
        match self.above {
            true if low > bound => Some(true),
            false if high < bound => Some(true),
            true if high <= bound => Some(false),
            false if low >= bound => Some(false),
            _ => None,
        }
    }

    fn failed(&self, claim: &Claim) -> Option<bool> {
        let fails_on_worse = self.above == claim.figure.more_is_worse();
        if let Some(is_worse) = claim.lacks.more_often {
            // beyond any bound
            return Some(is_worse == fails_on_worse);
        }
        let (low, high) = claim.low.zip(claim.high)?;
        let failed = self.beyond(low, high, self.bound)?;
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
        assert_eq!((rule.label, rule.figure, rule.above), (None, Some(Figure::P99), true));
        assert!((rule.bound - 1.05).abs() < 1e-12);
        let rule = Rule::parse(" Check out  rate < -3 % ").unwrap();
        assert_eq!(
            (rule.label.as_deref(), rule.figure, rule.above),
            (Some("Check out"), Some(Figure::Rate), false)
        );
        assert!((rule.bound - 0.97).abs() < 1e-12);
        assert_eq!(Rule::parse("memory>10%").unwrap().bound, 1.1);
        let rule = Rule::parse("errors>+0.1%").unwrap();
        assert_eq!((rule.figure, rule.above), (None, true));
        assert!((rule.bound - 1.001).abs() < 1e-12);
        // a gate on what must get better, and one on what must not
        for text in [
            "bytes<-5%",
            "bytes>+5%",
            "Buy bytes<-5%",
            "p99>-5%",
            "rate<+3%",
            "p99<-5%",
            "rate>3%",
            "p99>0%",
            "rate<0%",
        ] {
            assert!(Rule::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("p99", "no < or >"),
            ("p95>5%", "\"p95\" is no figure"),
            ("p99>5ms", "\"5ms\" is no percentage"),
            ("p99>", "\"\" is no percentage"),
            ("rate<-100%", "nothing falls by 100%"),
            ("Login cpu>5%", "is for the whole run only"),
            ("Login errors>5%", "is for the whole run only"),
            ("rate>-3%", "fails whatever did not get worse; did you mean 'rate<-3%'?"),
            ("Buy p99 < +5%", "did you mean 'Buy p99>+5%'?"),
            ("errors<1%", "did you mean 'errors>1%'?"),
            ("p99>nan%", "is no percentage"),
        ] {
            let error = Rule::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
