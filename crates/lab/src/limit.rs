//! The limit of a system: runs as the trials of a [search](tidemark_limit).
//!
//! Each trial is a run by itself, with its own directory within the search's; what starts its system has one that is new
//! for each. Where the system was there before, it gets next to nothing to do first, and the trial begins once it answers
//! that as fast as before the first one. After every trial the search is written down, so that one that was stopped goes on
//! where it was.

mod goals;
mod quiet;
mod tally;
mod trial;

use std::fs::File;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidemark_limit::{
    Found, Next, Options, Resources, Search, SearchVerdict, Searches, StoppingRule, Trial, TrialPlan, next,
    spent_s,
};
use tidemark_record::{ReasonKind, RecordError, limit as file};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Store, SystemOrigin, Watch, Watched};
use tidemark_scenario::system_url::is_loopback;
use tidemark_scenario::units::Rate;
use url::Url;

use self::goals::Goals;
use self::tally::{Calm, Sight, Tally};
use self::trial::{Took, trial};
use crate::interrupt::{Interrupt, StopRequest};
use crate::{
    EXIT_FAIL, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_PASS, Finished, LabError, Pins, RunOptions, pin, target,
    watch, worse,
};

/// Most users that are tried, and most sessions each second.
const USERS_MAX: f64 = 1_000_000.0;
const RATE_MAX: f64 = 10_000_000.0;
/// How long a system that was there before is looked at before a trial.
const CALM: Duration = Duration::from_secs(1);
/// What it is asked meanwhile: sessions each second, and at most this share of the trial's.
const CALM_PER_S: f64 = 50.0;
const CALM_SHARE: f64 = 0.1;
/// It is as before where its median is no more than so many times that before the first trial, and some microseconds.
const CALM_FACTOR: f64 = 2.0;
const CALM_US: f64 = 1_000.0;
/// Waits between two looks at a system that is not as before: the first, and all together.
const COOL_DOWN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A search waits no longer than for this part of its budget each time until others leave the machine.
const QUIET_PART: f64 = 1.0 / 10.0;
/// How often a signal is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Requests under way at a trial's end are waited for: for so many times the largest bound, at least this long.
const DRAIN_BOUNDS: f64 = 4.0;
const DRAIN_LEAST: Duration = Duration::from_secs(2);
/// A warm-up takes at most this part of the budget in each trial, be it the scenario's or for sessions that think.
const WARM_UP_PART: f64 = 1.0 / 20.0;
/// Directories that a trial may find taken.
const TAKEN_MAX: u32 = 1_000;

/// A plan whose limit is searched for: the only one, or one for each value of a setting.
#[derive(Debug, Clone)]
pub struct Member {
    /// What is set for it, where there are several: `cores=2`.
    pub setting: Option<String>,
    /// The plan.
    pub plan: Plan,
    /// How its trials are carried out; the directory is the search's.
    pub options: RunOptions,
}

/// How it is searched for.
#[derive(Debug, Clone, Default)]
pub struct LimitOptions {
    /// How long the search for each member may take.
    pub budget: Duration,
    /// Half of the interval is to be at most this share of the limit.
    pub precision: f64,
    /// The highest level.
    pub most: Option<f64>,
    /// Requests each second that each member must hold, if so many are asked for.
    pub at_least_per_s: Option<f64>,
    /// The search's directory: new or empty, or one of a search that goes on. A fresh one under `runs/` if none.
    pub out: Option<PathBuf>,
    /// What is asked for beside the scenario, in words that are the same whenever the same is asked for.
    pub asked: Vec<String>,
}

/// A trial that is about to begin.
#[derive(Debug)]
pub struct TrialStart<'a> {
    /// What is set, where there are several searches.
    pub setting: Option<&'a str>,
    /// From 1.
    pub number: usize,
    /// What it is to be.
    pub ask: TrialPlan,
    /// What was found until now.
    pub found: Found,
    /// How long the search may take, seconds.
    pub budget_s: f64,
    /// How long the system has been waited for until it is as before; none at first.
    pub cooled_down: Option<Duration>,
    /// How long the search waited until others left the machine; none where they had not disturbed the trial before.
    pub quiet_after: Option<Duration>,
}

