//! Requests: whatever is sent and gets an answer, by whichever protocol, and their labels.

use super::tags::{self, Tags};
use std::time::Duration;

use super::Session;
use super::targets::Aim;
use crate::language::Defaults;
use crate::plan::{
    CodePlan, GrpcStep, LABEL_BYTES, LABELS_MAX, LedgerPlan, METRICS_MAX, MetricKind, MetricPlan, Op,
    RequestKind, RequestPlan, SYSTEM_TARGET, Source,
};
use crate::sink::Sink;
use crate::steps::Step;
use crate::units::Size;
use crate::yaml::{Node, Position};

/// Longest time for an answer where a scenario says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A request's label.
pub(crate) struct Label {
    pub(super) name: String,
    position: Position,
    reachable: bool,
    /// What stands beside it in results; where it was said first.
    tags: Option<(Tags, Position)>,
}

/// All requests of a scenario.
pub(crate) struct Requests {
    pub(super) labels: Vec<Label>,
    /// Whether there are more than can be.
    has_too_many: bool,
    /// Names of groups of steps.
    pub(super) groups: Vec<String>,
    /// What is measured beside.
    pub(super) metrics: Vec<MetricPlan>,
    /// Code of the sessions.
    pub(crate) codes: Vec<CodePlan>,
    pub(super) plans: Vec<RequestPlan>,
    /// Where each stands.
    pub(super) places: Vec<Position>,
    /// Where each is to go.
    pub(super) aims: Vec<Aim>,
    /// Of each session, its requests: the operation, and where it stands.
    pub(super) uses: Vec<Vec<(usize, Position)>>,
    pub(crate) default_headers: Vec<(Node, Node)>,
    pub(crate) default_auth: Option<Node>,
    pub(crate) default_follow: Option<Node>,
    default_timeout: Duration,
}

impl Requests {
    pub(super) fn new(defaults: &Defaults<'_>) -> Self {
        Requests {
            labels: Vec::new(),
            has_too_many: false,
            groups: Vec::new(),
            metrics: Vec::new(),
            codes: Vec::new(),
            plans: Vec::new(),
            places: Vec::new(),
            aims: Vec::new(),
            uses: Vec::new(),
            default_headers: defaults.headers.value.map_or(&[][..], Node::entries).to_vec(),
            default_auth: defaults.auth.value.cloned(),
            default_follow: defaults.follow.value.cloned(),
            default_timeout: defaults.timeout.value.unwrap_or(TIMEOUT),
        }
    }

    /// Where the first request stands that goes to the system and is such a one.
    pub(crate) fn first(&self, is_one: impl Fn(&RequestKind) -> bool) -> Option<Position> {
        self.first_to(0, is_one)
    }

    /// The same of a target; 0 is the system.
    pub(crate) fn first_to(&self, target: usize, is_one: impl Fn(&RequestKind) -> bool) -> Option<Position> {
        let is_there = |plan: &RequestPlan| usize::from(plan.target) == target && is_one(&plan.ask);
        let at = self.plans.iter().position(is_there)?;
        self.places.get(at).copied()
    }

