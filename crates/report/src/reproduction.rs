//! The published experiments repeated: their figures beside ours. [`blocks::reproduction`](crate::blocks::reproduction) makes a
//! report of them.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::bill::{Amount, Bill, Role};
use tidemark_record::manifest::Machine;
use tidemark_record::summary::Status;
use tidemark_record::{ComparedRuns, Manifest, Part, RecordError};

use crate::comparison::{Compared, Figures};
use crate::published::{Experiment, Figure, Of};
use crate::tiers::cpu_by_tier;

/// All that was repeated: the object that `tidemark reproduce --json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The machine; null where nothing ran.
    pub machine: Option<Machine>,
    /// When it began, RFC 3339, UTC; empty where nothing ran.
    pub started_at: String,
    /// Whether all had the published lengths.
    pub full: bool,
    /// In their order.
    pub experiments: Vec<Repeated>,
    /// Where the runs are.
    pub run_dir: String,
}

/// One experiment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Repeated {
    /// The scenario that was run.
    pub scenario: String,
    /// What it is of.
    pub title: String,
    /// The year of the publication.
    pub year: u16,
    /// What the published one ran on.
    pub published_machines: String,
    /// How many of them `ratio_per_server` counts: all but those that made the load; null where that is not known.
    pub published_servers: Option<u16>,
    /// What it paid, whole US dollars; null where that is not known.
    pub published_usd: Option<u64>,
    /// What came of ours; null where there is no run.
    pub status: Option<Status>,
    /// Why it has no figures, or not all.
    pub trouble: Vec<String>,
    /// The published figures, with ours beside them.
    pub figures: Vec<Beside>,
    /// What an acknowledged write of ours has survived: `synced`, `buffered`, `memory`; null where nothing is written.
    pub durability: Option<String>,
    /// Acknowledged writes that were found again, and that were lost; null where nobody looked.
    pub found: Option<u64>,
    /// See `found`.
    pub lost: Option<u64>,
    /// What a million good answers cost; null without `--prices`.
    pub per_million: Option<Amount>,
    /// Of what money that is.
    pub currency: Option<String>,
    /// What differs from the published experiment.
    pub differs: Vec<String>,
    /// Where its runs are.
    pub run_dir: String,
}

/// A published figure beside ours.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Beside {
    /// What it is.
    pub name: String,
    /// What came of it; null where it is a part of a run, which has one verdict: see `status` of the experiment.
    pub status: Option<Status>,
    /// So many a second were published.
    pub published_per_s: f64,
    /// Published response times, in words.
    pub published_times: String,
    /// So many good answers a second here; null where it did not run.
    pub per_s: Option<f64>,
    /// Median response time here, microseconds.
    pub p50_us: Option<u64>,
    /// 99th percentile here, microseconds.
    pub p99_us: Option<u64>,
    /// Cores that the system and its stores used here, mean; null where they were not started here.
    pub cores_used: Option<f64>,
    /// Our rate as a multiple of the published one.
    pub ratio: Option<f64>,
    /// The same for each machine of the system; ours has the load generator, too.
    pub ratio_per_server: Option<f64>,
    /// The same for each core that the system could use; null where the number of its cores was not published.
    pub ratio_per_core: Option<f64>,
}

impl Reproduction {
    /// As one JSON object, indented, with a line end: `docs/reproduce.schema.json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a reproduction is plain JSON") + "\n"
    }

    /// Adds what ran on a machine: the first one says which.
    pub fn add(&mut self, repeated: Repeated, manifest: Option<&Manifest>) {
        if let Some(manifest) = manifest.filter(|_| self.machine.is_none()) {
            self.machine = Some(manifest.machine.clone());
            self.started_at.clone_from(&manifest.started_at);
        }
        self.experiments.push(repeated);
    }

    /// What all of it is worth: the worst of its verdicts. One that did not run is invalid.
    pub fn status(&self) -> Status {
        let of = |repeated: &Repeated| repeated.status.unwrap_or(Status::Invalid);
        let has = |status: Status| self.experiments.iter().any(|repeated| of(repeated) == status);
        let worst = [Status::Fail, Status::Invalid].into_iter().find(|status| has(*status));
        worst.unwrap_or(Status::Pass)
    }
}

/// What was measured of one figure.
struct Measured {
    /// Its own verdict, where it has one.
    status: Option<Status>,
    per_s: f64,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    cores_used: Option<f64>,
}

impl Repeated {
    /// One that has no run, and why.
    pub fn without(experiment: &Experiment, run_dir: &str, why: &str) -> Repeated {
        let mut repeated = Repeated::begun(experiment, run_dir, 0, |_| None);
        repeated.trouble.push(why.to_owned());
        repeated
    }

