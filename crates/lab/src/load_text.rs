//! The load in words: who comes, sessions or users, and how many.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{AtLimit, Curve, LoadModel, Pause, Phase, Spacing, Stream};
use tidemark_scenario::units::{Rate, Time};

/// The load for a person: `closed, 100 users`, `open, Poisson arrivals, up to 5000 sessions/s`.
pub fn load(plan: &Plan) -> String {
    let mut text = of_each(plan, "; ", |stream| {
        let peak = stream.peak();
        match stream.model {
            LoadModel::Closed => format!("closed, {}", users(peak)),
            LoadModel::Thinking(pause) => {
                let time = match pause {
                    Pause::Fixed(time) => Time(time).to_string(),
                    Pause::Between(low, high) => format!("{} to {}", Time(low), Time(high)),
                    Pause::Exponential(mean) => format!("{} on average", Time(mean)),
                };
                format!("closed, {}, {time} between sessions", users(peak))
            }
            LoadModel::Paced(pace) => format!("closed, {}, a session each {}", users(peak), Time(pace)),
            LoadModel::Open(spacing) => {
                let arrivals = match spacing {
                    Spacing::Constant => "evenly spaced",
                    Spacing::Poisson => "Poisson",
                };
                format!("open, {arrivals} arrivals, up to {}", sessions(peak))
            }
        }
    });
    if let Some(limit) = plan.limits.in_flight {
        let others = match limit.at_limit {
            AtLimit::Wait => "others wait",
            AtLimit::Drop => "others are dropped",
        };
        text.push_str(&format!("; at most {} sessions in flight, {others}", limit.most));
    }
    if plan.limits.pipeline > 1 {
        text.push_str(&format!("; connections carry up to {} requests at once", plan.limits.pipeline));
    }
    text
}

/// What each phase offers, for a person: `100 users`, `5000 sessions/s`, `0/s to 5000 sessions/s in 5 steps`.
pub fn levels(plan: &Plan) -> Vec<String> {
    let load = &plan.load;
    if load.kinds.is_empty() {
        return load.phases.iter().map(|phase| level(load.model, phase)).collect();
    }
    // The phases are those of the common timetable; what each kind does in them is in its own phases.
    let peaks = of_each(plan, ", ", |stream| match stream.model {
        LoadModel::Open(_) => format!("up to {}", sessions(stream.peak())),
        _ => format!("up to {}", users(stream.peak())),
    });
    vec![peaks; load.phases.len()]
}

fn of_each(plan: &Plan, between: &str, text: impl Fn(&Stream<'_>) -> String) -> String {
    let streams = plan.load.streams();
    let named = streams.iter().map(|stream| match stream.kind.and_then(|kind| plan.sessions.get(kind)) {
        Some(kind) => format!("{} {}", kind.name, text(stream)),
        None => text(stream),
    });
    named.collect::<Vec<_>>().join(between)
}

fn level(model: LoadModel, phase: &Phase) -> String {
    let ends = match (model, phase.from == phase.to) {
        (LoadModel::Open(_), true) => sessions(phase.from),
        (LoadModel::Open(_), false) => format!("{} to {}", rate(phase.from), sessions(phase.to)),
        (_, true) => users(phase.from),
        (_, false) => format!("{} to {}", users(phase.from), users(phase.to)),
    };
    let of = |level: f64| if model.is_closed() { users(level) } else { sessions(level) };
    match &phase.curve {
        Curve::Line => ends,
        Curve::Steps(steps) => format!("{ends} in {steps} steps"),
        Curve::Sine { amplitude, period } => {
            let (low, high) = (rate(phase.from - amplitude), of(phase.from + amplitude));
            format!("{low} to {high}, a sine of {}", Time(*period))
        }
        Curve::Spikes { level, every, length } => {
            format!("{ends}, {} for {} every {}", of(*level), Time(*length), Time(*every))
        }
        Curve::Series(series) => format!("{} rows, up to {}", series.points.len(), of(phase.peak())),
    }
}

fn users(count: f64) -> String {
    if count == 1.0 { "1 user".into() } else { format!("{count:.0} users") }
}

fn rate(per_s: f64) -> String {
    Rate((per_s * 100.0).round() / 100.0).to_string()
}

/// Sessions, not requests: each makes as many of those as its steps say.
fn sessions(per_s: f64) -> String {
    let rate = rate(per_s);
    match rate.strip_suffix("/s") {
        Some(count) => format!("{count} sessions/s"),
        None => rate,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn told(load_text: &str) -> (String, Vec<String>) {
        let text = format!(
            "sessions:\n  buyer: {{steps: [{{GET: /}}]}}\n  visitor: {{steps: [{{GET: /}}]}}\nload: {load_text}"
        );
        let plan = tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap();
        (load(&plan), levels(&plan))
    }

    #[test]
    fn loads_are_for_persons() {
        let cases = [
            ("{users: 100, ramp: 1s, hold: 1s}", "closed, 100 users", "0 users to 100 users|100 users"),
            ("{users: 1, think: 2s, hold: 1s}", "closed, 1 user, 2s between sessions", "1 user"),
            (
                "{users: 5, think: {between: [1s, 3s]}, hold: 1s}",
                "closed, 5 users, 1s to 3s between sessions",
                "5 users",
            ),
            ("{users: 5, pace: 10s, hold: 1s}", "closed, 5 users, a session each 10s", "5 users"),
            (
                "{rate: 5000/s, ramp: 1s, hold: 1s}",
                "open, evenly spaced arrivals, up to 5000 sessions/s",
                "0/s to 5000 sessions/s|5000 sessions/s",
            ),
            (
                "{rate: 100/s to 1k/s in 5 steps, spacing: poisson, hold: 1s}",
                "open, Poisson arrivals, up to 1000 sessions/s",
                "100/s to 1000 sessions/s in 5 steps",
            ),
            (
                "{rate: {sine: {mean: 50/s, amplitude: 30/s, period: 1m}}, hold: 1s}",
                "open, evenly spaced arrivals, up to 80 sessions/s",
                "20/s to 80 sessions/s, a sine of 1m",
            ),
            (
                "{rate: 50/s, spike: {rate: 20k/s, every: 30s, for: 2s}, hold: 1s}",
                "open, evenly spaced arrivals, up to 20k sessions/s",
                "50 sessions/s, 20k sessions/s for 2s every 30s",
            ),
            (
                "{sessions: {buyer: {users: 5, hold: 2s}, visitor: {rate: 9/s, warm-up: 1s, hold: 2s}}}",
                "buyer closed, 5 users; visitor open, evenly spaced arrivals, up to 9 sessions/s",
                "buyer up to 5 users, visitor up to 9 sessions/s|\
                 buyer up to 5 users, visitor up to 9 sessions/s|\
                 buyer up to 5 users, visitor up to 9 sessions/s",
            ),
            (
                "{rate: 9/s, hold: 1s}\nlimits: {in flight: 7, at limit: drop}",
                "open, evenly spaced arrivals, up to 9 sessions/s; at most 7 sessions in flight, others are dropped",
                "9 sessions/s",
            ),
        ];
        for (text, expected_load, expected_levels) in cases {
            let (load, levels) = told(text);
            assert_eq!(
                (load.as_str(), levels.join("|").as_str()),
                (expected_load, expected_levels),
                "{text}"
            );
        }
    }
}
