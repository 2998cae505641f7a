//! Thread groups: what their threads do becomes a session, and how many there are, and for how long, its load.
//!
//! A thread that goes round until it is stopped becomes a user who begins one session after another. One with a number of
//! rounds, or with something that it keeps from round to round, is one session with a `repeat` in it; such threads begin
//! at the rate at which JMeter starts them, and end when they are done.

use std::time::Duration;

use tidemark_scenario::source::{Load, Map, Phase, Scalar, Session, Step};
use tidemark_scenario::units::{Rate, Time};

use super::function::set;
use super::tree::{self, Node};
use super::{Making, Scope, values};
use crate::xml::Element;

/// The most rounds of a thread that goes round until it is stopped.
const ROUNDS_ALWAYS: u64 = 1_000_000_000;
/// How long a plan is driven that says no end.
const HOLD_S: f64 = 60.0;
/// How long threads that end by themselves may take at most.
const ENOUGH_S: f64 = 3_600.0;
/// Connections of arriving sessions that the language has without being told.
const CONNECTIONS: f64 = 1_000.0;
/// Most phases of a load.
const PHASES_MAX: usize = 200;

/// The thread group whose steps are being made.
#[derive(Default)]
pub(super) struct Group {
    pub(super) name: String,
    /// Whether a session is a whole thread, and not one round of it.
    pub(super) is_thread: bool,
    /// The variable with the number of the round, where a session is a thread.
    pub(super) iteration: Option<String>,
    /// The variable with the number of the thread.
    thread_number: Option<String>,
    /// Steps at the begin of a thread.
    pub(super) start: Vec<Step>,
    /// How often a user begins a round.
    pub(super) pace_s: Option<f64>,
    /// Rounds that arrive each second, whatever the system does.
    pub(super) arrivals: Option<f64>,
    /// Threads, as far as they are known.
    pub(super) threads: f64,
    /// Variables that count loops around, from the outermost.
    pub(super) loops: Vec<String>,
    /// How often controllers around are done in a round, each; none where that varies.
    pub(super) weights: Vec<Option<f64>>,
    /// Samplers under timers of a rate.
    pub(super) counts: super::timer::Counts,
    /// Controllers around.
    pub(super) depth: usize,
    /// Transactions around.
    pub(super) groups: usize,
    /// The variable with the whole body of the last answer.
    pub(super) body: Option<String>,
    /// Whether a session ends where a request fails.
    pub(super) ends_on_error: bool,
    /// The variable that is missing behind a request that failed.
    pub(super) answered: Option<String>,
    /// Whether something asks that which may run before the first request.
    pub(super) asks_last: bool,
}

impl Group {
    /// How often a sampler is sent in a round here; none where that varies.
    pub(super) fn weight(&self) -> Option<f64> {
        self.weights.iter().copied().product()
    }
}

/// How many come of a kind of session.
pub(super) enum GroupLoad {
    /// Until it is stopped.
    Lasting(Box<Load>),
    /// So many sessions, begun over so many seconds, and ended after so many.
    Once { sessions: f64, users: f64, over_s: f64, within_s: Option<f64> },
}

/// Whether an element is a thread group.
pub(super) fn is_group(kind: &str) -> bool {
    kind.ends_with("ThreadGroup") || kind == "PostThreadGroup"
}

