//! The run as JUnit XML, which every CI system reads: a test case for the verdict and one for each objective.
//!
//! It is valid against the schema that Ant's reports are held to (an order of elements, all attributes there), and
//! therefore also against the laxer ones. What the cases say:
//!
//! | | verdict | objectives |
//! | --- | --- | --- |
//! | `pass` | passed | passed |
//! | `fail` | failure | each passed, or failure with what was measured |
//! | `invalid`, as an objective is not decided | error | those not decided are errors, the others as above |
//! | `invalid` otherwise | error | those met are skipped: what was measured proves nothing; those missed are failures |

use std::fmt::Write;

use tidemark_record::manifest::{Manifest, ObjectiveResult, Undecided};
use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{Run, supports};

use crate::text::{Style, steers, summary};

/// What the timestamp is where the run does not say when it was.
const NO_TIME: &str = "1970-01-01T00:00:00";
/// Characters of a timestamp without fractions and time zone, which the schema does not know.
const TIME_LENGTH: usize = NO_TIME.len();
/// Columns of the summary that stands in `system-out`.
const COLUMNS: usize = 100;

/// The whole file.
pub fn xml(run: &Run) -> String {
    let manifest = &run.manifest;
    let cases: Vec<Case> = std::iter::once(verdict(&manifest.summary.verdict))
        .chain(manifest.objectives.iter().map(|objective| case(objective, manifest)))
        .collect();
    let plain = Style { width: COLUMNS, colour: false, ascii: false };
    let said = summary(run, plain);
    let mut listed = String::new();
    properties(&mut listed, manifest);
    let time_s = manifest.summary.measured_s;
    document(&manifest.scenario, timestamp(&manifest.started_at), time_s, &listed, &cases, &said)
}

/// The file where there is no run: the verdict alone.
pub fn without_a_run(scenario: &str, of: &Verdict) -> String {
    document(scenario, NO_TIME, 0.0, "    <properties/>\n", &[verdict(of)], &of.in_words("\n"))
}

fn document(
    scenario: &str,
    timestamp: &str,
    time_s: f64,
    properties: &str,
    cases: &[Case],
    said: &str,
) -> String {
    let count = |wanted: &str| cases.iter().filter(|case| case.result_name() == wanted).count();
    let suite = format!("tidemark.{scenario}");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    out += &format!(
        "  <testsuite id=\"0\" package=\"tidemark\" name=\"{}\" timestamp=\"{}\" hostname=\"localhost\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{time_s:.3}\">\n",
        attribute(&suite),
        timestamp,
        cases.len(),
        count("failure"),
        count("error"),
        count("skipped"),
    );
    out += properties;
    for case in cases {
        case.write(&mut out, &suite, time_s);
    }
    let said = text(said.trim_end());
    let _ = writeln!(out, "    <system-out>{said}</system-out>\n    <system-err/>");
    out + "  </testsuite>\n</testsuites>\n"
}

/// A test case.
struct Case {
    name: String,
    result: CaseResult,
}

enum CaseResult {
    Passed,
    Failure(&'static str, String),
    Error(&'static str, String),
    Skipped(String),
}

impl Case {
    fn result_name(&self) -> &'static str {
        match self.result {
            CaseResult::Passed => "",
            CaseResult::Failure(..) => "failure",
            CaseResult::Error(..) => "error",
            CaseResult::Skipped(_) => "skipped",
        }
    }

    fn write(&self, out: &mut String, suite: &str, time_s: f64) {
        let (class, name) = (attribute(suite), attribute(&self.name));
        let head = format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time_s:.3}\"");
        let element = self.result_name();
        *out += &match &self.result {
            CaseResult::Passed => format!("{head}/>\n"),
            CaseResult::Failure(kind, message) | CaseResult::Error(kind, message) => {
                let first = message.lines().next().unwrap_or_default();
                format!(
                    "{head}>\n      <{element} type=\"{kind}\" message=\"{}\">{}</{element}>\n    </testcase>\n",
                    attribute(first),
                    text(message)
                )
            }
            CaseResult::Skipped(message) => {
                format!("{head}>\n      <{element} message=\"{}\"/>\n    </testcase>\n", attribute(message))
            }
        };
    }
}