    /// All requests, and where each stands.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&RequestPlan, Position)> {
        self.plans.iter().zip(self.places.iter().copied())
    }

    /// Where the first request stands that is such a one, wherever it goes.
    pub(crate) fn first_anywhere(&self, is_one: impl Fn(&RequestKind) -> bool) -> Option<Position> {
        let at = self.plans.iter().position(|plan| is_one(&plan.ask))?;
        self.places.get(at).copied()
    }

    pub(super) fn label_names(&self) -> Vec<String> {
        self.labels.iter().map(|label| label.name.clone()).collect()
    }

    /// The tags of each label.
    pub(super) fn tags(&self) -> Vec<Tags> {
        let tags = |label: &Label| label.tags.as_ref().map(|(tags, _)| tags.clone()).unwrap_or_default();
        self.labels.iter().map(tags).collect()
    }

    /// Longest time for an answer where a step does not say.
    pub(super) fn default_timeout(&self) -> Duration {
        self.default_timeout
    }

    /// A label of what a script sends. Nothing if there are too many, which is told.
    pub(super) fn label_of_script(&mut self, at: &Node, name: &str, sink: &Sink<'_>) -> Option<u16> {
        let label = self.add_label(name.to_owned(), at.position, true);
        if label.is_none() {
            sink.error(at, format!("more than {LABELS_MAX} labels"));
        }
        label
    }

    fn add_label(&mut self, name: String, position: Position, reachable: bool) -> Option<u16> {
        match self.labels.iter().position(|label| label.name == name) {
            Some(index) => {
                self.labels[index].reachable |= reachable;
                u16::try_from(index).ok()
            }
            None if self.labels.len() == LABELS_MAX => None,
            None => {
                self.labels.push(Label { name, position, reachable, tags: None });
                u16::try_from(self.labels.len() - 1).ok()
            }
        }
    }

    /// The index of the group of this name, which becomes known; none if there are too many.
    pub(crate) fn group(&mut self, name: String) -> Option<u16> {
        let known = self.groups.iter().position(|group| *group == name);
        let index = known.unwrap_or_else(|| {
            self.groups.push(name);
            self.groups.len() - 1
        });
        u16::try_from(index).ok()
    }

    /// The index of a metric of the scenario's own, which becomes known. Where it says no unit it has that of other steps.
    pub(crate) fn metric(&mut self, name: &str, kind: MetricKind, unit: &str) -> Result<u16, String> {
        let known = self.metrics.iter().position(|metric| metric.name == name);
        let index = known.unwrap_or(self.metrics.len());
        if known.is_none() {
            if index == METRICS_MAX {
                return Err(format!(
                    "this scenario measures more than {METRICS_MAX} metrics; leave some out"
                ));
            }
            self.metrics.push(MetricPlan { name: name.to_owned(), kind, unit: unit.to_owned() });
        }
        let metric = &mut self.metrics[index];
        if metric.kind != kind {
            let (there, here) = (metric.kind.name(), kind.name());
            return Err(format!(
                "\"{name}\" is a {there} at another step, and a {here} here; call one of them otherwise"
            ));
        }
        if metric.unit.is_empty() {
            unit.clone_into(&mut metric.unit);
        } else if !unit.is_empty() && metric.unit != unit {
            return Err(format!("\"{name}\" is in {} at another step, and in {unit} here", metric.unit));
        }
        Ok(index as u16)
    }

    /// Warns of labels that no session can come to.
    pub(super) fn warn_of_unreachable(&self, sink: &Sink<'_>) {
        for label in self.labels.iter().filter(|label| !label.reachable) {
            sink.warn(label.position, format!("no session ever reaches \"{}\"", label.name));
        }
    }
}

impl Session<'_, '_> {
    /// Makes a label known; nothing if there are too many.
    pub(crate) fn label(&mut self, node: &Node) -> Option<u16> {
        let name = self.reader.text(node).unwrap_or_default();
        self.requests.add_label(name, node.position, self.reachable)
    }

    /// The label of a step; words where it has none, which stand at a place.
    pub(crate) fn label_or(
        &mut self,
        step: &Step<'_>,
        at: Position,
        words: impl FnOnce() -> String,
    ) -> Option<u16> {
        let label = match step.get("label") {
            Some(node) => self.label(node),
            None => {
                let words = match step.get("at").and_then(Node::text) {
                    Some(target) if target != SYSTEM_TARGET => format!("{target} {}", words()),
                    _ => words(),
                };
                self.requests.add_label(words, at, self.reachable)
            }
        };
        if let (Some(label), Some((key, tags))) = (label, step.node.entry("tags")) {
            self.tag(label, key, tags);
        }
        // told once, as those behind it are too many, too
        if label.is_none() && !std::mem::replace(&mut self.requests.has_too_many, true) {
            let message = format!(
                "more than {LABELS_MAX} labels: each holds {} of histograms on each driving thread, {} together; give steps that \
                 are alike the same `label`",
                Size(LABEL_BYTES),
                Size(LABELS_MAX as u64 * LABEL_BYTES)
            );
            self.reader.sink.error(step.node, message);
        }
        label
    }

    /// Gives a label the tags of one of its steps; those of all are the same.
    fn tag(&mut self, label: u16, key: &Node, node: &Node) {
        let tags = tags::read(node, self.reader);
        let label = &mut self.requests.labels[usize::from(label)];
        match &label.tags {
            Some((known, at)) if *known != tags => {
                let message = format!(
                    "the label \"{}\" has other tags in line {}; give both steps the same tags, or different labels",
                    label.name, at.line
                );
                self.reader.sink.error(key, message);
            }
            Some(_) => {}
            None => label.tags = Some((tags, key.position)),
        }
    }

