//! `tidemark limit`: the highest load at which the objectives hold; and `tidemark report` of what it left.

pub mod args;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_lab::{
    EXIT_PASS, IoChoice, LimitOptions, LimitOutcome, Member, Pins, RunOptions, Timestamps, TrialStart,
    available_cores, cores_text, limit as search, worse,
};
use tidemark_limit::{Purpose, Searches};
use tidemark_record::limit as file;
use tidemark_report::cost::NamedBill;
use tidemark_report::{blocks, limit as words, markdown, still};
use tidemark_scenario::plan::{About, SystemOrigin};
use tidemark_scenario::units::Time;
use tidemark_scenario::{Experiment, Plan};

use crate::args::ReportArguments;
use crate::driver::DriverArguments;
use crate::failure::Failure;
use crate::fleet::FleetArguments;
use crate::import::{self, Asked};
use crate::reach::{ReachArguments, TlsArguments};
use crate::results::{Outcomes, Places};
use crate::{carry_out, output, results, scenario, settings};
use args::LimitArguments;

/// The value of `--over` that stands for the system's cores.
const CORES: &str = "cores";

/// Searches, and shows what was found.
pub fn limit(arguments: &LimitArguments) -> Result<u8, Failure> {
    arguments.check()?;
    let prices = arguments.prices.read()?;
    let options = LimitOptions {
        budget: arguments.budget,
        precision: arguments.within,
        most: constant("--most", arguments.most)?,
        at_least_per_s: constant("--at-least", arguments.at_least)?,
        out: arguments.out.clone(),
        asked: asked(arguments),
    };
    let members = members(arguments)?;
    prices.check_plans(members.iter().map(|member| &member.plan))?;
    let LimitOutcome { dir, searches, exit_status, failed } =
        search::<Failure>(&members, &options, &mut |start, plan, options| {
            if !arguments.quiet {
                output::remark(&announced(start));
            }
            carry_out::without_page(plan, options)
        })?;
    let mut outcomes = Outcomes::default();
    let bills = prices.bills_now(&dir);
    outcomes.add(put(&searches, &dir, &bills, arguments.results.places(arguments.quiet)));
    let page = still::limit(&searches, &dir, &bills);
    outcomes.add(results::write("the page", &dir.join(carry_out::PAGE), &page));
    let failed = failed.map(|failure| Failure { status: worse(exit_status, failure.status), ..failure });
    outcomes.add(failed.map_or(Ok(()), Err));
    outcomes.all().map(|()| exit_status)
}

/// Shows a search again.
pub fn report(dir: &Path, arguments: &ReportArguments) -> Result<u8, Failure> {
    let of = &arguments.results;
    if let Some(flag) = of.any_of_one_run().or(arguments.latency.then_some("--latency")) {
        let reason = "is of one run, and this is a search with several trials; name one of those: tidemark report DIR/1-…";
        return Err(Failure::usage(format!("{flag} {reason} {flag}")));
    }
    let text = file::read(dir).map_err(|error| Failure::usage(error.to_string()))?;
    let searches = Searches::from_json(&text)
        .map_err(|reason| Failure::usage(file::damaged(dir, &reason).to_string()))?;
    let bills = arguments.prices.read()?.bills_of(dir)?;
    put(&searches, dir, &bills, arguments.places()).map(|()| EXIT_PASS)
}

fn put(searches: &Searches, dir: &Path, bills: &[NamedBill], places: Places<'_>) -> Result<(), Failure> {
    let blocks = blocks::limit(searches, dir, bills);
    let (json, page) = (|| words::json(searches, dir, bills), || still::limit(searches, dir, bills));
    places.put(&blocks, json, || markdown::render(&blocks), page)
}

