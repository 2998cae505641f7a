//! A search for a limit as JSON, and the schema of that.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tidemark_limit::{Found, NotCounted, Purpose, Search, Searches, Trial};

use super::{at_least, is_among, missed, says};
use crate::cost::NamedBill;
use crate::json::schema_of;

/// What is printed: one search, or several.
#[derive(Debug, Serialize, JsonSchema)]
struct Printed<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// What was found; absent where there are `limits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Limit<'a>>,
    /// What was found for each value of a setting; absent where there is one `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<Limit<'a>>>,
    /// Why it did not come to its end; null if it did.
    stopped: Option<&'a str>,
    /// Where the trials are.
    run_dir: String,
    /// With `--prices`: what the highest load that held costs, of each search; absent where there is none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    bills: &'a [NamedBill],
}

/// What a search found. Rates are of requests; null what is not known.
#[derive(Debug, Serialize, JsonSchema)]
struct Limit<'a> {
    #[serde(flatten)]
    found: Found,
    /// The result in one sentence.
    says: String,
    /// The trials, in the order in which they were carried out.
    trials: Vec<ShownTrial<'a>>,
    /// What else to know.
    notes: &'a [String],
    /// What is set for it, where there are several: `cores=2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<&'a str>,
    /// Whether it holds as much as it must; absent where nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<AtLeast>,
}

/// Whether the system holds as much as it must.
#[derive(Debug, Serialize, JsonSchema)]
struct AtLeast {
    /// Requests each second that it must hold.
    per_s: f64,
    /// Whether it does; null where that is not sure.
    holds: Option<bool>,
    /// The same for a person.
    says: String,
}

/// One trial: a run by itself.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownTrial<'a> {
    /// Sessions that arrived each second, or users.
    level: f64,
    /// What it was for.
    purpose: Purpose,
    /// Requests that became due each second.
    offered_per_s: f64,
    /// Good answers each second.
    achieved_per_s: f64,
    /// Median of the response time, microseconds; null where it was not reached.
    p50_us: Option<u64>,
    /// Its 99th percentile.
    p99_us: Option<u64>,
    /// Whether every objective was met; null where it is not counted, or had too few requests to say.
    holds: Option<bool>,
    /// The objectives that it missed.
    missed: Vec<Missed<'a>>,
    /// What else broke it: the system ended by itself, all requests of a label failed.
    failure: Option<&'a str>,
    /// Why it says nothing of the system; null where it does.
    not_counted: Option<&'a NotCounted>,
    /// How long was measured, seconds.
    measured_s: f64,
    /// How long it took altogether, seconds.
    took_s: f64,
    /// Its run, within `run_dir`.
    run: &'a str,
}

/// An objective that a trial missed.
#[derive(Debug, Serialize, JsonSchema)]
struct Missed<'a> {
    /// As it is written: `p99 < 50ms`.
    objective: &'a str,
    /// What was measured, for a person.
    measured: &'a str,
}

/// The searches as one JSON object with a line end: `limit`, or `limits` where there are several, each with its `setting`.
pub fn json(searches: &Searches, dir: &Path, bills: &[NamedBill]) -> String {
    let mut all: Vec<Limit<'_>> = searches.searches.iter().map(limit).collect();
    let is_one = matches!(&searches.searches[..], [one] if one.setting.is_none());
    let (limit, limits) = if is_one { (all.pop(), None) } else { (None, Some(all)) };
    let printed = Printed {
        scenario: &searches.name,
        limit,
        limits,
        stopped: searches.stopped.as_deref(),
        run_dir: dir.display().to_string(),
        bills,
    };
    // numbers and texts with text keys: nothing that JSON cannot say
    serde_json::to_string_pretty(&printed).expect("a limit is plain JSON") + "\n"
}

/// The schema of what [`json()`] makes: `docs/limit.schema.json`.
pub fn schema() -> Value {
    schema_of::<Printed<'static>>("What tidemark limit prints with --json")
}

fn limit(search: &Search) -> Limit<'_> {
    let found = search.found();
    let decided = search.decided();
    let wanted = |per_s| AtLeast { per_s, holds: found.holds_at_least(per_s), says: at_least(&found, per_s) };
    Limit {
        says: says(&found),
        trials: search.trials.iter().map(|of| trial(search, of, is_among(&decided, of))).collect(),
        notes: &search.notes,
        setting: search.setting.as_deref(),
        at_least: search.at_least_per_s.map(wanted),
        found,
    }
}

