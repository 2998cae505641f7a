//! Large systems in little time: a slice of the instances with its share of the load, and samples of a day.
//!
//! Instances that are alike and chosen without regard to each other see the same load, however many they are. From some
//! dozens on that holds for every way of balancing: the busiest and the idlest are then the same share of all.

use crate::distribution::Distribution;
use crate::model::{Arrivals, Happening, Load, Model, RateFrom, Tier, Work, Wrong};
use crate::simulate::{Outcome, Span, simulate};

/// A slice keeps so many instances of each tier at least.
pub const SLICE_LEAST: usize = 48;
/// Instances may not divide by the slices; work is made shorter or longer by so much at most.
const ROUNDED_MOST: f64 = 0.02;
/// Most samples of a day.
const SAMPLES_MAX: usize = 10_000;

/// One of so many slices that are alike: each tier with its share of the instances, and the same share of the load. Where
/// instances do not divide, work is stretched so that the cores are as busy as in the whole. The model itself, and 1, where a
/// tier has too few instances or something happens to single ones.
pub fn slice(model: &Model) -> (Model, usize) {
    let few = model.tiers.iter().map(|tier| tier.instances).min().unwrap_or(0);
    let is_of_single = |what: &Happening| !matches!(what, Happening::ZoneFails { .. });
    let users = match &model.load {
        Load::Open(_) => usize::MAX,
        Load::Closed { users, .. } => *users,
    };
    if model.changes.iter().any(|change| is_of_single(&change.what)) {
        return (model.clone(), 1);
    }
    let rounded = |slices: usize| {
        let of = |tier: &Tier| (stretch(tier.instances, slices) - 1.0).abs();
        model.tiers.iter().map(of).fold(0.0, f64::max)
    };
    let most = (few / SLICE_LEAST).min(users / SLICE_LEAST);
    let slices = (2..=most).rev().find(|slices| rounded(*slices) <= ROUNDED_MOST).unwrap_or(1);
    if slices == 1 {
        return (model.clone(), 1);
    }
    let mut part = model.clone();
    match &mut part.load {
        Load::Open(arrivals) => arrivals.rates.iter_mut().for_each(|rate| rate.per_s /= slices as f64),
        Load::Closed { users, .. } => *users = (*users as f64 / slices as f64).round() as usize,
    }
    for tier in &mut part.tiers {
        tier.work = stretched(&tier.work, stretch(tier.instances, slices));
        tier.instances = share(tier.instances, slices);
        if let Some(scaling) = &mut tier.scaling {
            (scaling.least, scaling.most) =
                (share(scaling.least, slices).max(1), share(scaling.most, slices).max(1));
        }
    }
    (part, slices)
}

fn share(count: usize, slices: usize) -> usize {
    (count as f64 / slices as f64).round() as usize
}

fn stretch(instances: usize, slices: usize) -> f64 {
    share(instances, slices) as f64 * slices as f64 / instances as f64
}

fn stretched(work: &Work, by: f64) -> Work {
    match work {
        Work::Each(Distribution::Share(share)) => Work::Each(Distribution::Share(share * by)),
        Work::Each(work) => Work::Each(work.scaled(by)),
        Work::Batch { fixed_s, each_s, most } => {
            Work::Batch { fixed_s: fixed_s * by, each_s: each_s * by, most: *most }
        }
    }
}

/// How a long time is sampled: that many pieces, each simulated for a while in its middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// How long all of it is, seconds.
    pub length_s: f64,
    /// Pieces of equal length.
    pub pieces: usize,
    /// Before measuring, seconds.
    pub warm_s: f64,
    /// Measured of each piece, seconds.
    pub measured_s: f64,
    /// The same seed gives the same outcome.
    pub seed: u64,
}

/// Simulates samples of a long time. Each begins with nothing under way, and the same share of every piece is measured, so
/// that all together have the distribution of the whole. It is not for loads that leave a backlog to the next piece: then
/// [`Outcome::grows`].
///
/// # Errors
/// What is wrong with the model or the pieces.
pub fn sample(model: &Model, sampling: &Sampling) -> Result<Outcome, Wrong> {
    let Sampling { length_s, pieces, warm_s, measured_s, seed } = *sampling;
    let each_s = length_s / pieces as f64;
    let fits = (1..=SAMPLES_MAX).contains(&pieces) && warm_s + measured_s <= each_s;
    if !fits {
        return Err(Wrong(format!(
            "a sample is 1 to {SAMPLES_MAX} pieces, each longer than what is simulated of it"
        )));
    }
    let mut all = Outcome::default();
    let mut grows = false;
    for piece in 0..pieces {
        let from_s = piece as f64 * each_s + (each_s - warm_s - measured_s) / 2.0;
        let span = Span { from_s, ..Span::new(warm_s, measured_s, seed.wrapping_add(piece as u64)) };
        let outcome = simulate(model, &span)?;
        grows |= outcome.grows();
        all.add(&outcome);
    }
    all.cut |= grows;
    Ok(all)
}

/// A day's load: lowest at four in the morning, highest at four in the afternoon, `peak` times the mean; a rate for each
/// quarter of an hour.
pub fn day(mean_per_s: f64, peak: f64) -> Arrivals {
    let rate = |quarter: u32| {
        let turn = (f64::from(quarter) + 0.5) / 96.0 - 4.0 / 24.0;
        let per_s = mean_per_s * (1.0 - (peak - 1.0) * (turn * std::f64::consts::TAU).cos());
        RateFrom { from_s: f64::from(quarter) * 900.0, per_s: per_s.max(0.0) }
    };
    Arrivals { even: false, rates: (0..96).map(rate).collect() }
}