    /// What a run came to.
    pub fn of_run(experiment: &Experiment, manifest: &Manifest, bill: Option<&Bill>) -> Repeated {
        let summary = &manifest.summary;
        let measured = |of: &Figure| of_run(manifest, of.of);
        let cores = cores_of_system(manifest);
        let mut repeated = Repeated::begun(experiment, &summary.run_dir, cores, measured);
        repeated.status = Some(summary.verdict.status);
        repeated.trouble.extend(summary.verdict.reasons.iter().map(ToString::to_string));
        repeated.durability.clone_from(&manifest.system.durability);
        let verified = summary.ledger.as_ref().and_then(|ledger| ledger.verified.as_ref());
        (repeated.found, repeated.lost) = (verified.map(|of| of.found), verified.map(|of| of.lost));
        repeated.per_million = bill.and_then(|bill| bill.at_cpu?.per_million);
        repeated.currency = bill.map(|bill| bill.currency.clone());
        repeated.trouble.extend(bill.into_iter().flat_map(|bill| bill.not_in_sums.iter().cloned()));
        repeated
    }

    /// What a comparison came to.
    ///
    /// # Errors
    /// Where a run's histograms are damaged.
    pub fn of_comparison(experiment: &Experiment, runs: &ComparedRuns) -> Result<Repeated, RecordError> {
        let compared = Compared::of(runs)?;
        let own = compared.parts.iter().find(|part| part.part == Part::OwnLoad);
        let side = |name: &str| own?.sides.iter().find(|side| side.name == name).map(of_side);
        let measured = |of: &Figure| match of.of {
            Of::Side(name) => side(name),
            Of::All | Of::Label(_) => None,
        };
        let cores = runs.runs.first().map_or(0, |run| cores_of_system(&run.manifest));
        let mut repeated = Repeated::begun(experiment, &compared.run_dir, cores, measured);
        // what is not whole has no verdict of the whole
        repeated.status = match (&compared.stopped, compared.status()) {
            (Some(_), Some(Status::Pass)) => Some(Status::Invalid),
            (_, status) => status,
        };
        let reasons = |side: &Figures| {
            let name = side.name.clone();
            side.verdict.reasons.iter().map(move |reason| format!("{name}: {reason}")).collect::<Vec<_>>()
        };
        let parts = compared.parts.iter().flat_map(|part| &part.sides).flat_map(reasons);
        repeated
            .trouble
            .extend(parts.chain(compared.left_out.iter().cloned()).chain(compared.stopped.clone()));
        Ok(repeated)
    }

    fn begun(
        experiment: &Experiment,
        run_dir: &str,
        cores: u64,
        measured: impl Fn(&Figure) -> Option<Measured>,
    ) -> Repeated {
        let beside = |of: &Figure| Beside::of(experiment, of, cores, measured(of));
        Repeated {
            scenario: experiment.scenario.to_owned(),
            title: experiment.title.to_owned(),
            year: experiment.year,
            published_machines: experiment.machines.to_owned(),
            published_servers: experiment.servers,
            published_usd: experiment.usd,
            status: None,
            trouble: Vec::new(),
            figures: experiment.figures.iter().map(beside).collect(),
            durability: None,
            found: None,
            lost: None,
            per_million: None,
            currency: None,
            differs: experiment.differs.iter().map(|says| (*says).to_owned()).collect(),
            run_dir: run_dir.to_owned(),
        }
    }
}

impl Beside {
    fn of(experiment: &Experiment, figure: &Figure, cores: u64, measured: Option<Measured>) -> Beside {
        let ratio = measured.as_ref().map(|of| of.per_s / figure.per_s);
        // ours is one machine
        let per_server = ratio.zip(experiment.servers).map(|(ratio, servers)| ratio * f64::from(servers));
        let per_core = ratio.zip(experiment.cores).filter(|_| cores > 0);
        let per_core = per_core.map(|(ratio, theirs)| ratio * f64::from(theirs) / cores as f64);
        Beside {
            name: figure.name.to_owned(),
            status: measured.as_ref().and_then(|of| of.status),
            published_per_s: figure.per_s,
            published_times: figure.times.to_owned(),
            per_s: measured.as_ref().map(|of| of.per_s),
            p50_us: measured.as_ref().and_then(|of| of.p50_us),
            p99_us: measured.as_ref().and_then(|of| of.p99_us),
            cores_used: measured.and_then(|of| of.cores_used),
            ratio,
            ratio_per_server: per_server,
            ratio_per_core: per_core,
        }
    }
}

/// Cores that the system could use.
fn cores_of_system(manifest: &Manifest) -> u64 {
    match manifest.system.pinned_to.len() {
        0 => manifest.machine.cores,
        pinned => pinned as u64,
    }
}

fn of_run(manifest: &Manifest, of: Of) -> Option<Measured> {
    let summary = &manifest.summary;
    if summary.measured_s <= 0.0 || summary.due() == 0 {
        return None;
    }
    let tiers = cpu_by_tier(manifest, &[]);
    let used = || {
        tiers.iter().filter(|tier| tier.role != Role::Driver).map(|tier| tier.mean * tier.instances as f64)
    };
    let cores_used = used().next().map(|_| used().sum());
    match of {
        Of::All => Some(Measured {
            status: None,
            per_s: summary.rate_per_s(),
            p50_us: summary.response_time_us.p50,
            p99_us: summary.response_time_us.p99,
            cores_used,
        }),
        Of::Label(label) => {
            let step = summary.steps.iter().find(|step| step.label == label)?;
            Some(Measured {
                status: None,
                per_s: step.rate_per_s(),
                p50_us: step.response_time_us.p50,
                p99_us: step.response_time_us.p99,
                cores_used,
            })
        }
        Of::Side(_) => None,
    }
}