fn verdict(verdict: &Verdict) -> Case {
    let reasons = verdict.in_words("\n");
    let result = match verdict.status {
        Status::Pass => CaseResult::Passed,
        Status::Fail => CaseResult::Failure("fail", reasons),
        Status::Invalid => CaseResult::Error("invalid", reasons),
    };
    Case { name: "verdict".into(), result }
}

fn case(objective: &ObjectiveResult, manifest: &Manifest) -> Case {
    // where an objective is not decided, that is the reason; else the measurement itself is none
    let undecided = manifest.objectives.iter().any(|of| of.undecided);
    let invalid = manifest.summary.verdict.status == Status::Invalid && !undecided;
    let measured = format!("measured: {}", objective.measured);
    let result = match (objective.met, objective.undecided, invalid || manifest.interrupted) {
        (true, _, true) if manifest.interrupted => CaseResult::Skipped(format!(
            "the run was stopped by the user, so that {} proves nothing",
            objective.measured
        )),
        (true, _, false) => CaseResult::Passed,
        (true, _, true) => CaseResult::Skipped(format!(
            "the measurement is invalid, so that {} proves nothing",
            objective.measured
        )),
        (false, true, _) => {
            let by = objective.undecided_by.unwrap_or(Undecided::DriverBound);
            CaseResult::Error(by.name(), measured)
        }
        (false, false, _) => CaseResult::Failure("objective", measured),
    };
    Case { name: objective.objective.clone(), result }
}

fn properties(out: &mut String, manifest: &Manifest) {
    let summary = &manifest.summary;
    let machine = &manifest.machine;
    let due = summary.due();
    let time = |us: Option<u64>, share: f64| match us {
        Some(us) => us.to_string(),
        None if !supports(share, due) => "too few".to_owned(),
        None => "not reached".to_owned(),
    };
    let properties = [
        ("scenario", manifest.scenario.clone()),
        ("run", summary.run_dir.clone()),
        ("load", manifest.load.clone()),
        ("system", manifest.system.name.clone()),
        ("durability", manifest.system.durability.clone().unwrap_or_default()),
        ("git_revision", manifest.git_revision.clone().unwrap_or_default()),
        ("machine", format!("{}, {} cores, {}", machine.cpu_model, machine.cores, machine.kernel)),
        ("offered_per_s", format!("{:.3}", summary.offered_per_s)),
        ("achieved_per_s", format!("{:.3}", summary.achieved_per_s)),
        ("achieved_share", summary.achieved_share.map(|share| format!("{share:.4}")).unwrap_or_default()),
        ("requests", summary.requests.to_string()),
        ("errors", summary.errors.values().sum::<u64>().to_string()),
        ("dropped", summary.dropped.to_string()),
        ("failed", summary.failed.to_string()),
        ("response_time_us_p50", time(summary.response_time_us.p50, 0.5)),
        ("response_time_us_p90", time(summary.response_time_us.p90, 0.9)),
        ("response_time_us_p99", time(summary.response_time_us.p99, 0.99)),
        ("response_time_us_p999", time(summary.response_time_us.p999, 0.999)),
        ("response_time_us_max", time(summary.response_time_us.max, 0.0)),
    ];
    *out += "    <properties>\n";
    for (name, value) in properties.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", attribute(value));
    }
    *out += "    </properties>\n";
}

/// The schema wants neither fractions nor a time zone; ours is UTC.
fn timestamp(started_at: &str) -> &str {
    let shape = |text: &str| {
        text.bytes()
            .zip(NO_TIME.bytes())
            .all(|(is, wanted)| if wanted.is_ascii_digit() { is.is_ascii_digit() } else { is == wanted })
    };
    started_at.get(..TIME_LENGTH).filter(|text| shape(text)).unwrap_or(NO_TIME)
}

/// For between elements.
fn text(value: &str) -> String {
    escape(value, false)
}

/// For between double quotes; white space stays what it is.
fn attribute(value: &str) -> String {
    escape(value, true)
}

/// What came from files and servers becomes text: markup is escaped, and characters that XML cannot hold at all are
/// replaced.
fn escape(value: &str, quoted: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            // needed where it ends `]]>`
            '>' => out += "&gt;",
            '"' if quoted => out += "&quot;",
            '\t' | '\n' | '\r' if quoted => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            // a reader turns a bare one into a line feed
            '\r' => out += "&#13;",
            '\t' | '\n' => out.push(c),
            c if steers(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
