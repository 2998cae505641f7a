//! The way of a request: it calls, reaches an instance, waits, is worked on, calls others, and is answered.
//!
//! What goes well goes on at once where no time passes; each failure is an event of its own, so that no chain of them is
//! nested.

use super::state::{CLIENT, Edge, NONE, Stage, Visit};
use super::{Batch, Kind, Simulation, ns};
use crate::model::{Call, Work};

impl<'a> Simulation<'a> {
    /// The call that a visit carries out; none where it has carried out all.
    fn call_of(&self, visit: &Visit) -> Option<&'a Call> {
        match visit.tier {
            CLIENT => (visit.call == 0).then_some(&self.model.entry),
            tier => self.model.tiers[tier as usize].calls.get(visit.call as usize),
        }
    }

    fn edge(&mut self, visit: &Visit) -> &mut Edge {
        match visit.tier {
            CLIENT => &mut self.clients,
            tier => {
                &mut self.tiers[tier as usize].instances[visit.instance as usize].edges[visit.call as usize]
            }
        }
    }

    /// Begins with the first call.
    pub(super) fn begin_calls(&mut self, visit: u32) {
        self.visits[visit as usize].stage = Stage::Calling;
        self.begin_call(visit);
        self.next_call(visit);
    }

    /// Draws how many calls of this kind there are.
    fn begin_call(&mut self, visit: u32) {
        let Some(call) = self.call_of(&self.visits[visit as usize]) else { return };
        let whole = call.count.floor();
        let more = call.count > whole && self.rng.f64() < call.count - whole;
        self.visits[visit as usize].left = whole as u32 + u32::from(more);
    }

    /// Carries out the next call, or answers.
    fn next_call(&mut self, visit: u32) {
        loop {
            let of = self.visits[visit as usize];
            let Some(call) = self.call_of(&of) else { return self.answer(visit, true) };
            if of.left == 0 {
                self.visits[visit as usize].call += 1;
                self.begin_call(visit);
                continue;
            }
            if call.hit_rate > 0.0 && self.rng.f64() < call.hit_rate {
                self.visits[visit as usize].left -= 1;
                continue;
            }
            self.visits[visit as usize].failures = 0;
            return self.attempt(visit);
        }
    }

    /// An attempt of a call.
    pub(super) fn attempt(&mut self, visit: u32) {
        let now = self.now;
        self.visits[visit as usize].attempts += 1;
        let of = self.visits[visit as usize];
        let Some(call) = self.call_of(&of) else { return };
        let is_client = of.tier == CLIENT;
        let edge = self.edge(&of);
        if call.breaker.is_some() && edge.open_until > 0 {
            if now < edge.open_until || edge.tries {
                self.tiers[call.to].counted.broken += 1;
                self.visits[visit as usize].is_broken = true;
                return self.fail(visit, 0);
            }
            edge.tries = true;
        }
        let is_full = !is_client && edge.used >= call.pool;
        if is_full {
            edge.waiting.push_back((visit, of.serial, of.attempts));
        } else {
            edge.used += 1;
        }
        self.begin_timeout(visit, call);
        if !is_full {
            self.send(visit, call);
        }
    }

    /// Sends a call, for which it has a connection.
    fn send(&mut self, visit: u32, call: &Call) {
        let of = self.visits[visit as usize];
        let Some(instance) = self.tiers[call.to].choose(&mut self.rng) else {
            self.tiers[call.to].counted.refused += 1;
            self.give_back(&of);
            return self.fail(visit, ns(call.hop_s));
        };
        let child = self.new_visit(Visit {
            tier: call.to as u16,
            instance,
            parent: visit,
            pooled: true,
            born: self.now,
            request_s: of.request_s,
            ..Visit::of_client()
        });
        self.visits[visit as usize].child = child;
        if call.hop_s > 0.0 {
            let serial = self.visits[child as usize].serial;
            self.schedule(self.now + ns(call.hop_s), Kind::Reach, child, serial);
        } else {
            self.reach(child);
        }
    }

    /// A visit reaches its instance.
    pub(super) fn reach(&mut self, visit: u32) {
        let of = self.visits[visit as usize];
        let tier = of.tier as usize;
        let instance = &mut self.tiers[tier].instances[of.instance as usize];
        if !instance.is_up || instance.queue.len() >= self.model.tiers[tier].queue && self.is_full(&of) {
            self.tiers[tier].counted.refused += 1;
            return self.answer_failed(visit);
        }
        self.visits[visit as usize].born = self.now;
        if !self.is_full(&of) && matches!(self.model.tiers[tier].work, Work::Each(_)) {
            return self.start(visit);
        }
        self.visits[visit as usize].stage = Stage::Waiting;
        self.tiers[tier].account(self.now);
        self.tiers[tier].waiting += 1;
        self.tiers[tier].instances[of.instance as usize].queue.push_back(visit);
        self.start_waiting(tier, of.instance);
    }

    /// Whether nothing more can begin at an instance.
    fn is_full(&self, visit: &Visit) -> bool {
        let tier = visit.tier as usize;
        let of = &self.tiers[tier].instances[visit.instance as usize];
        of.busy >= self.tiers[tier].parallel() || of.begun >= self.model.tiers[tier].workers
    }

    /// Begins with those that wait, as far as there is room.
    fn start_waiting(&mut self, tier: usize, instance: u32) {
        loop {
            let workers = self.model.tiers[tier].workers;
            let parallel = self.tiers[tier].parallel();
            let of = &mut self.tiers[tier].instances[instance as usize];
            if of.busy >= parallel || of.begun >= workers {
                return;
            }
            match self.model.tiers[tier].work {
                Work::Each(_) => {
                    let Some(visit) = of.queue.pop_front() else { return };
                    self.tiers[tier].account(self.now);
                    self.tiers[tier].waiting -= 1;
                    self.start(visit);
                }
                Work::Batch { fixed_s, each_s, most } => {
                    let count = of.queue.len().min(most).min(workers - of.begun);
                    if count == 0 {
                        return;
                    }
                    let taken: Vec<u32> = of.queue.drain(..count).collect();
                    self.start_batch(tier, instance, taken, fixed_s + each_s * count as f64);
                }
            }
        }
    }

    /// A visit gets a core.
    fn start(&mut self, visit: u32) {
        let of = self.visits[visit as usize];
        let tier = of.tier as usize;
        let Work::Each(work) = &self.model.tiers[tier].work else { return };
        let mut work_s = work.draw(&mut self.rng, of.request_s);
        let state = &mut self.tiers[tier];
        state.account(self.now);
        state.busy += 1;
        state.counted.begun += 1;
        state.wait_ns += (self.now - of.born) as f64;
        let instance = &mut state.instances[of.instance as usize];
        instance.busy += 1;
        instance.begun += 1;
        let contention = self.model.tiers[tier].contention;
        work_s *= contention.factor(instance.busy);
        self.visits[visit as usize].stage = Stage::Working;
        self.schedule(self.now + ns(work_s), Kind::Done, visit, of.serial);
    }

    fn start_batch(&mut self, tier: usize, instance: u32, visits: Vec<u32>, work_s: f64) {
        let count = visits.len();
        let state = &mut self.tiers[tier];
        state.account(self.now);
        state.busy += 1;
        state.waiting -= count as u64;
        state.counted.begun += count as u64;
        let of = &mut state.instances[instance as usize];
        of.busy += 1;
        of.begun += count;
        let generation = of.generation;
        let mut with_serials = Vec::with_capacity(count);
        for visit in visits {
            let place = &mut self.visits[visit as usize];
            place.stage = Stage::Working;
            state.wait_ns += (self.now - place.born) as f64;
            with_serials.push((visit, place.serial));
        }
        let batch = Batch { tier, instance, generation, visits: with_serials };
        let at = match self.free_batches.pop() {
            Some(at) => {
                self.batches[at as usize] = batch;
                at
            }
            None => {
                self.batches.push(batch);
                (self.batches.len() - 1) as u32
            }
        };
        self.schedule(self.now + ns(work_s), Kind::BatchDone, at, 0);
    }

    pub(super) fn batch_done(&mut self, at: u32) {
        let Batch { tier, instance, generation, visits } = std::mem::take(&mut self.batches[at as usize]);
        self.free_batches.push(at);
        if self.tiers[tier].instances[instance as usize].generation != generation {
            return;
        }
        self.core_is_free(tier, instance);
        self.start_waiting(tier, instance);
        for (visit, serial) in visits {
            if self.visits[visit as usize].serial == serial {
                self.begin_calls(visit);
            }
        }
    }

    fn core_is_free(&mut self, tier: usize, instance: u32) {
        let state = &mut self.tiers[tier];
        state.account(self.now);
        state.busy -= 1;
        state.instances[instance as usize].busy -= 1;
    }

    /// Work is done.
    pub(super) fn done(&mut self, visit: u32) {
        let of = self.visits[visit as usize];
        let tier = of.tier as usize;
        self.core_is_free(tier, of.instance);
        // those that wait go before what this one may ask of the same tier
        self.start_waiting(tier, of.instance);
        let pause_s = self.model.tiers[tier].pause.draw(&mut self.rng, of.request_s);
        if pause_s > 0.0 {
            self.visits[visit as usize].stage = Stage::Calling;
            self.schedule(self.now + ns(pause_s), Kind::Rested, visit, of.serial);
        } else {
            self.begin_calls(visit);
        }
    }

    /// A visit answers; a client's ends.
    fn answer(&mut self, visit: u32, ok: bool) {
        let of = self.visits[visit as usize];
        if of.tier == CLIENT {
            return self.ended(visit, ok);
        }
        let tier = of.tier as usize;
        self.tiers[tier].instances[of.instance as usize].begun -= 1;
        let place = &mut self.visits[visit as usize];
        place.stage = Stage::Answering;
        place.ok = ok;
        if self.model.tiers[tier].workers != crate::UNBOUNDED {
            self.start_waiting(tier, of.instance);
        }
        let hop = self.hop_of(&of);
        if ok && hop == 0 {
            self.answered(visit);
        } else {
            self.schedule(self.now + hop, Kind::Answered, visit, of.serial);
        }
    }

    /// An instance refuses a visit that it has not begun, or fails with it.
    pub(super) fn answer_failed(&mut self, visit: u32) {
        let place = &mut self.visits[visit as usize];
        // its work is never done
        place.serial = place.serial.wrapping_add(1);
        place.stage = Stage::Answering;
        place.ok = false;
        let of = *place;
        let hop = self.hop_of(&of);
        self.schedule(self.now + hop, Kind::Answered, visit, of.serial);
    }

    fn hop_of(&self, visit: &Visit) -> u64 {
        if visit.parent == NONE {
            return 0;
        }
        self.call_of(&self.visits[visit.parent as usize]).map_or(0, |call| ns(call.hop_s))
    }

    /// An answer reaches the caller.
    pub(super) fn answered(&mut self, visit: u32) {
        let of = self.visits[visit as usize];
        self.tiers[of.tier as usize].count_under_way(of.instance, -1);
        self.release(visit);
        if of.parent == NONE {
            return;
        }
        let caller = self.visits[of.parent as usize];
        self.visits[of.parent as usize].child = NONE;
        if of.pooled {
            self.give_back(&caller);
        }
        if !of.ok {
            return self.call_failed(of.parent);
        }
        let edge = self.edge(&caller);
        (edge.failures, edge.open_until, edge.tries) = (0, 0, false);
        let place = &mut self.visits[of.parent as usize];
        place.attempts += 1;
        place.left -= 1;
        self.next_call(of.parent);
    }

    /// A connection of a caller's is free: whoever waits for one gets it.
    fn give_back(&mut self, caller: &Visit) {
        let Some(call) = self.call_of(caller) else { return };
        loop {
            let edge = self.edge(caller);
            let Some((visit, serial, attempt)) = edge.waiting.pop_front() else {
                edge.used = edge.used.saturating_sub(1);
                return;
            };
            let of = &self.visits[visit as usize];
            if of.serial == serial && of.attempts == attempt {
                if self.tiers[call.to].chosen().is_empty() {
                    self.tiers[call.to].counted.refused += 1;
                    self.fail(visit, ns(call.hop_s));
                    continue;
                }
                return self.send(visit, call);
            }
        }
    }

    /// A call fails after a while.
    fn fail(&mut self, visit: u32, after: u64) {
        let serial = self.visits[visit as usize].serial;
        // it waits for nothing any more, so that no timeout ends it a second time
        self.visits[visit as usize].attempts += 1;
        self.schedule(self.now + after, Kind::Failed, visit, serial);
    }

    /// The caller gives an attempt up; the work there goes on.
    pub(super) fn give_up(&mut self, visit: u32) {
        let of = self.visits[visit as usize];
        let Some(call) = self.call_of(&of) else { return };
        self.tiers[call.to].counted.timed_out += 1;
        if of.child != NONE {
            self.visits[of.child as usize].parent = NONE;
            self.visits[visit as usize].child = NONE;
            self.give_back(&of);
        }
        self.fail(visit, 0);
    }

    /// A call failed: the next attempt, or the visit fails.
    pub(super) fn call_failed(&mut self, visit: u32) {
        let now = self.now;
        let of = self.visits[visit as usize];
        let Some(call) = self.call_of(&of) else { return };
        // what the breaker itself ended says nothing of the instances
        let is_broken = std::mem::take(&mut self.visits[visit as usize].is_broken);
        if let Some(breaker) = call.breaker.filter(|_| !is_broken) {
            let edge = self.edge(&of);
            edge.failures = edge.failures.saturating_add(1);
            if edge.failures >= breaker.failures && (edge.open_until <= now || edge.tries) {
                edge.open_until = now + ns(breaker.open_s).max(1);
                edge.tries = false;
            }
        }
        let place = &mut self.visits[visit as usize];
        place.attempts += 1;
        if place.failures < call.retries {
            place.failures += 1;
            // never at once: an attempt that fails at once would be tried again in the same moment
            self.schedule(now + ns(call.backoff_s), Kind::Again, visit, of.serial);
        } else {
            self.answer(visit, false);
        }
    }
}