/// What searches came to.
#[derive(Debug, Clone)]
pub struct LimitOutcome<E> {
    /// Where they are.
    pub dir: PathBuf,
    /// The searches with their trials.
    pub searches: Searches,
    /// The exit status that says what those that ended are worth, [together](worse).
    pub exit_status: u8,
    /// What a trial failed with, where that ended the search and others were before it.
    pub failed: Option<E>,
}

/// Searches for the limit of each member. `run` carries a trial out ([`run`](crate::run), with whatever is to be shown
/// meanwhile); its options name the directory.
///
/// # Errors
/// What the first trial failed with, or that the directory is of another search or cannot be written. What was tried until
/// then is kept.
pub fn limit<E: From<LabError> + std::fmt::Display>(
    members: &[Member],
    options: &LimitOptions,
    run: &mut dyn FnMut(&TrialStart<'_>, Plan, RunOptions) -> Result<Finished, E>,
) -> Result<LimitOutcome<E>, E> {
    let Some(first) = members.first() else { return Err(LabError::Usage("nothing to search".into()).into()) };
    // what cannot be searched is told before there is anything
    let prepared = members.iter().map(|member| prepared(member, options));
    let prepared = prepared.collect::<Result<Vec<(Search, Goals)>, LabError>>()?;
    // the lock is held until this is over
    let (dir, mut searches, _lock) = open(first, options)?;
    let mut carried_out = Ok(false);
    for (index, (member, (search, goals))) in members.iter().zip(prepared).enumerate() {
        match searches.searches.get_mut(index) {
            // more time than before is time to go on, and so is a limit that is to be known better, or may be higher
            Some(before) => {
                // they are of this command
                before.notes = search.notes;
                before.at_least_per_s = search.at_least_per_s;
                before.options = Options {
                    budget_s: search.options.budget_s.max(before.options.budget_s),
                    precision: search.options.precision,
                    at_least_per_s: search.options.at_least_per_s,
                    level_max: search.options.level_max,
                    ..before.options
                };
            }
            None => searches.searches.push(search),
        }
        write(&dir, &searches)?;
        let mut one = One { member, dir: &dir, index, began: Instant::now(), calm: None };
        carried_out = one.carry_out(&mut searches, &goals, run);
        if !matches!(carried_out, Ok(false)) {
            break;
        }
    }
    let secrets = &first.plan.secrets;
    searches.stopped = match &carried_out {
        Ok(false) => None,
        Ok(true) => Some("stopped by the user".into()),
        Err(error) => Some(secrets.masked(&error.to_string())),
    };
    write(&dir, &searches)?;
    let runs_dir = Path::new(tidemark_record::RUNS_DIR);
    if first.options.remember && runs_dir.is_dir() {
        tidemark_record::mark_last(runs_dir, &dir).map_err(unwritten)?;
    }
    let is_begun = searches.searches.iter().any(|search| !search.trials.is_empty());
    let (stopped, failed) = match carried_out {
        Ok(stopped) => (stopped, None),
        Err(error) if is_begun => (false, Some(error)),
        Err(error) => return Err(error),
    };
    // one that has not ended proves nothing
    let ended = searches.searches.iter().filter(|search| search.ended.is_some());
    let status = ended.map(status).reduce(worse);
    let exit_status = if stopped { EXIT_INTERRUPTED } else { status.unwrap_or(EXIT_INVALID) };
    Ok(LimitOutcome { dir, searches, exit_status, failed })
}

/// The exit status of a search that has ended.
fn status(search: &Search) -> u8 {
    match search.found().verdict(search.at_least_per_s) {
        SearchVerdict::Pass => EXIT_PASS,
        SearchVerdict::Fail => EXIT_FAIL,
        SearchVerdict::Unknown => EXIT_INVALID,
    }
}

/// The directory, and the search that is in it already; ours alone as long as the file is open.
fn open(first: &Member, options: &LimitOptions) -> Result<(PathBuf, Searches, File), LabError> {
    let plan = &first.plan;
    let masked = |text: &str| plan.secrets.masked(text);
    let asked: Vec<String> = options.asked.iter().map(|text| masked(text)).collect();
    // one that was killed before it was written down begins anew
    let there = options.out.as_deref().filter(|dir| file::is_at(dir) || file::is_begun(dir));
    let (dir, lock) = match there {
        Some(dir) => (dir.to_owned(), lock(dir)?),
        None => {
            let dir = tidemark_record::new_run_dir(options.out.as_deref(), &format!("limit-{}", plan.name))
                .map_err(|error| LabError::Usage(error.to_string()))?;
            file::create(&dir, &plan.source).map_err(unwritten)?;
            let lock = lock(&dir)?;
            (dir, lock)
        }
    };
    let cannot = |why: &str| {
        let dir = dir.display();
        LabError::Usage(format!("{dir}: this search cannot go on: {why}; name another directory"))
    };
    if file::source(&dir) != plan.source {
        return Err(cannot("the scenario is not the one it began with"));
    }
    if file::is_at(&dir) {
        let text = file::read(&dir).map_err(|error| LabError::Usage(error.to_string()))?;
        let searches = Searches::from_json(&text)
            .map_err(|reason| LabError::Usage(file::damaged(&dir, &reason).to_string()))?;
        if searches.asked != asked {
            let (before, now) = (told(&searches.asked), told(&asked));
            return Err(cannot(&format!("it was asked for with {before}, and now with {now}")));
        }
        return Ok((dir, searches, lock));
    }
    let mut searches = Searches::new(&masked(&plan.name), &masked(&plan.description));
    searches.command = plan.secrets.masked_command(&first.options.command_line);
    searches.asked = asked;
    Ok((dir, searches, lock))
}

fn lock(dir: &Path) -> Result<File, LabError> {
    let lock = file::lock(dir).map_err(|error| LabError::Usage(error.to_string()))?;
    let reason = "a search goes on here right now; wait for it, stop it, or name another directory";
    lock.ok_or_else(|| LabError::Usage(format!("{}: {reason}", dir.display())))
}

fn told(asked: &[String]) -> String {
    if asked.is_empty() { "no flags that change what is measured".into() } else { asked.join(" ") }
}

/// A search that has not begun, and its goals.
fn prepared(member: &Member, options: &LimitOptions) -> Result<(Search, Goals), LabError> {
    let Member { setting, plan, options: run_options } = member;
    if let Some(url) = &run_options.url {
        target::check(url)?;
    }
    goals::check(&plan.objectives).map_err(LabError::Usage)?;
    let goals = Goals::of(plan);
    let users = plan.load.streams().iter().any(|stream| stream.model.is_closed());
    let level = plan.level();
    let most = options.most.unwrap_or(if users { USERS_MAX } else { RATE_MAX });
    // what cannot be held is told before anything is started
    plan.clone()
        .hold_at(level.min(most), None, Duration::from_secs(1), Duration::from_secs(1))
        .map_err(|error| LabError::Usage(error.to_string()))?;
    if let Some(per_s) = options.at_least_per_s.filter(|_| !users) {
        check_at_least(member, per_s, options.most)?;
    }
    let budget_s = options.budget.as_secs_f64();
    let fresh = is_fresh(plan, run_options);
    let warm_up_s = if fresh { warm_up(plan).as_secs_f64().min(budget_s * WARM_UP_PART) } else { 0.0 };
    // before that what a session does last is in no trial
    let think_s = plan.think_time().as_secs_f64();
    let think_within_s = think_s.min(budget_s * WARM_UP_PART);
    let warm_up_s = warm_up_s.max(think_within_s);
    let in_flight_max = plan.limits.connections * plan.limits.pipeline.max(plan.limits.streams);
    let mut notes: Vec<String> = goals
        .left_out
        .iter()
        .map(|text| format!("`{text}` asks for a load and is broken by none: left out"))
        .collect();
    if !plan.faults.is_empty() {
        notes.push("the scenario's faults are left out".into());
    }
    if let Some(most) = options.most.filter(|most| *most < level) {
        // as it is typed
        let text = |level: f64| if users { format!("{level:.0} users") } else { Rate(level).to_string() };
        let (level, most) = (text(level), text(most));
        notes.push(format!(
            "the scenario's own load, {level}, is above --most {most}, the most that is tried"
        ));
    }
    if think_s > budget_s * WARM_UP_PART {
        notes.push(format!(
            "sessions think for {think_s:.0}s, longer than trials have time to warm up: what they do later is in no trial, and \
             the limit may be lower; give a --budget of {:.0}s or more",
            (think_s / WARM_UP_PART).ceil()
        ));
    }
    if fresh {
        notes.push(
            "each trial had a system of its own, just started: what builds up over minutes is not seen; to see it, start \
             the system yourself and give its --url"
                .into(),
        );
    }
    let search = Search {
        setting: setting.clone(),
        goals: goals.all.clone(),
        options: Options {
            level_first: if users { level.min(most).round().max(1.0) } else { level.min(most) },
            level_max: most,
            users,
            budget_s,
            precision: options.precision,
            warm_up_s,
            // users who begin together think together: less than a whole turn of them shows a wave, or none
            measured_least_s: if users { think_within_s } else { 0.0 },
            seed: run_options.seed.or(plan.seed).unwrap_or(1),
            at_least_per_s: options.at_least_per_s,
        },
        resources: Resources {
            cores: cores(&run_options.pins, fresh || is_watched_here(plan) || listener(member).is_some()),
            in_flight_max: in_flight_max as u64,
            sync_us: None,
            fresh,
        },
        trials: Vec::new(),
        ended: None,
        at_least_per_s: options.at_least_per_s,
        notes,
    };
    Ok((search, goals))
}

/// Refuses to ask for more requests each second than fall due at the highest level that may be tried: however well they are
/// answered, nothing would show that it holds so many. Where sessions differ in their number of requests nobody knows
/// beforehand.
fn check_at_least(member: &Member, per_s: f64, most: Option<f64>) -> Result<(), LabError> {
    let Some(each) = member.plan.requests_per_session() else { return Ok(()) };
    let each = each.max(1) as f64;
    let (default, most) = most.map_or(("the default ", RATE_MAX), |most| ("", most));
    if per_s <= most * each {
        return Ok(());
    }
    let setting = member.setting.as_ref().map_or_else(String::new, |setting| format!("{setting}: "));
    let sessions = if each == 1.0 { String::new() } else { format!(" ({each} in each session)") };
    // what is to be typed has no separators
    Err(LabError::Usage(format!(
        "{setting}--at-least {}/s cannot be shown: {default}--most {}/s allows {} requests/s{sessions}; raise --most to {}/s, \
         or ask for less",
        separated(per_s),
        separated(most),
        separated(most * each),
        (per_s / each).ceil()
    )))
}

/// `10,000,000`, `0.5`.
fn separated(number: f64) -> String {
    let mut text = number.to_string();
    let mut at = text.find('.').unwrap_or(text.len());
    while at > 3 {
        at -= 3;
        text.insert(at, ',');
    }
    text
}

/// Whether what is driven is started for each trial.
fn is_fresh(plan: &Plan, options: &RunOptions) -> bool {
    let is_there = options.url.is_some() || matches!(plan.system.origin, SystemOrigin::Url(_));
    !is_there || (options.url.is_none() && plan.stores.iter().any(Store::is_started))
}

/// What the scenario gives the system before it measures.
fn warm_up(plan: &Plan) -> Duration {
    let before = plan.load.phases.iter().take_while(|phase| !phase.measured);
    before.map(|phase| phase.duration).sum()
}

/// Whether processes of this machine are watched, all of them.
fn is_watched_here(plan: &Plan) -> bool {
    let is_here = |watch: &Watch| watch.agent.is_none() && !matches!(watch.what, Watched::Metrics { .. });
    !plan.watch.is_empty() && plan.watch.iter().all(is_here)
}

/// Where the system is, by its URL; none where it is started.
fn url(member: &Member) -> Option<Url> {
    let origin = match &member.plan.system.origin {
        SystemOrigin::Url(url) => Some(url),
        _ => None,
    };
    Url::parse(member.options.url.as_ref().or(origin)?).ok()
}

/// The port of this machine at which a system listens that nobody started and nobody else is to watch, if it is seen who
/// that is.
fn listener(member: &Member) -> Option<u16> {
    let is_free = member.plan.watch.is_empty() && !is_fresh(&member.plan, &member.options);
    let url = url(member).filter(|_| is_free)?;
    let port = url.port_or_known_default()?;
    (is_loopback(&url) && watch::is_seen(port)).then_some(port)
}

/// Whether an address of the system's URL is one of this machine; also where nobody knows.
fn is_of_this_machine(url: &Url) -> bool {
    let addresses = || url.socket_addrs(|| None).ok();
    // none other can be bound
    let is_ours = |ip| UdpSocket::bind((ip, 0)).is_ok();
    is_loopback(url) || addresses().is_none_or(|all| all.iter().any(|address| is_ours(address.ip())))
}

/// What is seen of the system's use of this machine's cores.
fn sight(member: &Member, plan: &Plan) -> Sight {
    let is_here = |url: Url| is_of_this_machine(&url);
    match is_fresh(&member.plan, &member.options) || is_watched_here(plan) {
        true => Sight::Seen,
        false if url(member).is_none_or(is_here) => Sight::Unseen,
        false => Sight::Elsewhere,
    }
}

/// What samples of other machines are called.
fn elsewhere(plan: &Plan) -> Vec<String> {
    let names = plan.watched_names();
    let of_agents = names.iter().zip(&plan.watch).filter_map(|(name, watch)| {
        let agent = watch.agent.as_ref()?;
        Some([name.clone(), agent.machine().to_owned()])
    });
    of_agents.flatten().collect()
}

/// Cores that what is started, or watched here, may use; 0 where nothing is.
fn cores(pins: &Pins, is_here: bool) -> f64 {
    match (is_here, pins.system.len()) {
        (false, _) => 0.0,
        (true, 0) => pin::available_cores().len() as f64,
        (true, pinned) => pinned as f64,
    }
}

/// One of the searches.
struct One<'a> {
    member: &'a Member,
    dir: &'a Path,
    /// Among all.
    index: usize,
    began: Instant,
    /// The system as it was before the first trial.
    calm: Option<Calm>,
}