/// What is asked for beside the scenario and changes what is measured: a search goes on only where it is the same.
fn asked(arguments: &LimitArguments) -> Vec<String> {
    // without `..`, so that a new flag does not compile until somebody decides
    let LimitArguments {
        // what is kept of it decides, not its name
        scenario: _,
        settings,
        properties,
        environment,
        objectives,
        // more time, more precision, another end or another wish is how a search goes on
        budget: _,
        within: _,
        most: _,
        at_least: _,
        over,
        rate,
        users,
        url,
        // what is seen of the system, not what it is asked: it may be added on the way
        watch: _,
        driver,
        // where the result goes
        out: _,
        quiet: _,
        results: _,
        prices: _,
        reach,
    } = arguments;
    // another seed is another chance, and no other question
    let DriverArguments { pins, threads, io, spin, timestamps, seed: _, fleet } = driver;
    // where they are found, and how, is no other question
    let FleetArguments { fleet, agents, on_agent_loss, ssh_config: _, nats: _ } = fleet;
    let ReachArguments { resolve, ipv4, ipv6, connect_to, unix_socket, proxy, http, streams, tls } = reach;
    // the key belongs to the certificate
    let TlsArguments { insecure, cacert, cert, key: _, server_name, no_resumption } = tls;
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let settings = settings.iter().map(|(key, value)| format!("--set {key}={value}"));
    let properties = properties.iter().map(|(key, value)| format!("-J {key}={value}"));
    let settings = settings.chain(properties);
    let objectives = objectives.iter().map(|text| format!("--until '{text}'"));
    let over = over.iter().map(|(key, values)| format!("--over {key}={}", values.join(",")));
    let pins = pins.iter().map(|pin| format!("--pin {pin}"));
    let given = [
        ("environment", environment.clone()),
        ("url", url.clone()),
        ("rate", rate.map(|rate| rate.to.to_string())),
        ("users", users.map(|users| users.to_string())),
        ("resolve", resolve.clone()),
        ("connect-to", connect_to.clone()),
        ("unix-socket", shown(unix_socket)),
        ("proxy", proxy.clone()),
        ("http", http.map(|http| http.name().to_owned())),
        ("streams", streams.map(|streams| streams.to_string())),
        ("cacert", shown(cacert)),
        ("cert", shown(cert)),
        ("server-name", server_name.clone()),
        ("io", (*io != IoChoice::default()).then(|| io.to_string())),
        ("timestamps", (*timestamps != Timestamps::default()).then(|| timestamps.to_string())),
        ("threads", threads.map(|threads| threads.to_string())),
        ("agents", agents.map(|agents| agents.to_string())),
        ("on-agent-loss", on_agent_loss.clone()),
    ];
    let flags = [
        ("ipv4", *ipv4),
        ("ipv6", *ipv6),
        ("insecure", *insecure),
        ("no-resumption", *no_resumption),
        ("spin", *spin),
        ("fleet", fleet.is_some()),
    ];
    let given = given.into_iter().filter_map(|(flag, value)| value.map(|value| format!("--{flag} {value}")));
    let flags = flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| format!("--{flag}"));
    settings.chain(objectives).chain(over).chain(given).chain(flags).chain(pins).collect()
}

fn constant(flag: &str, range: Option<crate::quantities::RateRange>) -> Result<Option<f64>, Failure> {
    match range.map(|range| range.constant()) {
        Some(None) => Err(Failure::usage(format!("{flag}: give one number, not two"))),
        one => Ok(one.flatten()),
    }
}

/// What is searched: once, or once for each value.
fn members(arguments: &LimitArguments) -> Result<Vec<Member>, Failure> {
    let options = RunOptions { url: arguments.url.clone(), ..arguments.driver.options()? };
    let Some((key, values)) = &arguments.over else {
        let plan = plan(arguments, &arguments.settings)?;
        return Ok(vec![Member { setting: None, plan, options }]);
    };
    let of_cores = key == CORES && !settings::has(&arguments.scenario, key);
    let is_there = || {
        let origin = plan(arguments, &arguments.settings).map(|plan| plan.system.origin);
        arguments.url.is_some() || matches!(origin, Ok(SystemOrigin::Url(_)))
    };
    if of_cores && is_there() {
        return Err(Failure::usage(
            "--over cores gives cores to what is started here, and this system is there already; let the scenario start it \
             (`system: {command: …}`), or search at its --url once for each number of cores that you give it",
        ));
    }
    if !of_cores && import::is_plan(&arguments.scenario) {
        return Err(Failure::usage(format!(
            "--over {key} is for settings of a scenario; make one of the plan: tidemark import {} -o my.yaml",
            arguments.scenario
        )));
    }
    if !of_cores && !settings::has(&arguments.scenario, key) {
        // what is wrong with the scenario itself comes first
        plan(arguments, &arguments.settings)?;
        return Err(Failure::usage(unknown(&arguments.scenario, key)));
    }
    let mut members = Vec::new();
    for value in values {
        let setting = Some(format!("{key}={value}"));
        members.push(match of_cores {
            true => {
                let pins = with_cores(&options.pins, value)?;
                let plan = plan(arguments, &arguments.settings)?;
                Member { setting, plan, options: RunOptions { pins, ..options.clone() } }
            }
            false => {
                let mut settings = arguments.settings.clone();
                settings.push((key.clone(), value.clone()));
                let wrong = |of: Failure| Failure { message: format!("--over {key}={value}: {}", of.message), ..of };
                let plan = plan(arguments, &settings).map_err(wrong)?;
                if plan.secrets.masked(value) != *value {
                    return Err(Failure::usage(format!(
                        "--over {key}: its values are secret, and searches and their directories are named by them; search once \
                         for each, with --set {key}=…"
                    )));
                }
                Member { setting, plan, options: options.clone() }
            }
        });
    }
    Ok(members)
}

