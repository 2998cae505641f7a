//! Objectives on one phase of the load: `high: p99 < 100ms`, `high: Login p99 < 100ms`.

use super::{About, Metric, Names, Within, of_the_whole_run};
use crate::diagnostic::did_you_mean;
use crate::plan::Phase;
use crate::yaml::{Content, Node, Position};

/// Keys of an objective that is a mapping.
const KEYS: [&str; 2] = ["objective", "abort early"];

/// Makes `high: p99 < 100ms`, which YAML reads as a mapping, the text that it is meant to be.
pub(crate) fn mend(root: &mut Node) {
    let Content::Map(entries) = &mut root.content else { return };
    let objectives = entries.iter_mut().find(|(key, _)| key.text() == Some("objectives"));
    let Some((_, Node { content: Content::List(items), .. })) = objectives else { return };
    for item in items {
        let [(key, value)] = item.entries() else { continue };
        let (Some(phase), Some(bound)) = (key.text(), value.text()) else { continue };
        if KEYS.contains(&phase) || !did_you_mean(phase, KEYS).is_empty() {
            continue;
        }
        let position = Position { end: value.position.end, ..key.position };
        let content = Content::Scalar { text: format!("{phase}: {bound}"), plain: true };
        *item = Node { position, content };
    }
}

/// What an objective is about whose name begins with a phase and a colon; none where it does not. `whole` is what the name
/// means without phases.
pub(super) fn about(
    name: &str,
    metric: Metric,
    whole: Option<About>,
    names: &Names<'_>,
) -> Option<Result<About, String>> {
    let named = colons(name).find_map(|(phase, rest)| {
        let index = names.phases.iter().position(|known| known.name == phase)?;
        Some((u16::try_from(index).ok()?, &names.phases[index], rest))
    });
    let Some((index, phase, rest)) = named else {
        let (first, _) = colons(name).next().filter(|_| whole.is_none())?;
        return Some(Err(unknown(first, names.phases)));
    };
    if whole.is_some() {
        return Some(Err(format!(
            "\"{name}\" is a label, and begins with the name of a phase; rename one of them"
        )));
    }
    if !phase.measured {
        let name = &phase.name;
        return Some(Err(format!("the phase \"{name}\" is not measured; give it \"measured: true\"")));
    }
    // where kinds have loads of their own no phase has a level
    if phase.peak() == 0.0 && names.phases.iter().any(|phase| phase.peak() > 0.0) {
        let name = &phase.name;
        return Some(Err(format!(
            "nothing is due in the phase \"{name}\", as its level is 0; leave the objective out, or raise the level"
        )));
    }
    if metric.is_of_the_ledger() || (!rest.is_empty() && is_of_all(metric)) {
        return Some(Err(super::not_of_a_part(metric)));
    }
    Some(within(rest, names).map(|within| About::Phase(index, within)))
}

fn is_of_all(metric: Metric) -> bool {
    matches!(metric, Metric::Dropped | Metric::AchievedShare)
}

fn within(rest: &str, names: &Names<'_>) -> Result<Within, String> {
    if rest.is_empty() {
        return Ok(Within::All);
    }
    if names.metrics.iter().any(|metric| metric.name == rest) {
        return Err(format!(
            "\"{rest}\" is a metric of your own, which is of the whole run and not of a phase"
        ));
    }
    of_the_whole_run(rest, About::All, names).map(|about| match about {
        About::Label(label) => Within::Label(label),
        About::Group(group) => Within::Group(group),
        About::All | About::Metric(_) | About::Phase(..) => Within::All,
    })
}

/// What stands before each colon that ends a word, and behind it.
fn colons(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends_word = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let cut = |(at, _)| (name[..at].trim_end(), &name[at + 1..]);
    name.match_indices(':')
        .map(cut)
        .filter(move |(_, rest)| ends_word(rest))
        .map(|(of, rest)| (of, rest.trim()))
}

