//! What a published experiment had and measured, as far as it is known.

use tidemark_record::bill::{Amount, PublishedBill};
use tidemark_scenario::prices::Prices;

/// A published experiment, and how this program repeats it.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// The shipped scenario; others of the same experiment begin with its name and a hyphen.
    pub scenario: &'static str,
    /// What it is of.
    pub title: &'static str,
    /// The year of its publication.
    pub year: u16,
    /// What it ran on.
    pub machines: &'static str,
    /// Machines of the system, without those that made the load.
    pub servers: Option<u16>,
    /// Their cores.
    pub cores: Option<u16>,
    /// The bill, whole US dollars.
    pub usd: Option<u64>,
    /// Its figures.
    pub figures: &'static [Figure],
    /// What differs here, a sentence each.
    pub differs: &'static [&'static str],
    /// What `tidemark run` is given for a short run, and for one of the published length.
    pub short: &'static [&'static str],
    /// See `short`.
    pub full: &'static [&'static str],
}

/// A published figure.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// In words.
    pub name: &'static str,
    /// Of what it is here.
    pub of: Of,
    /// So many a second.
    pub per_s: f64,
    /// Response times, in words; empty where none were published.
    pub times: &'static str,
}

/// What a figure is of.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// All requests of the run.
    All,
    /// Those of a label.
    Label(&'static str),
    /// A side of the comparison, with its own load.
    Side(&'static str),
}

impl Experiment {
    /// Whether a scenario is of it.
    pub fn has(&self, scenario: &str) -> bool {
        scenario.strip_prefix(self.scenario).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// What it had and paid.
    pub fn bill(&self, prices: &Prices) -> PublishedBill {
        let usd = self.usd.map(Amount::whole);
        let factor = prices.inflation.get(&self.year);
        let usd_today =
            usd.zip(factor).and_then(|(usd, factor)| usd.part(factor.nano(), Amount::whole(1).nano()));
        let unknown = if usd.is_none() { "; no bill is known" } else { "" };
        let what = format!("{}{unknown} ({}, {})", self.machines, self.title, self.year);
        PublishedBill { what, year: self.year, usd, usd_today }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Of six machines with a core each.
    pub(crate) const FEED: Experiment = Experiment {
        scenario: "feed",
        title: "Feed",
        year: 2014,
        machines: "6 machines",
        servers: Some(6),
        cores: Some(6),
        usd: Some(10),
        figures: &[Figure { name: "posts", of: Of::All, per_s: 83.0, times: "" }],
        differs: &[],
        short: &[],
        full: &[],
    };

    #[test]
    fn scenarios_of_an_experiment_are_known_by_their_names_and_its_bill_by_its_year() {
        assert!(FEED.has("feed") && FEED.has("feed-mix") && !FEED.has("feeds"));
        let text = "currency: EUR\nsource: x\ndate: 2026-11-29\nmachines: {m: {cores: 1, memory: 1GiB, hour: 1}}\n\
                    inflation: {2014: 1.5}";
        let prices = Prices::parse("p.yaml", text).unwrap();
        let bill = FEED.bill(&prices);
        assert_eq!((bill.usd, bill.usd_today), (Some(Amount::whole(10)), Some(Amount::whole(15))));
        let unknown = Experiment { usd: None, ..FEED }.bill(&prices);
        assert_eq!((unknown.usd, unknown.usd_today), (None, None));
        assert!(unknown.what.starts_with("6 machines; no bill is known"), "{}", unknown.what);
    }
}