/// That a scenario has no setting of this name, and which it has.
fn unknown(scenario: &str, key: &str) -> String {
    let names = settings::names(scenario);
    let all = names.iter().map(String::as_str).chain([CORES]);
    format!("--over {key}: {scenario} has no such setting; {}", scenario::nearest_or_all(key, all))
}

/// The first cores that the driver has not for itself are the system's.
fn with_cores(pins: &Pins, count: &str) -> Result<Pins, Failure> {
    if !pins.system.is_empty() {
        return Err(Failure::usage("--over cores says which cores the system has; leave --pin system=… out"));
    }
    let count = count.parse::<usize>().ok().filter(|count| *count > 0).ok_or_else(|| {
        Failure::usage(format!("--over cores: {count} is not a number of cores; write it like cores=1,2,4"))
    })?;
    let free: Vec<usize> = available_cores().into_iter().filter(|core| !pins.driver.contains(core)).collect();
    if free.len() < count {
        return Err(Failure::usage(format!(
            "--over cores: there are not {count} cores for the system here, only {}",
            cores_text(&free)
        )));
    }
    Ok(Pins { system: free[..count].to_vec(), ..pins.clone() })
}

fn plan(arguments: &LimitArguments, settings: &[(String, String)]) -> Result<Plan, Failure> {
    if arguments.scenario.contains("://") {
        let url = &arguments.scenario;
        return Err(Failure::usage(format!(
            "{url} is a URL, not a scenario; write one with `tidemark init {url} -o my.yaml`, then `tidemark limit my.yaml`"
        )));
    }
    let asked = Asked {
        scenario: &arguments.scenario,
        settings,
        properties: &arguments.properties,
        environment: arguments.environment.as_deref(),
        url: arguments.url.as_deref(),
    };
    let Experiment::One(mut plan) = import::experiment(&asked)? else {
        return Err(Failure::usage(
            "a limit is of one scenario, and this file compares several; give it one of those that stand under `compare:`",
        ));
    };
    if let Some(sessions) = plan.limits.sessions.filter(|_| import::is_plan(&arguments.scenario)) {
        plan.limits.sessions = None;
        output::remark(&format!(
            "{} ends after {sessions} sessions; a search does not end there",
            arguments.scenario
        ));
    }
    let usage = |error: tidemark_scenario::OverrideError| Failure::usage(error.to_string());
    plan.override_load(constant("--rate", arguments.rate)?, None).map_err(usage)?;
    if let Some(users) = arguments.users {
        plan.override_users(users).map_err(usage)?;
    }
    check_start(&plan, arguments)?;
    if !arguments.objectives.is_empty() {
        plan.objectives.retain(|objective| {
            let is_on_phase = matches!(objective.about, About::Phase(..));
            if is_on_phase {
                output::remark(&format!("`{}` is on a phase: left out, as --until is given", objective.text));
            }
            !is_on_phase
        });
    }
    for objective in &arguments.objectives {
        plan.add_objective(objective)
            .map_err(|error| Failure::usage(format!("--until (--objective): {error}")))?;
    }
    plan.watch.extend(arguments.watch.iter().cloned());
    arguments.reach.ask(&mut plan, arguments.url.as_deref())?;
    Ok(*plan)
}

/// Refuses a start that is asked for above the highest level that may be tried. The scenario's own level is no wish: a search of
/// less begins at --most.
fn check_start(plan: &Plan, arguments: &LimitArguments) -> Result<(), Failure> {
    let users = plan.load.streams().iter().any(|stream| stream.model.is_closed());
    let asked = match (arguments.rate, arguments.users) {
        (Some(rate), _) => Some(("--rate", rate.to)),
        // of sessions that arrive it is the number of connections
        (None, Some(count)) if users => Some(("--users", f64::from(count))),
        _ => None,
    };
    match (asked, constant("--most", arguments.most)?) {
        (Some((flag, start)), Some(most)) if start > most => {
            let [start, most] = [start, most].map(|level| words::level_text(level, users));
            Err(Failure::usage(format!(
                "{flag}: a search that begins at {start} tries more than --most {most}; begin lower, or give it more"
            )))
        }
        _ => Ok(()),
    }
}