fn of_side(side: &Figures) -> Measured {
    let stores = || side.stores.values().map(|of| of.cpu_share);
    let used: f64 = side.system_cpu_share.unwrap_or_default() + stores().sum::<f64>();
    let is_known = side.system_cpu_share.is_some() || stores().next().is_some();
    Measured {
        status: Some(side.verdict.status),
        per_s: side.answered_per_s,
        p50_us: side.response_time_us.p50,
        p99_us: side.response_time_us.p99,
        cores_used: is_known.then_some(used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks;
    use crate::blocks::tests::fitted;
    use crate::published::tests::FEED;
    use crate::test_run::airline;

    const TRADE: Experiment = Experiment {
        figures: &[
            Figure { name: "REST calls", of: Of::Side("REST"), per_s: 68_994.0, times: "" },
            Figure { name: "WebSocket calls", of: Of::Side("WebSocket"), per_s: 511_000.0, times: "" },
        ],
        ..FEED
    };
    const SEARCHED: Experiment = Experiment {
        title: "News feed",
        figures: &[
            Figure { name: "posts", of: Of::Label("Post"), per_s: 83.0, times: "" },
            Figure { name: "searches", of: Of::Label("Search"), per_s: 33.0, times: "" },
        ],
        ..FEED
    };

    fn all(experiments: Vec<Repeated>) -> Reproduction {
        Reproduction {
            machine: Some(Machine { cores: 2, ..Machine::default() }),
            started_at: "2026-01-01T00:00:00Z".into(),
            full: false,
            experiments,
            run_dir: "here".into(),
        }
    }

    #[test]
    fn a_published_rate_stands_beside_ours_for_each_machine_and_core() {
        let (_dir, mut run) = airline();
        run.manifest.summary.achieved_due_per_s = Some(830.0);
        run.manifest.system.pinned_to = vec![0];
        let repeated = Repeated::of_run(&FEED, &run.manifest, None);
        let of = &repeated.figures[0];
        assert_eq!((of.per_s, of.ratio), (Some(830.0), Some(10.0)));
        // six machines of a core each
        assert_eq!((of.ratio_per_server, of.ratio_per_core), (Some(60.0), Some(60.0)));
        assert_eq!(repeated.status, Some(run.manifest.summary.verdict.status));
    }

    #[test]
    fn a_row_has_its_own_verdict_where_its_part_has_one() {
        let (_dir, runs) = crate::comparison::tests::runs();
        let trade = Repeated::of_comparison(&TRADE, &runs).unwrap();
        let own: Vec<_> = trade.figures.iter().map(|of| of.status).collect();
        assert_eq!(
            (trade.status, own),
            (Some(Status::Fail), vec![Some(Status::Invalid), Some(Status::Pass)])
        );
        let mut feed = Repeated::without(&SEARCHED, "here/newsfeed", "it lost a post");
        feed.status = Some(Status::Fail);
        feed.figures.iter_mut().for_each(|of| of.per_s = Some(1.0));
        let words = fitted(&blocks::reproduction(&all(vec![trade, feed])), 200);
        assert!(words.contains("REST calls invalid ") && words.contains("WebSocket calls pass "), "{words}");
        assert!(words.contains("posts fail 83.0 ") && words.contains("searches fail 33.0 "), "{words}");
        let says = "its rows have the verdict of their run";
        assert!(words.contains(&format!("News feed: {says}")) && words.matches(says).count() == 1, "{words}");
        // without the machine of the load
        assert!(
            words.contains("a machine ÷ published × 6, the machines that did not make the load"),
            "{words}"
        );
    }

    #[test]
    fn one_that_did_not_run_is_said_first_and_makes_it_invalid() {
        let without = Repeated::without(&FEED, "here/kv", "the store is not installed");
        let mut passed = Repeated::without(&FEED, "here/airline", "");
        passed.trouble.clear();
        passed.status = Some(Status::Pass);
        let page = all(vec![passed, without]);
        assert_eq!(page.status(), Status::Invalid);
        let text = fitted(&blocks::reproduction(&page), 80);
        assert!(text.starts_with("2 experiments: 1 without a run, 1 passed"), "{text}");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("the store is not installed") < at("published/s"), "{text}");
        assert!(text.contains("no run"), "{text}");
    }

    #[test]
    fn a_side_that_was_left_out_of_one_that_passed_is_no_pass() {
        let mut kv = Repeated::without(&FEED, "here/kv", "Redis: not installed");
        kv.status = Some(Status::Pass);
        kv.figures.truncate(1);
        let text = fitted(&blocks::reproduction(&all(vec![kv])), 200);
        assert!(text.contains("no run") && text.contains("! Redis: not installed"), "{text}");
    }
}
