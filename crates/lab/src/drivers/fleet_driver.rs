//! Agents that drive, as one driver.
//!
//! An agent that is gone hands nothing over any more. What was due at it from then on was never sent, and counts so; or the
//! others [take its share over](OnLoss::Rebalance), and only what was due until then is never sent.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_drive::{DriveEnd, PhaseTimes, Share, never_sent};
use tidemark_fleet::split::deal;
use tidemark_fleet::{
    AGENT_ALONE_AFTER, AGENT_CUT_AFTER, AGENT_DISCONNECTED_AFTER, AGENT_FENCED_AFTER, AGENT_LOST_AFTER,
    AGENT_REPLACED_AFTER, Coordinator, TakeOver,
};
use tidemark_record::{Before, Event, Handover, IntervalSums, Packed, SECOND_US, ThreadInterval};
use tidemark_scenario::Plan;

use super::fleet::{OnLoss, THREADS_MAX};
use super::fleet_agent::READY;
use super::fleet_member::{Agent, LostThread, Part};
use super::{Driver, Ended, Handed, TakenOver, add};
use crate::error::LabError;
use crate::timetable::microseconds;

/// Between the moment at which a share is given to others and the second from which they have it: they hear of it, and begin.
const TAKEN_AFTER_US: u64 = SECOND_US / 2;
/// Only an agent of which something came within this time takes threads over: it hands over once a second.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn read(message: &[u8]) -> Result<Handover<Packed<'_>>, String> {
    Handover::packed(message).map_err(|error| format!("what it hands over cannot be read: {error}"))
}

/// Agents that drive.
pub(super) struct Fleet {
    pub(super) agents: Vec<Agent>,
    pub(super) phases: Vec<PhaseTimes>,
    pub(super) share: Share,
    pub(super) coordinator: Coordinator,
    pub(super) plan: Arc<Plan>,
    pub(super) seed: u64,
    pub(super) epoch: Instant,
    /// When NATS could be reached last after it could not.
    pub(super) connected: Instant,
    /// Since when there is none.
    pub(super) away_since: Option<Instant>,
    /// What is to be told next.
    pub(super) told: VecDeque<Handed>,
    /// What agents did in seconds that are not whole.
    pub(super) sums: IntervalSums,
    /// What was due at agents that are gone, in order of time.
    pub(super) never_sent: VecDeque<ThreadInterval>,
    pub(super) stopped: bool,
    pub(super) on_loss: OnLoss,
    /// The number that the next thread gets which is taken over.
    pub(super) next_number: usize,
    /// The number of the next take-over.
    pub(super) next_take_over: u64,
    /// Why it could not be written down what another coordinator needs, if so: the run ends then.
    pub(super) unwritten: Option<String>,
    /// Who took over what.
    pub(super) notes: Vec<String>,
    /// When other coordinators went on with the run.
    pub(super) resumed: Vec<String>,
    /// Requests of the measured window that were due at agents whose share others took over, before they had it.
    pub(super) missing: u64,
    /// Where it is written down what another coordinator needs to go on.
    pub(super) run_dir: PathBuf,
    /// Where another coordinator was before: what that recorded, until all of it is told again.
    pub(super) before: Option<Before>,
    /// Messages up to this one were there then; 0 where no other was before.
    pub(super) there: u64,
    /// Whether an agent ended whose last intervals are not recorded yet. Who goes on with the run reads its end again, with them.
    pub(super) unstored_end: bool,
    /// Whether nothing came when it was waited for last.
    pub(super) idle: bool,
}