impl One<'_> {
    /// Tries until the search is over; whether the user stopped it.
    fn carry_out<E: From<LabError>>(
        &mut self,
        searches: &mut Searches,
        goals: &Goals,
        run: &mut dyn FnMut(&TrialStart<'_>, Plan, RunOptions) -> Result<Finished, E>,
    ) -> Result<bool, E> {
        // times in which nobody searched are left out
        let before_s = spent_s(&searches.searches[self.index].trials);
        loop {
            let search = &mut searches.searches[self.index];
            let ask = match next(&search.goals, &search.trials, &search.options) {
                Next::Trial(ask) => ask,
                Next::Over(ending) => {
                    search.ended = Some(ending);
                    write(self.dir, searches)?;
                    return Ok(false);
                }
            };
            search.ended = None;
            let Some((trial, finished)) = self.try_one(search, goals, ask, before_s, run)? else {
                return Ok(true);
            };
            let system = &finished.manifest.system;
            search.resources.sync_us = system.sync_latency.as_ref().map(|latency| latency.p50_us);
            search.trials.push(trial);
            write(self.dir, searches)?;
        }
    }

    /// One trial, once the system is as before; none where the user stopped it.
    fn try_one<E: From<LabError>>(
        &mut self,
        search: &Search,
        goals: &Goals,
        ask: TrialPlan,
        before_s: f64,
        run: &mut dyn FnMut(&TrialStart<'_>, Plan, RunOptions) -> Result<Finished, E>,
    ) -> Result<Option<(Trial, Finished)>, E> {
        let begin = Instant::now();
        let (mut wait, mut cooled_down) = (COOL_DOWN.0, None);
        let mut quiet_after = None;
        if search.trials.last().is_some_and(Trial::is_disturbed) {
            let wait_max = self.wait_max(search, &ask, before_s);
            let share = Duration::from_secs_f64(search.options.budget_s * QUIET_PART);
            if !quiet::wait(wait_max.min(share), self.member.options.before_exit)? {
                return Ok(None);
            }
            quiet_after = Some(begin.elapsed());
        }
        let wait_max = self.wait_max(search, &ask, before_s);
        loop {
            let dir = self.trial_dir(search.trials.len() + 1, ask.level)?;
            let calm = (!search.resources.fresh)
                .then_some((CALM.as_secs_f64(), self.calm_most_us(cooled_down, wait_max)));
            let enough = Arc::new(AtomicBool::new(false));
            let rule = StoppingRule::new(&search.goals, &ask);
            let light = if search.options.users { 1.0 } else { (ask.level * CALM_SHARE).min(CALM_PER_S) };
            let plan = self.plan(goals, ask, calm.map(|_| (light, CALM)))?;
            let tally = Tally::new(rule, &goals.bounded, calm, Arc::clone(&enough));
            let tally = Arc::new(Mutex::new(tally.with(sight(self.member, &plan), elsewhere(&plan))));
            let mut sinks = self.member.options.sinks.clone();
            sinks.add(Arc::clone(&tally));
            let options = RunOptions {
                out: Some(self.dir.join(&dir)),
                remember: false,
                is_part: true,
                sinks,
                enough: (search.options.measured_least_s == 0.0).then_some(enough),
                ..self.member.options.clone()
            };
            let start = TrialStart {
                setting: search.setting.as_deref(),
                number: search.trials.len() + 1,
                ask,
                found: search.found(),
                budget_s: search.options.budget_s,
                cooled_down,
                quiet_after,
            };
            let began_s = before_s + self.began.elapsed().as_secs_f64();
            let finished = run(&start, plan, options)?;
            if finished.exit_status() == EXIT_INTERRUPTED {
                return Ok(None);
            }
            let mut reasons = finished.manifest.summary.verdict.reasons.iter();
            if let Some(failed) = reasons.find(|reason| reason.kind() == ReasonKind::Script) {
                // what a broken script makes of the load says nothing of the system
                return Err(LabError::Script(failed.detail().to_owned()).into());
            }
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            self.calm = self.calm.or(tally.calm.filter(|calm| calm.p50_us.is_some()));
            if tally.is_restless {
                // it is no trial, and nothing in it is worth keeping
                let _ = std::fs::remove_dir_all(self.dir.join(&dir));
                let wait_left = wait_max.saturating_sub(begin.elapsed());
                if !waited(wait.min(wait_left), self.member.options.before_exit)? {
                    return Ok(None);
                }
                cooled_down = Some(begin.elapsed());
                wait = wait.mul_f64(1.5);
                continue;
            }
            let took_s = begin.elapsed().as_secs_f64();
            let took = Took { began_s, took_s, dir };
            let trial = trial(ask, goals, &tally, &finished.manifest, took);
            drop(tally);
            return Ok(Some((trial, finished)));
        }
    }

    /// How long a trial may be put off: no longer than the budget leaves time for it.
    fn wait_max(&self, search: &Search, ask: &TrialPlan, before_s: f64) -> Duration {
        let takes_s = CALM.as_secs_f64() + ask.warm_up_s + ask.measured_max_s;
        let left_s = search.options.budget_s - before_s - self.began.elapsed().as_secs_f64() - takes_s;
        COOL_DOWN.1.min(Duration::from_secs_f64(left_s.max(0.0)))
    }

    /// What a calm system's median may be at most, microseconds; anything after it was waited for long enough.
    fn calm_most_us(&self, cooled_down: Option<Duration>, wait_max: Duration) -> f64 {
        let before = self.calm.and_then(|calm| calm.p50_us);
        match before {
            Some(us) if cooled_down.unwrap_or_default() < wait_max => us as f64 * CALM_FACTOR + CALM_US,
            _ => f64::INFINITY,
        }
    }

    /// The member's plan at a level; `calm`: at which one before it, and for how long.
    fn plan(&self, goals: &Goals, ask: TrialPlan, calm: Option<(f64, Duration)>) -> Result<Plan, LabError> {
        let mut plan = self.member.plan.clone();
        let listens = listener(self.member).map(|port| Watch {
            called: None,
            what: Watched::Port(port),
            agent: None,
            faults: false,
        });
        plan.watch.extend(listens);
        let seconds = Duration::from_secs_f64;
        plan.hold_at(ask.level, calm, seconds(ask.warm_up_s), seconds(ask.measured_max_s))
            .map_err(|error| LabError::Usage(error.to_string()))?;
        let bounds = goals.bounded.iter().flatten().map(|bounded| bounded.bound_us);
        let bound = Duration::from_secs_f64(bounds.fold(0.0, f64::max) / 1e6);
        plan.limits.drain = plan.limits.drain.min(bound.mul_f64(DRAIN_BOUNDS).max(DRAIN_LEAST));
        // the search ends a trial by itself
        plan.objectives.iter_mut().for_each(|objective| objective.abort_early = false);
        if !plan.objectives.iter().any(|objective| objective.metric.is_of_the_ledger()) {
            plan.verify = None;
        }
        Ok(plan)
    }

    /// The name of a trial's directory, `7-41200`, or `cores-2-7-41200`, which is not there yet.
    fn trial_dir(&self, number: usize, level: f64) -> Result<String, LabError> {
        let setting = self.member.setting.as_deref().unwrap_or_default().to_ascii_lowercase();
        let mut words: Vec<String> = setting
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| word.chars().take(20).collect())
            .collect();
        words.extend([number.to_string(), format!("{level}")]);
        let name = words.join("-");
        let others = (2..TAKEN_MAX).map(|n| format!("{name}-{n}"));
        // one that was stopped left its own
        let free = std::iter::once(name.clone()).chain(others).find(|name| !self.dir.join(name).exists());
        free.ok_or_else(|| {
            LabError::Measure(format!("{}: too many trials were stopped here", self.dir.display()))
        })
    }
}

/// Waits so long; whether it came to its end without a signal.
fn waited(time: Duration, before_exit: Option<fn()>) -> Result<bool, LabError> {
    let interrupt = Interrupt::watch(before_exit)
        .map_err(|error| LabError::Measure(format!("cannot watch signals: {error}")))?;
    let begin = Instant::now();
    while begin.elapsed() < time {
        if interrupt.stop_request() != StopRequest::None {
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(true)
}

fn write(dir: &Path, searches: &Searches) -> Result<(), LabError> {
    file::write(dir, &searches.to_json()).map_err(unwritten)
}

fn unwritten(error: RecordError) -> LabError {
    LabError::Measure(error.to_string())
}

#[cfg(test)]
mod tests;
