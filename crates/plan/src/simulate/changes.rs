//! What happens to instances: failures, replacements, scaling.

use super::state::{NONE, Stage};
use super::{Kind, Simulation, ns};
use crate::model::Happening;

impl Simulation<'_> {
    /// Carries a change of the model out.
    pub(super) fn change(&mut self, index: usize) {
        match self.model.changes[index].what {
            Happening::Fails { tier, instance, for_s } => self.instance_fails(tier, instance as u32, for_s),
            Happening::ZoneFails { zone, for_s } => {
                for tier in 0..self.tiers.len() {
                    for instance in 0..self.tiers[tier].instances.len() {
                        if self.tiers[tier].instances[instance].zone == zone {
                            self.instance_fails(tier, instance as u32, for_s);
                        }
                    }
                }
            }
            Happening::Rolls { tier, .. } => self.roll(tier, 0),
        }
    }

    /// An instance fails with all that it has.
    fn instance_fails(&mut self, tier: usize, instance: u32, for_s: Option<f64>) {
        let state = &mut self.tiers[tier];
        if !state.instances[instance as usize].is_up {
            return;
        }
        state.account(self.now);
        let of = &mut state.instances[instance as usize];
        state.up -= u64::from(!of.is_retired);
        state.busy -= of.busy as u64;
        state.waiting -= of.queue.len() as u64;
        of.is_up = false;
        of.generation += 1;
        (of.busy, of.begun) = (0, 0);
        of.queue.clear();
        of.edges.iter_mut().for_each(|edge| *edge = super::Edge::default());
        let is_retired = of.is_retired;
        let has_it = |visit: &super::Visit| visit.tier as usize == tier && visit.instance == instance;
        let is_there = |visit: &super::Visit| {
            matches!(visit.stage, Stage::Waiting | Stage::Working | Stage::Calling) && has_it(visit)
        };
        let lost: Vec<u32> =
            (0u32..).zip(&self.visits).filter(|(_, visit)| is_there(visit)).map(|(at, _)| at).collect();
        for visit in lost {
            let child = std::mem::replace(&mut self.visits[visit as usize].child, NONE);
            if child != NONE {
                self.visits[child as usize].parent = NONE;
                self.visits[child as usize].pooled = false;
            }
            self.answer_failed(visit);
        }
        let noticed = self.now + ns(self.model.tiers[tier].noticed_after_s);
        self.schedule(noticed, Kind::Noticed, instance, tier as u32);
        if let Some(for_s) = for_s.filter(|_| !is_retired) {
            self.schedule(self.now + ns(for_s), Kind::Restored, instance, tier as u32);
        }
    }

    /// An instance that failed gets no more requests.
    pub(super) fn noticed(&mut self, tier: usize, instance: u32) {
        let of = &mut self.tiers[tier].instances[instance as usize];
        if !of.is_up {
            of.is_chosen = false;
            self.tiers[tier].choose_again();
        }
    }

    /// An instance is there again.
    pub(super) fn restored(&mut self, tier: usize, instance: u32) {
        let state = &mut self.tiers[tier];
        state.account(self.now);
        let of = &mut state.instances[instance as usize];
        if of.is_retired {
            return;
        }
        if !of.is_up {
            of.is_up = true;
            state.up += 1;
        }
        of.is_chosen = true;
        state.choose_again();
    }

    /// Takes an instance out, and brings it back before the next one goes.
    pub(super) fn roll(&mut self, tier: usize, instance: u32) {
        let each_s = self.model.changes.iter().find_map(|change| match change.what {
            Happening::Rolls { tier: of, each_s } if of == tier => Some(each_s),
            _ => None,
        });
        let Some(each_s) = each_s.filter(|_| (instance as usize) < self.tiers[tier].instances.len()) else {
            return;
        };
        let back = self.now + ns(each_s);
        let of = &mut self.tiers[tier].instances[instance as usize];
        if of.is_up && !of.is_retired {
            of.is_chosen = false;
            self.tiers[tier].choose_again();
            self.schedule(back, Kind::Restored, instance, tier as u32);
        }
        self.schedule(back, Kind::Roll, instance + 1, tier as u32);
    }

    /// Scaling looks how busy a tier was.
    pub(super) fn look(&mut self, tier: usize) {
        let Some(scaling) = self.model.tiers[tier].scaling else { return };
        self.schedule(self.now + ns(scaling.every_s), Kind::Look, tier as u32, 0);
        let state = &mut self.tiers[tier];
        state.account(self.now);
        let busy = state.since_looked();
        let there = state.chosen().len();
        let wanted = (there as f64 * busy / scaling.target).ceil() as usize;
        let wanted = wanted.clamp(scaling.least, scaling.most);
        if wanted > there + state.coming {
            let more = wanted - there - state.coming;
            state.coming += more;
            let at = self.now + ns(scaling.delay_s);
            (0..more).for_each(|_| self.schedule(at, Kind::Added, tier as u32, 0));
        } else if wanted < there && state.coming == 0 {
            // the last ones go, and answer what they have
            let leaving: Vec<u32> = state.chosen()[wanted..].to_vec();
            for instance in leaving {
                let of = &mut state.instances[instance as usize];
                (of.is_chosen, of.is_retired) = (false, true);
                state.up -= u64::from(of.is_up);
            }
            state.choose_again();
        }
    }

    /// An instance that scaling asked for answers; one that left before is used again.
    pub(super) fn added(&mut self, tier: usize) {
        let of = &self.model.tiers[tier];
        let state = &mut self.tiers[tier];
        state.account(self.now);
        state.coming -= 1;
        match state.instances.iter_mut().find(|instance| instance.is_retired) {
            Some(instance) => {
                (instance.is_chosen, instance.is_retired, instance.is_up) = (true, false, true);
                state.up += 1;
                state.choose_again();
            }
            None => state.add_instance(of),
        }
    }
}
