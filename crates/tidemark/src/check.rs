//! `tidemark check` and `tidemark schema`: the scenario language without a run.

use tidemark_scenario::units::Time;
use tidemark_scenario::{Comparison, Experiment, Plan, schema};

use crate::args::CheckArguments;
use crate::failure::Failure;
use crate::output::Place;
use crate::{output, scenario, settings};

/// Checks a scenario; every mistake in it is in the failure. Tells what can be set.
pub fn check(arguments: &CheckArguments) -> Result<u8, Failure> {
    #[cfg(feature = "js")]
    if crate::script::is_script(std::path::Path::new(&arguments.file)) {
        let (experiment, thresholds) =
            crate::script::experiment(&arguments.file, &arguments.env, tidemark_k6::Given::default())?;
        if let Experiment::One(plan) = experiment {
            output::print(&format!("{}\n", Place::Stdout.fit(&praise(&plan, thresholds))))?;
        }
        return Ok(tidemark_lab::EXIT_PASS);
    }
    let praise = match scenario::read(&arguments.file, &arguments.settings)? {
        Experiment::One(plan) => {
            tidemark_lab::check_scripts(&plan)?;
            praise(&plan, plan.objectives.len())
        }
        Experiment::Comparison(comparison) => {
            comparison.sides.iter().try_for_each(|side| tidemark_lab::check_scripts(&side.plan))?;
            praise_all(&comparison)
        }
    };
    let unset = settings::unset(&arguments.file, &arguments.settings);
    if !unset.is_empty() {
        output::remark(&scenario::without_value(&arguments.file, &unset));
    }
    let praise = Place::Stdout.fit(&praise);
    output::print(&format!("{praise}\n\n{}\n", settings::of(&arguments.file)))?;
    Ok(tidemark_lab::EXIT_PASS)
}

fn praise_all(comparison: &Comparison) -> String {
    let each = comparison
        .sides
        .iter()
        .map(|side| format!("\n{}: {}", side.name, praise(&side.plan, side.plan.objectives.len())));
    format!("{}: no mistakes; compares{}", comparison.source_name, each.collect::<String>())
}

fn praise(plan: &Plan, objectives: usize) -> String {
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let seconds: f64 = plan.load.phases.iter().map(|phase| phase.duration.as_secs_f64()).sum();
    let entered: Vec<&str> = plan.entered().map(|(label, _)| label).collect();
    let ledger = match entered.as_slice() {
        [] => String::new(),
        labels => format!("; each write of {} is entered in the ledger", labels.join(", ")),
    };
    let faults: Vec<String> =
        plan.faults.iter().map(|fault| format!("{fault} at {}", Time(fault.at))).collect();
    let faults = if faults.is_empty() { String::new() } else { format!("\nfaults: {}", faults.join("; ")) };
    format!(
        "{}: no mistakes; {}, {}, {} over {seconds} s, {}{ledger}{faults}",
        plan.source_name,
        count(plan.sessions.len(), "session kind"),
        count(plan.labels.len(), "label"),
        count(plan.load.phases.len(), "phase"),
        count(objectives, "objective"),
    )
}

/// Prints the JSON Schema of the language.
pub fn schema() -> Result<u8, Failure> {
    output::print(&format!("{:#}\n", schema::json_schema()))?;
    Ok(tidemark_lab::EXIT_PASS)
}
