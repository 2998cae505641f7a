//! `tidemark import`: another load tool's plan becomes a scenario; and `tidemark run` of such a plan.
//!
//! What has no counterpart is told on standard error, a line each with its place in the plan.

use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_import::{Imported, LeftOut, PlanOptions, Tool};
use tidemark_scenario::Experiment;
#[cfg(feature = "js")]
use tidemark_scenario::secrets::is_secret;

use crate::args::{RunArguments, key_value};
use crate::failure::Failure;
#[cfg(feature = "js")]
use crate::script;
use crate::{init, output, results, scenario};

/// Parts left out that are told one by one.
const TOLD_MAX: usize = 100;

/// `tidemark import`
#[derive(Debug, Args)]
#[command(after_help = "\
JMeter's thread groups become sessions with their load, samplers requests. Tsung's sessions stay sessions, its phases become a \
load whose users arrive at random. Requests of a Postman collection become the steps of one user, Artillery's scenarios sessions and \
its phases an open load. What cannot be taken over is listed with its line and what it would have done; \
docs/import.md says what becomes of what. Passwords and tokens become settings.

Exit status: 0 the scenario is written, 2 it cannot be made, or --strict and something was left out.

Examples:
  tidemark import plan.jmx -o my.yaml
  tidemark import plan.jmx -J host=127.0.0.1 -J threads=50 -o my.yaml
  tidemark import plan.jmx --strict > my.yaml
  tidemark import tsung.xml -o my.yaml
  tidemark import script.js -e BASE=http://127.0.0.1:8080 -o my.yaml
  tidemark import shop.postman_collection.json -E test.postman_environment.json -o my.yaml
  tidemark import artillery.yml -E staging --strict -o my.yaml
  curl -s http://127.0.0.1/plan.jmx | tidemark import - -o my.yaml
  tidemark run plan.jmx -J host=127.0.0.1 --once -v")]
pub struct ImportArguments {
    /// A plan of JMeter (.jmx) or Tsung (.xml), a collection of Postman (.json), a script of Artillery (.yml) or k6 (.js, .ts); - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Whose file it is [default: its content tells]
    #[arg(long, value_name = "TOOL", value_parser = tool)]
    pub from: Option<Tool>,
    /// Write the scenario to this new file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write nothing where anything was left out
    #[arg(long)]
    pub strict: bool,
    /// A property that a JMeter plan asks for (repeatable)
    #[arg(short = 'J', value_name = "NAME=VALUE", value_parser = key_value)]
    pub properties: Vec<(String, String)>,
    /// Of a script of k6: what it finds as __ENV.NAME (repeatable)
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = key_value)]
    pub env: Vec<(String, String)>,
    /// Of Postman the file of the environment, of Artillery the name of one
    #[arg(short = 'E', long, value_name = "FILE|NAME")]
    pub environment: Option<String>,
}

fn tool(word: &str) -> Result<Tool, String> {
    Tool::of_word(word)
        .ok_or_else(|| format!("it is one of {}", Tool::WORDS.map(|(word, _)| word).join(", ")))
}

/// What messages call a plan that comes by standard input; its files lie in the current folder.
const STANDARD_INPUT: &str = "standard input";

/// Writes the scenario of a plan.
pub fn import(arguments: &ImportArguments) -> Result<u8, Failure> {
    let out = arguments.out.as_deref().filter(|file| !results::is_stdout(file));
    if let Some(file) = out.filter(|file| std::fs::symlink_metadata(file).is_ok()) {
        return Err(init::is_there(file));
    }
    let folder = out.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if let Some(file) = out.filter(|_| !folder.is_dir()) {
        return Err(init::no_folder(file));
    }
    #[cfg(feature = "js")]
    if arguments.from.is_none() && script::is_script(&arguments.file) {
        if arguments.environment.is_some() || !arguments.properties.is_empty() {
            return Err(Failure::usage(
                "a script of k6 is given -e NAME=VALUE; leave -E and -J out".to_owned(),
            ));
        }
        let named = if folder == parent(&arguments.file) {
            arguments.file.file_name().map(PathBuf::from)
        } else {
            None
        };
        let named = match named {
            Some(name) => name,
            None => {
                std::path::absolute(&arguments.file).map_err(|error| Failure::usage(error.to_string()))?
            }
        };
        let (named, env) = (named.to_string_lossy(), script::env(&arguments.env));
        // secrets stay out of what is written down, and what the script gets as one is one, whatever its name
        let is_open =
            |(name, value): &(String, String), got: &[String]| !is_secret(name, value) && !got.contains(name);
        let args = |got: &[String]| {
            let open = arguments.env.iter().filter(|pair| is_open(pair, got));
            open.map(|(name, value)| format!("{name}={value}")).collect()
        };
        let given = tidemark_k6::Given::default();
        let (text, _, got) = script::scenario_of((&arguments.file, &named), (&env, &args), given)?;
        // a label that the dry run found may have one
        let text = script::secrets_of(&env, &got).masked(&text);
        for (name, _) in arguments.env.iter().filter(|pair| !is_open(pair, &got)) {
            output::remark(&format!(
                "{name} is a secret and not in the scenario: give a run the environment variable {name}"
            ));
        }
        return match out {
            Some(file) => init::save(file, &text).map(|()| tidemark_lab::EXIT_PASS),
            None => output::print(&text).map(|()| tidemark_lab::EXIT_PASS),
        };
    }
    if !arguments.env.is_empty() {
        return Err(Failure::usage("-e is for scripts of k6; leave it out".to_owned()));
    }
    let options = PlanOptions {
        properties: &arguments.properties,
        environment: arguments.environment.as_deref(),
        tool: arguments.from,
    };
    let is_stdin = results::is_stdout(&arguments.file);
    let made = if is_stdin {
        tidemark_import::plan_from(std::io::stdin().lock(), Path::new(STANDARD_INPUT), &options, folder)?
    } else {
        tidemark_import::plan(&arguments.file, &options, folder)?
    };
    let name = if is_stdin { STANDARD_INPUT.to_owned() } else { arguments.file.display().to_string() };
    let text = made.checked_in(folder).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    tell(&name, &made);
    if arguments.strict && !made.left_out.is_empty() {
        let count = made.left_out.len();
        return Err(Failure::usage(format!("{name}: --strict, and {count} left out; nothing is written")));
    }
    match out {
        Some(file) => init::save(file, &text)?,
        None => output::print(&text)?,
    }
    init::tell_secrets(&made);
    Ok(tidemark_lab::EXIT_PASS)
}