impl<'a> Making<'a> {
    pub(super) fn thread_group(&mut self, node: &'a Node<'a>, scope: &Scope<'a>, beside: &'a [Node<'a>]) {
        match node.kind() {
            "SetupThreadGroup" => return self.set_up(node, scope, beside),
            "PostThreadGroup" => {
                return self.leave_out_request(node, "sent its requests once the other threads had ended");
            }
            "ThreadGroup"
            | "UltimateThreadGroup"
            | "SteppingThreadGroup"
            | "ConcurrencyThreadGroup"
            | "ArrivalsThreadGroup"
            | "FreeFormArrivalsThreadGroup"
            | "OpenModelThreadGroup" => {}
            kind => return self.leave_out_request(node, &format!("run its threads as a {kind} does")),
        }
        let rounds = self.rounds(node);
        let threads = self.number(node.text("ThreadGroup.num_threads"), node);
        let is_plain = node.kind() == "ThreadGroup";
        if rounds == Some(0) || (is_plain && threads.is_some_and(|threads| threads < 1.0)) {
            return self.note(format!(
                "{}: it has no threads or no rounds, so JMeter does nothing either",
                node.title()
            ));
        }
        let has_modules = has_modules(node);
        let in_modules = has_modules && self.trees.all().any(|tree| needs_thread(tree));
        let keeps = in_modules
            || needs_thread(node)
            || beside.iter().filter(|one| one.children.is_empty() && one.is_enabled()).any(needs_thread);
        let is_one = threads.is_some_and(|threads| threads == 1.0);
        let is_thread = keeps || (rounds.is_some() && !(is_plain && is_one));
        let name = self.session_name(node);
        let ends_on_error = self.on_error(node, is_thread, rounds);
        self.group = Group {
            name: node.name().to_owned(),
            is_thread,
            threads: threads.unwrap_or(1.0),
            ends_on_error,
            ..Group::default()
        };
        let steps = self.session_steps(node, scope, beside, rounds);
        if steps.is_empty() {
            return self.note(format!("{}: nothing in it is left to send", node.title()));
        }
        let keeps_cookies = self.keeps_cookies(node, scope);
        let session = Session {
            keep_cookies: (keeps_cookies && !is_thread).then(|| true.into()),
            steps,
            ..Session::default()
        };
        let load = match node.kind() {
            "ThreadGroup" => self.plain(node, rounds, is_thread),
            "UltimateThreadGroup" => self.ultimate(node),
            "SteppingThreadGroup" => self.stepping(node),
            "ConcurrencyThreadGroup" => self.concurrency(node),
            "ArrivalsThreadGroup" => self.arrivals(node),
            "FreeFormArrivalsThreadGroup" => self.free_form(node),
            _ => self.open_model(node),
        };
        let Some(load) = load else {
            return self.leave_out_request(node, "started its threads by what is only known while it runs");
        };
        if rounds.is_some() && !is_plain {
            self.leave_out_request(
                node,
                "ended each thread after a number of rounds; here users begin again",
            );
        }
        self.sessions.push((name, session, load));
    }

    fn session_name(&mut self, node: &Node<'_>) -> String {
        let wanted = super::shown(node.name());
        let wanted = if wanted.is_empty() { "visitor".to_owned() } else { wanted };
        crate::names::free(&wanted, &format!("{wanted} (line {})", node.element.line), |name| {
            self.sessions.iter().any(|(known, _, _)| known == name)
        })
    }

    /// The steps of a thread or of one of its rounds.
    fn session_steps(
        &mut self,
        node: &'a Node<'a>,
        scope: &Scope<'a>,
        beside: &'a [Node<'a>],
        rounds: Option<u64>,
    ) -> Vec<Step> {
        // what lies in the plan itself is of each thread group
        let mut body = self.steps_of_round(beside);
        let round = self.group.is_thread.then(|| self.own_name("round"));
        self.group.iteration.clone_from(&round);
        self.group.loops.extend(round.clone());
        body.extend(self.steps(&node.children, scope));
        self.group.loops.clear();
        self.throughput(scope, &node.children);
        let mut first = self.first_values(&body, node);
        if std::mem::take(&mut self.group.asks_last) {
            // JMeter's is true before the first request
            let answered = Map::from([(self.answered(), 200u64)]);
            first.insert(0, Step::Other(Map::from([("set", answered)])));
        }
        if self.group.is_thread {
            self.group.start.extend(first);
        } else {
            body.splice(..0, first);
        }
        let Some(round) = round.filter(|_| !body.is_empty()) else { return body };
        let mut steps = std::mem::take(&mut self.group.start);
        let is_once = rounds == Some(1) && !names(&body, &round);
        if is_once {
            steps.extend(body);
            return steps;
        }
        let mut repeat = Map::from([("repeat", rounds.unwrap_or(ROUNDS_ALWAYS))]);
        if rounds.is_none() {
            repeat = Map::new();
            repeat.insert_with_comment("until the load ends", "repeat", ROUNDS_ALWAYS);
        }
        if names(&body, &round) {
            repeat.insert("as", round);
        }
        repeat.insert("steps", values(body));
        steps.push(Step::Other(repeat));
        steps
    }