impl Fleet {
    /// What an agent handed over in the message of this number.
    fn take(&mut self, member: usize, number: u64, handover: Handover<Packed<'_>>) -> Option<Handed> {
        let agent = self.agents.get_mut(member)?;
        if !agent.is_there() {
            return None;
        }
        agent.heard = Instant::now();
        match handover {
            Handover::Interval(mut interval, part) => {
                let bounds = (interval.start_us, interval.end_us);
                let share = interval.shares.first_mut()?;
                match agent.parts.iter_mut().find_map(|part| part.note(share, bounds)) {
                    Some(true) => {}
                    // another coordinator had it
                    Some(false) => return None,
                    None => {
                        self.lose(member, "it told of a thread that it does not have".into());
                        return None;
                    }
                }
                share.ledger = part;
                let there = self.agents.iter().filter(|agent| agent.is_there());
                let threads = there.map(Agent::threads).sum();
                if let Err(reason) = self.sums.add(*interval, number, threads) {
                    self.lose(member, reason);
                }
                None
            }
            Handover::Event(event) if event.kind == READY => None,
            Handover::Event(event) => {
                let text = format!("{}: {}", agent.name, event.text);
                Some(Handed::Event(Event { text, ..event }))
            }
            Handover::End(end) => {
                let was_stopped = end.interrupted && !self.stopped;
                (agent.end, agent.ended_by) = (Some(*end), number);
                self.unstored_end = true;
                if was_stopped {
                    self.lose_ended(member, "it was stopped".into());
                }
                None
            }
            // what it said to another coordinator
            Handover::Hello(_) if self.there > 0 => None,
            Handover::NotTaken(number, reason) => {
                self.not_taken(member, number.into(), &reason);
                None
            }
            // what it took over may still go on
            Handover::Error(reason) if agent.parts.len() > 1 => {
                self.lose(member, reason);
                None
            }
            Handover::Error(reason) => {
                self.lose_ended(member, reason);
                None
            }
            Handover::Hello(_) | Handover::Traced(_) => {
                self.lose(member, "it began anew".into());
                None
            }
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        microseconds(self.epoch.elapsed())
    }

    pub(super) fn tell(&mut self, text: String) {
        let at_us = self.now_us() as i64;
        self.told.push_back(Handed::Event(Event { at_us, kind: "agent".into(), text }));
    }

    /// An agent hands nothing over any more, and may still send until its fence.
    fn lose(&mut self, member: usize, reason: String) {
        let since_zero = self.agents[member].heard.saturating_duration_since(self.epoch);
        self.give_up(member, reason, microseconds(since_zero + AGENT_FENCED_AFTER));
    }

    /// An agent said that it ended before its time.
    fn lose_ended(&mut self, member: usize, reason: String) {
        if let Some(end) = &mut self.agents[member].end {
            // the run goes on
            (end.interrupted, end.phases) = (false, self.phases.clone());
        }
        self.give_up(member, reason, 0);
    }

    /// What is due at an agent from its last interval on is never sent, or taken over: not before its fence, microseconds since
    /// the run began.
    fn give_up(&mut self, member: usize, reason: String, fence_us: u64) {
        let agent = &mut self.agents[member];
        let (name, last_us) = (agent.name.clone(), agent.last_us());
        agent.lost = Some(reason.clone());
        let parts = agent.parts.clone();
        let lost: Vec<LostThread> = parts.iter().flat_map(Part::lost).collect();
        if self.stopped {
            self.coordinator.give_up(member, &[]);
            self.tell(format!("{name} is lost: {reason}"));
            return self.store();
        }
        let (taken, from_us) = self.dealt_anew(&lost, fence_us);
        self.agents[member].until_us = from_us;
        let never = self.give_up_due(&parts, from_us);
        let from = last_us as f64 / 1e6;
        if taken.is_empty() {
            self.tell(format!(
                "{name} is lost: {reason}; what was due at it from {from:.1}s on is never sent"
            ));
        } else {
            self.agents[member].replaced = true;
            let takers = self.hand_on(&taken);
            self.tell(format!(
                "agent {name} lost, its share taken over by {takers} from {:.1}s on: {reason}; what was due at it from \
                 {from:.1}s until then is never sent",
                from_us as f64 / 1e6
            ));
            self.note(&name, from, &taken);
            self.missing += never;
        }
        // who goes on with the run must know of all that agents hear
        if self.store_as(self.coordinator.left().giving_up(member, &taken)) {
            self.coordinator.give_up(member, &taken);
        }
    }

    /// What was due at these threads, from their last intervals until others have them, is never sent. How much of it was due
    /// within the measured window.
    pub(super) fn give_up_due(&mut self, parts: &[Part], until_us: u64) -> u64 {
        let mut never = Vec::new();
        for part in parts {
            if part.open > 0 {
                // nobody knows what became of them
                let thread = u16::try_from(part.number).unwrap_or(u16::MAX);
                // within what the thread told of: all behind that is still to come
                let told_us = part.told_us.first().map_or(1, |us| (*us).max(1));
                let mut unknown = ThreadInterval::empty(thread, told_us - 1, told_us);
                (unknown.dropped, unknown.measured_dropped) = (part.open, part.open);
                never.push(unknown);
            }
            let threads = part.lost().zip(part.number..);
            let times: Vec<(usize, usize, Range<u64>)> =
                threads.map(|((thread, told_us), number)| (thread, number, told_us..until_us)).collect();
            never.extend(never_sent(&self.plan, self.seed, self.share, &times));
        }
        let count = never.iter().map(|interval| interval.measured_dropped).sum();
        self.never_sent.extend(never);
        self.never_sent.make_contiguous().sort_by_key(|interval| interval.end_us);
        count
    }

    /// Deals threads of an agent that is lost out to those that are left, and from when on they have them: after its fence.
    /// Nothing where nobody is to have them, or can.
    fn dealt_anew(&self, lost: &[LostThread], fence_us: u64) -> (Vec<TakeOver>, u64) {
        let from_us = (self.now_us() + TAKEN_AFTER_US).max(fence_us).div_ceil(SECOND_US) * SECOND_US;
        let is_over = self.phases.last().is_none_or(|last| last.end_us <= from_us);
        let nothing = (Vec::new(), u64::MAX);
        if self.on_loss != OnLoss::Rebalance || is_over || self.next_number + lost.len() > THREADS_MAX {
            return nothing;
        }
        // one that is silent may be about to be lost, too
        let is_there = |member: &usize| {
            let agent = &self.agents[*member];
            agent.is_there() && agent.heard.elapsed() < HEARD_WITHIN
        };
        let mut takers: Vec<usize> = (0..self.agents.len()).filter(is_there).collect();
        if takers.is_empty() {
            return nothing;
        }
        // who has fewest comes first, and gets one more than others where the threads cannot be dealt out evenly
        takers.sort_by_key(|member| self.agents[*member].threads());
        let mut taken: Vec<TakeOver> = Vec::new();
        let mut number = self.next_number;
        let parts = deal(&vec![lost.len(); takers.len()], lost.len());
        for (member, part) in takers.into_iter().zip(parts) {
            let begin = taken.len();
            for (thread, _) in &lost[part] {
                match taken[begin..].last_mut() {
                    Some(last) if last.first + last.threads == *thread => last.threads += 1,
                    _ => {
                        let id = self.next_take_over + taken.len() as u64;
                        taken.push(TakeOver { id, member, first: *thread, threads: 1, number, from_us });
                    }
                }
                number += 1;
            }
        }
        (taken, from_us)
    }

    /// Notes who has threads from now on; their names.
    fn hand_on(&mut self, taken: &[TakeOver]) -> String {
        let mut names: Vec<String> = Vec::new();
        for of in taken {
            let agent = &mut self.agents[of.member];
            agent.parts.push(Part {
                threads: of.first..of.first + of.threads,
                number: of.number,
                told_us: vec![of.from_us; of.threads],
                taken_us: Some(of.from_us),
                open: 0,
            });
            self.next_take_over = self.next_take_over.max(of.id + 1);
            self.next_number = self.next_number.max(of.number + of.threads);
            if !names.contains(&agent.name) {
                names.push(agent.name.clone());
            }
        }
        in_words(&names)
    }

    fn note(&mut self, lost: &str, told_s: f64, taken: &[TakeOver]) {
        let all: Vec<String> = taken
            .iter()
            .map(|of| {
                let name = &self.agents[of.member].name;
                format!("{name} {} as {}", threads(of.first, of.threads), threads(of.number, of.threads))
            })
            .collect();
        let from_s = taken.first().map_or(0.0, |of| of.from_us as f64 / 1e6);
        self.notes.push(format!(
            "agent {lost} was lost: from {from_s:.1}s on others had its share ({}); what was due at it from {told_s:.1}s until then \
             counts as never sent",
            all.join(", ")
        ));
    }

    /// Threads that an agent was to take over are nobody's.
    fn not_taken(&mut self, member: usize, number: usize, reason: &str) {
        let agent = &mut self.agents[member];
        let Some(at) = agent.parts.iter().position(|part| part.number == number && part.taken_us.is_some())
        else {
            return self.lose(member, "it gave up threads that it does not have".into());
        };
        let part = agent.parts.remove(at);
        let from_us = part.told_us.iter().copied().max().unwrap_or(0);
        let text = format!(
            "{} could not go on with {}: {reason}; what was due at them from {:.1}s on is never sent",
            agent.name,
            threads(part.number, part.threads.len()),
            from_us as f64 / 1e6
        );
        self.tell(text);
        // nobody has all of what was lost
        self.agents.iter_mut().for_each(|agent| agent.replaced = false);
        if !self.stopped {
            self.give_up_due(&[part], u64::MAX);
        }
        self.store();
    }

    /// What is to be handed on now.
    fn ready(&mut self) -> Option<Handed> {
        let told = self.again().or_else(|| self.told.pop_front());
        told.or_else(|| self.due().or_else(|| self.sums.next_whole()).map(Handed::Interval))
    }

    fn is_over(&self) -> bool {
        self.agents.iter().all(|agent| !agent.is_there())
    }

    /// Whether all that an agent handed over before its end is recorded.
    pub(super) fn is_recorded(&self, agent: &Agent) -> bool {
        self.sums.first_message().is_none_or(|first| first > agent.ended_by)
    }

    /// What was never sent by now; all of it once nobody drives any more and the load is over.
    fn due(&mut self) -> Option<ThreadInterval> {
        let now_us = self.now_us();
        let is_due = self.never_sent.front().is_some_and(|interval| interval.end_us <= now_us);
        if is_due { self.never_sent.pop_front() } else { None }
    }

    /// Finds agents of which nothing was heard for too long.
    fn mind(&mut self) {
        if !self.coordinator.is_connected() {
            self.connected = Instant::now();
            let away_since = *self.away_since.get_or_insert(self.connected);
            // agents have stopped by themselves
            if away_since.elapsed() > AGENT_CUT_AFTER + AGENT_ALONE_AFTER {
                for member in 0..self.agents.len() {
                    if self.agents[member].is_there() {
                        let away = away_since.elapsed().as_secs();
                        self.lose(member, format!("there is no connection to NATS for {away} s"));
                    }
                }
            }
            return;
        }
        self.away_since = None;
        let lost_after =
            if self.on_loss == OnLoss::Rebalance { AGENT_REPLACED_AFTER } else { AGENT_LOST_AFTER };
        for member in 0..self.agents.len() {
            let agent = &self.agents[member];
            if agent.is_there() && !agent.drives && self.idle && self.coordinator.has_read(self.there) {
                let reason = format!(
                    "it stopped after {} s without a coordinator; its figures end at {:.1}s",
                    AGENT_ALONE_AFTER.as_secs(),
                    agent.last_us() as f64 / 1e6
                );
                self.lose(member, reason);
                continue;
            }
            let silent = agent.heard.max(self.connected).elapsed();
            let is_killed = silent > AGENT_DISCONNECTED_AFTER
                && self.connected < agent.heard
                && self.coordinator.is_absent(member);
            if !agent.is_there() || (silent < lost_after && !is_killed) {
                continue;
            }
            // what waits to be taken is no silence; where NATS says nothing of it, that is not waited for without end
            if silent < lost_after * 2 && !self.coordinator.has_told_all_of(member) {
                continue;
            }
            if is_killed {
                let reason =
                    format!("its connection to NATS is gone for {} s", AGENT_DISCONNECTED_AFTER.as_secs());
                self.give_up(member, reason, 0);
            } else {
                self.lose(member, format!("nothing came from it for {} s", lost_after.as_secs()));
            }
        }
    }
}

/// `thread 3`, or `threads 3 to 5`.
fn threads(first: usize, count: usize) -> String {
    match count {
        1 => format!("thread {first}"),
        _ => format!("threads {first} to {}", (first + count).saturating_sub(1)),
    }
}

/// Why a run is no pass in which these were lost, whose share others took over. `ended`: each of them said that it ended.
fn taken_over(names: &[String], ended: bool) -> String {
    let (agents, share, sent) = match names {
        [one] => (format!("agent {one} was"), "its share", "what it sent after its last report"),
        _ => (
            format!("agents {} were", in_words(names)),
            "their share",
            "what they sent after their last reports",
        ),
    };
    let missing =
        if ended { "what was due in between was never sent".into() } else { format!("{sent} is not known") };
    format!("{agents} lost and others took {share} over; {missing}")
}

/// `a`, `a and b`, `a, b and c`.
fn in_words(names: &[String]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

impl Driver for Fleet {
    fn phases(&self) -> &[PhaseTimes] {
        &self.phases
    }

    fn next(&mut self, within: Duration) -> Handed {
        let until = Instant::now() + within;
        let mut minded = false;
        loop {
            if let Some(told) = self.ready() {
                return told;
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.is_over() {
                let rest = self.sums.take_first().map(Handed::Interval);
                if rest.is_some() || self.never_sent.is_empty() || self.stopped {
                    return rest.unwrap_or(Handed::Over);
                }
                std::thread::sleep(left);
                return Handed::Nothing;
            }
            // not for each message: there may be a thousand agents
            if !std::mem::replace(&mut minded, true) {
                self.mind();
            }
            // what was handed on before is recorded by now
            if self.unstored_end && self.agents.iter().all(|agent| self.is_recorded(agent)) {
                self.unstored_end = false;
                self.store();
            }
            self.coordinator.done(self.sums.first_message());
            let told = self.coordinator.next(left);
            self.idle = told.is_err();
            let Ok((member, message)) = told else { return Handed::Nothing };
            let number = self.coordinator.told();
            let handover = message.as_deref().map_err(String::clone).and_then(read);
            match handover {
                Ok(handover) => {
                    let told = self.take(member, number, handover);
                    self.told.extend(told);
                }
                Err(reason) => self.lose(member, reason),
            }
        }
    }

    fn recycle(&mut self, _: ThreadInterval) {}

    fn stop(&mut self) {
        self.stopped = true;
        self.never_sent.clear();
        self.coordinator.stop();
    }

    fn abort(&mut self) {
        self.stopped = true;
        self.never_sent.clear();
        self.coordinator.abort();
    }

    fn end(self: Box<Self>) -> Result<Ended, LabError> {
        let Fleet { agents, phases, coordinator, notes, resumed, missing, unwritten, .. } = *self;
        drop(coordinator);
        if let Some(error) = unwritten {
            return Err(LabError::Measure(error));
        }
        let last_us = agents.iter().map(Agent::last_us).max().unwrap_or(0);
        let lost = agents.iter().filter(|agent| !agent.replaced);
        let lost = lost.filter_map(|agent| Some(format!("agent {}: {}", agent.name, agent.lost.as_ref()?)));
        let lost: Vec<String> = lost.collect();
        let broke = (!lost.is_empty()).then(|| lost.join("; "));
        let replaced = || agents.iter().filter(|agent| agent.replaced);
        let names: Vec<String> = replaced().map(|agent| agent.name.clone()).collect();
        let reason = taken_over(&names, replaced().all(|agent| agent.end.is_some()));
        let taken_over = (!names.is_empty()).then_some(TakenOver { reason, never_sent: missing });
        let resumed = (!resumed.is_empty()).then(|| resumed.join("; "));
        let told = agents.iter().map(Agent::figures).collect();
        let mut ends = agents.into_iter().filter_map(|agent| agent.end);
        let mut end = ends.next().unwrap_or_else(|| {
            let mut phases = phases;
            phases.retain(|phase| phase.start_us < last_us);
            phases.iter_mut().for_each(|phase| phase.end_us = phase.end_us.min(last_us));
            DriveEnd { phases, ended_us: last_us, ..DriveEnd::default() }
        });
        ends.for_each(|one| add(&mut end, one));
        Ok(Ended { end, broke, taken_over, resumed, agents: told, notes })
    }
}