fn trial<'a>(search: &'a Search, trial: &'a Trial, is_decided: bool) -> ShownTrial<'a> {
    let missed = missed(search, trial);
    ShownTrial {
        level: trial.ask.level,
        purpose: trial.ask.purpose,
        offered_per_s: trial.figures.offered_per_s,
        achieved_per_s: trial.figures.achieved_per_s,
        p50_us: trial.figures.p50_us,
        p99_us: trial.figures.p99_us,
        holds: is_decided.then(|| trial.holds()),
        missed: missed
            .map(|(goal, seen)| Missed { objective: &goal.text, measured: &seen.measured })
            .collect(),
        failure: trial.failure.as_deref(),
        not_counted: trial.not_counted.as_ref(),
        measured_s: trial.measured_s,
        took_s: trial.took_s,
        run: &trial.dir,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::bill;
    use crate::json::tests::assert_fits;
    use crate::limit::tests::searches;
    use crate::test_run;
    use serde_json::json;
    use tidemark_scenario::prices::{EXAMPLE, Prices};

    fn printed(searches: &Searches) -> Value {
        serde_json::from_str(&json(searches, Path::new("x"), &[])).unwrap()
    }

    #[test]
    fn json_has_the_limit_its_trials_and_its_curve() {
        let value: Value = serde_json::from_str(&json(&searches(None), Path::new("runs/x"), &[])).unwrap();
        let limit = &value["limit"];
        assert_eq!(
            (limit["low_per_s"].as_f64(), limit["high_per_s"].as_f64()),
            (Some(40_000.0), Some(45_000.0))
        );
        assert_eq!(limit["first_to_break"], "mean < 50ms");
        assert_eq!(
            (limit["trials"].as_array().unwrap().len(), limit["curve"].as_array().unwrap().len()),
            (3, 3)
        );
        assert_eq!((&limit["trials"][2]["holds"], &value["run_dir"]), (&json!(false), &json!("runs/x")));
        let missed = json!([{ "objective": "mean < 50ms", "measured": "71ms</td>" }]);
        assert_eq!((&limit["trials"][2]["missed"], &limit["anomalies"]), (&missed, &json!([])));
        assert_eq!(
            (&limit["trials"][2]["not_counted"], &limit["trials"][2]["failure"]),
            (&Value::Null, &Value::Null)
        );
        // what is not decided is not missed
        let mut undecided = searches(None);
        undecided.searches[0].trials[2].seen[0].undecided = true;
        let value = printed(&undecided);
        let limit = &value["limit"];
        assert_eq!(limit["trials"][2]["missed"], json!([]));
        // and neither holds nor breaks
        assert_eq!((&limit["trials"][2]["holds"], &limit["curve"][2]["holds"]), (&Value::Null, &Value::Null));
        assert_eq!(limit["trials"][1]["holds"], true);
        undecided.searches[0].trials[1].not_counted = Some(NotCounted::Driver("x".into()));
        let value = printed(&undecided);
        assert_eq!(value["limit"]["trials"][1]["holds"], Value::Null);
        // of what nobody watches no CPU is known
        let mut unseen = searches(None);
        unseen.searches[0].trials.iter_mut().for_each(|trial| trial.figures.processes.clear());
        let value = printed(&unseen);
        let limit = &value["limit"];
        assert_eq!(
            (&limit["curve"][0]["cpu_cores"], &limit["cause"]),
            (&Value::Null, &json!({ "kind": "unknown" }))
        );
        let shown = crate::markdown::render(&crate::blocks::limit(&unseen, Path::new("x"), &[]));
        assert!(shown.contains("| failed | holds |") && !shown.contains("0.00"), "{shown}");
        let family = printed(&searches(Some("cores=2")));
        assert_eq!(family["limits"][0]["setting"], "cores=2");
    }

    #[test]
    fn what_is_printed_is_what_the_schema_says() {
        let schema = schema();
        let mut searches = searches(None);
        assert_fits(&printed(&searches), &schema);
        let search = &mut searches.searches[0];
        search.at_least_per_s = Some(50_000.0);
        search.trials[0].ask.purpose = Purpose::Refine { round: 1, place: 0 };
        search.trials[0].not_counted = Some(NotCounted::Machine("cargo".into()));
        search.trials[2].failure = Some("the system ended by itself".into());
        search.setting = Some("cores=2".into());
        let mut begun = search.clone();
        (begun.trials, begun.ended, begun.setting) = (Vec::new(), None, Some("cores=4".into()));
        searches.searches.push(begun);
        searches.stopped = Some("stopped by the user".into());
        let value = printed(&searches);
        assert_eq!(value["limits"][0]["anomalies"][0]["kind"], "disturbed");
        assert_fits(&value, &schema);
        let (_dir, run) = test_run::airline();
        let bill = bill([&run.manifest], &Prices::parse("p.yaml", EXAMPLE).unwrap(), None).unwrap();
        let bills = [NamedBill { name: "x at 800/s".into(), runs: Vec::new(), bill }];
        let priced: Value = serde_json::from_str(&json(&searches, Path::new("x"), &bills)).unwrap();
        assert_eq!(priced["bills"][0]["bill"]["currency"], "USD");
        assert_fits(&priced, &schema);
    }
}