    /// What user-defined variables hold until something in these steps sets them anew.
    fn first_values(&mut self, steps: &[Step], node: &Node<'_>) -> Vec<Step> {
        let of_plan = |name: &String| self.user_variables.get(name).cloned();
        let mut both: Vec<(String, String)> = (self.variables.iter())
            .filter_map(|(name, variable)| Some((variable.name.clone(), of_plan(name)?)))
            .collect();
        both.sort();
        both.retain(|(slot, _)| names(steps, slot));
        let mut made = Vec::new();
        for (slot, value) in both {
            made.extend(self.expression_at(&value, node, 1).map(|expr| set(&slot, &expr.text)));
        }
        made
    }

    /// How many rounds a thread makes; none where it goes on until it is stopped.
    fn rounds(&mut self, node: &'a Node<'a>) -> Option<u64> {
        let controller = node.part("ThreadGroup.main_controller");
        let property = |name: &str| {
            controller.and_then(|controller| tree::property(controller, name)).unwrap_or_default()
        };
        if node.kind() == "ConcurrencyThreadGroup" || node.kind() == "ArrivalsThreadGroup" {
            let iterations = node.text("Iterations").trim();
            return self.number(iterations, node).filter(|rounds| *rounds >= 1.0).map(|rounds| rounds as u64);
        }
        if controller.is_none()
            || property("LoopController.continue_forever") == "true"
                && property("LoopController.loops").trim() == "-1"
        {
            return None;
        }
        let loops = property("LoopController.loops");
        let rounds = self.number(loops, node);
        if rounds.is_none() && !loops.trim().is_empty() {
            let would =
                format!("gone round {} times, which is no number before it runs", super::shown(loops));
            self.leave_out_request(node, &would);
        }
        rounds.filter(|rounds| *rounds >= 0.0).map(|rounds| rounds as u64)
    }

    /// Number of the thread, from 1, set as a thread begins.
    pub(super) fn thread_number(&mut self) -> String {
        if let Some(known) = &self.group.thread_number {
            return known.clone();
        }
        let slot = self.own_name("thread");
        let counter = self.counter(&format!("threads of {}", self.group.name));
        self.group.start.push(set(&slot, &format!("count({counter}) + 1")));
        self.group.thread_number = Some(slot.clone());
        slot
    }

    /// Whether a failed request ends its session: where that is the round or the thread that JMeter ends. Else it is told.
    fn on_error(&mut self, node: &Node<'_>, is_thread: bool, rounds: Option<u64>) -> bool {
        let is_only = rounds == Some(1);
        let would = match node.text("ThreadGroup.on_sample_error") {
            "startnextloop" if !is_thread || is_only => return true,
            // only threads with a number of rounds do not begin again
            "stopthread" if is_only || (is_thread && rounds.is_some()) => return true,
            "startnextloop" => "begun the next round after a failed request",
            "stopthread" => "ended the thread after a failed request",
            "stoptest" | "stoptestnow" => "ended the whole test after a failed request",
            _ => return false,
        };
        self.leave(node, would, would.starts_with("ended"));
        false
    }

