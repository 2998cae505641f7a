//! `tidemark run script.js`: a script of k6 becomes a scenario, which runs it.

use std::path::Path;

use tidemark_k6::{Given, K6, Source};
use tidemark_scenario::Experiment;

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::scenario;

/// How files of k6 end.
const EXTENSIONS: [&str; 3] = ["js", "mjs", "ts"];

/// Whether a file is a script of k6, by its name.
pub fn is_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// What runs a script as its options ask.
pub fn loaded(arguments: &RunArguments) -> Result<Experiment, Failure> {
    let name = &arguments.scenario;
    let file = Path::new(name);
    if !arguments.settings.is_empty() {
        return Err(Failure::usage(
            "--set is for scenarios; give a script -e NAME=VALUE, which it finds as __ENV.NAME".to_owned(),
        ));
    }
    let text = std::fs::read(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let path = std::path::absolute(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let given: Vec<String> = arguments.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: Vec<(String, String)> = ours.chain(arguments.env.iter().cloned()).collect();
    let source = Source { name, path: &path, text: &text, env: &env, given: Given::default() };
    let failed = |error: tidemark_k6::ScriptError| Failure::usage(error.to_string());
    let k6 = K6::read(&source).map_err(failed)?;
    let sent = k6.rehearse(&source).map_err(failed)?;
    let beside = file.file_name().map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned());
    let made = k6.scenario(&beside, &sent).map_err(failed)?;
    let mut experiment = scenario::of_text(name, &made.to_yaml(), &[])?;
    if let Experiment::One(plan) = &mut experiment {
        // not in the scenario, which is written down: they may be secrets
        plan.sessions
            .iter_mut()
            .filter_map(|kind| kind.script.as_mut())
            .for_each(|script| script.args.clone_from(&given));
    }
    Ok(experiment)
}
