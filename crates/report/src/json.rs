//! The figures for machines.

use std::collections::BTreeMap;

use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::summary::Verdict;
use tidemark_record::{Run, Summary};

/// What is printed of a run.
#[derive(serde::Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    objectives: &'a [ObjectiveResult],
    notes: &'a [String],
}

/// The [summary](Summary) as one JSON object with what became of each objective and what is to be said beside, indented, with
/// a line end.
pub fn summary(run: &Run) -> String {
    let manifest = &run.manifest;
    let printed =
        Printed { summary: &manifest.summary, objectives: &manifest.objectives, notes: &manifest.notes };
    // Maps with text keys, numbers and texts: nothing that JSON cannot say.
    serde_json::to_string_pretty(&printed).expect("a summary is plain JSON") + "\n"
}

/// The object where there is no run: the verdict alone.
pub fn without_a_run(verdict: &Verdict) -> String {
    let object = BTreeMap::from([("verdict", verdict)]);
    serde_json::to_string_pretty(&object).expect("a verdict is plain JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use crate::test_run;

    #[test]
    fn the_published_names_are_there() {
        let (_dir, run) = test_run::airline();
        let value: serde_json::Value = serde_json::from_str(&super::summary(&run)).unwrap();
        let names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let published = [
            "verdict",
            "offered_per_s",
            "achieved_per_s",
            "measured_s",
            "requests",
            "errors",
            "statuses",
            "dropped",
            "failed",
            "failures",
            "response_time_us",
            "service_time_us",
            "response_time_less_lag_us",
            "good",
            "parts",
            "steps",
            "processes",
            "driver",
            "ledger",
            "run_dir",
            "steady_state",
            "objectives",
            "notes",
        ];
        assert_eq!(names, published);
        for name in ["min", "mean", "p50", "p90", "p99", "p999", "max"] {
            assert!(value["good"]["response_time_us"][name].is_number(), "{name}");
            assert!(value["steps"][0]["good"]["service_time_us"][name].is_number(), "{name}");
            assert!(value["driver"]["lag_us"][name].is_number(), "{name}");
        }
        assert!(value["response_time_us"]["p50"].is_number());
        assert!(value["response_time_us"]["max"].is_null(), "not reached: some had no good answer");
        assert_eq!(value["failures"][0]["kind"], "timeout");
        assert_eq!(value["verdict"]["status"], "fail");
        assert_eq!(value["errors"]["status"], 3);
        for name in ["name", "cpu_s", "cpu_share", "rss_bytes_max"] {
            assert!(!value["processes"][0][name].is_null(), "{name}");
        }
    }
}