    fn set_up(&mut self, node: &'a Node<'a>, scope: &Scope<'a>, beside: &'a [Node<'a>]) {
        let rounds = self.rounds(node);
        let threads = self.given(node.text("ThreadGroup.num_threads"), 1.0, "threads", node);
        self.on_error(node, true, rounds);
        if rounds == Some(0) || threads < 1.0 {
            return;
        }
        let Some(rounds) = rounds else {
            return self.leave_out_request(
                node,
                "gone on with its requests until it was stopped, before all others",
            );
        };
        if threads > 1.0 {
            self.note(format!(
                "{}: {threads} threads prepared at once; here one user does it as often",
                node.title()
            ));
        }
        self.group = Group { name: node.name().to_owned(), is_thread: true, threads, ..Group::default() };
        let steps = self.session_steps(node, scope, beside, Some(rounds.saturating_mul(threads as u64)));
        self.note(format!(
            "{}: its requests stand under `prepare`, where a failed one ends the run",
            node.title()
        ));
        self.prepare.extend(steps);
    }

    /// A number of the plan, at least 0; what is there and gives none is told.
    fn given(&mut self, text: &str, otherwise: f64, what: &str, node: &Node<'_>) -> f64 {
        if text.trim().is_empty() {
            return otherwise;
        }
        self.number(text, node).map(|number| number.max(0.0)).unwrap_or_else(|| {
            let would =
                format!("had as its {what} {}, which is no number before it runs", super::shown(text));
            self.leave_out_request(node, &would);
            otherwise
        })
    }

    fn plain(&mut self, node: &'a Node<'a>, rounds: Option<u64>, is_thread: bool) -> Option<GroupLoad> {
        let threads = self.number(node.text("ThreadGroup.num_threads"), node)?;
        let ramp_s = self.given(node.text("ThreadGroup.ramp_time"), 0.0, "ramp", node);
        let is_scheduled = node.flag("ThreadGroup.scheduler");
        let delay_s = match is_scheduled {
            true => self.given(node.text("ThreadGroup.delay"), 0.0, "delay", node),
            false => 0.0,
        };
        let duration =
            Some(node.text("ThreadGroup.duration")).filter(|text| is_scheduled && !text.trim().is_empty());
        let duration_s =
            duration.map(|text| self.given(text, 0.0, "duration", node)).filter(|seconds| *seconds > 0.0);
        if node.flag("ThreadGroup.delayedStart") {
            self.note(format!("{}: threads are made only when they start, as always here", node.title()));
        }
        if let Some(rounds) = rounds {
            if self.group.pace_s.is_some() || self.group.arrivals.is_some() {
                self.leave_out_request(node, "kept its rounds to a timer's rate");
            }
            if delay_s > 0.0 {
                self.leave_out(node, &format!("waited {delay_s} s before its first thread"));
            }
            if !is_thread {
                // one thread: its rounds are the sessions
                let sessions = rounds as f64;
                return Some(GroupLoad::Once { sessions, users: 1.0, over_s: 0.0, within_s: duration_s });
            }
            let ramp_s = if threads > 1.0 { ramp_s } else { 0.0 };
            // the ramp may be cut off
            let over_s = duration_s.map_or(ramp_s, |within_s| within_s.min(ramp_s));
            let share = if over_s > 0.0 { over_s / ramp_s } else { 1.0 };
            let sessions = (threads * share).round().max(1.0);
            if over_s > 0.0 && threads > CONNECTIONS {
                self.limits.insert("connections", threads as u64);
            }
            return Some(GroupLoad::Once { sessions, users: threads, over_s, within_s: duration_s });
        }
        if duration_s.is_none() {
            self.note(format!(
                "{}: it goes on until it is stopped; here for {HOLD_S} s (--for)",
                node.title()
            ));
        }
        let total_s = duration_s.unwrap_or(ramp_s + HOLD_S);
        if let Some(rate) = self.group.arrivals {
            let spacing = Some("poisson".into());
            let hold = Some(time(total_s));
            self.limits.insert("in flight", threads as u64);
            return Some(GroupLoad::Lasting(Box::new(Load {
                rate: Some(Scalar::from(Rate(rate)).into()),
                spacing,
                hold,
                ..Load::default()
            })));
        }
        let users = self.users(node.text("ThreadGroup.num_threads"), node);
        let pace = self.group.pace_s.map(time);
        if delay_s > 0.0 || ramp_s >= total_s {
            // the ramp is cut off, or begins late
            let share = if ramp_s > total_s { total_s / ramp_s } else { 1.0 };
            let reached = (threads * share).round().max(1.0);
            let mut phases = Vec::new();
            if delay_s > 0.0 {
                phases.push(phase(delay_s, "0".into(), Some(false)));
            }
            let rise_s = ramp_s.min(total_s);
            if rise_s > 0.0 {
                let is_all = rise_s >= total_s;
                phases.push(phase(rise_s, format!("0 to {reached}"), (!is_all).then_some(false)));
            }
            if total_s > rise_s {
                phases.push(phase(total_s - rise_s, format!("{threads}"), None));
            }
            return Some(GroupLoad::Lasting(Box::new(Load { pace, phases, ..Load::default() })));
        }
        let ramp_setting = self.of_setting(node.text("ThreadGroup.ramp_time"), node);
        let ramp_setting = ramp_setting.filter(|_| ramp_s > 0.0);
        let duration = duration.filter(|_| duration_s.is_some());
        let hold: Scalar = match (duration.and_then(|text| self.of_setting(text, node)), &ramp_setting) {
            (None, Some(ramp)) if duration.is_some() => format!("${{{total_s} - {ramp}}}s").into(),
            (None, _) => time(total_s - ramp_s),
            (Some(all), Some(ramp)) => format!("${{{all} - {ramp}}}s").into(),
            (Some(all), None) if ramp_s > 0.0 => format!("${{{all} - {ramp_s}}}s").into(),
            (Some(all), None) => format!("${{{all}}}s").into(),
        };
        let hold = Some(hold);
        let ramp = ramp_setting.map_or_else(|| time(ramp_s), |ramp| format!("${{{ramp}}}s").into());
        let ramp = Some(ramp).filter(|_| ramp_s > 0.0);
        Some(GroupLoad::Lasting(Box::new(Load { users: Some(users), pace, ramp, hold, ..Load::default() })))
    }

    /// A number of the plan that a setting holds, as an expression.
    fn of_setting(&mut self, text: &str, node: &Node<'_>) -> Option<String> {
        let expr = if text.contains("${") { self.expression(text.trim(), node)? } else { return None };
        (!expr.text.starts_with('\'')).then_some(expr.text)
    }

    /// The number of users: a setting, whatever the plan has.
    fn users(&mut self, text: &str, node: &Node<'_>) -> Scalar {
        self.scalar(text, node)
    }

    fn ultimate(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let mut lines = Vec::new();
        for row in node.list("ultimatethreadgroupdata") {
            let mut cells = Vec::new();
            for cell in &row.children {
                cells.push(self.number(&cell.text, node)?.max(0.0));
            }
            let [threads, delay, startup, hold, shutdown] = cells.get(..5)?.try_into().ok()?;
            let begin: f64 = delay;
            lines.push(vec![
                (begin, 0.0),
                (begin + startup, threads),
                (begin + startup + hold, threads),
                (begin + startup + hold + shutdown, 0.0),
            ]);
        }
        self.lasting(levels(&lines))
    }

    fn stepping(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let threads = self.number(node.text("ThreadGroup.num_threads"), node)?;
        let mut number = |name: &str, otherwise: f64| self.given(node.text(name), otherwise, name, node);
        let delay = number("Threads initial delay", 0.0);
        let burst = number("Start users count burst", 0.0);
        let (step, every) = (number("Start users count", threads), number("Start users period", 0.0));
        let (stop, stop_every) = (number("Stop users count", threads), number("Stop users period", 0.0));
        let (flight, rise) = (number("flighttime", 0.0), number("rampUp", 0.0));
        let mut points = vec![(0.0, 0.0), (delay, 0.0)];
        let (mut at, mut level) = (delay, 0.0);
        let first = if burst > 0.0 { burst } else { step };
        while level < threads && points.len() < PHASES_MAX {
            let more = if level == 0.0 { first } else { step };
            level = (level + more.max(1.0)).min(threads);
            at += rise;
            points.push((at, level));
            at += if level < threads { every } else { flight };
            points.push((at, level));
        }
        while level > 0.0 && points.len() < 2 * PHASES_MAX {
            level = (level - stop.max(1.0)).max(0.0);
            points.push((at, level));
            if level > 0.0 {
                at += stop_every;
                points.push((at, level));
            }
        }
        self.lasting(levels(&[points]))
    }

    /// Level over time: up to a target, at once or in steps, and held there.
    fn target(&mut self, node: &'a Node<'a>) -> Option<(f64, f64, u64, f64)> {
        let unit = if node.text("Unit").trim() == "S" { 1.0 } else { 60.0 };
        let target = self.number(node.text("TargetLevel"), node)?;
        let mut seconds = |name: &str| self.given(node.text(name), 0.0, name, node) * unit;
        let (rise, hold) = (seconds("RampUp"), seconds("Hold"));
        let steps = self.given(node.text("Steps"), 0.0, "steps", node) as u64;
        Some((target, rise, steps, hold))
    }

    fn concurrency(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let (target, rise, steps, hold) = self.target(node)?;
        let mut phases = Vec::new();
        if rise > 0.0 {
            let from = if steps > 1 { target / steps as f64 } else { 0.0 };
            let level = match steps {
                0 | 1 => format!("0 to {target}"),
                _ if from.fract() == 0.0 => format!("{from} to {target} in {steps} steps"),
                _ => format!("{} to {target} in {steps} steps", from.round().max(1.0)),
            };
            phases.push(phase(rise, level, (hold > 0.0).then_some(false)));
        }
        if hold > 0.0 {
            phases.push(phase(hold, target.to_string(), None));
        }
        (!phases.is_empty()).then(|| {
            GroupLoad::Lasting(Box::new(Load {
                phases,
                pace: self.group.pace_s.map(time),
                ..Load::default()
            }))
        })
    }

    fn arrivals(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let (target, rise, steps, hold) = self.target(node)?;
        let unit = if node.text("Unit").trim() == "S" { 1.0 } else { 60.0 };
        let rate = |level: f64| Scalar::from(Rate(level / unit)).as_str().to_owned();
        let mut phases = Vec::new();
        if rise > 0.0 {
            let level = match steps {
                0 | 1 => format!("0/s to {}", rate(target)),
                _ => format!("{} to {} in {steps} steps", rate(target / steps as f64), rate(target)),
            };
            phases.push(arriving(rise, level, (hold > 0.0).then_some(false)));
        }
        if hold > 0.0 {
            phases.push(arriving(hold, rate(target), None));
        }
        let most = self.number(node.text("ConcurrencyLimit"), node).filter(|most| *most >= 1.0);
        if let Some(most) = most {
            self.limits.insert("in flight", most as u64);
        }
        let load = Load { spacing: Some("poisson".into()), phases, ..Load::default() };
        (!load.phases.is_empty()).then_some(GroupLoad::Lasting(Box::new(load)))
    }

    fn free_form(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let unit = if node.text("Unit").trim() == "S" { 1.0 } else { 60.0 };
        let mut phases = Vec::new();
        for row in node.list("Schedule") {
            let mut cells = Vec::new();
            for cell in &row.children {
                cells.push(self.number(&cell.text, node)?.max(0.0));
            }
            let [from, to, length]: [f64; 3] = cells.get(..3)?.try_into().ok()?;
            let rate = |level: f64| Scalar::from(Rate(level / unit)).as_str().to_owned();
            let level = if from == to { rate(to) } else { format!("{} to {}", rate(from), rate(to)) };
            phases.push(arriving(length * unit, level, None));
        }
        let load = Load { spacing: Some("poisson".into()), phases, ..Load::default() };
        (!load.phases.is_empty() && load.phases.len() <= PHASES_MAX)
            .then_some(GroupLoad::Lasting(Box::new(load)))
    }

    /// `rate(10/sec) random_arrivals(1 min) rate(20/sec)`
    fn open_model(&mut self, node: &'a Node<'a>) -> Option<GroupLoad> {
        let schedule = self.known(node.text("OpenModelThreadGroup.schedule"), node)?;
        let (mut phases, mut level, mut is_even) = (Vec::new(), 0.0, false);
        // a stretch that waits for the rate behind it
        let mut open: Option<f64> = None;
        let shown = |level: f64| Scalar::from(Rate(level)).as_str().to_owned();
        let mut stretch = |from: f64, to: f64, length: f64| {
            let rate = if from == to { shown(to) } else { format!("{} to {}", shown(from), shown(to)) };
            phases.push(arriving(length, rate, None));
        };
        for part in schedule.split(')').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, argument) = part.split_once('(')?;
            match name.trim() {
                "rate" => {
                    let (number, unit) = argument.split_once('/')?;
                    let to = number.trim().parse::<f64>().ok()? / unit_s(unit.trim())?;
                    if let Some(length) = open.take() {
                        stretch(level, to, length);
                    }
                    level = to;
                }
                kind @ ("random_arrivals" | "even_arrivals" | "pause") => {
                    if let Some(length) = open.take() {
                        stretch(level, level, length);
                    }
                    let argument = argument.trim();
                    let digits = argument.len()
                        - argument.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
                    let length = argument[..digits].parse::<f64>().ok()? * unit_s(argument[digits..].trim())?;
                    if kind == "pause" {
                        stretch(0.0, 0.0, length);
                    } else {
                        is_even |= kind == "even_arrivals";
                        open = Some(length);
                    }
                }
                _ => return None,
            }
        }
        if let Some(length) = open {
            stretch(level, level, length);
        }
        let spacing = (!is_even).then(|| "poisson".into());
        (!phases.is_empty() && phases.len() <= PHASES_MAX)
            .then(|| GroupLoad::Lasting(Box::new(Load { spacing, phases, ..Load::default() })))
    }

    fn lasting(&mut self, phases: Option<Vec<Phase>>) -> Option<GroupLoad> {
        let phases = phases?;
        Some(GroupLoad::Lasting(Box::new(Load {
            phases,
            pace: self.group.pace_s.map(time),
            ..Load::default()
        })))
    }

    /// The load of all, and how many sessions begin at most.
    pub(super) fn load(&mut self) -> (Load, Option<u64>) {
        let loads: Vec<(String, &GroupLoad)> =
            self.sessions.iter().map(|(name, _, load)| (name.clone(), load)).collect();
        if let [(_, load)] = &loads[..] {
            return match load {
                GroupLoad::Lasting(load) => (load.as_ref().clone(), None),
                GroupLoad::Once { sessions, users, over_s, within_s } => {
                    (once(*sessions, *users, *over_s, *within_s), Some(*sessions as u64))
                }
            };
        }
        // the end of the longest
        let lengths = loads.iter().map(|(_, load)| match load {
            GroupLoad::Lasting(load) => length_s(load),
            GroupLoad::Once { over_s, within_s, .. } => within_s.unwrap_or(over_s + HOLD_S),
        });
        let longest = lengths.fold(HOLD_S, f64::max);
        let mut each = Load::default();
        let mut ends = false;
        let mut longer = Vec::new();
        for (name, load) in &loads {
            let load = match load {
                GroupLoad::Lasting(load) => load.as_ref().clone(),
                GroupLoad::Once { sessions, over_s, within_s, .. } => {
                    ends = true;
                    longer.extend(within_s.filter(|within_s| *within_s < longest).map(|within_s| {
                        format!(
                            "{name}: its threads end after {longest} s, and not after the plan's {within_s} s"
                        )
                    }));
                    let over_s = over_s.max(1.0);
                    let rate = Scalar::from(Rate(sessions / over_s)).as_str().to_owned();
                    let mut phases = vec![arriving(over_s, rate, None)];
                    if longest > over_s {
                        phases.push(arriving(longest - over_s, "0/s".into(), Some(true)));
                    }
                    Load { phases, ..Load::default() }
                }
            };
            each.sessions.push((name.clone(), load));
        }
        if ends {
            self.note(format!(
                "threads with a number of rounds have {longest} s for them; what is not done then is cut off"
            ));
        }
        longer.into_iter().for_each(|note| self.note(note));
        (each, None)
    }
}

