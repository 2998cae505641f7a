//! Controllers: which samplers are sent, how often, and in which order.

use tidemark_scenario::source::{Choose, Map, Scalar, Step, Think, Value, Way, verbatim};
use tidemark_scenario::units::Share;

use super::function::{number, set};
use super::group::time;
use super::tree::{self, Node};
use super::value::Holds;
use super::{Making, STEPS_MAX, Scope, is_or_has_sampler, values};
use crate::plan::quoted;

/// Most rounds of a While controller, and of a Loop controller that goes on for ever.
const WHILE_ROUNDS: u64 = 1_000;
/// Deepest nesting of groups in the language.
const GROUPS_MAX: usize = 4;
/// Deepest nesting of controllers, modules written out.
const DEPTH_MAX: usize = 24;
/// Most elements that are looked at for the steps of a plan, modules written out; what holds for many elements at once
/// counts as more.
const VISITS_MAX: usize = 200_000;
const NODES_A_VISIT: usize = 64;
/// Most children of a Random Order controller whose orders are all written out.
const ORDERED_MAX: usize = 3;
/// Most values of user variables that a ForEach controller is written out for.
const EACH_MAX: usize = 50;

impl<'a> Making<'a> {
    /// The steps of what lies in a controller.
    pub(super) fn steps(&mut self, children: &'a [Node<'a>], scope: &Scope<'a>) -> Vec<Step> {
        let scope = scope.with(children);
        let mut steps = self.steps_of_round(children);
        for child in children {
            steps.extend(self.step(child, &scope));
        }
        steps
    }

    /// The steps of one sampler or controller; `scope` is of those beside it.
    fn step(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        if !node.is_enabled() {
            self.disable(node);
            return Vec::new();
        }
        self.step_enabled(node, scope)
    }

    /// The same of one that is done even if it is disabled, as a module's target is.
    fn step_enabled(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        if self.group.depth >= DEPTH_MAX {
            self.leave_out_request(node, "done what lies so deep in modules or controllers");
            return Vec::new();
        }
        self.visits += 1 + scope.nodes.len() / NODES_A_VISIT;
        if self.visits > VISITS_MAX {
            self.leave_out_request(
                node,
                "been done; with all modules written out, the plan is too large for it",
            );
            return Vec::new();
        }
        self.group.depth += 1;
        let steps = self.shallow_step(node, scope);
        self.group.depth -= 1;
        steps
    }

    fn shallow_step(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        match node.kind() {
            "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => {
                let mut steps = self.steps_of_round(&node.children);
                steps.extend(self.sampler(node, scope));
                steps
            }
            "TestAction" => self.action(node, scope),
            "JSR223Sampler" | "BeanShellSampler" => self.script_sampler(node, scope),
            "GenericController" | "RecordingController" => self.steps(&node.children, scope),
            "CriticalSectionController" => {
                self.leave_out(node, "let one thread at a time into it");
                self.steps(&node.children, scope)
            }
            "LoopController" => self.repeated(node, scope),
            "IfController" => self.when(node, scope),
            "WhileController" => self.while_it_holds(node, scope),
            "OnceOnlyController" => self.once_only(node, scope),
            "ForeachController" => self.foreach(node, scope),
            "ThroughputController" => self.share(node, scope),
            "TransactionController" => self.transaction(node, scope),
            "RandomController" => self.one_of(node, scope, true),
            "InterleaveControl" => self.one_of(node, scope, false),
            "RandomOrderController" => self.any_order(node, scope),
            "SwitchController" => self.switched(node, scope),
            "ModuleController" => self.module(node, scope),
            "IncludeController" => self.included(node, scope),
            "TestFragmentController" => Vec::new(),
            _ => {
                self.unknown(node);
                Vec::new()
            }
        }
    }

    /// A sampler that is a script.
    fn script_sampler(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let is_alone = node.children.iter().all(|child| !child.is_enabled() || super::is_listener(child));
        let made = if is_alone { self.scripted(node) } else { None };
        let Some(made) = made else {
            self.unknown(node);
            return Vec::new();
        };
        let mut steps = self.pauses(scope);
        steps.extend(made);
        steps
    }

    /// What is no known sampler or controller.
    fn unknown(&mut self, node: &'a Node<'a>) {
        let kind = node.kind();
        if kind.contains("Sampler") && kind != "DebugSampler" {
            let script = super::config::would(node);
            let would = script.unwrap_or_else(|| format!("sent what a {kind} of JMeter sends"));
            return self.leave_out_request(node, &would);
        }
        if kind.ends_with("Controller") || node.children.iter().any(is_or_has_sampler) {
            return self.leave_out_request(node, &format!("sent its requests as a {kind} of JMeter does"));
        }
        self.aside(node);
    }

    /// Steps that are done so often, or perhaps.
    fn inner(&mut self, children: &'a [Node<'a>], scope: &Scope<'a>, times: Option<f64>) -> Vec<Step> {
        self.group.weights.push(times);
        let steps = self.steps(children, scope);
        self.group.weights.pop();
        steps
    }

    fn action(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let scope = scope.with(&node.children);
        let mut steps = self.pauses(&scope);
        if node.text("ActionProcessor.action").trim() == "1" {
            let duration = node.text("ActionProcessor.duration").trim();
            match self.number(duration, node) {
                Some(ms) if ms > 0.0 => {
                    steps.push(Think { time: Value::Scalar(time(ms / 1e3)), ..Think::default() }.into());
                }
                Some(_) => {}
                None => self.leave_out(node, "paused for a time that is known only while it runs"),
            }
            return steps;
        }
        match (node.text("ActionProcessor.action").trim(), node.text("ActionProcessor.target").trim()) {
            // the thread
            ("0" | "2", "0") if self.group.is_thread => {
                steps.push(Step::Other(Map::from([("end", "session")])));
            }
            ("3", _) if !self.group.is_thread => {
                steps.push(Step::Other(Map::from([("end", "session")])));
            }
            ("0" | "2", "0") => self.leave_out(node, "ended its thread"),
            ("0" | "2", _) => self.leave_out(node, "ended the test"),
            _ => self.leave_out(node, "gone on with the next round of a loop"),
        }
        steps
    }

    fn repeated(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let loops = node.text("LoopController.loops").trim();
        let known = self.number(loops, node);
        let is_endless = known.is_some_and(|loops| loops < 0.0)
            || (loops.is_empty() && node.flag("LoopController.continue_forever"));
        let times: Scalar = if is_endless {
            self.leave_out(node, &format!("gone round for ever; here {WHILE_ROUNDS} times"));
            WHILE_ROUNDS.into()
        } else if let Some(times) = known.filter(|_| !loops.contains("${")) {
            (times as u64).into()
        } else {
            match self.expression(loops, node) {
                Some(expr) => Scalar::from(format!("${{{}}}", number(&expr))),
                None => {
                    self.leave_out_request(node, "sent its requests so often as is known only while it runs");
                    return Vec::new();
                }
            }
        };
        let round = self.own_name("round");
        self.group.loops.push(round.clone());
        let steps = self.inner(&node.children, scope, known.filter(|times| *times >= 0.0));
        self.group.loops.pop();
        self.around("repeat", times.into(), steps, Some(round))
    }

    /// A step with others in it; nothing where there are none.
    fn around(&mut self, verb: &str, value: Value, steps: Vec<Step>, counts: Option<String>) -> Vec<Step> {
        if steps.is_empty() {
            return steps;
        }
        let mut map = Map::from([(verb, value)]);
        if let Some(round) = counts.filter(|round| super::group::names(&steps, round)) {
            map.insert("as", round);
        }
        map.insert("steps", values(steps));
        vec![Step::Other(map)]
    }

    /// Steps under a condition, and what has to be set before it.
    pub(super) fn conditional(&mut self, condition: &str, steps: Vec<Step>) -> Vec<Step> {
        self.around("when", format!("${{{condition}}}").into(), steps, None)
    }

    fn when(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let before = std::mem::take(&mut self.before);
        let text = node.text("IfController.condition");
        let condition = self.condition(text, node.flag("IfController.useExpression"), node);
        let mut steps = std::mem::replace(&mut self.before, before);
        let Some(condition) = condition else {
            let would = format!("sent its requests only where this holds: {}", super::shown(text));
            self.leave_out_request(node, &would);
            return Vec::new();
        };
        let inner = self.inner(&node.children, scope, None);
        if node.flag("IfController.evaluateAll") && inner.len() > 1 {
            self.leave_out(node, "asked its condition anew before each request in it");
        }
        steps.extend(self.conditional(&condition, inner));
        steps
    }

    fn while_it_holds(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let text = node.text("WhileController.condition").trim();
        let before = std::mem::take(&mut self.before);
        // anything but "false" goes on
        let condition = match text {
            "" | "LAST" => None,
            _ => {
                let is_code = ["${__groovy(", "${__jexl3(", "${__jexl2(", "${__javaScript("]
                    .iter()
                    .any(|begin| text.starts_with(begin));
                match is_code {
                    true => self.condition(text, true, node),
                    false => self
                        .expression(text, node)
                        .map(|expr| format!("lower(text({})) != 'false'", expr.text)),
                }
            }
        };
        let steps = std::mem::replace(&mut self.before, before);
        // what is drawn anew could hold again once it did not
        let is_fickle = |condition: &String| {
            ["random(", "now(", "count(", "next(", "pick("].iter().any(|sign| condition.contains(sign))
        };
        let Some(condition) = condition.filter(|condition| !is_fickle(condition) && steps.is_empty()) else {
            let why = if text.is_empty() || text == "LAST" {
                "until one of them fails".to_owned()
            } else {
                format!("as long as this holds: {}", super::shown(text))
            };
            self.leave_out_request(node, &format!("sent its requests {why}"));
            return Vec::new();
        };
        let round = self.own_name("round");
        self.group.loops.push(round.clone());
        let inner = self.inner(&node.children, scope, None);
        self.group.loops.pop();
        if inner.is_empty() {
            return inner;
        }
        self.note(format!("{}: it goes round {WHILE_ROUNDS} times at most", node.title()));
        let inner = self.conditional(&condition, inner);
        self.around("repeat", WHILE_ROUNDS.into(), inner, Some(round))
    }

    fn once_only(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let inner = self.inner(&node.children, scope, Some(0.0));
        match self.group.loops.last().cloned() {
            Some(round) => self.conditional(&format!("{round} == 0"), inner),
            None => inner,
        }
    }

    fn foreach(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let input = node.text("ForeachController.inputVal").trim();
        let item = self.slot(node.text("ForeachController.returnVal"));
        let from = self.number(node.text("ForeachController.startIndex").trim(), node);
        let to = self.number(node.text("ForeachController.endIndex").trim(), node);
        let round = self.own_name("round");
        let list = self.variables.get(input).filter(|variable| variable.holds == Holds::List).cloned();
        let has_separator = node.text("ForeachController.useSeparator").trim() != "false";
        if let Some(list) = list.filter(|_| has_separator) {
            self.group.loops.push(round.clone());
            let mut inner = self.inner(&node.children, scope, None);
            self.group.loops.pop();
            if inner.is_empty() {
                return inner;
            }
            let mut map = Map::from([("each", format!("{item} in ${{{}}}", list.name))]);
            if let Some(to) = to.filter(|to| *to > 0.0) {
                map.insert("limit", to as u64);
            }
            let skipped = from.filter(|from| *from > 0.0).map(|from| from as u64);
            if super::group::names(&inner, &round) || skipped.is_some() {
                // the language has no number for each: a variable counts
                inner.push(set(&round, &format!("{round} + 1")));
                if let Some(from) = skipped {
                    let last = inner.pop();
                    inner = self.conditional(&format!("{round} >= {from}"), inner);
                    inner.extend(last);
                }
                map.insert("steps", values(inner));
                return vec![set(&round, "0"), Step::Other(map)];
            }
            map.insert("steps", values(inner));
            return vec![Step::Other(map)];
        }
        // user variables name_1, name_2, …
        let separator = if has_separator { "_" } else { "" };
        let first = from.unwrap_or(0.0) as usize + 1;
        let last = to.filter(|to| *to > 0.0).map_or(first + EACH_MAX, |to| to as usize);
        let names = (first..=last).map(|at| format!("{input}{separator}{at}"));
        let found: Vec<String> = names
            .take_while(|name| self.user_variables.contains_key(name) || self.variables.contains_key(name))
            .collect();
        if found.is_empty() {
            let name = super::shown(input);
            self.leave_out_request(
                node,
                &format!("sent its requests for each of {name}_1, {name}_2 and so on"),
            );
            return Vec::new();
        }
        let mut steps = Vec::new();
        for name in found {
            let Some(expr) = self.variable(&name, node, 0) else { continue };
            steps.push(set(&item, &expr.text));
            steps.extend(self.inner(&node.children, scope, Some(1.0)));
        }
        steps
    }

    fn share(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let is_percent = node.text("ThroughputController.style").trim() == "1";
        let written = match is_percent {
            true => node.text("ThroughputController.percentThroughput"),
            false => node.text("ThroughputController.maxThroughput"),
        };
        let Some(much) = self.number(written, node).filter(|much| *much >= 0.0) else {
            self.leave_out_request(
                node,
                "sent its requests in a share of rounds that is known only while it runs",
            );
            return Vec::new();
        };
        let times = if is_percent { Some(much.min(100.0) / 100.0) } else { None };
        let inner = self.inner(&node.children, scope, times);
        if is_percent {
            return match much {
                much if much >= 100.0 => inner,
                much if much <= 0.0 => Vec::new(),
                much => self.around("sometimes", Scalar::from(Share(much / 100.0)).into(), inner, None),
            };
        }
        if inner.is_empty() {
            return inner;
        }
        // so many passes, of each thread or of all together
        let much = much as u64;
        let passes = self.own_name("passes");
        let count = match node.flag("ThroughputController.perThread") {
            true => format!("default({passes}, -1) + 1"),
            false => {
                let counter = self.counter(&format!("passes {}", node.element.line));
                format!("count({counter})")
            }
        };
        let mut steps = vec![set(&passes, &count)];
        steps.extend(self.conditional(&format!("{passes} < {much}"), inner));
        steps
    }

    fn transaction(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let name = self.label_of(node);
        if self.group.groups >= GROUPS_MAX {
            self.leave_out(node, &format!("timed it as a whole; groups are at most {GROUPS_MAX} deep"));
            return self.inner(&node.children, scope, Some(1.0));
        }
        self.group.groups += 1;
        let inner = self.inner(&node.children, scope, Some(1.0));
        self.group.groups -= 1;
        let has_pause = super::group::names(&inner, "think");
        if has_pause && !node.flag("TransactionController.includeTimers") {
            self.note(format!("{}: pauses between its requests count in its time here", node.title()));
        }
        self.around("group", name.into(), inner, None)
    }

    fn label_of(&mut self, node: &Node<'_>) -> String {
        let known = self.known(node.name(), node).unwrap_or_else(|| node.name().to_owned());
        let name = super::shown(&known);
        if name.is_empty() { "transaction".into() } else { verbatim(&name) }
    }

    /// Children that send something, each with its steps.
    fn ways(
        &mut self,
        node: &'a Node<'a>,
        scope: &Scope<'a>,
        times: Option<f64>,
    ) -> (Vec<Step>, Vec<(String, Vec<Step>)>) {
        let scope = scope.with(&node.children);
        let first = self.steps_of_round(&node.children);
        let mut ways = Vec::new();
        self.group.weights.push(times);
        for child in &node.children {
            let steps = self.step(child, &scope);
            if !steps.is_empty() {
                ways.push((child.name().to_owned(), steps));
            }
        }
        self.group.weights.pop();
        (first, ways)
    }

    /// One of the children each time: any, or one after the other.
    fn one_of(&mut self, node: &'a Node<'a>, scope: &Scope<'a>, is_random: bool) -> Vec<Step> {
        let style = node.text("InterleaveControl.style").trim();
        let senders =
            node.children.iter().filter(|child| child.is_enabled() && is_or_has_sampler(child)).count();
        let has_controllers =
            node.children.iter().any(|child| child.is_enabled() && child.kind().ends_with("Controller"));
        let share = 1.0 / senders.max(1) as f64;
        let (mut steps, ways) = self.ways(node, scope, Some(share));
        if has_controllers && style != "1" && !ways.is_empty() {
            self.note(format!(
                "{}: a controller in it is one way, done whole; without \"ignore sub-controller blocks\" JMeter does one of its samplers each time",
                node.title()
            ));
        }
        if ways.len() < 2 {
            steps.extend(ways.into_iter().flat_map(|(_, steps)| steps));
            return steps;
        }
        let is_own = !is_random && self.group.is_thread && !node.flag("InterleaveControl.accrossThreads");
        if !is_own {
            let ways = ways.into_iter().map(|(_, steps)| Way { steps, ..Way::default() }).collect();
            let order = (!is_random).then(|| "in turn".into());
            steps.push(Choose { ways, order, ..Choose::default() }.into());
            return steps;
        }
        let (turn, count) = (self.own_name("turn"), ways.len());
        steps.push(set(&turn, &format!("default({turn}, -1) + 1")));
        for (at, (_, inner)) in ways.into_iter().enumerate() {
            steps.extend(self.conditional(&format!("{turn} % {count} == {at}"), inner));
        }
        steps
    }

    fn any_order(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let visits = self.visits;
        let (mut steps, ways) = self.ways(node, scope, Some(1.0));
        let ways: Vec<Vec<Step>> = ways.into_iter().map(|(_, steps)| steps).collect();
        let orders = if ways.len() > ORDERED_MAX { Vec::new() } else { orders(ways.len()) };
        if !self.may_copy(visits, orders.len()) {
            self.leave_out(node, "sent its requests in a random order; here in that of the plan");
            steps.extend(ways.into_iter().flatten());
            return steps;
        }
        if orders.len() < 2 {
            steps.extend(ways.into_iter().flatten());
            return steps;
        }
        let way = |order: &Vec<usize>| {
            let steps = order.iter().flat_map(|at| ways[*at].clone()).collect();
            Way { steps, ..Way::default() }
        };
        steps.push(Choose { ways: orders.iter().map(way).collect(), ..Choose::default() }.into());
        steps
    }

    /// Whether what was made since so many visits may stand there so often; the copies count as visits.
    fn may_copy(&mut self, since: usize, times: usize) -> bool {
        let Some(more) = times.checked_sub(1) else { return false };
        let copied = self.visits.saturating_sub(since).saturating_mul(more);
        let may = self.visits + copied <= STEPS_MAX || more == 0;
        if may {
            self.visits += copied;
        }
        may
    }

    fn switched(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let before = std::mem::take(&mut self.before);
        let value = self.expression(node.text("SwitchController.value").trim(), node);
        let mut steps = std::mem::replace(&mut self.before, before);
        let Some(value) = value else {
            self.leave_out_request(node, "sent the request that its value names");
            return Vec::new();
        };
        let visits = self.visits;
        let (first, ways) = self.ways(node, scope, None);
        steps.extend(first);
        if ways.is_empty() {
            return steps;
        }
        // a value that draws is drawn once
        let chosen = self.own_name("chosen");
        steps.push(set(&chosen, &value.text));
        let count = ways.len();
        let mut known = Vec::new();
        let mut other: Option<Vec<Step>> = None;
        for (at, (name, inner)) in ways.into_iter().enumerate() {
            let name = name.trim();
            let by_name = format!("{chosen} == {}", quoted(name));
            let mut condition = match at {
                // what is beyond the last means the first
                0 => {
                    let beyond = format!("default(number({chosen}), 0) >= {count}");
                    format!("{chosen} == 0 or {chosen} == '' or {by_name} or {beyond}")
                }
                _ => format!("{chosen} == {at} or {by_name}"),
            };
            if name.parse::<u64>().is_ok() && at > 0 {
                condition = format!("{chosen} == {at}");
            }
            known.push(condition.clone());
            if name.eq_ignore_ascii_case("default") {
                if self.may_copy(visits, 2) {
                    other = Some(inner.clone());
                } else {
                    self.leave_out_request(node, "sent its default for every other value");
                }
            }
            steps.extend(self.conditional(&condition, inner));
        }
        if let Some(other) = other {
            let condition = format!("not ({})", known.join(" or "));
            steps.extend(self.conditional(&condition, other));
        }
        steps
    }

    fn module(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let path: Vec<&str> =
            node.list("ModuleController.node_path").iter().map(|part| part.text.as_str()).collect();
        let trees = self.trees;
        // names from the plan down; the first may be of JMeter's own tree
        let plans: Vec<&'a Node<'a>> = trees.main().iter().collect();
        let found = (0..path.len().min(2)).find_map(|skip| named(&plans, &path[skip..]));
        match found {
            Some(target) => {
                let inside = scope.with(&node.children);
                if target.kind() == "TestFragmentController" {
                    self.steps(&target.children, &inside)
                } else {
                    self.step_enabled(target, &inside)
                }
            }
            None => {
                let name = path.last().map(|name| super::shown(name)).unwrap_or_default();
                self.leave_out_request(
                    node,
                    &format!("done the module \"{name}\", which is not in the plan"),
                );
                Vec::new()
            }
        }
    }

    fn included(&mut self, node: &'a Node<'a>, scope: &Scope<'a>) -> Vec<Step> {
        let path = tree::property(node.element, "IncludeController.includepath").unwrap_or_default();
        let trees = self.trees;
        let Some(included) = trees.included(path) else {
            let would = format!(
                "done what the plan {} says, which cannot be read in this plan's folder",
                super::shown(path)
            );
            self.leave_out_request(node, &would);
            return Vec::new();
        };
        let mut steps = Vec::new();
        for plan in included.iter().filter(|plan| plan.is_enabled()) {
            let children =
                if plan.kind() == "TestPlan" { &plan.children[..] } else { std::slice::from_ref(plan) };
            let inside = scope.with(&node.children).with(children);
            for child in children.iter().filter(|child| child.is_enabled()) {
                match child.kind() {
                    "TestFragmentController" => steps.extend(self.steps(&child.children, &inside)),
                    kind if super::group::is_group(kind) => {}
                    _ => steps.extend(self.step(child, &inside)),
                }
            }
        }
        steps
    }
}

/// The element that names lead to.
fn named<'a>(nodes: &[&'a Node<'a>], path: &[&str]) -> Option<&'a Node<'a>> {
    let (first, rest) = path.split_first()?;
    nodes.iter().filter(|node| node.name() == *first).find_map(|node| match rest {
        [] => Some(*node),
        rest => named(&node.children.iter().collect::<Vec<_>>(), rest),
    })
}

/// All orders of so many.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..count {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, next);
                longer
            })
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}