fn unknown(phase: &str, phases: &[Phase]) -> String {
    let names = || phases.iter().filter(|phase| phase.measured).map(|phase| phase.name.as_str());
    let mut hint = did_you_mean(phase, names());
    if hint.is_empty() {
        hint = format!("; it is one of {}", names().collect::<Vec<_>>().join(", "));
    }
    format!("the load has no phase \"{phase}\"{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const LOAD: &str = "load: {phases: [{name: warm-up, for: 1s, rate: 1/s}, {name: low, for: 1s, rate: 1/s}, \
                        {for: 1s, rate: 1/s to 5/s}, {name: high, for: 2s, rate: 5/s}, {name: high, for: 2s, rate: 6/s}, \
                        {name: 'off', for: 1s, rate: 0/s}]}";

    fn checked(objectives: &str) -> Result<Plan, String> {
        let steps = "[{GET: /, label: Home}, {GET: /, label: 'low: Home'}, {group: Buy, steps: [GET: /b]}, \
                     {measure: {items: {histogram: 1}}}]";
        let text = format!("sessions: {{a: {{steps: {steps}}}}}\n{LOAD}\nobjectives:\n{objectives}\n");
        crate::load_text("t.yaml", &text, std::path::Path::new("."), &[]).map_err(|told| told.to_string())
    }

    #[test]
    fn a_phase_stands_before_a_colon_as_text_or_as_yaml_reads_it() {
        let of = |objective: &str| checked(objective).unwrap().objectives[0].about;
        assert_eq!(of("  - high: p99 < 5ms"), About::Phase(3, Within::All));
        assert_eq!(of("  - 'high: p99 < 5ms'"), About::Phase(3, Within::All));
        assert_eq!(of("  - {objective: 'high: p99 < 5ms'}"), About::Phase(3, Within::All));
        assert_eq!(of("  - high: Home p99 < 5ms"), About::Phase(3, Within::Label(0)));
        assert_eq!(of("  - high: group Buy p99 < 5ms"), About::Phase(3, Within::Group(0)));
        assert_eq!(of("  - high:p99<5ms"), About::Phase(3, Within::All));
        assert_eq!(of("  - high (2):errors=0"), About::Phase(4, Within::All));
        assert_eq!(of("  - high (2): achieved > 99% of offered"), About::Phase(4, Within::All));
        assert_eq!(of("  - ramp to 5/s: dropped = 0"), About::Phase(2, Within::All));
        assert_eq!(of("  - Home p99 < 5ms"), About::Label(0));
        assert_eq!(checked("  - high: p99 < 5ms").unwrap().objectives[0].text, "high: p99 < 5ms");
        let mut plan = checked("  - p99 < 1s").unwrap();
        plan.add_objective("low: errors = 0").unwrap();
        assert_eq!(plan.objectives[1].about, About::Phase(1, Within::All));
    }

    #[test]
    fn kinds_with_loads_of_their_own_have_a_phase_that_is_judged() {
        let text = "sessions: {a: {steps: [GET: /]}}\nload: {sessions: {a: {users: 1, hold: 1s}}}\n\
                    objectives: ['hold: p99 < 5ms']\n";
        let plan = crate::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        assert_eq!(plan.objectives[0].about, About::Phase(0, Within::All));
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        let told = |objective: &str| checked(objective).unwrap_err();
        for (objective, wanted) in [
            ("  - hihg: p99 < 5ms", "the load has no phase \"hihg\"; did you mean high?"),
            ("  - noon: p99 < 5ms", "no phase \"noon\"; it is one of low, ramp to 5/s, high, high (2), off"),
            ("  - warm-up: p99 < 5ms", "\"warm-up\" is not measured; give it \"measured: true\""),
            ("  - off: p99 < 5ms", "nothing is due in the phase \"off\", as its level is 0"),
            ("  - off: dropped = 0", "nothing is due in the phase \"off\""),
            ("  - high: Hom p99 < 5ms", "no request has the label \"Hom\"; did you mean Home?"),
            ("  - high p99 < 5ms", "no request has the label \"high\"; of a phase it is \"high: …\""),
            ("  - low: Home p99 < 5ms", "is a label, and begins with the name of a phase"),
            ("  - high: lost = 0", "\"lost\" is for the whole run only, not for one label, group or phase"),
            ("  - high: Home dropped = 0", "\"dropped\" is for the whole run only"),
            ("  - high: items errors = 0", "\"items\" is a metric of your own"),
            (
                "  - {objective: 'high: p99 < 5ms', abort early: true}",
                "an objective on a phase is decided at the end",
            ),
            ("  - objectiv: p99 < 5ms", "unknown key \"objectiv\"; did you mean objective?"),
        ] {
            let found = told(objective);
            assert!(found.contains(wanted), "{objective}: {found}");
        }
    }
}
