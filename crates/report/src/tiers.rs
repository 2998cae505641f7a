//! CPU by tier of a system: services, balancers, stores, what was watched, and the load generator.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::bill::Role;
use tidemark_record::{Manifest, Sample};

use crate::cost::{Tier, Usage, cores_used, measured_us};

/// CPU of a tier over the measured window, 1 being a whole core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TierCpu {
    /// The service, the store, `web-balancer`, `driver`.
    pub tier: String,
    /// What it is to the run.
    pub role: Role,
    /// Instances.
    pub instances: u64,
    /// Cores that one of them used, mean.
    pub mean: f64,
    /// Least that one of them used in a look.
    pub min: f64,
    /// Most that one of them used in a look.
    pub max: f64,
    /// Highest resident memory of one of them, bytes.
    pub rss_bytes_max: u64,
}

/// CPU by tier.
pub(crate) fn cpu_by_tier(manifest: &Manifest, samples: &[Sample]) -> Vec<TierCpu> {
    let usage = Usage::of(manifest);
    let (from_us, to_us) = measured_us(manifest);
    let cpu = |tier: &Tier| {
        let looks = samples.iter().filter(|look| tier.nodes.iter().any(|node| node.name == look.process));
        let looks = looks.filter(|look| (from_us..=to_us).contains(&look.at_us)).map(|look| look.cpu_share);
        let (min, max) =
            looks.fold((f64::INFINITY, 0.0_f64), |(min, max), share| (min.min(share), max.max(share)));
        TierCpu {
            tier: tier.name.clone(),
            role: tier.role,
            instances: tier.instances,
            mean: cores_used(tier, &usage) / tier.instances as f64,
            min: if min.is_finite() { min } else { 0.0 },
            max,
            rss_bytes_max: tier.rss_bytes_max(),
        }
    };
    usage.tiers.iter().map(cpu).collect()
}