/// So many sessions, and no more.
fn once(sessions: f64, users: f64, over_s: f64, within_s: Option<f64>) -> Load {
    let enough_s = if over_s * 2.0 > ENOUGH_S { over_s + ENOUGH_S } else { ENOUGH_S };
    let hold = Some(time(within_s.unwrap_or(enough_s)));
    let comment =
        "It is over when they have ended (limits: sessions), at the latest after this time.".to_owned();
    if over_s > 0.0 {
        return Load {
            comment,
            rate: Some(Scalar::from(Rate(sessions / over_s)).into()),
            hold,
            ..Load::default()
        };
    }
    Load { comment, users: Some((users as u64).into()), hold, ..Load::default() }
}

fn length_s(load: &Load) -> f64 {
    let of = |text: &Option<Scalar>| {
        let text = text.as_ref().map(Scalar::as_str).unwrap_or_default();
        tidemark_scenario::units::parse_duration(text).map_or(0.0, |time| time.as_secs_f64())
    };
    of(&load.ramp) + of(&load.hold) + load.phases.iter().map(|phase| of(&phase.duration)).sum::<f64>()
}

/// A time, by its seconds.
pub(super) fn time(seconds: f64) -> Scalar {
    const YEAR_S: f64 = 31_536_000.0;
    Time(Duration::from_secs_f64(seconds.clamp(0.0, YEAR_S))).into()
}