    pub(crate) fn timeout(&self, step: &Step<'_>) -> Duration {
        let timeout = step.get("timeout").and_then(|node| self.reader.duration(node));
        timeout.unwrap_or(self.requests.default_timeout)
    }

    /// What a step asks for and enters, with what it keeps of the answer and what must hold of that.
    pub(crate) fn request(
        &mut self,
        step: &Step<'_>,
        label: u16,
        (ask, ledger): (RequestKind, Option<LedgerPlan>),
        checks: Option<&Node>,
    ) -> RequestPlan {
        let (key, of_key) = self.key_step(step).unzip();
        let mut checks = self.checks(checks);
        checks.extend(of_key.flatten());
        RequestPlan {
            label,
            target: 0,
            ask,
            ledger,
            key,
            timeout: self.timeout(step),
            extractions: self.extractions(step.get("extract")),
            checks,
            shown_body_bytes: 0,
            follow: None,
        }
    }

    /// Where a step's request is to go. What is about a WebSocket, or an event stream, goes where that was opened.
    fn aim(&mut self, step: &Step<'_>, ask: &RequestKind) -> Aim {
        let origin = self.origin.take();
        let named = step.node.entry("at").and_then(|(key, node)| Some((key, self.reader.text(node)?)));
        let aim = match (origin, named) {
            (Some(_), Some((key, _))) => {
                self.reader.sink.error(key, "an absolute URL says where it goes; leave one of the two out");
                Aim::Open
            }
            (Some(url), None) => Aim::Origin(url, step.value.position),
            (None, Some((key, name))) => Aim::Named(name, key.position),
            (None, None) if ask.is_within_binding() => self.bound_at.clone(),
            (None, None) if matches!(ask, RequestKind::Sql(_)) => match &self.transaction {
                Some(transaction) => transaction.aim.clone(),
                None => Aim::Open,
            },
            (None, None) => Aim::Open,
        };
        if matches!(
            ask,
            RequestKind::WebSocket(_) | RequestKind::EventStream(_) | RequestKind::Grpc(GrpcStep::Open(_))
        ) && !ask.is_within_binding()
        {
            self.bound_at = aim.clone();
        }
        aim
    }

    /// Adds what a step asks for over a stream of messages that there is, and what must hold of one that comes. A message has
    /// neither a status nor cookies nor these.
    pub(crate) fn over_messages(
        &mut self,
        step: &Step<'_>,
        asks: (RequestKind, Option<LedgerPlan>),
        expected: Option<&Node>,
        nor: &str,
    ) {
        let words = || step.verb.text().unwrap_or_default().to_owned();
        let Some(label) = self.label_or(step, step.node.position, words) else { return };
        let plan = self.request(step, label, asks, expected);
        if let Some(extract) = step.get("extract") {
            let no_message =
                |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Status);
            if expected.is_none() {
                self.reader.sink.error(extract, "there is no message to extract from without expect");
            } else if plan.extractions.iter().any(|extraction| no_message(&extraction.source)) {
                let message = format!("a message has neither status nor {nor} nor cookies");
                self.reader.sink.error(extract, message);
            }
        }
        self.push_request(step, plan);
    }

    /// Adds a request, and the operation that it is done with.
    pub(crate) fn push_request(&mut self, step: &Step<'_>, plan: RequestPlan) {
        let Ok(index) = u16::try_from(self.requests.plans.len()) else {
            return self.reader.sink.error(step.node, "this scenario has too many requests");
        };
        let aim = self.aim(step, &plan.ask);
        self.requests.aims.push(aim);
        self.requests.plans.push(plan);
        self.requests.places.push(step.node.position);
        self.connection_uses.push((self.ops.len(), step.node.position));
        self.ops.push(Op::Request(index));
        if let Some(metrics) = step.get("measure") {
            self.measure(metrics, true);
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.failures.push(self.ops.len());
            self.ops.push(Op::JumpUnlessGood(0));
        }
    }

    /// Where the last request goes.
    pub(crate) fn last_aim(&self) -> Aim {
        self.requests.aims.last().cloned().unwrap_or(Aim::Open)
    }
}
