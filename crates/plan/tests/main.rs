//! Simulations beside what is known in closed form, and beside what a person would expect.

mod behaviour;
mod capacity;
mod large;
mod queues;
mod theory;

use tidemark_plan::{Arrivals, Call, Distribution, Load, Model, Tier};

/// Clients of one tier without hops.
fn one(load: Load, tier: Tier) -> Model {
    Model {
        load,
        entry: Call::new(0),
        request: Distribution::Constant(0.0),
        tiers: vec![tier],
        zones: 1,
        changes: Vec::new(),
    }
}

fn poisson(per_s: f64) -> Load {
    Load::Open(Arrivals::poisson(per_s))
}

fn near(what: &str, found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() <= within, "{what}: {found}, and theory has {wanted}");
}