fn phase(seconds: f64, users: String, measured: Option<bool>) -> Phase {
    Phase {
        duration: Some(time(seconds)),
        users: Some(Scalar::unquoted(&users)),
        measured: measured.map(Into::into),
        ..Phase::default()
    }
}

fn arriving(seconds: f64, rate: String, measured: Option<bool>) -> Phase {
    Phase {
        duration: Some(time(seconds)),
        rate: Some(rate.into()),
        measured: measured.map(Into::into),
        ..Phase::default()
    }
}

/// The sum of several lines of time and level, as phases. Measured is from the first that holds a level to the last.
fn levels(lines: &[Vec<(f64, f64)>]) -> Option<Vec<Phase>> {
    let mut times: Vec<f64> = lines.iter().flatten().map(|(at, _)| *at).collect();
    times.push(0.0);
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut phases = Vec::new();
    for pair in times.windows(2) {
        let (from_s, to_s) = (pair[0], pair[1]);
        // just behind the begin and just before the end, as a level may jump
        let sum = |at: f64, behind: bool| lines.iter().map(|line| level_at(line, at, behind)).sum::<f64>();
        phases.push((to_s - from_s, sum(from_s, true).round(), sum(to_s, false).round()));
    }
    let is_held = |(_, from, to): &(f64, f64, f64)| from == to && *to > 0.0;
    while phases.last().is_some_and(|(_, from, to)| *from == 0.0 && *to == 0.0) {
        phases.pop();
    }
    if phases.is_empty() || phases.len() > PHASES_MAX {
        return None;
    }
    // what is measured is one stretch
    let first = phases.iter().position(is_held);
    let last = phases.iter().rposition(is_held);
    let make = |(at, one): (usize, &(f64, f64, f64))| {
        let (length, from, to) = *one;
        let users = if from == to { to.to_string() } else { format!("{from} to {to}") };
        let is_outside = first.zip(last).is_some_and(|(first, last)| at < first || at > last);
        phase(length, users, is_outside.then_some(false))
    };
    Some(phases.iter().enumerate().map(make).collect())
}