/// The folder that a file lies in.
#[cfg(feature = "js")]
fn parent(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What `tidemark run` is to carry out: a scenario, or one that is made of a plan.
pub fn loaded(arguments: &RunArguments) -> Result<Experiment, Failure> {
    #[cfg(feature = "js")]
    if script::is_script(Path::new(&arguments.scenario)) && arguments.properties.is_empty() {
        return script::loaded(arguments);
    }
    if !arguments.env.is_empty() {
        return Err(Failure::usage(
            "-e is for scripts of k6; a scenario has settings (--set NAME=VALUE), and its sessions with such scripts `args: [NAME=VALUE]`".to_owned(),
        ));
    }
    experiment(&Asked {
        scenario: &arguments.scenario,
        settings: &arguments.settings,
        properties: &arguments.properties,
        environment: arguments.environment.as_deref(),
        url: arguments.url.as_deref(),
    })
}

/// A scenario or a plan on the command line, with what is said of it.
pub struct Asked<'a> {
    /// A scenario, the name of a shipped one, or a plan of another tool.
    pub scenario: &'a str,
    /// `--set`
    pub settings: &'a [(String, String)],
    /// `-J`
    pub properties: &'a [(String, String)],
    /// `--environment`
    pub environment: Option<&'a str>,
    /// `--url`
    pub url: Option<&'a str>,
}

/// What is to be carried out: a scenario, or one that is made of a plan.
pub fn experiment(asked: &Asked<'_>) -> Result<Experiment, Failure> {
    let file = Path::new(asked.scenario);
    if !is_plan(asked.scenario) {
        if !asked.properties.is_empty() {
            return Err(Failure::usage(
                "-J is for plans of JMeter; a scenario has settings: --set NAME=VALUE".to_owned(),
            ));
        }
        if asked.environment.is_some() {
            return Err(Failure::usage(
                "--environment is for collections of Postman and scripts of Artillery; a scenario has settings: --set NAME=VALUE"
                    .to_owned(),
            ));
        }
        return scenario::load(asked.scenario, asked.settings);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let options = PlanOptions { properties: asked.properties, environment: asked.environment, tool: None };
    let mut made = tidemark_import::plan(file, &options, folder)?;
    let text =
        made.checked_in(folder).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let mut given = asked.settings.to_vec();
    // in the place of a URL that has no value
    if let Some(url) = asked.url {
        let system = made.scenario.system.as_ref().and_then(|system| system.url.as_ref());
        let setting = system.and_then(|system| system.as_str().strip_prefix("${")?.strip_suffix('}'));
        if let Some(setting) = setting.filter(|setting| !given.iter().any(|(name, _)| name == setting)) {
            given.push((setting.to_owned(), url.to_owned()));
        }
    }
    let is_given = |setting: &String| given.iter().any(|(name, _)| name == setting);
    made.left_out.retain(|left| !left.setting.as_ref().is_some_and(is_given));
    tell(asked.scenario, &made);
    let missing = made.left_out.iter().filter(|left| left.is_request).count();
    if missing > 0 {
        return Err(Failure::usage(format!(
            "{0}: {missing} left out without which it would not send what the plan sends (marked with !); make a scenario of it, look at it, \
             and run that: tidemark import {0} -o my.yaml",
            asked.scenario
        )));
    }
    // secrets that stand in the plan are in its scenario no more
    let mut settings = made.given;
    settings.retain(|(name, _)| !given.iter().any(|(known, _)| known == name));
    settings.extend(given);
    scenario::of_text(asked.scenario, &text, &settings)
}

/// Whether what stands on the command line is a plan of another tool.
pub fn is_plan(scenario: &str) -> bool {
    scenario::shipped_text(scenario).is_none() && tidemark_import::is_plan(Path::new(scenario))
}

/// Tells what was left out, and what else there is to know.
fn tell(name: &str, made: &Imported) {
    let line = |left: &LeftOut| {
        let mark = if left.is_request { "! " } else { "  " };
        format!("{mark}{name}: {left}")
    };
    // what keeps the plan from being driven comes first
    let (missing, other): (Vec<_>, Vec<_>) = made.left_out.iter().partition(|left| left.is_request);
    let mut lines: Vec<String> = missing.into_iter().chain(other).take(TOLD_MAX).map(line).collect();
    let more = made.left_out.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    if !lines.is_empty() {
        output::insist(&format!("Left out:\n{}", lines.join("\n")));
    }
    output::remark(&made.remark);
}
