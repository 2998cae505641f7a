//! `tidemark run script.js`: a script of k6 becomes a scenario, which runs it; `import` writes that scenario.

use std::path::Path;

use tidemark_k6::{Given, K6, Source};
use tidemark_scenario::secrets::{Origin, is_secret};
use tidemark_scenario::{Experiment, Secrets};

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::scenario;

/// How files of k6 end.
const EXTENSIONS: [&str; 3] = ["js", "mjs", "ts"];

/// Whether a file is a script of k6, by its name.
pub fn is_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// What `__ENV` of a script has: the environment, and what is given besides.
pub fn env(given: &[(String, String)]) -> Vec<(String, String)> {
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(readable).chain(given.iter().cloned()).collect()
}

/// Makes the arguments of a scenario (`NAME=value`). It is told the names of the variables that the script gets as secrets.
type ArgsOf<'a> = &'a dyn Fn(&[String]) -> Vec<String>;

/// The scenario that runs a script, how many thresholds the script has, and the names of the variables that it gets as secrets.
/// The scenario calls the script `named`. `given` is what the command line says of the load.
pub fn scenario_of(
    (file, named): (&Path, &str),
    (env, args): (&[(String, String)], ArgsOf<'_>),
    given: Given,
) -> Result<(String, usize, Vec<String>), Failure> {
    let name = &file.display().to_string();
    let text = std::fs::read(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let path = std::path::absolute(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let source = Source { name, path: &path, text: &text, env, given, bounds: Default::default() };
    let mut got = named_secrets(&String::from_utf8_lossy(&text), env);
    let failed = |error: tidemark_k6::ScriptError, got: &[String]| {
        Failure::usage(secrets_of(env, got).masked(&error.to_string()))
    };
    let k6 = K6::read(&source).map_err(|error| failed(error, &got))?;
    let sent = k6.rehearse(&source).map_err(|error| failed(error, &got))?;
    got.extend_from_slice(&sent.secrets);
    let scenario = k6.scenario(named, &args(&got), &sent).map_err(|error| failed(error, &got))?;
    Ok((scenario.to_yaml(), k6.threshold_count(), got))
}

/// Environment variables that a script names to get as secrets, whether its dry run comes to that or not.
fn named_secrets(text: &str, env: &[(String, String)]) -> Vec<String> {
    if !text.contains("k6/secrets") {
        return Vec::new();
    }
    let is_named =
        |name: &str| ['\'', '"', '`'].iter().any(|mark| text.contains(&format!("get({mark}{name}{mark}")));
    env.iter().map(|(name, _)| name).filter(|name| is_named(name)).cloned().collect()
}

/// The values of these variables, so that they can be masked.
pub fn secrets_of(env: &[(String, String)], names: &[String]) -> Secrets {
    let mut secrets = Secrets::default();
    for (name, value) in env.iter().filter(|(name, _)| names.contains(name)) {
        secrets.add(name, Origin::Environment, value);
    }
    secrets
}

/// What runs a script as its options ask.
pub fn loaded(arguments: &RunArguments) -> Result<Experiment, Failure> {
    if !arguments.settings.is_empty() {
        return Err(Failure::usage(
            "--set is for scenarios; give a script -e NAME=VALUE, which it finds as __ENV.NAME".to_owned(),
        ));
    }
    let given = Given {
        vus: arguments.users.map(u64::from),
        duration: arguments.duration,
        // a rate is no number of iterations
        iterations: None,
    };
    if let Some(out) = arguments.out.as_deref().and_then(Path::to_str).filter(|out| is_k6_output(out)) {
        return Err(Failure::usage(format!(
            "--out {out}: --out is the directory of the run here; --json=FILE writes its summary, --csv=FILE the figures of each \
             second, --trace=FILE single requests; --otlp and --metrics show them while it runs"
        )));
    }
    let (mut experiment, _) = experiment(&arguments.scenario, &arguments.env, given)?;
    if let (Experiment::One(plan), true) = (&mut experiment, arguments.rate.is_some()) {
        plan.limits.sessions = None;
        plan.sessions
            .iter_mut()
            .filter_map(|kind| kind.script.as_mut())
            .for_each(|script| script.iterations = None);
    }
    Ok(experiment)
}

/// Whether a value of `--out` is what k6 takes there: `json=FILE`, `cloud`.
fn is_k6_output(out: &str) -> bool {
    const OUTPUTS: [&str; 7] = [
        "json",
        "csv",
        "influxdb",
        "opentelemetry",
        "experimental-opentelemetry",
        "experimental-prometheus-rw",
        "statsd",
    ];
    out == "cloud"
        || out.split_once('=').is_some_and(|(kind, _)| OUTPUTS.contains(&kind) || kind.starts_with("xk6-"))
}

/// The same of a file, with what it finds in `__ENV` besides; and how many thresholds it has.
pub fn experiment(
    name: &str,
    given: &[(String, String)],
    load: Given,
) -> Result<(Experiment, usize), Failure> {
    let file = Path::new(name);
    let env = env(given);
    let beside = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (text, thresholds, secrets) = scenario_of((file, &beside), (&env, &|_| Vec::new()), load)?;
    let mut experiment = scenario::of_text(name, &text, &[])?;
    if let Experiment::One(plan) = &mut experiment {
        // not in the scenario, which is written down: they may be secrets
        let given: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let scripts = plan.sessions.iter_mut().filter_map(|kind| kind.script.as_mut());
        scripts.for_each(|script| script.args.clone_from(&given));
        let is_known = |(name, value): &&(String, String)| is_secret(name, value) || secrets.contains(name);
        for (name, value) in env.iter().filter(is_known) {
            plan.secrets.add(name, Origin::Environment, value);
        }
        // it has the labels that the dry run found
        plan.source = plan.secrets.masked(&plan.source);
    }
    Ok((experiment, thresholds))
}