fn level_at(line: &[(f64, f64)], at: f64, behind: bool) -> f64 {
    let pairs = line.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let inside = |pair: &&[(f64, f64)]| match behind {
        true => pair[0].0 <= at && at < pair[1].0,
        false => pair[0].0 < at && at <= pair[1].0,
    };
    let found = pairs.clone().find(inside);
    found.map_or(0.0, |pair| {
        let ((from_s, from), (to_s, to)) = (pair[0], pair[1]);
        from + (to - from) * (at - from_s) / (to_s - from_s)
    })
}

fn unit_s(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

/// Whether something in it is kept from one round of a thread to the next.
fn needs_thread(node: &Node<'_>) -> bool {
    if !node.is_enabled() {
        return false;
    }
    let own = match node.kind() {
        "OnceOnlyController" => true,
        "InterleaveControl" => !node.flag("InterleaveControl.accrossThreads"),
        "CounterConfig" => node.flag("CounterConfig.per_user"),
        "UserParameters" => !node.flag("UserParameters.per_iteration"),
        "ThroughputController" => node.flag("ThroughputController.perThread"),
        _ => false,
    };
    own || says(node.element) || node.children.iter().any(needs_thread)
}

/// Whether it takes in parts of other places.
fn has_modules(node: &Node<'_>) -> bool {
    matches!(node.kind(), "ModuleController" | "IncludeController") || node.children.iter().any(has_modules)
}

/// Whether a text asks for what a thread keeps.
fn says(element: &Element) -> bool {
    const WORDS: [&str; 5] =
        ["${__threadNum", "${__iterationNum", "${__counter(TRUE", "${__counter(true", "${__CSVRead("];
    WORDS.iter().any(|word| element.text.contains(word)) || element.children.iter().any(says)
}

/// Whether steps name a variable.
pub(super) fn names(steps: &[Step], name: &str) -> bool {
    let holder = Map::from([("steps", values(steps.to_vec()))]);
    holder.to_yaml().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
}