/// `cores=2: trial 7: 41,200/s for 9s; 1m10s of 5m; so far: holds 40,000/s …`.
fn announced(start: &TrialStart<'_>) -> String {
    let whole = |s: f64| Time(Duration::from_secs(s.max(0.0).round() as u64));
    let ask = &start.ask;
    let setting = start.setting.map_or_else(String::new, |setting| format!("{setting}: "));
    let level = words::level_text(ask.level, start.found.users);
    if let Some(waited) = start.cooled_down {
        let waited = whole(waited.as_secs_f64());
        return format!(
            "{setting}trial {}: waited {waited}, as the system still answered more slowly than before the first trial",
            start.number
        );
    }
    let quiet = start.quiet_after.map_or_else(String::new, |waited| {
        format!("; repeated after waiting {} for others to leave the cores", whole(waited.as_secs_f64()))
    });
    let what = if ask.purpose == Purpose::Last { ", whether it lasts" } else { "" };
    let so_far = match start.found.first_to_break {
        Some(_) => format!("; so far: {}", words::says(&start.found)),
        None => String::new(),
    };
    format!(
        "{setting}trial {}: {level} for {}{what}{quiet}; {} of {}{so_far}",
        start.number,
        whole(ask.measured_max_s),
        whole(start.found.took_s),
        whole(start.budget_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use tidemark_limit::{Figures, Goal, GoalResult, Options, Resources, Trial, TrialPlan, found};

    #[test]
    fn an_unknown_setting_of_over_is_told_as_that_with_what_there_is() {
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        let text = "settings: {width: 1, depth: 2}\nsystem: {url: 'http://h'}\n\
                    sessions: {s: {steps: [{GET: /}]}}\nload: {rate: 1/s, hold: 1s}\n";
        std::fs::write(file.path(), text).unwrap();
        let scenario = file.path().display().to_string();
        let told = unknown(&scenario, "widht");
        assert_eq!(told, format!("--over widht: {scenario} has no such setting; did you mean width?"));
        let all = unknown(&scenario, "nothing_like_it");
        assert!(["width", "depth", "cores"].iter().all(|name| all.contains(name)), "{all}");
    }

    #[test]
    fn what_was_asked_for_is_told_in_the_words_of_the_command_line() {
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            limit: LimitArguments,
        }
        let of =
            |flags: &[&str]| asked(&Command::parse_from([&["limit", "s.yaml"][..], flags].concat()).limit);
        let given = of(&["--http", "auto", "--set", "a=1", "--until", "p99<9ms", "-k", "--url", "http://x"]);
        let told = ["--set a=1", "--until 'p99<9ms'", "--url http://x", "--http auto", "--insecure"];
        assert_eq!(given, told);
        // how a search goes on, and what is seen of it
        let on = ["--budget", "9m", "--within", "1%", "--most", "5k/s", "--watch", "port=80", "--seed", "7"];
        assert_eq!(of(&on), Vec::<String>::new());
    }

    #[test]
    fn a_line_says_what_is_tried_and_what_is_known_by_then() {
        let goals = [Goal { text: "errors < 0.1%".into(), is_of_errors: true, ..Goal::default() }];
        let ask = |level| TrialPlan { level, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 3.0 };
        let seen = vec![GoalResult { met: false, measured: "100%".into(), tail: None, undecided: false }];
        let figures = Figures { offered_per_s: 100.0, failed_share: 1.0, ..Figures::default() };
        let trials = [Trial::new(ask(100.0), seen, figures)];
        let found = found(&goals, &trials, &Options::new(100.0, 30.0), &Resources::default(), None);
        let (setting, budget_s) = (Some("cores=2"), 30.0);
        let mut start = TrialStart {
            setting,
            number: 2,
            ask: ask(40.7),
            found,
            budget_s,
            cooled_down: None,
            quiet_after: None,
        };
        let line = "cores=2: trial 2: 40.7/s for 3s; 4s of 30s; so far: errors < 0.1% (100%) breaks at 100/s, and nothing has held yet";
        assert_eq!(announced(&start), line);
        (start.setting, start.cooled_down) = (None, Some(Duration::from_secs(4)));
        let line = "trial 2: waited 4s, as the system still answered more slowly than before the first trial";
        assert_eq!(announced(&start), line);
    }

    #[test]
    fn the_system_gets_cores_that_the_driver_has_not() {
        let available = available_cores();
        let all = with_cores(&Pins::default(), &available.len().to_string()).unwrap();
        assert_eq!(all.system, available);
        let taken = Pins { driver: vec![available[0]], system: Vec::new() };
        let error = with_cores(&taken, &available.len().to_string()).unwrap_err();
        assert!(error.message.contains("cores for the system here"), "{error}");
        assert!(with_cores(&Pins::default(), "0").unwrap_err().message.contains("is not a number of cores"));
        let pinned = Pins { system: vec![available[0]], ..Pins::default() };
        assert!(with_cores(&pinned, "1").unwrap_err().message.contains("--pin system"));
    }
}
