//! How fast the simulation is, and what a slice and samples make of a day at internet scale beside the whole.
//!
//! `cargo run --release -p tidemark-plan --example scale`

use std::time::Instant;

use tidemark_plan::{
    Arrivals, Balancing, Call, Distribution, Load, Model, Outcome, Sampling, Span, Tier, day, sample,
    simulate, slice,
};

/// Three tiers at 70 % of their cores at the peak.
fn system(mean_per_s: f64, peak: f64) -> Model {
    let most = mean_per_s * peak;
    let tier = |name, work_s: f64, calls: f64| {
        let instances = (most * calls * work_s / 4.0 / 0.7).ceil() as usize;
        let work = Distribution::LogNormal { mean_s: work_s, cv: 1.0 };
        Tier { balancing: Balancing::TwoChoices, ..Tier::new(name, instances, 4, work) }
    };
    let mut web = tier("web", 0.1, 1.0);
    web.calls =
        vec![Call { hop_s: 0.0005, ..Call::new(1) }, Call { hop_s: 0.0005, hit_rate: 0.5, ..Call::new(2) }];
    Model {
        load: Load::Open(day(mean_per_s, peak)),
        entry: Call { hop_s: 0.001, ..Call::new(0) },
        request: Distribution::Constant(0.0),
        tiers: vec![web, tier("auth", 0.02, 1.0), tier("data", 0.02, 0.5)],
        zones: 3,
        changes: Vec::new(),
    }
}

fn show(what: &str, began: Instant, outcome: &Outcome) {
    let took_s = began.elapsed().as_secs_f64();
    let [p50, p99, p999] =
        [0.5, 0.99, 0.999].map(|share| outcome.quantile_s(share).unwrap_or(f64::NAN) * 1e3);
    println!(
        "{what:<44} {took_s:6.1} s  {:9} requests  {:5.1} M events/s  p50 {p50:.1} ms  p99 {p99:.1} ms  p99.9 {p999:.1} ms",
        outcome.requests(),
        outcome.events as f64 / took_s / 1e6
    );
}

fn main() {
    let began = Instant::now();
    let mm1 = Model {
        load: Load::Open(Arrivals::poisson(700.0)),
        entry: Call::new(0),
        request: Distribution::Constant(0.0),
        tiers: vec![Tier::new("a", 1, 1, Distribution::Exponential(0.001))],
        zones: 1,
        changes: Vec::new(),
    };
    show("M/M/1", began, &simulate(&mm1, &Span::of_requests(1e7, 700.0, 1)).unwrap());
    for (what, per_day) in [("4.3 G requests a day", 4.3e9), ("430 G requests a day", 430e9)] {
        let whole = system(per_day / 86_400.0, 1.6);
        let instances: usize = whole.tiers.iter().map(|tier| tier.instances).sum();
        let (part, slices) = slice(&whole);
        println!("{what}: {instances} instances, {slices} slices");
        let sampling = Sampling { length_s: 86_400.0, pieces: 96, warm_s: 2.0, measured_s: 5.0, seed: 1 };
        let began = Instant::now();
        show("  a slice, 96 samples of the day", began, &sample(&part, &sampling).unwrap());
        if slices < 100 {
            // both run: the hour of the peak, whole and as a slice
            let span = Span { from_s: 57_600.0, ..Span::new(3.0, 20.0, 1) };
            let began = Instant::now();
            show("  the whole, 20 s of the peak", began, &simulate(&whole, &span).unwrap());
            let span = Span { measured_s: 20.0 * slices as f64, ..span };
            let began = Instant::now();
            show("  a slice, as many requests of the peak", began, &simulate(&part, &span).unwrap());
        }
    }
}
